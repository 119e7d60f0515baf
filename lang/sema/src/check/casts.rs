//! The casts that are offered where element types differ, or an operation is not defined for one.

use tk_ops::{DType, DTypeSet};
use tk_syntax::diag::Replacement;
use tk_syntax::{Diagnostic, Span};

use super::cx::{Cx, Lit};
use crate::types::{DTerm, Elem};

impl Cx<'_> {
    /// Offers the cast of one of two operands.
    pub(super) fn cast_one(&self, d: Diagnostic, a: (DTerm, Span), b: (DTerm, Span)) -> Diagnostic {
        let (ta, tb) = (self.show_elem(&Elem::D(a.0)), self.show_elem(&Elem::D(b.0)));
        // Neither of two 8-bit floats has all numbers of the other; `f16` has those of both.
        let is_f8 = |t: DTerm| self.set_of(t).is_some_and(|set| set.within(DTypeSet::F8));
        if is_f8(a.0) && is_f8(b.0) {
            return self.cast_to(d, DTerm::Known(DType::F16), [a.1, b.1].into_iter());
        }
        if self.literal(b.0) == Some(Lit::Float) {
            let d = d.note(format!("a float literal cannot become `{ta}`"));
            self.cast_whole(d, a, DTerm::Known(DType::F32), "cast the other side to f32")
        } else if self.literal(a.0) == Some(Lit::Float) {
            let d = d.note(format!("a float literal cannot become `{tb}`"));
            self.cast_whole(d, b, DTerm::Known(DType::F32), "cast the other side to f32")
        } else if self.wider(b.0, a.0) || self.is_cast(b, &tb) && matches!(a.0, DTerm::Param(_)) {
            self.cast_whole(d, a, b.0, &format!("cast to `{tb}`"))
        } else if self.castable(a.0) {
            self.cast_whole(d, b, a.0, &format!("cast to `{ta}`"))
        } else {
            d
        }
    }

    /// Offers the cast of an operand; of a quotient of integers the cast of what is divided, since `/` truncates.
    fn cast_whole(&self, d: Diagnostic, (from, span): (DTerm, Span), to: DTerm, title: &str) -> Diagnostic {
        let shown = self.show_elem(&Elem::D(to));
        let is_int = self.set_of(from).is_some_and(|s| s.within(DTypeSet::INT));
        let is_float = matches!(to, DTerm::Known(t) if t.is_float());
        let quotient = if is_int && is_float { self.divided(span, &shown) } else { None };
        match quotient {
            Some(text) => d
                .note(format!("`/` of integers truncates; cast its operands to `{shown}` for a fraction"))
                .fix(format!("divide in `{shown}`"), span, text),
            None => match self.named_quotient(d.clone(), span).filter(|_| is_int && is_float) {
                Some(d) => d,
                None => {
                    let d = self.of_result(d, (from, span), to);
                    let factors = if is_float && !is_int { self.factors_cast(span, &shown) } else { None };
                    let d =
                        factors.into_iter().fold(d, |d, t| d.fix(format!("multiply in `{shown}`"), span, t));
                    d.fix(title, span, self.cast_text(span, &shown))
                }
            },
        }
    }

    /// The text of a product whose factors are cast, so that it is neither rounded nor too large in their type.
    fn factors_cast(&self, span: Span, to: &str) -> Option<String> {
        let whole = self.text(span);
        let (x, y) = self.operands_of(super::foreign::unwrapped(&whole), '*')?;
        Some(format!("{x} as {to} * {y} as {to}"))
    }

    /// The text of a quotient whose operands are cast; a number that it is divided by follows by itself.
    pub(super) fn divided(&self, span: Span, to: &str) -> Option<String> {
        // Python's `//` asks for an integer.
        let is_whole = self.p.sources.text(span).contains("//");
        if is_whole { None } else { self.divided_text(&self.text(span), to) }
    }

    pub(super) fn divided_text(&self, whole: &str, to: &str) -> Option<String> {
        let text = super::foreign::unwrapped(whole);
        let (x, y) = self.quotient_of(text)?;
        let is_number = y.chars().all(|c| c.is_ascii_digit() || c == '_');
        let y = if is_number { y.to_string() } else { format!("{y} as {to}") };
        let fixed = format!("{x} as {to} / {y}");
        Some(if text.len() < whole.len() { format!("({fixed})") } else { fixed })
    }

    /// The call `ceil(a / b)` of this argument, and `cdiv(a, b)` for it.
    pub(super) fn rounded_up(&self, argument: Span) -> Option<(Span, String)> {
        let text = &self.p.sources.get(argument.file)?.text;
        let start = text.get(..argument.start as usize)?.strip_suffix("ceil(")?.len() as u32;
        text.get(argument.end as usize..)?.strip_prefix(')')?;
        let argument_text = self.text(argument);
        let (x, y) = self.quotient_of(&argument_text)?;
        Some((Span { start, end: argument.end + 1, ..argument }, format!("cdiv({x}, {y})")))
    }

    /// The two operands of a text that is one quotient.
    fn quotient_of<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        self.operands_of(text, '/')
    }

    /// The two operands of a text that is one product or quotient.
    fn operands_of<'t>(&self, text: &'t str, op: char) -> Option<(&'t str, &'t str)> {
        let mut depth = 0i32;
        let mut at = None;
        for (i, c) in text.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                c if c == op && depth == 0 => at = Some(i),
                // What binds less tightly, or what follows the quotient.
                '+' | '-' | '*' | '/' | '%' | '&' | '|' | '<' | '>' | '=' | '^' | '\n' if depth == 0 => {
                    return None;
                }
                _ => {}
            }
        }
        let (x, y) = text.split_at_checked(at?)?;
        let (x, y) = (x.trim(), y.strip_prefix(op)?.trim());
        [x, y].iter().all(|t| self.is_postfix(t)).then_some((x, y))
    }

    /// Returns true if a cast from a float type may lose bits.
    pub(super) fn narrows(&self, from: DTerm, to: DTerm) -> bool {
        match (self.norm(from), self.norm(to)) {
            (DTerm::Known(from), DTerm::Known(to)) => from.is_float() && to.bits() < from.bits(),
            (DTerm::Known(from), DTerm::Param(_)) => from.is_float(),
            (_, _) => false,
        }
    }

    /// `a * b as f16`, where the cast was meant for the product: `b` had the type of `a` before it.
    pub(super) fn cast_of_all(
        &self,
        d: &Diagnostic,
        what: &str,
        first: Span,
        (to, second): (DTerm, Span),
    ) -> Option<Diagnostic> {
        let to = self.show_elem(&Elem::D(to));
        let (x, y) = (self.text(first), self.text(second));
        let inner = y.strip_suffix(&format!(" as {to}"))?;
        let op = what.strip_prefix('`')?.strip_suffix('`')?;
        let is_operator = !op.starts_with(char::is_alphabetic);
        if !is_operator || first.end > second.start || !self.is_postfix(inner) || inner.contains('\n') {
            return None;
        }
        let d = d.clone().note(format!("`as` binds tighter than {what}: it converts `{inner}` alone"));
        let d = if op == "*" {
            d.note(format!(
                "a sum that is converted at the end is rounded once: `(a + x * y) as {to}`, with `a` in the type of the product"
            ))
        } else {
            d
        };
        let fixed = format!("({x} {op} {inner}) as {to}");
        Some(d.fix(format!("convert the result: `{fixed}`"), first.to(second), fixed))
    }

    /// Says of arithmetic whose result is cast to a wider type that it is still done in the narrower one.
    pub fn of_result(&self, d: Diagnostic, (from, span): (DTerm, Span), to: DTerm) -> Diagnostic {
        let text = self.text(span);
        let is_arithmetic = !self.is_postfix(&text) && text.contains(['+', '-', '*', '/']);
        let is_wider = match (to, from) {
            (DTerm::Known(to), DTerm::Known(from)) if to.is_float() => {
                from.is_int() || to.bits() > from.bits()
            }
            (_, _) => self.wider(to, from),
        };
        if !is_arithmetic || !is_wider {
            return d;
        }
        let [from, to] = [from, to].map(|t| self.show_elem(&Elem::D(t)));
        d.note(format!(
            "the cast converts what was computed in `{from}`; to compute in `{to}`, cast the operands"
        ))
    }

    /// Returns true for an operand that the program casts to a float type: the other one is meant to follow.
    fn is_cast(&self, operand: (DTerm, Span), ty: &str) -> bool {
        let float = matches!(operand.0, DTerm::Known(d) if d.is_float());
        float && self.text(operand.1).trim_end_matches(')').ends_with(&format!(" as {ty}"))
    }

    /// Returns true for a float beside an integer, for the wider of two integers, and for a float beside a parameter that
    /// may be a narrower one: a cast in the other direction would lose the fraction or bits. Of two known floats, one is
    /// often a scale of the other, whose type is that of the result.
    fn wider(&self, a: DTerm, b: DTerm) -> bool {
        let DTerm::Known(a) = a else { return false };
        match b {
            DTerm::Known(b) if a.is_float() => b.is_int(),
            DTerm::Known(b) => a.is_int() && b.is_int() && a.bits() > b.bits(),
            DTerm::Param(id) => {
                a.is_float() && self.members(id).iter().all(|b| b.is_float() && b.bits() <= a.bits())
            }
            DTerm::Acc(_) | DTerm::Infer(_) => false,
        }
    }

    /// Returns true if a sum of the second type cannot take the first: it is the wider of two floats too, and `T.acc` of `T`.
    pub(super) fn is_wider(&self, a: (DTerm, Span), b: DTerm) -> bool {
        match (a.0, b) {
            (DTerm::Known(x), DTerm::Known(y)) if x.is_float() && y.is_float() => x.bits() > y.bits(),
            (DTerm::Acc(x), DTerm::Param(y)) => x == y,
            (DTerm::Known(x), DTerm::Param(_)) if self.is_cast(a, x.name()) => true,
            (_, _) => self.wider(a.0, b),
        }
    }

    /// Returns true if `as` goes to a term.
    pub fn castable(&self, to: DTerm) -> bool {
        self.set_of(to).is_some_and(|s| s.and(DTypeSet::BOOL) == DTypeSet::EMPTY)
    }

    /// The source text of an expression with a cast after it, in parentheses where precedence requires them.
    pub fn cast_text(&self, span: Span, to: &str) -> String {
        let text = self.text(span);
        let part = if self.is_postfix(&text) { text.clone() } else { format!("({text})") };
        if to == "bool" {
            return format!("({part} != 0)");
        }
        self.wide_literal(&text, to).unwrap_or(format!("{part} as {to}"))
    }

    /// Returns true if a text is an operand that binds tighter than every operator: a crude but safe reading.
    pub fn is_postfix(&self, text: &str) -> bool {
        let mut depth = 0i32;
        let mut plain = true;
        for (i, c) in text.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => {
                    depth -= 1;
                    // `(a) + (b)`: the first bracket closes before the end.
                    if depth == 0 && i == 0 {
                        plain = false;
                    }
                }
                c if depth == 0 && !(c.is_alphanumeric() || matches!(c, '_' | '.' | ':')) => plain = false,
                _ => {}
            }
        }
        plain && depth == 0
    }

    /// Offers the cast of all operands to the float type that one of them has; to `f32` where none has one that is in the set.
    pub(super) fn cast_operands(
        &self,
        d: Diagnostic,
        set: DTypeSet,
        operands: &[(DTerm, Span)],
    ) -> Diagnostic {
        let floats = set.and(DTypeSet::FLOAT);
        let fits = |term: DTerm| self.set_of(term).is_some_and(|have| have.within(floats));
        let mut found: Vec<DTerm> = operands.iter().map(|o| self.norm(o.0)).filter(|t| fits(*t)).collect();
        found.dedup();
        let to = match found.as_slice() {
            [one] => *one,
            _none_or_several => DTerm::Known(DType::F32),
        };
        let is_other = |o: &&(DTerm, Span)| self.literal(o.0).is_none() && self.norm(o.0) != to;
        self.cast_to(d, to, operands.iter().filter(is_other).map(|o| o.1))
    }

    /// Offers the cast of some operands in one step.
    fn cast_to(&self, d: Diagnostic, to: DTerm, operands: impl Iterator<Item = Span>) -> Diagnostic {
        let to = self.show_elem(&Elem::D(to));
        let edit = |span: Span| Replacement { span, text: self.cast_text(span, &to) };
        let edits: Vec<Replacement> = operands.map(edit).collect();
        let whole = match edits.len() {
            0 | 1 => "",
            2 => "both ",
            _more => "all ",
        };
        d.fix_all(format!("cast {whole}to `{to}`"), edits)
    }
}
