//! The decision where lines end, and the text that results.
//!
//! A group is flat if it fits into the rest of the line together with what follows it up to the next place where a line may
//! end. Guarantees time linear in the length of the document: widths are sums that are made once.

use crate::layout::{DocBuilder, DocGroup, DocPart, Line, LineKind};
use crate::source::LexedSource;

/// Columns of a line.
pub const WIDTH: usize = 100;
/// Columns of a step to the right.
const STEP: usize = 4;

/// A text that was laid out.
#[derive(Debug, Default)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// The end of each token in it; 0 for a token that was left out.
    pub token_ends: Vec<usize>,
    /// The end of each comment in it.
    pub comment_ends: Vec<usize>,
}

/// Lays out a document.
pub fn print(layout: &DocBuilder<'_>) -> Printed {
    let mut measures = Measures::new(layout);
    measures.measure(layout);
    let mut printer = Printer {
        source: layout.source,
        groups: &layout.groups,
        measures,
        out: Printed {
            text: String::with_capacity(layout.source.text.len()),
            token_ends: vec![0; layout.source.tokens.len()],
            comment_ends: vec![0; layout.source.comments.len()],
        },
        column: 0,
        lines: 0,
        indent: 0,
        margin: 0,
        space: false,
        trailing: None,
        frames: vec![],
        is_broken: vec![false; layout.groups.len()],
        trailing_comments: vec![],
        broken: None,
    };
    printer.run();
    printer.end_line();
    let Printer { mut out, trailing_comments, .. } = printer;
    align(layout.source, &mut out, &trailing_comments);
    if !out.text.is_empty() && !out.text.ends_with('\n') {
        out.text.push('\n');
    }
    out
}

/// Facts about each part, computed before anything is printed. Sums run over the parts before the part.
struct Measures {
    /// The parts; places where a line ends because of a comment are forced.
    ops: Vec<DocPart>,
    /// Columns when everything is on one line.
    columns: Vec<usize>,
    /// Places where the line ends in any case.
    forced: Vec<usize>,
    /// Commas that are there only when lines end.
    commas: Vec<usize>,
    /// The next place where a line may end, here or later.
    next_line: Vec<usize>,
    /// Of a `Fill`: the next place of the same group. Of `Open`: its `Close`.
    end: Vec<usize>,
    /// The start of each group.
    opens: Vec<usize>,
    /// Whether a comment at the end of a line must end it, since another comment follows.
    ends_line: Vec<bool>,
}

impl Measures {
    fn new(layout: &DocBuilder<'_>) -> Self {
        let count = layout.ops.len();
        Measures {
            ops: layout.ops.clone(),
            columns: Vec::with_capacity(count + 1),
            forced: Vec::with_capacity(count + 1),
            commas: Vec::with_capacity(count + 1),
            next_line: vec![count; count + 1],
            end: vec![count; count],
            opens: vec![0; layout.groups.len()],
            ends_line: vec![false; layout.source.comments.len()],
        }
    }

    fn measure(&mut self, layout: &DocBuilder<'_>) {
        self.force_lines();
        let (mut columns, mut forced, mut commas) = (0, 0, 0);
        // The open groups: where each starts, and its last `Fill`.
        let mut open: Vec<(usize, Option<usize>)> = vec![];
        for (i, op) in self.ops.iter().enumerate() {
            self.columns.push(columns);
            self.forced.push(forced);
            self.commas.push(commas);
            match *op {
                DocPart::Token(at) => columns += layout.source.token_text(at).chars().count(),
                DocPart::Space => columns += 1,
                DocPart::Comma => commas += 1,
                DocPart::Line(line) => {
                    forced += usize::from(line.forced);
                    columns += usize::from(matches!(
                        line.kind,
                        LineKind::Blank | LineKind::Fill | LineKind::With(_)
                    ));
                    if let Some((_, fill)) = open.last_mut() {
                        let this = (line.kind == LineKind::Fill).then_some(i);
                        set(&mut self.end, std::mem::replace(fill, this), i);
                    }
                }
                DocPart::Open(group) => {
                    set(&mut self.opens, Some(group), i);
                    open.push((i, None));
                }
                DocPart::Close => {
                    if let Some((start, fill)) = open.pop() {
                        set(&mut self.end, Some(start), i);
                        set(&mut self.end, fill, i);
                    }
                }
                DocPart::Verbatim(from, to) => {
                    let text = verbatim(layout.source, from, to);
                    columns += text.lines().next().map_or(0, |line| line.chars().count());
                    forced += usize::from(text.contains('\n'));
                }
                DocPart::Trailing(at) => forced += usize::from(self.ends_line.get(at) == Some(&true)),
                DocPart::Indent | DocPart::Dedent | DocPart::Comment(_) => {}
            }
        }
        self.columns.push(columns);
        self.forced.push(forced);
        self.commas.push(commas);
    }

    /// Finds the line that each comment at the end of a line ends, from the last part to the first.
    fn force_lines(&mut self) {
        let (mut next, mut after_brace) = (self.ops.len(), self.ops.len());
        let mut comment_follows = false;
        for i in (0..self.ops.len()).rev() {
            match self.ops.get_mut(i) {
                Some(DocPart::Line(line)) => {
                    // What ends with a group has to fit on its line.
                    after_brace = if matches!(line.kind, LineKind::With(_)) { after_brace } else { i };
                    (next, comment_follows) = (i, false);
                }
                Some(DocPart::Trailing(at)) => {
                    let at = *at;
                    if comment_follows {
                        set(&mut self.ends_line, Some(at), true);
                    } else if let Some(DocPart::Line(line)) = self.ops.get_mut(next) {
                        line.forced = true;
                    }
                    comment_follows = true;
                }
                Some(DocPart::Comment(_)) => comment_follows = true,
                Some(
                    DocPart::Token(_)
                    | DocPart::Verbatim(..)
                    | DocPart::Space
                    | DocPart::Comma
                    | DocPart::Open(_)
                    | DocPart::Close,
                ) => {}
                Some(DocPart::Indent | DocPart::Dedent) | None => {}
            }
            set(&mut self.next_line, Some(i), after_brace);
        }
    }

    /// Columns from one part to another on one line.
    fn columns(&self, from: usize, to: usize) -> usize {
        between(&self.columns, from, to)
    }

    /// Returns true if a line ends between two parts in any case.
    fn forced(&self, from: usize, to: usize) -> bool {
        between(&self.forced, from, to) > 0
    }

    fn end(&self, at: usize) -> usize {
        self.end.get(at).copied().unwrap_or(self.ops.len())
    }

    /// The next place where a line may end.
    fn next_line(&self, at: usize) -> usize {
        self.next_line.get(at).copied().unwrap_or(self.ops.len())
    }
}

fn set<T>(list: &mut [T], at: Option<usize>, value: T) {
    if let Some(place) = at.and_then(|at| list.get_mut(at)) {
        *place = value;
    }
}

fn between(sums: &[usize], from: usize, to: usize) -> usize {
    let sum = |at: usize| sums.get(at).copied().unwrap_or(0);
    sum(to).saturating_sub(sum(from))
}

/// The layout of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// On one line, with all groups in it.
    Flat,
    /// Its lines end.
    Broken,
    /// Its lines do not end; groups in it decide on their own.
    Hugging,
}

/// An open group.
#[derive(Clone, Copy, Debug)]
struct Frame {
    mode: Mode,
    /// The line on which its current element starts.
    line: usize,
}

/// A comment at the end of a line of the result.
#[derive(Clone, Copy, Debug)]
struct TrailingComment {
    comment: usize,
    /// The place of the blank before it.
    at: usize,
    /// The columns before the blank.
    column: usize,
    line: usize,
}

/// Aligns comments at the ends of consecutive lines that were aligned in the text.
fn align(source: &LexedSource<'_>, out: &mut Printed, comments: &[TrailingComment]) {
    let together = |a: &TrailingComment, b: &TrailingComment| {
        let (from, to) = (source.place(a.comment), source.place(b.comment));
        a.line + 1 == b.line && from.0 == to.0 && from.1 + 1 == to.1
    };
    let mut added: Vec<(usize, usize)> = vec![];
    for run in comments.chunk_by(together) {
        let column = run.iter().map(|c| c.column).max().unwrap_or(0);
        added.extend(run.iter().map(|c| (c.at, column - c.column)).filter(|(_, count)| *count > 0));
    }
    if added.is_empty() {
        return;
    }
    let mut text = String::with_capacity(out.text.len());
    let mut from = 0;
    for (at, count) in &added {
        text.push_str(out.text.get(from..*at).unwrap_or(""));
        text.extend(std::iter::repeat_n(' ', *count));
        from = *at;
    }
    text.push_str(out.text.get(from..).unwrap_or(""));
    // What ends at the place of a blank is before it.
    let sums: Vec<(usize, usize)> = added
        .iter()
        .scan(0, |sum, (at, count)| {
            *sum += count;
            Some((*at, *sum))
        })
        .collect();
    for end in out.token_ends.iter_mut().chain(&mut out.comment_ends) {
        let before = sums.partition_point(|(at, _)| at < end);
        *end += before.checked_sub(1).and_then(|i| sums.get(i)).map_or(0, |s| s.1);
    }
    out.text = text;
}

/// The text from one token to another.
fn verbatim<'s>(source: &LexedSource<'s>, from: usize, to: usize) -> &'s str {
    source.text.get(source.start(from)..source.end(to)).unwrap_or("")
}

struct Printer<'a> {
    source: &'a LexedSource<'a>,
    groups: &'a [DocGroup],
    measures: Measures,
    out: Printed,
    /// Columns of the line so far; 0 at its beginning.
    column: usize,
    /// Lines so far.
    lines: usize,
    indent: usize,
    /// Columns before the current line.
    margin: usize,
    /// Whether a blank comes before the next token.
    space: bool,
    /// The comment that ends the line.
    trailing: Option<usize>,
    frames: Vec<Frame>,
    /// Whether the lines of each group end.
    is_broken: Vec<bool>,
    /// The comments at the ends of lines: where the blank before each is, the columns before it, its line.
    trailing_comments: Vec<TrailingComment>,
    /// The group that is the hugged block of the one around it.
    broken: Option<usize>,
}

impl Printer<'_> {
    fn run(&mut self) {
        for i in 0..self.measures.ops.len() {
            let Some(op) = self.measures.ops.get(i).copied() else { return };
            match op {
                DocPart::Token(at) => {
                    let text = self.source.token_text(at);
                    self.text(text);
                    set(&mut self.out.token_ends, Some(at), self.out.text.len());
                }
                DocPart::Verbatim(from, to) => self.verbatim(from, to),
                DocPart::Space => self.space = true,
                DocPart::Comma => {
                    if self.frames.last().is_none_or(|f| f.mode == Mode::Broken) {
                        self.text(",");
                    }
                }
                DocPart::Line(line) => self.line(i, line),
                DocPart::Open(group) => {
                    let mode = self.mode(i, group);
                    set(&mut self.is_broken, Some(group), mode == Mode::Broken);
                    self.frames.push(Frame { mode, line: self.lines });
                }
                DocPart::Close => {
                    self.frames.pop();
                }
                DocPart::Indent => self.indent += self.step(),
                DocPart::Dedent => self.indent = self.indent.saturating_sub(self.step()),
                DocPart::Trailing(at) => {
                    self.trailing = Some(at);
                    if self.measures.ends_line.get(at) == Some(&true) {
                        self.indent += STEP;
                        self.newline(false);
                        self.indent -= STEP;
                    }
                }
                DocPart::Comment(at) => self.comment(at),
            }
        }
    }

    /// The extra indentation of elements of the current group: none around a hugged block, since no line ends there.
    fn step(&self) -> usize {
        if self.frames.last().is_some_and(|f| f.mode == Mode::Hugging) { 0 } else { STEP }
    }

    fn text(&mut self, text: &str) {
        self.start_line();
        if std::mem::take(&mut self.space) {
            self.out.text.push(' ');
            self.column += 1;
        }
        self.out.text.push_str(text);
        self.column += text.chars().count();
    }

    fn verbatim(&mut self, from: usize, to: usize) {
        let source = self.source;
        let text = verbatim(source, from, to);
        self.text(text);
        let begin = self.out.text.len() - text.len();
        let first = source.start(from);
        for token in from..=to {
            set(&mut self.out.token_ends, Some(token), begin + source.end(token) - first);
        }
        for comment in source.comments_before(from).end..source.comments_before(to + 1).start {
            let end = source.comments.get(comment).map_or(first, |c| c.span.end as usize);
            set(&mut self.out.comment_ends, Some(comment), begin + end - first);
        }
        if let Some((_, last)) = text.rsplit_once('\n') {
            self.lines += text.matches('\n').count();
            self.column = last.chars().count().max(1);
        }
    }

    /// Puts the blanks at the beginning of a line.
    fn start_line(&mut self) {
        if self.column == 0 {
            self.out.text.extend(std::iter::repeat_n(' ', self.margin));
            (self.column, self.space) = (self.margin, false);
        }
    }

    fn comment(&mut self, at: usize) {
        let text = self.source.comment_text(at);
        self.text(text);
        set(&mut self.out.comment_ends, Some(at), self.out.text.len());
    }

    /// Puts the comment that ends the line, if there is one.
    fn end_line(&mut self) {
        if let Some(at) = self.trailing.take() {
            let place = TrailingComment {
                comment: at,
                at: self.out.text.len(),
                column: self.column,
                line: self.lines,
            };
            self.trailing_comments.push(place);
            self.space = true;
            self.comment(at);
        }
    }

    /// The column at which the next token would start.
    fn next_column(&self) -> usize {
        if self.column == 0 { self.margin } else { self.column + usize::from(self.space) }
    }

    fn newline(&mut self, empty: bool) {
        self.end_line();
        (self.space, self.margin) = (false, self.indent);
        if self.out.text.is_empty() {
            return;
        }
        if self.column > 0 {
            self.out.text.push('\n');
            self.lines += 1;
            self.column = 0;
        }
        if empty && !self.out.text.ends_with("\n\n") {
            self.out.text.push('\n');
        }
    }

    fn mode(&mut self, open: usize, group: usize) -> Mode {
        if self.frames.last().is_some_and(|f| f.mode == Mode::Flat) {
            return Mode::Flat;
        }
        if self.broken.take_if(|b| *b == group).is_some() {
            return Mode::Broken;
        }
        let condition = self.groups.get(group).and_then(|g| g.condition);
        if condition.is_some_and(|c| self.is_broken.get(c) == Some(&true)) {
            return Mode::Broken;
        }
        let (m, column) = (&self.measures, self.next_column());
        let close = m.end(open);
        let rest = m.next_line(close);
        let width = m.columns(open, rest) + between(&m.commas, close, rest);
        if !m.forced(open, close) && column + width <= WIDTH {
            return Mode::Flat;
        }
        let Some(block) = self.groups.get(group).and_then(|g| g.hugged) else { return Mode::Broken };
        let start = m.opens.get(block).copied().unwrap_or(close);
        let first = m.next_line(start);
        let end = m.end(start);
        let only = !m.forced(open, start) && !m.forced(end, close);
        let behind = self.margin + 1 + m.columns(end, rest);
        if only && column + m.columns(open, first) <= WIDTH && behind <= WIDTH {
            self.broken = Some(block);
            return Mode::Hugging;
        }
        Mode::Broken
    }

    fn line(&mut self, at: usize, line: Line) {
        let mode = self.frames.last().map_or(Mode::Broken, |f| f.mode);
        let ends = line.forced
            || mode == Mode::Broken
                && match line.kind {
                    LineKind::Soft | LineKind::Blank | LineKind::Hard(_) => true,
                    LineKind::Fill => self.fill_ends(at),
                    LineKind::With(group) => self.is_broken.get(group) == Some(&true),
                };
        if ends {
            self.newline(line.empty);
        } else if line.kind != LineKind::Soft {
            self.space = true;
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.line = self.lines;
        }
    }

    /// Returns true if a new line starts before an element: it does not fit, or the one before it took several lines.
    fn fill_ends(&self, at: usize) -> bool {
        let m = &self.measures;
        let end = m.end(at);
        let last = !matches!(m.ops.get(end), Some(DocPart::Line(Line { kind: LineKind::Fill, .. })));
        let width = m.columns(at, end) + usize::from(last);
        let several = self.frames.last().is_some_and(|f| f.line != self.lines);
        several || m.forced(at + 1, end) || self.column + width > WIDTH
    }
}
