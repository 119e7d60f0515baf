//! Completion at a position.
//!
//! The context is read from the tokens ([`super::site`]), what exists from the analysis; so there is an answer in the
//! middle of a line that cannot be read yet. An editor filters by what is typed: all names of a context are given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tk_sema::index::{Symbol, SymbolId, SymbolKind};
use tk_sema::types::Ty;
use tk_syntax::token::Tok;

use super::complete_fit::Gives;
use super::complete_name::imported;
use super::context::completed;
use super::site::Site;
use super::{Analysis, Place, TextEdit, Workspace, complete_order, describe};

/// The kinds of completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum CompletionKind {
    Keyword,
    Function,
    Kernel,
    Builtin,
    Method,
    Field,
    Property,
    Variable,
    Parameter,
    CompileTime,
    Const,
    Struct,
    Type,
    Module,
    Argument,
    Word,
    Snippet,
}

/// One thing that can be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// Its name.
    pub label: String,
    /// The kind of completion.
    pub kind: CompletionKind,
    /// Its type or signature, on one line; may be empty.
    pub detail: String,
    /// Its documentation, in Markdown; may be empty.
    pub doc: String,
    /// The text to insert.
    pub insert: String,
    /// Whether `insert` has `$1`, `${2:name}` and `$0` for the editor to stop at.
    pub snippet: bool,
    /// The place that `insert` replaces.
    pub replace: Place,
    /// Further edits: an import.
    pub extra: Vec<TextEdit>,
    /// What it is as a value.
    pub(super) gives: Gives,
    /// The type of a variable.
    pub(super) ty: Option<Ty>,
    /// Whether a statement may change it.
    pub(super) changes: bool,
}

impl Completion {
    /// Its name, without the `=` of an argument.
    pub(super) fn word(&self) -> &str {
        self.label.trim_end_matches(" =")
    }
}

/// The completions at an offset, the most likely ones first.
pub fn complete(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Completion> {
    let as_typed = ws.analysis(path);
    let Some(site) = Site::new(&as_typed, offset) else { return vec![] };
    // A signature that has no body yet means nothing by itself.
    let a = match completed(&site, as_typed.root_text()) {
        Some(text) => Arc::new(ws.analyse(path, &[(path.to_string(), text)].into())),
        None => as_typed.clone(),
    };
    // A member that is written already is replaced, also with the cursor before it.
    let is_name = |t: &&tk_syntax::token::Token<'_>| t.start == site.end && matches!(t.tok, Tok::Id(_));
    let member = site.tokens.get(site.before).filter(|_| site.back(1) == Some(Tok::Dot)).filter(is_name);
    let end = member.map_or(site.end, |t| t.end);
    let replace = Place { path: path.to_string(), start: site.start, end };
    let mut list = List { replace, items: vec![], seen: BTreeSet::new() };
    match (site.back(1), site.back(2)) {
        _ if site.after_number => {}
        (Some(Tok::Dot), _) => super::complete_member::after_dot(ws, &a, &site, &mut list),
        (Some(Tok::PathSep), Some(Tok::Id(module))) if in_use(&site).is_none() => {
            if let Some(what) = path_items(ws, &a, path, module, &mut list) {
                let edit = add_use(&a, path, &what);
                list.items.iter_mut().for_each(|c| c.extra.push(edit.clone()));
            }
        }
        (Some(Tok::At), _) => ["fast", "noinline"].iter().for_each(|w| list.word(w, CompletionKind::Keyword)),
        (Some(Tok::Let), _) => list.word("mut", CompletionKind::Keyword),
        // The name that an import gets.
        (Some(Tok::As), _) if in_use(&site).is_some() => {}
        _ if in_use(&site).is_some() => imports(ws, &a, path, &site, &mut list),
        _ => super::complete_name::names(ws, &a, path, &site, &mut list),
    }
    list.items.iter_mut().for_each(|c| fit_to(c, site.following()));
    if complete_order::applies(&site) {
        complete_order::sort(&a, &site, &mut list.items);
    }
    list.items
}

/// Leaves out of a completion what is written behind the place already: the brackets of a clause, the `=` of an argument.
fn fit_to(c: &mut Completion, following: Option<Tok>) {
    let open = match following {
        Some(Tok::LParen) => '(',
        Some(Tok::LBracket) => '[',
        _other => ' ',
    };
    match following {
        Some(Tok::LParen | Tok::LBracket)
            if c.insert.strip_prefix(c.word()).is_some_and(|rest| rest.starts_with(open)) =>
        {
            (c.insert, c.snippet) = (c.word().to_string(), false);
        }
        Some(Tok::Assign) if c.insert.ends_with(" = ") => c.insert.truncate(c.insert.len() - 3),
        _other => {}
    }
}

/// Completions for one word.
pub(super) struct List {
    pub replace: Place,
    pub items: Vec<Completion>,
    seen: BTreeSet<String>,
}

impl List {
    /// Adds a completion; of several with one label the first counts, as an inner name hides an outer one.
    pub fn add(&mut self, label: &str, kind: CompletionKind, detail: &str, doc: &str) {
        self.insert(label, kind, detail, doc, label, false);
    }

    pub fn word(&mut self, label: &str, kind: CompletionKind) {
        self.add(label, kind, "", "");
    }

    pub fn insert(
        &mut self,
        label: &str,
        kind: CompletionKind,
        detail: &str,
        doc: &str,
        insert: &str,
        snippet: bool,
    ) {
        if label.is_empty() || !self.seen.insert(label.to_string()) {
            return;
        }
        self.items.push(Completion {
            label: label.to_string(),
            kind,
            detail: detail.to_string(),
            doc: doc.to_string(),
            insert: insert.to_string(),
            snippet,
            replace: self.replace.clone(),
            extra: vec![],
            gives: Gives::default(),
            ty: None,
            changes: false,
        });
    }

    /// Says what the item with a name is as a value, if it was added last.
    pub fn gives(&mut self, name: &str, gives: Gives) {
        if let Some(last) = self.items.last_mut().filter(|c| c.label == name) {
            last.gives = gives;
        }
    }

    /// Adds what a name stands for.
    pub fn symbol(&mut self, a: &Analysis, name: &str, s: &Symbol) {
        let w = describe::words(a, s);
        let kind = kind(a, s);
        // What is called continues with its arguments; the editor asks for their names then.
        self.add(name, kind, &w.code, &w.doc);
        self.gives(name, Gives::of(a, s));
        if let Some(last) = self.items.last_mut().filter(|c| c.label == name) {
            let written = |ty: &Ty| matches!(ty, Ty::View { mutable: true, .. });
            let is_written = matches!(&s.kind, SymbolKind::Local(ty) | SymbolKind::Param(ty) if written(ty));
            last.changes = s.mutable || is_written;
            last.ty = match &s.kind {
                SymbolKind::Local(ty) | SymbolKind::Param(ty) => Some(ty.clone()),
                _other => None,
            };
        }
    }

    pub fn row(&mut self, row: &'static tk_ops::table::Row, kind: CompletionKind) {
        let text = tk_ops::reference::signature(row).text;
        self.add(row.name, kind, &text, &describe::row_doc(row));
        self.gives(row.name, Gives::of_row(row));
    }

    pub fn snippet(&mut self, label: &str, detail: &str, body: &str) {
        let key = format!("{label} (snippet)");
        if self.seen.insert(key) {
            self.items.push(Completion {
                label: label.to_string(),
                kind: CompletionKind::Snippet,
                detail: detail.to_string(),
                doc: String::new(),
                insert: body.to_string(),
                snippet: true,
                replace: self.replace.clone(),
                extra: vec![],
                gives: Gives::default(),
                ty: None,
                changes: false,
            });
        }
    }
}

fn kind(a: &Analysis, s: &Symbol) -> CompletionKind {
    use CompletionKind as K;
    match &s.kind {
        SymbolKind::Module(_) => K::Module,
        SymbolKind::Fn(id) => match a.checked.hir.fns.get(id.0 as usize).map(|f| f.kind) {
            Some(tk_sema::hir::FnKind::Kernel) => K::Kernel,
            Some(tk_sema::hir::FnKind::Fn | tk_sema::hir::FnKind::Test) | None if s.owner.is_some() => {
                K::Method
            }
            Some(tk_sema::hir::FnKind::Fn | tk_sema::hir::FnKind::Test) | None => K::Function,
        },
        SymbolKind::Struct(_) => K::Struct,
        SymbolKind::Field(..) => K::Field,
        SymbolKind::Const(_) => K::Const,
        SymbolKind::CVar(_) => K::CompileTime,
        SymbolKind::Param(_) => K::Parameter,
        SymbolKind::Local(_) => K::Variable,
        SymbolKind::Alias(to) => describe::resolve(a, *to).map_or(K::Function, |to| kind(a, to)),
        SymbolKind::Builtin(_) => K::Builtin,
        SymbolKind::BuiltinParam(..) => K::Argument,
    }
}

/// The start of the `use` that contains the position.
fn in_use(site: &Site) -> Option<usize> {
    let ahead = site.tokens.get(..site.before)?;
    let start = ahead.iter().rposition(|t| matches!(t.tok, Tok::Use | Tok::Semi))?;
    let inside = ahead.get(start + 1..)?;
    // A `use` ends with its `;` or, where that is missing, with its line; a list may have several.
    let list = inside.iter().any(|t| t.tok == Tok::LBrace);
    let same_line = list || !(inside.iter().any(|t| t.first) || site.new_line);
    let open = inside.last().is_none_or(|t| t.tok != Tok::RBrace);
    (ahead.get(start)?.tok == Tok::Use && same_line && open).then_some(start)
}

fn imports(ws: &mut Workspace, a: &Analysis, path: &str, site: &Site, list: &mut List) {
    let Some(start) = in_use(site) else { return };
    let words: Vec<&str> = site
        .tokens
        .get(start + 1..site.before)
        .unwrap_or(&[])
        .iter()
        .take_while(|t| t.tok != Tok::LBrace)
        .filter_map(|t| if let Tok::Id(w) = t.tok { Some(w) } else { None })
        .collect();
    match words.as_slice() {
        [] => {
            list.add("std", CompletionKind::Module, "the standard library", "");
            for name in siblings(ws, path) {
                list.word(&name, CompletionKind::Module);
            }
        }
        // The files of the library, or of a folder of it; a folder is offered once, whatever it holds.
        ["std", inside @ ..] if !std_names(inside).is_empty() => {
            std_names(inside).into_iter().for_each(|name| list.word(name, CompletionKind::Module));
        }
        // `use std::math::{a, b`
        [.., module] => {
            path_items(ws, a, path, module, list);
            let inside = site.tokens.get(start + 1..site.before).unwrap_or(&[]);
            let names = inside.iter().skip_while(|t| t.tok != Tok::LBrace);
            let is_given = |c: &Completion| names.clone().any(|t| t.tok == Tok::Id(&c.label));
            list.items.retain(|c| !is_given(c));
        }
    }
}

/// The names of the files and folders in a folder of the standard library.
fn std_names(folder: &[&str]) -> BTreeSet<&'static str> {
    let prefix: String = folder.iter().flat_map(|f| [*f, "/"]).collect();
    let name = |(file, _): (&'static str, String)| file.strip_prefix(&prefix)?.split('/').next();
    Workspace::std_files().filter_map(name).filter(|n| *n != "prelude").collect()
}

/// The files beside one.
fn siblings(ws: &Workspace, path: &str) -> Vec<String> {
    let folder = path.rfind('/').map_or("", |i| path.get(..=i).unwrap_or(""));
    let name = |f: &String| {
        let rest = f.strip_prefix(folder)?.strip_suffix(".tk")?;
        (!rest.contains('/') && f != path).then(|| rest.to_string())
    };
    ws.files().iter().filter_map(name).collect()
}

/// The items that may follow the name of a file; the import that the name needs, if it has none.
fn path_items(ws: &mut Workspace, a: &Analysis, path: &str, module: &str, list: &mut List) -> Option<String> {
    let own = imported(a);
    let imported = a.index.symbols.iter().enumerate().find_map(|(i, s)| match &s.kind {
        SymbolKind::Module(f) if s.name == module && own.contains(&SymbolId(i as u32)) => {
            Some(a.checked.sources.get(*f)?.name.to_string())
        }
        _other => None,
    });
    let std = Workspace::std_files().find(|f| f.0.rsplit('/').next() == Some(module));
    let folder = path.rfind('/').map_or("", |i| path.get(..=i).unwrap_or(""));
    let beside = format!("{folder}{module}.tk");
    let beside = ws.text(&beside).is_some().then_some((beside, Some(module.to_string())));
    let std = std.map(|(name, file)| (file, Some(tk_sema::std_path(name))));
    let (file, needed) = imported.map(|file| (file, None)).or(beside).or(std)?;
    let other = ws.analysis(&file);
    for s in public_items(&other) {
        list.symbol(&other, &s.name, s);
    }
    needed
}

/// The items of a file that others may use.
pub(super) fn public_items(a: &Analysis) -> impl Iterator<Item = &Symbol> {
    let own = |s: &&Symbol| s.span.is_some_and(|s| s.file == Analysis::ROOT) && s.owner.is_none();
    a.index.symbols.iter().filter(own).filter(|s| {
        let item = match s.kind {
            SymbolKind::Fn(id) => {
                a.checked.hir.fns.get(id.0 as usize).is_some_and(|f| f.kind != tk_sema::hir::FnKind::Test)
            }
            SymbolKind::Struct(_) => true,
            SymbolKind::Const(_) => s.item != s.span,
            SymbolKind::Module(_)
            | SymbolKind::Field(..)
            | SymbolKind::CVar(_)
            | SymbolKind::Param(_)
            | SymbolKind::Local(_)
            | SymbolKind::Alias(_)
            | SymbolKind::Builtin(_)
            | SymbolKind::BuiltinParam(..) => false,
        };
        item && !s.name.starts_with('_')
    })
}

/// Items of other files that could be imported: name, `use`, and the file.
pub(super) fn importable(ws: &mut Workspace, path: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut out: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (module, file) in modules(ws, path) {
        let a = ws.analysis(&file);
        for s in public_items(&a) {
            out.entry(s.name.clone()).or_default().push((module.clone(), file.clone()));
        }
    }
    out
}

/// What can be imported from: the `use` and the file.
pub(super) fn modules(ws: &Workspace, path: &str) -> Vec<(String, String)> {
    let library = Workspace::std_files().filter(|f| f.0 != "prelude");
    let mut files: Vec<(String, String)> =
        library.map(|(name, file)| (tk_sema::std_path(name), file)).collect();
    let folder = path.rfind('/').map_or("", |i| path.get(..=i).unwrap_or("")).to_string();
    files.extend(siblings(ws, path).into_iter().map(|s| (s.clone(), format!("{folder}{s}.tk"))));
    files
}

/// The edit that adds a `use` line to a file.
pub(super) fn add_use(a: &Analysis, path: &str, what: &str) -> TextEdit {
    let empty = tk_syntax::ast::File::default();
    let (at, text) = tk_sema::import::added(a.root().unwrap_or(&empty), a.root_text(), what);
    TextEdit { place: Place { path: path.to_string(), start: at, end: at }, text }
}

/// The receiver that a value of this type is in a call; `None` if it has no methods.
pub(super) fn receiver(ty: &Ty) -> Option<tk_ops::table::Receiver> {
    use tk_ops::table::Receiver;
    match ty {
        Ty::View { .. } => Some(Receiver::View),
        Ty::Tile { .. } => Some(Receiver::Tile),
        Ty::Buffer { .. } => Some(Receiver::Buffer),
        Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Option(_)
        | Ty::Tuple(_)
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => None,
    }
}
