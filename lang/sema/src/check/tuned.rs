//! Rows of `tune` that the arguments of a launch decide, which Triton's `prune_configs_by` leaves out.

use tk_syntax::diag::Replacement;
use tk_syntax::{Diagnostic, Span, ast, codes};

use super::SigAst;
use super::cx::Cx;
use crate::hir::FnId;

impl Cx<'_> {
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
