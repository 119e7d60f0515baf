//! Operators: arithmetic, comparisons, logic, pointer arithmetic. Each is a row of the op table.

use tk_ops::DTypeSet;
use tk_ops::table::{Receiver, Row};
use tk_syntax::ast::{self, BinOp, ExprKind, UnOp};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use super::types::MAX_RANK;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Ty};

impl Cx<'_> {
    /// The row of an operator.
    pub fn op_row(&mut self, name: &str, span: Span) -> Option<&'static Row> {
        let row = tk_ops::rows::find(name, Receiver::None);
        if row.is_none() {
            self.error(codes::INTERNAL, span, format!("the op table has no row `{name}`"), "");
        }
        row
    }

    pub fn unary(&mut self, op: UnOp, x: &ast::Expr, span: Span) -> HExpr {
        // `-` before a literal belongs to it.
        if let (UnOp::Neg, ExprKind::Int(Some(n))) = (op, &x.kind)
            && let Ok(n) = i128::try_from(*n)
        {
            return self.lit(HKind::Int(-n), super::cx::Lit::Int, span);
        }
        let h = self.value(x);
        if h.ty.is_err() {
            return HExpr::err(span);
        }
        if let (UnOp::Neg, HKind::Float(f)) = (op, &h.kind) {
            return HExpr { kind: HKind::Float(-f), span, ..h };
        }
        if let Some(flipped) = self.complement(&h, span) {
            return flipped;
        }
        let (name, shown) = match op {
            UnOp::Neg => ("unary -", "`-`"),
            UnOp::Not => ("unary !", "`!`"),
        };
        let Some(row) = self.op_row(name, span) else { return HExpr::err(span) };
        self.elementwise(row, shown, vec![Some(h)], span)
    }

    /// `~x` of integers, which the lexer takes for `!x` and reports.
    fn complement(&mut self, h: &HExpr, span: Span) -> Option<HExpr> {
        let sign = Span { end: span.start + 1, ..span };
        let operand = HExpr { span, ..h.clone() };
        let dtype = match self.dterm_of(&h.ty).filter(|_| self.text(sign) == "~")? {
            DTerm::Known(dtype) if dtype.is_int() => dtype,
            DTerm::Known(_) => return None,
            DTerm::Param(_) | DTerm::Acc(_) | DTerm::Infer(_) => return Some(operand),
        };
        let ones = if dtype.is_signed() { "-1".to_string() } else { format!("{}.max", dtype.name()) };
        let text = format!("{} ^ {ones}", self.operand(h.span));
        let d = Diagnostic::error(codes::BAD_TOKEN, sign, "unexpected character `~`", "");
        self.report(d.fix(format!("flip the bits: `{text}`"), span, format!("({text})")));
        Some(operand)
    }

    pub fn binary(&mut self, op: BinOp, a: &ast::Expr, b: &ast::Expr, span: Span) -> HExpr {
        let l = self.value(a);
        let r = self.value(b);
        if op == BinOp::Div {
            self.floored(span, (a.span, [&l.ty, &r.ty]), "//");
        }
        self.binary_op(op, l, r, span)
    }

    /// An infix operator on checked operands.
    pub fn binary_op(&mut self, op: BinOp, l: HExpr, r: HExpr, span: Span) -> HExpr {
        if l.ty.is_err() || r.ty.is_err() {
            return HExpr::err(span);
        }
        let sym = op.symbol();
        let what = format!("`{sym}`");
        match (&l.ty, &r.ty) {
            (Ty::Tile { elem: Elem::Ptr { .. }, .. }, _) | (_, Ty::Tile { elem: Elem::Ptr { .. }, .. }) => {
                return self.pointer_op(op, l, r, span);
            }
            (Ty::Tuple(_), Ty::Tuple(_)) if matches!(op, BinOp::Eq | BinOp::Ne) => {
                return self.tuple_eq(op, l, r, span);
            }
            (Ty::List(..), Ty::List(..) | Ty::Tuple(_)) | (Ty::Tuple(_), Ty::List(..))
                if matches!(op, BinOp::Eq | BinOp::Ne) =>
            {
                return self.list_eq(op, l, r, span);
            }
            (Ty::ShapeTy, Ty::Tuple(_)) | (Ty::Tuple(_), Ty::ShapeTy)
                if matches!(op, BinOp::Eq | BinOp::Ne) =>
            {
                let (l, r) = (shape_tuple(l), shape_tuple(r));
                return self.tuple_eq(op, l, r, span);
            }
            (Ty::DType, Ty::DType) | (Ty::ShapeTy, Ty::ShapeTy) if matches!(op, BinOp::Eq | BinOp::Ne) => {
                let Some(row) = self.op_row(sym, span) else { return HExpr::err(span) };
                let konst = l.konst && r.konst;
                return self.mk(
                    HKind::Builtin(row, vec![HArg::Expr(l), HArg::Expr(r)]),
                    Ty::bool(),
                    span,
                    konst,
                );
            }
            (Ty::Tile { .. }, Ty::Tile { .. }) => {}
            (a, _) => {
                let (bad, other) = if matches!(a, Ty::Tile { .. }) { (&r, &l) } else { (&l, &r) };
                let (bad_ty, at) = (self.show(&bad.ty), bad.span);
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("{what} works on tiles and scalars, not on `{bad_ty}`"),
                    super::this_is(&bad_ty),
                );
                let d = if op == BinOp::Add { self.gather_instead(d, bad, other, span) } else { d };
                let d = match &bad.kind {
                    HKind::Str(s) if s.len() == 1 && !matches!(other.kind, HKind::Str(_)) => {
                        let code: u32 = s.chars().next().map_or(0, u32::from);
                        let d = d.note(format!("a character is its number, {code}"));
                        d.fix("write its number", bad.span, code.to_string())
                    }
                    _ => d,
                };
                return self.fail(if d.notes.is_empty() { self.read_first(d, bad) } else { d });
            }
        }
        let scalars = is_scalar(&l.ty) && is_scalar(&r.ty);
        if scalars && matches!(op, BinOp::And | BinOp::Or) && is_bool(self, &l.ty) && is_bool(self, &r.ty) {
            let konst = l.konst && r.konst;
            let kind = HKind::ShortCircuit { or: op == BinOp::Or, lhs: Box::new(l), rhs: Box::new(r) };
            return self.mk(kind, Ty::bool(), span, konst);
        }
        if let Some(h) = self.logic_hint(op, &l, &r, span) {
            return h;
        }
        if matches!(op, BinOp::Shl | BinOp::Shr) {
            return self.shift(op, l, r, span);
        }
        if matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
            && let Some(h) = self.signs(&l, &r, span)
        {
            return h;
        }
        let Some(row) = self.op_row(sym, span) else { return HExpr::err(span) };
        self.elementwise(row, &what, vec![Some(l), Some(r)], span)
    }

    /// `a & b` on bools: the fix is `&&`.
    fn logic_hint(&mut self, op: BinOp, l: &HExpr, r: &HExpr, span: Span) -> Option<HExpr> {
        let (bitwise, logic) = match op {
            BinOp::BitAnd => ("&", "&&"),
            BinOp::BitOr => ("|", "||"),
            _ => return None,
        };
        if !is_bool(self, &l.ty) || !is_bool(self, &r.ty) {
            return None;
        }
        let between = Span { start: l.span.end, end: r.span.start, ..span };
        let text = self.text(between);
        let message = format!("`{bitwise}` works on integers, not on `bool`");
        let d = Diagnostic::error(codes::CLASS, span, message, "both operands are `bool`");
        // There is no `&&=`.
        let assigned = text.trim_end().ends_with('=');
        let fixed = if assigned {
            format!(" = {} {logic} ", self.text(l.span))
        } else {
            text.replace(bitwise, logic)
        };
        let looser = assigned && self.text(r.span).contains("||");
        Some(self.fail(if looser { d } else { d.fix(format!("use `{logic}`"), between, fixed) }))
    }

    fn signs(&mut self, l: &HExpr, r: &HExpr, span: Span) -> Option<HExpr> {
        let (a, b) = (self.dterm_of(&l.ty)?, self.dterm_of(&r.ty)?);
        let (x, y) = (self.set_of(a)?, self.set_of(b)?);
        let clash = (x.within(DTypeSet::SINT) && y.within(DTypeSet::UINT))
            || (x.within(DTypeSet::UINT) && y.within(DTypeSet::SINT));
        if !clash {
            return None;
        }
        let (ta, tb) = (self.show(&l.ty), self.show(&r.ty));
        let to = self.show_elem(&Elem::D(a));
        let cast = self.cast_text(r.span, &to);
        let d = Diagnostic::error(
            codes::SIGNEDNESS,
            span,
            format!("comparison of a signed and an unsigned integer: `{ta}` and `{tb}`"),
            "",
        )
        .label(l.span, super::this_is(&ta))
        .label(r.span, super::this_is(&tb))
        .fix(format!("cast to `{to}`"), r.span, cast);
        Some(self.fail(d))
    }

    /// The amount of a shift keeps its own type.
    fn shift(&mut self, op: BinOp, l: HExpr, r: HExpr, span: Span) -> HExpr {
        let sym = op.symbol();
        let what = format!("`{sym}`");
        let Some(row) = self.op_row(sym, span) else { return HExpr::err(span) };
        for h in [&l, &r] {
            if let Some(d) = self.dterm_of(&h.ty)
                && !self.need_class(&what, d, DTypeSet::INT, h.span)
            {
                return HExpr::err(span);
            }
        }
        let Some(shape) = self.broadcast(&what, &[&l, &r]) else { return HExpr::err(span) };
        let Ty::Tile { elem, .. } = l.ty.clone() else { return HExpr::err(span) };
        let konst = l.konst && r.konst && shape.is_scalar();
        self.mk(
            HKind::Builtin(row, vec![HArg::Expr(l), HArg::Expr(r)]),
            Ty::Tile { elem, shape },
            span,
            konst,
        )
    }

    /// `p + i`, `i + p`, `p - i`: offsets count elements.
    fn pointer_op(&mut self, op: BinOp, l: HExpr, r: HExpr, span: Span) -> HExpr {
        let is_ptr = |h: &HExpr| matches!(&h.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. });
        let (ptr, off) = match op {
            BinOp::Add if is_ptr(&l) && !is_ptr(&r) => (l, r),
            BinOp::Add if is_ptr(&r) && !is_ptr(&l) => (r, l),
            BinOp::Sub if is_ptr(&l) && !is_ptr(&r) => (l, r),
            _ => {
                let d = Diagnostic::error(
                    codes::POINTER_OP,
                    span,
                    format!("`{}` is not defined for these pointers", op.symbol()),
                    "",
                )
                .note("a pointer takes `+` and `-` with an integer offset that counts elements");
                return self.fail(d);
            }
        };
        match self.dterm_of(&off.ty) {
            Some(d) => {
                if !self.need_class("a pointer offset", d, DTypeSet::INT, off.span) {
                    return HExpr::err(span);
                }
            }
            None => {
                let shown = self.show(&off.ty);
                return self.error(
                    codes::POINTER_OP,
                    off.span,
                    format!("a pointer offset is an integer, not `{shown}`"),
                    super::this_is(&shown),
                );
            }
        }
        let Some(row) = self.op_row(op.symbol(), span) else { return HExpr::err(span) };
        let Some(shape) = self.broadcast("a pointer offset", &[&ptr, &off]) else { return HExpr::err(span) };
        let Ty::Tile { elem, .. } = ptr.ty.clone() else { return HExpr::err(span) };
        self.mk(
            HKind::Builtin(row, vec![HArg::Expr(ptr), HArg::Expr(off)]),
            Ty::Tile { elem, shape },
            span,
            false,
        )
    }

    /// `(a, b) == (c, d)`: all elements equal.
    fn tuple_eq(&mut self, op: BinOp, l: HExpr, r: HExpr, span: Span) -> HExpr {
        let (Ty::Tuple(a), Ty::Tuple(b)) = (&l.ty, &r.ty) else { return HExpr::err(span) };
        if a.len() != b.len() {
            let (m, n) = (a.len(), b.len());
            return self.error(codes::SHAPE_MISMATCH, span, format!("{m} values are compared with {n}"), "");
        }
        let mut parts = vec![];
        for i in 0..a.len() as u32 {
            let (x, y) = (self.field(&l, i), self.field(&r, i));
            parts.push(self.binary_op(BinOp::Eq, x, y, span));
        }
        self.all_equal(op, parts, span)
    }

    /// `x.shape == y.shape` of views whose rank is a parameter: all entries that there are in a specialization are equal.
    fn list_eq(&mut self, op: BinOp, l: HExpr, r: HExpr, span: Span) -> HExpr {
        let count = |h: &HExpr| match &h.ty {
            Ty::List(_, n) => Some(n.clone()),
            Ty::Tuple(ts) => Some(Poly::int(ts.len() as i128)),
            _ => None,
        };
        let (Some(m), Some(n)) = (count(&l), count(&r)) else { return HExpr::err(span) };
        if !self.dims_equal(&m, &n) {
            let (m, n) = (crate::show::poly(self.hir(), &m), crate::show::poly(self.hir(), &n));
            return self.error(codes::SHAPE_MISMATCH, span, format!("{m} values are compared with {n}"), "");
        }
        let item = |cx: &mut Self, h: &HExpr, i: u32| match &h.ty {
            Ty::List(t, _) => {
                let (t, at) = (t.clone(), cx.mk(HKind::Int(i.into()), Ty::i32(), span, true));
                cx.entry(h.clone(), at, &t, span)
            }
            _ => cx.field(h, i),
        };
        let known = self.known_rank(&m);
        let mut parts = vec![];
        for i in 0..known.unwrap_or(MAX_RANK as u32) {
            let (x, y) = (item(self, &l, i), item(self, &r, i));
            let equal = self.binary_op(BinOp::Eq, x, y, span);
            if known.is_some() {
                parts.push(equal);
                continue;
            }
            // Decided by each specialization: `m <= i || x == y`.
            let (count, at) =
                (self.poly_expr(&m, span), self.mk(HKind::Int(i.into()), Ty::i32(), span, true));
            let absent = self.binary_op(BinOp::Le, count, at, span);
            let kind = HKind::ShortCircuit { or: true, lhs: Box::new(absent), rhs: Box::new(equal) };
            parts.push(self.mk(kind, Ty::bool(), span, false));
        }
        self.all_equal(op, parts, span)
    }

    /// All of these conditions for `==`; not all of them for `!=`.
    fn all_equal(&mut self, op: BinOp, parts: Vec<HExpr>, span: Span) -> HExpr {
        let mut all: Option<HExpr> = None;
        for one in parts {
            if one.ty.is_err() {
                return one;
            }
            all = Some(match all {
                None => one,
                Some(before) => {
                    let konst = before.konst && one.konst;
                    self.mk(
                        HKind::ShortCircuit { or: false, lhs: Box::new(before), rhs: Box::new(one) },
                        Ty::bool(),
                        span,
                        konst,
                    )
                }
            });
        }
        let all = all.unwrap_or_else(|| self.mk(HKind::Bool(true), Ty::bool(), span, true));
        if op == BinOp::Eq {
            return all;
        }
        let Some(row) = self.op_row("unary !", span) else { return HExpr::err(span) };
        let konst = all.konst;
        self.mk(HKind::Builtin(row, vec![HArg::Expr(all)]), Ty::bool(), span, konst)
    }

    /// Element `i` of a tuple.
    pub fn field(&self, h: &HExpr, i: u32) -> HExpr {
        if let HKind::Tuple(es) = &h.kind
            && let Some(e) = es.get(i as usize)
        {
            return e.clone();
        }
        let ty = match &h.ty {
            Ty::Tuple(ts) => ts.get(i as usize).cloned().unwrap_or(Ty::Err),
            _ => Ty::Err,
        };
        self.mk(HKind::Field(Box::new(h.clone()), i), ty, h.span, h.konst)
    }
}

fn is_scalar(t: &Ty) -> bool {
    matches!(t, Ty::Tile { shape, .. } if shape.is_scalar())
}

pub(crate) fn is_bool(cx: &Cx, t: &Ty) -> bool {
    cx.dterm_of(t) == Some(DTerm::Known(tk_ops::DType::Bool))
}

/// A known shape as the tuple of its extents.
fn shape_tuple(h: HExpr) -> HExpr {
    match h.kind {
        HKind::Shape(dims) => {
            let ty = Ty::Tuple(dims.iter().map(|d| d.ty.clone()).collect());
            HExpr { kind: HKind::Tuple(dims), ty, span: h.span, konst: h.konst }
        }
        kind => HExpr { kind, ..h },
    }
}
