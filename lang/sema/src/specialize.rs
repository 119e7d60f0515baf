//! Specialization: a kernel or test and the values of its compile-time parameters become a module of the tile
//! IR, with every function that it calls.
//!
//! Requires a checked program. Guarantees that the module passes the verifier, that the same input gives the same
//! module, and that an error says which instance it is about and where that is called.

use std::collections::BTreeMap;

use tk_syntax::stack::on_large_stack;
use tk_syntax::{Diagnostic, codes};
use tk_tile::debug::DebugInfo;
use tk_tile::{Func, Module, TileModule, Types};

use crate::eval::Bindings;
use crate::hir::{FnId, Hir};
use crate::lower::{self, Queue, describe, size};

/// A specialized kernel or test.
#[derive(Clone, Debug)]
pub struct Specialized {
    /// The functions: the kernel or test first, then what it calls in the order of the first calls.
    pub module: Module,
    /// The name of the kernel or test in the module.
    pub kernel: String,
    /// The messages of `static_print`.
    pub notes: Vec<Diagnostic>,
    /// What a debugger asks for; empty unless it was wanted.
    pub debug: DebugInfo,
}

/// Specializes a kernel or test.
pub fn specialize(hir: &Hir, id: FnId, bindings: &Bindings) -> Result<Specialized, Vec<Diagnostic>> {
    with_stack(hir, id, bindings, false)
}

/// The same, with what a debugger asks for.
pub fn specialize_for_debugger(
    hir: &Hir,
    id: FnId,
    bindings: &Bindings,
) -> Result<Specialized, Vec<Diagnostic>> {
    with_stack(hir, id, bindings, true)
}

fn with_stack(hir: &Hir, id: FnId, bindings: &Bindings, debug: bool) -> Result<Specialized, Vec<Diagnostic>> {
    on_large_stack(|| specialize_here(hir, id, bindings, debug))
        .unwrap_or_else(|_| Err(vec![*lower::bug(hir.func(id).span, "lowering stopped without an answer")]))
}

fn specialize_here(
    hir: &Hir,
    id: FnId,
    bindings: &Bindings,
    debug: bool,
) -> Result<Specialized, Vec<Diagnostic>> {
    let f = hir.func(id);
    if f.broken {
        let message = format!("`{}` cannot be compiled: it has errors", f.name);
        return Err(vec![Diagnostic::error(codes::INSTANCE, f.span, message, "")]);
    }
    let mut q = Queue::new(hir);
    q.debug = debug.then(DebugInfo::new);
    let mut types = Types::default();
    if let Err(d) = q.instance(id, bindings.clone(), BTreeMap::new(), None) {
        return Err(vec![*d]);
    }
    let (funcs, errors) = lower_from(&mut q, &mut types, 0);
    if !errors.is_empty() {
        return Err(errors);
    }
    let name = |i: usize| q.instances.get(i).map(|i| i.name.clone());
    size::check(&funcs, f.span, &q.loops, name).map_err(|d| vec![*d])?;
    let kernel = funcs.first().map(|f| f.name.clone()).unwrap_or_default();
    let mut module = Module { types, ..Module::default() };
    for f in funcs {
        module.funcs.push(f);
    }
    match TileModule::new(module) {
        Ok(m) => {
            let debug = q.debug.unwrap_or_default();
            Ok(Specialized { module: m.into_inner(), kernel, notes: q.notes, debug })
        }
        Err(e) => {
            let span = e.loc.map_or(f.span, |l| {
                tk_syntax::Span::new(tk_syntax::FileId(l.file), l.start as usize, l.end as usize)
            });
            Err(vec![*lower::bug(span, e)])
        }
    }
}

/// Lowers the instances from number `first` on, and those that they add.
pub(crate) fn lower_from(q: &mut Queue<'_>, types: &mut Types, first: usize) -> (Vec<Func>, Vec<Diagnostic>) {
    let (mut funcs, mut errors) = (vec![], Vec::<Diagnostic>::new());
    let mut index = first;
    while index < q.instances.len() {
        match q.lower(types, index) {
            Ok(f) => funcs.extend(f),
            Err(d) => {
                let d = with_instance(q, index, *d);
                // Two instances of one function break at the same place for the same cause.
                if !errors.iter().any(|e| e.code == d.code && e.primary.span == d.primary.span) {
                    errors.push(d);
                }
            }
        }
        index += 1;
    }
    (funcs, errors)
}

/// Says which instance a diagnostic is about, and the call that asked for it.
pub(crate) fn with_instance(q: &Queue<'_>, index: usize, d: Diagnostic) -> Diagnostic {
    let Some(i) = q.instances.get(index) else { return d };
    let f = q.hir.func(i.id);
    let values: Vec<String> = f
        .cparams
        .iter()
        .filter_map(|c| i.bindings.cvars.get(c).map(|v| format!("{} = {v}", q.hir.cvar(*c).name)))
        .collect();
    let d = if values.is_empty() {
        d
    } else {
        d.label(f.span, format!("in this specialization: {}", values.join(", ")))
    };
    match i.from {
        Some((_, span)) => d.label(span, format!("`{}` is called here", describe(q.hir, i.id, &i.bindings))),
        None => d,
    }
}
