//! Element types: what a literal becomes, which members a dtype variable has here, and when two agree.

use tk_ops::{DType, DTypeSet};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, Lit, Var};
use crate::eval::CVal;
use crate::hir::{CKind, CVarId, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Ty};
use crate::visit::has_hole;

impl Cx<'_> {
    /// An expression that gives an element type or a shape, as its value where that is known while checking: types
    /// have no symbols for others.
    pub fn settled(&mut self, h: HExpr) -> HExpr {
        let computed = matches!(h.ty, Ty::DType | Ty::ShapeTy) && h.konst;
        if !computed || matches!(h.kind, HKind::DType(_) | HKind::Shape(_) | HKind::CVar(_)) {
            return h;
        }
        match self.computed(&h) {
            Some(CVal::DType(d)) => self.mk(HKind::DType(DTerm::Known(d)), Ty::DType, h.span, true),
            Some(CVal::Shape(dims)) => {
                let dims = dims.iter().map(|d| self.poly_expr(&Poly::int((*d).into()), h.span)).collect();
                self.mk(HKind::Shape(dims), Ty::ShapeTy, h.span, true)
            }
            _ => h,
        }
    }

    /// The element type that an expression of type `dtype` gives; reports where it depends on a specialization.
    pub fn need_dtype(&mut self, h: HExpr) -> Option<(HExpr, DTerm)> {
        if h.ty.is_err() || !self.need_const(&h) {
            return None;
        }
        let h = self.settled(h);
        if let HKind::DType(d) = &h.kind {
            let d = *d;
            return Some((h, d));
        }
        if has_hole(&h) {
            return None;
        }
        let d = Diagnostic::error(
            codes::UNKNOWN_EXTENT,
            h.span,
            "the element type must be known before specialization",
            "this depends on compile-time parameters",
        )
        .note("move the code that depends on it into the arms of a compile-time `if`");
        self.report(d);
        None
    }

    /// A new literal type.
    pub fn fresh(&mut self, lit: Lit) -> DTerm {
        DTerm::Infer(self.vars.push(Var::Free(lit)))
    }

    /// The members that a dtype variable can have here.
    pub fn members(&self, id: CVarId) -> DTypeSet {
        if let Some((_, set)) = self.narrowed.iter().rev().find(|(n, _)| *n == id) {
            return *set;
        }
        match &self.hir().cvar(id).kind {
            CKind::DType(set) => *set,
            CKind::Int(_) | CKind::Float(_) | CKind::Bool | CKind::Shape | CKind::Fn(..) | CKind::Err => {
                DTypeSet::EMPTY
            }
        }
    }

    /// The simplest equal term: literal types followed, variables with one member known, `T.acc` computed.
    pub fn norm(&self, d: DTerm) -> DTerm {
        match d {
            DTerm::Known(_) => d,
            DTerm::Infer(v) => match self.vars.get(v) {
                Some(Var::Bound(to)) => self.norm(*to),
                Some(Var::Free(_)) | None => d,
            },
            DTerm::Param(id) => self.members(id).single().map_or(d, DTerm::Known),
            DTerm::Acc(id) => {
                let set = self.members(id);
                let accs = DTypeSet(set.iter().fold(0, |b, m| b | DTypeSet::of(&[m.acc()]).0));
                match accs.single() {
                    Some(one) => DTerm::Known(one),
                    None if set.iter().all(|m| m.acc() == m) => DTerm::Param(id),
                    None => d,
                }
            }
        }
    }

    /// The possible values of a term; `None` for a literal type, which adapts.
    pub fn set_of(&self, d: DTerm) -> Option<DTypeSet> {
        match self.norm(d) {
            DTerm::Known(k) => Some(DTypeSet::of(&[k])),
            DTerm::Param(id) => Some(self.members(id)),
            DTerm::Acc(id) => {
                Some(DTypeSet(self.members(id).iter().fold(0, |b, m| b | DTypeSet::of(&[m.acc()]).0)))
            }
            DTerm::Infer(_) => None,
        }
    }

    /// The kind of a literal type that nothing has fixed yet.
    pub fn literal(&self, d: DTerm) -> Option<Lit> {
        match self.norm(d) {
            DTerm::Infer(v) => match self.vars.get(v) {
                Some(Var::Free(l)) => Some(*l),
                Some(Var::Bound(_)) | None => None,
            },
            DTerm::Known(_) | DTerm::Param(_) | DTerm::Acc(_) => None,
        }
    }

    /// Fixes a literal type to another term; false when a float literal would become an integer or a bool, or an integer
    /// that must stay one a float.
    pub fn adapt(&mut self, lit: DTerm, to: DTerm) -> bool {
        let (DTerm::Infer(v), Some(kind)) = (self.norm(lit), self.literal(lit)) else { return false };
        let to = self.norm(to);
        if to == DTerm::Infer(v) {
            return true;
        }
        let fits = match self.literal(to) {
            // A float literal makes an integer literal a float, not the other way round.
            Some(Lit::Int) if kind != Lit::Int => return self.adapt(to, lit),
            Some(other) => other == kind || kind == Lit::Int,
            None => {
                let ok = match kind {
                    // `other = 0` of an fp8 load is the one literal that fp8 takes; casts make the rest.
                    Lit::Int => DTypeSet::NUMBER.or(DTypeSet::F8),
                    Lit::Whole => DTypeSet::INT,
                    Lit::Float => DTypeSet::FLOAT.or(DTypeSet::F8),
                };
                self.set_of(to).is_some_and(|s| s.within(ok))
            }
        };
        if fits {
            self.vars.set(v, Var::Bound(to));
        }
        fits
    }

    pub fn resolve_elem(&self, e: &Elem) -> Elem {
        match e {
            Elem::D(d) => Elem::D(self.norm(*d)),
            Elem::Ptr { pointee, mutable } => {
                Elem::Ptr { pointee: Box::new(self.resolve_elem(pointee)), mutable: *mutable }
            }
            Elem::Err => Elem::Err,
        }
    }

    pub fn resolve_ty(&self, t: &Ty) -> Ty {
        match t {
            Ty::Tile { elem, shape } => Ty::Tile { elem: self.resolve_elem(elem), shape: shape.clone() },
            Ty::View { elem, rank, mutable, wide } => {
                Ty::View { elem: self.resolve_elem(elem), rank: rank.clone(), mutable: *mutable, wide: *wide }
            }
            Ty::List(t, n) => Ty::List(Box::new(self.resolve_ty(t)), n.clone()),
            Ty::Buffer { elem, shape } => Ty::Buffer { elem: self.resolve_elem(elem), shape: shape.clone() },
            Ty::Option(t) => Ty::Option(Box::new(self.resolve_ty(t))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.resolve_ty(t)).collect()),
            Ty::Fn(ps, r) => {
                Ty::Fn(ps.iter().map(|t| self.resolve_ty(t)).collect(), Box::new(self.resolve_ty(r)))
            }
            Ty::Struct(id, args) => Ty::Struct(*id, args.iter().map(|a| self.resolve_cterm(a)).collect()),
            Ty::Err | Ty::Unit | Ty::Never | Ty::DType | Ty::ShapeTy | Ty::Str => t.clone(),
        }
    }

    pub fn resolve_cterm(&self, c: &crate::types::CTerm) -> crate::types::CTerm {
        use crate::types::CTerm;
        match c {
            CTerm::DType(d) => CTerm::DType(self.norm(*d)),
            CTerm::Int(_) | CTerm::Shape(_) | CTerm::Expr(_) | CTerm::Err => c.clone(),
        }
    }

    /// Returns true if two element types are the same here; literal types are fixed on the way.
    pub fn same_elem(&mut self, a: &Elem, b: &Elem) -> bool {
        match (self.resolve_elem(a), self.resolve_elem(b)) {
            (Elem::Err, _) | (_, Elem::Err) => true,
            (Elem::D(a), Elem::D(b)) => a == b || self.adapt(a, b) || self.adapt(b, a),
            (Elem::Ptr { pointee: a, mutable: m }, Elem::Ptr { pointee: b, mutable: n }) => {
                m == n && self.same_elem(&a, &b)
            }
            (Elem::D(_), Elem::Ptr { .. }) | (Elem::Ptr { .. }, Elem::D(_)) => false,
        }
    }

    /// Returns true if `from` becomes `to` without loss: integers of one signedness get wider.
    pub fn widens(&self, from: DTerm, to: DTerm) -> bool {
        match (self.norm(from), self.norm(to)) {
            (DTerm::Known(f), DTerm::Known(t)) => {
                f.is_int() && t.is_int() && f.is_signed() == t.is_signed() && f.bits() < t.bits()
            }
            _ => false,
        }
    }

    /// Brings operands to one element type; reports and gives `None` when they have none in common.
    pub fn join_elems(&mut self, what: &str, operands: &mut [&mut HExpr]) -> Option<DTerm> {
        let mut common: Option<(DTerm, Span)> = None;
        // Fixed types first, literals adapt to them.
        for pass in [false, true] {
            for h in operands.iter() {
                let Some(d) = self.dterm_of(&h.ty) else { continue };
                if self.literal(d).is_some() != pass {
                    continue;
                }
                match common {
                    None => common = Some((d, h.span)),
                    Some((c, at)) => {
                        if self.norm(c) == self.norm(d) || self.adapt(d, c) || self.widens(d, c) {
                            continue;
                        }
                        if self.widens(c, d) || self.adapt(c, d) {
                            common = Some((d, h.span));
                            continue;
                        }
                        let inner = match &h.kind {
                            HKind::Cast(x) => self.dterm_of(&x.ty),
                            _ => None,
                        };
                        let narrowed = inner == Some(self.norm(c)) && self.narrows(c, d);
                        let b = (d, h.span);
                        let d = self.elem_mismatch(what, (c, at), b);
                        let meant = match narrowed {
                            true => self.cast_of_all(&d, what, at, b),
                            false => self.lost_in_operand(&d, operands, [(c, at), b]),
                        };
                        self.report(meant.unwrap_or_else(|| self.cast_one(d, (c, at), b)));
                        return None;
                    }
                }
            }
        }
        let (c, _) = common?;
        for h in operands.iter_mut() {
            if let Some(d) = self.dterm_of(&h.ty)
                && self.norm(d) != self.norm(c)
            {
                widen_to(h, c);
            }
        }
        Some(c)
    }

    fn elem_mismatch(&self, what: &str, a: (DTerm, Span), b: (DTerm, Span)) -> Diagnostic {
        let (ta, tb) = (self.show_elem(&Elem::D(a.0)), self.show_elem(&Elem::D(b.0)));
        Diagnostic::error(
            codes::ELEMENT_MISMATCH,
            b.1,
            format!("{what} needs equal element types, but has `{ta}` and `{tb}`"),
            super::this_is(&tb),
        )
        .label(a.1, super::this_is(&ta))
    }

    /// The dtype term of a tile of scalars.
    pub fn dterm_of(&self, t: &Ty) -> Option<DTerm> {
        match t {
            Ty::Tile { elem: Elem::D(d), .. } => Some(self.norm(*d)),
            _ => None,
        }
    }

    /// Checks that every member of a term is in a set; reports otherwise. Literals are steered into the set.
    pub fn need_class(&mut self, what: &str, d: DTerm, set: DTypeSet, span: Span) -> bool {
        self.need_class_beside(what, (d, span), set, &[(d, span)])
    }

    /// The same of one of several operands, which need one type.
    pub fn need_class_beside(
        &mut self,
        what: &str,
        (d, span): (DTerm, Span),
        set: DTypeSet,
        operands: &[(DTerm, Span)],
    ) -> bool {
        let Some(have) = self.set_of(d) else {
            return self.literal_class(what, d, set, span);
        };
        if have.within(set) {
            return true;
        }
        let shown = self.show_elem(&Elem::D(d));
        let bad: Vec<&str> = have.without(set).iter().map(DType::name).collect();
        let param = match self.norm(d) {
            DTerm::Param(id) | DTerm::Acc(id) => Some(id),
            DTerm::Known(_) | DTerm::Infer(_) => None,
        };
        let diag = match param {
            Some(id) => {
                let at = self.hir().cvar(id).span;
                let name = self.hir().cvar(id).name.clone();
                Diagnostic::error(
                    codes::BOUND,
                    span,
                    format!("{what} is not defined for every `{name}`: {} not possible", not_possible(&bad)),
                    super::this_is(&shown),
                )
                .label(at, format!("`{name}` may be {}", bad.join(", ")))
                .note(format!("it is defined for {set}"))
            }
            None => {
                let mut diag = Diagnostic::error(
                    codes::CLASS,
                    span,
                    format!("{what} is not defined for `{shown}`"),
                    super::this_is(&shown),
                )
                .note(format!("it is defined for {set}"));
                let rounded_up = what == "`ceil`";
                if rounded_up {
                    diag = diag.note("a quotient of integers that is rounded up is `cdiv(a, b)`");
                }
                if let Some((whole, text)) = self.rounded_up(span).filter(|_| rounded_up) {
                    diag = diag.write_instead(whole, text);
                } else if set.has(DType::F32)
                    && !have.and(DTypeSet::ORDERED).within(DTypeSet::EMPTY)
                    && !set.has(DType::Bool)
                {
                    diag = self.cast_operands(diag, set, operands);
                }
                diag = match self.of_integers(diag.clone(), what, d, span) {
                    Some(mended) => mended,
                    None if set.within(DTypeSet::BOOL) && have.within(DTypeSet::NUMBER) => {
                        self.compare_with_zero(diag, span)
                    }
                    None => diag,
                };
                let is_operator = !what.trim_matches('`').starts_with(char::is_alphabetic);
                if is_operator && have.within(DTypeSet::BOOL) && DTypeSet::NUMBER.within(set) {
                    let note = "`where(condition, a, b)` chooses by it, and `condition as f32` is 1 or 0";
                    diag = diag.note(note);
                }
                diag
            }
        };
        self.report(diag);
        false
    }

    /// Offers the comparison with 0 of a number where a condition is wanted.
    pub fn compare_with_zero(&self, d: Diagnostic, span: Span) -> Diagnostic {
        let text = self.text(span);
        let text = if self.is_postfix(&text) { text } else { format!("({text})") };
        // An operator before it would take the number alone.
        let is_negated =
            span.start > 0 && self.text(Span { start: span.start - 1, end: span.start, ..span }) == "!";
        let compared = if is_negated { format!("({text} != 0)") } else { format!("{text} != 0") };
        d.fix("compare with 0", span, compared)
    }

    fn literal_class(&mut self, what: &str, d: DTerm, set: DTypeSet, span: Span) -> bool {
        let Some(lit) = self.literal(d) else { return true };
        let ok = match lit {
            Lit::Int
                if set.and(DTypeSet::INT) == DTypeSet::EMPTY
                    && set.and(DTypeSet::FLOAT) != DTypeSet::EMPTY =>
            {
                if let DTerm::Infer(v) = self.norm(d) {
                    self.vars.set(v, Var::Free(Lit::Float));
                }
                true
            }
            Lit::Int if set.within(DTypeSet::INT) => {
                if let DTerm::Infer(v) = self.norm(d) {
                    self.vars.set(v, Var::Free(Lit::Whole));
                }
                true
            }
            Lit::Int => set.and(DTypeSet::NUMBER) != DTypeSet::EMPTY,
            Lit::Whole => set.and(DTypeSet::INT) != DTypeSet::EMPTY,
            Lit::Float => set.and(DTypeSet::FLOAT) != DTypeSet::EMPTY,
        };
        if !ok {
            let shown = if lit == Lit::Float { "a float" } else { "an integer" };
            self.error(
                codes::CLASS,
                span,
                format!("{what} is not defined for {shown}"),
                format!("it is defined for {set}"),
            );
        }
        ok
    }
}

pub(super) fn not_possible(bad: &[&str]) -> String {
    let list: Vec<String> = bad.iter().map(|b| format!("`{b}`")).collect();
    match list.as_slice() {
        [one] => format!("{one} is"),
        [init @ .., last] => format!("{} and {last} are", init.join(", ")),
        [] => "it is".into(),
    }
}

/// Wraps an expression into a conversion of its elements.
pub(crate) fn widen_to(h: &mut HExpr, to: DTerm) {
    let Ty::Tile { shape, .. } = &h.ty else { return };
    let ty = Ty::Tile { elem: Elem::D(to), shape: shape.clone() };
    let inner = std::mem::replace(h, HExpr::err(h.span));
    *h = HExpr { span: inner.span, konst: inner.konst, ty, kind: HKind::Cast(Box::new(inner)) };
}

/// The number of `T.bits` and the like.
pub(super) fn dtype_fact(d: DType, fact: &str) -> Option<i128> {
    match (fact, d.int_range()) {
        ("bits", _) => Some(i128::from(d.bits())),
        ("min", Some((lo, _))) => Some(lo),
        ("max", Some((_, hi))) => Some(hi),
        _ => None,
    }
}
