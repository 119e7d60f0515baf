//! Emits atomic operations of AMD GPUs: one instruction where it exists, a CAS loop otherwise.
//!
//! Requires addresses that are multiples of the size of an element, in memory that only this device caches. Guarantees
//! the interpreter's result in memory, with one exception: `add` of f32 is the instruction, which may flush subnormal
//! numbers to zero.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::{AtomicOp, DType};

use super::{Amdgcn, text};
use crate::emit::{Emit, Res, bug};
use crate::target::cas_loop::{Swaps, bits, code, element};
use crate::target::{Atomic, Space};

/// LLVM's name of an operation on a type that is one instruction; `None` for a loop.
fn instruction(op: AtomicOp, d: DType) -> Option<&'static str> {
    let whole = matches!(bits(d), 32 | 64);
    Some(match op {
        AtomicOp::Xchg if whole => "xchg",
        AtomicOp::Add if matches!(d, DType::F32 | DType::F64) => "fadd",
        _ if !whole || !d.is_int() => return None,
        AtomicOp::Add => "add",
        AtomicOp::Max if d.is_signed() => "max",
        AtomicOp::Max => "umax",
        AtomicOp::Min if d.is_signed() => "min",
        AtomicOp::Min => "umin",
        AtomicOp::And => "and",
        AtomicOp::Or => "or",
        AtomicOp::Xor => "xor",
        AtomicOp::Xchg | AtomicOp::Cas | AtomicOp::Load | AtomicOp::Store => return None,
    })
}

/// LLVM's name of the order.
fn order(a: &Atomic<'_, '_>) -> &'static str {
    match (a.op, a.order) {
        (_, "relaxed") => "monotonic",
        (AtomicOp::Load, _) => "acquire",
        (AtomicOp::Store, _) => "release",
        (_, "acquire") => "acquire",
        (_, "release") => "release",
        (_, _) => "acq_rel",
    }
}

/// LLVM's name of the scope.
fn scope(a: &Atomic<'_, '_>) -> &'static str {
    match a.scope {
        "block" => "workgroup",
        "system" => "",
        _ => "agent",
    }
}

impl<'c> Amdgcn<'c> {
    /// An atomic operation in device memory.
    pub(super) fn atomic_in_memory(&self, e: &Emit<'_, 'c>, a: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>> {
        let (bits, order, scope) = (bits(a.dtype), order(a), scope(a));
        let (ty, zero) = (format!("i{bits}"), e.zero(Some(a.dtype)));
        let pointer = || self.pointer(e, Space::Global, a.address, 0);
        match a.op {
            AtomicOp::Load => self.where_holds(e, a.predicate, zero, || {
                let load = text::load(&ty, bits / 8, order, scope);
                let found = self.result(e, &load, &[pointer()?.into()])?;
                element(e, a.dtype, found.into_int_value())
            }),
            AtomicOp::Store => {
                let value = code(e, a.value, bits)?;
                e.act_where(a.predicate, || {
                    let store = text::store(&ty, bits / 8, order, scope);
                    self.inlined(e, &store, &[pointer()?.into(), value.into()]).map(|_| ())
                })?;
                Ok(zero)
            }
            AtomicOp::Cas if matches!(bits, 32 | 64) => {
                let Some(compare) = a.compare else { return bug("`cas` compares with something") };
                let words = [code(e, compare, bits)?, code(e, a.value, bits)?];
                self.where_holds(e, a.predicate, zero, || {
                    element(e, a.dtype, self.swap(e, a, a.address, words)?)
                })
            }
            op => match instruction(op, a.dtype) {
                None => self.swapped(e, a),
                Some("fadd") => {
                    let ty = if bits == 32 { "float" } else { "double" };
                    let add = text::modify("fadd", ty, order, scope);
                    self.where_holds(e, a.predicate, zero, || {
                        self.result(e, &add, &[pointer()?.into(), a.value])
                    })
                }
                Some(name) => {
                    let value = code(e, a.value, bits)?;
                    let modify = text::modify(name, &ty, order, scope);
                    self.where_holds(e, a.predicate, zero, || {
                        let old = self.result(e, &modify, &[pointer()?.into(), value.into()])?;
                        element(e, a.dtype, old.into_int_value())
                    })
                }
            },
        }
    }

    pub(super) fn result(
        &self,
        e: &Emit<'_, 'c>,
        function: &text::Function,
        args: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        match self.inlined(e, function, args)? {
            Some(x) => Ok(x),
            None => bug(format!("`{}` gave nothing", function.name)),
        }
    }
}

impl<'c> Swaps<'c> for Amdgcn<'c> {
    fn swapped_bits(&self, element: u32) -> u32 {
        element.max(32)
    }

    fn seen(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        bits: u32,
    ) -> Res<IntValue<'c>> {
        let load = text::load(&format!("i{bits}"), bits / 8, "monotonic", scope(a));
        let pointer = self.pointer(e, Space::Global, address, 0)?;
        Ok(self.result(e, &load, &[pointer.into()])?.into_int_value())
    }

    fn swap(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        [old, new]: [IntValue<'c>; 2],
    ) -> Res<IntValue<'c>> {
        let swap = text::swap(&format!("i{}", old.get_type().get_bit_width()), order(a), scope(a));
        let pointer = self.pointer(e, Space::Global, address, 0)?;
        Ok(self.result(e, &swap, &[pointer.into(), old.into(), new.into()])?.into_int_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_instruction_is_one() {
        assert_eq!(instruction(AtomicOp::Add, DType::I64), Some("add"));
        assert_eq!(instruction(AtomicOp::Max, DType::U32), Some("umax"));
        assert_eq!(instruction(AtomicOp::Xchg, DType::F32), Some("xchg"));
        assert_eq!(instruction(AtomicOp::Add, DType::F64), Some("fadd"));
        let loops = [(AtomicOp::Add, DType::BF16), (AtomicOp::Min, DType::F32), (AtomicOp::Or, DType::U8)];
        assert!(loops.into_iter().all(|(op, d)| instruction(op, d).is_none()));
    }
}
