//! Removes what is unused: instructions without effects whose results are not used, results of `if`, `for` and
//! `while` that are not used, and values that a loop carries only to compute themselves.
//!
//! ```text
//! v4, v5 = for v0, v1, v2, v3, v3 : i32, i32 {      v4 = for v0, v1, v2, v3 : i32 {
//! block1(v6: i32, v7: i32, v8: i32):                block1(v5: i32, v6: i32):
//!   v9 = add v7, v6 : i32                             v7 = add v6, v5 : i32
//!   v10 = mul v8, v8 : i32                       =>   yield v7
//!   yield v9, v10                                   }
//! }                                                 return v4
//! return v4
//! ```
//!
//! Requires a verified module. Guarantees that effects stay, in order; reads of memory and `while` loops count as
//! effects, since a read may fail and a loop may not end. Everything in the block of `host_expect_error` stays: an
//! instruction there may be the one that is expected to fail.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, HostOp, Op};

use crate::effects::{effects, is_terminator};
use crate::flow::{Flow, flow};
use crate::ir::{BlockId, Def, Func, Id, InstId, Module, ValueId};
use crate::passes::ModulePass;
use crate::walk;

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "dce", run };

fn run(module: &mut Module) {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let body = func.body;
        let mut live = Live::new(func);
        live.roots();
        live.spread();
        let Live { insts, values, .. } = live;
        Sweep { func, insts, values }.block(body);
    }
}

/// The instructions and values known to be needed.
struct Live<'a> {
    func: &'a Func,
    insts: Vec<bool>,
    values: Vec<bool>,
    /// The block of each instruction.
    block_of: Vec<Option<BlockId>>,
    /// The instruction that owns each block.
    owner_of: Vec<Option<InstId>>,
    /// Needed values whose definitions have not been visited.
    work: Vec<ValueId>,
}

fn flag(list: &mut [bool], i: usize) -> bool {
    list.get_mut(i).is_some_and(|s| !std::mem::replace(s, true))
}

impl<'a> Live<'a> {
    fn new(func: &'a Func) -> Self {
        let mut block_of = vec![None; func.insts.len()];
        let owner_of = walk::owners(func);
        for (id, block) in func.blocks.iter() {
            for i in &block.insts {
                if let Some(slot) = block_of.get_mut(i.index()) {
                    *slot = Some(id);
                }
            }
        }
        let (insts, values) = (vec![false; func.insts.len()], vec![false; func.values.len()]);
        Live { func, insts, values, block_of, owner_of, work: vec![] }
    }

    /// Marks everything that is needed even if unused.
    fn roots(&mut self) {
        for i in walk::insts(self.func) {
            let op = self.func.insts[i].op;
            match effects(op) {
                // A loop whose end is not known stays: whether it ends is part of the meaning.
                Effects::Pure if op == Op::Control(ControlOp::While) => self.inst(i),
                Effects::Pure => {}
                // A read may fail, which the interpreter reports; a target removes what it knows to be harmless.
                Effects::Read | Effects::Write => self.inst(i),
                Effects::Ordered if op == Op::Control(ControlOp::Return) => self.inst(i),
                Effects::Ordered if is_terminator(op) => {}
                Effects::Ordered => self.inst(i),
            }
            if op == Op::Host(HostOp::ExpectError) {
                for b in &self.func.insts[i].blocks {
                    walk::insts_in(self.func, *b).into_iter().for_each(|i| self.everything(i));
                }
            }
        }
    }

    fn spread(&mut self) {
        while let Some(v) = self.work.pop() {
            match self.func.values[v].def {
                Def::Inst(i, n) => {
                    self.inst(i);
                    self.result(i, n as usize);
                }
                Def::Arg(b, n) => self.arg(b, n as usize),
            }
        }
    }

    fn value(&mut self, v: ValueId) {
        if flag(&mut self.values, v.index()) {
            self.work.push(v);
        }
    }

    fn operand(&mut self, i: InstId, n: usize) {
        if let Some(v) = self.func.insts[i].operands.get(n) {
            self.value(*v);
        }
    }

    /// The operand of the terminator of block number `block` of an instruction.
    fn end(&mut self, i: InstId, block: usize, n: usize) {
        let func = self.func;
        let block = func.insts[i].blocks.get(block).map(|b| &func.blocks[*b]);
        if let Some(last) = block.and_then(|b| b.insts.last()) {
            self.operand(*last, n);
        }
    }

    /// An instruction is needed: so are those around it, and what it reads whichever of its results are used.
    fn inst(&mut self, i: InstId) {
        let mut at = Some(i);
        while let Some(i) = at.filter(|i| flag(&mut self.insts, i.index())) {
            let inst = &self.func.insts[i];
            let reads = match flow(inst.op) {
                Flow::For => 3,
                Flow::If => 1,
                Flow::While => {
                    self.end(i, 0, 0);
                    0
                }
                Flow::Elements => {
                    (0..inst.results.len()).for_each(|n| self.end(i, 0, n));
                    inst.operands.len()
                }
                Flow::Plain | Flow::Expect => inst.operands.len(),
            };
            (0..reads).for_each(|n| self.operand(i, n));
            let block = self.block_of.get(i.index()).copied().flatten();
            at = block.and_then(|b| self.owner_of.get(b.index()).copied().flatten());
        }
    }

    /// Result number `n` of an instruction is needed.
    fn result(&mut self, i: InstId, n: usize) {
        match flow(self.func.insts[i].op) {
            Flow::For => {
                self.operand(i, 3 + n);
                self.end(i, 0, n);
                // The value that is carried in is needed if there is an iteration.
                self.block_arg(i, 0, 1 + n);
            }
            Flow::If => {
                self.end(i, 0, n);
                self.end(i, 1, n);
            }
            Flow::While => {
                self.end(i, 0, 1 + n);
                self.block_arg(i, 1, n);
            }
            Flow::Plain | Flow::Elements | Flow::Expect => {}
        }
    }

    /// Argument number `n` of a block is needed.
    fn arg(&mut self, block: BlockId, n: usize) {
        let Some(i) = self.owner_of.get(block.index()).copied().flatten() else { return };
        self.inst(i);
        let inst = &self.func.insts[i];
        let first = inst.blocks.first() == Some(&block);
        // What comes from outside and what the block before gives.
        let from = match flow(inst.op) {
            Flow::For => n.checked_sub(1).and_then(|n| inst.results.get(n)),
            Flow::While if first => {
                self.operand(i, n);
                self.end(i, 1, n);
                None
            }
            Flow::While => inst.results.get(n),
            Flow::Plain | Flow::If | Flow::Elements | Flow::Expect => None,
        };
        if let Some(r) = from {
            self.value(*r);
        }
    }

    fn block_arg(&mut self, i: InstId, block: usize, n: usize) {
        let func = self.func;
        let block = func.insts[i].blocks.get(block).map(|b| &func.blocks[*b]);
        if let Some(v) = block.and_then(|b| b.args.get(n)) {
            self.value(*v);
        }
    }

    /// The instruction and all that it defines and reads.
    fn everything(&mut self, i: InstId) {
        let func = self.func;
        let inst = &func.insts[i];
        if !is_terminator(inst.op) {
            self.inst(i);
        }
        inst.operands.iter().chain(&inst.results).for_each(|v| self.value(*v));
        for b in &inst.blocks {
            func.blocks[*b].args.iter().for_each(|v| self.value(*v));
        }
    }
}

/// Takes out what is not needed.
struct Sweep<'a> {
    func: &'a mut Func,
    insts: Vec<bool>,
    values: Vec<bool>,
}

impl Sweep<'_> {
    fn needed(&self, v: ValueId) -> bool {
        self.values.get(v.index()) == Some(&true)
    }

    fn block(&mut self, id: BlockId) {
        let mut insts = std::mem::take(&mut self.func.blocks[id].insts);
        insts.retain(|i| is_terminator(self.func.insts[*i].op) || self.insts.get(i.index()) == Some(&true));
        for i in &insts {
            self.slots(*i);
            for b in self.func.insts[*i].blocks.clone() {
                self.block(b);
            }
        }
        self.func.blocks[id].insts = insts;
    }

    /// Takes unneeded results out of control flow, with all that belongs to them.
    fn slots(&mut self, i: InstId) {
        let inst = &self.func.insts[i];
        let results: Vec<bool> = inst.results.iter().map(|v| self.needed(*v)).collect();
        let behind =
            |n: usize| -> Vec<bool> { std::iter::repeat_n(true, n).chain(results.iter().copied()).collect() };
        let (operands, args, forwarded) = (behind(3), behind(1), behind(1));
        match (flow(inst.op), inst.blocks.clone().as_slice()) {
            (Flow::If, blocks) => blocks.iter().for_each(|b| self.end(*b, &results)),
            (Flow::For, [body]) => {
                self.end(*body, &results);
                self.args(*body, &args);
                keep(&mut self.func.insts[i].operands, &operands);
            }
            (Flow::While, [head, body]) => {
                let (head, body) = (*head, *body);
                let carried: Vec<bool> =
                    self.func.blocks[head].args.iter().map(|v| self.needed(*v)).collect();
                self.end(head, &forwarded);
                self.args(body, &results);
                self.end(body, &carried);
                self.args(head, &carried);
                keep(&mut self.func.insts[i].operands, &carried);
            }
            (Flow::For | Flow::While | Flow::Plain | Flow::Elements | Flow::Expect, _) => return,
        }
        keep(&mut self.func.insts[i].results, &results);
        for (n, v) in self.func.insts[i].results.clone().into_iter().enumerate() {
            self.func.values[v].def = Def::Inst(i, n as u32);
        }
    }

    fn end(&mut self, block: BlockId, kept: &[bool]) {
        if let Some(last) = self.func.blocks[block].insts.last().copied() {
            keep(&mut self.func.insts[last].operands, kept);
        }
    }

    fn args(&mut self, block: BlockId, kept: &[bool]) {
        keep(&mut self.func.blocks[block].args, kept);
        for (n, v) in self.func.blocks[block].args.clone().into_iter().enumerate() {
            self.func.values[v].def = Def::Arg(block, n as u32);
        }
    }
}

/// Keeps the entries that are marked.
fn keep(list: &mut Vec<ValueId>, kept: &[bool]) {
    let mut kept = kept.iter();
    list.retain(|_| kept.next() != Some(&false));
}
