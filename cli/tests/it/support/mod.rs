//! What the tests of the command share.

#[cfg(feature = "llvm")]
pub mod building;
pub mod command;
#[cfg(feature = "llvm")]
pub mod everything;
#[cfg(feature = "llvm")]
pub mod lanes;
pub mod markdown;
pub mod program;
