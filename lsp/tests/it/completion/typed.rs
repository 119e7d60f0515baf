//! Programs typed key by key: where a word names something, it is among the first items.

use super::{SHOWN, shown};
use crate::support::{root, workspace};
use tk_lsp::ide::{Workspace, diagnostics};

/// A word of a source text that names something.
struct Used<'t> {
    start: usize,
    word: &'t str,
}

const KEYWORDS: &[&str] = &[
    "let", "for", "in", "if", "else", "while", "return", "fn", "kernel", "struct", "const", "use", "test",
    "export", "as", "mut", "true", "false", "None", "break", "continue",
];

/// The words that name what exists already; those that give a name are left out.
fn used(text: &str) -> Vec<Used<'_>> {
    let mut found = vec![];
    let mut last = String::new();
    let mut in_pattern = false;
    for token in tk_syntax::token::lex(tk_syntax::FileId(0), text).tokens {
        let word = &text[token.start..token.end];
        let gives = matches!(last.as_str(), "let" | "fn" | "kernel" | "struct" | "const" | "for" | "let mut");
        let rest = text[token.end..].trim_start();
        // A parameter, a field, or an argument by name that a list offers in another way.
        let declares = rest.starts_with(':')
            && !rest.starts_with("::")
            && matches!(last.as_str(), "(" | "[" | "," | "{");
        let is_word = matches!(token.tok, tk_syntax::token::Tok::Id(_));
        in_pattern = (in_pattern || last == "let" && word == "(") && word != "=";
        if is_word && (gives || declares || in_pattern) {
            // It is being given.
        } else if is_word && !KEYWORDS.contains(&word) {
            found.push(Used { start: token.start, word });
        }
        last = if last == "let" && word == "mut" { "let mut".into() } else { word.into() };
    }
    found
}

/// What is offered before a word is typed, where its name is known.
fn untyped(ws: &mut Workspace, text: &str, used: &Used) -> Option<Vec<String>> {
    let Used { start, word } = *used;
    let before = &text[..start];
    ws.open("/w/a.tk", before.to_string());
    // What is defined below is not known yet: a constant at the end of the file, a parameter of which a default is made.
    let item = &before[before.rfind("\n\n").map_or(0, |i| i + 2)..];
    let base = before.strip_suffix('.').map(last_word);
    let is_known = [base.unwrap_or(word), word]
        .iter()
        .all(|w| !is_defined(text, w, true) || is_defined(item, w, true) || is_defined(before, w, false));
    is_known.then(|| shown(ws, "/w/a.tk", start, ""))
}

/// A word that is not among the first items.
fn beyond(name: &str, text: &str, used: &Used, found: &[String]) -> Option<String> {
    let first: Vec<&String> = found.iter().take(SHOWN).collect();
    let line = text[..used.start].matches('\n').count() + 1;
    let Used { word, .. } = used;
    (!first.iter().any(|f| f == word)).then(|| format!("{name}:{line}: `{word}` in {first:?}"))
}

/// Types a file from its first to its last byte. Where a word names something, it is among the first items before and after
/// its first letter; and no item above the one that is being typed has an error because of what is typed. Gives the number
/// of words and the problems.
fn typed(name: &str) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(root().join("examples").join(name)).unwrap();
    let mut ws = workspace(&[]);
    let mut problems = vec![];
    let words = used(&text);
    for word in &words {
        let start = word.start;
        let untyped = untyped(&mut ws, &text, word);
        let end = start + word.word.chars().next().map_or(0, char::len_utf8);
        ws.open("/w/a.tk", text[..end].to_string());
        if let Some(untyped) = untyped {
            let begun = shown(&mut ws, "/w/a.tk", end, &text[start..end]);
            problems.extend([untyped, begun].iter().filter_map(|found| beyond(name, &text, word, found)));
        }
        let head = text[..start].rfind("\n\n").map_or(0, |i| i + 2);
        let errors = diagnostics::diagnostics(&mut ws, "/w/a.tk");
        let above = errors.iter().filter(|d| (d.primary.span.end as usize) < head).count();
        if above > 2 {
            problems.push(format!("{name}: `{}`: {above} errors above", word.word));
        }
    }
    (words.len(), problems)
}

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()
}

/// Returns true if a text gives this name to an item or, if asked for, to something in one.
fn is_defined(text: &str, word: &str, inside: bool) -> bool {
    let places = text.match_indices(word).map(|(i, _)| i);
    let is_whole = |i: &usize| {
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        !text[..*i].ends_with(joins) && !text[i + word.len()..].starts_with(joins)
    };
    places.filter(is_whole).any(|i| {
        let before = text[..i].trim_end();
        let items = ["fn", "kernel", "struct", "const"];
        if items.iter().any(|g| before.ends_with(g)) {
            return true;
        }
        let gives = ["let", "let mut", "for"];
        let rest = text[i + word.len()..].trim_start();
        let line = before.rsplit('\n').next().unwrap();
        let in_pattern = line.trim_start().starts_with("let (") && !line.contains('=');
        let declares = rest.starts_with(':') && !rest.starts_with("::");
        inside && (gives.iter().any(|g| before.ends_with(g)) || in_pattern || declares)
    })
}

#[test]
fn the_examples_key_by_key() {
    for name in ["softmax.tk", "attention.tk"] {
        let (words, problems) = typed(name);
        assert!(words > 150, "{name}: {words}");
        assert!(problems.is_empty(), "{} of {words}\n{}", problems.len(), problems.join("\n"));
    }
}

/// The words of the repository's programs, of which most are among the first items before their first letter: each `every`th
/// of the files of some folders. Their counts of words that are not may fall; `TK_EVERY=1` looks at all words.
#[test]
fn programs_of_the_repository() {
    let all = std::env::var("TK_EVERY").ok().map(|n| n.parse().unwrap());
    let folders =
        [("examples", 5, 16), ("docs/tutorial/solutions", 5, 12), ("stdlib", 20, 1), ("stdlib/nn", 100, 4)];
    for (folder, every, most) in folders {
        let (mut words, mut problems) = (0, vec![]);
        for (name, text) in crate::support::folder(folder) {
            let mut ws = workspace(&[]);
            for word in used(&text).iter().step_by(all.unwrap_or(every)) {
                let Some(found) = untyped(&mut ws, &text, word) else { continue };
                words += 1;
                problems.extend(beyond(&name, &text, word, &found));
            }
        }
        println!("{folder}: {} of {words}", problems.len());
        assert!(
            problems.len() <= most || all.is_some(),
            "{} of {words}\n{}",
            problems.len(),
            problems.join("\n")
        );
    }
}
