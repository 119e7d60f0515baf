//! The meaning of the operations without memory and control flow on slices, for the constant folder and the
//! interpreter.
//!
//! May assume nothing: operand counts, types and lengths are checked. Guarantees that nothing panics, that the same
//! input gives the same bits on every machine, and the rounding that the language promises.

mod cast;
mod code_ops;
mod float_ops;
mod functions;
mod int_ops;
mod lines;
mod loops;
mod order;
mod random;
mod reduce;
mod scan;

use std::fmt;

pub use cast::cast;
pub use lines::Lines;
pub use order::{gather, histogram, sort, topk};
pub use random::random;
pub use reduce::reduce;
pub use scan::scan;

use crate::buf::Buf;
use crate::dtype::DType;
use crate::elementwise::{ElementwiseOp, Group};
use crate::op::AtomicOp;
use crate::scalar::Scalar;
use loops::{Element, Source};

/// One operand of an elementwise operation.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// The same value for every element.
    Splat(Scalar),
    /// One value for each element.
    Buf(&'a Buf),
}

impl<'a> Operand<'a> {
    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Operand::Splat(s) => s.dtype(),
            Operand::Buf(b) => b.dtype(),
        }
    }

    fn source<T: Element>(&self) -> Option<Source<'a, T>> {
        match self {
            Operand::Splat(s) => T::from_scalar(*s).map(Source::Splat),
            Operand::Buf(b) => T::slice(b).map(Source::Slice),
        }
    }

    fn vector(self) -> Option<&'a Buf> {
        match self {
            Operand::Splat(_) => None,
            Operand::Buf(b) => Some(b),
        }
    }

    fn to_buf(self, n: usize) -> Buf {
        match self {
            Operand::Splat(s) => Buf::splat(s, n),
            Operand::Buf(b) => b.clone(),
        }
    }
}

/// Why an operation cannot be evaluated. The checker and the verifier rule all of these out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The operation does not work on this element type.
    Unsupported {
        /// Name of the operation.
        op: &'static str,
        /// The element type it was given.
        dtype: DType,
    },
    /// A wrong number of operands.
    OperandCount {
        /// Name of the operation.
        op: &'static str,
        /// Operands that it takes.
        expected: usize,
        /// Operands that it was given.
        found: usize,
    },
    /// An element type differs from what the other operands ask for.
    Mismatch {
        /// Name of the operation.
        op: &'static str,
        /// The element type that was needed.
        expected: DType,
        /// The element type that was found.
        found: DType,
    },
    /// A buffer has another number of elements than the shape.
    Length {
        /// Name of the operation.
        op: &'static str,
        /// Elements of the shape.
        expected: usize,
        /// Elements of the buffer.
        found: usize,
    },
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unsupported { op, dtype } => write!(f, "`{op}` does not work on `{dtype}`."),
            EvalError::OperandCount { op, expected, found } => {
                write!(f, "`{op}` takes {expected} operands, not {found}.")
            }
            EvalError::Mismatch { op, expected, found } => {
                write!(f, "`{op}` needs `{expected}` here, not `{found}`.")
            }
            EvalError::Length { op, expected, found } => {
                write!(f, "`{op}` needs {expected} elements, not {found}.")
            }
        }
    }
}

impl std::error::Error for EvalError {}

/// Evaluates an elementwise operation on `n` elements. `out` is the element type of the result. `fast` permits less
/// exact functions; this evaluation is at least as exact with it.
pub fn elementwise(
    op: ElementwiseOp,
    args: &[Operand<'_>],
    out: DType,
    n: usize,
    _fast: bool,
) -> Result<Buf, EvalError> {
    let operand = check(op, args, out)?;
    if n != 1 && args.iter().all(|a| matches!(a, Operand::Splat(_))) {
        return Ok(Buf::splat(elementwise(op, args, out, 1, _fast)?.get(0), n));
    }
    for arg in args {
        if let Operand::Buf(b) = arg
            && b.len() != n
        {
            return Err(EvalError::Length { op: op.name(), expected: n, found: b.len() });
        }
    }
    match (op, args) {
        (ElementwiseOp::Cast, [x]) => cast(&x.to_buf(n), out),
        (ElementwiseOp::Bitcast, [x]) => Buf::from_le_bytes(out, &x.to_buf(n).to_le_bytes())
            .ok_or(EvalError::Unsupported { op: op.name(), dtype: out }),
        (ElementwiseOp::Select, [c, a, b]) => select(*c, *a, *b, n),
        (op, args) => numeric(op, args, operand, n),
    }
}

/// Checks operand count and element types; gives the element type that the operation works on.
fn check(op: ElementwiseOp, args: &[Operand<'_>], out: DType) -> Result<DType, EvalError> {
    let name = op.name();
    let count = EvalError::OperandCount { op: name, expected: op.arity(), found: args.len() };
    if args.len() != op.arity() {
        return Err(count);
    }
    let mismatch = |expected, found| Err(EvalError::Mismatch { op: name, expected, found });
    let mut types = args.iter().map(Operand::dtype);
    let mut first = types.next().ok_or(count)?;
    if op == ElementwiseOp::Select {
        if first != DType::Bool {
            return mismatch(DType::Bool, first);
        }
        first = types.next().ok_or(count)?;
    }
    if !op.accepts().has(first) {
        return Err(EvalError::Unsupported { op: name, dtype: first });
    }
    let shift = matches!(op.group(), Group::Shift(_));
    for t in types {
        if shift && !t.is_int() {
            return Err(EvalError::Unsupported { op: name, dtype: t });
        }
        if !shift && t != first {
            return mismatch(first, t);
        }
    }
    match op.result().map(|r| r.of(first)) {
        Some(expected) if expected != out => return mismatch(expected, out),
        None if op == ElementwiseOp::Bitcast
            && (!op.accepts().has(out) || out.stored_bits() != first.stored_bits()) =>
        {
            return Err(EvalError::Unsupported { op: name, dtype: out });
        }
        Some(_) | None => {}
    }
    Ok(first)
}

/// The operands, if there are as many as the operation takes.
fn exactly<T: Copy, const N: usize>(op: ElementwiseOp, args: &[T]) -> Result<[T; N], EvalError> {
    let count = EvalError::OperandCount { op: op.name(), expected: op.arity(), found: args.len() };
    args.try_into().map_err(|_| count)
}

/// Everything but the conversions and `select`; `dtype` is the type of the (first) operand.
fn numeric(op: ElementwiseOp, args: &[Operand<'_>], dtype: DType, n: usize) -> Result<Buf, EvalError> {
    match dtype {
        DType::Bool => int_ops::logical(op, args, n),
        DType::I8 => int_ops::int::<i8>(op, args, n),
        DType::I16 => int_ops::int::<i16>(op, args, n),
        DType::I32 => int_ops::int::<i32>(op, args, n),
        DType::I64 => int_ops::int::<i64>(op, args, n),
        DType::U8 => int_ops::int::<u8>(op, args, n),
        DType::U16 => int_ops::int::<u16>(op, args, n),
        DType::U32 => int_ops::int::<u32>(op, args, n),
        DType::U64 => int_ops::int::<u64>(op, args, n),
        DType::F16 => float_ops::narrow::<half::f16>(op, args, n),
        DType::BF16 => float_ops::narrow::<half::bf16>(op, args, n),
        DType::F32 => float_ops::wide::<f32>(op, args, n),
        DType::F64 => float_ops::wide::<f64>(op, args, n),
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ
            if code_ops::is_of_codes(op) =>
        {
            code_ops::codes(op, args, dtype, n)
        }
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => {
            let wide: Vec<Buf> =
                args.iter().map(|a| cast(&a.to_buf(n), DType::F32)).collect::<Result<_, EvalError>>()?;
            let wide: Vec<Operand<'_>> = wide.iter().map(Operand::Buf).collect();
            float_ops::wide::<f32>(op, &wide, n)
        }
        DType::E2M1 | DType::E8M0 => Err(EvalError::Unsupported { op: op.name(), dtype }),
    }
}

/// `select(cond, a, b)` for every element type.
fn select(cond: Operand<'_>, a: Operand<'_>, b: Operand<'_>, n: usize) -> Result<Buf, EvalError> {
    let name = ElementwiseOp::Select.name();
    let cond = match cond {
        Operand::Splat(c) => return Ok(if c.as_bool() == Some(true) { a } else { b }.to_buf(n)),
        Operand::Buf(c) => c.as_bool().ok_or(EvalError::Unsupported { op: name, dtype: c.dtype() })?,
    };
    // A repeated value becomes a vector of one, so that one match over the element type is enough.
    let held = |x: Operand<'_>| match x {
        Operand::Splat(s) => Some(Buf::splat(s, 1)),
        Operand::Buf(_) => None,
    };
    let (one_a, one_b) = (held(a), held(b));
    macro_rules! pick {
        ($($variant:ident)*) => {
            match (a.vector().or(one_a.as_ref()), b.vector().or(one_b.as_ref())) {
                $((Some(Buf::$variant(a)), Some(Buf::$variant(b))) => {
                    let a = Source::held(a, one_a.is_some());
                    let b = Source::held(b, one_b.is_some());
                    Ok(Buf::$variant(loops::select(cond, a, b)))
                })*
                _differing_types => {
                    Err(EvalError::Mismatch { op: name, expected: a.dtype(), found: b.dtype() })
                }
            }
        };
    }
    pick!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F8E4M3 F8E5M2 F8E4M3FNUZ F8E5M2FNUZ F16 BF16 F32 F64 E2M1 E8M0)
}

/// What memory holds after an atomic operation that finds `old` there; `None` if it stays as it is. `compare` is looked
/// at by `cas` alone, which compares bits.
pub fn atomic(
    op: AtomicOp,
    old: Scalar,
    value: Scalar,
    compare: Scalar,
) -> Result<Option<Scalar>, EvalError> {
    let op = match op {
        AtomicOp::Add => ElementwiseOp::Add,
        AtomicOp::Max => ElementwiseOp::Maximum,
        AtomicOp::Min => ElementwiseOp::Minimum,
        AtomicOp::And => ElementwiseOp::And,
        AtomicOp::Or => ElementwiseOp::Or,
        AtomicOp::Xor => ElementwiseOp::Xor,
        AtomicOp::Xchg | AtomicOp::Store => return Ok(Some(value)),
        AtomicOp::Cas => return Ok((old == compare).then_some(value)),
        AtomicOp::Load => return Ok(None),
    };
    let operands = [Operand::Splat(old), Operand::Splat(value)];
    Ok(Some(elementwise(op, &operands, old.dtype(), 1, false)?.get(0)))
}
