//! Selects the tool that makes binaries for a target, located on first use.

use std::sync::OnceLock;

use tk_gpu::TargetSpec;
use tk_syntax::codes;

use crate::compile::cache::Cache;
use crate::compile::kernel::{CompiledKernel, Cubin, Resources};
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
    /// None: the binary is the PTX, and the driver assembles it where it is loaded.
    Driver,
}

impl Assembler {
    /// Its name and version: a binary depends on them.
    pub fn version(&self) -> String {
        match self {
            Assembler::Ptxas(ptxas) => ptxas.version.clone(),
            Assembler::Lld(lld) => format!("lld {}", lld.version),
            Assembler::Driver => "the driver".to_string(),
        }
    }

    /// The binary of a kernel.
    pub fn assemble(&self, kernel: &CompiledKernel) -> Result<Cubin, ToolError> {
        match self {
            Assembler::Ptxas(ptxas) => crate::tools::ptxas::assemble(kernel, ptxas),
            Assembler::Lld(lld) => crate::tools::lld::link(kernel, lld),
            Assembler::Driver => Ok(ptx(kernel)),
        }
    }
}

/// PTX as a driver takes it: with a zero at its end. What it will use is not known.
fn ptx(kernel: &CompiledKernel) -> Cubin {
    let mut bytes: Vec<u8> = kernel.asm.clone().into();
    bytes.push(0);
    Cubin { bytes, report: Resources::default() }
}

/// The tools of this host, and the cache.
#[derive(Debug)]
pub struct Tools {
    environment: Environment,
    /// The cache.
    pub cache: Cache,
    /// Whether a driver that is here assembles where there is no `ptxas`.
    with_driver: bool,
    ptxas: OnceLock<Result<Assembler, ToolError>>,
    lld: OnceLock<Result<Assembler, ToolError>>,
}

impl Tools {
    /// The tools of an environment.
    pub fn new(environment: Environment, cache: Cache) -> Tools {
        Tools { environment, cache, with_driver: false, ptxas: OnceLock::new(), lld: OnceLock::new() }
    }

    /// The same for kernels that are loaded here: without `ptxas` the driver assembles them.
    pub fn with_driver(self) -> Tools {
        Tools { with_driver: true, ..self }
    }

    /// The assembler for a target.
    pub fn assembler(&self, target: &TargetSpec) -> Result<&Assembler, ToolError> {
        if target.oldest.is_some() {
            return Ok(&Assembler::Driver);
        }
        let found = if target.has_gcn {
            self.lld.get_or_init(|| Lld::find(&self.environment, &self.cache).map(Assembler::Lld))
        } else {
            self.ptxas.get_or_init(|| match Ptxas::find(&self.environment, &self.cache) {
                Ok(ptxas) => Ok(Assembler::Ptxas(ptxas)),
                Err(error) if self.with_driver && error.code == codes::NO_ASSEMBLER => Ok(Assembler::Driver),
                Err(error) => Err(error),
            })
        };
        found.as_ref().map_err(Clone::clone)
    }
}
