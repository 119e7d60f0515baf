//! The order of completions: what has followed the same tokens in the library and in the file, what is near, and what has not
//! been used yet.
//!
//! Counts of words after one, two and three tokens, and of those in one argument of a call, as language models by n-grams have
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
const LIBRARY: [f64; 4] = [0.6, 1.5, 1.5, 2.5];
const FILE: [f64; 4] = [0.3, 1.5, 1.5, 1.5];

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
    fn score(&self, contexts: &[Option<u64>; 4], (word, is_name): (&str, bool), weights: [f64; 4]) -> f64 {
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

/// What a token is after: one, two and three tokens, and the argument of the call that it begins.
fn contexts(tokens: &[&str], at: usize) -> [Option<u64>; 4] {
    let back = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i)).copied().unwrap_or("");
    let (one, two, three) = (back(1), back(2), back(3));
    let begins = matches!(one, "(" | "," | "=" | "[");
    let argument = if begins { argument(tokens, at) } else { None };
    [
        Some(hash(&(1, one))),
        Some(hash(&(2, two, one))),
        Some(hash(&(3, three, two, one))),
        argument.map(|a| hash(&(4, a))),
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
            score += if count < 2 { UNUSED } else { 0.0 };
        }
        // A kernel is launched by a statement.
        if named.contains(&word) && (c.kind != K::Kernel || begins_statement) {
            let count = tokens.iter().filter(|w| **w == word).count();
            score += if count < 2 { OWN + UNUSED } else { OWN };
        }
        scored.push((if c.extra.is_empty() { score } else { -1.0 }, c));
    }
    scored.sort_by(|x, y| y.0.total_cmp(&x.0));
    items.extend(scored.into_iter().map(|(_, c)| c));
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
