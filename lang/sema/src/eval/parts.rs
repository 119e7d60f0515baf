//! The values of the parts of a condition, for messages: `n = 5`, `x.shape = [4, 8]`.

use super::{CVal, Evaluator};
use crate::hir::{HArg, HExpr, HFn, HKind};

impl Evaluator<'_> {
    /// The parameters in an expression and their values, each once, in the order of the text.
    pub fn parts(&mut self, e: &HExpr, f: &HFn) -> Vec<String> {
        let mut out = vec![];
        self.collect(e, f, &mut out);
        out
    }

    fn collect(&mut self, e: &HExpr, f: &HFn, out: &mut Vec<String>) {
        let name = match &e.kind {
            HKind::Local(id) => f.locals.get(id.0 as usize).map(|l| l.name.clone()),
            HKind::CVar(id) => self.hir.cvars.get(id.0 as usize).map(|c| c.name.clone()),
            HKind::Const(id) => self.hir.consts.get(id.0 as usize).map(|c| c.name.clone()),
            HKind::DType(d) => Some(crate::show::dterm(self.hir, *d)),
            HKind::DTypeFact(d, fact) => Some(format!("{}.{fact}", crate::show::dterm(self.hir, *d))),
            HKind::Target(f) => Some(format!("target.{}", f.name)),
            HKind::Device(f) => Some(format!("device.{}", f.name())),
            HKind::Extent(base, axis) => base_name(base, f).map(|b| format!("{b}.shape[{axis}]")),
            HKind::Stride(base, axis) => base_name(base, f).map(|b| format!("{b}.strides[{axis}]")),
            HKind::Extents { view, strides } => {
                base_name(view, f).map(|b| format!("{b}.{}", if *strides { "strides" } else { "shape" }))
            }
            HKind::Tuple(_) => whole_shape(e, f),
            _other => None,
        };
        if let Some(name) = name {
            if let Ok(v) = self.expr(e) {
                let shown = match v {
                    CVal::Tuple(items) => {
                        let items: Vec<String> = items.iter().map(CVal::to_string).collect();
                        format!("{name} = [{}]", items.join(", "))
                    }
                    v => format!("{name} = {v}"),
                };
                // A known type says `f16 = f16`.
                if shown != format!("{name} = {name}") && !out.contains(&shown) {
                    out.push(shown);
                }
            }
            return;
        }
        match &e.kind {
            HKind::Builtin(_, args) => {
                for a in args {
                    match a {
                        HArg::Expr(x) => self.collect(x, f, out),
                        HArg::List(xs) => xs.iter().for_each(|x| self.collect(x, f, out)),
                        HArg::Default | HArg::Shape(_) | HArg::Word(_) => {}
                    }
                }
            }
            HKind::ShortCircuit { lhs, rhs, .. } => {
                self.collect(lhs, f, out);
                self.collect(rhs, f, out);
            }
            HKind::Tuple(xs) | HKind::Struct(xs) | HKind::Shape(xs) | HKind::Call { args: xs, .. } => {
                xs.iter().for_each(|x| self.collect(x, f, out));
            }
            HKind::Cast(x) | HKind::Field(x, _) | HKind::Entry(x, _) => self.collect(x, f, out),
            HKind::If { cond, .. } => self.collect(cond, f, out),
            _leaf => {}
        }
    }
}

fn base_name(e: &HExpr, f: &HFn) -> Option<String> {
    match &e.kind {
        HKind::Local(id) => f.locals.get(id.0 as usize).map(|l| l.name.clone()),
        HKind::Field(base, _) | HKind::ViewT(base) => base_name(base, f),
        _other => None,
    }
}

/// `x.shape` when a tuple is all extents of one view.
fn whole_shape(e: &HExpr, f: &HFn) -> Option<String> {
    let HKind::Tuple(items) = &e.kind else { return None };
    let mut name: Option<String> = None;
    for (i, item) in items.iter().enumerate() {
        let HKind::Extent(base, axis) = &item.kind else { return None };
        let this = base_name(base, f)?;
        if *axis as usize != i || name.as_ref().is_some_and(|n| *n != this) {
            return None;
        }
        name = Some(this);
    }
    name.map(|n| format!("{n}.shape"))
}
