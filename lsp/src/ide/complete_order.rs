//! The order of completions: what has followed the same tokens in the library and in the file, what is near, what has not
//! been used yet, and what fits (`complete_fit`).
//!
//! Counts of words after one, two and three tokens, after five with any names, in one argument of a call and in any, as
//! language models by n-grams have them; tests and other code are counted apart, because they have other habits. A name of
//! the scope needs no count. The weights were found by halving and doubling each on 5,800 words of the examples, the
//! tutorial's solutions and the library, without the file that is completed: changes of the language's habits would change
//! them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use tk_syntax::ast::{Item, ItemKind};
use tk_syntax::token::{Tok, lex};

use super::complete::{Completion, CompletionKind as K};
use super::complete_fit::Fit;
use super::site::Site;
use super::{Analysis, complete_fit};

/// The bytes of the file before the place that are counted, so that a key costs the same in any file.
const NEAR: usize = 1 << 14;

/// The tokens in which the call around a place is looked for.
const CALL: usize = 400;

/// The number of [`contexts`].
const CONTEXTS: usize = 10;

/// The weights of the contexts, in the library and in the file.
const LIBRARY: [f64; CONTEXTS] = [0.1, 2.0, 1.5, 2.2, 0.0, 0.2, 0.0, 2.0, 1.3, 0.35];
const FILE: [f64; CONTEXTS] = [0.6, 0.0, 0.0, 1.0, 4.0, 0.6, 0.1, 0.0, 0.0, 0.0];

/// The weights of how often a builtin is used in the library and in the file, and the most that each adds.
const USED: [(f64, f64); 2] = [(4.0, 0.05), (2.0, 0.1)];

/// The context that all words have.
const ANYWHERE: u64 = 0;

/// Counts are as reliable as if there were so many more.
const DOUBT: f64 = 2.0;

/// The weights of the nearest name of the scope, of one that nothing uses, of one that begins like the name that gets the
/// value, of a function or struct of the file, and of the first item of the list.
const NEAREST: f64 = 0.3;
const UNUSED: f64 = 0.06;
const ALIKE: f64 = 0.4;
const OWN: f64 = 0.2;
const FIRST: f64 = 0.07;

/// The weights of a name that begins like that of the `let`; of a parameter that nothing uses yet; of what a statement can change, where one begins; of what it cannot where
/// nothing else is meant; and of `else` behind the block of an `if`, on its line and below it.
const ALIKE_LET: f64 = 0.25;
const UNUSED_PARAMETER: f64 = 0.15;
const CHANGED: f64 = 0.3;
const KEPT_VALUE: f64 = 0.2;
const ELSE: (f64, f64) = (2.0, 0.15);

/// How much less each name counts than the one after it.
const FARTHER: f64 = 0.3;

/// The words that [`form`] keeps.
const KEPT: &[&str] = &["let", "mut", "if", "else", "for", "in", "while", "return", "as", "const"];

/// How often words follow contexts, by the hashes of both, and how often each context occurs, by its hash.
#[derive(Default)]
struct Habits(HashMap<u64, u32>);

static OF_LIBRARY: LazyLock<Habits> = LazyLock::new(|| {
    let mut habits = Habits::default();
    tk_sema::std_files().for_each(|(_, text)| habits.count(&words(text), LIBRARY));
    habits
});

type Contexts = [Option<u64>; CONTEXTS];

impl Habits {
    /// Counts the words of a text in the contexts that have a weight.
    fn count(&mut self, tokens: &[&str], weights: [f64; CONTEXTS]) {
        let mut in_test = false;
        for (at, word) in tokens.iter().enumerate() {
            in_test = is_test(tokens, at).unwrap_or(in_test);
            if !is_word(word) {
                continue;
            }
            let is_name = begins_argument(tokens, at) && tokens.get(at + 1) == Some(&"=");
            let word = hash(&(word, is_name));
            let found = contexts(tokens, at, in_test, &[weights]);
            for context in found.into_iter().flatten().chain([ANYWHERE]) {
                *self.0.entry(context).or_default() += 1;
                *self.0.entry(context ^ word).or_default() += 1;
            }
        }
    }

    /// The share of a word, or of the name of an argument, among those in a context.
    fn share(&self, context: u64, word: u64) -> f64 {
        let count = |key: u64| self.0.get(&key).copied().map_or(0.0, f64::from);
        count(context ^ word) / (count(context) + DOUBT)
    }

    /// How likely a word, or the name of an argument, is in each of some contexts, weighted.
    fn score(&self, contexts: &Contexts, word: u64, weights: [f64; CONTEXTS]) -> f64 {
        let parts = contexts.iter().zip(weights).filter(|(_, weight)| *weight > 0.0);
        parts.filter_map(|(context, weight)| Some(weight * self.share((*context)?, word))).sum()
    }

    /// What the use of a builtin anywhere adds.
    fn anywhere(&self, word: u64, (weight, most): (f64, f64)) -> f64 {
        (weight * self.share(ANYWHERE, word)).min(most)
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The tokens of a text.
fn words(text: &str) -> Vec<&str> {
    lex(Analysis::ROOT, text).tokens.iter().filter_map(|t| text.get(t.start..t.end)).collect()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether an item that begins with a token is a test; `None` if none begins there.
fn is_test(tokens: &[&str], at: usize) -> Option<bool> {
    let next = tokens.get(at + 1).copied().unwrap_or("");
    match *tokens.get(at)? {
        "test" if next.starts_with('"') => Some(true),
        "fn" | "kernel" | "struct" | "export" if is_word(next) => Some(false),
        _other => None,
    }
}

/// Returns true if a token may be the name of an argument.
fn begins_argument(tokens: &[&str], at: usize) -> bool {
    matches!(at.checked_sub(1).and_then(|i| tokens.get(i)), Some(&("(" | "," | "[")))
}

/// A token, any name alike: `let a =` and `let b =` begin the same values.
fn form(token: &str) -> &str {
    if is_word(token) && !KEPT.contains(&token) { "name" } else { token }
}

/// What a token is after: one, two and three tokens, the argument of the call that it begins, the form of three tokens, the
/// call, the number of the argument in any call, the form of five tokens, and two ways to see the call and what is before.
/// Those without a weight are left out.
fn contexts(tokens: &[&str], at: usize, in_test: bool, weights: &[[f64; CONTEXTS]]) -> Contexts {
    let back = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i)).copied().unwrap_or("");
    let (one, two, three) = (back(1), back(2), back(3));
    let forms = (form(three), form(two), one);
    let call = Call::around(tokens, at);
    let argument = call.as_ref().filter(|_| matches!(one, "(" | "," | "=" | "["));
    let number = |c: &Call| hash(&(6, in_test, c.bracket, c.number, c.name.is_empty()));
    let one_of = |n: usize| match n {
        0 => Some(hash(&(0, in_test, one))),
        1 => Some(hash(&(1, in_test, two, one))),
        2 => Some(hash(&(2, in_test, three, two, one))),
        3 => argument.map(|c| hash(&(3, c.callee, c.bracket, c.name, c.number))),
        4 => Some(hash(&(4, in_test, forms))),
        5 => call.as_ref().map(|c| hash(&(5, c.callee, c.bracket))),
        6 => argument.map(number),
        7 => Some(hash(&(7, in_test, form(back(5)), form(back(4)), forms))),
        8 => call.as_ref().map(|c| hash(&(8, c.callee, form(two), one))),
        _last => Some(hash(&(9, complete_fit::kind(one), call.as_ref().map(|c| (c.callee, c.bracket))))),
    };
    std::array::from_fn(|n| weights.iter().any(|w| w[n] > 0.0).then(|| one_of(n)).flatten())
}

/// The call around a place.
pub(super) struct Call<'t> {
    /// What is called.
    pub callee: &'t str,
    /// `(` or `[`.
    pub bracket: &'t str,
    /// The name of the argument, or nothing.
    pub name: &'t str,
    /// The number of the argument, if it has no name.
    pub number: usize,
}

impl<'t> Call<'t> {
    fn around(tokens: &[&'t str], at: usize) -> Option<Call<'t>> {
        let name = match at.checked_sub(2).map(|i| (tokens.get(i), tokens.get(i + 1))) {
            Some((Some(name), Some(&"="))) => name,
            _ => "",
        };
        let (mut depth, mut number) = (0usize, 0);
        for i in (at.saturating_sub(CALL)..at).rev() {
            match *tokens.get(i)? {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" if depth > 0 => depth -= 1,
                bracket @ ("(" | "[") => {
                    let callee = tokens.get(called(tokens, i)?)?;
                    return Some(Call {
                        callee,
                        bracket,
                        name,
                        number: if name.is_empty() { number } else { 0 },
                    });
                }
                "{" => return None,
                "," if depth == 0 => number += 1,
                ";" if depth == 0 => return None,
                _other => {}
            }
        }
        None
    }
}

/// The token that names what a bracket belongs to: `f` of `f(` and of `f[..](`.
fn called(tokens: &[&str], open: usize) -> Option<usize> {
    let before = open.checked_sub(1)?;
    if (tokens.get(open), tokens.get(before)) != (Some(&"("), Some(&"]")) {
        return Some(before);
    }
    let mut depth = 0usize;
    let from = (before.saturating_sub(CALL)..=before).rev().find(|i| {
        match tokens.get(*i) {
            Some(&("]" | ")" | "}")) => depth += 1,
            Some(&("[" | "(" | "{")) => depth -= 1,
            _other => {}
        }
        depth == 0
    })?;
    from.checked_sub(1)
}

/// Puts the most likely items first. What needs an import comes last.
pub(super) fn sort(a: &Analysis, site: &Site, items: &mut Vec<Completion>) {
    let text = a.root_text().get(..site.start).unwrap_or("");
    let from = (text.len().saturating_sub(NEAR)..text.len()).find(|i| text.is_char_boundary(*i));
    let tokens = words(text.get(from.unwrap_or(0)..).unwrap_or(""));
    let item = a.root().and_then(|f| f.items.iter().rfind(|i| (i.span.start as usize) < site.start));
    let start = item.map_or(text.len(), |i| i.span.start as usize);
    let in_item = words(text.get(start..).unwrap_or(""));
    let call = Call::around(&tokens, tokens.len());
    let fit = Fit::new(a, site, &tokens, call.as_ref(), items);
    let mut own = Habits::default();
    own.count(&tokens, FILE);
    let in_test = in_item.first() == Some(&"test");
    let is_kernel = in_item.iter().take_while(|w| **w != "(").any(|w| *w == "kernel");
    let ends = matches!(tokens.last(), Some(&(";" | "}")));
    let ranking = Ranking {
        contexts: contexts(&tokens, tokens.len(), in_test, &[LIBRARY, FILE]),
        own,
        named: a.root().into_iter().flat_map(|f| &f.items).filter_map(name).collect(),
        comment: complete_fit::comment(text, start),
        given: given(&tokens),
        declared: match tokens.as_slice() {
            [.., "let", name, "="] => Some(*name),
            _other => None,
        },
        in_test,
        acts: ends && (in_test || is_kernel),
        tokens: &tokens,
        in_item: &in_item,
        fit,
    };
    let mut names = 0;
    let mut scored: Vec<(f64, Completion)> = vec![];
    for (n, c) in std::mem::take(items).into_iter().enumerate() {
        let mut score =
            FIRST / (n as f64 + 1.0) + ranking.habit(&c) + ranking.own(&c) + ranking.fit.score(&c);
        if is_name(&c) {
            score += ranking.name(&c, names);
            names += 1;
        }
        if c.kind == K::Keyword && c.label == "else" {
            score += if site.new_line { ELSE.1 } else { ELSE.0 };
        }
        scored.push((if c.extra.is_empty() { score } else { f64::NEG_INFINITY }, c));
    }
    scored.sort_by(|x, y| y.0.total_cmp(&x.0));
    items.extend(scored.into_iter().map(|(_, c)| c));
}

/// Returns true for a name of the scope.
fn is_name(c: &Completion) -> bool {
    matches!(c.kind, K::Variable | K::Parameter | K::CompileTime | K::Const)
}

/// What the order of the items of one list depends on.
struct Ranking<'t> {
    contexts: Contexts,
    /// The habits of the file.
    own: Habits,
    /// Its functions, kernels and structs.
    named: Vec<&'t str>,
    /// The words of the comment of the item.
    comment: Vec<&'t str>,
    /// The name that gets the value.
    given: Option<&'t str>,
    /// The name of the `let` that gets it; of one that is `mut` it is often something new.
    declared: Option<&'t str>,
    in_test: bool,
    /// Whether a statement begins that has to do something: it is no value of a function.
    acts: bool,
    tokens: &'t [&'t str],
    in_item: &'t [&'t str],
    fit: Fit<'t>,
}

impl Ranking<'_> {
    /// What has followed the same tokens, is used often, or is what the comment of the item speaks of.
    fn habit(&self, c: &Completion) -> f64 {
        // The word of a snippet is in the list, too.
        if c.kind == K::Snippet {
            return 0.0;
        }
        let word = c.word();
        let is_name = c.kind == K::Argument && begins_argument(self.tokens, self.tokens.len());
        let key = hash(&(word, is_name));
        let mut score =
            OF_LIBRARY.score(&self.contexts, key, LIBRARY) + self.own.score(&self.contexts, key, FILE);
        if c.kind == K::Builtin && !self.fit.begins_statement {
            score += OF_LIBRARY.anywhere(key, USED[0]) + self.own.anywhere(key, USED[1]);
            score += if self.comment.contains(&word) { complete_fit::SPOKEN_OF } else { 0.0 };
        }
        score
    }

    /// What makes a name of the scope likely, of which this many come before it.
    fn name(&self, c: &Completion, before: usize) -> f64 {
        let count = self.in_item.iter().filter(|w| **w == c.word()).count();
        // A statement seldom begins with a value that is not changed.
        let is_read = !(self.fit.begins_statement && c.kind == K::Variable);
        let begins_like = |g: &str| g.chars().next() == c.word().chars().next();
        let is_alike = self.given.is_some_and(begins_like);
        let is_like_let = self.declared.is_some_and(begins_like);
        let unused = match c.kind {
            _ if count > 1 || !is_read => 0.0,
            K::Parameter if !self.fit.begins_statement => UNUSED_PARAMETER,
            _other => UNUSED,
        };
        let change = match (self.fit.begins_statement, c.changes) {
            (true, true) => CHANGED,
            (true, false) if self.acts => -KEPT_VALUE,
            _other => 0.0,
        };
        let alike = match (is_alike, is_like_let) {
            (true, _) => ALIKE,
            (_, true) => ALIKE_LET,
            _other => 0.0,
        };
        NEAREST / (before as f64 * FARTHER + 1.0) + unused + change + alike
    }

    /// What makes an item of the file likely.
    fn own(&self, c: &Completion) -> f64 {
        let word = c.word();
        let declared = self.in_item.windows(2).find(|w| matches!(w, ["fn" | "kernel", _]));
        let is_itself = declared.is_some_and(|w| w.last() == Some(&word));
        // A kernel is launched by a statement, a function called in a value; none calls itself.
        let is_called = match c.kind {
            K::Kernel => self.fit.begins_statement,
            K::Function if self.acts => !is_itself && !self.in_test && !c.detail.contains("->"),
            K::Function => !(is_itself || self.in_test && self.fit.begins_statement),
            K::Struct => !self.acts,
            _other => true,
        };
        if !is_called || !self.named.contains(&word) {
            return 0.0;
        }
        let count = self.tokens.iter().filter(|w| **w == word).count();
        if count < 2 { OWN + UNUSED } else { OWN }
    }
}

/// The name that gets the value which begins at the end of some tokens, in a tuple: the second of `let (a, b) = (x, `.
fn given<'t>(tokens: &[&'t str]) -> Option<&'t str> {
    let (mut depth, mut number) = (0usize, 0);
    let open = (tokens.len().saturating_sub(CALL)..tokens.len()).rev().find(|i| {
        match tokens.get(*i).copied().unwrap_or("") {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            "(" | "[" | "{" | ";" => return true,
            "," if depth == 0 => number += 1,
            _other => {}
        }
        false
    })?;
    let ahead = tokens.get(..open)?.strip_suffix(&[")", "="])?;
    let names = ahead.get(ahead.iter().rposition(|t| *t == "(")? + 1..)?;
    let name = names.get(2 * number)?;
    (tokens.last() == Some(if number == 0 { &"(" } else { &"," })).then_some(*name)
}

/// The name of a function, kernel or struct.
fn name(item: &Item) -> Option<&str> {
    match &item.kind {
        ItemKind::Fn(f) => Some(&f.name.text),
        ItemKind::Struct(s) => Some(&s.name.text),
        ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => {
            None
        }
    }
}

/// Returns true if a place is one whose items follow habits: not a path, which has the items of one file.
pub(super) fn applies(site: &Site) -> bool {
    !matches!(site.back(1), Some(Tok::PathSep | Tok::At | Tok::Let))
}
