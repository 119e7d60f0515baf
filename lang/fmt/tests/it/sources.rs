//! Every source file of the repository, as it is and with comments and line breaks at random places.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{comments, files, formatted, samples, seeds};
use tk_fmt::format;
use tk_syntax::token::lex;
use tk_syntax::{Diagnostic, FileId, parse};

/// Every program of the repository that parses: files, and the `tk` blocks of pages.
fn programs() -> Vec<(String, String)> {
    let mut found = vec![];
    for folder in ["examples", "stdlib", "tests", "lang", "cli", "runtime"] {
        found.extend(files(folder, "tk"));
    }
    for (path, page) in files("spec", "md") {
        let blocks = page.split("\n```").skip(1).step_by(2).enumerate();
        found.extend(blocks.filter_map(|(i, block)| {
            let (info, text) = block.split_once('\n')?;
            let text = match info {
                "tk" => format!("{text}\n"),
                "tk fragment" => format!("fn f() {{\n{text}\n}}\n"),
                _ => return None,
            };
            Some((format!("{path}, block {i}"), text))
        }));
    }
    found.retain(|(_, text)| !parse(FileId(0), text).1.iter().any(Diagnostic::is_error));
    assert!(found.len() > 300, "{} programs", found.len());
    found
}

#[test]
fn every_program_of_the_repository() {
    for (path, text) in programs() {
        let once = formatted(&text);
        for line in once.lines().filter(|l| l.chars().count() > 100) {
            // Comments and the names of tests are as long as they were written.
            assert!(line.contains("//") || line.contains('"'), "{path}: {line}");
        }
    }
}

/// However a program was laid out before: what decides is not where its lines ended, but for blocks on one line.
#[test]
fn other_line_breaks_give_the_same() {
    for mut random in seeds() {
        for (_, text) in samples() {
            let tokens = lex(FileId(0), &text).tokens;
            for _ in 0..4 {
                let mut other = String::new();
                let mut end = 0;
                for t in &tokens {
                    let gap = &text[end..t.start];
                    other.push_str(match random.below(8) {
                        _ if gap.contains("//") => gap,
                        0 => "\n\n\n",
                        1 => "\n      ",
                        2 => " \t ",
                        _ => gap,
                    });
                    other.push_str(&text[t.start..t.end]);
                    end = t.end;
                }
                if !parse(FileId(0), &other).1.iter().any(Diagnostic::is_error) {
                    formatted(&other);
                }
            }
        }
    }
}

/// A comment at the boundary before a token, in three ways.
fn with_comment(text: &str, at: usize, way: usize, name: &str) -> String {
    let (before, after) = text.split_at(at);
    match way {
        0 => format!("{before} // {name}\n{after}"),
        1 => format!("{before}\n// {name}\n{after}"),
        _ => format!("{before}\n\n    /// {name}\n\n\n{after}"),
    }
}

/// The items of the samples, each a file.
fn items() -> Vec<String> {
    let mut found = vec![];
    for (_, text) in samples() {
        let (file, _) = parse(FileId(0), &text);
        found.extend(file.items.iter().map(|i| text[i.span.start as usize..i.span.end as usize].to_string()));
    }
    found
}

/// Boundaries of an item that are tried: the time of a long one would be quadratic.
const BOUNDARIES: usize = 200;

/// Every boundary of short items, of longer ones evenly spaced ones.
#[test]
fn a_comment_at_every_token_boundary() {
    for (n, text) in items().iter().enumerate() {
        let tokens = lex(FileId(0), text).tokens;
        let step = tokens.len().div_ceil(BOUNDARIES).max(1);
        for (i, token) in tokens.iter().enumerate().skip(n % step).step_by(step) {
            let other = with_comment(text, token.start, (n + i) % 3, "here");
            if !parse(FileId(0), &other).1.iter().any(Diagnostic::is_error) {
                formatted(&other);
            }
        }
    }
}

#[test]
fn many_comments_at_random_boundaries() {
    for mut random in seeds() {
        for text in items() {
            let tokens = lex(FileId(0), &text).tokens;
            for _ in 0..10 {
                let mut other = text.clone();
                let mut added = false;
                for (i, token) in tokens.iter().enumerate().rev() {
                    if random.below(6) == 0 {
                        let way = [0, 0, 0, 1, 1, 2][random.below(6)];
                        added = true;
                        other = with_comment(&other, token.start, way, &format!("c{i}"));
                    }
                }
                if !parse(FileId(0), &other).1.iter().any(Diagnostic::is_error) {
                    formatted(&other);
                    assert!(!added || comments(&other).len() > comments(&text).len());
                }
            }
        }
    }
}

/// Texts with errors are refused, whatever is wrong.
#[test]
fn broken_programs_are_refused_or_formatted() {
    for mut random in seeds() {
        for (_, text) in samples() {
            let tokens = lex(FileId(0), &text).tokens;
            for _ in 0..30 {
                let t = tokens[random.below(tokens.len())];
                let other = format!("{}{}", &text[..t.start], &text[t.end..]);
                match format(&other) {
                    Ok(_) => drop(formatted(&other)),
                    Err(diagnostics) => assert!(diagnostics.iter().any(Diagnostic::is_error)),
                }
            }
        }
    }
}
