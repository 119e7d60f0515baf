//! Places the operands of products: in registers or in shared memory.
//!
//! ```text
//! v3 = dot v0, v1, v2 : tile[f32, 64, 64] @l2    =>    shared_store v0 {bases = [..], buffer = 0}
//!                                                      shared_store v1 {bases = [..], buffer = 1}
//!                                                      v3 = mma v2 {a = 0, a_bases = [..], b = 1, b_bases = [..], ..} : .. @l2
//! ```
//!
//! An operand of a matrix instruction stays in registers if its layout differs from the fragment of the instruction
//! only by the names of registers, or, where a lane needs all of K, by a few shuffles; otherwise it goes to a buffer, in
//! an order without bank conflicts on either side,
//! and the instruction reads it from there. An operand that a loop does not change is stored before the loop; one that
//! serves several products, once. 8-bit floats are multiplied as f16 where they have no instruction. Products without
//! an instruction have both operands in row-major order.

use tk_ops::{DType, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::effects::is_volatile;
use tk_tile::{Attrs, BlockId, Def, Func, Id, Inst, InstId, Type, ValueId, walk};

use super::{Lower, Slot};
use crate::analysis::conversion::in_warp;
use crate::analysis::ldmatrix;
use crate::analysis::mma::kind;
use crate::analysis::wgmma_shared::WgmmaShared;
use crate::ir::attrs::{inverse, permutation};
use crate::ir::kernel::{Remedy, Shortage};
use crate::ir::op::{BufferRef, Convert, Mma, MmaOperand, Placement, Product, SharedDot};
use crate::ir::shared_access::swizzled_elements;
use crate::layout::linear::{Conversion, classify};
use crate::layout::{Layout, cut};
use crate::target::mma::{self, FragmentForm, InstructionName, MmaInstruction, Tiles};
use crate::target::precision::Precision;

/// A tile in shared memory that is an operand, or whose transpose is one.
pub struct Stored {
    value: ValueId,
    block: BlockId,
    bases: Vec<i64>,
    buffer: usize,
}

/// The block in which each value is defined.
pub fn homes(func: &Func) -> Vec<Option<BlockId>> {
    let mut home = vec![None; func.values.len()];
    let mut note = |b: BlockId| {
        let results = func.blocks[b].insts.iter().flat_map(|i| &func.insts[*i].results);
        for v in func.blocks[b].args.iter().chain(results) {
            home.get_mut(v.index()).into_iter().for_each(|h| *h = Some(b));
        }
    };
    note(func.body);
    walk::insts(func).iter().flat_map(|i| &func.insts[*i].blocks).for_each(|b| note(*b));
    home
}

/// Elements of 8-bit floats after which an accumulator is added to a wider one: warpgroups accumulate in 14 bits (as
/// DeepGEMM and CUTLASS found), whose errors a sum of 128 keeps small.
const PROMOTED: u32 = 128;

/// When accumulators are promoted, unless the source asks for speed.
fn promote_every(matrix: &MmaInstruction, product: Product) -> Option<u32> {
    let f8 = product.elems.iter().any(|d| d.is_f8());
    (matrix.is_wgmma() && f8 && !product.fast).then_some(PROMOTED)
}

/// The location of an operand.
enum Place {
    Register(ValueId),
    Buffer(usize, Vec<i64>),
}

impl Lower<'_> {
    pub(super) fn dot(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let ([a, b, acc], Some(r)) = (inst.operands.as_slice(), inst.results.first().copied()) else {
            return;
        };
        if let Some((matrix, tiles)) = self.matrix(inst, r) {
            return self.mma(block, id, inst, &matrix, &tiles);
        }
        let buffers = [*a, *b].map(|v| self.stored(block, v).0);
        let product = self.product(inst, [*a, *b]);
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        let dot = SharedDot { buffers: buffers.map(BufferRef::whole), product };
        let new = self.gpu(block, dot, &[*acc], &[(ty, layout)]);
        self.becomes(id, new);
    }

    /// The computation of a `dot` with these operands.
    fn product(&self, dot: &Inst, operands: [ValueId; 2]) -> Product {
        let elems = operands.map(|v| self.ty(v).dtype().unwrap_or(DType::F32));
        let k = self.shape(operands[0]).get(1).copied().unwrap_or(1);
        let (precision, fast) = (Precision::of(&dot.attrs), dot.attrs.flag("fast"));
        Product { elems, k, precision, fast, paired: false }
    }

    /// The instruction for a product whose accumulator has the layout that it needs.
    fn matrix(&self, inst: &Inst, r: ValueId) -> Option<(MmaInstruction, Tiles)> {
        let (kernel, spec) = (&self.kernel, self.kernel.options.spec);
        let [m, n] = self.shape(r)[..] else { return None };
        let layout = kernel.layout(r)?;
        let kind = kind(spec, &kernel.module, kernel.func(), inst)?;
        let mut found = mma::find(spec, kind);
        found.find_map(|matrix| Some((matrix, Tiles::of(matrix, [m, n], layout)?)))
    }

    fn mma(&mut self, block: BlockId, id: InstId, inst: &Inst, matrix: &MmaInstruction, tiles: &Tiles) {
        let ([a, b, acc], Some(r)) = (inst.operands.as_slice(), inst.results.first().copied()) else {
            return;
        };
        let k = self.shape(*a).get(1).copied().unwrap_or(1);
        let [a, b] = [*a, *b].map(|v| self.multiplied(block, v, matrix));
        let paired = tiles.pairs(k, self.kernel.options.spec.vector_bytes)
            && ![a, b].into_iter().enumerate().any(|(side, v)| self.in_place(v, (tiles, side, k)).is_some());
        let tiles = &if paired { tiles.paired() } else { tiles.clone() };
        let mut operands = vec![*acc];
        let mut place = |side: usize, v: ValueId| match self.operand(block, v, (tiles, side, k)) {
            Place::Register(v) => {
                operands.push(v);
                MmaOperand::Registers
            }
            Place::Buffer(buffer, bases) => {
                MmaOperand::Shared { buffer: BufferRef::whole(buffer), bases, load: None }
            }
        };
        let (in_a, in_b) = (place(0, a), place(1, b));
        let product = Product { paired, ..self.product(inst, [a, b]) };
        let mma = Mma {
            a: in_a,
            b: in_b,
            product,
            instruction: InstructionName(matrix.name),
            asynchronous: false,
            promote_every: promote_every(matrix, product),
        };
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        let new = self.gpu(block, mma, &operands, &[(ty, layout)]);
        self.becomes(id, new);
    }

    /// An operand in a type that the instruction supports.
    fn multiplied(&mut self, block: BlockId, v: ValueId, matrix: &MmaInstruction) -> ValueId {
        let (Type::Tile { shape, .. }, Some(to)) = (self.ty(v), matrix.operands.first()) else { return v };
        if self.ty(v).dtype().is_none_or(|d| matrix.operands.contains(&d)) {
            return v;
        }
        let ty = Type::tile(*to, shape);
        let ty = self.kernel.module.types.intern(ty);
        let cast = Op::Elementwise(ElementwiseOp::Cast);
        let at = self.earliest(block, v);
        let Some(wide) = self.one(at, cast, &[v], Attrs::new(), (ty, self.layout_id(v))) else { return v };
        self.home.resize(self.home.len().max(wide.index() + 1), None);
        self.home.get_mut(wide.index()).into_iter().for_each(|h| *h = Some(at));
        wide
    }

    /// The layout of the fragment of an operand that stays in registers.
    fn in_place(&self, v: ValueId, (tiles, side, k): (&Tiles, usize, u32)) -> Option<Layout> {
        let (source, wanted) = (self.kernel.layout(v)?, tiles.operand(side, k).layout()?);
        let way = classify(source.atom(), wanted.atom());
        let is_shuffled = side == 0
            && tiles.matrix.form == FragmentForm::TransposedWmma
            && matches!(in_warp(source, &wanted, self.bytes(v)), Some(Conversion::Shuffle(_)));
        let here = is_shuffled
            || matches!(way, Conversion::Same | Conversion::Registers(_))
                && source.repeats() == wanted.repeats();
        (here && (side == 0 || !tiles.matrix.is_wgmma())).then_some(wanted)
    }

    fn operand(&mut self, block: BlockId, v: ValueId, (tiles, side, k): (&Tiles, usize, u32)) -> Place {
        let (bytes, fragment) = (self.bytes(v), tiles.operand(side, k));
        let (Some(source), Some(wanted)) = (self.kernel.layout(v).cloned(), fragment.layout()) else {
            return Place::Register(v);
        };
        let group = tiles.matrix.is_wgmma();
        if let Some(wanted) = self.in_place(v, (tiles, side, k)) {
            let (ty, layout) = (self.kernel.func().ty(v), Some(self.kernel.layouts.intern(wanted)));
            if self.layout_id(v) == layout {
                return Place::Register(v);
            }
            let renamed = self.gpu(block, Convert {}, &[v], &[(ty, layout)]);
            let renamed = self.kernel.func().insts[renamed].results.first().copied();
            return Place::Register(renamed.unwrap_or(v));
        }
        let direct = self.kernel.options.operands.invariant_in_registers && (side == 0 || !group);
        let outside = self.home.get(v.index()).copied().flatten().is_some_and(|home| home != block);
        if direct && outside && self.is_loaded(v) {
            self.load_as(v, wanted);
            return Place::Register(v);
        }
        let bases = match self.ty(v).dtype() {
            // Atoms that share lines are neighbours along the last dimension of what is stored.
            Some(d) if group => {
                let share = self.permuted(v).is_none();
                WgmmaShared::order(self.fastest(v, &source), tiles, (side, d), k, share).1
            }
            _ => ldmatrix::order(&source, &fragment, bytes, self.kernel.options.spec),
        };
        let block = self.earliest(block, v);
        // A value and its transpose may be read from the same buffer.
        let (value, own) = self.untransposed(v, &bases);
        let known = |s: &&Stored| {
            s.value == value && s.bases == own && self.around.iter().any(|(b, _)| *b == s.block)
        };
        if let Some(s) = self.stored.iter().find(known) {
            return Place::Buffer(s.buffer, bases);
        }
        let elements = swizzled_elements(&self.shape(value), &own) as u32;
        let buffer = self.buffer(elements, bytes);
        self.store(block, value, &Slot { buffer, placement: Placement::Swizzled { bases: own.clone() } });
        self.stored.push(Stored { value, block, bases: own, buffer });
        Place::Buffer(buffer, bases)
    }

    /// Returns true if a value that only one product reads is a load from device memory, possibly transposed or cast,
    /// which can have any layout.
    fn is_loaded(&self, v: ValueId) -> bool {
        let func = self.kernel.func();
        let Def::Inst(id, _) = func.values[v].def else { return false };
        let inst = &func.insts[id];
        // A load that this pass has created is for the product alone.
        if self.uses.get(v.index()).copied().unwrap_or(1) > 1 || is_volatile(inst) {
            return false;
        }
        match inst.op {
            Op::Memory(MemoryOp::ViewLoad) => inst.operands.iter().all(|o| self.shape(*o).is_empty()),
            Op::Shape(ShapeOp::Permute) | Op::Elementwise(ElementwiseOp::Cast) => {
                inst.operands.first().is_some_and(|x| self.is_loaded(*x))
            }
            _ => false,
        }
    }

    /// Gives this layout to a load for which [`is_loaded`](Self::is_loaded) is true.
    fn load_as(&mut self, v: ValueId, layout: Layout) {
        let Def::Inst(id, _) = self.kernel.func().values[v].def else { return };
        let inst = self.kernel.func().insts[id].clone();
        if let (Op::Memory(_), loc) = (inst.op, inst.loc) {
            self.kernel.shortages.push(Shortage { loc, remedy: Remedy::Registers });
        } else if let Some(x) = inst.operands.first().copied() {
            let own = match inst.op {
                Op::Shape(_) => layout.permuted(&inverse(&permutation(&inst))),
                _ => layout.clone(),
            };
            self.load_as(x, own);
        }
        let layout = self.kernel.layouts.intern(layout);
        if let Some(slot) = self.kernel.value_layouts.get_mut(v.index()) {
            *slot = Some(layout);
        }
    }

    /// The dimension along which an operand has neighbours in memory: for a load through a view the one whose stride is
    /// 1; otherwise the one along which a thread owns more elements, K if equal.
    fn fastest(&self, v: ValueId, source: &Layout) -> usize {
        let func = self.kernel.func();
        if let Def::Inst(id, _) = func.values[v].def {
            let inst = &func.insts[id];
            match (inst.op, inst.operands.first()) {
                (Op::Shape(ShapeOp::Permute), Some(x)) => {
                    let perm = permutation(inst);
                    let own = self.kernel.layout(*x).map(|l| self.fastest(*x, l));
                    if let Some(d) = own.and_then(|d| perm.iter().position(|p| *p == d)) {
                        return d;
                    }
                }
                (Op::Memory(MemoryOp::ViewLoad), Some(view)) => {
                    let strides = self.axis.view(*view).map_or(&[][..], |f| &f.strides);
                    if let Some(d) = strides.iter().position(|s| s.1) {
                        return d;
                    }
                }
                _ => {}
            }
        }
        usize::from(source.vector(1) >= source.vector(0))
    }

    /// The permutation of axes that computes a value, and its operand.
    fn permuted(&self, v: ValueId) -> Option<(&Inst, ValueId)> {
        let func = self.kernel.func();
        let Def::Inst(id, _) = func.values[v].def else { return None };
        let inst = &func.insts[id];
        let x = inst.operands.first().copied()?;
        (inst.op == Op::Shape(ShapeOp::Permute)).then_some((inst, x))
    }

    /// The operand of a permutation of axes, and its `bases` if those of the result are `bases`: an operand that is
    /// loaded and transposed goes straight to shared memory.
    fn untransposed(&self, v: ValueId, bases: &[i64]) -> (ValueId, Vec<i64>) {
        let Some((inst, x)) = self.permuted(v) else { return (v, bases.to_vec()) };
        // Atoms are consecutive in the order of the tile that is stored.
        if self.shape(v).iter().filter(|n| cut(**n).repeats > 1).count() > 1 {
            return (v, bases.to_vec());
        }
        let perm = permutation(inst);
        let mut bits = bases;
        let own: Vec<&[i64]> = self
            .shape(v)
            .iter()
            .map(|n| {
                let (own, rest) = bits.split_at((cut(*n).log2 as usize).min(bits.len()));
                bits = rest;
                own
            })
            .collect();
        let axes = 0..self.shape(x).len();
        let back = axes.filter_map(|e| own.get(perm.iter().position(|d| *d == e)?)).copied();
        (x, back.collect::<Vec<_>>().concat())
    }

    /// The outermost block in which a value can be stored so that it is available in `block`, leaving only loops.
    fn earliest(&self, block: BlockId, v: ValueId) -> BlockId {
        let Some(home) = self.home.get(v.index()).copied().flatten() else { return block };
        let mut at = block;
        for (n, (inner, of_loop)) in self.around.iter().enumerate().rev() {
            if *inner == home || !of_loop {
                break;
            }
            let Some((outer, _)) = n.checked_sub(1).and_then(|n| self.around.get(n)) else { break };
            at = *outer;
        }
        at
    }
}
