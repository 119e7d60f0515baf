//! The values of a command line: `name=VALUE`.
//!
//! Accepts any text. An error is one sentence that names the argument.

use std::path::Path;

use tk_ops::{DType, DTypeSet};
use tk_runtime::{Value, make, stored};

/// Splits `name=VALUE`.
pub fn split(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name.trim()) && !value.trim().is_empty() => {
            Ok((name.trim(), value.trim()))
        }
        Some(_) | None => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

/// Splits `name=PATH`, where the name may be an entry of a table, as in `table[2]`.
pub fn split_output(text: &str) -> Result<(&str, &str), String> {
    let malformed = || format!("`{text}` is not of the form NAME=VALUE");
    let (name, path) = text.split_once('=').ok_or_else(malformed)?;
    let (base, entries) =
        name.split_at_checked(name.find('[').unwrap_or(name.len())).ok_or_else(malformed)?;
    let numbers = entries
        .split_terminator(']')
        .all(|e| e.strip_prefix('[').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())));
    let closed = entries.is_empty() || entries.ends_with(']');
    if is_name(base.trim()) && numbers && closed && !path.trim().is_empty() {
        Ok((name.trim(), path.trim()))
    } else {
        Err(malformed())
    }
}

/// Names of parameters; those of a flattened struct or tuple have parts, as in `state.m` and `pair.0`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Reads a value. `wanted` are the element types that an array may have there.
pub fn parse(name: &str, text: &str, wanted: DTypeSet) -> Result<Value, String> {
    match text {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "none" => return Ok(Value::Absent),
        _ => {}
    }
    if let Ok(i) = text.parse::<i128>() {
        let known = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&i);
        return if known {
            Ok(Value::Int(i))
        } else {
            Err(format!("`{name}={text}` is too large for 64 bits"))
        };
    }
    if let Some(number) = float(text) {
        // Digits never mean infinity.
        return if number.is_finite() || text.ends_with("inf") || text.ends_with("nan") {
            Ok(Value::Float(number))
        } else {
            Err(format!("`{name}={text}` is too large for 64 bits"))
        };
    }
    let array = match make::parse(text) {
        Some(description) => Some(Value::Made(description?)),
        None if stored::is_file_name(text) || Path::new(text).is_file() => {
            Some(Value::Array(stored::read(Path::new(""), text, wanted)?))
        }
        None => None,
    };
    if let Some(array) = array {
        let found = array.tensor().map(|(dtype, _)| dtype).filter(|d| !wanted.has(*d));
        return match found {
            Some(dtype) => {
                Err(format!("{text} holds {dtype}, but `{name}` takes {wanted}{}", numpy_form(dtype, wanted)))
            }
            None => Ok(array),
        };
    }
    if text.starts_with('[') {
        return Err(format!("`{name}={text}`: `{name}` takes one tensor, not a list of them"));
    }
    let kind = text.split(':').next().unwrap_or(text);
    let hint = crate::suggest::hint(kind, &make::KINDS);
    Err(format!(
        "`{name}={text}`: not a number, an .npy or .safetensors file or an array such as zeros:f32[64]{hint}"
    ))
}

/// What NumPy makes of an array of another type: how it saves the bits of the types that it has not, where integers of their
/// width may be meant as such, and how it converts the others.
fn numpy_form(found: DType, wanted: DTypeSet) -> &'static str {
    if matches!(found, DType::U16 | DType::I16) && wanted.has(DType::BF16) {
        "; if these are the bits of bf16, save `a.view(\"V2\")`"
    } else if matches!(found, DType::U8 | DType::I8) && wanted.and(DTypeSet::F8) != DTypeSet::EMPTY {
        "; if these are the bits of fp8, save `a.view(\"V1\")`"
    } else {
        match wanted.single() {
            Some(DType::F32) => "; NumPy converts it, `a.astype(np.float32)`",
            Some(DType::F16) => "; NumPy converts it, `a.astype(np.float16)`",
            Some(DType::I32) => "; NumPy converts it, `a.astype(np.int32)`",
            Some(_) | None => "",
        }
    }
}

/// Reads a list of tensors for a table of addresses, `[x.npy, zeros:f32[8]]`; lists of lists for tables of tables.
pub fn parse_table(name: &str, text: &str, depth: u32, wanted: DTypeSet) -> Result<Value, String> {
    let form = || {
        format!("`{name}={text}`: a table of addresses takes a list of tensors, as in [x.npy, zeros:f32[8]]")
    };
    let inside = text.strip_prefix('[').ok_or_else(form)?;
    let closed = || format!("`{name}={text}`: the `]` of the list is missing");
    let inside = inside.strip_suffix(']').ok_or_else(closed)?;
    let mut entries = vec![];
    for (i, part) in split_list(inside).into_iter().enumerate() {
        let name = format!("{name}[{i}]");
        let value = if depth > 1 {
            parse_table(&name, part, depth - 1, wanted)?
        } else {
            parse(&name, part, wanted)?
        };
        if depth == 1 && value.tensor().is_none() {
            return Err(format!(
                "`{name}={part}`: an entry of a table is a tensor, as in [x.npy, zeros:f32[8]]"
            ));
        }
        entries.push(value);
    }
    Ok(Value::Table(entries))
}

/// The parts between commas that are in no brackets.
fn split_list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (vec![], 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text.get(start..).unwrap_or_default().trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

/// A float as the language writes it; Rust's other spellings (`infinity`, `NaN`) are no numbers here.
fn float(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+']);
    let plain =
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || matches!(digits, "inf" | "nan");
    text.parse().ok().filter(|_| plain)
}
