//! The evaluation of symbolic types, extents and compile-time arguments to concrete ones.
//!
//! Guarantees that every tile type it gives has rank 0 to 5, extents of at least 1 and at most [`MAX_TILE`] elements.

use std::collections::BTreeMap;

use tk_ops::DType;
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::Type;

use super::{CVal, EvalResult, Evaluator, FnVal, bug, dtype_fact, fail};
use crate::hir::CVarId;
use crate::poly::{Atom, Poly, PolyFn, eval_fn};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

/// The most elements that a tile may have, from the language.
pub const MAX_TILE: u128 = 1 << 20;

/// The highest rank of a tile, from the language.
const MAX_RANK: usize = 5;

/// A concrete type.
#[derive(Clone, Debug, PartialEq)]
pub enum CTy {
    /// No value.
    Unit,
    /// Of what does not return.
    Never,
    /// A tile or a view: one value of the tile IR.
    One(Type),
    /// An optional view.
    Option(Type),
    /// An optional view that is known to be absent. Only lowering knows that; [`Evaluator::ty`] never gives it.
    Absent,
    /// A tuple or struct.
    Tuple(Vec<CTy>),
    /// A value that only exists at compile time.
    Static,
}

impl Evaluator<'_> {
    /// An element type.
    pub fn dterm(&mut self, d: DTerm, span: Span) -> EvalResult<DType> {
        let of = |v: CVal| match v {
            CVal::DType(d) => Ok(d),
            other => Err(bug("evaluation", span, format!("an element type has the value {other}"))),
        };
        match d {
            DTerm::Known(d) => Ok(d),
            DTerm::Param(id) => of(self.cvar(id, span)?),
            DTerm::Acc(id) => Ok(of(self.cvar(id, span)?)?.acc()),
            DTerm::Infer(_) => Err(bug("evaluation", span, "a literal type was left open")),
        }
    }

    /// An integer.
    pub fn poly(&mut self, p: &Poly, span: Span) -> EvalResult<i128> {
        let overflow = || fail(span, "this extent overflows");
        let mut sum: i128 = 0;
        for (mono, coeff) in p.terms() {
            let mut product = coeff;
            for atom in mono {
                let v = self.atom(atom, span)?;
                product = product.checked_mul(v).map_or_else(overflow, Ok)?;
            }
            sum = sum.checked_add(product).map_or_else(overflow, Ok)?;
        }
        Ok(sum)
    }

    fn atom(&mut self, atom: &Atom, span: Span) -> EvalResult<i128> {
        let dims = |v: CVal| match v {
            CVal::Shape(s) => Ok(s),
            other => Err(bug("evaluation", span, format!("extents have the value {other}"))),
        };
        match atom {
            Atom::Param(id) => match self.cvar(*id, span)? {
                CVal::Int(i) => Ok(i),
                other => Err(bug("evaluation", span, format!("an extent has the value {other}"))),
            },
            Atom::ShapeDim(id, i) => {
                let s = dims(self.cvar(*id, span)?)?;
                match s.get(*i as usize) {
                    Some(d) => Ok((*d).into()),
                    None => fail(span, format!("the shape {s:?} has no dimension {i}")),
                }
            }
            Atom::ShapeRank(id) => Ok(dims(self.cvar(*id, span)?)?.len() as i128),
            Atom::ShapeCount(id) => {
                let s = dims(self.cvar(*id, span)?)?;
                let count = s.iter().try_fold(1i128, |n, d| n.checked_mul((*d).into()));
                count.map_or_else(|| fail(span, format!("the shape {s:?} has too many elements")), Ok)
            }
            Atom::DTypeFact(id, fact) => {
                let d = self.dterm(DTerm::Param(*id), span)?;
                match dtype_fact(d, fact).and_then(|v| v.as_int()) {
                    Some(i) => Ok(i),
                    None => fail(span, format!("`{d}.{fact}` is no integer")),
                }
            }
            // The arm that is not taken need not have a value.
            Atom::Fn(PolyFn::Choose, args) if args.len() == 4 => {
                let taken = if self.poly(&args[0], span)? == self.poly(&args[1], span)? { 2 } else { 3 };
                self.poly(&args[taken], span)
            }
            Atom::Fn(f, args) => {
                let vals = args.iter().map(|p| self.poly(p, span)).collect::<EvalResult<Vec<_>>>()?;
                apply(*f, &vals, span)
            }
            Atom::Opaque(i) => {
                let hir = self.hir;
                match hir.opaque.get(*i as usize) {
                    Some(e) => self.int(e),
                    None => Err(bug("evaluation", span, format!("there is no opaque extent {i}"))),
                }
            }
        }
    }

    /// Extents.
    pub fn shape(&mut self, s: &Shape, span: Span) -> EvalResult<Vec<i64>> {
        match s {
            Shape::Param(id) => match self.cvar(*id, span)? {
                CVal::Shape(s) => Ok(s),
                other => Err(bug("evaluation", span, format!("extents have the value {other}"))),
            },
            Shape::Dims(dims) => dims
                .iter()
                .map(|p| {
                    let v = self.poly(p, span)?;
                    i64::try_from(v).or_else(|_| fail(span, format!("the extent {v} is too large")))
                })
                .collect(),
        }
    }

    /// A compile-time argument.
    pub fn cterm(&mut self, c: &CTerm, span: Span) -> EvalResult<CVal> {
        match c {
            CTerm::Int(p) => Ok(CVal::Int(self.poly(p, span)?)),
            CTerm::DType(d) => Ok(CVal::DType(self.dterm(*d, span)?)),
            CTerm::Shape(s) => Ok(CVal::Shape(self.shape(s, span)?)),
            CTerm::Expr(e) => self.expr(e),
            CTerm::Err => Err(bug("evaluation", span, "a compile-time argument was left open")),
        }
    }

    /// The compile-time arguments of a call.
    pub fn cargs(&mut self, cargs: &[(CVarId, CTerm)], span: Span) -> EvalResult<BTreeMap<CVarId, CVal>> {
        cargs.iter().map(|(id, c)| Ok((*id, self.cterm(c, span)?))).collect()
    }

    /// The elements of a tile or view.
    pub fn elem(&mut self, e: &Elem, span: Span) -> EvalResult<tk_tile::ElemType> {
        Ok(match e {
            Elem::D(d) => tk_tile::ElemType::Scalar(self.dterm(*d, span)?),
            Elem::Ptr { pointee, mutable } => {
                tk_tile::ElemType::Ptr { pointee: Box::new(self.elem(pointee, span)?), mutable: *mutable }
            }
            Elem::Err => return Err(bug("evaluation", span, "a type was left open")),
        })
    }

    /// A type.
    pub fn ty(&mut self, ty: &Ty, span: Span) -> EvalResult<CTy> {
        match ty {
            Ty::Unit => Ok(CTy::Unit),
            Ty::Never => Ok(CTy::Never),
            Ty::Tile { elem, shape } => {
                let elem = self.elem(elem, span)?;
                let dims = self.shape(shape, span)?;
                Ok(CTy::One(Type::Tile { elem, shape: self.extents(&dims, Some((ty, shape)), span)? }))
            }
            Ty::View { elem, rank, mutable, wide } => {
                let elem = self.elem(elem, span)?;
                let rank = self.rank(rank, ty, span)?;
                Ok(CTy::One(Type::View { elem, rank, mutable: *mutable, wide: *wide }))
            }
            Ty::Buffer { elem, shape } => {
                let elem = self.elem(elem, span)?;
                Ok(CTy::One(Type::View { elem, rank: shape.len() as u32, mutable: true, wide: false }))
            }
            Ty::Option(t) => match self.ty(t, span)? {
                CTy::One(t) => Ok(CTy::Option(t)),
                other => Err(bug("evaluation", span, format!("an optional of {other:?}"))),
            },
            Ty::Tuple(items) => {
                Ok(CTy::Tuple(items.iter().map(|t| self.ty(t, span)).collect::<EvalResult<Vec<_>>>()?))
            }
            Ty::List(item, count) => {
                let (item, count) = (self.ty(item, span)?, self.poly(count, span)?);
                Ok(CTy::Tuple(vec![item; usize::try_from(count).unwrap_or(0).min(MAX_RANK)]))
            }
            Ty::Struct(id, cargs) => {
                let hir = self.hir;
                let strukt = hir.strukt(*id);
                let mut cvars = BTreeMap::new();
                for (var, c) in strukt.cparams.iter().zip(cargs) {
                    cvars.insert(*var, self.cterm(c, span)?);
                }
                let bindings = self.bindings.inner(cvars);
                self.nested(&bindings, BTreeMap::new(), span, |inner| {
                    let fields = strukt.fields.iter().map(|(_, t, _)| inner.ty(t, span));
                    Ok(CTy::Tuple(fields.collect::<EvalResult<Vec<_>>>()?))
                })
            }
            Ty::Fn(..) | Ty::DType | Ty::ShapeTy | Ty::Str => Ok(CTy::Static),
            Ty::Err => Err(bug("evaluation", span, "a type was left open")),
        }
    }

    /// The rank of a view of this type.
    fn rank(&mut self, rank: &crate::poly::Poly, ty: &Ty, span: Span) -> EvalResult<u32> {
        let n = self.poly(rank, span)?;
        match u32::try_from(n).ok().filter(|n| (1..=MAX_RANK as u32).contains(n)) {
            Some(n) => Ok(n),
            None => {
                let ty = crate::show::ty(self.hir, ty);
                let message = format!("a view has 1 to {MAX_RANK} dimensions, but `{ty}` has {n} here");
                Err(Box::new(Diagnostic::error(codes::TILE_RANK, span, message, format!("rank {n}"))))
            }
        }
    }

    /// Extents of a tile, checked against the limits of the language; `what` is the type that they come from.
    pub(crate) fn extents(
        &mut self,
        dims: &[i64],
        what: Option<(&Ty, &Shape)>,
        span: Span,
    ) -> EvalResult<Vec<u32>> {
        let shown = what.map_or(String::new(), |(t, _)| format!(" of `{}`", crate::show::ty(self.hir, t)));
        if dims.len() > MAX_RANK {
            let n = dims.len();
            let message =
                format!("a tile has at most {MAX_RANK} dimensions, and the shape {dims:?}{shown} has {n}");
            return Err(Box::new(Diagnostic::error(
                codes::INSTANCE,
                span,
                message,
                format!("{n} dimensions"),
            )));
        }
        for (i, d) in dims.iter().enumerate() {
            if *d < 1 {
                let source = match what {
                    Some((_, Shape::Dims(polys))) => polys.get(i),
                    Some((_, Shape::Param(_))) | None => None,
                };
                let name = source.filter(|p| p.as_int().is_none()).map(|p| crate::show::poly(self.hir, p));
                let which = name.map_or(format!("extent {i}{shown}"), |n| format!("the extent `{n}`{shown}"));
                let message = format!("{which} is {d}, but extents are at least 1");
                return Err(Box::new(Diagnostic::error(codes::EXTENT, span, message, format!("extent {d}"))));
            }
        }
        let count = dims.iter().try_fold(1u128, |n, d| n.checked_mul(u128::try_from(*d).unwrap_or(0)));
        if count.is_none_or(|n| n > MAX_TILE) {
            let size = count.map_or("too many".to_string(), |n| n.to_string());
            let name =
                what.map_or("a tile".to_string(), |(t, _)| format!("`{}`", crate::show::ty(self.hir, t)));
            let message =
                format!("{name} has {size} elements with the shape {dims:?}, the limit is {MAX_TILE}");
            return Err(Box::new(Diagnostic::error(
                codes::TILE_TOO_LARGE,
                span,
                message,
                count.map_or("too many elements".to_string(), |n| format!("{n} elements")),
            )));
        }
        // No extent exceeds the product.
        Ok(dims.iter().map(|d| u32::try_from(*d).unwrap_or(u32::MAX)).collect())
    }

    /// The function that a compile-time argument stands for.
    pub(crate) fn function(&mut self, e: &crate::hir::HExpr) -> EvalResult<FnVal> {
        match self.expr(e)? {
            CVal::Fn(f) => Ok(f),
            other => Err(bug("evaluation", e.span, format!("a function has the value {other}"))),
        }
    }
}

/// An integer function of a polynomial, with a sentence where it has no value.
fn apply(f: PolyFn, v: &[i128], span: Span) -> EvalResult<i128> {
    if let (PolyFn::Div | PolyFn::Rem | PolyFn::CeilDiv, [_, 0]) = (f, v) {
        return fail(span, "division by zero");
    }
    match eval_fn(f, v) {
        Some(v) => Ok(v),
        // As the operator on `i32`.
        None if let (PolyFn::Shl, [a, k]) = (f, v) => {
            let amount = u32::try_from(*k).unwrap_or(u32::MAX);
            Ok((*a as i32).checked_shl(amount).unwrap_or(0).into())
        }
        None => fail(span, format!("`{f:?}` has no value for {v:?}")),
    }
}
