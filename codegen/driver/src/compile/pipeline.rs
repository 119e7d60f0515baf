//! Compiles tile IR up to the scheduled IR: [`schedule`]. What follows is in [`super::emission`].
//!
//! Requires a module after the target-independent passes. Guarantees that everything a target does not support is a
//! diagnostic with its position.

use tk_gpu::ir::kernel::{Operands, STAGES};
use tk_gpu::ir::warps::repeats_counts;
use tk_gpu::passes::Pass;
use tk_gpu::passes::split_dots::LEAST;
use tk_gpu::pipeline::Snapshot;
use tk_gpu::{CompileOptions, pipeline};
use tk_syntax::{Diagnostic, FileId, Source, SourceMap, Span, codes};

use crate::compile::kernel::{ProgramShape, Request};

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
    after: Option<&mut After>,
) -> Result<pipeline::Stages, Vec<Diagnostic>> {
    schedule_rows(request, true, after)
}

/// The same, where rows may be divided among warpgroups or not.
fn schedule_rows(
    request: &Request<'_>,
    may_have_groups: bool,
    mut after: Option<&mut After>,
) -> Result<pipeline::Stages, Vec<Diagnostic>> {
    let limit = request.target.shared_bytes;
    let of_block = request.target.max_threads / request.target.warp_size;
    if request.shape.warps > of_block {
        let kernel = schedule_with(request, (u32::MAX, Operands::SHARED, false), None)?;
        if kernel.scheduled.options.blocks < request.shape.warps / of_block {
            let shape = ProgramShape { warps: of_block, ..request.shape };
            return schedule(&Request { shape, ..request.clone() }, after);
        }
    }
    let fits = |s: &pipeline::Stages| s.scheduled.shared_bytes() <= limit;
    let most = request.shape.stages.unwrap_or(STAGES).max(STAGES);
    let mut attempt =
        |stages, operands| schedule_with(request, (stages, operands, may_have_groups), after.as_deref_mut());
    let first = attempt(u32::MAX, Operands::SHARED)?;
    if repeats_counts(&first.scheduled) {
        return schedule_rows(request, false, after);
    }
    if fits(&first) {
        return Ok(first);
    }
    // Warpgroups with operands in chunks are not faster than a program without groups.
    let has_groups = first.scheduled.options.groups > 1;
    let ways = if has_groups { 1 } else { OPERANDS.len() };
    for operands in OPERANDS.into_iter().take(ways) {
        for stages in (1..most).rev() {
            let fewer = attempt(stages, operands)?;
            if fits(&fewer) {
                return Ok(fewer);
            }
        }
    }
    if has_groups {
        return schedule_rows(request, false, after);
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

/// The same with at most this many stages, operands loaded like this, and perhaps warpgroups.
fn schedule_with(
    request: &Request<'_>,
    (most_stages, operands, may_have_groups): (u32, Operands, bool),
    mut after: Option<&mut After>,
) -> Result<pipeline::Stages, Vec<Diagnostic>> {
    let name = request.module.funcs.get(request.entry).map(|f| f.name.clone()).unwrap_or_default();
    let ProgramShape { warps, blocks, cluster, stages, registers } = request.shape;
    let facts = request.facts.clone();
    let options = CompileOptions {
        spec: request.target,
        warps,
        groups: 1,
        blocks,
        cluster,
        stages,
        most_stages,
        operands,
        may_have_groups,
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
