//! The syntax errors of slices and lists: a step, a slice where a list is, `in` with a list.

use crate::diag::Diagnostic;
use crate::explain::StopPoint;
use crate::span::Span;
use crate::token::Tok;

/// The message for `x.load([a:b])`.
pub const IN_LIST: &str = "a slice is an index, and this is a list: a part of a view is loaded by its first position and its shape, `x.load([at], [64])`, and positions of an axis for `gather`, `scatter` and atomics are a tile, `arange(0, 64)`";

/// What takes the place of a step.
pub const STEPS: &str = "`split(reshape(x, [N, 2]))` has the even and the odd elements of a tile of 2 * N; a view of every second element of `v` is `view(v.ptr, [n], [2 * v.strides[0]])`";

/// Returns true at the `:` of `[a:b]` or `[:, 0]` where no index can be.
pub fn in_list(s: &StopPoint<'_, '_>) -> bool {
    s.bracket() == Some(Tok::LBracket) && matches!(s.callee(), Some(Tok::LParen | Tok::Comma))
}

/// Returns true at the second `:` of an index, before a step.
pub fn before_step(s: &StopPoint<'_, '_>) -> bool {
    let mut depth = 0i32;
    let of_item = (1..).map_while(|i| s.peek(-i)).take_while(|t| {
        depth += i32::from(matches!(t, Tok::RParen | Tok::RBracket));
        depth -= i32::from(matches!(t, Tok::LParen | Tok::LBracket));
        depth >= 0 && !(depth == 0 && *t == Tok::Comma)
    });
    s.is_statement() && s.bracket() == Some(Tok::LBracket) && of_item.into_iter().any(|t| t == Tok::Colon)
}

/// The message for `v[a::2]`.
pub fn step(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("slices have no step; they are written `a:b`");
    if s.peek(1) == Some(Tok::Minus) {
        return d
            .note("`flip(x, axis = 0)` reverses a tile, and `x.gather([n - 1 - i])` reads a view backwards");
    }
    d.note(STEPS)
}

/// The message for `row in [1, 2]`.
pub fn membership(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("`in` is only part of a loop; a value is compared with each, `a == 1 || a == 2`");
    match compared(s) {
        Some((whole, text)) => d.write_instead(whole, text),
        None => d,
    }
}

/// The place of `row in [1, 2]`, and the comparisons with all entries of the list.
fn compared(s: &StopPoint<'_, '_>) -> Option<(Span, String)> {
    let left = s.operand_before(-1)?;
    let end = matches!(s.peek(1), Some(Tok::LBracket | Tok::LParen)).then(|| s.closing(1))??;
    let text = |span: Span| s.cx.text.get(span.start as usize..span.end as usize);
    let value = text(left)?;
    // An entry is a token, or a number with its sign.
    let mut entries = vec![];
    for entry in (2..end).collect::<Vec<_>>().split(|i| s.peek(*i) == Some(Tok::Comma)) {
        match entry {
            [one] => entries.push(s.place(s.token(*one)?)),
            [sign, number] if s.peek(*sign) == Some(Tok::Minus) => {
                entries.push(s.place(s.token(*sign)?).to(s.place(s.token(*number)?)));
            }
            [] if !entries.is_empty() => {}
            _longer => return None,
        }
    }
    let parts = entries.into_iter().map(|e| Some(format!("{value} == {}", text(e)?)));
    let joined = parts.collect::<Option<Vec<_>>>()?.join(" || ");
    let whole = left.to(s.place(s.token(end)?));
    let before = s.cx.text.get(..left.start as usize).unwrap_or("").trim_end();
    let alone = before.ends_with("if") || before.ends_with("while") || before.ends_with('=');
    let ended = matches!(s.peek(end + 1), Some(Tok::Block(_) | Tok::Semi) | None);
    let text = if alone && ended { joined } else { format!("({joined})") };
    (!text.contains("()")).then_some((whole, text))
}
