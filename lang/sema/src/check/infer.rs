//! Inference of compile-time arguments: what parameters must be for a parameter type to take an argument.

use super::cx::Cx;
use super::subst::Subst;
use crate::hir::{CVarId, HKind};
use crate::poly::Poly;
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    /// Binds the compile-time parameters so that a parameter of type `p` takes a value of type `a`.
    pub fn bind_ty(&mut self, p: &Ty, a: &Ty, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Ty::Tile { elem: e, shape: s }, Ty::Tile { elem: f, shape: t }) => {
                self.bind_elem(e, f, cparams, map);
                self.bind_shape(s, t, cparams, map);
            }
            (Ty::View { elem: e, rank: p, .. }, Ty::View { elem: f, rank: a, .. }) => {
                self.bind_elem(e, f, cparams, map);
                bind_rank(p, a, cparams, map);
            }
            (Ty::View { elem: e, rank, .. }, Ty::Buffer { elem: f, shape }) => {
                self.bind_elem(e, f, cparams, map);
                bind_rank(rank, &Poly::int(shape.len() as i128), cparams, map);
            }
            (Ty::List(p, n), Ty::List(a, m)) => {
                self.bind_ty(p, a, cparams, map);
                bind_rank(n, m, cparams, map);
            }
            (Ty::Option(p), Ty::Option(a)) => self.bind_ty(p, a, cparams, map),
            (Ty::Option(p), a) => self.bind_ty(p, a, cparams, map),
            (Ty::Tuple(ps), Ty::Tuple(ts)) => {
                for (p, a) in ps.iter().zip(ts) {
                    self.bind_ty(p, a, cparams, map);
                }
            }
            (Ty::Struct(i, ps), Ty::Struct(j, ts)) if i == j => {
                for (p, a) in ps.iter().zip(ts) {
                    match (p, a) {
                        (CTerm::Int(p), a @ CTerm::Int(_)) => {
                            if let Some(id) = p.as_param()
                                && cparams.contains(&id)
                            {
                                map.entry(id).or_insert_with(|| a.clone());
                            }
                        }
                        (CTerm::DType(p), CTerm::DType(a)) => {
                            self.bind_elem(&Elem::D(*p), &Elem::D(*a), cparams, map)
                        }
                        (CTerm::Shape(p), CTerm::Shape(a)) => self.bind_shape(p, a, cparams, map),
                        (CTerm::Expr(p), a @ CTerm::Expr(_)) => {
                            if let HKind::CVar(id) = &p.kind
                                && cparams.contains(id)
                            {
                                map.entry(*id).or_insert_with(|| a.clone());
                            }
                        }
                        _ => {}
                    }
                }
            }
            (Ty::Fn(ps, r), Ty::Fn(ts, s)) => {
                for (p, a) in ps.iter().zip(ts) {
                    self.bind_ty(p, a, cparams, map);
                }
                self.bind_ty(r, s, cparams, map);
            }
            _ => {}
        }
    }

    pub fn bind_elem(&mut self, p: &Elem, a: &Elem, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Elem::D(DTerm::Param(id)), Elem::D(d)) if cparams.contains(id) => {
                let d = self.norm(*d);
                map.entry(*id).or_insert(CTerm::DType(d));
            }
            (Elem::D(DTerm::Param(id)), Elem::Err) if cparams.contains(id) => {
                map.entry(*id).or_insert(CTerm::Err);
            }
            (Elem::Ptr { pointee: p, .. }, Elem::Ptr { pointee: a, .. }) => {
                self.bind_elem(p, a, cparams, map)
            }
            _ => {}
        }
    }

    fn bind_shape(&mut self, p: &Shape, a: &Shape, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Shape::Param(id), s) if cparams.contains(id) => {
                map.entry(*id).or_insert_with(|| CTerm::Shape(s.clone()));
            }
            (Shape::Dims(ps), Shape::Dims(ds)) if ps.len() == ds.len() => {
                for (p, d) in ps.iter().zip(ds) {
                    if let Some(id) = p.as_param()
                        && cparams.contains(&id)
                    {
                        map.entry(id).or_insert_with(|| CTerm::Int(Poly::clone(d)));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Binds a variable so that a rank, `R` or `R + 1`, is that of an argument.
pub(super) fn bind_rank(p: &Poly, a: &Poly, cparams: &[CVarId], map: &mut Subst) {
    if let Some((id, more)) = p.as_param_plus()
        && cparams.contains(&id)
        && let Some(rank) = a.sub(&Poly::int(more))
    {
        map.entry(id).or_insert(CTerm::Int(rank));
    }
}
