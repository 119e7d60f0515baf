//! Owns the change of a kernel into what brings factors and what multiplies them.
//!
//! May assume feeds whose loads are part of a slice. Guarantees that both sides count the same trips: the producer opens and
//! sends a piece where the others receive one.

use std::collections::BTreeMap;

use tk_ops::{ControlOp, DType, ElementwiseOp, MachineOp, Op};
use tk_tile::rewrite::yielded;
use tk_tile::{Attr, Attrs, BlockId, FuncId, Inst, InstId, ValueId};

use super::slice::Part;
use super::{BARRIERS, Feed};
use crate::kernel::{Buffer, Kernel};
use crate::rings::edit::Edit;
use crate::shared::named;

/// Values of the producer by those of the program.
type Renamed = BTreeMap<ValueId, ValueId>;

/// Splits the kernel.
pub fn apply(kernel: &mut Kernel, feeds: &[Feed], slice: &Part) {
    let barriers: Vec<i64> = feeds.iter().map(|f| ring(kernel, f)).collect();
    let body = kernel.func().body;
    let mut insts = std::mem::take(&mut func(kernel).blocks[body].insts);
    let end = insts.pop();
    let (copies, alone, rest, nobody) = {
        let func = func(kernel);
        (func.add_block(), func.add_block(), func.add_block(), func.add_block())
    };
    func(kernel).blocks[rest].insts = insts;
    let mut edit = Edit { kernel, loc: None };
    let flag = edit.scalar(DType::Bool);
    let own = Attrs::new()
        .with("buffers", Attr::Ints(barriers.clone()))
        .with("pieces", Attr::Ints(feeds.iter().map(|f| f.pieces.into()).collect()));
    let producer = edit.inst(Op::Machine(MachineOp::Producer), &[], own);
    let producer = edit.first(body, producer, flag);
    edit.choose(body, producer, [copies, rest]);
    let elect = edit.inst(Op::Machine(MachineOp::Elect), &[], Attrs::new());
    let elect = edit.first(copies, elect, flag);
    edit.choose(copies, elect, [alone, nobody]);
    edit.yields(copies, &[]);
    edit.yields(nobody, &[]);
    let mut bring = Bring { edit, feeds, barriers: &barriers, slice };
    bring.block(rest, alone, &mut Renamed::new());
    bring.edit.yields(alone, &[]);
    for (feed, barriers) in feeds.iter().zip(&barriers) {
        receive(&mut bring.edit, feed, *barriers, (body, rest));
    }
    bring.edit.yields(rest, &[]);
    func(kernel).blocks[body].insts.extend(end);
}

fn func(kernel: &mut Kernel) -> &mut tk_tile::Func {
    &mut kernel.module.funcs[FuncId(0)]
}

/// Makes rings of the buffers of a feed; gives the buffer of its barriers.
fn ring(kernel: &mut Kernel, feed: &Feed) -> i64 {
    for t in &feed.taken {
        kernel.buffers.get_mut(t.buffer).into_iter().for_each(|b| b.bytes *= feed.pieces);
    }
    kernel.buffers.push(Buffer { bytes: BARRIERS * feed.pieces, offset: 0 });
    kernel.buffers.len() as i64 - 1
}

/// The producer.
struct Bring<'a> {
    edit: Edit<'a>,
    feeds: &'a [Feed],
    barriers: &'a [i64],
    slice: &'a Part,
}

impl Bring<'_> {
    /// The part of a block that is in the slice, behind what a new block has.
    fn block(&mut self, old: BlockId, new: BlockId, renamed: &mut Renamed) {
        for i in self.edit.kernel.func().blocks[old].insts.clone() {
            if self.slice.insts.contains(&i) {
                self.inst(new, i, renamed);
            }
            for n in 0..self.feeds.len() {
                let Some(feed) = self.feeds.get(n).filter(|f| f.block == old) else { continue };
                let last =
                    feed.taken.iter().map(|t| t.load).max_by_key(|l| {
                        self.edit.kernel.func().blocks[old].insts.iter().position(|k| k == l)
                    });
                if last == Some(i) {
                    self.copies(new, n, renamed);
                }
            }
        }
    }

    fn inst(&mut self, block: BlockId, id: InstId, renamed: &mut Renamed) {
        let inst = self.edit.kernel.func().insts[id].clone();
        self.edit.loc = inst.loc;
        let of = |v: &ValueId, renamed: &Renamed| renamed.get(v).copied().unwrap_or(*v);
        let carried: Vec<usize> =
            self.slice.carried.iter().filter(|(i, _)| *i == id).map(|(_, k)| *k).collect();
        let pick = |list: &[ValueId]| -> Vec<ValueId> {
            carried.iter().filter_map(|k| list.get(*k).copied()).collect()
        };
        let mut operands: Vec<ValueId> = inst.operands.iter().map(|v| of(v, renamed)).collect();
        let mut results = inst.results.clone();
        let mut blocks = vec![];
        if !inst.blocks.is_empty() {
            let is_loop = inst.op == Op::Control(ControlOp::For);
            if is_loop {
                let init = pick(operands.get(3..).unwrap_or(&[]));
                operands.truncate(3);
                operands.extend(init);
            }
            results = pick(&results);
            for old in &inst.blocks {
                let new = self.edit.func().add_block();
                if is_loop {
                    let args = self.edit.kernel.func().blocks[*old].args.clone();
                    let own = args.first().copied().into_iter().chain(pick(args.get(1..).unwrap_or(&[])));
                    for old in own.collect::<Vec<_>>() {
                        let ty = self.edit.kernel.func().ty(old);
                        let arg = self.edit.func().add_arg(new, ty);
                        self.edit.hold(arg, None);
                        renamed.insert(old, arg);
                    }
                }
                self.block(*old, new, renamed);
                let ends = pick(yielded(self.edit.kernel.func(), *old));
                let ends: Vec<ValueId> = ends.iter().map(|v| of(v, renamed)).collect();
                self.edit.yields(new, &ends);
                blocks.push(new);
            }
        }
        let types: Vec<_> = results.iter().map(|v| (self.edit.kernel.func().ty(*v), None)).collect();
        let new = Inst { operands, blocks, results: vec![], ..inst };
        let (_, made) = self.edit.add(block, new, &types);
        renamed.extend(results.into_iter().zip(made));
    }

    /// Fills a piece.
    fn copies(&mut self, block: BlockId, n: usize, renamed: &Renamed) {
        let (Some(feed), Some(barriers)) = (self.feeds.get(n), self.barriers.get(n).copied()) else { return };
        let whole: u32 = feed
            .taken
            .iter()
            .filter_map(|t| self.edit.kernel.buffers.get(t.buffer))
            .map(|b| b.bytes / feed.pieces.max(1))
            .sum();
        let open = channel(barriers, feed.pieces).with("bytes", Attr::Int(whole.into()));
        let open = self.edit.inst(Op::Machine(MachineOp::ChannelOpen), &[], open);
        self.edit.add(block, open, &[]);
        for t in &feed.taken {
            let load = self.edit.kernel.func().insts[t.load].clone();
            let places = load.operands.iter().take(3);
            let operands: Vec<ValueId> = places.map(|v| renamed.get(v).copied().unwrap_or(*v)).collect();
            let ty = load.results.first().map(|r| self.edit.kernel.func().ty(*r));
            let shape = ty.and_then(|ty| self.edit.kernel.module.types.get(ty).shape()).unwrap_or(&[]);
            let attrs = Attrs::new()
                .with("buffers", Attr::Ints(vec![t.buffer as i64, barriers]))
                .with("pieces", Attr::Int(feed.pieces.into()))
                .with("shape", Attr::Ints(shape.iter().map(|n| i64::from(*n)).collect()))
                .with("span", Attr::Int(t.span.into()));
            let mut copy = self.edit.inst(Op::Machine(MachineOp::TensorCopy), &operands, attrs);
            copy.loc = load.loc;
            self.edit.add(block, copy, &[]);
        }
        let send = self.edit.inst(Op::Machine(MachineOp::ChannelSend), &[], channel(barriers, feed.pieces));
        self.edit.add(block, send, &[]);
    }
}

fn channel(barriers: i64, pieces: u32) -> Attrs {
    Attrs::new().with("buffer", Attr::Int(barriers)).with("pieces", Attr::Int(pieces.into()))
}

/// The side that multiplies: pieces come, and are released when their product is done.
fn receive(edit: &mut Edit<'_>, feed: &Feed, barriers: i64, (body, rest): (BlockId, BlockId)) {
    edit.loc = edit.kernel.func().insts[feed.product].loc;
    let gone = |i: &InstId| feed.taken.iter().any(|t| t.load == *i || t.store == *i);
    let insts = std::mem::take(&mut edit.func().blocks[feed.block].insts);
    let attrs = channel(barriers, feed.pieces);
    let i32 = edit.scalar(DType::I32);
    for i in insts.into_iter().filter(|i| !gone(i)) {
        if i == feed.product {
            let receive = edit.inst(Op::Machine(MachineOp::ChannelReceive), &[], attrs.clone());
            let piece = edit.first(feed.block, receive, i32);
            let inst = &mut edit.func().insts[i];
            let of = |b: &Option<usize>| {
                if feed.taken.iter().any(|t| Some(t.buffer) == *b) { feed.pieces } else { 1 }
            };
            let slots = named(inst).iter().map(|b| of(b).into()).collect();
            inst.attrs.set("slots", Attr::Ints(slots));
            inst.operands.push(piece);
        }
        edit.func().blocks[feed.block].insts.push(i);
        if i == feed.product && feed.flight.is_none() {
            let release = edit.inst(Op::Machine(MachineOp::ChannelRelease), &[], attrs.clone());
            edit.add(feed.block, release, &[]);
        }
    }
    let Some(flight) = &feed.flight else { return };
    let Some(end) = edit.func().blocks[feed.block].insts.pop() else { return };
    let waited = flight.wait(edit, feed.block, flight.result, 1);
    edit.func().insts[end].operands.iter_mut().filter(|v| **v == flight.result).for_each(|v| *v = waited);
    let id = feed.at.1;
    // What stood in the body of the kernel stands in a branch of it now.
    let outer = if feed.at.0 == body { rest } else { feed.at.0 };
    let iv = edit.kernel.func().blocks[feed.block].args.first().copied();
    let lo = edit.kernel.func().insts[id].operands.first().copied();
    if let (Some(iv), Some(lo)) = (iv, lo) {
        let later = edit.compute(feed.block, ElementwiseOp::Ne, &[iv, lo], DType::Bool);
        release(edit, feed.block, &attrs, later);
    }
    edit.func().blocks[feed.block].insts.push(end);
    let Some(at) = edit.func().blocks[outer].insts.iter().position(|i| *i == id) else { return };
    let tail = edit.func().blocks[outer].insts.split_off(at + 1);
    flight.land(edit, outer, id);
    if let Some(lo) = lo {
        let came = edit.comes(id, outer, lo, 0);
        release(edit, outer, &attrs, came);
    }
    edit.func().blocks[outer].insts.extend(tail);
}

fn release(edit: &mut Edit<'_>, block: BlockId, attrs: &Attrs, when: ValueId) {
    let attrs = attrs.clone().with("when", Attr::Bool(true));
    let release = edit.inst(Op::Machine(MachineOp::ChannelRelease), &[when], attrs);
    edit.add(block, release, &[]);
}
