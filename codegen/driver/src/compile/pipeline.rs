//! Compiles tile IR to the input of an assembler.
//!
//! Requires a module after the target-independent passes. Guarantees that everything a target does not support is a
//! diagnostic with its position.

use tk_gpu::ir::kernel::{Operands, STAGES};
use tk_gpu::ir::tensor_map::{MapDimension, MapWord, TensorMap};
use tk_gpu::ir::text;
use tk_gpu::layout::svg;
use tk_gpu::passes::Pass;
use tk_gpu::passes::split_dots::LEAST;
use tk_gpu::pipeline::Snapshot;
use tk_gpu::{CompileOptions, Layout, pipeline};
use tk_llvm::emit::{Slot, SlotKind, Stop};
use tk_llvm::gpu::{self, Until};
use tk_llvm::lines::{FileLines, SourceFiles};
use tk_ops::DType;
use tk_syntax::{Diagnostic, FileId, Source, SourceMap, Span, codes};
use tk_tile::text::Options;
use tk_tile::{ElemType, Id, Type, ValueId};

use crate::compile::kernel::{
    CompiledKernel, KernelParam, KernelParamKind, ProgramShape, Request, StageTexts,
};
use crate::compile::memory::fits;

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
    let made = gpu::text(&stages.scheduled, &lines(request.sources), until)
        .map_err(|stop| vec![stopped(&stop, request)])?;
    let texts = keep_stages.then(|| StageTexts {
        layout: stages.laid_out.to_string(),
        pictures: pictures(&stages.laid_out),
        sched: stages.scheduled.to_string(),
        after,
        llvm: made.llvm.clone(),
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
        meets: made.meets,
        shortages: stages.scheduled.shortages.clone(),
        remarks: stages.scheduled.remarks.clone(),
        asm: made.asm,
        object: made.object,
        stages: texts,
    })
}

/// Drawings of the layouts of a kernel, each with the first tile that has it.
fn pictures(kernel: &tk_gpu::Kernel) -> String {
    let mut seen: Vec<(String, &Layout, Vec<u32>, u32)> = vec![];
    for (v, id) in kernel.of.iter().enumerate() {
        let Some(layout) = id.and_then(|id| kernel.layouts.find(id)) else { continue };
        let ty = kernel.module.types.get(kernel.func().ty(ValueId::new(v)));
        let Type::Tile { elem, shape } = ty else { continue };
        if !shape.is_empty() && !seen.iter().any(|(_, known, ..)| *known == layout) {
            let bytes = match elem {
                ElemType::Scalar(d) => d.bytes() as u32,
                ElemType::Ptr { .. } => 8,
            };
            seen.push((format!("l{}: v{v}, {ty}", seen.len()), layout, shape.clone(), bytes));
        }
    }
    let all: Vec<(String, &Layout, &[u32], u32)> = seen
        .iter()
        .map(|(title, layout, shape, bytes)| (title.clone(), *layout, shape.as_slice(), *bytes))
        .collect();
    svg::svg(&all, kernel.options.spec.banks())
}

/// The lines of all files.
fn lines(sources: &SourceMap) -> SourceFiles {
    let file = |s: &Source| FileLines { name: name_in_code(sources, s), starts: s.lines().to_vec() };
    SourceFiles { files: sources.iter().map(|(_, s)| file(s)).collect() }
}

/// The name of a file in line tables: relative to the folder of the main file, or its last component, so that code does
/// not depend on the location of the program.
pub(crate) fn name_in_code(sources: &SourceMap, source: &Source) -> String {
    let main = sources.get(FileId(0)).map(|s| s.name.clone()).unwrap_or_default();
    let folder = main.rfind(['/', '\\']).and_then(|end| main.get(..=end)).unwrap_or_default();
    let name: &str = &source.name;
    let elsewhere =
        || if name.starts_with("std/") { name } else { name.rsplit(['/', '\\']).next().unwrap_or(name) };
    let name = name.strip_prefix(folder).filter(|_| !folder.is_empty()).unwrap_or_else(elsewhere);
    // It is quoted in PTX, which has no escapes.
    name.chars().map(|c| if c.is_control() || matches!(c, '"' | '\\') { '_' } else { c }).collect()
}

/// The ways to load operands, from the fastest to the one that needs the least shared memory.
const OPERANDS: [Operands; 7] = [
    Operands::SHARED,
    Operands { most_k: 128, invariant_in_registers: false },
    Operands { most_k: 64, invariant_in_registers: false },
    Operands { most_k: 32, invariant_in_registers: false },
    Operands { most_k: LEAST, invariant_in_registers: false },
    Operands { most_k: u32::MAX, invariant_in_registers: true },
    Operands { most_k: LEAST, invariant_in_registers: true },
];

/// The kernel after each pass, by the name of the pass.
type After = Vec<(&'static str, String)>;

/// Lays out and schedules a kernel; `after` receives the results of passes. Stages are a hint: if shared memory does
/// not suffice for as many as each loop has room for by itself, since more than its tiles is live at once, all loops
/// get fewer. If it does not suffice for the operands of a single stage, products are computed in chunks, or operands
/// stay in registers.
pub fn schedule(
    request: &Request<'_>,
    mut after: Option<&mut After>,
) -> Result<pipeline::Stages, Vec<Diagnostic>> {
    let limit = request.target.shared_bytes;
    let of_block = request.target.max_threads / request.target.warp_size;
    if request.shape.warps > of_block {
        let kernel = schedule_with(request, u32::MAX, Operands::SHARED, None)?;
        if kernel.scheduled.options.blocks < request.shape.warps / of_block {
            let shape = ProgramShape { warps: of_block, ..request.shape };
            return schedule(&Request { shape, ..request.clone() }, after);
        }
    }
    let fits = |s: &pipeline::Stages| s.scheduled.shared_bytes() <= limit;
    let most = request.shape.stages.unwrap_or(STAGES).max(STAGES);
    let mut attempt = |stages, operands| schedule_with(request, stages, operands, after.as_deref_mut());
    let first = attempt(u32::MAX, Operands::SHARED)?;
    if fits(&first) {
        return Ok(first);
    }
    for operands in OPERANDS {
        for stages in (1..most).rev() {
            let fewer = attempt(stages, operands)?;
            if fits(&fewer) {
                return Ok(fewer);
            }
        }
    }
    // Nothing fits: the first attempt is reported.
    attempt(u32::MAX, Operands::SHARED)
}

/// The kernel after each pass, as far as it gets: also of one that is refused later.
pub fn after_passes(request: &Request<'_>) -> Vec<(&'static str, String)> {
    let mut after = vec![];
    // The diagnostics are those of the compilation that failed.
    let _ = schedule(request, Some(&mut after));
    after
}

/// The same with at most this many stages, and operands loaded like this.
fn schedule_with(
    request: &Request<'_>,
    most_stages: u32,
    operands: Operands,
    mut after: Option<&mut After>,
) -> Result<pipeline::Stages, Vec<Diagnostic>> {
    let name = request.module.funcs.get(request.entry).map(|f| f.name.clone()).unwrap_or_default();
    let ProgramShape { warps, blocks, cluster, stages, registers } = request.shape;
    let facts = request.facts.clone();
    let options = CompileOptions {
        spec: request.target,
        warps,
        blocks,
        cluster,
        stages,
        most_stages,
        operands,
        registers,
        facts,
    };
    if let Some(after) = &mut after {
        after.clear();
    }
    let mut observer = |pass: &'static Pass, snapshot: Snapshot<'_>| {
        if let Some(after) = &mut after {
            after.push((pass.name, snapshot.to_string()));
        }
    };
    pipeline::run(request.module, &name, options, &mut observer).map_err(|e| {
        let message = format!("internal error in code generation: {e}");
        vec![Diagnostic::error(codes::INTERNAL, Span::default(), message, "")]
    })
}

/// The diagnostic for a failed emission.
pub fn stopped(stop: &Stop, request: &Request<'_>) -> Diagnostic {
    match stop {
        Stop::Bug(what) => {
            let message = format!("internal error in emission for `{}`: {what}", request.target.name);
            Diagnostic::error(codes::INTERNAL, Span::default(), message, "")
        }
        Stop::Refused(what) => {
            let name = request.module.funcs.get(request.entry).map_or("", |f| f.name.as_str());
            let message = format!("LLVM rejects kernel `{name}`: {what}");
            let note = "if the kernel has no `inline_asm`, this is a bug in tk: please report it";
            Diagnostic::error(codes::ASSEMBLER, Span::default(), message, "").note(note)
        }
        Stop::Unsupported { what, loc } => {
            let span =
                loc.map_or(Span::default(), |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
            let message = format!("{what} cannot be compiled for `{}` yet", request.target.name);
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
