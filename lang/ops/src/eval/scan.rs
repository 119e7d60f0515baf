//! Running sums and products along one dimension.
//!
//! May assume nothing. Guarantees an order of combination that depends on the length only, and results whose error grows
//! with the logarithm of the length: halves are scanned each for itself, then the second is put on top of the first.

use super::float_ops::{round, widen};
use super::functions::Float;
use super::int_ops::Int;
use super::{EvalError, Lines};
use crate::buf::Buf;
use crate::op::ScanOp;

/// The running sum or product of each line, from its end with `reverse`. The result has the type of `x`; f16 and bf16
/// accumulate in f32, integers wrap.
pub fn scan(op: ScanOp, x: &Buf, lines: Lines, reverse: bool) -> Result<Buf, EvalError> {
    let unsupported = EvalError::Unsupported { op: op.name(), dtype: x.dtype() };
    let product = match op {
        ScanOp::CumSum => false,
        ScanOp::CumProd => true,
        ScanOp::Custom | ScanOp::Sort | ScanOp::TopK | ScanOp::Histogram | ScanOp::Gather => {
            return Err(unsupported);
        }
    };
    lines.check(op.name(), x)?;
    let run = Running { lines, reverse, product };
    Ok(match x {
        Buf::I8(v) => run.ints(v),
        Buf::I16(v) => run.ints(v),
        Buf::I32(v) => run.ints(v),
        Buf::I64(v) => run.ints(v),
        Buf::U8(v) => run.ints(v),
        Buf::U16(v) => run.ints(v),
        Buf::U32(v) => run.ints(v),
        Buf::U64(v) => run.ints(v),
        Buf::F16(v) => Buf::F16(round(&run.floats(&widen(v)))),
        Buf::BF16(v) => Buf::BF16(round(&run.floats(&widen(v)))),
        Buf::F32(v) => Buf::F32(run.floats(v)),
        Buf::F64(v) => Buf::F64(run.floats(v)),
        Buf::Bool(_)
        | Buf::F8E4M3(_)
        | Buf::F8E5M2(_)
        | Buf::F8E4M3FNUZ(_)
        | Buf::F8E5M2FNUZ(_)
        | Buf::E2M1(_)
        | Buf::E8M0(_) => {
            return Err(unsupported);
        }
    })
}

/// Elements that are added one after the other; longer lines are scanned in halves.
const RUN: usize = 32;

/// What is scanned how.
#[derive(Clone, Copy)]
struct Running {
    lines: Lines,
    reverse: bool,
    product: bool,
}

impl Running {
    fn ints<T: Int>(self, v: &[T]) -> Buf {
        T::buf(if self.product { self.each(v, T::mul) } else { self.each(v, T::add) })
    }

    fn floats<T: Float>(self, v: &[T]) -> Vec<T> {
        if self.product { self.each(v, T::mul) } else { self.each(v, T::add) }
    }

    fn each<T: Copy>(self, v: &[T], f: impl Fn(T, T) -> T + Copy) -> Vec<T> {
        let mut out = v.to_vec();
        let mut line = Vec::with_capacity(self.lines.len);
        for start in self.lines.starts() {
            line.clear();
            let places = || (0..self.lines.len).map(|l| start + l * self.lines.inner);
            line.extend(places().filter_map(|p| v.get(p)).copied());
            if self.reverse {
                line.reverse();
            }
            scan_line(&mut line, f);
            if self.reverse {
                line.reverse();
            }
            for (place, x) in places().zip(&line) {
                if let Some(slot) = out.get_mut(place) {
                    *slot = *x;
                }
            }
        }
        out
    }
}

fn scan_line<T: Copy>(line: &mut [T], f: impl Fn(T, T) -> T + Copy) {
    if line.len() <= RUN {
        let mut before = None;
        for x in line {
            *x = before.map_or(*x, |b| f(b, *x));
            before = Some(*x);
        }
        return;
    }
    // Halves of whole runs: the order depends on the length only.
    let (a, b) = line.split_at_mut(line.len().div_ceil(RUN) / 2 * RUN);
    scan_line(a, f);
    scan_line(b, f);
    if let Some(total) = a.last() {
        b.iter_mut().for_each(|x| *x = f(*total, *x));
    }
}
