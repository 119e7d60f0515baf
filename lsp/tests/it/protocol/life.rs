//! Beginning, end, cancelling, and mistakes of the compiler.

use lsp_server::{Message, Request};
use serde_json::{Value, json};

use super::client::{Client, Memory};

const URI: &str = "file:///w/a.tk";

#[test]
fn the_beginning() {
    let mut client = Client::silent(Memory::default());
    client.notify("textDocument/didOpen", json!({}));
    assert_eq!(client.request("textDocument/hover", json!({})).unwrap_err().code, -32002);
    // Whatever the client says of itself, it is served.
    let odd =
        json!({ "capabilities": { "general": 5, "textDocument": [] }, "rootUri": 7, "workspaceFolders": {} });
    let hello = client.ok("initialize", odd);
    assert_eq!(hello["serverInfo"], json!({ "name": "tk", "version": "1.2.3" }));
    assert_eq!(hello["capabilities"]["positionEncoding"], "utf-16");
    assert!(hello["capabilities"].get("notebookDocumentSync").is_none());
    assert_eq!(client.request("initialize", json!({})).unwrap_err().code, -32600);
    assert_eq!(client.request("textDocument/nothing", json!({})).unwrap_err().code, -32601);
    assert_eq!(client.request("textDocument/hover", json!([5])).unwrap_err().code, -32602);
    assert_eq!(client.end(), 0);
}

#[test]
fn the_end() {
    let mut client = Client::new(json!({}));
    assert_eq!(client.ok("shutdown", Value::Null), Value::Null);
    assert_eq!(client.request("textDocument/hover", json!({})).unwrap_err().code, -32600);
    assert_eq!(client.hang_up(), 0);
    assert_eq!(Client::new(json!({})).hang_up(), 1);
    let client = Client::new(json!({}));
    client.notify("exit", Value::Null);
    assert_eq!(client.hang_up(), 1);
}

#[test]
fn changes_of_files_are_asked_for() {
    let can = json!({ "workspace": {
        "didChangeWatchedFiles": { "dynamicRegistration": true }, "diagnostics": { "refreshSupport": true } } });
    let mut client = Client::new(can);
    let Message::Request(asked) = client.next_message() else { panic!() };
    assert_eq!(asked.method, "client/registerCapability");
    assert!(asked.params.to_string().contains("**/*.tk"));
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": URI, "type": 2 }] }));
    let Message::Request(asked) = client.next_message() else { panic!() };
    assert_eq!(asked.method, "workspace/diagnostic/refresh");
}

#[test]
fn what_waits_can_be_cancelled() {
    let mut client = Client::new(json!({}));
    // A long text keeps the server busy while the others arrive.
    client.open(URI, &"fn f() -> i32 { let a = 1; a }\n".repeat(3000));
    let busy = client.start("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    let first = client.start("textDocument/foldingRange", json!({ "textDocument": { "uri": URI } }));
    let second = client.start("textDocument/foldingRange", json!({ "textDocument": { "uri": URI } }));
    for id in [json!(second.to_string().parse::<i32>().unwrap()), json!("unknown"), json!([]), Value::Null] {
        client.notify("$/cancelRequest", json!({ "id": id }));
    }
    let mut answers = vec![];
    while answers.len() < 3 {
        if let Message::Response(r) = client.next_message() {
            answers.push((r.id, r.response_result.map(|_| ()).map_err(|e| e.code)));
        }
    }
    assert!(answers.contains(&(busy, Ok(()))), "{answers:?}");
    assert!(answers.contains(&(first, Ok(()))), "{answers:?}");
    assert!(answers.contains(&(second, Err(-32800))), "{answers:?}");
}

#[test]
fn what_is_shown_of_an_old_text_is_not_made() {
    let mut client = Client::new(json!({}));
    let text = "fn f() -> i32 { let a = 1; a }\n".repeat(3000);
    client.open(URI, &text);
    client.open("file:///w/other.tk", "fn g() -> i32 { 1 }\n");
    let about = |uri: &str| json!({ "textDocument": { "uri": uri } });
    let at = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 28 } });
    // A long text keeps the server busy while the others arrive.
    let busy = client.start("textDocument/rename", json!({ "nothing": "useful" }));
    let first = client.start("textDocument/completion", at.clone());
    let asked: Vec<_> = [
        ("textDocument/foldingRange", about(URI)),
        ("textDocument/diagnostic", about(URI)),
        ("textDocument/foldingRange", about("file:///w/other.tk")),
        ("textDocument/completion", at),
    ]
    .into_iter()
    .map(|(method, params)| client.start(method, params))
    .collect();
    client.change(URI, 2, json!([{ "text": "fn h() -> i32 { 1 }\n" }]));
    let last = client.start("textDocument/foldingRange", about(URI));
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < asked.len() + 3 {
        if let Message::Response(r) = client.next_message() {
            let code = r.response_result.as_ref().err().map(|e| (e.code, e.data.clone()));
            answers.insert(r.id.to_string(), code);
        }
    }
    let code = |id: &lsp_server::RequestId| answers[&id.to_string()].clone();
    assert!(code(&busy).is_some() && code(&first).is_none(), "{answers:?}");
    let expected =
        [Some((-32801, None)), Some((-32802, Some(json!({ "retriggerRequest": true })))), None, None];
    assert_eq!(asked.iter().map(code).collect::<Vec<_>>(), expected);
    assert_eq!(code(&last), None);
}

#[test]
fn a_mistake_of_the_compiler_costs_one_request() {
    let mut client = Client::new(json!({ "textDocument": { "diagnostic": {} } }));
    client.open(URI, "fn f() -> i32 { x }\n");
    client.open("file:///w/b.tk", "use boom;\n");
    let about = |uri: &str| json!({ "textDocument": { "uri": uri } });
    let error = client.request("textDocument/diagnostic", about("file:///w/b.tk")).unwrap_err();
    assert_eq!(error.code, -32603);
    let log = client.said.iter().find(|n| n.method == "window/logMessage").unwrap();
    let text = log.params["message"].as_str().unwrap();
    assert!(text.starts_with("internal error in textDocument/diagnostic: the sky fell"), "{text}");
    // The texts that are open are still known.
    assert_eq!(client.pulled(URI).as_array().unwrap().len(), 1);
    assert_eq!(client.end(), 0);
}

#[test]
fn diagnostics_that_break_do_not_stop_the_others() {
    let mut client = Client::new(json!({}));
    client.open("file:///w/b.tk", "use boom;\n");
    client.open(URI, "fn f() -> i32 { x }\n");
    assert_eq!(client.pushed_codes(URI), ["E0201"]);
    client.send(Request { id: "text".to_string().into(), method: "shutdown".into(), params: Value::Null });
    loop {
        if let Message::Response(r) = client.next_message() {
            assert_eq!(r.id, "text".to_string().into());
            break;
        }
    }
}
