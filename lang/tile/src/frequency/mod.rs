//! Block frequency: the mean number of times that each block runs in a program of a launch.
//!
//! ```text
//! func(v0: i32 = 1000)                     frequency
//!   v3 = for v2 = 0..v0 by 64 {  ->  the block of the loop: 16
//! ```
//! Integers that follow from the arguments of the launch and from program ids are computed; programs are sampled over
//! the grid. A loop of many iterations is evaluated at its first, middle and last one, by Simpson's rule, which is exact
//! where the iterations of inner loops depend on it linearly (causal attention, triangular products).
//!
//! What depends on loaded data is a guess: a loop runs once, each side of an `if` in half of the cases;
//! [`Frequencies::is_guess`] says so.

mod known;
mod slice;

use tk_ops::eval::{self, Operand};
use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, MemoryOp, Op};

use crate::attr::Attr;
use crate::flow::{Flow, flow};
use crate::ir::{BlockId, Def, Func, Id, Inst, InstId, Module, ValueId};

use known::Known;
use slice::{needed, same_in_all_programs, terminator};

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArg {
    /// A number or bool.
    Scalar(Scalar),
    /// A tensor: its extents, and its strides in elements.
    Tensor(Vec<i64>, Vec<i64>),
    /// Nothing is known.
    Unknown,
}

/// How often blocks run.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequencies {
    /// By block; the body of the kernel runs once.
    of_block: Vec<f64>,
    /// Whether something depends on data.
    pub is_guess: bool,
    /// How many blocks the longest of the programs runs, as a multiple of the mean.
    pub longest: f64,
}

impl Frequencies {
    /// The mean number of times that a block runs in one program.
    pub fn of(&self, block: BlockId) -> f64 {
        self.of_block.get(block.index()).copied().unwrap_or(0.0)
    }
}

/// The most programs that are looked at. A grid is sampled with a stride that is odd, so that no residue of a power of
/// two is left out.
const PROGRAMS: u64 = 32;
/// Iterations up to which each one of a loop is evaluated.
const EACH: i128 = 8;
/// Iterations after which a `while` counts as one that depends on data.
const WHILE: u32 = 256;

/// How often each block of a kernel runs for these arguments, one for each parameter of the function.
pub fn frequencies(module: &Module, func: &Func, args: &[LaunchArg], grid: [u32; 3]) -> Frequencies {
    ControlSlice::new(func).frequencies(module, func, args, grid)
}

/// The slice of a function that decides how often its blocks run: what loops and branches depend on.
#[derive(Clone, Debug)]
pub struct ControlSlice {
    /// The number of each value that decides, by value.
    numbers: Vec<Option<u32>>,
    /// How many they are.
    count: usize,
    /// Of each block, the instructions that compute such values or have blocks of their own.
    insts: Vec<Vec<InstId>>,
    /// Those of the body that are the same in all programs: they follow from arguments alone.
    same: Vec<InstId>,
    /// The axes of the grid along which programs differ, since their ids decide something.
    axes: [bool; 3],
}

impl ControlSlice {
    /// Of a function.
    pub fn new(func: &Func) -> ControlSlice {
        let mut count = 0;
        let number = |is_needed: bool| {
            count += u32::from(is_needed);
            is_needed.then(|| count - 1)
        };
        let numbers: Vec<Option<u32>> = needed(func).into_iter().map(number).collect();
        let is_needed = |v: &ValueId| numbers.get(v.index()).copied().flatten().is_some();
        let decides = |i: &InstId| {
            let inst = &func.insts[*i];
            flow(inst.op) != Flow::Plain || inst.results.iter().any(is_needed)
        };
        let insts: Vec<Vec<InstId>> =
            func.blocks.iter().map(|(_, b)| b.insts.iter().copied().filter(decides).collect()).collect();
        let reads = |axis: i64| {
            let is_id = |i: &InstId| {
                let inst = &func.insts[*i];
                inst.op == Op::Control(ControlOp::ProgramId) && inst.attrs.int("axis") == Some(axis)
            };
            insts.iter().flatten().any(is_id)
        };
        let axes = [0, 1, 2].map(reads);
        let mut insts = insts;
        let same = same_in_all_programs(func, &mut insts);
        ControlSlice { numbers, count: count as usize, insts, same, axes }
    }

    /// How often each block of the function runs for these arguments, one for each parameter.
    pub fn frequencies(
        &self,
        module: &Module,
        func: &Func,
        args: &[LaunchArg],
        grid: [u32; 3],
    ) -> Frequencies {
        let mut walk = Walk {
            module,
            func,
            slice: self,
            values: vec![Known::Nothing; self.count],
            out: vec![0.0; func.blocks.len()],
            is_guess: false,
            grid,
            program: [0; 3],
        };
        // Programs that differ along the other axes alone do the same.
        let extent = |(n, varies): (u32, bool)| if varies { u64::from(n) } else { 1 };
        let [x, y, z] = [0, 1, 2].map(|axis| extent((grid[axis], self.axes[axis])));
        let total = x.saturating_mul(y).saturating_mul(z);
        let count = total.min(PROGRAMS);
        let (mut before, mut most) = (0.0, 0.0f64);
        for (v, arg) in func.blocks[func.body].args.iter().zip(args) {
            if walk.is_needed(*v) {
                walk.set(*v, Known::argument(arg));
            }
        }
        self.same.iter().for_each(|i| walk.plain(&func.insts[*i]));
        for i in 0..count {
            let at = if total <= PROGRAMS { [i % x, i / x % y, i / x / y] } else { spread(i, [x, y, z]) };
            walk.program = at.map(|n| u32::try_from(n).unwrap_or(0));
            walk.block(func.body, 1.0 / count as f64);
            let after = walk.out.iter().sum::<f64>();
            (most, before) = (most.max(after - before), after);
        }
        let longest = if before > 0.0 { most * count as f64 / before } else { 1.0 };
        Frequencies { of_block: walk.out, is_guess: walk.is_guess, longest }
    }
}

/// The `i`-th of [`PROGRAMS`] positions that are spread evenly over a grid of these extents, and over each of its axes: the
/// points of Hammersley (Niederreiter, "Random Number Generation and Quasi-Monte Carlo Methods", 1992), each in the middle of
/// its interval.
fn spread(i: u64, extents: [u64; 3]) -> [u64; 3] {
    /// The digits of a number in a base, mirrored at the point.
    fn mirrored(mut i: u64, base: u64) -> f64 {
        let (mut out, mut place) = (0.0, 1.0);
        while i > 0 {
            place /= base as f64;
            out += place * (i % base) as f64;
            i /= base;
        }
        out
    }
    let half = 0.5 / PROGRAMS as f64;
    let points = [i as f64 / PROGRAMS as f64 + half, mirrored(i, 2) + half, mirrored(i, 3) + half];
    [0, 1, 2].map(|axis| (points[axis].min(1.0 - half) * extents[axis] as f64) as u64)
}

struct Walk<'m> {
    module: &'m Module,
    func: &'m Func,
    slice: &'m ControlSlice,
    values: Vec<Known<'m>>,
    out: Vec<f64>,
    is_guess: bool,
    grid: [u32; 3],
    program: [u32; 3],
}

impl<'m> Walk<'m> {
    fn set(&mut self, v: ValueId, known: Known<'m>) {
        if let Some(slot) = self.number(v).and_then(|n| self.values.get_mut(n)) {
            *slot = known;
        }
    }

    fn number(&self, v: ValueId) -> Option<usize> {
        self.slice.numbers.get(v.index()).copied().flatten().map(|n| n as usize)
    }

    fn known(&self, v: ValueId) -> Option<&Known<'m>> {
        self.values.get(self.number(v)?)
    }

    fn get(&self, v: ValueId) -> Known<'m> {
        self.known(v).cloned().unwrap_or(Known::Nothing)
    }

    fn scalar(&self, v: ValueId) -> Option<Scalar> {
        match self.known(v) {
            Some(Known::Scalar(s)) => Some(*s),
            Some(Known::Nothing | Known::Argument(..) | Known::View(_)) | None => None,
        }
    }

    fn int(&self, v: Option<&ValueId>) -> Option<i128> {
        self.scalar(*v?)?.as_int()
    }

    fn is_needed(&self, v: ValueId) -> bool {
        self.number(v).is_some()
    }

    /// Runs a block this often.
    fn block(&mut self, block: BlockId, weight: f64) {
        if let Some(slot) = self.out.get_mut(block.index()) {
            *slot += weight;
        }
        let (func, slice) = (self.func, self.slice);
        for i in slice.insts.get(block.index()).into_iter().flatten() {
            let inst = &func.insts[*i];
            match flow(inst.op) {
                Flow::Plain => self.plain(inst),
                Flow::For => self.begin_for(inst, weight),
                Flow::While => self.begin_while(inst, weight),
                Flow::If => self.begin_if(inst, weight),
                Flow::Elements | Flow::Expect => {
                    let operand = inst.operands.first().map(|v| self.module.types.get(func.ty(*v)));
                    let count = operand.map_or(1, |t| t.count().max(1));
                    inst.blocks.iter().for_each(|b| self.block(*b, weight * count as f64));
                }
            }
        }
    }

    /// Computes what an instruction without blocks gives.
    fn plain(&mut self, inst: &Inst) {
        if let [result] = inst.results.as_slice()
            && self.is_needed(*result)
        {
            let known = self.evaluate(inst, *result).unwrap_or(Known::Nothing);
            self.set(*result, known);
        }
    }

    fn results(&mut self, inst: &Inst, known: Vec<Known<'m>>) {
        let mut known = known.into_iter();
        for r in &inst.results {
            self.set(*r, known.next().unwrap_or(Known::Nothing));
        }
    }

    /// What the end of a block says of the values that it passes on.
    fn passed(&self, block: BlockId, from: usize) -> Vec<Known<'m>> {
        let end = terminator(self.func, block);
        end.map_or(vec![], |t| t.operands.iter().skip(from).map(|v| self.get(*v)).collect())
    }

    fn begin_for(&mut self, inst: &'m Inst, weight: f64) {
        let Some(body) = inst.blocks.first().copied() else { return };
        let func = self.func;
        let range = [0, 1, 2].map(|i| self.int(inst.operands.get(i)));
        let args = &func.blocks[body].args;
        let varies = args.iter().any(|v| self.is_needed(*v));
        // Where none of the values decides anything, the list is empty.
        let is_carried = varies || inst.results.iter().any(|v| self.is_needed(*v));
        let carried = inst.operands.iter().skip(3).filter(|_| is_carried);
        let before: Vec<Known<'m>> = carried.map(|v| self.get(*v)).collect();
        let [Some(lo), Some(hi), Some(step @ (1.. | ..=-1))] = range else {
            self.is_guess = true;
            func.blocks[body].args.iter().for_each(|v| self.set(*v, Known::Nothing));
            self.block(body, weight);
            return self.results(inst, vec![]);
        };
        let iterations =
            if step > 0 { (hi - lo + step - 1) / step } else { (lo - hi - step - 1) / -step }.max(0);
        if iterations == 0 {
            return self.results(inst, before);
        }
        let dtype = args.first().and_then(|v| self.module.types.get(func.ty(*v)).dtype());
        let dtype = dtype.unwrap_or(DType::I32);
        if !varies {
            self.block(body, weight * iterations as f64);
            let known = if iterations == 1 { self.passed(body, 0) } else { vec![] };
            return self.results(inst, known);
        }
        let mut carried = before;
        // Iterations and their weights.
        let at: Vec<(i128, f64)> = match iterations {
            1..=EACH => (0..iterations).map(|i| (i, 1.0)).collect(),
            _ => {
                let share = iterations as f64 / 6.0;
                // An even number has two in the middle.
                vec![
                    (0, share),
                    ((iterations - 1) / 2, 2.0 * share),
                    (iterations / 2, 2.0 * share),
                    (iterations - 1, share),
                ]
            }
        };
        let each = at.len() as i128 == iterations;
        for (i, times) in at {
            let mut known = std::mem::take(&mut carried).into_iter();
            for (n, v) in args.iter().enumerate() {
                let is = match n {
                    0 => Known::Scalar(Scalar::int(dtype, lo + i * step)),
                    _ => known.next().unwrap_or(Known::Nothing),
                };
                self.set(*v, is);
            }
            self.block(body, weight * times);
            if each {
                carried = self.passed(body, 0);
            }
        }
        self.results(inst, if each { carried } else { vec![] });
    }

    fn begin_while(&mut self, inst: &'m Inst, weight: f64) {
        let [head, body] = inst.blocks.as_slice() else { return };
        let mut carried: Vec<Known<'m>> = inst.operands.iter().map(|v| self.get(*v)).collect();
        for _ in 0..WHILE {
            self.bind(*head, carried);
            self.block(*head, weight);
            let end = terminator(self.func, *head);
            let holds = end.and_then(|t| self.scalar(*t.operands.first()?)).and_then(Scalar::as_bool);
            let forwarded = self.passed(*head, 1);
            match holds {
                Some(true) => {
                    self.bind(*body, forwarded);
                    self.block(*body, weight);
                    carried = self.passed(*body, 0);
                }
                Some(false) => return self.results(inst, forwarded),
                None => {
                    self.is_guess = true;
                    self.bind(*body, vec![]);
                    self.block(*body, weight);
                    return self.results(inst, vec![]);
                }
            }
        }
        self.is_guess = true;
        self.results(inst, vec![]);
    }

    fn bind(&mut self, block: BlockId, known: Vec<Known<'m>>) {
        let mut known = known.into_iter();
        let func = self.func;
        for v in &func.blocks[block].args {
            self.set(*v, known.next().unwrap_or(Known::Nothing));
        }
    }

    fn begin_if(&mut self, inst: &'m Inst, weight: f64) {
        let holds = inst.operands.first().and_then(|v| self.scalar(*v)).and_then(Scalar::as_bool);
        match (holds, inst.blocks.as_slice()) {
            (Some(holds), blocks) => {
                let Some(taken) = blocks.get(usize::from(!holds)).copied() else { return };
                self.block(taken, weight);
                let known = self.passed(taken, 0);
                self.results(inst, known);
            }
            // What a code generator's operation decides is the role of a warp: some warps run one side, some the other.
            (None, blocks) if self.is_role(inst.operands.first()) => {
                blocks.iter().for_each(|b| self.block(*b, weight));
                self.results(inst, vec![]);
            }
            (None, blocks) => {
                self.is_guess |= blocks.iter().any(|b| self.func.blocks[*b].insts.len() > 1);
                blocks.iter().for_each(|b| self.block(*b, weight / 2.0));
                self.results(inst, vec![]);
            }
        }
    }

    fn is_role(&self, condition: Option<&ValueId>) -> bool {
        let def = condition.map(|v| self.func.values[*v].def);
        matches!(def, Some(Def::Inst(i, _)) if self.func.insts[i].op == Op::Target)
    }

    /// The result of an instruction without blocks.
    fn evaluate(&self, inst: &Inst, result: ValueId) -> Option<Known<'m>> {
        let ty = self.module.types.get(self.func.ty(result));
        match inst.op {
            Op::Create(CreateOp::Const) => match inst.attrs.get("value") {
                Some(Attr::Scalar(s)) => Some(Known::Scalar(*s)),
                Some(_) | None => None,
            },
            Op::Elementwise(op) if ty.shape().is_some_and(<[u32]>::is_empty) => {
                let mut args = [Operand::Splat(Scalar::int(DType::Bool, 0)); 3];
                let args = args.get_mut(..inst.operands.len())?;
                for (arg, v) in args.iter_mut().zip(&inst.operands) {
                    *arg = Operand::Splat(self.scalar(*v)?);
                }
                let divides = matches!(op, ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv);
                if divides && self.int(inst.operands.get(1)) == Some(0) {
                    return None;
                }
                let buf = eval::elementwise(op, args, ty.dtype()?, 1, inst.attrs.flag("fast")).ok()?;
                Some(Known::Scalar(buf.get(0)))
            }
            Op::Memory(op) => self.memory(op, inst, ty.dtype()),
            Op::Control(ControlOp::ProgramId) => self.axis(inst, self.program),
            Op::Control(ControlOp::NumPrograms) => self.axis(inst, self.grid),
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) => {
                Some(self.get(*inst.operands.first()?))
            }
            // The end of a loop that other warpgroups reach.
            Op::Target => Some(self.get(*inst.operands.first()?)),
            _ => None,
        }
    }

    fn axis(&self, inst: &Inst, of: [u32; 3]) -> Option<Known<'m>> {
        let axis = usize::try_from(inst.attrs.int("axis")?).ok()?;
        Some(Known::Scalar(Scalar::int(DType::I32, i128::from(*of.get(axis)?))))
    }

    fn memory(&self, op: MemoryOp, inst: &Inst, dtype: Option<DType>) -> Option<Known<'m>> {
        let first = self.known(*inst.operands.first()?)?;
        let axis = || usize::try_from(inst.attrs.int("axis")?).ok();
        let number = |strides| Some(Known::Scalar(Scalar::int(dtype?, first.number(axis()?, strides)?)));
        let is_view = matches!(first, Known::Argument(..) | Known::View(_));
        match op {
            MemoryOp::View => {
                let numbers: Vec<Option<i128>> =
                    inst.operands.iter().skip(1).map(|v| self.int(Some(v))).collect();
                let (shape, strides) = numbers.split_at_checked(numbers.len() / 2)?;
                Some(Known::view(shape.to_vec(), strides.to_vec()))
            }
            MemoryOp::ViewShape => number(false),
            MemoryOp::ViewStride => number(true),
            MemoryOp::ViewPermute if is_view => {
                let perm = inst.attrs.ints("perm")?;
                let permuted = |strides: bool| -> Option<Vec<Option<i128>>> {
                    let of = |p: &i64| {
                        let axis = usize::try_from(*p).ok().filter(|axis| *axis < first.rank())?;
                        Some(first.number(axis, strides))
                    };
                    perm.iter().map(of).collect()
                };
                Some(Known::view(permuted(false)?, permuted(true)?))
            }
            MemoryOp::ViewSlice if is_view => {
                let (mut numbers, mut out) = (inst.operands.iter().skip(1), (vec![], vec![]));
                for (axis, kind) in inst.attrs.ints("axes")?.iter().enumerate().take(first.rank()) {
                    let extent = first.number(axis, false);
                    match kind {
                        0 => {
                            numbers.next();
                            continue;
                        }
                        1 => out.0.push(extent),
                        _ => {
                            let (a, b) = (self.int(numbers.next()), self.int(numbers.next()));
                            out.0.push(extent.and_then(|n| Some((b?.clamp(0, n) - a?.clamp(0, n)).max(0))));
                        }
                    }
                    out.1.push(first.number(axis, true));
                }
                Some(Known::view(out.0, out.1))
            }
            _ => None,
        }
    }
}
