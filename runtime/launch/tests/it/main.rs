//! Tests of launches, with a fake driver, on a GPU if there is one, and of generated programs, as one program, so that it
//! links once.

mod cuda;
mod fake_driver;
mod fuzz;
mod generated;
mod npy;
mod on_gpu;
