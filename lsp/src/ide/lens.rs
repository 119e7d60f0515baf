//! The lines that are shown above kernels and tests.

use tk_syntax::ast::{Item, ItemKind};

use super::{Analysis, Place, Workspace};

/// The command of a lens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LensCommand {
    /// Runs the tests of a file whose names contain `filter`; all of them when it is empty.
    RunTests {
        /// The file.
        path: String,
        /// Part of the names.
        filter: String,
        /// Whether it is the whole name of one test.
        exact: bool,
    },
    /// Opens machine code of a kernel.
    OpenCode {
        /// The file.
        path: String,
        /// The kernel.
        kernel: String,
        /// What is opened.
        form: CodeForm,
    },
    /// Nothing.
    Info,
}

/// A form of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeForm {
    /// PTX; of AMD, assembly.
    Assembly,
    /// NVIDIA's machine code.
    Sass,
    /// Tile IR.
    Tile,
}

/// A line above an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// The name of the item.
    pub place: Place,
    /// The text.
    pub title: String,
    /// The command that a click runs.
    pub command: LensCommand,
}

/// The lenses of a file: of each test, and of each kernel that a test of the file names.
pub fn lens(ws: &mut Workspace, path: &str) -> Vec<Lens> {
    let a = ws.analysis(path);
    let items: &[Item] = a.root().map_or(&[], |f| &f.items);
    let tests: Vec<(&str, &Item)> = items
        .iter()
        .filter_map(|i| if let ItemKind::Test(t) = &i.kind { Some((t.name.as_str(), i)) } else { None })
        .collect();
    let mut out = vec![];
    for i in items {
        match &i.kind {
            ItemKind::Test(t) => {
                let (path, filter) = (path.to_string(), t.name.clone());
                let command = LensCommand::RunTests { path, filter, exact: true };
                out.push(Lens { place: a.place(t.name_span), title: "Run test".into(), command });
            }
            ItemKind::Fn(f) if f.kernel => {
                let Some(kernel) = a.index.reference(f.name.span).map(|r| r.symbol) else { continue };
                let uses = a.index.references_in(Analysis::ROOT).iter().filter(|r| r.symbol == kernel);
                let places: Vec<u32> = uses.map(|r| r.span.start).collect();
                let names = |i: &Item| places.iter().any(|p| i.span.start <= *p && *p < i.span.end);
                let own: Vec<&str> = tests.iter().filter(|t| names(t.1)).map(|t| t.0).collect();
                if own.is_empty() {
                    continue;
                }
                let all: Vec<&str> = tests.iter().map(|t| t.0).collect();
                let (filter, exact) = match own.as_slice() {
                    [one] => (one.to_string(), true),
                    _several => (filter(&f.name.text, &own, &all), false),
                };
                let title = match own.len() {
                    1 => "Run test".to_string(),
                    n if filter.is_empty() && n < all.len() => format!("Run all {} tests", all.len()),
                    n => format!("Run {n} tests"),
                };
                let command = LensCommand::RunTests { path: path.to_string(), filter, exact };
                out.push(Lens { place: a.place(f.name.span), title, command });
            }
            ItemKind::Fn(_)
            | ItemKind::Use(_)
            | ItemKind::Const(_)
            | ItemKind::Struct(_)
            | ItemKind::Export(_)
            | ItemKind::Err => {}
        }
    }
    out
}

/// A text that only the names of these tests contain; empty, which all contain, where there is none.
fn filter(kernel: &str, own: &[&str], all: &[&str]) -> String {
    let only = |text: &str| all.iter().filter(|n| n.contains(text)).eq(own.iter());
    let first = own.first().copied().unwrap_or_default();
    [first, kernel].into_iter().find(|t| only(t)).unwrap_or_default().to_string()
}
