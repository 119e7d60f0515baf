//! The output of `tk fmt --check`: a unified diff without context.

use std::fmt::Write;

/// The lines that the formatter changes, each group with the numbers of its lines.
pub fn diff(text: &str, formatted: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (text.lines().collect(), formatted.lines().collect());
    let mut out = String::new();
    // Without lines, the number is that of the line before.
    let number = |at: usize, lines: &[&str]| at + usize::from(!lines.is_empty());
    for (old_at, new_at) in tk_fmt::changes(&before, &after) {
        let old = before.get(old_at.clone()).unwrap_or(&[]);
        let new = after.get(new_at.clone()).unwrap_or(&[]);
        let (i, j) = (number(old_at.start, old), number(new_at.start, new));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "@@ -{i},{} +{j},{} @@", old.len(), new.len());
        for (sign, lines) in [('-', old), ('+', new)] {
            for line in lines {
                let _ = writeln!(out, "{sign}{line}");
            }
        }
    }
    if out.is_empty() {
        // Only the line ends differ.
        let _ = writeln!(out, "@@ line endings @@");
    }
    out
}
