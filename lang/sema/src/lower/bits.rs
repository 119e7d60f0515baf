//! `bitcast`: one operation, or, between bytes and the pairs of `e2m1` in them, shifts and a rearrangement.

use tk_ops::{DType, ElementwiseOp, Op, Scalar, ShapeOp};
use tk_tile::{Attrs, Type, ValueId};

use super::args::Args;
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, EvalResult};

impl Lower<'_, '_> {
    pub(super) fn bitcast(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let x = self.operand(a, "x")?;
        let CTy::One(to) = want else { return Err(bug(a.span, format!("`bitcast` gives {want:?}"))) };
        let (Some(from), Some(d)) = (self.b.type_of(x).dtype(), to.dtype()) else {
            return Err(bug(a.span, "`bitcast` of pointers"));
        };
        let shape = to.shape().unwrap_or_default().to_vec();
        Ok(Val::One(match (from, d) {
            (DType::E2M1, DType::E2M1) => x,
            (_, DType::E2M1) => self.unpacked(x, &shape),
            (DType::E2M1, _) => self.packed(x, d, &shape),
            (_, _) => self.b.bitcast(x, d),
        }))
    }

    /// A float as another float, rounded as `rounding` says. The neighbours of a value differ by one in their codes.
    pub(super) fn rounded(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        use ElementwiseOp::{Abs, Add, And, Gt, Lt, Mul, Select, Sub};
        let x = self.operand(a, "x")?;
        let CTy::One(to) = want else { return Err(bug(a.span, format!("`cast` gives {want:?}"))) };
        let (Some(from), Some(d)) = (self.b.type_of(x).dtype(), to.dtype()) else {
            return Err(bug(a.span, "`cast` of pointers"));
        };
        let near = self.b.cast(x, d);
        let mode = a.word("rounding").unwrap_or("nearest");
        if mode == "nearest" || d.bits() >= from.bits() && d != DType::F16 && d != DType::BF16 {
            return Ok(Val::One(near));
        }
        let wide = if from == DType::F64 { DType::F64 } else { DType::F32 };
        let code_type = match d.stored_bits() {
            8 => DType::U8,
            16 => DType::U16,
            _ => DType::U32,
        };
        let shape = to.shape().unwrap_or_default().to_vec();
        let one = self.b.constant(Scalar::int(code_type, 1), &shape);
        let size = self.b.cast(x, wide);
        let size = self.b.elementwise(Abs, &[size]);
        // Where -0 is NaN, codes next to zero are neighbours in size only: the sign is put back at the end.
        let unsigned = d.format().is_some_and(|f| !f.signed_zero);
        let near = if unsigned { self.b.cast(size, d) } else { near };
        let near_size = self.b.cast(near, wide);
        let near_size = self.b.elementwise(Abs, &[near_size]);
        let grew = self.b.elementwise(Gt, &[near_size, size]);
        let code = self.b.bitcast(near, code_type);
        let less = self.b.elementwise(Sub, &[code, one]);
        let below = self.b.elementwise(Select, &[grew, less, code]);
        if mode == "toward_zero" {
            let out = self.b.bitcast(below, d);
            return Ok(Val::One(if unsigned { self.with_sign_of(x, out, wide) } else { out }));
        }
        let above = self.b.elementwise(Add, &[below, one]);
        let mut sizes = vec![];
        for code in [below, above] {
            let value = self.b.bitcast(code, d);
            let value = self.b.cast(value, wide);
            sizes.push(self.b.elementwise(Abs, &[value]));
        }
        let [low, high] = sizes[..] else { return Err(bug(a.span, "two neighbours")) };
        // After the largest value comes an infinity, NaN or -0: then no step exists, or none upward.
        let step = self.b.elementwise(Sub, &[high, low]);
        let rest = self.b.elementwise(Sub, &[size, low]);
        let bits = self.operand(a, "bits")?;
        let bits = self.broadcast(bits, &shape, a.span)?;
        let eight = self.b.constant(Scalar::int(DType::U32, 8), &shape);
        let bits = self.b.elementwise(ElementwiseOp::Shr, &[bits, eight]);
        let unit = self.b.cast(bits, wide);
        let scale = self.b.constant(Scalar::float(wide, 1.0 / 16_777_216.0), &shape);
        let unit = self.b.elementwise(Mul, &[unit, scale]);
        let part = self.b.elementwise(Mul, &[unit, step]);
        let chosen = self.b.elementwise(Lt, &[part, rest]);
        let zero = self.b.constant(Scalar::zero(wide), &shape);
        let upward = self.b.elementwise(Gt, &[step, zero]);
        let chosen = self.b.elementwise(And, &[chosen, upward]);
        let code = self.b.elementwise(Select, &[chosen, above, below]);
        let out = self.b.bitcast(code, d);
        Ok(Val::One(if unsigned { self.with_sign_of(x, out, wide) } else { out }))
    }

    /// `size`, negated where `x` is negative.
    fn with_sign_of(&mut self, x: ValueId, size: ValueId, wide: DType) -> ValueId {
        let x = self.b.cast(x, wide);
        let shape = self.b.type_of(x).shape().unwrap_or_default().to_vec();
        let zero = self.b.constant(Scalar::zero(wide), &shape);
        let negative = self.b.elementwise(ElementwiseOp::Lt, &[x, zero]);
        let other = self.b.elementwise(ElementwiseOp::Neg, &[size]);
        self.b.elementwise(ElementwiseOp::Select, &[negative, other, size])
    }

    /// Bytes as the `e2m1` in them: the low half of each byte first.
    fn unpacked(&mut self, x: ValueId, shape: &[u32]) -> ValueId {
        let bytes = self.b.bitcast(x, DType::U8);
        let four = self.number(4, bytes);
        let high = self.b.elementwise(ElementwiseOp::Shr, &[bytes, four]);
        let (low, high) = (self.b.bitcast(bytes, DType::E2M1), self.b.bitcast(high, DType::E2M1));
        let mut pairs = self.b.type_of(low).shape().unwrap_or_default().to_vec();
        pairs.push(2);
        let ty = Type::tile(DType::E2M1, &pairs);
        let joined = self.b.one(Op::Shape(ShapeOp::Join), &[low, high], Attrs::new(), ty);
        self.b.reshape(joined, shape)
    }

    /// Pairs of `e2m1` as bytes.
    fn packed(&mut self, x: ValueId, to: DType, shape: &[u32]) -> ValueId {
        let mut pairs = shape.to_vec();
        pairs.push(2);
        let codes = self.b.bitcast(x, DType::U8);
        let codes = self.b.reshape(codes, &pairs);
        let half = Type::tile(DType::U8, shape);
        let half = self.b.ty(half);
        let halves = self.b.inst(Op::Shape(ShapeOp::Split), &[codes], Attrs::new(), &[half, half]);
        let [low, high] = halves[..] else { return codes };
        let four = self.number(4, high);
        let high = self.b.elementwise(ElementwiseOp::Shl, &[high, four]);
        let bytes = self.b.elementwise(ElementwiseOp::Or, &[low, high]);
        self.b.bitcast(bytes, to)
    }

    /// A number for each element of a tile of bytes.
    fn number(&mut self, n: i128, like: ValueId) -> ValueId {
        let shape = self.b.type_of(like).shape().unwrap_or_default().to_vec();
        self.b.constant(Scalar::int(DType::U8, n), &shape)
    }
}
