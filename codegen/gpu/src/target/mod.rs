//! Facts about targets: sizes, instructions and limits.

pub mod chip;
pub mod mma;
pub mod precision;
pub mod spec;
