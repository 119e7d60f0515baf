//! Owns spelling suggestions.

/// The candidate nearest to a misspelt name, if one is near enough to be meant.
///
/// Distance: optimal string alignment (insertions, deletions, substitutions, swaps of neighbours), at most a third of
/// the length and at most 3; ties go to the first candidate.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A single letter is near to every other one.
    let length = name.chars().count();
    let limit = if length < 2 { 0 } else { (length / 3).clamp(1, 3) };
    let letters: Vec<char> = name.chars().collect();
    let mut best: Option<(usize, &str)> = None;
    for c in candidates {
        let d = if c.eq_ignore_ascii_case(name) { 0 } else { distance(&letters, c, limit) };
        if d <= limit && c != name && best.is_none_or(|(b, _)| d < b) {
            best = Some((d, c));
        }
    }
    best.map(|(_, c)| c)
}

/// The distance; anything above `limit` when it is larger than that.
fn distance(a: &[char], b: &str, limit: usize) -> usize {
    // A file may have a million names to compare with: most are told apart by their length.
    if a.len().abs_diff(b.chars().count()) > limit {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let width = b.len() + 1;
    let mut rows = vec![0usize; (a.len() + 1) * width];
    let at = |rows: &[usize], i: usize, j: usize| rows.get(i * width + j).copied().unwrap_or(usize::MAX / 2);
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let mut v = if i == 0 || j == 0 {
                i + j
            } else {
                let same = a.get(i - 1) == b.get(j - 1);
                let sub = at(&rows, i - 1, j - 1) + usize::from(!same);
                sub.min(at(&rows, i - 1, j) + 1).min(at(&rows, i, j - 1) + 1)
            };
            if i > 1 && j > 1 && a.get(i - 1) == b.get(j - 2) && a.get(i - 2) == b.get(j - 1) {
                v = v.min(at(&rows, i - 2, j - 2) + 1);
            }
            if let Some(slot) = rows.get_mut(i * width + j) {
                *slot = v;
            }
        }
    }
    rows.last().copied().unwrap_or(usize::MAX)
}
