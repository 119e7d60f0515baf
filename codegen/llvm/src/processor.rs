//! The processor for which LLVM generates code: a triple, a CPU name and its features.

use inkwell::OptimizationLevel;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};

use crate::emit::{Res, Stop};

/// The processor for which code is generated.
pub(crate) struct Processor {
    /// LLVM's target triple.
    pub triple: String,
    /// LLVM's name of the processor.
    pub cpu: String,
    /// Features beside those of the name.
    pub features: String,
    /// The relocation model of functions and constants.
    pub reloc: RelocMode,
}

impl Processor {
    /// The processor of the host.
    pub fn host() -> Res<Processor> {
        Target::initialize_native(&InitializationConfig::default()).map_err(Stop::Bug)?;
        Ok(Processor {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string(),
            features: TargetMachine::get_host_cpu_features().to_string(),
            reloc: RelocMode::Default,
        })
    }

    /// The code generator for it.
    pub fn machine(&self) -> Res<TargetMachine> {
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(|e| Stop::Bug(e.to_string()))?;
        let made = target.create_target_machine(
            &triple,
            &self.cpu,
            &self.features,
            OptimizationLevel::Default,
            self.reloc,
            CodeModel::Default,
        );
        made.ok_or_else(|| Stop::Bug(format!("LLVM has no processor `{}`", self.cpu)))
    }
}
