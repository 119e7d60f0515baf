//! From the scheduled IR to the input of an assembler: [`compile`].
//!
//! Guarantees that everything a target does not support is a diagnostic with its position.

use tk_gpu::TargetSpec;
use tk_gpu::ir::tensor_map::{MapDimension, MapWord, TensorMap};
use tk_gpu::ir::text;
use tk_llvm::emit::{Slot, SlotKind, Stop};
use tk_llvm::gpu;
pub use tk_llvm::gpu::Until;
use tk_llvm::lines::{FileLines, SourceFiles};
use tk_ops::DType;
use tk_syntax::{Diagnostic, FileId, Source, SourceMap, Span, codes};
use tk_tile::text::Options;

use crate::compile::kernel::{CompiledKernel, KernelParam, KernelParamKind, Request, StageTexts};
use crate::compile::memory::fits;
use crate::compile::pictures::pictures;
use crate::compile::pipeline::{name_in_code, schedule};

/// Compiles a kernel up to a stage; keeps the texts of intermediate stages if requested.
pub fn compile(
    request: &Request<'_>,
    keep_stages: bool,
    until: Until,
) -> Result<CompiledKernel, Vec<Diagnostic>> {
    let mut after = vec![];
    let stages = schedule(request, keep_stages.then_some(&mut after))?;
    // LLVM aborts the process if a kernel has more shared memory than the target.
    let shared_bytes = stages.scheduled.shared_bytes();
    fits(&stages.scheduled, shared_bytes)?;
    let made = gpu::text(&stages.scheduled, &lines(request.sources), until, keep_stages)
        .map_err(|stop| vec![stopped(&stop, request.target, &stages.scheduled.func().name)])?;
    let texts = keep_stages.then(|| StageTexts {
        layout: stages.laid_out.to_string(),
        pictures: pictures(&stages.laid_out),
        sched: stages.scheduled.to_string(),
        after,
        llvm: made.llvm.clone().unwrap_or_default(),
        asm: made.asm.clone(),
        located: [&*stages.laid_out, &*stages.scheduled].map(|k| text::print(k, Options { locs: true })),
    });
    Ok(CompiledKernel {
        name: made.symbol,
        target: request.target,
        threads: stages.scheduled.block_threads(),
        shared_bytes,
        blocks_per_program: stages.scheduled.options.blocks,
        params: made.params.iter().map(param).collect(),
        maps: made.maps.iter().map(described).collect(),
        messages: made.messages,
        has_grid_barrier: made.has_grid_barrier,
        shortages: stages.scheduled.shortages.clone(),
        remarks: stages.scheduled.remarks.clone(),
        asm: made.asm,
        object: made.object,
        stages: texts,
    })
}

/// The lines of all files.
fn lines(sources: &SourceMap) -> SourceFiles {
    let file = |s: &Source| FileLines { name: name_in_code(sources, s), starts: s.lines().to_vec() };
    SourceFiles { files: sources.iter().map(|(_, s)| file(s)).collect() }
}

/// The diagnostic for the failed emission of the kernel `name`.
pub fn stopped(stop: &Stop, target: &TargetSpec, name: &str) -> Diagnostic {
    match stop {
        Stop::Bug(what) => {
            let message = format!("internal error in emission for `{}`: {what}", target.name);
            Diagnostic::error(codes::INTERNAL, Span::default(), message, "")
        }
        Stop::Refused(what) => {
            let message = format!("LLVM rejects kernel `{name}`: {what}");
            let note = "if the kernel has no `inline_asm`, this is a bug in tk: please report it";
            Diagnostic::error(codes::ASSEMBLER, Span::default(), message, "").note(note)
        }
        Stop::Unsupported { what, loc } => {
            let span =
                loc.map_or(Span::default(), |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
            let message = format!("{what} cannot be compiled for `{}` yet", target.name);
            Diagnostic::error(codes::NOT_COMPILED, span, message, "")
        }
    }
}

fn described(map: &TensorMap) -> tk_bundle::TensorMap {
    let word = |w: MapWord| match w {
        MapWord::Passed(i) => tk_bundle::Word::Passed(i as u32),
        MapWord::Value(v) => tk_bundle::Word::Value(v),
    };
    let dimension = |d: &MapDimension| tk_bundle::Dimension {
        extent: word(d.extent),
        stride: word(d.stride),
        before: d.before,
    };
    let m = &map.matrix;
    tk_bundle::TensorMap {
        address: m.address as u32,
        dimensions: m.dimensions().iter().map(dimension).collect(),
        dtype: m.dtype.name().to_string(),
        lines: map.lines,
        span: map.span,
    }
}

fn param(slot: &Slot) -> KernelParam {
    let kind = match slot.kind {
        SlotKind::Pointer(_) => KernelParamKind::Pointer,
        SlotKind::Scalar(_) => KernelParamKind::Scalar,
        SlotKind::Extent(_) => KernelParamKind::Extent,
        SlotKind::Stride => KernelParamKind::Stride,
    };
    // The element type of a pointer; pointers are 64-bit addresses.
    let dtype = match slot.kind {
        SlotKind::Pointer(d) => d.unwrap_or(DType::U64),
        SlotKind::Scalar(_) | SlotKind::Extent(_) | SlotKind::Stride => slot.kind.dtype(),
    };
    KernelParam { name: slot.name.clone(), kind, dtype }
}
