//! Emits each elementwise operation for one element.
//!
//! Requires operand counts and element types as verified in tile IR, and a positioned builder. Guarantees the bits of
//! the interpreter, except for payloads of NaN, for everything but the functions that the table bounds in ulp: those
//! come from [`Scalars::math`]. With `fast` the bits may differ.
//!
//! A value of an element type is one LLVM value:
//!
//! | element type | LLVM type |
//! |---|---|
//! | bool | `i1` |
//! | integers | the integer of that width |
//! | f16, bf16, f32, f64 | `half`, `bfloat`, `float`, `double` |
//! | fp8, `e8m0` | `i8`, the code |
//! | `e2m1` | `i8`, the code in the low four bits, zeros above |
//! | pointers | `i64` |
//!
//! [`TargetSpec`] states which operations are one instruction; the rest uses arithmetic that every target has. On
//! targets without f16, values are widened to f32 and rounded back by integer arithmetic, so that no support library is
//! called.

mod cast;
mod emit;
mod float;
mod int;
mod narrow;
mod rem;

use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::BasicValueEnum;
use tk_gpu::target::spec::TargetSpec;
use tk_ops::dtype::DType;
use tk_ops::op::{AtomicOp, ElementwiseOp};
use tk_ops::scalar::Scalar;

pub use crate::math::Width;

/// Emits functions of floats that are not here: the operation, the width of operands and result, whether it may be
/// approximate, and the operands. `None` if it has no code for it. With `fast` it is asked for `Div` and `Sqrt` first,
/// which fall back to the exact instruction.
pub type MathFn<'a, 'c> =
    dyn Fn(ElementwiseOp, Width, bool, &[BasicValueEnum<'c>]) -> Option<BasicValueEnum<'c>> + 'a;

/// The reason that no code is emitted. Each is a bug of the compiler, not an error of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// LLVM refused an instruction.
    Builder(String),
    /// The hook has no code for a function.
    NoFunction(ElementwiseOp, Width),
    /// Operands that the verifier rejects: their number, or their types.
    Operands(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Builder(text) => f.write_str(text),
            Error::NoFunction(op, Width::F32) => write!(f, "no code for `{}` of `f32`", op.name()),
            Error::NoFunction(op, Width::F64) => write!(f, "no code for `{}` of `f64`", op.name()),
            Error::Operands(op) => write!(f, "operands do not fit `{op}`"),
        }
    }
}

impl std::error::Error for Error {}

impl From<BuilderError> for Error {
    fn from(e: BuilderError) -> Error {
        Error::Builder(e.to_string())
    }
}

/// The operands, if their number is that of the operation.
fn exactly<T: Copy, const N: usize>(op: ElementwiseOp, args: &[T]) -> Result<[T; N], Error> {
    args.try_into().map_err(|_| Error::Operands(op.name()))
}

/// The state of the emission of code for one element.
#[derive(Clone, Copy)]
pub struct Scalars<'a, 'c> {
    /// The context of the types.
    pub context: &'c Context,
    /// The builder, at the current position.
    pub builder: &'a Builder<'c>,
    /// Receives declarations of intrinsics, and one internal function for the remainder of floats.
    pub module: &'a Module<'c>,
    /// The capabilities of the target.
    pub spec: &'static TargetSpec,
    /// The functions that are not here.
    pub math: &'a MathFn<'a, 'c>,
}

impl<'c> Scalars<'_, 'c> {
    /// The LLVM type of an element.
    pub fn element_type(&self, d: DType) -> BasicTypeEnum<'c> {
        match d {
            DType::F16 => self.context.f16_type().into(),
            DType::BF16 => self.context.bf16_type().into(),
            DType::F32 => self.context.f32_type().into(),
            DType::F64 => self.context.f64_type().into(),
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::E2M1
            | DType::E8M0 => self.code_type(d).into(),
        }
    }

    /// The integer type of the bits of an element.
    fn code_type(&self, d: DType) -> IntType<'c> {
        match d {
            DType::Bool => self.context.bool_type(),
            DType::I8
            | DType::U8
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::E2M1
            | DType::E8M0 => self.context.i8_type(),
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => self.context.i16_type(),
            DType::I32 | DType::U32 | DType::F32 => self.context.i32_type(),
            DType::I64 | DType::U64 | DType::F64 => self.context.i64_type(),
        }
    }

    /// A literal.
    pub fn constant(&self, s: Scalar) -> BasicValueEnum<'c> {
        let bits = self.code_type(s.dtype()).const_int(s.bits(), false);
        match self.element_type(s.dtype()) {
            BasicTypeEnum::FloatType(ty) => {
                // Folded to a constant. A builder without a position folds nothing, and then a NaN is the canonical
                // one.
                let folded = self.builder.build_bit_cast(bits, ty, "");
                folded.unwrap_or_else(|_| ty.const_float(s.as_f64().unwrap_or(0.0)).into())
            }
            BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::IntType(_)
            | BasicTypeEnum::PointerType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_) => bits.into(),
        }
    }

    /// One element of an elementwise operation. `from` and `to` are the element types of the operands and of the
    /// result, `None` for pointers; `fast` allows contraction and approximation.
    ///
    /// Errors: see [`Error`].
    pub fn elementwise(
        &self,
        op: ElementwiseOp,
        from: &[Option<DType>],
        to: Option<DType>,
        fast: bool,
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        let wrong = Error::Operands(op.name());
        match (op, from, args) {
            (ElementwiseOp::Select, _, [c, a, b]) => {
                Ok(self.builder.build_select(emit::int(*c)?, *a, *b, "")?)
            }
            (ElementwiseOp::Cast, [from], [x]) => match (from, to) {
                (Some(from), Some(to)) => self.cast(*x, *from, to),
                // A cast between pointer types keeps the address.
                (None, None) => Ok(*x),
                (Some(_), None) | (None, Some(_)) => Err(wrong),
            },
            (ElementwiseOp::Bitcast, _, [x]) => self.bitcast(*x, to.ok_or(wrong)?),
            (_, [Some(d), rest @ ..], args) => {
                let count = args.len() == op.arity() && from.len() == args.len();
                if !count || !op.accepts().has(*d) {
                    return Err(wrong);
                }
                if *d == DType::Bool {
                    self.logical(op, args)
                } else if d.is_int() {
                    let amount = rest.first().copied().flatten();
                    self.integer(op, *d, amount.unwrap_or(*d), args)
                } else {
                    self.float(op, *d, fast, args)
                }
            }
            (_, [] | [None, ..], _) => Err(wrong),
        }
    }

    /// The value in memory after an atomic operation that reads `old`: the step of a CAS loop on targets without an
    /// instruction for it. Only `Cas` uses `compare`, and compares bits.
    ///
    /// Errors: see [`Error`].
    pub fn atomic(
        &self,
        op: AtomicOp,
        d: DType,
        old: BasicValueEnum<'c>,
        value: BasicValueEnum<'c>,
        compare: Option<BasicValueEnum<'c>>,
    ) -> Result<BasicValueEnum<'c>, Error> {
        let op = match op {
            AtomicOp::Add => ElementwiseOp::Add,
            AtomicOp::Max => ElementwiseOp::Maximum,
            AtomicOp::Min => ElementwiseOp::Minimum,
            AtomicOp::And => ElementwiseOp::And,
            AtomicOp::Or => ElementwiseOp::Or,
            AtomicOp::Xor => ElementwiseOp::Xor,
            AtomicOp::Xchg | AtomicOp::Store => return Ok(value),
            AtomicOp::Load => return Ok(old),
            AtomicOp::Cas => {
                let compare = compare.ok_or(Error::Operands(op.name()))?;
                let same = self.equal_bits(d, old, compare)?;
                return Ok(self.builder.build_select(same, value, old, "")?);
            }
        };
        self.elementwise(op, &[Some(d), Some(d)], Some(d), false, &[old, value])
    }
}
