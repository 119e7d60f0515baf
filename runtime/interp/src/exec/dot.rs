//! Matrix products.
//!
//! Guarantees that inputs are converted exactly to the type that is computed in, that every product is added (zeros do
//! not hide NaN or infinity), and that the order of additions depends on the extents only. The type that is computed
//! in is f64 for f64 accumulators, f32 for all other floats: an f16 accumulator is rounded once per `dot`. Integers
//! are exact modulo 2^width of the accumulator. A scaled factor is computed in f64 and rounded once.

use std::borrow::Cow;

use half::slice::HalfFloatSliceExt;
use tk_ops::buf::Buf;
use tk_ops::{DType, DotOp, eval};

use super::Args;
use super::elementwise::wrong;
use crate::fault::Fault;
use crate::value::Value;

/// Extents of `[m, k] x [k, n]`.
#[derive(Clone, Copy)]
struct Extents {
    m: usize,
    n: usize,
    k: usize,
}

/// Runs a matrix product.
pub(super) fn run(op: DotOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    match op {
        DotOp::Dot => dot(args),
        DotOp::DotScaled => dot_scaled(args),
    }
}

fn extents(args: &Args<'_, '_>) -> Result<Extents, Fault> {
    match (args.operand(0)?.ty.shape(), args.operand(1)?.ty.shape()) {
        (Some([m, k]), Some([k2, n])) if k == k2 => {
            Ok(Extents { m: *m as usize, n: *n as usize, k: *k as usize })
        }
        (_, _) => Err(Fault::internal("the shapes of `dot` do not fit")),
    }
}

fn dot(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let e = extents(args)?;
    let a = args.take(0)?.buf(e.m * e.k)?;
    let b = args.take(1)?.buf(e.k * e.n)?;
    let acc = args.take(2)?.owned(e.m * e.n)?;
    args.put(0, Value::tile(product(&a, &b, acc, e)?))
}

/// `dot_scaled(a, b, a_scale, b_scale, acc)`: a `dot` of factors times their scales. A power of two changes no bit of a
/// factor in f64, so that each is rounded once.
fn dot_scaled(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let e = extents(args)?;
    let blocks = match args.operand(2)?.ty.shape() {
        Some([_, blocks]) if *blocks > 0 && e.k % *blocks as usize == 0 => *blocks as usize,
        Some(_) | None => return Err(Fault::internal("the scales of `dot_scaled` do not fit")),
    };
    let (a, b) = (args.take(0)?.buf(e.m * e.k)?, args.take(1)?.buf(e.k * e.n)?);
    let (s, t) = (args.take(2)?.buf(e.m * blocks)?, args.take(3)?.buf(blocks * e.n)?);
    let acc = args.take(4)?.owned(e.m * e.n)?;
    let to = a.dtype().scaled(b.dtype());
    let (mut a, mut b) = (doubles(&a)?.into_owned(), doubles(&b)?.into_owned());
    // A scale stands for the elements of a block along K: next to each other in `a`, rows in `b`.
    let size = e.k / blocks;
    for (block, scale) in a.chunks_exact_mut(size).zip(doubles(&s)?.iter()) {
        block.iter_mut().for_each(|x| *x *= scale);
    }
    for (rows, scales) in b.chunks_exact_mut(size * e.n).zip(doubles(&t)?.chunks_exact(e.n)) {
        for row in rows.chunks_exact_mut(e.n) {
            row.iter_mut().zip(scales).for_each(|(x, scale)| *x *= scale);
        }
    }
    let a = cast(&Buf::F64(a), to)?.into_owned();
    let b = cast(&Buf::F64(b), to)?.into_owned();
    args.put(0, Value::tile(product(&a, &b, acc, e)?))
}

fn product(a: &Buf, b: &Buf, acc: Buf, e: Extents) -> Result<Buf, Fault> {
    Ok(match acc {
        Buf::F32(mut c) => {
            gemm(&singles(a)?, &singles(b)?, &mut c, e, 1.0)?;
            Buf::F32(c)
        }
        Buf::F64(mut c) => {
            gemm(&doubles(a)?, &doubles(b)?, &mut c, e, 1.0)?;
            Buf::F64(c)
        }
        Buf::F16(_) | Buf::BF16(_) => {
            let mut c = singles(&acc)?.into_owned();
            gemm(&singles(a)?, &singles(b)?, &mut c, e, 1.0)?;
            eval::cast(&Buf::F32(c), acc.dtype()).map_err(wrong)?
        }
        Buf::I8(_)
        | Buf::I16(_)
        | Buf::I32(_)
        | Buf::I64(_)
        | Buf::U8(_)
        | Buf::U16(_)
        | Buf::U32(_)
        | Buf::U64(_) => integers(cast(a, acc.dtype())?.as_ref(), cast(b, acc.dtype())?.as_ref(), acc, e)?,
        Buf::Bool(_)
        | Buf::F8E4M3(_)
        | Buf::F8E5M2(_)
        | Buf::F8E4M3FNUZ(_)
        | Buf::F8E5M2FNUZ(_)
        | Buf::E2M1(_)
        | Buf::E8M0(_) => {
            return Err(Fault::internal(format_args!("`dot` cannot accumulate in `{}`", acc.dtype())));
        }
    })
}

/// The product of integers of one type. The low bits of a product depend on the low bits of its factors only.
fn integers(a: &Buf, b: &Buf, acc: Buf, e: Extents) -> Result<Buf, Fault> {
    macro_rules! exact {
        ($($variant:ident)*) => {
            match (a, b, acc) {
                $((Buf::$variant(a), Buf::$variant(b), Buf::$variant(mut c)) => {
                    exact(a, b, &mut c, e, |c, a, b| c.wrapping_add(a.wrapping_mul(b)))?;
                    Ok(Buf::$variant(c))
                })*
                (_, _, acc) => Err(Fault::internal(format_args!("`dot` cannot accumulate in `{}`", acc.dtype()))),
            }
        };
    }
    exact!(I8 I16 I32 I64 U8 U16 U32 U64)
}

/// The elements in another type, exactly or (integers) by their low bits.
fn cast(x: &Buf, to: DType) -> Result<Cow<'_, Buf>, Fault> {
    if x.dtype() == to { Ok(Cow::Borrowed(x)) } else { Ok(Cow::Owned(eval::cast(x, to).map_err(wrong)?)) }
}

/// The elements as f32.
fn singles(x: &Buf) -> Result<Cow<'_, [f32]>, Fault> {
    Ok(match x {
        Buf::F32(v) => Cow::Borrowed(v),
        Buf::F16(v) => {
            let mut wide = vec![0.0; v.len()];
            v.convert_to_f32_slice(&mut wide);
            Cow::Owned(wide)
        }
        // The upper half of an f32. `half` has no vector form of this.
        Buf::BF16(v) => Cow::Owned(v.iter().map(|x| f32::from_bits(u32::from(x.to_bits()) << 16)).collect()),
        other => match eval::cast(other, DType::F32).map_err(wrong)? {
            Buf::F32(v) => Cow::Owned(v),
            _other => return Err(Fault::internal("`dot` lost its type")),
        },
    })
}

/// The elements as f64.
fn doubles(x: &Buf) -> Result<Cow<'_, [f64]>, Fault> {
    Ok(match x {
        Buf::F64(v) => Cow::Borrowed(v),
        other => match eval::cast(other, DType::F64).map_err(wrong)? {
            Buf::F64(v) => Cow::Owned(v),
            _other => return Err(Fault::internal("`dot` lost its type")),
        },
    })
}

fn check<T>(a: &[T], b: &[T], c: &[T], e: Extents) -> Result<(), Fault> {
    let fits = a.len() == e.m * e.k && b.len() == e.k * e.n && c.len() == e.m * e.n;
    if fits { Ok(()) } else { Err(Fault::internal("the operands of `dot` do not have its extents")) }
}

/// `c += a * b` in row-major order.
fn gemm<T: Copy + 'static>(a: &[T], b: &[T], c: &mut [T], e: Extents, one: T) -> Result<(), Fault> {
    check(a, b, c, e)?;
    let (k, n) = (e.k as isize, e.n as isize);
    // SAFETY: the slices hold row-major matrices of these extents, and `c` is not shared with the others. `c` is read,
    // as the first flag says. Programs are parallel already: one thread.
    unsafe {
        gemm::gemm(
            e.m,
            e.n,
            e.k,
            c.as_mut_ptr(),
            1,
            n,
            true,
            a.as_ptr(),
            1,
            k,
            b.as_ptr(),
            1,
            n,
            one,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
    Ok(())
}

/// `c += a * b` with a multiply-add of choice, a row of `b` at a time.
fn exact<T: Copy>(
    a: &[T],
    b: &[T],
    c: &mut [T],
    e: Extents,
    fma: impl Fn(T, T, T) -> T,
) -> Result<(), Fault> {
    check(a, b, c, e)?;
    for (a_row, c_row) in a.chunks_exact(e.k).zip(c.chunks_exact_mut(e.n)) {
        for (x, b_row) in a_row.iter().zip(b.chunks_exact(e.n)) {
            for (c, y) in c_row.iter_mut().zip(b_row) {
                *c = fma(*c, *x, *y);
            }
        }
    }
    Ok(())
}
