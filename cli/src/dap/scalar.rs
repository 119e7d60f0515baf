//! Scalars of expressions, and what is computed with them.
//!
//! Guarantees what an operation gives in the kernel where both operands have one type there: a literal takes the type of the
//! other operand, in which it has to fit, integers wrap around, floats are rounded to their type. What a kernel refuses for
//! its types alone is computed all the same: in the wider of two types, in the float beside an integer, and exactly where
//! neither has all numbers of the other.

use std::cmp::Ordering;

use tk_interp::debug::Data;
use tk_ops::DType;
use tk_ops::eval::{self, Operand};
use tk_ops::op::Op;
use tk_ops::table::{BuiltinParam, ElemResult, ParamKind, Receiver, Row, Scheme};
use tk_syntax::ast::BinOp;

/// A value. Literals and compile-time values have no type until they meet one.
#[derive(Clone)]
pub enum Scalar {
    /// An integer.
    Int(i128, Option<DType>),
    /// Another number.
    Number(f64, Option<DType>),
    /// A bool.
    Bool(bool),
    /// An element type.
    Type(DType),
    /// A pointer.
    Pointer(Data),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Int(n, _) => write!(f, "{n}"),
            Scalar::Number(n, Some(dtype)) => write!(f, "{}", tk_ops::Scalar::float(*dtype, *n)),
            // With a point, as a float of a kernel.
            Scalar::Number(n, None) => write!(f, "{n:?}"),
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Type(dtype) => write!(f, "{dtype}"),
            Scalar::Pointer(data) => write!(f, "{}", data.text()),
        }
    }
}

impl Scalar {
    /// Its type in words; none of a literal.
    pub fn type_text(&self) -> Option<String> {
        match self {
            Scalar::Int(_, dtype) | Scalar::Number(_, dtype) => dtype.map(|d| d.to_string()),
            Scalar::Bool(_) => Some(DType::Bool.to_string()),
            Scalar::Type(_) => None,
            Scalar::Pointer(data) => Some(data.type_text()),
        }
    }

    fn dtype(&self) -> Option<DType> {
        match self {
            Scalar::Int(_, dtype) | Scalar::Number(_, dtype) => *dtype,
            Scalar::Bool(_) => Some(DType::Bool),
            Scalar::Type(_) | Scalar::Pointer(_) => None,
        }
    }

    /// The scalar of the language; a literal has the type that it has without a context.
    fn of_language(&self) -> Option<tk_ops::Scalar> {
        match self {
            Scalar::Int(n, Some(dtype)) => Some(tk_ops::Scalar::int(*dtype, *n)),
            Scalar::Int(n, None) => {
                let types = [DType::I32, DType::I64];
                types.into_iter().find_map(|d| tk_ops::Scalar::int_in_range(d, *n))
            }
            Scalar::Number(n, dtype) => Some(tk_ops::Scalar::float(dtype.unwrap_or(DType::F32), *n)),
            Scalar::Bool(b) => Some(tk_ops::Scalar::bool(*b)),
            Scalar::Type(_) | Scalar::Pointer(_) => None,
        }
    }
}

/// A scalar of the language.
fn from_language(scalar: tk_ops::Scalar) -> Option<Scalar> {
    let dtype = Some(scalar.dtype());
    let number = || scalar.as_f64().map(|n| Scalar::Number(n, dtype));
    let int = scalar.as_int().map(|n| Scalar::Int(n, dtype));
    scalar.as_bool().map(Scalar::Bool).or(int).or_else(number)
}

/// An integer of a type, which wraps around.
pub fn int(n: i128, dtype: Option<DType>) -> Scalar {
    Scalar::Int(dtype.and_then(|d| tk_ops::Scalar::int(d, n).as_int()).unwrap_or(n), dtype)
}

/// A number of a type, rounded to it.
pub fn number(n: f64, dtype: Option<DType>) -> Scalar {
    Scalar::Number(dtype.and_then(|d| tk_ops::Scalar::float(d, n).as_f64()).unwrap_or(n), dtype)
}

/// What a word means that is no variable. NaN is spelled as it is shown, too.
pub fn word(name: &str) -> Option<Scalar> {
    match name {
        "inf" => Some(number(f64::INFINITY, None)),
        "nan" | "NaN" => Some(number(f64::NAN, None)),
        name => DType::ALL.into_iter().find(|d| d.name() == name).map(Scalar::Type),
    }
}

/// `x as f16`
pub fn cast(x: &Scalar, to: DType) -> Result<Scalar, String> {
    // What a literal has beyond the types of the language without a context is not lost on the way.
    let exact = match (x, to.is_int()) {
        (Scalar::Int(n, None), true) => Some(int(*n, Some(to))),
        (Scalar::Int(n, None), false) => Some(number(*n as f64, Some(to))),
        (Scalar::Number(n, None), false) => Some(number(*n, Some(to))),
        (_, _) => None,
    };
    if let Some(exact) = exact.filter(|_| to != DType::Bool) {
        return Ok(exact);
    }
    let from = x.of_language().ok_or("only a number or a bool is cast")?;
    let cast = eval::cast(&tk_ops::buf::Buf::splat(from, 1), to).ok();
    cast.and_then(|found| from_language(found.get(0))).ok_or_else(|| format!("`{x}` cannot become `{to}`"))
}

/// The row of a function that computes one number of numbers.
pub fn function(name: &str) -> Option<&'static Row> {
    let row = tk_ops::rows::find(name, Receiver::None)?;
    let is_plain = matches!((row.op, row.scheme), (Op::Elementwise(_), Scheme::Elementwise(..)));
    let is_number = |p: &BuiltinParam| p.kind == ParamKind::Value;
    (is_plain && row.params.iter().all(|p| is_number(p) || p.default.is_some())).then_some(row)
}

/// A call of such a function.
pub fn called(row: &'static Row, args: Vec<Scalar>) -> Result<Scalar, String> {
    let name = row.name;
    let (Op::Elementwise(op), Scheme::Elementwise(set, result)) = (row.op, row.scheme) else {
        return Err(format!("`{name}` cannot be called here"));
    };
    let needs = op.arity();
    if args.len() != needs {
        return Err(format!("`{name}` takes {needs} argument{}", if needs == 1 { "" } else { "s" }));
    }
    let mut common: Option<DType> = None;
    for arg in &args {
        common = match (common, arg.dtype()) {
            (Some(a), Some(b)) if a != b => {
                return Err(format!("the arguments of `{name}` are of two types, `{a}` and `{b}`"));
            }
            (a, b) => a.or(b),
        };
    }
    let is_number = |x: &Scalar| matches!(x, Scalar::Number(..));
    // An integer becomes a float where the function takes nothing else.
    let literal = if args.iter().any(is_number) || !set.has(DType::I32) { DType::F32 } else { DType::I32 };
    let dtype = common.unwrap_or(literal);
    if !set.has(dtype) {
        return Err(format!("`{name}` does not work on `{dtype}`"));
    }
    let typed =
        args.iter().map(|x| cast(x, dtype).ok().filter(|_| dtype != DType::Bool).unwrap_or(x.clone()));
    let given: Option<Vec<tk_ops::Scalar>> = typed.map(|x| x.of_language()).collect();
    let given: Vec<Operand<'_>> =
        given.ok_or_else(|| format!("`{name}` takes numbers"))?.into_iter().map(Operand::Splat).collect();
    let out = match result {
        ElemResult::Same => dtype,
        ElemResult::Bool => DType::Bool,
        ElemResult::I32 => DType::I32,
        ElemResult::Widened => result.of(dtype),
    };
    let found = eval::elementwise(op, &given, out, 1, false).map_err(|why| why.to_string())?;
    from_language(found.get(0)).ok_or_else(|| format!("`{name}` gives no number here"))
}

/// `-x`, `!x`
pub fn negated(x: Scalar, is_logic: bool) -> Result<Scalar, String> {
    match x {
        Scalar::Int(n, dtype) if !is_logic => Ok(int(n.wrapping_neg(), dtype)),
        Scalar::Number(n, dtype) if !is_logic => Ok(number(-n, dtype)),
        Scalar::Bool(b) if is_logic => Ok(Scalar::Bool(!b)),
        _other => Err("a number or bool is missing".into()),
    }
}

/// An operation on two operands.
pub fn binary(op: BinOp, a: &Scalar, b: &Scalar) -> Result<Scalar, String> {
    use Scalar::{Bool, Int, Number, Pointer, Type};
    match (op, a, b) {
        (BinOp::Add, Pointer(p), Int(n, _)) | (BinOp::Add, Int(n, _), Pointer(p)) => moved(p, *n),
        (BinOp::Sub, Pointer(p), Int(n, _)) => moved(p, n.wrapping_neg()),
        (_, Pointer(p), Pointer(q)) => of_pointers(op, p, q),
        (BinOp::Shl | BinOp::Shr, Int(n, dtype), Int(by, _)) => Ok(shifted(op, *n, *dtype, *by)),
        (BinOp::Eq, Bool(a), Bool(b)) => Ok(Bool(a == b)),
        (BinOp::Ne, Bool(a), Bool(b)) => Ok(Bool(a != b)),
        (BinOp::And, Bool(a), Bool(b)) => Ok(Bool(*a && *b)),
        (BinOp::Or, Bool(a), Bool(b)) => Ok(Bool(*a || *b)),
        (BinOp::Eq, Type(a), Type(b)) => Ok(Bool(a == b)),
        (BinOp::Ne, Type(a), Type(b)) => Ok(Bool(a != b)),
        (_, Int(..) | Number(..), Int(..) | Number(..)) => {
            let dtype = common(op, a, b);
            match (typed(a, b, dtype)?, typed(b, a, dtype)?) {
                (Int(a, _), Int(b, _)) => of_ints(op, a, b, dtype),
                (Number(a, _), Number(b, _)) => of_floats(op, a, b, dtype),
                (_, _) => Err(UNFIT.into()),
            }
        }
        (_, _, _) => Err(UNFIT.into()),
    }
}

/// The type in which two numbers meet; none where that is the exact number.
fn common(op: BinOp, a: &Scalar, b: &Scalar) -> Option<DType> {
    match (a.dtype(), b.dtype()) {
        (Some(a), Some(b)) if a == b => Some(a),
        // The narrower integer widens.
        (Some(a), Some(b)) if a.is_int() && b.is_int() && a.is_signed() == b.is_signed() => {
            Some(if a.bits() < b.bits() { b } else { a })
        }
        // Whatever their types, integers are in one order.
        (Some(a), Some(b)) if a.is_int() && b.is_int() => None,
        (Some(a), Some(b)) if a.is_int() != b.is_int() => {
            Some(if a.is_int() { b } else { a }).filter(|_| !compares(op))
        }
        (Some(a), Some(b)) if a.bits() != b.bits() => Some(if a.bits() < b.bits() { b } else { a }),
        (Some(_), Some(_)) => None,
        // An integer beside a float literal.
        (Some(d), None) | (None, Some(d)) if d.is_int() && [a, b].iter().any(is_number) => None,
        (a, b) => a.or(b),
    }
}

fn is_number(x: &&Scalar) -> bool {
    matches!(x, Scalar::Number(..))
}

/// A number in the type in which it meets another one: a literal has to fit, an integer beside a float is one.
fn typed(x: &Scalar, other: &Scalar, dtype: Option<DType>) -> Result<Scalar, String> {
    let is_float = dtype.is_some_and(|d| !d.is_int()) || is_number(&other);
    let value = match x {
        Scalar::Int(n, _) if is_float => number(*n as f64, dtype),
        Scalar::Int(n, _) => int(*n, dtype),
        Scalar::Number(n, _) => number(*n, dtype),
        x => x.clone(),
    };
    let fits = match (x, &value) {
        (Scalar::Int(from, None), Scalar::Int(to, _)) => from == to,
        (Scalar::Int(..), Scalar::Number(to, _)) => !to.is_infinite(),
        (Scalar::Number(from, None), Scalar::Number(to, _)) => !from.is_finite() || !to.is_infinite(),
        (_, _) => true,
    };
    match dtype {
        Some(dtype) if !fits => Err(format!("{x} is out of range for `{dtype}`")),
        Some(_) | None => Ok(value),
    }
}

fn of_ints(op: BinOp, a: i128, b: i128, dtype: Option<DType>) -> Result<Scalar, String> {
    // Types wrap around anyway.
    let whole = |exact: Option<i128>, wrapped: i128| match dtype {
        Some(_) => Ok(int(wrapped, dtype)),
        None => exact.map(|n| int(n, None)).ok_or_else(|| "this does not fit 128 bits".to_string()),
    };
    let by_zero = || "this divides by zero".to_string();
    match op {
        BinOp::Add => whole(a.checked_add(b), a.wrapping_add(b)),
        BinOp::Sub => whole(a.checked_sub(b), a.wrapping_sub(b)),
        BinOp::Mul => whole(a.checked_mul(b), a.wrapping_mul(b)),
        // The quotient is rounded toward zero.
        BinOp::Div => Ok(int(a.checked_div(b).ok_or_else(by_zero)?, dtype)),
        BinOp::Rem => Ok(int(a.checked_rem(b).ok_or_else(by_zero)?, dtype)),
        BinOp::BitAnd => Ok(int(a & b, dtype)),
        BinOp::BitOr => Ok(int(a | b, dtype)),
        BinOp::BitXor => Ok(int(a ^ b, dtype)),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
            compared(op, Some(a.cmp(&b)))
        }
        BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or => Err(UNFIT.into()),
    }
}

fn of_floats(op: BinOp, a: f64, b: f64, dtype: Option<DType>) -> Result<Scalar, String> {
    match op {
        // 64 bits are more than twice those of a smaller type, so rounding twice is rounding once.
        BinOp::Add => Ok(number(a + b, dtype)),
        BinOp::Sub => Ok(number(a - b, dtype)),
        BinOp::Mul => Ok(number(a * b, dtype)),
        BinOp::Div => Ok(number(a / b, dtype)),
        BinOp::Rem => Ok(number(a % b, dtype)),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
            compared(op, a.partial_cmp(&b))
        }
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or => {
            Err(UNFIT.into())
        }
    }
}

/// `n << by`, `n >> by`: by the width or more, or by a negative amount, that is 0, or the sign of what goes right.
fn shifted(op: BinOp, n: i128, dtype: Option<DType>, by: i128) -> Scalar {
    let width = dtype.map_or(i128::BITS, DType::bits);
    let amount = u32::try_from(by).ok().filter(|by| *by < width);
    match (op, amount) {
        (BinOp::Shl, Some(by)) => int(n.wrapping_shl(by), dtype),
        (BinOp::Shl, None) => int(0, dtype),
        (_, by) => int(n >> by.unwrap_or(i128::BITS - 1), dtype),
    }
}

/// A pointer this many elements further.
pub fn moved(p: &Data, by: i128) -> Result<Scalar, String> {
    let by = i64::try_from(by).map_err(|_| "this leads out of all addresses")?;
    p.pointer(0, by).map(Scalar::Pointer).ok_or_else(|| UNFIT.into())
}

/// The elements between two pointers into one buffer, or their order.
fn of_pointers(op: BinOp, p: &Data, q: &Data) -> Result<Scalar, String> {
    match (op, p.elements_after(q)) {
        (BinOp::Eq, None) => Ok(Scalar::Bool(false)),
        (BinOp::Ne, None) => Ok(Scalar::Bool(true)),
        (_, None) => Err("these pointers lead into two buffers".into()),
        (BinOp::Sub, Some(n)) => Ok(int(n.into(), Some(DType::I64))),
        (op, Some(n)) => compared(op, Some(n.cmp(&0))),
    }
}

/// Returns true for a comparison.
fn compares(op: BinOp) -> bool {
    use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// Why an operator has no value.
const UNFIT: &str = "these operands do not fit the operator";

/// The comparison of two numbers in this order; NaN have none.
fn compared(op: BinOp, order: Option<Ordering>) -> Result<Scalar, String> {
    Ok(Scalar::Bool(match op {
        BinOp::Lt => order == Some(Ordering::Less),
        BinOp::Le => order.is_some_and(Ordering::is_le),
        BinOp::Gt => order == Some(Ordering::Greater),
        BinOp::Ge => order.is_some_and(Ordering::is_ge),
        BinOp::Eq => order == Some(Ordering::Equal),
        BinOp::Ne => order != Some(Ordering::Equal),
        _other => return Err(UNFIT.into()),
    }))
}
