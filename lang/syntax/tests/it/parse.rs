//! What the parser makes of correct text.

use crate::common::{SAMPLES, check};
use tk_syntax::ast::{ExprKind, File, ItemKind, StmtKind};
use tk_syntax::dump;

/// The dump of a correct text.
fn tree(text: &str) -> String {
    let (file, diags) = check(text);
    assert!(diags.is_empty(), "{text}: {diags:#?}");
    dump(&file)
}

/// The dump of an expression: the part below `const A`.
fn expr(text: &str) -> String {
    let lines = tree(&format!("const A = {text};"));
    lines.lines().skip(1).map(|l| l[2..].to_string() + "\n").collect()
}

/// The tree of an expression written with brackets: `(+ a b)`.
fn shape(text: &str) -> String {
    let dump = expr(text);
    let lines: Vec<(usize, &str)> =
        dump.lines().map(|l| ((l.len() - l.trim_start().len()) / 2, l.trim())).collect();
    let mut out = String::new();
    for (i, (depth, line)) in lines.iter().enumerate() {
        let next = lines.get(i + 1).map_or(0, |l| l.0);
        let space = if out.is_empty() || out.ends_with('(') { "" } else { " " };
        let open = if next > *depth { "(" } else { "" };
        out += &format!("{space}{open}{line}{}", ")".repeat(depth.saturating_sub(next)));
    }
    out
}

fn parsed(text: &str) -> File {
    let (file, diags) = check(text);
    assert!(diags.is_empty(), "{text}: {diags:#?}");
    file
}

#[test]
fn samples() {
    let items: Vec<usize> = SAMPLES.iter().map(|(_, text)| parsed(text).items.len()).collect();
    assert_eq!(items, [5, 4, 17]);
}

#[test]
fn precedence() {
    assert_eq!(shape("a + b * c"), "(+ a (* b c))");
    assert_eq!(shape("a - b - c"), "(- (- a b) c)");
    assert_eq!(shape("a * b as f32"), "(* a (as f32 b))");
    assert_eq!(shape("-a as f32"), "(as f32 (- a))");
    assert_eq!(shape("-a.b"), "(- (.b a))");
    assert_eq!(
        shape("a || b && c == d | e ^ f & g << 1 + 2"),
        "(|| a (&& b (== c (| d (^ e (& f (<< g (+ 1 2))))))))"
    );
    assert_eq!(shape("!-a"), "(! (- a))");
    assert_eq!(shape("(a + b) * c"), "(* (+ a b) c)");
    assert_eq!(shape("(a < b) == c"), "(== (< a b) c)");
    assert_eq!(shape("x as T.acc as *mut f32"), "(as *mut f32 (as T.acc x))");
    assert_eq!(shape("a - -1"), "(- a (- 1))");
}

#[test]
fn postfix() {
    assert_eq!(shape("t[0]"), "(index t 0)");
    assert_eq!(
        expr("v[i, a:b, :, 1:, N = 2]"),
        "index\n  v\n  i\n  :\n    from\n      a\n    to\n      b\n  :\n  :\n    from\n      1\n  N =\n    2\n"
    );
    assert_eq!(expr("f(a, b = c)"), "call\n  f\n  a\n  b =\n    c\n");
    assert_eq!(shape("T.bits"), "(.bits T)");
    assert_eq!(expr("std::grid::f()"), "call\n  std::grid::f\n");
}

#[test]
fn literals() {
    assert_eq!(expr("0xff_00"), "65280\n");
    assert_eq!(expr("0b101 + 0o17"), "+\n  5\n  15\n");
    assert_eq!(expr("1_000"), "1000\n");
    assert_eq!(expr("1_0.5e-3"), "10.5e-3\n");
    assert_eq!(expr("1e-5"), "1e-5\n");
    assert_eq!(expr(r#""a\n\"\u{41}""#), "\"a\\n\\\"A\"\n");
    assert_eq!(expr("inf"), "inf\n");
    assert_eq!(expr("true"), "true\n");
    assert_eq!(expr("None"), "None\n");
    assert_eq!(expr("()"), "tuple\n");
    assert_eq!(expr("(1,)"), "tuple\n  1\n");
    assert_eq!(expr("(1, [2, 3],)"), "tuple\n  1\n  array\n    2\n    3\n");
    let deepest = u128::MAX.to_string();
    assert_eq!(expr(&deepest), format!("{deepest}\n"));
}

#[test]
fn types_as_values() {
    assert_eq!(expr("*mut *f32"), "type *mut *f32\n");
    assert_eq!(expr("fn(f32, i32) -> f32"), "type fn(f32, i32) -> f32\n");
    assert_eq!(expr("f(*T.acc)"), "call\n  f\n  type *T.acc\n");
}

#[test]
fn types() {
    let ty = |text: &str| {
        let dump = tree(&format!("fn f(x: {text}) {{}}"));
        let line = dump.lines().nth(1).map(str::to_string);
        line.and_then(|l| l.split_once(": ").map(|l| l.1.to_string())).unwrap_or_default()
    };
    for text in [
        "f32",
        "tile[f32, BM, BN]",
        "view[T.acc, 2]",
        "mut view[T, 2]",
        "mut view[T, 2]?",
        "view[T, 1]?",
        "**mut T",
        "*mut T?",
        "T.acc",
        "(i32, (f32, *T))",
        "()",
        "fn(f32, T) -> fn() -> (f32, f32)",
        "S[N = 4]",
        "a::b",
    ] {
        assert_eq!(ty(text), text);
    }
    assert_eq!(ty("(i32)"), "i32");
}

#[test]
fn blocks() {
    let value = |text: &str| {
        let file = parsed(&format!("fn f() {{ {text} }}"));
        let Some(ItemKind::Fn(f)) = file.items.into_iter().next().map(|i| i.kind) else {
            panic!("no function")
        };
        (f.body.stmts.clone(), f.body.tail.clone().map(|t| t.kind))
    };
    assert!(matches!(value("a; b"), (s, Some(ExprKind::Path(_))) if s.len() == 1));
    assert!(matches!(value("a; b;"), (s, None) if s.len() == 2));
    assert!(matches!(value("if a { b } c"), (s, Some(ExprKind::Path(_))) if s.len() == 1));
    assert!(matches!(value("if a { b } else { c }"), (s, Some(ExprKind::If(..))) if s.is_empty()));
    assert!(matches!(value("if a { b } if c { d }"), (s, Some(ExprKind::If(..))) if s.len() == 1));
    assert!(matches!(value("if a { b };"), (s, None) if s.len() == 1));
    assert!(matches!(value("{ b }"), (_, Some(ExprKind::Block(_)))));
    assert!(matches!(value("return a"), (s, Some(ExprKind::Return(Some(_)))) if s.is_empty()));
    assert!(matches!(value("return"), (_, Some(ExprKind::Return(None)))));
    assert!(matches!(value("return a;"), (s, None) if matches!(s[0].kind, StmtKind::Return(Some(_)))));
    assert!(matches!(value("for a in b { c }"), (s, None) if matches!(s[0].kind, StmtKind::For { .. })));
    assert!(matches!(value("|a| a"), (_, Some(ExprKind::Lambda(..)))));
    let text = "if let a = b { c } else if d { e } -1";
    assert!(matches!(value(text), (s, Some(ExprKind::Unary(..))) if s.len() == 1));
    assert!(matches!(value("if a { b }\n-1"), (s, Some(ExprKind::Unary(..))) if s.len() == 1));
    assert!(matches!(value("if a { b }\n(c, d) = e;"), (s, None) if s.len() == 2));
    assert!(matches!(value(";;a;;"), (s, None) if s.len() == 1));
}

#[test]
fn kernel_with_every_clause() {
    let dump = tree(
        "@fast kernel k[T: f16 | bf16 = f16](x: mut view[T, 2]?, axis: const i32 = 0) grid(1, n)
         tune(key = n) { { A = [1, 2] } if c, { A = 3, } } scratch(l: *mut u32, n, zeroed = true) custom() {}",
    );
    let want = "@fast
kernel k
  cparam T: f16 | bf16
    f16
  param x: mut view[T, 2]?
  param const axis: i32
    0
  clause grid
    1
    n
  clause tune
    key =
      n
    row
      A =
        array
          1
          2
      if
        c
    row
      A =
        3
  clause scratch
    l =
      type *mut u32
    n
    zeroed =
      true
  clause custom
";
    assert_eq!(dump, want);
}

#[test]
fn words_with_a_place_are_names_elsewhere() {
    let text = "
        fn test(grid: i32, tune: i32) -> i32 { let launch = grid + tune; export(launch); require }
        fn export[alias: i32](scratch: i32) { test = 1; assert_error(2); assert_error = 3; export[1](2) }
        const test = 1;
        const export = test(1);
        kernel grid(test: i32) grid(test) { grid(1); }
        test \"test\" { test(1, 2); assert_error \"E0101\" { export } }
        export test[grid = 1];
        use test::export;
        use export as test;
        struct tune { test: i32, export: i32, fn grid(self) -> i32 { self.test } }
    ";
    assert_eq!(parsed(text).items.len(), 10);
}

#[test]
fn docs_belong_to_what_follows() {
    let file = parsed(
        "// plain
         /// One
         ///  two
         @fast
         /// not lost
         kernel k(
            /// first
            a: i32, /// second
            b: i32) {}
         struct S { /// field
            a: i32,
            /// method
            fn m(self) {} }
         fn n() {}
         //// none
         /// end",
    );
    let doc: Vec<&str> = file.items.iter().map(|i| i.doc.as_str()).collect();
    assert_eq!(doc, ["One\n two", "", ""]);
    let ItemKind::Fn(k) = &file.items[0].kind else { panic!("no kernel") };
    assert_eq!(k.params.iter().map(|p| p.doc.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    let ItemKind::Struct(s) = &file.items[1].kind else { panic!("no struct") };
    assert_eq!((s.fields[0].doc.as_str(), s.methods[0].doc.as_str()), ("field", "method"));
    let comments: Vec<(bool, &str)> = file.comments.iter().map(|c| (c.doc, c.text.as_str())).collect();
    assert_eq!(comments[..3], [(false, " plain"), (true, " One"), (true, "  two")]);
    assert_eq!(comments[comments.len() - 2..], [(false, " none"), (true, " end")]);
}

#[test]
fn parentheses_belong_to_the_span() {
    let text = "const A = ((a) + b);";
    let file = parsed(text);
    let ItemKind::Const(c) = &file.items[0].kind else { panic!("no constant") };
    let ExprKind::Binary(_, a, _) = &c.value.kind else { panic!("no sum") };
    let at = |e: &tk_syntax::ast::Expr| &text[e.span.start as usize..e.span.end as usize];
    assert_eq!((at(&c.value), at(a)), ("((a) + b)", "(a)"));
}

#[test]
fn line_ends_and_marks() {
    let text = "\u{FEFF}fn f() {\r\n    // c\r\n    let x = 1;\r\n\tx\r\n}\r\n";
    let file = parsed(text);
    assert_eq!(file.comments[0].text, " c");
    assert_eq!(dump(&file), "fn f\n  let x\n    1\n  value\n    x\n");
}

#[test]
fn the_other_arm_of_a_constant_may_stand_on_the_next_line() {
    let file = parsed("const A = if B { 1 }\nelse { 2 };\nconst B = true;");
    let ItemKind::Const(c) = &file.items[0].kind else { panic!("no constant") };
    assert!(matches!(c.value.kind, ExprKind::If(..)));
    assert_eq!(file.items.len(), 2);
}
