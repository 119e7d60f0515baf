//! The `tk` blocks of the specification are laid out as `tk fmt` does it. `TK_BLESS=1` rewrites them.
//!
//! A block that shows a syntax error stays as it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::files;
use tk_snapshot::Snapshots;

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
    let mut snapshots = Snapshots::new();
    for (path, page) in files("spec", "md") {
        let (mut out, mut block) = (String::new(), None::<(String, String)>);
        for line in page.split_inclusive('\n') {
            match (&mut block, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    block = Some((info.trim().to_string(), String::new()));
                    out.push_str(line);
                }
                (Some((info, text)), Some(_)) => {
                    out.push_str(&laid_out(info, text).unwrap_or_else(|| text.clone()));
                    out.push_str(line);
                    block = None;
                }
                (Some((_, text)), None) => text.push_str(line),
                (None, None) => out.push_str(line),
            }
        }
        assert!(block.is_none(), "{path}: a block has no end");
        snapshots.check(&path, &out);
    }
    snapshots.finish();
}
