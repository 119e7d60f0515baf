//! LLVM emission of scheduled kernels, and the simulated target.

mod diagnostics;
pub mod emit;
mod fatal;
pub mod gpu;
pub mod lines;
pub mod math;
pub mod module;
mod processor;
pub mod scalar;
pub mod sim;
pub mod target;
mod version;

pub use self::version::version;
