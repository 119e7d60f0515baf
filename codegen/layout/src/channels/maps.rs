//! Owns what a launch has to describe to the copy engine: [`maps`].
//!
//! A *tensor map* says where a matrix lies in memory, which box of it a copy brings, and how its lines lie in shared memory.
//! Copies of equal boxes of one parameter share a map.
//!
//! May assume a verified scheduled kernel. Guarantees one order for emission and launch.

use tk_ops::{DType, ElementwiseOp, MachineOp, MemoryOp, Op};
use tk_tile::rewrite::constant;
use tk_tile::{Def, Elem, Inst, Type, ValueId, walk};

use super::MOST_OF_BOX;
use crate::axis::flattened;
use crate::kernel::Kernel;
use crate::layout::cut;

/// A number of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// This one of the flattened parameters.
    Passed(usize),
    /// It is always the same.
    Value(i64),
}

/// A matrix that a launch knows before the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The number of its address among the flattened parameters.
    pub address: usize,
    /// Rows and columns.
    pub extents: [Word; 2],
    /// Elements from a row to the next, and from a column to the next.
    pub strides: [Word; 2],
    /// Its elements.
    pub dtype: DType,
}

/// A tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// What is described.
    pub matrix: Matrix,
    /// Lines of a copy.
    pub lines: u32,
    /// Bytes of a line: 32, 64 or 128.
    pub span: u32,
}

/// The maps of a kernel, in the order in which they are passed.
pub fn maps(kernel: &Kernel) -> Vec<TensorMap> {
    let func = kernel.func();
    let mut all: Vec<TensorMap> = vec![];
    for id in walk::insts(func) {
        let found = map(kernel, &func.insts[id]);
        all.extend(found.filter(|m| !all.contains(m)));
    }
    all
}

/// The map of a copy.
pub fn map(kernel: &Kernel, inst: &Inst) -> Option<TensorMap> {
    if inst.op != Op::Machine(MachineOp::TensorCopy) {
        return None;
    }
    let matrix = matrix(kernel, *inst.operands.first()?)?;
    let span = u32::try_from(inst.attrs.int("span")?).ok()?;
    let tall = u32::try_from(*inst.attrs.ints("shape")?.first()?).ok()?;
    let lines = (1 << cut(tall).log2).min(MOST_OF_BOX);
    Some(TensorMap { matrix, lines, span })
}

/// The matrix behind a view: a parameter, or one that is made of an address and numbers that are.
pub fn matrix(kernel: &Kernel, view: ValueId) -> Option<Matrix> {
    let func = kernel.func();
    let Type::View { elem: Elem::Scalar(dtype), rank: 2, wide: false, .. } =
        kernel.module.types.get(func.ty(view))
    else {
        return None;
    };
    let dtype = *dtype;
    let place = |v: ValueId| -> Option<usize> {
        let params = &func.blocks[func.body].args;
        let before = params.iter().take(params.iter().position(|p| *p == v)?);
        Some(before.map(|p| flattened(kernel.module.types.get(func.ty(*p)))).sum())
    };
    if let Some(address) = place(view) {
        let word = |i: usize| Word::Passed(address + i);
        return Some(Matrix { address, extents: [word(1), word(2)], strides: [word(3), word(4)], dtype });
    }
    let Def::Inst(id, _) = func.values[view].def else { return None };
    let inst = &func.insts[id];
    let (Op::Memory(MemoryOp::View), [address, extents @ .., _, _]) = (inst.op, inst.operands.as_slice())
    else {
        return None;
    };
    let word = |v: &ValueId| number(kernel, *v, &place);
    let [rows, columns] = extents else { return None };
    let strides = inst.operands.get(3..)?;
    Some(Matrix {
        address: place(*address)?,
        extents: [word(rows)?, word(columns)?],
        strides: [word(strides.first()?)?, word(strides.get(1)?)?],
        dtype,
    })
}

/// A number that is a parameter or a constant, or one of these with more bits.
fn number(kernel: &Kernel, v: ValueId, place: &dyn Fn(ValueId) -> Option<usize>) -> Option<Word> {
    let func = kernel.func();
    if let Some(i) = place(v) {
        return Some(Word::Passed(i));
    }
    if let Some(value) = constant(func, v) {
        return Some(Word::Value(i64::try_from(value.as_int()?).ok()?));
    }
    let Def::Inst(id, _) = func.values[v].def else { return None };
    let inst = &func.insts[id];
    let dtype =
        |v: ValueId| kernel.module.types.get(func.ty(v)).dtype().filter(|d| d.is_int() && d.is_signed());
    let from = *inst.operands.first()?;
    let cast = inst.op == Op::Elementwise(ElementwiseOp::Cast);
    let widens = cast && dtype(from)?.bits() <= dtype(v)?.bits();
    if widens { number(kernel, from, place) } else { None }
}
