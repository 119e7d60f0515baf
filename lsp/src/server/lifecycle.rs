//! The life of a connection: in which order messages are handled, what happens when something breaks, and the end.
//!
//! Guarantees that diagnostics are made only when nothing waits: a fast typist does not get outdated answers.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use gen_lsp_types as lsp;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId};
use serde::Serialize;
use serde_json::{Value, json};

use super::Config;
use super::answer::{Answer, Refusal, params};
use super::capabilities::capabilities;
use super::client::Client;
use super::costs::{Costs, warning};
use super::documents::Documents;
use super::inbox::{Inbox, Next, Outcome};
use super::kept::Kept;
use super::progress::Progress;
use super::said::{self, Json};
use crate::ide::{Disk, Workspace, was_stopped};

/// What needs the text of a file and nothing else.
const OF_TEXT: &[&str] = &[
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/onTypeFormatting",
    "textDocument/rangeFormatting",
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

/// What came of a try to handle a message.
enum Step {
    /// One was handled.
    Done,
    /// None can be handled now.
    Idle,
    /// There are no more.
    End,
}

/// A server of one client.
pub struct Server {
    inbox: Arc<Inbox>,
    answers: Sender<String>,
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
    /// What is said while a request reads through the workspace.
    pub progress: Option<Arc<Progress>>,
    /// The diagnostics of files that are not open, with the numbers of their analyses.
    pub found: BTreeMap<String, (u64, Vec<lsp::Diagnostic>)>,
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
    pub fn new(inbox: Arc<Inbox>, answers: Sender<String>, config: Config) -> Server {
        let mut server = Server {
            inbox,
            answers,
            phase: Phase::New,
            requests: 0,
            offered: Offered::default(),
            client: Client::new(&Value::Null),
            documents: Documents::default(),
            ws: Workspace::new(Box::new(Shared(config.disk.clone())), vec![]),
            due: VecDeque::new(),
            kept: Kept::default(),
            progress: None,
            found: BTreeMap::new(),
            costs: Costs::default(),
            pages: BTreeMap::new(),
            config,
        };
        server.rebuild();
        server
    }

    /// Handles messages until the end; returns the exit code. Files are checked in the background, and what does not
    /// need a check that runs is answered meanwhile.
    pub fn serve(mut self) -> u8 {
        loop {
            let is_free = self.ws.take_check();
            if is_free && !self.inbox.changes_next() {
                self.begin_check();
            }
            match self.step() {
                Step::Done => {}
                Step::Idle => match self.due.front().cloned() {
                    Some(path) if self.ws.is_checked(&path) => self.deliver_due(),
                    Some(_) | None => self.inbox.wait(),
                },
                Step::End => return u8::from(self.phase != Phase::Down),
            }
        }
    }

    /// Handles messages until none waits and all diagnostics are made, all in this thread.
    pub fn settle(&mut self) {
        loop {
            match self.step() {
                Step::Done => {}
                Step::Idle if !self.due.is_empty() => self.deliver_due(),
                Step::Idle | Step::End => return,
            }
        }
    }

    /// Handles the next message that need not wait for a check.
    fn step(&mut self) -> Step {
        let waits = |r: &Request| {
            let uri = r.params.pointer("/textDocument/uri").and_then(Value::as_str);
            let path = uri.map(|uri| self.path(&uri.to_string().into()));
            !OF_TEXT.contains(&r.method.as_str()) && path.is_some_and(|path| self.ws.is_checking(&path))
        };
        match self.inbox.next(waits, self.due.is_empty()) {
            Next::Message(Message::Notification(n)) if n.method == "exit" => return Step::End,
            Next::Message(message) => self.handle(message),
            Next::Outdated(id, refusal) => self.answer(&id, Err(refusal)),
            Next::Nothing => return Step::Idle,
            Next::End => return Step::End,
        }
        Step::Done
    }

    /// Checks the most urgent file in the background.
    fn begin_check(&mut self) {
        if let Some(path) = self.due.front().cloned() {
            let inbox = self.inbox.clone();
            self.ws.begin_check(&path, move || inbox.wake());
        }
    }

    /// Sends the diagnostics of the most urgent file.
    fn deliver_due(&mut self) {
        if let Some(path) = self.due.pop_front() {
            self.guarded("the diagnostics of a file", |s| s.push(&path));
        }
    }

    fn handle(&mut self, message: Message) {
        self.documents.forget_others();
        match message {
            Message::Request(Request { id, method, params }) => {
                self.progress.iter().for_each(|p| p.begin(params.get("workDoneToken")));
                let result = self.guarded(&method, |s| s.request(&method, params));
                let broken =
                    || Err(Refusal::new(ErrorCode::InternalError, format!("{method} failed; see the log")));
                self.progress.iter().for_each(|p| p.end());
                match self.inbox.done(result.is_none()) {
                    Outcome::Result => self.answer(&id, result.unwrap_or_else(broken)),
                    Outcome::Refusal(refusal) => self.answer(&id, Err(refusal)),
                    Outcome::Later => {}
                }
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

    fn request(&mut self, method: &str, params: Value) -> Answer<Json> {
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
                Ok("null".into())
            }
            (Phase::Running, _) => self.dispatch(method, params),
            (Phase::Down, _) => Err(Refusal::new(ErrorCode::InvalidRequest, "the server was shut down")),
        }
    }

    fn initialize(&mut self, params: &Value) -> Answer<Json> {
        self.client = Client::new(params);
        let _ = self.set_costs(params.pointer("/initializationOptions/costs"));
        self.phase = Phase::Running;
        self.rebuild();
        said::result(lsp::InitializeResult {
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
                self.say(warning(why));
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
            self.ask("client/registerCapability", &json!({ "registrations": [registration] }));
        }
    }

    /// Rebuilds the workspace from the open files and the disk.
    pub fn rebuild(&mut self) {
        let disk = Box::new(Shared(self.config.disk.clone()));
        self.ws = Workspace::new(disk, self.client.folders.clone());
        self.ws.stop = self.inbox.stop.clone();
        self.show_progress();
        for (path, document) in self.documents.iter() {
            self.ws.open(path, document.lines.text().to_string());
        }
        self.due = self.documents.iter().map(|(path, _)| path.clone()).collect();
    }

    /// Does something that may panic: that is a compiler bug, and the log of the client hears of it.
    fn guarded<T>(&mut self, what: &str, work: impl FnOnce(&mut Server) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(result) => Some(result),
            Err(stop) if was_stopped(&*stop) => None,
            Err(panic) => {
                // Nobody knows in which state it left what it worked on.
                self.rebuild();
                let message = format!("internal error in {what}: {}", said(&*panic));
                self.log(lsp::MessageType::Error, message);
                None
            }
        }
    }

    fn answer(&self, id: &RequestId, result: Answer<Json>) {
        self.say(said::answer(id, result));
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: impl Serialize) {
        self.say(said::notification(method, &params));
    }

    /// Sends a request whose answer does not matter.
    pub fn ask(&mut self, method: &str, params: &Value) {
        self.requests = self.requests.wrapping_add(1);
        self.say(said::request(&self.requests.into(), method, params));
    }

    /// Writes to the log of the client.
    pub fn log(&self, kind: lsp::MessageType, message: String) {
        self.notify("window/logMessage", lsp::LogMessageParams { kind, message });
    }

    fn say(&self, message: String) {
        self.speaker()(message);
    }

    /// Sends messages to the client, from any thread.
    pub fn speaker(&self) -> impl Fn(String) + Send + Sync + 'static {
        let answers = self.answers.clone();
        move |message| {
            // A client that does not listen any more is noticed when nothing more arrives.
            let _ = answers.send(message);
        }
    }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|t| (*t).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
