//! Streams of messages that are wrong in every way: the server stays, and is right afterwards.
//!
//! `TK_LSP_MESSAGES=100000` sends more of them.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};
use tk_lsp::server::serve;

use super::client::{Memory, config};
use super::random::Random;

const URI: &str = "file:///w/a.tk";
const TEXT: &str = "fn f(x: i32) -> i32 {\n    let y = x; // ä😀\n    y\n}\n";

/// Both ends of a stream.
struct Pipe(Receiver<Vec<u8>>, Vec<u8>);
struct End(Sender<Vec<u8>>);

fn pipe() -> (End, Pipe) {
    let (sender, receiver) = channel();
    (End(sender), Pipe(receiver, vec![]))
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.1.is_empty() {
            match self.0.recv() {
                Ok(bytes) => self.1 = bytes,
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.1.len());
        out[..count].copy_from_slice(&self.1[..count]);
        self.1.drain(..count);
        Ok(count)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn framed(text: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", text.len()).as_bytes(), text].concat()
}

const METHODS: &[&str] = &[
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/definition",
    "textDocument/typeDefinition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/documentSymbol",
    "workspace/symbol",
    "workspace/textDocumentContent",
    "textDocument/foldingRange",
    "textDocument/selectionRange",
    "textDocument/prepareCallHierarchy",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/range",
    "textDocument/inlayHint",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/formatting",
    "textDocument/rangeFormatting",
    "textDocument/diagnostic",
    "workspace/executeCommand",
    "initialize",
    "$/nothing",
    "",
    "completionItem/resolve",
];
const NOTIFICATIONS: &[&str] = &[
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/didSave",
    "workspace/didChangeWatchedFiles",
    "workspace/didChangeWorkspaceFolders",
    "$/cancelRequest",
    "initialized",
    "$/x",
    "notebookDocument/didOpen",
    "workspace/didChangeConfiguration",
];
const URIS: &[&str] = &[
    URI,
    URI,
    URI,
    URI,
    URI,
    URI,
    URI,
    URI,
    URI,
    "file:///w/b.tk",
    "file:///w/missing.tk",
    "untitled:1",
    "file:///%",
    "",
    "file://",
    "std:/grid.tk",
    "file:///w",
    "http://x/a.tk",
    "\u{0}",
    "file:///w/../../../a.tk",
];

fn number(random: &mut Random) -> Value {
    match random.below(40) {
        0 => json!(-1),
        1 => json!(u32::MAX),
        2 => json!(1e300),
        3 => json!("1"),
        4 => Value::Null,
        5 => json!(1.5),
        6 => json!(u64::MAX),
        _ => json!(random.below(30)),
    }
}

fn any(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 3 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => number(random),
        3 => json!(random.pick(URIS)),
        4 => json!("😀\u{fffd}"),
        5 => json!([any(random, depth + 1), any(random, depth + 1)]),
        6 => json!({ "line": number(random), "character": number(random) }),
        7 => json!({ "start": any(random, depth + 1), "end": any(random, depth + 1) }),
        _ => {
            json!({ "uri": random.pick(URIS), "text": any(random, depth + 1), "range": any(random, depth + 1) })
        }
    }
}

fn params(random: &mut Random) -> Value {
    let place = |r: &mut Random| json!({ "line": number(r), "character": number(r) });
    let mut all = json!({
        "textDocument": { "uri": random.pick(URIS), "version": random.below(9), "languageId": "tk", "text": TEXT },
        "position": place(random),
        "range": { "start": place(random), "end": place(random) },
        "positions": [place(random)],
        "context": { "diagnostics": [], "includeDeclaration": true },
        "newName": random.pick(&["a", "", "1", "let", "ä", "😀"]),
        "options": { "tabSize": 4, "insertSpaces": true },
        "query": random.pick(&["", "f", "😀"]),
        "contentChanges": [{ "range": { "start": place(random), "end": place(random) }, "text": random.pick(&["", "x", "😀", "\n", "fn"]) }],
        "changes": [{ "uri": random.pick(URIS), "type": number(random) }],
        "event": { "added": [], "removed": [] },
        "id": number(random),
        "item": { "name": "f", "kind": 12, "uri": random.pick(URIS),
            "range": { "start": place(random), "end": place(random) },
            "selectionRange": { "start": place(random), "end": place(random) } },
    });
    if random.below(6) == 0 {
        let names: Vec<String> = all.as_object().unwrap().keys().cloned().collect();
        all[&names[random.below(names.len())]] = any(random, 0);
    }
    if random.below(20) == 0 { any(random, 0) } else { all }
}

/// A message; whether an answer must come.
fn message(random: &mut Random, id: usize) -> (Vec<u8>, bool) {
    let text = match random.below(12) {
        0 => return (framed(&[b'{', 0xFF, 0xC0, random.below(256) as u8]), false),
        1 => return (framed("[".repeat(random.below(5000)).as_bytes()), false),
        2 => return (b"Content-Length: nothing\r\n\r\n".to_vec(), false),
        3 => return (format!("{}\r\n", "{\"garbage\": ".repeat(random.below(20))).into_bytes(), false),
        4 => return (framed(any(random, 0).to_string().as_bytes()), false),
        5..=7 => json!({ "jsonrpc": "2.0", "method": random.pick(NOTIFICATIONS), "params": params(random) }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "method": random.pick(METHODS), "params": params(random) }),
    };
    let answered = text.get("id").is_some();
    // Half of a pair, as an editor sends it.
    (framed(text.to_string().replace("😀", random.pick(&["😀", "\\ud83d", "\\ude00"])).as_bytes()), answered)
}

/// Reads answers until that to the last request; how many requests before it were answered, how many of them with a
/// result, and the last answer.
fn answers(output: &mut impl std::io::BufRead, last: &Value) -> (usize, usize, Value) {
    let (mut count, mut results) = (0, 0);
    loop {
        let mut header = String::new();
        output.read_line(&mut header).unwrap();
        let length = header.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        output.read_line(&mut header).unwrap();
        let mut body = vec![0; length];
        output.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let text = message.to_string();
        assert!(!text.contains("internal error"), "{text}");
        match &message["id"] {
            id if id == last && message.get("method").is_none() => return (count, results, message),
            Value::Number(_) if message.get("method").is_none() => {
                count += 1;
                results += usize::from(message.get("result").is_some_and(|r| !r.is_null()));
            }
            _ => {}
        }
    }
}

/// Sends a request, or a notification when the id is null.
fn request(to: &mut End, id: Value, method: &str, params: Value) {
    let mut text = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if !id.is_null() {
        text["id"] = id;
    }
    to.write_all(&framed(text.to_string().as_bytes())).unwrap();
}

#[test]
fn a_stream_of_nonsense() {
    let count = std::env::var("TK_LSP_MESSAGES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let (mut to, input) = pipe();
    let (output, from) = pipe();
    let disk = Memory::default();
    disk.write("/w/b.tk", TEXT);
    let server = std::thread::spawn(move || serve(input, output, config(disk)));
    request(&mut to, json!("start"), "initialize", json!({ "capabilities": {}, "rootUri": "file:///w" }));
    let document = json!({ "uri": URI, "languageId": "tk", "version": 1, "text": TEXT });
    request(&mut to, Value::Null, "textDocument/didOpen", json!({ "textDocument": document }));
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut from = std::io::BufReader::new(from);
    let (mut asked, mut answered, mut results) = (0, 0, 0);
    for id in 0..count {
        let (bytes, is_request) = message(&mut random, id);
        to.write_all(&bytes).unwrap();
        // A change that waits would make requests outdated.
        if is_request {
            asked += 1;
            let (others, others_results, answer) = answers(&mut from, &json!(id));
            answered += others + 1;
            results += others_results + usize::from(answer.get("result").is_some_and(|r| !r.is_null()));
        }
    }
    // It still knows what is right.
    let text = TEXT.replace("    y\n", "    z\n");
    let document = json!({ "uri": URI, "languageId": "tk", "version": 1, "text": text });
    request(&mut to, Value::Null, "textDocument/didOpen", json!({ "textDocument": document }));
    request(&mut to, json!("pull"), "textDocument/diagnostic", json!({ "textDocument": { "uri": URI } }));
    let (others, _, last) = answers(&mut from, &json!("pull"));
    answered += others;
    assert_eq!(last["result"]["items"][0]["code"], "E0201", "{last}");
    assert!(answered >= asked, "{answered} answers to {asked} requests");
    assert!(results > asked / 5, "{results} results for {asked} requests: too few are understood");
    request(&mut to, json!("end"), "shutdown", Value::Null);
    assert_eq!(answers(&mut from, &json!("end")).2["result"], Value::Null);
    to.write_all(&framed(br#"{"jsonrpc":"2.0","method":"exit"}"#)).unwrap();
    assert_eq!(server.join().unwrap(), 0);
}
