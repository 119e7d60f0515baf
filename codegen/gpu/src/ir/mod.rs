//! Kernels with layouts, and their text form.

pub mod builder;
pub mod kernel;
pub mod shared_access;
pub mod tensor_map;
pub mod text;
