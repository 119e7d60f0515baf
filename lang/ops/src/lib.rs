//! Data types, their exact arithmetic, and the table of operations.

#![forbid(unsafe_code)]

pub mod buf;
pub mod dtype;
pub mod elementwise;
pub mod eval;
mod float;
pub mod format;
pub mod op;
pub mod philox;
pub mod reference;
pub mod rows;
pub mod scalar;
mod signature;
pub mod table;

pub use buf::Buf;
pub use dtype::{DType, DTypeSet};
pub use elementwise::Group;
pub use format::FloatFormat;
pub use op::*;
pub use scalar::Scalar;
