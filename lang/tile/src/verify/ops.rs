//! V08 to V11 of the operations that compute on tiles, and [`Cx`], the context of a check.
//!
//! Requires V05: every id of the instruction is in range. Guarantees that no implementation needs to check the types
//! of operands and results again.

use tk_ops::{
    CreateOp, DType, DTypeSet, DotOp, ElementwiseOp, Op, RandomOp, ReduceOp, Scalar, ScanOp, ShapeOp,
};

use crate::attr::Attr;
use crate::flow::flow;
use crate::infer;
use crate::ir::{ElemType, Func, FuncKind, Inst, Module, Type, ValueId};
use crate::verify::Invariant::{V08, V09, V10, V11, V15};
use crate::verify::control::Signatures;
use crate::verify::{Check, Fault, attrs, control, ensure, fault, memory};

/// An instruction and its function.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    pub module: &'a Module,
    pub func: &'a Func,
    pub inst: &'a Inst,
}

/// A tile type taken apart.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Tile<'a> {
    pub elem: &'a ElemType,
    pub shape: &'a [u32],
}

impl Tile<'_> {
    /// The element type; V11 for pointers.
    pub fn dtype(&self) -> Result<DType, Fault> {
        match self.elem {
            ElemType::Scalar(d) => Ok(*d),
            ElemType::Ptr { .. } => fault(V11, "expected a number, found a pointer"),
        }
    }
}

impl<'a> Cx<'a> {
    pub fn ty(&self, v: ValueId) -> &'a Type {
        self.module.types.get(self.func.ty(v))
    }

    /// V08 for exact numbers.
    pub fn counts(&self, operands: usize, results: usize) -> Check {
        self.counts_in(operands, operands, results)
    }

    /// V08 for a range of operands.
    pub fn counts_in(&self, least: usize, most: usize, results: usize) -> Check {
        let found = self.inst.operands.len();
        ensure((least..=most).contains(&found), V08, || {
            let (wanted, last) = match most {
                _ if least == most => (format!("{least}"), least),
                usize::MAX => (format!("at least {least}"), least),
                _ => (format!("{least} to {most}"), most),
            };
            format!("expected {wanted} operand{}, found {found}", plural(last))
        })?;
        let found = self.inst.results.len();
        ensure(found == results, V08, || {
            format!("expected {results} result{}, found {found}", plural(results))
        })
    }

    pub fn operand(&self, i: usize) -> Result<&'a Type, Fault> {
        match self.inst.operands.get(i) {
            Some(v) => Ok(self.ty(*v)),
            None => fault(V08, format!("operand {i} is missing")),
        }
    }

    pub fn result(&self, i: usize) -> Result<&'a Type, Fault> {
        match self.inst.results.get(i) {
            Some(v) => Ok(self.ty(*v)),
            None => fault(V08, format!("result {i} is missing")),
        }
    }

    pub fn operand_tile(&self, i: usize) -> Result<Tile<'a>, Fault> {
        tile(self.operand(i)?)
    }

    pub fn result_tile(&self, i: usize) -> Result<Tile<'a>, Fault> {
        tile(self.result(i)?)
    }

    pub fn operand_tiles(&self) -> Result<Vec<Tile<'a>>, Fault> {
        self.inst.operands.iter().map(|v| tile(self.ty(*v))).collect()
    }

    /// The attribute `axis` as a position below `rank`.
    pub fn axis(&self, rank: usize) -> Result<usize, Fault> {
        let axis = self.inst.attrs.int("axis").unwrap_or(-1);
        match usize::try_from(axis).ok().filter(|a| *a < rank) {
            Some(a) => Ok(a),
            None => fault(V09, format!("axis {axis} is out of range for rank {rank}")),
        }
    }
}

pub(super) fn tile(ty: &Type) -> Result<Tile<'_>, Fault> {
    match ty {
        Type::Tile { elem, shape } => Ok(Tile { elem, shape }),
        Type::View { .. } => fault(V11, format!("expected a tile, found `{ty}`")),
    }
}

/// The ending of a noun after this number.
fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// V10: the shapes are the same.
pub(super) fn same_shape(a: &[u32], b: &[u32]) -> Check {
    ensure(a == b, V10, || format!("shapes {a:?} and {b:?} differ"))
}

/// V11: the element type is this one.
pub(super) fn is_dtype(t: Tile<'_>, wanted: DType) -> Check {
    within(t, DTypeSet::of(&[wanted]))
}

/// V11: the element type is in a set.
pub(super) fn within(t: Tile<'_>, set: DTypeSet) -> Check {
    let d = t.dtype()?;
    ensure(set.has(d), V11, || format!("expected `{set}`, found `{d}`"))
}

/// V10, V11: `found` serves as `wanted`.
pub(super) fn serves(found: Tile<'_>, wanted: Tile<'_>) -> Check {
    same_shape(found.shape, wanted.shape)?;
    ensure(infer::elem_serves(found.elem, wanted.elem), V11, || {
        format!("expected `{}`, found `{}`", wanted.elem, found.elem)
    })
}

/// Checks one instruction: everything but the requirements on its blocks.
pub(super) fn inst(module: &Module, func: &Func, inst: &Inst, signatures: &Signatures<'_>) -> Check {
    let cx = Cx { module, func, inst };
    let blocks = flow(inst.op).blocks();
    ensure(inst.blocks.len() == blocks, V08, || {
        format!("expected {blocks} block{}, found {}", plural(blocks), inst.blocks.len())
    })?;
    attrs::check(inst)?;
    match inst.op {
        Op::Elementwise(o) => elementwise(cx, o),
        Op::Create(o) => create(cx, o),
        Op::Shape(o) => shape(cx, o),
        Op::Memory(o) => memory::memory(cx, o),
        Op::Atomic(o) => memory::atomic(cx, o),
        Op::Reduce(o) => reduce(cx, o),
        Op::Scan(o) => scan(cx, o),
        Op::Dot(o) => dot(cx, o),
        Op::Random(o) => random(cx, o),
        Op::Control(o) => control::control(cx, o, signatures),
        Op::Target => fault(V15, format!("`{}` is only allowed in scheduled kernels", inst.name())),
        Op::Host(o) => {
            let known = match func.kind {
                FuncKind::Test => true,
                FuncKind::Fn | FuncKind::NoInline => o.makes_inputs(),
                FuncKind::Kernel => false,
            };
            ensure(known, V15, || "host operation outside of a test".into())?;
            control::host(cx, o)
        }
    }
}

fn elementwise(cx: Cx<'_>, op: ElementwiseOp) -> Check {
    cx.counts(op.arity(), 1)?;
    let operands = cx.operand_tiles()?;
    let result = cx.result_tile(0)?;
    operands.iter().try_for_each(|t| same_shape(t.shape, result.shape))?;
    match (op, operands.as_slice()) {
        (ElementwiseOp::Select, [c, a, b]) => {
            is_dtype(*c, DType::Bool)?;
            serves(*a, result)?;
            serves(*b, result)
        }
        (ElementwiseOp::Cast, [x]) => cast(*x, result),
        (ElementwiseOp::Bitcast, [x]) => {
            within(*x, op.accepts())?;
            within(result, op.accepts())?;
            let (from, to) = (x.dtype()?, result.dtype()?);
            ensure(from.stored_bits() == to.stored_bits(), V11, || {
                format!("`{from}` and `{to}` differ in width")
            })
        }
        (_, [x, rest @ ..]) => {
            within(*x, op.accepts())?;
            let shift = matches!(op, ElementwiseOp::Shl | ElementwiseOp::Shr);
            for y in rest {
                if shift { within(*y, DTypeSet::INT)? } else { is_dtype(*y, x.dtype()?)? }
            }
            match op.result() {
                Some(r) => is_dtype(result, r.of(x.dtype()?)),
                None => Ok(()),
            }
        }
        (_, []) => Ok(()),
    }
}

/// Between numbers, not to bool; pointers become other pointers but do not become `mut`.
fn cast(from: Tile<'_>, to: Tile<'_>) -> Check {
    match (from.elem, to.elem) {
        (ElemType::Scalar(_), ElemType::Scalar(d)) => {
            ensure(*d != DType::Bool || from.elem == to.elem, V11, || "cannot cast to `bool`".into())
        }
        (ElemType::Ptr { mutable: m, .. }, ElemType::Ptr { mutable: n, .. }) => {
            ensure(*m || !*n, V11, || "a cast cannot make a pointer `mut`".into())
        }
        (ElemType::Scalar(_), ElemType::Ptr { .. }) | (ElemType::Ptr { .. }, ElemType::Scalar(_)) => {
            fault(V11, "cannot cast between a number and a pointer")
        }
    }
}

fn create(cx: Cx<'_>, op: CreateOp) -> Check {
    match op {
        CreateOp::Const => {
            cx.counts(0, 1)?;
            match cx.inst.attrs.get("value") {
                Some(Attr::Scalar(s)) => is_dtype(cx.result_tile(0)?, s.dtype()),
                Some(_) | None => fault(V09, "missing attribute `value`"),
            }
        }
        CreateOp::Table => {
            cx.counts(0, 1)?;
            let result = cx.result_tile(0)?;
            let ElemType::Scalar(d) = result.elem else { return fault(V11, "a table cannot hold pointers") };
            let values = cx.inst.attrs.ints("values").unwrap_or_default();
            let count: u64 = result.shape.iter().map(|n| u64::from(*n)).product();
            ensure(values.len() as u64 == count, V10, || {
                format!("expected {count} values, found {}", values.len())
            })?;
            let fits = |v: i64| Scalar::from_bits(*d, v.cast_unsigned()).bits() == v.cast_unsigned();
            ensure(values.iter().all(|v| fits(*v)), V09, || format!("a value does not fit in `{d}`"))
        }
        CreateOp::Arange => {
            cx.counts(0, 1)?;
            let result = cx.result_tile(0)?;
            is_dtype(result, DType::I32)?;
            let [n] = result.shape else { return fault(V10, "the result must have rank 1") };
            let start = cx.inst.attrs.int("start").unwrap_or(0);
            let last = i128::from(start) + i128::from(*n) - 1;
            ensure(i32::try_from(start).is_ok() && i32::try_from(last).is_ok(), V09, || {
                format!("{start} to {last} does not fit in `i32`")
            })
        }
        CreateOp::Splat => {
            cx.counts(1, 1)?;
            let (x, result) = (cx.operand_tile(0)?, cx.result_tile(0)?);
            ensure(x.shape.is_empty(), V10, || "the operand must be a scalar".into())?;
            serves(Tile { shape: result.shape, ..x }, result)
        }
        CreateOp::Undef => cx.counts(0, 1),
    }
}

fn shape(cx: Cx<'_>, op: ShapeOp) -> Check {
    match op {
        ShapeOp::Join | ShapeOp::Interleave => return pair(cx, op),
        ShapeOp::Split => return split(cx),
        ShapeOp::Cat => return cat(cx),
        ShapeOp::Reshape | ShapeOp::Permute | ShapeOp::Broadcast | ShapeOp::Flip | ShapeOp::Slice => {
            cx.counts(1, 1)?
        }
    }
    let (x, result) = (cx.operand_tile(0)?, cx.result_tile(0)?);
    let (from, to) = (x.shape, result.shape);
    let rank =
        |t: &[u32]| ensure(t.len() == from.len(), V10, || format!("{from:?} and {t:?} differ in rank"));
    match op {
        ShapeOp::Reshape => {
            let count = |s: &[u32]| s.iter().map(|d| u64::from(*d)).product::<u64>();
            ensure(count(from) == count(to), V10, || {
                format!("{from:?} and {to:?} differ in the number of elements")
            })?;
        }
        ShapeOp::Permute => {
            let perm = cx.inst.attrs.ints("perm").unwrap_or(&[]);
            let Some(permuted) = infer::permuted(from, perm) else {
                return fault(V09, format!("{perm:?} is not a permutation of {} axes", from.len()));
            };
            same_shape(&permuted, to)?;
        }
        ShapeOp::Broadcast => {
            rank(to)?;
            let fits = from.iter().zip(to).all(|(a, b)| a == b || *a == 1);
            ensure(fits, V10, || format!("{from:?} does not broadcast to {to:?}"))?;
        }
        ShapeOp::Flip => {
            cx.axis(from.len())?;
            same_shape(from, to)?;
        }
        ShapeOp::Slice => {
            rank(to)?;
            let starts = cx.inst.attrs.ints("starts").unwrap_or(&[]);
            ensure(starts.len() == from.len(), V09, || {
                format!("`starts` needs {} entries, but is {starts:?}", from.len())
            })?;
            let inside = |((s, n), of): ((&i64, &u32), &u32)| {
                *s >= 0 && s.checked_add(i64::from(*n)).is_some_and(|end| end <= i64::from(*of))
            };
            let ok = starts.iter().zip(to).zip(from).all(inside);
            ensure(ok, V10, || format!("{to:?} at {starts:?} is out of bounds for {from:?}"))?;
        }
        ShapeOp::Join | ShapeOp::Split | ShapeOp::Cat | ShapeOp::Interleave => {}
    }
    serves(Tile { shape: to, ..x }, result)
}

/// `join` and `interleave`.
fn pair(cx: Cx<'_>, op: ShapeOp) -> Check {
    cx.counts(2, 1)?;
    let (a, b, result) = (cx.operand_tile(0)?, cx.operand_tile(1)?, cx.result_tile(0)?);
    same_shape(a.shape, b.shape)?;
    let mut shape = a.shape.to_vec();
    if op == ShapeOp::Join {
        shape.push(2);
    } else {
        let Some(last) = shape.last_mut() else { return fault(V10, "a scalar has no last dimension") };
        *last = last.saturating_mul(2);
    }
    serves(Tile { shape: &shape, ..a }, result)?;
    serves(Tile { shape: &shape, ..b }, result)
}

fn split(cx: Cx<'_>) -> Check {
    cx.counts(1, 2)?;
    let x = cx.operand_tile(0)?;
    let Some((2, shape)) = x.shape.split_last() else { return fault(V10, "the last dimension must be 2") };
    serves(Tile { shape, ..x }, cx.result_tile(0)?)?;
    serves(Tile { shape, ..x }, cx.result_tile(1)?)
}

fn cat(cx: Cx<'_>) -> Check {
    cx.counts_in(1, usize::MAX, 1)?;
    let result = cx.result_tile(0)?;
    let axis = cx.axis(result.shape.len())?;
    let mut total = 0u64;
    for x in cx.operand_tiles()? {
        let mut shape = x.shape.to_vec();
        if let (Some(d), Some(whole)) = (shape.get_mut(axis), result.shape.get(axis)) {
            total += u64::from(*d);
            *d = *whole;
        }
        serves(Tile { shape: &shape, ..x }, result)?;
    }
    let whole = result.shape.get(axis).copied().unwrap_or(0);
    ensure(total == u64::from(whole), V10, || {
        format!("the parts have {total} elements along the axis, but the result has {whole}")
    })
}

/// A shape without one dimension.
pub(super) fn without(shape: &[u32], axis: usize) -> Vec<u32> {
    shape.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| *d).collect()
}

fn reduce(cx: Cx<'_>, op: ReduceOp) -> Check {
    if op == ReduceOp::Custom {
        let n = cx.inst.operands.len();
        cx.counts_in(1, usize::MAX, n)?;
    } else {
        cx.counts(1, 1)?;
    }
    let operands = cx.operand_tiles()?;
    let first = cx.operand_tile(0)?;
    let axis = cx.axis(first.shape.len())?;
    let shape = without(first.shape, axis);
    for (i, x) in operands.iter().enumerate() {
        same_shape(first.shape, x.shape)?;
        let result = cx.result_tile(i)?;
        if op == ReduceOp::Custom {
            serves(Tile { shape: &shape, ..*x }, result)?;
        } else {
            within(*x, op.accepts())?;
            same_shape(&shape, result.shape)?;
            is_dtype(result, op.result().of(x.dtype()?))?;
        }
    }
    Ok(())
}

fn scan(cx: Cx<'_>, op: ScanOp) -> Check {
    match op {
        ScanOp::CumSum | ScanOp::CumProd => cx.counts(1, 1)?,
        ScanOp::Custom | ScanOp::Sort => cx.counts_in(1, usize::MAX, cx.inst.operands.len())?,
        ScanOp::TopK => return topk(cx),
        ScanOp::Histogram => return histogram(cx),
        ScanOp::Gather => return gather(cx),
    }
    let operands = cx.operand_tiles()?;
    let first = cx.operand_tile(0)?;
    cx.axis(first.shape.len())?;
    match op {
        ScanOp::CumSum | ScanOp::CumProd => within(first, DTypeSet::NUMBER)?,
        ScanOp::Sort => within(first, DTypeSet::VALUE)?,
        ScanOp::Custom | ScanOp::TopK | ScanOp::Histogram | ScanOp::Gather => {}
    }
    for (i, x) in operands.iter().enumerate() {
        same_shape(first.shape, x.shape)?;
        serves(*x, cx.result_tile(i)?)?;
    }
    Ok(())
}

fn topk(cx: Cx<'_>) -> Check {
    cx.counts(1, 2)?;
    let x = cx.operand_tile(0)?;
    let rank = x.shape.len();
    ensure(rank > 0, V10, || "the operand cannot be a scalar".into())?;
    let axis = if cx.inst.attrs.get("axis").is_some() { cx.axis(rank)? } else { rank - 1 };
    within(x, DTypeSet::VALUE)?;
    let mut shape = x.shape.to_vec();
    let k = cx.inst.attrs.int("k").and_then(|k| u32::try_from(k).ok()).unwrap_or(0);
    if let Some(d) = shape.get_mut(axis) {
        ensure((1..=*d).contains(&k), V09, || format!("`k` must be between 1 and {d}"))?;
        *d = k;
    }
    serves(Tile { shape: &shape, ..x }, cx.result_tile(0)?)?;
    same_shape(&shape, cx.result_tile(1)?.shape)?;
    is_dtype(cx.result_tile(1)?, DType::I32)
}

fn histogram(cx: Cx<'_>) -> Check {
    cx.counts_in(1, 2, 1)?;
    let x = cx.operand_tile(0)?;
    within(x, DTypeSet::INT)?;
    if cx.inst.operands.len() == 2 {
        let mask = cx.operand_tile(1)?;
        is_dtype(mask, DType::Bool)?;
        same_shape(x.shape, mask.shape)?;
    }
    let result = cx.result_tile(0)?;
    is_dtype(result, DType::I32)?;
    let bins = cx.inst.attrs.int("bins").and_then(|b| u32::try_from(b).ok());
    same_shape(result.shape, bins.as_slice())
}

fn gather(cx: Cx<'_>) -> Check {
    cx.counts(2, 1)?;
    let (x, at, result) = (cx.operand_tile(0)?, cx.operand_tile(1)?, cx.result_tile(0)?);
    within(at, DTypeSet::INT)?;
    let axis = cx.axis(x.shape.len())?;
    ensure(x.shape.len() == at.shape.len(), V10, || "operands 0 and 1 must have the same rank".into())?;
    same_shape(&without(x.shape, axis), &without(at.shape, axis))?;
    serves(Tile { shape: at.shape, ..x }, result)
}

fn dot(cx: Cx<'_>, op: DotOp) -> Check {
    match op {
        DotOp::Dot => cx.counts(3, 1)?,
        DotOp::DotScaled => return dot_scaled(cx),
    }
    let (a, b, acc) = (cx.operand_tile(0)?, cx.operand_tile(1)?, cx.operand_tile(2)?);
    let ([m, k], [k2, n]) = (a.shape, b.shape) else { return fault(V10, "the matrices must have rank 2") };
    ensure(k == k2, V10, || format!("inner dimensions of {:?} and {:?} differ", a.shape, b.shape))?;
    same_shape(acc.shape, &[*m, *n])?;
    let (x, y) = (a.dtype()?, b.dtype()?);
    ensure(x == y || x.is_f8() && y.is_f8(), V11, || format!("cannot multiply `{x}` by `{y}`"))?;
    within(a, DTypeSet::ORDERED)?;
    within(acc, if x.is_int() { DTypeSet::INT } else { DTypeSet::FLOAT })?;
    serves(acc, cx.result_tile(0)?)
}

/// `a [M, K], b [K, N], a_scale [M, K / B], b_scale [K / B, N], acc [M, N]`
fn dot_scaled(cx: Cx<'_>) -> Check {
    cx.counts(5, 1)?;
    let (a, b, result) = (cx.operand_tile(0)?, cx.operand_tile(1)?, cx.result_tile(0)?);
    let ([m, k], [k2, n]) = (a.shape, b.shape) else { return fault(V10, "the matrices must have rank 2") };
    ensure(k == k2, V10, || format!("inner dimensions of {:?} and {:?} differ", a.shape, b.shape))?;
    let (s, t) = (cx.operand_tile(2)?, cx.operand_tile(3)?);
    let ([m2, blocks], [blocks2, n2]) = (s.shape, t.shape) else {
        return fault(V10, "the scales must have rank 2");
    };
    let fits = m == m2 && n == n2 && blocks == blocks2 && k % blocks == 0;
    ensure(fits, V10, || format!("the scales {:?} and {:?} do not fit the matrices", s.shape, t.shape))?;
    same_shape(result.shape, &[*m, *n])?;
    within(result, DTypeSet::FLOAT)?;
    serves(cx.operand_tile(4)?, result)
}

fn random(cx: Cx<'_>, op: RandomOp) -> Check {
    let (results, wanted) = match op {
        RandomOp::Rand | RandomOp::Randn => (1, DType::F32),
        RandomOp::Rand4 => (4, DType::F32),
        RandomOp::RandInt => (1, DType::U32),
    };
    cx.counts(2, results)?;
    let (seed, offset) = (cx.operand_tile(0)?, cx.operand_tile(1)?);
    is_dtype(seed, DType::U64)?;
    ensure(seed.shape.is_empty(), V10, || "the seed must be a scalar".into())?;
    within(offset, DTypeSet::of(&[DType::I32, DType::U32]))?;
    for i in 0..results {
        same_shape(offset.shape, cx.result_tile(i)?.shape)?;
        is_dtype(cx.result_tile(i)?, wanted)?;
    }
    Ok(())
}
