//! Rearrangements of elements. Pointers are rearranged like their offsets.

use std::sync::Arc;

use tk_ops::ShapeOp;
use tk_ops::buf::Buf;
use tk_tile::Type;

use super::Args;
use crate::fault::Fault;
use crate::value::Value;

/// The places of the elements of a result in an operand.
struct Picture {
    start: isize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

/// Runs a rearrangement.
pub(super) fn run(op: ShapeOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    match op {
        ShapeOp::Reshape => {
            let x = args.take(0)?;
            args.put(0, x)
        }
        ShapeOp::Permute | ShapeOp::Broadcast | ShapeOp::Flip | ShapeOp::Slice => {
            let picture = picture(op, args)?;
            let x = args.take(0)?;
            args.put(0, picture.of(x)?)
        }
        ShapeOp::Split => split(args),
        ShapeOp::Join | ShapeOp::Interleave => {
            let n = args.operand(0)?.ty.count();
            let (a, b) = (args.take(0)?, args.take(1)?);
            let pair = [
                Part { start: 0, shape: vec![n], strides: vec![2] },
                Part { start: 1, shape: vec![n], strides: vec![2] },
            ];
            args.put(0, combine(vec![a, b], &pair, 2 * n)?)
        }
        ShapeOp::Cat => cat(args),
    }
}

fn extents(ty: &Type) -> Result<Vec<usize>, Fault> {
    let shape = ty.shape().ok_or_else(|| Fault::internal("a tile is expected, not a view"))?;
    Ok(shape.iter().map(|d| *d as usize).collect())
}

/// Strides of contiguous elements.
pub(super) fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    let mut step = 1isize;
    for (s, d) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step = step.wrapping_mul(*d as isize);
    }
    strides
}

fn picture(op: ShapeOp, args: &Args<'_, '_>) -> Result<Picture, Fault> {
    let (from, shape) = (extents(args.operand(0)?.ty)?, extents(args.def(0)?.ty)?);
    let mut strides = row_major(&from);
    let mut start = 0;
    match op {
        ShapeOp::Permute => {
            let stride = |p: &i64| usize::try_from(*p).ok().and_then(|p| strides.get(p)).copied();
            let order: Option<Vec<isize>> = args.ints("perm")?.iter().map(stride).collect();
            strides = order.ok_or_else(|| Fault::internal("a permutation is none"))?;
        }
        ShapeOp::Broadcast => {
            let repeated = strides.iter_mut().zip(&from).filter(|(_, d)| **d == 1);
            repeated.for_each(|(s, _)| *s = 0);
        }
        ShapeOp::Flip => {
            let axis = args.int("axis")? as usize;
            let (Some(s), Some(d)) = (strides.get_mut(axis), from.get(axis)) else {
                return Err(Fault::internal("an axis is out of range"));
            };
            start = (*d as isize - 1) * *s;
            *s = -*s;
        }
        ShapeOp::Slice => {
            let starts = args.ints("starts")?;
            start = starts.iter().zip(&strides).map(|(a, s)| (*a as isize).wrapping_mul(*s)).sum();
        }
        ShapeOp::Reshape | ShapeOp::Join | ShapeOp::Split | ShapeOp::Cat | ShapeOp::Interleave => {}
    }
    Ok(Picture { start, shape, strides })
}

impl Picture {
    /// The result from its operand; uniform tiles stay what they are.
    fn of(&self, x: Value) -> Result<Value, Fault> {
        let pick = |b: &Buf| b.strided(self.start, &self.shape, &self.strides);
        Ok(match x.offsets() {
            x @ (Value::Splat(_) | Value::Ptr(_)) => x,
            Value::Tile(b) => Value::tile(pick(&b)),
            Value::Ramp(r) => Value::tile(pick(&r.buf())),
            Value::Offsets(base, offsets) => offsets_of(base, pick(&offsets)),
            Value::Lanes(lanes) => {
                let places = pick(&Buf::U32((0..lanes.len() as u32).collect()));
                let lane = |i| places.get(i).as_int().and_then(|p| lanes.get(p as usize)).copied();
                let picked: Option<Vec<_>> = (0..places.len()).map(lane).collect();
                Value::lanes(picked.ok_or_else(|| Fault::internal("an element does not exist"))?)
            }
            Value::Empty | Value::View(_) | Value::Run(..) => {
                return Err(Fault::internal("a tile is expected"));
            }
        })
    }
}

fn offsets_of(base: crate::value::Pointer, offsets: Buf) -> Value {
    if offsets.len() == 1 {
        Value::Ptr(base.add(crate::value::offset_at(&offsets, 0)))
    } else {
        Value::Offsets(base, Arc::new(offsets))
    }
}

fn split(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let n = args.def(0)?.count;
    let x = args.take(0)?;
    let half = |start| Picture { start, shape: vec![n], strides: vec![2] };
    let second = half(1).of(x.clone())?;
    args.put(0, half(0).of(x)?)?;
    args.put(1, second)
}

/// The places of the elements of an operand in the result.
struct Part {
    start: isize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

fn cat(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let axis = args.int("axis")? as usize;
    let total = args.def(0)?.count;
    let strides = row_major(&extents(args.def(0)?.ty)?);
    let step = *strides.get(axis).ok_or_else(|| Fault::internal("an axis is out of range"))?;
    let mut parts = vec![];
    let mut start = 0isize;
    for i in 0..args.len() {
        let shape = extents(args.operand(i)?.ty)?;
        let extent = shape.get(axis).map_or(0, |d| *d as isize);
        parts.push(Part { start, shape, strides: strides.clone() });
        start += extent * step;
    }
    let values = args.rest(0)?;
    args.put(0, combine(values, &parts, total)?)
}

/// The tile of `total` elements that these values fill.
fn combine(values: Vec<Value>, parts: &[Part], total: usize) -> Result<Value, Fault> {
    if let [Value::Splat(first), rest @ ..] = values.as_slice()
        && rest.iter().all(|v| matches!(v, Value::Splat(s) if s == first))
    {
        return Ok(Value::Splat(*first));
    }
    let count = |p: &Part| p.shape.iter().product::<usize>();
    if values.iter().any(Value::is_pointer) {
        // Pointers may be of different buffers: each for itself, by way of their places.
        let (mut places, mut all) = (Buf::U32(vec![0; total]), vec![]);
        for (value, part) in values.iter().zip(parts) {
            let from = all.len() as u32;
            all.extend(value.to_lanes(count(part))?);
            places.put_strided(
                part.start,
                &part.shape,
                &part.strides,
                &Buf::U32((from..all.len() as u32).collect()),
            );
        }
        let lane = |i| places.get(i).as_int().and_then(|p| all.get(p as usize)).copied();
        let picked: Option<Vec<_>> = (0..total).map(lane).collect();
        return Ok(Value::lanes(picked.ok_or_else(|| Fault::internal("an element does not exist"))?));
    }
    let mut out: Option<Buf> = None;
    for (value, part) in values.into_iter().zip(parts) {
        let buf = value.buf(count(part))?;
        let out = out.get_or_insert_with(|| Buf::zeros(buf.dtype(), total));
        out.put_strided(part.start, &part.shape, &part.strides, &buf);
    }
    Ok(Value::tile(out.ok_or_else(|| Fault::internal("nothing to put together"))?))
}
