//! Each file of `tests/lsp` asks a question: the part of its name before the first `-` says which, `$0` where. The
//! answer is in the `.txt` beside it, with places drawn under their lines; `TK_BLESS=1` writes it.
//!
//! A line `//- name.tk` begins another file of the same workspace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fmt::Write;
use std::ops::Range;

use crate::support::{draw, folder, root, workspace};
use tk_lsp::ide::{
    Place, TextEdit, Workspace, actions, calls, complete, diagnostics, folding, hints, hover, lens, navigate,
    rename, selection, signature, symbols, tokens,
};
use tk_snapshot::Snapshots;

#[test]
fn answers() {
    let mut snapshots = Snapshots::new();
    for (name, text) in folder("tests/lsp") {
        let answer = run(&name, &text);
        let path = root().join("tests/lsp").join(name.replace(".tk", ".txt"));
        snapshots.check(path, &answer);
    }
    snapshots.finish();
}

/// The files of a question and its places in the first of them.
fn question(name: &str, text: &str) -> (Workspace, Vec<usize>) {
    let mut files: Vec<(String, String)> = vec![(name.to_string(), String::new())];
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("//- ") {
            Some(other) => files.push((other.trim().to_string(), String::new())),
            None => files.last_mut().unwrap().1.push_str(line),
        }
    }
    let mut places = vec![];
    while let Some(at) = files[0].1.find("$0") {
        files[0].1.replace_range(at..at + 2, "");
        places.push(at);
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    (workspace(&files), places)
}

fn run(name: &str, text: &str) -> String {
    let (mut ws, places) = question(name, text);
    let path = format!("/w/{name}");
    let feature = name.split(['-', '.']).next().unwrap();
    if places.is_empty() {
        return whole(&mut ws, &path, feature);
    }
    let mut out = String::new();
    if feature == "extract" {
        return places.chunks(2).map(|pair| extracted(&mut ws, &path, pair[0]..pair[1])).collect();
    }
    if feature == "selected" {
        return places.chunks(2).map(|pair| required(&mut ws, &path, pair[0]..pair[1])).collect();
    }
    for at in places {
        if out.is_empty() {
            out += &asked(&ws, &path, at);
        } else {
            out += &format!("\n{}", asked(&ws, &path, at));
        }
        out += &one(&mut ws, &path, at, feature);
    }
    out
}

fn asked(ws: &Workspace, path: &str, at: usize) -> String {
    draw(ws, &Place { path: path.into(), start: at, end: at }, "?")
}

fn list(ws: &Workspace, places: &[Place]) -> String {
    places.iter().map(|p| draw(ws, p, "")).collect()
}

fn one(ws: &mut Workspace, path: &str, at: usize, feature: &str) -> String {
    match feature {
        "hover" => match hover::hover(ws, path, at) {
            Some(h) => draw(ws, &h.place, "") + &indent(&h.markdown),
            None => "nothing\n".into(),
        },
        "definition" => {
            let found = navigate::definition(ws, path, at);
            list(ws, &found)
        }
        "type" => {
            let found = navigate::type_definition(ws, path, at);
            list(ws, &found)
        }
        "references" => {
            let found = navigate::references(ws, path, at, true);
            list(ws, &found)
        }
        "highlight" => {
            let found = navigate::highlight(ws, path, at);
            found.iter().map(|(p, w)| draw(ws, p, if *w { "written" } else { "" })).collect()
        }
        "rename" => match rename::rename(ws, path, at, "fresh") {
            Ok(edits) => edited(ws, &edits),
            Err(why) => format!("refused: {why}\n"),
        },
        "selection" => {
            let found = selection::selection(ws, path, at);
            list(ws, &found)
        }
        "complete" => completions(&complete::complete(ws, path, at)),
        "signature" => match signature::signature(ws, path, at) {
            Some(s) => {
                let active = s.active.and_then(|i| s.params.get(i));
                let under =
                    active.map(|(r, d)| format!("{}{} {d}", " ".repeat(r.start), "^".repeat(r.len())));
                format!("{}\n{}\n", s.label, under.unwrap_or_default().trim_end())
            }
            None => "nothing\n".into(),
        },
        "calls" => call_hierarchy(ws, path, at),
        "actions" => {
            let mut out = String::new();
            for a in actions::actions(ws, path, at..at, true) {
                let mends = a.diagnostic.map(|_| " (mends a diagnostic)").unwrap_or_default();
                let _ = write!(out, "{:?}: {}{mends}\n{}", a.kind, a.title, indent(&edited(ws, &a.edits)));
            }
            out
        }
        other => panic!("no feature is called {other}"),
    }
}

/// A name that the language has is none for a declaration.
#[test]
fn no_name_becomes_one_of_the_language() {
    let text = "fn f(own: f32) -> f32 { own + 1.0 }\n";
    for name in ["f32", "float", "tile", "view", "dtype", "shape", "load", "sum", "target", "device", "inf"] {
        let mut ws = workspace(&[("a.tk", text)]);
        let refused = rename::rename(&mut ws, "/w/a.tk", text.find("own").unwrap(), name);
        assert_eq!(refused, Err(format!("`{name}` is built into the language")));
    }
}

/// A constant that is a list is a table, which its hover says.
#[test]
fn tables_are_lists() {
    for (declared, code, doc) in [
        ("[1, 2]", "const T = [1, 2]", "A table of 2 elements."),
        ("[7]", "const T = [7]", "A table of 1 element."),
        ("[[0, 1, 2], [2, 0, 1]]", "const T = [[0, 1, 2], [2, 0, 1]]", "A table of 2 lists of 3 elements."),
        ("(1, 2)", "const T = (1, 2)", ""),
    ] {
        let text = format!("const T = {declared};\n");
        let mut ws = workspace(&[("a.tk", &text)]);
        let found = hover::hover(&mut ws, "/w/a.tk", text.find('T').unwrap()).unwrap().markdown;
        assert!(
            found.contains(&format!("\n{code}\n"))
                && found.ends_with(if doc.is_empty() { "```" } else { doc }),
            "{found}"
        );
    }
}

/// What a selection becomes as a function, or that none is offered.
fn extracted(ws: &mut Workspace, path: &str, selection: Range<usize>) -> String {
    let text = ws.text(path).unwrap();
    let mut out = format!("--- {}\n", text[selection.clone()].replace('\n', "\n    "));
    let offered = actions::actions(ws, path, selection, true);
    match offered.iter().find(|a| a.kind == actions::ActionKind::Extract) {
        Some(action) => {
            for edit in &action.edits {
                let _ = writeln!(out, "{}", edit.text.trim_start());
            }
        }
        None => out += "not offered\n",
    }
    out
}

/// What a selected condition makes of the signature, or that nothing is offered.
fn required(ws: &mut Workspace, path: &str, selection: Range<usize>) -> String {
    let text = ws.text(path).unwrap();
    let offered = actions::actions(ws, path, selection.clone(), true);
    let action = offered.iter().find(|a| a.title.contains("`require("));
    let found = action.map_or("not offered\n".to_string(), |a| edited(ws, &a.edits));
    format!("--- {}\n{found}", &text[selection])
}

fn whole(ws: &mut Workspace, path: &str, feature: &str) -> String {
    match feature {
        "diagnostics" => {
            let a = ws.analysis(path);
            let found = diagnostics::diagnostics(ws, path);
            found
                .iter()
                .map(|d| draw(ws, &a.place(d.primary.span), &format!("{}: {}", d.code.0, d.message)))
                .collect()
        }
        "symbols" => symbols::document(ws, path).iter().map(|s| outline(s, 0)).collect(),
        "search" => symbols::workspace(ws, "sm")
            .iter()
            .map(|s| format!("{} {:?} {}\n", s.name, s.kind, s.place.path))
            .collect(),
        "folding" => {
            let found = folding::folding(ws, path);
            found
                .iter()
                .map(|f| {
                    draw(
                        ws,
                        &Place { path: path.into(), start: f.start, end: f.end },
                        &format!("{:?}", f.kind),
                    )
                })
                .collect()
        }
        "hints" => {
            let mut text = ws.text(path).unwrap();
            for h in hints::hints(ws, path, 0..text.len()).iter().rev() {
                text.insert_str(h.offset, &format!("<{}>", h.label));
            }
            text
        }
        "tokens" => {
            let found = tokens::tokens(ws, path, None);
            let text = ws.text(path).unwrap();
            found
                .iter()
                .map(|t| format!("{:<16} {:?}{}\n", &text[t.start..t.end], t.kind, modifiers(t.modifiers)))
                .collect()
        }
        "lens" => lens::lens(ws, path)
            .iter()
            .map(|l| draw(ws, &l.place, &format!("{}: {:?}", l.title, l.command)))
            .collect(),
        other => panic!("no feature is called {other}"),
    }
}

fn modifiers(m: tokens::Modifiers) -> String {
    let all = [
        (m.declaration, "declaration"),
        (m.fixed, "static"),
        (m.mutable, "mutable"),
        (m.library, "library"),
        (m.documentation, "documentation"),
    ];
    all.iter().filter(|x| x.0).map(|x| format!(" {}", x.1)).collect()
}

fn outline(s: &symbols::Symbol, depth: usize) -> String {
    let own = format!("{}{:?} {} {}", "  ".repeat(depth), s.kind, s.name, s.detail);
    s.children.iter().fold(own.trim_end().to_string() + "\n", |out, c| out + &outline(c, depth + 1))
}

fn completions(found: &[complete::Completion]) -> String {
    // All builtins are in many answers; a few stand for them.
    let shown = ["exp", "load", "arange", "sum"];
    let mut out: Vec<String> = found
        .iter()
        .filter(|c| c.kind != complete::CompletionKind::Builtin || shown.contains(&c.label.as_str()))
        .map(|c| {
            let insert = if c.insert == c.label { String::new() } else { format!(" => {:?}", c.insert) };
            let extra: String = c.extra.iter().map(|e| format!(" + {:?}", e.text)).collect();
            format!("{:?} {} | {}{insert}{extra}\n", c.kind, c.label, c.detail)
        })
        .collect();
    out.sort();
    out.concat()
}

fn call_hierarchy(ws: &mut Workspace, path: &str, at: usize) -> String {
    let Some(s) = calls::prepare(ws, path, at) else { return "nothing\n".into() };
    let mut out = format!("{:?} {}\n", s.kind, s.name);
    let (file, name) = (s.name_place.path.clone(), s.name_place.start);
    for (word, found) in
        [("called by", calls::incoming(ws, &file, name)), ("calls", calls::outgoing(ws, &file, name))]
    {
        for c in found {
            let _ = write!(out, "{word} {:?} {}\n{}", c.symbol.kind, c.symbol.name, list(ws, &c.places));
        }
    }
    out
}

/// The lines that edits change, as they are after them.
fn edited(ws: &Workspace, edits: &[TextEdit]) -> String {
    let mut files: Vec<&str> = edits.iter().map(|e| e.place.path.as_str()).collect();
    files.dedup();
    let mut out = String::new();
    for path in files {
        let before = ws.text(path).unwrap();
        let mut after = before.clone();
        let mut own: Vec<&TextEdit> = edits.iter().filter(|e| e.place.path == path).collect();
        own.sort();
        for e in own.iter().rev() {
            after.replace_range(e.place.start..e.place.end, &e.text);
        }
        let old: Vec<&str> = before.lines().collect();
        let name = path.trim_start_matches("/w/");
        for (i, line) in after.lines().enumerate().filter(|(_, l)| !old.contains(l)) {
            let _ = writeln!(out, "{name}:{} {line}", i + 1);
        }
    }
    out
}

fn indent(text: &str) -> String {
    text.lines().map(|l| format!("    | {l}").trim_end().to_string() + "\n").collect()
}
