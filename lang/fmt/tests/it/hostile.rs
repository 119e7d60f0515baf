//! Unusual texts: too deep, too long, broken. And parts of texts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Random, formatted, samples};
use std::time::Instant;
use tk_fmt::{format, format_range};

#[test]
fn errors_are_all_given() {
    let errors = format("fn f( {}\nfn g() { let = 1; }\n").unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:#?}");
    assert!(format_range("fn f( {}\nfn g() {}\n", 0..20).is_none());
}

#[test]
fn hundred_thousand_levels() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("(", "(1, 2)", ")"),
        ("[", "1", "]"),
        ("-", "1", ""),
        ("f(", "1", ")"),
        ("1 + ", "1", ""),
        ("", "a", ".a"),
        ("", "a", "[0]"),
        ("if a { 1 } else ", "{ 2 }", ""),
        ("|a| ", "1", ""),
        ("{", "1", "}"),
    ] {
        let nest = format!("{}{middle}{}", open.repeat(100_000), close.repeat(100_000));
        let text = format!("fn f(a: i32) {{ let x = {nest}; }}");
        if let Ok(once) = format(&text) {
            assert!(format(&once).unwrap() == once);
        }
        let nest = format!("{}{middle}{}", open.repeat(200), close.repeat(200));
        let text = format!("fn f(a: i32) {{ let x = {nest}; }}");
        if format(&text).is_ok() {
            formatted(&text);
        }
    }
    // Parentheses are no depth.
    let text = format!("const A = {}1{};\n", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(format(&text).unwrap(), text);
    let long = format!("const A = {}{}{};\n", "(".repeat(1000), "a + ".repeat(50) + "a", ")".repeat(1000));
    assert!(formatted(&long).len() < 10_000);
}

#[test]
fn time_is_linear() {
    let time = |text: &str| {
        let start = Instant::now();
        format(text).unwrap();
        start.elapsed().as_secs_f64()
    };
    let (_, text) = samples().pop().unwrap();
    let flat = format!("const A = [{}];\n", "[1, f(2)], ".repeat(20_000));
    let comments = "// a\n".repeat(20_000) + "fn f() {\n" + &"// b\n".repeat(20_000) + "}\n";
    let trailing = "const A = 1; // a\n".repeat(4_000);
    for text in [text.repeat(40), flat, comments, trailing] {
        // The machine may be busy for a while; quadratic time would give a hundred each time.
        let measured = [(); 3].map(|()| (time(&text), time(&text.repeat(10))));
        assert!(measured.iter().any(|(short, long)| *long < short * 50.0), "{measured:?}");
    }
}

/// Replaces what `format_range` gives for the text between two `§`.
fn in_range(marked: &str) -> String {
    let parts: Vec<&str> = marked.split('§').collect();
    let text = parts.concat();
    let range = parts[0].len()..parts[0].len() + parts[1].len();
    let Some((range, new)) = format_range(&text, range) else { return text };
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

#[test]
fn a_range_takes_whole_statements() {
    assert_eq!(
        in_range("fn f( ){\n  a( );\n  // of b\n  b§( );\n  c( §); // of c\n  d( );\n}\n"),
        "fn f( ){\n  a( );\n    // of b\n    b();\n    c(); // of c\n  d( );\n}\n"
    );
    assert_eq!(in_range("fn f( ){a( );§b( );§c( );}"), "fn f( ){a( );\n    b();c( );}");
    // Over the end of a block: its statement.
    assert_eq!(
        in_range("fn f() {\n  if a { b(§ ); }\n  c§( );\n  d( );\n}\n"),
        "fn f() {\n    if a { b(); }\n    c();\n  d( );\n}\n"
    );
    assert_eq!(in_range("const A=1;\nconst §§B=2;\nconst C=3;"), "const A=1;\nconst B = 2;\nconst C=3;");
    assert_eq!(in_range("const A=1;\n§const B=2;\n§const C=3;"), "const A=1;\nconst B = 2;\nconst C=3;");
    assert_eq!(in_range("// head\n§§const A=1 // x\n;// y\n"), "// head\nconst A = 1; // x\n// y\n");
    assert_eq!(in_range("fn f() {\n  a( );\n\n§§\n\n  b( );\n}\n"), "fn f() {\n  a( );\n\n\n\n  b( );\n}\n");
    assert_eq!(in_range("struct S { a:i§§32 }\nfn f(){}"), "struct S { a: i32 }\nfn f(){}");
}

#[test]
fn a_repeated_semicolon_moves_nothing() {
    for (marked, after) in [
        ("fn f() {\n    let x = 1;;\n    let y=2§;§\n}\n", "fn f() {\n    let x = 1;;\n    let y = 2;\n}\n"),
        ("fn f() {\n    let x = 1;§;\n    let y=2;§\n}\n", "fn f() {\n    let x = 1;;\n    let y = 2;\n}\n"),
        ("fn f() {\n    let x=1§;§;\n    let y=2;\n}\n", "fn f() {\n    let x = 1;;\n    let y=2;\n}\n"),
        ("fn f() {\n    1; ;§\n    let y=2;§\n}\n", "fn f() {\n    1; ;\n    let y = 2;\n}\n"),
        (
            "fn f() {\n  a(); // one\n;; // two\n  b( )§;§\n}\n",
            "fn f() {\n  a(); // one\n;; // two\n    b();\n}\n",
        ),
        ("fn f() {\n  ;;\n  b( )§;§\n}\n", "fn f() {\n  ;;\n    b();\n}\n"),
        (
            "fn f() {\n    g(1);;\n    if x {\n  g(2); §}§\n}\n",
            "fn f() {\n    g(1);;\n    if x {\n        g(2);\n    }\n}\n",
        ),
        ("const A = 1;;\nconst B=2§;§\n", "const A = 1;;\nconst B = 2;\n"),
    ] {
        assert_eq!(in_range(marked), after, "{marked}");
    }
}

#[test]
fn any_range_of_any_text() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (_, text) in samples() {
        // Nothing that a range gives changes the program, and all of them together format it.
        let messy = text.replace(" = ", "=").replace("    ", "  ").replace(";\n  ", ";;\n  ");
        let goal = formatted(&messy);
        for _ in 0..20 {
            let (a, b) = (random.below(messy.len() + 3), random.below(messy.len() + 3));
            if let Some((range, new)) = format_range(&messy, a.min(b)..a.max(b)) {
                let changed = format!("{}{new}{}", &messy[..range.start], &messy[range.end..]);
                assert_eq!(format(&changed).unwrap(), goal);
            }
        }
        let (range, new) = format_range(&messy, 0..messy.len()).unwrap();
        assert_eq!(format!("{}{new}{}", &messy[..range.start], &messy[range.end..]), goal);
        assert!(format_range(&goal, 0..goal.len()).is_none());
    }
    assert!(format_range("const A=1;", 100..200).is_none());
    #[allow(clippy::reversed_empty_ranges, reason = "that is the point")]
    let reversed = format_range("const A=1;", 5..2);
    assert!(reversed.is_none());
}
