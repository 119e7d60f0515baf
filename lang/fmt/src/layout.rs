//! The document: tokens and comments in the order of the text, with the places where a line may end and the
//! groups that decide about them.
//!
//! A group is laid out flat, on one line, if it fits; otherwise its lines end. [`crate::print`] decides.
//! Guarantees that every token and comment is in the document, in its order: the walk over the tree only says what
//! is between them. The one exception is a comma before a closing bracket.
//!
//! Where comments go: one that shares its line with what is before it stays at the end of a line, that is, it
//! moves after what follows it up to the next place where a line may end, and makes the line end there. Any other has a line of
//! its own. A comment before `,` or `;` comes after it. None of this depends on anything that the formatter
//! changes, so formatting twice gives the same as formatting once.

use crate::source::LexedSource;
use std::ops::Range;
use tk_syntax::ast::Comment;
use tk_syntax::token::Tok;

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocPart {
    /// A token, by its number.
    Token(usize),
    /// A blank, unless a line ends there.
    Space,
    /// A comma, where the lines of the group end.
    Comma,
    /// A place where a line may end.
    Line(Line),
    /// The start of a group, by its number.
    Open(usize),
    /// Its end.
    Close,
    /// Lines that begin from here on are indented further.
    Indent,
    /// Undoes `Indent`.
    Dedent,
    /// A comment at the end of a line, which ends at the next place where it may.
    Trailing(usize),
    /// A comment that has its line for itself; it is between two lines that end.
    Comment(usize),
    /// Tokens from one to another, with what is between them in the text.
    Verbatim(usize, usize),
}

/// A place where a line may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The condition.
    pub kind: LineKind,
    /// Whether it ends in any case.
    pub forced: bool,
    /// Whether an empty line follows.
    pub empty: bool,
}

/// The condition on which a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// With the group; nothing otherwise.
    Soft,
    /// With the group; a blank otherwise.
    Blank,
    /// If the text up to the next one does not fit; a blank otherwise.
    Fill,
    /// With the group of this number, which is before it; a blank otherwise.
    With(usize),
    /// Always. Between statements and the like; an empty line of the text is kept where `Keep` says so.
    Hard(Keep),
}

/// The places where an empty line of the text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nowhere.
    Nowhere,
    /// Before comments and what follows them.
    Everywhere,
    /// As `Everywhere`, but not directly here: this is the start of a block.
    Behind,
}

impl Keep {
    /// Returns true if an empty line is kept, before the first thing of a gap or a later one.
    fn keeps(self, empty: bool, first: bool) -> bool {
        match self {
            Keep::Nowhere => false,
            Keep::Everywhere => empty,
            Keep::Behind => empty && !first,
        }
    }
}

/// The layout of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocGroup {
    /// The block that ends an element of a list, by the number of its group, if no other element ends so. If that is
    /// the only part that does not fit, it alone is laid out on several lines.
    pub hugged: Option<usize>,
    /// The group of a condition: if its lines end, so do those of this block.
    pub condition: Option<usize>,
}

/// Builds a document.
pub struct DocBuilder<'s> {
    /// The source that is laid out.
    pub source: &'s LexedSource<'s>,
    /// The document so far.
    pub ops: Vec<DocPart>,
    /// The groups by their numbers.
    pub groups: Vec<DocGroup>,
    /// The next token.
    pub next: usize,
    /// The next comment.
    next_comment: usize,
    /// The end of the last token in `ops`.
    gap: usize,
    /// The last block that is no part of an `if` and not empty: its group, and the token after it.
    pub last_block: Option<(usize, usize)>,
    /// The group of the condition before the block that comes next.
    pub condition: Option<usize>,
    /// The tokens of each list of statements or items, with the tokens of each of them.
    pub lists: Vec<(Range<usize>, Vec<Range<usize>>)>,
}

impl<'s> DocBuilder<'s> {
    /// A document without anything in it.
    pub fn new(source: &'s LexedSource<'s>) -> Self {
        DocBuilder {
            source,
            ops: vec![],
            groups: vec![],
            next: 0,
            next_comment: 0,
            gap: 0,
            last_block: None,
            condition: None,
            lists: vec![],
        }
    }

    /// The next token.
    pub fn peek(&self) -> Option<Tok<'s>> {
        self.source.tok(self.next)
    }

    /// The start of the next token.
    pub fn at(&self) -> usize {
        self.source.start(self.next)
    }

    /// Puts the next token.
    pub fn token(&mut self) {
        if self.next >= self.source.tokens.len() {
            return;
        }
        let comments = self.comments();
        let pushed_behind = matches!(self.peek(), Some(Tok::Comma | Tok::Semi));
        let docs = self.source.comments.get(comments.clone());
        // A doc comment belongs to the token that follows it.
        if !pushed_behind || docs.is_some_and(|docs| docs.iter().any(|c: &Comment| c.doc)) {
            self.finish_gap(comments);
        }
        self.ops.push(DocPart::Token(self.next));
        self.next += 1;
        self.gap = self.ops.len();
    }

    /// Puts the tokens that start before `end`, without blanks.
    pub fn tokens_until(&mut self, end: u32) {
        while self.next < self.source.tokens.len() && self.at() < end as usize {
            self.token();
        }
    }

    /// Leaves out the comma that comes next.
    pub fn drop_comma(&mut self) {
        if self.peek() == Some(Tok::Comma) {
            self.next += 1;
        }
    }

    /// A comma if the lines of the group end.
    pub fn comma(&mut self) {
        self.ops.push(DocPart::Comma);
        self.gap = self.ops.len();
    }

    /// A blank.
    pub fn space(&mut self) {
        self.ops.push(DocPart::Space);
    }

    /// A blank, or a line end if comments follow.
    pub fn space_or_comments(&mut self) {
        if self.comments().is_empty() {
            self.space();
        } else {
            self.line(LineKind::Hard(Keep::Nowhere));
        }
    }

    /// A place where a line may end.
    pub fn line(&mut self, kind: LineKind) {
        let forced = matches!(kind, LineKind::Hard(_));
        self.ops.push(DocPart::Line(Line { kind, forced, empty: false }));
    }

    /// The same; the line ends in any case if `forced`.
    pub fn line_or(&mut self, kind: LineKind, forced: bool) {
        self.line(kind);
        if let Some(DocPart::Line(line)) = self.ops.last_mut() {
            line.forced |= forced;
        }
    }

    /// Puts the tokens up to `end`, and everything between them, as they are.
    pub fn verbatim(&mut self, end: usize) {
        let comments = self.comments();
        self.finish_gap(comments);
        let last = end.saturating_sub(1);
        self.ops.push(DocPart::Verbatim(self.next, last));
        let stop = self.source.end(last);
        let inside = self.source.comments.get(self.next_comment..).unwrap_or(&[]);
        self.next_comment += inside.iter().take_while(|c| (c.span.start as usize) < stop).count();
        self.next = end;
        self.gap = self.ops.len();
    }

    /// Starts a group; its number.
    pub fn open(&mut self) -> usize {
        self.ops.push(DocPart::Open(self.groups.len()));
        self.groups.push(DocGroup { hugged: None, condition: self.condition.take() });
        self.groups.len() - 1
    }

    /// Ends the group that was started last.
    pub fn close(&mut self) {
        self.ops.push(DocPart::Close);
    }

    /// Says which block ends an element of a list.
    pub fn hug(&mut self, list: usize, block: usize) {
        if let Some(group) = self.groups.get_mut(list) {
            group.hugged = Some(block);
        }
    }

    /// Lines that begin from here on are indented further.
    pub fn indent(&mut self) {
        self.ops.push(DocPart::Indent);
    }

    /// Undoes the last `indent`.
    pub fn dedent(&mut self) {
        self.ops.push(DocPart::Dedent);
    }

    /// The end of what is between brackets: comments before the closing one, which are indented like the rest, then a
    /// place where a line may end.
    pub fn last_line(&mut self, kind: LineKind, keep: Keep) {
        let forced = self.own_lines(keep) || matches!(kind, LineKind::Hard(_));
        self.dedent();
        self.ops.push(DocPart::Line(Line { kind, forced, empty: false }));
    }

    /// Puts the comments before the next token; whether one of them has a line of its own.
    fn own_lines(&mut self, keep: Keep) -> bool {
        let comments = self.trailing(self.comments());
        for at in comments.clone() {
            let empty = keep.keeps(self.source.empty_line_before_comment(at), at == comments.start);
            self.ops.push(DocPart::Line(Line { kind: LineKind::Hard(keep), forced: true, empty }));
            self.ops.push(DocPart::Comment(at));
        }
        !comments.is_empty()
    }

    /// Everything that is left: comments at the end of the file, and tokens if the walk has missed any.
    pub fn finish(&mut self) {
        self.strays(usize::MAX);
        self.own_lines(if self.ops.is_empty() { Keep::Behind } else { Keep::Everywhere });
    }

    /// The comments before the next token that are not in the document yet.
    pub fn comments(&self) -> Range<usize> {
        let end = self.at();
        let rest = self.source.comments.get(self.next_comment..).unwrap_or(&[]);
        let count = rest.iter().take_while(|c| (c.span.start as usize) < end).count();
        self.next_comment..self.next_comment + count
    }

    /// Returns true if a comment needs a line of its own that precedes one token, or from there to another.
    pub fn own_lines_in(&self, tokens: Range<usize>) -> bool {
        let (first, last) =
            (self.source.comments_before(tokens.start), self.source.comments_before(tokens.end));
        let mut comments = first.start..last.end;
        comments.len() > 1 || comments.any(|c| !self.source.trails(c))
    }

    /// Puts the comment that stays on its line, if the first one does; the others.
    fn trailing(&mut self, mut comments: Range<usize>) -> Range<usize> {
        self.next_comment = comments.end;
        if !comments.is_empty() && self.source.trails(comments.start) {
            // Only the few parts since the last token move.
            self.ops.insert(self.gap, DocPart::Trailing(comments.start));
            comments.start += 1;
        }
        comments
    }

    /// Puts comments into the gap before the next token, and decides whether empty lines are kept.
    fn finish_gap(&mut self, comments: Range<usize>) {
        let comments = self.trailing(comments);
        let gap = self.ops.get(self.gap..).unwrap_or(&[]);
        let line = gap.iter().rposition(|op| matches!(op, DocPart::Line(_))).map(|i| i + self.gap);
        let keep = match line.and_then(|at| self.ops.get(at)) {
            Some(DocPart::Line(Line { kind: LineKind::Hard(keep), .. })) => *keep,
            _other => Keep::Nowhere,
        };
        let kept = |empty: bool, first: bool| keep.keeps(empty, first);
        let first = comments.is_empty();
        let empty = kept(self.source.empty_line_before_token(self.next), first);
        let hard = |empty| DocPart::Line(Line { kind: LineKind::Hard(keep), forced: true, empty });
        let mut own = Vec::with_capacity(2 * comments.len());
        for at in comments.clone() {
            let empty = kept(self.source.empty_line_before_comment(at), at == comments.start);
            own.extend([hard(empty), DocPart::Comment(at)]);
        }
        match line {
            Some(at) => {
                if let Some(DocPart::Line(line)) = self.ops.get_mut(at) {
                    line.forced |= !own.is_empty();
                    line.empty = empty;
                }
                self.ops.splice(at..at, own);
            }
            None if own.is_empty() => {}
            None => {
                self.indent();
                self.ops.extend(own);
                self.ops.push(hard(false));
                self.dedent();
            }
        }
    }
}
