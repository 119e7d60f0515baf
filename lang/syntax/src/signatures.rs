//! Parameters, launches and named arguments as C, C++, Rust and CUDA write them, and what is written here.

use crate::c::of_c;
use crate::diag::{Diagnostic, Replacement};
use crate::explain::StopPoint;
use crate::habits::TUNE;
use crate::token::Tok;

/// The message for a place that shows one of these habits.
pub fn signature(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    launch(s).or_else(|| named(s)).or_else(|| parameter(s))
}

/// `k<<<1, 256>>>(y)`, where the parser stopped after `<<`.
fn launch(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let joined = matches!((s.token(-1), s.token(0)), (Some(a), Some(b)) if a.end == b.start);
    (s.peek(-1) == Some(Tok::Shl) && s.peek(0) == Some(Tok::Lt) && joined).then(|| {
        s.error("a launch is a call, `k(y)`: the kernel has its grid in its signature, `grid(..)`, and `launch(warps = 8)`")
    })
}

/// `sum(v, axis: 0)` and `launch(warps: 8)`.
fn named(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let is_clause = matches!(s.callee(), Some(Tok::Clause(word)) if word != "scratch");
    let is_call = s.is_statement() && matches!(s.callee(), Some(Tok::Id(_)));
    let colon = match (s.peek(-1), s.peek(0)) {
        (Some(Tok::Id(_)), Some(Tok::Colon)) if is_clause || is_call => 0,
        (Some(Tok::Colon), Some(_)) if is_clause && matches!(s.peek(-2), Some(Tok::Id(_))) => -1,
        (_, _) => return None,
    };
    if s.bracket() != Some(Tok::LParen) || !matches!(s.peek(colon - 2), Some(Tok::LParen | Tok::Comma)) {
        return None;
    }
    let place = s.place(s.token(colon)?);
    Some(s.error("an argument is named with `=`, as in `axis = 0`").fix("write `=`", place, " ="))
}

/// Returns true for the words of C that say that memory is reached by one pointer alone.
fn is_restrict(tok: Option<Tok<'_>>) -> bool {
    matches!(tok, Some(Tok::Id("restrict" | "__restrict" | "__restrict__")))
}

/// A parameter of a kernel or function.
fn parameter(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    if !s.is_item() || s.bracket() != Some(Tok::LParen) {
        return None;
    }
    match (s.peek(-1)?, s.peek(0)?) {
        (Tok::Id(word), Tok::Star) if s.peek(-2) != Some(Tok::Colon) => pointer(s, -1, word, "*mut "),
        (Tok::LParen | Tok::Comma, Tok::Const) => match (s.peek(1)?, s.peek(2)?) {
            (Tok::Id(word), Tok::Star) => pointer(s, 0, word, "*"),
            (Tok::Id(word), Tok::Id(name)) => {
                let written = format!("{name}: {}", of_c(word)?);
                let whole = s.span().to(s.place(s.token(2)?));
                let d = s.error(format!("a parameter is written `{written}`"));
                Some(d.fix("write the name first", whole, written))
            }
            (_, _) => None,
        },
        (Tok::Star, Tok::Const) => {
            let d = s.error("a pointer for reading is written without `const`, as in `x: *f32`");
            Some(d.fix("remove `const`", s.span().to(s.place(s.token(1)?).before()), ""))
        }
        (_, _) if is_restrict(s.peek(-1)) && s.peek(-2) == Some(Tok::Star) => {
            let word = s.place(s.token(-1)?).to(s.span().before());
            Some(s.error("there is no `restrict`").fix("remove it", word, ""))
        }
        (Tok::Id(word), Tok::Star) => {
            let whole = s.place(s.token(-1)?).to(s.span());
            let d =
                s.error(format!("a pointer is written `*{word}`, or `*mut {word}` if it is written through"));
            Some(d.fix(format!("write `*mut {word}`"), whole, format!("*mut {word}")))
        }
        (Tok::Id(_), Tok::Lt) if s.peek(-2) == Some(Tok::Colon) => Some(s.error(
            "a pointer is written `*f32`, and types have their arguments in brackets, `view[f32, 1]`",
        )),
        (Tok::LParen | Tok::Comma, Tok::Mut) => mut_before_name(s),
        (Tok::Colon, Tok::Amp) => {
            let d = s.error("there are no references; what is written is `y: mut view[..]`");
            Some(d.fix("remove the `&`", s.span(), ""))
        }
        (_, _) => None,
    }
}

/// `float *x`, whose type begins `offset` places from here.
fn pointer(s: &StopPoint<'_, '_>, offset: isize, word: &str, star: &str) -> Option<Diagnostic> {
    let stars = (offset..).take(6).find(|&i| s.peek(i) == Some(Tok::Star))?;
    let at = if is_restrict(s.peek(stars + 1)) { stars + 2 } else { stars + 1 };
    let Some(Tok::Id(name)) = s.peek(at) else { return None };
    let written = format!("{name}: {star}{}", of_c(word).unwrap_or(word));
    let whole = s.place(s.token(offset)?).to(s.place(s.token(at)?));
    let d = s.error(format!("a pointer as a parameter is written `{written}`"));
    Some(d.fix("write the name first", whole, written))
}

/// `mut y: view[..]`.
fn mut_before_name(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let Some(Tok::Id(name)) = s.peek(1) else { return None };
    if s.peek(2) != Some(Tok::Colon) {
        return None;
    }
    let ty = s.token(3)?;
    let is_pointer = ty.tok == Tok::Star;
    let place = if is_pointer { s.place(ty).after() } else { s.place(ty).before() };
    let written = if is_pointer { format!("{name}: *mut ..") } else { format!("{name}: mut ..") };
    let edits = vec![
        Replacement { span: s.span().to(s.place(s.token(1)?).before()), text: String::new() },
        Replacement { span: place, text: "mut ".to_string() },
    ];
    Some(s.error(format!("`mut` belongs to the type: `{written}`")).fix_all("move `mut`", edits))
}

/// What takes the place of a decorator of Python.
pub fn decorator(name: &str) -> &'static str {
    match name {
        "autotune" => TUNE,
        "heuristics" => {
            "there are no decorators; a default uses the arguments, `kernel k[B: i32 = next_pow2(x.shape[1])](..)`"
        }
        _other => "there are no decorators; a kernel is written `kernel k(..) grid(..) { .. }`",
    }
}
