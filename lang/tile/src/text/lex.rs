//! The tokens of IR text.
//!
//! Accepts any input. Guarantees that every byte is read a bounded number of times, and that each token knows its
//! line and column, counted from 1 in characters.

/// A token with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IrToken<'a> {
    /// The kind of token.
    pub kind: IrTokenKind<'a>,
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
}

/// The kinds of token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IrTokenKind<'a> {
    /// A name, a keyword, a word like `inf`.
    Word(&'a str),
    /// `12`, `-3`, `1.5e-7`, `-inf`
    Number(&'a str),
    /// `"..."`, escapes resolved.
    Str(String),
    /// One of `@ ( ) { } [ ] , : = *`.
    Mark(char),
    /// `->`
    Arrow,
    /// Text that is no token, with the reason.
    Bad(&'static str),
    /// After the last token.
    End,
}

/// Reads one token after another.
#[derive(Debug)]
pub struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Lexer { rest: text, line: 1, column: 1 }
    }

    /// The next token; [`IrTokenKind::End`] at the end, again and again.
    pub fn token(&mut self) -> IrToken<'a> {
        self.skip_blank();
        let (line, column) = (self.line, self.column);
        let kind = self.kind();
        IrToken { kind, line, column }
    }

    fn kind(&mut self) -> IrTokenKind<'a> {
        let mut chars = self.rest.chars();
        let Some(first) = chars.next() else { return IrTokenKind::End };
        match (first, chars.next()) {
            ('-', Some('>')) => {
                self.take(2);
                IrTokenKind::Arrow
            }
            ('@' | '(' | ')' | '{' | '}' | '[' | ']' | ',' | ':' | '=' | '*', _) => {
                self.take(1);
                IrTokenKind::Mark(first)
            }
            ('"', _) => self.string(),
            ('-' | '0'..='9', _) => IrTokenKind::Number(self.number()),
            ('a'..='z' | 'A'..='Z' | '_', _) => {
                let len = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                IrTokenKind::Word(self.take(len.unwrap_or(self.rest.len())))
            }
            _ => {
                self.take(first.len_utf8());
                IrTokenKind::Bad("unexpected character")
            }
        }
    }

    /// Takes bytes off the front; `len` is a character boundary.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        taken
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// A number ends where no letter, digit or point follows; a sign belongs to it after an exponent's `e`.
    fn number(&mut self) -> &'a str {
        let mut before = ' ';
        let end = self.rest.char_indices().find(|(i, c)| {
            let sign = matches!(c, '-' | '+') && (*i == 0 || matches!(before, 'e' | 'E'));
            before = *c;
            !(sign || c.is_ascii_alphanumeric() || *c == '.')
        });
        let len = end.map_or(self.rest.len(), |(i, _)| i);
        self.take(len)
    }

    fn string(&mut self) -> IrTokenKind<'a> {
        self.take(1);
        let mut out = String::new();
        loop {
            let plain = self.rest.find(['"', '\\', '\n']).unwrap_or(self.rest.len());
            out.push_str(self.take(plain));
            if self.rest.starts_with('"') {
                self.take(1);
                return IrTokenKind::Str(out);
            }
            if !self.rest.starts_with('\\') {
                return IrTokenKind::Bad("unterminated string");
            }
            match self.escape() {
                Some(c) => out.push(c),
                None => return IrTokenKind::Bad("unknown escape sequence in this string"),
            }
        }
    }

    /// `\n`, `\t`, `\r`, `\"`, `\\`, `\u{1f600}`
    fn escape(&mut self) -> Option<char> {
        let c = self.rest.chars().nth(1)?;
        self.take(1 + c.len_utf8());
        match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            '"' | '\\' => Some(c),
            'u' => {
                let hex = self.rest.strip_prefix('{')?;
                // Six digits are the most that a character has.
                let len = hex.bytes().take(7).position(|b| b == b'}')?;
                let code = u32::from_str_radix(hex.get(..len)?, 16).ok()?;
                self.take(len + 2);
                char::from_u32(code)
            }
            _ => None,
        }
    }
}

/// Text between quotes, as [`Lexer`] reads it back.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns true if a function name needs no quotes.
pub fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
