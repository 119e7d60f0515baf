//! Registers of a lane for the tiles that are live at once.
//!
//! An estimate: the assembler orders instructions again, and needs further registers for addresses and what is in flight.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, DType, ElementwiseOp, Group, MemoryOp, Op, ShapeOp};
use tk_tile::{BlockId, Def, ElemType, Func, Id, Inst, InstId, ValueId, rewrite, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;

/// The most registers of a lane for tiles that are live together with a product of a block.
pub fn register_pressure(kernel: &Kernel, block: BlockId) -> u32 {
    let liveness = Liveness {
        kernel,
        passing: BTreeSet::new(),
        by_one: false,
        loads_ahead: false,
        keeps_operands: false,
    };
    let mut most = 0;
    liveness.walk(block, &BTreeSet::new(), &mut |i, words| {
        let inst = &kernel.func().insts[i];
        let Some(GpuOp::Mma(mma)) = GpuOp::of(inst) else { return };
        // Sums of a few steps are in registers of their own before they are added to the others.
        let of_steps = inst.results.iter().filter(|_| mma.promote_every.is_some());
        most = most.max(words + of_steps.map(|v| liveness.words(*v)).sum::<u32>());
    });
    most
}

/// Registers that the widest access of a lane loads.
const WORDS_OF_ACCESS: u32 = 4;

/// The most registers of a lane for tiles that are live at once where a block goes on with the sums of products, behind the loops
/// with these, and whether that calls functions of floats. What is computed element by element for one use that takes it so is
/// computed right before it; a load has the addresses of its accesses too, about a register for each.
pub fn epilogue_pressure(kernel: &Kernel, block: BlockId) -> (u32, bool) {
    let func = kernel.func();
    let mut epilogue = BTreeSet::new();
    add_epilogue(func, block, false, &mut epilogue);
    let (mut most, mut calls) = (0, false);
    let liveness =
        beside(kernel, |inst| matches!(inst.op, Op::Elementwise(_)) || is_shared_load(inst), false);
    liveness.walk(block, &BTreeSet::new(), &mut |i, words| {
        if let (Op::Elementwise(op), true) = (func.insts[i].op, epilogue.contains(&i)) {
            most = most.max(words);
            calls |= matches!(op.group(), Group::FloatUnary(_) | Group::FloatBinary(_))
                && func.insts[i].results.iter().any(|r| kernel.layout(*r).is_some());
        }
    });
    let liveness = Liveness { keeps_operands: true, ..liveness };
    liveness.walk(block, &BTreeSet::new(), &mut |i, words| {
        let inst = &func.insts[i];
        if is_load(inst) && epilogue.contains(&i) {
            let loaded: u32 = inst.results.iter().map(|r| liveness.words(*r)).sum();
            most = most.max(words + loaded / WORDS_OF_ACCESS);
        }
    });
    (most, calls)
}

/// Adds the instructions of a block behind loops with products; `is_behind` tells whether the block is.
fn add_epilogue(func: &Func, block: BlockId, is_behind: bool, out: &mut BTreeSet<InstId>) {
    let multiplies = |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Mma(_)));
    let insts = &func.blocks[block].insts;
    if insts.iter().any(multiplies) {
        return;
    }
    let contains = |i: &InstId| {
        func.insts[*i].blocks.iter().flat_map(|b| walk::insts_in(func, *b)).any(|i| multiplies(&i))
    };
    let last = insts.iter().rposition(contains);
    for (n, i) in insts.iter().enumerate() {
        let is_behind = last.map_or(is_behind, |last| n > last);
        if is_behind {
            out.insert(*i);
        }
        func.insts[*i].blocks.iter().for_each(|b| add_epilogue(func, *b, is_behind, out));
    }
}

/// Registers of a lane for tiles that are live at once, if loads are done at the beginning of their block. What is
/// computed element by element for one use that takes it so is computed right before it.
pub fn ahead(kernel: &Kernel) -> u32 {
    most_beside(kernel, |inst| matches!(inst.op, Op::Elementwise(_)) || is_shared_load(inst), true)
}

/// The fewest registers of a lane with which a kernel can keep its tiles: elements are loaded right before their only use
/// too.
pub fn least(kernel: &Kernel) -> u32 {
    most_beside(
        kernel,
        |inst| matches!(inst.op, Op::Elementwise(_)) || is_load(inst) || is_shared_load(inst),
        false,
    )
}

/// The most registers of tiles beside those that `by_element` gives for a single use that takes them element by element.
fn most_beside(kernel: &Kernel, by_element: fn(&Inst) -> bool, loads_ahead: bool) -> u32 {
    beside(kernel, by_element, loads_ahead).most(kernel.func().body, &BTreeSet::new())
}

/// The register use beside the values that `by_element` gives for a single use that takes them element by element.
fn beside(kernel: &Kernel, by_element: fn(&Inst) -> bool, loads_ahead: bool) -> Liveness<'_> {
    let func = kernel.func();
    let liveness =
        Liveness { kernel, passing: BTreeSet::new(), by_one: true, loads_ahead, keeps_operands: false };
    let mut uses: BTreeMap<ValueId, Vec<bool>> = BTreeMap::new();
    let mut addresses = BTreeSet::new();
    // Positions that divisions give, which are nowhere a constant away from one another, and those of them that are computed in
    // the order of the source: long division branches.
    let (mut divided, mut in_order) = (BTreeSet::new(), BTreeSet::new());
    for i in walk::insts(func) {
        let inst = &func.insts[i];
        let takes = matches!(
            inst.op,
            Op::Elementwise(_)
                | Op::Reduce(_)
                | Op::Memory(MemoryOp::Store | MemoryOp::ViewStore | MemoryOp::ViewScatter)
        );
        // What only renames registers is no use.
        if !matches!(inst.op, Op::Shape(ShapeOp::Broadcast | ShapeOp::Permute | ShapeOp::Reshape)) {
            inst.operands.iter().for_each(|v| uses.entry(liveness.source(*v)).or_default().push(takes));
        }
        let from = |v: &ValueId| addresses.contains(v) || kernel.layout(*v).is_none();
        let divides = divides(kernel, inst);
        if divides.is_some()
            || inst.operands.iter().any(|v| divided.contains(v) && !is_repeated(kernel, inst, *v))
        {
            divided.extend(inst.results.iter().copied().filter(|_| is_position(kernel, inst)));
            in_order.extend(inst.results.iter().copied().filter(|_| divides == Some(true)));
        } else if is_position(kernel, inst)
            && (leads_to_memory(kernel, inst) || inst.operands.iter().all(from))
        {
            addresses.extend(inst.results.iter().copied());
        }
        // Pointers that a loop moves as a whole stay a constant away from one another.
        if let (Op::Control(ControlOp::For), [body]) = (inst.op, inst.blocks.as_slice()) {
            let carried = inst.operands.iter().skip(3).zip(func.blocks[*body].args.iter().skip(1));
            let moved = carried.zip(&inst.results).filter(|((first, _), _)| is_pointer(kernel, **first));
            addresses.extend(moved.flat_map(|((_, inside), after)| [*inside, *after]));
        }
    }
    let passing = |v: &ValueId| {
        let once = matches!(uses.get(v).map(Vec::as_slice), Some([true])) && !in_order.contains(v);
        once && matches!(func.values[*v].def, Def::Inst(i, _) if by_element(&func.insts[i]))
    };
    let mut passing: BTreeSet<ValueId> = uses.keys().copied().filter(passing).collect();
    // Positions follow from the number of the thread: a few of them are kept, the others are a constant away.
    passing.extend(addresses);
    Liveness { passing, ..liveness }
}

/// Whether an instruction divides positions of a tile by a number that is known at run time alone, and if so whether the code
/// has branches: that for 64 bits has.
fn divides(kernel: &Kernel, inst: &Inst) -> Option<bool> {
    let (Op::Elementwise(ElementwiseOp::Div | ElementwiseOp::Rem), [_, by]) =
        (inst.op, inst.operands.as_slice())
    else {
        return None;
    };
    let (func, result) = (kernel.func(), *inst.results.first()?);
    let dtype = kernel.module.types.get(func.ty(result)).dtype().filter(|d| d.is_int())?;
    (kernel.layout(result).is_some() && rewrite::constant(func, *by).is_none()).then(|| dtype.bits() > 32)
}

/// Returns true if a lane has more elements of the result than of an operand, which are repeated.
fn is_repeated(kernel: &Kernel, inst: &Inst, operand: ValueId) -> bool {
    let registers = |v: ValueId| kernel.layout(v).map_or(1, |l| l.registers());
    inst.results.first().is_some_and(|r| registers(*r) > registers(operand))
}

/// Returns true if a value is a pointer or a tile of pointers.
fn is_pointer(kernel: &Kernel, v: ValueId) -> bool {
    matches!(kernel.module.types.get(kernel.func().ty(v)).elem(), ElemType::Ptr { .. })
}

/// Returns true if the results are pointers, masks or offsets: those of neighbours are a constant away.
fn leads_to_memory(kernel: &Kernel, inst: &Inst) -> bool {
    let ty = |v: &ValueId| kernel.module.types.get(kernel.func().ty(*v));
    inst.results.iter().all(|v| match ty(v).elem() {
        ElemType::Ptr { .. } => true,
        ElemType::Scalar(d) => matches!(d, DType::Bool | DType::I64),
    })
}

/// Returns true if the results are positions, masks or addresses where the operands are.
fn is_position(kernel: &Kernel, inst: &Inst) -> bool {
    let ty = |v: &ValueId| kernel.module.types.get(kernel.func().ty(*v));
    let is_number = |v: &ValueId| ty(v).dtype().is_some_and(|d| d.is_float());
    let kind = match inst.op {
        Op::Create(_) | Op::Shape(_) | Op::Elementwise(_) => true,
        Op::Memory(op) => matches!(op, MemoryOp::PtrAdd | MemoryOp::ViewInside),
        Op::Target => matches!(GpuOp::of(inst), Some(GpuOp::Convert(_))),
        _ => false,
    };
    kind && !inst.results.iter().any(is_number)
}

/// Registers of a lane for tiles that are live together at each instruction, by its number.
pub fn at_each(kernel: &Kernel) -> Vec<u32> {
    let liveness = Liveness {
        kernel,
        passing: BTreeSet::new(),
        by_one: true,
        loads_ahead: false,
        keeps_operands: false,
    };
    let mut out = vec![0; kernel.func().insts.len()];
    liveness.walk(kernel.func().body, &BTreeSet::new(), &mut |i, words| {
        if let Some(slot) = out.get_mut(i.index()) {
            *slot = words;
        }
    });
    out
}

/// The register use of lanes.
struct Liveness<'a> {
    kernel: &'a Kernel,
    /// Values that need no registers of their own.
    passing: BTreeSet<ValueId>,
    /// Whether narrow elements that are loaded one by one have a register each.
    by_one: bool,
    /// Whether loads are done at the beginning of their block.
    loads_ahead: bool,
    /// Whether the operands of values that need no registers are live until these are used.
    keeps_operands: bool,
}

fn is_shared_load(inst: &Inst) -> bool {
    matches!(GpuOp::of(inst), Some(GpuOp::SharedLoad(_)))
}

fn is_load(inst: &Inst) -> bool {
    matches!(inst.op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad | MemoryOp::ViewGather))
}

fn is_by_one(inst: &Inst) -> bool {
    is_load(inst) && inst.attrs.int("vector") == Some(1)
}

impl Liveness<'_> {
    /// Registers of a value: none if all of its elements are constants, or one scalar.
    fn words(&self, v: ValueId) -> u32 {
        let func = self.kernel.func();
        let is_made =
            matches!(func.values[v].def, Def::Inst(i, _) if matches!(func.insts[i].op, Op::Create(_)));
        if is_made || self.passing.contains(&v) {
            return 0;
        }
        let elem = self.kernel.module.types.get(func.ty(v)).elem();
        // Elements that are loaded one by one have a register each, however narrow they are.
        let alone = matches!(func.values[v].def, Def::Inst(i, _) if is_by_one(&func.insts[i])) && self.by_one;
        let size = if alone { element_bytes(elem).max(4) } else { element_bytes(elem) };
        let bytes = self.kernel.layout(v).map_or(0, |l| l.registers() as u64 * size);
        u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
    }

    /// The value whose registers these are: some changes of shape only rename them.
    fn source(&self, mut v: ValueId) -> ValueId {
        let func = self.kernel.func();
        while let Def::Inst(i, _) = func.values[v].def
            && let Op::Shape(ShapeOp::Broadcast | ShapeOp::Permute | ShapeOp::Reshape) = func.insts[i].op
            && let Some(from) = func.insts[i].operands.first()
        {
            v = *from;
        }
        v
    }

    fn sources(&self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|v| self.source(*v)).collect()
    }

    /// Adds a value that is used, with what has to be live until then.
    fn add_used(&self, v: ValueId, live: &mut BTreeSet<ValueId>) {
        let v = self.source(v);
        if live.insert(v)
            && self.keeps_operands
            && self.passing.contains(&v)
            && let Def::Inst(i, _) = self.kernel.func().values[v].def
            && matches!(self.kernel.func().insts[i].op, Op::Elementwise(_))
        {
            self.kernel.func().insts[i].operands.iter().for_each(|v| self.add_used(*v, live));
        }
    }

    fn sum(&self, live: &BTreeSet<ValueId>) -> u32 {
        live.iter().map(|v| self.words(*v)).sum()
    }

    /// The most that is live at once with such an instruction in a block, given what is live after it.
    fn most(&self, block: BlockId, live_after: &BTreeSet<ValueId>) -> u32 {
        let mut most = 0;
        self.walk(block, live_after, &mut |_, words| most = most.max(words));
        most
    }

    /// Calls `found` with what is live at each instruction that counts, given what is live after the block.
    fn walk(&self, block: BlockId, live_after: &BTreeSet<ValueId>, found: &mut dyn FnMut(InstId, u32)) {
        let func = self.kernel.func();
        let mut live = live_after.clone();
        for i in func.blocks[block].insts.iter().rev() {
            let inst = &func.insts[*i];
            live.extend(self.sources(&inst.results));
            let around = live.clone();
            // What is loaded ahead is live before the load.
            if !(self.loads_ahead && is_load(inst)) {
                inst.results.iter().for_each(|r| {
                    live.remove(r);
                });
            }
            // A value that is read inside of a loop is live in all of its iterations; in a branch, until it is read.
            let read: Vec<ValueId> = inst.blocks.iter().flat_map(|b| self.read_from_outside(*b)).collect();
            if matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While)) {
                live.extend(&read);
            }
            for body in &inst.blocks {
                self.walk(*body, &live, found);
            }
            live.extend(read);
            inst.operands.iter().for_each(|v| self.add_used(*v, &mut live));
            // Accumulators are updated in place, and elements one after the other.
            let in_place = matches!(inst.op, Op::Elementwise(_) | Op::Target);
            let sums = inst.operands.first().filter(|_| in_place).map(|v| self.source(*v));
            let with = around.iter().chain(live.iter().filter(|v| Some(**v) != sums));
            found(*i, self.sum(&with.copied().collect()));
        }
    }

    /// The values that a block reads and does not define.
    fn read_from_outside(&self, block: BlockId) -> BTreeSet<ValueId> {
        let func = self.kernel.func();
        let insts = walk::insts_in(func, block);
        let inside = insts.iter().flat_map(|i| &func.insts[*i].blocks).chain([&block]);
        let args = inside.flat_map(|b| &func.blocks[*b].args);
        let made: BTreeSet<ValueId> =
            insts.iter().flat_map(|i| &func.insts[*i].results).chain(args).copied().collect();
        let read = insts.iter().flat_map(|i| &func.insts[*i].operands);
        read.map(|v| self.source(*v)).filter(|v| !made.contains(v)).collect()
    }
}
