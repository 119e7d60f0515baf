//! From tile IR to a binary: requests, variants, the pipeline, and the cache around it.

pub(crate) mod binary;
pub(crate) mod cache;
#[cfg(feature = "llvm")]
pub(crate) mod emission;
#[cfg(not(feature = "llvm"))]
#[path = "no_emission.rs"]
pub(crate) mod emission;
pub(crate) mod encode;
pub(crate) mod instance;
mod interpreted;
pub(crate) mod kernel;
pub(crate) mod members;
#[cfg(feature = "llvm")]
pub(crate) mod memory;
pub(crate) mod pictures;
pub(crate) mod pipeline;
pub(crate) mod sample;
pub(crate) mod unchanged;
pub(crate) mod variant;
