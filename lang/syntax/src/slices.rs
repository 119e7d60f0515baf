//! The syntax errors of slices: a step, and a slice where a list is.

use crate::diag::Diagnostic;
use crate::explain::StopPoint;
use crate::token::Tok;

/// The message for `x.load([a:b])`.
pub const IN_LIST: &str = "a slice is an index, and this is a list: a part of a view is loaded by its first position and its shape, `x.load([at], [64])`";

/// Returns true at the `:` of `[a:b]` or `[:, 0]` where no index can be.
pub fn in_list(s: &StopPoint<'_, '_>) -> bool {
    s.bracket() == Some(Tok::LBracket) && matches!(s.callee(), Some(Tok::LParen | Tok::Comma))
}

/// The message for `v[a::2]`.
pub fn step(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("slices have no step; they are written `a:b`");
    if s.peek(1) == Some(Tok::Minus) {
        return d
            .note("`flip(x, axis = 0)` reverses a tile, and `x.gather([n - 1 - i])` reads a view backwards");
    }
    d.note(
        "`split(reshape(x, [N, 2]))` has the even and the odd elements of a tile of 2 * N; a view of every second element of `v` is `view(v.ptr, [n], [2 * v.strides[0]])`",
    )
}
