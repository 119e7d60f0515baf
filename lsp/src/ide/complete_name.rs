//! Completion of a name at the start of an item, a clause, a statement, an argument, a type or a value.

use std::collections::BTreeSet;

use tk_ops::table::{ParamKind, Receiver};
use tk_ops::{DType, DTypeSet};
use tk_sema::hir::FnKind;
use tk_sema::index::{Symbol, SymbolId, SymbolKind};
use tk_syntax::ast::ItemKind;
use tk_syntax::token::Tok;

use super::complete::{CompletionKind as K, List, add_use, importable};
use super::scope::{Scope, scope};
use super::signature::{Declared, callee};
use super::site::{CallSite, Site};
use super::{Analysis, Workspace, describe};

/// The classes of element types, for bounds.
const CLASSES: &[&str] = &["int", "sint", "uint", "float", "f8", "number"];

/// The options of `launch(..)` and of rows of `tune`.
const LAUNCH: &[&str] = &["warps", "stages", "ctas", "cluster", "max_regs", "occupancy", "cooperative"];

/// The clauses of a kernel, and what each says.
const CLAUSES: &[(&str, &str, &str)] = &[
    ("grid", "number of programs, on 1 to 3 axes", "grid($0)"),
    ("launch", "warps, stages and other options of a launch", "launch(warps = $0)"),
    ("require", "conditions that a launch must meet", "require($0)"),
    ("prefer", "conditions with a binary of their own", "prefer($0)"),
    ("alias", "parameters that may reach the same memory", "alias($0)"),
    ("scratch", "workspaces that the launcher provides", "scratch(${1:name}: *mut ${2:u32}, $0)"),
    ("tune", "candidate values", "tune(key = ($1)) {\n    { $0 },\n}"),
];

pub(super) fn names(ws: &mut Workspace, a: &Analysis, path: &str, site: &Site, list: &mut List) {
    let call = site.call();
    if let Some(c) = &call
        && argument(a, site, c, list)
    {
        return;
    }
    let offset = u32::try_from(site.start).unwrap_or(u32::MAX);
    let empty = tk_syntax::ast::File::default();
    let s = scope(a.root().unwrap_or(&empty), offset);
    if site.braces() == 0 && call.is_none() {
        return item(site, list);
    }
    if wants_type(a, site, call.as_ref()) {
        return types(a, &s, site, list);
    }
    let starts = matches!(site.back(1), None | Some(Tok::Semi | Tok::LBrace | Tok::RBrace));
    if call.is_none() && starts {
        statement(&s, list);
    }
    values(a, &s, list);
    if site.end > site.start {
        unimported(ws, a, path, list);
    }
}

/// The names of the arguments, or the words that one takes; gives whether nothing else fits.
fn argument(a: &Analysis, site: &Site, c: &CallSite, list: &mut List) -> bool {
    let text = |i: usize| site.tokens.get(i).and_then(|t| a.root_text().get(t.start..t.end)).unwrap_or("");
    let Some(symbol) = callee(a, site, c) else {
        // A clause looks like a call.
        match text(c.callee) {
            "launch" if c.fresh => arguments(LAUNCH.iter().copied(), c, list),
            "scratch" if c.fresh => arguments(["count", "zeroed"].into_iter(), c, list),
            "tune" if c.fresh => arguments(["key"].into_iter(), c, list),
            _other => return false,
        }
        return c.named.is_none() && text(c.callee) == "launch";
    };
    if let (SymbolKind::Builtin(row), Some(n)) = (&symbol.kind, c.named)
        && let Some(p) = row.param(n).and_then(|i| row.params.get(i))
    {
        let words = describe::param_words(p.kind);
        words.iter().for_each(|w| list.word(w, K::Word));
        return matches!(p.kind, ParamKind::Word(_));
    }
    if !c.fresh {
        return false;
    }
    let Some(d) = Declared::of(a, symbol) else { return false };
    let range = if c.open == Tok::LParen { d.run.clone() } else { d.fixed.clone() };
    // Those before the place may be given by position.
    let passed =
        range.start + if c.open == Tok::LParen { c.position.saturating_sub(c.given.len()) } else { 0 };
    for i in range.filter(|i| c.named.is_none() && *i >= passed) {
        let (Some(name), Some((at, doc))) = (d.names.get(i), d.params.get(i)) else { continue };
        if !c.given.contains(&name.as_str()) {
            let detail = d.label.get(at.clone()).unwrap_or("");
            list.insert(&format!("{name} ="), K::Argument, detail, doc, &format!("{name} = "), false);
        }
    }
    // Fields and compile-time arguments have names only.
    matches!(symbol.kind, SymbolKind::Struct(_)) || (c.open == Tok::LBracket && !d.fixed.is_empty())
}

fn arguments(names: impl Iterator<Item = &'static str>, c: &CallSite, list: &mut List) {
    for n in names.filter(|n| !c.given.contains(n)) {
        list.insert(&format!("{n} ="), K::Argument, "", "", &format!("{n} = "), false);
    }
}

/// Outside of braces: items, and after a signature clauses.
fn item(site: &Site, list: &mut List) {
    if matches!(site.back(1), Some(Tok::RParen)) {
        for (name, doc, body) in CLAUSES {
            list.insert(name, K::Keyword, doc, "", body, true);
        }
        return;
    }
    if !matches!(site.back(1), None | Some(Tok::RBrace | Tok::Semi | Tok::RParen | Tok::Id(_))) {
        return;
    }
    for w in ["use", "const", "struct", "fn", "kernel", "export", "test"] {
        list.word(w, K::Keyword);
    }
    let kernel = "kernel ${1:name}[${2:BLOCK: i32 = 1024}](${3:x: view[f32, 1], y: mut view[f32, 1]})\n    \
                  grid(${4:cdiv(x.shape[0], BLOCK)})\n{\n    $0\n}";
    list.snippet("kernel", "a kernel with its grid", kernel);
    list.snippet(
        "fn",
        "a function",
        "fn ${1:name}[S: shape](${2:x: tile[f32, S]}) -> ${3:tile[f32, S]} {\n    $0\n}",
    );
    list.snippet("test", "a test", "test \"${1:name}\" {\n    $0\n}");
    list.snippet("struct", "a struct", "struct ${1:Name} {\n    ${2:x: f32},\n}");
}

fn statement(s: &Scope, list: &mut List) {
    for w in ["let", "const", "for", "while", "if", "return", "break", "continue"] {
        list.word(w, K::Keyword);
    }
    if s.test {
        list.word("assert_error", K::Keyword);
    }
    list.snippet("for", "a loop", "for ${1:i} in range(0, ${2:n}) {\n    $0\n}");
    list.snippet("while", "a loop", "while ${1:condition} {\n    $0\n}");
    list.snippet("if", "a condition", "if ${1:condition} {\n    $0\n}");
}

/// Returns true if a type is meant: after `:`, `->`, `as`, `*`, or first in the brackets of `tile` and `view`.
fn wants_type(a: &Analysis, site: &Site, call: Option<&CallSite>) -> bool {
    let text = |i: usize| site.tokens.get(i).and_then(|t| a.root_text().get(t.start..t.end)).unwrap_or("");
    let first = call.is_some_and(|c| {
        c.open == Tok::LBracket && matches!(text(c.callee), "tile" | "view") && c.position == 0
    });
    let colon = matches!(site.back(1), Some(Tok::Colon)) && matches!(site.back(2), Some(Tok::Id(_)));
    // `a[i:` is a slice, not a type.
    let slice = colon && call.is_some_and(|c| c.open == Tok::LBracket && callee_is_value(a, site, c));
    let pointer = matches!(site.back(1), Some(Tok::Star | Tok::Mut))
        && matches!(site.back(2), Some(Tok::Colon | Tok::Star | Tok::Arrow | Tok::As));
    (colon && !slice) || first || pointer || matches!(site.back(1), Some(Tok::Arrow | Tok::As))
}

fn callee_is_value(a: &Analysis, site: &Site, c: &CallSite) -> bool {
    callee(a, site, c).is_some_and(|s| matches!(s.kind, SymbolKind::Local(_) | SymbolKind::Param(_)))
}

fn types(a: &Analysis, s: &Scope, site: &Site, list: &mut List) {
    let cast = matches!(site.back(1), Some(Tok::As));
    for n in s.names.iter().rev() {
        let symbol = a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol));
        if let Some(symbol) = symbol.filter(|s| matches!(s.kind, SymbolKind::CVar(_))) {
            list.symbol(a, &n.text, symbol);
        }
    }
    DType::ALL.iter().for_each(|d| list.word(d.name(), K::Type));
    if cast {
        return;
    }
    list.insert("tile", K::Type, "tile[T, D0, D1, ..]", "", "tile[$0]", true);
    list.insert("view", K::Type, "view[T, R]", "", "view[${1:f32}, ${2:2}]", true);
    list.insert("mut view", K::Type, "mut view[T, R]", "", "mut view[${1:f32}, ${2:2}]", true);
    for w in ["dtype", "shape", "const"] {
        list.word(w, K::Type);
    }
    for w in CLASSES.iter().filter(|c| DTypeSet::class(c).is_some()) {
        list.word(w, K::Type);
    }
    for s in items(a).filter(|s| matches!(s.kind, SymbolKind::Struct(_))) {
        list.symbol(a, &s.name, s);
    }
}

/// The names that a value may begin with.
fn values(a: &Analysis, s: &Scope, list: &mut List) {
    for n in s.names.iter().rev() {
        if let Some(symbol) = a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol)) {
            list.symbol(a, &n.text, symbol);
        }
    }
    for symbol in items(a) {
        list.symbol(a, &symbol.name, symbol);
    }
    let host: &[Receiver] = if s.test { &[Receiver::Test, Receiver::None] } else { &[Receiver::None] };
    for r in host.iter().flat_map(|r| tk_ops::rows::methods(*r)).filter(|r| !tk_ops::rows::is_operator(r)) {
        list.row(r, K::Builtin);
    }
    for w in ["true", "false", "None", "if", "inf", "nan", "target"] {
        list.word(w, K::Keyword);
    }
    if s.clause {
        list.word("device", K::Keyword);
    }
    DType::ALL.iter().for_each(|d| list.word(d.name(), K::Type));
}

/// The items that the file can name: its own, its imports, the prelude.
fn items(a: &Analysis) -> impl Iterator<Item = &Symbol> {
    let imported = imported(a);
    a.index.symbols.iter().enumerate().filter_map(move |(i, s)| {
        let file = s.span.map(|s| s.file);
        let prelude = file.is_some_and(|f| a.index.file(f).is_some_and(|f| f.key == "std::prelude"));
        let seen = file == Some(Analysis::ROOT) || imported.contains(&SymbolId(i as u32));
        let item = match &s.kind {
            SymbolKind::Fn(f) => {
                let test = a.checked.hir.fns.get(f.0 as usize).is_some_and(|f| f.kind == FnKind::Test);
                s.owner.is_none() && !test && (seen || prelude)
            }
            SymbolKind::Struct(_) | SymbolKind::Module(_) | SymbolKind::Alias(_) => seen,
            SymbolKind::Const(_) => s.item != s.span && seen,
            SymbolKind::Field(..)
            | SymbolKind::CVar(_)
            | SymbolKind::Param(_)
            | SymbolKind::Local(_)
            | SymbolKind::Builtin(_)
            | SymbolKind::BuiltinParam(..) => false,
        };
        item.then_some(s)
    })
}

/// The imports of the `use` lines of the file, under the names that they give.
fn imported(a: &Analysis) -> BTreeSet<SymbolId> {
    let items = a.root().into_iter().flat_map(|f| &f.items);
    let names = items.flat_map(|i| match &i.kind {
        ItemKind::Use(u) => match &u.names {
            Some(names) => names.iter().collect(),
            None => u.alias.as_ref().or(u.path.segments.last()).into_iter().collect::<Vec<_>>(),
        },
        ItemKind::Const(_)
        | ItemKind::Struct(_)
        | ItemKind::Fn(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => vec![],
    });
    names.filter_map(|n| a.index.reference(n.span)).map(|r| r.symbol).collect()
}

/// Items of other files, with the `use` that they need.
fn unimported(ws: &mut Workspace, a: &Analysis, path: &str, list: &mut List) {
    for (name, from) in importable(ws, path) {
        for (module, file) in from {
            let other = ws.analysis(&file);
            let before = list.items.len();
            if let Some(s) = super::complete::public_items(&other).find(|s| s.name == name) {
                list.symbol(&other, &name, s);
            }
            if let Some(c) = list.items.get_mut(before) {
                c.detail = format!("{} (use {module})", c.detail);
                c.extra.push(add_use(a, path, &format!("{module}::{name}")));
            }
        }
    }
}
