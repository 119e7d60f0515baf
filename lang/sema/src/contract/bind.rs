//! Binds the arguments of a launch: presence of optional ones, element types, values for clauses.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tk_ops::{DType, Scalar};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::Type;

use super::{HostArg, Planner, refuse};
use crate::eval::{CTy, CVal, EvalResult, TensorArg, bug};
use crate::hir::{CKind, CVarId, HExpr, HFn, Hir, LocalId};
use crate::lower::flat_names;
use crate::types::{DTerm, Elem, Ty};

/// A part of a parameter that takes one argument: its name and type.
pub(super) struct Slot<'h> {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
    pub default: Option<&'h HExpr>,
}

impl Slot<'_> {
    fn optional(&self) -> bool {
        matches!(self.ty, Ty::Option(_))
    }
}

/// The parts of the parameters of a kernel in the order of the arguments.
pub(super) fn slots<'h>(hir: &'h Hir, f: &'h HFn) -> Rc<[Slot<'h>]> {
    let mut out = vec![];
    for p in &f.params {
        let mut names = vec![];
        flat_names(hir, &p.ty, p.name.clone(), &mut names);
        let mut types = vec![];
        flat_tys(hir, &p.ty, &mut types);
        let default = p.default.as_ref();
        let parts = names.into_iter().zip(types);
        out.extend(parts.map(|(name, ty)| Slot { name, ty, span: p.span, default }));
    }
    out.into()
}

impl<'h> Planner<'h> {
    /// The parts of the parameters in the order of the arguments.
    fn slots(&self) -> Rc<[Slot<'h>]> {
        Rc::clone(&self.slots)
    }

    /// The pairs of `alias(..)` as positions of arguments.
    pub(super) fn alias(&self) -> Vec<(usize, usize)> {
        let mut starts = BTreeMap::new();
        let mut taken = 0;
        for p in &self.f.params {
            starts.insert(p.local, taken);
            let mut types = vec![];
            flat_tys(self.hir, &p.ty, &mut types);
            taken += types.len();
        }
        let pair = |(x, y): &(LocalId, LocalId)| Some((*starts.get(x)?, *starts.get(y)?));
        let pairs = self.f.contract.alias.iter().filter_map(pair);
        let ordered: BTreeSet<_> = pairs.map(|(x, y)| (x.min(y), x.max(y))).collect();
        ordered.into_iter().collect()
    }

    /// One argument for each part of a parameter; those that are left out at the end are absent.
    pub(super) fn complete(&self, args: &[HostArg]) -> EvalResult<Vec<HostArg>> {
        let slots = self.slots();
        let mut out = args.to_vec();
        out.extend(slots.iter().skip(out.len()).take_while(|s| s.default.is_some()).map(|_| HostArg::Absent));
        if out.len() == slots.len() {
            return Ok(out);
        }
        let (n, given) = (slots.len(), args.len());
        let noun = if n == 1 { "argument" } else { "arguments" };
        let were = if given == 1 { "was" } else { "were" };
        let message = format!("kernel `{}` takes {n} {noun}, but {given} {were} given", self.f.name);
        let mut d = refuse(codes::LAUNCH_ARGS, self.f.span, message);
        let names: Vec<String> = slots.iter().map(|s| format!("`{}`", s.name)).collect();
        d.notes.push(format!("its parameters are {}", names.join(", ")));
        Err(d)
    }

    /// Evaluates the defaults of run-time parameters that are absent. A default may use compile-time parameters, and
    /// their defaults may use run-time ones: unless `all` is set, values not known yet stay absent.
    pub(super) fn run_time_defaults(
        &mut self,
        mut args: Vec<HostArg>,
        all: bool,
    ) -> EvalResult<Vec<HostArg>> {
        let mut changes = false;
        for (slot, a) in self.slots().iter().zip(&mut args) {
            let Some(e) = slot.default.filter(|_| *a == HostArg::Absent && !slot.optional()) else {
                continue;
            };
            changes = true;
            let found = self.eval(|ev| {
                let (v, d) = (ev.expr(e)?, ev.scalar_type(&e.ty, e.span)?);
                v.to_scalar(d).ok_or_else(|| bug("launch", e.span, "a default is not a number"))
            });
            match found {
                Ok(v) => *a = HostArg::Scalar(v),
                Err(d) if all => return Err(d),
                Err(_) => {}
            }
        }
        if changes { self.host_values(args) } else { Ok(args) }
    }

    /// Notes which optional parameters are there.
    pub(super) fn presence(&mut self, args: &[HostArg]) -> EvalResult<()> {
        for (slot, a) in self.slots().iter().zip(args) {
            if *a == HostArg::Absent && !slot.optional() && slot.default.is_none() {
                let message =
                    format!("`{}` of kernel `{}` must be given: it is not optional", slot.name, self.f.name);
                return Err(refuse(codes::LAUNCH_ARGS, slot.span, message));
            }
        }
        let mut rest = args;
        for p in &self.f.params {
            let mut types = vec![];
            flat_tys(self.hir, &p.ty, &mut types);
            let (these, after) = rest.split_at(types.len().min(rest.len()));
            rest = after;
            if let Ty::Option(_) = p.ty {
                self.bindings.present.insert(p.local, these.first() != Some(&HostArg::Absent));
            }
        }
        Ok(())
    }

    /// Binds element types that follow from the arguments; tensors first, since a number adapts.
    pub(super) fn infer(&mut self, args: &[HostArg]) -> EvalResult<()> {
        let slots = self.slots();
        for (slot, a) in slots.iter().zip(args) {
            if let (HostArg::Tensor { dtype, .. }, Some(id)) = (a, elem_param(&slot.ty)) {
                self.bind_dtype(id, *dtype, slot)?;
            }
        }
        for (slot, a) in slots.iter().zip(args) {
            if let (HostArg::Tensor { shape, .. }, Some((id, more))) = (a, rank_param(&slot.ty)) {
                let rank = CVal::Int(shape.len() as i128 - more);
                self.bindings.cvars.entry(id).or_insert(rank);
            }
        }
        for (slot, a) in slots.iter().zip(args) {
            if let (HostArg::Scalar(s), Ty::Tile { elem: Elem::D(DTerm::Param(id)), .. }) = (a, &slot.ty)
                && !self.bindings.cvars.contains_key(id)
            {
                self.bind_dtype(*id, s.dtype(), slot)?;
            }
        }
        Ok(())
    }

    fn bind_dtype(&mut self, id: CVarId, dtype: DType, slot: &Slot<'_>) -> EvalResult<()> {
        let c = self.hir.cvar(id);
        let kernel = &self.f.name;
        let name = &slot.name;
        if let Some(v) = self.bindings.cvars.get(&id) {
            if *v != CVal::DType(dtype) {
                let message = format!(
                    "`{name}` has element type {dtype}, but `{}` of kernel `{kernel}` is {v}",
                    c.name
                );
                let d = Diagnostic::error(
                    codes::LAUNCH_DTYPE,
                    slot.span,
                    message,
                    format!("the argument holds `{dtype}`"),
                );
                return Err(Box::new(d.label(c.span, format!("`{}`", c.name))));
            }
            return Ok(());
        }
        if let CKind::DType(set) = &c.kind
            && !set.has(dtype)
        {
            let message = format!(
                "`{name}` has element type {dtype}, but `{}` of kernel `{kernel}` is one of {set}",
                c.name
            );
            return Err(Box::new(
                Diagnostic::error(
                    codes::LAUNCH_DTYPE,
                    slot.span,
                    message,
                    format!("the argument holds `{dtype}`"),
                )
                .label(c.span, "the bound"),
            ));
        }
        self.bindings.cvars.insert(id, CVal::DType(dtype));
        Ok(())
    }

    /// Makes the arguments known to the clauses.
    pub(super) fn host_values(&mut self, args: Vec<HostArg>) -> EvalResult<Vec<HostArg>> {
        let mut from = args.iter();
        for p in &self.f.params {
            let v = host_value(self.hir, &p.ty, &mut from);
            self.host.locals.insert(p.local, v);
        }
        Ok(args)
    }

    /// Checks the ranks of tensors, before defaults and clauses ask for their extents. One that depends on a parameter
    /// without a value waits for [`Planner::check_params`].
    pub(super) fn check_ranks(&self, args: &[HostArg]) -> EvalResult<()> {
        for (slot, a) in self.slots().iter().zip(args) {
            let view = match &slot.ty {
                Ty::Option(t) => t,
                t => t,
            };
            let (HostArg::Tensor { shape, strides, .. }, Ty::View { rank, .. }) = (a, view) else { continue };
            let wanted = match rank.as_int() {
                Some(n) => Some(n),
                None => self.eval(|ev| ev.poly(rank, slot.span)).ok(),
            };
            if wanted.is_some_and(|n| n != shape.len() as i128) || strides.len() != shape.len() {
                let (name, kernel, n) = (&slot.name, &self.f.name, shape.len());
                let ty = crate::show::ty(self.hir, view);
                let here = match wanted.filter(|_| rank.as_int().is_none()) {
                    Some(n) => format!(", here of rank {n}"),
                    None => String::new(),
                };
                let message = format!("`{name}` has rank {n}, but kernel `{kernel}` takes `{ty}`{here}");
                return Err(refuse(codes::LAUNCH_RANK, slot.span, message));
            }
        }
        Ok(())
    }

    /// Checks the arguments against the concrete types of their parameters.
    pub(super) fn check_params(&self, args: &[HostArg]) -> EvalResult<()> {
        for (slot, a) in self.slots().iter().zip(args) {
            let ty = match self.eval(|ev| ev.ty(&slot.ty, slot.span))? {
                CTy::One(t) | CTy::Option(t) => t,
                CTy::Unit | CTy::Never | CTy::Absent | CTy::Tuple(_) | CTy::Static => {
                    return Err(bug("launch", slot.span, format!("`{}` has no plain type", slot.name)));
                }
            };
            self.check_arg(slot, &ty, a)?;
        }
        Ok(())
    }

    fn check_arg(&self, slot: &Slot<'_>, ty: &Type, a: &HostArg) -> EvalResult<()> {
        let (name, kernel) = (&slot.name, &self.f.name);
        let wrong = |code, message: String| Err(refuse(code, slot.span, message));
        match (a, ty) {
            (HostArg::Absent, _) => Ok(()),
            (HostArg::Scalar(_), Type::Tile { elem: tk_tile::ElemType::Scalar(_), .. }) => Ok(()),
            (HostArg::Scalar(s), _) => wrong(
                codes::LAUNCH_DTYPE,
                format!("`{name}` is the number {s}, but kernel `{kernel}` takes `{ty}`"),
            ),
            (HostArg::Tensor { .. }, Type::Tile { elem: tk_tile::ElemType::Scalar(_), .. }) => wrong(
                codes::LAUNCH_DTYPE,
                format!("`{name}` is a tensor, but kernel `{kernel}` takes `{ty}`"),
            ),
            (
                HostArg::Tensor { dtype, .. },
                Type::Tile { elem: tk_tile::ElemType::Ptr { pointee, .. }, .. },
            ) => self.check_elem(slot, *dtype, pointee, ty),
            (HostArg::Tensor { dtype, shape, .. }, Type::View { elem, wide, .. }) => {
                self.check_elem(slot, *dtype, elem, ty)?;
                let large = shape.iter().find(|d| **d < 0 || !*wide && i32::try_from(**d).is_err());
                match large {
                    Some(d) => wrong(
                        codes::LAUNCH_ARGS,
                        format!(
                            "`{name}` has the extent {d}, but kernel `{kernel}` takes `{ty}`, whose extents are below 2^31: with two dimensions it fits, and a pointer takes offsets of `i64`"
                        ),
                    ),
                    None => Ok(()),
                }
            }
        }
    }

    fn check_elem(
        &self,
        slot: &Slot<'_>,
        found: DType,
        wanted: &tk_tile::ElemType,
        ty: &Type,
    ) -> EvalResult<()> {
        // The host holds pointers as integers of 64 bits.
        let ok = match wanted {
            tk_tile::ElemType::Scalar(d) => *d == found,
            tk_tile::ElemType::Ptr { .. } => matches!(found, DType::I64 | DType::U64),
        };
        if ok {
            return Ok(());
        }
        let message =
            format!("`{}` has element type {found}, but kernel `{}` takes `{ty}`", slot.name, self.f.name);
        Err(refuse(codes::LAUNCH_DTYPE, slot.span, message))
    }

    /// Gives scalars the types of their parameters.
    pub(super) fn convert(&mut self, mut args: Vec<HostArg>) -> EvalResult<Vec<HostArg>> {
        let mut changes = false;
        for (slot, a) in self.slots().iter().zip(&mut args) {
            let HostArg::Scalar(s) = a else { continue };
            changes = true;
            let CTy::One(ty) = self.eval(|ev| ev.ty(&slot.ty, slot.span))? else { continue };
            let Some(d) = ty.dtype() else { continue };
            match fit(*s, d) {
                Some(v) => *a = HostArg::Scalar(v),
                None => {
                    let message = format!(
                        "`{}` is {s}, which is not a value of the type {d} that kernel `{}` takes",
                        slot.name, self.f.name
                    );
                    return Err(refuse(codes::LAUNCH_DTYPE, slot.span, message));
                }
            }
        }
        // Clauses see the converted values.
        if changes { self.host_values(args) } else { Ok(args) }
    }
}

/// A number as another type, if that reaches it; floats are rounded.
pub fn fit(s: Scalar, to: DType) -> Option<Scalar> {
    match (s.as_int(), s.as_f64()) {
        _ if s.dtype() == to => Some(s),
        (Some(i), _) => Scalar::int_in_range(to, i).filter(|_| to != DType::Bool),
        (None, Some(f)) => Scalar::float_in_range(to, f),
        (None, None) => None,
    }
}

/// The elements of the tensor that a parameter takes; `None` for a parameter that takes none.
pub(super) fn tensor_elem(ty: &Ty) -> Option<&Elem> {
    match ty {
        Ty::View { elem, .. } => Some(elem),
        Ty::Tile { elem: Elem::Ptr { pointee, .. }, .. } => Some(pointee),
        Ty::Option(t) => tensor_elem(t),
        Ty::Tile { .. }
        | Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Buffer { .. }
        | Ty::Tuple(_)
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => None,
    }
}

/// The dtype variable that a tensor argument decides.
pub(crate) fn elem_param(ty: &Ty) -> Option<CVarId> {
    match tensor_elem(ty)? {
        Elem::D(DTerm::Param(id)) => Some(*id),
        Elem::D(_) | Elem::Ptr { .. } | Elem::Err => None,
    }
}

/// The variable that the rank of a tensor argument decides, and the number added to it.
pub(crate) fn rank_param(ty: &Ty) -> Option<(CVarId, i128)> {
    let view = match ty {
        Ty::Option(t) => t,
        t => t,
    };
    let Ty::View { rank, .. } = view else { return None };
    rank.as_param_plus()
}

/// The types of the parts of a parameter, in the order of [`flat_names`].
pub(super) fn flat_tys(hir: &crate::hir::Hir, ty: &Ty, out: &mut Vec<Ty>) {
    match ty {
        Ty::Tuple(items) => items.iter().for_each(|t| flat_tys(hir, t, out)),
        Ty::Struct(id, _) => hir.strukt(*id).fields.iter().for_each(|(_, t, _)| flat_tys(hir, t, out)),
        Ty::Tile { .. } | Ty::View { .. } | Ty::Option(_) | Ty::Buffer { .. } => out.push(ty.clone()),
        Ty::Unit | Ty::Never | Ty::Err | Ty::Fn(..) | Ty::List(..) | Ty::DType | Ty::ShapeTy | Ty::Str => {}
    }
}

fn host_value<'a>(hir: &crate::hir::Hir, ty: &Ty, from: &mut impl Iterator<Item = &'a HostArg>) -> CVal {
    match ty {
        Ty::Tuple(items) => CVal::Tuple(items.iter().map(|t| host_value(hir, t, from)).collect()),
        Ty::Struct(id, _) => {
            CVal::Tuple(hir.strukt(*id).fields.iter().map(|(_, t, _)| host_value(hir, t, from)).collect())
        }
        Ty::Tile { .. } | Ty::View { .. } | Ty::Option(_) | Ty::Buffer { .. } => match from.next() {
            Some(HostArg::Scalar(s)) => CVal::of_scalar(*s),
            Some(HostArg::Tensor { shape, strides, .. }) => {
                CVal::View(TensorArg { shape: shape.clone(), strides: strides.clone() })
            }
            Some(HostArg::Absent) | None => CVal::None,
        },
        Ty::Unit | Ty::Never | Ty::Err | Ty::Fn(..) | Ty::List(..) | Ty::DType | Ty::ShapeTy | Ty::Str => {
            CVal::Unit
        }
    }
}
