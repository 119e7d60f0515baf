//! Emits atomic operations on device memory: one for each element, by the first of the threads that own it.

use tk_ops::{AtomicOp, ControlOp, DType, Op};
use tk_tile::{Inst, Type, ValueId, walk};

use super::state::MemoryPlace;
use super::{Emit, Res};
use crate::target::Atomic;

impl<'c> Emit<'_, 'c> {
    /// The scope to which an instruction, or one in its blocks, releases earlier writes of the program: the widest
    /// scope that is wider than the program. `None` if it releases nothing.
    pub(super) fn released(&self, inst: &Inst) -> Option<&'static str> {
        let func = self.func();
        let inner = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b)).map(|i| &func.insts[i]);
        let elements = matches!(inst.op, Op::Control(ControlOp::Map) | Op::Reduce(_) | Op::Scan(_));
        let releases = |i: &Inst| {
            let order = i.attrs.str("order").unwrap_or("relaxed");
            matches!(i.op, Op::Atomic(_)) && matches!(order, "release" | "acq_rel")
        };
        let all = std::iter::once(inst).chain(inner.filter(|_| elements)).filter(|i| releases(i));
        let scopes: Vec<&str> = all.map(|i| i.attrs.str("scope").unwrap_or("device")).collect();
        if scopes.contains(&"system") {
            return Some("system");
        }
        scopes.iter().any(|s| *s != "block").then_some("device")
    }

    pub(super) fn atomic(&mut self, inst: &Inst, op: AtomicOp) -> Res<()> {
        let place = self.operand(inst, 0)?;
        let rank = match self.ty(place) {
            Type::View { rank, .. } => *rank as usize,
            Type::Tile { .. } => 0,
        };
        let values = match op {
            AtomicOp::Load => 0,
            AtomicOp::Cas => 2,
            AtomicOp::Add
            | AtomicOp::Max
            | AtomicOp::Min
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Xchg
            | AtomicOp::Store => 1,
        };
        let first = 1 + rank;
        let operand = |i: usize| inst.operands.get(i).copied();
        let (mask, other) = (operand(first + values), operand(first + values + 1));
        let like = operand(1).filter(|_| rank > 0).unwrap_or(place);
        let places = self.atomic_places(inst, place, rank, mask, like)?;
        let layout = if self.shape(like).is_empty() { None } else { Some(self.layout_id(like)?) };
        let owner = self.is_first(layout)?;
        // The operand of `cas(p, compare, value)` that is stored comes last.
        let stored = operand(first + values.saturating_sub(1)).filter(|_| values > 0);
        let stored = stored.map(|v| self.registers(v)).transpose()?;
        let compare =
            if op == AtomicOp::Cas { operand(first).map(|v| self.registers(v)).transpose()? } else { None };
        let other = other.map(|v| self.registers(v)).transpose()?;
        let element = match self.ty(place) {
            Type::View { elem, .. } => elem,
            Type::Tile { elem: tk_tile::ElemType::Ptr { pointee, .. }, .. } => pointee,
            Type::Tile { elem, .. } => elem,
        };
        // A pointer is a 64-bit address.
        let dtype = match element {
            tk_tile::ElemType::Scalar(dtype) => *dtype,
            tk_tile::ElemType::Ptr { .. } => DType::U64,
        };
        let zero = self.zero(Some(dtype));
        let mut regs = vec![];
        for (n, place) in places.iter().enumerate() {
            let pick = |list: &Option<Vec<_>>| list.as_ref().and_then(|l| l.get(n).copied());
            let address = self.builder.build_int_add(place.address, self.long(place.offset), "")?;
            let atomic = Atomic {
                op,
                dtype,
                address,
                value: pick(&stored).unwrap_or(zero),
                compare: pick(&compare),
                predicate: self.both(place.predicate, owner)?,
                order: inst.attrs.str("order").unwrap_or("relaxed"),
                scope: inst.attrs.str("scope").unwrap_or("device"),
            };
            let old = self.target.atomic(self, &atomic)?;
            regs.push(match place.predicate {
                Some(p) => self.builder.build_select(p, old, pick(&other).unwrap_or(zero), "")?,
                None => old,
            });
        }
        match inst.results.first() {
            Some(r) => self.define_regs(*r, regs),
            None => Ok(()),
        }
    }

    fn atomic_places(
        &self,
        inst: &Inst,
        place: ValueId,
        rank: usize,
        mask: Option<ValueId>,
        like: ValueId,
    ) -> Res<Vec<MemoryPlace<'c>>> {
        if rank == 0 {
            return self.places(inst, (place, mask), 1);
        }
        let view = self.view(place)?;
        let at: Vec<ValueId> = inst.operands.iter().skip(1).take(rank).copied().collect();
        self.element_places(&view, &at, mask, like)
    }
}
