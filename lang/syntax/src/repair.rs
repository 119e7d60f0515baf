//! The brackets: turns any list of tokens into one in which every bracket has its partner.
//!
//! Runs between lexer and parser. Guarantees that the brackets of the result are properly nested, and that every
//! change has been reported once. Missing semicolons are found later, where statements are cut apart.
//!
//! A bracket is taken to be left open when something follows that cannot be inside it: `;`, a word that starts a
//! statement, or a `{` that belongs to nothing in it. Between braces only the other brackets can tell. If that fails,
//! further runs also believe that an item starts a line of the file, that indentation shows the intention, and that a
//! header has a body; the run that changes least is right.

use crate::codes::{SYNTAX, UNCLOSED, UNOPENED};
use crate::diag::Diagnostic;
use crate::evidence::{
    Heading, block_fits, block_is_argument, clause_word, closer, may_start, starts_item, starts_statement,
    statement_word, unmatched,
};
use crate::span::{FileId, Span};
use crate::token::{Tok, Token};

/// The assumptions of one run.
#[derive(Clone, Copy, Default)]
struct Trust {
    /// Items are not inside of braces.
    items: bool,
    /// A `}` at the start of a line has the indentation of its `{`.
    indent: bool,
    /// Headers of functions and loops have a `{`.
    headings: bool,
}

/// Tokens whose brackets are paired.
pub struct Repaired<'s> {
    /// The tokens with the brackets that were missing, and without those that were too many.
    pub tokens: Vec<Token<'s>>,
    /// What was wrong.
    pub diags: Vec<Diagnostic>,
    /// Whether every brace had its partner.
    pub paired: bool,
}

/// Pairs the brackets.
pub fn repair<'s>(file: FileId, tokens: &[Token<'s>]) -> Repaired<'s> {
    let run = |trust| {
        let mut r = Repair { file, trust, ..Repair::default() };
        r.run(tokens);
        r
    };
    let mut best = run(Trust::default());
    let paired = !best.unsure;
    if !paired {
        for (indent, headings) in [(false, false), (false, true), (true, false), (true, true)] {
            let other = run(Trust { items: true, indent, headings });
            if other.changes <= best.changes {
                best = other;
            }
        }
    }
    Repaired { tokens: best.out, diags: best.diags, paired }
}

#[derive(Default)]
struct Repair<'s> {
    file: FileId,
    trust: Trust,
    out: Vec<Token<'s>>,
    open: Vec<Open<'s>>,
    /// The position of the braces in `open`.
    braces: Vec<usize>,
    /// Closing brackets of this line that come too late: their partner was closed on evidence. With the number
    /// of braces.
    ghosts: Vec<(Tok<'s>, usize)>,
    diags: Vec<Diagnostic>,
    line: usize,
    /// The construct that the current statement or item begins, outside further brackets.
    heading: Heading,
    /// The start in `out` of the last line of a heading that could be a statement of its body.
    body: Option<usize>,
    /// The number of brackets added, left out or replaced.
    changes: usize,
    /// Whether a brace has no partner.
    unsure: bool,
}

struct Open<'s> {
    token: Token<'s>,
    /// Its line.
    line: usize,
    /// The heading after it is closed.
    after: Heading,
    /// Whether it holds parameters or the arguments of a clause.
    header: bool,
    /// Whether it holds the fields and methods of a struct.
    fields: bool,
    /// The number of `if`s directly inside that wait for their block.
    ifs: usize,
    /// Whether it is the block of an `if`.
    branch: bool,
}

fn text(tok: Tok<'_>) -> &'static str {
    match tok {
        Tok::LParen => "(",
        Tok::LBracket => "[",
        Tok::LBrace => "{",
        Tok::RParen => ")",
        Tok::RBracket => "]",
        _other => "}",
    }
}

impl<'s> Repair<'s> {
    fn run(&mut self, tokens: &[Token<'s>]) {
        for (i, &token) in tokens.iter().enumerate() {
            if token.first {
                self.ghosts.clear();
                self.line += 1;
            }
            let rest = tokens.get(i..).unwrap_or(&[]);
            match token.tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace => self.opening(token, rest),
                Tok::RParen | Tok::RBracket => self.closing(token, rest.get(1..).unwrap_or(&[])),
                Tok::RBrace => self.closing_brace(token),
                _other => {
                    self.evidence(token, rest);
                    self.out.push(token);
                }
            }
        }
        let end = tokens.last().map_or(0, |t| t.end);
        let eof = Token { tok: Tok::Bad, start: end, end, first: true, indent: 0, reported: true };
        self.close_to(0, eof);
    }

    /// The number of brackets outside the contents of the innermost brace.
    fn inner(&self) -> usize {
        self.braces.last().map_or(0, |b| b + 1)
    }

    fn last(&self) -> Option<Tok<'s>> {
        self.out.last().map(|t| t.tok)
    }

    /// Draws conclusions from a token that is no bracket about the brackets before it.
    fn evidence(&mut self, token: Token<'s>, rest: &[Token<'s>]) {
        let next = rest.get(1).map(|t| t.tok);
        let named = matches!(next, Some(Tok::Id(_)));
        // A signature or a constant whose brackets are not closed yet, before the items that are there already.
        if self.braces.is_empty() && !self.open.is_empty() && starts_item(rest) {
            self.close_to(0, token);
        }
        // The result type after parameters; in them it follows those of a function type.
        if token.tok == Tok::Arrow
            && self.last() != Some(Tok::RParen)
            && self.open.last().is_some_and(|o| o.header)
        {
            self.close_to(self.open.len() - 1, token);
        }
        if self.trust.items && token.first {
            if starts_item(rest) {
                self.close_to(0, token);
            } else if token.tok == Tok::Fn && named {
                self.method(token);
            }
        }
        let word = statement_word(token.tok) && starts_statement(token.tok, self.last());
        if word || token.tok == Tok::Semi {
            self.close_to(self.inner(), token);
            self.missing_body(token, word);
        }
        let outside = self.open.len() == self.inner();
        if outside && token.first && self.heading != Heading::None && may_start(token.tok, self.last()) {
            self.body = Some(self.out.len());
        }
        match token.tok {
            Tok::Kernel => self.begin(Heading::Function),
            Tok::Fn if named => self.begin(Heading::Function),
            Tok::Struct => self.begin(Heading::Struct),
            Tok::For | Tok::While => self.begin(Heading::Statement),
            Tok::If => self.branch(),
            Tok::Else => self.other_branch(token),
            Tok::Semi => {
                self.begin(Heading::None);
                if let Some(top) = self.open.last_mut() {
                    top.ifs = 0;
                }
            }
            Tok::Id(word) if clause_word(word, next) => self.clause(token),
            _other => {}
        }
    }

    fn branch(&mut self) {
        if matches!(self.last(), Some(Tok::Semi | Tok::LBrace | Tok::RBrace)) {
            self.begin(Heading::Statement);
        }
        if let Some(top) = self.open.last_mut() {
            top.ifs += 1;
        }
    }

    /// An `else` inside the block of an `if`, which was therefore not closed.
    fn other_branch(&mut self, token: Token<'s>) {
        let block = self.braces.last().and_then(|&b| self.open.get(b));
        if self.last() != Some(Tok::RBrace) && block.is_some_and(|o| o.branch) {
            self.close_to(self.inner().saturating_sub(1), token);
        }
    }

    fn begin(&mut self, heading: Heading) {
        (self.heading, self.body) = (heading, None);
    }

    /// A statement where the `{` before it is missing.
    fn missing_body(&mut self, token: Token<'s>, word: bool) {
        let what = match self.heading {
            Heading::Signed | Heading::Tune => "expected `{` before the body",
            Heading::Statement => "expected `{` before the body of this statement",
            Heading::None | Heading::Function | Heading::Generic | Heading::Struct => return,
        };
        let at = if word { Some(self.out.len()) } else { self.body };
        let Some(at) = at.filter(|_| self.trust.headings && token.tok != Tok::Const) else { return };
        let place = at.checked_sub(1).and_then(|i| self.out.get(i)).map_or(token.start, |t| t.end);
        let first = self.out.get(at).copied().unwrap_or(token);
        self.diags.push(Diagnostic::error(SYNTAX, self.span(first), what, "the body starts here").fix(
            "insert `{`",
            Span::new(self.file, place, place),
            " {",
        ));
        self.changes += 1;
        let indent = at.checked_sub(1).and_then(|i| self.out.get(i)).map_or(0, |t| t.indent);
        let tok = Tok::LBrace;
        let brace = Token { tok, start: place, end: place, first: false, indent, reported: true };
        self.out.insert(at, brace);
        self.push_open(brace, Heading::None);
    }

    /// `grid(` in place of a parameter or an argument of a clause: that list was not closed.
    fn clause(&mut self, token: Token<'s>) {
        let in_value = matches!(
            self.last(),
            Some(Tok::Assign | Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent)
        );
        let floor = self.inner();
        let list = self.open.get(floor..).and_then(|o| o.iter().position(|o| o.header));
        if let Some(list) = list.filter(|_| token.first && !in_value) {
            self.close_to(floor + list, token);
        }
    }

    /// A method inside something in a struct: the method before was not closed.
    fn method(&mut self, token: Token<'s>) {
        if let Some(body) = self.open.iter().rposition(|o| o.fields && o.token.indent < token.indent) {
            self.close_to(body + 1, token);
        }
    }

    fn opening(&mut self, token: Token<'s>, rest: &[Token<'s>]) {
        if token.tok == Tok::LBrace {
            self.opening_brace(token, rest);
            return;
        }
        let outside = self.open.len() == self.inner();
        let tune = self.last() == Some(Tok::Id("tune"));
        let header = match (outside, self.heading, token.tok) {
            (true, Heading::Function, Tok::LBracket) => Some(Heading::Generic),
            (true, Heading::Function | Heading::Generic, _) => Some(Heading::Signed),
            (true, Heading::Signed | Heading::Tune, _) if tune => Some(Heading::Tune),
            (true, Heading::Signed | Heading::Tune, _) => Some(Heading::Signed),
            (_, _, _) => None,
        };
        let after = header.unwrap_or(self.heading);
        self.out.push(token);
        let open = Open {
            token,
            line: self.line,
            after,
            header: header.is_some(),
            fields: false,
            ifs: 0,
            branch: false,
        };
        self.open.push(open);
    }

    fn opening_brace(&mut self, token: Token<'s>, rest: &[Token<'s>]) {
        if let Some(top) = self.open.last().filter(|top| top.token.tok != Tok::LBrace)
            && top.ifs == 0
            && !block_fits(self.last(), top.header)
            && !(matches!(self.last(), Some(Tok::LParen | Tok::Comma)) && block_is_argument(rest))
        {
            self.close_to(self.inner(), token);
        }
        let branch = self.open.last().is_some_and(|top| top.ifs > 0);
        if let Some(top) = self.open.last_mut() {
            top.ifs = top.ifs.saturating_sub(1);
        }
        let outside = self.open.len() == self.inner();
        let after = match self.heading {
            // Rows, or a group of imports; a block among the arguments changes nothing either.
            Heading::Tune => Heading::Signed,
            heading if !outside => heading,
            _heading => Heading::None,
        };
        self.out.push(token);
        self.push_open(token, after);
        if let Some(top) = self.open.last_mut() {
            top.branch = branch;
        }
    }

    fn push_open(&mut self, brace: Token<'s>, after: Heading) {
        self.braces.push(self.open.len());
        let fields = self.heading == Heading::Struct;
        let (line, header) = (self.line, false);
        self.open.push(Open { token: brace, line, after, header, fields, ifs: 0, branch: false });
        self.begin(Heading::None);
    }

    /// Forgets the innermost bracket, which has been closed.
    fn pop(&mut self) {
        if let Some(open) = self.open.pop() {
            self.heading = open.after;
        }
        if self.braces.last().is_some_and(|b| *b >= self.open.len()) {
            self.braces.pop();
        }
    }

    fn closing(&mut self, token: Token<'s>, rest: &[Token<'s>]) {
        if self.open.last().is_some_and(|o| closer(o.token.tok) == token.tok) {
            self.pop();
            self.out.push(token);
            return;
        }
        // Whatever is open further out than this is not considered.
        const REACH: usize = 100;
        let floor = self.inner().max(self.open.len().saturating_sub(REACH));
        let inside: Vec<Tok<'s>> =
            self.open.get(floor..).unwrap_or(&[]).iter().map(|o| o.token.tok).collect();
        let partner = inside.iter().rposition(|o| closer(*o) == token.tok);
        let ghost = (token.tok, self.braces.len());
        let recent = self.ghosts.len().saturating_sub(REACH);
        let late = self.ghosts.get(recent..).and_then(|g| g.iter().rposition(|g| *g == ghost));
        if let Some(at) = late {
            self.ghosts.remove(recent + at);
            self.drop_token(token);
            return;
        }
        // `f(if c { a)`: the bracket around the block.
        let outer = floor.checked_sub(2).and_then(|o| self.open.get(o)).map(|o| closer(o.token.tok));
        let same_line = self.open.last().is_some_and(|o| o.line == self.line);
        if inside.is_empty() && outer == Some(token.tok) && same_line {
            self.close_to(floor - 1, token);
            self.pop();
            self.out.push(token);
            return;
        }
        // Brackets inside were left open, or this one was mistyped, or it is too much: whatever makes the rest fit.
        let left = |n: usize| unmatched(inside.get(..n).unwrap_or(&[]), rest);
        let close = partner.map(|p| inside.len() - p - 1 + left(p));
        let slip = inside.len().checked_sub(1).map(|n| 1 + left(n));
        let stray = 1 + left(inside.len());
        let least = stray.min(close.unwrap_or(stray)).min(slip.unwrap_or(stray));
        match partner {
            Some(partner) if close == Some(least) => {
                self.close_to(floor + partner + 1, token);
                self.pop();
                self.out.push(token);
            }
            Some(_) | None if slip == Some(least) => self.slip(token),
            Some(_) | None => self.unopened(token),
        }
    }

    /// The other kind of bracket than is open: taken as a slip of the finger.
    fn slip(&mut self, token: Token<'s>) {
        let Some(was) = self.open.last().map(|o| o.token) else { return };
        let (want, place) = (closer(was.tok), self.span(token));
        let message = format!("`{}` is closed by `{}`", text(was.tok), text(token.tok));
        self.diags.push(
            Diagnostic::error(UNCLOSED, place, message, format!("found `{}`", text(token.tok)))
                .label(self.span(was), format!("expected `{}` to close this", text(want)))
                .fix(format!("write `{}`", text(want)), place, text(want)),
        );
        self.pop();
        self.changes += 1;
        self.out.push(Token { tok: want, reported: true, ..token });
    }

    fn closing_brace(&mut self, token: Token<'s>) {
        if self.trust.indent && token.first {
            let indent_of = |s: &Self, nth: usize| {
                let at = s.braces.len().checked_sub(nth).and_then(|i| s.braces.get(i));
                at.and_then(|&b| s.open.get(b)).map(|o| o.token.indent)
            };
            while indent_of(self, 1).is_some_and(|i| i > token.indent)
                && indent_of(self, 2).is_some_and(|i| i >= token.indent)
            {
                self.close_to(self.inner().saturating_sub(1), token);
            }
            if indent_of(self, 1).is_some_and(|i| i < token.indent) {
                self.unopened(token);
                return;
            }
        }
        let Some(inner) = self.braces.last().and_then(|&b| self.open.get(b)) else {
            self.unopened(token);
            return;
        };
        // `if c x }` on one line: what `}` closes in the middle of a line was opened on it.
        if self.trust.indent && !token.first && inner.line != self.line {
            self.unopened(token);
            return;
        }
        self.close_to(self.inner(), token);
        self.pop();
        self.out.push(token);
    }

    fn unopened(&mut self, token: Token<'s>) {
        let span = self.span(token);
        let t = text(token.tok);
        self.unsure |= token.tok == Tok::RBrace;
        self.diags.push(Diagnostic::error(UNOPENED, span, format!("unmatched `{t}`"), "").fix(
            format!("remove the `{t}`"),
            span,
            "",
        ));
        self.drop_token(token);
    }

    fn drop_token(&mut self, token: Token<'s>) {
        self.changes += 1;
        self.out.push(Token { tok: Tok::Bad, reported: true, ..token });
    }

    fn span(&self, token: Token<'s>) -> Span {
        Span::new(self.file, token.start, token.end)
    }

    /// Closes every bracket but the first `keep`, because of `why`. All of them give one message.
    fn close_to(&mut self, keep: usize, why: Token<'s>) {
        if self.open.len() <= keep {
            return;
        }
        let at = self.out.last().map_or(why.start, |t| t.end);
        let (mut missing, mut insert) = (String::new(), String::new());
        let mut closed = vec![];
        while self.open.len() > keep {
            let Some(open) = self.open.last().map(|o| (o.token, o.line)) else { break };
            self.pop();
            let tok = closer(open.0.tok);
            missing.push_str(text(tok));
            if tok == Tok::RBrace && open.1 != self.line {
                insert.push('\n');
                insert.push_str(&" ".repeat(open.0.indent));
            }
            insert.push_str(text(tok));
            self.unsure |= tok == Tok::RBrace;
            self.changes += 1;
            if tok != Tok::RBrace && why.tok != Tok::RBrace {
                self.ghosts.push((tok, self.braces.len()));
            }
            self.out.push(Token {
                tok,
                start: at,
                end: at,
                first: false,
                indent: why.indent,
                reported: true,
            });
            // More than a few places would only repeat the same message.
            if closed.len() < 3 {
                closed.push(open.0);
            }
        }
        let mut closed = closed.into_iter();
        let Some(inner) = closed.next() else { return };
        let place = Span::new(self.file, at, at);
        let message = format!("unclosed `{}`", text(inner.tok));
        let mut d = Diagnostic::error(UNCLOSED, self.span(inner), message, "opened here");
        let want = text(closer(inner.tok));
        d = match why.tok {
            Tok::Bad => d.label(place, format!("expected `{want}` before the end of the file")),
            _other => d.label(self.span(why), format!("expected `{want}` before this")),
        };
        for open in closed {
            d = d.label(self.span(open), "also unclosed");
        }
        let before = self.out.iter().rev().find(|t| t.end <= inner.start);
        if inner.tok == Tok::LParen && before.is_some_and(|t| t.tok == Tok::For) && why.tok == Tok::Semi {
            self.diags.push(d.note("a loop is written `for i in range(0, n) { .. }`"));
            return;
        }
        if inner.tok == Tok::LBracket && why.tok == Tok::For && !why.first {
            self.diags.push(d.note("there are no comprehensions of lists; `2 * arange(0, N)` makes a tile"));
            return;
        }
        if statement_word(why.tok) && !missing.ends_with('}') {
            missing.push(';');
            insert.push(';');
        }
        // A long row of brackets is no title.
        let title = if missing.len() < 8 { format!("insert `{missing}`") } else { "close them".to_string() };
        self.diags.push(d.fix(title, place, insert));
    }
}
