//! Kernels with layouts, and their text form.

pub mod attrs;
pub mod builder;
pub mod caching;
pub mod cluster;
mod dialect;
mod fields;
pub mod kernel;
pub mod op;
pub mod params;
mod pipeline;
pub mod shared_access;
pub mod tensor_map;
pub mod text;
pub mod warps;
