//! Tests of what build scripts generate, as one program, so that LLVM is linked once.

mod cpu;
mod generated;
