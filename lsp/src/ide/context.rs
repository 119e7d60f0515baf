//! What may be written at a place, from the tokens before it.
//!
//! An item needs no body yet, and nothing after the place is looked at. The first line of a file's item that begins a line
//! ends whatever is open before it.

use tk_syntax::token::Tok;

use super::site::Site;

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context<'s> {
    /// Nothing that is known: a name that is being given, a number.
    Nothing,
    /// An item, at the start of one.
    Item,
    /// An item after its attributes.
    Attributed,
    /// The other arm of an `if` that is part of a value.
    Else,
    /// A clause after the signature of a kernel or a function, whose first token this is.
    Clause {
        /// Whether it is a kernel.
        kernel: bool,
        /// The first token of the item.
        head: usize,
    },
    /// The kernel of an `export`.
    Exported,
    /// The type of a compile-time parameter.
    Bound,
    /// The type of a workspace of a launch: `scratch(w: `.
    Scratch,
    /// A type.
    Type,
    /// A type after `mut`.
    Mutable,
    /// The type of a constant.
    Constant,
    /// The element type of a pointer, a tile or a view; after `*`, where `mut` may follow.
    Element {
        /// Whether it is that of a pointer.
        pointer: bool,
    },
    /// The type after `as`.
    Cast,
    /// An argument of a type after its elements: the extents of a tile; the rank of a view, and the type of its positions.
    Extent {
        /// Whether it is a view.
        is_view: bool,
        /// The number of the argument.
        number: usize,
    },
    /// A value of a compile-time parameter, by its name, of the item that this token names (or whose `tune` this is).
    ParameterValue {
        /// The token of the kernel's name.
        kernel: usize,
        /// The name of the parameter.
        name: &'s str,
    },
    /// A name in a row of `tune`, of the kernel that this token names.
    TuneName {
        /// The token of the kernel's name.
        kernel: usize,
    },
    /// A statement.
    Statement {
        /// Whether `else` may follow.
        after_if: bool,
    },
    /// A field of a struct, whose name is given, or a method.
    Field,
    /// After a row of `tune`.
    TuneCondition,
    /// After the variable of a loop.
    In,
    /// What a loop goes over.
    Loop,
    /// A value.
    Value,
}

/// What may be written at a place.
pub(super) fn context<'s>(site: &Site<'s>) -> Context<'s> {
    if site.after_number || matches!(site.back(1), Some(Tok::Fn | Tok::Kernel | Tok::Struct | Tok::For)) {
        return Context::Nothing;
    }
    match (site.back(1), site.back(2)) {
        (Some(Tok::Let), _) | (Some(Tok::Mut), Some(Tok::Let)) => return Context::Nothing,
        // A code follows, as a string.
        (Some(Tok::Id("assert_error") | Tok::AssertError), _) => return Context::Nothing,
        (Some(Tok::As), _) => return Context::Cast,
        (Some(Tok::In), _) => return Context::Loop,
        _other => {}
    }
    let Brackets { all: open, start } = Brackets::open(site);
    if names_part(site, &open, site.before) {
        return if site.back(1) == Some(Tok::Colon) { Context::Type } else { Context::Nothing };
    }
    match open.last().map(|i| (*i, site.tokens.get(*i).map(|t| t.tok))) {
        None => Head { site, start }.context(),
        Some((i, Some(Tok::LBrace))) => braces(site, &open, i),
        Some((i, _)) => brackets(site, &open, i),
    }
}

/// Returns true if what comes before a token is in a pattern, in these brackets: of a `let` or a loop, or the parameters of a
/// lambda.
fn names_part(site: &Site, open: &[usize], end: usize) -> bool {
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let before = |i: usize| i.checked_sub(1).and_then(tok);
    let (from, outer) = open.split_last().map_or((0, open), |(o, outer)| (*o + 1, outer));
    let mut in_lambda = false;
    for i in site.level(from, end) {
        in_lambda = match tok(i) {
            Some(Tok::Bar) if in_lambda => false,
            // Where an operand begins.
            Some(Tok::Bar) => matches!(
                before(i),
                Some(Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::Comma | Tok::Assign | Tok::Return)
            ),
            Some(Tok::Semi) => false,
            _other => in_lambda,
        };
    }
    in_lambda
        || open.last().is_some_and(|at| match (tok(*at), before(*at)) {
            (Some(Tok::LParen), Some(Tok::Let | Tok::For)) => true,
            (Some(Tok::LParen), Some(Tok::LParen | Tok::Comma | Tok::Bar)) => names_part(site, outer, *at),
            _value => false,
        })
}

/// The name of the parameter or the constant of the file that the place is part of.
pub(super) fn declared<'s>(site: &Site<'s>) -> Option<&'s str> {
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let declares = |open: usize| {
        let before = site.callee(open).and_then(|c| c.checked_sub(1));
        matches!(before.and_then(tok), Some(Tok::Fn | Tok::Kernel | Tok::Struct))
    };
    for (i, t) in site.outward(site.before) {
        match t.tok {
            Tok::Const => {
                let in_body = site.outward(i).any(|(_, t)| t.tok == Tok::LBrace);
                return match tok(i + 1) {
                    Some(Tok::Id(name)) if !in_body => Some(name),
                    _other => None,
                };
            }
            Tok::LParen | Tok::LBracket if declares(i) => return segment(site, i).name,
            Tok::Semi | Tok::Let => return None,
            _other => {}
        }
    }
    None
}

/// The brackets that are open at a place, outermost first.
struct Brackets {
    all: Vec<usize>,
    /// The first token of the item.
    start: usize,
}

impl Brackets {
    fn open(site: &Site) -> Brackets {
        let mut found = Brackets { all: vec![], start: 0 };
        for (i, t) in site.tokens.iter().enumerate().take(site.before) {
            if t.first && site.begins_line(i) && starts_item(t.tok) {
                found = Brackets { all: vec![], start: i };
            }
            match t.tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace => found.all.push(i),
                Tok::RParen | Tok::RBracket | Tok::RBrace => {
                    let partner = found.all.iter().rposition(|o| site.closes(*o, t.tok));
                    if let Some(at) = partner {
                        found.all.truncate(at);
                    }
                    // A body ends its item; the rows of `tune` and a value do not.
                    let in_const = site.tokens.get(found.start).is_some_and(|t| t.tok == Tok::Const);
                    if t.tok == Tok::RBrace && found.all.is_empty() && !site.ends_tune(i) && !in_const {
                        found.start = i + 1;
                    }
                }
                // It ends what was left open in its statement.
                Tok::Semi => {
                    let brace = |o: &usize| site.tokens.get(*o).is_some_and(|t| t.tok == Tok::LBrace);
                    found.all.truncate(found.all.iter().rposition(brace).map_or(0, |n| n + 1));
                    if found.all.is_empty() {
                        found.start = i + 1;
                    }
                }
                _other => {}
            }
        }
        found
    }
}

/// Returns true if a token can begin an item.
fn starts_item(t: Tok) -> bool {
    matches!(t, Tok::Use | Tok::Const | Tok::Struct | Tok::Fn | Tok::Kernel | Tok::At)
        || matches!(t, Tok::Id("export" | "test"))
}

/// An item, or a method, up to a place that is in none of its brackets.
struct Head<'a, 's> {
    site: &'a Site<'s>,
    start: usize,
}

impl<'s> Head<'_, 's> {
    fn context(self) -> Context<'s> {
        let (site, mut start) = (self.site, self.start);
        let tok = |i: usize| site.tokens.get(i).filter(|_| i < site.before).map(|t| t.tok);
        while tok(start) == Some(Tok::At) && matches!(tok(start + 1), Some(Tok::Id(_))) {
            start += 2;
        }
        let last = if start < site.before { site.back(1) } else { None };
        let level = || site.level(start, site.before);
        let has = |t: Tok| level().any(|i| tok(i) == Some(t));
        match tok(start) {
            None if start > self.start => Context::Attributed,
            None => Context::Item,
            Some(Tok::Const) if last == Some(Tok::Colon) => Context::Constant,
            Some(Tok::Const) if last == Some(Tok::RBrace) && site.at_margin => Context::Item,
            Some(Tok::Const) if has(Tok::Assign) => value(site),
            Some(word @ (Tok::Fn | Tok::Kernel)) => match last {
                Some(Tok::Arrow) => Context::Type,
                Some(Tok::Mut) if has(Tok::Arrow) => Context::Mutable,
                Some(Tok::Star) if has(Tok::Arrow) => Context::Element { pointer: true },
                Some(Tok::RParen | Tok::RBrace) => {
                    Context::Clause { kernel: word == Tok::Kernel, head: start }
                }
                Some(Tok::Id(_) | Tok::RBracket | Tok::Question) if has(Tok::Arrow) => {
                    Context::Clause { kernel: word == Tok::Kernel, head: start }
                }
                _name_or_parameters => Context::Nothing,
            },
            Some(Tok::Id("export")) if start + 1 == site.before => Context::Exported,
            _given => Context::Nothing,
        }
    }
}

/// The part of a list that the place is in: the tokens since the last comma.
struct Segment<'s> {
    name: Option<&'s str>,
    has_colon: bool,
    has_value: bool,
}

fn segment<'s>(site: &Site<'s>, open: usize) -> Segment<'s> {
    let level: Vec<usize> = site.level(open + 1, site.before).collect();
    let tok = |i: &usize| site.tokens.get(*i).map(|t| t.tok);
    let from = level.iter().rposition(|i| tok(i) == Some(Tok::Comma)).map_or(0, |n| n + 1);
    let part: Vec<Tok> = level.iter().skip(from).filter_map(tok).collect();
    Segment {
        name: part.iter().find_map(|t| if let Tok::Id(n) = t { Some(*n) } else { None }),
        has_colon: part.contains(&Tok::Colon),
        has_value: part.contains(&Tok::Assign),
    }
}

/// In a value that no block is around.
fn value<'s>(site: &Site) -> Context<'s> {
    match site.back(1) {
        Some(Tok::RBrace) if site.ends_if() => Context::Else,
        Some(Tok::RBrace) => Context::Nothing,
        _other => Context::Value,
    }
}

/// In `(` or `[`.
fn brackets<'s>(site: &Site<'s>, open: &[usize], at: usize) -> Context<'s> {
    let tok = |i: Option<usize>| i.and_then(|i| site.tokens.get(i)).map(|t| t.tok);
    if site.back(1) == Some(Tok::RBrace) {
        return value(site);
    }
    let is_bracket = tok(Some(at)) == Some(Tok::LBracket);
    let callee = site.callee(at);
    let before = callee.and_then(|c| c.checked_sub(1));
    let part = segment(site, at);
    let named = matches!(tok(callee), Some(Tok::Id(_)));
    match tok(before) {
        // The parameters of an item.
        Some(Tok::Fn | Tok::Kernel | Tok::Struct) if named => match (part.has_value, part.has_colon) {
            (true, _) => Context::Value,
            (false, true) if is_bracket && site.back(1) == Some(Tok::Bar) => {
                Context::Element { pointer: false }
            }
            (false, true) if is_bracket => Context::Bound,
            (false, true) => type_part(site),
            (false, false) => Context::Nothing,
        },
        Some(Tok::Id("export")) if named && is_bracket => exported(site, callee, &part),
        _other => {
            // The type of a function, a tuple as a type; the colon of a slice has no type.
            let outer = open.iter().rev().nth(1).copied();
            let in_index = tok(outer) == Some(Tok::LBracket) && tok(at.checked_sub(1)) == Some(Tok::Colon);
            let begins_type = matches!(tok(at.checked_sub(1)), Some(Tok::Fn | Tok::Arrow | Tok::Colon));
            if !is_bracket && begins_type && !in_index {
                return Context::Type;
            }
            if matches!(tok(callee), Some(Tok::Id("tile" | "view"))) && is_bracket && site.before == at + 1 {
                return Context::Element { pointer: false };
            }
            if let Some(Tok::Id(word @ ("tile" | "view"))) = tok(callee)
                && is_bracket
                && site.back(1) == Some(Tok::Comma)
            {
                let commas = site.level(at + 1, site.before).filter(|i| tok(Some(*i)) == Some(Tok::Comma));
                return Context::Extent { is_view: word == "view", number: commas.count() };
            }
            // `[a, b]` as a value of a parameter.
            let is_list = is_bracket && tok(at.checked_sub(1)) == Some(Tok::Assign);
            if let (true, Some(outer)) = (is_list, outer) {
                let found = match tok(Some(outer)) {
                    Some(Tok::LBrace) => braces(site, open.get(..open.len() - 1).unwrap_or(&[]), outer),
                    _ => brackets(site, open.get(..open.len() - 1).unwrap_or(&[]), outer),
                };
                if let Context::ParameterValue { .. } = found {
                    return found;
                }
            }
            let is_scratch = tok(callee) == Some(Tok::Id("scratch"));
            if is_scratch && !is_bracket && open.len() == 1 {
                let is_first = !site.level(at + 1, site.before).any(|i| tok(Some(i)) == Some(Tok::Comma));
                match site.back(1) {
                    Some(Tok::Colon) => return Context::Scratch,
                    _name if is_first && !part.has_colon => return Context::Nothing,
                    _other => {}
                }
            }
            if part.has_colon && !part.has_value && (is_scratch || ends_type(site)) && !is_bracket {
                return type_part(site);
            }
            Context::Value
        }
    }
}

fn exported<'s>(site: &Site<'s>, kernel: Option<usize>, part: &Segment<'s>) -> Context<'s> {
    match (kernel, part.name, part.has_value) {
        (Some(kernel), Some(name), true) if site.back(1) != Some(Tok::Id(name)) => {
            Context::ParameterValue { kernel, name }
        }
        _name => Context::Value,
    }
}

/// Returns true if the tokens before the place are a type that goes on: `: mut`, `: *`.
fn ends_type(site: &Site) -> bool {
    matches!(site.back(1), Some(Tok::Mut | Tok::Star | Tok::Colon))
}

/// In a type, after its colon.
fn type_part<'s>(site: &Site<'s>) -> Context<'s> {
    match (site.back(1), site.back(2)) {
        (Some(Tok::Mut), Some(Tok::Star)) => Context::Element { pointer: false },
        (Some(Tok::Mut), _) => Context::Mutable,
        (Some(Tok::Const), _) => Context::Bound,
        (Some(Tok::Star), _) => Context::Element { pointer: true },
        (Some(Tok::Colon | Tok::Arrow | Tok::Bar), _) => Context::Type,
        _complete => Context::Nothing,
    }
}

/// In braces: fields, rows of `tune`, statements.
fn braces<'s>(site: &Site<'s>, open: &[usize], at: usize) -> Context<'s> {
    let tok = |i: Option<usize>| i.and_then(|i| site.tokens.get(i)).map(|t| t.tok);
    let outer = open.iter().rev().nth(1).copied();
    if let Some(kernel) = outer.and_then(|o| site.tuned(o)) {
        let part = segment(site, at);
        return match (part.name, part.has_value) {
            (_, true) if site.back(1) == Some(Tok::RBrace) => value(site),
            (Some(name), true) => Context::ParameterValue { kernel, name },
            _name => Context::TuneName { kernel },
        };
    }
    if site.tuned(at).is_some() {
        let level: Vec<usize> = site.level(at + 1, site.before).collect();
        let from = level.iter().rposition(|i| tok(Some(*i)) == Some(Tok::Comma)).map_or(0, |n| n + 1);
        let has_if = level.iter().skip(from).any(|i| tok(Some(*i)) == Some(Tok::If));
        return match site.back(1) {
            _ if has_if => value(site),
            Some(Tok::RBrace) => Context::TuneCondition,
            _next_row => Context::Nothing,
        };
    }
    let name = site.generic_name(at);
    if name.is_some_and(|n| tok(n.checked_sub(1)) == Some(Tok::Struct)) {
        return field(site, at);
    }
    // `let a: T`
    let has = |t: Tok| site.statement(at).any(|i| tok(Some(i)) == Some(t));
    if has(Tok::Let) && !has(Tok::Assign) && has(Tok::Colon) {
        return type_part(site);
    }
    if has(Tok::Const) && !has(Tok::Assign) {
        return if site.back(1) == Some(Tok::Colon) { Context::Constant } else { Context::Nothing };
    }
    if site.back(1) == Some(Tok::Colon) && matches!(site.back(2), Some(Tok::Id(_))) {
        return Context::Type;
    }
    if site.back(2) == Some(Tok::For) && matches!(site.back(1), Some(Tok::Id(_))) {
        return Context::In;
    }
    match site.back(1) {
        Some(Tok::RBrace) => Context::Statement { after_if: site.ends_if() },
        None | Some(Tok::Semi | Tok::LBrace) => Context::Statement { after_if: false },
        Some(_) => Context::Value,
    }
}

/// In the braces of a struct: a field, or a method.
fn field<'s>(site: &Site<'s>, at: usize) -> Context<'s> {
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let ends = |i: &usize| matches!(tok(*i), Some(Tok::Comma | Tok::RBrace));
    let level: Vec<usize> = site.level(at + 1, site.before).collect();
    let from = level.iter().rposition(ends).map_or(0, |n| n + 1);
    let Some(start) = level.get(from).copied() else { return Context::Field };
    if level.iter().skip(from).any(|i| tok(*i) == Some(Tok::Fn)) {
        return Head { site, start }.context();
    }
    if level.iter().skip(from).any(|i| tok(*i) == Some(Tok::Colon)) {
        return type_part(site);
    }
    Context::Nothing
}

/// The text with an end for the item that the place is in, if it has none: the word being written is replaced by one that fits,
/// what is open is closed, a signature gets a body, and what follows up to the next item is left out. Offsets up to the word
/// stay.
pub(super) fn completed(site: &Site, text: &str) -> Option<String> {
    let Brackets { all: open, mut start } = Brackets::open(site);
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    while tok(start) == Some(Tok::At) {
        start += 2;
    }
    let is_test = tok(start) == Some(Tok::Id("test"));
    if start >= site.before || !(is_test || matches!(tok(start), Some(Tok::Fn | Tok::Kernel))) {
        return None;
    }
    let after = (site.before..site.tokens.len())
        .skip_while(|i| tok(*i).is_some() && site.tokens[*i].start < site.end);
    let next = after.clone().find(|i| site.begins_line(*i) && tok(*i).is_some_and(starts_item));
    let rest: Vec<usize> = after.take_while(|i| next.is_none_or(|n| *i < n)).collect();
    let is_body = |i: &usize| tok(*i) == Some(Tok::LBrace) && site.tuned(*i).is_none();
    let in_body = open.first().is_some_and(is_body);
    let context = context(site);
    let is_value =
        matches!(context, Context::Value | Context::Extent { .. }) || site.back(1) == Some(Tok::Dot);
    let closes = |i: usize| matches!(tok(i), Some(Tok::RParen | Tok::RBracket | Tok::RBrace));
    // A statement of a lambda in a call that goes on.
    let is_open = |i: &usize| matches!(tok(*i), Some(Tok::LParen | Tok::LBracket));
    let is_of_lambda = matches!(context, Context::Statement { .. }) && open.iter().any(is_open);
    let has_end = if in_body {
        !(is_value || is_of_lambda) || rest.iter().any(|i| !closes(*i))
    } else {
        is_test || has_body(site, &open, &rest)
    };
    if has_end {
        return None;
    }
    let mut out = text.get(..site.start)?.to_string();
    out += match (context, site.back(1)) {
        (_, Some(Tok::Dot)) => "shape",
        (Context::Type | Context::Element { .. } | Context::Cast, _) => "f32",
        (Context::Mutable, _) => "view[f32, 1]",
        (Context::Scratch, _) => "*mut u32",
        (Context::Bound, _) => "i32",
        (Context::Extent { .. }, _) => "1",
        (Context::Value | Context::Statement { .. }, _) => "0",
        _other => "",
    };
    // The rest of a signature is kept where it closes what is open.
    let signature = rest_of_signature(site, &open, &rest).filter(|_| !in_body);
    match signature.and_then(|end| text.get(site.end..end)) {
        Some(kept) => out += kept,
        None => close(site, &open, in_body, &mut out),
    }
    if in_body {
        out.push('\n');
    } else {
        let in_parameters = open.first().is_some_and(|i| tok(*i) == Some(Tok::LParen));
        let end = signature.map_or(site.before, |end| site.tokens.partition_point(|t| t.end <= end));
        let has_parameters = in_parameters || site.level(start, end).any(|i| tok(i) == Some(Tok::RParen));
        let in_tune = open.first().is_some_and(|i| tok(i.saturating_sub(1)) == Some(Tok::Id("tune")));
        out += if has_parameters { "" } else { "()" };
        out += if in_tune { " {} {}\n" } else { " {}\n" };
    }
    out += next.and_then(|n| site.tokens.get(n)).and_then(|t| text.get(t.start..)).unwrap_or("");
    Some(out)
}

/// Returns true if a body follows among the tokens after the place: a block where nothing is open any more.
fn has_body(site: &Site, open: &[usize], rest: &[usize]) -> bool {
    let mut open = open.to_vec();
    for i in rest {
        match site.tokens.get(*i).map(|t| t.tok) {
            Some(Tok::LBrace) if open.is_empty() && site.tuned(*i).is_none() => return true,
            Some(Tok::LParen | Tok::LBracket | Tok::LBrace) => open.push(*i),
            Some(close @ (Tok::RParen | Tok::RBracket | Tok::RBrace)) => {
                if let Some(at) = open.iter().rposition(|o| site.closes(*o, close)) {
                    open.truncate(at);
                }
            }
            _other => {}
        }
    }
    false
}

/// Where the tokens after the place end, which are the rest of its signature: they close just the brackets that are open.
fn rest_of_signature(site: &Site, open: &[usize], rest: &[usize]) -> Option<usize> {
    let mut open = open.to_vec();
    for i in rest {
        match site.tokens.get(*i)?.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => open.push(*i),
            close @ (Tok::RParen | Tok::RBracket | Tok::RBrace) => {
                open.pop().filter(|o| site.closes(*o, close))?;
            }
            _other => {}
        }
    }
    let last = rest.last().and_then(|i| site.tokens.get(*i));
    last.filter(|_| open.is_empty()).map(|t| t.end)
}

/// Closes brackets, and ends the statements of the blocks among them; the `if`, `for` or `while` whose head the place is in
/// gets a block.
fn close(site: &Site, open: &[usize], in_body: bool, out: &mut String) {
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let mut is_innermost = true;
    for at in open.iter().rev() {
        match tok(*at) {
            Some(Tok::LParen) => out.push(')'),
            Some(Tok::LBracket) => out.push(']'),
            _brace if in_body => {
                let is_head = |i| matches!(tok(i), Some(Tok::If | Tok::For | Tok::While));
                let is_head = is_innermost && site.statement(*at).any(is_head);
                out.push_str(if is_head { " {}; }" } else { "; }" });
                is_innermost = false;
            }
            _brace => out.push('}'),
        }
    }
}
