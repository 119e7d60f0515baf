//! Owns `bitcast`: one operation, or, between bytes and the pairs of `e2m1` in them, shifts and a rearrangement.

use tk_ops::{DType, ElementwiseOp, Op, Scalar, ShapeOp};
use tk_tile::{Attrs, Type, ValueId};

use super::args::Args;
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, Res};

impl Lower<'_, '_> {
    pub(super) fn bitcast(&mut self, a: &Args, want: &CTy) -> Res<Val> {
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
