//! What the parser says about wrong text.

use crate::common::{check, messages};
use tk_syntax::ast::ItemKind;
use tk_syntax::codes::{BAD_LITERAL, BAD_TOKEN, MISSING_SEMICOLON, SYNTAX, UNCLOSED, UNOPENED};
use tk_syntax::diag::apply;
use tk_syntax::{Code, dump};

/// The messages about statements in a function.
fn inside(body: &str) -> Vec<String> {
    messages(&format!("fn f() {{\n    {body}\n}}\n"))
}

fn codes(text: &str) -> Vec<Code> {
    check(text).1.iter().map(|d| d.code).collect()
}

/// The text with the first fix of every diagnostic, one after the other.
fn mended(text: &str) -> String {
    let mut text = text.to_string();
    for _ in 0..10 {
        let (_, diags) = check(&text);
        let Some(fix) = diags.iter().find_map(|d| d.fixes.first()) else { break };
        text = apply(&text, fix);
    }
    text
}

/// The body of a function, and the sentence about it.
const BODIES: &[(&str, &str)] = &[
    ("let x = ;", "expected an expression after `=`"),
    ("let x: = 3;", "expected a type after `:`"),
    ("let = 3;", "expected a name or a pattern after `let`"),
    ("let x = a b;", "expected `;` after this statement"),
    ("let x = a + ;", "expected an expression after `+`"),
    ("let x = a.;", "expected a name after `.`"),
    ("x = f(a b);", "expected `,` or `)` after this argument"),
    ("x = v[a b];", "expected `,` or `]` after this index"),
    ("x = [a b];", "expected `,` or `]` after this element"),
    ("for i im range(4) { a(); }", "expected `in` after the loop pattern"),
    ("for i in { a(); }", "expected something to loop over before `{`"),
    ("while { a(); }", "expected a condition before `{`"),
    ("if a b();", "expected `{` after the condition"),
    ("let for = 3;", "`for` is a keyword and cannot be a name"),
    ("let x = |a, 3| b;", "expected a name or a pattern after `,`"),
    ("x as 3;", "expected a type after `as`"),
    ("else { }", "`else` without `if`"),
    ("as x;", "expected a statement"),
    ("@fast let x = 3;", "attributes must precede a loop or an item"),
    ("fn g() { }", "`fn` is not allowed in a block; move it to the top level of the file"),
    ("if a = b { c(); }", "`=` assigns; a condition compares with `==`"),
    ("f(a.b = c);", "only a parameter name can precede `=` here, to name an argument"),
    ("let q = a < b < c;", "comparisons cannot be chained: `<` follows `<`"),
    ("x = 1 + if c { 2 } else { 3 };", "an `if` cannot be an operand; bind it with `let` first"),
    ("x = 1 + |a| a;", "a lambda cannot be an operand; bind it with `let` first"),
    ("if c { 1 } else { 2 } + 3", "a block or `if` cannot be an operand; bind it with `let` first"),
    ("x = S { a: 1 };", "a struct is built with parentheses, `S(field = value)`"),
    ("x = 1, 2;", "a tuple needs parentheses: `(a, b)`"),
    ("x++;", "there is no `++`; `i += 1` is a statement of its own"),
    ("let y = x++;", "there is no `++`; `i += 1` is a statement of its own"),
    ("x = a ** 2.0;", "there is no `**`; a power is `pow(x, y)`"),
    ("x = a if b else c;", "the condition comes first, `if c { a } else { b }`"),
    ("g(a if b else c);", "the condition comes first, `if c { a } else { b }`"),
    ("if v is None { c(); }", "there is no `is`; test an optional view with `if let v = x { .. }`"),
    ("x = v[..., None];", "there is no `...`; write a `:` for each dimension to keep"),
    ("x = v[0, ...];", "there is no `...`; write a `:` for each dimension to keep"),
    ("x = lambda a: a + 1;", "a lambda is written `|a, b| a + b`"),
    ("x = a < b | c < d;", "`|` binds more tightly than comparisons; conditions are joined by `||`"),
    ("x = a @ b;", "there is no `@` operator; a matrix product is `dot(a, b)`"),
    ("x = f(a) @ b[0] + c;", "there is no `@` operator; a matrix product is `dot(a, b)`"),
    ("x = 0..4;", "there is no `..`; loops run over `range(start, end)`, and slices are written `a:b`"),
    ("x = v[::2];", "slices have no step; they are written `a:b`"),
    ("x = v[a::2];", "slices have no step; they are written `a:b`"),
    ("x = t.0;", "the elements of a tuple are written `t[0]`"),
    ("x = .5;", "a float needs a digit before the point"),
    ("x = 1.;", "a float needs a digit after the point"),
    ("x = 1.5f32;", "`1.5f32`: a number literal has no suffix"),
    ("x = 1e-5f;", "`1e-5f`: a number literal has no suffix"),
    ("x = 1.5e+5F;", "`1.5e+5F`: a number literal has no suffix"),
    ("x = 2e-3f16;", "`2e-3f16`: a number literal has no suffix"),
    ("x = 1e-5x;", "`1e-5x` is not a number"),
    ("x = 12abc;", "`12abc` is not a number"),
    ("x = &y;", "there are no references; write the value itself"),
    ("assert!(x);", "functions are called without `!`"),
    ("x = a and b;", "`and` is written `&&`"),
    ("x = not b;", "`not` is written `!`"),
    ("loop { a(); }", "`loop` is written `while true`"),
    ("x = match y { a };", "there is no `match`; use `if` and `else if`"),
    ("print \"a\";", "`print` is called with parentheses, `print(..)`"),
    ("assert (x), \"a\";", "the text of `assert` is its second argument, `assert(x, \"text\")`"),
    ("x: f32 = 3;", "a variable is declared with `let`"),
    ("let x f32 = 3;", "expected `:` and a type after `x`"),
    ("let x = 3, y = 4;", "each variable has its own `let`"),
    ("a = b = c;", "assignments cannot be chained"),
    ("x = a as f32[3];", "a cast needs parentheses to be indexed or called"),
    ("let f = |a| -> f32 { a };", "a lambda has no result type"),
    ("let f = fn(a) { a };", "a function inside a function is a lambda, `|a, b| a + b`"),
    ("if let x { a(); }", "expected `=` and a value after `x`"),
    ("if x { 1 } else 2;", "expected `{` after `else`"),
    ("if x { 1 } elif y { 2 }", "`elif` is written `else if`"),
    ("assert_error \"E0101\" x;", "expected `{` after the code"),
    ("var x = 1;", "`var` is written `let mut`"),
    ("x = \"abc;", "unterminated string"),
    ("x = 'a';", "strings use double quotes"),
    ("x = a $ b;", "unexpected character `$`"),
    ("x = a $$ b;", "unexpected characters"),
    ("x = \"\\q\";", "unknown escape sequence"),
    ("x = /* c */ 1;", "comments start with `//` and end with the line"),
    ("x = 340282366920938463463374607431768211456;", "this number does not fit in 128 bits"),
];

#[test]
fn one_sentence_for_each_context() {
    for (body, want) in BODIES {
        assert_eq!(inside(body), [*want], "{body}");
    }
}

#[test]
fn items() {
    for (text, want) in [
        ("kernel k(x f32) {}", "expected `:` and a type after `x`"),
        ("kernel k(x) {}", "`x` has no type"),
        ("kernel k[N](x: i32) {}", "`N` has no type"),
        ("kernel k(x: f32) grid(1) grod {}", "a clause is a name with parentheses, such as `grid(..)`"),
        ("kernel k(x: f32) -> f32 {}", "a kernel cannot return a value"),
        ("kernel k(x: f32);", "this kernel has no body, `{ .. }`"),
        ("fn f(x: f32)", "this function has no body, `{ .. }`"),
        ("kernel (x: f32) {}", "expected a name after `kernel`"),
        ("kernel k {}", "expected the parameters of the kernel, `(..)` after `k`"),
        ("struct S { a: f32 b: i32 }", "expected `,` after this field"),
        ("struct S { a, }", "`a` has no type"),
        ("struct S { use a; }", "a struct contains only fields and functions"),
        ("struct S(a: f32) {}", "expected `{` after `S`"),
        ("use a::{b as c};", "a group has no `as`; write `use path::name as other;` on its own"),
        ("use a", "expected `;` after this item"),
        ("const X 3;", "expected `=` and a value after `X`"),
        ("const X = ;", "expected an expression after `=`"),
        ("export k(T = f16);", "exported values go in brackets: `export k[T = f16];`"),
        ("use a.b;", "path segments are separated by `::`"),
        (
            "kernel k(x: [f32], y: mut [f32]) {}",
            "an array in memory is a `view[f32, 1]` (1 is its rank), or a `mut view[f32, 1]` if it is written",
        ),
        ("fn f<T>(x: T) { x }", "compile-time parameters go in brackets: `[T: float]`"),
        ("fn f(x: f32): f32 { x }", "the result type follows `->`"),
        ("fn f(x: f32): { x }", "a body is in braces, `{ .. }`, without a `:`"),
        ("kernel k() grid(4):\n    x = 1;", "a body is in braces, `{ .. }`, without a `:`"),
        ("fn f(x: f32) f32 { x }", "a result type follows `->`, and a clause has parentheses"),
        ("fn f(const N: i32) {}", "`const` comes before the type: `n: const i32`"),
        ("kernel k() grid(4) -> f32 {}", "the result type comes before the clauses"),
        ("struct S { a: i32; b: i32 }", "fields are separated by `,`"),
        ("test a {}", "a test name must be quoted"),
        ("@fast", "expected an item after this attribute"),
        (
            "def f(x): y",
            "a function is written `fn f(x: f32) -> f32 { .. }`, and a kernel `kernel k(..) grid(..) { .. }`",
        ),
        ("import triton.language as tl", "there is no `import` of Python modules; operations need no import"),
        (
            "@triton.autotune(configs = [])\n@triton.jit\ndef f(x):\n    y = 1",
            "there are no decorators; candidates are rows behind the signature, `kernel k[B: i32](..) tune(key = (x.shape[0])) { { B = [128, 256] } } { .. }`",
        ),
        ("let x = 1;", "expected an item here: `kernel`, `fn`, `struct`, `const`, `use`, `export` or `test`"),
        ("kernel k() tune() { A = 1 } {}", "a row of `tune` is written `{ NAME = value, .. }`"),
    ] {
        assert_eq!(messages(text), [want], "{text}");
    }
}

#[test]
fn quotes_of_python_do_not_hide_its_items() {
    for (word, sentence) in
        [("def", "a function is written"), ("@triton.jit\ndef", "there are no decorators")]
    {
        let said = messages(&format!("{word} f(x):\n    y = tl.load(x, eviction_policy='evict_last')\n"));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().any(|s| s.starts_with(sentence)), "{said:?}");
    }
}

#[test]
fn three_errors_give_three_messages() {
    let text = "
fn f() {
    let a = ;
    let b = 1;
    if b = 1 { let c = 2 + ; }
    g(b);
}
";
    assert_eq!(codes(text), [SYNTAX, SYNTAX, SYNTAX]);
    let text = "fn f( { }\nkernel k(x: i32) grid(1 { let x = (1; }\nconst A = ;\nfn g() { a b }";
    assert_eq!(codes(text), [UNCLOSED, UNCLOSED, UNCLOSED, SYNTAX, SYNTAX]);
}

#[test]
fn missing_semicolons() {
    let text = "use a\nconst B = 1\nfn f() {\n    let x = 1\n    y = x\n    g(y)\n    if x { y }\n    let z\n    return z\n    h()\n}\n";
    assert_eq!(codes(text), [MISSING_SEMICOLON; 7]);
    let fixed = text.replace("use a", "use a;").replace("= 1", "= 1;").replace("y = x", "y = x;");
    let fixed = fixed.replace("g(y)", "g(y);").replace("let z", "let z;").replace("return z", "return z;");
    assert_eq!(mended(text), fixed);
    assert!(codes(&fixed).is_empty());
}

#[test]
fn one_message_for_an_open_bracket() {
    for text in [
        "fn f() { x = (1; y = 2; }",
        "fn f() { x = [1, 2; y = 2; }",
        "fn f() { x = f(1, g(2); y = 2; }",
        "fn f() {\n    x = f(1\n    let y = 2;\n}",
        "fn f() { if g(a { b(); } }",
        "fn f() { for i in range(0, 4 { b(); } }",
        "fn f() { x = f(a; b); }",
        "fn f() { x = f(a]; }",
        "fn f() { x = v[f(a]; }",
        "fn f() { x = g(if a { 1 else { 2 }); }",
        "fn f(a: i32 { b(); }",
        "fn f() {\n    if a {\n        b();\n\n    c();\n}\n\nfn g() {\n    d();\n}\n",
        "fn f() {\n    a();\n\nfn g() {\n    d();\n}\n",
        "kernel k(a: i32, b: f32\n    grid(1)\n{ a(); }",
        "kernel k[A: i32, B: i32(a: i32)\n    grid(1)\n{ a(); }",
        "kernel k(a: i32)\n    grid(f(1)\n    launch(warps = 4)\n{ a(); }",
        "struct S {\n    a: i32,\n    fn f(self) {\n\n    fn g(self) { b }\n}\nfn h() {}\n",
        "fn f() {",
        "fn f(",
        "const A = [",
        // The items below are there already, and stay.
        "fn f(x: f32\n\nfn g() {\n    d();\n}\n",
        "fn f[N: i32\n\ntest \"a\" {\n    d();\n}\n",
        "kernel k(x: f32) grid((1\n\nexport k[N = 4];\n",
        "fn f(x: f32 -> f32 { x }",
    ] {
        assert_eq!(codes(text), [UNCLOSED], "{text}\n{:#?}", check(text).1);
    }
    for text in ["fn f(x: f32\n\nfn g() {}\n", "kernel f(x: f32) grid((1\n\nfn g() {}\n"] {
        let names = check(text).0.items.into_iter().map(|i| match i.kind {
            ItemKind::Fn(f) => f.name.text.to_string(),
            _other => String::new(),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["f", "g"], "{text}");
    }
    for text in [
        "fn f() { x = a); }",
        "fn f() { x = v a]; y = (1); }",
        "fn f() { a(); } }",
        "fn f() {\n    if a {\n    }\n    }\n    b();\n}\n",
    ] {
        assert_eq!(codes(text), [UNOPENED], "{text}");
    }
    assert_eq!(codes("fn f()\n    let x = 1;\n    x = 2;\n}\nfn g() {}\n"), [SYNTAX]);
    assert_eq!(
        codes("fn f() {\n    for i in a\n        b();\n        c();\n    }\n    d();\n}\nfn g() {}\n"),
        [SYNTAX]
    );
}

#[test]
fn fixes_mend() {
    for (wrong, right) in [
        ("if a = b { c(); }", "if a == b { c(); }"),
        ("let q = a < b <= c;", "let q = a < b && b <= c;"),
        ("f(a b);", "f(a, b);"),
        ("f((a, b);", "f((a, b));"),
        ("x = [1, 2);", "x = [1, 2];"),
        ("x++;", "x += 1;"),
        ("let y = x++;", "let y = x++;"),
        ("x = t.0;", "x = t[0];"),
        ("x = .5 + y;", "x = 0.5 + y;"),
        ("x = 1. + y;", "x = 1.0 + y;"),
        ("x = 1.5f32;", "x = (1.5 as f32);"),
        ("x = 1e-5f;", "x = 1e-5;"),
        ("x = 2.5e+3f16;", "x = (2.5e+3 as f16);"),
        ("x = a and not b;", "x = a && !b;"),
        ("x = a < b & c < d;", "x = a < b && c < d;"),
        ("x = a ** 2;", "x = a * a;"),
        ("x = b / a ** 3;", "x = b / (a * a * a);"),
        ("x = a ** -0.5;", "x = rsqrt(a);"),
        ("x = b + (a + 1)**(b);", "x = b + pow(a + 1, b);"),
        ("x = f(a) ** 2;", "x = pow(f(a), 2);"),
        ("x = a.b[0].T @ f[2](c)[1];", "x = dot(a.b[0].T, f[2](c)[1]);"),
        // A star and a name are a type, whatever follows it.
        ("x = a ** b[0];", "x = pow(a, b[0]);"),
        ("x = 2.0 ** exp(a);", "x = pow(2.0, exp(a));"),
        // What an operator before it binds to is left to the reader.
        ("x = -a ** 2;", "x = -a ** 2;"),
        ("assert a == b", "assert(a == b);"),
        ("assert (a), \"b\";", "assert (a, \"b\");"),
        ("assert(f(a)), \"b\"", "assert(f(a), \"b\")"),
        ("print \"a\", a[0];", "print(\"a\", a[0]);"),
        ("x = reduce(a, lambda b, c: b + c);", "x = reduce(a, |b, c| b + c);"),
        ("x = lambda: 1;", "x = || 1;"),
        ("x = \"abc;", "x = \"abc\";"),
        ("x = 'abc';", "x = \"abc\";"),
        ("var x = a \u{2212} b;", "let mut x = a - b;"),
        ("let for = 1;", "let for_ = 1;"),
        ("assert!(a);", "assert(a);"),
        ("x = a\n    y = b\n    z", "x = a;\n    y = b;\n    z"),
    ] {
        let frame = |body: &str| format!("fn f() {{\n    {body}\n}}\n");
        assert_eq!(mended(&frame(wrong)), frame(right));
    }
    assert_eq!(mended("N = 16\nfn f() {}\n"), "const N = 16;\nfn f() {}\n");
    assert_eq!(mended("kernel k(x f32, y i32) { a();"), "kernel k(x: f32, y: i32) { a();}");
    assert_eq!(
        mended("fn f() {\n    if a {\n        b();\n"),
        "fn f() {\n    if a {\n        b();\n    }\n}\n"
    );
}

#[test]
fn divisions_of_python() {
    let divided = "`//` starts a comment; a division is written `/`";
    for (wrong, right) in [
        ("let n = a // 2;", "let n = a / 2;"),
        ("let n = a // 2\n    let m = n;", "let n = a / 2;\n    let m = n;"),
        ("let n = a // b // 2; // halves", "let n = a / b / 2; // halves"),
        ("let n = (a + 1) // (b + 1);", "let n = (a + 1) / (b + 1);"),
        ("let n = g(a // 2, b // 3);", "let n = g(a / 2, b / 3);"),
        ("let n = g(a // 2,\n        b // 3);", "let n = g(a / 2,\n        b / 3);"),
        ("let n = v[a // 2];\n    n", "let n = v[a / 2];\n    n"),
        ("if a // 2 == 0 {\n        c();\n    }", "if a / 2 == 0 {\n        c();\n    }"),
        (
            "for i in range(0, a // 2) {\n        c(i);\n    }",
            "for i in range(0, a / 2) {\n        c(i);\n    }",
        ),
    ] {
        let frame = |body: &str| format!("fn f(a: i32, b: i32) {{\n    {body}\n}}\n");
        assert!(
            messages(&frame(wrong)).contains(&divided.to_string()),
            "{wrong}: {:?}",
            messages(&frame(wrong))
        );
        assert_eq!(mended(&frame(wrong)), frame(right));
    }
    assert_eq!(mended("fn f(a: i32) -> i32 { a // 2 }"), "fn f(a: i32) -> i32 { a / 2 }");
    assert_eq!(mended("kernel k(n: i32) grid(n // 2) {\n}\n"), "kernel k(n: i32) grid(n / 2) {\n}\n");
    // Remarks are no divisions, and neither are comments of a text without mistakes.
    for remark in ["the count", "TODO: halve", "rows, columns", "bytes", "-1", "see [1]", "", "f32."] {
        assert_eq!(
            codes(&format!("fn f() {{\n    let n = a // {remark}\n    let m = n;\n}}\n")),
            [MISSING_SEMICOLON]
        );
    }
    assert_eq!(codes("fn f() {\n    let n = a // 2;\n        + 1;\n}\n"), []);
}

#[test]
fn no_division_of_an_example_is_lost() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "tk") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices(" / ") {
            // In a comment already.
            if text[..at].rsplit('\n').next().unwrap().contains("//") {
                continue;
            }
            let wrong = format!("{} // {}", &text[..at], &text[at + 3..]);
            if codes(&wrong).is_empty() {
                continue;
            }
            tried += 1;
            assert_eq!(mended(&wrong), text, "{} at {at}", path.display());
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn little_is_lost() {
    // What is around an error is still there, so that names are known and the editor can help.
    let left = |body: &str| {
        let (file, diags) = check(&format!("fn f() {{ {body} }}"));
        assert!(!diags.is_empty());
        dump(&file).lines().skip(1).map(|l| l.trim().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left("let x = a.;"), "let x .? a");
    assert_eq!(left("let x = a. ; y;"), "let x .? a do y");
    assert_eq!(left("let x = ;"), "let x ?");
    assert_eq!(left("let (x, y): i32 = a b c;"), "let (x, y): i32 ?");
    assert_eq!(left("let x = f(a, b c, d);"), "let x call f a ? d");
    assert_eq!(left("let x = f(a, g(b c), d) + e;"), "let x + call f a call g ? d e");
    assert_eq!(left("f(a, "), "value call f a");
    assert_eq!(left("f(a, b."), "value call f a .? b");
    assert_eq!(left("let x = a + ;"), "let x + a ?");
    assert_eq!(left("for i im g() { a; }"), "for i in ? do a");
    assert_eq!(left("if a = b { c; } else { d; }"), "value if ? then do c else block do d");
    assert_eq!(left("while a b { c; }"), "while ? do c");
    assert_eq!(left("let x = if a { b } else { c } d;"), "let x ?");
    assert_eq!(left("let x: = 1;"), "let x: ? 1");
    let (file, _) = check("kernel k[T: f16 | ](x: i32 y: i32, z: f32) grid(1 2) { a(); }");
    assert!(dump(&file).starts_with("kernel k\n"), "{}", dump(&file));
    assert!(dump(&file).contains("call\n      a\n"), "{}", dump(&file));
    let (file, _) = check("struct S[N: ] { a: i32, b c: f32, d: f32 }");
    assert!(dump(&file).contains("field a: i32\n"), "{}", dump(&file));
    assert!(dump(&file).contains("field d: f32\n"), "{}", dump(&file));
}

#[test]
fn broken_literals() {
    assert_eq!(codes("const A = 0x;"), [BAD_LITERAL]);
    assert_eq!(codes("const A = 1__0 + 1_.5_e1_;"), []);
    assert_eq!(codes("const A = \"\\u{110000}\";"), [BAD_LITERAL]);
    assert_eq!(codes("const A = 1;\n\u{0}\u{1}\nconst B = 1;"), [BAD_TOKEN]);
    assert_eq!(codes("const A = 1\u{A0}+ 2;"), [BAD_TOKEN]);
}
