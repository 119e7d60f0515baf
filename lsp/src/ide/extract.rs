//! The action that makes a function of a selected expression, or of selected statements.
//!
//! What the selection reads becomes parameters, what it declares or assigns and what is read behind it becomes the
//! result. It is not offered where control leaves the selection (`return`, `break` and `continue` of a loop around it), and the caller checks that the
//! program has no more errors than before. What uses `self` becomes a method of its struct.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use tk_sema::index::{SymbolId, SymbolKind};
use tk_syntax::ast::{Block, CParam, Expr, ExprKind, Item, ItemKind, Stmt, StmtKind};
use tk_syntax::token::{Tok, lex};
use tk_syntax::{FileId, Span};

use super::actions::{Action, ActionKind};
use super::walk::Node;
use super::{Analysis, Place, TextEdit};

/// The name of the new function, with a number where there is one already.
const NAME: &str = "extracted";

/// The receiver of a method.
const SELF: &str = "self";

/// What is selected.
enum Selected<'a> {
    Expr(&'a Expr),
    /// Statements of a block, and what follows them in it.
    Stmts(&'a [Stmt]),
}

/// What has the body with the selection: a function, a kernel, a method or a test.
struct Owner<'a> {
    item: &'a Item,
    body: &'a Block,
    cparams: Vec<&'a CParam>,
    /// The struct of a method.
    of: Option<&'a Item>,
}

/// A variable that goes in or out.
struct Variable {
    name: String,
    ty: String,
    /// Whether the selection assigns it.
    assigned: bool,
    /// Whether it is declared before the selection.
    outer: bool,
}

/// The action for a selection.
pub fn extract(a: &Analysis, range: &Range<usize>) -> Option<Action> {
    let (start, end) = bare(a.root_text(), range)?;
    let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
    let item = a.root()?.items.iter().find(|i| i.span.start <= start && end <= i.span.end)?;
    let owner = &owner(item, start, end)?;
    let selected = selected(owner.body, start, end)?;
    if start >= end || leaves(&selected) {
        return None;
    }
    let variables = variables(a, owner, start, end)?;
    let (inputs, outputs): (Vec<&Variable>, Vec<&Variable>) = match selected {
        Selected::Expr(_) if variables.iter().any(|v| v.assigned) => return None,
        Selected::Expr(_) => (variables.iter().collect(), vec![]),
        Selected::Stmts(_) => {
            let out = variables.iter().filter(|v| v.assigned || !v.outer).collect();
            (variables.iter().filter(|v| v.outer).collect(), out)
        }
    };
    let result = match selected {
        Selected::Expr(e) => vec![a.show(a.index.type_of(e.span)?)],
        Selected::Stmts(_) => outputs.iter().map(|v| v.ty.clone()).collect(),
    };
    let types = inputs.iter().map(|v| v.ty.as_str()).chain(result.iter().map(String::as_str));
    let mut constants = constants(a, owner, start, end, types)?;
    // A method has the parameters of its struct.
    let shared = owner.of.filter(|_| inputs.iter().any(|v| v.name == SELF)).and_then(struct_cparams);
    constants.retain(|c| !shared.is_some_and(|all| all.iter().any(|p| p.name.text == c.0)));
    let name = free_name(a);
    // Arguments determine the parameters that their types name.
    let found: Vec<String> = inputs.iter().flat_map(|v| names_in(&v.ty)).collect();
    let given: Vec<String> =
        constants.iter().filter(|c| !found.contains(&c.0)).map(|c| format!("{0} = {0}", c.0)).collect();
    let given = if given.is_empty() { String::new() } else { format!("[{}]", given.join(", ")) };
    let receiver = inputs.iter().position(|v| v.name == SELF);
    let arguments: Vec<&Variable> = inputs.iter().copied().filter(|v| v.name != SELF).collect();
    let call = match receiver {
        Some(_) => format!("{SELF}.{name}{given}({})", names(&arguments)),
        None => format!("{name}{given}({})", names(&arguments)),
    };
    let call = match &selected {
        Selected::Expr(_) => call,
        Selected::Stmts(_) => assigned(&outputs, &call)?,
    };
    let mut function =
        written(a, owner.item, &name, &constants, &inputs, &outputs, &result, &selected, (start, end));
    if let Ok(form) = tk_fmt::format(&function) {
        function = form.trim_end().to_string();
    }
    let at = |start: u32, end: u32| a.place(Span { file: Analysis::ROOT, start, end });
    let after = match owner.of {
        Some(of) if receiver.is_none() => of,
        _own => owner.item,
    };
    let indent = indent_of(a, after.span.start);
    if !indent.is_empty() {
        let line = |l: &str| if l.is_empty() { String::new() } else { format!("{indent}{l}") };
        function = function.lines().map(line).collect::<Vec<_>>().join("\n");
    }
    let behind: Place = at(after.span.end, after.span.end);
    // An empty line before what follows.
    let rest = a.root_text().get(behind.end..).unwrap_or("").trim_start_matches([' ', '\t', '\r']);
    let is_close = rest
        .strip_prefix('\n')
        .is_some_and(|next| !next.trim_start_matches([' ', '\t', '\r']).starts_with(['\n', '}']));
    let gap = if is_close && !rest.trim().is_empty() { "\n" } else { "" };
    let edits = vec![
        TextEdit { place: at(start, end), text: call },
        TextEdit { place: behind, text: format!("\n\n{function}{gap}") },
    ];
    let title = "extract a function".to_string();
    Some(Action { title, kind: ActionKind::Extract, edits, diagnostic: None })
}

/// A selection without the blanks and comments that it begins and ends with.
fn bare(text: &str, range: &Range<usize>) -> Option<(usize, usize)> {
    let comments = lex(FileId(0), text).comments;
    let (mut start, mut end) = (range.start, range.end);
    loop {
        let inner = text.get(start..end)?;
        let blanks = inner.len() - inner.trim_start().len();
        (start, end) = (start + blanks, (start + inner.trim_end().len()).max(start + blanks));
        if start >= end {
            return Some((start, end));
        }
        let first = comments.iter().find(|c| c.span.start as usize == start);
        let last = comments.iter().find(|c| (c.span.start as usize) < end && end <= c.span.end as usize);
        match (first, last) {
            (Some(c), _) => start = (c.span.end as usize).min(end),
            (None, Some(c)) => end = (c.span.start as usize).max(start),
            (None, None) => return Some((start, end)),
        }
    }
}

/// The innermost item whose body contains the selection.
fn owner(item: &Item, start: u32, end: u32) -> Option<Owner<'_>> {
    let (body, cparams) = match &item.kind {
        ItemKind::Fn(f) => (&f.body, f.cparams.iter().collect()),
        ItemKind::Test(t) => (&t.body, vec![]),
        ItemKind::Struct(s) => {
            let mut method = s.methods.iter().find_map(|m| owner(m, start, end))?;
            method.cparams.splice(0..0, &s.cparams);
            return Some(Owner { of: Some(item), ..method });
        }
        ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Err => return None,
    };
    let is_inside = body.span.start < start && end < body.span.end;
    is_inside.then_some(Owner { item, body, cparams, of: None })
}

/// The compile-time parameters of a struct.
fn struct_cparams(item: &Item) -> Option<&[CParam]> {
    if let ItemKind::Struct(s) = &item.kind { Some(&s.cparams) } else { None }
}

/// The blanks before a place on its line.
fn indent_of(a: &Analysis, at: u32) -> String {
    let line = a.root_text().get(..at as usize).unwrap_or("").rsplit('\n').next().unwrap_or("");
    line.chars().take_while(|c| c.is_whitespace()).collect()
}

/// The expression or statements with just this extent.
fn selected(body: &Block, start: u32, end: u32) -> Option<Selected<'_>> {
    let mut found = None;
    Node::Block(body).each(&mut |n| match n {
        // A conditional is both.
        Node::Expr(e) if (e.span.start, e.span.end) == (start, end) && found.is_none() => {
            found = Some(Selected::Expr(e));
        }
        Node::Block(b) => {
            let first = b.stmts.iter().position(|s| s.span.start == start);
            let last = b.stmts.iter().position(|s| s.span.end == end);
            if let (Some(first), Some(last)) = (first, last)
                && let Some(stmts) = b.stmts.get(first..=last)
            {
                found = Some(Selected::Stmts(stmts));
            }
        }
        _other => {}
    });
    found
}

/// Returns true if control leaves the selection other than at its end.
fn leaves(selected: &Selected<'_>) -> bool {
    let mut found = false;
    // The loops of the selection, which are left inside of it.
    let mut loops: Vec<Span> = vec![];
    let mut look = |n: Node<'_>| match n {
        Node::Stmt(s) => match &s.kind {
            StmtKind::For { .. } | StmtKind::While { .. } => loops.push(s.span),
            StmtKind::Break | StmtKind::Continue => {
                found |= !loops.iter().any(|l| l.start <= s.span.start && s.span.end <= l.end);
            }
            StmtKind::Return(_) | StmtKind::Const(_) => found = true,
            _other => {}
        },
        Node::Expr(e) => found |= matches!(e.kind, ExprKind::Return(_) | ExprKind::Err),
        _other => {}
    };
    match selected {
        Selected::Expr(e) => Node::Expr(e).each(&mut look),
        Selected::Stmts(stmts) => stmts.iter().for_each(|s| Node::Stmt(s).each(&mut look)),
    }
    found
}

/// The variables that go in, and those that are declared in the selection and read behind it, in order of their first
/// use. `None` where one has a type that cannot be written.
fn variables(a: &Analysis, owner: &Owner<'_>, start: u32, end: u32) -> Option<Vec<Variable>> {
    let inside = |s: Span| start <= s.start && s.end <= end;
    let own = a.index.references_in(Analysis::ROOT);
    let in_body =
        own.iter().filter(|r| owner.body.span.start <= r.span.start && r.span.end <= owner.body.span.end);
    let later: BTreeSet<SymbolId> =
        in_body.clone().filter(|r| r.span.start >= end).map(|r| r.symbol).collect();
    let mut seen = BTreeSet::new();
    let mut out = vec![];
    for r in in_body.filter(|r| inside(r.span)) {
        let symbol = a.index.symbol(r.symbol)?;
        let (SymbolKind::Local(ty) | SymbolKind::Param(ty)) = &symbol.kind else { continue };
        let declared = symbol.span?;
        let outer = !inside(declared);
        if !seen.insert(r.symbol) || !outer && !later.contains(&r.symbol) {
            continue;
        }
        let assigned =
            own.iter().any(|x| x.symbol == r.symbol && x.write && inside(x.span) && x.span != declared);
        out.push(Variable { name: symbol.name.clone(), ty: a.show(ty), assigned: assigned && outer, outer });
    }
    Some(out)
}

/// The names in a type.
fn names_in(ty: &str) -> Vec<String> {
    let name = |tok| if let Tok::Id(name) = tok { Some(name.to_string()) } else { None };
    lex(FileId(0), ty).tokens.iter().filter_map(|t| name(t.tok)).collect()
}

/// The compile-time parameters that the selection and the types need, as they are declared. `None` where it uses a
/// compile-time variable of a loop. Names and bounds.
fn constants<'t>(
    a: &Analysis,
    owner: &Owner<'_>,
    start: u32,
    end: u32,
    types: impl Iterator<Item = &'t str>,
) -> Option<Vec<(String, String)>> {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for r in a.index.references_in(Analysis::ROOT) {
        if start <= r.span.start
            && r.span.end <= end
            && let Some(s) = a.index.symbol(r.symbol)
            && matches!(s.kind, SymbolKind::CVar(_))
            && !s.span.is_some_and(|d| start <= d.start && d.end <= end)
        {
            wanted.insert(s.name.clone());
        }
    }
    for ty in types {
        let own = |n: &String| owner.cparams.iter().any(|c| c.name.text == *n);
        wanted.extend(names_in(ty).into_iter().filter(own));
    }
    let mut out = vec![];
    for c in &owner.cparams {
        if wanted.remove(&c.name.text) {
            let bound: Vec<&str> = c.bound.iter().map(|b| a.text(b.span)).collect();
            out.push((c.name.text.clone(), bound.join(" | ")));
        }
    }
    wanted.is_empty().then_some(out)
}

fn names(variables: &[&Variable]) -> String {
    variables.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The statement in place of the selection. `None` where some results are new variables and some are not.
fn assigned(outputs: &[&Variable], call: &str) -> Option<String> {
    let outer = outputs.iter().filter(|v| v.outer).count();
    let left = match outputs {
        [] => return Some(format!("{call};")),
        [one] => one.name.clone(),
        several => format!("({})", names(several)),
    };
    match outer {
        0 => Some(format!("let {left} = {call};")),
        n if n == outputs.len() => Some(format!("{left} = {call};")),
        _mixed => None,
    }
}

/// A name that nothing in the file has.
fn free_name(a: &Analysis) -> String {
    let own = a.index.references_in(Analysis::ROOT).iter();
    let taken: BTreeSet<&str> = own.map(|r| a.text(r.span)).collect();
    let numbered = (2..).map(|n| format!("{NAME}_{n}"));
    std::iter::once(NAME.to_string())
        .chain(numbered)
        .find(|n| !taken.contains(n.as_str()))
        .unwrap_or_default()
}

/// The new function.
#[allow(clippy::too_many_arguments, reason = "the parts of a function")]
fn written(
    a: &Analysis,
    item: &Item,
    name: &str,
    constants: &[(String, String)],
    inputs: &[&Variable],
    outputs: &[&Variable],
    result: &[String],
    selected: &Selected<'_>,
    (start, end): (u32, u32),
) -> String {
    let mut out = String::new();
    // Its arithmetic means the same there.
    if item.attrs.iter().any(|x| x.name.text == "fast") {
        out += "@fast\n";
    }
    out += &format!("fn {name}");
    if !constants.is_empty() {
        let constants: Vec<String> =
            constants.iter().map(|(name, bound)| format!("{name}: {bound}")).collect();
        let _ = write!(out, "[{}]", constants.join(", "));
    }
    // `self` comes first, without a type.
    let receiver = inputs.iter().filter(|v| v.name == SELF).map(|v| v.name.clone());
    let others = inputs.iter().filter(|v| v.name != SELF).map(|v| format!("{}: {}", v.name, v.ty));
    let params: Vec<String> = receiver.chain(others).collect();
    let _ = write!(out, "({})", params.join(", "));
    match result {
        [] => {}
        [one] => out += &format!(" -> {one}"),
        several => out += &format!(" -> ({})", several.join(", ")),
    }
    out += " {\n";
    for v in inputs.iter().filter(|v| v.assigned) {
        let _ = writeln!(out, "    let mut {0} = {0};", v.name);
    }
    let body = a.root_text().get(start as usize..end as usize).unwrap_or("");
    let body = match selected {
        Selected::Expr(e) if !matches!(e.kind, ExprKind::Tuple(_)) => without_parens(body),
        Selected::Expr(_) | Selected::Stmts(_) => body,
    };
    let indent = indent_of(a, start);
    for (i, line) in body.lines().enumerate() {
        // The server may keep blanks at ends of lines.
        let line = if i == 0 { line } else { line.strip_prefix(&indent).unwrap_or(line) }.trim_end();
        let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "    " });
    }
    if let Selected::Stmts(_) = selected {
        match outputs {
            [] => {}
            [one] => out += &format!("    {}\n", one.name),
            several => out += &format!("    ({})\n", names(several)),
        }
    }
    out + "}"
}

/// A text without the pairs of parentheses around all of it.
fn without_parens(text: &str) -> &str {
    let mut depth = 0usize;
    let closes = lex(FileId(0), text).tokens.into_iter().find(|t| {
        match t.tok {
            Tok::LParen => depth += 1,
            Tok::RParen => depth = depth.saturating_sub(1),
            _other => {}
        }
        depth == 0
    });
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    match (closes, inner) {
        (Some(last), Some(inner)) if last.end == text.len() => without_parens(inner.trim()),
        (_, _) => text,
    }
}
