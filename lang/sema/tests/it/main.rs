//! Tests of the checker, the launch contract and lowering, as one program, so that it links once.

mod diagnostics;
mod lower;
mod plan;
mod recheck;
mod triton;
