//! Selects the tool that makes binaries for a target, located on first use.

use std::sync::OnceLock;

use tk_gpu::TargetSpec;

use crate::compile::cache::Cache;
use crate::compile::kernel::{CompiledKernel, Cubin};
use crate::tools::find::Environment;
use crate::tools::lld::Lld;
use crate::tools::ptxas::Ptxas;
use crate::tools::tool::ToolError;

/// The tool that makes a binary of the output of code generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembler {
    /// The assembler of NVIDIA.
    Ptxas(Ptxas),
    /// The linker of LLVM.
    Lld(Lld),
}

impl Assembler {
    /// Its name and version: a binary depends on them.
    pub fn version(&self) -> String {
        match self {
            Assembler::Ptxas(ptxas) => ptxas.version.clone(),
            Assembler::Lld(lld) => format!("lld {}", lld.version),
        }
    }

    /// The binary of a kernel.
    pub fn assemble(&self, kernel: &CompiledKernel) -> Result<Cubin, ToolError> {
        match self {
            Assembler::Ptxas(ptxas) => crate::tools::ptxas::assemble(kernel, ptxas),
            Assembler::Lld(lld) => crate::tools::lld::link(kernel, lld),
        }
    }
}

/// The tools of this host, and the cache.
#[derive(Debug)]
pub struct Tools {
    environment: Environment,
    /// The cache.
    pub cache: Cache,
    ptxas: OnceLock<Result<Assembler, ToolError>>,
    lld: OnceLock<Result<Assembler, ToolError>>,
}

impl Tools {
    /// The tools of an environment.
    pub fn new(environment: Environment, cache: Cache) -> Tools {
        Tools { environment, cache, ptxas: OnceLock::new(), lld: OnceLock::new() }
    }

    /// The assembler for a target.
    pub fn assembler(&self, target: &TargetSpec) -> Result<&Assembler, ToolError> {
        let found = if target.has_gcn {
            self.lld.get_or_init(|| Lld::find(&self.environment, &self.cache).map(Assembler::Lld))
        } else {
            self.ptxas.get_or_init(|| Ptxas::find(&self.environment, &self.cache).map(Assembler::Ptxas))
        };
        found.as_ref().map_err(Clone::clone)
    }
}
