//! Tests of the command, and of what only the whole of it shows, as one program, so that LLVM is linked once.

mod arrays;
mod bench;
#[cfg(all(unix, feature = "llvm"))]
mod build;
mod check;
mod checked;
mod dap;
#[cfg(all(unix, feature = "llvm"))]
mod devices;
mod doc;
mod fmt;
mod format;
mod input;
mod learn;
#[cfg(all(unix, feature = "llvm"))]
mod loops;
mod lsp;
#[cfg(all(unix, feature = "llvm"))]
mod machine;
#[cfg(all(unix, feature = "llvm"))]
mod members;
#[cfg(feature = "llvm")]
mod model;
#[cfg(feature = "llvm")]
mod mutated;
#[cfg(feature = "llvm")]
mod on_gpu;
#[cfg(all(unix, feature = "llvm"))]
mod profile;
#[cfg(all(unix, feature = "llvm"))]
mod remarks;
mod run;
#[cfg(all(unix, feature = "llvm"))]
mod setup;
#[cfg(all(unix, feature = "llvm"))]
mod ship;
#[cfg(all(unix, feature = "llvm"))]
mod ship_choose;
#[cfg(all(unix, feature = "llvm"))]
mod ship_targets;
#[cfg(feature = "llvm")]
mod simulated;
mod spec;
mod support;
#[cfg(feature = "llvm")]
mod targets;
#[cfg(unix)]
mod untrusted;
