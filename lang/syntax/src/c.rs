//! The syntax errors that come from C: declarations and casts.

use crate::diag::Diagnostic;
use crate::explain::StopPoint;
use crate::token::{Tok, Token};

/// The types of C, and those here.
const C_TYPES: [(&str, &str); 10] = [
    ("int", "i32"),
    ("unsigned", "u32"),
    ("uint32_t", "u32"),
    ("long", "i64"),
    ("size_t", "i64"),
    ("float", "f32"),
    ("double", "f64"),
    ("half", "f16"),
    ("__half", "f16"),
    ("bool", "bool"),
];

/// Our own types that a cast of C may name.
const FLOATS_AND_INTEGERS: [&str; 12] =
    ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

/// Our name of a type of C.
pub fn of_c(name: &str) -> Option<&'static str> {
    C_TYPES.iter().find(|(c, _)| *c == name).map(|(_, ours)| *ours)
}

/// The most words before the name in a declaration, such as `const unsigned long long`.
const WORDS: isize = 5;

fn declares(word: Tok<'_>) -> bool {
    matches!(word, Tok::Id(w) if of_c(w).is_some() || ["var", "auto", "val"].contains(&w))
}

fn is_type_word(word: Tok<'_>) -> bool {
    word == Tok::Const || matches!(word, Tok::Id(w) if of_c(w).is_some())
}

/// The number of words before the name in `float x = ..` and `const unsigned int x = ..`.
pub fn words_of_declaration(tokens: &[Token<'_>]) -> Option<usize> {
    let is_word = |t: &&Token<'_>| is_type_word(t.tok) || declares(t.tok);
    let words = tokens.iter().take(WORDS as usize).take_while(is_word);
    let count = words.clone().count();
    let declares = words.last().is_some_and(|t| declares(t.tok));
    match tokens.get(count..)? {
        [name, equal, ..] if declares && matches!(name.tok, Tok::Id(_)) && equal.tok == Tok::Assign => {
            Some(count)
        }
        _ => None,
    }
}

/// Declarations and casts of C: `float x = 0.0;`, `float x` of a kernel, `(float)n`, `__shared__ float s[32];`.
pub fn declared(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let (first, here) = (s.peek(-1)?, s.peek(0)?);
    match (first, here) {
        (Tok::Id("__shared__" | "extern"), Tok::Id(_)) => Some(s.error(
            "shared memory is not declared: a tile is a value, and the compiler uses shared memory where lanes exchange",
        )),
        (Tok::Id(word), Tok::Id(name)) if s.bracket() == Some(Tok::LParen) && !s.is_statement() => {
            let ours = of_c(word)?;
            let whole = s.place(s.token(-1)?).to(s.span());
            let d = s.error(format!("a parameter is written `{name}: {ours}`"));
            Some(d.fix("write the name first", whole, format!("{name}: {ours}")))
        }
        (Tok::Id(word), Tok::Id(_)) if s.is_statement() && s.bracket().is_none() => {
            of_c(word)?;
            let d = s.error("a variable is declared with `let`, or `let mut` if it changes");
            // `const unsigned int w`: all words before the name.
            let is_word = |i: &isize| s.peek(*i).is_some_and(is_type_word);
            let first = (1..WORDS).map(|i| -i).take_while(is_word).last().unwrap_or(-1);
            let before_name = |i: &isize| is_word(i) && matches!(s.peek(i + 1), Some(Tok::Id(_)));
            let last = (0..WORDS).take_while(before_name).last().unwrap_or(-1);
            Some(d.fix("write `let`", s.place(s.token(first)?).to(s.place(s.token(last)?)), "let"))
        }
        (Tok::RParen, Tok::Id(_) | Tok::Int(_) | Tok::Float(_)) => {
            let (Some(Tok::LParen), Some(Tok::Id(word))) = (s.peek(-3), s.peek(-2)) else { return None };
            let ours = of_c(word).or_else(|| FLOATS_AND_INTEGERS.contains(&word).then_some(word))?;
            let d = s.error(format!("a cast is written `x as {ours}`"));
            let operand = s.operand_from(0);
            Some(match operand {
                Some(x) => {
                    let text = s.cx.text.get(x.start as usize..x.end as usize).unwrap_or("");
                    d.fix("write `as`", s.place(s.token(-3)?).to(x), format!("({text} as {ours})"))
                }
                None => d,
            })
        }
        (_, _) => None,
    }
}
