//! Messages of syntax errors: from the position where the parser stopped to one sentence for the user.
//!
//! What the grammar expects is only used to tell contexts apart; it is never listed.

use crate::codes::{MISSING_SEMICOLON, SYNTAX};
use crate::diag::{Diagnostic, Replacement};
use crate::habits::habit;
use crate::node::Cx;
use crate::span::Span;
use crate::token::{Tok, Token};
use crate::unit::{Fail, open_brackets};

/// The message for a unit that was read up to `fail`.
pub fn explain<'s>(cx: &Cx<'s>, start: Tok<'s>, tokens: &[Token<'s>], fail: &Fail) -> Diagnostic {
    let open = open_brackets(tokens, fail.at);
    let s = StopPoint { cx, start, tokens, fail, open };
    habit(&s).unwrap_or_else(|| s.describe())
}

/// The place where the parser stopped.
pub struct StopPoint<'a, 's> {
    /// For spans and text.
    pub cx: &'a Cx<'s>,
    start: Tok<'s>,
    tokens: &'a [Token<'s>],
    fail: &'a Fail,
    open: Vec<usize>,
}

impl<'s> StopPoint<'_, 's> {
    /// The token `offset` places after the one that did not fit.
    pub fn peek(&self, offset: isize) -> Option<Tok<'s>> {
        self.token(offset).map(|t| t.tok)
    }

    /// The same with its place.
    pub fn token(&self, offset: isize) -> Option<Token<'s>> {
        self.fail.at.checked_add_signed(offset).and_then(|i| self.tokens.get(i)).copied()
    }

    /// The first token of the unit.
    pub fn head(&self) -> Option<Tok<'s>> {
        self.tokens.first().map(|t| t.tok)
    }

    /// Returns true if the unit is a field of a struct.
    pub fn is_field(&self) -> bool {
        self.start == Tok::StartField
    }

    /// Returns true if the unit is a statement.
    pub fn is_statement(&self) -> bool {
        self.start == Tok::StartStmt
    }

    /// Returns true if the unit is an item.
    pub fn is_item(&self) -> bool {
        self.start == Tok::StartItem
    }

    /// Returns true if an `else` without a block follows in the unit, outside further brackets.
    pub fn has_else(&self) -> bool {
        let rest = self.tokens.get(self.fail.at..).unwrap_or(&[]);
        let mut depth = 0i32;
        rest.windows(2).any(|w| match w {
            [a, b] => {
                depth += nesting(a.tok);
                depth == 0 && a.tok == Tok::Else && !matches!(b.tok, Tok::Block(_))
            }
            _short => false,
        })
    }

    /// The place of the operand that ends with the token `offset` places from here: a name, a number or something in
    /// brackets, with its members, calls and indices. There is none if an operator before it binds to it.
    pub fn operand_before(&self, offset: isize) -> Option<Span> {
        let last = self.token(offset)?;
        let mut first = offset;
        loop {
            match self.peek(first)? {
                Tok::RParen | Tok::RBracket => {
                    first = self.opening(first)?;
                    if matches!(self.peek(first - 1), Some(Tok::Id(_) | Tok::RParen | Tok::RBracket)) {
                        first -= 1;
                        continue;
                    }
                }
                Tok::Id(_) | Tok::Int(_) | Tok::Float(_) => {}
                _other => return None,
            }
            match self.peek(first - 1) {
                Some(Tok::Dot | Tok::PathSep) => first -= 2,
                Some(Tok::Minus | Tok::Bang | Tok::As | Tok::Id(_) | Tok::RBracket | Tok::RParen) => {
                    return None;
                }
                Some(_) | None => return Some(self.place(self.token(first)?).to(self.place(last))),
            }
        }
    }

    /// The same for the operand that begins with the token `offset` places from here.
    pub fn operand_from(&self, offset: isize) -> Option<Span> {
        let mut last = match self.peek(offset)? {
            Tok::LParen => self.closing(offset)?,
            Tok::Id(_) | Tok::Int(_) | Tok::Float(_) => offset,
            _other => return None,
        };
        loop {
            last = match (self.peek(last + 1), self.peek(last + 2)) {
                (Some(Tok::LParen | Tok::LBracket), _) => self.closing(last + 1)?,
                (Some(Tok::Dot | Tok::PathSep), Some(Tok::Id(_))) => last + 2,
                (Some(Tok::Dot | Tok::PathSep), _) | (Some(Tok::Star), Some(Tok::Star)) => return None,
                (_, _) => return Some(self.place(self.token(offset)?).to(self.place(self.token(last)?))),
            };
        }
    }

    /// The offset of the bracket that the one at this offset closes.
    fn opening(&self, offset: isize) -> Option<isize> {
        let mut depth = 0i32;
        (0..).map(|i| offset - i).map_while(|i| Some((i, self.peek(i)?))).find_map(|(i, tok)| {
            depth += nesting(tok);
            (depth == 0).then_some(i)
        })
    }

    /// The offset of the bracket that closes the one at this offset.
    pub fn closing(&self, offset: isize) -> Option<isize> {
        let mut depth = 0i32;
        (offset..).map_while(|i| Some((i, self.peek(i)?))).find_map(|(i, tok)| {
            depth += nesting(tok);
            (depth == 0).then_some(i)
        })
    }

    /// Returns true if the token `offset` places from here ends an operand of a statement; types have their own
    /// stars.
    pub fn in_body(&self, offset: isize) -> bool {
        let operand = matches!(self.peek(offset), Some(Tok::Id(_) | Tok::Int(_) | Tok::Float(_)))
            || matches!(self.peek(offset), Some(Tok::RParen | Tok::RBracket));
        operand && self.is_statement()
    }

    /// Returns true if this terminal would have fitted.
    pub fn wants(&self, terminal: &str) -> bool {
        self.fail.wants(terminal)
    }

    /// The bracket around the place.
    pub fn bracket(&self) -> Option<Tok<'s>> {
        self.open.last().and_then(|&i| self.tokens.get(i)).map(|t| t.tok)
    }

    /// What the innermost open bracket follows.
    pub fn callee(&self) -> Option<Tok<'s>> {
        let before = self.open.last()?.checked_sub(1)?;
        self.tokens.get(before).map(|t| t.tok)
    }

    /// Returns true if the unit is a row of `tune`.
    pub fn is_row(&self) -> bool {
        self.start == Tok::StartRow
    }

    /// The token `offset` places from here and those after it, to the end of their line.
    pub fn line_from(&self, offset: isize) -> &[Token<'s>] {
        let begin = self.fail.at.checked_add_signed(offset).unwrap_or(usize::MAX);
        let rest = self.tokens.get(begin..).unwrap_or(&[]);
        let end = rest.iter().skip(1).position(|t| t.first).map_or(rest.len(), |i| i + 1);
        rest.get(..end).unwrap_or(rest)
    }

    /// Returns true if an operand is missing.
    pub fn wants_operand(&self) -> bool {
        self.wants("int")
    }

    /// Returns true if the token before is the end of an expression, as far as tokens can tell.
    pub fn after_operand(&self) -> bool {
        let operand = match self.peek(-1) {
            Some(Tok::Id(_) | Tok::Int(_) | Tok::Float(_) | Tok::Str(_) | Tok::Hole) => true,
            Some(Tok::RParen | Tok::RBracket | Tok::True | Tok::False | Tok::None) => true,
            Some(_) | None => false,
        };
        operand && !self.wants_operand()
    }

    /// The span of a token.
    pub fn place(&self, t: Token<'s>) -> Span {
        self.cx.span(t.start, t.end)
    }

    /// The span of the token that did not fit; of the last one if the unit ended too early.
    pub fn span(&self) -> Span {
        let t = self.token(0).or(self.tokens.last().copied());
        match t {
            // Only the brace of a block is unexpected, not what is in it.
            Some(t) if matches!(t.tok, Tok::Block(_) | Tok::Rows(_) | Tok::Body(_)) => {
                let brace = self.cx.text.get(t.start..).is_some_and(|rest| rest.starts_with('{'));
                self.cx.span(t.start, t.start + usize::from(brace))
            }
            Some(t) => self.place(t),
            None => self.cx.span(0, 0),
        }
    }

    /// The comparison that begins at the token that did not fit, up to where the operand of Python's `not` ends.
    pub fn comparison(&self) -> Option<Span> {
        let (mut depth, mut last, mut compares) = (0, None, false);
        for t in (0..).map_while(|i| self.token(i)) {
            let text = self.cx.text.get(t.start..t.end).unwrap_or("");
            match t.tok {
                Tok::LParen | Tok::LBracket => depth += 1,
                Tok::RParen | Tok::RBracket if depth > 0 => depth -= 1,
                Tok::RParen | Tok::RBracket | Tok::LBrace | Tok::Block(_) => break,
                _ if depth == 0 && matches!(text, "," | ";" | ":" | "&&" | "||" | "and" | "or") => break,
                _ => compares |= depth == 0 && matches!(text, "<" | ">" | "<=" | ">=" | "==" | "!="),
            }
            last = Some(t);
        }
        last.filter(|_| compares).map(|t| self.span().to(self.place(t)))
    }

    /// The span of the token before, empty at its end: where something is to be inserted.
    pub fn gap(&self) -> Span {
        self.token(-1).map_or(self.span().before(), |t| self.place(t).after())
    }

    /// What is wrong with `let a, b = ..`, before its first comma.
    pub fn unpacked(&self) -> Option<Diagnostic> {
        let is_name = |t: Option<Tok<'_>>| matches!(t, Some(Tok::Id(_)));
        let mut end = 1;
        while is_name(self.peek(end)) && self.peek(end + 1) == Some(Tok::Comma) {
            end += 2;
        }
        if self.peek(-2) != Some(Tok::Let)
            || !is_name(self.peek(end))
            || self.peek(end + 1) != Some(Tok::Assign)
        {
            return None;
        }
        let names = self.place(self.token(-1)?).to(self.place(self.token(end)?));
        let text = |s: Span| self.cx.text.get(s.start as usize..s.end as usize);
        let text_of_names = format!("({})", text(names)?);
        let d = self.error("several variables are declared in parentheses: `let (a, b) = ..`");
        let Some(values) = self.several_until_end(end + 2) else {
            return Some(d.write_instead(names, text_of_names));
        };
        let edits = [(names, text_of_names), (values, format!("({})", text(values)?))];
        let edits = edits.map(|(span, text)| Replacement { span, text });
        Some(d.fix_all("put the names and the values in parentheses", edits.to_vec()))
    }

    /// The message for `let (a, b) = 1, 2;`.
    pub fn values_of_pattern(&self) -> Option<Diagnostic> {
        let assign = (1..).map_while(|i| Some((-i, self.peek(-i)?))).find(|(_, t)| *t == Tok::Assign)?.0;
        let values =
            self.several_until_end(assign + 1).filter(|_| self.peek(assign - 1) == Some(Tok::RParen))?;
        let text = self.cx.text.get(values.start as usize..values.end as usize)?;
        let d = self.error("a tuple needs parentheses: `(a, b)`");
        Some(d.fix("put the values in parentheses", values, format!("({text})")))
    }

    /// The values `a, b` from a token on to the end of the statement, if there are several.
    fn several_until_end(&self, from: isize) -> Option<Span> {
        let (mut depth, mut several, mut last) = (0, false, from);
        for i in from.. {
            match self.peek(i)? {
                Tok::LParen | Tok::LBracket => depth += 1,
                Tok::RParen | Tok::RBracket => depth -= 1,
                Tok::Comma if depth == 0 => several = true,
                Tok::Semi => break,
                _ => {}
            }
            last = i;
        }
        let span = self.place(self.token(from)?).to(self.place(self.token(last)?));
        several.then_some(span)
    }

    /// A token as the user wrote it, between backquotes.
    pub fn shown(&self, t: Token<'s>) -> String {
        if matches!(t.tok, Tok::Block(_) | Tok::Rows(_) | Tok::Body(_)) {
            return "`{`".to_string();
        }
        let text = self.cx.text.get(t.start..t.end).unwrap_or("");
        // Long enough for names, short enough to keep a string literal from filling the line.
        const SHOWN: usize = 24;
        match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("`{}...`", text.get(..cut).unwrap_or("")),
            None => format!("`{text}`"),
        }
    }

    /// An error at the place, with the words `message`.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        let label = match self.token(0) {
            Some(t) if t.tok != Tok::Semi => format!("found {}", self.shown(t)),
            Some(_) => String::new(),
            None => "input ends here".to_string(),
        };
        Diagnostic::error(SYNTAX, self.span(), message, label)
    }

    /// `after X` of the token before.
    fn after(&self) -> String {
        self.token(-1).map_or(String::new(), |t| format!(" after {}", self.shown(t)))
    }

    fn describe(&self) -> Diagnostic {
        if self.fail.at == 0 || self.wants("kernel") {
            return self.start_of_unit();
        }
        if let Some(d) = self.keyword_as_name() {
            return d;
        }
        if self.wants_operand() {
            return self.error(format!("expected an expression{}", self.after()));
        }
        if self.wants("id") {
            let what = if self.wants("*") {
                "a type"
            } else if self.wants("mut") || self.wants("(") && self.wants("hole") {
                "a name or a pattern"
            } else if self.bracket().is_some() && self.wants("@") {
                "a parameter"
            } else {
                "a name"
            };
            let d = self.error(format!("expected {what}{}", self.after()));
            return match (self.peek(-1), self.peek(0)) {
                (Some(Tok::Const), Some(Tok::LParen | Tok::LBracket)) => {
                    d.note("a `const` names one value; `let (a, b) = ..` takes a tuple apart")
                }
                (_, _) => d,
            };
        }
        if self.bracket().is_some() {
            return self.in_brackets();
        }
        match self.tokens.iter().find(|t| !matches!(t.tok, Tok::At | Tok::Id(_))).map(|t| t.tok) {
            Some(Tok::Fn | Tok::Kernel) if self.start == Tok::StartItem => self.in_signature(),
            _other => self.in_statement(),
        }
    }

    fn start_of_unit(&self) -> Diagnostic {
        let quoted = matches!(self.peek(1), Some(Tok::Id(_) | Tok::Block(_)));
        match (self.start, self.peek(0)) {
            (Tok::StartItem, Some(Tok::Id("test"))) if quoted => {
                let d = self.error("a test name must be quoted");
                match (self.peek(1), self.token(1)) {
                    (Some(Tok::Id(name)), Some(t)) => d.fix("quote it", self.place(t), format!("\"{name}\"")),
                    (_, _) => d,
                }
            }
            (Tok::StartItem, None) => self.error("expected an item after this attribute"),
            (Tok::StartItem, _) => self
                .error("expected an item here: `kernel`, `fn`, `struct`, `const`, `use`, `export` or `test`"),
            (Tok::StartRow, _) => self.error("a row of `tune` is written `{ NAME = value, .. }`"),
            (Tok::StartField, _) => self.error("a field is written `name: type`"),
            (_, Some(Tok::Else)) => self.error("`else` without `if`"),
            (_, Some(Tok::At)) => self.error("attributes must precede a loop or an item"),
            (_, Some(_) | None) => self.error("expected a statement"),
        }
    }

    /// A word of the language where a name is wanted.
    fn keyword_as_name(&self) -> Option<Diagnostic> {
        let token = self.token(0)?;
        let text = self.cx.text.get(token.start..token.end)?;
        let word = text.bytes().all(|b| b.is_ascii_alphabetic()) && !matches!(token.tok, Tok::Id(_));
        let named = match self.peek(1) {
            Some(Tok::Assign | Tok::Colon | Tok::Comma | Tok::RParen | Tok::RBracket | Tok::Semi) => true,
            Some(Tok::In | Tok::Dot | Tok::LBracket | Tok::PathSep) => true,
            Some(Tok::LParen) => !self.wants_operand(),
            Some(_) | None => false,
        };
        if !self.wants("id") || !word || !named {
            return None;
        }
        let d = self.error(format!("`{text}` is a keyword and cannot be a name"));
        Some(d.fix(format!("rename it to `{text}_`"), self.place(token), format!("{text}_")))
    }

    /// Something is complete, and neither a separator nor the closing bracket follows.
    fn in_brackets(&self) -> Diagnostic {
        let (close, of) = match self.bracket() {
            Some(Tok::LParen) => (")", self.open.last()),
            Some(Tok::LBracket) => ("]", self.open.last()),
            _brace => ("}", None),
        };
        let inner = of.copied().unwrap_or(0);
        let before = |i: usize| inner.checked_sub(i).and_then(|i| self.tokens.get(i)).map(|t| t.tok);
        let outermost =
            self.open.len() == 1 && matches!(before(2), Some(Tok::Fn | Tok::Kernel | Tok::Struct));
        let params = outermost || self.start == Tok::StartItem && self.wants(":") && close == ")";
        let behind_cparams = self.open.len() == 1 && close == ")" && before(1) == Some(Tok::RBracket);
        let callee = matches!(before(1), Some(Tok::Id(_) | Tok::Clause(_) | Tok::RParen | Tok::RBracket));
        let what = match (params || behind_cparams && self.start == Tok::StartItem, callee, close) {
            (true, _, _) => "parameter",
            (false, true, ")") => "argument",
            (false, true, "]") => "index",
            (false, true, _) | (false, false, _) if close == "}" => "entry",
            (false, true, _) | (false, false, _) => "element",
        };
        if what == "parameter" && self.wants(":") && self.token(0).is_some_and(|t| !t.first) {
            let d = self.error(format!("expected `:` and a type{}", self.after()));
            return match self.peek(0) {
                Some(Tok::Id(_) | Tok::Star) => d.fix("insert `:`", self.gap(), ":"),
                _other => d,
            };
        }
        if !self.wants(",") && !self.wants(close) {
            return self.unexpected();
        }
        let d = self.error(format!("expected `,` or `{close}` after this {what}"));
        let fits = matches!(self.peek(0), Some(Tok::Id(_) | Tok::Int(_) | Tok::Float(_) | Tok::Str(_)));
        if fits { d.fix("insert `,`", self.gap(), ",") } else { d }
    }

    fn in_signature(&self) -> Diagnostic {
        let kernel = self.tokens.iter().any(|t| t.tok == Tok::Kernel);
        let what = if kernel { "kernel" } else { "function" };
        if self.wants("[") && self.wants("(") && !self.wants("block") {
            return self.error(format!("expected the parameters of the {what}, `(..)`{}", self.after()));
        }
        match self.peek(0) {
            None | Some(Tok::Semi) => self.error(format!("this {what} has no body, `{{ .. }}`")),
            Some(Tok::Id(_)) if self.wants("->") && !kernel => {
                self.error("a result type follows `->`, and a clause has parentheses")
            }
            Some(Tok::Id(_)) if self.wants("clause") => {
                self.error("a clause is a name with parentheses, such as `grid(..)`")
            }
            Some(_) if self.wants("block") => {
                self.error(format!("expected a clause or the body of the {what}{}", self.after()))
            }
            Some(_) => self.unexpected(),
        }
    }

    fn in_statement(&self) -> Diagnostic {
        if self.wants("block") || self.wants("body") {
            let what = match (self.head(), self.start) {
                (_, _) if self.peek(-1) == Some(Tok::Else) => "after `else`".to_string(),
                (Some(Tok::AssertError), _) => "after the code".to_string(),
                (Some(Tok::For), _) => "after the loop header".to_string(),
                (_, Tok::StartItem) => self.after().trim_start().to_string(),
                (_, _) => "after the condition".to_string(),
            };
            return self.error(format!("expected `{{` {what}"));
        }
        if self.wants("in") {
            return self.error("expected `in` after the loop pattern");
        }
        if self.start == Tok::StartField {
            return self.error("expected `,` after this field").fix("insert `,`", self.gap(), ",");
        }
        if self.wants(":") && self.head() == Some(Tok::Let) && matches!(self.peek(0), Some(Tok::Id(_))) {
            let d = self.error(format!("expected `:` and a type{}", self.after()));
            return d.fix("insert `:`", self.gap(), ":");
        }
        if self.wants(";") {
            let what = if self.start == Tok::StartItem { "item" } else { "statement" };
            let d = self.error(format!("expected `;` after this {what}"));
            return match self.token(0) {
                Some(t) if !t.first => d,
                _other => Diagnostic { code: MISSING_SEMICOLON, ..d.fix("insert `;`", self.gap(), ";") },
            };
        }
        if self.wants("=") {
            return self.error(format!("expected `=` and a value{}", self.after()));
        }
        if self.wants("if") && self.start == Tok::StartRow {
            return self.error("expected `,` or `if` and a condition after this row");
        }
        if self.wants("str") {
            return self.error(format!("expected a quoted name{}", self.after()));
        }
        self.unexpected()
    }

    fn unexpected(&self) -> Diagnostic {
        let Some(token) = self.token(0) else {
            return self.error("unexpected end of input");
        };
        let after = self.after();
        Diagnostic::error(SYNTAX, self.span(), format!("unexpected {}{after}", self.shown(token)), "")
    }
}

/// What a token adds to the number of open brackets.
pub fn nesting(tok: Tok<'_>) -> i32 {
    match tok {
        Tok::LParen | Tok::LBracket => 1,
        Tok::RParen | Tok::RBracket => -1,
        _other => 0,
    }
}
