//! Changes of a whole file that an editor makes on request or on save: everything that has one safe fix, and imports in
//! order.

use std::ops::Range;

use tk_syntax::ast::{Item, ItemKind};
use tk_syntax::{Code, Diagnostic, Replacement, Span, codes};

use super::actions::{Action, ActionKind};
use super::form::keep_form;
use super::{Analysis, Place, TextEdit, Workspace};

/// What may be mended without a question: the program means the same.
const SAFE: &[Code] = &[codes::UNUSED_MUT, codes::UNUSED_IMPORT];

/// Times that a file is checked again for what a fix has brought to light, such as a last name of an import.
const ROUNDS: usize = 8;

/// The source actions of a file with this text that would change it.
pub fn source_actions(ws: &Workspace, path: &str, text: &str) -> Vec<Action> {
    let mended = mended(ws, path, text, SAFE);
    let organised = organised(ws, path, &self::mended(ws, path, text, &[codes::UNUSED_IMPORT]));
    let action = |title: &str, kind, new: String| {
        let edits = vec![replacement(path, text, &new)?];
        Some(Action { title: title.to_string(), kind, edits, diagnostic: None })
    };
    let all = [
        action("remove what is not needed", ActionKind::FixAll, mended),
        action("organize imports", ActionKind::OrganizeImports, organised),
    ];
    let mut all: Vec<Action> = all.into_iter().flatten().collect();
    keep_form(text, path, &mut all);
    all
}

/// The text after the fixes of these diagnostics.
fn mended(ws: &Workspace, path: &str, text: &str, codes: &[Code]) -> String {
    let mut text = text.to_string();
    for _ in 0..ROUNDS {
        let a = ws.analyse(path, &[(path.to_string(), text.clone())].into());
        let own = |d: &&Diagnostic| codes.contains(&d.code) && d.primary.span.file == Analysis::ROOT;
        let mut edits: Vec<(Span, String)> = vec![];
        for d in a.checked.diagnostics.iter().filter(own) {
            let Some(fix) = d.fixes.first() else { continue };
            let all: Vec<(Span, String)> = fix.edits.iter().map(|e| with_comments(&a, e)).collect();
            let touches = |s: &Span| edits.iter().any(|(t, _)| s.start <= t.end && t.start <= s.end);
            if !all.iter().any(|(s, _)| touches(s)) {
                edits.extend(all);
            }
        }
        if edits.is_empty() {
            break;
        }
        edits.sort_by_key(|(s, _)| std::cmp::Reverse(s.start));
        for (s, new) in edits {
            let range = s.start as usize..s.end as usize;
            if text.get(range.clone()).is_some() {
                text.replace_range(range, &new);
            }
        }
    }
    text
}

/// An edit of a fix; of one that removes an import its comments, too. The comment that begins the file stays, apart from what
/// follows.
pub(super) fn with_comments(a: &Analysis, edit: &Replacement) -> (Span, String) {
    let Replacement { span, text: new } = edit;
    let removed = |i: &&Item| {
        let is_whole = span.start <= i.span.start && i.span.end <= span.end && span.file == i.span.file;
        matches!(i.kind, ItemKind::Use(_)) && new.is_empty() && is_whole
    };
    let item = a.root().and_then(|f| f.items.iter().find(removed));
    item.and_then(|item| removal(a.root_text(), item)).map_or((*span, new.clone()), |(lines, new)| {
        let [start, end] = [lines.start, lines.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        (Span { start, end, ..*span }, new.to_string())
    })
}

/// The lines of an import with its comments, and what remains in their place; `None` if they have more.
fn removal<'t>(text: &'t str, item: &Item) -> Option<(Range<usize>, &'t str)> {
    let (mut start, end) = (begin(text, item), line_end(text, item));
    let (before, after) = (text.get(..start)?, text.get(end..)?);
    let line_break = after.split_inclusive('\n').next().unwrap_or("");
    if !(before.is_empty() || before.ends_with('\n')) || !line_break.trim().is_empty() {
        return None;
    }
    let rest = after.get(line_break.len()..)?;
    let blank = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    let mut lines = before.lines().rev();
    let mut end = end + line_break.len();
    if lines.next().is_some_and(|l| l.trim_start().starts_with("//")) {
        return Some((start..end, if blank == 0 && !rest.is_empty() { line_break } else { "" }));
    }
    if rest.trim().is_empty() {
        let kept = before.trim_end();
        start = kept.len() + before.get(kept.len()..)?.find('\n').map_or(0, |n| n + 1);
        end = text.len();
    } else if before.lines().next_back().is_none_or(|l| l.trim().is_empty()) {
        end += blank;
    }
    Some((start..end, ""))
}

/// The text with the imports of each group in order: those of the standard library first, each once. The comments on the lines
/// directly above an import belong to it.
fn organised(ws: &Workspace, path: &str, text: &str) -> String {
    let a = ws.analyse(path, &[(path.to_string(), text.to_string())].into());
    let Some(root) = a.root() else { return text.to_string() };
    let mut out = text.to_string();
    for group in groups(&root.items, text).iter().rev() {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let line = |i: &&Item| (a.text(i.span), text.get(begin(text, i)..line_end(text, i)).unwrap_or(""));
        let mut lines: Vec<(&str, &str)> = group.iter().map(line).collect();
        // Of two that import the same the one with a comment stays.
        lines.sort_by_key(|(item, line)| {
            (!item.starts_with("use std::"), *item, std::cmp::Reverse(line.len()))
        });
        lines.dedup_by_key(|(item, _)| *item);
        let lines: Vec<&str> = lines.into_iter().map(|(_, line)| line).collect();
        let range = begin(text, first)..line_end(text, last);
        if out.get(range.clone()).is_some() {
            let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
            out.replace_range(range, &lines.join(end));
        }
    }
    out
}

/// The start of an item with the comments on the lines directly above it. A comment that begins the file is about the file.
fn begin(text: &str, item: &Item) -> usize {
    let start = item.span.start as usize;
    let mut at = start;
    for line in text.get(..start).unwrap_or("").split_inclusive('\n').rev() {
        if !line.ends_with('\n') || !line.trim_start().starts_with("//") {
            return at;
        }
        at -= line.len();
    }
    start
}

/// The end of an item with the comment after it.
fn line_end(text: &str, item: &Item) -> usize {
    tk_sema::import::line_end(text, item.span.end as usize)
}

/// Imports on lines that follow one another, with nothing between them but their comments.
fn groups<'a>(items: &'a [Item], text: &str) -> Vec<Vec<&'a Item>> {
    let mut groups: Vec<Vec<&Item>> = vec![];
    let mut last: Option<&Item> = None;
    for item in items {
        let follows = |before: &Item| {
            let between = text.get(line_end(text, before)..begin(text, item)).unwrap_or("//");
            between.trim().is_empty() && between.matches('\n').count() == 1
        };
        let is_use = matches!(item.kind, ItemKind::Use(_));
        match groups.last_mut() {
            Some(group) if is_use && last.is_some_and(follows) => group.push(item),
            _ if is_use => groups.push(vec![item]),
            _ => {}
        }
        last = Some(item).filter(|_| is_use);
    }
    groups.retain(|g| g.len() > 1);
    groups
}

/// The edit between what two texts begin with and what they end with; none if they are the same.
fn replacement(path: &str, old: &str, new: &str) -> Option<TextEdit> {
    if old == new {
        return None;
    }
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let start = same(&mut old.chars().zip(new.chars()));
    let (rest, inserted) = (old.get(start..)?, new.get(start..)?);
    let tail = same(&mut rest.chars().rev().zip(inserted.chars().rev()));
    let text = inserted.get(..inserted.len() - tail)?.to_string();
    Some(TextEdit { place: Place { path: path.to_string(), start, end: old.len() - tail }, text })
}
