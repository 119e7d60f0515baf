//! Positions that are known when the program runs, where tiles and lists take compile-time ones: what looks them up.

use tk_ops::{MemoryOp, Op};
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::advice::SHOWN;
use super::builtins::Slots;
use super::cx::Cx;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::show;
use crate::types::{Elem, Ty};

impl Cx<'_> {
    /// A text that can be followed by an index.
    pub(super) fn operand(&self, span: Span) -> String {
        let text = self.text(span);
        if self.is_postfix(&text) { text } else { format!("({text})") }
    }

    /// Offers all pairs of two lists of positions, where `x.gather([r, c])` of one length is stored as a matrix.
    pub(super) fn all_positions(&self, d: Diagnostic, h: &HExpr, rank: u32) -> Option<Diagnostic> {
        let HKind::Builtin(row, args) = &h.kind else { return None };
        let [_, HArg::List(at), ..] = args.as_slice() else { return None };
        let [a, b] = at.as_slice() else { return None };
        let is_row =
            |h: &HExpr| matches!(&h.ty, Ty::Tile { shape, .. } if shape.dims().is_some_and(|d| d.len() == 1));
        let pairs = row.op == Op::Memory(MemoryOp::ViewGather) && rank == 2 && is_row(a) && is_row(b);
        let text = format!("{}[:, None], {}[None, :]", self.operand(a.span), self.operand(b.span));
        pairs.then(|| d.fix("gather all pairs of positions", a.span.to(b.span), text))
    }

    /// Says how elements at the positions of a list are picked, `x[[0, 2]]`.
    pub(super) fn list_of_positions(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        let text = self.text(h.span);
        match &h.ty {
            Ty::Tuple(ts) if text.starts_with('[') => d.note(format!(
                "elements at several positions are `gather(x, gather(I, arange(0, {})))`, with `const I = {text};`",
                ts.len()
            )),
            _ => d,
        }
    }

    /// Reports a tile of positions as the index at `place` of a tile of these extents.
    pub(super) fn positions_in_tile(
        &self,
        base: &HExpr,
        dims: &[Poly],
        (items, place): (&[Subscript], usize),
        (at, span): (&HExpr, Span),
    ) -> Option<Diagnostic> {
        let Ty::Tile { shape, .. } = &at.ty else { return None };
        let extents = shape.dims().filter(|d| !d.is_empty() && self.is_int(&at.ty))?;
        let shown = self.show(&at.ty);
        let message = format!("expected an integer, found `{shown}`");
        let d = Diagnostic::error(codes::TYPE_MISMATCH, at.span, message, super::this_is(&shown));
        let (x, index) = (self.operand(base.span), self.text(at.span));
        let others = || items.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, s)| s);
        let kept = others().all(|s| matches!(s, Subscript::Slice(None, None, _)));
        let single = others().all(|s| matches!(s, Subscript::Expr(e) if matches!(e.kind, ExprKind::Int(_))));
        let text = match (dims.len(), extents) {
            (1, _) => Some(format!("gather({x}, {index})")),
            (n, [count]) if kept => {
                let long = self.along(&index, (dims, place), count);
                (n > 1).then(|| format!("gather({x}, {long}, axis = {place})"))
            }
            (n, _) if single && items.len() == n => {
                let rest = items.iter().enumerate().map(|(i, s)| match s {
                    Subscript::Expr(e) if i != place => self.text(e.span),
                    _place => ":".to_string(),
                });
                Some(format!("gather({x}[{}], {index})", rest.collect::<Vec<_>>().join(", ")))
            }
            (_, _) => None,
        };
        Some(match text {
            Some(text) => d.fix("look the positions up with `gather`", span, text),
            None => d.note("`gather(x, index, axis = 0)` looks up positions along one axis"),
        })
    }

    /// An index of one dimension as one along an axis, the same for all other positions.
    pub(super) fn along(&self, index: &str, (dims, axis): (&[Poly], usize), count: &Poly) -> String {
        let index = if self.is_postfix(index) { index.to_string() } else { format!("({index})") };
        let places: Vec<&str> = (0..dims.len()).map(|i| if i == axis { ":" } else { "None" }).collect();
        let of = |(i, d): (usize, &Poly)| show::poly(self.hir(), if i == axis { count } else { d });
        let extents: Vec<String> = dims.iter().enumerate().map(of).collect();
        format!("broadcast_to({index}[{}], [{}])", places.join(", "), extents.join(", "))
    }

    /// The ends of `arange(a, b)`; reports how positions from a start that the program computes are written.
    pub(super) fn ends_of_arange(&mut self, s: &Slots) -> Option<(HExpr, HExpr)> {
        let (a, b) = (self.value(s.get("start")?), self.value(s.get("end")?));
        if a.ty.is_err() || b.ty.is_err() || !self.need_int(&a) || !self.need_int(&b) {
            return None;
        }
        let counted = self.counted_from(&a, &b).filter(|_| !a.konst);
        let Some(count) = counted else {
            return (self.need_const(&a) && self.need_const(&b)).then_some((a, b));
        };
        let text = format!("{} + arange(0, {count})", self.text(a.span));
        let message = "`arange` begins and ends at compile-time values";
        let d = Diagnostic::error(codes::NOT_CONST, a.span, message, "this is only known at run time");
        self.report(d.write_instead(s.span, text));
        None
    }

    /// The text of the count in `at + count`.
    fn counted_from(&self, at: &HExpr, end: &HExpr) -> Option<String> {
        let HKind::Builtin(row, args) = &end.kind else { return None };
        let [HArg::Expr(x), HArg::Expr(y)] = args.as_slice() else { return None };
        let text = |h: &HExpr| self.text(h.span);
        let count = if text(x) == text(at) { y } else { x };
        let is_sum = row.name == "+" && (text(x) == text(at) || text(y) == text(at));
        (is_sum && count.konst).then(|| text(count))
    }

    /// A compile-time position in a list; reports how one that the program computes is looked up.
    pub(super) fn list_position(&mut self, list: &HExpr, i: &ast::Expr, span: Span) -> Option<HExpr> {
        let h = self.value(i);
        if h.ty.is_err() || !self.need_int(&h) {
            return None;
        }
        let Ty::Tuple(ts) = &list.ty else { return self.need_const(&h).then_some(h) };
        let is_table = ts.iter().all(|t| self.dterm_of(t).is_some()) && self.is_fixed(list);
        if h.konst || !is_table {
            return self.need_const(&h).then_some(h);
        }
        let d = Diagnostic::error(
            codes::NOT_CONST,
            h.span,
            "a list can only be indexed by compile-time values",
            "this is only known at run time",
        );
        let (text, index) = (self.text(list.span), self.text(h.span));
        self.report(match &list.kind {
            HKind::Const(_) => {
                let text = format!("gather({text}, {index})");
                d.fix(format!("look it up: `{text}`"), span, text)
            }
            _variable => {
                let short = text.len() + index.len() <= SHOWN;
                let (name, index) = if short { (text.to_uppercase(), index) } else { ("T".into(), "i".into()) };
                d.note(format!(
                    "positions that the program computes are looked up in a constant: `const {name} = [..];` and `gather({name}, {index})`"
                ))
            }
        });
        None
    }

    /// Returns true for what is known at compile time, and for a variable whose value is.
    pub(super) fn is_fixed(&self, h: &HExpr) -> bool {
        h.konst || matches!(h.kind, HKind::Local(id) if self.local(id).known)
    }

    /// Says how a list of numbers, or of lists of them, becomes a tile: by a constant that has the type of one.
    pub(super) fn table_instead(&self, d: Diagnostic, h: &HExpr) -> Option<Diagnostic> {
        let mut dims = vec![];
        let elem = self.table_of(&h.ty, &mut dims)?;
        if !self.is_fixed(h) {
            return None;
        }
        let extents: Vec<String> = dims.iter().map(usize::to_string).collect();
        let ty = format!("tile[{elem}, {}]", extents.join(", "));
        Some(match self.let_of(&self.text(h.span)) {
            Some((name, _)) => {
                let source = self.p.sources.get(name.file).map_or("", |s| &s.text);
                let before = source.get(..name.start as usize).unwrap_or("");
                let start = before.trim_end().len().saturating_sub("let".len()) as u32;
                let text = format!("const {}: {ty}", self.p.sources.text(name));
                d.fix(format!("declare a constant tile: `{text}`"), Span { start, ..name }, text)
            }
            None => d.note(format!("a constant with the type of a tile is one: `const TABLE: {ty} = ..;`")),
        })
    }

    /// The element type of a list and its extents, if it is a list of scalars of one type or of such lists.
    fn table_of(&self, t: &Ty, dims: &mut Vec<usize>) -> Option<String> {
        let Ty::Tuple(ts) = t else {
            let Ty::Tile { elem: elem @ Elem::D(_), shape } = t else { return None };
            return shape.is_scalar().then(|| self.show_elem(elem));
        };
        dims.push(ts.len());
        let (first, rest) = ts.split_first()?;
        let depth = dims.len();
        let elem = self.table_of(first, dims)?;
        let same = rest.iter().all(|t| {
            let mut own = dims.get(..depth).unwrap_or_default().to_vec();
            self.table_of(t, &mut own).is_some_and(|e| e == elem) && own == *dims
        });
        same.then_some(elem)
    }
}
