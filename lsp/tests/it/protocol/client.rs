//! A client that drives the server over a connection in memory, and a disk in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lsp_server::{Message, Notification, Request, RequestId, ResponseError};
use serde_json::{Value, json};
use tk_lsp::ide::Disk;
use tk_lsp::ide::costs::{KernelCost, LineCost};
use tk_lsp::server::{Config, Library, Predict, run};

/// Files in memory. Reading `boom.tk` panics, as a compiler bug would; reading `slowN.tk` takes a while.
#[derive(Clone, Default)]
pub struct Memory {
    files: Arc<Mutex<BTreeMap<String, String>>>,
    /// The number of slow files that were read.
    pub slow: Arc<AtomicUsize>,
}

impl Memory {
    pub fn write(&self, path: &str, text: &str) {
        self.files.lock().unwrap().insert(path.into(), text.into());
    }
    pub fn remove(&self, path: &str) {
        self.files.lock().unwrap().remove(path);
    }
}

impl Disk for Memory {
    fn read(&self, path: &str) -> Result<String, String> {
        assert!(!path.ends_with("boom.tk"), "the sky fell");
        if path.contains("/slow") {
            self.slow.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        self.files.lock().unwrap().get(path).cloned().ok_or_else(|| format!("cannot read {path}"))
    }
    fn list(&self, root: &str) -> Vec<String> {
        self.files.lock().unwrap().keys().filter(|p| p.starts_with(root)).cloned().collect()
    }
}

pub struct Client {
    messages: Sender<Message>,
    answers: Receiver<String>,
    server: Option<JoinHandle<u8>>,
    next: i32,
    /// What the server said by itself.
    pub said: Vec<Notification>,
    /// The methods of its requests.
    pub asked: Vec<String>,
    pub disk: Memory,
    pub capabilities: Value,
}

pub fn config(disk: Memory) -> Config {
    let cache = std::env::temp_dir().join(format!("tk-lsp-{}", std::process::id()));
    Config {
        disk: Arc::new(disk),
        library: Library { stdlib: None, pages: None, cache: Some(cache) },
        page: |code| code.starts_with('E').then_some("# The page\n"),
        costs: Some(costs),
        version: "1.2.3".into(),
    }
}

/// A compiler that knows the names of kernels; it fails where a file says so.
fn costs(checked: &tk_sema::Checked, target: &str) -> Result<Vec<KernelCost>, String> {
    if target == "sm_99" {
        return Err("there is no target `sm_99`".into());
    }
    let text = checked.sources.get(tk_syntax::FileId(0)).map_or("", |s| &s.text);
    assert!(!text.contains("boom"), "the compiler fell");
    if text.contains("takes a minute") {
        std::thread::sleep(Duration::from_secs(60));
    }
    let lines = text.lines().enumerate().filter(|(_, l)| l.contains("load"));
    let lines = lines.map(|(n, _)| LineCost { line: n + 1, label: "50 %".into(), tooltip: "of L2".into() });
    let kernel = |f: &tk_sema::hir::HFn| KernelCost {
        kernel: f.name.clone(),
        exports: vec![],
        summary: format!("32 registers ({target})"),
        lines: lines.clone().collect(),
        tiles: lines.clone().map(|l| (l.line, 16)).collect(),
    };
    Ok(checked.hir.kernels().map(|(_, f)| kernel(f)).collect())
}

impl Client {
    /// A client that has said nothing.
    pub fn silent(disk: Memory) -> Client {
        let config = config(disk.clone());
        Client::of(config, disk)
    }

    fn of(config: Config, disk: Memory) -> Client {
        let (messages, heard) = channel();
        let (said, answers) = channel();
        let server = Some(std::thread::spawn(move || run(heard, said, config)));
        Client {
            messages,
            answers,
            server,
            next: 0,
            said: vec![],
            asked: vec![],
            disk,
            capabilities: Value::Null,
        }
    }

    /// A client with these capabilities and a workspace in `/w`.
    pub fn new(capabilities: Value) -> Client {
        Client::over(Memory::default(), capabilities)
    }

    pub fn over(disk: Memory, capabilities: Value) -> Client {
        Client::compiling(Some(costs), disk, capabilities)
    }

    /// A client of a server with this compiler.
    pub fn compiling(costs: Option<Predict>, disk: Memory, capabilities: Value) -> Client {
        let mut client = Client::of(Config { costs, ..config(disk.clone()) }, disk);
        let folders = json!([{ "uri": "file:///w", "name": "w" }]);
        let hello = json!({ "processId": null, "capabilities": capabilities, "workspaceFolders": folders });
        client.capabilities = client.ok("initialize", hello)["capabilities"].clone();
        client.notify("initialized", json!({}));
        client
    }

    pub fn send(&self, message: impl Into<Message>) {
        self.messages.send(message.into()).unwrap();
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.send(Notification { method: method.into(), params });
    }

    /// Sends a request without waiting.
    pub fn start(&mut self, method: &str, params: Value) -> RequestId {
        self.next += 1;
        self.send(Request { id: self.next.into(), method: method.into(), params });
        self.next.into()
    }

    /// Waits for an answer.
    pub fn finish(&mut self, id: &RequestId) -> Result<Value, ResponseError> {
        loop {
            match self.next_message() {
                Message::Response(r) if r.id == *id => return r.response_result,
                Message::Response(r) => panic!("an answer to {} came before that to {id}", r.id),
                Message::Request(r) => self.asked.push(r.method),
                Message::Notification(n) => self.said.push(n),
            }
        }
    }

    pub fn next_message(&mut self) -> Message {
        let text = self.answers.recv_timeout(Duration::from_secs(60)).expect("the server says something");
        serde_json::from_str(&text).expect("the server says messages")
    }

    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, ResponseError> {
        let id = self.start(method, params);
        self.finish(&id)
    }

    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.request(method, params).unwrap_or_else(|e| panic!("{method}: {e:?}"))
    }

    pub fn open(&self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "plaintext", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub fn change(&self, uri: &str, version: i32, changes: Value) {
        let document = json!({ "uri": uri, "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    pub fn close(&self, uri: &str) {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }

    /// The next diagnostics of a file that the server sends.
    pub fn pushed(&mut self, uri: &str) -> Value {
        loop {
            let found = self
                .said
                .iter()
                .position(|n| n.method == "textDocument/publishDiagnostics" && n.params["uri"] == uri);
            match found {
                Some(at) => return self.said.remove(at).params,
                None => match self.next_message() {
                    Message::Notification(n) => self.said.push(n),
                    Message::Request(_) => {}
                    Message::Response(r) => panic!("nobody asked: {r:?}"),
                },
            }
        }
    }

    /// The codes of the next diagnostics of a file that the server sends.
    pub fn pushed_codes(&mut self, uri: &str) -> Vec<String> {
        codes(&self.pushed(uri)["diagnostics"])
    }

    /// The diagnostics of a file, asked for.
    pub fn pulled(&mut self, uri: &str) -> Value {
        self.ok("textDocument/diagnostic", json!({ "textDocument": { "uri": uri } }))["items"].clone()
    }

    /// What a request about a place gives.
    pub fn at(&mut self, method: &str, uri: &str, position: Value) -> Value {
        self.ok(method, json!({ "textDocument": { "uri": uri }, "position": position }))
    }

    /// Ends as the protocol asks; returns the exit code.
    pub fn end(mut self) -> u8 {
        assert_eq!(self.ok("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.server.take().unwrap().join().unwrap()
    }

    /// Hangs up; returns the exit code.
    pub fn hang_up(mut self) -> u8 {
        let server = self.server.take().unwrap();
        drop(self);
        server.join().unwrap()
    }
}

pub fn codes(diagnostics: &Value) -> Vec<String> {
    let all = diagnostics.as_array().unwrap();
    all.iter().map(|d| d["code"].as_str().unwrap().to_string()).collect()
}

/// The position of the start of the `nth` occurrence of a text, in units of 16 bits or in bytes.
pub fn position(text: &str, what: &str, nth: usize, utf8: bool) -> Value {
    let (at, _) = text.match_indices(what).nth(nth).unwrap_or_else(|| panic!("{what} in {text}"));
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = &text[start..at];
    let character = if utf8 { before.len() } else { before.encode_utf16().count() };
    json!({ "line": text[..at].matches('\n').count(), "character": character })
}

/// The range of the `nth` occurrence of a text, in units of 16 bits.
pub fn range(text: &str, what: &str, nth: usize) -> Value {
    let start = position(text, what, nth, false);
    let character = start["character"].as_u64().unwrap() + what.encode_utf16().count() as u64;
    json!({ "start": start, "end": { "line": start["line"], "character": character } })
}
