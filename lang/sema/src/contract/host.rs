//! A kernel's parameters for the command line, in the order of the arguments.

use super::bind::{flat_tys, rank_param, tensor_elem};
use crate::hir::{FnId, Hir};
use crate::lower::flat_names;
use crate::show;
use crate::types::{DTerm, Elem, Ty};

/// One argument of a kernel, or one of its compile-time parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostParam {
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
    /// The tensors in a table of addresses; `None` for other parameters.
    pub table: Option<Table>,
}

/// A parameter whose elements are addresses: `view[*T, 1]`, `**T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The number of addresses to follow to an element: 1 for `view[*T, 1]`, 2 for `view[**T, 1]`.
    pub depth: u32,
    /// Whether the kernel may write to the elements.
    pub mutable: bool,
    /// The type of the elements.
    pub element: DTerm,
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
pub fn parameters(hir: &Hir, kernel: FnId) -> Vec<HostParam> {
    let f = hir.func(kernel);
    let mut out = vec![];
    for id in &f.cparams {
        let c = hir.cvar(*id);
        out.push(HostParam {
            name: c.name.clone(),
            ty: show::ckind(hir, &c.kind),
            tensor: false,
            mutable: false,
            optional: c.default.is_some(),
            compile_time: true,
            table: None,
        });
    }
    for p in &f.params {
        let (mut names, mut types) = (vec![], vec![]);
        flat_names(hir, &p.ty, p.name.clone(), &mut names);
        flat_tys(hir, &p.ty, &mut types);
        for (name, ty) in names.into_iter().zip(types) {
            let (tensor, mutable) = tensor(&ty);
            let optional = matches!(ty, Ty::Option(_)) || p.default.is_some();
            let (table, ty) = (table(&ty), show::ty(hir, &ty));
            out.push(HostParam { name, ty, tensor, mutable, optional, compile_time: false, table });
        }
    }
    out
}

/// The compile-time parameters that the ranks of tensors decide.
pub fn rank_names(hir: &Hir, kernel: FnId) -> Vec<String> {
    let mut types = vec![];
    hir.func(kernel).params.iter().for_each(|p| flat_tys(hir, &p.ty, &mut types));
    let mut names: Vec<String> =
        types.iter().filter_map(rank_param).map(|(id, _)| hir.cvar(id).name.clone()).collect();
    names.dedup();
    names
}

fn table(ty: &Ty) -> Option<Table> {
    let mut elem = tensor_elem(ty)?;
    let (mut depth, mut writes) = (0, false);
    while let Elem::Ptr { pointee, mutable } = elem {
        (depth, writes, elem) = (depth + 1, *mutable, pointee);
    }
    match elem {
        Elem::D(element) if depth > 0 => Some(Table { depth, mutable: writes, element: *element }),
        Elem::D(_) | Elem::Ptr { .. } | Elem::Err => None,
    }
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
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => (false, false),
    }
}
