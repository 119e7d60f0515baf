//! `spec/ops.md`: the reference of the builtins, generated from the op table.
//!
//! Guarantees that the same table gives the same page, byte by byte, and that every example in it is a `tk` block,
//! which the tests of the specification run.

use std::fmt::Write;
use std::path::Path;

use tk_ops::reference;
use tk_ops::rows::CLASSES;
use tk_ops::table::{Accuracy, Effects, ElemResult, Row, Scheme};

use crate::source;

const PAGE: &str = "spec/ops.md";

const HEAD: &str = "\
# Operations

This page is generated from the op table in `lang/ops/src/rows`; `cargo xtask ops` writes it.

Every builtin is one row of that table: its type, its meaning, its accuracy and an example that runs. In a signature,
the text after a colon is the kind of the parameter: `const` means a value known at compile time, `mask` a bool tile
that broadcasts, `shape` a list of extents such as `[BM, BK]`, `[int, ..]` a list with one entry for each axis, and
words between bars are names valid only there. A parameter without a colon is a tile or a scalar. A parameter with a
default may be omitted. Methods of a view are shown on `v`, those of a tile on `t`, those of a buffer of a test on `b`.

Accuracy: *exact* results have no rounding; *rounded* ones are the nearest representable value, ties to even; `n ulp`
bounds the error in units of the last place for f32 and f64, while narrower types are computed in f32 and rounded.
";

/// Writes the page.
pub fn write(root: &Path) -> Result<(), Vec<String>> {
    std::fs::write(root.join(PAGE), page()).map_err(|e| vec![format!("{PAGE}: {e}")])
}

/// The problem when the page is not what the table gives.
pub fn check(root: &Path) -> Option<String> {
    let fresh = source::read(root, PAGE).is_ok_and(|text| text == page());
    (!fresh).then(|| format!("{PAGE}: is not what the op table gives; run `cargo xtask ops`"))
}

fn page() -> String {
    let mut out = HEAD.to_string();
    for (title, rows) in CLASSES {
        let _ = write!(out, "\n## {title}\n");
        for row in *rows {
            entry(&mut out, row);
        }
    }
    out
}

fn entry(out: &mut String, row: &Row) {
    let _ = write!(out, "\n### `{}`\n\n", reference::signature(row).text);
    let _ = writeln!(out, "{}", row.doc.trim());
    let mut facts = vec![];
    match row.scheme {
        Scheme::Elementwise(set, result) | Scheme::Reduce(set, result) => {
            facts.push(format!("Element types: {set}{}.", result_text(result)));
        }
        Scheme::Special => {}
    }
    match row.effects {
        Effects::Pure => facts.push(accuracy(row.accuracy)),
        Effects::Read | Effects::Write | Effects::Ordered => {}
    }
    if !facts.is_empty() {
        let _ = write!(out, "\n{}\n", facts.join(" "));
    }
    if !row.example.trim().is_empty() {
        let _ = write!(out, "\n```tk\n{}```\n", reference::example(row));
    }
}

fn result_text(result: ElemResult) -> &'static str {
    match result {
        ElemResult::Same => "",
        ElemResult::Bool => "; the result is bool",
        ElemResult::I32 => "; the result is i32",
        ElemResult::Widened => "; bool and integers below 32 bits give i32, unsigned ones u32",
    }
}

fn accuracy(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "Accuracy: exact.".to_string(),
        Accuracy::Rounded => "Accuracy: rounded.".to_string(),
        Accuracy::Ulp(n) => format!("Accuracy: {n} ulp."),
    }
}
