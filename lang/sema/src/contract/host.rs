//! A kernel's parameters for the command line, in the order of the arguments.

use super::bind::flat_tys;
use crate::hir::{FnId, Hir};
use crate::lower::flat_names;
use crate::show;
use crate::types::{Elem, Ty};

/// One argument of a kernel, or one of its compile-time parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name: `x`, `st.m`.
    pub name: String,
    /// Its type as written: `mut view[T, 2]`, `*f32`, `i32`.
    pub ty: String,
    /// Whether it takes a tensor (a view or pointer) instead of a number.
    pub tensor: bool,
    /// Whether the kernel may write through it.
    pub mutable: bool,
    /// Whether it may be left out: an optional view, or a parameter with a default.
    pub optional: bool,
    /// Whether it is given by name, as `--set NAME=VALUE`.
    pub compile_time: bool,
}

/// The name by which tile IR launches a kernel: its own, with a number where several files have one of that name.
pub fn launch_name(hir: &Hir, kernel: FnId) -> String {
    let name = &hir.func(kernel).name;
    let single = hir.kernels().filter(|(_, f)| f.name == *name).count() == 1;
    if single { name.clone() } else { format!("{name}#{}", kernel.0) }
}

/// The kernel that tile IR launches by this name.
pub fn kernel_named(hir: &Hir, name: &str) -> Option<FnId> {
    hir.kernels().map(|(id, _)| id).find(|id| launch_name(hir, *id) == name)
}

/// The compile-time parameters of a kernel, then its arguments in order.
pub fn parameters(hir: &Hir, kernel: FnId) -> Vec<Param> {
    let f = hir.func(kernel);
    let mut out = vec![];
    for id in &f.cparams {
        let c = hir.cvar(*id);
        out.push(Param {
            name: c.name.clone(),
            ty: show::ckind(hir, &c.kind),
            tensor: false,
            mutable: false,
            optional: c.default.is_some(),
            compile_time: true,
        });
    }
    for p in &f.params {
        let (mut names, mut types) = (vec![], vec![]);
        flat_names(hir, &p.ty, p.name.clone(), &mut names);
        flat_tys(hir, &p.ty, &mut types);
        for (name, ty) in names.into_iter().zip(types) {
            let (tensor, mutable) = tensor(&ty);
            let optional = matches!(ty, Ty::Option(_)) || p.default.is_some();
            out.push(Param { name, ty: show::ty(hir, &ty), tensor, mutable, optional, compile_time: false });
        }
    }
    out
}

fn tensor(ty: &Ty) -> (bool, bool) {
    match ty {
        Ty::View { mutable, .. } | Ty::Tile { elem: Elem::Ptr { mutable, .. }, .. } => (true, *mutable),
        Ty::Option(t) => tensor(t),
        Ty::Buffer { .. } => (true, true),
        Ty::Tile { .. }
        | Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Tuple(_)
        | Ty::Struct(..)
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => (false, false),
    }
}
