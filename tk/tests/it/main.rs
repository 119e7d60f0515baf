//! Tests of the library with its compiler.

#[cfg(feature = "jit")]
mod jit;
