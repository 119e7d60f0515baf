//! Refuses kernels that are too large to compile, with the loops that were unrolled into them.
//!
//! Requires a program without recursion. The size of a kernel is that after inlining: functions are always inlined,
//! so a call counts as its callee.

use std::collections::BTreeMap;
use std::ops::Range;

use tk_ops::{ControlOp, Op};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::passes::inline::MAX_INSTS;
use tk_tile::{Func, FuncKind, Inst};

/// A compile-time loop that was unrolled.
#[derive(Clone, Debug)]
pub(crate) struct Unrolled {
    /// The number of the instance in whose body it is.
    pub instance: usize,
    pub span: Span,
    pub iterations: usize,
    /// The instructions of the function that it became.
    pub insts: Range<usize>,
}

/// The number of loops that a diagnostic names.
const NAMED: usize = 3;

/// Refuses the kernel, the first of the functions, if it has more than [`MAX_INSTS`] instructions after inlining.
/// `name` tells the name of an instance in the IR.
pub(crate) fn check(
    funcs: &[Func],
    span: Span,
    unrolled: &[Unrolled],
    name: impl Fn(usize) -> Option<String>,
) -> crate::eval::EvalResult<()> {
    let Some(kernel) = funcs.first().filter(|f| f.kind == FuncKind::Kernel) else { return Ok(()) };
    let numbers: BTreeMap<&str, usize> = funcs.iter().enumerate().map(|(i, f)| (&*f.name, i)).collect();
    let mut sizes = Sizes { funcs, numbers, known: vec![None; funcs.len()] };
    let total = sizes.of(0);
    if total <= MAX_INSTS as u64 {
        return Ok(());
    }
    let copies = sizes.copies();
    // Iterations and instructions of each loop of the source, over all copies of its function.
    let mut loops: BTreeMap<(u32, u32, u32), (Span, u64, u64)> = BTreeMap::new();
    for u in unrolled {
        let Some(f) = name(u.instance).and_then(|n| sizes.numbers.get(&*n).copied()) else { continue };
        let Some(func) = funcs.get(f) else { continue };
        let insts = func.insts.iter().skip(u.insts.start).take(u.insts.len());
        let insts: u64 = insts.map(|(_, i)| sizes.of_inst(i)).sum();
        let times = copies.get(f).copied().unwrap_or(0);
        let key = (u.span.file.0, u.span.start, u.span.end);
        let slot = loops.entry(key).or_insert((u.span, 0, 0));
        slot.1 = slot.1.saturating_add(times.saturating_mul(u.iterations as u64));
        slot.2 = slot.2.saturating_add(times.saturating_mul(insts));
    }
    let mut loops: Vec<_> = loops.into_values().collect();
    loops.sort_by_key(|(_, _, insts)| std::cmp::Reverse(*insts));
    let message = format!(
        "`{}` expands to {total} instructions, and the limit for a kernel is {MAX_INSTS}",
        kernel.name
    );
    let mut d = Diagnostic::error(codes::TOO_LARGE, span, message, "");
    for (span, iterations, insts) in loops.into_iter().take(NAMED) {
        d = d.label(span, format!("unrolled to {iterations} iterations, {insts} instructions"));
    }
    Err(Box::new(
        d.note("`static_range` copies its body for each iteration; a loop over `range` keeps it once"),
    ))
}

/// The sizes of functions after inlining.
struct Sizes<'a> {
    funcs: &'a [Func],
    numbers: BTreeMap<&'a str, usize>,
    known: Vec<Option<u64>>,
}

impl Sizes<'_> {
    fn of(&mut self, f: usize) -> u64 {
        if let Some(Some(known)) = self.known.get(f) {
            return *known;
        }
        let Some(func) = self.funcs.get(f) else { return 0 };
        let size = func.insts.iter().fold(0, |sum: u64, (_, i)| sum.saturating_add(self.of_inst(i)));
        if let Some(slot) = self.known.get_mut(f) {
            *slot = Some(size);
        }
        size
    }

    /// 1, or the size of what is called.
    fn of_inst(&mut self, inst: &Inst) -> u64 {
        self.callee(inst).map_or(1, |f| self.of(f))
    }

    fn callee(&self, inst: &Inst) -> Option<usize> {
        let called = inst.op == Op::Control(ControlOp::Call);
        called.then(|| inst.attrs.str("callee")).flatten().and_then(|n| self.numbers.get(n).copied())
    }

    /// The number of copies of each function in the first one.
    fn copies(&self) -> Vec<u64> {
        let mut calls = vec![BTreeMap::<usize, u64>::new(); self.funcs.len()];
        for (func, calls) in self.funcs.iter().zip(&mut calls) {
            for callee in func.insts.iter().filter_map(|(_, i)| self.callee(i)) {
                *calls.entry(callee).or_default() += 1;
            }
        }
        // Callers before what they call.
        let mut order = vec![];
        let mut seen = vec![false; self.funcs.len()];
        after_callees(0, &calls, &mut seen, &mut order);
        let mut copies = vec![0u64; self.funcs.len()];
        if let Some(first) = copies.first_mut() {
            *first = 1;
        }
        for f in order.into_iter().rev() {
            let times = copies.get(f).copied().unwrap_or(0);
            for (callee, n) in calls.get(f).into_iter().flatten() {
                if let Some(slot) = copies.get_mut(*callee) {
                    *slot = slot.saturating_add(times.saturating_mul(*n));
                }
            }
        }
        copies
    }
}

/// The functions that `f` reaches, each after those that it calls.
fn after_callees(f: usize, calls: &[BTreeMap<usize, u64>], seen: &mut [bool], order: &mut Vec<usize>) {
    match seen.get_mut(f) {
        Some(seen) if !*seen => *seen = true,
        _ => return,
    }
    for callee in calls.get(f).into_iter().flatten().map(|(c, _)| *c) {
        after_callees(callee, calls, seen, order);
    }
    order.push(f);
}
