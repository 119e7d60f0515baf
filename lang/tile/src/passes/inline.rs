//! Puts the bodies of functions in the place of their calls, and removes functions that are no longer called.
//!
//! ```text
//! fn @double(v0 "x": f32) -> f32 {             kernel @k(v0 "p": *mut f32) {
//!   v1 = add v0, v0 : f32                        v1 = load v0 : f32
//!   return v1                                    v2 = add v1, v1 : f32
//! }                                         =>   store v0, v2
//! kernel @k(v0 "p": *mut f32) {                  return
//!   v1 = load v0 : f32                         }
//!   v2 = call v1 {callee = "double"} : f32
//!   store v0, v2
//!   return
//! }
//! ```
//!
//! Requires a verified module. Guarantees that calls of `fn`s are gone, except where the caller would outgrow
//! [`MAX_INSTS`] or nest too deep: callees are inlined first, so that a chain of functions that each call the next
//! one twice would double at every step. `noinline` functions keep their calls; kernels and tests stay, and what they
//! reach; other functions go.

use std::collections::BTreeMap;

use tk_ops::{ControlOp, Op};

use crate::callgraph::CallGraph;
use crate::ir::{Arena, BlockId, Func, FuncId, FuncKind, Id, InstId, Loc, Module, ValueId};
use crate::passes::ModulePass;
use crate::rewrite::{Renames, yielded};
use crate::verify::MAX_NESTING;
use crate::walk;

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "inline", run };

/// The pass where the instructions of a function of another file have the place of its call in the file of the program.
pub const AT_CALLS: ModulePass = ModulePass { name: "inline", run: run_at_calls };

/// The number of the file of the program among its sources.
const PROGRAM: u32 = 0;

/// The most instructions that a function may grow to. The largest kernels have a few thousand; a back end that could
/// compile this many in reasonable time would make it too small.
pub const MAX_INSTS: usize = 200_000;

/// Facts about a function whose own calls have been inlined.
#[derive(Clone, Copy, Default)]
struct Facts {
    insts: usize,
    depth: usize,
}

fn run(module: &mut Module) {
    inline(module, false);
}

fn run_at_calls(module: &mut Module) {
    inline(module, true);
}

fn inline(module: &mut Module, at_calls: bool) {
    let Ok(order) = CallGraph::new(module).bottom_up() else { return };
    let names: BTreeMap<String, FuncId> = module.funcs.iter().map(|(id, f)| (f.name.clone(), id)).collect();
    let mut facts = vec![Facts::default(); module.funcs.len()];
    for f in order {
        // No function calls itself, so it is not missed while it is changed.
        let mut func = std::mem::replace(&mut module.funcs[f], Func::new("", FuncKind::Fn));
        let size = walk::insts(&func).len();
        let body = func.body;
        let mut inliner = Inliner {
            module,
            names: &names,
            facts: &facts,
            func: &mut func,
            at_calls,
            call: None,
            renames: Renames::default(),
            size,
        };
        inliner.block(body, 0);
        let insts = inliner.size;
        if let Some(slot) = facts.get_mut(f.index()) {
            *slot = Facts { insts, depth: depth(&func, body) };
        }
        module.funcs[f] = func;
    }
    remove_unreached(module);
}

/// The nesting depth of the blocks inside of a block.
fn depth(func: &Func, block: BlockId) -> usize {
    let inner = func.blocks[block].insts.iter().flat_map(|i| &func.insts[*i].blocks);
    inner.map(|b| 1 + depth(func, *b)).max().unwrap_or(0)
}

fn remove_unreached(module: &mut Module) {
    let graph = CallGraph::new(module);
    let kept = |k: FuncKind| match k {
        FuncKind::Kernel | FuncKind::Test => true,
        FuncKind::Fn | FuncKind::NoInline => false,
    };
    let roots = module.funcs.iter().filter(|(_, f)| kept(f.kind)).map(|(id, _)| id);
    let reached = graph.reachable(roots);
    let mut funcs = Arena::default();
    for (id, f) in module.funcs.iter() {
        if reached.get(id.index()) == Some(&true) {
            funcs.push(f.clone());
        }
    }
    module.funcs = funcs;
}

struct Inliner<'a> {
    module: &'a Module,
    names: &'a BTreeMap<String, FuncId>,
    facts: &'a [Facts],
    func: &'a mut Func,
    /// Whether instructions of other files have the places of calls in the file of the program.
    at_calls: bool,
    /// That of the call whose function is copied.
    call: Option<Loc>,
    renames: Renames,
    /// The number of instructions of the function.
    size: usize,
}

impl Inliner<'_> {
    fn block(&mut self, id: BlockId, level: usize) {
        for i in std::mem::take(&mut self.func.blocks[id].insts) {
            self.renames.apply(self.func, i);
            if let Some(callee) = self.callee(i, level) {
                self.splice(id, i, callee);
                continue;
            }
            self.func.blocks[id].insts.push(i);
            for b in self.func.insts[i].blocks.clone() {
                self.block(b, level + 1);
            }
        }
    }

    /// The function to inline in the place of an instruction.
    fn callee(&self, i: InstId, level: usize) -> Option<FuncId> {
        let inst = &self.func.insts[i];
        if inst.op != Op::Control(ControlOp::Call) {
            return None;
        }
        let id = self.names.get(inst.attrs.str("callee")?).copied()?;
        let facts = self.facts.get(id.index()).copied()?;
        let fits = self.size + facts.insts <= MAX_INSTS && level + facts.depth <= MAX_NESTING;
        (self.module.funcs[id].kind == FuncKind::Fn && fits).then_some(id)
    }

    fn splice(&mut self, block: BlockId, call: InstId, callee: FuncId) {
        let module = self.module;
        let callee_facts = self.facts.get(callee.index()).copied().unwrap_or_default();
        let callee = &module.funcs[callee];
        let mut map = vec![ValueId(0); callee.values.len()];
        let args = self.func.insts[call].operands.clone();
        for (param, arg) in callee.blocks[callee.body].args.iter().zip(args) {
            put(&mut map, *param, arg);
        }
        self.call = self.func.insts[call].loc.filter(|at| self.at_calls && at.file == PROGRAM);
        self.copy_insts(callee, callee.body, block, &mut map);
        let returned: Vec<ValueId> = yielded(callee, callee.body).iter().map(|v| pick(&map, *v)).collect();
        for (result, value) in self.func.insts[call].results.clone().into_iter().zip(returned) {
            self.renames.set(result, value);
        }
        self.size += callee_facts.insts;
    }

    /// Copies the instructions of a block of the callee to the end of a block of the caller; the `return` is left out.
    fn copy_insts(&mut self, callee: &Func, from: BlockId, to: BlockId, map: &mut Vec<ValueId>) {
        for i in &callee.blocks[from].insts {
            let source = &callee.insts[*i];
            if source.op == Op::Control(ControlOp::Return) {
                continue;
            }
            let mut inst = source.clone();
            inst.blocks.clear();
            if self.call.is_some() && inst.loc.is_some_and(|at| at.file != PROGRAM) {
                inst.loc = self.call;
            }
            inst.operands.iter_mut().for_each(|v| *v = pick(map, *v));
            let types: Vec<_> = source.results.iter().map(|v| callee.ty(*v)).collect();
            let copy = self.func.add_inst(to, inst, &types);
            for (old, new) in source.results.iter().zip(&self.func.insts[copy].results) {
                put(map, *old, *new);
            }
            for b in &source.blocks {
                let block = self.func.add_block();
                for v in &callee.blocks[*b].args {
                    let arg = self.func.add_arg(block, callee.ty(*v));
                    put(map, *v, arg);
                }
                self.copy_insts(callee, *b, block, map);
                self.func.insts[copy].blocks.push(block);
            }
        }
    }
}

/// The value of the caller for a value of the callee.
fn pick(map: &[ValueId], v: ValueId) -> ValueId {
    map.get(v.index()).copied().unwrap_or(v)
}

fn put(map: &mut [ValueId], from: ValueId, to: ValueId) {
    if let Some(slot) = map.get_mut(from.index()) {
        *slot = to;
    }
}
