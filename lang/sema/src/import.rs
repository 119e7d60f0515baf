//! Where a new `use` goes in a file: below the other imports, or below the comment that the file begins with.

use tk_syntax::ast::{File, ItemKind};

/// The offset at which a `use` of a path is added to a file, and its text with the line ends of the file.
pub fn added(file: &File, text: &str, path: &str) -> (usize, String) {
    let (at, new) = place(file, text, path);
    let is_crlf = text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r'));
    (at, if is_crlf { new.replace('\n', "\r\n") } else { new })
}

fn place(file: &File, text: &str, path: &str) -> (usize, String) {
    if let Some(last) = file.items.iter().rfind(|i| matches!(i.kind, ItemKind::Use(_))) {
        return (line_end(text, last.span.end as usize), format!("\nuse {path};"));
    }
    // After the comment that begins the file and is about nothing below it.
    let first = file.items.first().map_or(0, |i| i.span.start as usize);
    let head = text.get(..first).unwrap_or("");
    let blank =
        ["\n\n", "\n\r\n"].into_iter().filter_map(|blank| Some(head.find(blank)? + blank.len())).min();
    let at = blank.filter(|_| head.trim_start().starts_with("//")).unwrap_or(0);
    (at, format!("use {path};\n\n"))
}

/// The end of an item that ends at an offset, with the comment after it on its line.
pub fn line_end(text: &str, end: usize) -> usize {
    let line = text.get(end..).and_then(|rest| rest.lines().next()).unwrap_or("");
    if line.trim_start().starts_with("//") { end + line.trim_end().len() } else { end }
}
