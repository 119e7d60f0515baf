//! What kernels are expected to cost, as lenses and hints.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use tk_syntax::ast::{Item, ItemKind};

use super::Workspace;
use super::lens::{Lens, LensCommand};

/// What an instance of a kernel is expected to cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCost {
    /// The name of the kernel.
    pub kernel: String,
    /// One line: its registers, its shared memory, what bounds it.
    pub summary: String,
    /// The lines of the file that was asked for.
    pub lines: Vec<LineCost>,
}

/// What a line is expected to cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCost {
    /// The line, counted from 1.
    pub line: usize,
    /// A few words.
    pub label: String,
    /// The details.
    pub tooltip: String,
}

/// Lenses: the first instance above each kernel, all of them above an `export`.
pub fn lenses(ws: &mut Workspace, path: &str, kernels: &[KernelCost]) -> Vec<Lens> {
    let a = ws.analysis(path);
    let items: &[Item] = a.root().map_or(&[], |f| &f.items);
    let named = items.iter().filter_map(|i| match &i.kind {
        ItemKind::Fn(f) if f.kernel => Some((&f.name, 1)),
        ItemKind::Export(e) => e.path.segments.last().map(|name| (name, usize::MAX)),
        _other => None,
    });
    let lenses = named.flat_map(|(name, most)| {
        let place = a.place(name.span);
        let own = kernels.iter().filter(|k| k.kernel == name.text).take(most);
        own.map(move |k| Lens { place: place.clone(), title: k.summary.clone(), command: LensCommand::Info })
    });
    lenses.collect()
}

/// The costs of some lines, counted from 1. Instances of a kernel have the same lines: the first one counts.
pub fn of_lines(kernels: &[KernelCost], lines: &RangeInclusive<usize>) -> Vec<LineCost> {
    let mut seen = BTreeSet::new();
    let all = kernels.iter().flat_map(|k| &k.lines);
    all.filter(|cost| lines.contains(&cost.line) && seen.insert(cost.line)).cloned().collect()
}
