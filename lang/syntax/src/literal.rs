//! The values of literals: integers, floats and strings as written.
//!
//! Assumes text that the lexer accepted, and survives any other.

/// The value of an integer literal; `None` when it does not fit 128 bits.
pub fn int(text: &str) -> Option<u128> {
    let digits = text.replace('_', "");
    let radix = |prefix: [&str; 2]| prefix.iter().find_map(|p| digits.strip_prefix(p));
    if let Some(d) = radix(["0x", "0X"]) {
        u128::from_str_radix(d, 16).ok()
    } else if let Some(d) = radix(["0b", "0B"]) {
        u128::from_str_radix(d, 2).ok()
    } else if let Some(d) = radix(["0o", "0O"]) {
        u128::from_str_radix(d, 8).ok()
    } else {
        digits.parse().ok()
    }
}

/// A float literal without underscores.
pub fn float(text: &str) -> String {
    text.replace('_', "")
}

/// The text of a string literal with its escapes resolved, and the byte ranges (in `text`) of unknown escapes.
pub fn string(text: &str) -> (String, Vec<std::ops::Range<usize>>) {
    let body = text.strip_prefix('"').unwrap_or(text);
    let (mut out, mut bad) = (String::new(), vec![]);
    let skipped = text.len() - body.len();
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '"' {
            break;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some((next, e)) = chars.next() else { break };
        match e {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            '\\' | '"' => out.push(e),
            'u' => match unicode(body.get(next + 1..).unwrap_or("")) {
                Some((c, length)) => {
                    out.push(c);
                    while chars.peek().is_some_and(|(i, _)| *i <= next + length) {
                        chars.next();
                    }
                }
                None => bad.push(skipped + at..skipped + next + 1),
            },
            _ => bad.push(skipped + at..skipped + next + e.len_utf8()),
        }
    }
    (out, bad)
}

/// `{1F600}` at the start of `text`: the character and how many bytes it took.
fn unicode(text: &str) -> Option<(char, usize)> {
    let (digits, _) = text.strip_prefix('{')?.split_once('}')?;
    // A sign is no digit, though numbers are read with one.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some((c, digits.len() + 2))
}
