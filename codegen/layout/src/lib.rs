//! Machine-aware compilation without LLVM: who holds which element of a tile, what moves, and where it lies meanwhile.

pub mod linear;
pub mod spec;

pub use spec::TargetSpec;
