//! Symbolic integers: the normal form in which extents are compared.
//!
//! A [`Poly`] is an integer polynomial over atoms: compile-time parameters, and opaque applications of `/`, `%`,
//! `cdiv`, `minimum`, `maximum`, `next_pow2`, `1 << k`, `>>`, and choices `if a == b { c } else { d }`. Equal normal forms are equal
//! values; the reverse need not hold. The rules `(c * e) / c = e` and `cdiv(c * e, c) = e` are applied while a polynomial is built.

use std::collections::BTreeMap;

use crate::hir::CVarId;

/// An opaque integer function of polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the functions of the language")]
pub enum PolyFn {
    Div,
    Rem,
    CeilDiv,
    Min,
    Max,
    NextPow2,
    /// `1 << k` of `[1, k]`; `a << k` is the product of `a` with it.
    Shl,
    /// `a >> k` of `[a, k]`: the quotient by `1 << k`, rounded down.
    Shr,
    /// `if a == b { c } else { d }` of `[a, b, c, d]`.
    Choose,
}

/// An indivisible symbol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// An integer compile-time variable.
    Param(CVarId),
    /// `S[i]` of a shape parameter.
    ShapeDim(CVarId, u32),
    /// The number of dimensions of a shape parameter.
    ShapeRank(CVarId),
    /// The number of elements of a shape parameter.
    ShapeCount(CVarId),
    /// `T.bits`, `T.min`, `T.max` of a dtype parameter.
    DTypeFact(CVarId, &'static str),
    /// An application.
    Fn(PolyFn, Vec<Poly>),
    /// A compile-time expression without normal form: index into [`crate::hir::Hir::opaque`].
    Opaque(u32),
}

/// An integer polynomial in normal form: sorted products of atoms with coefficients that are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Poly {
    terms: BTreeMap<Vec<Atom>, i128>,
}

/// Products beyond this many terms are not expanded (the largest seen in 36 kernels had 6).
const MAX_TERMS: usize = 64;

impl Poly {
    /// A number.
    pub fn int(n: i128) -> Poly {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(vec![], n);
        }
        Poly { terms }
    }

    /// One atom.
    pub fn atom(a: Atom) -> Poly {
        Poly { terms: BTreeMap::from([(vec![a], 1)]) }
    }

    /// A compile-time variable.
    pub fn param(id: CVarId) -> Poly {
        Poly::atom(Atom::Param(id))
    }

    /// The number, if it has no atoms.
    pub fn as_int(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&vec![]).copied(),
            _ => None,
        }
    }

    /// A variable and what is added to it, if the polynomial is just that.
    pub fn as_param_plus(&self) -> Option<(CVarId, i128)> {
        let id = self.terms().find_map(|(mono, _)| match mono {
            [Atom::Param(id)] => Some(*id),
            _ => None,
        })?;
        let rest = self.sub(&Poly::param(id))?.as_int()?;
        Some((id, rest))
    }

    /// The variable, if the polynomial is just that.
    pub fn as_param(&self) -> Option<CVarId> {
        let (mono, coeff) = self.terms.iter().next().filter(|_| self.terms.len() == 1)?;
        match (mono.as_slice(), coeff) {
            ([Atom::Param(id)], 1) => Some(*id),
            _ => None,
        }
    }

    /// Terms: products of atoms and their coefficients.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i128)> {
        self.terms.iter().map(|(m, c)| (m.as_slice(), *c))
    }

    /// The sum; `None` on overflow of 128 bits.
    pub fn add(&self, other: &Poly) -> Option<Poly> {
        let mut terms = self.terms.clone();
        for (m, c) in &other.terms {
            let sum = terms.get(m).copied().unwrap_or(0).checked_add(*c)?;
            if sum == 0 {
                terms.remove(m);
            } else {
                terms.insert(m.clone(), sum);
            }
        }
        Some(Poly { terms })
    }

    /// The negative.
    pub fn neg(&self) -> Option<Poly> {
        Poly::int(-1).mul(self)
    }

    /// The difference.
    pub fn sub(&self, other: &Poly) -> Option<Poly> {
        self.add(&other.neg()?)
    }

    /// The product; `None` on overflow or when it has too many terms.
    pub fn mul(&self, other: &Poly) -> Option<Poly> {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        let mut out = Poly::default();
        for (ma, ca) in &self.terms {
            for (mb, cb) in &other.terms {
                let mut m: Vec<Atom> = ma.iter().chain(mb).cloned().collect();
                m.sort();
                let term = Poly { terms: BTreeMap::from([(m, ca.checked_mul(*cb)?)]) };
                out = out.add(&term)?;
            }
        }
        Some(out)
    }

    /// `self = d * q` with an exact polynomial quotient by a single term `d`.
    fn exact_div(&self, d: &Poly) -> Option<Poly> {
        let (dm, dc) = d.terms.iter().next().filter(|_| d.terms.len() == 1)?;
        let mut terms = BTreeMap::new();
        for (m, c) in &self.terms {
            if c.checked_rem(*dc)? != 0 {
                return None;
            }
            let mut rest = m.clone();
            for a in dm {
                let at = rest.iter().position(|x| x == a)?;
                rest.remove(at);
            }
            terms.insert(rest, c / dc);
        }
        Some(Poly { terms })
    }

    /// An application in normal form: computed for numbers, simplified by the rules of the module.
    pub fn apply(f: PolyFn, args: Vec<Poly>) -> Option<Poly> {
        let ints: Option<Vec<i128>> = args.iter().map(Poly::as_int).collect();
        if let Some(v) = ints {
            return eval_fn(f, &v).map(Poly::int);
        }
        if let (PolyFn::Div | PolyFn::CeilDiv, [a, b]) = (f, args.as_slice()) {
            if b.as_int() == Some(1) {
                return Some(a.clone());
            }
            if let Some(q) = a.exact_div(b) {
                return Some(q);
            }
        }
        if let (PolyFn::Shr, [a, k]) = (f, args.as_slice())
            && let Some(q) = a.exact_div(&Poly::apply(PolyFn::Shl, vec![Poly::int(1), k.clone()])?)
        {
            return Some(q);
        }
        if let (PolyFn::Rem, [a, b]) = (f, args.as_slice())
            && a.exact_div(b).is_some()
        {
            return Some(Poly::int(0));
        }
        if let (PolyFn::Choose, [a, b, yes, no]) = (f, args.as_slice()) {
            match a.sub(b)?.as_int() {
                Some(0) => return Some(yes.clone()),
                Some(_) => return Some(no.clone()),
                None if yes == no => return Some(yes.clone()),
                None => {}
            }
        }
        let mut args = args;
        if let PolyFn::Min | PolyFn::Max = f {
            args.sort();
            args.dedup();
            if let [one] = args.as_slice() {
                return Some(one.clone());
            }
        }
        Some(Poly::atom(Atom::Fn(f, args)))
    }

    /// The value under an assignment of the basic atoms; `None` when one is missing or a division by zero occurs.
    pub fn eval(&self, value: &dyn Fn(&Atom) -> Option<i128>) -> Option<i128> {
        let mut sum: i128 = 0;
        for (mono, c) in &self.terms {
            let mut product = *c;
            for a in mono {
                let v = match a {
                    Atom::Fn(PolyFn::Choose, args) => choice(args, &|p| p.eval(value))?.eval(value)?,
                    Atom::Fn(f, args) => {
                        let vals: Option<Vec<i128>> = args.iter().map(|p| p.eval(value)).collect();
                        eval_fn(*f, &vals?)?
                    }
                    basic => value(basic)?,
                };
                product = product.checked_mul(v)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// The polynomial with atoms replaced; `f` gives `None` for atoms that stay.
    pub fn subst(&self, f: &dyn Fn(&Atom) -> Option<Poly>) -> Option<Poly> {
        let mut out = Poly::default();
        for (mono, c) in &self.terms {
            let mut product = Poly::int(*c);
            for a in mono {
                let factor = match f(a) {
                    Some(p) => p,
                    None => match a {
                        Atom::Fn(g, args) => {
                            let args: Option<Vec<Poly>> = args.iter().map(|p| p.subst(f)).collect();
                            Poly::apply(*g, args?)?
                        }
                        other => Poly::atom(other.clone()),
                    },
                };
                product = product.mul(&factor)?;
            }
            out = out.add(&product)?;
        }
        Some(out)
    }

    /// The opaque expressions in it, those in applications included.
    pub fn opaque(&self) -> Vec<u32> {
        let mut out = vec![];
        for a in self.terms.keys().flatten() {
            match a {
                Atom::Opaque(i) => out.push(*i),
                Atom::Fn(_, args) => out.extend(args.iter().flat_map(Poly::opaque)),
                Atom::Param(_)
                | Atom::ShapeDim(..)
                | Atom::ShapeRank(_)
                | Atom::ShapeCount(_)
                | Atom::DTypeFact(..) => {}
            }
        }
        out
    }

    /// The first choice in it: the two sides that it compares.
    pub fn choice(&self) -> Option<(&Poly, &Poly)> {
        self.terms.keys().flatten().find_map(|a| match a {
            Atom::Fn(PolyFn::Choose, args) => match args.as_slice() {
                [a, b, ..] => Some((a, b)),
                _ => None,
            },
            Atom::Fn(_, args) => args.iter().find_map(Poly::choice),
            Atom::Param(_)
            | Atom::ShapeDim(..)
            | Atom::ShapeRank(_)
            | Atom::ShapeCount(_)
            | Atom::DTypeFact(..)
            | Atom::Opaque(_) => None,
        })
    }

    /// The polynomial if two others are equal, or are not: choices between them are made.
    pub fn assuming(&self, a: &Poly, b: &Poly, equal: bool) -> Option<Poly> {
        self.subst(&|atom| match atom {
            Atom::Fn(PolyFn::Choose, args) => match args.as_slice() {
                [x, y, yes, no] if x == a && y == b => (if equal { yes } else { no }).assuming(a, b, equal),
                _ => None,
            },
            _ => None,
        })
    }

    /// The text in the language's terms; `name` prints the basic atoms.
    pub fn show(&self, name: &dyn Fn(&Atom) -> String) -> String {
        if self.terms.is_empty() {
            return "0".into();
        }
        let mut out = String::new();
        // The constant goes last, as people write `BM + 1`.
        let (consts, rest): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(m, _)| m.is_empty());
        for (m, c) in rest.into_iter().chain(consts) {
            let first = out.is_empty();
            let sign = if *c < 0 {
                if first { "-" } else { " - " }
            } else if first {
                ""
            } else {
                " + "
            };
            out.push_str(sign);
            let mut factors = vec![];
            if c.unsigned_abs() != 1 || m.is_empty() {
                factors.push(c.unsigned_abs().to_string());
            }
            for a in m {
                let text = show_atom(a, name);
                // `32 * (N / 2)` is not `32 * N / 2`.
                let quotient = matches!(a, Atom::Fn(PolyFn::Div | PolyFn::Rem, _));
                factors.push(if quotient && !factors.is_empty() { format!("({text})") } else { text });
            }
            out.push_str(&factors.join(" * "));
        }
        // Alone, a choice needs no parentheses.
        match self.terms.iter().next() {
            Some((m, 1))
                if self.terms.len() == 1
                    && matches!(m.as_slice(), [Atom::Fn(PolyFn::Choose | PolyFn::Shl | PolyFn::Shr, _)]) =>
            {
                out.get(1..out.len() - 1).unwrap_or_default().to_string()
            }
            _ => out,
        }
    }
}

fn show_atom(a: &Atom, name: &dyn Fn(&Atom) -> String) -> String {
    let Atom::Fn(f, args) = a else { return name(a) };
    let text: Vec<String> = args.iter().map(|p| p.show(name)).collect();
    let operand = |i: usize| {
        let t = text.get(i).cloned().unwrap_or_default();
        if t.contains(' ') { format!("({t})") } else { t }
    };
    match f {
        PolyFn::Div => format!("{} / {}", operand(0), operand(1)),
        PolyFn::Rem => format!("{} % {}", operand(0), operand(1)),
        PolyFn::CeilDiv => format!("cdiv({})", text.join(", ")),
        PolyFn::Min => format!("minimum({})", text.join(", ")),
        PolyFn::Max => format!("maximum({})", text.join(", ")),
        PolyFn::NextPow2 => format!("next_pow2({})", text.join(", ")),
        PolyFn::Shl => format!("({} << {})", operand(0), operand(1)),
        PolyFn::Shr => format!("({} >> {})", operand(0), operand(1)),
        PolyFn::Choose => {
            let at = |i: usize| text.get(i).map_or("?", String::as_str);
            format!("(if {} == {} {{ {} }} else {{ {} }})", at(0), at(1), at(2), at(3))
        }
    }
}

/// The arm of a choice that is taken; the other need not have a value.
fn choice<'p>(args: &'p [Poly], value: &dyn Fn(&Poly) -> Option<i128>) -> Option<&'p Poly> {
    let [a, b, yes, no] = args else { return None };
    Some(if value(a)? == value(b)? { yes } else { no })
}

/// The value of an integer function; `None` for a division by zero, a wrong argument count or an overflow.
pub fn eval_fn(f: PolyFn, v: &[i128]) -> Option<i128> {
    match (f, v) {
        (PolyFn::Div, [a, b]) => a.checked_div(*b),
        (PolyFn::Rem, [a, b]) => a.checked_rem(*b),
        (PolyFn::CeilDiv, [a, b]) => {
            let q = a.checked_div(*b)?;
            let exact = a.checked_rem(*b)? == 0;
            Some(if !exact && (*a > 0) == (*b > 0) { q + 1 } else { q })
        }
        (PolyFn::Min, v) => v.iter().min().copied(),
        (PolyFn::Max, v) => v.iter().max().copied(),
        (PolyFn::NextPow2, [a]) => {
            u128::try_from(*a).unwrap_or(1).max(1).checked_next_power_of_two().map(|x| x as i128)
        }
        // The bits of an `i32` that is no extent.
        (PolyFn::Shl, [a, k]) if (0..31).contains(k) => Some(a << k),
        (PolyFn::Shr, [a, k]) => Some(a >> u32::try_from(*k).unwrap_or(127).min(127)),
        (PolyFn::Choose, [a, b, yes, no]) => Some(if a == b { *yes } else { *no }),
        (
            PolyFn::Shl
            | PolyFn::Shr
            | PolyFn::Div
            | PolyFn::Rem
            | PolyFn::CeilDiv
            | PolyFn::NextPow2
            | PolyFn::Choose,
            _,
        ) => None,
    }
}
