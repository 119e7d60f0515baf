//! Expressions of a breakpoint or the console over scalars: numbers, comparisons, `&&`, `||`, `!`, `program_id(axis)`,
//! `num_programs(axis)`, elements of tiles.
//!
//! Guarantees what the expression has in the kernel: a literal takes the type of the other operand, in which it has to fit,
//! integers wrap around, floats are rounded to their type, and `&&` and `||` leave out what does not matter.

use std::cmp::Ordering;

use tk_interp::debug::{Data, Held};
use tk_ops::DType;
use tk_syntax::ast::{BinOp, Expr, ExprKind, Subscript, TypeKind, UnOp};
use tk_syntax::{FileId, parse_expr};

/// A value. Literals and compile-time values have no type until they meet one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer.
    Int(i128, Option<DType>),
    /// Another number.
    Number(f64, Option<DType>),
    /// A bool.
    Bool(bool),
    /// An element type.
    Type(DType),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Int(n, _) => write!(f, "{n}"),
            Scalar::Number(n, Some(dtype)) => write!(f, "{}", tk_ops::Scalar::float(*dtype, *n)),
            Scalar::Number(n, None) => write!(f, "{n}"),
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Type(dtype) => write!(f, "{dtype}"),
        }
    }
}

/// An integer of a type, which wraps around.
fn int(n: i128, dtype: Option<DType>) -> Scalar {
    Scalar::Int(dtype.and_then(|d| tk_ops::Scalar::int(d, n).as_int()).unwrap_or(n), dtype)
}

/// A number of a type, rounded to it.
fn number(n: f64, dtype: Option<DType>) -> Scalar {
    Scalar::Number(dtype.and_then(|d| tk_ops::Scalar::float(d, n).as_f64()).unwrap_or(n), dtype)
}

/// What names mean.
pub trait Names {
    /// A variable or compile-time parameter.
    fn held(&self, name: &str) -> Option<Held>;
    /// The position of the program and the extents of the grid.
    fn program(&self) -> ([u32; 3], [u32; 3]);
}

/// The value of an expression; the error is a sentence.
pub fn evaluate(text: &str, names: &dyn Names) -> Result<Scalar, String> {
    if text.trim().is_empty() {
        return Err("an expression is missing".into());
    }
    let (expr, diagnostics) = parse_expr(FileId(0), text);
    let begin = text.len() - text.trim_start().len();
    match diagnostics.first() {
        Some(d) if d.primary.span.start as usize <= begin => {
            Err(format!("`{}` is no expression", text.trim()))
        }
        Some(d) => Err(d.message.clone()),
        None => value(&expr, names),
    }
}

/// The variable, or part of one, that an expression names: `x`, `st.m`, `t[0]`.
pub fn place(text: &str, names: &dyn Names) -> Option<Held> {
    named(text, names).or_else(|| {
        let (expr, diagnostics) = parse_expr(FileId(0), text);
        if diagnostics.is_empty() { held(&expr, names).ok() } else { None }
    })
}

/// What a name, or one of a part, means; a part of a tuple is `t.0`, too.
fn named(text: &str, names: &dyn Names) -> Option<Held> {
    let mut parts = text.trim().split('.');
    let mut held = names.held(parts.next()?)?;
    for part in parts {
        let Held::Parts(inner) = held else { return None };
        held = inner.into_iter().find(|(name, _)| name == part)?.1;
    }
    Some(held)
}

fn value(e: &Expr, names: &dyn Names) -> Result<Scalar, String> {
    match &e.kind {
        ExprKind::Int(Some(n)) => Ok(i128::try_from(*n).map_or(number(*n as f64, None), |n| int(n, None))),
        ExprKind::Float(text) => {
            text.parse().map(|n| number(n, None)).map_err(|_| format!("`{text}` is no number"))
        }
        ExprKind::Bool(b) => Ok(Scalar::Bool(*b)),
        ExprKind::Path(p) => match (held(e, names), p.segments.last()) {
            (Ok(held), _) => scalar(&held),
            (Err(why), name) => name.and_then(|n| word(&n.text)).ok_or(why),
        },
        ExprKind::Member(..) => scalar(&held(e, names)?),
        ExprKind::Type(t) => match &t.kind {
            TypeKind::Path { path, member: None, args: None } => {
                let name = path.segments.last().map_or("", |n| n.text.as_str());
                word(name).ok_or_else(|| format!("there is no variable `{name}` here"))
            }
            _other => Err("this is no scalar expression".into()),
        },
        ExprKind::Index(of, at) => {
            let data = match held(of, names)? {
                Held::Data(data) => data,
                _other => return scalar(&held(e, names)?),
            };
            let data = super::variables::elements(data)?;
            let at = position(&data, at, names)?;
            element(&data, at)
        }
        ExprKind::Unary(op, e) => match (op, value(e, names)?) {
            (UnOp::Neg, Scalar::Int(n, dtype)) => Ok(int(n.wrapping_neg(), dtype)),
            (UnOp::Neg, Scalar::Number(n, dtype)) => Ok(number(-n, dtype)),
            (UnOp::Not, Scalar::Bool(b)) => Ok(Scalar::Bool(!b)),
            (_, _) => Err("a number or bool is missing".into()),
        },
        ExprKind::Binary(op, a, b) => match (op, value(a, names)?) {
            (BinOp::And, Scalar::Bool(false)) => Ok(Scalar::Bool(false)),
            (BinOp::Or, Scalar::Bool(true)) => Ok(Scalar::Bool(true)),
            (op, a) => binary(*op, a, value(b, names)?),
        },
        ExprKind::Call(f, args) => {
            let name =
                if let ExprKind::Path(p) = &f.kind { p.segments.last().map_or("", |n| &n.text) } else { "" };
            let (program, grid) = names.program();
            let of = match name {
                "program_id" => program,
                "num_programs" => grid,
                _other => return Err("only `program_id` and `num_programs` can be called here".into()),
            };
            let axis = args.first().map(|a| value(&a.value, names)).transpose()?;
            match axis {
                Some(Scalar::Int(n, _)) => {
                    let found = usize::try_from(n).ok().and_then(|n| of.get(n).copied());
                    found
                        .map(|n| int(n.into(), Some(DType::I32)))
                        .ok_or_else(|| "an axis is 0, 1 or 2".into())
                }
                Some(Scalar::Number(..) | Scalar::Bool(_) | Scalar::Type(_)) | None => {
                    Err(format!("`{name}` needs an axis"))
                }
            }
        }
        _other => Err("this is no scalar expression".into()),
    }
}

fn held(e: &Expr, names: &dyn Names) -> Result<Held, String> {
    match &e.kind {
        ExprKind::Path(p) => {
            let name = p.segments.last().map_or("", |n| n.text.as_str());
            names.held(name).ok_or_else(|| format!("there is no variable `{name}` here"))
        }
        ExprKind::Member(of, name) => match held(of, names)? {
            Held::Parts(parts) => {
                let found = parts.into_iter().find(|(n, _)| *n == name.text);
                found.map(|p| p.1).ok_or_else(|| format!("it has no part `{}`", name.text))
            }
            Held::Data(d) if name.text == "shape" && !d.is_pointer() => Ok(list(&d.shape())),
            Held::Data(d) if name.text == "strides" && d.strides().is_some() => {
                Ok(list(&d.strides().unwrap_or_default()))
            }
            Held::Data(_) | Held::Known(_) | Held::Nothing => Err(format!("it has no part `{}`", name.text)),
        },
        ExprKind::Index(of, at) => match (held(of, names)?, at.as_slice()) {
            (Held::Known(text), [Subscript::Expr(n)]) if text.starts_with('[') => {
                let items =
                    text.trim_matches(['[', ']']).split(", ").map(|t| (t.into(), Held::Known(t.into())));
                part(items.collect(), &value(n, names)?)
            }
            (Held::Parts(parts), [Subscript::Expr(n)]) => part(parts, &value(n, names)?),
            (_, _) => Err("this has no parts".into()),
        },
        _other => Err("this is no variable".into()),
    }
}

/// The part of a value at a position.
fn part(parts: Vec<(String, Held)>, at: &Scalar) -> Result<Held, String> {
    match at {
        Scalar::Int(n, _) => {
            let part = usize::try_from(*n).ok().and_then(|n| parts.into_iter().nth(n));
            part.map(|p| p.1).ok_or_else(|| format!("it has no part {n}"))
        }
        Scalar::Number(..) | Scalar::Bool(_) | Scalar::Type(_) => Err("a part is a number".into()),
    }
}

/// Integers as the compiler shows a list of them.
fn list(numbers: &[i64]) -> Held {
    Held::Known(format!("{numbers:?}"))
}

/// What a word means that is no variable.
fn word(name: &str) -> Option<Scalar> {
    match name {
        "inf" => Some(number(f64::INFINITY, None)),
        "nan" => Some(number(f64::NAN, None)),
        name => DType::ALL.into_iter().find(|d| d.name() == name).map(Scalar::Type),
    }
}

fn scalar(held: &Held) -> Result<Scalar, String> {
    match held {
        Held::Data(d) if !d.shape().is_empty() => {
            Err("this is a tile or view; name one element: `x[0, 0]`".into())
        }
        Held::Data(d) => element(d, 0),
        Held::Known(text) => match text.as_str() {
            "true" => Ok(Scalar::Bool(true)),
            "false" => Ok(Scalar::Bool(false)),
            text => match text.parse() {
                Ok(n) => Ok(int(n, None)),
                Err(_) if word(text).is_some() => word(text).ok_or_else(String::new),
                Err(_) => text.parse().map(|n| number(n, None)).map_err(|_| format!("`{text}` is no number")),
            },
        },
        Held::Nothing => Err("this has no value yet".into()),
        Held::Parts(_) => Err("this has parts".into()),
    }
}

fn element(data: &Data, at: usize) -> Result<Scalar, String> {
    if let Some(n) = data.integer(at) {
        return Ok(int(n, data.dtype()));
    }
    match (data.element(at).as_str(), data.number(at)) {
        ("true", _) => Ok(Scalar::Bool(true)),
        ("false", _) => Ok(Scalar::Bool(false)),
        (_, Some(n)) => Ok(number(n, data.dtype())),
        (text, None) => Err(format!("`{text}` is no number")),
    }
}

fn position(data: &Data, at: &[Subscript], names: &dyn Names) -> Result<usize, String> {
    let shape = data.shape();
    if shape.len() != at.len() {
        return Err(format!("this has {} dimensions", shape.len()));
    }
    let mut flat = 0usize;
    for (subscript, extent) in at.iter().zip(&shape) {
        let Subscript::Expr(e) = subscript else {
            return Err("a position is one number for each axis".into());
        };
        match value(e, names)? {
            Scalar::Int(n, _) if (0..i128::from(*extent)).contains(&n) => {
                flat = flat * *extent as usize + n as usize;
            }
            Scalar::Int(n, _) => return Err(format!("{n} is outside of 0..{extent}")),
            Scalar::Number(..) | Scalar::Bool(_) | Scalar::Type(_) => {
                return Err("a position is an integer".into());
            }
        }
    }
    Ok(flat)
}

fn binary(op: BinOp, a: Scalar, b: Scalar) -> Result<Scalar, String> {
    use Scalar::{Bool, Int, Number, Type};
    let of = |x: Scalar| match x {
        Int(_, dtype) | Number(_, dtype) => dtype,
        Bool(_) | Type(_) => None,
    };
    let dtype = match (of(a), of(b)) {
        (Some(a), Some(b)) if a == b => Some(a),
        // The narrower integer widens.
        (Some(a), Some(b)) if a.is_int() && b.is_int() && a.is_signed() == b.is_signed() => {
            Some(if a.bits() < b.bits() { b } else { a })
        }
        // Whatever their types, integers are in one order.
        (Some(a), Some(b)) if a.is_int() && b.is_int() && compares(op) => None,
        (Some(a), Some(b)) => return Err(format!("these are of two types, `{a}` and `{b}`")),
        (a, b) => a.or(b),
    };
    // A literal has the type of the other operand; an integer without one is a float beside a float.
    let is_float = dtype.is_some_and(|d| !d.is_int());
    let typed = |x: Scalar, other: Scalar| {
        let value = match (x, other) {
            (Int(n, _), Number(..)) => number(n as f64, dtype),
            (Int(n, _), _) if is_float => number(n as f64, dtype),
            (Int(n, _), _) => int(n, dtype),
            (Number(n, _), _) => number(n, dtype),
            (x, _) => x,
        };
        let fits = match (x, value) {
            (Int(from, None), Int(to, _)) => from == to,
            (Int(..), Number(to, _)) => !to.is_infinite(),
            (Number(from, None), Number(to, _)) => !from.is_finite() || !to.is_infinite(),
            (_, _) => true,
        };
        match dtype {
            Some(dtype) if !fits => Err(format!("{x} is out of range for `{dtype}`")),
            Some(_) | None => Ok(value),
        }
    };
    if dtype.is_some_and(DType::is_int) && [a, b].iter().any(|x| matches!(x, Number(..))) {
        return Err("an integer does not fit a float".into());
    }
    let (a, b) = (typed(a, b)?, typed(b, a)?);
    let too_large = || "this does not fit 128 bits".to_string();
    // Types wrap around anyway.
    let whole = |exact: Option<i128>, wrapped: i128| match dtype {
        Some(_) => Ok(int(wrapped, dtype)),
        None => exact.map(|n| int(n, None)).ok_or_else(too_large),
    };
    let by_zero = || "this divides by zero".to_string();
    Ok(match (op, a, b) {
        (BinOp::Add, Int(a, _), Int(b, _)) => whole(a.checked_add(b), a.wrapping_add(b))?,
        (BinOp::Sub, Int(a, _), Int(b, _)) => whole(a.checked_sub(b), a.wrapping_sub(b))?,
        (BinOp::Mul, Int(a, _), Int(b, _)) => whole(a.checked_mul(b), a.wrapping_mul(b))?,
        // The quotient is rounded toward zero.
        (BinOp::Div, Int(a, _), Int(b, _)) => int(a.checked_div(b).ok_or_else(by_zero)?, dtype),
        (BinOp::Rem, Int(a, _), Int(b, _)) => int(a.checked_rem(b).ok_or_else(by_zero)?, dtype),
        // 64 bits are more than twice those of a smaller type, so rounding twice is rounding once.
        (BinOp::Add, Number(a, _), Number(b, _)) => number(a + b, dtype),
        (BinOp::Sub, Number(a, _), Number(b, _)) => number(a - b, dtype),
        (BinOp::Mul, Number(a, _), Number(b, _)) => number(a * b, dtype),
        (BinOp::Div, Number(a, _), Number(b, _)) => number(a / b, dtype),
        (BinOp::Rem, Number(a, _), Number(b, _)) => number(a % b, dtype),
        (BinOp::Eq, Bool(a), Bool(b)) => Bool(a == b),
        (BinOp::Ne, Bool(a), Bool(b)) => Bool(a != b),
        (BinOp::Eq, Type(a), Type(b)) => Bool(a == b),
        (BinOp::Ne, Type(a), Type(b)) => Bool(a != b),
        (op, Int(a, _), Int(b, _)) => compared(op, Some(a.cmp(&b)))?,
        (op, Number(a, _), Number(b, _)) => compared(op, a.partial_cmp(&b))?,
        (BinOp::And, Bool(a), Bool(b)) => Bool(a && b),
        (BinOp::Or, Bool(a), Bool(b)) => Bool(a || b),
        (_, _, _) => return Err(UNFIT.into()),
    })
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
