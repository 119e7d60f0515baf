//! Files: open, changed, unsaved, outside of the workspace, deleted, in circles; positions in both encodings.

use serde_json::{Value, json};
use tk_lsp::server::{Config, Library, Local};

use super::client::{Client, Memory, codes, config, position};

const URI: &str = "file:///w/a.tk";
const NONE: [&str; 0] = [];

#[test]
fn positions_in_both_encodings() {
    let text = "fn f(a: i32) -> i32 {\r\n    static_assert(true, \"ä😀→\"); let b = a; b\r\n}\r\n";
    for utf8 in [false, true] {
        let offered = if utf8 { json!(["utf-32", "utf-8", "utf-16"]) } else { json!(["utf-16"]) };
        let mut client = Client::new(json!({ "general": { "positionEncodings": offered } }));
        assert_eq!(client.capabilities["positionEncoding"], if utf8 { "utf-8" } else { "utf-16" });
        client.open(URI, text);
        assert_eq!(client.pushed_codes(URI), NONE);
        let found = client.at("textDocument/definition", URI, position(text, "b\r", 0, utf8));
        assert_eq!(found[0]["range"]["start"], position(text, "b = ", 0, utf8));

        // After the emoji one letter more, and one that replaces half of the emoji, which is all of it.
        let at = position(text, "b\r", 0, utf8);
        let line = |character: u64| json!({ "line": 1, "character": character });
        let insert = json!({ "range": { "start": at, "end": at }, "text": "a + " });
        let emoji = position(text, "😀", 0, utf8)["character"].as_u64().unwrap();
        let half = json!({ "range": { "start": line(emoji + 1), "end": line(emoji + if utf8 { 4 } else { 2 }) }, "text": "x" });
        client.change(URI, 2, json!([insert, half]));
        let changed = text.replace("b\r", "a + b\r").replace('😀', "x");
        client.pushed(URI);
        let found = client.at("textDocument/definition", URI, position(&changed, "b\r", 0, utf8));
        assert_eq!(found[0]["range"]["start"], position(&changed, "b = ", 0, utf8));

        // Far away is the end of the line or of the text.
        let end = json!({ "line": 0, "character": 4294967295u32 });
        client.change(URI, 3, json!([{ "range": { "start": end, "end": end }, "text": " c" }]));
        assert!(!client.pushed_codes(URI).is_empty());
        let far = json!({ "line": 1e30, "character": -7 });
        client.change(
            URI,
            4,
            json!([
                { "range": { "start": { "line": 0, "character": 21 }, "end": end }, "text": "" },
                { "range": { "start": far, "end": far }, "text": "fn g() -> i32 { f(1) }" },
            ]),
        );
        assert_eq!(client.pushed_codes(URI), NONE);
        // What is no range at all changes nothing.
        client.change(URI, 5, json!([{ "range": { "start": "here" }, "text": "nonsense" }]));
        assert_eq!(client.pulled(URI), json!([]));
    }
}

#[test]
fn a_file_is_known_by_its_suffix_or_its_language() {
    let mut client = Client::new(json!({}));
    let open = |client: &Client, uri: &str, language: &str| {
        let document =
            json!({ "uri": uri, "languageId": language, "version": 1, "text": "fn f() -> i32 { x }" });
        client.notify("textDocument/didOpen", json!({ "textDocument": document }));
    };
    open(&client, "file:///w/a.md", "markdown");
    open(&client, "untitled:Untitled-1", "tk");
    assert_eq!(client.pushed_codes("untitled:Untitled-1"), ["E0201"]);
    open(&client, "file:///elsewhere/x%20%C3%A4.tk", "rust");
    assert_eq!(client.pushed_codes("file:///elsewhere/x%20%C3%A4.tk"), ["E0201"]);
    assert!(client.said.is_empty(), "{:?}", client.said);
    for uri in
        ["file:///w/a.md", "file:///w/missing.tk", "file:///w/missing", "", "nonsense", "untitled:x.tk"]
    {
        assert_eq!(client.at("textDocument/hover", uri, json!({ "line": 0, "character": 3 })), Value::Null);
        assert_eq!(client.pulled(uri), json!([]));
    }
}

#[test]
fn what_is_not_saved_counts() {
    let disk = Memory::default();
    disk.write("/w/b.tk", "fn one() -> i32 { 1 }\n");
    let mut client = Client::over(disk, json!({}));
    client.open(URI, "use b;\nfn f() -> i32 { b::two() }\n");
    assert_eq!(client.pushed_codes(URI).len(), 1);
    client.open("file:///w/b.tk", "fn two() -> i32 { 2 }\n");
    assert_eq!(client.pushed_codes(URI), NONE);
    // Nobody saved it: the text of the disk counts again.
    client.close("file:///w/b.tk");
    assert_eq!(client.pushed_codes(URI).len(), 1);
    // Somebody else writes the file.
    client.disk.write("/w/b.tk", "fn two() -> i32 { 2 }\n");
    let changed = |kind: u32| json!({ "changes": [{ "uri": "file:///w/b.tk", "type": kind }] });
    client.notify("workspace/didChangeWatchedFiles", changed(2));
    assert_eq!(client.pushed_codes(URI), NONE);
    client.disk.remove("/w/b.tk");
    client.notify("workspace/didChangeWatchedFiles", changed(3));
    assert!(!client.pushed_codes(URI).is_empty());
    client.disk.write("/w/b.tk", "fn two() -> i32 { 2 }\n");
    client.notify("workspace/didChangeWatchedFiles", changed(1));
    assert_eq!(client.pushed_codes(URI), NONE);
    // A client that sees no changes of files says when it saves.
    client.disk.remove("/w/b.tk");
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": URI } }));
    assert!(!client.pushed_codes(URI).is_empty());
    client.close(URI);
    assert_eq!(client.pushed_codes(URI), NONE);
    client.change(URI, 9, json!([{ "text": "" }]));
    client.pulled(URI);
    assert!(client.said.iter().any(|n| n.params.to_string().contains("is not open")), "{:?}", client.said);
}

#[test]
fn files_that_use_each_other() {
    let disk = Memory::default();
    disk.write("/w/b.tk", "use a;\nfn g() -> i32 { a::f() }\n");
    let mut client = Client::over(disk, json!({}));
    client.open(URI, "use b;\nuse a;\nfn f() -> i32 { b::g() }\n");
    client.pushed(URI);
    client.pulled("file:///w/b.tk");
    client.change(URI, 2, json!([{ "text": "use b;\nfn f() -> i32 { 1 }\nfn h() -> i32 { b::g() }\n" }]));
    assert_eq!(client.pushed_codes(URI), NONE);
}

#[test]
fn folders_come_and_go() {
    let disk = Memory::default();
    disk.write("/v/b.tk", "fn somewhere() -> i32 { 1 }\n");
    let mut client = Client::over(disk, json!({}));
    let query = json!({ "query": "somewhere" });
    assert_eq!(client.ok("workspace/symbol", query.clone()), json!([]));
    let folder = |added: &str, removed: &str| {
        let list = |uri: &str| if uri.is_empty() { json!([]) } else { json!([{ "uri": uri, "name": "v" }]) };
        json!({ "event": { "added": list(added), "removed": list(removed) } })
    };
    client.notify("workspace/didChangeWorkspaceFolders", folder("file:///v", ""));
    assert_eq!(client.ok("workspace/symbol", query.clone())[0]["name"], "somewhere");
    client.notify("workspace/didChangeWorkspaceFolders", folder("", "file:///v"));
    assert_eq!(client.ok("workspace/symbol", query), json!([]));
}

#[test]
fn a_line_of_ten_megabytes() {
    let mut client = Client::new(json!({ "textDocument": { "diagnostic": {} } }));
    let comment = format!("// {}\nfn f() -> i32 {{ 1 }}\n", "😀".repeat(10 << 18));
    client.open(URI, &comment);
    assert_eq!(codes(&client.pulled(URI)), NONE);
    let end = json!({ "line": 0, "character": (10 << 19) + 1 });
    client.change(
        URI,
        2,
        json!([{ "range": { "start": end, "end": end }, "text": "\nfn g() -> i32 { x } //" }]),
    );
    let pulled = client.pulled(URI);
    assert_eq!(codes(&pulled), ["E0201"]);
    assert_eq!(pulled[0]["range"]["start"], json!({ "line": 1, "character": 16 }));
    for method in
        ["textDocument/semanticTokens/full", "textDocument/foldingRange", "textDocument/documentSymbol"]
    {
        client.ok(method, json!({ "textDocument": { "uri": URI } }));
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn the_file_system() {
    use tk_lsp::ide::Disk;
    let root = std::env::temp_dir().join(format!("tk-lsp-files-{}", std::process::id()));
    let write = |name: &str, bytes: &[u8]| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    };
    write("a.tk", b"// \xff\nfn f() -> i32 { 1 }\n");
    write("deep/er/b.tk", b"");
    write("deep/c.txt", b"");
    write("target/d.tk", b"");
    write(".git/e.tk", b"");
    std::fs::create_dir_all(root.join("folder.tk")).unwrap();
    let files = tk_lsp::server::Files { stdlib: Some(root.clone()) };
    let base = root.to_str().unwrap();
    assert_eq!(files.list(base), [format!("{base}/a.tk"), format!("{base}/deep/er/b.tk")]);
    let text = "// \u{fffd}\nfn f() -> i32 { 1 }\n";
    assert_eq!(files.read(&format!("{base}/a.tk")).unwrap(), text);
    assert_eq!(files.read("std:/a.tk").unwrap(), text);
    for missing in
        [format!("{base}/folder.tk"), format!("{base}/x.tk"), "a.tk".into(), "untitled:a.tk".into()]
    {
        assert!(files.read(&missing).is_err(), "{missing}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_file_in_a_folder_of_the_library() {
    let cache = std::env::temp_dir().join(format!("tk-lsp-library-{}", std::process::id()));
    let library = tk_lsp::server::Library { cache: Some(cache.clone()), ..Default::default() };
    let uri = library.std("nn/softmax.tk", "// a copy\n").unwrap();
    let path = uri.strip_prefix("file://").unwrap();
    assert!(path.ends_with("/stdlib/nn/softmax.tk"), "{path}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "// a copy\n");
    assert_eq!(library.std_of(path), Some("nn/softmax.tk"));
    assert_eq!(library.std_of("/elsewhere/stdlib/nn/softmax.tk"), None);
    std::fs::remove_dir_all(&cache).unwrap();
}

/// In a browser the library is on no disk: its files have URIs for clients that ask for the text of such files.
#[test]
fn a_library_without_a_disk() {
    let text = "use std::math;\n\nfn f(x: tile[f32, 4]) -> tile[f32, 4] { math::gelu(sqrt(x)) }\n";
    for asks in [true, false] {
        let config = Config { library: Library::default(), ..config(Memory::default()) };
        let mut server = Local::new(config);
        let ask = |server: &mut Local, method: &str, params: Value| -> Value {
            let said =
                server.handle([lsp_server::Request { id: 1.into(), method: method.into(), params }.into()]);
            let mut said = said.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
            said.rfind(|m| m["id"] == 1).unwrap()
        };
        let able = if asks { json!({ "workspace": { "textDocumentContent": {} } }) } else { json!({}) };
        let hello = ask(&mut server, "initialize", json!({ "processId": null, "capabilities": able }));
        let schemes = &hello["result"]["capabilities"]["workspace"]["textDocumentContent"]["schemes"];
        assert_eq!(*schemes, json!(["std"]));
        let open = json!({ "textDocument": { "uri": URI, "languageId": "tk", "version": 1, "text": text } });
        server.handle([
            lsp_server::Notification { method: "initialized".into(), params: json!({}) }.into(),
            lsp_server::Notification { method: "textDocument/didOpen".into(), params: open }.into(),
        ]);
        for (name, contents) in [("gelu", "fn gelu"), ("sqrt", "### `sqrt(")] {
            let at = json!({ "textDocument": { "uri": URI }, "position": position(text, name, 0, false) });
            let found = ask(&mut server, "textDocument/definition", at);
            let uri = &found["result"][0]["uri"];
            if !asks {
                assert_eq!(*uri, Value::Null, "{found}");
                continue;
            }
            assert!(uri.as_str().unwrap().starts_with("std:/"), "{found}");
            let line = found["result"][0]["range"]["start"]["line"].as_u64().unwrap() as usize;
            let read = ask(&mut server, "workspace/textDocumentContent", json!({ "uri": uri }));
            let read = read["result"]["text"].as_str().unwrap();
            assert!(read.lines().nth(line).unwrap().contains(contents), "{uri}:{line}");
        }
        for other in [URI, "std:/none.tk", "std:/../a.tk"] {
            assert!(
                ask(&mut server, "workspace/textDocumentContent", json!({ "uri": other }))
                    .get("error")
                    .is_some(),
                "{other}"
            );
        }
    }
}
