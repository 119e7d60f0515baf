//! Emits the remainder of floats as a function of its own, since it needs a loop.
//!
//! Requires f32 or f64. Guarantees the exact remainder of the truncating quotient with the sign of the dividend, as C's
//! `fmod`: long division of the mantissas, a few bits of the quotient at a time.

use inkwell::IntPredicate as P;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{FloatType, IntType};
use inkwell::values::{BasicMetadataValueEnum, FloatValue, FunctionValue, IntValue, ValueKind};

use super::emit::{float, int};
use super::{Error, Scalars, Width};

/// The constants of a width.
struct Shape<'c> {
    float: FloatType<'c>,
    int: IntType<'c>,
    /// Bits of the mantissa that are stored.
    mantissa: u64,
    /// Bits of the quotient in one step: as many as an integer has above the mantissa with its hidden bit.
    step: u64,
    infinity: u64,
    name: &'static str,
}

impl<'c> Shape<'c> {
    fn number(&self, v: u64) -> IntValue<'c> {
        self.int.const_int(v, false)
    }
}

impl<'c> Scalars<'_, 'c> {
    /// The remainder of two floats of this width.
    pub(super) fn float_rem(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        width: Width,
    ) -> Result<FloatValue<'c>, Error> {
        let shape = match width {
            Width::F32 => Shape {
                float: self.context.f32_type(),
                int: self.context.i32_type(),
                mantissa: 23,
                step: 8,
                infinity: 0x7f80_0000,
                name: "tk_rem_f32",
            },
            Width::F64 => Shape {
                float: self.context.f64_type(),
                int: self.context.i64_type(),
                mantissa: 52,
                step: 11,
                infinity: 0x7ff0_0000_0000_0000,
                name: "tk_rem_f64",
            },
        };
        let function = match self.module.get_function(shape.name) {
            Some(f) => f,
            None => self.rem_function(&shape)?,
        };
        let args: [BasicMetadataValueEnum<'c>; 2] = [a.into(), b.into()];
        match self.builder.build_call(function, &args, "")?.try_as_basic_value() {
            ValueKind::Basic(v) => float(v),
            ValueKind::Instruction(_) => Err(Error::Operands("rem")),
        }
    }

    /// The function: operands that need no division return at once.
    fn rem_function(&self, s: &Shape<'c>) -> Result<FunctionValue<'c>, Error> {
        let ty = s.float.into();
        let signature = inkwell::types::BasicType::fn_type(&s.float, &[ty, ty], false);
        let function = self.module.add_function(s.name, signature, Some(Linkage::Internal));
        // A call would break the pipeline of matrix instructions around it.
        let inline = Attribute::get_named_enum_kind_id("alwaysinline");
        function.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(inline, 0));
        let builder = self.context.create_builder();
        let here = Scalars { builder: &builder, ..*self };
        let entry = self.context.append_basic_block(function, "entry");
        let simple = self.context.append_basic_block(function, "simple");
        let divide = self.context.append_basic_block(function, "divide");
        let missing = || Error::Operands("rem");
        let a = float(function.get_nth_param(0).ok_or_else(missing)?)?;
        let b = float(function.get_nth_param(1).ok_or_else(missing)?)?;

        builder.position_at_end(entry);
        let sign_bit = s.number(1 << (s.int.get_bit_width() - 1));
        let a_bits = here.bits(a, s.int)?;
        let sign = builder.build_and(a_bits, sign_bit, "")?;
        let x = builder.build_xor(a_bits, sign, "")?;
        let y = builder.build_and(here.bits(b, s.int)?, builder.build_not(sign_bit, "")?, "")?;
        let by_zero = here.compare(P::EQ, y, s.number(0))?;
        let endless = here.compare(P::UGE, x, s.number(s.infinity))?;
        let y_nan = here.compare(P::UGT, y, s.number(s.infinity))?;
        let invalid = builder.build_or(by_zero, endless, "")?;
        let invalid = builder.build_or(invalid, y_nan, "")?;
        let small = here.compare(P::ULT, x, y)?;
        builder.build_conditional_branch(builder.build_or(invalid, small, "")?, simple, divide)?;

        builder.position_at_end(simple);
        let nan = s.float.const_float(f64::NAN);
        builder.build_return(Some(&here.pick_float(invalid, nan, a)?))?;

        builder.position_at_end(divide);
        let size = here.rem_divide(function, s, x, y)?;
        let bits = builder.build_or(size, sign, "")?;
        builder.build_return(Some(&here.of_bits(bits, s.float)?))?;
        Ok(function)
    }

    /// The mantissa with the hidden bit, and the exponent field, which is 1 for subnormal values as for the smallest
    /// normal one.
    fn rem_parts(&self, s: &Shape<'c>, x: IntValue<'c>) -> Result<(IntValue<'c>, IntValue<'c>), Error> {
        let b = self.builder;
        let field = b.build_right_shift(x, s.number(s.mantissa), false, "")?;
        let fraction = b.build_and(x, s.number((1 << s.mantissa) - 1), "")?;
        let subnormal = self.compare(P::EQ, field, s.number(0))?;
        let normal = b.build_or(fraction, s.number(1 << s.mantissa), "")?;
        let m = self.pick(subnormal, fraction, normal)?;
        Ok((m, self.int_call("llvm.umax", &[field, s.number(1)])?))
    }

    /// The bits of the remainder of two positive finite values, `x >= y > 0`. Leaves the builder after the loop.
    fn rem_divide(
        &self,
        function: FunctionValue<'c>,
        s: &Shape<'c>,
        x: IntValue<'c>,
        y: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        let b = self.builder;
        let (mx, ex) = self.rem_parts(s, x)?;
        let (my, ey) = self.rem_parts(s, y)?;
        let first = b.build_int_unsigned_rem(mx, my, "")?;
        let places = b.build_int_sub(ex, ey, "")?;
        let before = b.get_insert_block().ok_or(Error::Operands("rem"))?;
        let head = self.context.append_basic_block(function, "head");
        let body = self.context.append_basic_block(function, "body");
        let done = self.context.append_basic_block(function, "done");
        b.build_unconditional_branch(head)?;

        b.position_at_end(head);
        let rest = b.build_phi(s.int, "rest")?;
        let left = b.build_phi(s.int, "left")?;
        let (r, n) = (int(rest.as_basic_value())?, int(left.as_basic_value())?);
        b.build_conditional_branch(self.compare(P::NE, n, s.number(0))?, body, done)?;

        b.position_at_end(body);
        let step = self.int_call("llvm.umin", &[n, s.number(s.step)])?;
        let longer = b.build_left_shift(r, step, "")?;
        let shorter = b.build_int_unsigned_rem(longer, my, "")?;
        let fewer = b.build_int_sub(n, step, "")?;
        b.build_unconditional_branch(head)?;
        rest.add_incoming(&[(&first, before), (&shorter, body)]);
        left.add_incoming(&[(&places, before), (&fewer, body)]);

        b.position_at_end(done);
        // The remainder is in units of the exponent of `y`: it is shifted until its hidden bit is in place, or the
        // exponent is the smallest. The hidden bit then increments the exponent field.
        let never = self.context.bool_type().const_zero();
        let clear = self.int_call("llvm.ctlz", &[r, never])?;
        let above = s.number(u64::from(s.int.get_bit_width()) - 1 - s.mantissa);
        let up = b.build_int_sub(clear, above, "")?;
        let most = b.build_int_sub(ey, s.number(1), "")?;
        let up = self.int_call("llvm.umin", &[up, most])?;
        let m = b.build_left_shift(r, up, "")?;
        let exponent = b.build_int_sub(most, up, "")?;
        let exponent = b.build_left_shift(exponent, s.number(s.mantissa), "")?;
        let bits = b.build_int_add(m, exponent, "")?;
        let nothing = self.compare(P::EQ, r, s.number(0))?;
        self.pick(nothing, s.number(0), bits)
    }
}
