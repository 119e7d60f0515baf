//! The life of a connection: what waits, what is cancelled, what happens when something breaks, and the end.
//!
//! Guarantees that messages are handled in the order in which they came, and that diagnostics are made only when
//! nothing waits: a fast typist does not get outdated answers.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gen_lsp_types as lsp;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::Serialize;
use serde_json::{Value, json};

use super::Config;
use super::answer::{Answer, Refusal, params};
use super::capabilities::capabilities;
use super::client::Client;
use super::costs::{Costs, warning};
use super::documents::Documents;
use super::kept::Kept;
use crate::ide::{Disk, Workspace};

/// What an editor asks about a text after each key, to show it: an answer about a text that has changed since is for nothing,
/// and the editor asks again.
const SHOWN: &[&str] = &[
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/diagnostic",
    "textDocument/documentHighlight",
    "textDocument/documentLink",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/hover",
    "textDocument/inlayHint",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
    "textDocument/semanticTokens/range",
];

/// The phase of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    New,
    /// In use.
    Running,
    /// After `shutdown`.
    Down,
}

/// A server of one client.
pub struct Server {
    connection: Connection,
    waiting: VecDeque<Message>,
    phase: Phase,
    requests: i32,
    /// The configuration that the program gave.
    pub config: Config,
    /// The capabilities of the client.
    pub client: Client,
    /// The open files.
    pub documents: Documents,
    /// The program that is being written.
    pub ws: Workspace,
    /// The open files whose diagnostics may have changed, most urgent first.
    pub due: VecDeque<String>,
    /// The completions that the client has.
    pub offered: Offered,
    /// Answers that may be given again.
    pub kept: Kept,
    /// What kernels are expected to cost.
    pub costs: Costs,
    /// The files that explain codes, cached on first use.
    pub pages: BTreeMap<&'static str, Option<lsp::Uri>>,
}

/// The documentation of the last list of completions.
#[derive(Debug, Default)]
pub struct Offered {
    /// The number of the list.
    pub list: u64,
    /// The documentation of each item.
    pub docs: Vec<String>,
}

/// The disk of the program, which outlives a workspace.
struct Shared(Arc<dyn Disk>);

impl Disk for Shared {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.read(path)
    }
    fn list(&self, root: &str) -> Vec<String> {
        self.0.list(root)
    }
}

impl Server {
    /// A server that has heard nothing yet.
    pub fn new(connection: Connection, config: Config) -> Server {
        Server {
            connection,
            waiting: VecDeque::new(),
            phase: Phase::New,
            requests: 0,
            offered: Offered::default(),
            client: Client::new(&Value::Null),
            documents: Documents::default(),
            ws: Workspace::new(Box::new(Shared(config.disk.clone())), vec![]),
            due: VecDeque::new(),
            kept: Kept::default(),
            costs: Costs::default(),
            pages: BTreeMap::new(),
            config,
        }
    }

    /// Handles messages until the end; returns the exit code.
    pub fn serve(mut self) -> u8 {
        while self.settle()
            && let Ok(message) = self.connection.receiver.recv()
        {
            self.enqueue(message);
        }
        u8::from(self.phase != Phase::Down)
    }

    /// Handles messages until none waits and all diagnostics are made; returns false after `exit`.
    pub fn settle(&mut self) -> bool {
        loop {
            while let Ok(message) = self.connection.receiver.try_recv() {
                self.enqueue(message);
            }
            if let Some(message) = self.waiting.pop_front() {
                if let Message::Notification(n) = &message
                    && n.method == "exit"
                {
                    return false;
                }
                self.handle(message);
            } else if let Some(path) = self.due.pop_front() {
                self.guarded("the diagnostics of a file", |s| s.push(&path));
            } else {
                return true;
            }
        }
    }

    /// A request that still waits can be cancelled.
    fn enqueue(&mut self, message: Message) {
        let Message::Notification(n) = &message else { return self.waiting.push_back(message) };
        if n.method != "$/cancelRequest" {
            return self.waiting.push_back(message);
        }
        let Some(Ok(id)) = n.params.get("id").map(|id| serde_json::from_value::<RequestId>(id.clone()))
        else {
            return;
        };
        let found = self.waiting.iter().position(|m| matches!(m, Message::Request(r) if r.id == id));
        if found.and_then(|at| self.waiting.remove(at)).is_some() {
            self.answer(id, Err(Refusal::new(ErrorCode::RequestCanceled, "cancelled by the client")));
        }
    }

    /// Returns true if a request asks what to show of a text that a waiting message changes.
    fn is_outdated(&self, method: &str, params: &Value) -> bool {
        let uri = |params: &Value| params.pointer("/textDocument/uri").cloned();
        let changes = |m: &Message| matches!(m, Message::Notification(n) if n.method == "textDocument/didChange" && uri(&n.params) == uri(params));
        SHOWN.contains(&method) && uri(params).is_some() && self.waiting.iter().any(changes)
    }

    fn handle(&mut self, message: Message) {
        self.documents.forget_others();
        match message {
            Message::Request(Request { id, method, params }) if self.is_outdated(&method, &params) => {
                // Diagnostics are asked for again only where the server says that it cancelled the request.
                let code = match method.as_str() {
                    "textDocument/diagnostic" => ErrorCode::ServerCancelled,
                    _ => ErrorCode::ContentModified,
                };
                self.answer(id, Err(Refusal::new(code, "the text has changed since")));
            }
            Message::Request(Request { id, method, params }) => {
                let result = self.guarded(&method, |s| s.request(&method, params));
                let broken =
                    || Err(Refusal::new(ErrorCode::InternalError, format!("{method} failed; see the log")));
                self.answer(id, result.unwrap_or_else(broken));
            }
            Message::Notification(Notification { method, params }) => {
                if self.phase != Phase::Running {
                    return;
                }
                if let Some(Err(refusal)) = self.guarded(&method, |s| s.notification(&method, params)) {
                    self.log(lsp::MessageType::Warning, format!("{method} was ignored: {}", refusal.message));
                }
            }
            Message::Response(_) => {}
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Answer<Value> {
        match (self.phase, method) {
            (Phase::New, "initialize") => self.initialize(&params),
            (Phase::New, _) => {
                Err(Refusal::new(ErrorCode::ServerNotInitialized, "`initialize` must come first"))
            }
            (Phase::Running, "initialize") => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "`initialize` was received already"))
            }
            (Phase::Running, "shutdown") => {
                self.phase = Phase::Down;
                Ok(Value::Null)
            }
            (Phase::Running, _) => self.dispatch(method, params),
            (Phase::Down, _) => Err(Refusal::new(ErrorCode::InvalidRequest, "the server was shut down")),
        }
    }

    fn initialize(&mut self, params: &Value) -> Answer<Value> {
        self.client = Client::new(params);
        let _ = self.set_costs(params.pointer("/initializationOptions/costs"));
        self.phase = Phase::Running;
        self.rebuild();
        value(lsp::InitializeResult {
            capabilities: capabilities(self.client.encoding),
            server_info: Some(lsp::ServerInfo {
                name: "tk".into(),
                version: Some(self.config.version.clone()),
            }),
        })
    }

    fn notification(&mut self, method: &str, given: Value) -> Answer<()> {
        match method {
            "initialized" => self.watch(),
            "textDocument/didOpen" => self.did_open(params(given)?),
            "textDocument/didChange" => return self.did_change(params(given)?),
            "textDocument/didSave" => self.did_save(params(given)?),
            "textDocument/didClose" => self.did_close(params(given)?),
            "workspace/didChangeConfiguration" => self.did_change_settings(&given),
            "workspace/didChangeWatchedFiles" => self.did_change_files(params(given)?),
            "workspace/didChangeWorkspaceFolders" => self.did_change_folders(params(given)?),
            // What else clients say needs no reaction.
            _ => {}
        }
        Ok(())
    }

    fn did_change_settings(&mut self, given: &Value) {
        if self.set_costs(given.pointer("/settings/tk/costs")) {
            self.refresh();
        }
    }

    /// Reads the options about costs; returns true if they are others than before.
    fn set_costs(&mut self, settings: Option<&Value>) -> bool {
        match self.costs.set(settings) {
            Ok(is_new) => is_new,
            Err(why) => {
                self.send(warning(why));
                true
            }
        }
    }

    /// Asks for changes of source files that are not open.
    fn watch(&mut self) {
        if self.client.watches {
            let options = json!({ "watchers": [{ "globPattern": "**/*.tk" }] });
            let registration = json!({
                "id": "sources", "method": "workspace/didChangeWatchedFiles", "registerOptions": options
            });
            self.ask("client/registerCapability", json!({ "registrations": [registration] }));
        }
    }

    /// Rebuilds the workspace from the open files and the disk.
    pub fn rebuild(&mut self) {
        let disk = Box::new(Shared(self.config.disk.clone()));
        self.ws = Workspace::new(disk, self.client.folders.clone());
        for (path, document) in self.documents.iter() {
            self.ws.open(path, document.lines.text().to_string());
        }
        self.due = self.documents.iter().map(|(path, _)| path.clone()).collect();
    }

    /// Does something that may panic: that is a compiler bug, and the log of the client hears of it.
    fn guarded<T>(&mut self, what: &str, work: impl FnOnce(&mut Server) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(result) => Some(result),
            Err(panic) => {
                // Nobody knows in which state it left what it worked on.
                self.rebuild();
                let message = format!("internal error in {what}: {}", said(&*panic));
                self.log(lsp::MessageType::Error, message);
                None
            }
        }
    }

    fn answer(&self, id: RequestId, result: Answer<Value>) {
        self.send(Message::Response(Response { id, response_result: result.map_err(Into::into) }));
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: impl Serialize) {
        if let Ok(params) = serde_json::to_value(params) {
            self.send(Message::Notification(Notification { method: method.into(), params }));
        }
    }

    /// Sends a request whose answer does not matter.
    pub fn ask(&mut self, method: &str, params: Value) {
        self.requests = self.requests.wrapping_add(1);
        self.send(Message::Request(Request { id: self.requests.into(), method: method.into(), params }));
    }

    /// Writes to the log of the client.
    pub fn log(&self, kind: lsp::MessageType, message: String) {
        self.notify("window/logMessage", lsp::LogMessageParams { kind, message });
    }

    fn send(&self, message: Message) {
        self.sender()(message);
    }

    /// Sends messages to the client, from any thread.
    pub fn sender(&self) -> impl Fn(Message) + Send + 'static {
        let sender = self.connection.sender.clone();
        move |message| {
            // A client that does not listen any more is noticed when nothing more arrives.
            let _ = sender.send(message);
        }
    }
}

/// A result as JSON.
pub fn value(result: impl Serialize) -> Answer<Value> {
    serde_json::to_value(result).map_err(|e| Refusal::new(ErrorCode::InternalError, e.to_string()))
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|t| (*t).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
