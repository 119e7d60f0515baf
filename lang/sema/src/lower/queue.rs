//! Owns the list of functions to lower: one entry for each function and bindings, in the order of their first call.

use std::collections::{BTreeMap, BTreeSet};

use tk_syntax::{Diagnostic, Span, codes};

use crate::eval::{Bindings, Res, key_of};
use crate::hir::{FnId, Hir};

/// The most functions that one program may become. The largest kernel seen becomes a dozen; whoever needs thousands
/// counts up a compile-time argument.
const MAX_INSTANCES: usize = 4096;

/// A function with bindings.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub id: FnId,
    pub bindings: Bindings,
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
    /// What `static_print` said.
    pub notes: Vec<Diagnostic>,
    /// Iterations of compile-time loops so far.
    pub unrolled: u32,
    known: BTreeMap<String, usize>,
    names: BTreeSet<String>,
}

impl<'h> Queue<'h> {
    pub fn new(hir: &'h Hir) -> Self {
        Queue {
            hir,
            instances: vec![],
            notes: vec![],
            unrolled: 0,
            known: BTreeMap::new(),
            names: BTreeSet::new(),
        }
    }

    /// The number of a function under these bindings, added if it is new.
    pub fn instance(&mut self, id: FnId, bindings: Bindings, from: Option<(usize, Span)>) -> Res<usize> {
        let absent: Vec<String> =
            bindings.present.iter().filter(|(_, p)| !**p).map(|(l, _)| l.0.to_string()).collect();
        let key = format!("{}{}{}", id.0, key_of(&bindings.cvars), absent.join(","));
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
        self.instances.push(Instance { id, bindings, name, from });
        self.known.insert(key, i);
        Ok(i)
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
