//! The layout of what actions leave.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use crate::support::workspace;
use tk_lsp::ide::actions::{ActionKind, actions};

/// The text after the action of a kind for a piece of it.
fn after(text: &str, piece: &str, kind: ActionKind) -> String {
    let mut ws = workspace(&[("a.tk", text)]);
    let start = text.find(piece).expect("the piece");
    let found = actions(&mut ws, "/w/a.tk", start..start + piece.len(), true);
    let action = found.into_iter().find(|a| a.kind == kind).expect("an action");
    let mut edits = action.edits;
    edits.sort_by_key(|e| e.place.start);
    let mut out = text.to_string();
    for e in edits.iter().rev() {
        out.replace_range(e.place.start..e.place.end, &e.text);
    }
    out
}

const FORMED: &str = "fn f(a: tile[f32, 8], b: tile[f32, 8]) -> tile[f32, 8] {
    let sum = a + b;
    let product = a * b;
    let half = (a + b) as f16;
    let other = exp(sum) / (product - b) - sum * 2.0 + (half as f32);
    if max(other) > 0.0 {
        // Inside.
        let deep = exp(other - max(other)) / 2.0 + product * 2.0;
        deep
    } else {
        other
    }
}
";

/// What an action leaves of a file with the layout of `tk fmt` has it, too.
#[test]
fn formatting_changes_nothing() {
    for name in ["sum", "product", "half", "other"] {
        let left = after(FORMED, name, ActionKind::Inline);
        assert_eq!(tk_fmt::format(&left).unwrap(), left, "{name}");
    }
    for piece in [
        "(a + b)",
        "exp(sum) / (product - b)",
        "let product = a * b;\n    let half = (a + b) as f16;",
        "let deep = exp(other - max(other)) / 2.0 + product * 2.0;",
        "if max(other) > 0.0 {\n        // Inside.\n        let deep = exp(other - max(other)) / 2.0 + product * 2.0;\n        deep\n    } else {\n        other\n    }",
    ] {
        let left = after(FORMED, piece, ActionKind::Extract);
        assert_eq!(tk_fmt::format(&left).unwrap(), left, "{piece}");
    }
    assert!(after(FORMED, "(a + b)", ActionKind::Extract).contains("{\n    a + b\n}\n"));
}

/// A value has parentheses where it would be read in another way, or hard to read.
#[test]
fn parentheses_of_an_inlined_value() {
    for (value, uses, left) in [
        (
            "a * b",
            "a + x, x + a, x * a, a * x, -x, x as f16, f(x)",
            "a + a * b, a * b + a, a * b * a, a * (a * b), -(a * b), (a * b) as f16, f(a * b)",
        ),
        (
            "a + b",
            "a + x, x - a, x * a, x > a, x == x",
            "a + (a + b), a + b - a, (a + b) * a, a + b > a, a + b == a + b",
        ),
        ("a as f32", "x * a, a * x, -x, x.T", "a as f32 * a, a * a as f32, -(a as f32), (a as f32).T"),
        ("-a", "x * a, a * x", "-a * a, a * (-a)"),
        ("a[0]", "x * a, a * x, -x", "a[0] * a, a * a[0], -a[0]"),
    ] {
        for (one, left) in uses.split(", ").zip(left.split(", ")) {
            let text = format!(
                "fn g(a: tile[f32, 8, 8], b: tile[f32, 8, 8]) {{\n    let x = {value};\n    let y = {one};\n    print(y);\n}}\n\nfn f[S: shape](a: tile[f32, S]) -> tile[f32, S] {{\n    a\n}}\n"
            );
            let text = if value == "a[0]" { text.replace("tile[f32, 8, 8]", "tile[f32, 8]") } else { text };
            let found = after(&text, "x =", ActionKind::Inline);
            assert!(found.contains(&format!("    let y = {left};\n")), "{value} in {one}: {found}");
        }
    }
}

const LOOSE: &str = "fn f(a: tile[f32, 8], b: tile[f32, 8]) -> tile[f32, 8] {
  let sum = a+b;
    let product=a*sum  - sum;
      let both = exp(product)+
   sum;
    both
}
fn  g()  { }
";

/// In any other file, what an action writes has that layout, and nothing else changes.
#[test]
fn what_is_written_has_the_layout() {
    let inlined = "fn f(a: tile[f32, 8], b: tile[f32, 8]) -> tile[f32, 8] {
    let product=a*(a + b)  - (a + b);
      let both = exp(product)+
   (a + b);
    both
}
fn  g()  { }
";
    assert_eq!(after(LOOSE, "sum", ActionKind::Inline), inlined);
    let found = after(LOOSE, "product=a*sum  - sum", ActionKind::Inline);
    assert!(found.contains("let both = exp(a * sum - sum)+\n   sum;\n"), "{found}");
    let statements = "let product=a*sum  - sum;\n      let both = exp(product)+\n   sum;";
    let extracted = "fn f(a: tile[f32, 8], b: tile[f32, 8]) -> tile[f32, 8] {
  let sum = a+b;
    let both = extracted(a, sum);
    both
}

fn extracted(a: tile[f32, 8], sum: tile[f32, 8]) -> tile[f32, 8] {
    let product = a * sum - sum;
    let both = exp(product) + sum;
    both
}

fn  g()  { }
";
    assert_eq!(after(LOOSE, statements, ActionKind::Extract), extracted);
}
