//! Calls of functions of NumPy and PyTorch whose arguments have another form here: `np.float32(v)`, `np.clip(a, 0, None)`,
//! `np.take(a, [1, 2])`, `a.reshape(16, -1)`, `sort(a, 1, true)`.

use tk_ops::table::{BuiltinParam, ParamKind, Receiver, Row};
use tk_ops::{DType, MemoryOp, Op};
use tk_syntax::ast::{self, ExprKind, UnOp};
use tk_syntax::{Diagnostic, codes};

use super::advice::SHOWN;
use super::cx::Cx;
use super::foreign::unwrapped;
use crate::hir::HExpr;
use crate::poly::Poly;
use crate::types::Ty;

/// `clip` with one of its limits: the function of the limit below and of the one above.
pub(super) fn clipped(x: &str, limits: &[String]) -> Option<String> {
    match limits {
        [low, high] if high == "None" && low != "None" => Some(format!("maximum({x}, {low})")),
        [low, high] if low == "None" && high != "None" => Some(format!("minimum({x}, {high})")),
        _ => None,
    }
}

/// What is left of a name of C or CUDA without what says its type, its rounding or that it is an intrinsic: `sin` of
/// `__sinf`, `float2half` of `__float2half_rn`.
pub(super) fn stems(name: &str) -> impl Iterator<Item = &str> {
    let (bare, rounded) = match name.rsplit_once('_') {
        Some((before, "rn" | "rz" | "ru" | "rd")) => (before, true),
        Some(_) | None => (name, false),
    };
    let plain = bare.strip_prefix("__").unwrap_or(bare);
    let typed = plain.strip_suffix("ll").or_else(|| plain.strip_suffix('f')).unwrap_or(plain);
    // `__fsqrt_rn`
    let after = plain.strip_prefix('f').filter(|_| rounded).unwrap_or(plain);
    [bare, plain, typed, after].into_iter().filter(move |s| *s != name)
}

/// Says of an argument that a parameter of this kind does not take: `None`, and a list.
fn refused(row: &Row, args: &[&ast::Expr]) -> Option<String> {
    let lists = |k: ParamKind| {
        matches!(k, ParamKind::Shape | ParamKind::ConstInts | ParamKind::Position | ParamKind::Positions)
    };
    args.iter().zip(row.params).find_map(|(e, p)| match e.kind {
        ExprKind::None => Some(format!("`{}` of `{}` cannot be `None`", p.name, row.name)),
        ExprKind::Array(_) if !lists(p.kind) => {
            Some(format!("`{}` of `{}` is a tile, not a list", p.name, row.name))
        }
        _ => None,
    })
}

/// The error for a method that a value does not have; `what` says what it is.
fn not_a_method(name: &ast::Name, what: &str) -> Diagnostic {
    let message = format!("`{}` {what}", name.text);
    Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method")
}

/// The operand of Python's `not`, at the beginning of this text.
pub(super) fn operand_of_not(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|(i, c)| {
        let rest = text.get(*i..).unwrap_or("");
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        let ends = matches!(c, ',' | ';' | '{' | '\n');
        depth < 0 || depth == 0 && (ends || ["&&", "||", "and ", "or "].iter().any(|w| rest.starts_with(w)))
    });
    text.get(..end.map_or(text.len(), |e| e.0)).unwrap_or(text).trim_end()
}

impl Cx<'_> {
    /// What takes the place of `np.name(args)`, where another name alone does not.
    pub(super) fn foreign_applied(
        &self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: tk_syntax::Span,
    ) -> Option<Diagnostic> {
        if let Some(d) = self.asserted_before(base, name, args, span) {
            return Some(d);
        }
        let module = self.module(base)?;
        let ours = self.name_here(&name.text);
        let message = format!("cannot find `{}`", module.text);
        let d = Diagnostic::error(codes::UNKNOWN_NAME, base.span, message, "unknown name");
        let unnamed = args.iter().take_while(|a| a.name.is_none());
        let exprs: Vec<&ast::Expr> = unnamed.map(|a| &a.value).collect();
        if let ("take", [x, at]) = (name.text.as_str(), exprs.as_slice())
            && matches!(at.kind, ExprKind::Int(_))
        {
            let text = format!("{}[{}]", self.operand(x.span), self.text(at.span));
            return Some(d.fix(format!("write `{text}`"), span, text));
        }
        let row = self.find_row(ours);
        if exprs.len() < args.len() {
            return Some(d.note(format!("{}; `{ours}` is its name here", refused(row?, &exprs)?)));
        }
        if let (Some(to), [one]) = (DType::parse(ours), exprs.as_slice()) {
            let text = self.cast_text(one.span, to.name());
            return Some(d.fix("cast with `as`", span, text));
        }
        let texts: Vec<String> = exprs.iter().map(|e| self.text(e.span)).collect();
        let limited = match (ours, texts.split_first()) {
            ("clamp", Some((x, limits))) => clipped(unwrapped(x), limits),
            _ => None,
        };
        match limited {
            Some(text) => Some(d.write_instead(span, text)),
            None => Some(d.note(format!("{}; `{ours}` is its name here", refused(row?, &exprs)?))),
        }
    }

    /// PyTorch's `t.expand(4, 4)` and `t.clamp(min = 0)`.
    pub(super) fn with_other_arguments(
        &self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: tk_syntax::Span,
    ) -> Option<Diagnostic> {
        let x = self.text(base.span);
        let x = unwrapped(&x);
        let limit = |a: &ast::Arg| match a.name.as_ref().map(|n| n.text.as_str()) {
            Some("min") => Some("maximum"),
            Some("max") => Some("minimum"),
            Some(_) | None => None,
        };
        let text = match (name.text.as_str(), args) {
            ("expand", [_, _, ..]) => {
                let all: Vec<String> = args.iter().map(|a| self.text(a.value.span)).collect();
                format!("broadcast_to({x}, [{}])", all.join(", "))
            }
            ("clamp" | "clip", [one]) => format!("{}({x}, {})", limit(one)?, self.text(one.value.span)),
            _ => return None,
        };
        let d = not_a_method(name, "is a function, not a method");
        Some(d.fix(format!("call `{text}`"), span, text))
    }

    /// `assert (a == b).all()`, where the call of `assert` ends before the method.
    fn asserted_before(
        &self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: tk_syntax::Span,
    ) -> Option<Diagnostic> {
        let ExprKind::Call(f, given) = &base.kind else { return None };
        let ([one], [], "all" | "any") = (given.as_slice(), args, name.text.as_str()) else { return None };
        if self.text(f.span) != "assert" {
            return None;
        }
        let d = not_a_method(name, "is a function, not a method");
        let text = format!("assert({}({}))", name.text, self.text(one.value.span));
        Some(d.fix(format!("write `{text}`"), span, text))
    }

    /// Reports a method of views on a tile: `a.load([0, 0], [32, 8])`.
    pub(super) fn loaded_already(
        &self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: tk_syntax::Span,
    ) -> Option<Diagnostic> {
        let row = tk_ops::rows::find(&name.text, Receiver::View)?;
        let Op::Memory(op) = row.op else { return None };
        let text = self.operand(base.span);
        let x = if text.len() <= SHOWN { text.as_str() } else { "x" };
        let d = not_a_method(name, "is a method of views, and this is a tile");
        Some(match op {
            MemoryOp::ViewLoad => match slices_of(args) {
                Some(slices) => {
                    let part = format!("{text}[{slices}]");
                    let d = d.note("a tile is loaded already");
                    d.fix(format!("slice it: `{part}`"), span, part)
                }
                None => {
                    d.note(format!("a tile is loaded already; a part of it is a slice, as in `{x}[0:8]`"))
                }
            },
            MemoryOp::ViewGather => {
                d.note(format!("`gather({x}, index, axis = 0)` takes positions along one axis of a tile"))
            }
            MemoryOp::ViewStore | MemoryOp::ViewScatter => d.note(format!(
                "a tile is a value that does not change; memory is a `mut view`, as in `y.store([0], {x})`"
            )),
            _other => return None,
        })
    }

    /// Reports `sort(v, 1, true)`, where an axis and a `bool` are in the places of values before them.
    pub(super) fn options_without_names(&mut self, row: &Row, args: &[ast::Arg]) -> bool {
        let pairs = row.params.iter().zip(row.params.iter().skip(1));
        let is_left_out = |p: &BuiltinParam| p.kind == ParamKind::Value && p.default.is_some();
        let from = pairs.into_iter().position(|(p, q)| is_left_out(p) && q.kind == ParamKind::Axis);
        let Some(from) = from else { return false };
        let unnamed = args.iter().take_while(|a| a.name.is_none()).map(|a| &a.value).skip(from);
        let mut params = row.params.iter().skip(from);
        let (mut values, mut names) = (vec![], vec![]);
        for e in unnamed {
            let wanted = match &e.kind {
                ExprKind::Int(_) => Some(ParamKind::Axis),
                ExprKind::Unary(UnOp::Neg, x) if matches!(x.kind, ExprKind::Int(_)) => Some(ParamKind::Axis),
                ExprKind::Bool(_) => Some(ParamKind::ConstBool),
                _other => None,
            };
            let Some(next) = params.next() else { return false };
            let found = match wanted.filter(|k| *k != next.kind) {
                Some(kind) => params.find(|p| p.kind == kind),
                None => Some(next),
            };
            let Some(p) = found else { return false };
            if !values.is_empty() || p.name != next.name {
                values.push(e);
                names.push(p.name);
            }
        }
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
        let span = first.span.to(last.span);
        let list: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        let message = format!("`{}` takes {} by name here", row.name, list.join(" and "));
        let label = if values.len() == 1 { "positional argument" } else { "positional arguments" };
        let d = Diagnostic::error(codes::ARGUMENT_NAME, span, message, label);
        let title = format!("name {} {}", if values.len() == 1 { "it" } else { "them" }, list.join(" and "));
        self.report(d.fix(title, span, self.with_names(&values, &names)));
        true
    }

    /// The list of extents for `a.reshape(16, -1)`, where one is not written: with its number, if that is known.
    pub(super) fn with_inferred(&mut self, base: &HExpr, items: &[&ast::Expr]) -> Option<Option<String>> {
        let at = items.iter().position(|e| is_inferred(e))?;
        let Ty::Tile { shape, .. } = &base.ty else { return Some(None) };
        let count = self.count(shape);
        let mut others = vec![];
        for (_, item) in items.iter().enumerate().filter(|(i, _)| *i != at) {
            let Some(extent) = self.extent(item) else { return Some(None) };
            others.push(extent);
        }
        let extent = count.and_then(|c| self.remaining(&c, &others));
        let texts = |extent: String| {
            let one = |(i, e): (usize, &&ast::Expr)| {
                if i == at { extent.clone() } else { self.text(e.span) }
            };
            format!("[{}]", items.iter().enumerate().map(one).collect::<Vec<_>>().join(", "))
        };
        Some(extent.map(texts))
    }

    /// The extent that keeps a number of elements beside other extents.
    fn remaining(&self, count: &Poly, others: &[Poly]) -> Option<String> {
        let rest = others.iter().try_fold(count.clone(), |r, e| self.quotient(&r, e))?;
        rest.opaque().is_empty().then(|| crate::show::poly(self.hir(), &rest))
    }

    /// Reports an extent of -1 in `reshape`, with the extent that keeps the number of elements.
    pub(super) fn inferred_extent(&mut self, e: &ast::Expr, count: &Poly) -> bool {
        let ExprKind::Array(items) = &e.kind else { return false };
        let Some((at, item)) = items.iter().enumerate().find(|(_, e)| is_inferred(e)) else { return false };
        let mut others = vec![];
        for (_, item) in items.iter().enumerate().filter(|(i, _)| *i != at) {
            let Some(extent) = self.extent(item) else { return true };
            others.push(extent);
        }
        let message = "an extent is not inferred, it is written";
        let d = Diagnostic::error(codes::EXTENT, item.span, message, "not an extent");
        let d = match self.remaining(count, &others) {
            Some(text) => d.write_instead(item.span, text),
            None => d.note("it is the number of elements by the product of the other extents"),
        };
        self.report(d);
        true
    }
}

/// Returns true for -1 in the place of an extent.
fn is_inferred(e: &ast::Expr) -> bool {
    match &e.kind {
        ExprKind::Unary(UnOp::Neg, x) => matches!(x.kind, ExprKind::Int(Some(1))),
        _ => false,
    }
}

/// The slices of a box whose corner and extents are written as numbers.
fn slices_of(args: &[ast::Arg]) -> Option<String> {
    let numbers = |a: &ast::Arg| match &a.value.kind {
        ExprKind::Array(items) if a.name.is_none() => items.iter().map(number).collect::<Option<Vec<u64>>>(),
        _other => None,
    };
    let [at, extents] = args else { return None };
    let (at, extents) = (numbers(at)?, numbers(extents)?);
    let ends = at.iter().zip(&extents).map(|(a, n)| Some(format!("{a}:{}", a.checked_add(*n)?)));
    let slices = ends.collect::<Option<Vec<String>>>()?;
    (at.len() == extents.len() && !at.is_empty()).then(|| slices.join(", "))
}

fn number(e: &ast::Expr) -> Option<u64> {
    match &e.kind {
        ExprKind::Int(Some(n)) => u64::try_from(*n).ok(),
        _other => None,
    }
}
