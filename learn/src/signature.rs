//! Whether the reader left the kernels of a puzzle their names and parameters, on which its tests depend: [`changed`].

use tk_syntax::ast::{self, File, ItemKind};
use tk_syntax::token::{Tok, lex};
use tk_syntax::{FileId, Span};

use crate::puzzle::Puzzle;

/// A sentence, if a kernel of the puzzle has another name or other parameters in the reader's file.
pub fn changed(puzzle: &Puzzle, text: &str, path: &str) -> Option<String> {
    let (file, wrong) = tk_syntax::parse(FileId(0), text);
    // What does not parse has messages of its own.
    if !wrong.is_empty() {
        return None;
    }
    let (before, _) = tk_syntax::parse(FileId(0), puzzle.text);
    if let Some(name) = taken(puzzle, &before, &file) {
        return Some(format!(
            "the hidden tests use `{name}`, and {path} has one of its own; give it another name"
        ));
    }
    let (wanted, found) = (signatures(puzzle.text, &before), signatures(text, &file));
    let missing = wanted.iter().find(|w| !found.iter().any(|f| f.parts == w.parts))?;
    let is = match found.iter().find(|f| f.name == missing.name) {
        Some(other) => format!("has `{}`", other.text),
        None => "has no such kernel".to_string(),
    };
    let message = format!(
        "the tests launch `{}`, but {path} {is}; name and parameters must stay as they were",
        missing.text
    );
    Some(message)
}

/// A name that the hidden tests use, and that the reader's file gives another meaning than the puzzle does: a function
/// `assert_close` of the reader would judge the reader.
fn taken<'f>(puzzle: &Puzzle, before: &File, file: &'f File) -> Option<&'f str> {
    let tokens = lex(FileId(0), puzzle.hidden).tokens;
    let used = |name: &str| tokens.iter().any(|t| matches!(t.tok, Tok::Id(used) if used == name));
    let before = names(before);
    names(file).into_iter().find(|name| used(name) && !before.contains(name))
}

/// The names that a file gives a meaning to.
fn names(file: &File) -> Vec<&str> {
    let names = file.items.iter().flat_map(|item| match &item.kind {
        ItemKind::Fn(f) => vec![&f.name],
        ItemKind::Const(c) => vec![&c.name],
        ItemKind::Struct(s) => vec![&s.name],
        ItemKind::Use(u) => match (&u.alias, &u.names) {
            (Some(alias), _) => vec![alias],
            (None, Some(names)) => names.iter().collect(),
            (None, None) => u.path.segments.last().into_iter().collect(),
        },
        ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => vec![],
    });
    names.map(|name| name.text.as_str()).collect()
}

/// What launches of a kernel depend on.
struct Signature {
    name: String,
    /// As it was written, on one line.
    text: String,
    /// The names and types, without blanks; defaults may change, but must stay.
    parts: Vec<String>,
}

/// The kernels of a text.
fn signatures(text: &str, file: &File) -> Vec<Signature> {
    let slice = |span: Span| text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let tight = |span: Span| slice(span).split_whitespace().collect::<String>();
    let loose = |span: Span| slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
    let kernels = file.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Fn(f) if f.kernel => Some(f),
        ItemKind::Fn(_)
        | ItemKind::Use(_)
        | ItemKind::Const(_)
        | ItemKind::Struct(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => None,
    });
    let signature = |f: &std::sync::Arc<ast::Fn>| {
        let mut parts = vec![f.name.text.clone()];
        for p in &f.cparams {
            let bound = p.bound.iter().map(|b| tight(b.span)).collect::<Vec<_>>().join("|");
            parts.push(format!("[{}:{bound}{}", p.name.text, if p.default.is_some() { "=" } else { "" }));
        }
        for p in &f.params {
            let ty = p.ty.as_ref().map(|t| tight(t.span)).unwrap_or_default();
            let default = if p.default.is_some() { "=" } else { "" };
            parts.push(format!("({}:{}{ty}{default}", p.name.text, if p.konst { "const " } else { "" }));
        }
        let list = |spans: Vec<Span>| spans.into_iter().map(loose).collect::<Vec<_>>().join(", ");
        let compile_time = list(f.cparams.iter().map(|p| p.span).collect());
        let run_time = list(f.params.iter().map(|p| p.span).collect());
        let brackets = if compile_time.is_empty() { String::new() } else { format!("[{compile_time}]") };
        Signature { name: f.name.text.clone(), text: format!("{}{brackets}({run_time})", f.name.text), parts }
    };
    kernels.map(signature).collect()
}
