//! Lambdas that options of the command give to kernels: `--set 'ACT=|v| v + v'`.
//!
//! Each is a source of its own, `<--set ACT>`, which sees the names of the main file. It is checked for each kernel with a
//! function-valued parameter of that name, since the types of its parameters come from there.

use tk_syntax::FileId;

use super::Program;
use super::cx::Cx;
use crate::hir::{CKind, CVarId, FnKind, Given, HExpr};
use crate::types::CTerm;

/// A value that an option writes.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The kernel, if it is for one of the main file alone.
    pub kernel: Option<&'a str>,
    /// The compile-time parameter.
    pub name: &'a str,
    /// The text of the value.
    pub text: &'a str,
}

/// Returns true if the text of an option is a lambda, which no name, number or type is.
pub fn is_lambda(text: &str) -> bool {
    text.trim_start().starts_with('|')
}

pub(super) fn check(p: &mut Program, written: &[Written<'_>]) {
    for w in written.iter().filter(|w| is_lambda(w.text)) {
        let params = params(p, w);
        if params.is_empty() {
            continue;
        }
        let file = p.sources.add(&format!("<--set {}>", w.name), w.text);
        let (tree, diags) = tk_syntax::parse_expr(file, w.text);
        let readable = diags.is_empty();
        p.notes.diags.extend(diags);
        for param in params {
            let hole = HExpr::err(tree.span);
            let value = if readable { value(p, param, &tree) } else { None };
            p.hir.given.push(Given { param, text: w.text.to_string(), value: value.unwrap_or(hole) });
        }
    }
}

fn value(p: &mut Program, param: CVarId, tree: &tk_syntax::ast::Expr) -> Option<HExpr> {
    if p.files.is_empty() {
        return None;
    }
    let mut cx = Cx::new(p, 0, None);
    let CTerm::Expr(mut h) = cx.carg(param, tree) else { return None };
    cx.zonk_expr(&mut h);
    Some(*h)
}

/// The parameters that the option is for.
fn params(p: &Program, w: &Written<'_>) -> Vec<CVarId> {
    let exported = |id| p.hir.exports.iter().any(|e| e.kernel == id);
    let mut found = vec![];
    for (id, f) in p.hir.kernels() {
        let meant = w.kernel.is_none_or(|name| name == f.name);
        if f.kind != FnKind::Kernel || !meant || (f.file != FileId(0) && !exported(id)) {
            continue;
        }
        let fits = |c: &&CVarId| {
            let c = p.hir.cvar(**c);
            c.name == w.name && matches!(c.kind, CKind::Fn(..))
        };
        found.extend(f.cparams.iter().find(fits));
    }
    found
}
