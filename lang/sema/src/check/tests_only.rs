//! Functions that make the inputs of tests: their callees are only available in tests, so no kernel may reach them.

use std::collections::BTreeMap;

use tk_syntax::{Diagnostic, Span, codes};

use super::Program;
use crate::hir::{FnId, FnKind};

/// Operations of tests that functions may use.
pub(super) const MAKERS: &[&str] = &["randn", "uniform", "npy", "assert_close"];

/// Reports each such operation that a kernel reaches, with the kernel and the call that leads there.
pub(super) fn find(p: &mut Program) {
    let mut uses = p.test_uses();
    if uses.is_empty() {
        return;
    }
    let mut callees: BTreeMap<FnId, Vec<(FnId, Span)>> = BTreeMap::new();
    for (caller, callee, at) in p.calls() {
        callees.entry(caller).or_default().push((callee, at));
    }
    // The kernel that reaches a function, and the last call on the way.
    let mut reached: BTreeMap<FnId, (FnId, Span)> = BTreeMap::new();
    for (kernel, _) in p.hir.kernels() {
        let mut open = vec![kernel];
        while let Some(f) = open.pop() {
            for (callee, at) in callees.get(&f).into_iter().flatten() {
                if !reached.contains_key(callee) {
                    reached.insert(*callee, (kernel, *at));
                    open.push(*callee);
                }
            }
        }
    }
    uses.dedup();
    for (f, name, at) in uses {
        let Some((kernel, call)) = reached.get(&f) else { continue };
        let (own, kernel) = (p.hir.func(f).name.clone(), p.hir.func(*kernel).name.clone());
        let message = format!("`{name}` is only available in tests, but the kernel `{kernel}` reaches it");
        let d = Diagnostic::error(codes::TEST_ONLY, at, message, format!("reached by the kernel `{kernel}`"))
            .label(*call, format!("`{own}` is called here"));
        p.func_mut(f).broken = true;
        p.report(d);
    }
}

/// Returns true if a function may use the operation: kernels are known not to be tests.
pub(super) fn may_use(kind: FnKind, name: &str) -> bool {
    kind == FnKind::Fn && MAKERS.contains(&name)
}
