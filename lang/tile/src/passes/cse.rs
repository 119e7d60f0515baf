//! Computes once what is computed twice from the same operands.
//!
//! ```text
//! v2 = mul v0, v1 : i32             v2 = mul v0, v1 : i32
//! v3 = mul v0, v1 : i32        =>   v3 = add v2, v2 : i32
//! v4 = add v2, v3 : i32
//! ```
//!
//! Requires a verified module. Only pure operations without blocks are merged, and only with one before them in the
//! same block or in a block around it. Loads stay: writes between them are not analysed. Guarantees that the first of
//! equal instructions stays where it is.

use std::collections::HashMap;

use tk_ops::Op;
use tk_ops::table::Effects;

use crate::attr::Attrs;
use crate::effects::effects;
use crate::ir::{BlockId, Func, InstId, Module, TypeId, ValueId};
use crate::passes::ModulePass;
use crate::rewrite::Renames;

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "cse", run };

/// The key of a computation: equal for instructions that compute the same values.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    operands: Vec<ValueId>,
    attrs: Attrs,
    types: Vec<TypeId>,
}

fn run(module: &mut Module) {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let body = func.body;
        Cse { func, renames: Renames::default(), known: HashMap::new() }.block(body);
    }
}

struct Cse<'a> {
    func: &'a mut Func,
    renames: Renames,
    /// The visible instructions by their keys. Nothing depends on the order of the map.
    known: HashMap<Key, InstId>,
}

impl Cse<'_> {
    fn block(&mut self, id: BlockId) {
        let mut added = vec![];
        for i in std::mem::take(&mut self.func.blocks[id].insts) {
            self.renames.apply(self.func, i);
            if let Some(key) = self.key(i) {
                if let Some(first) = self.known.get(&key).copied() {
                    self.replace(i, first);
                    continue;
                }
                self.known.insert(key.clone(), i);
                added.push(key);
            }
            self.func.blocks[id].insts.push(i);
            for b in self.func.insts[i].blocks.clone() {
                self.block(b);
            }
        }
        for key in added {
            self.known.remove(&key);
        }
    }

    fn key(&self, i: InstId) -> Option<Key> {
        let inst = &self.func.insts[i];
        if effects(inst.op) != Effects::Pure || !inst.blocks.is_empty() {
            return None;
        }
        let types = inst.results.iter().map(|v| self.func.ty(*v)).collect();
        Some(Key { op: inst.op, operands: inst.operands.clone(), attrs: inst.attrs.clone(), types })
    }

    fn replace(&mut self, i: InstId, first: InstId) {
        let results = self.func.insts[i].results.clone();
        for (v, w) in results.into_iter().zip(&self.func.insts[first].results) {
            self.renames.set(v, *w);
        }
    }
}
