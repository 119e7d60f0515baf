//! Owns random expressions that are about whole tiles: other shapes, folds, `map`, and what is read from memory.

use super::exprs::{Callee, Memory, Scope, Var};
use super::types::*;

impl Scope {
    fn of(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        self.expr(&Ty::Tile(e, dims.to_vec()), depth)
    }

    /// The same elements in another shape or order.
    pub fn rearranged(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        let shape = shape_text(dims);
        Some(match (self.random.below(8), dims) {
            (0, _) if elements(dims) > 1 => {
                format!("reshape({}, {shape})", self.of(e, &[Dim::product(dims)], depth))
            }
            (1, [a, b]) => format!("{}.T", self.of(e, &[b.clone(), a.clone()], depth)),
            (2, [a, b, c]) => {
                let x = self.of(e, &[c.clone(), a.clone(), b.clone()], depth);
                format!("{x}.permute([1, 2, 0])")
            }
            (3, [one, rest @ ..]) if one.is_one() && !rest.is_empty() => {
                format!("{}[None, :]", self.of(e, rest, depth))
            }
            (3, [a, one]) if one.is_one() => {
                format!("{}[:, None]", self.of(e, std::slice::from_ref(a), depth))
            }
            (4, [_, ..]) => {
                let mut from = dims.to_vec();
                let at = self.random.below(from.len());
                from[at] = Dim::of("1");
                format!("broadcast_to({}, {shape})", self.of(e, &from, depth))
            }
            (5, [_, ..]) => {
                let axis = self.random.below(dims.len());
                format!("flip({}, axis = {axis})", self.of(e, dims, depth))
            }
            (6, rest) if rest.len() < 3 => {
                // One of a few rows.
                let mut from = vec![Dim::of(self.random.pick(&["2", "3", "4"]))];
                from.extend_from_slice(rest);
                let x = self.of(e, &from, depth);
                format!("{x}[{}]", self.random.below(2))
            }
            (7, [d]) => {
                let n = Dim::of(self.random.pick(&["N", "3", "8"]));
                let x = self.of(e, std::slice::from_ref(&n), depth);
                let at = self.of("i32", std::slice::from_ref(d), depth);
                format!("gather({x}, ({at} & 1023) % {})", n.text())
            }
            _ => return None,
        })
    }

    /// Folds, scans and orders.
    pub fn folded(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        if self.random.chance(35) && !dims.is_empty() {
            return self.scanned(e, dims, depth);
        }
        if dims.len() > 2 {
            return None;
        }
        // One more axis, which is folded.
        let mut from = dims.to_vec();
        let axis = self.random.below(dims.len() + 1);
        from.insert(axis, Dim::of(self.random.pick(&["N", "M", "3", "8", "1"])));
        if elements(&from) > 300 {
            return None;
        }
        match e {
            "bool" => {
                let f = self.random.pick(&["any", "all"]);
                Some(format!("{f}({}, axis = {axis})", self.of(e, &from, depth)))
            }
            "i32" if self.random.chance(40) => {
                let f = self.random.pick(&["argmax", "argmin", "sum"]);
                let of = if f == "sum" { self.random.pick(&["i8", "i16", "bool"]) } else { self.a_float() };
                Some(format!("{f}({}, axis = {axis})", self.of(of, &from, depth)))
            }
            _ => {
                let x = self.of(e, &from, depth);
                let f = self.random.pick(&["sum", "prod", "max", "min", "xor_sum", "reduce"]);
                Some(match f {
                    "sum" | "prod" if !self.sums_to_itself(e) => format!("max({x}, axis = {axis})"),
                    "xor_sum" if !is_int(e) => format!("min({x}, axis = {axis})"),
                    "reduce" => {
                        let combine = self.combine(e);
                        format!("reduce({x}, axis = {axis}, combine = {combine})")
                    }
                    _ => format!("{f}({x}, axis = {axis})"),
                })
            }
        }
    }

    /// Whether `sum` gives this type, to the same bits in any order if that matters.
    fn sums_to_itself(&self, e: Elem) -> bool {
        sums_to_itself(e) && !(self.exact && is_float(e))
    }

    /// An associative and commutative function.
    fn combine(&mut self, e: Elem) -> &'static str {
        if is_int(e) {
            self.random.pick(&[
                "|a, b| a + b",
                "|a, b| a * b",
                "|a, b| a ^ b",
                "|a, b| if a > b { a } else { b }",
            ])
        } else {
            self.random.pick(&["|a, b| maximum(a, b)", "|a, b| minnum(a, b)"])
        }
    }

    fn scanned(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        if e == "bool" {
            return None;
        }
        let axis = self.random.below(dims.len());
        let x = self.of(e, dims, depth);
        Some(match self.random.below(4) {
            0 if self.sums_to_itself(e) => format!("cumsum({x}, axis = {axis})"),
            1 => {
                let combine = self.combine(e);
                let reverse = self.random.chance(50);
                format!("scan({x}, axis = {axis}, combine = {combine}, reverse = {reverse})")
            }
            2 => format!("sort({x}, axis = {axis}, descending = {})", self.random.chance(50)),
            _ => return None,
        })
    }

    /// `map` of a lambda or a function over tiles and scalars.
    pub fn mapped(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let wanted = Ty::scalar(e);
        let fit: Vec<Callee> = self
            .callees
            .iter()
            .filter(|c| c.scalar && c.result == wanted && !c.params.is_empty())
            .cloned()
            .collect();
        let (function, params) = if !fit.is_empty() && self.random.chance(60) {
            let callee = self.random.pick(&fit);
            (callee.name, callee.params)
        } else {
            let params: Vec<Ty> = (0..1 + self.random.below(3)).map(|_| Ty::scalar(self.elem())).collect();
            let names = ["a", "b", "c"];
            let var =
                |(name, ty): (&&str, &Ty)| Var { place: name.to_string(), ty: ty.clone(), mutable: false };
            let inside: Vec<Var> = names.iter().zip(&params).map(var).collect();
            let outside = std::mem::replace(&mut self.vars, inside);
            let (only, programs) = (self.scalar_only, self.programs);
            (self.scalar_only, self.programs) = (true, false);
            let body = self.expr(&wanted, depth.min(2) + 1);
            (self.scalar_only, self.programs) = (only, programs);
            self.vars = outside;
            (format!("|{}| {body}", names[..params.len()].join(", ")), params)
        };
        let mut args = vec![];
        for (i, ty) in params.iter().enumerate() {
            let Ty::Tile(of, _) = ty else { continue };
            // The first has the shape, so that the result has it.
            let scalar = i > 0 && self.random.chance(20);
            args.push(self.of(of, if scalar { &[] } else { dims }, depth));
        }
        format!("map({function}, {})", args.join(", "))
    }

    /// A load. Positions in views may be anything; those behind a pointer are brought inside.
    pub fn loaded(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        let fits = |m: &&Memory| {
            m.elem == e
                && !(self.exact && m.name == "total")
                && m.rank.map_or(true, |rank| dims.is_empty() || rank == dims.len())
        };
        let fit: Vec<Memory> = self.memories.iter().filter(fits).cloned().collect();
        if fit.is_empty() || self.scalar_only {
            return None;
        }
        let memory = self.random.pick(&fit);
        let depth = depth.min(1);
        Some(match memory.rank {
            Err(count) => {
                let at = self.of("i32", dims, depth);
                let mask = self.of("bool", dims, depth);
                let place = format!("{} + clamp({at}, 0, {})", memory.name, count - 1);
                format!("load({place}, {mask}, other = {})", self.literal(e))
            }
            Ok(rank) => {
                let at: Vec<String> = (0..rank).map(|_| self.position(depth)).collect();
                let at = at.join(", ");
                if dims.is_empty() {
                    return Some(format!("{}.load([{at}])", memory.name));
                }
                let other = self.literal(e);
                format!("{}.load([{at}], {}, other = {other})", memory.name, shape_text(dims))
            }
        })
    }

    /// A position of a view: mostly near its elements.
    pub fn position(&mut self, depth: usize) -> String {
        match self.random.below(4) {
            0 => "0".into(),
            1 => format!("{}", self.random.below(6)),
            2 => format!("({} % 12)", self.of("i32", &[], depth)),
            _ => self.of("i32", &[], depth),
        }
    }
}
