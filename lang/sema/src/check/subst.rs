//! Owns substitution: types of a generic item with its compile-time variables replaced by arguments.

use std::collections::BTreeMap;

use super::cx::Cx;
use crate::hir::CVarId;
use crate::poly::{Atom, Poly};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

/// Arguments by variable. Variables that are missing stay.
pub(crate) type Subst = BTreeMap<CVarId, CTerm>;

impl Cx<'_, '_> {
    pub fn subst_ty(&self, t: &Ty, s: &Subst) -> Ty {
        match t {
            Ty::Tile { elem, shape } => {
                let elem = self.subst_elem(elem, s);
                self.subst_shape(shape, s).map_or(Ty::Err, |shape| Ty::Tile { elem, shape })
            }
            Ty::View { elem, rank, mutable, wide } => {
                Ty::View { elem: self.subst_elem(elem, s), rank: *rank, mutable: *mutable, wide: *wide }
            }
            Ty::Buffer { elem, shape } => {
                let shape: Option<Vec<Poly>> = shape.iter().map(|p| subst_poly(p, s)).collect();
                shape.map_or(Ty::Err, |shape| Ty::Buffer { elem: self.subst_elem(elem, s), shape })
            }
            Ty::Option(t) => Ty::Option(Box::new(self.subst_ty(t, s))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.subst_ty(t, s)).collect()),
            Ty::Fn(ps, r) => Ty::Fn(ps.iter().map(|t| self.subst_ty(t, s)).collect(), Box::new(self.subst_ty(r, s))),
            Ty::Struct(id, args) => Ty::Struct(*id, args.iter().map(|a| self.subst_cterm(a, s)).collect()),
            Ty::Err | Ty::Unit | Ty::Never | Ty::DType | Ty::ShapeTy | Ty::Str => t.clone(),
        }
    }

    pub fn subst_cterm(&self, c: &CTerm, s: &Subst) -> CTerm {
        match c {
            CTerm::Int(p) => subst_poly(p, s).map_or(CTerm::Err, CTerm::Int),
            CTerm::DType(d) => match self.subst_elem(&Elem::D(*d), s) {
                Elem::D(d) => CTerm::DType(d),
                Elem::Err | Elem::Ptr { .. } => CTerm::Err,
            },
            CTerm::Shape(sh) => self.subst_shape(sh, s).map_or(CTerm::Err, CTerm::Shape),
            CTerm::Expr(h) => match &h.kind {
                crate::hir::HKind::CVar(id) => s.get(id).cloned().unwrap_or_else(|| c.clone()),
                _ => c.clone(),
            },
            CTerm::Err => CTerm::Err,
        }
    }

    pub fn subst_elem(&self, e: &Elem, s: &Subst) -> Elem {
        match e {
            Elem::D(DTerm::Param(id)) => match s.get(id) {
                Some(CTerm::DType(d)) => Elem::D(*d),
                Some(_) => Elem::Err,
                None => e.clone(),
            },
            Elem::D(DTerm::Acc(id)) => match s.get(id) {
                Some(CTerm::DType(d)) => match self.norm(*d) {
                    DTerm::Known(k) => Elem::D(DTerm::Known(k.acc())),
                    DTerm::Param(p) => Elem::D(DTerm::Acc(p)),
                    // `T.acc` is an accumulator type already, and a literal accumulates in its own type.
                    other @ (DTerm::Acc(_) | DTerm::Infer(_)) => Elem::D(other),
                },
                Some(_) => Elem::Err,
                None => e.clone(),
            },
            Elem::D(DTerm::Known(_) | DTerm::Infer(_)) | Elem::Err => e.clone(),
            Elem::Ptr { pointee, mutable } => Elem::Ptr { pointee: Box::new(self.subst_elem(pointee, s)), mutable: *mutable },
        }
    }

    pub fn subst_shape(&self, sh: &Shape, s: &Subst) -> Option<Shape> {
        match sh {
            Shape::Param(id) => match s.get(id) {
                Some(CTerm::Shape(x)) => Some(x.clone()),
                Some(_) => None,
                None => Some(sh.clone()),
            },
            Shape::Dims(d) => d.iter().map(|p| subst_poly(p, s)).collect::<Option<Vec<_>>>().map(Shape::Dims),
        }
    }
}

fn subst_poly(p: &Poly, s: &Subst) -> Option<Poly> {
    p.subst(&|a| match a {
        Atom::Param(id) => match s.get(id) {
            Some(CTerm::Int(q)) => Some(q.clone()),
            _ => None,
        },
        Atom::ShapeDim(id, i) => match s.get(id) {
            Some(CTerm::Shape(Shape::Dims(d))) => d.get(*i as usize).cloned(),
            Some(CTerm::Shape(Shape::Param(q))) => Some(Poly::atom(Atom::ShapeDim(*q, *i))),
            _ => None,
        },
        Atom::ShapeRank(id) => match s.get(id) {
            Some(CTerm::Shape(Shape::Dims(d))) => Some(Poly::int(d.len() as i128)),
            Some(CTerm::Shape(Shape::Param(q))) => Some(Poly::atom(Atom::ShapeRank(*q))),
            _ => None,
        },
        Atom::ShapeCount(id) => match s.get(id) {
            Some(CTerm::Shape(Shape::Dims(d))) => d.iter().try_fold(Poly::int(1), |acc, x| acc.mul(x)),
            Some(CTerm::Shape(Shape::Param(q))) => Some(Poly::atom(Atom::ShapeCount(*q))),
            _ => None,
        },
        Atom::DTypeFact(id, f) => match (s.get(id), *f) {
            (Some(CTerm::DType(DTerm::Known(d))), "bits") => Some(Poly::int(i128::from(d.bits()))),
            (Some(CTerm::DType(DTerm::Known(d))), "min") => d.int_range().map(|r| Poly::int(r.0)),
            (Some(CTerm::DType(DTerm::Known(d))), "max") => d.int_range().map(|r| Poly::int(r.1)),
            (Some(CTerm::DType(DTerm::Param(q))), f) => Some(Poly::atom(Atom::DTypeFact(*q, f))),
            _ => None,
        },
        Atom::Fn(..) | Atom::Opaque(_) => None,
    })
}
