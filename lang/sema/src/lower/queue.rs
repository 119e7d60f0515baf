//! The queue of functions to lower: one entry for each function and bindings, in the order of their first call.

use std::collections::{BTreeMap, BTreeSet};

use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::debug::DebugInfo;
use tk_tile::{Func, Types};

use super::size::Unrolled;
use crate::eval::{Bindings, CTy, EvalResult, key_of};
use crate::hir::{FnId, Hir, LocalId};

/// The most functions that one program may become. The largest kernel seen becomes a dozen; a program that needs
/// thousands counts up a compile-time argument.
const MAX_INSTANCES: usize = 4096;

/// The depth to which functions with optional results may call each other: each is lowered in the middle of its
/// caller, and a debug build spends up to 100 KiB of the stack for a level.
const MAX_AHEAD: usize = 128;

/// The presence of optional views in the tuples and structs passed to parameters, in the order of their types.
pub(crate) type Parts = BTreeMap<LocalId, Vec<bool>>;

/// A function with bindings.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub id: FnId,
    pub bindings: Bindings,
    /// Facts that [`Bindings::present`] cannot hold.
    pub parts: Parts,
    /// Its name in the tile IR.
    pub name: String,
    /// The instance that called it first, and where.
    pub from: Option<(usize, Span)>,
}

/// The functions of one specialization.
#[derive(Clone, Debug)]
pub(crate) struct Queue<'h> {
    pub hir: &'h Hir,
    pub instances: Vec<Instance>,
    /// The messages of `static_print`.
    pub notes: Vec<Diagnostic>,
    /// Iterations of compile-time loops so far.
    pub unrolled: u32,
    /// The compile-time loops, for the diagnostic of a kernel that is too large.
    pub loops: Vec<Unrolled>,
    /// What a debugger asks for, if it is wanted.
    pub debug: Option<DebugInfo>,
    known: BTreeMap<String, usize>,
    names: BTreeSet<String>,
    /// Instances that were lowered before their turn, with the types of their results.
    ahead: BTreeMap<usize, (Option<Func>, EvalResult<CTy>)>,
    /// The number of them being lowered.
    depth: usize,
}

impl<'h> Queue<'h> {
    pub fn new(hir: &'h Hir) -> Self {
        Queue {
            hir,
            instances: vec![],
            notes: vec![],
            unrolled: 0,
            loops: vec![],
            debug: None,
            known: BTreeMap::new(),
            names: BTreeSet::new(),
            ahead: BTreeMap::new(),
            depth: 0,
        }
    }

    /// The number of a function under these bindings, added if it is new.
    pub fn instance(
        &mut self,
        id: FnId,
        bindings: Bindings,
        parts: Parts,
        from: Option<(usize, Span)>,
    ) -> EvalResult<usize> {
        let absent: Vec<String> =
            bindings.present.iter().filter(|(_, p)| !**p).map(|(l, _)| l.0.to_string()).collect();
        let key = format!("{}{}{}{parts:?}", id.0, key_of(&bindings.cvars), absent.join(","));
        if let Some(i) = self.known.get(&key) {
            return Ok(*i);
        }
        if self.instances.len() >= MAX_INSTANCES {
            let span = from.map_or(Span::default(), |(_, s)| s);
            let message = format!("this program needs more than {MAX_INSTANCES} specialized functions");
            return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, span, message, "")));
        }
        let name = self.fresh_name(describe(self.hir, id, &bindings));
        let i = self.instances.len();
        self.instances.push(Instance { id, bindings, parts, name, from });
        self.known.insert(key, i);
        Ok(i)
    }

    /// The type of what an instance returns, with its absent optional views: only its body says which those are, so
    /// it is lowered now.
    pub fn result(&mut self, types: &mut Types, index: usize, span: Span) -> EvalResult<CTy> {
        if let Some((_, ret)) = self.ahead.get(&index) {
            return ret.clone();
        }
        if self.depth >= MAX_AHEAD {
            let message =
                format!("more than {MAX_AHEAD} functions with optional results call each other here");
            return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, span, message, "")));
        }
        self.depth += 1;
        let lowered = super::lower(self, types, index);
        self.depth -= 1;
        let (func, ret) = match lowered {
            Ok((func, ret)) => (Some(func), Ok(ret)),
            Err(d) => (None, Err(Box::new(crate::specialize::with_instance(self, index, *d)))),
        };
        self.ahead.insert(index, (func, ret.clone()));
        ret
    }

    /// Lowers an instance in its turn. Where that was tried before, the callers have reported what went wrong.
    pub fn lower(&mut self, types: &mut Types, index: usize) -> EvalResult<Option<Func>> {
        match self.ahead.remove(&index) {
            Some((func, _)) => Ok(func),
            None => super::lower(self, types, index).map(|(func, _)| Some(func)),
        }
    }

    /// Functions of one name and equal text of bindings (two lambdas, two files) are numbered.
    fn fresh_name(&mut self, name: String) -> String {
        let mut out = name.clone();
        let mut n = 1;
        while !self.names.insert(out.clone()) {
            n += 1;
            out = format!("{name}#{n}");
        }
        out
    }
}

/// `attend[BN=64, MASKED=true]`
pub(crate) fn describe(hir: &Hir, id: FnId, bindings: &Bindings) -> String {
    let f = hir.func(id);
    let mut items: Vec<String> = f
        .cparams
        .iter()
        .filter_map(|c| bindings.cvars.get(c).map(|v| format!("{}={v}", hir.cvar(*c).name)))
        .collect();
    for p in &f.params {
        if bindings.present.get(&p.local) == Some(&false) {
            items.push(format!("{}=None", p.name));
        }
    }
    let owner = hir.structs.iter().find(|s| s.methods.iter().any(|(_, m)| *m == id));
    let name = owner.map_or(f.name.clone(), |s| format!("{}.{}", s.name, f.name));
    if items.is_empty() { name } else { format!("{name}[{}]", items.join(", ")) }
}
