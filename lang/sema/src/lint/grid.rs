//! W0702: a kernel that asks which program it is, but has no `grid`, so that a single program runs.

use tk_ops::{ControlOp, Op};
use tk_syntax::{Span, codes};

use super::{Cx, each, warning};
use crate::hir::{FnKind, HFn, HKind};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    if f.kind != FnKind::Kernel || !f.contract.grid.is_empty() {
        return;
    }
    let mut asked: Option<Span> = None;
    each(&f.body, &mut |_| {}, &mut |e| {
        if matches!(&e.kind, HKind::Builtin(row, _) if row.op == Op::Control(ControlOp::ProgramId)) {
            asked = asked.or(Some(e.span));
        }
    });
    let Some(asked) = asked else { return };
    let message = format!("`{}` has no `grid`, so one program runs", f.name);
    let d = warning(codes::NO_GRID, f.span, message, "one program").label(asked, "always 0");
    cx.warn(d.note("add the number of programs to the signature, such as `grid(cdiv(n, BLOCK))`"));
}
