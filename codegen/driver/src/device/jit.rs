//! Just-in-time compilation: the driver as the [`Compile`] of the runtime.

use tk_gpu::TargetSpec;
use tk_runtime::Compiled;
use tk_runtime::compile::{Binary, Compile, CompileOptions, Estimate, Launch, ParamKind};
use tk_sema::target::Target;
use tk_syntax::{Diagnostic, SourceMap, Span, codes};
use tk_tile::{FuncId, TileModule};

use crate::compile::kernel::{Asked, ProgramShape, Request, facts};
use crate::device::facts::facts_about;
use crate::device::predict::Predictions;
use crate::{Cache, Environment, Tools, build_cached};

/// Compiles kernels when they are launched, through the cache.
pub struct Jit {
    sources: SourceMap,
    tools: Tools,
    predictions: Predictions,
}

impl Jit {
    /// For the kernels of a program with these files; the assembler is located on first use, and
    /// where there is none, NVIDIA's driver assembles.
    pub fn new(sources: SourceMap, environment: Environment, cache: Cache) -> Jit {
        Jit {
            sources,
            tools: Tools::new(environment, cache).with_driver(),
            predictions: Predictions::default(),
        }
    }

    fn request<'a>(
        &'a self,
        module: &'a TileModule,
        entry: FuncId,
        target: &'static TargetSpec,
        options: &CompileOptions,
    ) -> Request<'a> {
        let facts = facts(&options.facts);
        let CompileOptions { warps, ctas, cluster, stages, max_regs, occupancy, .. } = *options;
        let [warps, ctas, cluster] = [warps, ctas, cluster].map(u64::from);
        let asked = Asked { warps, ctas, cluster, stages, max_regs, occupancy };
        Request {
            module,
            entry,
            target,
            shape: ProgramShape::of(target, asked),
            facts,
            sources: &self.sources,
        }
    }

    /// The request for a specialization; `None` if there is no such target.
    fn request_of<'a>(&'a self, kernel: &'a Compiled, options: &CompileOptions) -> Option<Request<'a>> {
        let target = crate::TARGETS.into_iter().find(|t| t.name == options.target)?;
        Some(self.request(&kernel.module, kernel.entry, target, options))
    }
}

impl Compile for Jit {
    fn target(&self, name: &str) -> Target {
        crate::TARGETS.into_iter().find(|t| t.name == name).map(facts_about).unwrap_or_default()
    }

    fn compile(
        &self,
        module: &TileModule,
        entry: FuncId,
        options: &CompileOptions,
    ) -> Result<Binary, Vec<Diagnostic>> {
        let place = Span::default();
        let Some(target) = crate::TARGETS.into_iter().find(|t| t.name == options.target) else {
            let message = format!("there is no target `{}`", options.target);
            return Err(vec![Diagnostic::error(codes::NOT_COMPILED, place, message, "")]);
        };
        let request = self.request(module, entry, target, options);
        let built = build_cached(&request, false, &self.tools, place)?;
        let kind = |p: &crate::KernelParam| match p.kind {
            crate::KernelParamKind::Pointer => ParamKind::Pointer,
            crate::KernelParamKind::Scalar
            | crate::KernelParamKind::Extent
            | crate::KernelParamKind::Stride => ParamKind::Scalar(p.dtype),
        };
        Ok(Binary {
            name: built.kernel.name.clone(),
            image: built.cubin.bytes.into(),
            threads: built.kernel.threads,
            shared_bytes: built.kernel.shared_bytes,
            blocks_per_program: built.kernel.blocks_per_program,
            params: built.kernel.params.iter().map(kind).collect(),
            maps: built.kernel.maps,
            messages: built.kernel.messages.into(),
            has_grid_barrier: built.kernel.has_grid_barrier,
        })
    }

    fn estimate(&self, kernel: &Compiled, options: &CompileOptions, launch: &Launch<'_>) -> Option<Estimate> {
        self.predictions.predict(|| self.request_of(kernel, options), kernel, options, launch)
    }

    fn time(
        &self,
        kernel: &Compiled,
        options: &CompileOptions,
        launch: &Launch<'_>,
        limit: f64,
    ) -> Option<f64> {
        self.predictions.time(|| self.request_of(kernel, options), kernel, (options, launch), limit)
    }
}
