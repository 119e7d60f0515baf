//! What must hold of every formatted text, and where texts come from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use tk_syntax::ast::{File, Item, ItemKind, Param};
use tk_syntax::token::{Tok, Token, lex};
use tk_syntax::{FileId, dump, parse};

/// Formats, and checks that nothing but blanks, line breaks, commas before closing brackets and repeated semicolons has changed, and
/// that the result stays as it is.
pub fn formatted(text: &str) -> String {
    let once = tk_fmt::format(text).unwrap_or_else(|d| panic!("{d:#?}\n{text}"));
    let (before, after) = (parsed(text), parsed(&once));
    let same = |what: &str, a: String, b: String| assert!(a == b, "{what} changed:\n{}", difference(&a, &b));
    same("the comments", comments(text).join("\n"), comments(&once).join("\n"));
    same("the tokens", tokens(text).join("\n"), tokens(&once).join("\n"));
    same("the tree", dump(&before), dump(&after));
    same("the doc comments", docs(&before).join("\n"), docs(&after).join("\n"));
    let twice = tk_fmt::format(&once).unwrap();
    assert!(once == twice, "not stable:\n{}", difference(&once, &twice));
    assert!(once.is_empty() || once.ends_with('\n') && !once.ends_with("\n\n"));
    assert!(once.lines().all(|l| l.trim_end() == l && !l.contains('\t')), "{once}");
    let lf = once.replace("\r\n", "\n");
    assert!(!lf.contains("\n\n\n") && !lf.contains('\r') && !once.starts_with(['\n', '\r']), "{once}");
    assert!(once.matches('\r').count() == 0 || once.matches("\r\n").count() == once.matches('\n').count());
    once
}

/// The lines around the first difference.
fn difference(a: &str, b: &str) -> String {
    let at = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.lines().skip(at.saturating_sub(5)).take(12).collect::<Vec<_>>().join("\n");
    format!("{}\n=>\n{}", part(a), part(b))
}

fn parsed(text: &str) -> File {
    let (file, diagnostics) = parse(FileId(0), text);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\n{text}");
    file
}

pub fn comments(text: &str) -> Vec<String> {
    let comments = lex(FileId(0), text).comments;
    comments.iter().map(|c| format!("{}{}", c.doc, c.text.trim_end())).collect()
}

fn tokens(text: &str) -> Vec<&str> {
    let all = lex(FileId(0), text).tokens;
    let closes = |i: usize| {
        let next = all.get(i + 1).map(|t| t.tok);
        matches!(next, Some(Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::Bar))
    };
    let repeats = |i: usize| {
        let before = i.checked_sub(1).and_then(|i| all.get(i)).map(|t| t.tok);
        matches!(before, Some(Tok::Semi | Tok::LBrace))
    };
    let goes = |(i, t): &(usize, &Token<'_>)| match t.tok {
        Tok::Comma => closes(*i),
        Tok::Semi => repeats(*i),
        _other => false,
    };
    let kept = all.iter().enumerate().filter(|token| !goes(token));
    kept.map(|(_, t)| &text[t.start..t.end]).collect()
}

fn docs(file: &File) -> Vec<String> {
    file.items.iter().flat_map(item_docs).collect()
}

fn item_docs(item: &Item) -> Vec<String> {
    let of = |params: &[Param]| params.iter().map(|p| line_ends(&p.doc)).collect::<Vec<_>>();
    let mut found = vec![line_ends(&item.doc)];
    match &item.kind {
        ItemKind::Struct(s) => {
            found.extend(of(&s.fields));
            found.extend(s.methods.iter().flat_map(item_docs));
        }
        ItemKind::Fn(f) => found.extend(of(&f.params)),
        ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => {}
    }
    found
}

fn line_ends(doc: &str) -> String {
    doc.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder of the repository with an extension, sorted: path and text.
pub fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut found = vec![];
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push((path.to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The examples and the file with every construct of the language.
pub fn samples() -> Vec<(String, String)> {
    let mut found = files("examples", "tk");
    found.extend(files("lang/syntax/tests/data", "tk"));
    found
}

/// A fixed sequence of numbers that look random (xorshift).
pub struct Random(pub u64);

/// `TK_SEEDS=0..100` tries other random places than every run of the tests.
pub fn seeds() -> impl Iterator<Item = Random> {
    let range = std::env::var("TK_SEEDS").unwrap_or("0..1".into());
    let (from, to) = range.split_once("..").unwrap();
    let seeds = from.parse::<u64>().unwrap()..to.parse().unwrap();
    seeds.map(|seed| Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}
