//! Files and imports: loads what `use` reaches, collects the names of each file, resolves imports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use tk_syntax::ast::{self, ItemKind};
use tk_syntax::{Diagnostic, FileId, Span, codes};

use super::cx::Cx;
use super::record::Target;
use super::{ConstAst, ConstState, Def, FileInfo, Program, Sig, SigAst};
use crate::Loader;
use crate::hir::{ConstId, Contract, FnId, FnKind, HBlock, HConst, HExpr, HFn, HStruct, StructId};
use crate::types::Ty;

/// The standard library as it was when the compiler was built, by file name; `nn/softmax` is `std::nn::softmax`.
const BUILT_IN: &[(&str, &str)] = &[
    ("prelude", include_str!("../../../../stdlib/prelude.tk")),
    ("grid", include_str!("../../../../stdlib/grid.tk")),
    ("math", include_str!("../../../../stdlib/math.tk")),
    ("random", include_str!("../../../../stdlib/random.tk")),
    ("sync", include_str!("../../../../stdlib/sync.tk")),
    ("views", include_str!("../../../../stdlib/views.tk")),
    ("nn/attention", include_str!("../../../../stdlib/nn/attention.tk")),
    ("nn/attention_backward", include_str!("../../../../stdlib/nn/attention_backward.tk")),
    ("nn/batched", include_str!("../../../../stdlib/nn/batched.tk")),
    ("nn/cross_entropy", include_str!("../../../../stdlib/nn/cross_entropy.tk")),
    ("nn/decode", include_str!("../../../../stdlib/nn/decode.tk")),
    ("nn/embedding", include_str!("../../../../stdlib/nn/embedding.tk")),
    ("nn/gated", include_str!("../../../../stdlib/nn/gated.tk")),
    ("nn/grouped", include_str!("../../../../stdlib/nn/grouped.tk")),
    ("nn/linear", include_str!("../../../../stdlib/nn/linear.tk")),
    ("nn/matmul", include_str!("../../../../stdlib/nn/matmul.tk")),
    ("nn/norm", include_str!("../../../../stdlib/nn/norm.tk")),
    ("nn/pack", include_str!("../../../../stdlib/nn/pack.tk")),
    ("nn/plan", include_str!("../../../../stdlib/nn/plan.tk")),
    ("nn/reduce", include_str!("../../../../stdlib/nn/reduce.tk")),
    ("nn/rows", include_str!("../../../../stdlib/nn/rows.tk")),
    ("nn/sampling", include_str!("../../../../stdlib/nn/sampling.tk")),
    ("nn/scaled", include_str!("../../../../stdlib/nn/scaled.tk")),
    ("nn/softmax", include_str!("../../../../stdlib/nn/softmax.tk")),
    ("nn/tiles", include_str!("../../../../stdlib/nn/tiles.tk")),
];

/// Loads the main file, everything it uses and the prelude, and resolves all imports.
pub(super) fn load(p: &mut Program, loader: &dyn Loader, path: &str) {
    let span = Span::default();
    match loader.load(path) {
        Ok(text) => {
            add_file(p, path.to_string(), path, &text);
        }
        Err(why) => {
            p.sources.add(path, "");
            p.report(Diagnostic::error(codes::FILE, span, why, ""));
            return;
        }
    }
    p.prelude = open_std(p, loader, "prelude");
    let mut next = 0;
    while next < p.files.len() {
        imports(p, loader, next);
        next += 1;
    }
}

/// Parses a file and collects its items; returns its index.
fn add_file(p: &mut Program, key: String, shown: &str, text: &str) -> usize {
    let id = p.sources.add(shown, text);
    let (tree, diags) = tk_syntax::parse(id, text);
    p.syntax.extend(diags);
    let index = p.files.len();
    let tree = Arc::new(tree);
    p.files.push(FileInfo { id, key, ast: tree.clone(), names: BTreeMap::new(), missing: BTreeSet::new() });
    for item in &tree.items {
        collect(p, index, id, item);
    }
    index
}

fn define(p: &mut Program, file: usize, name: &ast::Name, def: Def) {
    if name.text.is_empty() || name.text == "_" {
        return;
    }
    if let Some((_, before)) = p.files[file].names.get(&name.text) {
        let d = Diagnostic::error(
            codes::DUPLICATE,
            name.span,
            format!("`{}` is defined twice in this file", name.text),
            "second definition",
        )
        .label(*before, "first definition");
        p.report(d);
        return;
    }
    p.files[file].names.insert(name.text.clone(), (def, name.span));
}

fn collect(p: &mut Program, file: usize, id: FileId, item: &ast::Item) {
    attributes(p, item);
    match &item.kind {
        ItemKind::Use(_) | ItemKind::Err => {}
        ItemKind::Const(c) => {
            let cid = ConstId(p.hir.consts.len() as u32);
            p.hir.consts.push(HConst {
                name: c.name.text.clone(),
                value: HExpr::err(c.name.span),
                real: None,
                span: c.name.span,
            });
            p.consts.push(ConstState::Waiting { file, ast: Arc::new(ConstAst(c.clone())) });
            define(p, file, &c.name, Def::Const(cid));
        }
        ItemKind::Struct(s) => {
            let sid = StructId(p.hir.structs.len() as u32);
            p.hir.structs.push(HStruct {
                name: s.name.text.clone(),
                cparams: vec![],
                fields: vec![],
                methods: vec![],
                span: s.name.span,
                file: id,
            });
            p.structs.push((file, s.clone()));
            define(p, file, &s.name, Def::Struct(sid));
            for m in &s.methods {
                if let ItemKind::Fn(f) = &m.kind {
                    let fid = add_fn(p, file, id, m, f, Some(sid));
                    p.hir.structs[sid.0 as usize].methods.push((f.name.text.clone(), fid));
                }
            }
        }
        ItemKind::Fn(f) => {
            let fid = add_fn(p, file, id, item, f, None);
            define(p, file, &f.name, Def::Fn(fid));
        }
        ItemKind::Export(e) => p.exports.push((file, Arc::new(e.clone()))),
        ItemKind::Test(t) => {
            let f = empty_fn(t.name.clone(), FnKind::Test, id, t.name_span, item);
            p.hir.fns.push(f);
            p.sigs.push(Sig {
                ast: SigAst::Test(t.clone()),
                file,
                slots: vec![],
                owner: None,
                span: t.name_span,
            });
        }
    }
}

fn add_fn(
    p: &mut Program,
    file: usize,
    id: FileId,
    item: &ast::Item,
    f: &Arc<ast::Fn>,
    owner: Option<StructId>,
) -> FnId {
    let fid = FnId(p.hir.fns.len() as u32);
    let kind = if f.kernel { FnKind::Kernel } else { FnKind::Fn };
    let mut h = empty_fn(f.name.text.clone(), kind, id, f.name.span, item);
    for a in &item.attrs {
        match a.name.text.as_str() {
            "fast" => h.fast = true,
            "noinline" => h.noinline = true,
            // A decorator of Python, about which there is a message already.
            _other if p.syntax.iter().any(|d| d.primary.span == a.name.span) => {}
            other => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_ATTRIBUTE,
                    a.span,
                    format!("unknown attribute `@{other}` on a function"),
                    "unknown attribute",
                )
                .note(
                    Cx::decorator_hint(other).unwrap_or("functions and kernels take `@fast` and `@noinline`"),
                );
                p.report(d);
            }
        }
    }
    p.hir.fns.push(h);
    p.sigs.push(Sig { ast: SigAst::Fn(f.clone()), file, slots: vec![], owner, span: f.sig_span });
    fid
}

/// Reports attributes of items, parameters and fields that have none.
fn attributes(p: &mut Program, item: &ast::Item) {
    let (what, parts): (_, &[ast::Param]) = match &item.kind {
        ItemKind::Fn(f) => (None, &f.params),
        ItemKind::Struct(s) => (Some("a struct"), &s.fields),
        ItemKind::Const(_) => (Some("a constant"), &[]),
        ItemKind::Use(_) => (Some("an import"), &[]),
        ItemKind::Export(_) => (Some("an export"), &[]),
        ItemKind::Test(_) => (Some("a test"), &[]),
        ItemKind::Err => (None, &[]),
    };
    what.into_iter().for_each(|what| no_attributes(p, &item.attrs, what));
    let part = if what.is_some() { "a field" } else { "a parameter" };
    parts.iter().for_each(|x| no_attributes(p, &x.attrs, part));
}

/// Reports attributes where none has a meaning.
fn no_attributes(p: &mut Program, attrs: &[ast::AstAttr], what: &str) {
    for a in attrs {
        let message = format!("unknown attribute `@{}` on {what}", a.name.text);
        let d = Diagnostic::error(codes::UNKNOWN_ATTRIBUTE, a.span, message, "unknown attribute");
        p.report(d.note("functions and kernels take `@fast` and `@noinline`"));
    }
}

fn empty_fn(name: String, kind: FnKind, file: FileId, span: Span, item: &ast::Item) -> HFn {
    HFn {
        name,
        kind,
        file,
        span,
        doc: item.doc.clone(),
        cparams: vec![],
        params: vec![],
        ret: Ty::Unit,
        contract: Contract::default(),
        locals: vec![],
        body: HBlock { stmts: vec![], tail: None, span },
        fast: false,
        noinline: false,
        broken: false,
    }
}

/// The standard library as it was when the compiler was built: names (`grid` of `std::grid`, `nn/softmax` of
/// `std::nn::softmax`) and texts.
pub fn std_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.iter().copied()
}

/// The name of the file of the standard library that has a public function or kernel with this name; of several, the first.
pub fn of_std(name: &str) -> Option<&'static str> {
    static ITEMS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
        let mut items = BTreeMap::new();
        for (file, text) in std_files().filter(|f| f.0 != "prelude") {
            for line in text.lines() {
                let line = line.strip_prefix("@fast ").unwrap_or(line);
                let head = line.strip_prefix("fn ").or_else(|| line.strip_prefix("kernel "));
                let name = head.and_then(|h| h.split(|c: char| !c.is_alphanumeric() && c != '_').next());
                if let Some(name) = name.filter(|n| !n.is_empty() && !n.starts_with('_')) {
                    items.entry(name).or_insert(file);
                }
            }
        }
        items
    });
    ITEMS.get(name).copied()
}

/// A file of the standard library as `use` names it: `std::nn::softmax` of `nn/softmax`.
pub fn std_path(name: &str) -> String {
    format!("std::{}", name.replace('/', "::"))
}

fn imports(p: &mut Program, loader: &dyn Loader, file: usize) {
    let tree = p.files[file].ast.clone();
    for item in &tree.items {
        let ItemKind::Use(u) = &item.kind else { continue };
        match &u.names {
            Some(names) if is_folder(&u.path.segments) => {
                for n in names {
                    let path = [&u.path.segments[..], std::slice::from_ref(n)].concat();
                    let def = import_path(p, loader, file, &ast::Path { segments: path, span: n.span }, true);
                    import(p, file, n, def);
                }
            }
            Some(names) => {
                let module = import_path(p, loader, file, &u.path, true);
                for n in names {
                    let def = match module {
                        Some(Def::Module(m)) => member(p, file, m, n),
                        Some(_) | None => None,
                    };
                    import(p, file, n, def);
                }
            }
            None => {
                let def = import_path(p, loader, file, &u.path, false);
                if let Some(name) = u.alias.as_ref().or(u.path.segments.last()) {
                    import(p, file, name, def);
                }
                if let (Some(alias), Some(target)) = (&u.alias, def.and_then(|d| p.target(d))) {
                    p.record.aliases.push((alias.span, alias.text.clone(), target));
                }
            }
        }
    }
}

/// Defines the name of an import, or remembers that it was not found.
fn import(p: &mut Program, file: usize, name: &ast::Name, def: Option<Def>) {
    match def {
        Some(def) => define(p, file, name, def),
        None => {
            p.files[file].missing.insert(name.text.clone());
        }
    }
}

/// Returns true if these names are a folder of the standard library, whose files are imported as items are:
/// `std` and `std::nn`.
fn is_folder(names: &[ast::Name]) -> bool {
    let (first, folder) = match names {
        [first] => return first.text == "std",
        [first, folder] => (first, folder),
        _ => return false,
    };
    let inside = |name: &str| name.split_once('/').is_some_and(|(f, _)| f == folder.text);
    first.text == "std" && BUILT_IN.iter().any(|(name, _)| inside(name))
}

/// The module or item that a path of `use` names; reports when there is none.
fn import_path(
    p: &mut Program,
    loader: &dyn Loader,
    file: usize,
    path: &ast::Path,
    module_only: bool,
) -> Option<Def> {
    let segs = &path.segments;
    let (module, rest) = match segs.as_slice() {
        [_, folder, name, rest @ ..] if segs.get(..2).is_some_and(is_folder) => {
            (open_std(p, loader, &format!("{}/{}", folder.text, name.text)).ok_or(None), rest)
        }
        [first, second, rest @ ..] if first.text == "std" => {
            (open_std(p, loader, &second.text).ok_or(None), rest)
        }
        [first, rest @ ..] if first.text != "std" => (open_sibling(p, loader, file, &first.text), rest),
        _ => {
            let text = "`std` is imported by file: `use std::grid;`";
            p.report(Diagnostic::error(codes::UNKNOWN_IMPORT, path.span, text, ""));
            return None;
        }
    };
    let module = match module {
        Ok(module) => module,
        Err(Some(why)) => {
            p.report(Diagnostic::error(codes::UNKNOWN_IMPORT, path.span, why, ""));
            return None;
        }
        Err(None) => {
            p.report(no_file(segs, rest, path.span));
            return None;
        }
    };
    if let Some(name) = segs.get(segs.len() - rest.len() - 1) {
        p.record.name(name, Target::Module(module));
    }
    match rest {
        [] => Some(Def::Module(module)),
        [name] if !module_only => member(p, file, module, name),
        _ => {
            p.report(Diagnostic::error(
                codes::UNKNOWN_IMPORT,
                path.span,
                "a file contains no files: only one name may follow it",
                "",
            ));
            None
        }
    }
}

/// The item of a module, with its privacy checked; reports when there is none.
pub(super) fn member(p: &mut Program, from: usize, module: usize, name: &ast::Name) -> Option<Def> {
    if name.text.is_empty() {
        return None;
    }
    let shown = p.files[module].key.clone();
    match p.files[module].names.get(&name.text).copied() {
        Some((_, span)) if name.text.starts_with('_') && from != module => {
            let d = Diagnostic::error(
                codes::PRIVATE,
                name.span,
                format!("`{}` is private to `{shown}`", name.text),
                "private item",
            )
            .label(span, "a leading `_` makes a name private to its file");
            p.report(d);
            None
        }
        Some((def, _)) if !matches!(def, Def::Module(_)) => {
            if let Some(target) = p.target(def) {
                p.record.name(name, target);
            }
            Some(def)
        }
        _ => {
            let names: Vec<String> = p.files[module].names.keys().cloned().collect();
            let mut d = Diagnostic::error(
                codes::UNKNOWN_IMPORT,
                name.span,
                format!("`{shown}` has no item `{}`", name.text),
                "unknown item",
            );
            if let Some(s) = super::names::closest(&name.text, names.iter().map(String::as_str)) {
                d = d.use_instead(name.span, s);
            }
            p.report(d);
            None
        }
    }
}

fn open_std(p: &mut Program, loader: &dyn Loader, name: &str) -> Option<usize> {
    let key = std_path(name);
    if let Some(i) = p.files.iter().position(|f| f.key == key) {
        return Some(i);
    }
    if let Some((shown, text)) = loader.std(name) {
        return Some(add_file(p, key, &shown, &text));
    }
    let (_, text) = BUILT_IN.iter().find(|(n, _)| *n == name)?;
    Some(add_file(p, key, &format!("std/{name}.tk"), text))
}

/// The error for a `use` of a file that does not exist; `rest` are the segments after its name.
fn no_file(segs: &[ast::Name], rest: &[ast::Name], span: Span) -> Diagnostic {
    let shown: Vec<&str> = segs.iter().take(segs.len() - rest.len()).map(|s| s.text.as_str()).collect();
    let is_std = shown.first() == Some(&"std");
    let what = if is_std {
        format!("the standard library has no file `{}`", shown.join("::"))
    } else {
        format!("there is no file `{}.tk` next to this one", shown.join("::"))
    };
    let mut d = Diagnostic::error(codes::UNKNOWN_IMPORT, span, what, "no such file");
    if is_std {
        let names: Vec<String> =
            BUILT_IN.iter().filter(|b| b.0 != "prelude").map(|b| format!("`{}`", std_path(b.0))).collect();
        d = d.note(format!("it has {}", names.join(", ")));
    } else if BUILT_IN.iter().any(|b| std_path(b.0) == format!("std::{}", shown.join("::"))) {
        d = d.fix("it is in the standard library", span.before(), "std::");
    }
    d
}

/// The file of this name beside another one, or why it is not used; `None` if there is none.
fn open_sibling(
    p: &mut Program,
    loader: &dyn Loader,
    file: usize,
    name: &str,
) -> Result<usize, Option<String>> {
    let from = p.sources.get(p.files[file].id).ok_or(None)?.name.clone();
    let path = match from.rfind('/') {
        Some(at) => format!("{}/{name}.tk", &from[..at]),
        None => format!("{name}.tk"),
    };
    if let Some(i) = p.files.iter().position(|f| f.key == path) {
        return Ok(i);
    }
    let text = loader.used(&path, &from)?;
    Ok(add_file(p, path.clone(), &path, &text))
}
