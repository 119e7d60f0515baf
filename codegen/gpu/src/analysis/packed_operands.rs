//! Finds the operands of matrix products whose elements are packed into words along K.
//!
//! Requires verified tile IR. Guarantees that a value found here becomes the operand of one product element by element,
//! possibly transposed, and nothing else.

use std::collections::BTreeMap;

use tk_ops::{DotOp, Op, ShapeOp};
use tk_tile::{Def, Func, Id, Module, ValueId, walk};

use crate::analysis::ldmatrix;
use crate::analysis::mma::kind;
use crate::ir::attrs::permutation;
use crate::target::mma;
use crate::target::spec::TargetSpec;

/// The elements of a word of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The dimension along which they are neighbours: K.
    pub along: usize,
    /// How many there are.
    pub elements: u32,
    /// The neighbours that a lane multiplies with one instruction: one word or several.
    pub of_lane: u32,
    /// Lanes can read them across K, and receive them along K ([`crate::analysis::ldmatrix`]).
    pub is_transposed: bool,
}

/// The values that matrix instructions multiply in words of several elements.
pub fn packed_operands(module: &Module, func: &Func, spec: &TargetSpec) -> BTreeMap<ValueId, Word> {
    let mut uses = vec![0u32; func.values.len()];
    for v in walk::insts(func).into_iter().flat_map(|i| &func.insts[i].operands) {
        uses.get_mut(v.index()).into_iter().for_each(|n| *n += 1);
    }
    let is_alone = |v: ValueId| uses.get(v.index()) == Some(&1);
    let mut found = BTreeMap::new();
    for id in walk::insts(func) {
        let inst = &func.insts[id];
        let (Op::Dot(DotOp::Dot), [a, b, _]) = (inst.op, inst.operands.as_slice()) else { continue };
        let Some(matrix) = kind(spec, module, func, inst).and_then(|k| mma::find(spec, k).next()) else {
            continue;
        };
        let elements = 1 << matrix.packed();
        let is_transposed = ldmatrix::is_read_transposed(&matrix, spec);
        let of_lane = |side: usize| 1 << matrix.neighbours_of(side);
        let mut open = vec![(*a, 1, of_lane(0)), (*b, 0, of_lane(1))];
        while let Some((v, along, of_lane)) = open.pop() {
            if elements == 1 || !is_alone(v) {
                continue;
            }
            found.insert(v, Word { along, elements, of_lane, is_transposed });
            let Def::Inst(from, _) = func.values[v].def else { continue };
            let from = &func.insts[from];
            let shape = |v: ValueId| module.types.get(func.ty(v)).shape();
            match from.op {
                Op::Elementwise(_) => {
                    let like = from.operands.iter().filter(|x| shape(**x) == shape(v));
                    open.extend(like.map(|x| (*x, along, of_lane)));
                }
                Op::Shape(ShapeOp::Permute) => {
                    let at = permutation(from).get(along).copied();
                    open.extend(from.operands.first().zip(at).map(|(x, at)| (*x, at, of_lane)));
                }
                _ => {}
            }
        }
    }
    found
}
