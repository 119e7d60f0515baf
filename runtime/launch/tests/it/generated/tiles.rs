//! Random expressions that are about whole tiles: other shapes, folds, `map`, and what is read from memory.

use super::exprs::{Callee, Memory, Scope, Var};
use super::types::*;

impl Scope {
    fn of(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        self.expr(&Ty::Tile(e, dims.to_vec()), depth)
    }

    /// The same elements in another shape or order.
    pub fn rearranged(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        let shape = shape_text(dims);
        if self.random.chance(40) {
            return self.parts(e, dims, depth);
        }
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

    /// Tiles put together from others, and pieces of larger ones.
    fn parts(&mut self, e: Elem, dims: &[Dim], depth: usize) -> Option<String> {
        let (last, outer) = dims.split_last()?;
        let axis = self.random.below(dims.len());
        let with = |at: usize, n: usize| {
            let mut other = dims.to_vec();
            other[at] = Dim::number(n);
            other
        };
        let (along, end) = (dims[axis].literal(), last.literal());
        Some(match (self.random.below(7), along, end) {
            (0, Some(n), _) if n > 1 => {
                let cut = 1 + self.random.below(n - 1);
                let (a, b) = (self.of(e, &with(axis, cut), depth), self.of(e, &with(axis, n - cut), depth));
                format!("cat({a}, {b}, axis = {axis})")
            }
            (1, Some(n), _) => {
                let (before, behind) = (self.random.below(5), self.random.below(5));
                let x = self.of(e, &with(axis, before + n + behind), depth);
                let skipped = ":, ".repeat(axis);
                format!("({x})[{skipped}{before}:{}]", before + n)
            }
            (2, _, Some(n)) if n % 2 == 0 => {
                let half = with(dims.len() - 1, n / 2);
                format!("interleave({}, {})", self.of(e, &half, depth), self.of(e, &half, depth))
            }
            (3, _, Some(2)) => format!("join({}, {})", self.of(e, outer, depth), self.of(e, outer, depth)),
            (4, _, _) if dims.len() < 3 => {
                let mut from = dims.to_vec();
                from.push(Dim::number(2));
                format!("split({})[{}]", self.of(e, &from, depth), self.random.below(2))
            }
            (5, _, Some(n)) if e != "bool" => {
                let x = with(dims.len() - 1, n + self.random.below(9));
                let (from, which) = if e == "i32" { (self.a_float(), 1) } else { (e, 0) };
                format!("topk({}, {n})[{which}]", self.of(from, &x, depth))
            }
            (6, _, Some(n)) if e == "i32" && dims.len() == 1 && n > 1 => {
                let of = Dim::of(self.random.pick(&["N", "33", "100"]));
                let x = self.of("i32", std::slice::from_ref(&of), depth);
                let mask = self.of("bool", std::slice::from_ref(&of), depth);
                format!("histogram({x} & 63, {n}, {mask})")
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
                let f = self.random.pick(&["sum", "prod", "max", "min", "xor_sum", "reduce_or", "reduce"]);
                Some(match f {
                    // Whole numbers, whose sum is exact in any order.
                    "sum" if self.exact && is_float(e) => {
                        let x = self.of("i32", &from, depth);
                        format!("sum(({x} & 31) as {e}, axis = {axis})")
                    }
                    "sum" | "prod" if !self.sums_to_itself(e) => format!("max({x}, axis = {axis})"),
                    // Of 8-bit floats the orders alone.
                    "reduce_or" if !is_int(e) => {
                        let (t, f) = (self.random.pick(F8S), self.random.pick(&["max", "min"]));
                        format!("({f}({x} as {t}, axis = {axis}) as {e})")
                    }
                    "xor_sum" if !is_int(e) => format!("min({x}, axis = {axis})"),
                    "reduce" if self.random.chance(30) => {
                        // Not commutative.
                        let combine = self.random.pick(&["|a, _b| a", "|_a, b| b"]);
                        format!("reduce({x}, axis = {axis}, combine = {combine}, ordered = true)")
                    }
                    "reduce" => {
                        let combine = self.combine(e);
                        format!("reduce({x}, axis = {axis}, combine = {combine})")
                    }
                    _ => format!("{f}({x}, axis = {axis})"),
                })
            }
        }
    }

    /// Returns true if `sum` gives this type, to the same bits in any order if that matters.
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
            0 if self.exact && is_float(e) => {
                let x = self.of("i32", dims, depth);
                format!("cumsum(({x} & 7) as {e}, axis = {axis}, reverse = {})", self.random.chance(50))
            }
            0 if self.sums_to_itself(e) => {
                let f = self.random.pick(&["cumsum", "cumprod"]);
                format!("{f}({x}, axis = {axis}, reverse = {})", self.random.chance(50))
            }
            1 => {
                let combine = self.combine(e);
                let reverse = self.random.chance(50);
                format!("scan({x}, axis = {axis}, combine = {combine}, reverse = {reverse})")
            }
            2 => format!("sort({x}, axis = {axis}, descending = {})", self.random.chance(50)),
            3 => {
                let of = self.random.pick(&["i32", "f32", "u8", "i64", "f16"]);
                let keys = self.of(of, dims, depth);
                let order = self.random.chance(50);
                format!("sort({keys}, values = {x}, axis = {axis}, descending = {order})[1]")
            }
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

    /// A load. Positions in views may be anything; those after a pointer are brought inside.
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
                let memory = Memory { name: self.seen(&memory.name, rank), ..memory };
                if !dims.is_empty() && self.random.chance(20) {
                    let at: Vec<String> =
                        (0..rank).map(|_| format!("({} % 12)", self.of("i32", dims, depth))).collect();
                    let (mask, other) = (self.of("bool", dims, depth), self.literal(e));
                    return Some(format!(
                        "{}.gather([{}], {mask}, other = {other})",
                        memory.name,
                        at.join(", ")
                    ));
                }
                if dims.is_empty() {
                    return Some(format!("{}.load([{at}])", memory.name));
                }
                let other = self.literal(e);
                format!("{}.load([{at}], {}, other = {other})", memory.name, shape_text(dims))
            }
        })
    }

    /// A view, or a part of it with the same rank.
    fn seen(&mut self, name: &str, rank: usize) -> String {
        let end = |s: &mut Self| {
            if s.random.chance(50) { String::new() } else { (4 + s.random.below(9)).to_string() }
        };
        match (self.random.below(5), rank) {
            (0, 2) => format!("{name}.T"),
            (1, 1) => format!("{name}[{}:{}]", self.random.below(4), end(self)),
            (1, 2) => format!("{name}[{}:{}, {}:]", self.random.below(4), end(self), self.random.below(3)),
            (2, 2) => format!("{name}[1:].permute([1, 0])"),
            _ => name.into(),
        }
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
