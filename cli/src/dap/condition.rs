//! Expressions of a breakpoint or the console over scalars: numbers, comparisons, `&&`, `||`, `!`, `program_id(axis)`,
//! `num_programs(axis)`, elements of tiles.

use tk_interp::debug::{Data, Held};
use tk_syntax::ast::{BinOp, Expr, ExprKind, Subscript, UnOp};
use tk_syntax::{FileId, parse_expr};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer.
    Int(i128),
    /// Another number.
    Number(f64),
    /// A bool.
    Bool(bool),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Int(n) => write!(f, "{n}"),
            Scalar::Number(n) => write!(f, "{n}"),
            Scalar::Bool(b) => write!(f, "{b}"),
        }
    }
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
    let (expr, diagnostics) = parse_expr(FileId(0), text);
    match diagnostics.first() {
        Some(d) => Err(d.message.clone()),
        None => value(&expr, names),
    }
}

/// The variable, or part of one, that an expression names: `x`, `st.m`.
pub fn place(text: &str, names: &dyn Names) -> Option<Held> {
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
        ExprKind::Int(Some(n)) => Ok(i128::try_from(*n).map_or(Scalar::Number(*n as f64), Scalar::Int)),
        ExprKind::Float(text) => {
            text.parse().map(Scalar::Number).map_err(|_| format!("`{text}` is no number"))
        }
        ExprKind::Bool(b) => Ok(Scalar::Bool(*b)),
        ExprKind::Path(_) | ExprKind::Member(..) => scalar(&held(e, names)?),
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
            (UnOp::Neg, Scalar::Int(n)) => Ok(Scalar::Int(n.wrapping_neg())),
            (UnOp::Neg, Scalar::Number(n)) => Ok(Scalar::Number(-n)),
            (UnOp::Not, Scalar::Bool(b)) => Ok(Scalar::Bool(!b)),
            (_, _) => Err("a number or bool is missing".into()),
        },
        ExprKind::Binary(op, a, b) => binary(*op, value(a, names)?, value(b, names)?),
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
                Some(Scalar::Int(n)) => {
                    let found = usize::try_from(n).ok().and_then(|n| of.get(n).copied());
                    found.map(|n| Scalar::Int(n.into())).ok_or_else(|| "an axis is 0, 1 or 2".into())
                }
                Some(Scalar::Number(_) | Scalar::Bool(_)) | None => Err(format!("`{name}` needs an axis")),
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
            Held::Data(_) | Held::Known(_) | Held::Nothing => Err(format!("it has no part `{}`", name.text)),
        },
        ExprKind::Index(of, at) => match (held(of, names)?, at.as_slice()) {
            (Held::Parts(parts), [Subscript::Expr(n)]) => match value(n, names)? {
                Scalar::Int(n) => {
                    let part = usize::try_from(n).ok().and_then(|n| parts.into_iter().nth(n));
                    part.map(|p| p.1).ok_or_else(|| format!("it has no part {n}"))
                }
                Scalar::Number(_) | Scalar::Bool(_) => Err("a part is a number".into()),
            },
            (_, _) => Err("this has no parts".into()),
        },
        _other => Err("this is no variable".into()),
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
                Ok(n) => Ok(Scalar::Int(n)),
                Err(_) => text.parse().map(Scalar::Number).map_err(|_| format!("`{text}` is no number")),
            },
        },
        Held::Nothing => Err("this has no value yet".into()),
        Held::Parts(_) => Err("this has parts".into()),
    }
}

fn element(data: &Data, at: usize) -> Result<Scalar, String> {
    if let Some(n) = data.integer(at) {
        return Ok(Scalar::Int(n));
    }
    match (data.element(at).as_str(), data.number(at)) {
        ("true", _) => Ok(Scalar::Bool(true)),
        ("false", _) => Ok(Scalar::Bool(false)),
        (_, Some(n)) => Ok(Scalar::Number(n)),
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
            Scalar::Int(n) if (0..i128::from(*extent)).contains(&n) => {
                flat = flat * *extent as usize + n as usize;
            }
            Scalar::Int(n) => return Err(format!("{n} is outside of 0..{extent}")),
            Scalar::Number(_) | Scalar::Bool(_) => return Err("a position is an integer".into()),
        }
    }
    Ok(flat)
}

fn binary(op: BinOp, a: Scalar, b: Scalar) -> Result<Scalar, String> {
    use Scalar::{Bool, Int, Number};
    // As in the language: integers stay integers, and their quotient is rounded toward zero.
    let float = |x: Scalar| match x {
        Int(n) => Number(n as f64),
        other => other,
    };
    let (a, b) = match (a, b) {
        (Int(_), Number(_)) | (Number(_), Int(_)) => (float(a), float(b)),
        both => both,
    };
    let too_large = || "this does not fit 128 bits".to_string();
    Ok(match (op, a, b) {
        (BinOp::Add, Int(a), Int(b)) => Int(a.checked_add(b).ok_or_else(too_large)?),
        (BinOp::Sub, Int(a), Int(b)) => Int(a.checked_sub(b).ok_or_else(too_large)?),
        (BinOp::Mul, Int(a), Int(b)) => Int(a.checked_mul(b).ok_or_else(too_large)?),
        (BinOp::Div, Int(a), Int(b)) => Int(a.checked_div(b).ok_or("this divides by zero")?),
        (BinOp::Rem, Int(a), Int(b)) => Int(a.checked_rem(b).ok_or("this divides by zero")?),
        (BinOp::Lt, Int(a), Int(b)) => Bool(a < b),
        (BinOp::Le, Int(a), Int(b)) => Bool(a <= b),
        (BinOp::Gt, Int(a), Int(b)) => Bool(a > b),
        (BinOp::Ge, Int(a), Int(b)) => Bool(a >= b),
        (BinOp::Add, Number(a), Number(b)) => Number(a + b),
        (BinOp::Sub, Number(a), Number(b)) => Number(a - b),
        (BinOp::Mul, Number(a), Number(b)) => Number(a * b),
        (BinOp::Div, Number(a), Number(b)) => Number(a / b),
        (BinOp::Rem, Number(a), Number(b)) => Number(a % b),
        (BinOp::Lt, Number(a), Number(b)) => Bool(a < b),
        (BinOp::Le, Number(a), Number(b)) => Bool(a <= b),
        (BinOp::Gt, Number(a), Number(b)) => Bool(a > b),
        (BinOp::Ge, Number(a), Number(b)) => Bool(a >= b),
        (BinOp::Eq, a, b) => Bool(a == b),
        (BinOp::Ne, a, b) => Bool(a != b),
        (BinOp::And, Bool(a), Bool(b)) => Bool(a && b),
        (BinOp::Or, Bool(a), Bool(b)) => Bool(a || b),
        (_, _, _) => return Err("these operands do not fit the operator".into()),
    })
}
