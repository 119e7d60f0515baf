//! The one layout of source text: what `tk fmt` and an editor's "format" do.
//!
//! [`format()`] never changes what a program means: it puts other blanks and line breaks between the same tokens. Only a comma
//! before a closing bracket comes and goes, a repeated `;` goes, and every comment stays. Formatting twice gives the same as once.
//!
//! On the way: [`source`] splits the text, `layout` takes tokens and comments in their order and is told by a walk over
//! the tree (`item`, `stmt`, `expr`) what may stand between them, `print` decides where lines end.

#![forbid(unsafe_code)]

mod changes;
mod expr;
mod item;
mod layout;
mod print;
mod range;
mod source;
mod stmt;

use std::ops::Range;

pub use changes::changes;
use layout::DocBuilder;
use print::{Printed, print};
use source::LexedSource;
use tk_syntax::ast::File;
use tk_syntax::token::Tok;
use tk_syntax::{Diagnostic, FileId, parse};

/// The text in the one layout. A text with syntax errors is refused, with all of them; its [`FileId`] is 0. Lines end as the
/// first one of the text does.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    if has_crlf(text) {
        // Positions of errors are those in the text.
        parsed(text)?;
        return format(&text.replace("\r\n", "\n")).map(|out| out.replace('\n', "\r\n"));
    }
    if text.contains("\r\n") {
        parsed(text)?;
        return format(&text.replace("\r\n", "\n"));
    }
    let file = parsed(text)?;
    let source = lexed(text, &file);
    let layout = laid_out(&source, &file);
    Ok(printed(&layout).map_or_else(|| text.to_string(), |p| p.text))
}

/// Formats the items or statements that a range of bytes touches: what is to be replaced, and by what. `None` if the
/// text has syntax errors or nothing changes.
pub fn format_range(text: &str, range: Range<usize>) -> Option<(Range<usize>, String)> {
    if has_crlf(text) {
        let before = |at: usize| text.get(..at).unwrap_or(text).matches("\r\n").count();
        let short = text.replace("\r\n", "\n");
        let (place, new) =
            format_range(&short, range.start - before(range.start)..range.end - before(range.end))?;
        let breaks = |at: usize| at + short.get(..at).unwrap_or("").matches('\n').count();
        return Some((breaks(place.start)..breaks(place.end), new.replace('\n', "\r\n")));
    }
    let file = parsed(text).ok()?;
    let source = lexed(text, &file);
    let layout = laid_out(&source, &file);
    let tokens = range::touched(&layout, &range)?;
    let (place, new) = range::replacement(&source, &printed(&layout)?, tokens)?;
    let mut changed = text.to_string();
    changed.replace_range(place.clone(), &new);
    let same = same(&source, &LexedSource::new(&changed));
    debug_assert!(same, "another program:\n{text}\n=>\n{changed}");
    same.then_some((place, new))
}

/// Returns true if lines end with two characters, as on Windows: a lone `\n` in such a text becomes one of them.
fn has_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text.get(..at).is_some_and(|line| line.ends_with('\r')))
}

fn parsed(text: &str) -> Result<File, Vec<Diagnostic>> {
    let (file, diagnostics) = parse(FileId(0), text);
    if diagnostics.iter().any(Diagnostic::is_error) { Err(diagnostics) } else { Ok(file) }
}

fn lexed<'s>(text: &'s str, file: &File) -> LexedSource<'s> {
    let mut source = LexedSource::new(text);
    source.undocument_bodies(&file.items);
    source
}

fn laid_out<'s>(source: &'s LexedSource<'s>, file: &File) -> DocBuilder<'s> {
    let mut layout = DocBuilder::new(source);
    layout.file(file);
    layout
}

/// The text in the one layout. `None` if that would be another program, which would be a bug in this crate: an editor that
/// formats on saving must not destroy anything.
fn printed(layout: &DocBuilder<'_>) -> Option<Printed> {
    let printed = print(layout);
    let same = same(layout.source, &LexedSource::new(&printed.text));
    debug_assert!(same, "another program:\n{}\n=>\n{}", layout.source.text, printed.text);
    same.then_some(printed)
}

/// Returns true if two texts have the same tokens, but for commas before closing brackets, and the same comments.
fn same(a: &LexedSource<'_>, b: &LexedSource<'_>) -> bool {
    let comments = |s: &LexedSource<'_>| {
        (0..s.comments.len()).map(|i| s.comment_text(i).to_string()).collect::<Vec<_>>()
    };
    comments(a) == comments(b) && essential(a).eq(essential(b))
}

fn essential<'a>(source: &'a LexedSource<'_>) -> impl Iterator<Item = &'a str> {
    let closes =
        |at: usize| matches!(source.tok(at), Some(Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::Bar));
    let comes_and_goes = move |i: usize| source.tok(i) == Some(Tok::Comma) && closes(i + 1);
    let all = (0..source.tokens.len()).filter(move |i| !comes_and_goes(*i) && !source.repeats(*i));
    all.map(|i| source.token_text(i))
}
