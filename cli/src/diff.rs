//! Owns how `tk fmt --check` shows what would change: a unified diff without context.
//!
//! Assumes that both texts are the same but for blanks, line breaks and commas. So lines belong together where as many
//! other characters are in front of their ends, and the time is linear, which a diff of arbitrary texts is not.

use std::fmt::Write;

/// The lines that differ, each group with the numbers of its lines.
pub fn diff(before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut out = String::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (end_i, end_j) = together((&a, i), (&b, j));
        let old = a.get(i..end_i).unwrap_or(&[]);
        let new = b.get(j..end_j).unwrap_or(&[]);
        if old != new {
            hunk(&mut out, (i, old), (j, new));
        }
        (i, j) = (end_i, end_j);
    }
    if out.is_empty() {
        // Only the line ends differ.
        let _ = writeln!(out, "@@ the ends of lines @@");
    }
    out
}

/// Where the shortest lists of lines end that hold the same but for the layout.
fn together(a: (&[&str], usize), b: (&[&str], usize)) -> (usize, usize) {
    let weight = |lines: &[&str], at: usize| {
        let counts = |c: &char| !c.is_whitespace() && *c != ',' && *c != '\u{feff}';
        lines.get(at).map_or(0, |l| l.chars().filter(counts).count())
    };
    let (mut i, mut j) = (a.1 + 1, b.1 + 1);
    let (mut left, mut right) = (weight(a.0, a.1), weight(b.0, b.1));
    while left != right && (i < a.0.len() || j < b.0.len()) {
        if left < right && i < a.0.len() || j >= b.0.len() {
            left += weight(a.0, i);
            i += 1;
        } else {
            right += weight(b.0, j);
            j += 1;
        }
    }
    (i.min(a.0.len()), j.min(b.0.len()))
}

/// One group of lines, without those that are the same at its beginning and end.
fn hunk(out: &mut String, (mut i, mut old): (usize, &[&str]), (mut j, mut new): (usize, &[&str])) {
    while let ([a, old_rest @ ..], [b, new_rest @ ..]) = (old, new)
        && a == b
    {
        (i, j, old, new) = (i + 1, j + 1, old_rest, new_rest);
    }
    while let ([old_rest @ .., a], [new_rest @ .., b]) = (old, new)
        && a == b
    {
        (old, new) = (old_rest, new_rest);
    }
    // Where there are no lines, the number is that of the line in front.
    let number = |at: usize, lines: &[&str]| at + usize::from(!lines.is_empty());
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{},{} +{},{} @@", number(i, old), old.len(), number(j, new), new.len());
    for (sign, lines) in [('-', old), ('+', new)] {
        for line in lines {
            let _ = writeln!(out, "{sign}{line}");
        }
    }
}
