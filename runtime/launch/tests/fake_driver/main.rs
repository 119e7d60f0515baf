//! The NVIDIA runtime against a driver made for tests (`libcuda.rs`), which any machine can run.
//!
//! Each test runs in a process of its own, whose loader finds that driver first. What needs the real one is in `cuda.rs`.

mod driver;
mod launch;
mod support;
