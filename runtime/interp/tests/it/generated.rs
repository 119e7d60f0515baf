//! Generated programs of nested branches and loops against a direct evaluation: values are moved out of registers at
//! their last use, and a mistake there shows only in the right nesting.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use std::collections::HashMap;

use crate::common::*;
use tk_interp::Memory;

/// A value by its number in the text.
type Var = u32;

#[derive(Debug)]
enum Stmt {
    /// out = a * 3 + b, xor, or select by the lowest bit.
    Op(Var, u32, Var, Var),
    /// outs = if the lowest bit of the condition is 0.
    If(Vec<Var>, Var, Block, Block),
    /// outs = for `trips` times; the block sees the loop variable and the carried values.
    For(Vec<Var>, u32, Vec<Var>, Var, Vec<Var>, Block),
    /// outs = while the first carried value is below `limit`; it goes one up each time.
    While(Vec<Var>, i32, Vec<Var>, Vec<Var>, Vec<Var>, Block),
}

#[derive(Debug)]
struct Block {
    stmts: Vec<Stmt>,
    gives: Vec<Var>,
}

struct Generator {
    state: u64,
    next: Var,
}

impl Generator {
    fn below(&mut self, n: u32) -> u32 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.state >> 33) % u64::from(n)) as u32
    }

    fn new_var(&mut self) -> Var {
        self.next += 1;
        self.next - 1
    }

    fn vars(&mut self, n: u32) -> Vec<Var> {
        (0..n).map(|_| self.new_var()).collect()
    }

    fn pick(&mut self, visible: &[Var]) -> Var {
        visible[self.below(visible.len() as u32) as usize]
    }

    fn picks(&mut self, visible: &[Var], n: u32) -> Vec<Var> {
        (0..n).map(|_| self.pick(visible)).collect()
    }

    fn block(&mut self, visible: &[Var], gives: u32, depth: u32) -> Block {
        let mut visible = visible.to_vec();
        let mut stmts = vec![];
        for _ in 0..self.below(5) {
            let n = self.below(3);
            let kind = if depth == 0 { 0 } else { self.below(6) };
            let (stmt, outs) = match kind {
                3 => {
                    let cond = self.pick(&visible);
                    let arms = [self.block(&visible, n, depth - 1), self.block(&visible, n, depth - 1)];
                    let [then, otherwise] = arms;
                    let outs = self.vars(n);
                    (Stmt::If(outs.clone(), cond, then, otherwise), outs)
                }
                4 => {
                    let (trips, inits) = (self.below(4), self.picks(&visible, n));
                    let (iv, args) = (self.new_var(), self.vars(n));
                    let inner = [&visible[..], &[iv], &args].concat();
                    let body = self.block(&inner, n, depth - 1);
                    let outs = self.vars(n);
                    (Stmt::For(outs.clone(), trips, inits, iv, args, body), outs)
                }
                5 => {
                    let (limit, inits) = (self.below(4) as i32, self.picks(&visible, n));
                    let (head, args) = (self.vars(n + 1), self.vars(n + 1));
                    let inner = [&visible[..], &args].concat();
                    let body = self.block(&inner, n, depth - 1);
                    let outs = self.vars(n + 1);
                    (Stmt::While(outs.clone(), limit, inits, head, args, body), outs)
                }
                _ => {
                    let (op, a, b) = (self.below(3), self.pick(&visible), self.pick(&visible));
                    let out = self.new_var();
                    (Stmt::Op(out, op, a, b), vec![out])
                }
            };
            stmts.push(stmt);
            visible.extend(outs);
        }
        let gives = self.picks(&visible, gives);
        Block { stmts, gives }
    }
}

/// Text of a program. Numbers of helper values come from the same counter.
struct Printer<'a> {
    numbers: &'a mut Generator,
    text: String,
}

fn list(vars: &[Var]) -> String {
    vars.iter().map(|v| format!("v{v}")).collect::<Vec<_>>().join(", ")
}

fn typed(vars: &[Var]) -> String {
    vars.iter().map(|v| format!("v{v}: i32")).collect::<Vec<_>>().join(", ")
}

impl Printer<'_> {
    fn define(&mut self, what: &str) -> Var {
        let v = self.numbers.new_var();
        self.text += &format!("v{v} = {what}\n");
        v
    }

    fn int(&mut self, value: i32) -> Var {
        self.define(&format!("const {{value = {value} : i32}} : i32"))
    }

    fn even(&mut self, v: Var) -> Var {
        let (one, zero) = (self.int(1), self.int(0));
        let bit = self.define(&format!("and v{v}, v{one} : i32"));
        self.define(&format!("eq v{bit}, v{zero} : bool"))
    }

    /// `outs = op` with the types of the results.
    fn head(&mut self, outs: &[Var], what: &str) {
        if !outs.is_empty() {
            self.text += &format!("{} = ", list(outs));
        }
        self.text += what;
        if !outs.is_empty() {
            self.text += &format!(" : {}", vec!["i32"; outs.len()].join(", "));
        }
        self.text += " {\n";
    }

    fn label(&mut self, args: &[Var]) {
        let args = if args.is_empty() { String::new() } else { format!("({})", typed(args)) };
        self.text += &format!("block{}{args}:\n", self.numbers.next);
        self.numbers.next += 1;
    }

    fn block(&mut self, b: &Block, args: &[Var], first: Option<Var>) {
        self.label(args);
        b.stmts.iter().for_each(|s| self.stmt(s));
        let mut gives = b.gives.clone();
        if let Some(count) = first {
            let one = self.int(1);
            gives.insert(0, self.define(&format!("add v{count}, v{one} : i32")));
        }
        self.text += &format!("yield {}\n", list(&gives));
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Op(out, op, a, b) => match op {
                0 => {
                    let three = self.int(3);
                    let m = self.define(&format!("mul v{a}, v{three} : i32"));
                    self.text += &format!("v{out} = add v{m}, v{b} : i32\n");
                }
                1 => self.text += &format!("v{out} = xor v{a}, v{b} : i32\n"),
                _ => {
                    let c = self.even(*a);
                    self.text += &format!("v{out} = select v{c}, v{a}, v{b} : i32\n");
                }
            },
            Stmt::If(outs, cond, then, otherwise) => {
                let c = self.even(*cond);
                self.head(outs, &format!("if v{c}"));
                self.block(then, &[], None);
                self.block(otherwise, &[], None);
                self.text += "}\n";
            }
            Stmt::For(outs, trips, inits, iv, args, body) => {
                let (lo, hi, step) = (self.int(0), self.int(*trips as i32), self.int(1));
                self.head(outs, &format!("for {}", list(&[&[lo, hi, step], &inits[..]].concat())));
                self.block(body, &[&[*iv], &args[..]].concat(), None);
                self.text += "}\n";
            }
            Stmt::While(outs, limit, inits, head, args, body) => {
                let zero = self.int(0);
                self.head(outs, &format!("while {}", list(&[&[zero], &inits[..]].concat())));
                self.label(head);
                let limit = self.int(*limit);
                let holds = self.define(&format!("lt v{}, v{limit} : bool", head[0]));
                self.text += &format!("condition v{holds}, {}\n", list(head));
                self.block(body, args, Some(args[0]));
                self.text += "}\n";
            }
        }
    }
}

fn eval(b: &Block, values: &mut HashMap<Var, i32>) -> Vec<i32> {
    for s in &b.stmts {
        let (outs, results) = match s {
            Stmt::Op(out, op, a, b) => {
                let (a, b) = (values[a], values[b]);
                let r = match op {
                    0 => a.wrapping_mul(3).wrapping_add(b),
                    1 => a ^ b,
                    _ => [a, b][(a & 1) as usize],
                };
                (vec![*out], vec![r])
            }
            Stmt::If(outs, cond, then, otherwise) => {
                let arm = if values[cond] & 1 == 0 { then } else { otherwise };
                (outs.clone(), eval(arm, values))
            }
            Stmt::For(outs, trips, inits, iv, args, body) => {
                let mut carried: Vec<i32> = inits.iter().map(|v| values[v]).collect();
                for i in 0..*trips {
                    values.insert(*iv, i as i32);
                    values.extend(args.iter().copied().zip(carried));
                    carried = eval(body, values);
                }
                (outs.clone(), carried)
            }
            Stmt::While(outs, limit, inits, _, args, body) => {
                let mut carried: Vec<i32> = inits.iter().map(|v| values[v]).collect();
                let mut count = 0;
                while count < *limit {
                    values.insert(args[0], count);
                    values.extend(args[1..].iter().copied().zip(carried));
                    carried = eval(body, values);
                    count += 1;
                }
                carried.insert(0, count);
                (outs.clone(), carried)
            }
        };
        values.extend(outs.into_iter().zip(results));
    }
    b.gives.iter().map(|v| values[v]).collect()
}

#[test]
fn generated_programs_agree_with_direct_evaluation() {
    for seed in 0..400 {
        let mut g = Generator { state: seed, next: 3 };
        let program = g.block(&[1, 2], 4, 4);
        let mut p = Printer { numbers: &mut g, text: String::new() };
        program.stmts.iter().for_each(|s| p.stmt(s));
        for (i, v) in program.gives.iter().enumerate() {
            let at = p.int(i as i32);
            let place = p.define(&format!("ptr_add v0, v{at} : *mut i32"));
            p.text += &format!("store v{place}, v{v}\n");
        }
        let text =
            format!("kernel @k(v0 \"out\": *mut i32, v1 \"a\": i32, v2 \"b\": i32) {{\n{}return\n}}", p.text);
        let m = Memory::new();
        let out = i32s(&m, &[0; 4]);
        one(&m, &text, &[ptr(out), int(5), int(-8)]);
        let mut values = HashMap::from([(1, 5), (2, -8)]);
        assert_eq!(read_i32(&m, out), eval(&program, &mut values), "seed {seed}\n{text}");
    }
}
