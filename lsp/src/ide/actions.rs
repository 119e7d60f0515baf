//! The changes that an editor offers for a place.

use std::ops::Range;

use tk_sema::index::{Symbol, SymbolKind};
use tk_sema::types::{Elem, Ty};
use tk_syntax::ast::{Arg, BinOp, Expr, ExprKind};
use tk_syntax::diag::Fix;
use tk_syntax::{Code, Diagnostic, Span, codes};

use super::add_require::add_require;
use super::complete::{add_use, modules, public_items};
use super::diagnostics::diagnostics;
use super::extract::extract;
use super::form::{keep_form, keep_line_ends};
use super::inline_let::{inline_let, keeps_types};
use super::scope::scope;
use super::source_actions::with_comments;
use super::trial::Trials;
use super::walk::{Node, around, declaration};
use super::{Analysis, TextEdit, Workspace};

/// The kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// It fixes a diagnostic.
    QuickFix,
    /// It changes the form.
    Refactor,
    /// It puts a value where a name was.
    Inline,
    /// It makes a function of a part.
    Extract,
    /// It mends everything in the file that has one safe fix.
    FixAll,
    /// It puts imports in order.
    OrganizeImports,
}

/// A change that an editor offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The title.
    pub title: String,
    /// The kind of action.
    pub kind: ActionKind,
    /// The changes, not overlapping.
    pub edits: Vec<TextEdit>,
    /// The diagnostic that it fixes, by its number in [`super::diagnostics::diagnostics`].
    pub diagnostic: Option<usize>,
}

/// The errors whose fixes are guesses about the form, which the checker confirms or not: of a text that cannot be read, and
/// of the names of arguments.
const GUESSES: &[Code] = &[
    codes::SYNTAX,
    codes::UNCLOSED,
    codes::UNOPENED,
    codes::BAD_TOKEN,
    codes::MISSING_SEMICOLON,
    codes::BAD_LITERAL,
    codes::ARGUMENT_NAME,
];

/// Guesses that are tried for a range, each of which checks the file: a selection can have any number of errors.
const TRIED: usize = 16;

/// The same for the titles that come with the diagnostics of a file, after each change of it.
const TITLED: usize = 4;

/// The actions for a range. Changes of the form, each of which checks the file again, only where somebody has `asked` for
/// the list: an editor also asks at every place of the cursor.
pub fn actions(ws: &mut Workspace, path: &str, range: Range<usize>, asked: bool) -> Vec<Action> {
    let a = ws.analysis(path);
    let found = diagnostics(ws, path);
    let is_here = |d: &Diagnostic| {
        let s = super::diagnostics::underlined(&a, d);
        range.end >= s.start as usize && (s.end as usize) >= range.start
    };
    let here: Vec<(usize, &Diagnostic)> = found.iter().enumerate().filter(|(_, d)| is_here(d)).collect();
    let imported: Vec<Vec<Action>> = here.iter().map(|found| imports(ws, &a, path, *found)).collect();
    let (mut out, mut tried, mut trials) = (vec![], 0, Trials::new(ws, &a, path));
    for ((i, d), imported) in here.into_iter().zip(imported) {
        for fix in fitting(&a, d) {
            let action = of_fix(&a, fix, Some(i));
            let is_guess = GUESSES.contains(&d.code);
            tried += usize::from(is_guess);
            if !is_guess || tried <= TRIED && mends(&mut trials, &a, &action) {
                out.push(action);
            }
        }
        for action in imported {
            // A diagnostic may offer the same.
            if !out.iter().any(|x: &Action| x.title == action.title) {
                out.push(action);
            }
        }
    }
    let Some(at) = a.offset(range.start).filter(|_| asked) else {
        out.iter_mut().for_each(|x| keep_line_ends(a.root_text(), &mut x.edits));
        return out;
    };
    out.extend(inline_let(&a, at).filter(|x| {
        let inlined = trials.after(x);
        inlined.is_some_and(|i| errors(i).count() <= errors(&a).count() && keeps_types(&a, at, x, i))
    }));
    out.extend(extract(&a, &range).filter(|x| checks(&mut trials, &a, x)));
    out.extend(add_require(&a, &range).filter(|x| checks(&mut trials, &a, x)));
    if let Some(call) = memory_call(&a, at) {
        masks(&a, &call, &mut out);
        out.extend(to_view(&a, &call).filter(|x| checks(&mut trials, &a, x)));
    }
    keep_form(a.root_text(), path, &mut out);
    out
}

/// The fixes of each diagnostic of a file that its code actions offer: of guesses, those of the first few that mend something.
pub fn offered(ws: &Workspace, a: &Analysis, path: &str, found: &[Diagnostic]) -> Vec<Vec<String>> {
    let (mut tried, mut trials) = (0, Trials::new(ws, a, path));
    let of_one = |d: &Diagnostic| {
        let is_guess = GUESSES.contains(&d.code);
        let fixes = fitting(a, d).filter(|fix| {
            tried += usize::from(is_guess);
            !is_guess || tried <= TITLED && mends(&mut trials, a, &of_fix(a, fix, None))
        });
        fixes.map(|fix| fix.title.clone()).collect()
    };
    found.iter().map(of_one).collect()
}

/// The fixes of a diagnostic without functions for the name of a value that is computed with. Imports of other values are
/// found by [`imports`].
fn fitting<'d>(a: &Analysis, d: &'d Diagnostic) -> impl Iterator<Item = &'d Fix> {
    let is_operand = d.code == codes::UNKNOWN_NAME && is_operand(a, d.primary.span);
    let is_function = |name: &str| {
        let is_own = |s: &Symbol| s.name == name && s.owner.is_none() && matches!(s.kind, SymbolKind::Fn(_));
        tk_ops::rows::functions().any(|row| row.name == name) || a.index.symbols.iter().any(is_own)
    };
    let fits = move |fix: &&Fix| {
        !(is_operand && fix.edits.iter().any(|e| is_function(&e.text) || e.text.starts_with("use ")))
    };
    let fixes: Vec<&Fix> = d.fixes.iter().filter(fits).collect();
    fixes.into_iter()
}

/// Returns true if the value of a name is computed with, or gets another one: it is no function, which is called or passed.
fn is_operand(a: &Analysis, name: Span) -> bool {
    let (before, after) = a.root_text().split_at_checked(name.start as usize).unwrap_or(("", ""));
    let after = after.get((name.end - name.start) as usize..).unwrap_or("").trim_start();
    !after.starts_with('(')
        && (after.starts_with(['+', '-', '*', '/', '%', '<', '>', '=', '&', '|', '^', '.'])
            || before.trim_end().ends_with(['+', '-', '*', '/', '%', '<', '>', '&', '^']))
}

/// A fix of a diagnostic as an action.
fn of_fix(a: &Analysis, fix: &Fix, diagnostic: Option<usize>) -> Action {
    let edits = fix.edits.iter().map(|e| with_comments(a, e));
    let edits = edits.map(|(span, text)| TextEdit { place: a.place(span), text });
    Action { title: fix.title.clone(), kind: ActionKind::QuickFix, edits: edits.collect(), diagnostic }
}

/// Returns true if an action adds no diagnostic.
fn checks(trials: &mut Trials, a: &Analysis, action: &Action) -> bool {
    trials.after(action).is_some_and(|mended| errors(mended).count() <= errors(a).count())
}

/// Returns true if an action leaves fewer errors, none that is new, and none of the form on its lines.
fn mends(trials: &mut Trials, a: &Analysis, action: &Action) -> bool {
    let Some(mended) = trials.after(action) else { return false };
    let is_old = |d: &Diagnostic| errors(a).any(|old| (old.code, &old.message) == (d.code, &d.message));
    let line = |at: usize| mended.root_text().get(..at).map_or(0, |t| t.matches('\n').count());
    let lines: Vec<usize> = action.edits.iter().map(|e| line(e.place.start)).collect();
    let is_left = |d: &Diagnostic| {
        let s = d.primary.span;
        let at = line(s.start as usize)..=line(s.end as usize);
        GUESSES.contains(&d.code) && s.file == Analysis::ROOT && lines.iter().any(|l| at.contains(l))
    };
    let fine = |d: &Diagnostic| is_old(d) && !is_left(d);
    errors(mended).count() < errors(a).count() && errors(mended).all(fine)
}

/// The errors of an analysis.
fn errors(a: &Analysis) -> impl Iterator<Item = &Diagnostic> {
    a.checked.diagnostics.iter().filter(|d| d.is_error())
}

/// Imports of what an unknown name could be.
fn imports(ws: &mut Workspace, a: &Analysis, path: &str, found: (usize, &Diagnostic)) -> Vec<Action> {
    let (number, d) = found;
    let mut out = vec![];
    if d.code != codes::UNKNOWN_NAME {
        return out;
    }
    let name = a.text(d.primary.span);
    let mut add = |what: String| {
        let edit = add_use(a, path, &what);
        let title = format!("import it: `use {what};`");
        out.push(Action { title, kind: ActionKind::QuickFix, edits: vec![edit], diagnostic: Some(number) });
    };
    let is_operand = is_operand(a, d.primary.span);
    // In `math::gelu` it is the file that is unknown.
    let behind = a.root_text().get(d.primary.span.end as usize..).unwrap_or("");
    let is_file = behind.trim_start().starts_with("::");
    let modules = modules(ws, path);
    for (module, file) in &modules {
        // Most files need no check.
        if !ws.text(file).is_some_and(|text| declares(&text, name)) {
            continue;
        }
        let other = ws.analysis(file);
        let item = public_items(&other).find(|s| s.name == name);
        if item.is_some_and(|s| !(is_operand && matches!(s.kind, SymbolKind::Fn(_)))) {
            add(format!("{module}::{name}"));
        }
    }
    for (module, _) in modules.into_iter().filter(|_| is_file) {
        if module.rsplit("::").next() == Some(name) {
            add(module);
        }
    }
    out
}

/// Returns true if a text may have an item with a name.
fn declares(text: &str, name: &str) -> bool {
    let is_declared = |before: &str| ["fn", "kernel", "struct", "const"].iter().any(|w| before.ends_with(w));
    text.match_indices(name)
        .any(|(at, _)| text.get(..at).is_some_and(|before| is_declared(before.trim_end())))
}

/// `load(p, ..)` or `store(p, ..)`.
struct MemoryCall<'a> {
    whole: Span,
    store: bool,
    args: &'a [Arg],
    pointer: &'a Expr,
    /// The mask, if there is one.
    mask: Option<&'a Expr>,
}

impl<'a> MemoryCall<'a> {
    /// An argument by position or name.
    fn arg(&self, position: usize, name: &str) -> Option<&'a Expr> {
        let named = self.args.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == name));
        let placed = self.args.get(position).filter(|a| a.name.is_none());
        named.or(placed).map(|a| &a.value)
    }
}

/// The innermost access through pointers around an offset.
fn memory_call(a: &Analysis, at: u32) -> Option<MemoryCall<'_>> {
    around(a.root()?, at).into_iter().rev().find_map(|n| {
        let Node::Expr(e) = n else { return None };
        let ExprKind::Call(f, args) = &e.kind else { return None };
        let symbol = a.index.reference(f.span).and_then(|r| a.index.symbol(r.symbol))?;
        let SymbolKind::Builtin(row) = symbol.kind else { return None };
        let store = match row.name {
            "load" => false,
            "store" => true,
            _other => return None,
        };
        let touches = |s: Span| s.start <= at && at <= s.end;
        if !touches(f.span) && !args.first().is_some_and(|x| touches(x.value.span)) {
            return None;
        }
        let pointer = &args.first().filter(|a| a.name.is_none())?.value;
        let mut call = MemoryCall { whole: e.span, store, args, pointer, mask: None };
        call.mask = call.arg(1 + usize::from(store), "mask");
        Some(call)
    })
}

/// Masks for an access without one: bool tiles of its shape that are there, and `offsets < n` for integer parameters.
fn masks(a: &Analysis, call: &MemoryCall, out: &mut Vec<Action>) {
    let Some(Ty::Tile { elem: Elem::Ptr { .. }, shape }) = a.index.type_of(call.pointer.span) else { return };
    if call.mask.is_some() || shape.is_scalar() {
        return;
    }
    let mut found: Vec<String> = vec![];
    let mut limits: Vec<String> = vec![];
    let Some(file) = a.root() else { return };
    for n in scope(file, call.whole.start).names.iter().rev() {
        let symbol = a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol));
        match symbol.map(|s| &s.kind) {
            Some(SymbolKind::Local(Ty::Tile { elem, shape: have })) if have == shape => {
                let bools = Elem::D(tk_sema::types::DTerm::Known(tk_ops::DType::Bool));
                if *elem == bools {
                    found.push(n.text.clone());
                }
            }
            Some(SymbolKind::Param(t)) if *t == Ty::i32() || *t == Ty::scalar(tk_ops::DType::I64) => {
                limits.push(n.text.clone());
            }
            _other => {}
        }
    }
    if let Some((_, offsets)) = base_and_offsets(call.pointer) {
        let o = a.text(offsets.span);
        found.extend(limits.iter().rev().map(|n| format!("{o} < {n}")));
    }
    let last = call.args.last().map_or(call.whole, |x| x.value.span).after();
    // By position where that is allowed: named arguments come last.
    let positional =
        call.args.iter().all(|x| x.name.is_none()) && call.args.len() == 1 + usize::from(call.store);
    for mask in found.into_iter().take(3) {
        let text = if positional { format!(", {mask}") } else { format!(", mask = {mask}") };
        let edits = vec![TextEdit { place: a.place(last), text }];
        let title = format!("mask the lanes with `{mask}`");
        out.push(Action { title, kind: ActionKind::Refactor, edits, diagnostic: None });
    }
}

/// The parts of `pointer + offsets`.
fn base_and_offsets(e: &Expr) -> Option<(&Expr, &Expr)> {
    match &e.kind {
        ExprKind::Binary(BinOp::Add, p, o) => Some((p, o)),
        _other => None,
    }
}

/// `load(x + (start + arange(0, N)), offsets < n)` as `view(x, [n], [1]).load([start], [N])`. Elements past the end
/// reads 0 and is not written, as with the mask.
fn to_view(a: &Analysis, call: &MemoryCall) -> Option<Action> {
    let (base, offsets) = base_and_offsets(call.pointer)?;
    let simple = |e: &Expr| matches!(&e.kind, ExprKind::Path(_));
    let mask = value_of(a, call.mask?);
    let ExprKind::Binary(BinOp::Lt, left, limit) = &mask.kind else { return None };
    if !simple(base) || a.text(left.span) != a.text(offsets.span) {
        return None;
    }
    let (start, extent) = start_and_extent(a, value_of(a, offsets))?;
    let known = ["mask", "other"];
    if call.args.iter().filter_map(|x| x.name.as_ref()).any(|n| !known.contains(&n.text.as_str())) {
        return None;
    }
    let text = |e: &Expr| a.text(e.span).to_string();
    let start = start.map_or("0".to_string(), text);
    let view = format!("view({}, [{}], [1])", text(base), text(limit));
    let new = if call.store {
        let value = call.arg(1, "value")?;
        // A view's box has the shape of the value.
        let shape = |e: &Expr| match a.index.type_of(e.span) {
            Some(Ty::Tile { shape, .. }) => Some(shape),
            _other => None,
        };
        if shape(value) != shape(call.pointer) {
            return None;
        }
        format!("{view}.store([{start}], {})", text(value))
    } else {
        let other = call.arg(2, "other").map(|o| format!(", other = {}", text(o))).unwrap_or_default();
        format!("{view}.load([{start}], [{extent}]{other})")
    };
    let edits = vec![TextEdit { place: a.place(call.whole), text: new }];
    let title = "use a view, which masks automatically".to_string();
    Some(Action { title, kind: ActionKind::Refactor, edits, diagnostic: None })
}

/// The value that a name was declared with; any other expression itself.
fn value_of<'a>(a: &'a Analysis, e: &'a Expr) -> &'a Expr {
    let declared = || {
        let r = a.index.reference(e.span)?;
        let s = a.index.symbol(r.symbol)?;
        let at = s.span.filter(|_| matches!(s.kind, SymbolKind::Local(_)) && !s.mutable)?;
        declaration(a.root()?, at).map(|found| found.init)
    };
    if matches!(e.kind, ExprKind::Path(_)) { declared().unwrap_or(e) } else { e }
}

/// The parts of `start + arange(0, N)`, in either order, and of `arange(0, N)`.
fn start_and_extent<'a>(a: &Analysis, e: &'a Expr) -> Option<(Option<&'a Expr>, String)> {
    let extent = |e: &Expr| {
        let ExprKind::Call(f, args) = &e.kind else { return None };
        let [from, to] = args.as_slice() else { return None };
        let plain = a.text(f.span) == "arange" && from.name.is_none() && to.name.is_none();
        (plain && matches!(from.value.kind, ExprKind::Int(Some(0))))
            .then(|| a.text(to.value.span).to_string())
    };
    if let Some(n) = extent(e) {
        return Some((None, n));
    }
    let (x, y) = base_and_offsets(e)?;
    extent(y).map(|n| (Some(x), n)).or_else(|| extent(x).map(|n| (Some(y), n)))
}
