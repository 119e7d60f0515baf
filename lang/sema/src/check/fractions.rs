//! Quotients of integers in a value that meets a float: a cast of the value does not bring their fractions back.

use tk_ops::DTypeSet;
use tk_syntax::{Diagnostic, Span};

use super::advice::SHOWN;
use super::cx::{Cx, Lit};
use crate::hir::{HArg, HExpr, HKind, LocalId};
use crate::types::{DTerm, Ty};

impl Cx<'_> {
    /// Remembers of a variable that its value is computed from a quotient of integers.
    pub(super) fn remember_quotient(&mut self, variable: LocalId, value: &HExpr) {
        if let Some(at) = self.lost_quotient(value) {
            self.fractions.insert(variable, at);
        }
    }

    /// The quotient of integers from which an integer is computed, by arithmetic and by variables.
    fn lost_quotient(&self, h: &HExpr) -> Option<Span> {
        if !self.is_integer(self.dterm_of(&h.ty)?) {
            return None;
        }
        match &h.kind {
            HKind::Builtin(row, _) if row.name == "/" => Some(h.span),
            HKind::Builtin(row, args) if matches!(row.name, "+" | "-" | "*" | "unary -") => {
                args.iter().find_map(|a| match a {
                    HArg::Expr(e) => self.lost_quotient(e),
                    HArg::List(_) | HArg::Default | HArg::Shape(_) | HArg::Word(_) => None,
                })
            }
            HKind::Index(of, _) | HKind::Cast(of) => self.lost_quotient(of),
            HKind::Local(id) => self.fractions.get(id).copied(),
            _other => None,
        }
    }

    /// Returns true for a type of integers that is known.
    pub(super) fn is_integer(&self, d: DTerm) -> bool {
        self.set_of(d).is_some_and(|s| s.within(DTypeSet::INT))
    }

    pub(super) fn is_float(&self, d: DTerm) -> bool {
        self.literal(d) == Some(Lit::Float) || matches!(self.norm(d), DTerm::Known(k) if k.is_float())
    }

    /// Of Python's `a // b` of floats, the reader of the text offers `/`, which does not round: offers `floor`. `a` is the left
    /// operand, and of `a //= b` the variable.
    pub(super) fn floored(&mut self, whole: Span, (a, types): (Span, [&Ty; 2]), mark: &str) {
        let is_float = types.iter().any(|t| self.dterm_of(t).is_some_and(|d| self.is_float(d)));
        let behind = self.p.sources.text(Span { start: a.end, ..whole });
        let Some(at) = behind.find(mark).filter(|_| is_float) else { return };
        let at = a.end + at as u32;
        let left = self.p.sources.text(Span { end: at, ..whole }).trim_end();
        let right = self.p.sources.text(Span { start: at + mark.len() as u32, ..whole }).trim_start();
        let floor = format!("floor({left} / {right})");
        let text = if mark == "//" { floor } else { format!("{left} = {floor}") };
        let of_reader = |d: &&mut Diagnostic| d.primary.span.file == whole.file && d.primary.span.start == at;
        if let Some(d) = self.p.syntax.iter_mut().find(of_reader) {
            d.notes.clear();
            d.fixes.clear();
            *d = match text.matches("//").count() {
                0 => d.clone().fix(format!("write `{text}`"), whole, text),
                _several => d.clone().note("of floats it is `floor(a / b)`"),
            };
        }
    }

    /// The report of a quotient in one of two operands, where the other one is a float.
    pub(super) fn lost_in_operand(
        &self,
        d: &Diagnostic,
        operands: &[&mut HExpr],
        [a, b]: [(DTerm, Span); 2],
    ) -> Option<Diagnostic> {
        let (integer, float) = if self.is_integer(a.0) { (a, b) } else { (b, a) };
        if !self.is_integer(integer.0) || !self.is_float(float.0) {
            return None;
        }
        let h = operands.iter().find(|h| h.span == integer.1)?;
        // Of a quotient alone, and of a variable that is one, there are shorter words.
        let alone = self.divided(h.span, "f32").is_some() || self.named_quotient(d.clone(), h.span).is_some();
        if alone { None } else { self.lost_fraction(d.clone(), h) }
    }

    /// Says of a value that is computed from a quotient of integers how it would keep the fraction.
    pub(super) fn lost_fraction(&self, d: Diagnostic, h: &HExpr) -> Option<Diagnostic> {
        let at = self.lost_quotient(h)?;
        let whole = self.p.sources.text(at);
        // Python's `//` asks for an integer.
        if whole.contains("//") || !matches!(h.ty, Ty::Tile { .. }) {
            return None;
        }
        let short = |text: &String| text.len() <= 4 * SHOWN && !text.contains('\n');
        let d = d.label(at, "a quotient of integers, without its fraction");
        Some(d.note(match self.divided_text(&self.text(at), "f32").filter(short) {
            Some(text) => format!("a cast comes too late for the fraction, which `{text}` keeps"),
            None => "a cast comes too late for the fraction; cast the operands of `/`".to_string(),
        }))
    }
}
