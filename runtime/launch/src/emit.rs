//! Specialization without a launch: the tile IR of a kernel whose compile-time parameters have values.

use std::sync::Arc;

use tk_ops::{DType, DTypeSet, Scalar};
use tk_sema::contract::{self, HostArg, SetValue};
use tk_sema::eval::{Bindings, CVal, Evaluator};
use tk_sema::hir::{CKind, CVarId, FnId, HKind, Hir};
use tk_sema::poly::Poly;
use tk_sema::target::Target;
use tk_sema::types::{DTerm, Elem, Ty};
use tk_syntax::FileId;

use crate::session::{Compiled, Session, Wrong};

impl Session {
    /// The compile-time parameters of a kernel that need a value for it to be specialized without a launch: they have
    /// no default, or one that uses the arguments.
    pub fn open_parameters(&self, kernel: FnId, sets: &[(String, SetValue)]) -> Vec<String> {
        let hir = &self.checked().hir;
        let open = |id: &&CVarId| {
            let c = hir.cvar(**id);
            !c.default.as_ref().is_some_and(|d| d.konst) && !sets.iter().any(|(n, _)| *n == c.name)
        };
        hir.func(kernel).cparams.iter().filter(open).map(|id| hir.cvar(*id).name.clone()).collect()
    }

    /// The specialization of a kernel without open parameters for the CPU, optional ones being there.
    pub fn specialize(&self, kernel: FnId, sets: &[(String, SetValue)]) -> Result<Arc<Compiled>, Wrong> {
        self.compile(kernel, &self.bindings(kernel, sets, Target::CPU)?).map(|(compiled, _)| compiled)
    }

    /// The values of all compile-time parameters of a kernel without open ones on a target, optional parameters being
    /// there.
    pub fn bindings(
        &self,
        kernel: FnId,
        sets: &[(String, SetValue)],
        target: Target,
    ) -> Result<Bindings, Wrong> {
        let mut hir = self.checked().hir.clone();
        // What a launch decides is left out: with it, the arguments have no influence on the result.
        if let Some(f) = hir.fns.get_mut(kernel.0 as usize) {
            f.contract.require.retain(|r| r.compile_time);
            f.contract.prefer.clear();
            f.contract.grid.clear();
            f.contract.launch.clear();
            f.contract.scratch.clear();
        }
        let mut args = vec![];
        for p in &hir.func(kernel).params {
            samples(&hir, &p.ty, sets, &mut args);
        }
        let device = contract::Device { target, ..contract::Device::default() };
        let plan = contract::plan_on(&hir, kernel, &args, sets, device).map_err(|e| vec![*e.diagnostic])?;
        Ok(plan.bindings)
    }

    /// The specializations that a kernel's `export`s name, as values that are given by name, in order. Values in `sets`
    /// replace those of the exports; without an `export` there are none. What an `export` leaves to a `tune` list is not
    /// given.
    pub fn exported(
        &self,
        kernel: FnId,
        sets: &[(String, SetValue)],
        target: Target,
    ) -> Result<Vec<Vec<(String, SetValue)>>, Wrong> {
        let hir = &self.checked().hir;
        let tuned = contract::tuned_names(hir, kernel);
        let mut found: Vec<Vec<(String, SetValue)>> = vec![];
        // A file that ships a kernel of another one says what of it.
        for export in hir.exports.iter().filter(|e| e.kernel == kernel && e.span.file == FileId(0)) {
            for values in contract::instances(hir, export, target).map_err(|d| vec![*d])? {
                let mut named = contract::as_sets(hir, &values);
                let listed = |name: &str| export.values.iter().any(|(id, _)| hir.cvar(*id).name == name);
                named.retain(|(name, _)| listed(name) || !tuned.contains(&name.as_str()));
                named.retain(|(name, _)| !sets.iter().any(|(n, _)| n == name));
                named.extend_from_slice(sets);
                if !found.contains(&named) {
                    found.push(named);
                }
            }
        }
        Ok(found)
    }

    /// The number that `launch(NAME = ..)` gives for a specialization, 1 for `true`: `None` if the clause does not say, an
    /// error if it asks for the arguments of a launch.
    pub fn launch_option(
        &self,
        kernel: FnId,
        bindings: &Bindings,
        name: &str,
    ) -> Result<Option<i128>, Wrong> {
        let hir = &self.checked().hir;
        let Some((_, e)) = hir.func(kernel).contract.launch.iter().find(|(n, _)| n == name) else {
            return Ok(None);
        };
        match Evaluator::new(hir, bindings).expr(e).map_err(|d| vec![*d])? {
            CVal::Bool(b) => Ok(Some(i128::from(b))),
            value => Ok(value.as_int()),
        }
    }
}

/// An argument of each part of a parameter's type.
fn samples(hir: &Hir, ty: &Ty, sets: &[(String, SetValue)], out: &mut Vec<HostArg>) {
    let one = |elem: &Elem| chosen(hir, elem, sets).iter().next().unwrap_or(DType::I32);
    match ty {
        Ty::Tile { elem: Elem::Ptr { pointee, .. }, .. } => {
            out.push(HostArg::Tensor { dtype: one(pointee), shape: vec![1], strides: vec![1] });
        }
        Ty::Tile { elem, .. } => out.push(HostArg::Scalar(Scalar::zero(one(elem)))),
        Ty::View { elem, rank, .. } => {
            let ones = vec![1; sample_rank(hir, rank, sets)];
            out.push(HostArg::Tensor { dtype: one(elem), shape: ones.clone(), strides: ones });
        }
        Ty::Option(inner) => samples(hir, inner, sets, out),
        Ty::Tuple(items) => items.iter().for_each(|t| samples(hir, t, sets, out)),
        Ty::Struct(id, _) => hir.strukt(*id).fields.iter().for_each(|(_, t, _)| samples(hir, t, sets, out)),
        Ty::Buffer { .. }
        | Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Fn(..)
        | Ty::DType
        | Ty::List(..)
        | Ty::ShapeTy
        | Ty::Str => {}
    }
}

/// The rank of a view that is not passed: its number, or the value of the parameter in it.
fn sample_rank(hir: &Hir, rank: &Poly, sets: &[(String, SetValue)]) -> usize {
    let known = rank.as_int().or_else(|| {
        let (id, more) = rank.as_param_plus()?;
        let c = hir.cvar(id);
        let value = match sets.iter().find(|(n, _)| *n == c.name) {
            Some((_, SetValue::Int(n))) => *n,
            Some(_) => return None,
            None => match c.default.as_ref().map(|e| &e.kind) {
                Some(HKind::Int(n)) => *n,
                Some(_) | None => 1,
            },
        };
        Some(value + more)
    });
    known.and_then(|n| usize::try_from(n).ok()).unwrap_or(1)
}

/// The element types of an argument that is not passed: those of the default of its type, if there is one.
fn chosen(hir: &Hir, elem: &Elem, sets: &[(String, SetValue)]) -> DTypeSet {
    let (Elem::D(DTerm::Param(id)) | Elem::D(DTerm::Acc(id))) = elem else {
        return element_types(hir, elem, sets);
    };
    let c = hir.cvar(*id);
    let given = sets.iter().any(|(n, _)| *n == c.name);
    let types = match c.default.as_ref().map(|h| &h.kind) {
        // A default names a type or a parameter before it.
        Some(HKind::DType(term)) if !given => chosen(hir, &Elem::D(*term), sets),
        Some(_) | None => variable_types(hir, *id, sets),
    };
    if matches!(elem, Elem::D(DTerm::Acc(_))) {
        return DTypeSet::of(&types.iter().map(DType::acc).collect::<Vec<_>>());
    }
    types
}

/// The element types that a tensor may have for a parameter, by name; all when nothing is known.
pub fn wanted(hir: &Hir, kernel: FnId, param: &str, sets: &[(String, SetValue)]) -> DTypeSet {
    let ty = hir.func(kernel).params.iter().find(|p| p.name == param).map(|p| &p.ty);
    ty.map_or(DTypeSet::ANY, |ty| tensor_types(hir, ty, sets))
}

fn tensor_types(hir: &Hir, ty: &Ty, sets: &[(String, SetValue)]) -> DTypeSet {
    match ty {
        Ty::Tile { elem: Elem::Ptr { pointee, .. }, .. } => element_types(hir, pointee, sets),
        Ty::View { elem, .. } => element_types(hir, elem, sets),
        Ty::Option(inner) => tensor_types(hir, inner, sets),
        Ty::Tile { .. }
        | Ty::Tuple(_)
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Buffer { .. }
        | Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => DTypeSet::ANY,
    }
}

fn element_types(hir: &Hir, elem: &Elem, sets: &[(String, SetValue)]) -> DTypeSet {
    match elem {
        Elem::D(term) => types_of(hir, *term, sets),
        // The host holds pointers as integers of 64 bits.
        Elem::Ptr { .. } => DTypeSet::of(&[DType::I64]),
        Elem::Err => DTypeSet::ANY,
    }
}

/// The types that a dtype expression may be in a launch with these compile-time parameters.
pub(crate) fn types_of(hir: &Hir, term: DTerm, sets: &[(String, SetValue)]) -> DTypeSet {
    match term {
        DTerm::Known(d) => DTypeSet::of(&[d]),
        DTerm::Param(id) => variable_types(hir, id, sets),
        DTerm::Acc(id) => {
            let accumulators: Vec<DType> = variable_types(hir, id, sets).iter().map(DType::acc).collect();
            DTypeSet::of(&accumulators)
        }
        DTerm::Infer(_) => DTypeSet::ANY,
    }
}

fn variable_types(hir: &Hir, id: CVarId, sets: &[(String, SetValue)]) -> DTypeSet {
    let c = hir.cvar(id);
    match (sets.iter().find(|(n, _)| *n == c.name), &c.kind) {
        (Some((_, SetValue::DType(d))), _) => DTypeSet::of(&[*d]),
        (_, CKind::DType(set)) => *set,
        (_, CKind::Int(_) | CKind::Float(_) | CKind::Bool | CKind::Shape | CKind::Fn(..) | CKind::Err) => {
            DTypeSet::ANY
        }
    }
}
