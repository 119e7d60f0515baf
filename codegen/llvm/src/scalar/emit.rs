//! Helpers for scalar emission: typed values, constants, calls of intrinsics.
//!
//! Requires the types on which an intrinsic is overloaded. Guarantees that a value of an unexpected type is an error,
//! not a crash.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicTypeEnum, FloatType, IntType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, FastMathFlags, FloatValue, IntValue, ValueKind,
};
use inkwell::{FloatPredicate, IntPredicate};
use tk_ops::dtype::DType;

use super::{Error, Scalars};

/// The value as an integer.
pub(super) fn int(v: BasicValueEnum<'_>) -> Result<IntValue<'_>, Error> {
    v.try_into().map_err(|()| Error::Builder("a value is no integer".into()))
}

/// The value as a float.
pub(super) fn float(v: BasicValueEnum<'_>) -> Result<FloatValue<'_>, Error> {
    v.try_into().map_err(|()| Error::Builder("a value is no float".into()))
}

impl<'c> Scalars<'_, 'c> {
    /// A call of an intrinsic that is overloaded on `types`.
    pub(super) fn call(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        let missing = || Error::Builder(format!("LLVM has no `{name}`"));
        let declared = Intrinsic::find(name).and_then(|i| i.get_declaration(self.module, types));
        let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        match self.builder.build_call(declared.ok_or_else(missing)?, &args, "")?.try_as_basic_value() {
            ValueKind::Basic(v) => Ok(v),
            ValueKind::Instruction(_) => Err(missing()),
        }
    }

    /// A target instruction that depends only on its operands.
    pub(super) fn assembly(
        &self,
        text: &str,
        constraints: &str,
        to: IntType<'c>,
        args: &[BasicValueEnum<'c>],
    ) -> Result<IntValue<'c>, Error> {
        let types: Vec<_> = args.iter().map(|a| a.get_type().into()).collect();
        let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        let ty = to.fn_type(&types, false);
        let code =
            self.context.create_inline_asm(ty, text.into(), constraints.into(), false, false, None, false);
        let call = self.builder.build_indirect_call(ty, code, &args, "")?;
        // `memory(none)` is the value 0; without it equal conversions would not be merged.
        for name in ["memory", "nounwind", "willreturn"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(kind, 0));
        }
        match call.try_as_basic_value() {
            ValueKind::Basic(v) => int(v),
            ValueKind::Instruction(_) => Err(Error::Builder(format!("`{text}` gives nothing"))),
        }
    }

    /// A unary intrinsic of integers.
    pub(super) fn int_call(&self, name: &str, args: &[IntValue<'c>]) -> Result<IntValue<'c>, Error> {
        let types: Vec<BasicTypeEnum<'c>> = args.iter().take(1).map(|a| a.get_type().into()).collect();
        let args: Vec<BasicValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        int(self.call(name, &types, &args)?)
    }

    /// `a - b` of signed integers, or the nearest one there is.
    pub fn saturating_difference(&self, a: IntValue<'c>, b: IntValue<'c>) -> Result<IntValue<'c>, Error> {
        self.int_call("llvm.ssub.sat", &[a, b])
    }

    /// An intrinsic of floats of one type.
    pub(super) fn float_call(&self, name: &str, args: &[FloatValue<'c>]) -> Result<FloatValue<'c>, Error> {
        let types: Vec<BasicTypeEnum<'c>> = args.iter().take(1).map(|a| a.get_type().into()).collect();
        let args: Vec<BasicValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        float(self.call(name, &types, &args)?)
    }

    /// `c ? a : b` of integers.
    pub(super) fn pick(
        &self,
        c: IntValue<'c>,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        int(self.builder.build_select(c, a, b, "")?)
    }

    /// `c ? a : b` of floats.
    pub(super) fn pick_float(
        &self,
        c: IntValue<'c>,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> Result<FloatValue<'c>, Error> {
        float(self.builder.build_select(c, a, b, "")?)
    }

    /// Compares integers.
    pub(super) fn compare(
        &self,
        p: IntPredicate,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        Ok(self.builder.build_int_compare(p, a, b, "")?)
    }

    /// Compares floats.
    pub(super) fn compare_float(
        &self,
        p: FloatPredicate,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        Ok(self.builder.build_float_compare(p, a, b, "")?)
    }

    /// Returns whether a float is NaN.
    pub(super) fn is_nan(&self, x: FloatValue<'c>) -> Result<IntValue<'c>, Error> {
        self.compare_float(FloatPredicate::UNO, x, x)
    }

    /// The bits of a float as an integer of this type.
    pub(super) fn bits(&self, x: FloatValue<'c>, ty: IntType<'c>) -> Result<IntValue<'c>, Error> {
        int(self.builder.build_bit_cast(x, ty, "")?)
    }

    /// The float with these bits.
    pub(super) fn of_bits(&self, x: IntValue<'c>, ty: FloatType<'c>) -> Result<FloatValue<'c>, Error> {
        float(self.builder.build_bit_cast(x, ty, "")?)
    }

    /// Returns whether two elements have the same bits.
    pub(super) fn equal_bits(
        &self,
        d: DType,
        a: BasicValueEnum<'c>,
        b: BasicValueEnum<'c>,
    ) -> Result<IntValue<'c>, Error> {
        let ty = self.code_type(d);
        let bits = |v: BasicValueEnum<'c>| int(self.builder.build_bit_cast(v, ty, "")?);
        self.compare(IntPredicate::EQ, bits(a)?, bits(b)?)
    }

    /// Applies the relaxations of `@fast` to this operation: contraction, reciprocals, approximation. NaN, infinities,
    /// the sign of zero and the order of operations keep their meaning.
    pub(super) fn relaxed(&self, v: FloatValue<'c>, fast: bool) -> Result<FloatValue<'c>, Error> {
        let flags = FastMathFlags::AllowContract | FastMathFlags::AllowReciprocal | FastMathFlags::ApproxFunc;
        if fast { self.flagged(v, flags) } else { Ok(v) }
    }

    /// Sets the flags of an operation, unless it is a constant.
    pub(super) fn flagged(&self, v: FloatValue<'c>, flags: FastMathFlags) -> Result<FloatValue<'c>, Error> {
        if let Some(inst) = v.as_instruction_value() {
            inst.set_fast_math_flags(flags).map_err(|e| Error::Builder(e.to_string()))?;
        }
        Ok(v)
    }
}
