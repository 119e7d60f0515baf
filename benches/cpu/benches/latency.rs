//! Measures how long an editor waits: `cargo bench -p tk-bench --bench latency`.
//!
//! A file of 2,000 lines as people write them, the one of the benchmark of the checker, is open. Each round types a
//! character somewhere and takes it back the next time. The goals: 95 of 100 answers within 50 ms, diagnostics within
//! 100 ms of the key, less than 100 MB of memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where these fail"
)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request};
use serde_json::{Value, json};
use tk_lsp::server::{Config, Files, Library, run};

const KERNELS: &str = include_str!("kernels.tk");
const HEAD: &str = "use std::grid;\nuse std::math;\n\nconst LOG2E = 1.4426950408889634;\n\n";
/// Unless the variable `TK_LINES` has another number.
const LINES: usize = 2000;
const ROUNDS: usize = 100;
const URI: &str = "file:///w/main.tk";

fn file() -> String {
    let lines = std::env::var("TK_LINES").ok().and_then(|n| n.parse().ok()).unwrap_or(LINES);
    let mut text = HEAD.to_string();
    for i in 0.. {
        if text.lines().count() >= lines {
            break;
        }
        text += &KERNELS.replace("_N", &format!("_{i}")).replace("gated N", &format!("gated {i}"));
    }
    text
}

struct Client {
    messages: Sender<Message>,
    answers: Receiver<String>,
    /// The version of the last diagnostics.
    seen: Cell<u64>,
}

impl Client {
    fn notify(&self, method: &str, params: Value) {
        let message = Notification { method: method.into(), params };
        self.messages.send(message.into()).unwrap();
    }

    /// The time until the text of the answer is there.
    fn request(&self, method: &str, params: Value) -> Duration {
        let start = Instant::now();
        let message = Request { id: 1.into(), method: method.into(), params };
        self.messages.send(message.into()).unwrap();
        loop {
            let text = self.answers.recv().unwrap();
            let time = start.elapsed();
            // A client that reads answers, too, would need more memory than the server.
            if text.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#) {
                return time;
            }
            self.hear(&text);
        }
    }

    fn hear(&self, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap();
        assert!(message.get("error").is_none(), "{message}");
        if message["method"] == "textDocument/publishDiagnostics" {
            self.seen.set(message["params"]["version"].as_u64().unwrap());
        }
    }

    /// Waits for the diagnostics of a version.
    fn diagnostics(&self, version: u64) {
        while self.seen.get() != version {
            self.hear(&self.answers.recv().unwrap());
        }
    }
}

/// A line of `/proc/self/status` in MB.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("");
    let kilobytes = line.chars().filter(char::is_ascii_digit).collect::<String>();
    kilobytes.parse::<f64>().unwrap_or(f64::NAN) / 1024.0
}

fn report(name: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{name:32} p50 {:7.2} ms   p95 {:7.2} ms   max {:7.2} ms", at(0.5), at(0.95), at(1.0));
}

/// The places of names, spread over the file.
fn places(text: &str) -> Vec<Value> {
    let names: Vec<Value> = text
        .lines()
        .enumerate()
        .filter(|(_, l)| l.starts_with("    ") && l.contains("= "))
        .map(|(line, l)| json!({ "line": line, "character": l.find("= ").unwrap() + 2 }))
        .collect();
    let step = (names.len() / ROUNDS).max(1);
    names.into_iter().step_by(step).collect()
}

fn main() {
    let text = file();
    let (messages, heard) = channel();
    let (said, answers) = channel();
    let config = Config {
        disk: Arc::new(Files::default()),
        library: Library::default(),
        page: |_| None,
        costs: None,
        version: String::new(),
    };
    let server = std::thread::spawn(move || run(heard, said, config));
    let client = Client { messages, answers, seen: Cell::new(u64::MAX) };
    client.request("initialize", json!({ "capabilities": {} }));
    let document = json!({ "uri": URI, "languageId": "tk", "version": 0, "text": text });
    client.notify("textDocument/didOpen", json!({ "textDocument": document }));
    client.diagnostics(0);

    let places = places(&text);
    let methods = ["hover", "definition", "completion", "semanticTokens/full", "documentSymbol", "inlayHint"];
    let mut keys = vec![];
    let mut typed = vec![vec![]; methods.len()];
    let mut still = vec![vec![]; methods.len()];
    let mut again = vec![vec![]; methods.len()];
    let mut version = 0;
    for round in 0..ROUNDS {
        let at = &places[round % places.len()];
        let all = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 60, "character": 0 } });
        let asked = json!({ "textDocument": { "uri": URI }, "position": at, "range": all });
        let key = |version: u64, insert: bool| {
            let end = json!({ "line": at["line"], "character": at["character"].as_u64().unwrap() + u64::from(!insert) });
            let change =
                json!({ "range": { "start": at, "end": end }, "text": if insert { "q" } else { "" } });
            client.notify(
                "textDocument/didChange",
                json!({
                "textDocument": { "uri": URI, "version": version }, "contentChanges": [change] }),
            );
        };
        for insert in [true, false] {
            version += 1;
            let start = Instant::now();
            key(version, insert);
            client.diagnostics(version);
            keys.push(start.elapsed());
        }
        for (i, method) in methods.iter().enumerate() {
            let method = format!("textDocument/{method}");
            still[i].push(client.request(&method, asked.clone()));
            again[i].push(client.request(&method, asked.clone()));
            // The editor asks before the diagnostics are there.
            for insert in [true, false] {
                version += 1;
                key(version, insert);
                typed[i].push(client.request(&method, asked.clone()));
                client.diagnostics(version);
            }
        }
    }
    println!("{} lines, {} bytes, {version} keys", text.lines().count(), text.len());
    report("key to diagnostics", &mut keys);
    for (i, method) in methods.iter().enumerate() {
        report(method, &mut still[i]);
        report(&format!("{method} again"), &mut again[i]);
        report(&format!("{method} right after a key"), &mut typed[i]);
    }
    println!("memory of server and client: {:.0} MB, at most {:.0} MB", memory("VmRSS:"), memory("VmHWM:"));
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(server.join().unwrap(), 0);
}
