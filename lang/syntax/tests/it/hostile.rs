//! Unusual texts: cut off, with a token missing, too deep, too long, random.

use crate::common::{SAMPLES, check};
use std::time::Instant;
use tk_syntax::codes::TOO_DEEP;
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
    // How often a missing token gives 0, 1, 2, .. messages. Most that give none are commas or words whose absence
    // means something else.
    let mut counts = [0usize; 6];
    for (name, text) in SAMPLES {
        for t in &token::lex(FileId(0), text).tokens {
            let (_, diags) = check(&format!("{}{}", &text[..t.start], &text[t.end..]));
            assert!(
                diags.len() < counts.len(),
                "{name} without {} at {}: {diags:#?}",
                &text[t.start..t.end],
                t.start
            );
            counts[diags.len()] += 1;
        }
    }
    let all: usize = counts.iter().sum();
    let few: usize = counts[..2].iter().sum();
    assert!(few * 100 > all * 97, "{counts:?}");
    assert!(counts[3..].iter().sum::<usize>() < 15, "{counts:?}");
}

/// Constructs of which any number can be put around or after another: before, middle, after.
const NESTS: [(&str, &str, &str); 39] = [
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{", "1", "}"),
    ("-", "1", ""),
    ("!", "a", ""),
    ("1+", "1", ""),
    ("", "a", ".a"),
    ("", "f", "()"),
    ("", "f", "[0]"),
    ("f(", "1", ")"),
    ("a[", "1", "]"),
    ("(1,", "1", ")"),
    ("if a { 1 } else ", "{ 2 }", ""),
    ("if a { ", "1", "}"),
    ("|a| ", "1", ""),
    ("a as ", "T", ""),
    ("a = ", "1", ""),
    ("a < ", "1", ""),
    ("a && ", "1", ""),
    ("x: ", "1", ""),
    ("else ", "1", ""),
    ("@a ", "", ""),
    ("*", "a", ""),
    ("*mut ", "a", ""),
    ("a as *", "T", ""),
    ("return ", "1", ""),
    ("for a in ", "1", ""),
    ("while ", "1", ""),
    ("a::", "a", ""),
    ("a ", "a", ""),
    ("; ", "a", ""),
    ("let ", "a", ""),
    ("a\n", "a", ""),
    ("f(a b ", "", ")"),
    ("{ let x = ", "1", "; x }"),
    ("for i in a { ", "", "}"),
    ("while (", "", ")"),
    ("f(|a| ", "a", ")"),
    ("fn(", "a", ") -> a"),
];

/// A nest at every place of a file.
fn places(nest: &str) -> [String; 11] {
    [
        format!("fn f() {{ let x = {nest}; }}"),
        format!("fn f() {{ {nest} }}"),
        format!("fn f() {{ {nest}; }}"),
        format!("const A = {nest};"),
        format!("fn f(a: {nest}) {{ }}"),
        format!("fn f() {{ let {nest} = 1; }}"),
        format!("fn f() {{ let a: {nest} = 1; }}"),
        format!("kernel f() grid({nest}) {{ }}"),
        format!("struct S {{ {nest} }}"),
        format!("fn f() {{ {nest}"),
        nest.to_string(),
    ]
}

fn survives(text: &str) {
    let (file, diags) = parse(FileId(0), text);
    dump(&file);
    drop(file.clone());
    let deep = diags.iter().filter(|d| d.code == TOO_DEEP).count();
    let start: String = text.chars().take(60).collect();
    assert!(deep <= 1, "{deep} times too deep: {start}");
}

#[test]
fn hundred_thousand_levels() {
    const DEEP: usize = 100_000;
    for (before, middle, after) in NESTS {
        // These are no levels but statements with an error each.
        let flat = ["for a", "while", "return", "let", "; ", "a\n"].iter().any(|s| before.starts_with(s));
        let deep = if flat { DEEP / 20 } else { DEEP };
        let nest = format!("{}{middle}{}", before.repeat(deep), after.repeat(deep));
        survives(&format!("fn f() {{ let x = {nest}; }}"));
    }
}

#[test]
fn thousand_levels_everywhere() {
    const DEEP: usize = 500;
    for (before, middle, after) in NESTS {
        let nest = format!("{}{middle}{}", before.repeat(DEEP), after.repeat(DEEP));
        places(&nest).iter().for_each(|text| survives(text));
        // Only one side of it.
        places(&before.repeat(DEEP)).iter().for_each(|text| survives(text));
        places(&after.repeat(DEEP)).iter().for_each(|text| survives(text));
    }
}

#[test]
fn depth_that_is_allowed() {
    let nested = |n: usize| format!("fn f() {{ x = {}1{}; }}", "f(".repeat(n), ")".repeat(n));
    assert!(check(&nested(200)).1.is_empty());
    let diags = check(&nested(300)).1;
    assert_eq!(diags.iter().map(|d| d.code).collect::<Vec<_>>(), [TOO_DEEP]);
    // Parentheses and statements in a row are no depth.
    assert!(check(&format!("fn f() {{ x = {}1{}; }}", "(".repeat(1000), ")".repeat(1000))).1.is_empty());
    assert!(check(&format!("fn f() {{ {} }}", "x = 1; if a { b(); }".repeat(1000))).1.is_empty());
}

#[test]
fn time_is_linear() {
    let time = |text: String| {
        let start = Instant::now();
        parse(FileId(0), &text);
        start.elapsed().as_secs_f64()
    };
    let broken = SAMPLES[2].1.replace("let late;", "let late = ;").replace("acc += w;", "acc += w");
    for text in [SAMPLES[2].1, &broken] {
        time(text.repeat(50));
        let (short, long) = (time(text.repeat(50)), time(text.repeat(500)));
        // Ten times the text; the machine may be busy, quadratic time would give a hundred.
        assert!(long < short * 50.0, "{short} s, {long} s");
    }
}

/// A fixed sequence of numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// What random programs are made of.
#[rustfmt::skip]
const WORDS: &[&str] = &["use", "const", "struct", "fn", "kernel", "let", "mut", "if", "else", "for", "in",
    "while", "break", "continue", "return", "as", "true", "None", "test", "\"s\"", "export", "grid", "tune",
    "assert_error", "x", "größe", "T", "1", "2.5", "0xf", "(", ")", "[", "]", "{", "}", "(", ")", "{", "}",
    ",", ";", ";", ":", "::", ".", "->", "@", "?", "=", "+=", "<<=", "+", "-", "*", "/", "&", "|", "||",
    "!", "==", "<", "\n", "\n", "\n    ", "/// doc\n", "// c\n", "$", "§", "'a'", "\"open", "1.", "5f32",
    "#", "\u{1F600}"];

#[test]
fn random_tokens() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4000 {
        let length = random.below(60);
        let words: Vec<&str> = (0..length).map(|_| WORDS[random.below(WORDS.len())]).collect();
        check(&words.join(" "));
        check(&words.concat());
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..4000 {
        let bytes: Vec<u8> = (0..random.below(80)).map(|_| random.below(256) as u8).collect();
        check(&String::from_utf8_lossy(&bytes));
        let ascii: Vec<u8> = bytes.iter().map(|b| b % 128).collect();
        check(&String::from_utf8_lossy(&ascii));
    }
}

#[test]
fn random_changes() {
    let mut random = Random(0x0123_4567_89ab_cdef);
    for _ in 0..600 {
        let text = SAMPLES[random.below(3)].1;
        let tokens = token::lex(FileId(0), text).tokens;
        let (from, to) = (random.below(tokens.len()), random.below(tokens.len()));
        let (a, b) = (tokens[from.min(to)], tokens[from.max(to)]);
        // A piece left out, and a piece put elsewhere.
        check(&format!("{}{}", &text[..a.start], &text[b.start..]));
        let piece = &text[a.start..b.end.min(a.start + 200)];
        if text.is_char_boundary(b.end.min(a.start + 200)) {
            let at = tokens[random.below(tokens.len())].start;
            check(&format!("{} {piece} {}", &text[..at], &text[at..]));
        }
    }
}
