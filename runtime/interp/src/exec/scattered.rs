//! Access to single elements of a view: `view_gather` and `view_scatter`.
//!
//! Accepts any extents, strides and positions. Positions outside of a view on any axis touch no memory.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_tile::ElemType;

use super::Args;
use super::pointers::stored;
use super::transfer::{Lanes, Loading, Mask, write};
use crate::fault::Fault;
use crate::space::{Denied, Space};
use crate::value::{Pointer, Value, View};

const ADVICE: &str = "the view's extents or strides do not fit its buffer";

/// The elements of a view that an access asks for.
struct Places {
    base: Pointer,
    /// Elements from the base; 0 where nothing is touched.
    offsets: Buf,
    /// The elements inside the view that are not masked off.
    touched: Vec<bool>,
}

impl Places {
    /// `n` elements at one position per axis, as far as the mask says.
    fn new(view: &View, at: Vec<Value>, mask: Value, n: usize) -> Result<Places, Fault> {
        if at.len() != view.shape.len() || view.strides.len() != view.shape.len() {
            return Err(Fault::internal("a view and a position have different ranks"));
        }
        let mask = mask.buf(n)?;
        let mut touched = mask.as_bool().ok_or_else(|| Fault::internal("a mask is not bool"))?.to_vec();
        let mut offsets = vec![0i128; n];
        for (at, (extent, stride)) in at.into_iter().zip(view.shape.iter().zip(&view.strides)) {
            let at = at.buf(n)?.to_i64().ok_or_else(|| Fault::internal("a position is not an integer"))?;
            for ((touched, offset), i) in touched.iter_mut().zip(&mut offsets).zip(&at) {
                *touched &= (0..*extent).contains(i);
                *offset = offset.saturating_add(i128::from(*i) * i128::from(*stride));
            }
        }
        // An offset that no i64 holds is in no buffer; neither is the largest one.
        let place = |(touched, offset): (&bool, &i128)| match touched {
            true => i64::try_from(*offset).unwrap_or(i64::MAX),
            false => 0,
        };
        let offsets = Buf::I64(touched.iter().zip(&offsets).map(place).collect());
        Ok(Places { base: view.base, offsets, touched })
    }

    fn lanes(&self) -> Lanes<'_> {
        Lanes::Offsets(self.base, &self.offsets)
    }
}

/// `view_gather`.
pub(super) fn gather(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let def = args.def(0)?;
    let view = args.take(0)?.view()?;
    let mut rest = args.rest(1)?;
    let (Some(other), Some(mask)) = (rest.pop(), rest.pop()) else { return Err(lacks("view_gather")) };
    let places = Places::new(&view, rest, mask, def.count)?;
    let elem = def.ty.elem();
    let mut loading = Loading::new(elem, def.count, Some(other), space)?;
    let read = loading.read(space, &places.lanes(), Mask::Lanes(&places.touched));
    read.map_err(|d: Denied| d.fault("a load from a view", elem, ADVICE))?;
    args.put(0, loading.done(space))
}

/// `view_scatter`. Of the lanes that write one place the last one wins.
pub(super) fn scatter(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let ty = args.operand(args.len().saturating_sub(2))?.ty;
    let (elem, n): (&ElemType, usize) = (ty.elem(), ty.count());
    let view = args.take(0)?.view()?;
    let mut rest = args.rest(1)?;
    let (Some(mask), Some(value)) = (rest.pop(), rest.pop()) else { return Err(lacks("view_scatter")) };
    let places = Places::new(&view, rest, mask, n)?;
    let buf: Arc<Buf> = stored(elem, value, n, space)?;
    let written = write(space, &places.lanes(), Mask::Lanes(&places.touched), &buf);
    written.map_err(|d: Denied| d.fault("a store to a view", elem, ADVICE))
}

fn lacks(op: &str) -> Fault {
    Fault::internal(format_args!("`{op}` lacks an operand"))
}
