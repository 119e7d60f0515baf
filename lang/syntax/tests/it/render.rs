//! How diagnostics look, and that no span is too strange to be shown.

use tk_syntax::codes::{SHAPE_MISMATCH, SYNTAX};
use tk_syntax::{Diagnostic, FileId, Severity, SourceMap, Span, render};

#[test]
fn looks() {
    let mut sources = SourceMap::default();
    let text = "fn f() {\n    let x = a + b;\n    let y = 1;\n}\n";
    let id = sources.add("f.tk", text);
    let at = |s: &str| {
        let start = text.find(s).unwrap_or_default();
        Span::new(id, start, start + s.len())
    };
    let d = Diagnostic::error(SHAPE_MISMATCH, at("a + b"), "the shapes [4] and [8] differ", "here they meet")
        .label(at("y"), "this is [8]")
        .note("Rank 0 broadcasts.")
        .fix("remove `a`", at("a + "), "");
    let want = "\
error[E0304]: the shapes [4] and [8] differ
   ╭─[ f.tk:2:13 ]
   │
 2 │     let x = a + b;
   │             ──┬──
   │               ╰──── here they meet
 3 │     let y = 1;
   │         ┬
   │         ╰── this is [8]
───╯
  note: Rank 0 broadcasts.
  help: remove `a`
        let x = b;
";
    assert_eq!(render(&sources, &d, false), want);
    assert!(render(&sources, &d, true).starts_with("\u{1b}[31merror[E0304]:\u{1b}[0m the shapes"));
    let warning = render(&sources, &d.severity(Severity::Warning), false);
    assert!(warning.starts_with("warning[E0304]: "));
}

#[test]
fn without_label() {
    let mut sources = SourceMap::default();
    let text = "let x = a + b;\nlet y =\n    1;\n";
    let id = sources.add("f.tk", text);
    let span = |start, end| Span::new(id, start, end);
    let body = |d: &Diagnostic| render(&sources, d, false).lines().skip(2).collect::<Vec<_>>().join("\n");
    let d = Diagnostic::error(SYNTAX, span(8, 13), "m", "");
    let want = "   │\n 1 │ let x = a + b;\n   │         ─────\n───╯";
    assert_eq!(body(&d), want);
    let colored = render(&sources, &d, true);
    assert!(!colored.contains('╰') && !colored.contains('┬'), "{colored}");
    let want = "
   │
 1 │ let x = a + b;
   │     ┬   ─────
   │     │
   │     ╰────────── second
───╯";
    assert_eq!("\n".to_string() + &body(&d.label(span(4, 5), "second")), want);
    let want = "
   │
 2 │ ╭─▶ let y =
 3 │ ├─▶     1;
   │ │
   │ ╰────────────
───╯";
    assert_eq!("\n".to_string() + &body(&Diagnostic::error(SYNTAX, span(15, 29), "m", "")), want);
}

#[test]
fn any_span() {
    let long = "x".repeat(5000);
    for text in ["", "\n", "a", "größe = 1;\r\nλ\u{1F600}\u{200D}b\t\n\n", "\u{2028}a\u{B}b\n\rc", &long] {
        let mut sources = SourceMap::default();
        let id = sources.add("name.tk", text);
        let other = sources.add("other.tk", "a\nb\nc");
        let end = (text.len() + 3).min(40);
        for start in 0..end {
            for stop in 0..end {
                let d = Diagnostic::error(SYNTAX, Span::new(id, start, stop), "message\nof two lines", "")
                    .label(Span::new(id, stop, stop + 2), "second")
                    .label(Span::new(other, start, stop), "")
                    .fix("title", Span::new(id, start, stop), "text");
                for color in [false, true] {
                    assert!(render(&sources, &d, color).contains("message of two lines"));
                }
            }
        }
        let strange = [Span::new(FileId(9), 0, 1), Span { file: id, start: u32::MAX, end: u32::MAX }];
        for span in strange {
            let d = Diagnostic::error(SYNTAX, span, "m", "").label(span, "l").fix("t", span, "x");
            assert!(render(&sources, &d, false).starts_with("error[E0101]: m\n"));
        }
    }
}

#[test]
fn long_files_are_quick() {
    let text = "let x = 1;\n".repeat(200_000);
    let mut sources = SourceMap::default();
    let id = sources.add("long.tk", &text);
    let span = Span::new(id, text.len() - 7, text.len() - 6);
    let shown = render(&sources, &Diagnostic::error(SYNTAX, span, "m", ""), false);
    assert!(shown.contains("long.tk:200000:5") && shown.contains("200000 │ let x = 1;"), "{shown}");
}
