//! The abstract state of padding lanes, and how operations change it.
//!
//! Guarantees that whatever is not certain is [`State::Unknown`], about which nothing is reported.

use tk_ops::elementwise::{Arithmetic, FloatBinary, FloatUnary, MinMax, Sign};
use tk_ops::eval::{self, Operand};
use tk_ops::{DType, ElementwiseOp, Group, Scalar};

use crate::hir::HExpr;

/// The state of a dimension of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// All lanes along the dimension have one value; padding is not known.
    Same,
    /// The lanes differ, and all of them are data.
    Data,
    /// Bools that depend on the lane, such as `offs < n`: what is outside of the data is likely to be false.
    Mask,
    /// There is padding, and this is its value.
    Known(Scalar),
    /// There is padding, and its value is not a constant: `x - mean` where `x` is padded with zeros.
    Spoiled,
    /// Anything.
    Unknown,
}

/// A masked load, and the axis of it that is padded.
pub(super) type Source<'a> = Option<(&'a HExpr, usize)>;

/// The state of a tile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile<'a> {
    /// One for each dimension.
    pub dims: Vec<State>,
    /// Where the padding of each dimension comes from, as far as that is known; missing ones are not.
    pub sources: Vec<Source<'a>>,
    /// The value of all elements, if it is a compile-time constant that is known.
    pub constant: Option<Scalar>,
    /// Whether no element of the data is negative.
    pub not_negative: bool,
    /// Whether the elements are positions that grow from lane to lane without an end: `at + 2 * arange(0, B)`.
    pub linear: bool,
    /// The masked load that the padding comes from.
    pub origin: Option<&'a HExpr>,
    /// All masked loads that it is computed from.
    pub loads: Vec<&'a HExpr>,
    /// Whether the dimensions are no longer those of that load.
    pub moved: bool,
    /// Whether its elements are sums over data, for which another value of the padding of that load is no neutral one.
    pub summed: bool,
}

impl<'a> Tile<'a> {
    /// A tile that is the same in every lane.
    pub fn uniform(rank: usize) -> Tile<'a> {
        Tile {
            dims: vec![State::Same; rank],
            sources: vec![],
            constant: None,
            not_negative: false,
            linear: false,
            origin: None,
            loads: vec![],
            moved: false,
            summed: false,
        }
    }

    /// A tile of one constant.
    pub fn constant(rank: usize, value: Scalar) -> Tile<'a> {
        Tile { constant: Some(value), not_negative: is_not_negative(value), ..Tile::uniform(rank) }
    }

    /// A tile of data.
    pub fn data(rank: usize) -> Tile<'a> {
        Tile { dims: vec![State::Data; rank], ..Tile::uniform(rank) }
    }

    /// A tile of which nothing is known.
    pub fn unknown(rank: usize) -> Tile<'a> {
        Tile { dims: vec![State::Unknown; rank], ..Tile::uniform(rank) }
    }

    /// Where the padding of a dimension comes from.
    pub fn source(&self, d: usize) -> Source<'a> {
        self.sources.get(d).copied().flatten()
    }

    /// A dimension as an operand.
    fn lane(&self, d: usize) -> Lane {
        match (self.constant, self.dims.get(d)) {
            (Some(c), _) => Lane::Constant(c),
            (None, Some(s)) => Lane::State(*s),
            // A scalar broadcasts.
            (None, None) => Lane::State(State::Same),
        }
    }
}

/// An operand along one dimension.
#[derive(Clone, Copy, PartialEq)]
enum Lane {
    Constant(Scalar),
    State(State),
}

impl Lane {
    /// The value of the padding, and of constants.
    fn value(self) -> Option<Scalar> {
        match self {
            Lane::Constant(c) | Lane::State(State::Known(c)) => Some(c),
            Lane::State(State::Same | State::Data | State::Mask | State::Spoiled | State::Unknown) => None,
        }
    }

    fn is_padded(self) -> bool {
        matches!(self, Lane::State(State::Known(_) | State::Spoiled))
    }

    fn state(self) -> State {
        match self {
            Lane::Constant(_) => State::Same,
            Lane::State(s) => s,
        }
    }
}

/// A number as a float, for comparisons with identities.
pub(super) fn number(s: Scalar) -> f64 {
    let truth = s.as_bool().map(|b| if b { 1.0 } else { 0.0 });
    truth.or(s.as_f64()).or(s.as_int().map(|i| i as f64)).unwrap_or(f64::NAN)
}

fn is_not_negative(s: Scalar) -> bool {
    number(s) >= 0.0
}

/// The value of an operation on constants, each converted to the type of its operand.
fn evaluate(op: ElementwiseOp, values: &[Scalar], types: &[DType], out: DType) -> Option<Scalar> {
    let convert = |s: Scalar, to: DType| {
        if s.dtype() == to {
            return Some(s);
        }
        eval::elementwise(ElementwiseOp::Cast, &[Operand::Splat(s)], to, 1, false).ok().map(|b| b.get(0))
    };
    let values: Option<Vec<Scalar>> = values.iter().zip(types).map(|(s, t)| convert(*s, *t)).collect();
    let operands: Vec<Operand> = values?.into_iter().map(Operand::Splat).collect();
    eval::elementwise(op, &operands, out, 1, false).ok().map(|b| b.get(0))
}

/// The result of an elementwise operation; operands with their element types, the element type of the result.
pub(super) fn elementwise<'a>(op: ElementwiseOp, args: &[(Tile<'a>, DType)], out: DType) -> Tile<'a> {
    if let (ElementwiseOp::Fma, [(a, ta), (b, tb), c]) = (op, args) {
        let product = elementwise(ElementwiseOp::Mul, &[(a.clone(), *ta), (b.clone(), *tb)], out);
        return elementwise(ElementwiseOp::Add, &[(product, out), c.clone()], out);
    }
    let rank = args.iter().map(|(t, _)| t.dims.len()).max().unwrap_or(0);
    let types: Vec<DType> = args.iter().map(|(_, d)| *d).collect();
    let constants: Option<Vec<Scalar>> = args.iter().map(|(t, _)| t.constant).collect();
    let constant = if op == ElementwiseOp::Mul && of_nothing(args) {
        Some(Scalar::zero(out))
    } else {
        constants.and_then(|c| evaluate(op, &c, &types, out))
    };
    let dims = (0..rank).map(|d| {
        let lanes: Vec<Lane> = args.iter().map(|(t, _)| t.lane(d)).collect();
        settle(combine(op, &lanes, &types, out))
    });
    let dims = if constant.is_some() { vec![State::Same; rank] } else { dims.collect() };
    let not_negative = constant.is_some_and(is_not_negative) || keeps_sign(op, args);
    // The operand whose padding the result has, or the first one that has padding.
    let decides = |t: &Tile| dims.iter().zip(&t.dims).any(|(d, s)| matches!(d, State::Known(_)) && d == s);
    let padded = || args.iter().filter(|(t, _)| t.origin.is_some());
    let from = padded().find(|(t, _)| decides(t)).or_else(|| padded().next());
    let (origin, moved) = from.map_or((None, false), |(t, _)| (t.origin, t.moved));
    let operands = || args.iter().map(|(t, _)| t);
    let sources = sources(&dims, operands());
    let summed = operands().any(|t| t.summed);
    let linear = is_linear(op, args);
    Tile { dims, sources, constant, not_negative, linear, origin, loads: loads(operands()), moved, summed }
}

/// Whether positions still grow without an end after an operation.
fn is_linear(op: ElementwiseOp, args: &[(Tile, DType)]) -> bool {
    let keeps = match op.group() {
        Group::Arithmetic(Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul) => true,
        Group::Cast(_) => args.iter().all(|(_, d)| d.is_int()),
        _other => false,
    };
    let is_single = |t: &Tile| t.dims.iter().all(|s| *s == State::Same);
    keeps && args.iter().any(|(t, _)| t.linear) && args.iter().all(|(t, _)| t.linear || is_single(t))
}

/// Where the padding of each dimension comes from: from the operand whose padding the result has, or from the first one
/// that has padding.
fn sources<'a, 't>(dims: &[State], operands: impl Iterator<Item = &'t Tile<'a>> + Clone) -> Vec<Source<'a>>
where
    'a: 't,
{
    let of = |(d, state): (usize, &State)| {
        let known = || operands.clone().filter(|t| t.source(d).is_some());
        let from = known().find(|t| t.dims.get(d) == Some(state));
        from.or_else(|| known().next()).and_then(|t| t.source(d))
    };
    dims.iter().enumerate().map(of).collect()
}

/// The masked loads of several operands.
pub(super) fn loads<'a, 't>(operands: impl IntoIterator<Item = &'t Tile<'a>>) -> Vec<&'a HExpr>
where
    'a: 't,
{
    let mut all: Vec<&'a HExpr> = vec![];
    for load in operands.into_iter().flat_map(|t| &t.loads) {
        if !all.iter().any(|l| l.span == load.span) {
            all.push(load);
        }
    }
    all
}

/// Returns true if one factor is 0 everywhere and no padding is infinite: what a loop has not begun to sum up stays
/// 0, whatever it is scaled by.
fn of_nothing(args: &[(Tile, DType)]) -> bool {
    let infinite = |s: &State| matches!(s, State::Known(c) if number(*c).is_infinite());
    args.iter().any(|(t, _)| t.constant.is_some_and(|c| number(c) == 0.0))
        && !args.iter().any(|(t, _)| t.dims.iter().any(infinite))
}

/// NaN spoils nothing that is worth a message.
fn settle(s: State) -> State {
    match s {
        State::Known(c) if number(c).is_nan() => State::Unknown,
        other => other,
    }
}

/// Returns true if the data of the result is not negative.
fn keeps_sign(op: ElementwiseOp, args: &[(Tile, DType)]) -> bool {
    let each = || args.iter().all(|(t, _)| t.not_negative);
    match op.group() {
        Group::FloatUnary(f) => {
            matches!(f, FloatUnary::Exp | FloatUnary::Exp2 | FloatUnary::Sqrt | FloatUnary::Rsqrt)
        }
        Group::Sign(f) => f == Sign::Abs,
        Group::BitCount(_) => true,
        Group::MinMax(MinMax::Maximum | MinMax::MaxNum) => args.iter().any(|(t, _)| t.not_negative),
        Group::Select(_) => args.iter().skip(1).all(|(t, _)| t.not_negative),
        Group::Arithmetic(Arithmetic::Sub | Arithmetic::Rem) => false,
        Group::Arithmetic(Arithmetic::Add | Arithmetic::Mul | Arithmetic::Div) => each(),
        Group::MinMax(MinMax::Minimum | MinMax::MinNum) => each(),
        Group::FloatBinary(FloatBinary::Pow) => each() || args.get(1).is_some_and(|(t, _)| is_even(t)),
        Group::Cast(_) | Group::Rounding(_) => each(),
        Group::Clamp(_) => args.get(1).is_some_and(|(t, _)| t.not_negative),
        Group::Bitwise(_)
        | Group::Complement(_)
        | Group::Shift(_)
        | Group::Equality(_)
        | Group::Order(_)
        | Group::Fma(_)
        | Group::IntUnary(_)
        | Group::IntBinary(_)
        | Group::FloatTest(_)
        | Group::Bitcast(_) => false,
    }
}

/// Whether this is one even number.
fn is_even(t: &Tile) -> bool {
    t.constant.is_some_and(|c| number(c) % 2.0 == 0.0)
}

/// The result of a comparison that one operand decides: NaN, or the greatest or the least value, beside any other number.
/// Nothing is known of an infinity that is compared with `==` and the like, as the other one may be infinite too.
fn compared(op: ElementwiseOp, lanes: &[Lane]) -> Option<State> {
    let is_order = matches!(op.group(), Group::Order(_));
    let is_equality = matches!(op.group(), Group::Equality(_));
    let [a, b] = lanes else { return None };
    if !is_order && !is_equality {
        return None;
    }
    let of = |l: &Lane| if l.is_padded() { l.value() } else { None };
    let truth = |b: bool| Some(State::Known(Scalar::bool(b)));
    if [a, b].iter().any(|l| of(l).is_some_and(|c| number(c).is_nan())) {
        return truth(op == ElementwiseOp::Ne);
    }
    // One of them is a constant: the evaluation says it.
    if a.value().is_some() && b.value().is_some() {
        return None;
    }
    let is_least = |l: &Lane| of(l).is_some_and(|c| is_end(c, true));
    let is_greatest = |l: &Lane| of(l).is_some_and(|c| is_end(c, false));
    match op {
        ElementwiseOp::Lt if is_greatest(a) || is_least(b) => truth(false),
        ElementwiseOp::Gt if is_least(a) || is_greatest(b) => truth(false),
        ElementwiseOp::Le if is_least(a) || is_greatest(b) => truth(true),
        ElementwiseOp::Ge if is_greatest(a) || is_least(b) => truth(true),
        _other if [a, b].iter().any(|l| is_least(l) || is_greatest(l)) => Some(State::Unknown),
        _other => None,
    }
}

/// Whether a number is the least (or the greatest) of its type.
fn is_end(c: Scalar, least: bool) -> bool {
    match (c.dtype().int_range(), c.as_int()) {
        (Some((low, high)), Some(n)) => n == if least { low } else { high },
        (_, _) => number(c) == if least { f64::NEG_INFINITY } else { f64::INFINITY },
    }
}

/// One dimension of an elementwise operation.
fn combine(op: ElementwiseOp, lanes: &[Lane], types: &[DType], out: DType) -> State {
    if let (ElementwiseOp::Select, [cond, a, b]) = (op, lanes) {
        return select(*cond, *a, *b);
    }
    if let Some(s) = compared(op, lanes).or_else(|| absorbed(op, lanes, out)) {
        return s;
    }
    let states = || lanes.iter().filter(|l| !matches!(l, Lane::Constant(_))).map(|l| l.state());
    if states().any(|s| s == State::Unknown) {
        return State::Unknown;
    }
    if !lanes.iter().any(|l| l.is_padded()) {
        return without_padding(op, states().collect(), out);
    }
    let values: Option<Vec<Scalar>> = lanes.iter().map(|l| l.value()).collect();
    match values {
        Some(v) => evaluate(op, &v, types, out).map_or(State::Unknown, State::Known),
        // What a mask does to numbers is not known.
        None if states().any(|s| s == State::Mask) => State::Unknown,
        None => State::Spoiled,
    }
}

fn without_padding(op: ElementwiseOp, states: Vec<State>, out: DType) -> State {
    let masks = states.contains(&State::Mask);
    let varies = masks || states.contains(&State::Data);
    match (varies, masks) {
        (false, _) => State::Same,
        (true, _) if out == DType::Bool => State::Mask,
        (true, true) if op == ElementwiseOp::Cast => State::Mask,
        (true, true) => State::Unknown,
        (true, false) => State::Data,
    }
}

/// Results that one operand decides, whatever the others are.
fn absorbed(op: ElementwiseOp, lanes: &[Lane], out: DType) -> Option<State> {
    let padded = |l: &Lane| match l {
        Lane::State(State::Known(c)) => Some(number(*c)),
        Lane::State(_) | Lane::Constant(_) => None,
    };
    let any = |v: f64| lanes.iter().any(|l| padded(l) == Some(v));
    let masked = lanes.contains(&Lane::State(State::Mask));
    let zero = Some(State::Known(Scalar::zero(out)));
    // An infinity stays what it is beside numbers; a factor is taken to be positive.
    let infinite = || {
        let at = lanes.iter().position(|l| padded(l).is_some_and(f64::is_infinite))?;
        let finite =
            lanes.iter().enumerate().all(|(i, l)| i == at || !l.is_padded() && l.state() != State::Unknown);
        let v = lanes.get(at).and_then(padded).filter(|_| finite && out.is_float())?;
        Some(Scalar::float(out, if op == ElementwiseOp::Sub && at == 1 { -v } else { v }))
    };
    match op {
        ElementwiseOp::Mul if any(0.0) || masked && lanes.iter().any(|l| l.is_padded()) => zero,
        ElementwiseOp::Mul | ElementwiseOp::Add | ElementwiseOp::Sub => infinite().map(State::Known),
        ElementwiseOp::Div if lanes.first().and_then(padded).is_some_and(f64::is_infinite) => {
            infinite().map(State::Known)
        }
        ElementwiseOp::Div
            if lanes.first().and_then(padded) == Some(0.0) && lanes.get(1).and_then(padded) != Some(0.0) =>
        {
            zero
        }
        ElementwiseOp::And if any(0.0) => zero,
        ElementwiseOp::And if masked => Some(State::Mask),
        ElementwiseOp::Or if out == DType::Bool && any(1.0) => Some(State::Known(Scalar::bool(true))),
        ElementwiseOp::Minimum | ElementwiseOp::MinNum if any(f64::NEG_INFINITY) => {
            Some(State::Known(Scalar::float(out, f64::NEG_INFINITY)))
        }
        ElementwiseOp::Maximum | ElementwiseOp::MaxNum if any(f64::INFINITY) => {
            Some(State::Known(Scalar::float(out, f64::INFINITY)))
        }
        _other => None,
    }
}

/// `where(cond, a, b)`: a condition that depends on the lane is taken to be one that is false in the padding, unless
/// only the first choice is a constant.
fn select(cond: Lane, a: Lane, b: Lane) -> State {
    let known = |l: Lane| match l {
        Lane::Constant(c) => State::Known(c),
        Lane::State(s) => s,
    };
    if let Some(c) = cond.value() {
        let chosen = if number(c) == 1.0 { a } else { b };
        return if matches!(cond, Lane::Constant(_)) { chosen.state() } else { known(chosen) };
    }
    match cond.state() {
        State::Mask | State::Data => match (a, b) {
            (Lane::Constant(x), Lane::Constant(y)) if x != y => State::Unknown,
            (_, Lane::Constant(c)) => State::Known(c),
            (Lane::Constant(c), b) if b.is_padded() || b.state() == State::Unknown => State::Known(c),
            (Lane::Constant(_), _) => State::Unknown,
            (Lane::State(State::Same | State::Data), Lane::State(State::Same | State::Data)) => State::Data,
            (_, Lane::State(State::Known(c))) => State::Known(c),
            (Lane::State(_), Lane::State(_)) => State::Unknown,
        },
        State::Same => branches(a, b),
        State::Spoiled if known(a) == known(b) => known(a),
        State::Spoiled => State::Spoiled,
        State::Unknown | State::Known(_) => State::Unknown,
    }
}

/// One of two values, the same one in every lane.
fn branches(a: Lane, b: Lane) -> State {
    let plain = |l: Lane| matches!(l, Lane::Constant(_) | Lane::State(State::Same | State::Data));
    match (a, b) {
        (a, b) if a == b => a.state(),
        (a, b) if plain(a) && plain(b) => State::Data,
        (Lane::State(State::Known(x)), Lane::Constant(y))
        | (Lane::Constant(y), Lane::State(State::Known(x)))
            if number(x) == number(y) =>
        {
            State::Known(x)
        }
        (Lane::State(State::Spoiled), Lane::Constant(_))
        | (Lane::Constant(_), Lane::State(State::Spoiled)) => State::Spoiled,
        (_, _) => State::Unknown,
    }
}

/// Whether padding has one number before an iteration of a loop and another finite one after it.
fn accumulates(before: Lane, after: Lane) -> bool {
    let finite = |l: Lane| l.value().map(number).filter(|n| n.is_finite());
    let (a, b) = (finite(before), finite(after));
    after.is_padded() && a.is_some() && b.is_some() && a != b
}

/// The state after two paths, of which either may have been taken.
pub(super) fn join<'a>(a: &Tile<'a>, b: &Tile<'a>, looping: bool) -> Tile<'a> {
    if a == b {
        return a.clone();
    }
    let rank = a.dims.len().max(b.dims.len());
    let dims = (0..rank).map(|d| match (a.lane(d), b.lane(d)) {
        // What a loop spoils in one iteration stays spoiled, whatever it began with.
        (Lane::State(State::Spoiled), y) if looping && y.state() != State::Unknown => State::Spoiled,
        (x, Lane::State(State::Spoiled)) if looping && x.state() != State::Unknown => State::Spoiled,
        // What an iteration adds to padding is there after the loop.
        (x, y) if looping && accumulates(x, y) => State::Spoiled,
        (x, y) => branches(x, y),
    });
    let dims: Vec<State> = dims.collect();
    Tile {
        sources: sources(&dims, [a, b].into_iter()),
        dims,
        constant: a.constant.filter(|c| b.constant == Some(*c)),
        not_negative: a.not_negative && b.not_negative,
        linear: a.linear && b.linear,
        origin: a.origin.or(b.origin),
        loads: loads([a, b]),
        // One of two loads is not one that a fix could name.
        moved: a.moved || b.moved || a.origin != b.origin,
        summed: a.summed || b.summed,
    }
}
