//! The syntax errors that come from other languages: what was meant is clear, so the message can say it.

use crate::c::{declared, words_of_declaration};
use crate::diag::{Diagnostic, Replacement};
use crate::explain::{StopPoint, nesting};
use crate::node::NO_POWER;
use crate::signatures::signature;
use crate::slices;
use crate::span::Span;
use crate::token::{Tok, Token};

/// The message for a place that shows a known habit.
pub fn habit(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let python = signature(s).or_else(|| python(s)).or_else(|| python_items(s));
    python
        .or_else(|| assignment(s))
        .or_else(|| operators(s))
        .or_else(|| declared(s))
        .or_else(|| words(s))
        .or_else(|| items(s))
        .or_else(|| shapes(s))
}

/// Expressions of Python.
fn python(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let (here, before) = (s.peek(0), s.peek(-1));
    match (before, here) {
        (Some(Tok::Id("lambda")), Some(Tok::Id(_) | Tok::Colon)) => Some(lambda(s)),
        (Some(_), Some(Tok::If)) if s.after_operand() && s.is_statement() && s.has_else() => {
            Some(s.error("the condition comes first, `if c { a } else { b }`"))
        }
        (Some(Tok::Id("f" | "F")), Some(Tok::Str(text))) if joined(s) => Some(formatted(s, text)),
        (Some(_), Some(Tok::Id("is"))) if s.after_operand() => Some(is_none(s)),
        (Some(Tok::Id("Some")), Some(Tok::LParen)) if s.peek(-2) == Some(Tok::Let) => Some(unwrapped(s)),
        (Some(Tok::LBracket | Tok::Comma), Some(Tok::Dot)) if s.peek(1) == Some(Tok::Dot) => {
            Some(s.error("there is no `...`; write a `:` for each dimension to keep"))
        }
        _other => None,
    }
}

/// `if x is not None`.
fn is_none(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("there is no `is`; test an optional view with `if let v = x { .. }`");
    let words = (s.peek(-2), s.peek(-1), s.peek(1), s.peek(2), s.peek(3));
    match (words, s.token(-1), s.token(2)) {
        (
            (Some(Tok::If), Some(Tok::Id(x)), Some(Tok::Id("not")), Some(Tok::None), Some(Tok::Block(_))),
            Some(first),
            Some(last),
        ) => d.fix("use `if let`", s.place(first).to(s.place(last)), format!("let {x} = {x}")),
        (_, _, _) => d,
    }
}

/// `if let Some(v) = x`.
fn unwrapped(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("an optional view is tested without `Some`: `if let v = x { .. }`");
    match (s.token(-1), s.peek(1), s.token(2)) {
        (Some(first), Some(Tok::Id(v)), Some(last)) if last.tok == Tok::RParen => {
            d.fix("remove `Some`", s.place(first).to(s.place(last)), v)
        }
        (_, _, _) => d,
    }
}

/// Returns true if nothing is between the token and the one before.
fn joined(s: &StopPoint<'_, '_>) -> bool {
    matches!((s.token(-1), s.token(0)), (Some(a), Some(b)) if a.end == b.start)
}

/// `print(f"start = {start}")`, where the parser stopped after the letter.
fn formatted(s: &StopPoint<'_, '_>, text: &str) -> Diagnostic {
    let d = s.error("there are no texts with values in them; `print(\"i =\", i)` takes texts and values");
    let printed = s.callee() == Some(Tok::Id("print"));
    match (s.token(-1), parts(text.trim_matches('"')).filter(|_| printed)) {
        (Some(letter), Some(parts)) => {
            d.fix("separate texts and values", s.place(letter).to(s.span()), parts.join(", "))
        }
        (_, _) => d,
    }
}

/// The texts and values of a formatted text, if the values are names and simple expressions without a format.
fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![];
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('{') {
        let (value, after) = inside.split_once('}')?;
        let simple =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | ' ' | '+' | '*' | '-');
        if value.trim().is_empty() || !value.chars().all(simple) {
            return None;
        }
        if !before.trim().is_empty() {
            parts.push(format!("\"{}\"", before.trim()));
        }
        parts.push(value.trim().to_string());
        rest = after;
    }
    if !rest.trim().is_empty() || parts.is_empty() {
        parts.push(format!("\"{}\"", rest.trim()));
    }
    Some(parts)
}

/// `lambda a, b: a + b`, where the parser stopped after the word.
fn lambda(s: &StopPoint<'_, '_>) -> Diagnostic {
    if let Some(Tok::Clause(word)) = s.callee() {
        let d = s.error(format!("`{word}` takes values, which may use the parameters, and no function"));
        return if word == "grid" { d.note("the extents themselves: `grid(cdiv(n, BLOCK))`") } else { d };
    }
    let d = s.error("a lambda is written `|a, b| a + b`");
    let parameters = (0..).take_while(|&i| matches!(s.peek(i), Some(Tok::Id(_) | Tok::Comma))).count();
    match (s.token(-1), s.token(parameters as isize)) {
        (Some(word), Some(colon)) if colon.tok == Tok::Colon => {
            let begin = s.place(word).to(s.span().before());
            let edits = vec![
                Replacement { span: begin, text: "|".to_string() },
                Replacement { span: s.place(colon), text: "|".to_string() },
            ];
            d.fix_all("write it with `|`", edits)
        }
        (_, _) => d,
    }
}

/// Items of Python and C++.
fn python_items(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    if !s.is_item() {
        return None;
    }
    match (s.peek(-2), s.peek(-1), s.peek(0)?) {
        (None, None, Tok::Id("def" | "func" | "function" | "void" | "__global__" | "__device__")) => {
            Some(s.error("a function is written `fn f(x: f32) -> f32 { .. }`, and a kernel `kernel k(..) grid(..) { .. }`"))
        }
        (None, None, Tok::Id(word @ ("import" | "from"))) => Some(import(s, word, 0)),
        (None, None, Tok::Id(_)) if s.peek(1) == Some(Tok::Assign) => {
            let d = s.error("a constant is declared with `const`, as in `const N = 16;`");
            let end = s.line_from(0).last().filter(|t| t.tok != Tok::Semi);
            let end = end.map(|t| Replacement { span: s.place(*t).after(), text: ";".to_string() });
            let begin = Replacement { span: s.span().before(), text: "const ".to_string() };
            Some(d.fix_all("declare it with `const`", std::iter::once(begin).chain(end).collect()))
        }
        (None, None, Tok::Id("class")) => Some(s.error("`class` is written `struct`, as in `struct S { a: f32 }`")),
        (Some(Tok::At), Some(Tok::Id(_)), Tok::Dot) => {
            let whole = s.place(s.token(-2)?).to(s.place(s.token(1)?));
            if s.peek(1) == Some(Tok::Id("autotune")) {
                return Some(s.error(TUNE));
            }
            let d = s.error("there are no decorators; a kernel is written `kernel k(..) grid(..) { .. }`");
            // Arguments, such as those of `autotune`, have no other place to go.
            let bare = matches!(s.peek(1)?, Tok::Id(_)) && s.peek(2) != Some(Tok::LParen);
            Some(if bare { d.fix("remove it", whole, "") } else { d })
        }
        _other => None,
    }
}

/// What takes the place of `autotune`.
pub const TUNE: &str = "there are no decorators; candidates are rows behind the signature, `kernel k[B: i32](..) tune(key = (x.shape[0])) { { B = [128, 256] } } { .. }`";

/// Modules of Python whose operations are builtins here.
const MODULES: [&str; 9] = ["numpy", "np", "triton", "torch", "jax", "cupy", "math", "typing", "__future__"];

/// `import` or `from`, `offset` places from here.
fn import(s: &StopPoint<'_, '_>, word: &str, offset: isize) -> Diagnostic {
    if !matches!(s.peek(offset + 1), Some(Tok::Id(module)) if MODULES.contains(&module)) {
        return s
            .error(format!("`{word}` is written `use`, as in `use std::math;`; builtins need no import"));
    }
    let d = s.error(format!("there is no `{word}` of Python modules; operations need no import"));
    let mut end = offset;
    // Imports on the next lines go with it.
    while matches!(s.peek(end), Some(Tok::Id("import" | "from"))) {
        end += s.line_from(end).len() as isize;
    }
    match (s.token(offset), s.token(end - 1)) {
        (Some(first), Some(last)) => d.fix("remove it", s.place(first).to(s.place(last)), ""),
        (_, _) => d,
    }
}

/// `=` where a comparison or a name is wanted, and `:` where `=` is.
fn assignment(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    if s.peek(0) == Some(Tok::Colon) && s.is_row() && matches!(s.peek(-1), Some(Tok::Id(_))) {
        let values = (0..).take_while(|&i| s.peek(i).is_some());
        let named =
            values.filter(|&i| s.peek(i) == Some(Tok::Colon) && matches!(s.peek(i - 1), Some(Tok::Id(_))));
        let edit = |i| Some(Replacement { span: s.place(s.token(i)?), text: " =".to_string() });
        let d = s.error("an entry of a row is written `NAME = value`");
        return Some(d.fix_all("write `=`", named.filter_map(edit).collect()));
    }
    if s.peek(0) != Some(Tok::Assign) || !s.after_operand() {
        return None;
    }
    if s.wants("block") && s.is_statement() {
        return Some(s.error("`=` assigns; a condition compares with `==`").fix("compare", s.span(), "=="));
    }
    if s.bracket().is_none() && s.is_statement() && s.wants(";") {
        return Some(s.error("assignments cannot be chained"));
    }
    if s.bracket() == Some(Tok::LParen) {
        let d = s.error("only a parameter name can precede `=` here, to name an argument");
        return Some(d.fix("compare", s.span(), "=="));
    }
    None
}

/// Operators that do not exist.
fn operators(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let (here, before) = (s.token(0)?, s.token(-1));
    let doubled = before.is_some_and(|b| b.tok == here.tok && b.end == here.start);
    match here.tok {
        Tok::Plus if doubled => {
            let both = s.place(before?).to(s.span());
            let d = s.error("there is no `++`; `i += 1` is a statement of its own");
            let is_value = |t: Tok<'_>| matches!(t, Tok::Let | Tok::Assign | Tok::LParen | Tok::LBracket);
            let mut earlier = (2..).map_while(|i| s.peek(-i));
            Some(if earlier.any(is_value) { d } else { d.fix("add one", both, " += 1") })
        }
        Tok::Dot if doubled => Some(
            s.error("there is no `..`; loops run over `range(start, end)`, and slices are written `a:b`"),
        ),
        Tok::Dot if s.wants_operand() && matches!(s.peek(1), Some(Tok::Int(_))) => {
            Some(s.error("a float needs a digit before the point").fix("add a zero", s.span().before(), "0"))
        }
        Tok::Int(index) if s.peek(-1) == Some(Tok::Dot) => {
            let all = s.place(before?).to(s.span());
            let d = s.error(format!("the elements of a tuple are written `t[{index}]`"));
            Some(d.fix("use brackets", all, format!("[{index}]")))
        }
        _operand if powers(s, -2) => Some(power(s, -2)),
        // A call or an element as the exponent, of which the name was read as a type.
        Tok::LParen | Tok::LBracket if powers(s, -3) => Some(power(s, -3)),
        Tok::At if s.after_operand() => {
            let d = s.error("there is no `@` operator; a matrix product is `dot(a, b)`");
            Some(match (s.operand_before(-1), s.operand_from(1)) {
                (Some(a), Some(b)) => {
                    let text =
                        |span: Span| s.cx.text.get(span.start as usize..span.end as usize).unwrap_or("");
                    d.fix("use `dot`", a.to(b), format!("dot({}, {})", text(a), text(b)))
                }
                (_, _) => d,
            })
        }
        Tok::Colon if slices::in_list(s) => Some(s.error(slices::IN_LIST)),
        Tok::PathSep if s.bracket() == Some(Tok::LBracket) => Some(slices::step(s)),
        Tok::Colon if slices::before_step(s) => Some(slices::step(s)),
        Tok::In if s.after_operand() && !s.wants("in") => Some(slices::membership(s)),
        // A name before `::` begins a path.
        Tok::Int(_)
            if before.is_some_and(|b| b.tok == Tok::PathSep) && s.bracket() == Some(Tok::LBracket) =>
        {
            Some(slices::step(s))
        }
        Tok::Amp | Tok::AndAnd if s.wants_operand() => {
            Some(s.error("there are no references; write the value itself").fix("remove it", s.span(), ""))
        }
        Tok::Bang if s.after_operand() && s.peek(1) == Some(Tok::LParen) => {
            Some(s.error("functions are called without `!`").fix("remove the `!`", s.span(), ""))
        }
        Tok::Plus if s.wants_operand() => {
            Some(s.error("there is no prefix `+`").fix("remove the `+`", s.span(), ""))
        }
        Tok::Question if s.after_operand() && s.is_statement() => {
            Some(s.error("there is no `?`; a choice is written `if c { a } else { b }`"))
        }
        Tok::Question if s.after_operand() => Some(s.error("`?` can only follow a parameter type")),
        _other => None,
    }
}

/// Returns true if two stars without a space are `offset` places from here.
fn powers(s: &StopPoint<'_, '_>, offset: isize) -> bool {
    match (s.token(offset), s.token(offset + 1)) {
        (Some(a), Some(b)) => {
            a.tok == Tok::Star && b.tok == Tok::Star && a.end == b.start && s.in_body(offset - 1)
        }
        (_, _) => false,
    }
}

/// `2 ** N` of a compile-time parameter or a number, which is `1 << N`, between these texts.
fn power_of_two(base: &str, exponent: &str, (before, after): (&str, &str)) -> Option<String> {
    let of_integer = exponent.chars().all(|c| c.is_ascii_digit())
        || exponent.starts_with(|c: char| c.is_ascii_uppercase())
            && exponent.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if base != "2" || !of_integer {
        return None;
    }
    // `<<` binds less tightly than arithmetic.
    let alone = before.trim_end().ends_with(['[', '(', ',', '='])
        && after.trim_start().starts_with([']', ')', ',', ';']);
    Some(if alone { format!("1 << {exponent}") } else { format!("(1 << {exponent})") })
}

/// What `x ** y` is here, between these texts: the title of a fix and its text.
pub fn power_instead(base: &str, exponent: &str, around: (&str, &str)) -> (String, String) {
    if let Some(text) = power_of_two(base, exponent, around) {
        return ("write `<<`".to_string(), text);
    }
    let is_name = base.chars().all(|c| c.is_alphanumeric() || c == '_');
    let text = match exponent.trim_end_matches(".0") {
        "2" if is_name => format!("{base} * {base}"),
        "3" if is_name => format!("{base} * {base} * {base}"),
        "0.5" => format!("sqrt({base})"),
        "-0.5" => format!("rsqrt({base})"),
        _other => return ("use `pow`".to_string(), format!("pow({base}, {exponent})")),
    };
    let title = format!("write `{text}`");
    // What binds as tightly, or tighter.
    let (before, after) = (around.0.trim_end(), around.1.trim_start());
    let alone = before.ends_with(['[', '(', ',', '=', '+', '{', '}', ';'])
        && !(after.starts_with(['.', '[', '(']) || after.starts_with("as "));
    (title, if alone || !text.contains(' ') { text } else { format!("({text})") })
}

/// The message for `x ** y`, whose stars are `stars` places from here, with a fix where both are a name, a number, a call,
/// an element or something in parentheses.
fn power(s: &StopPoint<'_, '_>, stars: isize) -> Diagnostic {
    let d = s.error(NO_POWER);
    let fixed = || {
        let at = stars + 2;
        let sign = isize::from(s.peek(at) == Some(Tok::Minus));
        let right = s.place(s.token(at)?).to(s.operand_from(at + sign)?);
        let left = s.operand_before(stars - 1)?;
        let inner = |span: Span| {
            let text = s.cx.text.get(span.start as usize..span.end as usize).unwrap_or("");
            text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text)
        };
        let whole = left.to(right);
        let before = s.cx.text.get(..whole.start as usize).unwrap_or("");
        let after = s.cx.text.get(whole.end as usize..).unwrap_or("");
        Some((whole, power_instead(inner(left), inner(right), (before, after))))
    };
    match fixed() {
        Some((whole, (title, text))) => d.fix(title, whole, text),
        None => d,
    }
}

/// A statement of another language, as far as it is reported here, in words of ours: its variable is then known.
pub fn as_ours<'s>(tokens: &[Token<'s>]) -> Option<Vec<Token<'s>>> {
    let like = |t: &Token<'s>, tok| Token { tok, reported: true, ..*t };
    let (begin, taken) = match tokens {
        [word, ..] if let Some(words) = words_of_declaration(tokens) => {
            (vec![like(word, Tok::Let), like(word, Tok::Mut)], words)
        }
        [first, x, is, not, none, ..]
            if (first.tok, is.tok, not.tok, none.tok)
                == (Tok::If, Tok::Id("is"), Tok::Id("not"), Tok::None)
                && is_name(x) =>
        {
            (vec![*first, like(is, Tok::Let), *x, like(not, Tok::Assign), *x], 5)
        }
        [first, given, some, open, v, close, ..]
            if (first.tok, given.tok, some.tok, open.tok, close.tok)
                == (Tok::If, Tok::Let, Tok::Id("Some"), Tok::LParen, Tok::RParen)
                && is_name(v) =>
        {
            (vec![*first, *given, *v], 6)
        }
        _ => return None,
    };
    Some(begin.into_iter().chain(tokens.iter().skip(taken).copied()).collect())
}

fn is_name(t: &Token<'_>) -> bool {
    matches!(t.tok, Tok::Id(_))
}

/// Words of other languages.
fn words(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    let replace = |word: &str, with: &str| {
        let d = s.error(format!("`{word}` is written `{with}`"));
        Some(d.write_instead(s.span(), with))
    };
    let word = match s.peek(0)? {
        Tok::Id(word) => word,
        _other => "",
    };
    if s.after_operand() {
        match word {
            "and" => return replace("and", "&&"),
            "or" => return replace("or", "||"),
            _other => {}
        }
    }
    if let Tok::Id(before) = s.peek(-1)? { word_before(s, before) } else { None }
}

/// A word of another language that was read as a name.
fn word_before(s: &StopPoint<'_, '_>, before: &str) -> Option<Diagnostic> {
    let place = s.place(s.token(-1)?);
    let instead = |with: &str| {
        let d = s.error(format!("`{before}` is written `{with}`"));
        Some(d.write_instead(place, with))
    };
    match before {
        "not" => {
            let space = s.place(s.token(-1)?).to(s.span().before());
            let d = s.error("`not` is written `!`");
            // It binds less tightly than a comparison, which `!` does not.
            Some(match s.comparison() {
                Some(all) => {
                    let text = s.cx.text.get(all.start as usize..all.end as usize).unwrap_or("");
                    d.fix("write `!(..)`", space.to(all), format!("!({text})"))
                }
                None => d.fix("write `!`", space, "!"),
            })
        }
        "elif" => instead("else if"),
        "def" | "func" | "function" | "proc" => instead("fn"),
        "var" | "auto" => instead("let mut"),
        "val" => instead("let"),
        "import" | "from" if matches!(s.peek(0)?, Tok::Id(module) if MODULES.contains(&module)) => {
            Some(import(s, before, -1))
        }
        "import" | "from" => instead("use"),
        "loop" => instead("while true"),
        "match" | "switch" => Some(s.error(format!("there is no `{before}`; use `if` and `else if`"))),
        "print" | "assert" if s.is_statement() => Some(called(s, before)),
        _other => None,
    }
}

/// Returns true at the comma of `assert (x == y), "text"`, as in Python.
fn message_outside(s: &StopPoint<'_, '_>) -> bool {
    let text = matches!(s.line_from(1), [Token { tok: Tok::Str(_), .. }, rest @ ..] if matches!(rest, [] | [Token { tok: Tok::Semi, .. }]));
    text && s.head() == Some(Tok::Id("assert")) && s.bracket().is_none() && s.peek(-1) == Some(Tok::RParen)
}

/// What to write instead.
fn message_inside(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error("the text of `assert` is its second argument, `assert(x, \"text\")`");
    match (s.token(-1), s.token(1)) {
        (Some(bracket), Some(text)) => {
            let edits = vec![
                Replacement { span: s.place(bracket), text: String::new() },
                Replacement { span: s.cx.span(text.end, text.end), text: ")".to_string() },
            ];
            d.fix_all("move the bracket", edits)
        }
        (_, _) => d,
    }
}

/// `assert x == y`, where the parser stopped after the word.
fn called(s: &StopPoint<'_, '_>, word: &str) -> Diagnostic {
    let d = s.error(format!("`{word}` is called with parentheses, `{word}(..)`"));
    let line = s.line_from(0);
    let (values, end) = match line {
        [values @ .., last] if last.tok == Tok::Semi => (values, ")"),
        all => (all, ");"),
    };
    let whole = values.iter().map(|t| nesting(t.tok)).sum::<i32>() == 0
        && !values.iter().any(|t| matches!(t.tok, Tok::Block(_) | Tok::Semi));
    match (s.token(-1), values.first(), values.last()) {
        (Some(word), Some(first), Some(last)) if whole => {
            let edits = vec![
                Replacement { span: s.cx.span(word.end, first.start), text: "(".to_string() },
                Replacement { span: s.cx.span(last.end, last.end), text: end.to_string() },
            ];
            d.fix_all("add parentheses", edits)
        }
        (_, _, _) => d,
    }
}

/// Signatures and items as other languages write them.
fn items(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    if s.is_statement() {
        return None;
    }
    match s.peek(0)? {
        Tok::Lt if matches!(s.peek(-2), Some(Tok::Fn | Tok::Kernel | Tok::Struct)) => {
            Some(s.error("compile-time parameters go in brackets: `[T: float]`"))
        }
        Tok::Colon
            if s.wants("block") && s.token(1).is_none_or(|t| t.first || matches!(t.tok, Tok::Block(_))) =>
        {
            Some(s.error("a body is in braces, `{ .. }`, without a `:`").fix("remove the `:`", s.span(), ""))
        }
        Tok::Colon if s.bracket().is_none() && s.peek(-1) == Some(Tok::RParen) => {
            Some(s.error("the result type follows `->`").fix("write `->`", s.span(), " ->"))
        }
        Tok::Arrow if s.wants("block") && !s.wants("->") => {
            Some(s.error("the result type comes before the clauses"))
        }
        Tok::LBracket if matches!(s.peek(-1), Some(Tok::Colon | Tok::Mut)) => Some(array(s)),
        Tok::Const if s.bracket() == Some(Tok::LParen) => {
            Some(s.error("`const` comes before the type: `n: const i32`"))
        }
        Tok::LParen if s.head() == Some(Tok::Export) => {
            Some(s.error("exported values go in brackets: `export k[T = f16];`"))
        }
        Tok::As if s.head() == Some(Tok::Use) && s.bracket() == Some(Tok::LBrace) => {
            Some(s.error("a group has no `as`; write `use path::name as other;` on its own"))
        }
        Tok::Dot if s.head() == Some(Tok::Use) => {
            Some(s.error("path segments are separated by `::`").fix("write `::`", s.span(), "::"))
        }
        Tok::Semi if s.is_field() && s.bracket().is_none() => {
            Some(s.error("fields are separated by `,`").fix("write `,`", s.span(), ","))
        }
        _other => None,
    }
}

/// `x: [f32]`.
fn array(s: &StopPoint<'_, '_>) -> Diagnostic {
    let d = s.error(
        "an array in memory is a `view[f32, 1]` (1 is its rank), or a `mut view[f32, 1]` if it is written",
    );
    match (s.peek(1), s.token(2)) {
        (Some(Tok::Id(elem)), Some(last)) if last.tok == Tok::RBracket => {
            d.fix("write a view", s.span().to(s.place(last)), format!("view[{elem}, 1]"))
        }
        (_, _) => d,
    }
}

/// Blocks where a value is wanted, and values where a block is wanted.
fn shapes(s: &StopPoint<'_, '_>) -> Option<Diagnostic> {
    match s.peek(0)? {
        Tok::If | Tok::Block(_) | Tok::Bar | Tok::OrOr if s.wants_operand() => {
            let what = match s.peek(0)? {
                Tok::If => "an `if`",
                Tok::Block(_) => "a block",
                _bar => "a lambda",
            };
            let (head, before) = (s.head(), s.peek(-1));
            if matches!(head, Some(Tok::If | Tok::While | Tok::For)) && matches!(s.peek(0)?, Tok::Block(_)) {
                let what = if head == Some(Tok::For) { "something to loop over" } else { "a condition" };
                return matches!(before, Some(Tok::If | Tok::While | Tok::In))
                    .then(|| s.error(format!("expected {what} before `{{`")));
            }
            Some(s.error(format!("{what} cannot be an operand; bind it with `let` first")))
        }
        Tok::Block(_) if s.is_statement() && struct_name(s) && !s.wants("block") => {
            Some(s.error("a struct is built with parentheses, `S(field = value)`"))
        }
        Tok::Block(_) if s.is_statement() && s.wants("->") => {
            Some(s.error("a function inside a function is a lambda, `|a, b| a + b`"))
        }
        Tok::Comma if s.bracket().is_none() && s.is_statement() && s.head() == Some(Tok::Let) => {
            let values = s.unpacked().or_else(|| s.values_of_pattern());
            Some(values.unwrap_or_else(|| s.error("each variable has its own `let`")))
        }
        Tok::Comma if message_outside(s) => Some(message_inside(s)),
        Tok::Comma if s.bracket().is_none() && s.after_operand() && s.is_statement() => {
            Some(s.error("a tuple needs parentheses: `(a, b)`"))
        }
        _other if s.head() == Some(Tok::At) && s.is_statement() && s.wants("for") => {
            Some(s.error("attributes must precede a loop or an item"))
        }
        Tok::Colon if s.wants("block") && s.after_operand() && s.is_statement() => {
            let what = if s.head() == Some(Tok::For) { "the loop header" } else { "the condition" };
            Some(s.error(format!("expected `{{` after {what}; a body needs braces")))
        }
        Tok::Colon if s.is_statement() && s.peek(-2).is_none() && matches!(s.peek(-1), Some(Tok::Id(_))) => {
            let place = s.place(s.token(-1)?).before();
            Some(s.error("a variable is declared with `let`").fix("insert `let`", place, "let "))
        }
        Tok::LBracket | Tok::LParen if s.peek(-2) == Some(Tok::As) => {
            Some(s.error("a cast needs parentheses to be indexed or called"))
        }
        Tok::Arrow if s.peek(-1) == Some(Tok::Bar) => Some(s.error("a lambda has no result type")),
        tok if matches!(s.peek(-1), Some(Tok::Block(_))) && infix(tok) && !s.wants_operand() => {
            Some(s.error("a block or `if` cannot be an operand; bind it with `let` first"))
        }
        _other => None,
    }
}

/// Returns true if the name before can be that of a struct.
fn struct_name(s: &StopPoint<'_, '_>) -> bool {
    matches!(s.peek(-1), Some(Tok::Id(_))) && s.peek(-2) != Some(Tok::Let)
}

fn infix(tok: Tok<'_>) -> bool {
    matches!(
        tok,
        Tok::Plus
            | Tok::Minus
            | Tok::Star
            | Tok::Slash
            | Tok::Percent
            | Tok::EqEq
            | Tok::Lt
            | Tok::Gt
            | Tok::As
    ) || matches!(tok, Tok::Dot | Tok::AndAnd | Tok::OrOr | Tok::Le | Tok::Ge | Tok::Ne | Tok::Amp | Tok::Bar)
}
