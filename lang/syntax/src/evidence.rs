//! Evidence about brackets from tokens: where a `{` is expected, and what cannot be inside a bracket.
//!
//! Plain functions and one small state; [`crate::repair`] acts on them.

use crate::token::{Tok, Token};

/// The construct that the tokens since the last `{`, `}` or `;` begin, where it matters for the next `{`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heading {
    /// Nothing that needs a `{`.
    #[default]
    None,
    /// `fn name` or `kernel name`: lists of parameters follow.
    Function,
    /// The same with its compile-time parameters.
    Generic,
    /// A signature with its run-time parameters: clauses or the body follow.
    Signed,
    /// The same after `tune(..)`: rows may follow.
    Tune,
    /// `for`, `while` or `if` at the start of a statement.
    Statement,
    /// `struct name`.
    Struct,
}

/// The words that open a clause; inside a parameter list they mean that it was not closed.
const CLAUSES: [&str; 7] = ["grid", "launch", "tune", "require", "prefer", "alias", "scratch"];

/// Returns true if `word (` is a clause that the compiler knows.
pub fn clause_word(word: &str, next: Option<Tok<'_>>) -> bool {
    next == Some(Tok::LParen) && CLAUSES.contains(&word)
}

/// Returns true if a word starts statements and nothing else.
pub fn statement_word(tok: Tok<'_>) -> bool {
    match tok {
        Tok::Let | Tok::For | Tok::While | Tok::Return | Tok::Break | Tok::Continue | Tok::Const => true,
        _other => false,
    }
}

/// Returns true if a statement word after `last` starts a statement, and not `if let` or `x: const i32`.
pub fn starts_statement(word: Tok<'_>, last: Option<Tok<'_>>) -> bool {
    match last {
        Some(Tok::If) => word != Tok::Let,
        Some(Tok::Colon | Tok::LParen | Tok::Comma | Tok::Star) => word != Tok::Const,
        Some(_) | None => true,
    }
}

/// Returns true if a token after `last` on the line before can be the first of a statement.
pub fn may_start(tok: Tok<'_>, last: Option<Tok<'_>>) -> bool {
    let complete = match last {
        Some(Tok::Id(_) | Tok::RParen | Tok::RBracket | Tok::Int(_) | Tok::Float(_) | Tok::Str(_)) => true,
        Some(Tok::True | Tok::False | Tok::None | Tok::Question) => true,
        Some(_) | None => false,
    };
    complete && (statement_word(tok) || matches!(tok, Tok::Id(_) | Tok::If))
}

/// Returns true if a `{` after `last` can be a block expression inside parentheses, where no `if` waits for it.
pub fn block_fits(last: Option<Tok<'_>>, in_params: bool) -> bool {
    match last {
        Some(Tok::Id(_) | Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::Int(_) | Tok::Float(_)) => false,
        Some(Tok::True | Tok::False | Tok::None | Tok::Question) => false,
        Some(Tok::LParen | Tok::Comma | Tok::Colon) => !in_params,
        Some(_) | None => true,
    }
}

/// Returns true if `tokens` begin with a block that is followed as an argument is, by `,` or `)`.
pub fn block_is_argument(tokens: &[Token<'_>]) -> bool {
    // A body that follows a list without its `)` is longer, or is followed by something else.
    const REACH: usize = 100;
    let mut depth = 0usize;
    for (i, t) in tokens.iter().enumerate().take(REACH) {
        match t.tok {
            Tok::LBrace => depth += 1,
            Tok::RBrace if depth == 1 => {
                return matches!(tokens.get(i + 1).map(|t| t.tok), Some(Tok::Comma | Tok::RParen));
            }
            Tok::RBrace => depth = depth.saturating_sub(1),
            _other => {}
        }
    }
    false
}

/// The number of parentheses and brackets of `tokens` without a partner if those of `open` precede them.
pub fn unmatched(open: &[Tok<'_>], tokens: &[Token<'_>]) -> usize {
    // Longer lists are rare, and the answer only chooses between messages.
    const REACH: usize = 200;
    let mut count = 0;
    let mut stack: Vec<Tok<'_>> = open.iter().rev().take(REACH).rev().copied().collect();
    for t in tokens.iter().take(REACH) {
        match t.tok {
            Tok::LParen | Tok::LBracket => stack.push(t.tok),
            Tok::RParen | Tok::RBracket => match stack.iter().rposition(|o| closer(*o) == t.tok) {
                Some(partner) => {
                    count += stack.len() - partner - 1;
                    stack.truncate(partner);
                }
                None => count += 1,
            },
            Tok::Semi | Tok::LBrace | Tok::RBrace => break,
            word if statement_word(word) => break,
            _other => {}
        }
    }
    count + stack.len()
}

/// The closing bracket for an opening one.
pub fn closer<'s>(open: Tok<'_>) -> Tok<'s> {
    match open {
        Tok::LParen => Tok::RParen,
        Tok::LBracket => Tok::RBracket,
        _other => Tok::RBrace,
    }
}

/// Returns true if an item that cannot be inside braces starts here: at the start of its line, attributes included.
pub fn starts_item(tokens: &[Token<'_>]) -> bool {
    let Some(first) = tokens.first().filter(|t| t.first) else { return false };
    // Attributes are short; whatever is longer is not looked through.
    const REACH: usize = 32;
    let (mut attribute, mut depth) = (0, 0usize);
    for (i, token) in tokens.iter().enumerate().take(REACH) {
        let next = tokens.get(i + 1).map(|t| t.tok);
        match token.tok {
            Tok::At => attribute = i + 1,
            Tok::LParen if i > 0 => depth += 1,
            Tok::RParen if depth > 0 => depth -= 1,
            _argument if depth > 0 => {}
            Tok::Id(word) if attribute != i || i == 0 => {
                let named =
                    matches!((word, next), ("test", Some(Tok::Str(_))) | ("export", Some(Tok::Id(_))));
                return first.indent == 0 && named;
            }
            Tok::Id(_) => {}
            Tok::Kernel | Tok::Struct => return true,
            Tok::Use => return first.indent == 0,
            // A method is inside the braces of its struct, but not at the start of a line.
            Tok::Fn => return first.indent == 0 && matches!(next, Some(Tok::Id(_))),
            _other if i == 0 => return false,
            _other => {}
        }
    }
    false
}

/// Returns true if rows of `tune` are after a `{`: `{ NAME = value, ..`, which is no block, there `;` would follow.
pub fn opens_rows(tokens: &[Token<'_>]) -> bool {
    let at = |i: usize| tokens.get(i).map(|t| t.tok);
    if !matches!((at(0), at(1), at(2)), (Some(Tok::LBrace), Some(Tok::Id(_)), Some(Tok::Assign))) {
        return false;
    }
    let mut depth = 0usize;
    for t in tokens.iter().skip(3) {
        match t.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => depth += 1,
            Tok::Comma | Tok::RBrace if depth == 0 => return true,
            Tok::RParen | Tok::RBracket | Tok::RBrace => depth = depth.saturating_sub(1),
            Tok::Semi => return false,
            _other => {}
        }
    }
    false
}
