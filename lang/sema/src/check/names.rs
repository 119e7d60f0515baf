//! Spelling suggestions.

use std::cmp::Reverse;

/// The candidate nearest to a misspelt name, if one is near enough to be meant.
///
/// Distance: optimal string alignment (insertions, deletions, substitutions, swaps of neighbours), at most a third of
/// the length and at most 3; ties go to the candidate that begins like the name for longer, then to the first one. Of two
/// letters both have to be there.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A single letter is near to every other one.
    let length = name.chars().count();
    let limit = if length < 2 { 0 } else { (length / 3).clamp(1, 3) };
    let letters: Vec<char> = name.chars().collect();
    let mut best: Option<((usize, Reverse<usize>), &str)> = None;
    for c in candidates {
        let d = if c.eq_ignore_ascii_case(name) { 0 } else { distance(&letters, c, limit) };
        let is_near = length > 2 || d == 0 || c.starts_with(name);
        if d <= limit && c != name && is_near && !differs_in_a_word(name, c) {
            let common = letters.iter().zip(c.chars()).take_while(|(x, y)| *x == y).count();
            let rank = (d, Reverse(common));
            if best.is_none_or(|(b, _)| rank < b) {
                best = Some((rank, c));
            }
        }
    }
    best.map(|(_, c)| c)
}

/// Returns true if a name may be another one by a slip of the fingers: two letters are swapped, one is missing or is there
/// twice. Of short names, other letters are another name: `tan` is no `tanh`.
pub(super) fn is_slip(name: &str, meant: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (name.chars().collect(), meant.chars().collect());
    if a.len() > SHORT || name.eq_ignore_ascii_case(meant) {
        return true;
    }
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = |of: &[char], n: usize| of.get(same + n..).unwrap_or(&[]).to_vec();
    match (a.len(), b.len()) {
        (m, n) if m + 1 == n => rest(&a, 0) == rest(&b, 1),
        (m, n) if m == n + 1 => rest(&a, 1) == rest(&b, 0) && same > 0 && a.get(same) == a.get(same - 1),
        (m, n) if m == n => {
            rest(&a, 2) == rest(&b, 2) && a.get(same) == b.get(same + 1) && a.get(same + 1) == b.get(same)
        }
        (_, _) => false,
    }
}

/// The length up to which a name with other letters is another one.
const SHORT: usize = 6;

/// Returns true for names of as many words, such as `n_rows` and `n_cols`, of which one is another word.
fn differs_in_a_word(name: &str, other: &str) -> bool {
    let words = |s: &str| s.split('_').count();
    if words(name) < 2 || words(name) != words(other) {
        return false;
    }
    name.split('_').zip(other.split('_')).any(|(x, y)| {
        let letters: Vec<char> = x.chars().collect();
        let limit = (letters.len() / 3).max(1);
        distance(&letters, y, limit) > limit
    })
}

/// The distance; anything above `limit` when it is larger than that.
///
/// A file may have a million names to compare with: most are told apart by their length or their first letters.
fn distance(a: &[char], b: &str, limit: usize) -> usize {
    if a.len().abs_diff(b.chars().count()) > limit {
        return usize::MAX;
    }
    // The rows of the table of distances between the beginnings: that of this letter of `a`, and the two before.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let (mut last, mut older) = (vec![0; row.len()], vec![0; row.len()]);
    let mut before = None;
    for (i, x) in a.iter().enumerate() {
        std::mem::swap(&mut older, &mut last);
        std::mem::swap(&mut last, &mut row);
        let (mut left, mut corner, mut two_left, mut nearest) = (i + 1, i, usize::MAX, i + 1);
        let mut previous = None;
        let (first, rest) = row.split_first_mut().map_or((None, &mut [][..]), |(f, r)| (Some(f), r));
        if let Some(first) = first {
            *first = left;
        }
        for (j, ((y, slot), above)) in b.chars().zip(rest).zip(last.iter().skip(1)).enumerate() {
            let mut d = (corner + usize::from(*x != y)).min(above + 1).min(left + 1);
            if before == Some(y) && previous == Some(*x) {
                d = d.min(two_left.saturating_add(1));
            }
            two_left = older.get(j).copied().unwrap_or(usize::MAX);
            (*slot, left, corner, previous) = (d, d, *above, Some(y));
            nearest = nearest.min(d);
        }
        // A swap reaches back over one row, which is not nearer than this one by more than 1.
        if nearest > limit + 1 {
            return usize::MAX;
        }
        before = Some(*x);
    }
    row.get(b.chars().count()).copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{closest, distance};

    #[test]
    fn a_common_beginning_decides_between_equally_near_names() {
        for (name, candidates, best) in [
            ("offsex", ["effset", "offset"], Some("offset")),
            ("rox", ["row", "box"], Some("row")),
            ("rox", ["box", "row"], Some("row")),
            ("cod", ["code", "cold"], Some("code")),
            ("abcx", ["abcy", "abcz"], Some("abcy")),
            ("sum", ["reduce", "scan"], None),
            ("at", ["cat", "any"], None),
            ("ex", ["exp", "max"], Some("exp")),
            ("n_rows", ["n_cols", "n"], None),
            ("n_row", ["n_rows", "n_cols"], Some("n_rows")),
            ("program_di", ["program_id", "num_programs"], Some("program_id")),
        ] {
            assert_eq!(closest(name, candidates.into_iter()), best, "{name} {candidates:?}");
        }
    }

    #[test]
    fn distances_count_insertions_deletions_substitutions_and_swaps() {
        for (a, b, d) in [
            ("", "", 0),
            ("store", "store", 0),
            ("store", "sotre", 1),
            ("store", "stroe", 1),
            ("store", "tsore", 1),
            ("store", "stor", 1),
            ("store", "tore", 1),
            ("store", "stored", 1),
            ("store", "stare", 1),
            ("ca", "abc", 3),
            ("größe", "grösse", 2),
            ("abcdef", "badcfe", 3),
            ("kitten", "sitting", 3),
        ] {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            assert_eq!((distance(&x, b, 3), distance(&y, a, 3)), (d, d), "{a} {b}");
        }
        let x: Vec<char> = "program".chars().collect();
        assert!(distance(&x, "maximum", 2) > 2);
    }
}
