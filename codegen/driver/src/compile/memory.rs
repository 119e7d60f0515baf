//! Rejects kernels that need more shared memory than the target has, and reports the tiles that use it.

use std::collections::BTreeMap;

use tk_gpu::Kernel;
use tk_gpu::ir::kernel::Remedy;
use tk_gpu::ir::op::{AsyncCopy, GpuOp, SharedStore};
use tk_syntax::{Diagnostic, FileId, Span, codes};
use tk_tile::{InstId, walk};

/// The most tiles in a diagnostic.
const NAMED: usize = 4;

/// Checks that the target has the shared memory that a scheduled kernel needs.
///
/// # Errors
/// `E1004`, with a label for each large tile in shared memory.
pub(crate) fn fits(kernel: &Kernel, needed: u32) -> Result<(), Vec<Diagnostic>> {
    let (target, name) = (kernel.options.spec, &kernel.func().name);
    let there = target.shared_bytes;
    if needed <= there {
        return Ok(());
    }
    let message = format!(
        "`{name}` needs {needed} bytes of shared memory, and a block of `{}` has {there}",
        target.name
    );
    let mut d = Diagnostic::error(codes::SHARED_MEMORY, Span::default(), message, "");
    for (_, text, span) in tiles(kernel).into_iter().take(NAMED) {
        d = match span {
            Some(span) => d.label(span, text),
            None => d.note(text),
        };
    }
    for s in &kernel.shortages {
        if let Remedy::Stages { asked, fits } = s.remedy {
            d = d.note(format!("a loop requests {asked} stages and has {fits}: that is not enough"));
        }
    }
    let part = needed.div_ceil(there.max(1)).next_power_of_two();
    Err(vec![d.note(format!("make its tiles smaller: it fits if these have 1/{part} of the elements"))])
}

/// The buffers that are live where most memory is needed, the largest first: bytes, contents and the position of their
/// store. Of overlapping buffers only the largest counts.
fn tiles(kernel: &Kernel) -> Vec<(u32, String, Option<Span>)> {
    let mut order: Vec<usize> = (0..kernel.buffers.len()).collect();
    let range = |b: usize| kernel.buffers.get(b).map_or(0..0, |b| b.offset..b.offset + b.bytes);
    order.sort_by_key(|b| std::cmp::Reverse(range(*b).len()));
    let mut chosen: Vec<usize> = vec![];
    for b in order {
        let apart = |c: &usize| range(*c).end <= range(b).start || range(b).end <= range(*c).start;
        if chosen.iter().all(apart) {
            chosen.push(b);
        }
    }
    let writers = writers(kernel);
    let described = |b: usize| {
        let bytes = range(b).len() as u32;
        let written = writers.get(&b).copied();
        let (what, stages) = written.map_or((None, 1), |(i, stages)| (tile(kernel, i), stages));
        let what = what.unwrap_or_else(|| "a tile".into());
        let text = match stages {
            1 => format!("{what} takes {bytes} bytes"),
            n => format!("{what} takes {bytes} bytes, {n} stages of {}", bytes / n),
        };
        let loc = written.and_then(|(i, _)| kernel.func().insts[i].loc);
        let span = loc.map(|l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
        (bytes, text, span)
    };
    chosen.into_iter().map(described).collect()
}

/// The instruction that writes each buffer, with the number of its stages: of several the last, which is inside of the
/// loop that is prefetched.
fn writers(kernel: &Kernel) -> BTreeMap<usize, (InstId, u32)> {
    let func = kernel.func();
    let mut writers = BTreeMap::new();
    for i in walk::insts(func) {
        let inst = &func.insts[i];
        match GpuOp::of(inst) {
            Some(
                GpuOp::SharedStore(SharedStore { buffer, .. }) | GpuOp::AsyncCopy(AsyncCopy { buffer, .. }),
            ) => {
                writers.insert(buffer.buffer, (i, buffer.count()));
            }
            Some(GpuOp::TmaLoad(load)) => {
                writers.insert(load.destination, (i, load.pipeline.stages));
            }
            _ => {}
        }
    }
    writers
}

/// The type of the first tile that an instruction writes.
fn tile(kernel: &Kernel, inst: InstId) -> Option<String> {
    let func = kernel.func();
    let types = func.insts[inst].operands.iter().map(|v| kernel.module.types.get(func.ty(*v)));
    types.into_iter().find(|t| t.shape().is_some_and(|s| !s.is_empty())).map(|t| format!("`{t}`"))
}
