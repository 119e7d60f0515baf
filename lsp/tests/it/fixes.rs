//! Fixes that are guesses: offered where the text after them has fewer errors, and no new one.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::workspace;
use tk_lsp::ide::actions::{ActionKind, actions};
use tk_lsp::ide::source_actions::source_actions;
use tk_lsp::ide::{Workspace, diagnostics, folding};

/// A text, a part of the title of its only fix or `nothing`, and the text after it.
const FIXES: &[(&str, &str, &str)] = &[
    ("fn f( x: f32 -> f32 { x }\n", "insert `)`", "x: f32) -> f32"),
    // Where the closing bracket would go it helps nothing.
    ("fn f(x: tile[f32, 4]) -> tile[f32, 4; ] { x }\n", "nothing", ""),
    ("fn f() { let a = zeros([4]; , i32); }\n", "nothing", ""),
    ("fn f(v: tile[i32, 4]) { let a = maximum(let, max(v, axis = 0)); }\n", "nothing", ""),
    ("fn f(x: f32) -> f32 {\n    let y = (x + 1.0;\n    y\n}\n", "insert `)`", "x + 1.0);"),
    ("fn f(x: tile[f32, 4]) -> f32 {\n    sum(x, axis = 0\n}\n", "insert `)`", "axis = 0)\n"),
    ("fn f() {\n    let y = (g(1) + 1;\n}\n", "insert `)`", "+ 1);"),
    // The opening one is missing.
    ("fn g(a: f32, b: f32) {}\nfn f(x: f32) { g(fx), x); }\n", "nothing", ""),
    ("fn f(x: f32) -> f32 { x) }\n", "remove the `)`", "{ x }"),
    // The name alone does not make an argument of it.
    ("fn g[T: float](x: T) -> T { x }\nfn f(x: f32) -> f32 { g[ = f32](x) }\n", "nothing", ""),
    ("fn g[T: float](x: T) -> T { x }\nfn f(x: f32) -> f32 { g[T f32](x) }\n", "nothing", ""),
    // Another error in the same item is not the fix's.
    ("fn f(x: i32) -> i32 {\n    let y = x\n    let z = w;\n    y + z\n}\n", "insert `;`", "let y = x;\n"),
    ("fn g[T: float](x: T) -> T { x }\nfn f(x: f32) -> f32 { g[f32](x) }\n", "name it `T`", "g[T = f32](x)"),
    ("test \"any block sizeBLOCK {\n    assert(true);\n}\n", "remove the `}`", "assert(true);\n\n"),
    ("test \"any block {}\n", "nothing", ""),
    ("fn f() { print(\"said\n); }\n", "close the string", "\"said\"\n);"),
    ("fn f(x: i32) -> i32 {\n    let y = x\n    y\n}\n", "insert `;`", "let y = x;\n"),
];

#[test]
fn guesses_leave_fewer_errors() {
    for (text, title, after) in FIXES {
        let mut ws = workspace(&[("a.tk", text)]);
        let found = actions(&mut ws, "/w/a.tk", 0..text.len(), false);
        let fixes: Vec<_> = found.into_iter().filter(|a| a.kind == ActionKind::QuickFix).collect();
        let titles: Vec<&str> = fixes.iter().map(|a| a.title.as_str()).collect();
        assert!(!diagnostics::diagnostics(&mut ws, "/w/a.tk").is_empty(), "{text}");
        if *title == "nothing" {
            assert!(titles.is_empty(), "{text}: {titles:?}");
            continue;
        }
        assert_eq!(titles, [*title], "{text}");
        let mut mended = (*text).to_string();
        for e in fixes[0].edits.iter().rev() {
            mended.replace_range(e.place.start..e.place.end, &e.text);
        }
        assert!(mended.contains(after), "{mended}");
    }
}

/// The library is large, and checked for who waits.
#[test]
fn imports_check_files_that_declare_the_name() {
    let text = "fn f(x: f32) -> f32 {\n    silu(x) + sigmoidal(x)\n}\n";
    let mut ws = workspace(&[("a.tk", text), ("b.tk", "fn sigmoidal(x: f32) -> f32 { x }\n")]);
    let checked = std::sync::Arc::new(std::sync::Mutex::new(vec![]));
    let heard = checked.clone();
    ws.on_check = Some(Box::new(move |path| heard.lock().unwrap().push(path.to_string())));
    let found = actions(&mut ws, "/w/a.tk", 0..text.len(), false);
    let titles: Vec<&str> = found.iter().map(|a| a.title.as_str()).collect();
    assert!(titles.contains(&"import it: `use std::math::silu;`"), "{titles:?}");
    assert!(titles.contains(&"import it: `use b::sigmoidal;`"), "{titles:?}");
    let checked = checked.lock().unwrap();
    assert!(checked.len() < 6, "{checked:?}");
}

/// Each guess checks the file, and a selection can have any number of errors.
#[test]
fn a_large_selection_tries_some_guesses() {
    let item = |n: usize| format!("fn f{n}(x: i32) -> i32 {{\n    let y = x\n    y\n}}\n\n");
    let text: String = (0..100).map(item).collect();
    let mut ws = workspace(&[("a.tk", &text)]);
    assert_eq!(actions(&mut ws, "/w/a.tk", 0..text.len(), false).len(), 16);
    let last = text.rfind("= x").unwrap();
    assert_eq!(actions(&mut ws, "/w/a.tk", last..last + 3, false).len(), 1);
}

#[test]
fn a_function_is_no_operand() {
    let titles = |text: &str| -> Vec<String> {
        let mut ws = workspace(&[("a.tk", text)]);
        actions(&mut ws, "/w/a.tk", 0..text.len(), false).into_iter().map(|a| a.title).collect()
    };
    let body = |body: &str| format!("fn f(x: f32, expy: f32) -> f32 {{\n    {body}\n}}\n");
    assert_eq!(titles(&body("expv - x + expy")), ["use `expy`"]);
    assert_eq!(titles(&body("expp(x) + expy")), ["use `exp`"]);
    assert_eq!(titles(&body("gelu(x) + expy")), ["import it: `use std::math::gelu;`"]);
    assert!(!titles(&body("gelu = x; expy")).iter().any(|t| t.starts_with("import")));
}

#[test]
fn an_import_is_used_where_a_variable_has_its_name() {
    let other = ("m.tk", "fn h(x: f32) -> f32 { x + 1.0 }\nstruct S { a: f32 }\n");
    for text in [
        "use m;\n\nfn f(m: f32) -> f32 { m::h(m) }\n",
        "use m as q;\n\nfn f(q: f32) -> f32 { q::h(q) }\n",
        "use m;\n\nfn f(x: f32) -> f32 {\n    let m = x;\n    m::h(m)\n}\n",
        "use m;\n\nfn f[m: i32](x: tile[f32, m]) -> f32 { m::h(sum(x)) }\n",
    ] {
        let mut ws = workspace(&[("n.tk", text), other]);
        let codes = |ws: &mut Workspace| -> Vec<&'static str> {
            diagnostics::diagnostics(ws, "/w/n.tk").iter().map(|d| d.code.0).collect()
        };
        assert_eq!(codes(&mut ws), [] as [&str; 0], "{text}");
        assert!(source_actions(&ws, "/w/n.tk", text).is_empty(), "{text}");
    }
    // The variable is not read by that.
    let mut ws = workspace(&[("n.tk", "use m;\n\nfn f(m: f32) -> f32 { m::h(1.0) }\n"), other]);
    let found = diagnostics::diagnostics(&mut ws, "/w/n.tk");
    let messages: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["the parameter `m` is never used"]);
}

#[test]
fn brackets_of_one_line_fold_at_once() {
    const DEEP: usize = 20_000;
    for (open, close) in [("(", ")"), ("[(", ")")] {
        let text = format!("fn f() -> i32 {{ {}1{}\n}}\n", open.repeat(DEEP), close.repeat(DEEP));
        let mut ws = workspace(&[("a.tk", &text)]);
        let start = std::time::Instant::now();
        let found = folding::folding(&mut ws, "/w/a.tk");
        assert_eq!(found.len(), 1);
        assert!(start.elapsed().as_secs() < 10);
    }
}

/// A text after the action with a title, which the editor `asked` for or shows at the cursor.
fn imported(text: &str, title: &str, asked: bool) -> String {
    let mut ws = workspace(&[("a.tk", text)]);
    let found = actions(&mut ws, "/w/a.tk", 0..text.len(), asked);
    let action = found.into_iter().find(|a| a.title == title).unwrap();
    let mut mended = text.to_string();
    for e in action.edits.iter().rev() {
        mended.replace_range(e.place.start..e.place.end, &e.text);
    }
    mended
}

#[test]
fn imports_go_below_the_comment_of_the_file_and_its_other_imports() {
    let item = "fn f(x: f32) -> f32 { gelu(x) }\n";
    let title = "import it: `use std::math::gelu;`";
    for (head, after) in [
        ("", "use std::math::gelu;\n\n"),
        ("// About this module.\n\n", "// About this module.\n\nuse std::math::gelu;\n\n"),
        ("// Of `f`.\n", "use std::math::gelu;\n\n// Of `f`.\n"),
        (
            "// About.\n\nuse std::math::relu; // rectifier\n\n",
            "// About.\n\nuse std::math::relu; // rectifier\nuse std::math::gelu;\n\n",
        ),
    ] {
        for ends in ["\n", "\r\n"] {
            let of = |text: String| text.replace('\n', ends);
            for asked in [false, true] {
                assert_eq!(
                    imported(&of(format!("{head}{item}")), title, asked),
                    of(format!("{after}{item}"))
                );
            }
        }
    }
    // The file of an item.
    let title = "import it: `use std::math;`";
    let text = "// About.\n\nfn f(x: f32) -> f32 { math::gelu(x) }\n";
    assert!(imported(text, title, true).starts_with("// About.\n\nuse std::math;\n\nfn f"));
}

#[test]
fn comments_above_imports_move_with_them() {
    let rest = "\n\nfn f(x: f32) -> f32 { math::gelu(x) + views::f() + grid::g() }\n";
    for (text, after) in [
        (
            "use std::views;\n// activation functions\nuse std::math;\nuse std::grid;",
            "use std::grid;\n// activation functions\nuse std::math;\nuse std::views;",
        ),
        (
            "// About the file.\nuse std::math;\nuse std::grid;",
            "// About the file.\nuse std::grid;\nuse std::math;",
        ),
    ] {
        for ends in ["\n", "\r\n"] {
            let text = format!("{text}{rest}").replace('\n', ends);
            let ws = workspace(&[("a.tk", &text)]);
            let found = source_actions(&ws, "/w/a.tk", &text);
            let action = found.iter().find(|a| a.kind == ActionKind::OrganizeImports).unwrap();
            let mut mended = text.clone();
            for e in action.edits.iter().rev() {
                mended.replace_range(e.place.start..e.place.end, &e.text);
            }
            assert_eq!(mended, format!("{after}{rest}").replace('\n', ends));
        }
    }
}
