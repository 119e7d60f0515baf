//! Lookup tables: compile-time lists of numbers that become tiles, and the types of constants that hold them.
//!
//! A list is a tuple until a tile is expected: by the type of a `const`, or by `gather`.

use tk_ops::DType;
use tk_syntax::{Diagnostic, Span, codes};

use super::ConstTy;
use super::cx::{Cx, Lit};
use crate::hir::{HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

/// The highest rank of a tile.
const MAX_RANK: usize = 5;

impl Cx<'_> {
    /// A list of numbers, or a list of such lists, as a tile; everything else as it is.
    pub fn as_table(&mut self, h: HExpr) -> Option<HExpr> {
        let Ty::Tuple(_) = h.ty else { return Some(h) };
        let mut leaves = vec![];
        let dims = self.table_dims(&h.ty, h.span, &mut leaves)?;
        if dims.len() > MAX_RANK {
            let message = format!("a table has at most {MAX_RANK} dimensions, and this has {}", dims.len());
            self.error(codes::TILE_RANK, h.span, message, format!("{} dimensions", dims.len()));
            return None;
        }
        let elem = self.common_term(&leaves, h.span)?;
        if !self.need_const(&h) {
            return None;
        }
        let shape = Shape::Dims(dims.into_iter().map(|n| Poly::int(n as i128)).collect());
        let span = h.span;
        Some(self.mk(HKind::Table(Box::new(h)), Ty::Tile { elem: Elem::D(elem), shape }, span, true))
    }

    /// The extents of a list, and the types of its numbers.
    fn table_dims(&mut self, t: &Ty, span: Span, leaves: &mut Vec<DTerm>) -> Option<Vec<usize>> {
        match t {
            Ty::Tile { elem: Elem::D(d), shape } if shape.is_scalar() => {
                leaves.push(*d);
                Some(vec![])
            }
            Ty::Tuple(parts) if !parts.is_empty() => {
                let mut inner: Option<Vec<usize>> = None;
                for p in parts {
                    let dims = self.table_dims(p, span, leaves)?;
                    if inner.as_ref().is_some_and(|before| *before != dims) {
                        let message = "the rows of a table have one length, but these differ";
                        self.error(codes::SHAPE_MISMATCH, span, message, "the rows differ in length");
                        return None;
                    }
                    inner = Some(dims);
                }
                let mut dims = vec![parts.len()];
                dims.extend(inner?);
                Some(dims)
            }
            other => {
                if !other.is_err() {
                    let shown = self.show(other);
                    let message = format!("a table holds numbers or bools, not `{shown}`");
                    self.error(codes::TYPE_MISMATCH, span, message, format!("this holds `{shown}`"));
                }
                None
            }
        }
    }

    /// The one type of the numbers of a table: literals take that of the others.
    fn common_term(&mut self, leaves: &[DTerm], span: Span) -> Option<DTerm> {
        let mut common: Option<DTerm> = None;
        for literals in [false, true] {
            for d in leaves.iter().copied() {
                if self.literal(d).is_some() != literals {
                    continue;
                }
                let Some(c) = common else {
                    common = Some(d);
                    continue;
                };
                if self.norm(c) != self.norm(d) && !self.adapt(d, c) {
                    let (a, b) = (self.show_elem(&Elem::D(c)), self.show_elem(&Elem::D(d)));
                    let message =
                        format!("the values of a table have one type, but these are `{a}` and `{b}`");
                    let d = Diagnostic::error(
                        codes::ELEMENT_MISMATCH,
                        span,
                        message,
                        "the values differ in type",
                    );
                    self.report(d);
                    return None;
                }
            }
        }
        common
    }

    /// The type of a constant. A number without a type stays a literal, in a list too, and is kept in the widest type.
    pub fn const_ty(&mut self, t: &Ty) -> ConstTy {
        match t {
            Ty::Tuple(parts) => ConstTy::Parts(parts.iter().map(|p| self.const_ty(p)).collect()),
            other => match self.dterm_of(other).and_then(|d| self.literal(d).map(|l| (d, l))) {
                Some((d, Lit::Int | Lit::Whole)) => {
                    self.adapt(d, DTerm::Known(DType::I64));
                    ConstTy::FlexInt
                }
                Some((d, Lit::Float)) => {
                    self.adapt(d, DTerm::Known(DType::F64));
                    ConstTy::FlexFloat
                }
                None => ConstTy::Fixed(self.resolve_ty(other)),
            },
        }
    }

    /// The value of a constant whose literals are floats, as a use of it may have it. Nothing for sums and products, which
    /// are the same number in integers.
    pub(super) fn as_real(&mut self, h: &HExpr) -> Option<HExpr> {
        let mut literals = vec![];
        self.integer_literals(&h.ty, &mut literals);
        if literals.is_empty() || !self.divides(h) {
            return None;
        }
        let (mark, reported) = (self.vars.mark(), self.p.notes.diags.len());
        for d in literals {
            self.adapt(d, DTerm::Known(DType::F64));
        }
        let mut real = h.clone();
        self.zonk_expr(&mut real);
        self.vars.reset(mark);
        // What is wrong in any case is reported of the value in integers.
        self.p.notes.diags.truncate(reported);
        Some(real)
    }

    /// The types of integer literals that a use may make floats.
    fn integer_literals(&self, t: &Ty, found: &mut Vec<DTerm>) {
        match t {
            Ty::Tuple(parts) => parts.iter().for_each(|p| self.integer_literals(p, found)),
            other => found.extend(self.dterm_of(other).filter(|d| self.literal(*d) == Some(Lit::Int))),
        }
    }

    /// Returns true for what may be another number in floats than in integers.
    fn divides(&self, h: &HExpr) -> bool {
        let mut found = match &h.kind {
            HKind::Builtin(row, _) => !matches!(row.name, "+" | "-" | "*" | "unary -"),
            HKind::Const(id) => self.hir().constant(*id).real.is_some(),
            HKind::Call { .. } | HKind::CallValue { .. } => true,
            _other => false,
        };
        crate::visit::look(h, &mut |e| found = found || self.divides(e));
        found
    }

    /// The type of one use of a constant: literals are new ones.
    pub fn const_use_ty(&mut self, t: ConstTy) -> Ty {
        let literal = |cx: &mut Self, l| Ty::Tile { elem: Elem::D(cx.fresh(l)), shape: Shape::scalar() };
        match t {
            ConstTy::Fixed(t) => t,
            ConstTy::FlexInt => literal(self, Lit::Int),
            ConstTy::FlexFloat => literal(self, Lit::Float),
            ConstTy::Parts(parts) => Ty::Tuple(parts.into_iter().map(|p| self.const_use_ty(p)).collect()),
        }
    }
}
