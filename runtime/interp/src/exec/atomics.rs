//! Atomics: one after the other of the lanes of an instruction reads and writes memory while the memory is locked.
//!
//! Guarantees that no other atomic of any program on the same memory comes in between, whatever its order and scope,
//! and that what a program did before one is seen after a later one of another program: the lock orders both.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_ops::eval;
use tk_ops::{AtomicOp, DType, Scalar};
use tk_tile::{ElemType, Type};

use super::Args;
use super::elementwise::wrong;
use crate::checked::Ordering;
use crate::fault::Fault;
use crate::space::{Access, Space};
use crate::value::{Pointer, Value, View};

/// The memory that the lanes access.
enum Target {
    Pointers(Value),
    /// A view and positions, one per axis.
    View(Arc<View>, Vec<Value>),
}

impl Target {
    /// The place of lane `i`; `None` outside of a view.
    fn at(&self, i: usize) -> Result<Option<Pointer>, Fault> {
        match self {
            Target::Pointers(p) => match p.lane(i)? {
                Value::Ptr(p) => Ok(Some(p)),
                other => Err(Fault::internal(format_args!("a pointer is expected, not {}", other.kind()))),
            },
            Target::View(view, at) => {
                let mut p = view.base;
                for ((at, extent), stride) in at.iter().zip(&view.shape).zip(&view.strides) {
                    let at = at.lane(i)?.index()?;
                    if at < 0 || at >= *extent {
                        return Ok(None);
                    }
                    p = p.add(at.wrapping_mul(*stride));
                }
                Ok(Some(p))
            }
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Target::Pointers(_) => "limit it with a mask",
            Target::View(..) => "the view's extents or strides do not fit its buffer",
        }
    }
}

/// The memory ordering and scope of an atomic.
struct Meaning {
    access: Access,
    order: Ordering,
}

impl Meaning {
    fn new(op: AtomicOp, args: &Args<'_, '_>) -> Meaning {
        // Atomics of a block are for the lanes of one program: to another one they are plain accesses.
        let atomic = args.step.attrs.str("scope") != Some("block");
        let unread = args.step.defs.first().is_none_or(|d| d.dead);
        let order = if atomic { args.step.attrs.str("order").unwrap_or_default() } else { "" };
        Meaning {
            // An exchange whose results are unused is a store.
            access: Access {
                reads: op != AtomicOp::Store && !(op == AtomicOp::Xchg && unread),
                writes: op != AtomicOp::Load,
                atomic,
            },
            order: Ordering {
                acquire: matches!(order, "acquire" | "acq_rel"),
                release: matches!(order, "release" | "acq_rel"),
                store: op == AtomicOp::Store,
            },
        }
    }

    /// It acted on one element; `wrote` is false for a comparison that failed.
    fn happened(&self, space: &Space, p: &Pointer, dtype: DType, wrote: bool) {
        if let (Some(checker), Some(entry)) = (&space.checker, space.entry(p)) {
            let at = space.address(p, dtype.bytes()).saturating_sub(entry.allocation.base);
            checker.atomic(entry, at as usize, self.order, wrote);
        }
    }

    /// It has acted on all.
    fn done(&self, space: &Space) {
        if let (Some(checker), true) = (&space.checker, self.order.release) {
            checker.released();
        }
    }
}

/// Runs an atomic operation.
pub(super) fn run(op: AtomicOp, args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let (dtype, n, mut next) = layout(args.operand(0)?.ty, args)?;
    let target = match args.take(0)? {
        Value::View(view) => {
            Target::View(view, (1..next).map(|i| args.take(i)).collect::<Result<Vec<_>, _>>()?)
        }
        pointers => Target::Pointers(pointers),
    };
    let mut operand = |wanted: bool| -> Result<Option<Value>, Fault> {
        if !wanted || next >= args.len() {
            return Ok(None);
        }
        next += 1;
        args.take(next - 1).map(Some)
    };
    let compare = operand(op == AtomicOp::Cas)?;
    let value = operand(op != AtomicOp::Load)?;
    let mask = operand(true)?;
    let mut before = match operand(true)? {
        Some(other) => other.owned(n)?,
        None => Buf::zeros(dtype, n),
    };
    let meaning = Meaning::new(op, args);
    let alone = space.alone();
    for i in 0..n {
        let takes_part = mask.as_ref().map_or(Ok(true), |m| m.lane(i)?.bool())?;
        let place = if takes_part { target.at(i)? } else { None };
        let Some(p) = place else { continue };
        let memory = space
            .locate_run(&p, dtype.bytes(), 0, 1, meaning.access)
            .map_err(|d| d.fault(&format!("`{}`", op.name()), &ElemType::Scalar(dtype), target.advice()))?;
        // SAFETY: the place was located for one element of this size.
        let old = unsafe { read(memory, dtype) };
        before.set(i, old);
        let lane = |v: &Option<Value>| match v {
            Some(v) => v.lane(i)?.scalar(),
            None => Ok(old),
        };
        let after = eval::atomic(op, old, lane(&value)?, lane(&compare)?).map_err(wrong)?;
        if let Some(after) = after {
            // SAFETY: as above.
            unsafe { write(memory, after) };
        }
        meaning.happened(space, &p, dtype, after.is_some());
    }
    drop(alone);
    meaning.done(space);
    if op == AtomicOp::Store { Ok(()) } else { args.put(0, Value::tile(before)) }
}

/// The element type, the number of lanes, and the operand after pointer or positions.
fn layout(ty: &Type, args: &Args<'_, '_>) -> Result<(DType, usize, usize), Fault> {
    let (elem, n, next) = match ty {
        Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => (&**pointee, ty.count(), 1),
        Type::View { elem, rank, .. } => (elem, args.operand(1)?.ty.count(), 1 + *rank as usize),
        Type::Tile { elem, .. } => (elem, ty.count(), 1),
    };
    match elem {
        ElemType::Scalar(d) => Ok((*d, n, next)),
        ElemType::Ptr { .. } => Err(Fault::internal("an atomic acts on numbers")),
    }
}

/// # Safety
/// An element of this type may be read there.
unsafe fn read(memory: *const u8, dtype: DType) -> Scalar {
    let mut bytes = [0; 8];
    // SAFETY: no element has more than 8 bytes.
    unsafe { std::ptr::copy_nonoverlapping(memory, bytes.as_mut_ptr(), dtype.bytes().min(8)) };
    let bits = u64::from_le_bytes(bytes);
    // Bytes of memory may be anything: what is not 0 is true.
    Scalar::from_bits(dtype, if dtype == DType::Bool { u64::from(bits != 0) } else { bits })
}

/// # Safety
/// An element of the type of `value` may be written there.
unsafe fn write(memory: *mut u8, value: Scalar) {
    let bytes = value.bits().to_le_bytes();
    // SAFETY: no element has more than 8 bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, value.dtype().bytes().min(8)) };
}
