//! From a checked program to binaries: [`compile()`] makes text of tile IR, [`assemble`] makes a binary of the text,
//! [`build_cached`] does both or finds the result in the [`Cache`].
//!
//! The only crate that starts an assembler or keeps a cache of compiled kernels.

mod assembler;
mod build;
mod c_source;
mod cache;
mod compile;
mod encode;
mod find;
mod guard;
mod instance;
mod jit;
mod kernel;
mod listing;
mod lld;
mod memory;
mod nvdisasm;
mod ptxas;
mod report;
mod ship;
mod simulator;
mod target;
mod tool;
mod variant;

pub use assembler::{Assembler, TARGETS, Tools};
pub use build::{Built, Work, build_cached, compile_for};
pub use c_source::{CSource, c_source};
pub use cache::{Cache, Key, Size};
pub use compile::compile;
pub use find::{Environment, Found, Ignored};
pub use instance::{Refused, Specialization, specializations};
pub use jit::Jit;
pub use kernel::{Asked, Cubin, Kernel, Param, ParamKind, Request, Resources, Shape, Stages};
pub use lld::Lld;
pub use nvdisasm::disassemble;
pub use ptxas::Ptxas;
pub use report::{describe, shortages, spilled};
pub use ship::{Shipped, Unit, ship};
pub use simulator::Simulator;
pub use target::facts_about;
pub use tk_gpu::ArgFacts;
pub use tk_llvm::gpu::verify_machine_code;
pub use tool::ToolError;
pub use variant::Variant;

/// The version of the LLVM that makes the code.
pub fn llvm_version() -> String {
    let (major, minor, patch) = tk_llvm::version();
    format!("{major}.{minor}.{patch}")
}
