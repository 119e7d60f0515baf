//! What the runtime must do with every driver. `kernels.ptx` has the kernels for the real one, `libcuda.rs` has its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod device;
pub mod launch;
pub mod shipped;
pub mod support;
