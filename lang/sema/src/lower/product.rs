//! Products of matrices.

use tk_ops::{DType, DotOp, ElementwiseOp, Op, Scalar, ShapeOp};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, ValueId, infer};

use super::args::Args;
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, EvalResult};

/// The number of bf16 whose sum an operand is, if it is one.
fn parts(precision: &str) -> Option<usize> {
    match precision {
        "bf16x3" => Some(2),
        "bf16x6" => Some(3),
        _other => None,
    }
}

impl Lower<'_, '_> {
    pub(super) fn dot(&mut self, op: DotOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let CTy::One(ty) = want else { return Err(bug(a.span, format!("`{}` gives {want:?}", a.row.name))) };
        let (x, y) = (self.operand(a, "a")?, self.operand(a, "b")?);
        let acc = match (self.opt_operand(a, "acc")?, ty.dtype()) {
            (Some(v), _) => v,
            (None, Some(d)) => self.b.constant(Scalar::zero(d), ty.shape().unwrap_or(&[])),
            (None, None) => return Err(bug(a.span, "a product of pointers")),
        };
        let mut attrs = self.fast(a, ty);
        let parts_of_f32 = a
            .word("precision")
            .and_then(parts)
            .filter(|_| op == DotOp::Dot && self.b.type_of(x).dtype() == Some(DType::F32));
        if let Some(p) = a.word("precision").filter(|p| *p != "ieee" && parts(p).is_none()) {
            attrs.set("precision", Attr::Str(p.to_string()));
        }
        if op == DotOp::DotScaled {
            let (s, t) = (self.operand(a, "a_scale")?, self.operand(a, "b_scale")?);
            self.scales([x, y, s, t], a.span)?;
            return Ok(Val::One(self.b.one(Op::Dot(op), &[x, y, s, t, acc], attrs, ty.clone())));
        }
        let product = |l: &mut Self, [x, y, acc]: [ValueId; 3]| match parts_of_f32 {
            Some(n) => l.in_parts(x, y, acc, n, &attrs),
            None => {
                let ty = l.b.type_of(acc).clone();
                l.b.one(Op::Dot(op), &[x, y, acc], attrs.clone(), ty)
            }
        };
        match ty.shape() {
            Some([batch, _, _]) => self.batch(*batch, [x, y, acc], a.span, product).map(Val::One),
            Some(_) | None => Ok(Val::One(product(self, [x, y, acc]))),
        }
    }

    /// One product for each position of the first dimension, joined along it.
    fn batch(
        &mut self,
        count: u32,
        operands: [ValueId; 3],
        span: Span,
        product: impl Fn(&mut Self, [ValueId; 3]) -> ValueId,
    ) -> EvalResult<ValueId> {
        let mut products = vec![];
        for i in 0..count {
            let matrices = operands.map(|x| self.matrix(x, i));
            let found = product(self, matrices);
            let shape = self.b.type_of(found).shape().unwrap_or_default().to_vec();
            products.push(self.b.reshape(found, &[&[1], shape.as_slice()].concat()));
        }
        // Joined two by two, each element moves as often as the logarithm of the count.
        while products.len() > 1 {
            let mut joined = vec![];
            let mut rest = products.into_iter();
            while let Some(x) = rest.next() {
                joined.push(rest.next().map_or(x, |y| self.stacked(x, y)));
            }
            products = joined;
        }
        products.first().copied().ok_or_else(|| bug(span, "a product of no matrices"))
    }

    /// The matrix at a position of the first dimension.
    fn matrix(&mut self, x: ValueId, at: u32) -> ValueId {
        let shape = self.b.type_of(x).shape().unwrap_or_default().to_vec();
        let (mut one, mut starts) = (shape.clone(), vec![0; shape.len()]);
        if let (Some(extent), Some(start)) = (one.first_mut(), starts.first_mut()) {
            (*extent, *start) = (1, i64::from(at));
        }
        let rest = shape.get(1..).unwrap_or_default();
        if one == shape {
            return self.b.reshape(x, rest);
        }
        let ty = infer::with_shape(self.b.type_of(x), &one);
        let attrs = Attrs::new().with("starts", Attr::Ints(starts));
        let slice = self.b.one(Op::Shape(ShapeOp::Slice), &[x], attrs, ty);
        self.b.reshape(slice, rest)
    }

    /// Two tiles along their first dimension.
    fn stacked(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let mut shape = self.b.type_of(x).shape().unwrap_or_default().to_vec();
        let more = self.b.type_of(y).shape().and_then(|s| s.first()).copied().unwrap_or(0);
        if let Some(extent) = shape.first_mut() {
            *extent += more;
        }
        let ty = infer::with_shape(self.b.type_of(x), &shape);
        self.b.one(Op::Shape(ShapeOp::Cat), &[x, y], Attrs::new().with("axis", Attr::Int(0)), ty)
    }

    /// Scales are `e8m0` tiles `[M, K / B]` and `[K / B, N]`.
    fn scales(&self, operands: [ValueId; 4], span: Span) -> EvalResult<()> {
        let [a, b, s, t] = operands.map(|v| self.b.type_of(v));
        let wrong = |code, message| Err(Box::new(Diagnostic::error(code, span, message, "")));
        if let Some(other) = [s, t].into_iter().find(|ty| ty.dtype() != Some(DType::E8M0)) {
            return wrong(
                codes::ELEMENT_MISMATCH,
                format!("a scale is of type `e8m0`, not `{}`", other.elem()),
            );
        }
        let fits = match (a.shape(), b.shape(), s.shape(), t.shape()) {
            (Some([m, k]), Some([_, n]), Some([m2, blocks]), Some([blocks2, n2])) => {
                m == m2 && n == n2 && blocks == blocks2 && k % blocks == 0
            }
            (_, _, _, _) => false,
        };
        if fits {
            return Ok(());
        }
        let message = format!("the scales `{s}` and `{t}` do not match the operands `{a}` and `{b}`");
        wrong(codes::DOT_SHAPE, message)
    }

    /// A product of f32 as products of bf16 whose sums the operands are: those of which the parts have at most `n` - 1 places
    /// together, the smallest first.
    fn in_parts(&mut self, x: ValueId, y: ValueId, acc: ValueId, n: usize, attrs: &Attrs) -> ValueId {
        let (x, y) = (self.split(x, n), self.split(y, n));
        let ty = self.b.type_of(acc).clone();
        let mut sum = acc;
        for place in (0..n).rev() {
            for i in (0..=place).rev() {
                if let (Some(a), Some(b)) = (x.get(i), y.get(place - i)) {
                    sum = self.b.one(Op::Dot(DotOp::Dot), &[*a, *b, sum], attrs.clone(), ty.clone());
                }
            }
        }
        sum
    }

    /// `n` bf16 whose sum is nearest to an f32. Of what is not finite, the parts after the first are NaN.
    fn split(&mut self, x: ValueId, n: usize) -> Vec<ValueId> {
        let (mut rest, mut out) = (x, vec![]);
        for i in 0..n {
            let part = self.b.cast(rest, DType::BF16);
            out.push(part);
            if i + 1 < n {
                let wide = self.b.cast(part, DType::F32);
                rest = self.b.elementwise(ElementwiseOp::Sub, &[rest, wide]);
            }
        }
        out
    }
}
