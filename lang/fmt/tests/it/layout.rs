//! What the layout looks like: texts as somebody may write them, and what becomes of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{files, formatted};

/// Pairs of `tk` blocks of `docs/style.md`: a text, and what becomes of it.
#[test]
fn the_page_on_style() {
    let (_, page) = files("docs", "md").into_iter().find(|(path, _)| path.ends_with("style.md")).unwrap();
    let blocks: Vec<&str> = page.split("```tk\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 4 && blocks.len().is_multiple_of(2));
    for pair in blocks.chunks(2) {
        assert_eq!(formatted(pair[0]), pair[1]);
    }
}

#[test]
fn blocks_on_one_line() {
    for kept in [
        "fn f() {}\n",
        "fn f(a: i32) -> i32 { a }\n",
        "fn f() {\n    if a { b(); }\n}\n",
        "const A = if b { 1 } else if c { 2 } else { 3 };\n",
        "const A = if b {\n    1\n} else {\n    2\n};\n",
        "struct S { a: i32, b: f32 }\n",
        "struct S {\n    a: i32,\n}\n",
        "struct S {}\n",
        "test \"t\" { assert(true); }\n",
        "fn f() {\n    while a {}\n}\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
    // Two statements, one block of several lines, or too little room.
    assert_eq!(formatted("fn f() { a(); b }\n"), "fn f() {\n    a();\n    b\n}\n");
    assert_eq!(
        formatted("const A = if b { 1 } else {\n2 };"),
        "const A = if b {\n    1\n} else {\n    2\n};\n"
    );
    let long = "a".repeat(60);
    assert_eq!(
        formatted(&format!("const A = if {long} {{ {long} }} else {{ 1 }};")),
        format!("const A = if {long} {{\n    {long}\n}} else {{\n    1\n}};\n")
    );
    assert_eq!(
        formatted(&format!("struct S {{ a: i32, {long}: i32, {long}: i32 }}")),
        format!("struct S {{\n    a: i32,\n    {long}: i32,\n    {long}: i32,\n}}\n")
    );
}

#[test]
fn lists() {
    // A single element with brackets of its own brings its lines.
    let item = "element(1)".to_string();
    let many = |n: usize, separator: &str| vec![item.as_str(); n].join(separator);
    assert_eq!(
        formatted(&format!("const A = f([{}]);", many(10, ","))),
        format!("const A = f([\n    {},\n    {},\n]);\n", many(8, ", "), many(2, ", "))
    );
    // A lambda with a block is alone on several lines, unless there are two.
    assert_eq!(
        formatted("const A = reduce(x, axis = 1, combine = |a, b| { let c = a; c + b });"),
        "const A = reduce(x, axis = 1, combine = |a, b| {\n    let c = a;\n    c + b\n});\n"
    );
    assert_eq!(
        formatted("const A = map(|a, b| { let c = a; c + b }, x, y);"),
        "const A = map(|a, b| {\n    let c = a;\n    c + b\n}, x, y);\n"
    );
    assert_eq!(
        formatted("const A = f(|a| { b(); a }, x, |a| a, || { c(); d });"),
        "const A = f(\n    |a| {\n        b();\n        a\n    },\n    x, |a| a,\n    || {\n        c();\n        d\n    },\n);\n"
    );
    // The parameters give way before the type of the result.
    let name = "n".repeat(50);
    assert_eq!(
        formatted(&format!("fn {name}(first: tile[f32, N], b: i32) -> tile[f32, N] {{}}")),
        format!("fn {name}(\n    first: tile[f32, N], b: i32,\n) -> tile[f32, N] {{}}\n")
    );
    // Commas: of a tuple of one always, otherwise where the lines end.
    assert_eq!(formatted("const A = f(a,b,);const B=(1,);"), "const A = f(a, b);\nconst B = (1,);\n");
    let name = "n".repeat(100);
    assert_eq!(formatted(&format!("const A = ({name},);")), format!("const A = (\n    {name},\n);\n"));
}

#[test]
fn operators() {
    let (a, b) = ("a".repeat(40), "b".repeat(40));
    assert_eq!(
        formatted(&format!("const A = {a} + {b} * 2 - 1 + {a};")),
        format!("const A = {a}\n    + {b} * 2\n    - 1\n    + {a};\n")
    );
    assert_eq!(
        formatted(&format!("const A = ({a} + {b} + {a}) as T;")),
        format!("const A = (\n    {a}\n    + {b}\n    + {a}\n) as T;\n")
    );
    assert_eq!(
        formatted(&format!("fn f() {{ while {a} && {b} && {a} {{ g(); }} }}")),
        format!(
            "fn f() {{\n    while {a}\n        && {b}\n        && {a}\n    {{\n        g();\n    }}\n}}\n"
        )
    );
    assert_eq!(
        formatted("const A=- -1+! !b as*mut f32*x[..=2];".replace("..=2", "1 :2,:,a+1 : ").as_str()),
        "const A = --1 + !!b as *mut f32 * x[1:2, :, a + 1:];\n"
    );
    assert_eq!(formatted("const A = | |b;const B=||b;"), "const A = | | b;\nconst B = || b;\n");
    assert_eq!(formatted("const A = (((1)));"), "const A = (((1)));\n");
}

#[test]
fn comments_and_empty_lines() {
    let text = "\n\n// head\n\n\n// more\nfn f(\n// own\na: i32, // of a\nb: i32 // of b\n) { // of f\n\n\n\
        // first\n\nlet x = 1; // of x\n\n\n// alone\n\ny() // of y\n; // of semicolon\n// last\n\n} // of the end\n\n\n// end\n\n";
    let expected = "// head\n\n// more\nfn f(\n    // own\n    a: i32, // of a\n    b: i32, // of b\n) { // of f\n    \
        // first\n\n    let x = 1; // of x\n\n    // alone\n\n    y(); // of y\n    // of semicolon\n    // last\n} // of the end\n\n// end\n";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted("fn f() { // a\n\n// b\n\n}"), "fn f() { // a\n    // b\n}\n");
    assert_eq!(
        formatted("fn f() { if b { 1 } // one\n// two\nelse { 2 } }"),
        "fn f() {\n    if b {\n        1\n    } // one\n    // two\n    else {\n        2\n    }\n}\n"
    );
    assert_eq!(formatted("const A = f(a // x\n, b);"), "const A = f(\n    a, // x\n    b,\n);\n");
    assert_eq!(formatted("const A // x\n= 1;"), "const A = 1; // x\n");
    assert_eq!(formatted("fn f() {}\n\n\n\n\nfn g() {}\nfn h() {}"), "fn f() {}\n\nfn g() {}\nfn h() {}\n");
}

/// A comment after a part of a chain stays there, and so the next part begins a line.
#[test]
fn comments_in_chains() {
    for kept in [
        "fn f() {\n    let y = x // of x\n        .load([0], [4]);\n}\n",
        "fn f() {\n    let y = x // of x\n        .load([0], [4]) // of the load\n        .sum();\n}\n",
        "fn f() {\n    let y = x\n        // own\n        .load([0], [4]);\n}\n",
        "fn f() {\n    let y = x // of x\n        .shape[0];\n}\n",
        "fn f() {\n    let y = x[0] // of x\n        .shape;\n}\n",
        "fn f() {\n    x // of x\n        .store([0], 1);\n}\n",
        "const A = f(\n    x // of x\n        .load([0]),\n    b,\n);\n",
        "fn f() {\n    let y = a\n        + x // of x\n            .load([0])\n        + b;\n}\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
    assert_eq!(
        formatted("fn f() { if x // of x\n.load([0]) { b(); } }"),
        "fn f() {\n    if x // of x\n        .load([0])\n    {\n        b();\n    }\n}\n"
    );
}

#[test]
fn any_encoding_of_line_ends_and_blanks() {
    assert_eq!(formatted(""), "");
    assert_eq!(formatted(" \n\t\r\n"), "");
    assert_eq!(formatted("// only\r\n\r\n\r\n// comments"), "// only\r\n\r\n// comments\r\n");
    assert_eq!(formatted("\u{feff}fn f() {\r\n\tg(); // ä\t\r\n}\r\n"), "fn f() {\r\n    g(); // ä\r\n}\r\n");
    assert_eq!(formatted("const größe=\"→\";;"), "const größe = \"→\";\n");
}

#[test]
fn rows_that_were_written_stay() {
    for kept in [
        // A table, one element a line, rows of several.
        "const T = [\n    [1, 2],\n    [3, 4],\n];\n",
        "const T = [\n    1, 2, 3,\n    4, 5, 6,\n];\n",
        "const A = f(\n    1,\n    2,\n);\n",
        "const A = f(\n    1,\n);\n",
        "kernel k(\n    x: view[f32, 1],\n    n: i32,\n) {}\n",
        "fn f[\n    T: float,\n    N: i32,\n](x: T) {}\n",
        "export k[\n    T = f16,\n    N = [\n        1,\n        2,\n    ],\n];\n",
        "const A = (\n    1,\n    2,\n);\n",
        // A row that is too long goes on in the next line.
        "struct S {\n    a: i32,\n}\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
    // Without the comma or the break, or with several arguments on a line, it is a list like others.
    for joined in ["f(\n    1,\n    2\n)", "f(1,\n    2,\n)", "f(\n    1, 2,\n)", "f(\n    1,\n    2, 3,\n)"]
    {
        let flat = joined.replace(['\n', ' '], "").replace(",)", ")").replace(',', ", ");
        assert_eq!(formatted(&format!("const A = {joined};\n")), format!("const A = {flat};\n"));
    }
    let long = ["1000000"; 12].join(", ");
    assert_eq!(
        formatted(&format!("const T = [\n    {long},\n    2,\n];\n")),
        format!("const T = [\n    {},\n    1000000, 1000000,\n    2,\n];\n", ["1000000"; 10].join(", "))
    );
}

#[test]
fn chains_of_methods() {
    let long = "argument_with_a_long_name";
    let arguments = [long; 3].join(", ");
    assert_eq!(
        formatted(&format!("const A = base[1].first({long}).shape.second({long}).third({arguments});")),
        format!(
            "const A = base[1]\n    .first({long}).shape\n    .second({long})\n    .third({arguments});\n"
        )
    );
    // One call is not a chain: its arguments give way.
    assert_eq!(
        formatted(&format!("const A = base.first({long}, {long}, {long}, {long});")),
        format!("const A = base.first(\n    {long}, {long}, {long},\n    {long},\n);\n")
    );
    assert_eq!(formatted("const A = a . b ( ) . c ( 1 ) [ 2 ] ;"), "const A = a.b().c(1)[2];\n");
    assert_eq!(formatted("const A = (a.b()).c().d();"), "const A = (a.b()).c().d();\n");
}

#[test]
fn comments_that_were_aligned() {
    let kept =
        "fn f() {\n    let a = 1;      // one\n    let longer = 2; // two\n\n    let b = 3; // three\n}\n";
    assert_eq!(formatted(kept), kept);
    assert_eq!(
        formatted("fn f() {\nlet a=1;        // one\nlet longer  =2; // two\nlet b = 3; // three\n}"),
        "fn f() {\n    let a = 1;      // one\n    let longer = 2; // two\n    let b = 3; // three\n}\n"
    );
    // Those that were not are not.
    assert_eq!(
        formatted("fn f() {\n    a();  // one\n    longer(); // two\n}\n"),
        "fn f() {\n    a(); // one\n    longer(); // two\n}\n"
    );
}

#[test]
fn lines_end_as_they_did() {
    assert_eq!(formatted("const A=1;\r\nconst B =2;\r\n"), "const A = 1;\r\nconst B = 2;\r\n");
    assert_eq!(formatted("const A=1;\n// c\nconst B =2;\n"), "const A = 1;\n// c\nconst B = 2;\n");
    // The rows of a table, and comments.
    let kept = "// a\r\n// b\r\nconst A = [\r\n    1,\r\n    2,\r\n];\r\n";
    assert_eq!(formatted(kept), kept);
    let text = "fn f() {\r\n    a(  );\r\n    b(  );\r\n}\r\n";
    let at = text.find("b(").unwrap();
    let (place, new) = tk_fmt::format_range(text, at..at + 1).unwrap();
    let mut text = text.to_string();
    text.replace_range(place, &new);
    assert_eq!(text, "fn f() {\r\n    a(  );\r\n    b();\r\n}\r\n");
}

#[test]
fn separators_are_not_repeated() {
    assert_eq!(formatted("fn f() { ; a();; ;b();\n;}"), "fn f() {\n    a();\n    b();\n}\n");
    assert_eq!(formatted("fn f() { a();; // c\n; }"), "fn f() {\n    a(); // c\n}\n");
    assert_eq!(formatted("const A = 1;;\n"), "const A = 1;\n");
}

#[test]
fn what_is_left_as_it_is() {
    for kept in [
        "fn f() {\n    let m = [1,0,  // row\n           0,1]; // fmt: skip\n    a();\n}\n",
        "fn f() {\n    // fmt: skip\n    let m = [ 1,0,\n  0,1 ];\n    a();\n}\n",
        "// fmt: skip\nconst M = [ 1,0,\n            0,1 ];\n\nconst B = 2;\n",
        "const M = [ 1,0 ]; // fmt: skip\n",
        "// fmt: skip\nkernel k( ) {\n  a( );\n}\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
    // Only that: what follows, the indentation of its first line, and another comment.
    assert_eq!(
        formatted("fn f() {\n  a( ); // fmt: skip\n  b( ); // fmt: skipped\n}\n"),
        "fn f() {\n    a( ); // fmt: skip\n    b();  // fmt: skipped\n}\n"
    );
}

#[test]
fn conditions_of_several_lines_open_their_blocks() {
    let long = "a".repeat(60);
    assert_eq!(
        formatted(&format!("fn f() {{\n    if {long} > 0 && {long} < 1 {{ return; }}\n}}\n")),
        format!("fn f() {{\n    if {long} > 0\n        && {long} < 1\n    {{\n        return;\n    }}\n}}\n")
    );
    assert_eq!(
        formatted(&format!("fn f() {{\n    if g({long}, {long}) {{ return; }}\n}}\n")),
        format!(
            "fn f() {{\n    if g(\n        {long},\n        {long},\n    ) {{\n        return;\n    }}\n}}\n"
        )
    );
    assert_eq!(
        formatted(&format!("fn f() {{\n    while {long} > 0 && {long} < 1 {{ g(); }}\n}}\n")),
        format!("fn f() {{\n    while {long} > 0\n        && {long} < 1\n    {{\n        g();\n    }}\n}}\n")
    );
}

#[test]
fn what_a_reader_of_the_page_found() {
    // Nothing but separators is nothing.
    for block in ["fn f() { ; }", "fn f() {;;}", "test \"t\" { ; }"] {
        assert_eq!(formatted(block), format!("{}\n", block.replace(" ; ", "").replace(";;", "")));
    }
    assert_eq!(formatted("fn f() { while a { ; } }"), "fn f() { while a {} }\n");
    assert_eq!(formatted("fn f() { ; // why\n }"), "fn f() { // why\n}\n");
    // One kind of line ends, also in what is left as it is.
    assert_eq!(
        formatted("const A = 1;\nconst B = [ 1,\r\n 2 ]; // fmt: skip\n"),
        "const A = 1;\nconst B = [ 1,\n 2 ]; // fmt: skip\n"
    );
    // The value of a block, and an item with documentation.
    for kept in
        ["fn f() -> f32 {\n    x  +  1 // fmt: skip\n}\n", "// fmt: skip\n/// Documented.\nfn f( ) {}\n"]
    {
        assert_eq!(formatted(kept), kept);
    }
    let long = "argument_with_a_long_name";
    assert_eq!(
        formatted(&format!("fn f() {{ if v.first({long}, {long}).second({long}, {long}) {{ g(); }} }}")),
        format!(
            "fn f() {{\n    if v\n        .first({long}, {long})\n        .second({long}, {long})\n    {{\n        g();\n    }}\n}}\n"
        )
    );
    assert_eq!(
        formatted("const A = reduce(x, combine = |a, b| { let c = a; c + b }).foo().bar(1);"),
        "const A = reduce(x, combine = |a, b| {\n    let c = a;\n    c + b\n})\n    .foo()\n    .bar(1);\n"
    );
}

/// A table of one row stays a table, as does any single element between lines of its own with a comma behind it.
#[test]
fn single_elements_on_their_lines() {
    for kept in [
        "const M = [\n    [1, 2],\n];\n",
        "const M = [\n    (1, 2),\n];\n",
        "const M = [\n    P(a = 1),\n];\n",
        "const M = [\n    zeros([2], f32),\n];\n",
        "fn f() {\n    foo(\n        a = [1, 2],\n    );\n}\n",
        "fn f() {\n    foo(\n        |a| { a },\n    );\n}\n",
        "const M = f([\n    1, 2,\n]);\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
    // Without the comma or the line they are written as short as they are.
    assert_eq!(formatted("const M = [\n    [1, 2]\n];\n"), "const M = [[1, 2]];\n");
    assert_eq!(formatted("const M = [[1, 2],\n];\n"), "const M = [[1, 2]];\n");
}

/// A condition of several lines after an `else` changes nothing of what follows.
#[test]
fn conditions_after_else() {
    let rest = "\nstruct C { a: i32, b: i32 }\n\nfn g(x: i32) -> i32 { x }\n";
    let kept = format!(
        "fn b(s: i32) -> i32 {{\n    if s == 2 {{\n        1\n    }} else if s == 4 // four\n        || s == 6\n    {{\n        2\n    }} else {{\n        1\n    }}\n}}\n{rest}"
    );
    assert_eq!(formatted(&kept), kept);
    let long = "a".repeat(60);
    assert_eq!(
        formatted(&format!(
            "fn b() {{\n    if a {{ 1 }} else if {long} > 0 || {long} < 1 {{ 2 }}\n}}\n{rest}"
        )),
        format!(
            "fn b() {{\n    if a {{\n        1\n    }} else if {long} > 0\n        || {long} < 1\n    {{\n        2\n    }}\n}}\n{rest}"
        )
    );
    let kept = format!(
        "fn b() {{\n    if a {{\n        1\n    }} else if any(map(|v| {{\n        let w = v;\n        w\n    }}, x)) {{\n        2\n    }}\n}}\n{rest}"
    );
    assert_eq!(formatted(&kept), kept);
}

/// A comment before the brace of a condition ends that line and no other.
#[test]
fn comments_after_conditions() {
    for kept in [
        "fn f() {\n    while a < 3 // w\n    {\n        b();\n    }\n}\n",
        "fn f() {\n    if a == 1 // c\n    {\n        b();\n    } else if a == 2 && c // d\n    {\n        b();\n    }\n}\n",
        "fn f() {\n    if a.b().c() // c\n    {\n        b();\n    }\n}\n",
    ] {
        assert_eq!(formatted(kept), kept);
    }
}

#[test]
fn three_slashes_in_bodies_are_comments() {
    let kept = "fn f() {\n    let d = 1; /// why\n    let e = 2; // and\n}\n";
    assert_eq!(formatted(kept), kept);
}

#[test]
fn methods_that_are_left_as_they_are() {
    let kept = "struct S {\n    a: i32,\n\n    // fmt: skip\n    fn m(self)->i32 { self.a+1 }\n    fn n(self)->i32 { 1 } // fmt: skip\n}\n";
    assert_eq!(formatted(kept), kept);
}
