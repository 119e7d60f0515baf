//! Random statements, and the program around them: structs, functions and one kernel.
//!
//! Guarantees that loops end, that programs of a grid write to places of their own, and that every variable that is left
//! at the end of the kernel is stored.

use std::collections::BTreeSet;

use super::bounds;
use super::exprs::{Callee, Memory, Scope, Var};
use super::loops::{COUNTERS, Machinery};
use super::program::Node;
use super::types::*;

/// Rows and columns of inputs, extents of what is written on the way, elements after a pointer.
pub const ROWS: usize = 9;
pub const COLUMNS: usize = 11;
pub const COUNT: usize = 40;
/// Programs of the grid.
pub const PROGRAMS: usize = 2;
/// The longest tile that is stored at the end.
const STORED: usize = 1024;

/// A parameter of the kernel, as a launch gives it.
#[derive(Clone, Debug)]
pub enum Param {
    Tensor(Elem, Vec<usize>),
    /// Of whole numbers from -3 to 3.
    Matrix(Elem, Vec<usize>),
    Int(i64),
    Float(f64),
    Absent,
}

/// What a statement stands in.
#[derive(Clone, Copy)]
struct Place<'a> {
    depth: usize,
    in_loop: bool,
    /// What `return` gives in a function.
    result: Option<&'a Ty>,
}

impl Scope {
    pub fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    fn any_type(&mut self) -> Ty {
        let known: Vec<Ty> =
            self.vars.iter().map(|v| v.ty.clone()).filter(|t| !matches!(t, Ty::Tile(..))).collect();
        match self.random.below(12) {
            0 => Ty::Tuple((0..2 + self.random.below(2)).map(|_| self.tile()).collect()),
            1 if !known.is_empty() => self.random.pick(&known),
            _ => self.tile(),
        }
    }

    pub fn bind(&mut self, place: String, ty: Ty, mutable: bool) {
        self.vars.push(Var { place, ty, mutable });
    }

    pub fn scoped<R>(&mut self, inside: impl FnOnce(&mut Self) -> R) -> R {
        let known = self.vars.len();
        let result = inside(self);
        self.vars.truncate(known);
        result
    }

    /// A condition that is not known at compile time, where integers must not wrap.
    pub fn condition(&mut self) -> String {
        let op = self.random.pick(&["&&", "&&", "=="]);
        let rest = self.expr(&Ty::scalar("bool"), 2);
        format!("({} {op} {rest})", self.anchor)
    }

    fn block(&mut self, count: usize, place: Place) -> Vec<Node> {
        let mut out = vec![];
        for _ in 0..count {
            self.stmt(place, &mut out);
        }
        out
    }

    fn inner(&mut self, place: Place) -> Vec<Node> {
        let count = 1 + self.random.below(3);
        self.scoped(|s| s.block(count, Place { depth: place.depth + 1, ..place }))
    }

    fn stmt(&mut self, place: Place, out: &mut Vec<Node>) {
        let nests = place.depth < 2;
        match self.random.below(27) {
            0..8 => self.let_stmt(out),
            8..12 => self.assignment(out),
            12 | 13 if nests => {
                let c = self.condition();
                let mut node = Node::block(format!("if {c} {{"), self.inner(place), "}");
                if self.random.chance(50) {
                    node.arms[0].1 = "} else {".into();
                    node.arms.push((self.inner(place), "}".into()));
                }
                out.push(node);
            }
            14 | 15 if nests => self.if_value(place, out),
            16 | 17 if nests => self.for_loop(place, out),
            18 if nests => self.while_loop(place, out),
            19 if place.in_loop => {
                let c = self.condition();
                let what = self.random.pick(&["break;", "continue;"]);
                out.push(Node::block(format!("if {c} {{"), vec![Node::line(what)], "}"));
            }
            20 => self.early_return(place, out),
            21 | 22 if self.programs => self.store(out),
            23 if self.programs && nests && self.random.chance(40) => self.walk(out),
            23 => self.compile_time(place, out),
            24 if self.programs && nests => self.product(out),
            25 if self.programs && nests => self.rows(out),
            26 if self.programs => self.atomic(out),
            _ => self.let_stmt(out),
        }
    }

    fn let_stmt(&mut self, out: &mut Vec<Node>) {
        let ty = self.any_type();
        if let (Ty::Tuple(parts), true) = (&ty, self.random.chance(50)) {
            let names: Vec<String> = parts.iter().map(|_| self.name("v")).collect();
            out.push(Node::line(format!("let ({},) = {};", names.join(", "), self.expr(&ty, 2))));
            names.into_iter().zip(parts.clone()).for_each(|(n, t)| self.bind(n, t, false));
            return;
        }
        let (value, name, mutable) = (self.expr(&ty, 3), self.name("v"), self.random.chance(60));
        let of = if self.random.chance(30) { format!(": {}", ty.text()) } else { String::new() };
        out.push(Node::line(format!("let {}{name}{of} = {value};", if mutable { "mut " } else { "" })));
        self.bind(name, ty, mutable);
    }

    fn assignment(&mut self, out: &mut Vec<Node>) {
        let all: Vec<Var> = self.vars.iter().filter(|v| v.mutable).cloned().collect();
        if all.is_empty() {
            return self.let_stmt(out);
        }
        let mut var = self.random.pick(&all);
        // A part of it.
        while let (Ty::Tuple(parts) | Ty::Struct(_, parts), true) = (&var.ty, self.random.chance(60)) {
            let i = self.random.below(parts.len());
            let part = if matches!(var.ty, Ty::Tuple(_)) { format!("[{i}]") } else { format!(".f{i}") };
            var = Var { place: var.place.clone() + &part, ty: parts[i].clone(), mutable: true };
        }
        let value = self.expr(&var.ty, 3);
        let op = match &var.ty {
            Ty::Tile(e, _) if is_int(e) => self.random.pick(&["=", "+=", "-=", "*=", "^="]),
            Ty::Tile(e, _) if is_float(e) => self.random.pick(&["=", "=", "+=", "*="]),
            Ty::Tile(..) | Ty::Tuple(_) | Ty::Struct(..) => "=",
        };
        out.push(Node::line(format!("{} {op} {value};", var.place)));
    }

    /// A variable that gets its value from the arms of an `if`, as its value or by assignment.
    fn if_value(&mut self, place: Place, out: &mut Vec<Node>) {
        let (ty, c, name) = (self.any_type(), self.condition(), self.name("v"));
        let late = self.random.chance(30);
        let mut arms = vec![];
        for tail in ["} else {", if late { "}" } else { "};" }] {
            let arm = self.scoped(|s| {
                let count = 1 + s.random.below(2);
                let mut body = s.block(count, Place { depth: place.depth + 1, ..place });
                let value = s.expr(&ty, 2);
                body.push(Node::line(if late { format!("{name} = {value};") } else { value }));
                body
            });
            arms.push((arm, tail.to_string()));
        }
        if late {
            out.push(Node::line(format!("let {name}: {};", ty.text())));
            out.push(Node { head: format!("if {c} {{"), arms });
        } else {
            out.push(Node { head: format!("let {name}: {} = if {c} {{", ty.text()), arms });
        }
        self.bind(name, ty, false);
    }

    fn for_loop(&mut self, place: Place, out: &mut Vec<Node>) {
        // `i8` would be a type.
        let i = self.name("k");
        let static_range = self.random.chance(15);
        let range = match self.random.below(5) {
            _ if static_range => format!("static_range(0, {})", self.random.below(3)),
            0 => format!("range(3, 0, -1{})", self.hints()),
            1 => format!("range(-1, 4, 2{})", self.hints()),
            2 => format!("range(0, {} & 3)", self.expr(&Ty::scalar("i32"), 1)),
            3 => "range(2, 2)".into(),
            _ => format!("range({})", self.random.below(4)),
        };
        let body = self.scoped(|s| {
            s.bind(i.clone(), Ty::scalar("i32"), false);
            // `break` and `continue` are for loops at run time.
            let in_loop = !static_range;
            s.inner(Place { in_loop, ..place })
        });
        out.push(Node::block(format!("for {i} in {range} {{"), body, "}"));
    }

    fn while_loop(&mut self, place: Place, out: &mut Vec<Node>) {
        let w = self.name("w");
        out.push(Node::line(format!("let mut {w} = 0 as i32;")));
        // Nothing else assigns to it.
        self.bind(w.clone(), Ty::scalar("i32"), false);
        let c = self.condition();
        let mut body = vec![Node::line(format!("{w} += 1;"))];
        body.extend(self.inner(Place { in_loop: true, ..place }));
        out.push(Node::block(format!("while {w} < {} && {c} {{", 1 + self.random.below(4)), body, "}"));
    }

    fn early_return(&mut self, place: Place, out: &mut Vec<Node>) {
        let c = self.condition();
        let what = match place.result {
            Some(ty) => format!("return {};", self.expr(ty, 2)),
            // Rarely: what follows is what is looked at.
            None if place.depth > 0 && self.programs && self.random.chance(30) => "return;".into(),
            None => return self.let_stmt(out),
        };
        out.push(Node::block(format!("if {c} {{"), vec![Node::line(what)], "}"));
    }

    /// Decided when the program is specialized.
    fn compile_time(&mut self, place: Place, out: &mut Vec<Node>) {
        if !self.generic || place.depth > 1 {
            return self.let_stmt(out);
        }
        let c = self.random.pick(&["N > 6", "M % 2 == 0", "T == f16", "T == f32", "T.bits == 16 && N > M"]);
        let arms = vec![(self.inner(place), "} else {".to_string()), (self.inner(place), "}".to_string())];
        out.push(Node { head: format!("if {c} {{"), arms });
    }

    /// A loop that carries a pointer and a tile; the pointer reaches what an earlier iteration has written.
    fn walk(&mut self, out: &mut Vec<Node>) {
        let memories: Vec<Memory> = self.memories.iter().filter(|m| m.rank.is_err()).cloned().collect();
        let Memory { name, elem, mutable, .. } = self.random.pick(&memories);
        let ty = Ty::Tile(elem, vec![Dim::of(self.random.pick(&["N", "13", "3", "16"]))]);
        let Ty::Tile(_, dims) = &ty else { return };
        let (p, q, t, v, k) =
            (self.name("p"), self.name("q"), self.name("t"), self.name("v"), self.name("k"));
        let start = self.expr(&ty, 1);
        out.push(Node::line(format!("let mut {p} = {name} + {};", self.random.below(6))));
        out.push(Node::line(format!("let mut {v}: {} = {start};", ty.text())));
        let body = self.scoped(|s| {
            let mut body = vec![
                Node::line(format!("let {q} = {p} + arange(0, {});", dims[0].text())),
                Node::line(format!("let {t} = load({q});")),
            ];
            s.bind(t, ty.clone(), false);
            s.bind(v.clone(), ty.clone(), true);
            if mutable {
                body.push(Node::line(format!("store({q}, {});", s.expr(&ty, 2))));
            }
            body.push(Node::line(format!("{v} = {};", s.expr(&ty, 2))));
            body.push(Node::line(format!("{p} = {p} + {};", 1 + s.random.below(3))));
            body
        });
        let head = format!("for {k} in range({}{}) {{", self.random.below(5), self.hints());
        out.push(Node::block(head, body, "}"));
        self.bind(v, ty, true);
    }

    /// Reads, writes and reads again the same place: the second value is another one.
    fn rewrite(&mut self, out: &mut Vec<Node>) {
        let memories: Vec<Memory> =
            self.memories.iter().filter(|m| m.mutable && m.name != "total").cloned().collect();
        let memory = self.random.pick(&memories);
        let (e, name) = (memory.elem, memory.name);
        let dims = vec![Dim::of(self.random.pick(&["N", "3", "1"])); memory.rank.unwrap_or(1)];
        let ty = Ty::Tile(e, dims.clone());
        let at = self.random.below(4);
        let (read, write) = if memory.rank.is_ok() {
            let place = format!("[{at}, {}]", self.random.pick(&["0", "n"]));
            let shape = shape_text(&dims);
            (format!("{name}.load({place}, {shape})"), format!("{name}.store({place}, "))
        } else {
            let place = format!("{name} + {at} + arange(0, {})", dims[0].text());
            (format!("load({place})"), format!("store({place}, "))
        };
        let load = |scope: &mut Self, out: &mut Vec<Node>| {
            let v = scope.name("v");
            out.push(Node::line(format!("let {v} = {read};")));
            scope.bind(v, ty.clone(), false);
        };
        load(self, out);
        out.push(Node::line(format!("{write}{});", self.expr(&ty, 2))));
        load(self, out);
    }

    fn store(&mut self, out: &mut Vec<Node>) {
        if self.random.chance(40) {
            return self.rewrite(out);
        }
        let memories: Vec<Memory> = self.memories.iter().filter(|m| m.mutable).cloned().collect();
        let memory = self.random.pick(&memories);
        let (e, name) = (memory.elem, &memory.name);
        let Ok(rank) = memory.rank else {
            let shift = self.expr(&Ty::scalar("i32"), 1);
            let value = self.expr(&Ty::Tile(e, vec![Dim::of("N")]), 2);
            let mask = self.expr(&Ty::Tile("bool", vec![Dim::of("N")]), 2);
            let at = format!("clamp({shift}, 0, {}) + arange(0, N)", COUNT - N);
            return out.push(Node::line(format!("store({name} + ({at}), {value}, {mask});")));
        };
        if name == "total" {
            let value = self.expr(&Ty::Tile(e, vec![Dim::of("M")]), 2);
            return out.push(Node::line(format!(
                "total.atomic_{}([arange(0, M)], {value});",
                self.machinery.total
            )));
        }
        if self.random.chance(20) {
            let n = Dim::of(self.random.pick(&["N", "3", "8"]));
            let (at, rest) = (self.position(1), self.position(1));
            let value = self.expr(&Ty::Tile(e, vec![n.clone()]), 2);
            let mask = self.expr(&Ty::Tile("bool", vec![n.clone()]), 2);
            let at = format!("clamp({at}, -9, 9) + arange(0, {})", n.text());
            let at = if self.random.chance(50) { format!("{at}, {rest}") } else { format!("{rest}, {at}") };
            return out.push(Node::line(format!("{name}.scatter([{at}], {value}, {mask});")));
        }
        let at: Vec<String> = (0..rank).map(|_| self.position(1)).collect();
        let dims: Vec<Dim> = (0..rank).map(|_| Dim::of(self.random.pick(&["N", "M", "3", "1"]))).collect();
        let ty = if self.random.chance(30) { Ty::scalar(e) } else { Ty::Tile(e, dims) };
        out.push(Node::line(format!("{name}.store([{}], {});", at.join(", "), self.expr(&ty, 2))));
    }

    fn function(&mut self, number: usize, structs: &[Ty]) -> Node {
        let scalar = self.random.chance(50);
        (self.scalar_only, self.generic, self.programs) = (scalar, !scalar, false);
        self.vars.clear();
        let mut params = vec![];
        for i in 0..1 + self.random.below(3) {
            let composite = !scalar && !structs.is_empty() && self.random.chance(20);
            let ty = if composite { self.random.pick(structs) } else { self.tile() };
            self.bind(format!("a{i}"), ty.clone(), false);
            params.push(ty);
        }
        let mut place = ("a0".to_string(), &params[0]);
        while let Ty::Tuple(parts) | Ty::Struct(_, parts) = place.1 {
            place = (place.0 + if matches!(place.1, Ty::Tuple(_)) { "[0]" } else { ".f0" }, &parts[0]);
        }
        self.anchor = format!("any({0} == {0})", place.0);
        let result = if scalar { self.tile() } else { self.any_type() };
        let count = 1 + self.random.below(4);
        let place = Place { depth: 0, in_loop: false, result: Some(&result) };
        let mut body = self.block(count, place);
        body.push(Node::line(self.expr(&result, 3)));
        let list: Vec<String> =
            params.iter().enumerate().map(|(i, t)| format!("a{i}: {}", t.text())).collect();
        let generics = if scalar { "" } else { "[T: float, N: i32, M: i32]" };
        let given = if scalar { "" } else { "[T = T, N = N, M = M]" };
        let noinline = if self.random.chance(20) { "@noinline " } else { "" };
        let head = format!("{noinline}fn f{number}{generics}({}) -> {} {{", list.join(", "), result.text());
        self.callees.push(Callee { name: format!("f{number}{given}"), params, result, scalar });
        Node::block(head, body, "}")
    }

    /// The parameters of the kernel with their declarations.
    fn kernel_params(&mut self) -> Vec<(String, Param)> {
        let mut params = vec![("xt: view[T, 1]".to_string(), Param::Tensor("T", vec![COLUMNS]))];
        self.memories = vec![Memory { name: "xt".into(), elem: "T", rank: Ok(1), mutable: false }];
        for i in 0..2 {
            let (e, rank) = (self.elem(), 1 + self.random.below(2));
            params.push((
                format!("x{i}: view[{e}, {rank}]"),
                Param::Tensor(e, [ROWS, COLUMNS][..rank].to_vec()),
            ));
            self.memories.push(Memory { name: format!("x{i}"), elem: e, rank: Ok(rank), mutable: false });
        }
        let e = self.elem();
        params.push((format!("p0: *{e}"), Param::Tensor(e, vec![COUNT])));
        self.memories.push(Memory { name: "p0".into(), elem: e, rank: Err(COUNT), mutable: false });
        let e = self.elem();
        params.push((format!("written: mut view[{e}, 3]"), Param::Tensor(e, vec![PROGRAMS, ROWS, COLUMNS])));
        self.memories.push(Memory { name: "own".into(), elem: e, rank: Ok(2), mutable: true });
        let e = self.elem();
        params.push((format!("places: *mut {e}"), Param::Tensor(e, vec![PROGRAMS * COUNT])));
        self.memories.push(Memory { name: "mine".into(), elem: e, rank: Err(COUNT), mutable: true });
        params.push(("total: mut view[i32, 1]".into(), Param::Tensor("i32", vec![M])));
        let Machinery { a, b, sum, counted, deep, .. } = self.machinery;
        for (name, e) in [("ma", a), ("mb", b)] {
            params.push((format!("{name}: view[{e}, 2]"), Param::Matrix(e, deep.to_vec())));
        }
        let row = vec![PROGRAMS, deep[0], deep[1]];
        params.push((format!("rows: mut view[{sum}, 3]"), Param::Tensor(sum, row)));
        // No subnormal numbers: see the atomics.
        let counters = if counted == "f32" { Param::Matrix } else { Param::Tensor };
        let counters = counters(counted, vec![PROGRAMS, COUNTERS]);
        params.push((format!("counts: mut view[{counted}, 2]"), counters));
        let absent = self.random.chance(50);
        let given = if absent { Param::Absent } else { Param::Tensor("f32", vec![COLUMNS]) };
        params.push(("maybe: view[f32, 1]?".into(), given));
        params.push(("n: i32".into(), Param::Int(self.random.below(20) as i64 - 5)));
        params.push(("s: f32".into(), Param::Float(self.random.below(9) as f64 / 4.0 - 1.0)));
        self.vars = vec![];
        self.bind("n".into(), Ty::scalar("i32"), false);
        self.bind("s".into(), Ty::scalar("f32"), false);
        params
    }

    fn kernel(&mut self, count: usize) -> (Node, Vec<Param>) {
        (self.scalar_only, self.generic, self.programs) = (false, true, true);
        self.anchor = "(n < 100)".into();
        let mut params = self.kernel_params();
        let mut body = vec![
            Node::line("let own = written[program_id(0)];"),
            Node::line(format!("let mine = places + program_id(0) * {COUNT};")),
            Node::line("let tally = counts[program_id(0)];"),
        ];
        // Programs run one after the other in these tests, so what is read there is the same each time.
        self.memories.push(Memory { name: "total".into(), elem: "i32", rank: Ok(1), mutable: true });
        let first = self.block(count / 2, Place { depth: 0, in_loop: false, result: None });
        body.extend(first);
        let c = self.expr(&Ty::Tile("f32", vec![Dim::of("N")]), 2);
        let name = self.name("v");
        body.push(Node::line(format!("let mut {name} = {c};")));
        let given = vec![Node::line(format!("{name} += m.load([{}], [N]);", self.position(1)))];
        body.push(Node::block("if let m = maybe {", given, "}"));
        self.bind(name, Ty::Tile("f32", vec![Dim::of("N")]), true);
        body.extend(self.block(count - count / 2, Place { depth: 0, in_loop: false, result: None }));
        let (stores, outs) = self.stores();
        body.extend(stores);
        params.extend(outs);
        let list: Vec<&str> = params.iter().map(|(text, _)| text.as_str()).collect();
        let head = format!(
            "kernel k[T: float, N: i32 = {N}, M: i32 = {M}]({}) grid({PROGRAMS}) {{",
            list.join(", ")
        );
        (Node::block(head, body, "}"), params.into_iter().map(|(_, p)| p).collect())
    }

    /// Everything that is left in variables goes to an output of its element type, a row for each.
    fn stores(&self) -> (Vec<Node>, Vec<(String, Param)>) {
        fn leaves(place: &str, ty: &Ty, out: &mut Vec<(Elem, Vec<Dim>, String)>) {
            match ty {
                Ty::Tile(e, dims) => out.push((*e, dims.clone(), place.to_string())),
                Ty::Tuple(parts) => {
                    parts.iter().enumerate().for_each(|(i, t)| leaves(&format!("{place}[{i}]"), t, out));
                }
                Ty::Struct(_, parts) => {
                    parts.iter().enumerate().for_each(|(i, t)| leaves(&format!("{place}.f{i}"), t, out));
                }
            }
        }
        let mut all = vec![];
        self.vars.iter().for_each(|v| leaves(&v.place, &v.ty, &mut all));
        let mut rows: Vec<(Elem, usize)> = vec![];
        let mut nodes = vec![];
        for (e, dims, place) in all.into_iter().filter(|(_, dims, _)| elements(dims) <= STORED) {
            let at = rows.iter().position(|(of, _)| *of == e).unwrap_or_else(|| {
                rows.push((e, 0));
                rows.len() - 1
            });
            let row = rows[at].1;
            rows[at].1 += 1;
            let product = Dim::product(&dims).text();
            let value = if dims.is_empty() { place } else { format!("reshape({place}, [1, {product}])") };
            nodes.push(Node::line(format!("o_{e}[program_id(0)].store([{row}, 0], {value});")));
        }
        let out = |(e, count): (Elem, usize)| {
            (format!("o_{e}: mut view[{e}, 3]"), Param::Tensor(e, vec![PROGRAMS, count, STORED]))
        };
        (nodes, rows.into_iter().map(out).collect())
    }
}

/// The program of a seed: its items, and the arguments of its kernel `k`. An `exact` one gives the same bits on every
/// device.
pub fn generate(seed: u64, exact: bool) -> (Vec<Node>, Vec<Param>) {
    let mut random = Random(seed);
    let mut s = Scope {
        exact,
        machinery: Machinery::new(&mut random),
        random,
        vars: vec![],
        callees: vec![],
        memories: vec![],
        scalar_only: false,
        programs: false,
        generic: true,
        bounded: BTreeSet::new(),
        next: 0,
        anchor: String::new(),
    };
    let mut items = vec![];
    let mut structs = vec![];
    for i in 0..s.random.below(3) {
        let fields: Vec<Ty> = (0..1 + s.random.below(3)).map(|_| s.tile()).collect();
        let list: Vec<String> =
            fields.iter().enumerate().map(|(k, t)| format!("f{k}: {}", t.text())).collect();
        items.push(Node::line(format!("struct S{i}[T: float, N: i32, M: i32] {{ {} }}", list.join(", "))));
        structs.push(Ty::Struct(i, fields));
    }
    for i in 0..s.random.below(5) {
        items.push(s.function(i, &structs));
    }
    let count = 6 + s.random.below(14);
    let (kernel, params) = s.kernel(count);
    items.push(kernel);
    let keeps: Vec<Node> = s.bounded.iter().map(|(f, e)| bounds::keeps(f, e)).collect();
    items.splice(0..0, keeps);
    (items, params)
}
