//! Computed once per launch: [`Code`], the functions that a launch reaches, with dense register slots and the last use
//! of every value.
//!
//! Requires a verified module. Guarantees that a value is marked as used for the last time only where no later
//! instruction, and no later iteration of a loop around it, reads it: the machine may move it out of its slot.

use std::collections::BTreeMap;

use tk_ops::{Buf, ControlOp, CreateOp, HostOp, Op, ReduceOp, Scalar, ScanOp};
use tk_tile::{Attr, Attrs, BlockData, BlockId, Func, FuncId, Inst, InstId, Loc, Module, Type, ValueId};

use crate::checked::offsets;
use crate::debug::Debugging;
use crate::fault::Fault;
use crate::launch::Options;
use crate::value::Value;

/// A register of a frame.
pub(crate) type Slot = u32;

/// The functions that a launch reaches.
pub(crate) struct Code<'m> {
    /// Whether the programs meet at a `grid_barrier`.
    pub barrier: bool,
    /// Who looks at what runs.
    pub debugging: Option<Debugging>,
    funcs: BTreeMap<FuncId, FuncCode<'m>>,
}

/// A function.
pub(crate) struct FuncCode<'m> {
    /// Its name, for messages.
    pub name: &'m str,
    /// Registers of a frame.
    pub slots: usize,
    /// The body in `blocks`.
    pub body: u32,
    blocks: Vec<BlockCode<'m>>,
    /// Under a debugger, the registers and types of all values.
    pub values: BTreeMap<ValueId, (Slot, &'m Type)>,
}

/// A block.
pub(crate) struct BlockCode<'m> {
    /// The block.
    pub id: BlockId,
    /// The slots of its arguments.
    pub args: Box<[Slot]>,
    /// Its instructions.
    pub steps: Box<[Step<'m>]>,
    /// Whether it may run on whole tiles where its arguments are scalars: elementwise operations and constants only.
    pub pointwise: bool,
}

/// An instruction.
pub(crate) struct Step<'m> {
    /// The operation.
    pub op: Op,
    /// Operands.
    pub uses: Box<[Use<'m>]>,
    /// Results.
    pub defs: Box<[Def<'m>]>,
    /// Registers that are dead when it is done, and that no single operand of it is the last to read.
    pub frees: Box<[Slot]>,
    /// The blocks it owns, in `FuncCode::blocks`.
    pub blocks: Box<[u32]>,
    /// Compile-time facts.
    pub attrs: &'m Attrs,
    /// Its place in the source.
    pub loc: Option<Loc>,
    /// The value of a constant.
    pub constant: Option<Value>,
    /// The function that a `call` calls.
    pub callee: Option<FuncId>,
    /// Where the result is part of the offset of a pointer, whose overflow checked mode reports: the name of the parameter
    /// that the pointer comes from, or nothing.
    pub offset: Option<&'m str>,
}

/// An operand.
pub(crate) struct Use<'m> {
    /// Its register.
    pub slot: Slot,
    /// Whether the register is dead after this.
    pub last: bool,
    /// Its type.
    pub ty: &'m Type,
}

/// A result.
pub(crate) struct Def<'m> {
    /// Its register.
    pub slot: Slot,
    /// Whether it is never read.
    pub dead: bool,
    /// Its type.
    pub ty: &'m Type,
    /// Elements, 1 for a scalar.
    pub count: usize,
}

impl<'m> Code<'m> {
    /// The function `entry` and what it calls, prepared for checked mode and for a debugger as the options say.
    pub fn new(module: &'m Module, entry: FuncId, options: &Options) -> Result<Code<'m>, Fault> {
        let mut code = Code { barrier: false, debugging: options.debugging.clone(), funcs: BTreeMap::new() };
        let mut todo = vec![entry];
        while let Some(id) = todo.pop() {
            if code.funcs.contains_key(&id) {
                continue;
            }
            let func = module.funcs.get(id).ok_or_else(|| Fault::internal("there is no such function"))?;
            let compiled = Compiler::new(module, func, options).run()?;
            let steps = || compiled.blocks.iter().flat_map(|b| b.steps.iter());
            code.barrier |= steps().any(|s| s.op == Op::Control(ControlOp::GridBarrier));
            todo.extend(steps().filter_map(|s| s.callee));
            code.funcs.insert(id, compiled);
        }
        Ok(code)
    }

    /// A function that was reached.
    pub fn func(&self, id: FuncId) -> Result<&FuncCode<'m>, Fault> {
        self.funcs.get(&id).ok_or_else(|| Fault::internal("a function was not prepared"))
    }
}

impl<'m> FuncCode<'m> {
    /// A block.
    pub fn block(&self, i: u32) -> Result<&BlockCode<'m>, Fault> {
        self.blocks.get(i as usize).ok_or_else(|| Fault::internal("a block was not prepared"))
    }
}

/// A set of registers.
#[derive(Clone, Default)]
struct Live(Vec<u64>);

impl Live {
    fn word(slot: Slot) -> (usize, u64) {
        ((slot / 64) as usize, 1 << (slot % 64))
    }

    fn has(&self, slot: Slot) -> bool {
        let (w, bit) = Live::word(slot);
        self.0.get(w).is_some_and(|x| x & bit != 0)
    }

    fn add(&mut self, slot: Slot) {
        let (w, bit) = Live::word(slot);
        if self.0.len() <= w {
            self.0.resize(w + 1, 0);
        }
        if let Some(x) = self.0.get_mut(w) {
            *x |= bit;
        }
    }

    fn remove(&mut self, slot: Slot) {
        let (w, bit) = Live::word(slot);
        if let Some(x) = self.0.get_mut(w) {
            *x &= !bit;
        }
    }

    fn union(&mut self, other: &Live) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// The registers that are here and not in `other`.
    fn without(&self, other: &Live) -> Vec<Slot> {
        let all = (0..self.0.len() as u32 * 64).filter(|s| self.has(*s));
        all.filter(|s| !other.has(*s)).collect()
    }
}

struct Compiler<'m> {
    module: &'m Module,
    func: &'m Func,
    slot_of: BTreeMap<ValueId, Slot>,
    blocks: Vec<BlockCode<'m>>,
    /// The instructions that compute offsets, in checked mode.
    offsets: BTreeMap<InstId, &'m str>,
    /// Whether no register is used again, so that a debugger finds every value.
    keep: bool,
}

impl<'m> Compiler<'m> {
    fn new(module: &'m Module, func: &'m Func, options: &Options) -> Self {
        let offsets = if options.checked { offsets::find(func, &module.types) } else { BTreeMap::new() };
        let keep = options.debugging.is_some();
        Compiler { module, func, slot_of: BTreeMap::new(), blocks: vec![], offsets, keep }
    }

    fn run(mut self) -> Result<FuncCode<'m>, Fault> {
        self.number(self.func.body)?;
        let mut live = Live::default();
        let body = self.block(self.func.body, &mut live)?;
        let mut values = BTreeMap::new();
        if self.keep {
            for (v, slot) in &self.slot_of {
                values.insert(*v, (*slot, self.ty(*v)?));
            }
        }
        Ok(FuncCode { name: &self.func.name, slots: self.slot_of.len(), body, blocks: self.blocks, values })
    }

    fn source(&self, id: BlockId) -> Result<&'m BlockData, Fault> {
        self.func.blocks.get(id).ok_or_else(|| Fault::internal("a block does not exist"))
    }

    fn inst(&self, id: InstId) -> Result<&'m Inst, Fault> {
        self.func.insts.get(id).ok_or_else(|| Fault::internal("an instruction does not exist"))
    }

    fn ty(&self, v: ValueId) -> Result<&'m Type, Fault> {
        let value = self.func.values.get(v).ok_or_else(|| Fault::internal("a value does not exist"))?;
        Ok(self.module.types.get(value.ty))
    }

    /// The tile of a table.
    fn table(&self, inst: &Inst, bits: &[i64]) -> Result<Option<Value>, Fault> {
        let Some(result) = inst.results.first() else { return Ok(None) };
        let Some(dtype) = self.ty(*result)?.dtype() else { return Ok(None) };
        let values: Vec<Scalar> = bits.iter().map(|b| Scalar::from_bits(dtype, b.cast_unsigned())).collect();
        Ok(Buf::from_scalars(dtype, &values).map(Value::tile))
    }

    fn slot(&self, v: ValueId) -> Result<Slot, Fault> {
        self.slot_of.get(&v).copied().ok_or_else(|| Fault::internal("a value is used before its definition"))
    }

    /// Gives every value that is defined in the block or in a block inside of it a register. The work list keeps deep
    /// nesting off the stack; the numbers must only differ.
    fn number(&mut self, body: BlockId) -> Result<(), Fault> {
        let mut todo = vec![body];
        while let Some(id) = todo.pop() {
            let block = self.source(id)?;
            let mut values = block.args.clone();
            for i in &block.insts {
                let inst = self.inst(*i)?;
                values.extend(&inst.results);
                todo.extend(&inst.blocks);
            }
            for v in values {
                let next = self.slot_of.len() as Slot;
                self.slot_of.entry(v).or_insert(next);
            }
        }
        Ok(())
    }

    /// Registers of outer values that a block reads, blocks inside included.
    fn reads(&self, id: BlockId) -> Result<Live, Fault> {
        let (mut read, mut defined) = (Live::default(), Live::default());
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let block = self.source(id)?;
            block.args.iter().try_for_each(|v| self.slot(*v).map(|s| defined.add(s)))?;
            for i in &block.insts {
                let inst = self.inst(*i)?;
                inst.operands.iter().try_for_each(|v| self.slot(*v).map(|s| read.add(s)))?;
                inst.results.iter().try_for_each(|v| self.slot(*v).map(|s| defined.add(s)))?;
                todo.extend(&inst.blocks);
            }
        }
        let mut outer = Live::default();
        read.without(&defined).into_iter().for_each(|s| outer.add(s));
        Ok(outer)
    }

    /// Compiles a block. `live` holds the registers that are read after it and becomes those that are read from its
    /// start on.
    fn block(&mut self, id: BlockId, live: &mut Live) -> Result<u32, Fault> {
        let source = self.source(id)?;
        let mut steps = Vec::with_capacity(source.insts.len());
        for i in source.insts.iter().rev() {
            let inst = self.inst(*i)?;
            let step = self.step(inst, live)?;
            steps.push(Step { offset: self.offsets.get(i).copied(), ..step });
        }
        steps.reverse();
        let args: Box<[Slot]> = source.args.iter().map(|v| self.slot(*v)).collect::<Result<_, _>>()?;
        args.iter().for_each(|s| live.remove(*s));
        let pointwise = steps.iter().all(|s| is_pointwise(s.op));
        self.blocks.push(BlockCode { id, args, steps: steps.into(), pointwise });
        Ok(self.blocks.len() as u32 - 1)
    }

    fn step(&mut self, inst: &'m Inst, live: &mut Live) -> Result<Step<'m>, Fault> {
        let mut defs = Vec::with_capacity(inst.results.len());
        for v in &inst.results {
            let (slot, ty) = (self.slot(*v)?, self.ty(*v)?);
            defs.push(Def { slot, dead: !self.keep && !live.has(slot), ty, count: ty.count().max(1) });
            live.remove(slot);
        }
        let after = live.clone();
        let blocks = self.blocks_of(inst, live)?;
        let mut uses = vec![];
        for v in inst.operands.iter().rev() {
            let slot = self.slot(*v)?;
            uses.push(Use { slot, last: !self.keep && !live.has(slot), ty: self.ty(*v)? });
            live.add(slot);
        }
        uses.reverse();
        let taken = |s: &Slot| uses.iter().any(|u| u.slot == *s && u.last);
        let frees = if blocks.is_empty() || self.keep {
            Box::default()
        } else {
            live.without(&after).into_iter().filter(|s| !taken(s)).collect()
        };
        let callee = match inst.op {
            Op::Control(ControlOp::Call) => {
                let name = inst.attrs.str("callee").unwrap_or_default();
                let found = self.module.find(name);
                Some(found.ok_or_else(|| Fault::internal("a function that is called does not exist"))?)
            }
            _other => None,
        };
        let constant = match (inst.op, inst.attrs.get("value"), inst.attrs.ints("values")) {
            (Op::Create(CreateOp::Const), Some(Attr::Scalar(s)), _) => Some(Value::Splat(*s)),
            (Op::Create(CreateOp::Table), _, Some(bits)) => self.table(inst, bits)?,
            _other => None,
        };
        let (uses, defs) = (uses.into(), defs.into());
        Ok(Step {
            op: inst.op,
            uses,
            defs,
            frees,
            blocks,
            attrs: &inst.attrs,
            loc: inst.loc,
            constant,
            callee,
            offset: None,
        })
    }

    /// Compiles the blocks of an instruction; `live` becomes what is read from the first of them on.
    fn blocks_of(&mut self, inst: &'m Inst, live: &mut Live) -> Result<Box<[u32]>, Fault> {
        if inst.blocks.is_empty() {
            return Ok(Box::default());
        }
        let repeats = match inst.op {
            Op::Control(ControlOp::If) | Op::Host(HostOp::ExpectError) => false,
            Op::Control(ControlOp::For | ControlOp::While | ControlOp::Map)
            | Op::Reduce(ReduceOp::Custom)
            | Op::Scan(ScanOp::Custom) => true,
            _other => true,
        };
        if repeats {
            // What an iteration reads, the next one reads again.
            for b in &inst.blocks {
                live.union(&self.reads(*b)?);
            }
        }
        // A fault in the middle of `host_expect_error` leaves some of what it reads in place: freed after it.
        let after = live.clone();
        let mut out = Vec::with_capacity(inst.blocks.len());
        for b in &inst.blocks {
            let mut inside = after.clone();
            out.push(self.block(*b, &mut inside)?);
            live.union(&inside);
        }
        Ok(out.into())
    }
}

/// Returns true if an operation works element by element, so that scalars in a `map` block may be whole tiles.
fn is_pointwise(op: Op) -> bool {
    match op {
        Op::Elementwise(_) | Op::Create(CreateOp::Const) | Op::Control(ControlOp::Yield) => true,
        Op::Create(_)
        | Op::Shape(_)
        | Op::Memory(_)
        | Op::Atomic(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::Dot(_)
        | Op::Random(_)
        | Op::Control(_)
        | Op::Host(_)
        | Op::Target => false,
    }
}
