//! Text from outside for a terminal: what a terminal would obey, or what would hide other text, is written as an escape
//! sequence of a string.

use std::borrow::Cow;

/// A text, whose line breaks and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t'))
}

/// A name, which stays on its line.
pub fn escaped_name(name: &str) -> Cow<'_, str> {
    escape(name, |_| true)
}

fn escape(text: &str, also: impl Fn(char) -> bool) -> Cow<'_, str> {
    let acts = |c: char| (c.is_control() || turns(c)) && also(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns true for separators of lines, and for what changes the direction of the text after it.
fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}
