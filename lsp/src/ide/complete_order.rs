//! The order of completions: what has followed the same tokens in the library and in the file, what is near, and what has not
//! been used yet.
//!
//! Counts of words after one, two and three tokens, with any names too,
//! and of those in one argument of a call, as language models by n-grams have
//! them; a name of the scope needs no count. The weights were found by halving and doubling each on 2,300 words of the examples
//! and the library, without the file that is completed: changes of the language's habits would change them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use tk_syntax::ast::{Item, ItemKind};
use tk_syntax::token::{Tok, lex};

use super::Analysis;
use super::complete::{Completion, CompletionKind as K};
use super::site::Site;

/// The bytes of the file before the place that are counted, so that a key costs the same in any file.
const NEAR: usize = 1 << 16;

/// The tokens in which the call around a place is looked for.
const CALL: usize = 400;

/// The weights of the contexts of [`contexts`], in the library and in the file.
const LIBRARY: [f64; 5] = [0.6, 1.5, 1.5, 2.5, 0.6];
const FILE: [f64; 5] = [0.3, 1.5, 1.5, 1.5, 0.8];

/// Counts are as reliable as if there were so many more.
const DOUBT: f64 = 2.0;

/// The weights of the nearest name of the scope, of one that nothing uses, of a function or struct of the file, and of the
/// first item of the list.
const NEAREST: f64 = 0.3;
const UNUSED: f64 = 0.1;
const OWN: f64 = 0.1;
const FIRST: f64 = 0.05;

/// How much less each name counts than the one after it.
const FARTHER: f64 = 0.3;

/// The words that [`form`] keeps.
const KEPT: &[&str] = &["let", "mut", "if", "else", "for", "in", "while", "return", "as", "const"];

/// The weights of a kernel that a test does not launch yet, of the struct that a function returns, and of a name that begins
/// like the one that gets the value.
const LAUNCHED: f64 = 0.3;
const RETURNED: f64 = 0.4;
const ALIKE: f64 = 0.2;

/// How often words follow contexts, by the hash of both, and how often each context occurs, by its hash.
#[derive(Default)]
struct Habits(HashMap<u64, u32>);

static OF_LIBRARY: LazyLock<Habits> = LazyLock::new(|| {
    let mut habits = Habits::default();
    for (_, text) in tk_sema::std_files() {
        let tokens = words(text);
        (0..tokens.len()).for_each(|i| habits.count(&tokens, i));
    }
    habits
});

impl Habits {
    fn count(&mut self, tokens: &[&str], at: usize) {
        let Some(word) = tokens.get(at).filter(|w| is_word(w)) else { return };
        let is_name = begins_argument(tokens, at) && tokens.get(at + 1) == Some(&"=");
        for context in contexts(tokens, at).into_iter().flatten() {
            *self.0.entry(context).or_default() += 1;
            *self.0.entry(hash(&(context, word, is_name))).or_default() += 1;
        }
    }

    /// How likely a word, or the name of an argument, is in each of some contexts, weighted.
    fn score(&self, contexts: &[Option<u64>; 5], (word, is_name): (&str, bool), weights: [f64; 5]) -> f64 {
        let count = |key: u64| self.0.get(&key).copied().map_or(0.0, f64::from);
        let parts = contexts.iter().zip(weights).filter_map(|(context, weight)| {
            let context = (*context)?;
            Some(weight * count(hash(&(context, word, is_name))) / (count(context) + DOUBT))
        });
        parts.sum()
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

/// Returns true if a token may be the name of an argument.
fn begins_argument(tokens: &[&str], at: usize) -> bool {
    matches!(at.checked_sub(1).and_then(|i| tokens.get(i)), Some(&("(" | "," | "[")))
}

/// A token, any name alike: `let a =` and `let b =` begin the same values.
fn form(token: &str) -> &str {
    if is_word(token) && !KEPT.contains(&token) { "name" } else { token }
}

/// What a token is after: one, two and three tokens, the argument of the call that it begins, and the form of three tokens.
fn contexts(tokens: &[&str], at: usize) -> [Option<u64>; 5] {
    let back = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i)).copied().unwrap_or("");
    let (one, two, three) = (back(1), back(2), back(3));
    let begins = matches!(one, "(" | "," | "=" | "[");
    let argument = if begins { argument(tokens, at) } else { None };
    [
        Some(hash(&(1, one))),
        Some(hash(&(2, two, one))),
        Some(hash(&(3, three, two, one))),
        argument.map(|a| hash(&(4, a))),
        Some(hash(&(5, form(three), form(two), one))),
    ]
}

/// What is called around a place, its bracket, and the name or the number of the argument.
fn argument<'t>(tokens: &[&'t str], at: usize) -> Option<(&'t str, &'t str, &'t str, usize)> {
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
                let callee = tokens.get(i.checked_sub(1)?)?;
                return Some((callee, bracket, name, if name.is_empty() { number } else { 0 }));
            }
            "{" => return None,
            "," if depth == 0 => number += 1,
            ";" if depth == 0 => return None,
            _other => {}
        }
    }
    None
}

/// Puts the most likely items first. What needs an import comes last.
pub(super) fn sort(a: &Analysis, site: &Site, items: &mut Vec<Completion>) {
    let text = a.root_text().get(..site.start).unwrap_or("");
    let from = (text.len().saturating_sub(NEAR)..text.len()).find(|i| text.is_char_boundary(*i));
    let near = text.get(from.unwrap_or(0)..).unwrap_or("");
    let tokens = words(near);
    let mut own = Habits::default();
    (0..tokens.len()).for_each(|i| own.count(&tokens, i));
    let contexts = contexts(&tokens, tokens.len());
    let item = a.root().and_then(|f| f.items.iter().rfind(|i| (i.span.start as usize) < site.start));
    let in_item = words(item.and_then(|i| text.get(i.span.start as usize..)).unwrap_or(""));
    let named: Vec<&str> = a.root().into_iter().flat_map(|f| &f.items).filter_map(name).collect();
    let begins_statement = matches!(tokens.last(), Some(&(";" | "{" | "}")));
    let is_test = in_item.first() == Some(&"test");
    let given = given(&tokens);
    let mut names = 0.0;
    let mut scored: Vec<(f64, Completion)> = vec![];
    for (n, c) in std::mem::take(items).into_iter().enumerate() {
        let word = c.label.trim_end_matches(" =");
        let key = (word, c.kind == K::Argument && begins_argument(&tokens, tokens.len()));
        let mut score = FIRST / (n as f64 + 1.0);
        // The word of a snippet is in the list, too.
        if c.kind != K::Snippet {
            score += OF_LIBRARY.score(&contexts, key, LIBRARY) + own.score(&contexts, key, FILE);
        }
        if matches!(c.kind, K::Variable | K::Parameter | K::CompileTime | K::Const) {
            score += NEAREST / (names * FARTHER + 1.0);
            names += 1.0;
            let count = in_item.iter().filter(|w| **w == word).count();
            // A statement seldom begins with a value that is not changed.
            let is_read = !(begins_statement && c.kind == K::Variable);
            score += if count < 2 && is_read { UNUSED } else { 0.0 };
            let is_alike = given.is_some_and(|g| g.chars().next() == word.chars().next());
            score += if is_alike { ALIKE } else { 0.0 };
        }
        // A kernel is launched by a statement, a function called in a value; none calls itself.
        let is_called = match c.kind {
            K::Kernel => begins_statement,
            K::Function => !(is_test && begins_statement) && in_item.get(1) != Some(&word),
            _other => true,
        };
        if named.contains(&word) && is_called {
            let count = tokens.iter().filter(|w| **w == word).count();
            score += if count < 2 { OWN + UNUSED } else { OWN };
            let is_launched = c.kind == K::Kernel && is_test && !in_item.contains(&word);
            score += if is_launched { LAUNCHED } else { 0.0 };
            let is_returned = c.kind == K::Struct && in_item.windows(2).any(|w| w == ["->", word]);
            score += if is_returned && begins_statement { RETURNED } else { 0.0 };
        }
        scored.push((if c.extra.is_empty() { score } else { -1.0 }, c));
    }
    scored.sort_by(|x, y| y.0.total_cmp(&x.0));
    items.extend(scored.into_iter().map(|(_, c)| c));
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
