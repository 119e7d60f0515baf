//! W0601: a statement computes a value, does nothing else, and the value is dropped.

use std::collections::BTreeMap;

use tk_ops::table::Effects;
use tk_syntax::codes;

use super::{Cx, each, each_in, warning};
use crate::hir::{FnId, HExpr, HFn, HKind, HStmt, HStmtKind, Hir};
use crate::types::Ty;

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    let hir = cx.hir;
    let mut quiet = Quiet { hir, known: BTreeMap::new(), depth: 0 };
    let mut statements = vec![];
    each(&f.body, &mut |s| statements.push(s), &mut |_| {});
    for s in statements {
        let HStmtKind::Expr(e) = &s.kind else { continue };
        let valueless = matches!(e.ty, Ty::Err | Ty::Unit | Ty::Never) || e.kind == HKind::Unit;
        if valueless || !quiet.expr(e) {
            continue;
        }
        let of = |name: &str| format!("unused result of `{name}`, which does nothing else");
        let message = match &e.kind {
            HKind::Call { callee, .. } => of(&hir.func(*callee).name),
            HKind::Builtin(row, _) if !tk_ops::rows::is_operator(row) => of(row.name),
            _other => "unused value".to_string(),
        };
        cx.warn(warning(codes::UNUSED_RESULT, e.span, message, "this statement has no effect"));
    }
}

/// The depth to which calls are followed.
const MAX_DEPTH: usize = 64;

/// Decides whether expressions only compute a value; reads of memory count as such.
struct Quiet<'a> {
    hir: &'a Hir,
    known: BTreeMap<FnId, bool>,
    depth: usize,
}

impl Quiet<'_> {
    /// A block inside may have variables of its own, but must not change others.
    fn expr(&mut self, e: &HExpr) -> bool {
        let (mut quiet, mut inner) = (true, vec![]);
        let local = |s: &HStmt| matches!(s.kind, HStmtKind::Let(..) | HStmtKind::Expr(_));
        each_in(e, &mut |s| quiet &= local(s), &mut |e| inner.push(e));
        quiet && inner.into_iter().all(|e| !matches!(e.kind, HKind::Return(_)) && self.step(e))
    }

    /// An expression without those inside.
    fn step(&mut self, e: &HExpr) -> bool {
        match &e.kind {
            HKind::Builtin(row, _) => matches!(row.effects, Effects::Pure | Effects::Read),
            HKind::Call { callee, .. } | HKind::FnRef(callee, _) => self.function(*callee),
            HKind::Launch { .. } | HKind::CallValue { .. } | HKind::Err => false,
            _value => true,
        }
    }

    fn function(&mut self, id: FnId) -> bool {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let f = self.hir.func(id);
        let (mut quiet, mut inner) = (!f.broken && self.depth < MAX_DEPTH, vec![]);
        // A `while` may not end, which is an effect.
        let ends = |s: &HStmt| !matches!(s.kind, HStmtKind::While { .. });
        each(&f.body, &mut |s| quiet &= ends(s), &mut |e| inner.push(e));
        self.depth += 1;
        let quiet = quiet && inner.into_iter().all(|e| self.step(e));
        self.depth -= 1;
        self.known.insert(id, quiet);
        quiet
    }
}
