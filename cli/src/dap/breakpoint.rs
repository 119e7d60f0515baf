//! Breakpoints: where one stops, how often, and what it says instead.

/// A breakpoint.
#[derive(Clone, Debug, Default)]
pub struct Breakpoint {
    /// From 1.
    pub line: usize,
    /// It stops only where this is true.
    pub condition: Option<String>,
    /// It stops only when it has been reached so often.
    pub hits: Option<Hits>,
    /// What is said instead of stopping, with `{x}` for values.
    pub log: Option<String>,
    /// How often it was reached.
    pub reached: u64,
    /// Whether it was said that its condition cannot be evaluated.
    pub complained: bool,
}

/// Which of the times that a breakpoint is reached count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// `5`, `==5`
    Only(u64),
    /// `>=5`; `>5` is the next one.
    From(u64),
    /// `%5`: every fifth.
    Every(u64),
}

impl Hits {
    /// Reads what a user has typed; the error is a sentence.
    pub fn parse(text: &str) -> Result<Hits, String> {
        let text = text.trim();
        let number = |n: &str| n.trim().parse::<u64>().ok().filter(|n| *n > 0);
        let found = match text {
            _ if text.starts_with(">=") => number(text.get(2..).unwrap_or("")).map(Hits::From),
            _ if text.starts_with('>') => {
                number(text.get(1..).unwrap_or("")).map(|n| Hits::From(n.saturating_add(1)))
            }
            _ if text.starts_with('%') => number(text.get(1..).unwrap_or("")).map(Hits::Every),
            _ => number(text.trim_start_matches('=')).map(Hits::Only),
        };
        found.ok_or_else(|| format!("the hit count `{text}` is none of `5`, `>=5`, `>5`, `%5`"))
    }

    /// Whether it stops this time.
    pub fn stop(self, reached: u64) -> bool {
        match self {
            Hits::Only(n) => reached == n,
            Hits::From(n) => reached >= n,
            Hits::Every(n) => reached.is_multiple_of(n),
        }
    }
}

/// The text of a log message: `{x}` is the value that `value` gives, `{{` and `}}` are braces.
pub fn logged(message: &str, value: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        text += before;
        let brace = after.get(..1).unwrap_or("");
        let inner = after.get(1..).unwrap_or("");
        match (inner.strip_prefix(brace), inner.split_once('}')) {
            (Some(after), _) => {
                text += brace;
                rest = after;
            }
            (None, Some((name, after))) if brace == "{" => {
                text += &value(name);
                rest = after;
            }
            (None, _) => {
                text += brace;
                rest = inner;
            }
        }
    }
    text + rest
}
