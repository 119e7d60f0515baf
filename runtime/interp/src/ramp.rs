//! [`Ramp`]: a tile of consecutive integers that is not written out.
//!
//! Offsets of most programs are `base + arange`, their masks `offsets < n`: kept in this form, they cost nothing and
//! their pointers are known to be consecutive. Guarantees that every operation that stays in this form gives what the
//! written-out one would give; where the type would wrap there is none.

use tk_ops::buf::Buf;
use tk_ops::{DType, ElementwiseOp, Scalar};

/// `first, first + 1, ..`, `count` integers that all fit the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ramp {
    pub dtype: DType,
    pub first: i64,
    pub count: usize,
}

impl Ramp {
    /// `None` where the type would wrap, or is one that an i64 does not cover.
    pub fn new(dtype: DType, first: i128, count: usize) -> Option<Ramp> {
        let (lo, hi) = dtype.int_range()?;
        let last = first.checked_add(count as i128 - 1)?;
        let fits = first >= lo && last <= hi && i64::try_from(last).is_ok();
        let first = i64::try_from(first).ok().filter(|_| fits)?;
        Some(Ramp { dtype, first, count })
    }

    /// Element `i`.
    pub fn at(self, i: usize) -> Scalar {
        Scalar::int(self.dtype, i128::from(self.first) + i as i128)
    }

    /// Written out.
    pub fn buf(self) -> Buf {
        match self.dtype {
            DType::I32 => {
                Buf::I32((0..self.count as i32).map(|i| (self.first as i32).wrapping_add(i)).collect())
            }
            DType::I64 => Buf::I64((0..self.count as i64).map(|i| self.first.wrapping_add(i)).collect()),
            other => {
                let mut out = Buf::zeros(other, self.count);
                (0..self.count).for_each(|i| out.set(i, self.at(i)));
                out
            }
        }
    }

    /// The sum or difference with a number, the conversion to another integer type.
    pub fn shifted(self, by: i128, dtype: DType) -> Option<Ramp> {
        Ramp::new(dtype, i128::from(self.first).checked_add(by)?, self.count)
    }

    /// The elements for which the comparison `op` with a number is true; `None` if `op` is no such comparison.
    pub fn compare(self, op: ElementwiseOp, with: i128) -> Option<Compared> {
        // Elements below the number, and those up to it.
        let place = |v: i128| (v - i128::from(self.first)).clamp(0, self.count as i128) as usize;
        let (below, upto) = (place(with), place(with + 1));
        let cases = [
            (ElementwiseOp::Lt, 0, below),
            (ElementwiseOp::Le, 0, upto),
            (ElementwiseOp::Ge, below, self.count),
            (ElementwiseOp::Gt, upto, self.count),
        ];
        let (_, start, end) = cases.into_iter().find(|(case, ..)| *case == op)?;
        Some(match end.saturating_sub(start) {
            0 => Compared::Uniform(false),
            n if n == self.count => Compared::Uniform(true),
            _some => Compared::Some(Buf::Bool((0..self.count).map(|i| start <= i && i < end).collect())),
        })
    }
}

/// The result of a comparison.
pub(crate) enum Compared {
    /// The same for every element.
    Uniform(bool),
    /// Written out.
    Some(Buf),
}
