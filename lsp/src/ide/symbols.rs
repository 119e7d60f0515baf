//! The outline of a file and the search for names.

use tk_syntax::ast::{CParam, Fn, Item, ItemKind, Param};
use tk_syntax::{FileId, SourceMap, Span};

use super::describe::line;
use super::{Place, Workspace};

/// The kinds of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum SymbolKind {
    Function,
    Kernel,
    Struct,
    Field,
    Method,
    Const,
    Test,
    Module,
    Export,
    CompileTime,
    Parameter,
    Variable,
}

/// A symbol with what it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The kind of symbol.
    pub kind: SymbolKind,
    /// Its type or signature.
    pub detail: String,
    /// All of it.
    pub place: Place,
    /// Its name.
    pub name_place: Place,
    /// The symbols inside.
    pub children: Vec<Symbol>,
}

/// The maximum number of names that a search gives.
const MAX_FOUND: usize = 256;

/// Makes symbols of the items of one file.
struct Outline<'a> {
    path: &'a str,
    sources: &'a SourceMap,
}

/// The outline of a file.
pub fn document(ws: &mut Workspace, path: &str) -> Vec<Symbol> {
    let Some(parsed) = ws.parsed(path) else { return vec![] };
    let outline = Outline { path, sources: parsed.sources() };
    parsed.items().iter().filter_map(|i| outline.item(i, false)).collect()
}

/// The items of all files of the workspace whose name contains the letters of `query` in their order.
pub fn workspace(ws: &mut Workspace, query: &str) -> Vec<Symbol> {
    let mut found = vec![];
    for path in ws.files() {
        let Some(text) = ws.text(&path) else { continue };
        if !contains(&text, query) {
            continue;
        }
        let mut sources = SourceMap::default();
        let (tree, _) = tk_syntax::parse(sources.add(&path, &text), &text);
        let outline = Outline { path: &path, sources: &sources };
        for item in tree.items.iter().filter_map(|i| outline.item(i, false)) {
            let methods = item.children.iter().filter(|c| c.kind == SymbolKind::Method).cloned();
            let all = std::iter::once(Symbol { children: vec![], ..item.clone() }).chain(methods);
            found.extend(all.filter(|s| s.kind != SymbolKind::Export && contains(&s.name, query)));
            if found.len() >= MAX_FOUND {
                return found;
            }
        }
    }
    found
}

/// Returns true if the letters of `query` occur in a text in their order, upper and lower case alike.
fn contains(text: &str, query: &str) -> bool {
    let mut letters = text.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|q| letters.any(|c| c == q))
}

/// A function whose name is found in a tree, without what it contains.
pub(super) fn of_fn(sources: &SourceMap, path: &str, item: &Item, method: bool) -> Option<Symbol> {
    let found = Outline { path, sources }.item(item, method)?;
    Some(Symbol { children: vec![], ..found })
}

impl Outline<'_> {
    fn place(&self, span: Span) -> Place {
        Place { path: self.path.to_string(), start: span.start as usize, end: span.end as usize }
    }

    fn make(&self, name: &str, kind: SymbolKind, detail: String, whole: Span, at: Span) -> Symbol {
        // An editor refuses an outline whose names are outside of the named item.
        let whole = if at.file == FileId(0) || whole.file == at.file { whole.to(at) } else { at };
        let name = if name.is_empty() { "?" } else { name };
        let (place, name_place) = (self.place(whole), self.place(at));
        Symbol { name: name.to_string(), kind, detail, place, name_place, children: vec![] }
    }

    fn text(&self, span: Span) -> String {
        line(self.sources.text(span))
    }

    fn item(&self, i: &Item, method: bool) -> Option<Symbol> {
        match &i.kind {
            ItemKind::Use(_) | ItemKind::Err => None,
            ItemKind::Const(c) => {
                let ty = c.ty.as_ref().map(|t| self.text(t.span)).unwrap_or_default();
                Some(self.make(&c.name.text, SymbolKind::Const, ty, i.span, c.name.span))
            }
            ItemKind::Struct(s) => {
                let mut out = self.make(&s.name.text, SymbolKind::Struct, String::new(), i.span, s.name.span);
                out.children.extend(s.cparams.iter().map(|c| self.cparam(c)));
                out.children.extend(s.fields.iter().map(|f| self.param(f, SymbolKind::Field)));
                out.children.extend(s.methods.iter().filter_map(|m| self.item(m, true)));
                Some(out)
            }
            ItemKind::Fn(f) => Some(self.function(i, f, method)),
            ItemKind::Export(e) => {
                let name = self.text(e.path.span);
                Some(self.make(&name, SymbolKind::Export, String::new(), i.span, e.path.span))
            }
            ItemKind::Test(t) => {
                Some(self.make(&t.name, SymbolKind::Test, String::new(), i.span, t.name_span))
            }
        }
    }

    fn function(&self, i: &Item, f: &Fn, method: bool) -> Symbol {
        let kind = match (f.kernel, method) {
            (true, _) => SymbolKind::Kernel,
            (false, true) => SymbolKind::Method,
            (false, false) => SymbolKind::Function,
        };
        let signature = Span { start: f.name.span.end.min(f.sig_span.end), ..f.sig_span };
        let mut out = self.make(&f.name.text, kind, self.text(signature), i.span, f.name.span);
        out.children.extend(f.cparams.iter().map(|c| self.cparam(c)));
        out.children.extend(f.params.iter().map(|p| self.param(p, SymbolKind::Parameter)));
        out
    }

    fn cparam(&self, c: &CParam) -> Symbol {
        let first = c.bound.first().map_or(c.name.span, |t| t.span);
        let bound = c.bound.last().map(|t| self.text(first.to(t.span))).unwrap_or_default();
        self.make(&c.name.text, SymbolKind::CompileTime, bound, c.span, c.name.span)
    }

    fn param(&self, p: &Param, kind: SymbolKind) -> Symbol {
        let ty = p.ty.as_ref().map(|t| self.text(t.span)).unwrap_or_default();
        self.make(&p.name.text, kind, ty, p.span, p.name.span)
    }
}
