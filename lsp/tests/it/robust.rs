//! Every feature at every offset of every example and of broken texts, and renaming there and back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::support::{folder, workspace};
use tk_lsp::ide::{
    Workspace, actions, calls, complete, diagnostics, folding, hints, hover, lens, navigate, rename,
    selection, signature, symbols, tokens,
};

/// What is asked of a place.
fn ask_at(ws: &mut Workspace, path: &str, at: usize) {
    hover::hover(ws, path, at);
    signature::signature(ws, path, at);
    navigate::definition(ws, path, at);
    navigate::type_definition(ws, path, at);
    navigate::highlight(ws, path, at);
    let _ = rename::prepare(ws, path, at);
    let around = selection::selection(ws, path, at);
    for (inner, outer) in around.iter().zip(around.iter().skip(1)) {
        assert!(
            outer.start <= inner.start && inner.end <= outer.end && inner != outer,
            "{inner:?} in {outer:?}"
        );
    }
    calls::prepare(ws, path, at);
}

/// What is asked of a place and costs more: a search through the workspace, or a check of changed texts.
fn ask_more(ws: &mut Workspace, path: &str, at: usize) {
    complete::complete(ws, path, at);
    navigate::references(ws, path, at, true);
    calls::incoming(ws, path, at);
    calls::outgoing(ws, path, at);
    actions::actions(ws, path, at..at, true);
    actions::actions(ws, path, at / 2..at, true);
}

/// What is asked of a file.
fn ask_file(ws: &mut Workspace, path: &str) {
    let text = ws.text(path).unwrap();
    diagnostics::diagnostics(ws, path);
    symbols::document(ws, path);
    for f in folding::folding(ws, path) {
        assert!(text[f.start..f.end].contains('\n'));
    }
    hints::hints(ws, path, 0..text.len());
    lens::lens(ws, path);
    let found = tokens::tokens(ws, path, None);
    for (a, b) in found.iter().zip(found.iter().skip(1)) {
        assert!(a.end <= b.start, "{a:?} {b:?}");
    }
    for t in found {
        assert!(!text[t.start..t.end].contains('\n'));
    }
}

#[test]
fn every_offset_of_the_examples() {
    let files = folder("examples");
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    let mut ws = workspace(&files);
    for (name, text) in &files {
        let path = format!("/w/{name}");
        ask_file(&mut ws, &path);
        for at in 0..text.len() + 2 {
            ask_at(&mut ws, &path, at);
            if at % 7 == 0 {
                complete::complete(&mut ws, &path, at);
            }
            if at % 61 == 0 {
                ask_more(&mut ws, &path, at);
            }
        }
    }
}

#[test]
fn texts_that_end_early() {
    for (name, text) in folder("examples") {
        let mut ws = workspace(&[(&name, "")]);
        let path = format!("/w/{name}");
        for end in (0..text.len()).step_by(97).filter(|i| text.is_char_boundary(*i)) {
            ws.open(&path, text[..end].to_string());
            ask_file(&mut ws, &path);
            for at in end.saturating_sub(3)..end + 1 {
                ask_at(&mut ws, &path, at);
            }
            ask_more(&mut ws, &path, end);
        }
    }
}

#[test]
fn broken_texts() {
    let texts = [
        "",
        "\u{FEFF}",
        "use",
        "use a::",
        "fn",
        "kernel k(",
        "struct S { x: S, fn m(self) -> S { self.x.x.x. } }",
        "use main; fn f(x: f32) -> f32 { main::f(x) }",
        "fn é(ü: f32) -> f32 { ü + é(ü) }",
        "fn f(x: f32) -> f32 { let (x) = (x, ); (x) += 1; x.y.z().w[",
        "const A: i32 = B; const B: i32 = A;",
        "test \"a\" { test \"b\" { let x = 1; } }",
        "fn f[T: float, T: int](x: T, x: T) -> T { x }",
        "fn f() { if let v = w { v. } else { |a, b| a.b } }",
        "} ) ] fn f(x: f32) -> f32 { x } { ( [",
        "kernel k(x: view[f32, 1]) grid(x.shape[0].) tune(key = ) { { A = [1, } if } scratch(a: *mut u32, ) { }",
    ];
    let long = format!("fn f(x: f32) -> f32 {{ {} }}", "x + ".repeat(20_000));
    for text in texts.into_iter().chain([long.as_str()]) {
        let mut ws = workspace(&[("main.tk", text)]);
        ask_file(&mut ws, "/w/main.tk");
        for at in (0..text.len() + 2).take(200) {
            ask_at(&mut ws, "/w/main.tk", at);
            ask_more(&mut ws, "/w/main.tk", at);
        }
        let _ = rename::rename(&mut ws, "/w/main.tk", 4, "fresh");
    }
}

#[test]
fn files_that_are_not_there() {
    let mut ws = workspace(&[
        ("a.tk", "use b; use c; fn f(x: f32) -> f32 { b::g(x) }"),
        ("b.tk", "use a; fn g(x: f32) -> f32 { x }"),
    ]);
    for path in ["/w/none.tk", "", "std:/none.tk", "std:/prelude.tk"] {
        assert_eq!(ws.text(path).is_some(), path == "std:/prelude.tk");
        if ws.text(path).is_some() {
            ask_file(&mut ws, path);
        }
        ask_at(&mut ws, path, 3);
        ask_more(&mut ws, path, 3);
        diagnostics::diagnostics(&mut ws, path);
    }
    assert_eq!(navigate::definition(&mut ws, "/w/a.tk", 40)[0].path, "/w/b.tk");
    // An open file hides that of the disk, and closing it shows that again.
    ws.open("/w/b.tk", "fn h(x: f32) -> f32 { x }".into());
    assert!(navigate::definition(&mut ws, "/w/a.tk", 40).is_empty());
    assert_eq!(ws.dependents("/w/b.tk"), ["/w/b.tk"]);
    ws.open("/w/a.tk", ws.text("/w/a.tk").unwrap() + "\n");
    assert_eq!(ws.dependents("/w/b.tk"), ["/w/a.tk", "/w/b.tk"]);
    ws.close("/w/b.tk");
    assert_eq!(navigate::definition(&mut ws, "/w/a.tk", 40)[0].path, "/w/b.tk");
}

/// Renames the symbol at an offset: the text, and where the offset has gone.
fn renamed(ws: &mut Workspace, path: &str, at: usize, name: &str) -> Result<(String, usize), String> {
    let mut edits = rename::rename(ws, path, at, name)?;
    edits.sort();
    let mut text = ws.text(path).unwrap();
    let mut moved = at;
    for e in edits.iter().rev() {
        if e.place.end <= at {
            moved = moved + e.text.len() - (e.place.end - e.place.start);
        }
        assert_eq!(e.place.path, path);
        text.replace_range(e.place.start..e.place.end, &e.text);
    }
    Ok((text, moved))
}

#[test]
fn renaming_there_and_back() {
    let mut count = 0;
    for (name, text) in folder("examples") {
        let path = format!("/w/{name}");
        let mut ws = workspace(&[(&name, &text)]);
        for t in tokens::tokens(&mut ws, &path, None).into_iter().filter(|t| t.modifiers.declaration) {
            let before = &text[t.start..t.end];
            let (there, at) = renamed(&mut ws, &path, t.start, "fresh_name")
                .unwrap_or_else(|e| panic!("{name}: {before}: {e}"));
            assert!(!there.is_empty() && there != text);
            let mut other = workspace(&[(&name, &there)]);
            let back = renamed(&mut other, &path, at, before);
            // A declaration of the file may have the name of a builtin; the editor gives it to none.
            if before == "tile" || tk_ops::rows::functions().any(|row| row.name == before) {
                assert_eq!(back.unwrap_err(), format!("`{before}` is built into the language"));
                continue;
            }
            let (back, _) = back.unwrap_or_else(|e| panic!("{name}: {before}: {e}"));
            assert_eq!(back, text, "{name}: {before}");
            count += 1;
        }
    }
    assert!(count > 300, "only {count} names");
}

#[test]
fn analyses_may_go_to_other_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<tk_lsp::ide::Analysis>();
    fn sent<T: Send>() {}
    sent::<Workspace>();
}

/// More files than analyses are kept of.
#[test]
fn a_second_search_checks_nothing() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let files: Vec<(String, String)> =
        (0..300).map(|n| (format!("a{n:03}.tk"), "use b;\n\nfn f() -> i32 { b::rare() }\n".into())).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    files.push(("b.tk", "fn rare() -> i32 { 1 }\n"));
    let mut ws = workspace(&files);
    let checked = std::sync::Arc::new(AtomicUsize::new(0));
    let count = checked.clone();
    ws.on_check = Some(Box::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    for expected in [301, 0] {
        let found = navigate::references(&mut ws, "/w/b.tk", 4, true);
        assert_eq!(found.len(), 301);
        let checked = checked.swap(0, Ordering::Relaxed);
        assert!(checked <= expected + 1, "{checked}");
    }
    // A change of what all use changes all, one of another file that one.
    ws.open("/w/a007.tk", "use b;\n\nfn f() -> i32 { b::rare() + b::rare() }\n".into());
    assert_eq!(navigate::references(&mut ws, "/w/b.tk", 4, true).len(), 302);
    assert!(checked.swap(0, Ordering::Relaxed) <= 2);
    ws.open("/w/b.tk", "fn rarely() -> i32 { 1 }\n".into());
    assert_eq!(navigate::references(&mut ws, "/w/b.tk", 4, true).len(), 1);
}
