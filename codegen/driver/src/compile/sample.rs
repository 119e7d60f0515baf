//! Launches that a kernel may get: [`launches`], for which the cost model compares the members of its `tune` list.
//!
//! ```text
//! require(a.shape[1] == b.shape[0], c.shape == [a.shape[0], b.shape[1]])    a [64, 64]   b [64, 64]   c [64, 64]
//! tune(key = (c.shape[0], c.shape[1], a.shape[1]))                       -> a [64, 256]  b [256, 64]  c [64, 64]
//!                                                                           ..
//! ```
//! Extents that a requirement makes equal vary together; those that the key reads are drawn, always the same ones,
//! multiples of 16 whose logarithms are uniform: with powers of two alone, no tile would be cut off. The others are a
//! constant. Launches that the kernel refuses are left to the caller.

use std::collections::BTreeMap;

use tk_ops::{DType, Scalar};
use tk_sema::contract::{Closed, ClosedContract, ClosedOp, Decided, HostArg};
use tk_sema::eval::Bindings;
use tk_tile::{ElemType, Type};

/// A number that a launch brings: an extent of an argument, or the argument itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Extent(usize, usize),
    Number(usize),
}

/// An extent that the key does not read.
const OTHER: i64 = 16;
/// Elements of a tensor of which only the address is passed.
const ANY_LENGTH: i64 = 1 << 30;
/// The most elements of a tensor.
const LARGEST: i64 = 1 << 33;
/// What floats are: also a probability.
const A_FLOAT: f64 = 0.5;
/// The number of launches.
const LAUNCHES: usize = 320;
/// What extents are multiples of, so that accesses are aligned.
const MULTIPLE: f64 = 16.0;

/// The binary logarithms of the least and the largest value of an extent, by how many vary.
fn range(axes: usize) -> [f64; 2] {
    match axes {
        0 | 1 => [4.0, 26.0],
        2 => [5.0, 18.0],
        _more => [5.0, 14.0],
    }
}

/// Numbers from 0 to 1 that fill all dimensions evenly: the additive recurrence with powers of the root of
/// x^(d + 1) = x + 1 (Roberts, 2018).
fn drawn(sample: usize, dimension: usize, dimensions: usize) -> f64 {
    let root = (0..64).fold(2.0f64, |x, _| (1.0 + x).powf(1.0 / (dimensions as f64 + 1.0)));
    (0.5 + (sample as f64 + 1.0) * root.powi(-(dimension as i32 + 1))).fract()
}

/// Arguments of launches of a specialization whose tensors are row-major.
pub fn launches(contract: &ClosedContract, bindings: &Bindings, key: &[Closed]) -> Vec<Vec<HostArg>> {
    let equal = Equal::of(contract, bindings);
    let mut varying: Vec<Slot> = vec![];
    for e in key {
        slots(e, &mut |slot| {
            let class = equal.class(slot);
            if !equal.values.contains_key(&class) && !varying.contains(&class) {
                varying.push(class);
            }
        });
    }
    let [low, high] = range(varying.len());
    let point = |sample: usize| {
        let mut point = equal.values.clone();
        for (i, class) in varying.iter().enumerate() {
            let exponent = low + (high - low) * drawn(sample, i, varying.len());
            point.insert(*class, ((exponent.exp2() / MULTIPLE).round().max(1.0) * MULTIPLE) as i64);
        }
        point
    };
    (0..LAUNCHES).filter_map(|sample| arguments(contract, &equal, &point(sample), OTHER)).collect()
}

/// Arguments of a launch of a specialization whose tensors are row-major, and whose extents and integers have this value
/// where they are free; `None` if a tensor is larger than any memory.
pub fn cube(contract: &ClosedContract, bindings: &Bindings, extent: i64) -> Option<Vec<HostArg>> {
    let equal = Equal::of(contract, bindings);
    arguments(contract, &equal, &equal.values, extent)
}

/// The arguments with these numbers, and another one for those that are not there; `None` if a tensor is larger than any
/// memory.
fn arguments(
    contract: &ClosedContract,
    equal: &Equal,
    values: &BTreeMap<Slot, i64>,
    other: i64,
) -> Option<Vec<HostArg>> {
    let value = |slot: Slot| values.get(&equal.class(slot)).copied().unwrap_or(other);
    let one = |(i, arg): (usize, &tk_sema::contract::ClosedArg)| {
        if !arg.present {
            return Some(HostArg::Absent);
        }
        Some(match &arg.ty {
            Type::View { elem, rank, .. } => {
                let shape: Vec<i64> = (0..*rank as usize).map(|axis| value(Slot::Extent(i, axis))).collect();
                shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).filter(|n| *n <= LARGEST)?;
                let strides = (0..shape.len()).map(|d| shape.iter().skip(d + 1).product()).collect();
                HostArg::Tensor { dtype: dtype(elem), shape, strides }
            }
            Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => {
                HostArg::Tensor { dtype: dtype(pointee), shape: vec![ANY_LENGTH], strides: vec![1] }
            }
            Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_int() => {
                HostArg::Scalar(Scalar::int(*d, value(Slot::Number(i)).into()))
            }
            Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_float() => {
                HostArg::Scalar(Scalar::float(*d, A_FLOAT))
            }
            Type::Tile { .. } => HostArg::Scalar(Scalar::bool(true)),
        })
    };
    contract.args.iter().enumerate().map(one).collect()
}

/// The element type of a tensor; addresses are numbers of 64 bits.
fn dtype(elem: &ElemType) -> DType {
    match elem {
        ElemType::Scalar(d) => *d,
        ElemType::Ptr { .. } => DType::U64,
    }
}

/// The number that an expression is.
fn slot(e: &Closed) -> Option<Slot> {
    match e {
        Closed::Extent(arg, axis) => Some(Slot::Extent(*arg, *axis)),
        Closed::Number(arg) => Some(Slot::Number(*arg)),
        Closed::Op { op: ClosedOp::Wrap, args, .. } => slot(args.first()?),
        Closed::Op { .. } | Closed::Int(_) | Closed::Float(_) | Closed::Stride(..) | Closed::Device(_) => {
            None
        }
    }
}

/// Visits the numbers that an expression reads.
fn slots(e: &Closed, visit: &mut impl FnMut(Slot)) {
    match (slot(e), e) {
        (Some(slot), _) => visit(slot),
        (None, Closed::Op { args, .. }) => args.iter().for_each(|a| slots(a, visit)),
        (None, _) => {}
    }
}

/// Which numbers are the same in every launch, and which are known.
#[derive(Default)]
struct Equal {
    /// Another number that is the same.
    same: BTreeMap<Slot, Slot>,
    /// By the class of a number.
    values: BTreeMap<Slot, i64>,
}

impl Equal {
    /// What a contract requires.
    fn of(contract: &ClosedContract, bindings: &Bindings) -> Equal {
        let mut equal = Equal::default();
        for (condition, _) in &contract.require {
            equal.assume(condition);
        }
        // A parameter that follows from an extent has its value here.
        for (id, decided) in &contract.decided {
            if let (Decided::ByDefault(e), Some(v)) = (decided, bindings.cvars.get(id))
                && let (Some(slot), Some(v)) = (slot(e), v.as_int())
            {
                equal.fix(slot, i64::try_from(v).unwrap_or(OTHER));
            }
        }
        equal
    }

    /// The number that stands for all that are equal to this one.
    fn class(&self, mut slot: Slot) -> Slot {
        while let Some(next) = self.same.get(&slot) {
            slot = *next;
        }
        slot
    }

    fn fix(&mut self, slot: Slot, value: i64) {
        self.values.insert(self.class(slot), value);
    }

    fn assume(&mut self, condition: &Closed) {
        let Closed::Op { op, args, .. } = condition else { return };
        match (op, args.as_slice()) {
            (ClosedOp::And, args) => args.iter().for_each(|a| self.assume(a)),
            (ClosedOp::Eq, [a, b]) => match (slot(a), slot(b), a, b) {
                (Some(a), Some(b), ..) => {
                    let (a, b) = (self.class(a), self.class(b));
                    if a != b {
                        self.same.insert(b, a);
                        let known = self.values.remove(&b);
                        known.into_iter().for_each(|v| self.fix(a, v));
                    }
                }
                (Some(a), None, _, Closed::Int(n)) | (None, Some(a), Closed::Int(n), _) => self.fix(a, *n),
                _ => {}
            },
            _ => {}
        }
    }
}
