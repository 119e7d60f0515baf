//! Shapes: when two extents are equal, how shapes broadcast, and the messages when they do not.

use std::collections::BTreeMap;

use tk_syntax::{Diagnostic, Span, codes};

use super::SigAst;
use super::cx::Cx;
use super::foreign::unwrapped;
use crate::hir::{CVarId, HArg, HExpr, HKind};
use crate::poly::{Atom, Poly, PolyFn, eval_fn};
use crate::types::{Shape, Ty};

/// What is said of extents whose difference has no normal form.
const NOT_COMPARED: &str = "extents are compared as sums, products, quotients and shifts; in place of other operations take a parameter, `*` and `/`, as in `N / S` with `require(N % S == 0)`";

/// Quotients of divisibility facts are opaque atoms from here up, apart from those of expressions.
const QUOTIENTS: u32 = 1 << 31;

/// Choices that a comparison looks into, one inside of another: an axis of a tile has at most five values, and an
/// expression seldom mentions two axes.
const MAX_CASES: u32 = 6;

/// A polynomial in which a variable has a value.
fn with_value(p: &Poly, id: CVarId, value: &Poly) -> Option<Poly> {
    p.subst(&|a| match a {
        Atom::Param(x) if *x == id => Some(value.clone()),
        _ => None,
    })
}

impl Cx<'_> {
    /// A polynomial under what the `require`s say.
    pub fn with_facts(&self, p: &Poly) -> Poly {
        let mut p = p.clone();
        for (id, to) in &self.facts {
            let subst = p.subst(&|a| match a {
                Atom::Param(x) if x == id => Some(to.clone()),
                _ => None,
            });
            if let Some(q) = subst {
                p = q;
            }
        }
        p
    }

    pub fn dims_equal(&self, a: &Poly, b: &Poly) -> bool {
        if a == b {
            return true;
        }
        let (a, b) = (self.with_facts(a), self.with_facts(b));
        a == b || self.equal_by_cases(&a, &b, MAX_CASES)
    }

    /// Returns true if two polynomials are equal for every outcome of the choices in them.
    fn equal_by_cases(&self, a: &Poly, b: &Poly, cases: u32) -> bool {
        let Some((x, y)) = a.choice().or(b.choice()) else { return false };
        let (x, y) = (x.clone(), y.clone());
        if cases == 0 {
            return false;
        }
        if let Some((id, rank)) = self.axis_range(&x) {
            return (0..rank).all(|n| {
                let at = |p: &Poly| with_value(p, id, &Poly::int(n as i128));
                let (Some(p), Some(q)) = (at(a), at(b)) else { return false };
                p == q || self.equal_by_cases(&p, &q, cases - 1)
            });
        }
        [true, false].into_iter().all(|equal| {
            let at = |p: &Poly| {
                let p = p.assuming(&x, &y, equal)?;
                match x.as_param().filter(|_| equal) {
                    Some(id) => with_value(&p, id, &y),
                    None => Some(p),
                }
            };
            let (Some(p), Some(q)) = (at(a), at(b)) else { return false };
            p == q || self.equal_by_cases(&p, &q, cases - 1)
        })
    }

    /// The extent to which two broadcast, that of each outcome of the choices in them.
    fn joined(&self, p: &Poly, q: &Poly, cases: u32) -> Option<Poly> {
        let one = Poly::int(1);
        if self.dims_equal(p, q) || *q == one {
            return Some(p.clone());
        }
        if *p == one {
            return Some(q.clone());
        }
        let (x, y) = p.choice().or(q.choice()).filter(|_| cases > 0)?;
        let arm = |equal| self.joined(&p.assuming(x, y, equal)?, &q.assuming(x, y, equal)?, cases - 1);
        Poly::apply(PolyFn::Choose, vec![x.clone(), y.clone(), arm(true)?, arm(false)?])
    }

    pub fn shapes_equal(&self, a: &Shape, b: &Shape) -> bool {
        match (a, b) {
            (Shape::Param(x), Shape::Param(y)) => x == y,
            (Shape::Dims(x), Shape::Dims(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(p, q)| self.dims_equal(p, q))
            }
            (Shape::Param(_), Shape::Dims(_)) | (Shape::Dims(_), Shape::Param(_)) => false,
        }
    }

    /// Remembers what a compile-time condition says where it holds, or where it does not.
    pub fn learn(&mut self, cond: &HExpr, holds: bool) {
        if !cond.konst {
            return;
        }
        match &cond.kind {
            HKind::ShortCircuit { or, lhs, rhs } if *or != holds => {
                self.learn(lhs, holds);
                self.learn(rhs, holds);
            }
            HKind::Builtin(row, args) => match (row.name, args.as_slice()) {
                ("unary !", [HArg::Expr(inner)]) => self.learn(inner, !holds),
                ("==", [HArg::Expr(l), HArg::Expr(r)]) if holds => self.learn_equal(l, r),
                ("!=", [HArg::Expr(l), HArg::Expr(r)]) if !holds => self.learn_equal(l, r),
                _ => {}
            },
            _ => {}
        }
    }

    /// Remembers that two compile-time values are equal: `A == e` or `A % c == 0` for a variable `A`.
    fn learn_equal(&mut self, l: &HExpr, r: &HExpr) {
        if let (HKind::DTypeFact(a, "bits"), HKind::DTypeFact(b, "bits")) = (&l.kind, &r.kind) {
            self.widths.push((*a, *b));
        }
        let (Some(l), Some(r)) = (self.poly(l), self.poly(r)) else { return };
        let (l, r) = (self.with_facts(&l), self.with_facts(&r));
        if r.as_int() == Some(0)
            && let Some(Atom::Fn(PolyFn::Rem, args)) = single_atom(&l)
            && let [e, c] = args.as_slice()
            && let Some(id) = e.as_param()
        {
            self.quotients += 1;
            let q = Poly::atom(Atom::Opaque(QUOTIENTS + self.quotients));
            if let Some(product) = c.mul(&q) {
                self.facts.push((id, product));
            }
        } else if let Some(id) = l.as_param() {
            self.facts.push((id, r));
        } else if let Some(id) = r.as_param() {
            self.facts.push((id, l));
        }
    }

    /// The common shape of operands that broadcast; reports and gives `None` when there is none.
    pub fn broadcast(&mut self, what: &str, operands: &[&HExpr]) -> Option<Shape> {
        let mut acc: Option<(Shape, Span)> = None;
        for h in operands {
            let Ty::Tile { shape, .. } = &h.ty else { continue };
            acc = Some(match acc {
                None => (shape.clone(), h.span),
                Some((s, at)) => (self.joined_shapes(what, (&s, at), (shape, h.span), true)?, at.to(h.span)),
            });
        }
        acc.map(|a| a.0)
    }

    pub fn broadcast_two(&mut self, what: &str, a: (&Shape, Span), b: (&Shape, Span)) -> Option<Shape> {
        self.joined_shapes(what, a, b, false)
    }

    /// The common shape of two; `pairs` offers one of more dimensions, where the result may have it.
    fn joined_shapes(
        &mut self,
        what: &str,
        a: (&Shape, Span),
        b: (&Shape, Span),
        pairs: bool,
    ) -> Option<Shape> {
        if a.0.is_scalar() || self.shapes_equal(a.0, b.0) {
            return Some(b.0.clone());
        }
        if b.0.is_scalar() {
            return Some(a.0.clone());
        }
        let (Shape::Dims(x), Shape::Dims(y)) = (a.0, b.0) else {
            self.shape_mismatch(what, a, b, None, false);
            return None;
        };
        if x.len() != y.len() {
            self.rank_mismatch(what, a, b);
            return None;
        }
        let mut dims = vec![];
        for (i, (p, q)) in x.iter().zip(y).enumerate() {
            match self.joined(p, q, MAX_CASES) {
                Some(d) => dims.push(d),
                None => {
                    self.shape_mismatch(what, a, b, Some((i, p.clone(), q.clone())), pairs);
                    return None;
                }
            }
        }
        Some(Shape::Dims(dims))
    }

    fn shape_mismatch(
        &mut self,
        what: &str,
        a: (&Shape, Span),
        b: (&Shape, Span),
        dim: Option<(usize, Poly, Poly)>,
        pairs: bool,
    ) {
        let (sa, sb) = (self.show_shape(a.0), self.show_shape(b.0));
        let mut d = Diagnostic::error(
            codes::SHAPE_MISMATCH,
            b.1,
            format!("{what} needs equal shapes, but has `{sa}` and `{sb}`"),
            super::this_is(&sb),
        )
        .label(a.1, super::this_is(&sa));
        if sa == sb
            && let Some(d) = self.namesakes(d.clone(), &sa)
        {
            return self.report(d);
        }
        if self.is_product(what, a, b) {
            let (x, y) = (self.text(a.1), self.text(b.1));
            let text = format!("dot({}, {})", unwrapped(&x), unwrapped(&y));
            d = d.note("`*` multiplies element by element, `dot` rows by columns");
            return self.report(d.fix("multiply as matrices", a.1.to(b.1), text));
        }
        if let Some(d) = self.transposed(d.clone(), (a.0, Some(a.1)), b) {
            return self.report(d);
        }
        let paired = if pairs { self.all_pairs(d.clone(), a, b) } else { None };
        self.report(match (dim, paired) {
            // Parameters of their own: more likely all pairs than equal.
            (Some((_, p, q)), Some(paired)) if p.as_param().is_some() && q.as_param().is_some() => {
                match self.missing_fact(&p, &q) {
                    Some((_, fact)) => {
                        paired.note(format!("one by one they need `require({fact})` in the signature"))
                    }
                    None => paired,
                }
            }
            (Some((_, p, q)), paired) => self.equality_hint(paired.unwrap_or(d), &p, &q),
            (None, paired) => paired.unwrap_or(d),
        });
    }

    /// Returns true for `a * b` of matrices of which `dot` is defined.
    fn is_product(&mut self, what: &str, a: (&Shape, Span), b: (&Shape, Span)) -> bool {
        let (Some([_, k]), Some([l, _])) = (a.0.dims(), b.0.dims()) else { return false };
        what == "`*`" && a.1.end <= b.1.start && self.dims_equal(k, l)
    }

    /// Says which `require` would make two extents equal, where one would that [`Cx::learn`] can use.
    pub fn equality_hint(&self, d: Diagnostic, p: &Poly, q: &Poly) -> Diagnostic {
        let Some((to, text)) = self.missing_fact(p, q) else { return d };
        // What has no name cannot be written; neither can the quotients of other facts.
        if text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "_") {
            return match to.opaque().iter().any(|o| *o >= QUOTIENTS) {
                true => d,
                false => d.note(NOT_COMPARED),
            };
        }
        self.require_fix(d, &text, "make them equal")
    }

    /// Offers a condition for the signature of the function that is checked, which would `make` valid what is reported.
    pub fn require_fix(&self, d: Diagnostic, condition: &str, make: &str) -> Diagnostic {
        let sig = self.func.and_then(|id| self.p.sigs.get(id.0 as usize));
        let Some(SigAst::Fn(f)) = sig.map(|s| &s.ast) else {
            return d.note(format!("`require({condition})` in the signature would {make}"));
        };
        let (place, text) = f.with_require(condition);
        d.fix(format!("`require({condition})` in the signature would {make}"), place, text)
    }

    /// A fact under which two extents are equal: what a variable is replaced by, and the condition that says so. Only of
    /// variables of which no fact is known yet, since one more would not be used.
    fn missing_fact(&self, p: &Poly, q: &Poly) -> Option<(Poly, String)> {
        let difference = p.sub(q).filter(|d| d.choice().is_none())?;
        let is_known = |id: CVarId| self.facts.iter().any(|(known, _)| *known == id);
        let mut divided: BTreeMap<CVarId, i128> = BTreeMap::new();
        quotients(&difference, &mut divided);
        for (id, by) in divided.into_iter().filter(|(id, _)| !is_known(*id)) {
            let quotient = Poly::atom(Atom::Opaque(QUOTIENTS + self.quotients + 1));
            let to = Poly::int(by).mul(&quotient)?;
            if self.equal_if(p, q, id, &to) {
                let text = format!("{} % {by} == 0", self.hir().cvar(id).name);
                return Some((Poly::default(), text));
            }
        }
        // A variable that is alone in the difference, with a factor that divides the rest.
        for (mono, factor) in difference.terms() {
            let [Atom::Param(id)] = mono else { continue };
            if is_known(*id) {
                continue;
            }
            let own = Poly::param(*id).mul(&Poly::int(factor))?;
            let rest = difference.sub(&own)?;
            let mut to = Poly::default();
            for (m, c) in rest.terms() {
                let exact = c.checked_rem(factor)? == 0;
                let term = m.iter().try_fold(Poly::int(-(c / factor)), |t, a| t.mul(&Poly::atom(a.clone())));
                to = to.add(&term.filter(|_| exact)?)?;
            }
            let extent = p.subst(&|a| (*a == Atom::Param(*id)).then(|| to.clone()));
            // Nothing would be left to compute.
            let is_empty = extent.and_then(|e| e.as_int()).is_some_and(|e| e < 1);
            if !is_empty && self.equal_if(p, q, *id, &to) {
                let shown = crate::show::poly(self.hir(), &to);
                return Some((to, format!("{} == {shown}", self.hir().cvar(*id).name)));
            }
        }
        None
    }

    fn equal_if(&self, p: &Poly, q: &Poly, id: CVarId, to: &Poly) -> bool {
        let replaced = |x: &Poly| {
            x.subst(&|a| match a {
                Atom::Param(x) if *x == id => Some(to.clone()),
                _other => None,
            })
        };
        // `N == N / 2 * 2` would be true of itself.
        let circular = to.subst(&|a| (*a == Atom::Param(id)).then(Poly::default)).is_none_or(|t| t != *to);
        match (replaced(p), replaced(q)) {
            (Some(p), Some(q)) => !circular && self.dims_equal(&p, &q),
            (_, _) => false,
        }
    }

    fn rank_mismatch(&mut self, what: &str, a: (&Shape, Span), b: (&Shape, Span)) {
        let (sa, sb) = (self.show_shape(a.0), self.show_shape(b.0));
        let rank = |s: &Shape| s.dims().map_or(0, <[Poly]>::len);
        let (ra, rb) = (rank(a.0), rank(b.0));
        let mut d = Diagnostic::error(
            codes::RANK_MISMATCH,
            b.1,
            format!("{what} needs equal ranks, but has `{sa}` and `{sb}`"),
            format!("rank {rb}"),
        )
        .label(a.1, format!("rank {ra}"));
        let (low, high) = if ra < rb { (a, b) } else { (b, a) };
        if let (Some(l), Some(h)) = (low.0.dims(), high.0.dims()) {
            let text = self.text(low.1);
            // Of several operands no one is known to lack it.
            let forms = if super::meant::is_list(&text) { vec![] } else { placements(l, h, self) };
            for form in forms {
                let text = text.clone();
                let text = if self.is_postfix(&text) { text } else { format!("({text})") };
                d = d.fix(format!("add the missing dimension: `{form}`"), low.1, format!("{text}{form}"));
            }
        }
        self.report(d);
    }
}

/// The variables that a polynomial divides by numbers, each with the least common multiple of these.
fn quotients(p: &Poly, divided: &mut BTreeMap<CVarId, i128>) {
    for (mono, _) in p.terms() {
        for a in mono {
            let Atom::Fn(f, args) = a else { continue };
            let by = match (f, args.as_slice()) {
                (PolyFn::Div | PolyFn::CeilDiv | PolyFn::Rem, [_, by]) => by.as_int(),
                (PolyFn::Shr, [_, k]) => k.as_int().and_then(|k| eval_fn(PolyFn::Shl, &[1, k])),
                (_, _) => None,
            };
            if let (Some(id), Some(by)) = (args.first().and_then(Poly::as_param), by.filter(|by| *by > 0)) {
                let known = divided.entry(id).or_insert(1);
                *known = known.checked_mul(by / gcd(*known, by)).unwrap_or(*known);
            }
            args.iter().for_each(|e| quotients(e, divided));
        }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn single_atom(p: &Poly) -> Option<Atom> {
    let mut terms = p.terms();
    match (terms.next(), terms.next()) {
        (Some(([a], 1)), None) => Some(a.clone()),
        _ => None,
    }
}

/// The index texts that give `low` the rank of `high` so that both broadcast, trailing alignment first.
fn placements(low: &[Poly], high: &[Poly], cx: &Cx) -> Vec<String> {
    let (n, m) = (low.len(), high.len());
    if m > 5 {
        return vec![];
    }
    let mut out = vec![];
    for mask in 0u32..(1 << m) {
        if mask.count_ones() as usize != n {
            continue;
        }
        let mut next = low.iter();
        let fits = high.iter().enumerate().all(|(i, h)| {
            mask & (1 << i) == 0
                || next
                    .next()
                    .is_some_and(|l| cx.dims_equal(l, h) || l.as_int() == Some(1) || h.as_int() == Some(1))
        });
        if fits {
            let items: Vec<&str> = (0..m).map(|i| if mask & (1 << i) != 0 { ":" } else { "None" }).collect();
            out.push((std::cmp::Reverse(mask), format!("[{}]", items.join(", "))));
        }
    }
    out.sort();
    out.into_iter().take(2).map(|(_, t)| t).collect()
}
