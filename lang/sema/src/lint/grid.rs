//! W0702: a kernel that asks for the number of its program along an axis that its grid does not have, where it is always
//! 0; without `grid`, there is no axis.

use tk_ops::{ControlOp, Op};
use tk_syntax::codes;

use super::{Cx, each, warning};
use crate::hir::{FnKind, HArg, HExpr, HFn, HKind};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    if f.kind != FnKind::Kernel {
        return;
    }
    let axes = f.contract.grid.len();
    let mut beyond: Option<(&HExpr, i128)> = None;
    each(&f.body, &mut |_| {}, &mut |e| {
        if let Some(axis) = asked(e).filter(|axis| usize::try_from(*axis).is_ok_and(|axis| axis >= axes)) {
            beyond = beyond.or(Some((e, axis)));
        }
    });
    let Some((e, axis)) = beyond else { return };
    let d = if axes == 0 {
        let message = format!("`{}` has no `grid`, so one program runs", f.name);
        warning(codes::NO_GRID, f.span, message, "one program")
            .note("add the number of programs to the signature, such as `grid(cdiv(n, BLOCK))`")
    } else {
        let has = if axes == 1 { "1 axis".to_string() } else { format!("{axes} axes") };
        let message = format!("the grid of `{}` has {has}, but this asks for axis {axis}", f.name);
        let note = "axes count from 0; each extent in `grid(..)` is one axis";
        cx.warn(warning(codes::NO_GRID, e.span, message, "always 0").label(f.span, has).note(note));
        return;
    };
    cx.warn(d.label(e.span, "always 0"));
}

/// The axis of `program_id(axis)`, where it is a number.
fn asked(e: &HExpr) -> Option<i128> {
    match &e.kind {
        HKind::Builtin(row, args) if row.op == Op::Control(ControlOp::ProgramId) => match args.as_slice() {
            [HArg::Expr(HExpr { kind: HKind::Int(axis), .. }), ..] => Some(*axis),
            // An axis that is a parameter may be 0.
            _other => Some(0),
        },
        _other => None,
    }
}
