//! From tile IR to a binary: requests, variants, the pipeline, and the cache around it.

pub(crate) mod binary;
pub(crate) mod cache;
pub(crate) mod encode;
pub(crate) mod instance;
pub(crate) mod kernel;
pub(crate) mod members;
pub(crate) mod memory;
pub(crate) mod pipeline;
pub(crate) mod sample;
pub(crate) mod variant;
