//! `tk lsp` over real pipes, as an editor starts it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use crate::support::command::{Folder, command};
use serde_json::{Value, json};

/// `tk lsp` with its streams.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn new(folder: &Folder) -> Server {
        let mut child = command(&folder.path(""), &["lsp", "--stdio"])
            .env("XDG_CACHE_HOME", folder.path("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Server { child, output }
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: Value) {
        let text = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn receive(&mut self) -> Value {
        let mut header = String::new();
        self.output.read_line(&mut header).unwrap();
        let length = header.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        self.output.read_line(&mut header).unwrap();
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn begin(&mut self) {
        self.send(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }),
        );
        let hello = self.receive();
        assert_eq!(
            hello["result"]["serverInfo"],
            json!({ "name": "tk", "version": env!("CARGO_PKG_VERSION") })
        );
        self.send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    }
}

#[test]
fn an_editor_comes_and_goes() {
    let folder = Folder::new("lsp");
    folder.write("helper.tk", b"// \xff\nfn one() -> i32 { 1 }\n");
    let mut server = Server::new(&folder);
    server.begin();
    let uri = format!("file://{}", folder.path("main.tk").display());
    let text = "use helper;\nuse std::math;\nfn f() -> i32 { helper::one() + x }\nfn g(y: f32) -> f32 { math::relu(y) }\n";
    let document = json!({ "uri": uri, "languageId": "tk", "version": 3, "text": text });
    server.send(
        json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }),
    );
    let pushed = server.receive();
    assert_eq!(pushed["params"]["version"], 3);
    let diagnostic = &pushed["params"]["diagnostics"][0];
    assert_eq!(diagnostic["code"], "E0201");
    // The page of the code is a file that an editor can open.
    let page = diagnostic["codeDescription"]["href"].as_str().unwrap().strip_prefix("file://").unwrap();
    assert!(std::fs::read_to_string(page).unwrap().starts_with("# E0201"), "{page}");

    let place = json!({ "line": 3, "character": 30 });
    let asked = json!({ "textDocument": { "uri": uri }, "position": place });
    server.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "textDocument/definition", "params": asked }));
    let found = server.receive();
    let library = found["result"][0]["uri"].as_str().unwrap().strip_prefix("file://").unwrap();
    assert!(std::fs::read_to_string(library).unwrap().contains("fn relu"), "{library}");

    // What is malformed is answered, and what follows it is, too.
    server.raw(b"nonsense\r\n\r\nContent-Length: 5\r\n\r\n{1:2}");
    for _ in 0..2 {
        let answer = server.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)), "{answer}");
    }
    server.send(json!({ "jsonrpc": "2.0", "id": "end", "method": "shutdown" }));
    assert_eq!(server.receive(), json!({ "jsonrpc": "2.0", "id": "end", "result": null }));
    server.send(json!({ "jsonrpc": "2.0", "method": "exit" }));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_editor_that_goes_away() {
    let folder = Folder::new("lsp-gone");
    let mut server = Server::new(&folder);
    server.begin();
    drop(server.child.stdin.take());
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    // In the middle of a message.
    let mut server = Server::new(&folder);
    server.raw(b"Content-Length: 99\r\n\r\n{");
    drop(server.child.stdin.take());
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
}
