//! Computes the slice of a kernel that determines where and how often loads read.
//!
//! Guarantees that a slice consists of loops, branches, numbers that a producer takes from counters ([`super::messages`]), and
//! scalar operations that only compute or read memory that the kernel does not write.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::table::Effects;
use tk_ops::{ControlOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::rewrite::yielded;
use tk_tile::{BlockId, Def, Func, Id, Inst, InstId, Type, ValueId, walk};

use super::messages::Message;
use crate::analysis::provenance::Roots;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;

/// Instructions, and the values that loops and branches carry for them.
#[derive(Clone, Debug, Default)]
pub struct SlicePart {
    /// The instructions.
    pub insts: BTreeSet<InstId>,
    /// Loops and branches, and the numbers of what they carry from iteration to iteration, or of their results.
    pub carried: BTreeSet<(InstId, usize)>,
    /// Loops that end by a condition, and the numbers of what this passes on to the iteration, or behind the loop.
    pub passed: BTreeSet<(InstId, usize)>,
}

/// What of a loop or branch is in the slice.
pub struct CarriedNumbers {
    /// The operands before what a loop carries: its bounds and its step, if it counts.
    pub bounds: usize,
    /// What it carries from iteration to iteration, or what a branch results in.
    pub carried: Vec<usize>,
    /// What its condition passes on to the iteration and behind the loop, which may be something else.
    pub passed: Vec<usize>,
}

impl CarriedNumbers {
    /// What of an instruction is in a slice.
    pub fn of(slice: &SlicePart, id: InstId, op: Op) -> CarriedNumbers {
        let of_inst = |all: &BTreeSet<(InstId, usize)>| -> Vec<usize> {
            all.iter().filter(|(i, _)| *i == id).map(|(_, k)| *k).collect()
        };
        let carried = of_inst(&slice.carried);
        match op {
            Op::Control(ControlOp::For) => CarriedNumbers { bounds: 3, passed: carried.clone(), carried },
            Op::Control(ControlOp::While) => {
                CarriedNumbers { bounds: 0, carried, passed: of_inst(&slice.passed) }
            }
            _ => CarriedNumbers { bounds: 1, passed: carried.clone(), carried },
        }
    }
}

/// The values with these numbers.
pub fn pick(list: &[ValueId], numbers: &[usize]) -> Vec<ValueId> {
    numbers.iter().filter_map(|k| list.get(*k).copied()).collect()
}

/// The instructions that may be part of a slice.
pub struct Slice {
    /// The instruction that owns each block.
    owner: Vec<Option<InstId>>,
    /// The block of each instruction.
    home: Vec<Option<BlockId>>,
    /// The instructions that one thread may execute ahead of the others.
    allowed: BTreeSet<InstId>,
    /// The loads of numbers that atomics on counters return, with these.
    messages: BTreeMap<InstId, InstId>,
}

impl Slice {
    /// Analyses a kernel.
    pub fn new(kernel: &Kernel, roots: &Roots, messages: &[Message]) -> Slice {
        let func = kernel.func();
        let mut slice = Slice {
            owner: vec![None; func.blocks.len()],
            home: vec![None; func.insts.len()],
            allowed: BTreeSet::new(),
            messages: messages.iter().map(|m| (m.load, m.atomic)).collect(),
        };
        slice.note(func, func.body);
        for i in walk::insts(func) {
            let inst = &func.insts[i];
            let plain = inst.results.iter().all(|v| match kernel.module.types.get(func.ty(*v)) {
                Type::View { .. } => true,
                Type::Tile { shape, .. } => shape.is_empty(),
            });
            let may = match of_inst(func, i) {
                Effects::Pure => true,
                Effects::Read => {
                    let root = inst.operands.first().and_then(|v| roots.get(*v));
                    root.is_some_and(|root| !writes(kernel, roots, root))
                }
                Effects::Write | Effects::Ordered => false,
            };
            if plain && may && inst.blocks.is_empty() {
                slice.allowed.insert(i);
            }
        }
        slice
    }

    fn note(&mut self, func: &Func, block: BlockId) {
        for i in &func.blocks[block].insts {
            self.home.get_mut(i.index()).into_iter().for_each(|h| *h = Some(block));
            for b in &func.insts[*i].blocks {
                self.owner.get_mut(b.index()).into_iter().for_each(|o| *o = Some(*i));
                self.note(func, *b);
            }
        }
    }

    /// The block of an instruction.
    pub fn block(&self, inst: InstId) -> Option<BlockId> {
        self.home.get(inst.index()).copied().flatten()
    }

    /// Returns true if a slice determines where and how often a load reads.
    pub fn reaches(&self, func: &Func, load: InstId) -> bool {
        self.load(func, load, &mut SlicePart::default())
    }

    /// Returns true if a load is in a loop that ends by a condition, which no slice follows.
    pub fn is_in_while(&self, func: &Func, load: InstId) -> bool {
        let owner = self.block(load).and_then(|b| self.owner.get(b.index()).copied().flatten());
        owner.is_some_and(|o| func.insts[o].op == Op::Control(ControlOp::While) || self.is_in_while(func, o))
    }

    /// Returns true if a part has numbers from counters.
    pub fn takes_numbers(&self, part: &SlicePart) -> bool {
        self.messages.keys().any(|load| part.insts.contains(load))
    }

    /// The slice that determines how often a load runs.
    pub fn of_loops(&self, func: &Func, load: InstId) -> SlicePart {
        let mut part = SlicePart::default();
        self.around(func, load, &mut part);
        part
    }

    /// The slice of all these loads.
    pub fn of(&self, func: &Func, loads: impl Iterator<Item = InstId>) -> SlicePart {
        let mut part = SlicePart::default();
        for load in loads {
            self.load(func, load, &mut part);
        }
        part
    }

    fn load(&self, func: &Func, load: InstId, part: &mut SlicePart) -> bool {
        func.insts[load].operands.iter().all(|v| self.value(func, *v, part)) && self.around(func, load, part)
    }

    fn value(&self, func: &Func, v: ValueId, part: &mut SlicePart) -> bool {
        match func.values[v].def {
            Def::Arg(block, _) if block == func.body => true,
            Def::Arg(block, n) => {
                let Some(owner) = self.owner.get(block.index()).copied().flatten() else { return false };
                match (func.insts[owner].op, (n as usize).checked_sub(1)) {
                    (Op::Control(ControlOp::For), None) => self.control(func, owner, part),
                    (Op::Control(ControlOp::For), Some(k)) => self.carried(func, owner, k, part),
                    (Op::Control(ControlOp::While), _) => match decides(&func.insts[owner], block) {
                        true => self.carried(func, owner, n as usize, part),
                        false => self.passed(func, owner, n as usize, part),
                    },
                    _ => false,
                }
            }
            Def::Inst(i, k) => match func.insts[i].op {
                Op::Control(ControlOp::For | ControlOp::If) => self.carried(func, i, k as usize, part),
                Op::Control(ControlOp::While) => self.passed(func, i, k as usize, part),
                _ if self.messages.contains_key(&i) => self.message(func, i, part),
                _ if !self.allowed.contains(&i) => false,
                _ => {
                    !part.insts.insert(i)
                        || determining(&func.insts[i]).iter().all(|v| self.value(func, *v, part))
                            && self.around(func, i, part)
                }
            },
        }
    }

    /// Adds a result of a loop or branch.
    fn carried(&self, func: &Func, owner: InstId, k: usize, part: &mut SlicePart) -> bool {
        if !part.carried.insert((owner, k)) {
            return true;
        }
        let inst = &func.insts[owner];
        let begins = match inst.op {
            Op::Control(ControlOp::For) => inst.operands.get(3 + k),
            Op::Control(ControlOp::While) => inst.operands.get(k),
            _ => None,
        };
        let goes_on = inst.blocks.iter().filter(|b| !decides(inst, **b));
        let ends: Vec<ValueId> = goes_on.filter_map(|b| yielded(func, *b).get(k).copied()).collect();
        begins.copied().into_iter().chain(ends).all(|v| self.value(func, v, part))
            && self.control(func, owner, part)
    }

    /// Adds what the condition of a loop passes on.
    fn passed(&self, func: &Func, owner: InstId, k: usize, part: &mut SlicePart) -> bool {
        if !part.passed.insert((owner, k)) {
            return true;
        }
        let condition = func.insts[owner].blocks.first();
        let value = condition.and_then(|b| yielded(func, *b).get(k + 1));
        value.is_some_and(|v| self.value(func, *v, part)) && self.control(func, owner, part)
    }

    /// Adds what determines the iterations of a loop, or the branch that is taken.
    fn control(&self, func: &Func, owner: InstId, part: &mut SlicePart) -> bool {
        if !part.insts.insert(owner) {
            return true;
        }
        let inst = &func.insts[owner];
        let determine: &[ValueId] = match inst.op {
            Op::Control(ControlOp::For) => inst.operands.get(..3).unwrap_or(&[]),
            Op::Control(ControlOp::If) => inst.operands.get(..1).unwrap_or(&[]),
            Op::Control(ControlOp::While) => {
                let condition = inst.blocks.first().map_or(&[][..], |b| yielded(func, *b));
                condition.get(..1).unwrap_or(&[])
            }
            _ => return false,
        };
        determine.iter().all(|v| self.value(func, *v, part)) && self.around(func, owner, part)
    }

    /// Adds a number that an atomic returns.
    fn message(&self, func: &Func, load: InstId, part: &mut SlicePart) -> bool {
        let Some(atomic) = self.messages.get(&load) else { return false };
        !part.insts.insert(load)
            || func.insts[*atomic].operands.iter().all(|v| self.value(func, *v, part))
                && self.around(func, load, part)
    }

    /// Adds the loops and branches around an instruction.
    fn around(&self, func: &Func, inst: InstId, part: &mut SlicePart) -> bool {
        let Some(block) = self.block(inst) else { return false };
        let owner = self.owner.get(block.index()).copied().flatten();
        block == func.body || owner.is_some_and(|owner| self.control(func, owner, part))
    }
}

/// Returns true if a block decides whether a loop goes on: what it ends with begins with the answer.
pub fn decides(owner: &Inst, block: BlockId) -> bool {
    owner.op == Op::Control(ControlOp::While) && owner.blocks.first() == Some(&block)
}

/// The operands that determine a result for the producer, whose loops go on until no warpgroup needs their loads.
fn determining(inst: &Inst) -> &[ValueId] {
    match GpuOp::of(inst) {
        Some(GpuOp::GroupOwn(_)) => inst.operands.get(..1).unwrap_or(&[]),
        _ => &inst.operands,
    }
}

/// Returns true if a kernel may write to the memory of a parameter.
pub fn writes(kernel: &Kernel, roots: &Roots, root: ValueId) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().any(|i| {
        let inst = &func.insts[i];
        let place = inst.operands.first().copied();
        let stores = match inst.op {
            Op::Memory(_) => of_inst(func, i) == Effects::Write,
            Op::Atomic(_) => true,
            Op::Target => matches!(GpuOp::of(inst), Some(GpuOp::TmaStore(_))),
            _ => false,
        };
        stores && place.is_none_or(|p| roots.get(p).is_none_or(|r| r == root))
    })
}
