//! Facts about targets: sizes, instructions and limits.

pub mod mma;
pub mod precision;
pub mod spec;
