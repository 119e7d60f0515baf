//! Output of `print`: the text of values, and the order of lines.
//!
//! What is public lets a device that is not the interpreter say the same.
//!
//! Guarantees the same text for the same launch: lines are in the order of programs, those of one program in the
//! order in which it printed them.

use std::sync::{Arc, Mutex, MutexGuard};

use tk_ops::Scalar;
use tk_tile::message::{EDGE, is_cut};
use tk_tile::{ElemType, Type};

use crate::compare::index_text;
use crate::exec::pointee_size;
use crate::fault::Fault;
use crate::space::Space;
use crate::value::{NOWHERE, Pointer, Value};

/// Lines that one launch or test may print. A terminal shows a few thousand; an endless loop of prints must not fill
/// memory.
pub const MOST_LINES: usize = 10_000;

/// The line about lines that were not kept.
pub fn omitted(lines: usize) -> String {
    format!("{lines} more lines are omitted\n")
}

/// The lines that programs print; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Printed(Arc<Mutex<Lines>>);

/// Hears each line as it is printed, by a program that may never end.
pub type Echo = fn(&str);

#[derive(Debug, Default)]
struct Lines {
    echo: Option<Echo>,
    /// Of launches that have ended.
    ended: String,
    /// Of the one that runs: number of the program, line.
    running: Vec<(u64, String)>,
    left_out: usize,
}

impl Printed {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Lines that are also told at once, in the order in which they are printed.
    pub fn echoing(echo: Echo) -> Printed {
        Printed(Arc::new(Mutex::new(Lines { echo: Some(echo), ..Lines::default() })))
    }

    /// Tells a line that is kept elsewhere.
    pub fn echo(&self, line: &str) {
        let echo = self.lines().echo;
        if let Some(echo) = echo {
            echo(line);
        }
    }

    /// Takes the output of launches that ended since the last call: lines that end in a line break.
    pub fn take(&self) -> String {
        std::mem::take(&mut self.lines().ended)
    }

    /// A line of a program of the launch that runs.
    pub fn line(&self, program: [u32; 3], grid: [u32; 3], text: &str) {
        let mut lines = self.lines();
        if lines.running.len() >= MOST_LINES {
            lines.left_out += 1;
            return;
        }
        let [i, j, k] = program.map(u64::from);
        let number = (k * u64::from(grid[1]) + j) * u64::from(grid[0]) + i;
        let line = format!("program {i}, {j}, {k}: {text}\n");
        if let Some(echo) = lines.echo {
            echo(&line);
        }
        lines.running.push((number, line));
    }

    /// Lines were printed that were not kept.
    pub fn lost(&self, lines: usize) {
        self.lines().left_out += lines;
    }

    /// The launch has ended.
    pub fn end_launch(&self) {
        let mut lines = self.lines();
        let mut running = std::mem::take(&mut lines.running);
        running.sort_by_key(|(program, _)| *program);
        running.iter().for_each(|(_, line)| lines.ended.push_str(line));
        let left_out = std::mem::take(&mut lines.left_out);
        if left_out > 0 {
            lines.ended.push_str(&omitted(left_out));
        }
    }
}

/// A message with values in place of `{}`; `{{` and `}}` stand for braces.
pub(crate) fn fill(message: &str, values: &[Value], types: &[&Type], space: &Space) -> Result<String, Fault> {
    let mut values = values.iter().zip(types);
    filled(message, || {
        let (value, ty) = values.next().ok_or_else(|| Fault::internal("`print` lacks a value"))?;
        show(value, ty, space)
    })
}

/// A message with a text in place of each `{}`; `{{` and `}}` stand for braces.
pub fn filled(message: &str, mut next: impl FnMut() -> Result<String, Fault>) -> Result<String, Fault> {
    let mut out = String::with_capacity(message.len());
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('{', Some('}')) => {
                chars.next();
                out += &next()?;
            }
            ('{', Some('{')) | ('}', Some('}')) => {
                chars.next();
                out.push(c);
            }
            (c, _) => out.push(c),
        }
    }
    Ok(out)
}

pub(crate) fn show(value: &Value, ty: &Type, space: &Space) -> Result<String, Fault> {
    match (value, ty) {
        (Value::View(v), _) => Ok(view(&pointer(&v.base, 1, space), &v.shape, &v.strides)),
        (value, Type::Tile { shape, .. }) => tile(shape, &mut |i| element(&value.lane(i)?, ty, space)),
        (_, Type::View { .. }) => Err(Fault::internal("a view is expected")),
    }
}

/// The text of a view.
pub fn view(base: &str, shape: &[i64], strides: &[i64]) -> String {
    format!("view({base}, {shape:?}, {strides:?})")
}

/// The text of a tile, or of a scalar, from that of its elements.
pub fn tile(shape: &[u32], element: &mut Element<'_>) -> Result<String, Fault> {
    let mut out = String::new();
    part(shape, 0, is_cut(shape), element, &mut out)?;
    Ok(out)
}

/// The text of the element at a place in row-major order.
pub type Element<'a> = dyn FnMut(usize) -> Result<String, Fault> + 'a;

/// The part of a tile from element `first` on that has these extents.
fn part(
    shape: &[u32],
    first: usize,
    large: bool,
    element: &mut Element<'_>,
    out: &mut String,
) -> Result<(), Fault> {
    let Some((extent, inner)) = shape.split_first() else {
        *out += &element(first)?;
        return Ok(());
    };
    let step: usize = inner.iter().map(|d| *d as usize).product();
    let (extent, edge) = (*extent as usize, EDGE as usize);
    let cut = large && extent > 2 * edge;
    out.push('[');
    for i in 0..extent {
        if cut && i == edge {
            out.push_str(", ..");
        }
        if cut && (edge..extent - edge).contains(&i) {
            continue;
        }
        if i > 0 {
            out.push_str(", ");
        }
        part(inner, first + i * step, large, element, out)?;
    }
    out.push(']');
    Ok(())
}

pub(crate) fn element(value: &Value, ty: &Type, space: &Space) -> Result<String, Fault> {
    match (value, ty.elem()) {
        (Value::Ptr(p), ElemType::Ptr { .. }) => Ok(pointer(p, pointee_size(ty), space)),
        (number, _) => Ok(self::number(number.scalar()?)),
    }
}

/// The text of a number or bool.
pub fn number(s: Scalar) -> String {
    // The bits of a NaN mean nothing.
    if s.as_f64().is_some_and(f64::is_nan) { "nan".to_string() } else { s.to_string() }
}

pub(crate) fn pointer(p: &Pointer, size: usize, space: &Space) -> String {
    let name = space.entry(p).and_then(|e| e.param.as_ref()).map(|(_, name)| &**name);
    let bytes = p.offset.wrapping_mul(size as i64).wrapping_add(p.disp);
    if p.entry == NOWHERE && bytes == 0 {
        return "null".to_string();
    }
    address(name, bytes, size, space.address(p, size))
}

/// `x + 5`: a place `bytes` after the start of the buffer of the parameter `name`, in elements of `size` bytes; an
/// address where the buffer has no name.
pub fn address(name: Option<&str>, bytes: i64, size: usize, address: u64) -> String {
    let size = size.max(1) as i64;
    match name {
        Some(name) if bytes % size == 0 => format!("{name} + {}", bytes / size),
        Some(_) | None => format!("{address:#x}"),
    }
}

/// The position in a tile, for messages: `` at element `[1, 2]` ``; nothing for a scalar.
pub fn place(element: usize, shape: &[u32]) -> String {
    if shape.is_empty() { String::new() } else { format!(" at element {}", index_text(element, shape)) }
}
