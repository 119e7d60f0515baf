//! Suggestions for misspelled names on the command line.

/// `; did you mean `x`?`, or nothing.
pub fn hint(word: &str, candidates: &[&str]) -> String {
    closest(word, candidates).map(|c| format!("; did you mean `{c}`?")).unwrap_or_default()
}

/// The candidate that is near enough to be meant.
pub fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    tk_sema::closest(word, candidates.iter().copied())
}
