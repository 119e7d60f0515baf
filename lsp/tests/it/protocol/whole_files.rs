//! Problems of the workspace, changes of whole files, and a file with another name.

use serde_json::{Value, json};

use super::client::{Client, Memory, codes};
use super::features::{URI, apply};

#[test]
fn problems_of_the_whole_workspace() {
    let disk = Memory::default();
    disk.write("/w/bad.tk", "fn f() -> i32 { x }\n");
    disk.write("/w/good.tk", "fn f() -> i32 { 1 }\n");
    let mut client = Client::over(disk.clone(), json!({ "textDocument": { "diagnostic": {} } }));
    let all = client.ok("workspace/diagnostic", json!({ "previousResultIds": [] }));
    let found: Vec<(String, Vec<String>)> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["uri"].as_str().unwrap().to_string(), codes(&i["items"])))
        .collect();
    let file = |name: &str| format!("file:///w/{name}");
    assert_eq!(found, [(file("bad.tk"), vec!["E0201".to_string()]), (file("good.tk"), vec![])]);

    let known: Vec<Value> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| json!({ "uri": i["uri"], "value": i["resultId"] }))
        .collect();
    disk.write("/w/good.tk", "fn f() -> i32 { y }\n");
    let changed = json!({ "changes": [{ "uri": file("good.tk"), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changed);
    let again = client.ok("workspace/diagnostic", json!({ "previousResultIds": known }));
    let kinds: Vec<&Value> = again["items"].as_array().unwrap().iter().map(|i| &i["kind"]).collect();
    assert_eq!(kinds, [&json!("unchanged"), &json!("full")], "{again}");
}

const Z: &str = "use b;\nfn z() -> f32 { b::two() }\n";
const MATH: &str = "use std::math;\nuse b;\nfn h() -> f32 { math::relu(b::two()) }\n";

#[test]
fn a_file_gets_another_name() {
    let disk = Memory::default();
    disk.write("/w/b.tk", "fn two() -> f32 { 2.0 }\n");
    disk.write("/w/c.tk", "use b::two;\nfn b() -> f32 { two() }\n");
    disk.write("/w/d.tk", "use b as other;\nfn f() -> f32 { other::two() }\n");
    disk.write("/w/e.tk", Z);
    disk.write("/w/g.tk", MATH);
    disk.write("/w/sub/f.tk", "use b;\n");
    let mut client = Client::over(disk, json!({}));
    client.open(URI, "use b;\nfn f() -> f32 {\n    b::two() + b::two()\n}\n");
    let file = |name: &str| format!("file:///w/{name}");
    let mut ask = |new: &str| {
        client.said.clear();
        let files = json!([{ "oldUri": file("b.tk"), "newUri": file(new) }]);
        let edit = client.ok("workspace/willRenameFiles", json!({ "files": files }));
        let shown = client.said.iter().filter(|n| n.method == "window/showMessage");
        let shown: Vec<String> = shown.map(|n| n.params["message"].as_str().unwrap().to_string()).collect();
        (edit, shown)
    };
    let (edit, shown) = ask("z.tk");
    let changed = |name: &str| edit["changes"][file(name)].as_array().map_or(0, Vec::len);
    let opened = URI.rsplit('/').next().unwrap();
    assert_eq!([opened, "c.tk", "d.tk", "sub/f.tk"].map(changed), [3, 1, 1, 0], "{edit}");
    // `z` is a function there, and `math` a file of the library.
    assert_eq!(apply(Z, &edit["changes"][file("e.tk")]), Z.replace("use b;", "use z as b;"));
    let (edit, _) = ask("math.tk");
    assert_eq!(apply(MATH, &edit["changes"][file("g.tk")]), MATH.replace("use b;", "use math as b;"));
    assert!(shown.is_empty(), "{shown:?}");
    let reasons = [
        ("sub/b.tk", "`b.tk` is no longer beside it"),
        ("b.txt", "`b.tk` is no longer beside it"),
        ("fn.tk", "`fn` is not a name"),
        ("no name.tk", "`no name` is not a name"),
        ("a-b.tk", "`a-b` is not a name"),
        ("c.tk", "there is already a file `c.tk`"),
    ];
    for (refused, why) in reasons {
        let (edit, shown) = ask(refused);
        assert_eq!((edit, shown.len()), (Value::Null, 1), "{refused}");
        assert!(shown[0].contains("still imports `b`: ") && shown[0].ends_with(why), "{shown:?}");
    }
}

#[test]
fn source_actions_are_for_those_who_ask() {
    let text = concat!(
        "use b::{three, two};\nuse std::math;\nuse std::grid;\n\n",
        "kernel k(y: mut view[f32, 1]) grid(1) {\n    let mut a = two();\n",
        "    let (i, _j) = grid::grouped(1, 1, 1, 1);\n",
        "    y.store([i], full([1], a, f32) * math::relu(2.0 as f32));\n}\n",
    );
    let disk = Memory::default();
    disk.write("/w/b.tk", "fn two() -> f32 { 2.0 }\nfn three() -> f32 { 3.0 }\n");
    let mut client = Client::over(disk, json!({}));
    client.open(URI, text);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let mut ask = |only: Value| {
        let context = json!({ "diagnostics": [], "only": only });
        let asked = json!({ "textDocument": { "uri": URI }, "range": whole, "context": context });
        client.ok("textDocument/codeAction", asked)
    };
    let kinds = |answer: &Value| -> Vec<String> {
        answer.as_array().unwrap().iter().map(|a| a["kind"].as_str().unwrap().to_string()).collect()
    };
    assert!(!kinds(&ask(Value::Null)).iter().any(|k| k.starts_with("source")));
    assert_eq!(kinds(&ask(json!(["source"]))), ["source.fixAll", "source.organizeImports"]);
    let after = |answer: Value| apply(text, &answer[0]["edit"]["changes"][URI]);
    let fixed = after(ask(json!(["source.fixAll"])));
    assert!(fixed.contains("let a = two()") && fixed.contains("use b::{two};"), "{fixed}");
    let organised = after(ask(json!(["source.organizeImports"])));
    assert!(organised.starts_with("use std::grid;\nuse std::math;\nuse b::{two};\n\n"), "{organised}");
    assert!(organised.contains("let mut a"), "{organised}");
}

/// A list of imports that takes several lines has those of `tk fmt` without a name that is not used.
#[test]
fn organized_imports_keep_the_layout() {
    let names = ["first", "second", "third", "fourth", "fifth", "sixth"].map(|n| format!("the_{n}_function"));
    let functions = names.iter().map(|n| format!("fn {n}() -> f32 {{ 2.0 }}\n"));
    let calls = names.iter().skip(1).map(|n| format!("{n}()")).collect::<Vec<_>>().join(" + ");
    let rest = format!("fn f() -> f32 {{ relu({calls}) }}\n");
    let text = format!("use b::{{{}}};\nuse std::math::relu;\n\n{rest}", names.join(", "));
    let text = tk_fmt::format(&text).unwrap();
    let disk = Memory::default();
    disk.write("/w/b.tk", &functions.collect::<String>());
    let mut client = Client::over(disk, json!({}));
    client.open(URI, &text);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let context = json!({ "diagnostics": [], "only": ["source.organizeImports"] });
    let asked = json!({ "textDocument": { "uri": URI }, "range": whole, "context": context });
    let answer = client.ok("textDocument/codeAction", asked);
    let organised = apply(&text, &answer[0]["edit"]["changes"][URI]);
    assert!(text.starts_with("use b::{\n    the_first_function, the_second"), "{text}");
    assert!(organised.starts_with("use std::math::relu;\nuse b::{"), "{organised}");
    assert!(!organised.contains("first"), "{organised}");
    assert_eq!(tk_fmt::format(&organised).unwrap(), organised);
}

/// A comment stays with its import, wherever that goes, and with a name of one whose neighbour goes.
#[test]
fn organized_imports_keep_comments() {
    let both = "fn f(x: f32) -> f32 { math::relu(x) + grid::together() }\n";
    let relu = "fn f(x: f32) -> f32 { relu(x) }\n";
    for (text, rest, end) in [
        (
            "use std::math; // about it\nuse std::grid; // and this\n\n",
            "use std::grid; // and this\nuse std::math; // about it\n\n",
            both,
        ),
        (
            "use std::math::{\n    relu, // two\n    silu};\n",
            "use std::math::{\n    relu, // two\n};\n",
            relu,
        ),
        (
            "use std::math::{silu,\n    // About it.\n    relu,\n};\n",
            "use std::math::{\n    // About it.\n    relu,\n};\n",
            relu,
        ),
    ] {
        let text = format!("{text}{end}");
        let mut client = Client::over(Memory::default(), json!({}));
        client.open(URI, &text);
        let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
        let context = json!({ "diagnostics": [], "only": ["source.organizeImports"] });
        let asked = json!({ "textDocument": { "uri": URI }, "range": whole, "context": context });
        let found = client.ok("textDocument/codeAction", asked)[0]["edit"]["changes"][URI].clone();
        let bare = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(bare(apply(&text, &found)), bare(format!("{rest}{end}")));
    }
}

/// An import goes with its line and the blank lines around it that are too many; its comments go with it.
#[test]
fn unused_imports_go_with_their_lines() {
    let used = "fn f(x: f32) -> f32 { math::relu(x) }\n";
    let relu = "fn f(x: f32) -> f32 { relu(x) }\n";
    for (text, rest, end) in [
        ("use std::grid; // unused\nuse std::math;\n\n", "use std::math;\n\n", used),
        ("use std::math;\nuse std::grid; // unused\n\n", "use std::math;\n\n", used),
        ("use std::math;\n// unused\n// too\nuse std::grid;\n\n", "use std::math;\n\n", used),
        ("use std::math;\r\n// unused\r\nuse std::grid;\r\n\r\n", "use std::math;\r\n\r\n", used),
        ("// About it.\nuse std::grid;\nuse std::math;\n\n", "// About it.\n\nuse std::math;\n\n", used),
        ("use std::math;\n\n// unused\nuse std::grid;\n\n", "use std::math;\n\n", used),
        ("use std::grid;\n\n\nuse std::math;\n\n", "use std::math;\n\n", used),
        ("// About it.\n\nuse std::grid;\n\nuse std::math;\n", "// About it.\n\nuse std::math;\n", used),
        ("use std::grid; use std::math;\n", " use std::math;\n", used),
        ("use std::grid;\r\n\r\nuse std::math;\r\n", "use std::math;\r\n", used),
        (
            "use std::math::{\n    gelu, // one\n    relu, // two\n};\n",
            "use std::math::{\n    // one\n    relu, // two\n};\n",
            relu,
        ),
        (
            "use std::math::{\n    relu, // two\n    silu, // three\n};\n",
            "use std::math::{\n    relu, // two\n    // three\n};\n",
            relu,
        ),
        ("use std::math::{relu, silu};\n", "use std::math::{relu};\n", relu),
    ] {
        let text = format!("{text}{end}");
        let mut client = Client::over(Memory::default(), json!({}));
        client.open(URI, &text);
        let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
        let context = json!({ "diagnostics": [], "only": ["source.fixAll"] });
        let asked = json!({ "textDocument": { "uri": URI }, "range": whole, "context": context });
        let found = client.ok("textDocument/codeAction", asked)[0]["edit"]["changes"][URI].clone();
        assert_eq!(apply(&text, &found), format!("{rest}{end}"));
    }
    let text = format!("use std::math;\n\n{used}\n// c\nuse std::grid;\n");
    let ws = crate::support::workspace(&[("a.tk", &text)]);
    let found = tk_lsp::ide::source_actions::source_actions(&ws, "/w/a.tk", &text);
    let edit = &found[0].edits[0];
    let left = format!("{}{}{}", &text[..edit.place.start], edit.text, &text[edit.place.end..]);
    assert_eq!(left, format!("use std::math;\n\n{used}"));
}

/// A carriage return ends a line, in the language as in the protocol.
#[test]
fn lines_that_end_with_a_carriage_return() {
    let text = "// A comment.\rfn f(x: f32) -> f32 {\r    // One.\r    // Two.\r    x + y\r}\r";
    let mut client = Client::new(json!({}));
    client.open(URI, text);
    let wrong = client.pushed(URI)["diagnostics"].clone();
    let at = |character: u32| json!({ "line": 4, "character": character });
    assert_eq!(wrong[0]["range"], json!({ "start": at(8), "end": at(9) }), "{wrong}");
    let file = json!({ "textDocument": { "uri": URI } });
    let folds = client.ok("textDocument/foldingRange", file.clone());
    let lines = |f: &Value| (f["startLine"].as_u64().unwrap(), f["endLine"].as_u64().unwrap());
    let folds: Vec<_> = folds.as_array().unwrap().iter().map(lines).collect();
    assert_eq!(folds, [(1, 5), (2, 3)]);
    let outline = client.ok("textDocument/documentSymbol", file);
    let end = json!({ "line": 5, "character": 1 });
    let found = &outline[0];
    assert!(found["range"]["end"] == end || found["location"]["range"]["end"] == end, "{outline}");
}

/// What the server keeps behind items, so that an edit moves nothing, never reaches the client.
#[test]
fn source_actions_after_edits_are_those_of_a_fresh_server() {
    let text = concat!(
        "use std::math;\nfn f(x: f32) -> f32 {\n    let mut a = x; // note\n    a\n}\n\n",
        "fn g(x: f32) -> f32 {\n    let mut b = x;\n    b\n}\n\n// last\n",
        "fn h(x: f32) -> f32 { let mut c = x; c }\n",
    );
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let ask = |client: &mut Client, only: &str| {
        let context = json!({ "diagnostics": [], "only": [only] });
        let asked = json!({ "textDocument": { "uri": URI }, "range": whole, "context": context });
        client.ok("textDocument/codeAction", asked)[0]["edit"]["changes"][URI].clone()
    };
    let mut client = Client::over(Memory::default(), json!({}));
    client.open(URI, text);
    let at = |character: u32| json!({ "line": 3, "character": character });
    let typed = json!([{ "range": { "start": at(0), "end": at(0) }, "text": " " }]);
    let undone = json!([{ "range": { "start": at(0), "end": at(1) }, "text": "" }]);
    let edited = text.replacen("    a\n", "     a\n", 1);
    for (version, (change, now)) in [(typed, edited.as_str()), (undone, text)].into_iter().enumerate() {
        client.change(URI, version as i32 + 2, change);
        let mut fresh = Client::over(Memory::default(), json!({}));
        fresh.open(URI, now);
        for kind in ["source.fixAll", "source.organizeImports"] {
            let [own, other] = [&mut client, &mut fresh].map(|c| apply(now, &ask(c, kind)));
            assert_eq!(own, other);
        }
    }
}
