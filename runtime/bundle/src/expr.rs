//! Closed expressions: [`Expr`], its value for a launch, and how it reads.
//!
//! Guarantees that evaluation ends, uses no more stack than the reader of JSON allows for nesting, and that whatever has
//! no value (a division by zero, a number that does not fit its type) is an error.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An expression over the arguments of a launch and the device. Arguments are counted from 0 in the order of
/// `Kernel::params`; bools are 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A number or bool.
    Int(i64),
    /// A floating-point number, only allowed in comparisons.
    Float(f64),
    /// The value of a number or bool argument.
    Number(u32),
    /// The address of a tensor, in bytes.
    Address(u32),
    /// An extent of a tensor: argument and axis.
    Extent(u32, u32),
    /// A stride of a tensor in elements: argument and axis.
    Stride(u32, u32),
    /// A fact about the device.
    Device(DeviceFact),
    /// An operation on other expressions.
    Apply(Operation),
}

/// A fact about the device of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceFact {
    /// Multiprocessors.
    Sms,
    /// Bytes of shared memory that one block can have.
    SharedBytes,
}

/// An operation on the values of its operands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// The operator.
    pub op: Kind,
    /// The bits of the signed integers that it computes with: 8, 16, 32 or 64. A result that does not fit is an error.
    pub bits: u32,
    /// The operands: one, two, or three for `select`.
    pub args: Vec<Expr>,
}

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`, towards zero.
    Div,
    /// The remainder of `div`.
    Rem,
    /// `a / b`, towards plus infinity.
    CeilDiv,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// `-a`
    Neg,
    /// The absolute value.
    Abs,
    /// The smallest power of two that is not less, at least 1.
    NextPow2,
    /// The lowest bits, as a signed integer.
    Wrap,
    /// The lowest bits, as an unsigned integer.
    WrapUnsigned,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a && b`: `b` is evaluated only if `a` is true.
    And,
    /// `a || b`: `b` is evaluated only if `a` is false.
    Or,
    /// `!a`
    Not,
    /// `a ? b : c`: only the chosen one is evaluated.
    Select,
}

impl Kind {
    /// The number of its operands.
    pub fn arity(self) -> usize {
        match self {
            Kind::Neg | Kind::Abs | Kind::NextPow2 | Kind::Wrap | Kind::WrapUnsigned | Kind::Not => 1,
            Kind::Select => 3,
            Kind::Add
            | Kind::Sub
            | Kind::Mul
            | Kind::Div
            | Kind::Rem
            | Kind::CeilDiv
            | Kind::Min
            | Kind::Max
            | Kind::Eq
            | Kind::Ne
            | Kind::Lt
            | Kind::Le
            | Kind::Gt
            | Kind::Ge
            | Kind::And
            | Kind::Or => 2,
        }
    }

    /// The sign between its operands, or its name before them.
    pub fn sign(self) -> Result<&'static str, &'static str> {
        match self {
            Kind::Add => Ok("+"),
            Kind::Sub => Ok("-"),
            Kind::Mul => Ok("*"),
            Kind::Div => Ok("/"),
            Kind::Rem => Ok("%"),
            Kind::Eq => Ok("=="),
            Kind::Ne => Ok("!="),
            Kind::Lt => Ok("<"),
            Kind::Le => Ok("<="),
            Kind::Gt => Ok(">"),
            Kind::Ge => Ok(">="),
            Kind::And => Ok("&&"),
            Kind::Or => Ok("||"),
            Kind::CeilDiv => Err("cdiv"),
            Kind::Min => Err("minimum"),
            Kind::Max => Err("maximum"),
            Kind::Neg => Err("-"),
            Kind::Abs => Err("abs"),
            Kind::NextPow2 => Err("next_pow2"),
            Kind::Wrap => Err("wrap"),
            Kind::WrapUnsigned => Err("wrap_unsigned"),
            Kind::Not => Err("!"),
            Kind::Select => Err("select"),
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprError {
    /// A division by zero.
    Zero,
    /// A result that does not fit its type.
    Overflow,
    /// It asks for what the launch does not have: the bundle is damaged, or another kernel's arguments were given.
    Unknown,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExprError::Zero => "it divides by zero",
            ExprError::Overflow => "a number in it does not fit its type",
            ExprError::Unknown => "it needs a value that this launch does not have",
        })
    }
}

/// The source of the arguments of a launch.
pub trait Reader {
    /// The value of a number or bool argument.
    fn number(&self, arg: usize) -> Option<Number>;
    /// The address of a tensor.
    fn address(&self, arg: usize) -> Option<u64>;
    /// An extent of a tensor.
    fn extent(&self, arg: usize, axis: usize) -> Option<i64>;
    /// A stride of a tensor.
    fn stride(&self, arg: usize, axis: usize) -> Option<i64>;
    /// A fact about the device.
    fn device(&self, fact: DeviceFact) -> Option<i64>;
}

/// A value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer or bool.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Expr {
    /// The integer or bool that it is for a launch.
    pub fn int(&self, of: &impl Reader) -> Result<i64, ExprError> {
        match self.value(of)? {
            Number::Int(i) => Ok(i),
            Number::Float(_) => Err(ExprError::Unknown),
        }
    }

    /// Evaluates it for a launch.
    pub fn holds(&self, of: &impl Reader) -> Result<bool, ExprError> {
        Ok(self.int(of)? != 0)
    }

    fn value(&self, of: &impl Reader) -> Result<Number, ExprError> {
        let known = |v: Option<i64>| v.map(Number::Int).ok_or(ExprError::Unknown);
        match self {
            Expr::Int(i) => Ok(Number::Int(*i)),
            Expr::Float(f) => Ok(Number::Float(*f)),
            Expr::Number(arg) => of.number(*arg as usize).ok_or(ExprError::Unknown),
            Expr::Address(arg) => known(of.address(*arg as usize).map(u64::cast_signed)),
            Expr::Extent(arg, axis) => known(of.extent(*arg as usize, *axis as usize)),
            Expr::Stride(arg, axis) => known(of.stride(*arg as usize, *axis as usize)),
            Expr::Device(fact) => known(of.device(*fact)),
            Expr::Apply(operation) => operation.value(of),
        }
    }

    /// The number of its parts.
    pub fn parts(&self) -> usize {
        match self {
            Expr::Apply(o) => 1 + o.args.iter().map(Expr::parts).sum::<usize>(),
            Expr::Int(_)
            | Expr::Float(_)
            | Expr::Number(_)
            | Expr::Address(_)
            | Expr::Extent(..)
            | Expr::Stride(..)
            | Expr::Device(_) => 1,
        }
    }

    /// As the language writes it, with the names of the arguments.
    pub fn text(&self, names: &[&str]) -> String {
        let name =
            |arg: &u32| names.get(*arg as usize).map_or_else(|| format!("#{arg}"), |n| (*n).to_string());
        match self {
            Expr::Int(i) => i.to_string(),
            Expr::Float(f) => format!("{f:?}"),
            Expr::Number(arg) => name(arg),
            Expr::Address(arg) => format!("{}.ptr", name(arg)),
            Expr::Extent(arg, axis) => format!("{}.shape[{axis}]", name(arg)),
            Expr::Stride(arg, axis) => format!("{}.strides[{axis}]", name(arg)),
            Expr::Device(DeviceFact::Sms) => "device.sms".to_string(),
            Expr::Device(DeviceFact::SharedBytes) => "device.smem".to_string(),
            Expr::Apply(o) => {
                let inside = |e: &Expr| match e {
                    Expr::Apply(Operation { op, .. }) if op.sign().is_ok() => format!("({})", e.text(names)),
                    _other => e.text(names),
                };
                match (o.op.sign(), o.args.as_slice()) {
                    (Ok(sign), [a, b]) => format!("{} {sign} {}", inside(a), inside(b)),
                    (Err(sign @ ("-" | "!")), [a]) => format!("{sign}{}", inside(a)),
                    (Ok(name) | Err(name), args) => {
                        let args: Vec<String> = args.iter().map(|a| a.text(names)).collect();
                        format!("{name}({})", args.join(", "))
                    }
                }
            }
        }
    }
}

impl Operation {
    fn value(&self, of: &impl Reader) -> Result<Number, ExprError> {
        let bool = |b: bool| Ok(Number::Int(i64::from(b)));
        match (self.op, self.args.as_slice()) {
            (Kind::And, [a, b]) => bool(a.holds(of)? && b.holds(of)?),
            (Kind::Or, [a, b]) => bool(a.holds(of)? || b.holds(of)?),
            (Kind::Not, [a]) => bool(!a.holds(of)?),
            (Kind::Select, [c, a, b]) => {
                if c.holds(of)? {
                    a.value(of)
                } else {
                    b.value(of)
                }
            }
            (op, [a]) => match (op, a.value(of)?) {
                (Kind::Neg, Number::Float(f)) => Ok(Number::Float(-f)),
                (op, Number::Int(i)) => self.fitting(unary(op, i, self.bits)?),
                (_, Number::Float(_)) => Err(ExprError::Unknown),
            },
            (op, [a, b]) => match (a.value(of)?, b.value(of)?) {
                (Number::Int(a), Number::Int(b)) => match compared(op, a.cmp(&b)) {
                    Some(holds) => bool(holds),
                    None => self.fitting(binary(op, a, b)?),
                },
                (Number::Float(a), Number::Float(b)) => match a.partial_cmp(&b) {
                    Some(order) => bool(compared(op, order).ok_or(ExprError::Unknown)?),
                    // NaN differs from everything.
                    None => bool(op == Kind::Ne),
                },
                (Number::Int(_), Number::Float(_)) | (Number::Float(_), Number::Int(_)) => {
                    Err(ExprError::Unknown)
                }
            },
            (_, _) => Err(ExprError::Unknown),
        }
    }

    /// An integer that fits the type.
    fn fitting(&self, v: i128) -> Result<Number, ExprError> {
        if self.op == Kind::WrapUnsigned {
            return Ok(Number::Int(v as i64));
        }
        let most = match self.bits {
            8 => i64::from(i8::MAX),
            16 => i64::from(i16::MAX),
            32 => i64::from(i32::MAX),
            64 => i64::MAX,
            _other => return Err(ExprError::Unknown),
        };
        let (lo, hi) = (-i128::from(most) - 1, i128::from(most));
        if (lo..=hi).contains(&v) { Ok(Number::Int(v as i64)) } else { Err(ExprError::Overflow) }
    }
}

fn compared(op: Kind, order: std::cmp::Ordering) -> Option<bool> {
    match op {
        Kind::Eq => Some(order.is_eq()),
        Kind::Ne => Some(order.is_ne()),
        Kind::Lt => Some(order.is_lt()),
        Kind::Le => Some(order.is_le()),
        Kind::Gt => Some(order.is_gt()),
        Kind::Ge => Some(order.is_ge()),
        Kind::Add
        | Kind::Sub
        | Kind::Mul
        | Kind::Div
        | Kind::Rem
        | Kind::CeilDiv
        | Kind::Min
        | Kind::Max
        | Kind::Neg
        | Kind::Abs
        | Kind::NextPow2
        | Kind::Wrap
        | Kind::WrapUnsigned
        | Kind::And
        | Kind::Or
        | Kind::Not
        | Kind::Select => None,
    }
}

fn unary(op: Kind, a: i64, bits: u32) -> Result<i128, ExprError> {
    let wide = i128::from(a);
    match op {
        Kind::Neg => Ok(-wide),
        Kind::Abs => Ok(wide.abs()),
        Kind::NextPow2 => {
            let least = u64::try_from(a).unwrap_or(1).max(1);
            least.checked_next_power_of_two().map(i128::from).ok_or(ExprError::Overflow)
        }
        Kind::Wrap => match bits {
            8 => Ok((a as i8).into()),
            16 => Ok((a as i16).into()),
            32 => Ok((a as i32).into()),
            _other => Err(ExprError::Unknown),
        },
        Kind::WrapUnsigned => match bits {
            8 => Ok((a as u8).into()),
            16 => Ok((a as u16).into()),
            32 => Ok((a as u32).into()),
            _other => Err(ExprError::Unknown),
        },
        _binary => Err(ExprError::Unknown),
    }
}

fn binary(op: Kind, a: i64, b: i64) -> Result<i128, ExprError> {
    let (a, b) = (i128::from(a), i128::from(b));
    match op {
        Kind::Add => Ok(a + b),
        Kind::Sub => Ok(a - b),
        Kind::Mul => Ok(a * b),
        Kind::Min => Ok(a.min(b)),
        Kind::Max => Ok(a.max(b)),
        Kind::Div | Kind::Rem | Kind::CeilDiv if b == 0 => Err(ExprError::Zero),
        Kind::Div => Ok(a / b),
        Kind::Rem => Ok(a % b),
        Kind::CeilDiv => Ok(a / b + i128::from(a % b != 0 && (a > 0) == (b > 0))),
        _unary => Err(ExprError::Unknown),
    }
}
