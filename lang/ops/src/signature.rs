//! The typing facts of elementwise operations and reductions: operand count, element types, result type.
//!
//! The verifier of the tile IR and the evaluation read the same facts here, so that they cannot disagree.

use crate::dtype::{DType, DTypeSet};
use crate::op::{ElementwiseOp, ReduceOp};
use crate::table::ElemResult;

impl ElemResult {
    /// The element type of the result for an operand of type `t`.
    pub fn of(self, t: DType) -> DType {
        match self {
            ElemResult::Same => t,
            ElemResult::Bool => DType::Bool,
            ElemResult::I32 => DType::I32,
            ElemResult::Widened => match t {
                DType::Bool | DType::I8 | DType::I16 => DType::I32,
                DType::U8 | DType::U16 => DType::U32,
                DType::I32
                | DType::I64
                | DType::U32
                | DType::U64
                | DType::F8E4M3
                | DType::F8E5M2
                | DType::F8E4M3FNUZ
                | DType::F8E5M2FNUZ
                | DType::F16
                | DType::BF16
                | DType::F32
                | DType::F64
                | DType::E2M1
                | DType::E8M0 => t,
            },
        }
    }
}

impl ElementwiseOp {
    /// The number of operands.
    pub fn arity(self) -> usize {
        use ElementwiseOp::*;
        match self {
            Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge
            | Maximum | Minimum | MaxNum | MinNum | Pow | MulHi | CeilDiv => 2,
            Fma | Select | Clamp => 3,
            Neg | Not | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt | Floor | Ceil
            | Round | Trunc | Abs | Popcount | Clz | IsNan | IsInf | IsFinite | Cast | Bitcast | NextPow2 => {
                1
            }
        }
    }

    /// The element types it works on: those of all operands, except that the amount of a shift may be another
    /// integer and that the condition of `select` is bool.
    pub fn accepts(self) -> DTypeSet {
        use ElementwiseOp::*;
        match self {
            Add | Sub | Mul | Div | Rem => DTypeSet::NUMBER,
            Neg | Abs | Maximum | Minimum | MaxNum | MinNum | Clamp => DTypeSet::ORDERED,
            And | Or | Xor | Not => DTypeSet::INT.or(DTypeSet::BOOL),
            Shl | Shr | Popcount | Clz | CeilDiv | NextPow2 | MulHi => DTypeSet::INT,
            Eq | Ne => DTypeSet::VALUE,
            Lt | Le | Gt | Ge => DTypeSet::ORDERED,
            Fma | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt | Pow | Floor | Ceil
            | Round | Trunc => DTypeSet::FLOAT,
            IsNan | IsInf | IsFinite => DTypeSet::FLOAT.or(DTypeSet::F8),
            Select | Cast => DTypeSet::ANY,
            // A byte as `e2m1` is the code in its low four bits.
            Bitcast => DTypeSet::ANY.without(DTypeSet::BOOL),
        }
    }

    /// How the result's element type follows from that of the operands; `None` for the conversions, whose result type
    /// is chosen.
    pub fn result(self) -> Option<ElemResult> {
        use ElementwiseOp::*;
        match self {
            Cast | Bitcast => None,
            Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf | IsFinite => Some(ElemResult::Bool),
            Popcount | Clz => Some(ElemResult::I32),
            Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Neg | Not | Maximum | Minimum
            | MaxNum | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf
            | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | Abs | MulHi | CeilDiv | NextPow2 => {
                Some(ElemResult::Same)
            }
        }
    }
}

impl ReduceOp {
    /// The element types it works on; a user function takes any.
    pub fn accepts(self) -> DTypeSet {
        match self {
            ReduceOp::Sum | ReduceOp::Prod => DTypeSet::NUMBER.or(DTypeSet::BOOL),
            ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin => DTypeSet::ORDERED,
            ReduceOp::Any | ReduceOp::All => DTypeSet::BOOL,
            ReduceOp::XorSum | ReduceOp::Or => DTypeSet::INT,
            ReduceOp::Custom => DTypeSet::ANY,
        }
    }

    /// How the result's element type follows from the operand's.
    pub fn result(self) -> ElemResult {
        match self {
            ReduceOp::Sum | ReduceOp::Prod => ElemResult::Widened,
            ReduceOp::ArgMax | ReduceOp::ArgMin => ElemResult::I32,
            ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::XorSum
            | ReduceOp::Or
            | ReduceOp::Custom => ElemResult::Same,
        }
    }
}
