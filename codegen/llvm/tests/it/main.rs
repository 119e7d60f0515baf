//! Tests of emission and of the simulated target, as one program, so that LLVM is linked once.

mod math;
mod scalar;
mod sim;
