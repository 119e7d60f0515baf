//! The layout that `tk fmt` gives: as small edits, line by line, and for what actions leave.

use std::ops::Range;

use super::actions::Action;
use super::{Place, TextEdit};

/// The edits, as places and texts, that make `new` of a range of a text.
pub fn line_edits(text: &str, range: Range<usize>, new: &str) -> Vec<(Range<usize>, String)> {
    let old = text.get(range.clone()).unwrap_or("");
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    let length = |lines: &[&str]| lines.iter().map(|l| l.len()).sum::<usize>();
    let (mut line, mut at) = (0, range.start);
    let edit = |(replaced, written): (Range<usize>, Range<usize>)| {
        let start = at + length(before.get(line..replaced.start).unwrap_or(&[]));
        let end = start + length(before.get(replaced.clone()).unwrap_or(&[]));
        (line, at) = (replaced.end, end);
        (start..end, after.get(written).unwrap_or(&[]).concat())
    };
    tk_fmt::changes(&before, &after).into_iter().map(edit).collect()
}

/// Has actions leave the line ends of a file, and the layout of `tk fmt` in a file that has it.
pub fn keep_form(text: &str, path: &str, actions: &mut [Action]) {
    let own = |x: &&mut Action| x.edits.iter().all(|e| e.place.path == path);
    actions.iter_mut().filter(own).for_each(|x| keep_line_ends(text, &mut x.edits));
    if actions.is_empty() || tk_fmt::format(text).ok().as_deref() != Some(text) {
        return;
    }
    for action in actions.iter_mut().filter(own) {
        let Some(left) = applied(text, &action.edits) else { continue };
        if let Some(form) = tk_fmt::format(&left).ok().filter(|form| *form != left) {
            let edits = line_edits(text, 0..text.len(), &form).into_iter();
            let place = |r: Range<usize>| Place { path: path.to_string(), start: r.start, end: r.end };
            action.edits = edits.map(|(range, text)| TextEdit { place: place(range), text }).collect();
        }
    }
}

/// A value with the layout of `tk fmt`, if that is one line.
pub fn value_form(value: &str) -> Option<String> {
    let (before, after) = ("const VALUE = ", ";\n");
    let laid_out = tk_fmt::format(&format!("{before}{value}{after}")).ok()?;
    let value = laid_out.strip_prefix(before)?.strip_suffix(after)?;
    (!value.contains('\n')).then(|| value.to_string())
}

/// Has edits of a text end lines as its first one does.
pub fn keep_line_ends(text: &str, edits: &mut [TextEdit]) {
    if !text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r')) {
        return;
    }
    for edit in edits.iter_mut().filter(|e| e.text.contains('\n')) {
        edit.text = edit.text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
}

/// A text after edits of it, which do not overlap.
pub fn applied(text: &str, edits: &[TextEdit]) -> Option<String> {
    let mut order: Vec<&TextEdit> = edits.iter().collect();
    order.sort_by_key(|e| e.place.start);
    let mut out = text.to_string();
    for e in order.iter().rev() {
        let range = e.place.start..e.place.end;
        out.get(range.clone())?;
        out.replace_range(range, &e.text);
    }
    Some(out)
}
