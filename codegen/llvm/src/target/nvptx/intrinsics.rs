//! Emits PTX instructions that are intrinsics of LLVM 22.
//!
//! Not used although LLVM has them, measured with `ptxas` 12.9 on the kernels of `tests/machine` (docs/performance.md,
//! "Intrinsics of NVPTX"):
//!
//! - `ldmatrix`, `mbarrier.init` and `cp.async` take 64-bit pointers. Our addresses in shared memory are 32-bit numbers
//!   with an offset in the instruction; as pointers they are extended, and offsets become additions. `ldmatrix` costs
//!   attention on sm_80 3,880 instructions instead of 3,760, `mbarrier.init` each of the products on sm_90a 8 more.
//! - Copies of `cp.async` in loops have a predicate, which the intrinsic lacks: it would need a branch around it.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::intrinsics::Intrinsic;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};
use tk_ops::DType;

use super::Nvptx;
use crate::emit::{Emit, Res, bug};
use crate::target::Lane;
use crate::target::request::MmaRequest;

/// The lane mask of a whole warp.
const ALL: u64 = u32::MAX as u64;

impl<'c> Nvptx<'c> {
    /// Calls an intrinsic of this name. It is convergent, whatever LLVM's declaration says: threads execute it
    /// together.
    pub(super) fn intrinsic(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        args: &[BasicValueEnum<'c>],
    ) -> Res<Option<BasicValueEnum<'c>>> {
        let name = format!("llvm.nvvm.{name}");
        let declared = Intrinsic::find(&name).and_then(|i| i.get_declaration(e.module, &[]));
        let Some(declared) = declared else { return bug(format!("LLVM has no `{name}`")) };
        let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|x| (*x).into()).collect();
        let call = e.builder.build_call(declared, &args, "")?;
        let id = Attribute::get_named_enum_kind_id("convergent");
        call.add_attribute(AttributeLoc::Function, e.context.create_enum_attribute(id, 0));
        Ok(call.try_as_basic_value().basic())
    }

    /// Calls an intrinsic that returns a value.
    pub(super) fn given(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        args: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        match self.intrinsic(e, name, args)? {
            Some(x) => Ok(x),
            None => bug(format!("`{name}` gave nothing")),
        }
    }

    /// The lane mask of a whole warp, as an operand.
    pub(super) fn all_lanes(&self, e: &Emit<'_, 'c>) -> BasicValueEnum<'c> {
        e.i32().const_int(ALL, false).into()
    }

    /// `bar.sync` of all threads of a block.
    pub(super) fn block_barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "barrier.cta.sync.aligned.all", &[e.int(0).into()]).map(|_| ())
    }

    /// `shfl.sync`.
    pub(super) fn shfl(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>> {
        let (mode, by, clamp) = match lane {
            Lane::Xor(m) => ("bfly", e.int(m), 31),
            Lane::Up(n) => ("up", e.int(n), 0),
            Lane::Down(n) => ("down", e.int(n), 31),
            Lane::Index(x) => ("idx", x, 31),
        };
        let args = [self.all_lanes(e), value.into(), by.into(), e.int(clamp).into()];
        Ok(self.given(e, &format!("shfl.sync.{mode}.i32"), &args)?.into_int_value())
    }

    /// `mma.sync`, if LLVM supports these types: f16 in pairs, f64 unchanged, all others in words of 32 bits.
    pub(super) fn mma_intrinsic(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        operands: [&[BasicValueEnum<'c>]; 3],
    ) -> Res<Option<Vec<BasicValueEnum<'c>>>> {
        let types = match product.operands {
            [DType::F16, DType::F16] => "f32.f32",
            [DType::BF16, DType::BF16] => "bf16",
            [DType::F32, DType::F32] => "tf32",
            [DType::F64, DType::F64] => "f64",
            [DType::I8, DType::I8] => "s8",
            [DType::I8, DType::U8] => "s8.u8",
            [DType::U8, DType::I8] => "u8.s8",
            [DType::U8, DType::U8] => "u8",
            // 8-bit floats, and f16 with bf16.
            _ => return Ok(None),
        };
        let name = format!("mma.{}.row.col.{types}", product.matrix.name);
        let pair = e.context.f16_type().vec_type(2);
        let mut args = vec![];
        let [a, b, c] = operands;
        for x in a.iter().chain(b) {
            args.push(if types == "f32.f32" { e.builder.build_bit_cast(*x, pair, "")? } else { *x });
        }
        args.extend(c);
        let all = self.given(e, &name, &args)?.into_struct_value();
        let part = |i: usize| Ok(e.builder.build_extract_value(all, i as u32, "")?);
        (0..c.len()).map(part).collect::<Res<Vec<_>>>().map(Some)
    }
}
