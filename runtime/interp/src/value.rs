//! [`Value`]: what a register of a program holds.
//!
//! Guarantees that copies are cheap (elements are shared), that a tile of one element is held as [`Value::Splat`] or
//! [`Value::Ptr`], and that the element count of a shared form is the one of the value's type.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_ops::scalar::Scalar;
use tk_ops::{DType, with_buf};
use tk_tile::{ElemType, Type};

use crate::fault::Fault;
use crate::ramp::Ramp;

/// The entry of a pointer that belongs to no buffer.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// An address: a place in a buffer of the launch's `Space`. The byte is `disp + offset * size`, with the size of the
/// pointee; both parts are kept so that the element that was asked for can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// The buffer in the `Space`; [`NOWHERE`] if there is none, and `disp` is the address.
    pub entry: u32,
    /// Bytes.
    pub disp: i64,
    /// Elements.
    pub offset: i64,
}

impl Pointer {
    /// The pointer to nothing.
    pub const NULL: Pointer = Pointer { entry: NOWHERE, disp: 0, offset: 0 };

    /// This many elements further; a sum that overflows stays at the end of all addresses, outside of every buffer.
    pub fn add(self, elements: i64) -> Pointer {
        Pointer { offset: self.offset.saturating_add(elements), ..self }
    }

    /// The byte of its buffer at which the element this many places further begins; none past all addresses.
    pub fn byte(self, elements: i64, size: usize) -> Option<i64> {
        self.offset.checked_add(elements)?.checked_mul(size as i64)?.checked_add(self.disp)
    }

    /// The same address as a pointer to elements of another size.
    pub fn cast(self, from: usize, to: usize) -> Pointer {
        if from == to {
            return self;
        }
        Pointer { disp: self.disp.wrapping_add(self.offset.wrapping_mul(from as i64)), offset: 0, ..self }
    }
}

/// Base, extents and strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub base: Pointer,
    pub shape: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
}

/// The contents of a register.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    /// Nothing: not yet defined, or not needed any more.
    #[default]
    Empty,
    /// A scalar, or a tile whose elements are all this.
    Splat(Scalar),
    /// The elements of a tile in row-major order.
    Tile(Arc<Buf>),
    /// A tile of consecutive integers.
    Ramp(Ramp),
    /// A pointer, or a tile whose elements are all this.
    Ptr(Pointer),
    /// A tile of that many pointers to consecutive elements.
    Run(Pointer, usize),
    /// A tile of pointers: a base, and integers of any type to add to it.
    Offsets(Pointer, Arc<Buf>),
    /// A tile of pointers, each for itself.
    Lanes(Arc<Vec<Pointer>>),
    /// A view.
    View(Arc<View>),
}

impl Value {
    /// A tile; one element becomes a scalar.
    pub fn tile(buf: Buf) -> Value {
        if buf.len() == 1 { Value::Splat(buf.get(0)) } else { Value::Tile(Arc::new(buf)) }
    }

    /// A tile of consecutive integers; one element becomes a scalar.
    pub fn ramp(ramp: Ramp) -> Value {
        if ramp.count == 1 { Value::Splat(ramp.at(0)) } else { Value::Ramp(ramp) }
    }

    /// A tile of pointers; one element becomes a scalar.
    pub fn lanes(lanes: Vec<Pointer>) -> Value {
        match lanes.as_slice() {
            [one] => Value::Ptr(*one),
            _more => Value::Lanes(Arc::new(lanes)),
        }
    }

    /// An integer scalar.
    pub fn int(dtype: DType, v: i64) -> Value {
        Value::Splat(Scalar::int(dtype, i128::from(v)))
    }

    /// Zero, null or an empty view: what stands for a value that is never read.
    pub fn zero(ty: &Type) -> Value {
        match ty {
            Type::Tile { elem: ElemType::Scalar(d), .. } => Value::Splat(Scalar::zero(*d)),
            Type::Tile { elem: ElemType::Ptr { .. }, .. } => Value::Ptr(Pointer::NULL),
            Type::View { rank, .. } => {
                let none = vec![0; *rank as usize];
                Value::View(Arc::new(View { base: Pointer::NULL, shape: none.clone(), strides: none }))
            }
        }
    }

    /// Returns true if the elements are pointers.
    pub fn is_pointer(&self) -> bool {
        match self {
            Value::Ptr(_) | Value::Run(..) | Value::Offsets(..) | Value::Lanes(_) => true,
            Value::Empty | Value::Splat(_) | Value::Tile(_) | Value::Ramp(_) | Value::View(_) => false,
        }
    }

    /// A scalar.
    pub fn scalar(&self) -> Result<Scalar, Fault> {
        match self {
            Value::Splat(s) => Ok(*s),
            other => Err(Fault::internal(format_args!("a number is expected, not {}", other.kind()))),
        }
    }

    /// A scalar integer as i64; what does not fit saturates.
    pub fn index(&self) -> Result<i64, Fault> {
        let s = self.scalar()?;
        let i = s.as_int().ok_or_else(|| Fault::internal("an integer is expected"))?;
        Ok(i64::try_from(i).unwrap_or(if i < 0 { i64::MIN } else { i64::MAX }))
    }

    /// A scalar bool.
    pub fn bool(&self) -> Result<bool, Fault> {
        self.scalar()?.as_bool().ok_or_else(|| Fault::internal("a bool is expected"))
    }

    /// A view.
    pub fn view(self) -> Result<Arc<View>, Fault> {
        match self {
            Value::View(v) => Ok(v),
            other => Err(Fault::internal(format_args!("a view is expected, not {}", other.kind()))),
        }
    }

    /// A scalar pointer.
    pub fn pointer(&self) -> Result<Pointer, Fault> {
        match self.lane(0)? {
            Value::Ptr(p) => Ok(p),
            other => Err(Fault::internal(format_args!("a pointer is expected, not {}", other.kind()))),
        }
    }

    /// The elements, `n` of them.
    pub fn buf(self, n: usize) -> Result<Arc<Buf>, Fault> {
        match self {
            Value::Tile(buf) => Ok(buf),
            Value::Splat(s) => Ok(Arc::new(Buf::splat(s, n))),
            Value::Ramp(r) => Ok(Arc::new(r.buf())),
            other => {
                Err(Fault::internal(format_args!("a tile of numbers is expected, not {}", other.kind())))
            }
        }
    }

    /// The elements, `n` of them, to be changed; in place if they are not shared.
    pub fn owned(self, n: usize) -> Result<Buf, Fault> {
        Ok(Arc::try_unwrap(self.buf(n)?).unwrap_or_else(|shared| Buf::clone(&shared)))
    }

    /// Each pointer of a tile of `n`.
    pub fn to_lanes(&self, n: usize) -> Result<Vec<Pointer>, Fault> {
        match self {
            Value::Ptr(p) => Ok(vec![*p; n]),
            Value::Run(p, count) => Ok((0..*count as i64).map(|i| p.add(i)).collect()),
            Value::Offsets(base, offsets) => {
                let mut lanes = Vec::with_capacity(offsets.len());
                for_offsets(offsets, |o| lanes.push(base.add(o)));
                Ok(lanes)
            }
            Value::Lanes(lanes) => Ok(lanes.to_vec()),
            other => Err(Fault::internal(format_args!("pointers are expected, not {}", other.kind()))),
        }
    }

    /// Pointers to consecutive elements as a base and offsets; everything else as it is.
    pub fn offsets(self) -> Value {
        match self {
            Value::Run(p, count) => Value::Offsets(p, Arc::new(Buf::I64((0..count as i64).collect()))),
            other => other,
        }
    }

    /// The element at `i` as a scalar.
    pub fn lane(&self, i: usize) -> Result<Value, Fault> {
        let missing = || Fault::internal("an element does not exist");
        Ok(match self {
            Value::Splat(s) => Value::Splat(*s),
            Value::Tile(buf) => Value::Splat(buf.get(i)),
            Value::Ramp(r) => Value::Splat(r.at(i)),
            Value::Ptr(p) => Value::Ptr(*p),
            Value::Run(p, _) => Value::Ptr(p.add(i as i64)),
            Value::Offsets(base, offsets) => Value::Ptr(base.add(offset_at(offsets, i))),
            Value::Lanes(lanes) => Value::Ptr(*lanes.get(i).ok_or_else(missing)?),
            Value::Empty | Value::View(_) => return Err(Fault::internal("an element of no tile is read")),
        })
    }

    /// A description in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Empty => "a value that does not exist",
            Value::Splat(_) => "a number",
            Value::Tile(_) | Value::Ramp(_) => "a tile of numbers",
            Value::Ptr(_) => "a pointer",
            Value::Run(..) | Value::Offsets(..) | Value::Lanes(_) => "a tile of pointers",
            Value::View(_) => "a view",
        }
    }
}

/// Element `i` as an offset; u64 wraps, as an address does.
pub(crate) fn offset_at(offsets: &Buf, i: usize) -> i64 {
    offsets.get(i).as_int().unwrap_or(0) as i64
}

/// Calls `f` with each element as an offset; u64 wraps.
pub(crate) fn for_offsets(offsets: &Buf, mut f: impl FnMut(i64)) {
    match offsets {
        Buf::I32(v) => v.iter().for_each(|o| f(i64::from(*o))),
        Buf::I64(v) => v.iter().for_each(|o| f(*o)),
        other => (0..with_buf!(other, v => v.len())).for_each(|i| f(offset_at(other, i))),
    }
}
