//! The types of the remaining builtins: creation, `where`, random numbers, control, tests.

use tk_ops::{ControlOp, CreateOp, DType, DTypeSet, ElementwiseOp, HostOp, Op, RandomOp, ReduceOp};
use tk_syntax::ast;
use tk_syntax::{Diagnostic, codes};

use super::Slots;
use crate::check::cx::{Cx, Lit};
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

pub(super) fn tile(d: DType, shape: Shape) -> Ty {
    Ty::Tile { elem: Elem::D(DTerm::Known(d)), shape }
}

impl Cx<'_> {
    pub fn other_row(&mut self, s: Slots) -> HExpr {
        let span = s.span;
        let h = match s.row.op {
            Op::Create(o) => self.create_row(&s, o),
            Op::Shape(o) => self.shape_row(&s, o),
            Op::Elementwise(o) => self.element_row(&s, o),
            Op::Reduce(ReduceOp::Custom) => self.fold(&s, true),
            Op::Reduce(_) => self.softmax_row(&s),
            Op::Scan(o) => self.scan_row(&s, o),
            Op::Dot(o) => self.dot_row(&s, o),
            Op::Random(o) => self.random_row(&s, o),
            Op::Control(o) => self.control_row(&s, o),
            Op::Host(o) => self.host_row(&s, o),
            Op::Memory(_) | Op::Atomic(_) | Op::Target => None,
        };
        h.unwrap_or_else(|| HExpr::err(span))
    }

    pub fn built(&self, s: &Slots, args: Vec<HArg>, ty: Ty, konst: bool) -> Option<HExpr> {
        Some(self.mk(HKind::Builtin(s.row, args), ty, s.span, konst))
    }

    /// A dtype argument.
    pub fn dtype_slot(&mut self, s: &Slots, name: &str) -> Option<(HExpr, DTerm)> {
        let p = s.row.params.iter().find(|p| p.name == name)?;
        let h = self.plain_arg(p, s.get(name)?);
        self.need_dtype(h)
    }

    pub fn plain_slot(&mut self, s: &Slots, name: &str) -> Option<HArg> {
        let Some(e) = s.get(name) else { return Some(HArg::Default) };
        let p = s.row.params.iter().find(|p| p.name == name)?;
        let h = self.plain_arg(p, e);
        (!h.ty.is_err()).then_some(HArg::Expr(h))
    }

    fn create_row(&mut self, s: &Slots, op: CreateOp) -> Option<HExpr> {
        if op == CreateOp::Arange {
            let (a, b) = self.ends_of_arange(s)?;
            let len = self.poly(&b)?.sub(&self.poly(&a)?)?;
            if len.as_int().is_some_and(|n| n < 1) {
                self.error(
                    codes::EXTENT,
                    s.span,
                    format!(
                        "`arange` makes at least one element, but this has {}",
                        len.as_int().unwrap_or(0)
                    ),
                    "",
                );
                return None;
            }
            return self.built(
                s,
                vec![HArg::Expr(a), HArg::Expr(b)],
                tile(DType::I32, Shape::Dims(vec![len])),
                false,
            );
        }
        let shape = self.shape_arg(s.get("shape")?)?;
        let (dh, d) = self.dtype_slot(s, "dtype")?;
        let ty = Ty::Tile { elem: Elem::D(d), shape: shape.clone() };
        if s.row.param("value").is_none() {
            return self.built(s, vec![HArg::Shape(shape), HArg::Expr(dh)], ty, false);
        }
        let v = self.value(s.get("value")?);
        let v = self.coerce(v, &Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() }, "the value");
        if v.ty.is_err() {
            return None;
        }
        self.built(s, vec![HArg::Shape(shape), HArg::Expr(v), HArg::Expr(dh)], ty, false)
    }

    /// A tile argument: elements and extents.
    pub fn tile_slot(&mut self, s: &Slots, name: &str) -> Option<(HExpr, Elem, Shape)> {
        let h = self.value_slot(s, name)?;
        self.need_tile(s, h)
    }

    /// The elements and extents of a value that must be a tile.
    pub fn need_tile(&mut self, s: &Slots, h: HExpr) -> Option<(HExpr, Elem, Shape)> {
        match h.ty.clone() {
            Ty::Tile { elem, shape } => Some((h, elem, shape)),
            other => {
                let shown = self.show(&other);
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    h.span,
                    format!("`{}` works on tiles, not on `{shown}`", s.row.name),
                    super::super::this_is(&shown),
                );
                let d = match self.method_instead(s, &h) {
                    Some(text) => d.fix(format!("call `{text}`"), s.span, text),
                    None => self.read_first(d, &h),
                };
                let is_one = matches!(&h.ty, Ty::Tuple(ts) if ts.len() == 1) && !h.konst;
                self.report(if is_one { d.note(crate::check::advice::ONE_ELEMENT) } else { d });
                None
            }
        }
    }

    pub fn dims_of(&mut self, s: &Slots, shape: &Shape) -> Option<Vec<Poly>> {
        match shape {
            Shape::Dims(d) => Some(d.clone()),
            Shape::Param(_) => {
                self.error(
                    codes::UNKNOWN_EXTENT,
                    s.span,
                    format!("`{}` needs a tile whose rank is known", s.row.name),
                    "",
                );
                None
            }
        }
    }

    fn element_row(&mut self, s: &Slots, op: ElementwiseOp) -> Option<HExpr> {
        match op {
            ElementwiseOp::Select => self.where_row(s),
            ElementwiseOp::Bitcast => self.bitcast_row(s),
            ElementwiseOp::Cast => self.cast_row(s),
            _ => {
                let what = format!("`{}`", s.row.name);
                let values = s
                    .row
                    .params
                    .iter()
                    .map(|p| s.get(p.name).map(|e| self.plain_arg(p, e)))
                    .collect::<Vec<_>>();
                if values.iter().flatten().any(|h| h.ty.is_err()) {
                    return None;
                }
                Some(self.elementwise(s.row, &what, values, s.span))
            }
        }
    }

    /// `where(cond, a, b)`: numbers, bools or pointers.
    fn where_row(&mut self, s: &Slots) -> Option<HExpr> {
        let c = self.value(s.get("cond")?);
        let (mut a, mut b) = (self.value(s.get("a")?), self.value(s.get("b")?));
        if c.ty.is_err() || a.ty.is_err() || b.ty.is_err() {
            return None;
        }
        if self.dterm_of(&c.ty) != Some(DTerm::Known(DType::Bool)) {
            let shown = self.show(&c.ty);
            let message = format!("the condition of `where` must be `bool`, not `{shown}`");
            let mut d = Diagnostic::error(codes::MASK, c.span, message, super::super::this_is(&shown));
            if self.dterm_of(&c.ty).is_some() {
                d = self.compare_with_zero(d, c.span);
            }
            self.report(d);
            return None;
        }
        let elem = match (&a.ty, &b.ty) {
            (Ty::Tile { elem: x @ Elem::Ptr { .. }, .. }, Ty::Tile { elem: y @ Elem::Ptr { .. }, .. }) => {
                let (x, y) = (x.clone(), y.clone());
                if !self.same_elem(&x, &y) {
                    let (ta, tb) = (self.show(&a.ty), self.show(&b.ty));
                    self.error(
                        codes::ELEMENT_MISMATCH,
                        s.span,
                        format!("`where` needs equal types, but has `{ta}` and `{tb}`"),
                        "the two values differ in type",
                    );
                    return None;
                }
                x
            }
            _ => {
                for h in [&a, &b] {
                    if self.dterm_of(&h.ty).is_none() {
                        let shown = self.show(&h.ty);
                        let d = Diagnostic::error(
                            codes::TYPE_MISMATCH,
                            h.span,
                            format!("`where` works on tiles and scalars, not on `{shown}`"),
                            super::super::this_is(&shown),
                        );
                        self.report(self.read_first(d, h));
                        return None;
                    }
                }
                Elem::D(self.join_elems("`where`", &mut [&mut a, &mut b])?)
            }
        };
        let shape = self.broadcast("`where`", &[&c, &a, &b])?;
        let konst = shape.is_scalar() && c.konst && a.konst && b.konst;
        self.built(s, vec![HArg::Expr(c), HArg::Expr(a), HArg::Expr(b)], Ty::Tile { elem, shape }, konst)
    }

    /// `softmax(x, axis)`; without an axis, along the last one of any rank.
    fn softmax_row(&mut self, s: &Slots) -> Option<HExpr> {
        let (x, elem, shape) = self.tile_slot(s, "x")?;
        let Elem::D(d) = elem else { return None };
        if !self.need_class("`softmax`", d, DTypeSet::FLOAT, x.span) {
            return None;
        }
        let axis = match (s.get("axis"), &shape) {
            (Some(e), Shape::Dims(dims)) => self.axis(e, dims.len())?.1,
            (Some(e), Shape::Param(_)) => {
                self.axis_of_any_shape(e.span);
                return None;
            }
            (None, Shape::Dims(dims)) if dims.is_empty() => {
                self.error(
                    codes::AXIS,
                    x.span,
                    "`softmax` works on tiles, and a scalar has no axis",
                    "this is a scalar",
                );
                return None;
            }
            (None, _) => HArg::Default,
        };
        let fast = self.plain_slot(s, "fast")?;
        let ty = x.ty.clone();
        self.built(s, vec![HArg::Expr(x), axis, fast], ty, false)
    }

    fn random_row(&mut self, s: &Slots, op: RandomOp) -> Option<HExpr> {
        let seed = self.value(s.get("seed")?);
        let seed = self.coerce(seed, &Ty::scalar(DType::U64), "the seed");
        let (off, elem, shape) = self.tile_slot(s, "offset")?;
        let Elem::D(d) = elem else { return None };
        if seed.ty.is_err()
            || !self.need_class("an offset", d, DTypeSet::of(&[DType::I32, DType::U32]), off.span)
        {
            return None;
        }
        let f = tile(DType::F32, shape.clone());
        let ty = match op {
            RandomOp::Rand | RandomOp::Randn => f,
            RandomOp::Rand4 => Ty::Tuple(vec![f.clone(), f.clone(), f.clone(), f]),
            RandomOp::RandInt => tile(DType::U32, shape),
        };
        self.built(s, vec![HArg::Expr(seed), HArg::Expr(off)], ty, false)
    }

    fn control_row(&mut self, s: &Slots, op: ControlOp) -> Option<HExpr> {
        match op {
            ControlOp::ProgramId | ControlOp::NumPrograms => {
                let e = s.get("axis")?;
                let axis = self.const_int(e)?;
                let known = self.poly(&axis).and_then(|p| self.with_facts(&p).as_int());
                let axis = match known {
                    Some(n) if (0..3).contains(&n) => self.mk(HKind::Int(n), Ty::i32(), e.span, true),
                    Some(n) => {
                        let message = format!("a grid has the axes 0, 1 and 2, not {n}");
                        self.error(codes::AXIS, e.span, message, "not an axis of the grid");
                        return None;
                    }
                    None => axis,
                };
                self.built(s, vec![HArg::Expr(axis)], Ty::i32(), false)
            }
            ControlOp::Map => self.map_row(s),
            ControlOp::Assume => {
                let h = self.bool_arg(s.get("cond")?, "`assume`")?;
                self.built(s, vec![HArg::Expr(h)], Ty::Unit, false)
            }
            ControlOp::MultipleOf | ControlOp::MaxContiguous => {
                let (x, elem, _) = self.tile_slot(s, "x")?;
                let what = format!("`{}`", s.row.name);
                if let Elem::D(d) = elem
                    && !self.need_class(&what, d, DTypeSet::INT, x.span)
                {
                    return None;
                }
                let v = self.const_int(s.get("value")?)?;
                let ty = x.ty.clone();
                self.built(s, vec![HArg::Expr(x), HArg::Expr(v)], ty, false)
            }
            ControlOp::Assert => {
                let e = s.get("cond")?;
                let is_static = s.row.name == "static_assert";
                let h = if is_static { self.condition(e) } else { self.bool_arg(e, "`assert`")? };
                if h.ty.is_err() || (is_static && !self.need_const(&h)) {
                    return None;
                }
                let message = self.plain_slot(s, "message")?;
                let h = if self.in_test { super::fold::every_element(h) } else { h };
                self.built(s, vec![HArg::Expr(h), message], Ty::Unit, false)
            }
            ControlOp::Print => {
                let is_static = s.row.name == "static_print";
                let mut values = vec![];
                for e in s.rest.clone() {
                    let h = self.value(e);
                    if h.ty.is_err() || (is_static && !self.need_const(&h)) {
                        return None;
                    }
                    values.push(h);
                }
                self.built(s, vec![HArg::List(values)], Ty::Unit, false)
            }
            ControlOp::GridBarrier => self.built(s, vec![], Ty::Unit, false),
            ControlOp::GlobalTimer => self.built(s, vec![], Ty::scalar(DType::U64), false),
            ControlOp::SmId => self.built(s, vec![], Ty::i32(), false),
            ControlOp::InlineAsm => self.inline_asm(s),
            ControlOp::For
            | ControlOp::While
            | ControlOp::If
            | ControlOp::Yield
            | ControlOp::Condition
            | ControlOp::Return
            | ControlOp::Call => None,
        }
    }

    fn bool_arg(&mut self, e: &ast::Expr, what: &str) -> Option<HExpr> {
        let h = self.value(e);
        if h.ty.is_err() {
            return None;
        }
        if self.dterm_of(&h.ty) != Some(DTerm::Known(DType::Bool)) {
            let shown = self.show(&h.ty);
            self.error(
                codes::CONDITION,
                h.span,
                format!("{what} needs a bool or a tile of bools, not `{shown}`"),
                super::super::this_is(&shown),
            );
            return None;
        }
        Some(h)
    }

    /// `empty(shape, dtype)`.
    fn empty(&mut self, s: &Slots) -> Option<HExpr> {
        let shape = self.shape_arg(s.get("shape")?)?;
        let (h, d) = self.dtype_slot(s, "dtype")?;
        let dims = self.dims_of(s, &shape)?;
        let ty = self.buffer_type(Elem::D(d), dims, s.span);
        self.built(s, vec![HArg::Shape(shape), HArg::Expr(h)], ty, false)
    }

    fn host_row(&mut self, s: &Slots, op: HostOp) -> Option<HExpr> {
        match op {
            HostOp::Buffer => {
                let (x, elem, shape) = self.tile_slot(s, "x")?;
                if let Elem::D(d) = elem
                    && let Some(l) = self.literal(d)
                {
                    self.adapt(d, DTerm::Known(if l == Lit::Float { DType::F32 } else { DType::I32 }));
                }
                let dims = self.dims_of(s, &shape)?;
                let ty = self.buffer_type(elem, dims, x.span);
                self.built(s, vec![HArg::Expr(x)], ty, false)
            }
            HostOp::Empty => self.empty(s),
            HostOp::Pointers => self.pointers(s),
            HostOp::Tile => {
                let b = s.this.clone()?;
                let Ty::Buffer { elem, shape } = b.ty.clone() else { return None };
                self.built(s, vec![HArg::Expr(b)], Ty::Tile { elem, shape: Shape::Dims(shape) }, false)
            }
            HostOp::Randn | HostOp::Uniform | HostOp::Npy => {
                let shape = self.shape_arg(s.get("shape")?)?;
                let (_, d) = self.dtype_slot(s, "dtype")?;
                let mut args = vec![];
                for p in s.row.params {
                    args.push(match p.name {
                        "shape" => HArg::Shape(shape.clone()),
                        "low" | "high" => {
                            let h = self.value(s.get(p.name)?);
                            let h = self.coerce(
                                h,
                                &Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() },
                                &format!("`{}`", p.name),
                            );
                            if h.ty.is_err() {
                                return None;
                            }
                            HArg::Expr(h)
                        }
                        n => self.plain_slot(s, n)?,
                    });
                }
                if op == HostOp::Uniform && !self.need_class("`uniform`", d, DTypeSet::NUMBER, s.span) {
                    return None;
                }
                if op == HostOp::Randn && !self.need_normal(s, d) {
                    return None;
                }
                self.built(s, args, Ty::Tile { elem: Elem::D(d), shape }, false)
            }
            HostOp::AssertClose => {
                let mut a = self.value(s.get("a")?);
                let mut b = self.value(s.get("b")?);
                if a.ty.is_err() || b.ty.is_err() {
                    return None;
                }
                for h in [&a, &b] {
                    if self.dterm_of(&h.ty).is_none() {
                        let shown = self.show(&h.ty);
                        let d = Diagnostic::error(
                            codes::TYPE_MISMATCH,
                            h.span,
                            format!("`assert_close` compares tiles, not `{shown}`"),
                            super::super::this_is(&shown),
                        );
                        self.report(self.read_first(d, h));
                        return None;
                    }
                }
                self.join_elems("`assert_close`", &mut [&mut a, &mut b])?;
                self.broadcast("`assert_close`", &[&a, &b])?;
                let (r, t) = (self.plain_slot(s, "rtol")?, self.plain_slot(s, "atol")?);
                self.built(s, vec![HArg::Expr(a), HArg::Expr(b), r, t], Ty::Unit, false)
            }
            HostOp::Launch | HostOp::ExpectError => None,
        }
    }
}
