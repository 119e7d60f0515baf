//! Compiles a checked program to binaries: [`compile()`] compiles tile IR to text, [`assemble`] text to a binary, and
//! [`build_cached`] does both or finds the result in the [`Cache`].
//!
//! The only crate that starts an assembler or has a cache of compiled kernels.

mod compile;
mod device;
mod ship;
mod tools;

pub use tk_gpu::ArgFacts;
#[cfg(feature = "llvm")]
pub use tk_llvm::gpu::verify_machine_code;

pub use tk_gpu::target::spec::{GPUS as TARGETS, buildable};

pub use self::compile::binary::{Built, Work, build_cached, compile_for};
pub use self::compile::cache::{Cache, Key, Size};
#[cfg(feature = "llvm")]
pub use self::compile::emission::{Until, compile};
pub use self::compile::instance::{
    Asking, Refused, Specialization, Specializations, add_ptx, specializations,
};
pub use self::compile::kernel::{
    Asked, CompiledKernel, Cubin, KernelParam, KernelParamKind, ProgramShape, Request, Resources, StageTexts,
};
pub use self::compile::members::ShippedMember;
pub use self::compile::pipeline::{after_passes, schedule};
pub use self::compile::unchanged::Unchanged;
pub use self::compile::variant::Variant;
pub use self::device::facts::{facts_about, place_of, usual_place};
pub use self::device::jit::Jit;
pub use self::device::outlook::{Forms, Outlook, forms, instances, outlook};
#[cfg(feature = "llvm")]
pub use self::device::simulator::Simulator;
pub use self::device::typical::{Expected, LineCost, blocks_per_sm, expected, lines};
pub use self::ship::artifact::{BundleUnit, Shipped, ship};
pub use self::ship::c_source::{CForm, CSource, PREFIX, c_source, is_prefix};
pub use self::ship::report::{assembled, describe, shortages};
pub use self::tools::assembler::{Assembler, Tools};
pub use self::tools::find::{Environment, Found, Ignored};
pub use self::tools::lld::Lld;
pub use self::tools::nvdisasm::disassemble;
pub use self::tools::ptxas::Ptxas;
pub use self::tools::tool::ToolError;

/// The version of the LLVM that generates code; empty without one.
#[cfg(feature = "llvm")]
pub fn llvm_version() -> String {
    let (major, minor, patch) = tk_llvm::version();
    format!("{major}.{minor}.{patch}")
}

/// The version of the LLVM that generates code; empty without one.
#[cfg(not(feature = "llvm"))]
pub fn llvm_version() -> String {
    String::new()
}
