//! Views: making them, taking parts of them, and moving boxes between them and tiles.
//!
//! Accepts any i64 as extent, stride or position. Positions outside of a view touch no memory.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_ops::scalar::Scalar;
use tk_ops::with_buf;
use tk_tile::{ElemType, Type};

use super::Args;
use super::elementwise::elem_size;
use super::pointers::stored;
use super::shape::row_major;
use super::strided::{Boxes, Dim};
use super::transfer::Loading;
use crate::checked::{lanes, promises};
use crate::fault::Fault;
use crate::space::{Access, Denied, Space};
use crate::value::{Value, View};

const ADVICE: &str = "the view's extents or strides do not fit its buffer";

/// `view`.
pub(super) fn make(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let rank = (args.len().saturating_sub(1)) / 2;
    let base = args.take(0)?.pointer()?;
    let numbers: Vec<i64> = args.rest(1)?.iter().map(Value::index).collect::<Result<_, _>>()?;
    let (shape, strides) = numbers.split_at(rank.min(numbers.len()));
    args.put(0, Value::View(Arc::new(View { base, shape: shape.to_vec(), strides: strides.to_vec() })))
}

fn along(list: &[i64], axis: i64) -> Result<i64, Fault> {
    let found = usize::try_from(axis).ok().and_then(|a| list.get(a)).copied();
    found.ok_or_else(|| Fault::internal("an axis of a view is out of range"))
}

fn put_int(args: &mut Args<'_, '_>, v: i64) -> Result<(), Fault> {
    let dtype = args.def(0)?.ty.dtype().ok_or_else(|| Fault::internal("an extent is not a number"))?;
    args.put(0, Value::int(dtype, v))
}

/// `view_shape`.
pub(super) fn shape(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let extent = along(&args.take(0)?.view()?.shape, args.int("axis")?)?;
    put_int(args, extent)
}

/// `view_stride`.
pub(super) fn stride(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let stride = along(&args.take(0)?.view()?.strides, args.int("axis")?)?;
    put_int(args, stride)
}

/// `view_ptr`.
pub(super) fn base(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let base = args.take(0)?.view()?.base;
    args.put(0, Value::Ptr(base))
}

/// `view_slice`. An index outside makes every extent of the result 0.
pub(super) fn slice(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let axes = args.ints("axes")?;
    let view = args.take(0)?.view()?;
    let at: Vec<i64> = args.rest(1)?.iter().map(Value::index).collect::<Result<_, _>>()?;
    let mut at = at.into_iter();
    let mut next = || at.next().ok_or_else(|| Fault::internal("`view_slice` lacks a position"));
    let mut part = View { base: view.base, shape: vec![], strides: vec![] };
    let mut outside = false;
    for (kind, (extent, stride)) in axes.iter().zip(view.shape.iter().zip(&view.strides)) {
        let (start, kept) = match kind {
            0 => {
                let i = next()?;
                if space.checker.is_some() {
                    promises::indices(&[i], &[], *extent, "a dimension")?;
                }
                outside |= i < 0 || i >= *extent;
                (i, None)
            }
            1 => (0, Some(*extent)),
            _range => {
                let end = (*extent).max(0);
                let (a, b) = (next()?.clamp(0, end), next()?.clamp(0, end));
                (a, Some((b - a).max(0)))
            }
        };
        part.base = part.base.add(start.wrapping_mul(*stride));
        if let Some(extent) = kept {
            part.shape.push(extent);
            part.strides.push(*stride);
        }
    }
    if outside {
        part.shape.iter_mut().for_each(|d| *d = 0);
    }
    args.put(0, Value::View(Arc::new(part)))
}

/// `view_permute`.
pub(super) fn permute(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let perm = args.ints("perm")?;
    let view = args.take(0)?.view()?;
    let shape = perm.iter().map(|p| along(&view.shape, *p)).collect::<Result<_, _>>()?;
    let strides = perm.iter().map(|p| along(&view.strides, *p)).collect::<Result<_, _>>()?;
    args.put(0, Value::View(Arc::new(View { base: view.base, shape, strides })))
}

/// The part of a box of a tile that is inside a view.
struct Clip {
    /// Extents of the tile.
    tile: Vec<usize>,
    /// Per axis: the first element of the tile that is inside and the one after the last; empty if none is.
    inside: Vec<std::ops::Range<usize>>,
}

impl Clip {
    /// A tile of this shape at this position; a scalar is a tile of one element.
    fn new(view: &View, at: &[i64], ty: &Type) -> Result<Clip, Fault> {
        let rank = view.shape.len();
        let tile: Vec<usize> = match ty.shape() {
            Some([]) => vec![1; rank],
            Some(shape) if shape.len() == rank => shape.iter().map(|d| *d as usize).collect(),
            Some(_) | None => return Err(Fault::internal("a box and a view have different ranks")),
        };
        if at.len() != rank || view.strides.len() != rank {
            return Err(Fault::internal("a view and a position have different ranks"));
        }
        let range = |((at, extent), n): ((&i64, &i64), &usize)| {
            let limit = |v: i64| v.clamp(0, *n as i64) as usize;
            limit(0i64.saturating_sub(*at))..limit(extent.saturating_sub(*at))
        };
        let inside: Vec<_> = at.iter().zip(&view.shape).zip(&tile).map(range).collect();
        Ok(Clip { tile, inside })
    }

    fn is_empty(&self) -> bool {
        self.inside.iter().any(|r| r.is_empty())
    }

    fn is_full(&self) -> bool {
        self.inside.iter().zip(&self.tile).all(|(r, n)| r.start == 0 && r.end == *n)
    }

    fn count(&self) -> usize {
        self.tile.iter().product()
    }

    /// The boxes in memory and tile; not for an empty part.
    fn boxes(&self, view: &View, at: &[i64]) -> Boxes {
        let steps = row_major(&self.tile);
        let (mut memory, mut first) = (0i128, 0usize);
        for (((r, at), stride), step) in self.inside.iter().zip(at).zip(&view.strides).zip(&steps) {
            // The index is inside the extent: of an axis of extent 1 it is 0, and the stride does not matter.
            memory = memory.saturating_add((i128::from(*at) + r.start as i128) * i128::from(*stride));
            first += r.start * *step as usize;
        }
        let dims = self.inside.iter().zip(&view.strides).zip(&steps);
        let dims =
            dims.map(|((r, stride), step)| Dim { count: r.len(), memory: *stride, tile: *step as usize });
        Boxes::new(dims, memory, first)
    }
}

fn positions(values: &[Value]) -> Result<Vec<i64>, Fault> {
    values.iter().map(Value::index).collect()
}

/// `view_load`.
pub(super) fn load(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let view = args.take(0)?.view()?;
    let mut rest = args.rest(1)?;
    let other = if rest.len() > view.shape.len() { rest.pop() } else { None };
    let value = load_box(&view, &positions(&rest)?, other, args.def(0)?.ty, space)?;
    args.put(0, value)
}

fn load_box(view: &View, at: &[i64], other: Option<Value>, ty: &Type, space: &Space) -> Result<Value, Fault> {
    let clip = Clip::new(view, at, ty)?;
    if clip.is_empty() {
        return Ok(other.unwrap_or_else(|| Value::zero(ty)));
    }
    let (elem, size) = (ty.elem(), elem_size(ty.elem()));
    let boxes = clip.boxes(view, at);
    let (lo, hi) = boxes.hull();
    let lowest = space.locate_hull(&view.base, size, lo, hi);
    let lowest = lowest.map_err(|d: Denied| d.fault("a load from a view", elem, ADVICE))?;
    if space.is_observed() {
        let told = touch(space, view, &boxes, size, Access::READ);
        told.map_err(|d: Denied| d.fault("a load from a view", elem, ADVICE))?;
    }
    let other = if clip.is_full() { None } else { other };
    let mut loading = Loading::new(elem, clip.count(), other, space)?;
    // SAFETY: the hull was located, the buffer has an element of `size` bytes for every element of the tile.
    unsafe { boxes.copy::<true>(size, lowest, loading.raw()) };
    Ok(loading.done(space))
}

/// Tells observers of every element of a box that was located.
fn touch(space: &Space, view: &View, boxes: &Boxes, size: usize, access: Access) -> Result<(), Denied> {
    let mut told = Ok(());
    boxes.each_run(|first, count| {
        if told.is_ok() {
            told = space.touch(&view.base, size, first, count, access);
        }
    });
    told
}

/// `view_store`.
pub(super) fn store(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let ty = args.operand(args.len().saturating_sub(1))?.ty;
    let view = args.take(0)?.view()?;
    let mut rest = args.rest(1)?;
    let value = rest.pop().ok_or_else(|| Fault::internal("`view_store` lacks a value"))?;
    store_box(&view, &positions(&rest)?, value, ty, space)
}

fn store_box(view: &View, at: &[i64], value: Value, ty: &Type, space: &Space) -> Result<(), Fault> {
    let clip = Clip::new(view, at, ty)?;
    if clip.is_empty() {
        return Ok(());
    }
    let (elem, size) = (ty.elem(), elem_size(ty.elem()));
    let boxes = clip.boxes(view, at);
    let (lo, hi) = boxes.hull();
    let lowest = space.locate_hull(&view.base, size, lo, hi);
    let lowest = lowest.map_err(|d: Denied| d.fault("a store to a view", elem, ADVICE))?;
    let buf = stored(elem, value, clip.count(), space)?;
    if space.is_observed() {
        let told = touch(space, view, &boxes, size, Access::WRITE);
        told.map_err(|d: Denied| d.fault("a store to a view", elem, ADVICE))?;
    }
    if space.checker.is_some() && boxes.may_overlap() {
        let mut places = vec![];
        boxes.each(|memory, lane| places.push((view.base.add(memory), lane)));
        lanes::differ(space, size, places.into_iter(), &buf).map_err(|fault| *fault)?;
    }
    let tile = with_buf!(&*buf, v => v.as_ptr().cast::<u8>());
    // SAFETY: the hull was located, the buffer has an element of `size` bytes for every element of the tile, which is
    // only read.
    unsafe { boxes.copy::<false>(size, lowest, tile.cast_mut()) };
    Ok(())
}

/// `view_inside`.
pub(super) fn inside(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let view = args.take(0)?.view()?;
    let at = positions(&args.rest(1)?)?;
    let clip = Clip::new(&view, &at, args.def(0)?.ty)?;
    if clip.is_empty() || clip.is_full() {
        return args.put(0, Value::Splat(Scalar::bool(!clip.is_empty())));
    }
    let mut out = Buf::Bool(vec![false; clip.count()]);
    let strides = row_major(&clip.tile);
    let start = clip.inside.iter().zip(&strides).map(|(r, s)| r.start as isize * s).sum();
    let extents: Vec<usize> = clip.inside.iter().map(|r| r.len()).collect();
    let holds = Buf::Bool(vec![true; extents.iter().product()]);
    out.put_strided(start, &extents, &strides, &holds);
    args.put(0, Value::tile(out))
}

/// A whole view as a tile of type `ty`, for the host.
pub(crate) fn load_all(view: &View, ty: &Type, space: &Space) -> Result<Value, Fault> {
    load_box(view, &vec![0; view.shape.len()], None, ty, space)
}

/// A contiguous view of these extents.
pub(crate) fn contiguous(base: crate::value::Pointer, shape: Vec<i64>) -> View {
    let mut step = 1i64;
    let mut strides = vec![1; shape.len()];
    for (stride, extent) in strides.iter_mut().zip(&shape).rev() {
        *stride = step;
        step = step.wrapping_mul(*extent);
    }
    View { base, shape, strides }
}

/// The bytes of a tile as they are in memory.
pub(crate) fn tile_bytes(elem: &ElemType, value: Value, n: usize, space: &Space) -> Result<Vec<u8>, Fault> {
    Ok(stored(elem, value, n, space)?.to_le_bytes())
}
