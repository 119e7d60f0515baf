//! Random expressions: text of a type that is asked for, from the variables in scope.
//!
//! Guarantees that nothing in them faults or is unspecified: divisors are odd, positions of raw pointers and of
//! `gather` lie inside, functions that a fold is given are associative, and no NaN becomes another type by its bits,
//! which are unspecified.

use std::collections::BTreeSet;

use super::bounds::BOUNDED;
use super::loops::Machinery;
use super::types::*;

/// A variable, or a part of one.
#[derive(Clone, Debug)]
pub struct Var {
    pub place: String,
    pub ty: Ty,
    pub mutable: bool,
}

/// A function that may be called.
#[derive(Clone, Debug)]
pub struct Callee {
    /// With its compile-time arguments, if it has any.
    pub name: String,
    pub params: Vec<Ty>,
    pub result: Ty,
    /// Whether `map` takes it: scalars only.
    pub scalar: bool,
}

/// Memory that may be read.
#[derive(Clone, Debug)]
pub struct Memory {
    pub name: String,
    pub elem: Elem,
    /// The rank of a view; a pointer has none but the number of its elements.
    pub rank: Result<usize, usize>,
    pub mutable: bool,
}

/// What may stand in an expression.
pub struct Scope {
    pub random: Random,
    pub vars: Vec<Var>,
    pub callees: Vec<Callee>,
    pub memories: Vec<Memory>,
    /// Only scalars and no memory: the body of a function for `map`.
    pub scalar_only: bool,
    /// Whether this is a kernel.
    pub programs: bool,
    /// Only what every device computes to the same bits, whatever the order of programs, and tiles of more extents.
    pub exact: bool,
    /// Matrices and counters.
    pub machinery: Machinery,
    /// Whether the parameters `T`, `N` and `M` are there.
    pub generic: bool,
    /// A condition that holds unless all is NaN, and that no compiler knows.
    pub anchor: String,
    /// Functions of floats that are held against their bounds, each with the type of its arguments.
    pub bounded: BTreeSet<(&'static str, Elem)>,
    /// The number of the next name.
    pub next: usize,
}

impl Scope {
    pub fn elem(&mut self) -> Elem {
        match self.random.below(10) {
            0 => "bool",
            1..5 => self.random.pick(INTS),
            _ => self.a_float(),
        }
    }

    pub fn a_float(&mut self) -> Elem {
        let e = self.random.pick(FLOATS);
        if e == "T" && !self.generic { "f32" } else { e }
    }

    pub fn shape(&mut self) -> Vec<Dim> {
        if self.scalar_only {
            return vec![];
        }
        let rank = self.random.pick(&[0, 0, 1, 1, 1, 2, 2, 3]);
        let (atoms, most) = if self.exact { (MORE_ATOMS, 400) } else { (ATOMS, 200) };
        let dims: Vec<Dim> = (0..rank).map(|_| Dim::of(self.random.pick(atoms))).collect();
        if elements(&dims) > most { vec![] } else { dims }
    }

    /// A type; tuples and structs only in variables.
    pub fn tile(&mut self) -> Ty {
        Ty::Tile(self.elem(), self.shape())
    }

    pub fn vars_of(&self, ty: &Ty) -> Vec<String> {
        fn parts(place: &str, ty: &Ty, wanted: &Ty, out: &mut Vec<String>) {
            if ty == wanted {
                out.push(place.to_string());
            }
            match ty {
                Ty::Tile(..) => {}
                Ty::Tuple(all) => {
                    all.iter().enumerate().for_each(|(i, t)| parts(&format!("{place}[{i}]"), t, wanted, out));
                }
                Ty::Struct(_, all) => {
                    all.iter().enumerate().for_each(|(i, t)| parts(&format!("{place}.f{i}"), t, wanted, out));
                }
            }
        }
        let mut out = vec![];
        self.vars.iter().for_each(|v| parts(&v.place, &v.ty, ty, &mut out));
        out
    }

    pub fn expr(&mut self, ty: &Ty, depth: usize) -> String {
        let known = self.vars_of(ty);
        if !known.is_empty() && self.random.chance(if depth == 0 { 85 } else { 35 }) {
            return self.random.pick(&known);
        }
        if depth > 0
            && self.random.chance(12)
            && let Some(call) = self.call(ty, depth - 1)
        {
            return call;
        }
        match ty {
            Ty::Tile(e, dims) if depth == 0 => self.constant(e, dims),
            Ty::Tile(e, dims) => self.compute(e, dims, depth - 1),
            Ty::Tuple(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|t| self.expr(t, depth.saturating_sub(1))).collect();
                format!("({},)", parts.join(", "))
            }
            Ty::Struct(i, fields) => {
                let field =
                    |(k, t): (usize, &Ty)| format!("f{k} = {}", self.expr(t, depth.saturating_sub(1)));
                let fields: Vec<String> = fields.iter().enumerate().map(field).collect();
                format!("S{i}[T = T, N = N, M = M]({})", fields.join(", "))
            }
        }
    }

    fn tile_expr(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        self.expr(&Ty::Tile(e, dims.to_vec()), depth)
    }

    pub fn literal(&mut self, e: Elem) -> String {
        let r = self.random.below(12);
        match e {
            "bool" => ["true", "false"][r % 2].to_string(),
            _ if is_float(e) => match r {
                0 => format!("(nan as {e})"),
                1 => format!("(-inf as {e})"),
                2 => format!("(-0.0 as {e})"),
                3 => format!("{e}.max"),
                4 | 5 => format!("(0.0 as {e})"),
                _ => format!("({} as {e})", ["0.5", "1.0", "-2.0", "3.25", "100.0"][r % 5]),
            },
            _ => match r {
                0 => format!("{e}.min"),
                1 => format!("{e}.max"),
                2 if is_signed(e) => format!("(-{} as {e})", 1 + self.random.below(100)),
                _ => format!("({} as {e})", self.random.below(if r < 6 { 100 } else { 6 })),
            },
        }
    }

    pub fn constant(&mut self, e: Elem, dims: &[Dim]) -> String {
        if dims.is_empty() {
            if e == "i32" && self.generic && self.random.chance(25) {
                return self.random.pick(&["N", "M"]).to_string();
            }
            return self.literal(e);
        }
        if let ([d], "i32") = (dims, e) {
            let from = self.random.below(5);
            if from == 0 || d.text() != "1" {
                return format!("arange({from}, {} + {from})", d.text());
            }
        }
        format!("full({}, {}, {e})", shape_text(dims), self.literal(e))
    }

    fn compute(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let general = self.random.below(100);
        if general < 12 {
            let c = self.tile_expr("bool", dims, depth);
            let (a, b) = (self.tile_expr(e, dims, depth), self.tile_expr(e, dims, depth));
            return format!("where({c}, {a}, {b})");
        }
        if general < 40
            && !self.scalar_only
            && let Some(text) = self.rearranged(e, dims, depth)
        {
            return text;
        }
        if let (40..44, "f32" | "i32", [m, n], false) = (general, e, dims, self.scalar_only)
            && (!self.exact || e == "i32")
        {
            let k = Dim::of(self.random.pick(&["N", "3", "8"]));
            let of = if e == "i32" { "i8" } else { self.random.pick(&["f16", "f32", "bf16"]) };
            let (a, b) = (
                self.tile_expr(of, &[m.clone(), k.clone()], depth),
                self.tile_expr(of, &[k, n.clone()], depth),
            );
            return format!("dot({a}, {b}, {})", self.tile_expr(e, dims, depth));
        }
        if general < 52
            && !self.scalar_only
            && let Some(text) = self.folded(e, dims, depth)
        {
            return text;
        }
        if general < 62 && !self.scalar_only && !dims.is_empty() {
            return self.mapped(e, dims, depth);
        }
        if general < 72
            && let Some(text) = self.loaded(e, dims, depth)
        {
            return text;
        }
        match e {
            "bool" => self.truth(dims, depth),
            _ if is_float(e) => self.float(e, dims, depth),
            _ => self.int(e, dims, depth),
        }
    }

    /// An operand of a shape that broadcasts to `dims`.
    fn operand(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let mut dims = dims.to_vec();
        match self.random.below(8) {
            0 => dims.clear(),
            1 if !dims.is_empty() => {
                let at = self.random.below(dims.len());
                dims[at] = Dim::of("1");
            }
            _ => {}
        }
        self.tile_expr(e, &dims, depth)
    }

    /// Two operands of which one has the shape, in either order.
    fn two(&mut self, e: Elem, dims: &[Dim], depth: usize) -> (String, String) {
        let (a, b) = (self.tile_expr(e, dims, depth), self.operand(e, dims, depth));
        if self.random.chance(50) { (a, b) } else { (b, a) }
    }

    fn int(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let (a, b) = self.two(e, dims, depth);
        match self.random.below(17) {
            0 => format!("({a} / ({b} | 1))"),
            1 => format!("({a} % ({b} | 1))"),
            2 => format!("(-{})", self.tile_expr(e, dims, depth)),
            3 => format!("abs({})", self.tile_expr(e, dims, depth)),
            4 => format!("{}({a}, {b})", self.random.pick(&["maximum", "minimum"])),
            5 => format!("({} {} {})", self.tile_expr(e, dims, depth), self.random.pick(&["<<", ">>"]), {
                let amount = self.random.pick(INTS);
                self.operand(amount, dims, depth)
            }),
            6 => {
                let from = self.elem();
                format!("({} as {e})", self.tile_expr(from, dims, depth))
            }
            7 if e == "i32" => {
                let from = self.random.pick(INTS);
                let f = self.random.pick(&["popcount", "clz"]);
                format!("{f}({})", self.tile_expr(from, dims, depth))
            }
            8 if e == "i32" && dims.is_empty() && self.programs => "program_id(0)".into(),
            9 => match e {
                "i32" => format!("bitcast({}, i32)", self.tile_expr("u32", dims, depth)),
                "u8" => format!("bitcast({}, u8)", self.tile_expr("i8", dims, depth)),
                "i16" | "u16" => {
                    let from = self.random.pick(&["f16", "bf16"]);
                    self.bits_of(from, e, dims, depth)
                }
                "u32" => self.bits_of("f32", e, dims, depth),
                "i64" => self.bits_of("f64", e, dims, depth),
                _ => format!("({a} * {b})"),
            },
            11 => format!("mulhi({a}, {b})"),
            12 if e == "u32" => {
                let offset = self.tile_expr("i32", dims, depth);
                format!("randint({}, {offset})", self.random.below(9))
            }
            10 => {
                let (x, op) = (self.tile_expr(e, dims, depth), self.random.pick(&["+", "-", "*"]));
                format!("({x} {op} {})", self.literal(e))
            }
            _ => format!("({a} {} {b})", self.random.pick(&["+", "-", "*", "&", "|", "^", "+", "*"])),
        }
    }

    fn float(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let (a, b) = self.two(e, dims, depth);
        match self.random.below(16) {
            0 => {
                let all =
                    ["sqrt", "floor", "round", "ceil", "trunc", "abs", "-", "exp2", "log", "sin", "tanh"];
                let f = self.random.pick(&all[..if self.exact { 7 } else { all.len() }]);
                format!("({f}({}))", self.tile_expr(e, dims, depth))
            }
            1 => {
                let f = self.random.pick(&["maximum", "minimum", "maxnum", "minnum"]);
                format!("{f}({a}, {b})")
            }
            2 => format!("fma({a}, {b}, {})", self.operand(e, dims, depth)),
            3..6 => {
                let from = self.elem();
                format!("({} as {e})", self.tile_expr(from, dims, depth))
            }
            6 => {
                let through = self.random.pick(ROUNDED);
                format!("(({a} + {b}) as {through} as {e})")
            }
            7 => match e {
                "bf16" => self.bits_of("f16", e, dims, depth),
                "f16" => self.bits_of("bf16", e, dims, depth),
                "f32" => self.bits_of("i32", e, dims, depth),
                _ => format!("({a} % {b})"),
            },
            9 => self.rounded(e, dims, depth),
            10 => self.eight_bits(e, dims, depth),
            8 => {
                let (x, op) = (self.tile_expr(e, dims, depth), self.random.pick(&["+", "-", "*", "/"]));
                format!("({x} {op} {})", self.literal(e))
            }
            _ => format!("({a} {} {b})", self.random.pick(&["+", "-", "*", "/"])),
        }
    }

    /// A cast that does not round to nearest, and back.
    fn rounded(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        let through = self.random.pick(ROUNDED);
        let x = self.tile_expr(e, dims, depth);
        if self.random.chance(50) {
            return format!("(cast({x}, {through}, rounding = toward_zero) as {e})");
        }
        let bits = self.tile_expr("u32", dims, depth);
        format!("(cast({x}, {through}, rounding = stochastic, bits = {bits}) as {e})")
    }

    /// What is done to 8-bit floats without leaving them, and pairs of 4-bit floats of bytes.
    fn eight_bits(&mut self, e: Elem, dims: &[Dim], depth: usize) -> String {
        if let ([outer @ .., last], true) = (dims, self.random.chance(25))
            && let Some(n) = last.literal().filter(|n| n % 2 == 0)
        {
            let bytes = [outer, &[Dim::number(n / 2)]].concat();
            return format!("(bitcast({}, e2m1) as {e})", self.tile_expr("u8", &bytes, depth));
        }
        let t = self.random.pick(F8S);
        let (a, b) = self.two(e, dims, depth);
        let x = match self.random.below(4) {
            0 => format!("clamp({a} as {t}, {} as {t}, {b} as {t})", self.literal(e)),
            1 => return format!("((-({} as {t})) as {e})", self.tile_expr(e, dims, depth)),
            2 => return format!("(abs({} as {t}) as {e})", self.tile_expr(e, dims, depth)),
            _ => {
                let f = self.random.pick(&["maximum", "minimum", "maxnum", "minnum"]);
                format!("{f}({a} as {t}, {b} as {t})")
            }
        };
        format!("({x} as {e})")
    }

    /// The bits of another type of the same width; not those of a NaN, which are unspecified.
    fn bits_of(&mut self, from: Elem, e: Elem, dims: &[Dim], depth: usize) -> String {
        let x = self.tile_expr(from, dims, depth);
        if is_int(from) {
            return format!("bitcast({x}, {e})");
        }
        // It is infinity instead.
        format!("bitcast(minnum({x}, (inf as {from})), {e})")
    }

    fn truth(&mut self, dims: &[Dim], depth: usize) -> String {
        match self.random.below(11) {
            0 => format!("(!{})", self.tile_expr("bool", dims, depth)),
            1 | 2 => {
                let (a, b) = self.two("bool", dims, depth);
                format!("({a} {} {b})", self.random.pick(&["&&", "||"]))
            }
            3 => {
                let e = self.a_float();
                format!("isnan({})", self.tile_expr(e, dims, depth))
            }
            4 => {
                let (e, t) = (self.a_float(), self.random.pick(F8S));
                let (a, b) = self.two(e, dims, depth);
                format!(
                    "(({a} as {t}) {} ({b} as {t}))",
                    self.random.pick(&["==", "!=", "<", "<=", ">", ">="])
                )
            }
            5 => self.bounded(dims, depth),
            _ => {
                let e = if self.random.chance(60) { self.random.pick(INTS) } else { self.a_float() };
                let (a, b) = self.two(e, dims, depth);
                format!("({a} {} {b})", self.random.pick(&["==", "!=", "<", "<=", ">", ">="]))
            }
        }
    }

    /// Whether a function of floats keeps the bound that the table of operations states: it does on every device, though
    /// the bits of the function differ.
    fn bounded(&mut self, dims: &[Dim], depth: usize) -> String {
        let f = self.random.pick(&BOUNDED).0;
        let e = self.random.pick(&["f32", "f32", "f16", "bf16"]);
        self.bounded.insert((f, e));
        let mut args = vec![self.tile_expr(e, dims, depth)];
        if f == "pow" {
            args.push(self.tile_expr(e, dims, depth));
        }
        let args = args.join(", ");
        if dims.is_empty() { format!("keeps_{f}_{e}({args})") } else { format!("map(keeps_{f}_{e}, {args})") }
    }

    /// A call of a function whose result has the type.
    fn call(&mut self, ty: &Ty, depth: usize) -> Option<String> {
        let fit: Vec<Callee> = self.callees.iter().filter(|c| c.result == *ty).cloned().collect();
        if fit.is_empty() {
            return None;
        }
        let callee = self.random.pick(&fit);
        if self.scalar_only && !callee.scalar {
            return None;
        }
        let args: Vec<String> = callee.params.iter().map(|t| self.expr(t, depth)).collect();
        Some(format!("{}({})", callee.name, args.join(", ")))
    }
}
