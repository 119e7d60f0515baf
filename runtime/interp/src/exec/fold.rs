//! `reduce` and `scan` with a function of the user: [`Fold`], which says what the block runs on next.
//!
//! Guarantees an order that the extent along the axis alone decides. `reduce` combines neighbours, then neighbours of
//! the results, until one is left; the last of an odd number joins the next round as it is. `scan` goes from one
//! element to the next. Neither needs the function to be commutative, nor an identity.
//!
//! A block that works element by element gets all pairs of a round as two tiles; any other gets them one by one, in
//! the same order.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_tile::ElemType;

use super::transfer::to_memory;
use crate::code::Step;
use crate::fault::Fault;
use crate::space::Space;
use crate::value::Value;

/// The kinds of folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folding {
    /// To one element.
    Reduce,
    /// To the running results, from the end if `reverse`.
    Scan { reverse: bool },
}

/// A `reduce` or `scan` on its way.
pub(crate) struct Fold {
    folding: Folding,
    elems: Vec<ElemType>,
    /// The targets of pointers.
    space: Arc<Space>,
    /// Per operand the rows, which are folded with each other; pointers as addresses.
    rows: Vec<Buf>,
    /// The number of rows left.
    len: usize,
    /// Extents before and after the axis; a row has an element for each of both.
    outer: usize,
    inner: usize,
    /// The row that a scan computes next.
    at: usize,
    /// Whether the block takes whole tiles.
    whole: bool,
    round: Round,
}

/// The pairs that are combined now.
#[derive(Default)]
struct Round {
    left: Vec<Buf>,
    right: Vec<Buf>,
    out: Vec<Buf>,
    /// Pairs, and the one that is being combined.
    count: usize,
    at: usize,
}

impl Fold {
    /// Begins with the operands of `step`.
    pub fn new(
        folding: Folding,
        step: &Step<'_>,
        inputs: Vec<Value>,
        whole: bool,
        space: Arc<Space>,
    ) -> Result<Fold, Fault> {
        let shape = step.uses.first().and_then(|u| u.ty.shape());
        let shape = shape.ok_or_else(|| Fault::internal("a tile is expected, not a view"))?;
        let axis = step.attrs.int("axis").and_then(|a| usize::try_from(a).ok()).filter(|a| *a < shape.len());
        let axis = axis.ok_or_else(|| Fault::internal("an axis is out of range"))?;
        let product =
            |part: Option<&[u32]>| part.unwrap_or_default().iter().map(|d| *d as usize).product::<usize>();
        let (outer, inner) = (product(shape.get(..axis)), product(shape.get(axis + 1..)));
        let len = product(shape.get(axis..=axis));
        let elems: Vec<ElemType> = step.uses.iter().map(|u| u.ty.elem().clone()).collect();
        let mut rows = Vec::with_capacity(inputs.len());
        for (elem, value) in elems.iter().zip(inputs) {
            let x = to_memory(elem, value, outer * len * inner, &space)?;
            let strides = [inner, len * inner, 1].map(|s| s as isize);
            rows.push(if outer == 1 { x } else { x.strided(0, &[len, outer, inner], &strides) });
        }
        let whole = whole && !elems.iter().any(|e| matches!(e, ElemType::Ptr { .. }));
        Ok(Fold { folding, elems, space, rows, len, outer, inner, at: 1, whole, round: Round::default() })
    }

    fn lanes(&self) -> usize {
        self.outer * self.inner
    }

    /// The start of row `i` of a scan.
    fn start(&self, i: usize, reverse: bool) -> isize {
        (if reverse { self.len - 1 - i } else { i } * self.lanes()) as isize
    }

    /// The next arguments of the block; `None` when everything is folded.
    pub fn arguments(&mut self) -> Option<Vec<Value>> {
        if self.round.at >= self.round.count && !self.begin_round() {
            return None;
        }
        let Round { left, right, at, .. } = &mut self.round;
        Some(if self.whole {
            left.drain(..).chain(right.drain(..)).map(Value::tile).collect()
        } else {
            let both = left.iter().chain(right.iter()).zip(self.elems.iter().cycle());
            both.map(|(x, elem)| element(x, elem, *at, &self.space)).collect()
        })
    }

    /// Gathers the pairs of the next round, if there is one.
    fn begin_round(&mut self) -> bool {
        let lanes = self.lanes();
        let (left, right, count) = match self.folding {
            Folding::Reduce if self.len > 1 => {
                let (shape, strides) = ([self.len / 2, lanes], [2 * lanes as isize, 1]);
                let part = |start: usize| {
                    self.rows.iter().map(move |x| x.strided(start as isize, &shape, &strides)).collect()
                };
                (part(0), part(lanes), self.len / 2 * lanes)
            }
            Folding::Scan { reverse } if self.at < self.len => {
                let part = |i| {
                    let start = self.start(i, reverse);
                    self.rows.iter().map(move |x| x.strided(start, &[lanes], &[1])).collect()
                };
                (part(self.at - 1), part(self.at), lanes)
            }
            Folding::Reduce | Folding::Scan { .. } => return false,
        };
        let none = if self.whole { 0 } else { count };
        let out = self.rows.iter().map(|x| Buf::zeros(x.dtype(), none)).collect();
        self.round = Round { left, right, out, count, at: 0 };
        true
    }

    /// Takes what the block gave.
    pub fn keep(&mut self, values: Vec<Value>) -> Result<(), Fault> {
        if values.len() != self.elems.len() {
            return Err(Fault::internal("a fold gets another number of values than it takes"));
        }
        let n = if self.whole { self.round.count } else { 1 };
        for ((elem, value), out) in self.elems.iter().zip(values).zip(&mut self.round.out) {
            let x = to_memory(elem, value, n, &self.space)?;
            if self.whole {
                *out = x;
            } else {
                out.set(self.round.at, x.get(0));
            }
        }
        self.round.at += n;
        if self.round.at >= self.round.count {
            self.end_round();
        }
        Ok(())
    }

    /// Puts the results of a round in the place of what they were combined from.
    fn end_round(&mut self) {
        let (lanes, n) = (self.lanes(), self.round.count);
        let out = std::mem::take(&mut self.round.out);
        match self.folding {
            Folding::Reduce => {
                let odd = self.len % 2;
                for (row, mut out) in self.rows.iter_mut().zip(out) {
                    if odd == 1 {
                        let last = row.strided(((self.len - 1) * lanes) as isize, &[lanes], &[1]);
                        let mut both = Buf::zeros(out.dtype(), n + lanes);
                        both.put_strided(0, &[n], &[1], &out);
                        both.put_strided(n as isize, &[lanes], &[1], &last);
                        out = both;
                    }
                    *row = out;
                }
                self.len = self.len / 2 + odd;
            }
            Folding::Scan { reverse } => {
                let start = self.start(self.at, reverse);
                for (row, out) in self.rows.iter_mut().zip(out) {
                    row.put_strided(start, &[lanes], &[1], &out);
                }
                self.at += 1;
            }
        }
    }

    /// The results.
    pub fn results(self) -> Vec<Value> {
        let space = self.space;
        let (len, outer, inner, folding) = (self.len, self.outer, self.inner, self.folding);
        let value = |(x, elem): (Buf, ElemType)| {
            let x = match folding {
                Folding::Scan { .. } if outer > 1 => {
                    let strides = [inner, outer * inner, 1].map(|s| s as isize);
                    x.strided(0, &[outer, len, inner], &strides)
                }
                Folding::Scan { .. } | Folding::Reduce => x,
            };
            match (elem, x) {
                (ElemType::Ptr { .. }, Buf::U64(v)) => {
                    Value::lanes(v.into_iter().map(|a| space.resolve(a)).collect())
                }
                (ElemType::Ptr { .. } | ElemType::Scalar(_), x) => Value::tile(x),
            }
        };
        self.rows.into_iter().zip(self.elems).map(value).collect()
    }
}

/// One element.
fn element(x: &Buf, elem: &ElemType, i: usize, space: &Space) -> Value {
    match elem {
        ElemType::Ptr { .. } => Value::Ptr(space.resolve(x.get(i).bits())),
        ElemType::Scalar(_) => Value::Splat(x.get(i)),
    }
}
