//! Multiplies while the elements of the next product are computed, in loops of two products that depend on each other.
//!
//! ```text
//! for i in lo..hi, acc                           acc, p = {iteration lo, without its second product}
//!   s = mma 0, q, k[i]                           for i in lo + step..hi, acc, p
//!   p, alpha = .. s                        =>      s1 = mma 0, q, k[i] {asynchronous = true}
//!   acc = mma acc * alpha, p, v[i]                 acc1 = mma acc, p, v[i - step] {asynchronous = true}
//!                                                  s = mma_wait s1 {pending = 1}
//!                                                  m = max s
//!                                                  acc2 = mma_wait acc1, m {pending = 0}
//!                                                  p, alpha = .. s, m
//!                                                  acc = acc2 * alpha
//! consumer_release q                             consumer_release q
//!                                                acc = mma acc, p, v[..]           if there was an iteration
//! ```
//!
//! The second product of an iteration is done in the next one, after its first: the matrix units multiply while the
//! warps compute what depends on the first (FlashAttention-3, Shah and others, 2024, section 3.2). The elements that the
//! second product takes from registers are carried to the next iteration. Its wait is behind the first reduction of the first
//! product: earlier it delays the maxima, later the matrix units.
//!
//! Applies to loops of consumers with two products of warpgroups, each of a TMA pipeline of its own, where the second one
//! takes what is computed from the first, and adds to what nothing before the first uses. Lanes must have registers for it.
//!
//! Requires producer warps. Guarantees that each pipeline is waited for and released as often as before.

use std::collections::BTreeSet;

use tk_ops::table::Effects;
use tk_ops::{ControlOp, DType, ElementwiseOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::rewrite::{Renames, yielded};
use tk_tile::{Attrs, BlockId, Def, Func, Inst, InstId, TypeId, ValueId, walk};

use crate::analysis::liveness::register_pressure;
use crate::analysis::wgmma_shared;
use crate::ir::builder::Edit;
use crate::ir::kernel::{Kernel, LayoutId, Remark};
use crate::ir::op::{ConsumerRelease, ConsumerWait, GpuOp, Mma, Pipeline};
use crate::ir::shared_access::{plain_operands, stage_index, touched};
use crate::ir::warps::{WARPGROUP_WARPS, producer};
use crate::passes::reallocate_registers::{NON_TILE_REGISTERS, share};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "overlap_products",
    purpose: "multiplies while the operands of the next product are computed",
    needs: &[Property::ProducerWarps],
    leaves: &[Property::OverlappedProducts],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// A product of a TMA pipeline.
#[derive(Clone, Debug)]
struct Piped {
    wait: InstId,
    product: InstId,
    release: InstId,
    pipeline: Pipeline,
}

/// A loop and its products.
#[derive(Clone, Debug)]
struct Pair {
    /// The block of the loop, and the loop.
    at: (BlockId, InstId),
    body: BlockId,
    first: Piped,
    second: Piped,
    /// The number of the loop-carried value that is the sum of the second.
    carried: usize,
    /// The operands of the second that differ from iteration to iteration, its accumulator first.
    operands: Vec<ValueId>,
}

/// Registers for everything but tiles in programs with several warpgroups, which count stages and iterations in fewer
/// than others: attention with 136 for tiles fits the 160 of three consumer warpgroups, without spills.
const OF_GROUPS: u32 = 24;

fn run(kernel: &mut Kernel) {
    let Some((_, [_, consumers])) = producer(kernel) else { return };
    for at in loops(kernel, consumers) {
        let pair = match Pair::find(kernel, at) {
            Ok(pair) => pair,
            Err(None) => continue,
            Err(Some(why)) => {
                remark(kernel, at.1, why);
                continue;
            }
        };
        let before = kernel.clone();
        pair.apply(kernel);
        let (spec, warps) = (kernel.options.spec, kernel.options.all_warps());
        let most = share(spec, warps).map_or(spec.registers_of_launch(warps + 1), |s| s.others);
        let beside = if kernel.options.groups > 1 { OF_GROUPS } else { NON_TILE_REGISTERS };
        if register_pressure(kernel, consumers) + beside > most {
            *kernel = before;
            remark(kernel, at.1, "lanes have too few registers for the operands of both");
        }
    }
}

fn remark(kernel: &mut Kernel, id: InstId, why: &str) {
    let loc = kernel.func().insts[id].loc;
    let text = format!("no product is done while the elements of the next one are computed: {why}");
    kernel.remarks.push(Remark { loc, text });
}

/// The innermost loops of a block.
fn loops(kernel: &Kernel, block: BlockId) -> Vec<(BlockId, InstId)> {
    let func = kernel.func();
    let is_loop = |i: &InstId| func.insts[*i].op == Op::Control(ControlOp::For);
    let mut out = vec![];
    for i in &func.blocks[block].insts {
        let inside = func.insts[*i].blocks.iter();
        if is_loop(i) && !inside.clone().flat_map(|b| walk::insts_in(func, *b)).any(|i| is_loop(&i)) {
            out.push((block, *i));
        } else {
            out.extend(inside.flat_map(|b| loops(kernel, *b)));
        }
    }
    out
}

impl Pair {
    /// The products of a loop. Fails without two of warpgroups, or with the reason why they cannot overlap.
    fn find(kernel: &Kernel, at: (BlockId, InstId)) -> Result<Pair, Option<&'static str>> {
        let func = kernel.func();
        let Some(body) = func.insts[at.1].blocks.first().copied() else { return Err(None) };
        let insts = &func.blocks[body].insts;
        let products: Vec<InstId> =
            walk::insts_in(func, body).into_iter().filter(|i| waits(func, *i)).collect();
        let [first, second] = products[..] else { return Err(None) };
        let (Some(first), Some(second)) = (Piped::of(func, body, first), Piped::of(func, body, second))
        else {
            return Err(None);
        };
        if first.pipeline == second.pipeline {
            return Err(Some("both read the same stage"));
        }
        let place = |id: InstId| insts.iter().position(|i| *i == id).unwrap_or(0);
        let result = func.insts[second.product].results.first().copied();
        let depends = reached(func, body, first.product).contains(&second.product);
        let ends = yielded(func, body);
        let once = |v: ValueId| {
            let users =
                walk::insts_in(func, body).into_iter().filter(|i| func.insts[*i].operands.contains(&v));
            users.count() == 1 && ends.iter().filter(|end| **end == v).count() == 1
        };
        let Some(carried) = ends.iter().position(|v| Some(*v) == result).filter(|_| depends) else {
            return Err(None);
        };
        if !result.is_some_and(once) {
            return Err(Some("the sum of the second is used in its iteration"));
        }
        let Some(sum) = func.blocks[body].args.get(carried + 1).copied() else { return Err(None) };
        let before = insts.get(..=place(first.product)).unwrap_or_default();
        if before.iter().any(|i| func.insts[*i].operands.contains(&sum)) {
            return Err(Some("the first one needs the sum of the second"));
        }
        let whole = |p: &Piped| as_wgmma(func, p.product).is_some_and(|m| m.promote_every.is_none());
        if !whole(&first) || !whole(&second) {
            return Err(Some("products of 8-bit floats are added in parts"));
        }
        let own = [&first, &second].map(|p| [p.wait, p.product, p.release]).concat();
        let simple = |i: &InstId| {
            let inst = &func.insts[*i];
            let reads = matches!(of_inst(func, *i), Effects::Pure | Effects::Read);
            let (from, to) = touched(inst);
            own.contains(i)
                || inst.op == Op::Control(ControlOp::Yield)
                || reads && from.is_empty() && to.is_empty()
        };
        if !insts.iter().all(simple) {
            return Err(Some("the loop has other accesses to shared memory, writes, or orders memory"));
        }
        let made = insts.iter().flat_map(|i| &func.insts[*i].results);
        let inside: BTreeSet<ValueId> = made.chain(&func.blocks[body].args).copied().collect();
        let taken = plain_operands(&func.insts[second.product]).iter().enumerate();
        let operands = taken.filter(|(n, v)| *n == 0 || inside.contains(v)).map(|(_, v)| *v).collect();
        Ok(Pair { at, body, first, second, carried, operands })
    }

    fn apply(&self, kernel: &mut Kernel) {
        let loc = kernel.func().insts[self.at.1].loc;
        let mut edit = Edit { kernel, loc };
        let (outer, id) = self.at;
        let place = edit.kernel.func().blocks[outer].insts.iter().position(|i| *i == id).unwrap_or(0);
        let mut tail = edit.func().blocks[outer].insts.split_off(place + 1);
        edit.func().blocks[outer].insts.pop();
        // Stages that only the first product reads, such as that of the queries, are free before the last second one.
        let ends = tail.iter().take_while(|i| self.releases_others(edit.kernel.func(), **i)).count();
        let released: Vec<InstId> = tail.drain(..ends).collect();
        let inst = edit.kernel.func().insts[id].clone();
        let [lo, hi, step, init @ ..] = inst.operands.as_slice() else { return };

        let came = edit.is_iteration(id, outer, *lo, 0);
        let (some, none) = (edit.func().add_block(), edit.func().add_block());
        // The first iteration, without its second product.
        let mut renames = Renames::default();
        let args = edit.kernel.func().blocks[self.body].args.clone();
        args.iter().zip([*lo].iter().chain(init)).for_each(|(from, to)| renames.set(*from, *to));
        self.iteration(&mut edit, some, &mut renames, None);
        let carried: Vec<ValueId> = self.ends(&edit, &renames);

        // The others. Nothing wraps around where there is a second one.
        let more = edit.is_iteration(id, some, *lo, 1);
        let ty = edit.dtype(*lo);
        let next = edit.compute(some, ElementwiseOp::Add, &[*lo, *step], ty);
        let next = edit.compute(some, ElementwiseOp::Select, &[more, next, *hi], ty);
        let body = edit.func().add_block();
        let mut renames = Renames::default();
        let mut made = vec![];
        for v in [*lo].iter().chain(&carried) {
            let (ty, layout) = type_and_layout(&edit, *v);
            let arg = edit.func().add_arg(body, ty);
            edit.set_layout(arg, layout);
            made.push(arg);
        }
        args.iter().zip(&made).for_each(|(from, to)| renames.set(*from, *to));
        let pending: Vec<ValueId> =
            self.pending(init.len()).filter_map(|n| made.get(n + 1).copied()).collect();
        self.iteration(&mut edit, body, &mut renames, Some(&pending));
        let ends = self.ends(&edit, &renames);
        edit.yields(body, &ends);
        let types: Vec<_> = carried.iter().map(|v| type_and_layout(&edit, *v)).collect();
        let operands = [next, *hi, *step].into_iter().chain(carried).collect();
        let rest = Inst { operands, blocks: vec![body], results: vec![], ..inst.clone() };
        let (_, done) = edit.add(some, rest, &types);

        // The last second product.
        edit.func().blocks[some].insts.extend(&released);
        for id in &released {
            copy(&mut edit, none, *id, &mut Renames::default());
        }
        let pending: Vec<ValueId> = self.pending(init.len()).filter_map(|n| done.get(n).copied()).collect();
        let sum = self.multiply(&mut edit, some, &pending, false);
        edit.gpu(some, self.second.release(), &[], &[]);
        let mut results: Vec<ValueId> = done.get(..init.len()).unwrap_or_default().to_vec();
        results.get_mut(self.carried).into_iter().for_each(|v| *v = sum);
        edit.yields(some, &results);
        edit.yields(none, init);
        let types: Vec<_> = inst.results.iter().map(|v| type_and_layout(&edit, *v)).collect();
        let mut choice = edit.inst(Op::Control(ControlOp::If), &[came], Attrs::new());
        choice.blocks = vec![some, none];
        let (_, found) = edit.add(outer, choice, &types);
        edit.func().blocks[outer].insts.extend(tail);
        let mut renames = Renames::default();
        inst.results.iter().zip(found).for_each(|(from, to)| renames.set(*from, to));
        let all: Vec<InstId> = walk::insts(edit.kernel.func());
        all.into_iter().for_each(|i| renames.apply(edit.func(), i));
    }

    /// Returns true for a release of a stage that the second product does not read.
    fn releases_others(&self, func: &Func, id: InstId) -> bool {
        let Some(GpuOp::ConsumerRelease(release)) = GpuOp::of(&func.insts[id]) else { return false };
        let (read, _) = touched(&func.insts[self.second.product]);
        let fills = |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::TmaLoad(load)) if load.pipeline == release.pipeline && read.contains(&load.destination));
        !release.when && !walk::insts(func).iter().any(fills)
    }

    /// The numbers of the values that the new loop carries for the second product; the old one carries `count` values.
    fn pending(&self, count: usize) -> impl Iterator<Item = usize> {
        let more = self.operands.len().saturating_sub(1);
        [self.carried].into_iter().chain(count..count + more)
    }

    /// The values that an iteration carries to the next one.
    fn ends(&self, edit: &Edit<'_>, renames: &Renames) -> Vec<ValueId> {
        let mut ends = yielded(edit.kernel.func(), self.body).to_vec();
        let (sum, more) = self.operands.split_at(1.min(self.operands.len()));
        ends.get_mut(self.carried).into_iter().zip(sum).for_each(|(end, sum)| *end = *sum);
        ends.iter().chain(more).map(|v| renames.get(*v)).collect()
    }

    /// Copies the body without its second product, and does that of the iteration before with the operands `pending`.
    fn iteration(
        &self,
        edit: &mut Edit<'_>,
        block: BlockId,
        renames: &mut Renames,
        pending: Option<&[ValueId]>,
    ) {
        let func = edit.kernel.func();
        let sum = func.blocks[self.body].args.get(self.carried + 1).copied();
        let mut insts = func.blocks[self.body].insts.clone();
        insts.pop();
        let second = [self.second.wait, self.second.product, self.second.release];
        let reached = reached(func, self.body, self.first.product);
        let mut in_flight = None;
        for i in insts.into_iter().filter(|i| !second.contains(i)) {
            if sum.is_some_and(|sum| uses(edit.kernel, i, sum)) {
                self.wait_last(edit, block, renames, in_flight.take(), None);
            }
            let made = copy(edit, block, i, renames);
            // The maxima of rows. What the wait is for, such as the scaling of sums, can be done beside the exponentials.
            let folds = matches!(edit.kernel.func().insts[i].op, Op::Reduce(_)) && reached.contains(&i);
            // A single warpgroup shares its multiprocessor with others, which multiply while it waits.
            let has_several = edit.kernel.options.all_warps() > WARPGROUP_WARPS;
            if folds && has_several && pending.is_some() {
                let folded = edit.kernel.func().insts[made].results.first().copied();
                self.wait_last(edit, block, renames, in_flight.take(), folded);
            }
            if let (true, Some(pending)) = (i == self.first.product, pending) {
                edit.leave_in_flight(made);
                in_flight = Some(self.multiply(edit, block, pending, true));
                let result = edit.kernel.func().insts[i].results.first().copied();
                let Some(result) = result else { continue };
                let waited = edit.wait_for_product(block, made, renames.get(result), 1);
                renames.set(result, waited);
            }
        }
        self.wait_last(edit, block, renames, in_flight, None);
    }

    /// Waits for the second product, which nothing has waited for yet, behind the computation of `computed`.
    fn wait_last(
        &self,
        edit: &mut Edit<'_>,
        block: BlockId,
        renames: &mut Renames,
        in_flight: Option<ValueId>,
        computed: Option<ValueId>,
    ) {
        let Some(v) = in_flight else { return };
        let Def::Inst(product, _) = edit.kernel.func().values[v].def else { return };
        let waited = edit.wait_for_product_after(block, product, v, 0, computed);
        edit.gpu(block, self.second.release(), &[], &[]);
        if let Some(sum) = edit.kernel.func().blocks[self.body].args.get(self.carried + 1).copied() {
            renames.set(sum, waited);
        }
    }

    /// The second product, with these operands.
    fn multiply(&self, edit: &mut Edit<'_>, block: BlockId, pending: &[ValueId], flies: bool) -> ValueId {
        let mut inst = edit.kernel.func().insts[self.second.product].clone();
        edit.loc = inst.loc;
        let receive = GpuOp::from(ConsumerWait { pipeline: self.second.pipeline }).inst(vec![], inst.loc);
        let i32 = edit.scalar(DType::I32);
        let stage = edit.first(block, receive, i32);
        let ends = inst.operands.len() - 1;
        for (n, v) in inst.operands.iter_mut().enumerate() {
            let own = self.operands.iter().position(|o| o == v).filter(|k| (*k == 0) == (n == 0));
            *v = if n == ends { stage } else { own.and_then(|k| pending.get(k)).copied().unwrap_or(*v) };
        }
        let types: Vec<_> = inst.results.iter().map(|v| type_and_layout(edit, *v)).collect();
        inst.results.clear();
        let (made, results) = edit.add(block, inst, &types);
        if flies {
            edit.leave_in_flight(made);
        }
        results.first().copied().unwrap_or(stage)
    }
}

impl Piped {
    fn release(&self) -> ConsumerRelease {
        ConsumerRelease { pipeline: self.pipeline, when: false, converge: false }
    }

    /// A product whose operands are in a stage that its block waits for and releases.
    fn of(func: &Func, block: BlockId, product: InstId) -> Option<Piped> {
        let insts = &func.blocks[block].insts;
        let Def::Inst(wait, _) = func.values[stage_index(&func.insts[product])?].def else { return None };
        let Some(GpuOp::ConsumerWait(ConsumerWait { pipeline })) = GpuOp::of(&func.insts[wait]) else {
            return None;
        };
        let releases = |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::ConsumerRelease(r)) if r.pipeline == *pipeline && !r.when);
        let mut all = insts.iter().copied().filter(releases);
        let (release, None) = (all.next()?, all.next()) else { return None };
        let here = insts.contains(&wait) && insts.contains(&product);
        here.then_some(Piped { wait, product, release, pipeline: *pipeline })
    }
}

/// A product of warpgroups.
fn as_wgmma(func: &Func, id: InstId) -> Option<&Mma> {
    wgmma_shared::as_wgmma(&func.insts[id])
}

/// Returns true for a product of warpgroups that is waited for where it is issued.
fn waits(func: &Func, id: InstId) -> bool {
    as_wgmma(func, id).is_some_and(|mma| !mma.asynchronous)
}

/// The type and the layout of a value.
fn type_and_layout(edit: &Edit<'_>, v: ValueId) -> (TypeId, Option<LayoutId>) {
    (edit.kernel.func().ty(v), edit.layout_of(v))
}

/// Returns true if an instruction or a block of it uses a value.
fn uses(kernel: &Kernel, id: InstId, v: ValueId) -> bool {
    let func = kernel.func();
    let inside = func.insts[id].blocks.iter().flat_map(|b| walk::insts_in(func, *b));
    inside.chain([id]).any(|i| func.insts[i].operands.contains(&v))
}

/// The instructions of a block that use what is computed from the results of one of them.
fn reached(func: &Func, block: BlockId, from: InstId) -> BTreeSet<InstId> {
    let mut values: BTreeSet<ValueId> = func.insts[from].results.iter().copied().collect();
    let mut out = BTreeSet::new();
    for i in &func.blocks[block].insts {
        let inside = func.insts[*i].blocks.iter().flat_map(|b| walk::insts_in(func, *b));
        if inside.chain([*i]).any(|i| func.insts[i].operands.iter().any(|v| values.contains(v))) {
            values.extend(&func.insts[*i].results);
            out.insert(*i);
        }
    }
    out
}

/// Copies an instruction and its blocks to the end of a block; `renames` learns its results.
fn copy(edit: &mut Edit<'_>, block: BlockId, id: InstId, renames: &mut Renames) -> InstId {
    let old = edit.kernel.func().insts[id].clone();
    let mut blocks = vec![];
    for from in &old.blocks {
        let to = edit.func().add_block();
        for arg in edit.kernel.func().blocks[*from].args.clone() {
            let (ty, layout) = type_and_layout(edit, arg);
            let made = edit.func().add_arg(to, ty);
            edit.set_layout(made, layout);
            renames.set(arg, made);
        }
        for i in edit.kernel.func().blocks[*from].insts.clone() {
            copy(edit, to, i, renames);
        }
        blocks.push(to);
    }
    let operands = old.operands.iter().map(|v| renames.get(*v)).collect();
    let types: Vec<_> = old.results.iter().map(|v| type_and_layout(edit, *v)).collect();
    let (made, results) = edit.add(block, Inst { operands, blocks, results: vec![], ..old.clone() }, &types);
    old.results.iter().zip(results).for_each(|(from, to)| renames.set(*from, to));
    made
}
