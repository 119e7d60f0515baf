//! What the tests of the command share.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[cfg(feature = "llvm")]
pub mod building;
pub mod command;
#[cfg(feature = "llvm")]
pub mod everything;
#[cfg(feature = "llvm")]
pub mod lanes;
pub mod markdown;
pub mod program;
