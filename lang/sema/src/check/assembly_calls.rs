//! `tl.inline_asm_elementwise`, whose arguments are in another order here.

use tk_ops::table::Row;
use tk_ops::{ControlOp, Op};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::types::Ty;

/// The parameters of Triton in their order.
const PARAMETERS: [&str; 6] = ["asm", "constraints", "args", "dtype", "is_pure", "pack"];

impl Cx<'_> {
    /// The call of `inline_asm` that is meant by these arguments of Triton's function.
    pub(super) fn assembly_call(&self, args: &[ast::Arg]) -> Option<String> {
        let by_name = |name: &str| args.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == name));
        let unnamed: Vec<&ast::Expr> =
            args.iter().take_while(|a| a.name.is_none()).map(|a| &a.value).collect();
        // Values one by one instead of a list come before a `dtype` with its name.
        let is_list = |e: &ast::Expr| matches!(e.kind, ExprKind::Array(_) | ExprKind::Tuple(_));
        let spread = by_name("dtype").is_some() && unnamed.get(2).is_some_and(|e| !is_list(e));
        let of = |name: &str| {
            let at = PARAMETERS.iter().position(|p| *p == name)?;
            let here = unnamed.get(at).copied().filter(|_| at <= 2 || !spread);
            here.or(by_name(name).map(|a| &a.value))
        };
        let text = of("asm").or(by_name("text").map(|a| &a.value))?;
        let dtype = of("dtype")?;
        let types = match &dtype.kind {
            ExprKind::Array(parts) | ExprKind::Tuple(parts) => {
                let types: Option<Vec<String>> = parts.iter().map(|p| self.dtype_text(p, &Ty::Err)).collect();
                format!("({})", types?.join(", "))
            }
            _one => self.dtype_text(dtype, &Ty::Err)?,
        };
        let values: Vec<&ast::Expr> = match of("args") {
            Some(ast::Expr { kind: ExprKind::Array(items) | ExprKind::Tuple(items), .. }) => {
                items.iter().collect()
            }
            Some(_) if spread => unnamed.get(2..)?.to_vec(),
            Some(one) => vec![one],
            None => vec![],
        };
        let mut all = vec![self.text(text.span), self.text(of("constraints")?.span), types];
        all.extend(values.iter().map(|e| self.text(e.span)));
        let pack = of("pack").map(|e| self.text(e.span)).filter(|n| n != "1");
        all.extend(pack.map(|n| format!("pack = {n}")));
        Some(format!("inline_asm({})", all.join(", ")))
    }

    /// The fix for `tl.inline_asm_elementwise(..)`, which leaves out some of its arguments.
    pub(super) fn assembly_instead(
        &self,
        module: &ast::Name,
        base: Span,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        let text = self.assembly_call(args)?;
        let message = format!("cannot find `{}`", module.text);
        let d = Diagnostic::error(codes::UNKNOWN_NAME, base, message, "unknown name");
        Some(d.fix("use `inline_asm`", span, text))
    }

    /// Reports a call of `inline_asm` whose values come before its element type.
    pub(super) fn assembly_in_order(&mut self, row: &Row, args: &[ast::Arg], span: Span) -> bool {
        let is_type = |a: &ast::Arg| a.name.as_ref().is_some_and(|n| n.text == "dtype");
        let values_first = args.get(2).is_some_and(|a| a.name.is_none() && !self.is_dtype(&a.value));
        if row.op != Op::Control(ControlOp::InlineAsm) || !args.iter().any(is_type) || !values_first {
            return false;
        }
        let Some(text) = self.assembly_call(args) else { return false };
        let message = "the element type of `inline_asm` comes before the values";
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, message, "");
        self.report(d.fix("give them in this order", span, text));
        true
    }
}
