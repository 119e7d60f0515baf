//! Helpers of passes that change a function in place: replacing values, and querying constants.
//!
//! Requires a verified function that is walked in text order, so that a value is replaced before its first use is
//! visited.

use tk_ops::scalar::Scalar;
use tk_ops::{CreateOp, Op};

use crate::attr::Attr;
use crate::ir::{BlockId, Def, Func, Id, Inst, InstId, ValueId};

/// The replacements of values.
#[derive(Debug, Default)]
pub struct Renames(Vec<Option<ValueId>>);

impl Renames {
    /// From now on `to` replaces `from`.
    pub fn set(&mut self, from: ValueId, to: ValueId) {
        let to = self.get(to);
        if self.0.len() <= from.index() {
            self.0.resize(from.index() + 1, None);
        }
        if let Some(slot) = self.0.get_mut(from.index()) {
            *slot = Some(to);
        }
    }

    /// The value that replaces `v`, which is `v` itself if there is none.
    pub fn get(&self, v: ValueId) -> ValueId {
        self.0.get(v.index()).copied().flatten().unwrap_or(v)
    }

    /// Replaces the operands of an instruction.
    pub fn apply(&self, func: &mut Func, inst: InstId) {
        for v in &mut func.insts[inst].operands {
            *v = self.get(*v);
        }
    }
}

/// The instruction that defines a value, unless it is a block argument.
pub fn definition(func: &Func, v: ValueId) -> Option<&Inst> {
    match func.values[v].def {
        Def::Inst(i, _) => Some(&func.insts[i]),
        Def::Arg(_, _) => None,
    }
}

/// The value of a constant, scalar or the same for every element.
pub fn constant(func: &Func, v: ValueId) -> Option<Scalar> {
    let inst = definition(func, v).filter(|i| i.op == Op::Create(CreateOp::Const))?;
    match inst.attrs.get("value") {
        Some(Attr::Scalar(s)) => Some(*s),
        Some(_) | None => None,
    }
}

/// The first operand of the definition of `v`, if that is this operation.
pub fn operand_of(func: &Func, v: ValueId, op: Op) -> Option<ValueId> {
    definition(func, v).filter(|i| i.op == op).and_then(|i| i.operands.first().copied())
}

/// The values at the end of a block: the operands of its terminator.
pub fn yielded(func: &Func, block: BlockId) -> &[ValueId] {
    func.blocks[block].insts.last().map_or(&[], |i| &func.insts[*i].operands)
}

/// A copy of a block and of all that its instructions own; `renames` learns their new values.
pub fn copied(func: &mut Func, block: BlockId, renames: &mut Renames) -> BlockId {
    let new = func.add_block();
    for arg in func.blocks[block].args.clone() {
        let ty = func.ty(arg);
        renames.set(arg, func.add_arg(new, ty));
    }
    for id in func.blocks[block].insts.clone() {
        let old = func.insts[id].clone();
        let blocks = old.blocks.iter().map(|b| copied(func, *b, renames)).collect();
        let operands = old.operands.iter().map(|v| renames.get(*v)).collect();
        let types: Vec<_> = old.results.iter().map(|v| func.ty(*v)).collect();
        let inst = Inst { operands, blocks, results: vec![], ..old.clone() };
        let made = func.add_inst(new, inst, &types);
        for (from, to) in old.results.iter().zip(func.insts[made].results.clone()) {
            renames.set(*from, to);
        }
    }
    new
}
