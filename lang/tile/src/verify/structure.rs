//! V05, V06, V07: the shape of a function, and the walk that checks each instruction.
//!
//! May assume that the signature of the function has been checked. Guarantees that every check of an instruction sees
//! ids that are in range.

use tk_ops::{ControlOp, Op};

use crate::effects::is_terminator;
use crate::flow::flow;
use crate::ir::{BlockId, Def, Func, Id, InstId, Module, ValueId};
use crate::verify::control::Signatures;
use crate::verify::{
    Check, Fault, Invariant, MAX_NESTING, VerifyError, checked_type, control, ensure, fault, is_machine, ops,
};

/// Checks one function, of a later stage if `machine`.
pub(super) fn func(
    module: &Module,
    func: &Func,
    signatures: &Signatures<'_>,
    machine: bool,
) -> Result<(), VerifyError> {
    let mut w = Walk {
        module,
        func,
        signatures,
        machine,
        blocks: vec![false; func.blocks.len()],
        insts: vec![false; func.insts.len()],
        values: vec![false; func.values.len()],
        at: None,
    };
    let result = w.arena(func.body, 0).and_then(|()| {
        w.values.fill(false);
        w.block(func.body, None)
    });
    result.map_err(|(invariant, message)| VerifyError {
        invariant,
        func: func.name.clone(),
        inst: w.at,
        loc: w.at.and_then(|i| func.insts.get(i)).and_then(|i| i.loc),
        message,
    })
}

struct Walk<'a> {
    module: &'a Module,
    func: &'a Func,
    signatures: &'a Signatures<'a>,
    /// Whether operations of a machine may stand here.
    machine: bool,
    /// What has been seen. The second walk uses `values` for what is visible.
    blocks: Vec<bool>,
    insts: Vec<bool>,
    values: Vec<bool>,
    /// The instruction that is being looked at.
    at: Option<InstId>,
}

/// Marks an entry; whether it is in range and was not marked.
fn first_time(seen: &mut [bool], i: usize) -> bool {
    seen.get_mut(i).is_some_and(|s| !std::mem::replace(s, true))
}

impl Walk<'_> {
    /// V04, V05.
    fn arena(&mut self, id: BlockId, depth: usize) -> Check {
        ensure(depth <= MAX_NESTING, Invariant::V05, || format!("blocks nest more than {MAX_NESTING} deep"))?;
        let func = self.func;
        let Some(block) = func.blocks.get(id).filter(|_| first_time(&mut self.blocks, id.index())) else {
            return fault(Invariant::V05, format!("{id} does not exist or has two owners"));
        };
        for (n, v) in block.args.iter().enumerate() {
            self.value(*v, Def::Arg(id, n as u32))?;
        }
        for i in &block.insts {
            let Some(inst) = func.insts.get(*i).filter(|_| first_time(&mut self.insts, i.index())) else {
                return fault(Invariant::V05, format!("{i} does not exist or stands in two places"));
            };
            self.at = Some(*i);
            let missing = inst.operands.iter().find(|v| func.values.get(**v).is_none());
            if let Some(v) = missing {
                return fault(Invariant::V05, format!("`{}`: {v} does not exist", inst.name()));
            }
            for (n, v) in inst.results.iter().enumerate() {
                self.value(*v, Def::Inst(*i, n as u32))?;
            }
            inst.blocks.iter().try_for_each(|b| self.arena(*b, depth + 1))?;
        }
        self.at = None;
        Ok(())
    }

    fn value(&mut self, v: ValueId, def: Def) -> Check {
        let known = self.func.values.get(v).filter(|value| value.def == def);
        match known.filter(|_| first_time(&mut self.values, v.index())) {
            Some(value) => checked_type(self.module, value.ty).map(|_| ()),
            None => fault(Invariant::V05, format!("{v} is defined in two places, or does not know where")),
        }
    }

    /// V06, V07 and the operations. `owner` is the instruction that owns the block and its number there.
    fn block(&mut self, id: BlockId, owner: Option<(InstId, usize)>) -> Check {
        let func = self.func;
        let block = &func.blocks[id];
        let mut defined: Vec<ValueId> = block.args.clone();
        self.show(&block.args, true);
        let last = block.insts.last().copied();
        for i in &block.insts {
            let inst = &func.insts[*i];
            self.at = Some(*i);
            let name = inst.name();
            if let Some(v) = inst.operands.iter().find(|v| self.values.get(v.index()) != Some(&true)) {
                return fault(Invariant::V07, format!("`{name}` uses {v}, which is not defined before it"));
            }
            ensure(!is_terminator(inst.op) || Some(*i) == last, Invariant::V06, || {
                format!("`{name}` stands before the end of its block")
            })?;
            if !self.machine || !is_machine(inst) {
                ops::inst(self.module, func, inst, self.signatures).map_err(|f| named(name, f))?;
            }
            for (n, b) in inst.blocks.iter().enumerate() {
                self.block(*b, Some((*i, n)))?;
            }
            self.at = Some(*i);
            control::blocks(self.module, func, inst).map_err(|f| named(name, f))?;
            self.show(&inst.results, true);
            defined.extend(&inst.results);
        }
        self.at = last.or(owner.map(|(i, _)| i));
        self.end(last, owner)?;
        self.show(&defined, false);
        Ok(())
    }

    /// The terminator of a block (V06), and what a function returns (V12).
    fn end(&self, last: Option<InstId>, owner: Option<(InstId, usize)>) -> Check {
        let func = self.func;
        let inner = |(i, n): (InstId, usize)| flow(func.insts[i].op).terminator(n);
        let wanted = owner.map_or(Op::Control(ControlOp::Return), inner);
        let found = last.map(|i| func.insts[i].op);
        ensure(found == Some(wanted), Invariant::V06, || {
            let found = found.map_or("nothing", |o| o.name());
            format!("the block ends in `{found}` where `{}` is asked for", wanted.name())
        })?;
        match (owner, last) {
            (None, Some(last)) => control::returned(self.module, func, &func.insts[last]),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    fn show(&mut self, values: &[ValueId], visible: bool) {
        for v in values {
            if let Some(slot) = self.values.get_mut(v.index()) {
                *slot = visible;
            }
        }
    }
}

fn named(op: &str, (invariant, message): Fault) -> Fault {
    (invariant, format!("`{op}`: {message}"))
}
