//! What kernels are expected to cost, as lenses and hints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use tk_syntax::ast::{Item, ItemKind, Name};

use super::Workspace;
use super::lens::{CodeForm, Lens, LensCommand};

/// What an instance of a kernel is expected to cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCost {
    /// The name of the kernel.
    pub kernel: String,
    /// The texts of the exports that have it among their first instances, as [`export_text`] gives them.
    pub exports: Vec<String>,
    /// One line: its registers, its shared memory, what bounds it.
    pub summary: String,
    /// The lines of the file that was asked for.
    pub lines: Vec<LineCost>,
    /// Bytes of the largest tile of a line in each thread, of each line of that file which makes one, counted from 1.
    pub tiles: BTreeMap<usize, u32>,
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

/// Lenses that open the machine code of each kernel and export of a file.
pub fn code_lenses(ws: &mut Workspace, path: &str, target: &str) -> Vec<Lens> {
    let a = ws.analysis(path);
    let items: &[Item] = a.root().map_or(&[], |f| &f.items);
    let forms: &[(&str, CodeForm)] = match target.starts_with("gfx") {
        true => &[("Assembly", CodeForm::Assembly), ("Tile IR", CodeForm::Tile)],
        false => &[("PTX", CodeForm::Assembly), ("SASS", CodeForm::Sass), ("Tile IR", CodeForm::Tile)],
    };
    let lens = |name: &Name| {
        let (place, kernel) = (a.place(name.span), name.text.clone());
        forms.iter().map(move |(title, form)| {
            let command = LensCommand::OpenCode { path: path.into(), kernel: kernel.clone(), form: *form };
            Lens { place: place.clone(), title: (*title).into(), command }
        })
    };
    named(items).flat_map(|(name, _)| lens(name)).collect()
}

/// The names of kernels and exports, and whether it is that of an export.
fn named(items: &[Item]) -> impl Iterator<Item = (&Name, bool)> {
    items.iter().filter_map(|i| match &i.kind {
        ItemKind::Fn(f) if f.kernel => Some((&f.name, false)),
        ItemKind::Export(e) => e.path.segments.last().map(|name| (name, true)),
        _other => None,
    })
}

/// What an export says after the name of its kernel, which a text that has changed elsewhere has too.
pub fn export_text(text: &str, name_end: usize) -> &str {
    text.get(name_end..).and_then(|rest| rest.split(';').next()).unwrap_or("")
}

/// Lenses: the first instance above each kernel, its own ones above an `export`.
pub fn lenses(ws: &mut Workspace, path: &str, kernels: &[KernelCost]) -> Vec<Lens> {
    let a = ws.analysis(path);
    let items: &[Item] = a.root().map_or(&[], |f| &f.items);
    let lenses = named(items).flat_map(|(name, is_export)| {
        let place = a.place(name.span);
        let text = export_text(a.root_text(), place.end);
        let is_own = move |k: &&KernelCost| {
            k.kernel == name.text && (!is_export || k.exports.iter().any(|e| e == text))
        };
        let own = kernels.iter().filter(is_own).take(if is_export { usize::MAX } else { 1 });
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
