//! The parts of a closed contract, as plain data.

use tk_ops::DType;

use crate::hir::CVarId;
use crate::target::DeviceFact;

/// An expression over the arguments of a launch. Arguments are counted as [`super::HostArg`]s are.
#[derive(Clone, Debug, PartialEq)]
pub enum Closed {
    /// A number, or a bool as 0 or 1.
    Int(i64),
    /// A number of a float type.
    Float(f64),
    /// The value of a number or bool argument.
    Number(usize),
    /// An extent of a tensor.
    Extent(usize, usize),
    /// A stride of a tensor, in elements.
    Stride(usize, usize),
    /// A fact about the device.
    Device(DeviceFact),
    /// An operation; `dtype` is that of its operands, except for [`ClosedOp::Wrap`], which converts to it.
    Op {
        /// Which one.
        op: ClosedOp,
        /// In which type.
        dtype: DType,
        /// Its operands.
        args: Vec<Closed>,
    },
}

impl Closed {
    /// The number of its numbers and operations.
    pub fn parts(&self) -> usize {
        match self {
            Closed::Op { args, .. } => 1 + args.iter().map(Closed::parts).sum::<usize>(),
            Closed::Int(_)
            | Closed::Float(_)
            | Closed::Number(_)
            | Closed::Extent(..)
            | Closed::Stride(..)
            | Closed::Device(_) => 1,
        }
    }
}

/// An operation of a closed expression. Results that do not fit the type, and divisions by zero, fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ClosedOp {
    Add,
    Sub,
    Mul,
    /// Towards zero.
    Div,
    Rem,
    /// Towards plus infinity.
    CeilDiv,
    Min,
    Max,
    Neg,
    Abs,
    /// The smallest power of two that is not less, at least 1.
    NextPow2,
    /// To an integer type with less bits, which are kept.
    Wrap,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The second operand is evaluated only if the first is true.
    And,
    /// The second operand is evaluated only if the first is false.
    Or,
    Not,
    /// `[condition, then, else]`; only the one that is chosen is evaluated.
    Select,
}

/// A workspace that the launcher provides.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedScratch {
    /// The type of the pointee.
    pub elem: tk_tile::ElemType,
    /// How many elements.
    pub count: Closed,
    /// Whether it is zero before the launch.
    pub zeroed: bool,
    /// Whether the kernel leaves it zero.
    pub restored: bool,
}

/// A compile-time parameter whose value a launch decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Decided {
    /// It is the element type of an argument.
    ByType,
    /// It is the value of its default, which reads the arguments.
    ByDefault(Closed),
    /// Given by name at launch; whether this value is its default.
    ByName {
        /// It need not be given.
        default: bool,
    },
}

/// An argument of a specialization.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedArg {
    /// Its name: `x`, `state.m`.
    pub name: String,
    /// Its type.
    pub ty: tk_tile::Type,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether it is there in this specialization.
    pub present: bool,
    /// The value of a number that is not given.
    pub default: Option<String>,
}

/// The contract of a specialization.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedContract {
    /// The arguments in the order of a launch.
    pub args: Vec<ClosedArg>,
    /// The source of the value of each compile-time parameter.
    pub decided: Vec<(CVarId, Decided)>,
    /// Conditions that need the arguments, with their texts.
    pub require: Vec<(Closed, String)>,
    /// The programs on each axis.
    pub grid: [Closed; 3],
    /// Workspaces, which follow the arguments.
    pub scratch: Vec<ClosedScratch>,
}
