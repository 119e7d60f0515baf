//! The call graph.
//!
//! Requires that every block has one owner; a call whose callee does not exist is left out. Guarantees an order that
//! depends only on the module, and does not recurse.

use std::collections::BTreeMap;

use tk_ops::{ControlOp, Op};

use crate::ir::{Func, FuncId, Id, Module};
use crate::walk;

/// Calls between the functions of a module.
#[derive(Debug)]
pub struct CallGraph {
    /// For each function, the functions that it calls, each once, in id order.
    callees: Vec<Vec<FuncId>>,
}

/// The names of the functions that `func` calls, in order.
fn called(func: &Func) -> impl Iterator<Item = &str> {
    let insts = walk::insts(func).into_iter().map(|i| &func.insts[i]);
    insts.filter(|i| i.op == Op::Control(ControlOp::Call)).filter_map(|i| i.attrs.str("callee"))
}

impl CallGraph {
    /// Reads the calls of a module.
    pub fn new(module: &Module) -> CallGraph {
        let mut names = BTreeMap::new();
        for (id, f) in module.funcs.iter() {
            names.entry(f.name.as_str()).or_insert(id);
        }
        let of = |f| {
            let mut ids: Vec<FuncId> = called(f).filter_map(|n| names.get(n).copied()).collect();
            ids.sort();
            ids.dedup();
            ids
        };
        CallGraph { callees: module.funcs.iter().map(|(_, f)| of(f)).collect() }
    }

    /// The functions that `f` calls.
    pub fn callees(&self, f: FuncId) -> &[FuncId] {
        self.callees.get(f.index()).map_or(&[], |c| c)
    }

    /// Every function after all that it calls; `Err` names one that reaches itself.
    pub fn bottom_up(&self) -> Result<Vec<FuncId>, FuncId> {
        let mut callers: Vec<Vec<FuncId>> = vec![vec![]; self.callees.len()];
        let mut missing: Vec<usize> = self.callees.iter().map(Vec::len).collect();
        for (i, callees) in self.callees.iter().enumerate() {
            for c in callees {
                if let Some(list) = callers.get_mut(c.index()) {
                    list.push(FuncId::new(i));
                }
            }
        }
        let mut order: Vec<FuncId> = vec![];
        order.extend(missing.iter().enumerate().filter(|(_, n)| **n == 0).map(|(i, _)| FuncId::new(i)));
        let mut next = 0;
        while let Some(f) = order.get(next).copied() {
            next += 1;
            for caller in callers.get(f.index()).map_or(&[][..], |c| c) {
                if let Some(n) = missing.get_mut(caller.index()) {
                    *n -= 1;
                    if *n == 0 {
                        order.push(*caller);
                    }
                }
            }
        }
        // What is left reaches a cycle; follow callees that are left too until one comes again.
        let left = |f: &FuncId| missing.get(f.index()).is_some_and(|n| *n > 0);
        let Some(mut at) = (0..missing.len()).map(FuncId::new).find(left) else { return Ok(order) };
        for _ in 0..missing.len() {
            at = self.callees(at).iter().copied().find(left).unwrap_or(at);
        }
        Err(at)
    }

    /// The functions reached from these, themselves included.
    pub fn reachable(&self, roots: impl Iterator<Item = FuncId>) -> Vec<bool> {
        let mut seen = vec![false; self.callees.len()];
        let mut work: Vec<FuncId> = roots.collect();
        while let Some(f) = work.pop() {
            if let Some(slot @ false) = seen.get_mut(f.index()) {
                *slot = true;
                work.extend(self.callees(f));
            }
        }
        seen
    }
}
