//! The conditions of each `prefer` on single arguments: [`preferred`], for a binary that assumes them.
//!
//! A condition that says something else changes no code, so it need not be checked either.

use super::{Closed, ClosedOp, Closer, arguments};
use crate::eval::{Bindings, EvalResult};
use crate::hir::{FnId, Hir, Requirement};

/// The preferred properties of an argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// The argument, counted among those that are there.
    pub arg: usize,
    /// Which number of it.
    pub part: Part,
    /// A power of two that divides it.
    pub divisible: u32,
    /// It is 1.
    pub one: bool,
}

/// A number of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its value.
    Number,
    /// An extent.
    Extent(usize),
    /// A stride.
    Stride(usize),
}

/// The properties in each `prefer` clause of a kernel; none if it has no such clause. A condition about an optional
/// argument that is absent says nothing.
pub fn preferred(hir: &Hir, kernel: FnId, bindings: &Bindings) -> EvalResult<Vec<Vec<Preferred>>> {
    let clauses = &hir.func(kernel).contract.prefer;
    if clauses.is_empty() {
        return Ok(vec![]);
    }
    let present: Vec<bool> = arguments(hir, kernel, bindings)?.iter().map(|a| a.present).collect();
    let position = |slot: usize| {
        let before = present.get(..slot)?.iter().filter(|p| **p).count();
        (present.get(slot) == Some(&true)).then_some(before)
    };
    let mut closer = Closer::of_kernel(hir, kernel, bindings);
    let mut of = |clause: &Vec<Requirement>| {
        let mut out = vec![];
        // What has no closed form is nothing that a binary could take for granted.
        for condition in clause.iter().filter_map(|r| closer.number(&r.cond).ok()) {
            say(&condition, &position, &mut out);
        }
        out
    };
    Ok(clauses.iter().map(&mut of).collect())
}

/// Adds what a condition says: `a % c == 0`, `a == 1`, or several of these.
fn say(condition: &Closed, position: &dyn Fn(usize) -> Option<usize>, out: &mut Vec<Preferred>) {
    let Closed::Op { op, args, .. } = condition else { return };
    match (op, args.as_slice()) {
        (ClosedOp::And, both) => both.iter().for_each(|c| say(c, position, out)),
        (ClosedOp::Eq, [a, b]) => {
            let (a, b) = if matches!(a, Closed::Int(_)) { (b, a) } else { (a, b) };
            let (of, divisible, one) = match (a, b) {
                (Closed::Op { op: ClosedOp::Rem, args, .. }, Closed::Int(0)) => match args.as_slice() {
                    [of, Closed::Int(c)] => match u32::try_from(*c) {
                        // Of 48, the power of two is what matters.
                        Ok(c) if c > 0 => (of, 1 << c.trailing_zeros(), false),
                        Ok(_) | Err(_) => return,
                    },
                    _other => return,
                },
                (of, Closed::Int(1)) => (of, 1, true),
                _other => return,
            };
            let (slot, part) = match of {
                Closed::Number(slot) => (*slot, Part::Number),
                Closed::Extent(slot, axis) => (*slot, Part::Extent(*axis)),
                Closed::Stride(slot, axis) => (*slot, Part::Stride(*axis)),
                Closed::Int(_) | Closed::Float(_) | Closed::Device(_) | Closed::Op { .. } => return,
            };
            out.extend(position(slot).map(|arg| Preferred { arg, part, divisible, one }));
        }
        _other => {}
    }
}
