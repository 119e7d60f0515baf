//! Random statements about what a back end has machinery for: loops whose loads may run ahead, products of matrices
//! in such loops, atomics.
//!
//! Guarantees that the results are exact whatever the order of a sum: the matrices hold whole numbers from -3 to 3, so
//! that every sum of their products is a whole number that f32 holds, and an atomic whose result is used reaches places
//! that no other lane and no other program reaches.

use super::exprs::Scope;
use super::program::Node;
use super::stmts::PROGRAMS;
use super::types::*;

/// Rows and columns of the matrices: no block divides them, and rows begin at multiples of 16 bytes or not.
const DEEP: &[[usize; 2]] = &[[37, 41], [37, 48]];
/// Elements of a row of counters.
pub const COUNTERS: usize = 50;
/// The longest tile of a product, of an operand.
const LONGEST: [usize; 2] = [1024, 2048];

/// Element types of matrices, with the type in which products of them are added up.
const MATRICES: &[(Elem, Elem)] = &[
    ("f16", "f32"),
    ("f16", "f32"),
    ("bf16", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("f8e4m3", "f32"),
    ("f8e5m2", "f32"),
    ("f8e4m3fnuz", "f32"),
    ("f8e5m2fnuz", "f32"),
    ("i8", "i32"),
];

/// Extents of the tiles of a product: those of matrix instructions, and others.
const EXTENTS: &[&str] = &["16", "16", "32", "64", "8", "N", "13", "33", "1"];
const DEPTHS: &[&str] = &["16", "32", "8", "64", "N", "13"];

/// The types of counters, and what is done to them.
const COUNTED: &[Elem] = &["i32", "u32", "i64", "u64", "f32"];
pub const COMMUTES: &[&str] = &["add", "max", "min", "and", "or", "xor"];
const ATOMICS: &[&str] = &["add", "max", "min", "and", "or", "xor", "xchg", "cas"];

/// The element types of the matrices `ma` and `mb` of a program, and of its counters.
#[derive(Clone, Copy, Debug)]
pub struct Machinery {
    pub a: Elem,
    pub b: Elem,
    pub sum: Elem,
    pub counted: Elem,
    /// Rows and columns of the matrices.
    pub deep: [usize; 2],
    /// What all programs do to `total`: the order does not show.
    pub total: &'static str,
}

impl Machinery {
    pub fn new(random: &mut Random) -> Machinery {
        let (a, sum) = random.pick(MATRICES);
        // The fp8 types mix.
        let other = random.pick(F8S);
        let b = if a.starts_with("f8") { other } else { a };
        let (counted, deep) = (random.pick(COUNTED), random.pick(DEEP));
        Machinery { a, b, sum, counted, deep, total: random.pick(COMMUTES) }
    }
}

impl Scope {
    /// Options of a loop, which change no result.
    pub fn hints(&mut self) -> String {
        let mut out = String::new();
        if self.random.chance(50) {
            out += &format!(", stages = {}", 1 + self.random.below(4));
        }
        if self.random.chance(10) {
            out += &format!(", unroll = {}", 1 + self.random.below(3));
        }
        out
    }

    /// A product of two matrices, a step of the inner axis in each iteration of a loop.
    pub fn product(&mut self, out: &mut Vec<Node>) {
        let Machinery { a, sum, .. } = self.machinery;
        let [m, n] = [0, 1].map(|_| Dim::of(self.random.pick(EXTENTS)));
        let k = Dim::of(self.random.pick(DEPTHS));
        let fits = |dims: [&Dim; 2], most: usize| dims.iter().map(|d| d.value()).product::<usize>() <= most;
        if !fits([&m, &n], LONGEST[0]) || !fits([&m, &k], LONGEST[1]) || !fits([&k, &n], LONGEST[1]) {
            return;
        }
        let (acc, at) = (self.name("acc"), self.name("k"));
        let result = shape_text(&[m.clone(), n.clone()]);
        let start = self.random.pick(&["0", "0", "5", "-2"]);
        out.push(Node::line(format!("let mut {acc} = full({result}, {start}, {sum});")));
        let (left, right) = (self.name("a"), self.name("b"));
        let mut body = vec![];
        let x = self.operand_of("ma", [(&m, false), (&k, true)], &at, out, &mut body);
        let y = self.operand_of("mb", [(&k, true), (&n, false)], &at, out, &mut body);
        body.insert(0, Node::line(format!("let {left} = {x};")));
        body.insert(1, Node::line(format!("let {right} = {y};")));
        if self.random.chance(20) {
            let rows = self.name("v");
            out.push(Node::line(format!("let mut {rows} = zeros([{}], {sum});", m.text())));
            body.push(Node::line(format!("{rows} += sum({left} as {sum}, axis = 1);")));
            self.bind(rows, Ty::Tile(sum, vec![m.clone()]), true);
        }
        if self.random.chance(10) {
            let c = self.condition();
            body.push(Node::block(format!("if {c} {{"), vec![Node::line("continue;")], "}"));
        }
        let precision = match (a, self.random.below(5)) {
            ("f32", 1) => ", precision = tf32",
            ("f32", 2) => ", precision = tf32x3",
            // Whole numbers up to 3 are bf16.
            ("f32", 3) => ", precision = bf16x3",
            ("f32", 4) => ", precision = bf16x6",
            (_, _) => "",
        };
        body.push(Node::line(format!("{acc} = dot({left}, {right}, {acc}{precision});")));
        let end = self.random.pick(&["41", "37", "(n & 63)", "16", "0"]);
        let head = format!("for {at} in range(0, {end}, {}{}) {{", k.text(), self.hints());
        out.push(Node::block(head, body, "}"));
        self.bind(acc.clone(), Ty::Tile(sum, vec![m.clone(), n.clone()]), true);
        if self.random.chance(30) {
            self.second(&acc, &m, &n, out);
        }
    }

    /// A product of what another one gave.
    fn second(&mut self, acc: &str, m: &Dim, n: &Dim, out: &mut Vec<Node>) {
        let Machinery { a, b, sum, .. } = self.machinery;
        let w = Dim::of(self.random.pick(&["16", "8", "N", "32"]));
        if m.value() * w.value() > LONGEST[0] {
            return;
        }
        let (name, row) = (self.name("acc"), self.position(1));
        let factor = format!("mb.load([{row}, 0], {})", shape_text(&[n.clone(), w.clone()]));
        // Beyond some hundreds an element may be rounded, in the same way on every device, to a whole number again.
        let x = format!("{acc} as {a}");
        let zero = format!("zeros({}, {sum})", shape_text(&[m.clone(), w.clone()]));
        let factor = if a == b { factor } else { format!("({factor} as {a})") };
        out.push(Node::line(format!("let {name} = dot({x}, {factor}, {zero});")));
        self.bind(name, Ty::Tile(sum, vec![m.clone(), w]), false);
    }

    /// A tile of a matrix in the iteration of a loop that begins at the inner position `at`: through a view, one whose axes
    /// are exchanged, or pointers that walk along. `true` marks the inner axis.
    fn operand_of(
        &mut self,
        matrix: &str,
        dims: [(&Dim, bool); 2],
        at: &str,
        before: &mut Vec<Node>,
        body: &mut Vec<Node>,
    ) -> String {
        let outer = self.position(1);
        let place = dims.map(|(_, inner)| if inner { at.to_string() } else { outer.clone() });
        let shape = shape_text(&dims.map(|(d, _)| d.clone()));
        match self.random.below(5) {
            0 => {
                let turned = shape_text(&[dims[1].0.clone(), dims[0].0.clone()]);
                format!("{matrix}.load([{}, {}], {turned}).T", place[1], place[0])
            }
            1 => format!("{matrix}.T.load([{}, {}], {shape})", place[0], place[1]),
            2 => {
                let p = self.name("p");
                let [rows, columns] = self.machinery.deep;
                let along = dims.iter().position(|(_, inner)| *inner).unwrap_or(0);
                let lanes = [
                    format!("(arange(0, {}) % {rows})[:, None] * {columns}", dims[0].0.text()),
                    format!("(arange(0, {}) % {columns})[None, :]", dims[1].0.text()),
                ];
                before
                    .push(Node::line(format!("let mut {p} = {matrix}.ptr + ({} + {});", lanes[0], lanes[1])));
                // What lies after the end of the inner axis is masked off; the step is that axis's stride.
                let (side, limit, step) =
                    if along == 0 { ("[:, None]", rows, columns) } else { ("[None, :]", columns, 1) };
                let length = dims[along].0.text();
                body.push(Node::line(format!("{p} = {p} + {length} * {step};")));
                format!("load({p}, ({at} + arange(0, {length}) < {limit}){side})")
            }
            _ => format!("{matrix}.load([{}, {}], {shape})", place[0], place[1]),
        }
    }

    /// A loop over rows, as a program that stays has it: each iteration reads a row and may write one.
    pub fn rows(&mut self, out: &mut Vec<Node>) {
        let sum = self.machinery.sum;
        let n = Dim::of(self.random.pick(&["N", "13", "33", "64", "16"]));
        let (row, x, v) = (self.name("row"), self.name("x"), self.name("v"));
        let ty = Ty::Tile(sum, vec![n.clone()]);
        out.push(Node::line(format!("let mut {v} = {};", self.expr(&ty, 1))));
        let (column, one) = (self.position(1), self.random.chance(50));
        let load = if one {
            format!("reshape(ma.load([{row}, {column}], [1, {n}]), [{n}])", n = n.text())
        } else {
            format!("ma[{row}].load([{column}], [{n}])", n = n.text())
        };
        let body = self.scoped(|s| {
            s.bind(row.clone(), Ty::scalar("i32"), false);
            let mut body = vec![Node::line(format!("let {x} = {load} as {sum};"))];
            s.bind(x.clone(), ty.clone(), false);
            body.push(Node::line(format!("{v} = {};", s.expr(&ty, 2))));
            if s.random.chance(60) {
                let value = s.expr(&ty, 1);
                body.push(Node::line(format!("rows[program_id(0), {row}].store([0], {value} + {x});")));
            }
            body
        });
        let range = format!(
            "range(program_id(0), {}, {PROGRAMS}{})",
            self.random.below(self.machinery.deep[0] + 3),
            self.hints()
        );
        out.push(Node::block(format!("for {row} in {range} {{"), body, "}"));
        self.bind(v, ty, true);
    }

    /// An atomic on places of this program, each of which one lane reaches, so that what was there before is known.
    pub fn atomic(&mut self, out: &mut Vec<Node>) {
        let e = self.machinery.counted;
        let op = self.random.pick(if is_int(e) { ATOMICS } else { &["add", "xchg"] });
        let dims = match self.random.pick(&["", "N", "13", "33", "1"]) {
            "" => vec![],
            d => vec![Dim::of(d)],
        };
        let ty = Ty::Tile(e, dims.clone());
        let at = format!("clamp({}, 0, {})", self.position(1), COUNTERS - 33);
        let at = dims.first().map_or(at.clone(), |d| format!("{at} + arange(0, {})", d.text()));
        let compared = if op == "cas" { format!("{}, ", self.expr(&ty, 1)) } else { String::new() };
        // GPUs of NVIDIA take subnormal numbers for zeros where they add to f32 in memory (`spec/07-memory.md`).
        let value = if e == "f32" {
            format!("({} as f32)", self.expr(&Ty::Tile("i32", dims.clone()), 2))
        } else {
            self.expr(&ty, 2)
        };
        let mask = self.expr(&Ty::Tile("bool", dims.clone()), 1);
        let order = self.random.pick(&["", ", order = acquire", ", order = release", ", order = acq_rel"]);
        let name = self.name("v");
        let call = if self.random.chance(50) {
            format!("tally.atomic_{op}([{at}], {compared}{value}, {mask}{order})")
        } else {
            format!("atomic_{op}(tally.ptr + ({at}), {compared}{value}, {mask}{order})")
        };
        out.push(Node::line(format!("let {name} = {call};")));
        self.bind(name, ty, false);
    }
}
