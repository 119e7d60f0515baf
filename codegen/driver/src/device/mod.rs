//! Compiling for a runtime: at a launch, and for the simulated target as a device.

pub(crate) mod facts;
pub(crate) mod jit;
pub(crate) mod outlook;
pub(crate) mod predict;
#[cfg(feature = "llvm")]
mod replay;
#[cfg(feature = "llvm")]
pub(crate) mod simulator;
pub(crate) mod typical;
