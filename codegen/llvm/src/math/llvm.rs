//! Implements [`Math`] as LLVM instructions.
//!
//! Requires that the builder is at the end of a block of a function of the module, and that the function preserves
//! subnormal numbers (no `denormal-fp-math` attribute). Guarantees plain instructions without fast-math flags, and
//! intrinsics that GPU targets lower without a library; x86 needs the feature `fma`, else each `fma` is a call.
//!
//! A function may add blocks (`rarely`): the builder is then at the end of another block than before.

use inkwell::builder::{Builder, BuilderError};
use inkwell::context::ContextRef;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{FloatType, IntType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FloatValue, IntValue, ValueKind,
};
use inkwell::{FloatPredicate, IntPredicate};

use super::primitives::{Approx, Math, Width};

/// The approximations of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximations {
    /// None: every target gives the same bits.
    None,
    /// Those of PTX from compute capability 7.5 on.
    Ptx,
    /// Those of AMD GPUs: within 1 ulp, and subnormal numbers are flushed to zero.
    Gcn,
}

/// Emits arithmetic at the position of a builder.
pub struct LlvmMath<'a, 'ctx> {
    builder: &'a Builder<'ctx>,
    module: &'a Module<'ctx>,
    context: ContextRef<'ctx>,
    approximations: Approximations,
    failure: Option<String>,
}

type Value<'ctx> = BasicValueEnum<'ctx>;
type Built<T> = Result<T, BuilderError>;

impl<'a, 'ctx> LlvmMath<'a, 'ctx> {
    /// Emits at the position of `builder`, which is in a function of `module`.
    pub fn new(builder: &'a Builder<'ctx>, module: &'a Module<'ctx>, approximations: Approximations) -> Self {
        LlvmMath { builder, module, context: module.get_context(), approximations, failure: None }
    }

    /// Returns whether all was emitted.
    ///
    /// # Errors
    /// The first failure, a bug of the compiler; the values after it have no meaning.
    pub fn finish(self) -> Result<(), String> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Records the first failure and continues with a value that has no meaning.
    fn fail(&mut self, failure: impl ToString, instead: Value<'ctx>) -> Value<'ctx> {
        self.failure.get_or_insert_with(|| failure.to_string());
        instead
    }

    fn keep<T: BasicValue<'ctx>>(&mut self, built: Built<T>, instead: Value<'ctx>) -> Value<'ctx> {
        match built {
            Ok(value) => value.as_basic_value_enum(),
            Err(e) => self.fail(e, instead),
        }
    }

    fn float_type(&self, width: Width) -> FloatType<'ctx> {
        match width {
            Width::F32 => self.context.f32_type(),
            Width::F64 => self.context.f64_type(),
        }
    }

    fn int_type(&self, width: Width) -> IntType<'ctx> {
        match width {
            Width::F32 => self.context.i32_type(),
            Width::F64 => self.context.i64_type(),
        }
    }

    /// Emits an operation on two floats.
    fn floats<T: BasicValue<'ctx>>(
        &mut self,
        a: Value<'ctx>,
        b: Value<'ctx>,
        build: impl FnOnce(&Builder<'ctx>, FloatValue<'ctx>, FloatValue<'ctx>) -> Built<T>,
    ) -> Value<'ctx> {
        let (Value::FloatValue(x), Value::FloatValue(y)) = (a, b) else {
            return self.fail("floats are expected", a);
        };
        let built = build(self.builder, x, y);
        self.keep(built, a)
    }

    /// Emits an operation on two integers.
    fn ints(
        &mut self,
        a: Value<'ctx>,
        b: Value<'ctx>,
        build: impl FnOnce(&Builder<'ctx>, IntValue<'ctx>, IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Value<'ctx> {
        let (Value::IntValue(x), Value::IntValue(y)) = (a, b) else {
            return self.fail("integers are expected", a);
        };
        let built = build(self.builder, x, y);
        self.keep(built, a)
    }

    /// The width of a float or an integer.
    fn width(&mut self, a: Value<'ctx>) -> Width {
        let wide = match a {
            Value::FloatValue(x) => x.get_type() == self.context.f64_type(),
            Value::IntValue(x) => x.get_type() == self.context.i64_type(),
            Value::ArrayValue(_)
            | Value::PointerValue(_)
            | Value::StructValue(_)
            | Value::VectorValue(_)
            | Value::ScalableVectorValue(_) => {
                self.fail("a number is expected", a);
                false
            }
        };
        if wide { Width::F64 } else { Width::F32 }
    }

    /// Calls an intrinsic that is overloaded by its one type or not at all.
    fn intrinsic(&mut self, name: &str, args: &[Value<'ctx>]) -> Option<Value<'ctx>> {
        let first = args.first()?;
        let intrinsic = Intrinsic::find(name)?;
        let types = if intrinsic.is_overloaded() { vec![first.get_type()] } else { vec![] };
        let declaration = intrinsic.get_declaration(self.module, &types)?;
        let operands: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        let call = self.builder.build_call(declaration, &operands, "");
        self.result(call)
    }

    /// Calls an intrinsic that must exist; without it the result is `instead`.
    fn standard(&mut self, name: &str, args: &[Value<'ctx>], instead: Value<'ctx>) -> Value<'ctx> {
        match self.intrinsic(name, args) {
            Some(value) => value,
            None => self.fail(format!("LLVM has no {name}"), instead),
        }
    }

    /// One PTX instruction from f32 to f32. It has no side effects, so that it may be moved and removed.
    fn assembly(&mut self, instruction: &str, args: &[Value<'ctx>]) -> Option<Value<'ctx>> {
        let float = self.context.f32_type();
        let types = vec![float.into(); args.len()];
        let ty = float.fn_type(&types, false);
        let mut text = format!("{instruction} $0");
        let mut constraints = "=f".to_owned();
        for i in 1..=args.len() {
            text.push_str(&format!(", ${i}"));
            constraints.push_str(",f");
        }
        text.push(';');
        let callee = self.context.create_inline_asm(ty, text, constraints, false, false, None, false);
        let operands: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        let call = self.builder.build_indirect_call(ty, callee, &operands, "");
        self.result(call)
    }

    fn result(&mut self, call: Built<CallSiteValue<'ctx>>) -> Option<Value<'ctx>> {
        match call.map(CallSiteValue::try_as_basic_value) {
            Ok(ValueKind::Basic(value)) => Some(value),
            Ok(ValueKind::Instruction(_)) => None,
            Err(e) => {
                self.failure.get_or_insert_with(|| e.to_string());
                None
            }
        }
    }

    /// Emits a branch around `slow`; `None` if the builder has no position.
    fn branch<const N: usize>(
        &mut self,
        cond: Value<'ctx>,
        usual: [Value<'ctx>; N],
        slow: impl FnOnce(&mut Self) -> [Value<'ctx>; N],
    ) -> Option<Built<[Value<'ctx>; N]>> {
        let Value::IntValue(cond) = cond else { return None };
        let before = self.builder.get_insert_block()?;
        let aside = self.context.insert_basic_block_after(before, "slow");
        let after = self.context.insert_basic_block_after(aside, "usual");
        if let Err(e) = self.builder.build_conditional_branch(cond, aside, after) {
            return Some(Err(e));
        }
        self.builder.position_at_end(aside);
        let slow = slow(self);
        let end = self.builder.get_insert_block()?;
        if let Err(e) = self.builder.build_unconditional_branch(after) {
            return Some(Err(e));
        }
        self.builder.position_at_end(after);
        let mut merged = usual;
        for ((merged, usual), slow) in merged.iter_mut().zip(usual).zip(slow) {
            let phi = match self.builder.build_phi(usual.get_type(), "") {
                Ok(phi) => phi,
                Err(e) => return Some(Err(e)),
            };
            phi.add_incoming(&[(&usual, before), (&slow, end)]);
            *merged = phi.as_basic_value();
        }
        Some(Ok(merged))
    }
}

impl<'ctx> Math for LlvmMath<'_, 'ctx> {
    type V = Value<'ctx>;

    fn float(&mut self, width: Width, value: f64) -> Self::V {
        // LLVM rounds the f64 that it is given to a constant of f32.
        self.float_type(width).const_float(value).into()
    }
    fn int(&mut self, width: Width, value: i64) -> Self::V {
        self.int_type(width).const_int(value as u64, false).into()
    }

    fn add(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_add(a, b, ""))
    }
    fn sub(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_sub(a, b, ""))
    }
    fn mul(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_mul(a, b, ""))
    }
    fn div(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_div(a, b, ""))
    }
    fn fma(&mut self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        self.standard("llvm.fma", &[a, b, c], a)
    }
    fn neg(&mut self, a: Self::V) -> Self::V {
        self.floats(a, a, |to, a, _| to.build_float_neg(a, ""))
    }
    fn abs(&mut self, a: Self::V) -> Self::V {
        self.standard("llvm.fabs", &[a], a)
    }
    fn sqrt(&mut self, a: Self::V) -> Self::V {
        self.standard("llvm.sqrt", &[a], a)
    }
    fn lt(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_compare(FloatPredicate::OLT, a, b, ""))
    }
    fn eq(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.floats(a, b, |to, a, b| to.build_float_compare(FloatPredicate::OEQ, a, b, ""))
    }

    fn iadd(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_int_add(a, b, ""))
    }
    fn isub(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_int_sub(a, b, ""))
    }
    fn imul(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_int_mul(a, b, ""))
    }
    fn umulhi(&mut self, a: Self::V, b: Self::V) -> Self::V {
        let (half, double) = match self.width(a) {
            Width::F32 => (self.context.i32_type(), self.context.i64_type()),
            Width::F64 => (self.context.i64_type(), self.context.i128_type()),
        };
        self.ints(a, b, |to, a, b| {
            let (a, b) = (to.build_int_z_extend(a, double, "")?, to.build_int_z_extend(b, double, "")?);
            let product = to.build_int_mul(a, b, "")?;
            let shift = double.const_int(u64::from(half.get_bit_width()), false);
            let high = to.build_right_shift(product, shift, false, "")?;
            to.build_int_truncate(high, half, "")
        })
    }
    fn and(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_and(a, b, ""))
    }
    fn or(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_or(a, b, ""))
    }
    fn xor(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_xor(a, b, ""))
    }
    fn shl(&mut self, a: Self::V, by: Self::V) -> Self::V {
        self.ints(a, by, |to, a, by| to.build_left_shift(a, by, ""))
    }
    fn lshr(&mut self, a: Self::V, by: Self::V) -> Self::V {
        self.ints(a, by, |to, a, by| to.build_right_shift(a, by, false, ""))
    }
    fn ashr(&mut self, a: Self::V, by: Self::V) -> Self::V {
        self.ints(a, by, |to, a, by| to.build_right_shift(a, by, true, ""))
    }
    fn ult(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_int_compare(IntPredicate::ULT, a, b, ""))
    }
    fn ieq(&mut self, a: Self::V, b: Self::V) -> Self::V {
        self.ints(a, b, |to, a, b| to.build_int_compare(IntPredicate::EQ, a, b, ""))
    }

    fn to_bits(&mut self, a: Self::V) -> Self::V {
        let width = self.width(a);
        let built = self.builder.build_bit_cast(a, self.int_type(width), "");
        self.keep(built, a)
    }
    fn as_float(&mut self, a: Self::V) -> Self::V {
        let width = self.width(a);
        let built = self.builder.build_bit_cast(a, self.float_type(width), "");
        self.keep(built, a)
    }
    fn to_float(&mut self, a: Self::V) -> Self::V {
        let Value::IntValue(x) = a else { return self.fail("an integer is expected", a) };
        let width = self.width(a);
        let built = self.builder.build_signed_int_to_float(x, self.float_type(width), "");
        self.keep(built, a)
    }
    fn widen(&mut self, a: Self::V) -> Self::V {
        let to = self.context.f64_type();
        self.floats(a, a, |b, a, _| b.build_float_ext(a, to, ""))
    }
    fn narrow(&mut self, a: Self::V) -> Self::V {
        let to = self.context.f32_type();
        self.floats(a, a, |b, a, _| b.build_float_trunc(a, to, ""))
    }
    fn low_half(&mut self, a: Self::V) -> Self::V {
        let to = self.context.i32_type();
        self.ints(a, a, |b, a, _| b.build_int_truncate(a, to, ""))
    }

    fn select(&mut self, cond: Self::V, a: Self::V, b: Self::V) -> Self::V {
        let Value::IntValue(cond) = cond else { return self.fail("a truth value is expected", a) };
        let built = self.builder.build_select(cond, a, b, "");
        self.keep(built, a)
    }
    fn rarely<const N: usize>(
        &mut self,
        cond: Self::V,
        usual: [Self::V; N],
        slow: impl FnOnce(&mut Self) -> [Self::V; N],
    ) -> [Self::V; N] {
        let failure = match self.branch(cond, usual, slow) {
            Some(Ok(merged)) => return merged,
            Some(Err(e)) => e.to_string(),
            None => "the builder stands in no block".to_owned(),
        };
        self.failure.get_or_insert(failure);
        usual
    }

    fn approx(&mut self, function: Approx, x: Self::V) -> Option<Self::V> {
        match self.approximations {
            Approximations::None => None,
            Approximations::Ptx => match function {
                Approx::Exp2Flush => self.intrinsic("llvm.nvvm.ex2.approx.ftz", &[x]),
                Approx::Log2Flush => self.intrinsic("llvm.nvvm.lg2.approx.ftz.f", &[x]),
                Approx::RecipFlush => self.intrinsic("llvm.nvvm.rcp.approx.ftz.f", &[x]),
                Approx::Rsqrt => self.intrinsic("llvm.nvvm.rsqrt.approx.f", &[x]),
                Approx::RsqrtFlush => self.intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", &[x]),
                Approx::SqrtFlush => self.intrinsic("llvm.nvvm.sqrt.approx.ftz.f", &[x]),
                Approx::SinFlush => self.intrinsic("llvm.nvvm.sin.approx.ftz.f", &[x]),
                Approx::CosFlush => self.intrinsic("llvm.nvvm.cos.approx.ftz.f", &[x]),
                Approx::Tanh => self.assembly("tanh.approx.f32", &[x]),
            },
            Approximations::Gcn => match function {
                Approx::Exp2Flush => self.intrinsic("llvm.amdgcn.exp2", &[x]),
                Approx::Log2Flush => self.intrinsic("llvm.amdgcn.log", &[x]),
                Approx::RecipFlush => self.intrinsic("llvm.amdgcn.rcp", &[x]),
                Approx::RsqrtFlush => self.intrinsic("llvm.amdgcn.rsq", &[x]),
                Approx::SqrtFlush => self.intrinsic("llvm.amdgcn.sqrt", &[x]),
                // It has one that flushes subnormal numbers, and none that takes radians.
                Approx::Rsqrt | Approx::SinFlush | Approx::CosFlush | Approx::Tanh => None,
            },
        }
    }
    fn saturated_fma(&mut self, a: Self::V, b: Self::V, c: Self::V) -> Option<Self::V> {
        match self.approximations {
            Approximations::None | Approximations::Gcn => None,
            Approximations::Ptx => self.assembly("fma.rn.sat.f32", &[a, b, c]),
        }
    }
}
