//! The text that is formatted, as tokens with the comments and the line breaks between them.
//!
//! Assumes that the text parses without an error, so that brackets are paired.

use tk_syntax::ast::{Comment, Item, ItemKind};
use tk_syntax::token::{Tok, Token, lex};
use tk_syntax::{FileId, Span};

/// The comment that leaves a statement or an item as it is.
const SKIP: &str = "// fmt: skip";

/// A text as tokens and comments.
pub struct LexedSource<'s> {
    /// The text.
    pub text: &'s str,
    /// The tokens in order.
    pub tokens: Vec<Token<'s>>,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// For each bracket the other one of its pair; for other tokens the token itself.
    partners: Vec<usize>,
    /// Line breaks between a token and the token or comment before it, at most 2.
    breaks_before_token: Vec<u8>,
    /// The same for comments. The first thing of a file counts as the first of a line.
    breaks_before_comment: Vec<u8>,
    /// The starts of the lines.
    lines: Vec<usize>,
}

impl<'s> LexedSource<'s> {
    /// Splits a text.
    pub fn new(text: &'s str) -> Self {
        let lexed = lex(FileId(0), text);
        let mut source = LexedSource {
            text,
            partners: partners(&lexed.tokens),
            tokens: lexed.tokens,
            comments: lexed.comments,
            breaks_before_token: vec![],
            breaks_before_comment: vec![],
            lines: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
        };
        source.count_breaks();
        source
    }

    /// Makes comments of those with three slashes in the bodies of these items, where nothing takes documentation.
    pub fn undocument_bodies(&mut self, items: &[Item]) {
        for item in items {
            let body = match &item.kind {
                ItemKind::Fn(f) => f.body.span,
                ItemKind::Test(t) => t.body.span,
                ItemKind::Struct(s) => {
                    self.undocument_bodies(&s.methods);
                    continue;
                }
                ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Err => continue,
            };
            let index = |place: u32| self.comments.partition_point(|c| c.span.start < place);
            let inside = index(body.start)..index(body.end);
            self.comments.get_mut(inside).into_iter().flatten().for_each(|c| c.doc = false);
        }
    }

    fn count_breaks(&mut self) {
        let (mut end, mut comments) = (None, self.comments.iter().peekable());
        let breaks = |end: &mut Option<usize>, start: usize, next: usize| {
            let gap = end.map_or("\n", |end| self.text.get(end..start).unwrap_or(""));
            *end = Some(next);
            gap.bytes().filter(|b| *b == b'\n').take(2).count() as u8
        };
        let behind = [(usize::MAX, usize::MAX)];
        for (start, next) in self.tokens.iter().map(|t| (t.start, t.end)).chain(behind) {
            while let Some(c) = comments.next_if(|c| (c.span.start as usize) < start) {
                let place = (c.span.start as usize, c.span.end as usize);
                self.breaks_before_comment.push(breaks(&mut end, place.0, place.1));
            }
            let start = start.min(self.text.len());
            self.breaks_before_token.push(breaks(&mut end, start, next));
        }
    }

    /// The token that starts at an offset.
    pub fn token_at(&self, start: u32) -> usize {
        self.tokens.partition_point(|t| t.start < start as usize)
    }

    /// The kind of token `at`.
    pub fn tok(&self, at: usize) -> Option<Tok<'s>> {
        self.tokens.get(at).map(|t| t.tok)
    }

    /// The start of token `at`; the end of the text after the last one.
    pub fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(usize::MAX, |t| t.start)
    }

    /// The end of token `at`.
    pub fn end(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |t| t.end)
    }

    /// The text of token `at`.
    pub fn token_text(&self, at: usize) -> &'s str {
        self.tokens.get(at).and_then(|t| self.text.get(t.start..t.end)).unwrap_or("")
    }

    /// The text of comment `at`, without blanks at its end.
    pub fn comment_text(&self, at: usize) -> &'s str {
        let span = self.comments.get(at).map(|c| c.span).unwrap_or_default();
        self.text.get(span.start as usize..span.end as usize).unwrap_or("").trim_end()
    }

    /// The other bracket of the pair.
    pub fn partner(&self, at: usize) -> usize {
        self.partners.get(at).copied().unwrap_or(at)
    }

    /// The comments directly before token `at`.
    pub fn comments_before(&self, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.end(at - 1) };
        let index = |place: usize| self.comments.partition_point(|c| (c.span.start as usize) < place);
        index(from)..index(self.start(at))
    }

    /// Returns true if there is a comment in a piece of the text.
    pub fn has_comments(&self, span: Span) -> bool {
        let first = self.comments.partition_point(|c| c.span.start < span.start);
        self.comments.get(first).is_some_and(|c| c.span.start < span.end)
    }

    /// Returns true if token `at` is the first one of its line.
    pub fn begins_line(&self, at: usize) -> bool {
        self.breaks_before_token.get(at).is_some_and(|b| *b > 0)
    }

    /// The column of a comment in the text, and its line.
    pub fn place(&self, comment: usize) -> (usize, usize) {
        let start = self.comments.get(comment).map_or(0, |c| c.span.start as usize);
        let line = self.lines.partition_point(|begin| *begin <= start).saturating_sub(1);
        let begin = self.lines.get(line).copied().unwrap_or(0);
        (self.text.get(begin..start).unwrap_or("").chars().count(), line)
    }

    /// Returns true if a comment before token `from`, or after token `to` on its line, leaves them as they are.
    pub fn skips(&self, from: usize, to: usize) -> bool {
        let (before, after) = (self.comments_before(from), self.comments_before(to + 1));
        let own = before.filter(|c| !self.trails(*c));
        let trailing = Some(after.start).filter(|c| after.contains(c) && self.trails(*c));
        own.chain(trailing).any(|c| self.comment_text(c) == SKIP)
    }

    /// Returns true if an empty line precedes token `at`.
    pub fn empty_line_before_token(&self, at: usize) -> bool {
        self.breaks_before_token.get(at).is_some_and(|b| *b > 1)
    }

    /// Returns true if an empty line precedes comment `at`.
    pub fn empty_line_before_comment(&self, at: usize) -> bool {
        self.breaks_before_comment.get(at).is_some_and(|b| *b > 1)
    }

    /// Returns true if a comment shares its line with what is before it. A doc comment belongs to what follows.
    pub fn trails(&self, comment: usize) -> bool {
        let same_line = self.breaks_before_comment.get(comment).is_some_and(|b| *b == 0);
        same_line && self.comments.get(comment).is_some_and(|c| !c.doc)
    }

    /// Returns true for a `;` after another one, or after the brace that opens a block.
    pub fn repeats(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.tok(before));
        self.tok(at) == Some(Tok::Semi) && matches!(before, Some(Tok::Semi | Tok::LBrace))
    }

    /// Returns true if token `at` is the last one of its line.
    pub fn ends_line(&self, at: usize) -> bool {
        self.breaks_before_token.get(at + 1).is_none_or(|b| *b > 0)
            || !self.comments_before(at + 1).is_empty()
    }
}

fn partners(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut partners: Vec<usize> = (0..tokens.len()).collect();
    let mut open = vec![];
    for (i, token) in tokens.iter().enumerate() {
        match token.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => open.push(i),
            Tok::RParen | Tok::RBracket | Tok::RBrace => {
                if let Some(other) = open.pop() {
                    for (at, to) in [(i, other), (other, i)] {
                        if let Some(partner) = partners.get_mut(at) {
                            *partner = to;
                        }
                    }
                }
            }
            _other => {}
        }
    }
    partners
}
