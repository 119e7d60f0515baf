//! Advice for operations on integers that other types have: powers, literals that are too large, and the bits that `!` does not flip.

use tk_ops::{DType, DTypeSet};
use tk_syntax::{Diagnostic, Span};

use super::cx::Cx;
use crate::types::{DTerm, Elem};

impl Cx<'_> {
    /// Says how an operation that integers lack is written of them: `pow(i, 2)` as `i * i`, `!i` beside `&` as `i ^ -1`,
    /// `^` of conditions as `!=`, and the sums of conditions.
    pub(super) fn of_integers(&self, d: Diagnostic, what: &str, of: DTerm, span: Span) -> Option<Diagnostic> {
        let have = self.set_of(of)?;
        if what == "`^`" && have.within(DTypeSet::BOOL) {
            return Some(d.note("of conditions it is `a != b`"));
        }
        if matches!(what, "`cumsum`" | "`cumprod`") && have.within(DTypeSet::BOOL) {
            let text = self.operand(span);
            return Some(d.fix("count them", span, format!("{text} as i32")));
        }
        if !have.within(DTypeSet::INT) {
            return None;
        }
        let source = &self.p.sources.get(span.file)?.text;
        let (before, after) = (source.get(..span.start as usize)?, source.get(span.end as usize..)?);
        match what {
            "`!`" => self.flipped(d, of, (before, after), span),
            "`pow`" => self.power(d, (before, after), span),
            _ => None,
        }
    }

    /// `i as u64 * 0x9E3779B97F4A7C15` for `i * 0x9E3779B97F4A7C15`, whose literal is too large for the type of `i`.
    pub(super) fn wide_literal(&self, text: &str, to: &str) -> Option<String> {
        let (a, b) = text.split_once(" * ")?;
        let digits = b.replace('_', "");
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u128::from_str_radix(hex, 16).ok()?,
            None => digits.parse().ok()?,
        };
        let is_wide =
            value > i32::MAX as u128 && DType::parse(to).is_some_and(|d| d.is_int() && d.bits() == 64);
        (is_wide && self.is_postfix(a)).then(|| format!("{a} as {to} * {b}"))
    }

    /// `i ^ -1` for `!i` beside an operation on bits.
    fn flipped(
        &self,
        d: Diagnostic,
        of: DTerm,
        (before, after): (&str, &str),
        span: Span,
    ) -> Option<Diagnostic> {
        let before = before.strip_suffix('!')?.trim_end();
        let is_bits = |c: char| matches!(c, '&' | '|' | '^');
        let single = |c: Option<char>, next: Option<char>| c.is_some_and(is_bits) && c != next;
        let (mut left, mut right) = (before.chars().rev(), after.trim_start().chars());
        if !single(left.next(), left.next()) && !single(right.next(), right.next()) {
            return None;
        }
        let ones = match of {
            DTerm::Known(d) if !d.is_signed() => format!("{}.max", self.show_elem(&Elem::D(of))),
            _ => "-1".to_string(),
        };
        let text = format!("({} ^ {ones})", self.operand(span));
        let whole = Span { start: span.start - 1, ..span };
        Some(d.fix("flip the bits", whole, text))
    }

    /// `i * i` for `pow(i, 2)`, and `1 << i` for `pow(2, i)`.
    fn power(&self, d: Diagnostic, (before, after): (&str, &str), span: Span) -> Option<Diagnostic> {
        let text = self.operand(span);
        // A float would be another type.
        let plain = Diagnostic { fixes: vec![], ..d.clone() };
        let whole = |more: usize, from: usize| Span {
            start: span.start - from as u32,
            end: span.end + more as u32,
            ..span
        };
        if before.ends_with("pow(") && after.starts_with(", 2)") {
            return Some(plain.fix("multiply", whole(4, 4), format!("({text} * {text})")));
        }
        if before.ends_with("pow(2, ") && after.starts_with(')') {
            return Some(plain.fix("shift", whole(1, 7), format!("(1 << {text})")));
        }
        let d = d.note("of integers, `i * i` is a square, and `1 << i` a power of 2");
        Some(d)
    }
}
