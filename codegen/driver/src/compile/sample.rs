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

use std::collections::{BTreeMap, BTreeSet};

use tk_bundle::{DeviceFact, Expr, Number, Reader};
use tk_ops::{DType, Scalar};
use tk_sema::contract::{Closed, ClosedArg, ClosedContract, ClosedOp, Decided, HostArg};
use tk_sema::eval::Bindings;
use tk_tile::{ElemType, Type};

use crate::ship::expr::{equals, expr};

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

/// Arguments of launches of a specialization whose tensors are row-major, the most typical first: all numbers that are free
/// are the first of these extents that the conditions of a launch admit, or one that follows from the conditions. At the end
/// each of them alone is another one, for conditions over two.
///
/// Where `as_compiled`, parameters that follow from the arguments have the values of the specialization.
pub fn typical<'c>(
    contract: &'c ClosedContract,
    bindings: &'c Bindings,
    extents: &'c [i64],
    as_compiled: bool,
) -> impl Iterator<Item = Vec<HostArg>> + 'c {
    let equal = Equal::of(contract, bindings);
    let free = equal.free(contract);
    let mut conditions = Conditions::default();
    contract.require.iter().for_each(|(condition, _)| conditions.of_launch(&equal, condition));
    for (id, decided) in contract.decided.iter().filter(|_| as_compiled) {
        if let Decided::ByDefault(e) = decided
            && let Some(condition) = equals(e, bindings.cvars.get(id))
        {
            conditions.add(&equal, e, condition);
        }
    }
    let mut points: Vec<BTreeMap<Slot, i64>> = vec![];
    for at in 0..extents.len() {
        let (before, after) = extents.split_at(at);
        let mut point = equal.values.clone();
        for class in &free {
            let first = conditions.first(&equal, *class, [after, before]);
            point.extend(first.or(after.first().copied()).map(|n| (*class, n)));
        }
        points.push(point);
    }
    let first = points.first().cloned().unwrap_or_default();
    for (class, extent) in free.iter().flat_map(|class| extents.iter().map(move |n| (class, n))) {
        let mut point = first.clone();
        point.insert(*class, *extent);
        points.push(point);
    }
    points.into_iter().filter_map(move |point| arguments(contract, &equal, &point, OTHER))
}

/// The extents and integers of a launch, each once, the largest first.
pub fn numbers(args: &[HostArg]) -> Vec<i64> {
    let of_one = |arg: &HostArg| match arg {
        HostArg::Tensor { shape, .. } if shape.as_slice() == [ANY_LENGTH] => vec![],
        HostArg::Tensor { shape, .. } => shape.clone(),
        HostArg::Scalar(n) => n.as_int().and_then(|n| i64::try_from(n).ok()).into_iter().collect(),
        HostArg::Absent => vec![],
    };
    let mut all: Vec<i64> = args.iter().flat_map(of_one).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
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
    let one = |(i, arg): (usize, &ClosedArg)| {
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

    /// The classes of the numbers of a launch that have no known value.
    fn free(&self, contract: &ClosedContract) -> BTreeSet<Slot> {
        let of_one = |(i, arg): (usize, &ClosedArg)| match &arg.ty {
            _ if !arg.present => vec![],
            Type::View { rank, .. } => (0..*rank as usize).map(|axis| Slot::Extent(i, axis)).collect(),
            Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_int() => vec![Slot::Number(i)],
            Type::Tile { .. } => vec![],
        };
        let all = contract.args.iter().enumerate().flat_map(of_one).map(|slot| self.class(slot));
        all.filter(|class| !self.values.contains_key(class)).collect()
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

/// What a launch asks of single numbers.
#[derive(Default)]
struct Conditions {
    /// By the class of the one number that is not known.
    all: BTreeMap<Slot, Vec<Expr>>,
    /// Numbers in these conditions: bounds, and what others are multiples of.
    constants: BTreeMap<Slot, BTreeSet<i64>>,
}

impl Conditions {
    /// Adds a requirement.
    fn of_launch(&mut self, equal: &Equal, condition: &Closed) {
        match condition {
            Closed::Op { op: ClosedOp::And, args, .. } => args.iter().for_each(|a| self.of_launch(equal, a)),
            condition => self.add(equal, condition, expr(condition)),
        }
    }

    /// Adds a condition over the numbers of an expression.
    fn add(&mut self, equal: &Equal, of: &Closed, condition: Expr) {
        let mut classes = BTreeSet::new();
        slots(of, &mut |slot| {
            classes.insert(equal.class(slot));
        });
        classes.retain(|class| !equal.values.contains_key(class));
        if let (Some(class), 1) = (classes.first().copied(), classes.len()) {
            self.all.entry(class).or_default().push(condition);
            constants(of, self.constants.entry(class).or_default());
        }
    }

    /// The first of some values that every condition admits, in the order of two lists with those that follow from the
    /// conditions between them.
    fn first(&self, equal: &Equal, class: Slot, [first, last]: [&[i64]; 2]) -> Option<i64> {
        let most = first.first().copied().unwrap_or(OTHER);
        let known = self.constants.get(&class).into_iter().flatten().copied();
        let derived = known.filter(|n| *n > 0).flat_map(|n| [most / n * n, n, n - 1, n + 1]);
        let conditions = self.all.get(&class).map_or(&[][..], Vec::as_slice);
        // One that reads a stride, or more than a number has, is left to the launch.
        let admits =
            |value: i64| conditions.iter().all(|c| c.holds(&One { equal, class, value }).unwrap_or(true));
        let values = first.iter().copied().chain(derived).chain(last.iter().copied());
        values.into_iter().find(|n| *n > 0 && admits(*n))
    }
}

/// The constants of an expression.
fn constants(e: &Closed, found: &mut BTreeSet<i64>) {
    match e {
        Closed::Int(n) => {
            found.insert(*n);
        }
        Closed::Op { args, .. } => args.iter().for_each(|a| constants(a, found)),
        Closed::Float(_)
        | Closed::Number(_)
        | Closed::Extent(..)
        | Closed::Stride(..)
        | Closed::Device(_) => {}
    }
}

/// A launch of which the numbers of one class are known, and those that have a value in every launch.
struct One<'e> {
    equal: &'e Equal,
    class: Slot,
    value: i64,
}

impl One<'_> {
    fn of(&self, slot: Slot) -> Option<i64> {
        let class = self.equal.class(slot);
        if class == self.class { Some(self.value) } else { self.equal.values.get(&class).copied() }
    }
}

impl Reader for One<'_> {
    fn number(&self, arg: usize) -> Option<Number> {
        self.of(Slot::Number(arg)).map(Number::Int)
    }

    fn address(&self, _arg: usize) -> Option<u64> {
        None
    }

    fn extent(&self, arg: usize, axis: usize) -> Option<i64> {
        self.of(Slot::Extent(arg, axis))
    }

    fn stride(&self, _arg: usize, _axis: usize) -> Option<i64> {
        None
    }

    fn device(&self, _fact: DeviceFact) -> Option<i64> {
        None
    }
}
