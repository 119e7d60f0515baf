//! Runs `tests/diagnostics/*.tk`: each file gives the diagnostics that its first line promises, rendered as in the
//! `.txt` beside it (`TK_BLESS=1` writes it), and each fix mends what it is for.
//!
//! First line: `// E0305, 2 places, fix` — the code, how many places the message shows, and whether a fix is offered;
//! `// 3 x E0101` promises several.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use tk_sema::{Checked, Loader, check};
use tk_snapshot::Snapshots;
use tk_syntax::diag::apply;
use tk_syntax::{FileId, render};

/// One text under the name `main.tk`.
struct One(String);

impl Loader for One {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "main.tk" { Ok(self.0.clone()) } else { Err(format!("{path}: not found")) }
    }
}

fn run(text: &str) -> Checked {
    check(&One(text.to_string()), "main.tk")
}

/// What the first line promises: code, count, places, fix.
fn promise(text: &str) -> (String, usize, usize, bool) {
    let line = text.lines().next().unwrap().trim_start_matches("// ").to_string();
    let parts: Vec<&str> = line.split(", ").collect();
    let (count, code) = match parts[0].split_once(" x ") {
        Some((n, c)) => (n.parse().unwrap(), c.to_string()),
        None => (1, parts[0].to_string()),
    };
    let places = parts.iter().find_map(|p| p.strip_suffix(" places")).map_or(1, |n| n.parse().unwrap());
    (code, count, places, parts.contains(&"fix"))
}

/// Warnings count where one is promised: an example of an error need not use all that it declares.
fn relevant(code: &str, mut checked: Checked) -> Checked {
    checked.diagnostics.retain(|d| code.starts_with('W') || d.is_error());
    checked
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnostics");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "tk"));
    files.sort();
    files
}

#[test]
fn an_advised_require_mends() {
    for (a, b, advice) in [
        ("BK * 32 / 2", "16 * BK", None),
        ("32 * (BK / 2)", "16 * BK", Some("BK % 2 == 0")),
        ("BK / 2 + BK / 4 * 2", "BK", Some("BK % 4 == 0")),
        ("4 * cdiv(BK, 4)", "BK", Some("BK % 4 == 0")),
        ("2 * BK", "2 * N", Some("BK == N")),
        ("BK + 1", "N", Some("BK == N - 1")),
        ("BK * N", "16 * N", None),
        ("BK * N", "BK + N", None),
        ("(BK + N) / 4 * 4", "BK + N", None),
        ("BK / 2", "BK", None),
    ] {
        let program = |require: &str| {
            format!(
                "fn f[BK: i32, N: i32](a: tile[f32, {a}], b: tile[f32, {b}]) -> tile[f32, {b}]{require} {{\n    a + b\n}}\n"
            )
        };
        let checked = run(&program(""));
        let errors = checked.diagnostics.iter().filter(|d| d.is_error());
        let fixes: Vec<_> = errors.flat_map(|d| &d.fixes).collect();
        let Some(advice) = advice else {
            assert!(fixes.is_empty(), "{a}: {fixes:?}");
            continue;
        };
        let titles: Vec<&String> = fixes.iter().map(|f| &f.title).collect();
        assert_eq!(titles, [&format!("`require({advice})` in the signature would make them equal")], "{a}");
        // The fix writes it, after what is there.
        for (clause, mended) in [
            ("", format!(" require({advice})")),
            (" require(BK > 0)", format!(" require(BK > 0, {advice})")),
            (" require(BK > 0,)", format!(" require(BK > 0, {advice},)")),
        ] {
            let fix =
                run(&program(clause)).diagnostics.iter().find_map(|d| d.fixes.first().cloned()).unwrap();
            assert_eq!(apply(&program(clause), &fix), program(&mended));
            let mended = run(&program(&mended)).diagnostics;
            assert!(mended.iter().all(|d| !d.is_error()), "{a} {advice}: {mended:?}");
        }
    }
}

#[test]
fn no_fix_repeats_a_division_that_is_a_comment() {
    let text = "fn f(n: i32, v: f32) -> f32 {\n    exp(n // 2 + v)\n}\n";
    let checked = run(text);
    let fixes: Vec<_> = checked.diagnostics.iter().flat_map(|d| &d.fixes).collect();
    let titles: Vec<&str> = fixes.iter().map(|f| f.title.as_str()).collect();
    assert_eq!(titles, ["write `/`", "cast to `f32`"]);
    assert_eq!(fixes[1].edits[0].text, "(n / 2) as f32");
}

#[test]
fn every_mistake_gives_its_message_and_its_fix_works() {
    let files = cases();
    assert!(files.len() >= 20, "only {} cases found", files.len());
    let mut snapshots = Snapshots::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (code, count, places, fix) = promise(&text);
        let checked = relevant(&code, run(&text));
        let found: Vec<String> =
            checked.diagnostics.iter().map(|d| render(&checked.sources, d, false)).collect();
        let shown = found.join("\n");
        let name = file.display();
        assert_eq!(checked.diagnostics.len(), count, "{name}:\n{shown}");
        snapshots.check(file.with_extension("txt"), &shown);
        for d in &checked.diagnostics {
            assert_eq!(d.code.0, code, "{name}:\n{shown}");
            assert_eq!(d.secondary.len() + 1, places, "{name}: places\n{shown}");
            assert_eq!(!d.fixes.is_empty(), fix, "{name}: fix\n{shown}");
            for f in &d.fixes {
                assert!(f.edits.iter().all(|e| e.span.file == FileId(0)), "{name}: a fix leaves the file");
                let mended = apply(&text, f);
                let again = relevant(&code, run(&mended));
                let left: Vec<String> =
                    again.diagnostics.iter().map(|d| render(&again.sources, d, false)).collect();
                assert_eq!(
                    left.len(),
                    count - 1,
                    "{name}: `{}` leaves\n{}\n{mended}",
                    f.title,
                    left.join("\n")
                );
            }
        }
    }
    snapshots.finish();
}
