//! Emits matrix products of plain multiplications: both operands are in shared memory in row-major order, and every
//! thread loops over the dimension of the sum.

use std::collections::BTreeMap;

use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::ir::op::SharedDot;
use tk_ops::{DType, ElementwiseOp};
use tk_tile::{Inst, ValueId};

use super::{Emit, Res, Stop, bug};
use crate::target::{Access, Space};

/// An operand in shared memory.
#[derive(Clone, Copy)]
struct DotOperand<'c> {
    dtype: DType,
    /// The address of its element for the first step, in the row or column of register 0.
    base: IntValue<'c>,
    /// Bytes between adjacent rows (of `a`) or columns (of `b`).
    across: i64,
    /// Bytes between adjacent steps.
    along: i64,
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn shared_dot(&mut self, inst: &Inst, op: &SharedDot) -> Res<()> {
        let (acc, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let layout = self.layout_id(r)?;
        let tile_layout = self.kernel.layouts.get(layout).clone();
        let shape = self.shape(r);
        let k = op.product.k;
        let to = self.dtype(r).ok_or_else(|| Stop::Bug("a product of pointers".into()))?;
        // f16 accumulates in f32, as in the interpreter.
        let wide = if matches!(to, DType::F16 | DType::BF16) { DType::F32 } else { to };
        let [a, b] = self.operands((inst, op), r, shape)?;
        if !tile_layout.is_disjoint() {
            return bug("an accumulator whose rows and columns mix");
        }
        let init =
            self.registers(acc)?.into_iter().map(|x| self.converted(x, to, wide)).collect::<Res<Vec<_>>>()?;
        let done = self.counted(self.int(k), &init, |e, at, carried| {
            let (mut rows, mut columns) = (BTreeMap::new(), BTreeMap::new());
            let mut next = vec![];
            for (n, x) in carried.iter().enumerate() {
                let place = tile_layout.register(n);
                let (row, column) = (place.first().copied().unwrap_or(0), place.get(1).copied().unwrap_or(0));
                let (p, q) = (e.real_along(layout, shape, n, 0)?, e.real_along(layout, shape, n, 1)?);
                let left = e.element(&mut rows, a, at, row, p, wide)?;
                let right = e.element(&mut columns, b, at, column, q, wide)?;
                next.push(e.product(wide, left, right, *x)?);
            }
            Ok(next)
        })?;
        let regs = done.into_iter().map(|x| self.converted(x, wide, to)).collect::<Res<Vec<_>>>()?;
        self.define_regs(r, regs)
    }

    fn operands(
        &self,
        (inst, op): (&Inst, &SharedDot),
        r: ValueId,
        shape: &[u32],
    ) -> Res<[DotOperand<'c>; 2]> {
        let layout = self.layout_id(r)?;
        let coords = self.thread_coords(layout)?;
        let k = i64::from(op.product.k);
        let columns = i64::from(shape.get(1).copied().unwrap_or(1));
        let operand = |i: usize| -> Res<DotOperand<'c>> {
            let missing = || Stop::Bug("an operand is missing".into());
            let (dtype, buffer) = (op.product.elems[i.min(1)], op.buffers[i.min(1)]);
            let start = self.kernel.buffers.get(buffer.buffer).ok_or_else(missing)?.offset;
            let size = dtype.bytes() as i64;
            let (across, along) = if i == 0 { (k * size, size) } else { (size, columns * size) };
            let thread = *coords.get(i).ok_or_else(missing)?;
            let by = self.builder.build_int_mul(
                thread,
                self.i32().const_int(across.cast_unsigned(), false),
                "",
            )?;
            let mut base = self.builder.build_int_add(by, self.int(start), "")?;
            if let Some(stage) = self.stage(inst, buffer)? {
                base = self.builder.build_int_add(base, stage, "")?;
            }
            Ok(DotOperand { dtype, base, across, along })
        };
        Ok([operand(0)?, operand(1)?])
    }

    /// Returns true if a register is not padding along one dimension.
    fn real_along(
        &self,
        layout: tk_gpu::ir::kernel::LayoutId,
        shape: &[u32],
        n: usize,
        d: usize,
    ) -> Res<Option<IntValue<'c>>> {
        match shape.get(d) {
            Some(extent) if tk_gpu::layout::padded(*extent) != *extent => {
                Ok(Some(self.is_along(layout, n, d, *extent)?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The element of an operand for a row or column and a step; read once for all its uses.
    fn element(
        &self,
        known: &mut BTreeMap<u32, BasicValueEnum<'c>>,
        operand: DotOperand<'c>,
        step: IntValue<'c>,
        across: u32,
        predicate: Option<IntValue<'c>>,
        wide: DType,
    ) -> Res<BasicValueEnum<'c>> {
        if let Some(x) = known.get(&across) {
            return Ok(*x);
        }
        let by = self.builder.build_int_mul(
            step,
            self.i32().const_int(operand.along.cast_unsigned(), false),
            "",
        )?;
        let d = Some(operand.dtype);
        let (address, offset) =
            (self.builder.build_int_add(operand.base, by, "")?, i64::from(across) * operand.across);
        let bytes = operand.dtype.bytes() as u32;
        let access = Access { predicate, ..Access::of(address, offset, self.memory_type(d), bytes, 1) };
        let zero = inkwell::types::BasicType::as_basic_type_enum(&access.ty).const_zero();
        let loaded = self.target.load(self, Space::Shared, &access, &[zero])?;
        let Some(x) = loaded.first().copied() else { return bug("nothing was loaded") };
        let x = self.converted(self.from_memory(d, x)?, operand.dtype, wide)?;
        known.insert(across, x);
        Ok(x)
    }

    /// `a * b + c`.
    fn product(
        &self,
        d: DType,
        a: BasicValueEnum<'c>,
        b: BasicValueEnum<'c>,
        c: BasicValueEnum<'c>,
    ) -> Res<BasicValueEnum<'c>> {
        let d = Some(d);
        if d.is_some_and(DType::is_float) {
            return self
                .with_scalars(|e| e.elementwise(ElementwiseOp::Fma, &[d, d, d], d, false, &[a, b, c]));
        }
        let x = self.with_scalars(|e| e.elementwise(ElementwiseOp::Mul, &[d, d], d, false, &[a, b]))?;
        self.with_scalars(|e| e.elementwise(ElementwiseOp::Add, &[d, d], d, false, &[x, c]))
    }
}
