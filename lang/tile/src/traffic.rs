//! What a launch has to do at least, whatever the machine: [`traffic`] counts bytes and operations.
//!
//! The bytes of an argument are those that its accesses name, but no more than it has, since a cache could keep them:
//! compulsory traffic. Reads and writes count separately. Operations are those of matrix products, 2 M N K for each, by
//! the type of their operands, and those on floats in all else.

use tk_ops::{CreateOp, DType, ElementwiseOp, MemoryOp, Op, ShapeOp};

use crate::flow::{Flow, flow};
use crate::frequency::{ControlSlice, LaunchArg};
use crate::ir::{BlockId, Def, ElemType, Func, FuncId, Id, Inst, InstId, Module, Type, ValueId};
use crate::walk;

/// What the programs of a launch do together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Bytes read of each parameter of the function, counted once.
    pub read: Vec<f64>,
    /// Bytes written of each.
    pub written: Vec<f64>,
    /// Operations of matrix products by the type of their operands.
    pub matrix: Vec<(DType, f64)>,
    /// Operations on floats outside of matrix products.
    pub float: f64,
    /// Whether something depends on data, so that these numbers are guesses.
    pub is_guess: bool,
}

impl Traffic {
    /// All bytes.
    pub fn bytes(&self) -> f64 {
        self.read.iter().chain(&self.written).sum()
    }

    /// Operations of all matrix products.
    pub fn matrix_operations(&self) -> f64 {
        self.matrix.iter().map(|(_, n)| n).sum()
    }

    /// All operations: those that count for a rate.
    pub fn operations(&self) -> f64 {
        self.matrix_operations() + self.float
    }
}

/// Counts what a launch of the kernel does for these arguments, one for each parameter of the function, workspaces
/// included.
pub fn traffic(module: &Module, kernel: FuncId, args: &[LaunchArg], grid: [u32; 3]) -> Traffic {
    Accesses::new(module, kernel).traffic(module, args, grid)
}

/// What each block of a kernel does whenever it runs; the same for all launches.
#[derive(Clone, Debug)]
pub struct Accesses {
    kernel: FuncId,
    slice: ControlSlice,
    blocks: Vec<(BlockId, Traffic)>,
}

impl Accesses {
    /// Of a kernel.
    pub fn new(module: &Module, kernel: FuncId) -> Accesses {
        let func = &module.funcs[kernel];
        let none = vec![0.0; func.blocks[func.body].args.len()];
        let owner = walk::owners(func);
        let of_block = |block: BlockId| {
            let mut out = Traffic { read: none.clone(), written: none.clone(), ..Traffic::default() };
            for i in &func.blocks[block].insts {
                out.count(module, func, &owner, &func.insts[*i]);
            }
            (block, out)
        };
        let blocks = func.blocks.iter().map(|(block, _)| of_block(block)).collect();
        Accesses { kernel, slice: ControlSlice::new(func), blocks }
    }

    /// What a launch of the kernel does, which is in this module.
    pub fn traffic(&self, module: &Module, args: &[LaunchArg], grid: [u32; 3]) -> Traffic {
        let func = &module.funcs[self.kernel];
        let often = self.slice.frequencies(module, func, args, grid);
        let programs: f64 = grid.iter().map(|n| f64::from(*n)).product();
        let params = &func.blocks[func.body].args;
        let none = vec![0.0; params.len()];
        let mut out =
            Traffic { read: none.clone(), written: none, is_guess: often.is_guess, ..Traffic::default() };
        for (block, each) in &self.blocks {
            let times = often.of(*block) * programs;
            if times > 0.0 {
                out.add(each, times);
            }
        }
        for ((read, written), (v, arg)) in
            out.read.iter_mut().zip(&mut out.written).zip(params.iter().zip(args))
        {
            let LaunchArg::Tensor(shape, strides) = arg else { continue };
            // Elements that a stride of 0 repeats are one.
            let extents = shape.iter().zip(strides).filter(|(_, s)| **s != 0).map(|(d, _)| *d as f64);
            let bytes = extents.product::<f64>() * element_bytes(module.types.get(func.ty(*v)).elem());
            (*read, *written) = (read.min(bytes), written.min(bytes));
        }
        out
    }
}

impl Traffic {
    /// Adds what runs so often.
    fn add(&mut self, each: &Traffic, times: f64) {
        let lists = [(&mut self.read, &each.read), (&mut self.written, &each.written)];
        for (total, each) in lists {
            total.iter_mut().zip(each).for_each(|(total, n)| *total += n * times);
        }
        each.matrix.iter().for_each(|(dtype, n)| self.multiply(*dtype, n * times));
        self.float += each.float * times;
    }

    /// Adds operations of matrix products.
    fn multiply(&mut self, dtype: DType, operations: f64) {
        match self.matrix.iter_mut().find(|(d, _)| *d == dtype) {
            Some((_, n)) => *n += operations,
            None => self.matrix.push((dtype, operations)),
        }
    }

    /// Counts an instruction.
    fn count(&mut self, module: &Module, func: &Func, owner: &[Option<InstId>], inst: &Inst) {
        let ty = |v: &ValueId| module.types.get(func.ty(*v));
        let elements = inst.results.first().map_or(0.0, |v| ty(v).count() as f64);
        let is_float = inst.results.first().and_then(|v| ty(v).dtype()).is_some_and(DType::is_float);
        match inst.op {
            Op::Memory(op) => {
                let Some(memory) = inst.operands.first() else { return };
                let bytes = element_bytes(pointee(ty(memory)));
                let Some(param) = origin(func, owner, *memory) else { return };
                let (slot, count) = match op {
                    MemoryOp::Load | MemoryOp::ViewLoad | MemoryOp::ViewGather => (&mut self.read, elements),
                    MemoryOp::Store => (&mut self.written, ty(memory).count() as f64),
                    MemoryOp::ViewStore => {
                        (&mut self.written, inst.operands.last().map_or(0.0, |v| ty(v).count() as f64))
                    }
                    // Positions, one for each axis, the value, the mask.
                    MemoryOp::ViewScatter => {
                        (&mut self.written, inst.operands.get(1).map_or(0.0, |v| ty(v).count() as f64))
                    }
                    _ => return,
                };
                if let Some(slot) = slot.get_mut(param) {
                    *slot += count.max(1.0) * bytes;
                }
            }
            Op::Atomic(_) => {
                let Some(memory) = inst.operands.first() else { return };
                let count = inst.operands.iter().map(|v| ty(v).count()).max().unwrap_or(1).max(1) as f64;
                let bytes = count * element_bytes(pointee(ty(memory)));
                let Some(param) = origin(func, owner, *memory) else { return };
                for list in [&mut self.read, &mut self.written] {
                    if let Some(slot) = list.get_mut(param) {
                        *slot += bytes;
                    }
                }
            }
            Op::Dot(_) => {
                let Some(a) = inst.operands.first().map(ty) else { return };
                let depth = a.shape().and_then(|s| s.last()).map_or(0.0, |k| f64::from(*k));
                let Some(dtype) = a.dtype() else { return };
                self.multiply(dtype, 2.0 * elements * depth);
            }
            Op::Elementwise(ElementwiseOp::Cast | ElementwiseOp::Bitcast | ElementwiseOp::Select) => {}
            Op::Elementwise(_) | Op::Random(_) if is_float => self.float += elements,
            Op::Reduce(_) | Op::Scan(_) if is_float => {
                self.float += inst.operands.first().map_or(0.0, |v| ty(v).count() as f64);
            }
            _ => {}
        }
    }
}

/// The element that a pointer or a view leads to.
fn pointee(ty: &Type) -> &ElemType {
    match ty.elem() {
        ElemType::Ptr { pointee, .. } => pointee,
        elem @ ElemType::Scalar(_) => elem,
    }
}

fn element_bytes(elem: &ElemType) -> f64 {
    match elem {
        ElemType::Scalar(d) => d.bytes() as f64,
        ElemType::Ptr { .. } => 8.0,
    }
}

/// The parameter that a pointer, a tile of pointers or a view comes from.
fn origin(func: &Func, owner: &[Option<InstId>], mut v: ValueId) -> Option<usize> {
    // No chain of definitions is longer than there are values.
    for _ in 0..func.values.len() {
        v = match func.values[v].def {
            Def::Arg(block, n) if block == func.body => return Some(n as usize),
            Def::Arg(block, n) => {
                let inst = &func.insts[(*owner.get(block.index())?)?];
                match flow(inst.op) {
                    Flow::For => *inst.operands.get((n as usize).checked_add(2)?)?,
                    Flow::While => *inst.operands.get(n as usize)?,
                    Flow::If | Flow::Plain | Flow::Elements | Flow::Expect => return None,
                }
            }
            Def::Inst(i, n) => {
                let inst = &func.insts[i];
                match inst.op {
                    Op::Memory(
                        MemoryOp::PtrAdd
                        | MemoryOp::View
                        | MemoryOp::ViewPtr
                        | MemoryOp::ViewSlice
                        | MemoryOp::ViewPermute,
                    )
                    | Op::Create(CreateOp::Splat)
                    | Op::Shape(
                        ShapeOp::Reshape
                        | ShapeOp::Permute
                        | ShapeOp::Broadcast
                        | ShapeOp::Slice
                        | ShapeOp::Flip,
                    ) => *inst.operands.first()?,
                    Op::Elementwise(ElementwiseOp::Select) => *inst.operands.get(1)?,
                    _ if flow(inst.op) == Flow::For => *inst.operands.get(3 + n as usize)?,
                    _ => return None,
                }
            }
        };
    }
    None
}
