//! Tests of the pipeline, its tools and its cache, as one program, so that LLVM is linked once.

mod cache;
mod choices;
#[cfg(unix)]
mod lld;
#[cfg(unix)]
mod ptxas;
mod simulated;
#[cfg(unix)]
mod support;
mod targets;
