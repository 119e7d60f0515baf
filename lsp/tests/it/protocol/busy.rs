//! What is answered, cancelled and given up while the server is busy.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lsp_server::{Message, RequestId};
use serde_json::{Value, json};

use super::client::{Client, Memory};

const LONG: &str = "file:///w/long.tk";
const OTHER: &str = "file:///w/other.tk";
/// Reading all of them takes four seconds.
const SLOW: usize = 200;

/// A disk with slow files that all have a function `f`.
fn slow() -> Memory {
    let disk = Memory::default();
    for i in 0..SLOW {
        disk.write(&format!("/w/slow{i}.tk"), "fn f() -> i32 { 1 }\n");
    }
    disk
}

/// A text that uses all slow files, by hand.
fn uses_all() -> String {
    (0..SLOW).map(|i| format!("use slow{i};\n")).collect()
}

fn about(uri: &str) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 3 } })
}

/// The answers to some requests in the order in which they come, with their codes where they are errors.
fn answers(client: &mut Client, count: usize) -> Vec<(RequestId, Option<i32>)> {
    let mut found = vec![];
    while found.len() < count {
        if let Message::Response(r) = client.next_message() {
            found.push((r.id, r.response_result.err().map(|e| e.code)));
        }
    }
    found
}

fn wait_for_slow(disk: &Memory) {
    while disk.slow.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_needs_no_check_does_not_wait_for_one() {
    let mut client = Client::over(slow(), json!({}));
    client.open(OTHER, "fn g() -> i32 { 1 }\n");
    client.open(LONG, &uses_all());
    let long = client.start("textDocument/hover", about(LONG));
    let other = client.start("textDocument/hover", about(OTHER));
    let mut format = about(LONG);
    format["options"] = json!({ "tabSize": 4, "insertSpaces": true });
    let format = client.start("textDocument/formatting", format);
    let outline = client.start("textDocument/documentSymbol", about(LONG));
    let folds = client.start("textDocument/foldingRange", about(LONG));
    let found = answers(&mut client, 5);
    assert_eq!(found, [(other, None), (format, None), (outline, None), (folds, None), (long, None)]);
}

#[test]
fn a_change_waits_for_the_requests_before_it() {
    let mut client = Client::over(slow(), json!({}));
    client.open(LONG, &(uses_all() + "fn a() -> i32 { 1 }\n"));
    let at = json!({ "textDocument": { "uri": LONG }, "position": { "line": SLOW, "character": 3 } });
    let before = client.start("textDocument/definition", at);
    client.change(LONG, 2, json!([{ "text": "\n" }]));
    let after =
        client.start("textDocument/formatting", json!({ "textDocument": { "uri": LONG }, "options": {} }));
    // The definition is that of the old text.
    let Message::Response(first) = client.next_message() else { panic!() };
    assert_eq!(first.id, before);
    assert_eq!(first.response_result.unwrap()[0]["range"]["start"]["line"], SLOW);
    assert_eq!(answers(&mut client, 1)[0].0, after);
}

#[test]
fn a_change_ends_the_check_of_the_old_text() {
    let disk = slow();
    let mut client = Client::over(disk.clone(), json!({}));
    client.open(LONG, &uses_all());
    wait_for_slow(&disk);
    let hover = client.start("textDocument/hover", about(LONG));
    client.change(LONG, 2, json!([{ "text": "fn f() -> i32 { x }\n" }]));
    assert_eq!(answers(&mut client, 1), [(hover, Some(-32801))]);
    assert_eq!(client.pushed_codes(LONG), ["E0201"]);
    assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
}

#[test]
fn work_on_a_request_ends_when_it_is_cancelled() {
    let disk = slow();
    let mut client = Client::over(disk.clone(), json!({}));
    client.open(OTHER, "fn f() -> i32 { 1 }\n");
    assert!(client.pushed_codes(OTHER).is_empty());
    let mut params = about(OTHER);
    params["context"] = json!({ "includeDeclaration": true });
    let search = client.start("textDocument/references", params);
    wait_for_slow(&disk);
    client.notify("$/cancelRequest", json!({ "id": search.to_string().parse::<i32>().unwrap() }));
    assert_eq!(answers(&mut client, 1), [(search, Some(-32800))]);
    assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
    // The server goes on.
    assert_eq!(
        client.at("textDocument/hover", OTHER, json!({ "line": 0, "character": 3 }))["range"]["start"]["character"],
        3
    );
    assert_eq!(client.end(), 0);
}

#[test]
fn work_on_what_is_shown_ends_when_the_text_changes() {
    let disk = slow();
    // Of two files, one is checked in the background; a request about the other one does it by itself.
    disk.write("/w/slower.tk", "fn f() -> i32 { 1 }\n");
    let mut client = Client::over(disk.clone(), json!({}));
    client.open(OTHER, &uses_all());
    client.open(LONG, &format!("use slower;\n{}", "fn a() -> i32 { 1 }\n".repeat(3)));
    let hover = client.start("textDocument/hover", about(OTHER));
    wait_for_slow(&disk);
    client.change(OTHER, 2, json!([{ "text": "" }]));
    assert_eq!(answers(&mut client, 1), [(hover, Some(-32801))]);
    assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
    assert_eq!(client.end(), 0);
}

/// A client with an open file and a request in flight that reads through slow files.
fn reading(method: &str, mut params: Value) -> (Client, Memory, RequestId) {
    let disk = slow();
    let mut client = Client::over(disk.clone(), json!({}));
    client.open(OTHER, "fn f() -> i32 { 1 }\n");
    assert!(client.pushed_codes(OTHER).is_empty());
    params["context"] = json!({ "includeDeclaration": true });
    let long = client.start(method, params);
    wait_for_slow(&disk);
    (client, disk, long)
}

#[test]
fn what_reads_through_the_workspace_gives_way() {
    for (method, params) in [
        ("textDocument/references", about(OTHER)),
        ("workspace/diagnostic", json!({ "previousResultIds": [] })),
    ] {
        let (mut client, disk, long) = reading(method, params);
        let hover = client.start("textDocument/hover", about(OTHER));
        let list = client.start("textDocument/completion", about(OTHER));
        assert_eq!(answers(&mut client, 2), [(hover, None), (list, None)]);
        assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
        assert_eq!(answers(&mut client, 1), [(long, None)]);
        assert_eq!(disk.slow.load(Ordering::Relaxed), SLOW);
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn a_change_does_not_wait_for_what_reads_through_the_workspace() {
    let (mut client, disk, search) = reading("textDocument/references", about(OTHER));
    client.change(OTHER, 2, json!([{ "text": "fn f() -> i32 { x }\n" }]));
    assert_eq!(answers(&mut client, 1), [(search, Some(-32801))]);
    assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
    let (mut client, disk, all) = reading("workspace/diagnostic", json!({ "previousResultIds": [] }));
    client.change(OTHER, 2, json!([{ "text": "fn f() -> i32 { x }\n" }]));
    assert_eq!(client.pushed_codes(OTHER), ["E0201"]);
    assert!(disk.slow.load(Ordering::Relaxed) < SLOW / 2);
    assert_eq!(answers(&mut client, 1), [(all, None)]);
}

#[test]
fn a_search_through_the_workspace_shows_its_progress() {
    let disk = Memory::default();
    for i in 0..12 {
        disk.write(&format!("/w/file{i:02}.tk"), "fn rare() -> i32 { 1 }\n");
    }
    let progress = |client: &mut Client| {
        let mut params = about(OTHER);
        params["context"] = json!({ "includeDeclaration": true });
        client.ok("textDocument/references", params);
        let said = std::mem::take(&mut client.said).into_iter().filter(|n| n.method == "$/progress");
        said.map(|n| n.params).collect::<Vec<_>>()
    };
    let mut client = Client::over(disk.clone(), json!({ "window": { "workDoneProgress": true } }));
    client.open(OTHER, "fn rare() -> i32 { 1 }\n");
    assert!(client.pushed_codes(OTHER).is_empty());
    let said = progress(&mut client);
    assert_eq!(client.asked, ["window/workDoneProgress/create"]);
    let kinds: Vec<&str> = said.iter().map(|p| p["value"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["begin", "report", "report", "report", "report", "report", "end"]);
    assert!(said.iter().all(|p| p["token"] == said[0]["token"]));
    assert_eq!(said[5]["value"]["message"], "12 files, file11.tk");
    // The second time, all is known.
    assert!(progress(&mut client).is_empty());
    // Nothing is said to a client that does not show it.
    let mut client = Client::over(disk.clone(), json!({}));
    client.open(OTHER, "fn rare() -> i32 { 1 }\n");
    assert!(progress(&mut client).is_empty());
    // Unless it gives a token.
    let mut client = Client::over(disk, json!({}));
    client.open(OTHER, "fn rare() -> i32 { 1 }\n");
    assert!(client.pushed_codes(OTHER).is_empty());
    let mut params = about(OTHER);
    (params["context"], params["workDoneToken"]) = (json!({ "includeDeclaration": true }), json!("tok1"));
    client.ok("textDocument/references", params);
    let said = client.said.iter().filter(|n| n.method == "$/progress");
    assert_eq!(said.filter(|n| n.params["token"] == "tok1").count(), 7);
    assert!(client.asked.is_empty());
}
