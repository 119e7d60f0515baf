//! Owns what programs print: the text of values, and the order of lines.
//!
//! Guarantees the same text for the same launch: lines stand in the order of programs, those of one program in the order
//! in which it printed them.

use std::sync::{Arc, Mutex, MutexGuard};

use tk_tile::{Elem, Type};

use crate::exec::pointee_size;
use crate::fault::Fault;
use crate::space::Space;
use crate::value::{NOWHERE, Pointer, Value};

/// Lines that one launch may print. A terminal shows a few thousand; a loop that prints for ever must not fill memory.
const MOST: usize = 10_000;
/// Elements up to which a tile is shown whole.
const WHOLE: usize = 64;
/// Elements at either end of a dimension that are shown of a larger one, as NumPy does.
const EDGE: usize = 3;

/// The lines that programs print; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Printed(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
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

    /// What launches that have ended printed since this was last asked: lines that end in a line break.
    pub fn take(&self) -> String {
        std::mem::take(&mut self.lines().ended)
    }

    pub(crate) fn line(&self, program: [u32; 3], grid: [u32; 3], text: &str) {
        let mut lines = self.lines();
        if lines.running.len() >= MOST {
            lines.left_out += 1;
            return;
        }
        let [i, j, k] = program.map(u64::from);
        let number = (k * u64::from(grid[1]) + j) * u64::from(grid[0]) + i;
        lines.running.push((number, format!("program {i}, {j}, {k}: {text}\n")));
    }

    pub(crate) fn end_launch(&self) {
        let mut lines = self.lines();
        let mut running = std::mem::take(&mut lines.running);
        running.sort_by_key(|(program, _)| *program);
        running.iter().for_each(|(_, line)| lines.ended.push_str(line));
        let left_out = std::mem::take(&mut lines.left_out);
        if left_out > 0 {
            lines.ended.push_str(&format!("{left_out} more lines were printed and are left out\n"));
        }
    }
}

/// A message with values in place of `{}`; `{{` and `}}` stand for braces.
pub(crate) fn fill(message: &str, values: &[Value], types: &[&Type], space: &Space) -> Result<String, Fault> {
    let mut values = values.iter().zip(types);
    let mut out = String::with_capacity(message.len());
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('{', Some('}')) => {
                chars.next();
                let (value, ty) = values.next().ok_or_else(|| Fault::internal("`print` lacks a value"))?;
                show(value, ty, space, &mut out)?;
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

fn show(value: &Value, ty: &Type, space: &Space, out: &mut String) -> Result<(), Fault> {
    match (value, ty) {
        (Value::View(v), _) => {
            let base = pointer(&v.base, 1, space);
            *out += &format!("view({base}, {:?}, {:?})", v.shape, v.strides);
            Ok(())
        }
        (value, Type::Tile { shape, .. }) => tile(value, shape, 0, ty, space, out),
        (_, Type::View { .. }) => Err(Fault::internal("a view is expected")),
    }
}

/// The part of a tile from element `first` on that has these extents.
fn tile(
    value: &Value,
    shape: &[u32],
    first: usize,
    ty: &Type,
    space: &Space,
    out: &mut String,
) -> Result<(), Fault> {
    let Some((extent, inner)) = shape.split_first() else {
        *out += &element(&value.lane(first)?, ty, space)?;
        return Ok(());
    };
    let step: usize = inner.iter().map(|d| *d as usize).product();
    let extent = *extent as usize;
    let cut = ty.count() > WHOLE && extent > 2 * EDGE;
    out.push('[');
    for i in 0..extent {
        if cut && i == EDGE {
            out.push_str(", ..");
        }
        if cut && (EDGE..extent - EDGE).contains(&i) {
            continue;
        }
        if i > 0 {
            out.push_str(", ");
        }
        tile(value, inner, first + i * step, ty, space, out)?;
    }
    out.push(']');
    Ok(())
}

fn element(value: &Value, ty: &Type, space: &Space) -> Result<String, Fault> {
    match (value, ty.elem()) {
        (Value::Ptr(p), Elem::Ptr { .. }) => Ok(pointer(p, pointee_size(ty), space)),
        (number, _) => {
            let s = number.scalar()?;
            // The bits of a NaN mean nothing.
            Ok(if s.as_f64().is_some_and(f64::is_nan) { "nan".to_string() } else { s.to_string() })
        }
    }
}

/// `x + 5`, in elements of `size` bytes; an address where the buffer has no name.
pub(crate) fn pointer(p: &Pointer, size: usize, space: &Space) -> String {
    let name = space.entry(p).and_then(|e| e.param.as_ref()).map(|(_, name)| name);
    let bytes = p.offset.wrapping_mul(size as i64).wrapping_add(p.disp);
    match name {
        _ if p.entry == NOWHERE && bytes == 0 => "null".to_string(),
        Some(name) if bytes % size.max(1) as i64 == 0 => format!("{name} + {}", bytes / size.max(1) as i64),
        Some(_) | None => format!("{:#x}", space.address(p, size)),
    }
}
