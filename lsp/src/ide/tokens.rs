//! The meaning of each token, for colours.

use std::ops::Range;

use tk_ops::DType;
use tk_sema::hir::{CKind, FnKind};
use tk_sema::index::{Reference, Symbol, SymbolKind};
use tk_syntax::token::Tok;
use tk_syntax::{FileId, Span};

use super::{Analysis, Workspace, describe};

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum TokenKind {
    Keyword,
    Comment,
    String,
    Number,
    Operator,
    Decorator,
    Module,
    Function,
    Method,
    Struct,
    Type,
    Property,
    Parameter,
    Variable,
    Const,
    /// A compile-time parameter that is an element type, a shape or a function.
    TypeParameter,
    /// A compile-time parameter that is a number or bool.
    CompileTime,
}

impl TokenKind {
    /// Returns true if a grammar gives it without knowing names.
    pub fn is_lexical(self) -> bool {
        matches!(
            self,
            TokenKind::Keyword
                | TokenKind::Comment
                | TokenKind::String
                | TokenKind::Number
                | TokenKind::Operator
        )
    }
}

/// The modifiers of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Modifiers {
    /// It is the definition.
    pub declaration: bool,
    /// Known at compile time.
    pub fixed: bool,
    /// A `mut` variable.
    pub mutable: bool,
    /// A builtin, or of the standard library.
    pub library: bool,
    /// A doc comment.
    pub documentation: bool,
}

/// A token; it has one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The kind of token.
    pub kind: TokenKind,
    /// Its modifiers.
    pub modifiers: Modifiers,
}

/// The tokens that touch a range, in order; all with `None`.
pub fn tokens(ws: &mut Workspace, path: &str, range: Option<Range<usize>>) -> Vec<Token> {
    let a = ws.analysis(path);
    let part = range.as_ref().map_or(0..a.root_text().len(), |r| a.near(r));
    let lexed = a.lexed(&part);
    let touches = |start: usize, end: usize| range.as_ref().is_none_or(|r| start <= r.end && r.start <= end);
    let comments = lexed.comments.iter().map(|c| Token {
        start: c.span.start as usize,
        end: c.span.end as usize,
        kind: TokenKind::Comment,
        modifiers: Modifiers { documentation: c.doc, ..Modifiers::default() },
    });
    let mut out: Vec<Token> = comments.filter(|c| touches(c.start, c.end)).collect();
    let mut meanings = Meanings::new(&a, part.start);
    let mut before = None;
    for (i, t) in lexed.tokens.iter().enumerate() {
        let next = lexed.tokens.get(i + 1).map(|n| n.tok);
        if touches(t.start, t.end) {
            let known = meanings.of(t.start, t.end).or_else(|| plain(t.tok, before, next));
            out.extend(known.map(|(kind, modifiers)| Token { start: t.start, end: t.end, kind, modifiers }));
        }
        before = Some(t.tok);
    }
    out.sort_by_key(|t| t.start);
    out
}

/// The meanings of the names of a file, from its start to its end.
struct Meanings<'a> {
    analysis: &'a Analysis,
    names: &'a [Reference],
    /// Whether each file is of the standard library.
    library: Vec<bool>,
}

impl<'a> Meanings<'a> {
    /// From a place on.
    fn new(analysis: &'a Analysis, start: usize) -> Meanings<'a> {
        let sources = &analysis.checked.sources;
        let library = (0..).map_while(|n| Some(Workspace::is_std(&sources.get(FileId(n))?.name))).collect();
        let names = analysis.index.references_in(Analysis::ROOT);
        let before = names.partition_point(|r| (r.span.start as usize) < start);
        Meanings { analysis, names: names.get(before..).unwrap_or_default(), library }
    }

    /// The meaning of a name, which is not before the last one.
    fn of(&mut self, start: usize, end: usize) -> Option<(TokenKind, Modifiers)> {
        let span = Span::new(Analysis::ROOT, start, end);
        while self.names.first().is_some_and(|r| r.span < span) {
            self.names = self.names.get(1..)?;
        }
        let found = *self.names.first().filter(|r| r.span == span)?;
        Some(self.meaning(found, self.analysis.index.symbol(found.symbol)?))
    }

    fn is_library(&self, s: &Symbol) -> bool {
        let file = |span: Span| self.library.get(span.file.0 as usize).is_some_and(|is| *is);
        s.span.is_none_or(file) && !matches!(s.kind, SymbolKind::Module(_))
    }

    /// The kind and modifiers of a name, by its meaning.
    fn meaning(&self, r: Reference, s: &Symbol) -> (TokenKind, Modifiers) {
        let a = self.analysis;
        let hir = &a.checked.hir;
        let mut m = Modifiers {
            declaration: Some(r.span) == s.span,
            fixed: false,
            mutable: s.mutable,
            library: self.is_library(s),
            documentation: false,
        };
        let kind = match &s.kind {
            SymbolKind::Module(_) => TokenKind::Module,
            SymbolKind::Fn(id) => match hir.fns.get(id.0 as usize).map(|f| f.kind) {
                Some(FnKind::Fn) if s.owner.is_some() => TokenKind::Method,
                Some(FnKind::Fn | FnKind::Kernel | FnKind::Test) | None => TokenKind::Function,
            },
            SymbolKind::Struct(_) => TokenKind::Struct,
            SymbolKind::Field(..) => TokenKind::Property,
            SymbolKind::Const(_) => {
                m.fixed = true;
                TokenKind::Const
            }
            SymbolKind::CVar(id) => {
                m.fixed = true;
                match hir.cvars.get(id.0 as usize).map(|c| &c.kind) {
                    Some(CKind::DType(_) | CKind::Shape | CKind::Fn(..)) => TokenKind::TypeParameter,
                    Some(CKind::Int(_) | CKind::Float(_) | CKind::Bool | CKind::Err) | None => {
                        TokenKind::CompileTime
                    }
                }
            }
            SymbolKind::Param(_) => TokenKind::Parameter,
            SymbolKind::Local(_) => TokenKind::Variable,
            SymbolKind::Alias(to) => {
                return describe::resolve(a, *to).map_or((TokenKind::Variable, m), |to| self.meaning(r, to));
            }
            SymbolKind::Builtin(row) if describe::has_receiver(row) => TokenKind::Method,
            SymbolKind::Builtin(_) => TokenKind::Function,
            SymbolKind::BuiltinParam(..) => TokenKind::Parameter,
        };
        (kind, m)
    }
}

/// The kind and modifiers of a token, by its form and its neighbours.
fn plain(tok: Tok, before: Option<Tok>, next: Option<Tok>) -> Option<(TokenKind, Modifiers)> {
    use Tok::*;
    let kind = match tok {
        Use | Const | Struct | Fn | Kernel | Let | Mut | If | Else | For | In | While | Break | Continue
        | Return | As | True | False | None | Test | Export | AssertError | Clause(_) => TokenKind::Keyword,
        Id(name) => match (name, before, next) {
            (_, Some(At), _) => TokenKind::Decorator,
            (_, Some(Dot), _) => TokenKind::Property,
            ("test" | "assert_error", _, Some(Str(_)))
            | ("export", Option::None | Some(RBrace | Semi), Some(Id(_))) => TokenKind::Keyword,
            (_, Some(RParen | RBrace | RBracket), Some(LParen)) => TokenKind::Keyword,
            (_, Some(Kernel | Fn), _) => TokenKind::Function,
            (_, Some(Struct), _) => TokenKind::Struct,
            ("std", _, _) => TokenKind::Module,
            ("inf" | "nan", _, _) => TokenKind::Number,
            ("self", _, _) => TokenKind::Parameter,
            _ => {
                let types = ["tile", "view", "dtype", "shape"];
                let is_type = types.contains(&name)
                    || DType::parse(name).is_some()
                    || tk_ops::DTypeSet::class(name).is_some();
                match next {
                    _ if is_type => TokenKind::Type,
                    Some(Assign) => TokenKind::Property,
                    _ => TokenKind::Variable,
                }
            }
        },
        At => TokenKind::Decorator,
        Int(_) | Float(_) | BadNumber => TokenKind::Number,
        Str(_) | OpenStr | SingleQuoted => TokenKind::String,
        Comment | BlockComment => TokenKind::Comment,
        LParen | RParen | LBracket | RBracket | LBrace | RBrace | Comma | Semi | Colon | PathSep | Dot => {
            return Option::None;
        }
        Arrow | Question | Assign | AddAssign | SubAssign | MulAssign | DivAssign | RemAssign | AndAssign
        | OrAssign | XorAssign | ShlAssign | ShrAssign | Plus | Minus | Star | Slash | Percent | Amp
        | Bar | Caret | Shl | Shr | AndAnd | OrOr | Bang | EqEq | Ne | Lt | Le | Gt | Ge => {
            TokenKind::Operator
        }
        Bad | NonAscii | Hole | Block(_) | Rows(_) | Body(_) | StartStmt | StartItem | StartRow
        | StartField => {
            return Option::None;
        }
    };
    Some((kind, Modifiers::default()))
}
