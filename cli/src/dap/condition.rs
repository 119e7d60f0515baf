//! Expressions of a breakpoint or the console over scalars: numbers, comparisons, `&&`, `||`, `!`, casts, elements of tiles,
//! pointers and what is there, `program_id(axis)`, `num_programs(axis)`, functions of numbers.
//!
//! Guarantees that `&&` and `||` leave out what does not matter; [`super::scalar`] computes.

use tk_interp::debug::{Data, Held};
use tk_ops::DType;
use tk_syntax::ast::{Arg, BinOp, Expr, ExprKind, Subscript, TypeExpr, TypeKind, UnOp};
use tk_syntax::{FileId, parse_expr};

use super::scalar::{self, Scalar, int, number, word};

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
        ExprKind::Type(t) => of_type(t, names),
        ExprKind::Index(of, at) => {
            // A part may be a tuple, or a tile.
            let data = match held(of, names)? {
                Held::Data(data) => data,
                Held::Known(_) | Held::Nothing | Held::Parts(_) => return scalar(&held(e, names)?),
            };
            // `p[2]` of a single pointer is what is there.
            if let ([Subscript::Expr(n)], true) =
                (at.as_slice(), data.is_pointer() && data.shape().is_empty())
            {
                return match value(n, names)? {
                    Scalar::Int(n, _) => pointee(&scalar::moved(&data, n)?),
                    _other => Err("a position is an integer".into()),
                };
            }
            let data = super::variables::elements(data)?;
            let at = position(&data, at, names)?;
            element(&data, at)
        }
        ExprKind::Unary(op, e) => scalar::negated(value(e, names)?, *op == UnOp::Not),
        ExprKind::Binary(op, a, b) => match (op, value(a, names)?) {
            (BinOp::And, Scalar::Bool(false)) => Ok(Scalar::Bool(false)),
            (BinOp::Or, Scalar::Bool(true)) => Ok(Scalar::Bool(true)),
            (op, a) => scalar::binary(*op, &a, &value(b, names)?),
        },
        ExprKind::Cast(e, to) => match of_type(to, names)? {
            Scalar::Type(to) => scalar::cast(&value(e, names)?, to),
            _other => Err("a value is cast to an element type".into()),
        },
        ExprKind::Call(f, args) => call(f, args, names),
        _other => Err("this is no scalar expression".into()),
    }
}

/// What a type means as an expression: an element type, or `*p`, what is at a pointer.
fn of_type(t: &TypeExpr, names: &dyn Names) -> Result<Scalar, String> {
    match &t.kind {
        TypeKind::Path { path, member: None, args: None } => {
            let name = path.segments.last().map_or("", |n| n.text.as_str());
            let held = names.held(name).and_then(|held| scalar(&held).ok());
            held.or_else(|| word(name)).ok_or_else(|| format!("there is no variable `{name}` here"))
        }
        TypeKind::Ptr { mutable: false, pointee: to } => pointee(&of_type(to, names)?),
        _other => Err("this is no scalar expression".into()),
    }
}

/// What is at a pointer.
fn pointee(p: &Scalar) -> Result<Scalar, String> {
    let Scalar::Pointer(data) = p else { return Err(format!("`{p}` is no pointer")) };
    let found = data.pointee().ok_or_else(|| format!("`{p}` is outside of its buffer"))?;
    element(&found, 0)
}

/// `program_id(axis)`, `num_programs(axis)`, `load(p)`, and functions that compute a number of numbers.
fn call(f: &Expr, args: &[Arg], names: &dyn Names) -> Result<Scalar, String> {
    let name = if let ExprKind::Path(p) = &f.kind { p.segments.last().map_or("", |n| &n.text) } else { "" };
    let (program, grid) = names.program();
    let of = match name {
        "program_id" => program,
        "num_programs" => grid,
        "load" if args.len() == 1 => {
            return args.first().map_or(Err(String::new()), |a| pointee(&value(&a.value, names)?));
        }
        name => {
            let Some(row) = scalar::function(name) else {
                return Err(format!("`{name}` cannot be called here: only functions of numbers can"));
            };
            let args = args.iter().map(|a| value(&a.value, names)).collect::<Result<_, _>>()?;
            return scalar::called(row, args);
        }
    };
    match args.first().map(|a| value(&a.value, names)).transpose()? {
        Some(Scalar::Int(n, _)) => {
            let found = usize::try_from(n).ok().and_then(|n| of.get(n).copied());
            found.map(|n| int(n.into(), Some(DType::I32))).ok_or_else(|| "an axis is 0, 1 or 2".into())
        }
        Some(_) | None => Err(format!("`{name}` needs an axis")),
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
        _other => Err("a part is a number".into()),
    }
}

/// Integers as the compiler shows a list of them.
fn list(numbers: &[i64]) -> Held {
    Held::Known(format!("{numbers:?}"))
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
    if let Some(pointer) = data.pointer(at, 0) {
        return Ok(Scalar::Pointer(pointer));
    }
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
            _other => return Err("a position is an integer".into()),
        }
    }
    Ok(flat)
}
