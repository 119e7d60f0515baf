//! What the runtime must do with every driver. `kernels.ptx` has the kernels for the real one, `libcuda.rs` has its own.

pub mod device;
pub mod launch;
pub mod shipped;
pub mod support;
