//! The tokens of the language and the lexer.
//!
//! Assumes nothing: any text gives tokens. Guarantees that tokens are in order and do not overlap, that comments are
//! kept beside them, and that every piece of text that is no token has been reported and is in the list as
//! [`Tok::Bad`] (nothing usable) or [`Tok::Hole`] (a broken literal).
//!
//! The words of clauses, `test`, `export` and `assert_error` are ordinary names here; [`crate::parse`] turns them
//! into [`Tok::Clause`] and friends where they have their meaning.

use crate::ast::Comment;
use crate::codes::{BAD_LITERAL, BAD_TOKEN};
use crate::diag::Diagnostic;
use crate::division::ends_operand;
use crate::span::{FileId, Span};
use logos::Logos;
use std::collections::BTreeSet;
use unicode_ident::{is_xid_continue, is_xid_start};

/// The kinds of tokens. The variants after [`Tok::Bad`] never come from the lexer.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the attribute beside a variant is its text")]
#[logos(skip "[ \t\r\n\u{C}\u{FEFF}]+")]
pub enum Tok<'s> {
    #[token("use")]
    Use,
    #[token("const")]
    Const,
    #[token("struct")]
    Struct,
    #[token("fn")]
    Fn,
    #[token("kernel")]
    Kernel,
    #[token("let")]
    Let,
    #[token("mut")]
    Mut,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("for")]
    For,
    #[token("in")]
    In,
    #[token("while")]
    While,
    #[token("break")]
    Break,
    #[token("continue")]
    Continue,
    #[token("return")]
    Return,
    #[token("as")]
    As,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("None")]
    None,
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Id(&'s str),
    /// A character beyond ASCII: it begins a name, continues one, or is no token. The tables of Unicode as states of the lexer
    /// would be a tenth of it.
    #[regex(r"[^\x00-\x7F\u{FEFF}]")]
    NonAscii,
    #[regex(r"[0-9][0-9_]*|0[xX][0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*|0[bB][01_]*[01][01_]*|0[oO][0-7_]*[0-7][0-7_]*", priority = 20)]
    Int(&'s str),
    #[regex(r"[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9][0-9_]*)?", priority = 20)]
    #[regex(r"[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*", priority = 20)]
    Float(&'s str),
    #[regex(r"[0-9][A-Za-z0-9_]*(\.[0-9][A-Za-z0-9_]*)?", priority = 4)]
    #[regex(r"[0-9][0-9_]*(\.[0-9][0-9_]*)?[eE][+-][0-9][A-Za-z0-9_]*", priority = 4)]
    BadNumber,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Str(&'s str),
    #[regex(r#""([^"\\\n]|\\[^\n])*"#)]
    OpenStr,
    #[regex(r"'[^'\n]*'")]
    SingleQuoted,
    #[regex(r"//[^\r\n]*", allow_greedy = true)]
    Comment,
    #[regex(r"/\*([^*]|\*+[^*/])*\*+/")]
    BlockComment,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token("::")]
    PathSep,
    #[token(".")]
    Dot,
    #[token("->")]
    Arrow,
    #[token("@")]
    At,
    #[token("?")]
    Question,
    #[token("=")]
    Assign,
    #[token("+=")]
    AddAssign,
    #[token("-=")]
    SubAssign,
    #[token("*=")]
    MulAssign,
    #[token("/=")]
    DivAssign,
    #[token("%=")]
    RemAssign,
    #[token("&=")]
    AndAssign,
    #[token("|=")]
    OrAssign,
    #[token("^=")]
    XorAssign,
    #[token("<<=")]
    ShlAssign,
    #[token(">>=")]
    ShrAssign,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("&")]
    Amp,
    #[token("|")]
    Bar,
    #[token("^")]
    Caret,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("!")]
    Bang,
    #[token("==")]
    EqEq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    /// Text that is no token, or a bracket without a partner; reported.
    Bad,
    /// Something that has been reported and stands for an expression, type, pattern or parameter.
    Hole,
    /// `test` before a string.
    Test,
    /// `export` at the start of an item.
    Export,
    /// `assert_error` before a string.
    AssertError,
    /// The word of a clause.
    Clause(&'s str),
    /// A `{ .. }` that has been parsed already, by its number.
    Block(usize),
    /// The rows of `tune`, by their number.
    Rows(usize),
    /// The body of a struct, by its number.
    Body(usize),
    /// Tells the parser to read a statement.
    StartStmt,
    /// Tells the parser to read an item.
    StartItem,
    /// Tells the parser to read a row of `tune`.
    StartRow,
    /// Tells the parser to read a field of a struct.
    StartField,
}

/// A token with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'s> {
    /// The kind of token.
    pub tok: Tok<'s>,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether it is the first token of its line.
    pub first: bool,
    /// The indentation of its line, in bytes.
    pub indent: usize,
    /// Whether a message about it exists already: further errors of its statement would be a cascade.
    pub reported: bool,
}

/// The result of the lexer.
#[derive(Debug, Default)]
pub struct Lexed<'s> {
    /// The tokens in order.
    pub tokens: Vec<Token<'s>>,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// Doc comments by the start of the token that they precede, in order.
    pub docs: Vec<(usize, String)>,
    /// Diagnostics about text that is no token.
    pub diags: Vec<Diagnostic>,
}

/// The characters that end a line: a carriage return alone does it, too, as in editors.
pub const LINE_END: [char; 2] = ['\n', '\r'];

/// Splits a text into tokens.
pub fn lex(file: FileId, text: &str) -> Lexed<'_> {
    lex_divided(file, text, &BTreeSet::new())
}

/// The same, where the comments that begin at `divisions` are divisions, each of which is reported.
pub fn lex_divided<'s>(file: FileId, text: &'s str, divisions: &BTreeSet<usize>) -> Lexed<'s> {
    lex_range(file, text, 0, divisions)
}

/// The same from a place on, where a line or its first token begins.
pub fn lex_range<'s>(file: FileId, text: &'s str, start: usize, divisions: &BTreeSet<usize>) -> Lexed<'s> {
    let mut out = Lexed::default();
    let line = text.get(..start).and_then(|before| before.rfind(LINE_END)).map_or(0, |newline| newline + 1);
    let (mut end, mut indent, mut first) = (line, 0, true);
    let mut doc: Option<String> = None;
    // Where the text of the lexer begins: after the last division.
    let (mut base, mut lexer) = (start, Tok::lexer(text.get(start..).unwrap_or("")));
    while let Some(tok) = lexer.next() {
        let tok = tok.and_then(|tok| whole(&mut lexer, tok));
        let range = base + lexer.span().start..base + lexer.span().end;
        let span = Span::new(file, range.start, range.end);
        let gap = text.get(end..range.start).unwrap_or("");
        if let Some(newline) = gap.rfind(LINE_END) {
            (first, indent) = (true, gap.len() - newline - 1);
        } else if end == line {
            indent = gap.len();
        }
        end = range.end;
        let slice = text.get(range.clone()).unwrap_or("");
        let tok = match tok {
            Ok(Tok::Comment)
                if divisions.contains(&range.start)
                    || base > start && divides(&out, text, base, range.start) =>
            {
                (base, end) = (range.start + 2, range.start + 2);
                lexer = Tok::lexer(text.get(base..).unwrap_or(""));
                let slash = Span::new(file, range.start, base);
                out.diags.push(division(text, slash));
                let reported = true;
                out.tokens.push(Token { tok: Tok::Slash, start: range.start, end, first, indent, reported });
                first = false;
                continue;
            }
            Ok(Tok::Comment) if assigns(&out, text, slice, range.start) => {
                (base, end) = (range.start + 3, range.start + 3);
                lexer = Tok::lexer(text.get(base..).unwrap_or(""));
                let whole = Span::new(file, range.start, base);
                let message = "`//` starts a comment; a division is written `/=`";
                let d = Diagnostic::error(BAD_TOKEN, whole, message, "starts a comment");
                let d = d.note("`/` of integers gives an integer, rounded toward zero.");
                out.diags.push(d.fix("write `/=`", whole, "/="));
                let (start, tok, reported) = (range.start, Tok::DivAssign, true);
                out.tokens.push(Token { tok, start, end, first, indent, reported });
                first = false;
                continue;
            }
            Ok(Tok::Comment) => {
                if let Some(line) = comment(&mut out, span, slice) {
                    doc = Some(doc.map_or(line.clone(), |d| d + "\n" + &line));
                }
                continue;
            }
            Ok(Tok::BlockComment) => {
                out.diags.push(block_comment(span, slice));
                first |= slice.contains(LINE_END);
                continue;
            }
            Ok(Tok::Dot) if float_without_digits(&mut out, file, range.start, text) => {
                (end, first) = (range.end, false);
                continue;
            }
            Ok(tok) => tok,
            Err(()) if bad_text(&mut out, text, span, slice) => continue,
            Err(()) => bad_token(slice),
        };
        let (tok, reported) = match bad_literal(tok, span, slice) {
            Some(d) => {
                out.diags.push(d);
                (Tok::Hole, true)
            }
            None => (tok, tok == Tok::Bad || slice == "~"),
        };
        if let Some(doc) = doc.take() {
            out.docs.push((range.start, doc));
        }
        out.tokens.push(Token { tok, start: range.start, end: range.end, first, indent, reported });
        first = false;
    }
    out
}

/// A token with the characters behind it that belong to it because of one beyond ASCII: the lexer goes on behind them.
fn whole<'s>(lexer: &mut logos::Lexer<'s, Tok<'s>>, tok: Tok<'s>) -> Result<Tok<'s>, ()> {
    let (slice, rest) = (lexer.slice(), lexer.remainder());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = match tok {
        Tok::NonAscii => slice.starts_with(is_xid_start),
        _other => slice.ends_with(is_word) && rest.starts_with(|c: char| !c.is_ascii() && is_xid_continue(c)),
    };
    if !begins {
        return if tok == Tok::NonAscii { Err(()) } else { Ok(tok) };
    }
    lexer.bump(rest.find(|c| !is_xid_continue(c)).unwrap_or(rest.len()));
    let is_number = slice.starts_with(|c: char| c.is_ascii_digit());
    Ok(if is_number { Tok::BadNumber } else { Tok::Id(lexer.slice()) })
}

/// Returns true if the comment that begins at `start` is after a division on its line, which ends at `base`, and
/// divides too, as in `a // 2 // b`.
fn divides(out: &Lexed<'_>, text: &str, base: usize, start: usize) -> bool {
    let line = text.get(base..start).is_some_and(|gap| !gap.contains(LINE_END));
    line && out.tokens.last().is_some_and(|t| ends_operand(t.tok))
}

/// Returns true for a comment that is the rest of Python's `e //= 2;`, after a name that begins a statement.
fn assigns(out: &Lexed<'_>, text: &str, slice: &str, start: usize) -> bool {
    let value = slice.strip_prefix("//=").map(str::trim).and_then(|v| v.strip_suffix(';'));
    let [.., before, name] = out.tokens.as_slice() else { return false };
    let gap = text.get(name.end..start).unwrap_or("\n");
    let begins = matches!(before.tok, Tok::Semi | Tok::LBrace | Tok::RBrace);
    let is_name = matches!(name.tok, Tok::Id(_)) && begins && !gap.contains(LINE_END);
    is_name && value.is_some_and(|v| !v.is_empty() && !v.contains(';'))
}

fn division(text: &str, slash: Span) -> Diagnostic {
    let d = Diagnostic::error(
        BAD_TOKEN,
        slash,
        "`//` starts a comment; a division is written `/`",
        "starts a comment",
    );
    match rounded_up(text, slash) {
        Some((whole, a, b)) => d.note("`/` of integers rounds toward zero, and `cdiv(a, b)` up.").fix(
            format!("write `cdiv({a}, {b})`"),
            whole,
            format!("cdiv({a}, {b})"),
        ),
        None => d.note("`/` of integers gives an integer, rounded toward zero.").fix("write `/`", slash, "/"),
    }
}

/// What Python's ways to round a quotient up divide, and by what: `-(-a // b)`, `(a + b - 1) // b`.
fn rounded_up(text: &str, slash: Span) -> Option<(Span, &str, &str)> {
    let (before, after) = (text.get(..slash.start as usize)?.trim_end(), text.get(slash.end as usize..)?);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let gap = after.len() - after.trim_start().len();
    let by = after.trim_start();
    let by = by.get(..by.find(|c| !is_part(c)).unwrap_or(by.len()))?;
    let by_end = slash.end as usize + gap + by.len();
    // An operand of names, brackets and calls.
    let inner = |open: usize| before.get(open..).filter(|t| !t.is_empty() && !by.is_empty());
    if let Some(inside) = before.strip_suffix(')') {
        let open = inside.rfind('(')?;
        let (sum, rest) = (inner(open + 1)?, before.get(..open)?);
        let sum = sum.strip_suffix(')')?.strip_suffix('1')?.trim_end().strip_suffix('-')?.trim_end();
        let a = sum.strip_suffix(by)?.trim_end().strip_suffix('+')?.trim();
        let is_call = rest.ends_with(is_part) || rest.ends_with([')', ']']);
        return (!a.is_empty() && !is_call).then_some((
            Span { start: open as u32, end: by_end as u32, ..slash },
            a,
            by,
        ));
    }
    let open = before.rfind("-(-")?;
    let a = inner(open + 3)?.trim();
    let close = text.get(by_end..)?.trim_start().starts_with(')');
    let end = by_end + text.get(by_end..)?.find(')')? + 1;
    let is_operand = a.chars().all(|c| is_part(c) || matches!(c, '[' | ']'));
    (close && is_operand).then_some((Span { start: open as u32, end: end as u32, ..slash }, a, by))
}

/// The message about a literal that is malformed.
fn bad_literal(tok: Tok<'_>, span: Span, slice: &str) -> Option<Diagnostic> {
    match tok {
        Tok::BadNumber => Some(bad_number(span, slice)),
        Tok::OpenStr => {
            // What ends the line is hardly part of the string.
            let inside = slice.trim_end_matches([';', ',', ')', ' ', '\r']).len().max(1) as u32;
            let at = Span { start: span.start + inside, end: span.start + inside, ..span };
            let d = Diagnostic::error(BAD_LITERAL, span, "unterminated string", "");
            Some(d.fix("close the string", at, "\""))
        }
        Tok::SingleQuoted => {
            let text = slice.trim_matches('\'').replace('"', "\\\"");
            let d = Diagnostic::error(BAD_TOKEN, span, "strings use double quotes", "single quotes");
            Some(d.fix("use double quotes", span, format!("\"{text}\"")))
        }
        _other => None,
    }
}

/// Joins `1` and `.` where nothing that could be a member follows; true if it did.
fn float_without_digits(out: &mut Lexed<'_>, file: FileId, dot: usize, text: &str) -> bool {
    let rest = text.get(dot + 1..).unwrap_or("");
    if rest.starts_with(|c: char| c == '.' || c == '_' || c.is_alphabetic()) {
        return false;
    }
    let Some(last) = out.tokens.last_mut() else { return false };
    if last.end != dot
        || !matches!(last.tok, Tok::Int(s) if s.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    {
        return false;
    }
    (last.tok, last.end, last.reported) = (Tok::Hole, dot + 1, true);
    let span = Span::new(file, last.start, last.end);
    out.diags.push(Diagnostic::error(BAD_LITERAL, span, "a float needs a digit after the point", "").fix(
        "add a zero",
        span.after(),
        "0",
    ));
    true
}

/// Files a comment; the text if it is a doc comment.
fn comment(out: &mut Lexed<'_>, span: Span, slice: &str) -> Option<String> {
    let doc = slice.strip_prefix("///").filter(|rest| !rest.starts_with('/'));
    let text = doc.unwrap_or_else(|| slice.trim_start_matches('/')).to_string();
    let doc = doc.map(|d| d.strip_prefix(' ').unwrap_or(d).to_string());
    out.comments.push(Comment { span, doc: doc.is_some(), text });
    doc
}

fn block_comment(span: Span, slice: &str) -> Diagnostic {
    let d = Diagnostic::error(BAD_TOKEN, span, "comments start with `//` and end with the line", "");
    if slice.contains('\n') {
        return d;
    }
    let inner = slice.trim_start_matches("/*").trim_end_matches("*/").trim();
    d.fix("make it a line comment", span, format!("// {inner}\n"))
}

fn bad_number(span: Span, slice: &str) -> Diagnostic {
    let digits = slice.trim_end_matches(|c: char| c.is_alphanumeric() && !c.is_ascii_digit()).len();
    let suffix = ["f8", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
        .iter()
        .find(|s| slice.ends_with(*s) && !slice.starts_with("0x"));
    if let Some(suffix) = suffix {
        let number = slice.strip_suffix(suffix).unwrap_or(slice).trim_end_matches('_');
        return Diagnostic::error(
            BAD_LITERAL,
            span,
            format!("`{slice}`: a number literal has no suffix"),
            "",
        )
        .note("A literal takes its type from its context.")
        .fix("cast the number", span, format!("({number} as {suffix})"));
    }
    let hexadecimal = slice.strip_prefix("0x");
    let suffix: &[char] =
        if hexadecimal.is_some() { &['l', 'L', 'u', 'U'] } else { &['f', 'F', 'l', 'L', 'u', 'U'] };
    let plain = slice.trim_end_matches(suffix);
    let is_number = match hexadecimal {
        Some(digits) => u64::from_str_radix(digits.trim_end_matches(suffix), 16).is_ok(),
        None => plain.parse::<f64>().is_ok(),
    };
    if plain != slice && is_number {
        // As in C; `2f` is a float.
        let whole = slice.ends_with(['f', 'F']) && plain.parse::<u64>().is_ok();
        let number = format!("{plain}{}", if whole { ".0" } else { "" });
        let message = format!("`{slice}`: a number literal has no suffix");
        return Diagnostic::error(BAD_LITERAL, span, message, "")
            .note("A literal takes its type from its context.")
            .fix("remove the suffix", span, number);
    }
    let d = Diagnostic::error(BAD_LITERAL, span, format!("`{slice}` is not a number"), "");
    if digits > 0 && digits < slice.len() {
        d
    } else {
        d.note("Numbers look like 12, 1_000, 0xff, 0b101, 1.5 or 1e-3.")
    }
}

/// The token of a text that is none: of `~` the checker says what it is for the type of the operand.
fn bad_token(slice: &str) -> Tok<'static> {
    if slice == "~" { Tok::Bang } else { Tok::Bad }
}

/// Reports text that is no token. True if it continues the piece before it, which has been reported.
fn bad_text(out: &mut Lexed<'_>, text: &str, span: Span, slice: &str) -> bool {
    if let Some(last) = out.tokens.last_mut()
        && last.tok == Tok::Bad
        && last.end == span.start as usize
    {
        last.end = span.end as usize;
        if let Some(d) = out.diags.last_mut() {
            d.primary.span.end = span.end;
            d.message = "unexpected characters".to_string();
            d.fixes.clear();
            d.notes.clear();
        }
        return true;
    }
    let shown: String = slice.chars().take(8).map(shown).collect();
    let d = Diagnostic::error(BAD_TOKEN, span, format!("unexpected character `{shown}`"), "");
    out.diags.push(match (slice, replacement(slice)) {
        ("~", _) => complement(text, d, span),
        (_, Some((title, text))) => d.fix(title, span, text),
        (_, None) => d,
    });
    false
}

/// Says what `~a` is, of a bool and of an integer.
fn complement(text: &str, d: Diagnostic, span: Span) -> Diagnostic {
    let d = d.note("Of an integer `x ^ -1` flips the bits, of an unsigned one `x ^ u32.max`.");
    let after = text.get(span.end as usize..).unwrap_or("");
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let number = after.get(..digits).unwrap_or("");
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        let whole = Span { end: span.end + digits as u32, ..span };
        return d.fix(format!("write `{number} ^ -1`"), whole, format!("({number} ^ -1)"));
    }
    d.fix("use `!` for logical not", span, "!")
}

/// A character as messages show it.
fn shown(c: char) -> String {
    if c.is_control() || c.is_whitespace() { c.escape_unicode().to_string() } else { c.to_string() }
}

/// The title of a fix and the replacement, for a character that comes from a word processor or another language.
fn replacement(slice: &str) -> Option<(&'static str, &'static str)> {
    match slice {
        "\u{A0}" | "\u{2003}" | "\u{2009}" | "\u{202F}" => Some(("use an ordinary space", " ")),
        "\u{201C}" | "\u{201D}" | "\u{201E}" | "'" => Some(("use an ordinary quotation mark", "\"")),
        "\u{2212}" | "\u{2013}" => Some(("use an ordinary minus sign", "-")),
        "\u{D7}" => Some(("use `*`", "*")),
        "\u{2264}" => Some(("use `<=`", "<=")),
        "\u{2265}" => Some(("use `>=`", ">=")),
        "\u{2260}" => Some(("use `!=`", "!=")),
        "#" => Some(("use `//` for a comment", "//")),
        _ => None,
    }
}
