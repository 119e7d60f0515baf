//! `ptr_add`, `load` and `store`.

use std::sync::Arc;

use tk_ops::ElementwiseOp;
use tk_ops::buf::Buf;
use tk_ops::eval::{self, Operand};
use tk_tile::ElemType;

use super::Args;
use super::elementwise::wrong;
use super::transfer::{Lanes, Loading, Mask, to_memory, write};
use crate::fault::Fault;
use crate::space::{Denied, Space};
use crate::value::{Pointer, Value, for_offsets};

const ADVICE: &str = "limit it with a mask";

/// `ptr_add`: one base with offsets stays that, without work on the elements.
pub(super) fn add(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let n = args.def(0)?.count;
    let (p, by) = (args.take(0)?, args.take(1)?);
    let sum = match (p, by) {
        (Value::Ptr(p), Value::Ramp(r)) => Value::Run(p.add(r.first), r.count),
        (Value::Ptr(p), Value::Tile(offsets)) => Value::Offsets(p, offsets),
        (p, Value::Splat(by)) => {
            // u64 wraps, as an address does.
            let by = by.as_int().ok_or_else(|| Fault::internal("an offset is not an integer"))? as i64;
            match p {
                Value::Ptr(p) => Value::Ptr(p.add(by)),
                Value::Run(p, count) => Value::Run(p.add(by), count),
                Value::Offsets(base, offsets) => Value::Offsets(base.add(by), offsets),
                other => Value::lanes(other.to_lanes(n)?.into_iter().map(|p| p.add(by)).collect()),
            }
        }
        (p, by) => {
            let by = by.buf(n)?;
            match p.offsets() {
                Value::Offsets(base, first) => {
                    let mut sum = Vec::with_capacity(n);
                    for_offsets(&first, |o| sum.push(o));
                    let mut at = sum.iter_mut();
                    for_offsets(&by, |o| at.next().into_iter().for_each(|s| *s = s.saturating_add(o)));
                    Value::Offsets(base, Arc::new(Buf::I64(sum)))
                }
                other => {
                    let mut lanes = other.to_lanes(n)?;
                    let mut at = lanes.iter_mut();
                    for_offsets(&by, |o| at.next().into_iter().for_each(|p| *p = p.add(o)));
                    Value::lanes(lanes)
                }
            }
        }
    };
    args.put(0, sum)
}

/// The mask of an access: `None` if no lane takes part.
enum Lane {
    All,
    None,
    Each(Arc<Buf>),
}

fn mask_of(args: &mut Args<'_, '_>, i: usize) -> Result<Lane, Fault> {
    if args.len() <= i {
        return Ok(Lane::All);
    }
    Ok(match args.take(i)? {
        Value::Tile(lanes) => Lane::Each(lanes),
        uniform if uniform.bool()? => Lane::All,
        _none => Lane::None,
    })
}

impl Lane {
    fn mask(&self) -> Result<Mask<'_>, Fault> {
        Ok(match self {
            Lane::All => Mask::All,
            Lane::None => Mask::Lanes(&[]),
            Lane::Each(lanes) => {
                Mask::Lanes(lanes.as_bool().ok_or_else(|| Fault::internal("a mask is not bool"))?)
            }
        })
    }
}

/// `load`.
pub(super) fn load(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let def = args.def(0)?;
    let (elem, n) = (def.ty.elem(), def.count);
    let p = args.take(0)?;
    let lanes = mask_of(args, 1)?;
    let other = if args.len() > 2 { args.take(2)? } else { Value::zero(def.ty) };
    let mask = lanes.mask()?;
    let fail = |d: Denied| d.fault("`load`", elem, ADVICE);
    let value = match &p {
        _unread if matches!(lanes, Lane::None) => other,
        Value::Ptr(p) => {
            let any = match mask {
                Mask::All => true,
                Mask::Lanes(lanes) => lanes.contains(&true),
            };
            if any { blend(mask, load_one(elem, p, space)?, other, n)? } else { other }
        }
        many => {
            let mut loading = Loading::new(elem, n, masked(mask, other), space)?;
            loading.read(space, &Lanes::of(many)?, mask).map_err(fail)?;
            loading.done(space)
        }
    };
    args.put(0, value)
}

/// `other` is needed only where lanes may be masked off.
fn masked(mask: Mask<'_>, other: Value) -> Option<Value> {
    match mask {
        Mask::All => None,
        Mask::Lanes(_) => Some(other),
    }
}

/// One element.
fn load_one(elem: &ElemType, p: &Pointer, space: &Space) -> Result<Value, Fault> {
    let mut loading = Loading::new(elem, 1, None, space)?;
    let one = std::slice::from_ref(p);
    loading.read(space, &Lanes::Each(one), Mask::All).map_err(|d: Denied| d.fault("`load`", elem, ADVICE))?;
    Ok(loading.done(space))
}

/// `x` where the mask holds.
fn blend(mask: Mask<'_>, x: Value, other: Value, n: usize) -> Result<Value, Fault> {
    let Mask::Lanes(lanes) = mask else { return Ok(x) };
    if x.is_pointer() {
        let (x, other) = (x.to_lanes(n)?, other.to_lanes(n)?);
        let picked = lanes.iter().zip(x.into_iter().zip(other)).map(|(m, (x, o))| if *m { x } else { o });
        return Ok(Value::lanes(picked.collect()));
    }
    let (x, other) = (x.scalar()?, other.buf(n)?);
    let cond = Buf::Bool(lanes.to_vec());
    let operands = [Operand::Buf(&cond), Operand::Splat(x), Operand::Buf(&other)];
    Ok(Value::tile(eval::elementwise(ElementwiseOp::Select, &operands, x.dtype(), n, false).map_err(wrong)?))
}

/// `store`.
pub(super) fn store(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let ty = args.operand(1)?.ty;
    let (elem, n) = (ty.elem(), ty.count());
    let (p, value) = (args.take(0)?, args.take(1)?);
    let lanes = mask_of(args, 2)?;
    if matches!(lanes, Lane::None) {
        return Ok(());
    }
    let mask = lanes.mask()?;
    let fail = |d: Denied| d.fault("`store`", elem, ADVICE);
    match &p {
        // Checked mode looks at what each lane writes there.
        Value::Ptr(p) if space.checker.is_some() && n > 1 => {
            let buf = stored(elem, value, n, space)?;
            write(space, &Lanes::Each(&vec![*p; n]), mask, &buf).map_err(fail)
        }
        Value::Ptr(p) => {
            // Of the lanes that write one place the last one wins.
            let last = match mask {
                Mask::All => n.checked_sub(1),
                Mask::Lanes(lanes) => lanes.iter().rposition(|m| *m),
            };
            let Some(last) = last else { return Ok(()) };
            let one = to_memory(elem, value.lane(last)?, 1, space)?;
            write(space, &Lanes::Each(std::slice::from_ref(p)), Mask::All, &one).map_err(fail)
        }
        many => {
            let buf = stored(elem, value, n, space)?;
            write(space, &Lanes::of(many)?, mask, &buf).map_err(fail)
        }
    }
}

/// The elements to store, shared if they are already in place.
pub(super) fn stored(elem: &ElemType, value: Value, n: usize, space: &Space) -> Result<Arc<Buf>, Fault> {
    match (elem, value) {
        (ElemType::Scalar(d), Value::Tile(buf)) if buf.dtype() == *d && buf.len() == n => Ok(buf),
        (elem, value) => to_memory(elem, value, n, space).map(Arc::new),
    }
}
