//! The lines that formatting changes.
//!
//! Assumes that both texts are the same but for blanks, line breaks and commas. So lines belong together where as many
//! other characters are before their ends, and the time is linear, which a diff of arbitrary texts is not.

use std::ops::Range;

/// The lines of `before` that differ in `after`, in order, each group with its replacement; either side may be empty.
pub fn changes(before: &[&str], after: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut out = vec![];
    let (mut i, mut j) = (0, 0);
    while i < before.len() || j < after.len() {
        let (end_i, end_j) = together((before, i), (after, j));
        let old = before.get(i..end_i).unwrap_or(&[]);
        let new = after.get(j..end_j).unwrap_or(&[]);
        if old != new {
            let (start, end) = same_ends(old, new);
            out.push((i + start..end_i - end, j + start..end_j - end));
        }
        (i, j) = (end_i, end_j);
    }
    out
}

/// The ends of the shortest groups of lines that are equal but for the layout.
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

/// The number of equal lines at the beginning and at the end.
fn same_ends(old: &[&str], new: &[&str]) -> (usize, usize) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.iter().skip(start), new.iter().skip(start));
    (start, old.rev().zip(new.rev()).take_while(|(a, b)| a == b).count())
}
