//! LLVM emission of scheduled kernels, and the simulated target.

pub mod math;
pub mod scalar;
pub mod sim;
mod version;

pub use version::version;
