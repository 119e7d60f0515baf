//! Rows of `tune` that the arguments of a launch decide, which Triton's `prune_configs_by` leaves out, and what no launch
//! can take.

use tk_syntax::diag::Replacement;
use tk_syntax::{Diagnostic, Span, ast, codes};

use super::SigAst;
use super::cx::Cx;
use crate::contract;
use crate::eval::{Bindings, Evaluator};
use crate::hir::{FnId, HExpr, HKind};

impl Cx<'_> {
    /// Reports numbers of programs of a cluster that no launch has.
    pub(super) fn clusters(&mut self, id: FnId) {
        let f = self.hir().func(id);
        let of_rows = f.contract.tune.iter().flat_map(|t| &t.rows).flat_map(|(entries, _)| entries);
        let of_rows = of_rows.filter(|(name, _)| name == "cluster").flat_map(|(_, values)| values);
        let of_launch = f.contract.launch.iter().filter(|(name, _)| name == "cluster").map(|(_, h)| h);
        let numbers = of_launch.chain(of_rows).filter_map(|h| match &h.kind {
            HKind::Int(n) if *n > 1 => Some((*n, h.span)),
            _other => None,
        });
        let fits = |number| contract::cluster_fits(self.hir(), f, &Bindings::default(), number).err();
        let wrong: Vec<Diagnostic> = numbers.filter_map(fits).map(|d| *d).collect();
        wrong.into_iter().for_each(|d| self.report(d));
    }

    /// Reports rows of which no combination of values meets the conditions of the kernel and its own, on any target.
    pub(super) fn rows_without_members(&mut self, id: FnId, ast: &ast::Fn) {
        let (hir, f) = (self.hir(), self.hir().func(id));
        let places = ast.clauses.iter().filter(|c| c.name.text == "tune").flat_map(|c| &c.rows);
        let mut wrong = vec![];
        for ((entries, cond), place) in f.contract.tune.iter().flat_map(|t| &t.rows).zip(places) {
            let of_kernel = f.contract.require.iter().map(|r| &r.cond);
            let conditions: Vec<&HExpr> = of_kernel.chain(cond).filter(|c| is_of_values(c)).collect();
            let violated = |b: &Bindings| {
                let fails = |c: &&&HExpr| Evaluator::new(hir, b).condition(c).is_ok_and(|holds| !holds);
                conditions.iter().find(fails).map(|c| c.span)
            };
            let Ok(members) = contract::of_row(hir, f, entries, &Bindings::default()) else { continue };
            let found: Option<Vec<Span>> = members.iter().map(|(_, b)| violated(b)).collect();
            if let Some([first, ..]) = found.as_deref() {
                let message = "no combination of the values in this row meets the conditions";
                let d = Diagnostic::error(codes::CLAUSE, place.span, message, "a tuner cannot choose it");
                wrong.push(d.label(*first, "this does not hold"));
            }
        }
        wrong.into_iter().for_each(|d| self.report(d));
    }

    /// Reports the condition of a row that depends on arguments: a `require` says for which values they are.
    pub(super) fn row_by_arguments(&self, id: FnId, r: &ast::TuneRow, cond: &ast::Expr) -> Diagnostic {
        let message = "the condition of a row knows the target and compile-time values alone";
        let d = Diagnostic::error(codes::NOT_CONST, cond.span, message, "this is only known at run time");
        let is_param =
            |n: &ast::Name| self.hir().func(id).cparams.iter().any(|c| self.hir().cvar(*c).name == n.text);
        let is_one =
            |a: &ast::Arg| !matches!(a.value.kind, ast::ExprKind::Array(_) | ast::ExprKind::Tuple(_));
        let entries: Option<Vec<(&str, String)>> = r
            .entries
            .iter()
            .map(|a| {
                let name = a.name.as_ref().filter(|n| is_param(n) && is_one(a))?;
                Some((name.text.as_str(), self.text(a.value.span)))
            })
            .collect();
        let text = self.text(cond.span);
        let condition =
            match entries.as_deref() {
                Some([(name, value)]) => format!("{name} != {value} || {text}"),
                Some(several @ [_, ..]) => {
                    let each: Vec<String> = several.iter().map(|(n, v)| format!("{n} == {v}")).collect();
                    format!("!({}) || {text}", each.join(" && "))
                }
                Some([]) | None => return d.note(
                    "a `require` over arguments leaves out values, as in `require(n > 1000 || BLOCK < 512)`",
                ),
            };
        let sig = self.p.sigs.get(id.0 as usize);
        let (Some(SigAst::Fn(f)), Some(removed)) = (sig.map(|s| &s.ast), self.with_if(cond.span)) else {
            return d.note(format!("`require({condition})` leaves out values by arguments"));
        };
        let (place, with) = f.with_require(&condition);
        let edits =
            vec![Replacement { span: removed, text: String::new() }, Replacement { span: place, text: with }];
        d.fix_all(format!("leave it out with `require({condition})`"), edits)
    }

    /// The place of a condition with the `if` before it.
    fn with_if(&self, cond: Span) -> Option<Span> {
        let text = &self.p.sources.get(cond.file)?.text;
        let before = text.get(..cond.start as usize)?.trim_end().strip_suffix("if")?.trim_end();
        Some(Span { start: before.len() as u32, ..cond })
    }
}

/// Returns true if a condition follows from compile-time values in itself: no target and no function has a say.
fn is_of_values(h: &HExpr) -> bool {
    let mut plain = h.konst;
    crate::visit::each_expr(h, &mut |e| {
        plain &= !matches!(
            e.kind,
            HKind::Target(_) | HKind::Device(_) | HKind::Call { .. } | HKind::CallValue { .. }
        );
    });
    plain
}
