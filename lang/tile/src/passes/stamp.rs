//! Adds clock stamps: a kernel prints how long it and its loops took.
//!
//! ```text
//! for v0, v1, v2 {              v5 = globaltimer : u64
//! block1(v3: i32):              v6 = globaltimer : u64
//!   store v4, v3          =>    for v0, v1, v2 { .. }
//!   yield                       v7 = globaltimer : u64
//! }                             v8 = sub v7, v6 : u64
//! return                        ..
//!                               print v9, v8 {message = "clock stamps of 0:0:90 1:10:34: {} {}"}
//!                               return
//! ```
//! The first number is the kernel, then come its loops and those that are in the body of a `for`, each with its depth and
//! its place; numbers are nanoseconds, inner loops of all iterations of the outer ones. About [`PROGRAMS`] programs of a
//! grid print, always the same ones. Loops in an `if` or a `while` belong to what is around them.
//!
//! This is no optimization: a build with stamps is for `tk profile` alone. The clock is read where the program is, so that
//! a loop whose iterations would overlap with what follows it waits.

use tk_ops::{ControlOp, DType, ElementwiseOp, Op};

use crate::attr::{Attr, Attrs};
use crate::build::Builder;
use crate::flow::{Flow, flow};
use crate::ir::{BlockId, Def, Func, FuncKind, InstId, Loc, Module, Type, Types, Value, ValueId};
use crate::passes::ModulePass;

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "stamp", run };

/// What a line of stamps begins with, after the number of its program.
pub const TEXT: &str = "clock stamps of ";
/// Programs that print, as long as a grid has more.
pub const PROGRAMS: i64 = 32;
/// The most loops that are around one another with stamps.
const DEEPEST: u32 = 3;

/// A loop, or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// How many loops are around it, and the kernel.
    pub depth: u32,
    /// Its place.
    pub loc: Option<Loc>,
}

/// What a printed line says: for each region, the kernel first, its nanoseconds. `None` for another line.
pub fn parsed(line: &str) -> Option<Vec<(Region, u64)>> {
    let (regions, times) = line.split_once(TEXT)?.1.split_once(": ")?;
    let region = |text: &str| {
        let mut numbers = text.split(':').map(str::parse);
        let depth = numbers.next()?.ok()?;
        let loc = match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(file)), Some(Ok(start)), Some(Ok(end))) => Some(Loc { file, start, end }),
            _nowhere => None,
        };
        Some(Region { depth, loc })
    };
    let regions: Vec<Region> = regions.split(' ').map(region).collect::<Option<_>>()?;
    let times: Vec<u64> = times.split_whitespace().map(|t| t.parse().ok()).collect::<Option<_>>()?;
    (regions.len() == times.len() && !regions.is_empty()).then(|| regions.into_iter().zip(times).collect())
}

fn run(module: &mut Module) {
    let kernels: Vec<_> = module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel).collect();
    let kernels: Vec<_> = kernels.into_iter().map(|(id, _)| id).collect();
    for id in kernels {
        Stamp { types: &mut module.types, func: &mut module.funcs[id] }.kernel();
    }
}

struct Stamp<'a> {
    types: &'a mut Types,
    func: &'a mut Func,
}

impl Stamp<'_> {
    fn kernel(&mut self) {
        let body = self.func.body;
        let end = self.func.blocks[body].insts.pop();
        let places = self.func.blocks[body].insts.iter().filter_map(|i| self.func.insts[*i].loc);
        let whole = places.reduce(|a, b| Loc { start: a.start.min(b.start), end: a.end.max(b.end), ..a });
        let rest = std::mem::take(&mut self.func.blocks[body].insts);
        let begin = self.now(body);
        let mut all = vec![];
        self.insts(body, rest, 1, &mut all);
        let time = self.since(body, begin);
        all.insert(0, (Region { depth: 0, loc: whole }, time));
        let prints = self.is_sampled(body);
        self.print(body, prints, &all);
        self.func.blocks[body].insts.extend(end);
    }

    /// Puts instructions at the end of a block, with stamps around loops.
    fn insts(&mut self, block: BlockId, insts: Vec<InstId>, depth: u32, out: &mut Vec<(Region, ValueId)>) {
        for i in insts {
            let flow = flow(self.func.insts[i].op);
            if !matches!(flow, Flow::For | Flow::While) {
                self.func.blocks[block].insts.push(i);
                continue;
            }
            let inner = match self.func.insts[i].blocks.as_slice() {
                [body] if flow == Flow::For && depth < DEEPEST => self.inner(block, i, *body, depth + 1),
                _innermost => vec![],
            };
            let before = self.now(block);
            self.func.blocks[block].insts.push(i);
            let time = self.since(block, before);
            out.push((Region { depth, loc: self.func.insts[i].loc }, time));
            out.extend(inner);
        }
    }

    /// Adds up, in a loop, the times of the loops of its body.
    fn inner(&mut self, block: BlockId, i: InstId, body: BlockId, depth: u32) -> Vec<(Region, ValueId)> {
        let mut insts = std::mem::take(&mut self.func.blocks[body].insts);
        let end = insts.pop();
        let mut times = vec![];
        self.insts(body, insts, depth, &mut times);
        let mut out = vec![];
        for (region, time) in times {
            let zero = self.at(block).const_int(DType::U64, 0);
            let ty = self.types.intern(Type::scalar(DType::U64));
            let so_far = self.func.add_arg(body, ty);
            let sum = self.at(body).elementwise(ElementwiseOp::Add, &[so_far, time]);
            self.func.insts[i].operands.push(zero);
            if let Some(end) = end {
                self.func.insts[end].operands.push(sum);
            }
            let number = self.func.insts[i].results.len() as u32;
            let result = self.func.values.push(Value { ty, def: Def::Inst(i, number) });
            self.func.insts[i].results.push(result);
            out.push((region, result));
        }
        self.func.blocks[body].insts.extend(end);
        out
    }

    /// Returns true for about as many programs as print.
    fn is_sampled(&mut self, block: BlockId) -> ValueId {
        let mut b = self.at(block);
        let (mut number, mut total) = (None, None);
        for axis in (0..3).rev() {
            let [id, count] = [ControlOp::ProgramId, ControlOp::NumPrograms].map(|op| {
                let attrs = Attrs::new().with("axis", Attr::Int(axis));
                let v = b.one(Op::Control(op), &[], attrs, Type::scalar(DType::I32));
                b.cast(v, DType::I64)
            });
            number = Some(match number {
                None => id,
                Some(outer) => {
                    let rows = b.elementwise(ElementwiseOp::Mul, &[outer, count]);
                    b.elementwise(ElementwiseOp::Add, &[rows, id])
                }
            });
            total = Some(match total {
                None => count,
                Some(outer) => b.elementwise(ElementwiseOp::Mul, &[outer, count]),
            });
        }
        let zero = b.const_int(DType::I64, 0);
        let (number, total) = (number.unwrap_or(zero), total.unwrap_or(zero));
        // Every so many, and an odd number, so that no residue of a power of two is left out.
        let programs = b.const_int(DType::I64, PROGRAMS);
        let share = b.elementwise(ElementwiseOp::Div, &[total, programs]);
        let one = b.const_int(DType::I64, 1);
        let stride = b.elementwise(ElementwiseOp::Or, &[share, one]);
        let rest = b.elementwise(ElementwiseOp::Rem, &[number, stride]);
        b.elementwise(ElementwiseOp::Eq, &[rest, zero])
    }

    fn print(&mut self, block: BlockId, condition: ValueId, all: &[(Region, ValueId)]) {
        let place = |r: &Region| match r.loc {
            Some(Loc { file, start, end }) => format!("{}:{file}:{start}:{end}", r.depth),
            None => r.depth.to_string(),
        };
        let places: Vec<String> = all.iter().map(|(region, _)| place(region)).collect();
        let message = format!("{TEXT}{}: {}", places.join(" "), vec!["{}"; all.len()].join(" "));
        let times: Vec<ValueId> = all.iter().map(|(_, time)| *time).collect();
        let mut b = self.at(block);
        b.begin(&[]);
        b.inst(Op::Control(ControlOp::Print), &times, Attrs::new().with("message", Attr::Str(message)), &[]);
        b.yield_(&[]);
        let prints = b.end();
        b.begin(&[]);
        b.yield_(&[]);
        let silent = b.end();
        b.inst_with(Op::Control(ControlOp::If), &[condition], Attrs::new(), vec![prints, silent], &[]);
    }

    fn now(&mut self, block: BlockId) -> ValueId {
        let (op, ty) = (Op::Control(ControlOp::GlobalTimer), Type::scalar(DType::U64));
        self.at(block).one(op, &[], Attrs::new(), ty)
    }

    fn since(&mut self, block: BlockId, before: ValueId) -> ValueId {
        let now = self.now(block);
        self.at(block).elementwise(ElementwiseOp::Sub, &[now, before])
    }

    /// Appends to a block.
    fn at(&mut self, block: BlockId) -> Builder<'_> {
        Builder::at(self.types, self.func, block)
    }
}
