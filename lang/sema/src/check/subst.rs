//! Substitution: types of a generic item with its compile-time variables replaced by arguments.

use std::collections::BTreeMap;

use super::cx::Cx;
use crate::hir::{CVarId, HExpr, HKind};
use crate::poly::{Atom, Poly};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};
use crate::visit;

/// Arguments by variable. Variables that are missing stay.
pub(crate) type Subst = BTreeMap<CVarId, CTerm>;

impl Cx<'_> {
    pub fn subst_ty(&mut self, t: &Ty, s: &Subst) -> Ty {
        match t {
            Ty::Tile { elem, shape } => {
                let elem = self.subst_elem(elem, s);
                self.subst_shape(shape, s).map_or(Ty::Err, |shape| Ty::Tile { elem, shape })
            }
            Ty::View { elem, rank, mutable, wide } => {
                let elem = self.subst_elem(elem, s);
                let view = |rank| Ty::View { elem, rank, mutable: *mutable, wide: *wide };
                self.subst_poly(rank, s).map_or(Ty::Err, view)
            }
            Ty::List(t, n) => {
                let t = self.subst_ty(t, s);
                match self.subst_poly(n, s) {
                    Some(n) => self.list_of(t, n),
                    None => Ty::Err,
                }
            }
            Ty::Buffer { elem, shape } => {
                let shape: Option<Vec<Poly>> = shape.iter().map(|p| self.subst_poly(p, s)).collect();
                let elem = self.subst_elem(elem, s);
                shape.map_or(Ty::Err, |shape| Ty::Buffer { elem, shape })
            }
            Ty::Option(t) => Ty::Option(Box::new(self.subst_ty(t, s))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.subst_ty(t, s)).collect()),
            Ty::Fn(ps, r) => {
                Ty::Fn(ps.iter().map(|t| self.subst_ty(t, s)).collect(), Box::new(self.subst_ty(r, s)))
            }
            Ty::Struct(id, args) => Ty::Struct(*id, args.iter().map(|a| self.subst_cterm(a, s)).collect()),
            Ty::Err | Ty::Unit | Ty::Never | Ty::DType | Ty::ShapeTy | Ty::Str => t.clone(),
        }
    }

    /// A tuple of values of one type; a list while their number is not known.
    pub fn list_of(&self, item: Ty, count: Poly) -> Ty {
        match self.with_facts(&count).as_int() {
            Some(n) => Ty::Tuple(vec![item; usize::try_from(n).unwrap_or(0)]),
            None => Ty::List(Box::new(item), count),
        }
    }

    pub fn subst_cterm(&mut self, c: &CTerm, s: &Subst) -> CTerm {
        match c {
            CTerm::Int(p) => self.subst_poly(p, s).map_or(CTerm::Err, CTerm::Int),
            CTerm::DType(d) => match self.subst_elem(&Elem::D(*d), s) {
                Elem::D(d) => CTerm::DType(d),
                Elem::Err | Elem::Ptr { .. } => CTerm::Err,
            },
            CTerm::Shape(sh) => self.subst_shape(sh, s).map_or(CTerm::Err, CTerm::Shape),
            CTerm::Expr(h) => match self.subst_expr(h, s) {
                Some(h) => CTerm::Expr(Box::new(h)),
                None => CTerm::Err,
            },
            CTerm::Err => CTerm::Err,
        }
    }

    pub fn subst_elem(&mut self, e: &Elem, s: &Subst) -> Elem {
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
            Elem::Ptr { pointee, mutable } => {
                Elem::Ptr { pointee: Box::new(self.subst_elem(pointee, s)), mutable: *mutable }
            }
        }
    }

    pub fn subst_shape(&mut self, sh: &Shape, s: &Subst) -> Option<Shape> {
        match sh {
            Shape::Param(id) => match s.get(id) {
                Some(CTerm::Shape(x)) => Some(x.clone()),
                Some(_) => None,
                None => Some(sh.clone()),
            },
            Shape::Dims(d) => {
                d.iter().map(|p| self.subst_poly(p, s)).collect::<Option<Vec<_>>>().map(Shape::Dims)
            }
        }
    }

    /// A compile-time expression with its variables replaced; `None` when an argument was wrong.
    pub fn subst_expr(&mut self, h: &HExpr, s: &Subst) -> Option<HExpr> {
        let mut out = h.clone();
        let mut ok = true;
        self.subst_in(&mut out, s, &mut ok);
        ok.then_some(out)
    }

    fn subst_in(&mut self, h: &mut HExpr, s: &Subst, ok: &mut bool) {
        h.ty = self.subst_ty(&h.ty, s);
        match &mut h.kind {
            HKind::CVar(id) => {
                return match s.get(id) {
                    Some(CTerm::Int(p)) => {
                        let (p, span, ty) = (p.clone(), h.span, h.ty.clone());
                        let e = self.poly_expr(&p, span);
                        *h = if e.ty == ty {
                            e
                        } else {
                            HExpr { kind: HKind::Cast(Box::new(e)), ty, span, konst: true }
                        };
                    }
                    Some(CTerm::Expr(e)) => *h = (**e).clone(),
                    Some(CTerm::Shape(Shape::Param(q))) => h.kind = HKind::CVar(*q),
                    Some(CTerm::Shape(Shape::Dims(d))) => {
                        let (d, span) = (d.clone(), h.span);
                        h.kind = HKind::Shape(d.iter().map(|p| self.poly_expr(p, span)).collect());
                    }
                    Some(CTerm::DType(_) | CTerm::Err) => *ok = false,
                    None => {}
                };
            }
            HKind::DType(d) | HKind::DTypeFact(d, _) => match self.subst_elem(&Elem::D(*d), s) {
                Elem::D(to) => *d = to,
                Elem::Err | Elem::Ptr { .. } => *ok = false,
            },
            HKind::Call { cargs, .. } | HKind::Launch { cargs, .. } | HKind::FnRef(_, cargs) => {
                for (_, c) in cargs.iter_mut() {
                    *c = self.subst_cterm(c, s);
                }
                // The arguments' own expressions have been replaced just now.
                if let HKind::FnRef(..) = &h.kind {
                    return;
                }
            }
            _ => {}
        }
        visit::children(h, &mut |e| self.subst_in(e, s, ok));
    }

    fn subst_poly(&mut self, p: &Poly, s: &Subst) -> Option<Poly> {
        let mut opaque = BTreeMap::new();
        for i in p.opaque() {
            let Some(e) = self.hir().opaque.get(i as usize).cloned() else { continue };
            let e = self.subst_expr(&e, s)?;
            let to = self.poly(&e)?;
            opaque.insert(i, to);
        }
        subst_atoms(p, s, &opaque)
    }
}

fn subst_atoms(p: &Poly, s: &Subst, opaque: &BTreeMap<u32, Poly>) -> Option<Poly> {
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
        Atom::Opaque(i) => opaque.get(i).cloned(),
        Atom::Fn(..) => None,
    })
}
