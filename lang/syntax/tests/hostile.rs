//! Texts that nobody writes: cut off, with a token missing, too deep, too long, random.

mod common;

use common::{SAMPLES, check};
use tk_syntax::codes::{TOO_DEEP, UNCLOSED};
use tk_syntax::{FileId, dump, parse, token};

#[test]
fn every_prefix_gives_a_tree() {
    for (name, text) in SAMPLES {
        for end in (0..text.len()).filter(|&i| text.is_char_boundary(i)) {
            let (file, diags) = check(&text[..end]);
            assert!(diags.len() <= 3, "{name} up to {end}: {diags:#?}");
            assert!(end < 200 || !file.items.is_empty());
        }
    }
}

#[test]
fn every_missing_token_gives_few_messages() {
    let mut counts = [0usize; 8];
    for (name, text) in SAMPLES {
        let tokens = token::lex(FileId(0), text).tokens;
        for t in &tokens {
            let without = format!("{}{}", &text[..t.start], &text[t.end..]);
            let (_, diags) = check(&without);
            counts[diags.len().min(7)] += 1;
            if diags.len() > 1 {
                println!("{name} without {:?} at {}", &text[t.start..t.end], text[..t.start].lines().count());
                for d in &diags { println!("    {} {}: {}", d.primary.span.start, d.code, d.message); }
            }
        }
    }
    println!("{counts:?}");
    panic!();
}

#[test]
fn deep_texts() {
    const N: usize = 100_000;
    let around = |open: &str, mid: &str, close: &str| open.repeat(N) + mid + &close.repeat(N);
    let cases = [
        around("(", "1", ")"),
        around("[", "1", "]"),
        around("{", "1", "}"),
        around("-", "1", ""),
        around("!", "a", ""),
        around("1+", "1", ""),
        around("a", "", ".a"),
        around("f", "", "()"),
        around("f", "", "[0]"),
        around("f(", "1", ")"),
        around("a[", "1", "]"),
        around("(1,", "1", ")"),
        around("if a { 1 } else ", "{ 2 }", ""),
        around("if a { ", "1", "}"),
        around("|a| ", "1", ""),
        around("a as ", "T", ""),
        around("a = ", "1", ""),
        around("a < ", "1", ""),
        around("a && ", "1", ""),
        around("x: ", "1", ""),
        around("else ", "1", ""),
        around("@a ", "", ""),
        around("*", "a", ""),
        around("*mut ", "a", ""),
        around("a as *", "T", ""),
        around("return ", "1", ""),
        around("for a in ", "1", ""),
        around("while ", "1", ""),
        around("a::", "a", ""),
        around("a ", "a", ""),
        around("1 ", "a", ""),
        around("; ", "a", ""),
        around("let ", "a", ""),
        around("a\n", "a", ""),
        around("f(a b ", "", ")"),
        around("{ let x = ", "1", "; x }"),
        around("for i in a { ", "", "}"),
        around("while (", "", ")"),
        around("f(|a| ", "a", ")"),
    ];
    for case in &cases {
        for text in [
            format!("fn f() {{ {case} }}"),
            format!("fn f() {{ let x = {case}; }}"),
            format!("fn f() {{ {case}; }}"),
            format!("const A = {case};"),
            format!("fn f(a: {case}) {{ }}"),
            format!("fn f() {{ let {case} = 1; }}"),
            format!("fn f() {{ let a: {case} = 1; }}"),
            format!("kernel f() grid({case}) {{ }}"),
            format!("struct S {{ {case} }}"),
            format!("fn f() {{ {case}"),
            case.clone(),
        ] {
            let (file, diags) = parse(FileId(0), &text);
            dump(&file);
            drop(file.clone());
            let deep = diags.iter().filter(|d| d.code == TOO_DEEP).count();
            assert!(deep <= 2, "{deep} {}", &text[..40]);
        }
    }
}
