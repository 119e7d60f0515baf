//! Calls of builtins: arguments by the parameters of the row, and the two regular typing schemes.
//!
//! Rows with a scheme of their own continue in `memory` and `misc`.

mod assembly;
mod bits;
pub(crate) mod fold;
pub(crate) mod make_view;
mod memory;
pub(crate) mod misc;
mod product;
mod shape;

use tk_ops::table::{BuiltinParam, ElemResult, ParamKind, Receiver, Row, Scheme};
use tk_ops::{DType, DTypeSet, Op};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::args::Params;
use super::cx::Cx;
use super::record::Target;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

/// The arguments of a builtin by parameter, before they are checked.
pub(crate) struct Slots<'e> {
    pub row: &'static Row,
    /// The receiver of a method, already checked.
    pub this: Option<HExpr>,
    /// One for each parameter; the receiver's is `None`.
    pub exprs: Vec<Option<&'e ast::Expr>>,
    pub rest: Vec<&'e ast::Expr>,
    pub span: Span,
}

impl<'e> Slots<'e> {
    /// The argument of a parameter.
    pub fn get(&self, name: &str) -> Option<&'e ast::Expr> {
        self.exprs.get(self.row.param(name)?).copied().flatten()
    }
}

impl Cx<'_> {
    /// A plain function of the table; those of tests only inside tests, where they come first.
    pub fn find_row(&self, name: &str) -> Option<&'static Row> {
        let kind = self.func.map(|f| self.hir().func(f).kind);
        let known = self.in_test || kind.is_some_and(|k| super::tests_only::may_use(k, name));
        let test = if known { tk_ops::rows::find(name, Receiver::Test) } else { None };
        test.or_else(|| tk_ops::rows::find(name, Receiver::None).filter(|r| !tk_ops::rows::is_operator(r)))
    }

    /// A call of a builtin.
    pub fn builtin(
        &mut self,
        row: &'static Row,
        this: Option<HExpr>,
        args: &[ast::Arg],
        span: Span,
    ) -> HExpr {
        let row = self.overload(row, args);
        if matches!(row.name, "range" | "static_range") {
            self.check_rest(args);
            return self.error(
                codes::NOT_A_VALUE,
                span,
                format!("`{}` is only allowed in `for .. in {}(..)`", row.name, row.name),
                "used as a value",
            );
        }
        if self.random_of_shape(row, args, span)
            || self.unlisted_shape(row, args)
            || self.without_start(row, args, span)
            || self.with_step(row, args, span)
            || self.options_without_names(row, args)
            || self.assembly_in_order(row, args, span)
        {
            return HExpr::err(span);
        }
        self.saw_row_args(row, args);
        let skip = usize::from(this.is_some());
        let params: Vec<&BuiltinParam> = row.params.iter().skip(skip).collect();
        if self.spread_extents(row.name, &params, args, span)
            || self.spread_list(row.name, &params, args, span)
        {
            return HExpr::err(span);
        }
        let ps = Params {
            what: format!("`{}`", row.name),
            names: params.iter().map(|p| p.name).collect(),
            optional: params.iter().map(|p| p.default.is_some() || p.kind == ParamKind::Rest).collect(),
            rest: params.last().is_some_and(|p| p.kind == ParamKind::Rest),
            // `max(a, b)` is elementwise elsewhere; here the second argument would be taken for an axis.
            positional: match params.last() {
                _ if matches!(row.op, Op::Reduce(_)) => 1,
                // What is optional before further values is given by name.
                Some(p) if p.kind == ParamKind::Rest => {
                    params.iter().position(|p| p.default.is_some()).unwrap_or(usize::MAX)
                }
                Some(_) | None => usize::MAX,
            },
            declared: None,
            launch: false,
        };
        let Some((mut exprs, rest)) = self.match_args(&ps, args, span) else {
            self.check_rest(args);
            return HExpr::err(span);
        };
        if this.is_some() {
            exprs.insert(0, None);
        }
        let slots = Slots { row, this, exprs, rest, span };
        match row.scheme {
            Scheme::Elementwise(..) => self.elementwise_call(slots),
            Scheme::Reduce(set, result) => self.reduce_call(slots, set, result),
            Scheme::Special => self.special(slots),
        }
    }

    /// In tests `randn(shape, ..)` and its like are host rows; the device's are told apart by a list as first argument.
    pub fn overload(&mut self, row: &'static Row, args: &[ast::Arg]) -> &'static Row {
        if row.receiver != Receiver::Test {
            return row;
        }
        match (tk_ops::rows::find(row.name, Receiver::None), args.first()) {
            (Some(device), Some(a)) if a.name.is_none() => match a.value.kind {
                ExprKind::Array(_) => row,
                _ if self.named_shape(&a.value).is_some() => row,
                // `randn(1000, f32, seed = 1)`: the shape, without its brackets.
                _ if self.in_test && args.get(1).is_some_and(|a| self.is_dtype(&a.value)) => row,
                _ => device,
            },
            // Outside of tests the operation of kernels comes first.
            (Some(device), _) if !self.in_test && args.iter().all(|a| !names_param(row, device, a)) => device,
            _ => row,
        }
    }

    fn elementwise_call(&mut self, s: Slots) -> HExpr {
        let what = format!("`{}`", s.row.name);
        let mut values = vec![];
        let mut ok = true;
        for (i, p) in s.row.params.iter().enumerate() {
            let h = match (i, &s.this) {
                (0, Some(t)) => Some(t.clone()),
                _ => s.exprs.get(i).copied().flatten().map(|e| self.plain_arg(p, e)),
            };
            ok &= h.as_ref().is_none_or(|h| !h.ty.is_err());
            values.push(h);
        }
        if !ok {
            return HExpr::err(s.span);
        }
        self.elementwise(s.row, &what, values, s.span)
    }

    /// An argument that is an expression of its own.
    pub fn plain_arg(&mut self, p: &BuiltinParam, e: &ast::Expr) -> HExpr {
        let h = self.value(e);
        if h.ty.is_err() {
            return h;
        }
        let konst = match p.kind {
            ParamKind::ConstBool => Some(Ty::bool()),
            ParamKind::ConstInt | ParamKind::Axis => {
                if !self.need_int(&h) || !self.need_const(&h) {
                    return HExpr::err(h.span);
                }
                return h;
            }
            ParamKind::ConstFloat => Some(Ty::scalar(DType::F64)),
            ParamKind::Str => Some(Ty::Str),
            ParamKind::DType if h.ty == Ty::Str => {
                let shown = self.text(h.span);
                let message = format!("`{}` is an element type, not a text", p.name);
                let d = Diagnostic::error(codes::TYPE_MISMATCH, h.span, message, super::this_is(&shown));
                return self.fail(self.foreign_dtype(d, e));
            }
            ParamKind::DType => Some(Ty::DType),
            _ => None,
        };
        match konst {
            Some(want) => {
                let h = self.coerce(h, &want, &format!("`{}`", p.name));
                if self.need_const(&h) { h } else { HExpr::err(h.span) }
            }
            None => match &h.ty {
                Ty::Tile { .. } => h,
                other => {
                    let shown = self.show(other);
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        h.span,
                        format!("`{}` is a tile or scalar, not `{shown}`", p.name),
                        super::this_is(&shown),
                    );
                    self.fail(self.read_first(d, &h))
                }
            },
        }
    }

    /// A row whose values share an element type and broadcast; `values` are its arguments in order.
    pub fn elementwise(
        &mut self,
        row: &'static Row,
        what: &str,
        mut values: Vec<Option<HExpr>>,
        span: Span,
    ) -> HExpr {
        let (set, result) = match row.scheme {
            Scheme::Elementwise(set, result) => (set, result),
            Scheme::Reduce(..) | Scheme::Special => (DTypeSet::VALUE, ElemResult::Same),
        };
        let is_value = |i: usize| row.params.get(i).is_none_or(|p| p.kind == ParamKind::Value);
        let of_one = |(i, h): (usize, &Option<HExpr>)| {
            let h = h.as_ref().filter(|_| is_value(i))?;
            Some((self.dterm_of(&h.ty)?, h.span))
        };
        let operands: Vec<(DTerm, Span)> = values.iter().enumerate().filter_map(of_one).collect();
        // A wrong class is the more telling message than a wrong mix of types.
        for (i, h) in values.iter().enumerate() {
            let Some(h) = h.clone().filter(|_| is_value(i)) else { continue };
            match self.dterm_of(&h.ty) {
                Some(d) if self.need_class_beside(what, (d, h.span), set, &operands) => {}
                Some(_) => return HExpr::err(span),
                None => {
                    let shown = self.show(&h.ty);
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        h.span,
                        format!("{what} works on scalars and tiles of scalars, not on `{shown}`"),
                        super::this_is(&shown),
                    );
                    return self.fail(self.read_first(d, &h));
                }
            }
        }
        let mut refs: Vec<&mut HExpr> = values
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| is_value(*i))
            .filter_map(|(_, h)| h.as_mut())
            .collect();
        let Some(common) = self.join_elems(what, &mut refs) else { return HExpr::err(span) };
        let shaped: Vec<HExpr> = values
            .iter()
            .enumerate()
            .filter(|(i, _)| is_value(*i) || row.params.get(*i).is_some_and(|p| p.kind == ParamKind::Mask))
            .filter_map(|(_, h)| h.clone())
            .collect();
        let Some(shape) = self.broadcast(what, &shaped.iter().collect::<Vec<_>>()) else {
            return HExpr::err(span);
        };
        let konst = shape.is_scalar() && values.iter().flatten().all(|h| h.konst);
        let elem = self.result_elem(result, common);
        let args = values.into_iter().map(|h| h.map_or(HArg::Default, HArg::Expr)).collect();
        self.mk(HKind::Builtin(row, args), Ty::Tile { elem: Elem::D(elem), shape }, span, konst)
    }

    fn result_elem(&mut self, r: ElemResult, t: DTerm) -> DTerm {
        match r {
            ElemResult::Same => t,
            ElemResult::Bool => DTerm::Known(DType::Bool),
            ElemResult::I32 => DTerm::Known(DType::I32),
            ElemResult::Widened => match self.norm(t) {
                DTerm::Known(d) => DTerm::Known(ElemResult::Widened.of(d)),
                other => other,
            },
        }
    }

    fn reduce_call(&mut self, s: Slots, set: DTypeSet, result: ElemResult) -> HExpr {
        let what = format!("`{}`", s.row.name);
        let Some(x) = self.value_slot(&s, "x") else { return HExpr::err(s.span) };
        let Some(d) = self.dterm_of(&x.ty) else {
            let shown = self.show(&x.ty);
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                x.span,
                format!("{what} works on tiles of scalars, not on `{shown}`"),
                super::this_is(&shown),
            );
            return self.fail(self.read_first(d, &x));
        };
        if !self.need_class(&what, d, set, x.span) {
            return HExpr::err(s.span);
        }
        if result == ElemResult::Widened
            && let DTerm::Param(id) = self.norm(d)
            && self.members(id).iter().any(|m| ElemResult::Widened.of(m) != m)
        {
            let name = self.hir().cvar(id).name.clone();
            let d = Diagnostic::error(
                codes::BOUND,
                x.span,
                format!(
                    "{what} of small integers gives a wider type, so its type differs between the types of `{name}`"
                ),
                format!("its type depends on `{name}`"),
            )
            .label(self.hir().cvar(id).span, "the bound")
            .note("cast the operand first, or narrow the bound");
            return self.fail(d);
        }
        let elem = Elem::D(self.result_elem(result, d));
        let Some((shape, axis)) = self.reduced(&s, &x) else { return HExpr::err(s.span) };
        let Some(with_position) = self.flag_slot(&s, "return_indices") else { return HExpr::err(s.span) };
        let mut args = vec![HArg::Expr(x), axis];
        for name in ["keep", "return_indices"] {
            let Some(arg) = self.plain_slot(&s, name) else { return HExpr::err(s.span) };
            args.push(arg);
        }
        let ty = if with_position {
            let position = Ty::Tile { elem: Elem::D(DTerm::Known(DType::I32)), shape: shape.clone() };
            Ty::Tuple(vec![Ty::Tile { elem, shape }, position])
        } else {
            Ty::Tile { elem, shape }
        };
        self.mk(HKind::Builtin(s.row, args), ty, s.span, false)
    }

    /// An argument on which the type of the result depends, and which is therefore written out.
    fn flag_slot(&mut self, s: &Slots, name: &str) -> Option<bool> {
        match s.get(name).map(|e| (&e.kind, e.span)) {
            None | Some((ExprKind::Bool(false), _)) => Some(false),
            Some((ExprKind::Bool(true), _)) => Some(true),
            Some((_, span)) => {
                let message = format!("`{name}` is `true` or `false`");
                let d = Diagnostic::error(codes::NOT_CONST, span, message, "neither `true` nor `false`");
                let ours = self.text(span).to_lowercase();
                let is_word = matches!(ours.as_str(), "true" | "false");
                self.report(if is_word { d.use_instead(span, ours) } else { d });
                None
            }
        }
    }

    /// The shape of a reduction from the arguments `axis` and `keep`, and the axis.
    pub fn reduced(&mut self, s: &Slots, x: &HExpr) -> Option<(Shape, HArg)> {
        let keep = self.flag_slot(s, "keep")?;
        let Ty::Tile { shape, .. } = &x.ty else { return None };
        let Some(e) = s.get("axis") else {
            return match (keep, shape) {
                (false, _) => Some((Shape::scalar(), HArg::Default)),
                (true, Shape::Dims(d)) => Some((Shape::Dims(vec![Poly::int(1); d.len()]), HArg::Default)),
                (true, Shape::Param(_)) => {
                    let message = "`keep` needs a tile whose rank is known";
                    let d = Diagnostic::error(codes::UNKNOWN_EXTENT, s.span, message, "");
                    self.report(d.note(super::axes::WRITTEN_OUT));
                    None
                }
            };
        };
        let Shape::Dims(dims) = shape.clone() else {
            self.axis_of_any_shape(e.span);
            return None;
        };
        if matches!(e.kind, ExprKind::None | ExprKind::Tuple(_) | ExprKind::Array(_)) {
            let d = Diagnostic::error(codes::AXIS, e.span, "an axis is one number", "not a number");
            self.report(d.note("leave `axis` out for all axes, or reduce along one after the other"));
            return None;
        }
        let (axis, arg) = self.axis(e, dims.len())?;
        let dims = self.dims_along(&axis, dims.len(), |n| {
            let mut out = dims.clone();
            if keep {
                *out.get_mut(n)? = Poly::int(1);
            } else {
                out.remove(n);
            }
            Some(out)
        })?;
        Some((Shape::Dims(dims), arg))
    }

    /// A required value argument (or the receiver); `None` after an error.
    pub fn value_slot(&mut self, s: &Slots, name: &str) -> Option<HExpr> {
        let i = s.row.param(name)?;
        let h = match (i, &s.this) {
            (0, Some(t)) => t.clone(),
            _ => self.value(s.exprs.get(i).copied().flatten()?),
        };
        (!h.ty.is_err()).then_some(h)
    }

    /// A builtin as a value where a function is expected.
    pub fn builtin_value(&mut self, n: &ast::Name, want: Option<&Ty>, span: Span) -> HExpr {
        match want {
            Some(Ty::Fn(ps, _)) => {
                let ps = ps.clone();
                self.builtin_ref(n, &ps, span)
            }
            _ => self.error(
                codes::NOT_A_VALUE,
                span,
                format!("`{}` is a function", n.text),
                "call it, or pass it where a function is expected",
            ),
        }
    }

    /// A builtin that will be called with these types.
    pub fn builtin_ref(&mut self, n: &ast::Name, ps: &[Ty], span: Span) -> HExpr {
        let Some(row) = self.find_row(&n.text) else { return HExpr::err(span) };
        self.p.record.name(n, Target::Row(row));
        let required = row.params.iter().filter(|p| p.default.is_none()).count();
        let Scheme::Elementwise(..) = row.scheme else {
            let d = self.of_one_tile(&n.text, ps.len(), span);
            return self.fail(d);
        };
        if required != ps.len() {
            let m = ps.len();
            return self.error(
                codes::TYPE_MISMATCH,
                span,
                format!("expected a function of {m} arguments, but `{}` takes {required}", n.text),
                format!("takes {required}"),
            );
        }
        let args = ps.iter().map(|t| Some(self.mk(HKind::Unit, t.clone(), span, false))).collect();
        let h = self.elementwise(row, &format!("`{}`", n.text), args, span);
        if h.ty.is_err() {
            return h;
        }
        self.mk(HKind::BuiltinRef(row), Ty::Fn(ps.to_vec(), Box::new(h.ty)), span, true)
    }

    fn special(&mut self, s: Slots) -> HExpr {
        match s.row.op {
            Op::Memory(_) | Op::Atomic(_) => self.memory_row(s),
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Target => self.other_row(s),
        }
    }
}

/// Returns true if an argument has the name of a parameter that one row has and the other has not.
fn names_param(row: &Row, other: &Row, a: &ast::Arg) -> bool {
    a.name.as_ref().is_some_and(|n| row.param(&n.text).is_some() && other.param(&n.text).is_none())
}
