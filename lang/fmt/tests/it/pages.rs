//! The `tk` blocks of the specification are laid out as `tk fmt` does it. `TK_BLESS=1` rewrites them.
//!
//! A block that shows a syntax error stays as it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::files;
use std::fs;

/// A block as the page should have it. A `fragment` holds statements.
fn laid_out(info: &str, text: &str) -> Option<String> {
    // Some are found after the parser.
    if text.contains("// error: E01") {
        return None;
    }
    match info {
        "tk" => tk_fmt::format(text).ok(),
        "tk fragment" => {
            let body = tk_fmt::format(&format!("fn f() {{\n{text}}}\n")).ok()?;
            let lines = body.strip_prefix("fn f() {\n")?.strip_suffix("}\n")?.lines();
            Some(lines.map(|l| format!("{}\n", l.strip_prefix("    ").unwrap_or(l))).collect())
        }
        _ => None,
    }
}

#[test]
fn blocks_of_the_specification() {
    let bless = std::env::var_os("TK_BLESS").is_some();
    let mut wrong = vec![];
    for (path, page) in files("spec", "md") {
        let (mut out, mut block) = (String::new(), None::<(String, String, usize)>);
        for (number, line) in page.split_inclusive('\n').enumerate() {
            match (&mut block, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    block = Some((info.trim().to_string(), String::new(), number + 1));
                    out.push_str(line);
                }
                (Some((info, text, start)), Some(_)) => {
                    let good = laid_out(info, text).unwrap_or_else(|| text.clone());
                    if good != *text {
                        wrong.push(format!("{path}:{start}"));
                    }
                    out.push_str(&good);
                    out.push_str(line);
                    block = None;
                }
                (Some((_, text, _)), None) => text.push_str(line),
                (None, None) => out.push_str(line),
            }
        }
        assert!(block.is_none(), "{path}: a block has no end");
        if bless && out != page {
            fs::write(&path, out).unwrap();
        }
    }
    assert!(bless || wrong.is_empty(), "TK_BLESS=1 lays these blocks out:\n{}", wrong.join("\n"));
}
