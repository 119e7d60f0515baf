//! The typing facts of reductions, and element types of results.
//!
//! The verifier of the tile IR and the evaluation read the same facts here, so that they cannot disagree.

use crate::dtype::{DType, DTypeSet};
use crate::op::ReduceOp;
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
