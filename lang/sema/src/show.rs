//! The text of types in messages: the words and names that the user wrote.

use crate::hir::{CKind, Hir};
use crate::poly::{Atom, Poly};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

/// A type as a user writes it. Literal types that nothing has fixed yet show as `{number}`.
pub fn ty(hir: &Hir, t: &Ty) -> String {
    match t {
        Ty::Err => "?".into(),
        Ty::Unit => "()".into(),
        Ty::Never => "never".into(),
        Ty::Tile { elem: e, shape } if shape.is_scalar() => elem(hir, e),
        Ty::Tile { elem: e, shape: Shape::Param(s) } => {
            format!("tile[{}, {}]", elem(hir, e), hir.cvar(*s).name)
        }
        Ty::Tile { elem: e, shape: Shape::Dims(d) } => {
            format!(
                "tile[{}, {}]",
                elem(hir, e),
                d.iter().map(|p| poly(hir, p)).collect::<Vec<_>>().join(", ")
            )
        }
        Ty::List(t, count) => format!("[{}; {}]", ty(hir, t), poly(hir, count)),
        Ty::View { elem: e, rank, mutable, wide } => {
            let rank = poly(hir, rank);
            let (m, w) = (if *mutable { "mut " } else { "" }, if *wide { ", i64" } else { "" });
            format!("{m}view[{}, {rank}{w}]", elem(hir, e))
        }
        Ty::Option(t) => format!("{}?", ty(hir, t)),
        Ty::Buffer { elem: e, shape } => {
            format!(
                "buffer[{}]",
                [elem(hir, e)]
                    .into_iter()
                    .chain(shape.iter().map(|p| poly(hir, p)))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        Ty::Tuple(ts) if ts.len() == 1 => format!("({},)", list(hir, ts)),
        Ty::Tuple(ts) => format!("({})", list(hir, ts)),
        Ty::Struct(id, args) if args.is_empty() => hir.strukt(*id).name.clone(),
        Ty::Struct(id, args) => {
            let args: Vec<String> = args.iter().map(|a| cterm(hir, a)).collect();
            format!("{}[{}]", hir.strukt(*id).name, args.join(", "))
        }
        Ty::Fn(ps, r) => format!("fn({}) -> {}", list(hir, ps), ty(hir, r)),
        Ty::DType => "dtype".into(),
        Ty::ShapeTy => "shape".into(),
        Ty::Str => "text".into(),
    }
}

fn list(hir: &Hir, ts: &[Ty]) -> String {
    ts.iter().map(|t| ty(hir, t)).collect::<Vec<_>>().join(", ")
}

/// An element type.
pub fn elem(hir: &Hir, e: &Elem) -> String {
    match e {
        Elem::Err => "?".into(),
        Elem::D(d) => dterm(hir, *d),
        Elem::Ptr { pointee, mutable } => {
            format!("*{}{}", if *mutable { "mut " } else { "" }, elem(hir, pointee))
        }
    }
}

/// A dtype expression.
pub fn dterm(hir: &Hir, d: DTerm) -> String {
    match d {
        DTerm::Known(d) => d.name().into(),
        DTerm::Param(id) => hir.cvar(id).name.clone(),
        DTerm::Acc(id) => format!("{}.acc", hir.cvar(id).name),
        DTerm::Infer(_) => "{number}".into(),
    }
}

/// A symbolic integer.
pub fn poly(hir: &Hir, p: &Poly) -> String {
    p.show(&|a| match a {
        Atom::Param(id) => hir.cvar(*id).name.clone(),
        Atom::ShapeDim(id, i) => format!("{}[{i}]", hir.cvar(*id).name),
        Atom::ShapeRank(id) => format!("{}.rank", hir.cvar(*id).name),
        Atom::ShapeCount(id) => format!("{}.count", hir.cvar(*id).name),
        Atom::DTypeFact(id, f) => format!("{}.{f}", hir.cvar(*id).name),
        Atom::Fn(..) | Atom::Opaque(_) => "_".into(),
    })
}

/// The extents between brackets.
pub fn shape(hir: &Hir, s: &Shape) -> String {
    match s {
        Shape::Param(id) => hir.cvar(*id).name.clone(),
        Shape::Dims(d) => format!("[{}]", d.iter().map(|p| poly(hir, p)).collect::<Vec<_>>().join(", ")),
    }
}

/// A compile-time argument.
pub fn cterm(hir: &Hir, c: &CTerm) -> String {
    match c {
        CTerm::Int(p) => poly(hir, p),
        CTerm::DType(d) => dterm(hir, *d),
        CTerm::Shape(s) => shape(hir, s),
        CTerm::Expr(_) => "..".into(),
        CTerm::Err => "?".into(),
    }
}

/// The range of a compile-time variable, as text.
pub fn ckind(hir: &Hir, k: &CKind) -> String {
    match k {
        CKind::Int(d) | CKind::Float(d) => d.name().into(),
        CKind::Bool => "bool".into(),
        CKind::DType(set) => set.to_string(),
        CKind::Shape => "shape".into(),
        CKind::Fn(ps, r) => format!("fn({}) -> {}", list(hir, ps), ty(hir, r)),
        CKind::Err => "?".into(),
    }
}
