//! The messages that wait, and what of them concerns the request that is being answered: it is given up when the client
//! cancels it, or changes the text whose picture it asks for.
//!
//! Guarantees that a message that changes something is handled after every request before it and before every request
//! behind it; but those that read through the workspace give way to everything else.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lsp_server::{ErrorCode, Message, Request, RequestId};
use serde_json::Value;

use super::answer::Refusal;
use super::said;
use crate::ide::Stop;

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
    "textDocument/references",
    "textDocument/rename",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
    "textDocument/semanticTokens/range",
    "callHierarchy/incomingCalls",
];

/// What reads through the workspace, which may take seconds: the work is given up where another message comes, and begun again
/// after that. What it has found of a file is kept.
const LONG: &[&str] = &[
    "callHierarchy/incomingCalls",
    "textDocument/references",
    "textDocument/rename",
    "workspace/diagnostic",
];

/// The messages of one client.
pub struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
    answers: Sender<String>,
    /// Tells the work on a request that nobody waits for its answer.
    pub stop: Stop,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Message>,
    running: Option<Running>,
    /// Nothing arrives any more.
    closed: bool,
    /// Something has happened since the last time that the server waited.
    woken: bool,
}

/// The request that is being answered.
struct Running {
    id: RequestId,
    /// The text that it shows.
    shows: Option<Value>,
    method: String,
    refusal: Option<Refusal>,
    /// The request, if it reads through the workspace, and whether another message has come.
    long: Option<(Request, bool)>,
}

/// What the client hears of a request.
pub enum Outcome {
    /// The result.
    Result,
    /// A refusal instead of it.
    Refusal(Refusal),
    /// Nothing yet: the work begins again later.
    Later,
}

/// What is next.
pub enum Next {
    /// A message to handle.
    Message(Message),
    /// A request whose answer would be outdated.
    Outdated(RequestId, Refusal),
    /// Nothing can be handled now.
    Nothing,
    /// Nothing is left, and nothing arrives any more.
    End,
}

fn uri(params: &Value) -> Option<&Value> {
    params.pointer("/textDocument/uri").or(params.pointer("/item/uri"))
}

fn is_long(r: &Request) -> bool {
    LONG.contains(&r.method.as_str())
}

/// The URI of the text that a message changes.
fn changes(message: &Message) -> Option<&Value> {
    match message {
        Message::Notification(n) if n.method == "textDocument/didChange" => uri(&n.params),
        Message::Notification(_) | Message::Request(_) | Message::Response(_) => None,
    }
}

/// Why a request about an old text has no answer.
fn outdated(method: &str) -> Refusal {
    // Diagnostics are asked for again only where the server says that it cancelled the request.
    let code = match method {
        "textDocument/diagnostic" => ErrorCode::ServerCancelled,
        _ => ErrorCode::ContentModified,
    };
    Refusal::new(code, "the text has changed since")
}

impl Inbox {
    /// An empty one.
    pub fn new(answers: Sender<String>) -> Arc<Inbox> {
        let (state, changed, stop) = Default::default();
        Arc::new(Inbox { state, changed, answers, stop })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message of the client.
    pub fn deliver(&self, message: Message) {
        let mut state = self.lock();
        if let Message::Notification(n) = &message
            && n.method == "$/cancelRequest"
        {
            if let Some(Ok(id)) = n.params.get("id").map(|id| serde_json::from_value(id.clone())) {
                self.cancel(&mut state, &id);
            }
            return;
        }
        if let Some(running) = &mut state.running {
            if running.shows.is_some() && changes(&message) == running.shows.as_ref() {
                running.refusal.get_or_insert_with(|| outdated(&running.method));
                self.stop.set();
            }
            let waits = match &message {
                Message::Request(r) => is_long(r),
                Message::Notification(_) => false,
                Message::Response(_) => true,
            };
            if let Some((_, gives_way)) = running.long.as_mut().filter(|_| !waits) {
                *gives_way = true;
                self.stop.set();
            }
        }
        state.waiting.push_back(message);
        drop(state);
        self.wake();
    }

    fn cancel(&self, state: &mut State, id: &RequestId) {
        let refusal = Refusal::new(ErrorCode::RequestCanceled, "cancelled by the client");
        let found = state.waiting.iter().position(|m| matches!(m, Message::Request(r) if r.id == *id));
        if found.and_then(|at| state.waiting.remove(at)).is_some() {
            // A client that does not listen any more is noticed when nothing more arrives.
            let _ = self.answers.send(said::answer(id, Err(refusal)));
        } else if let Some(running) = state.running.as_mut().filter(|r| r.id == *id) {
            running.refusal = Some(refusal);
            self.stop.set();
        }
    }

    /// The client is gone.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    /// Something has happened: a message has come, a check is done.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    /// Waits until something has happened since the last call.
    pub fn wait(&self) {
        let mut state = self.lock();
        while !state.woken {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.woken = false;
    }

    /// The next message. Requests that wait for a check that runs are passed over, but by no message that changes
    /// something. Those that read through the workspace come after all others, and only if the server `is_free`.
    pub fn next(&self, waits: impl Fn(&Request) -> bool, is_free: bool) -> Next {
        let mut state = self.lock();
        let (mut at, mut long) = (None, None);
        let mut passed = false;
        for (i, message) in state.waiting.iter().enumerate() {
            match message {
                Message::Request(r) => {
                    let shows = uri(&r.params).filter(|_| SHOWN.contains(&r.method.as_str()));
                    if shows.is_some() && state.waiting.iter().skip(i).any(|m| changes(m) == shows) {
                        let (id, refusal) = (r.id.clone(), outdated(&r.method));
                        state.waiting.remove(i);
                        return Next::Outdated(id, refusal);
                    }
                    if is_long(r) {
                        long = long.or(Some(i));
                        continue;
                    }
                    if !waits(r) {
                        at = Some(i);
                        break;
                    }
                    passed = true;
                }
                Message::Notification(_) | Message::Response(_) => {
                    at = (!passed).then_some(i);
                    break;
                }
            }
        }
        let at = at.or(long.filter(|_| is_free && !passed));
        let Some(message) = at.and_then(|i| state.waiting.remove(i)) else {
            let end = state.closed && state.waiting.is_empty();
            return if end { Next::End } else { Next::Nothing };
        };
        if let Message::Request(r) = &message {
            let shows = uri(&r.params).filter(|_| SHOWN.contains(&r.method.as_str())).cloned();
            let (id, method) = (r.id.clone(), r.method.clone());
            let long = is_long(r).then(|| (r.clone(), false));
            state.running = Some(Running { id, shows, method, refusal: None, long });
        }
        Next::Message(message)
    }

    /// Returns true if the next message is no request: then another check would be for nothing.
    pub fn changes_next(&self) -> bool {
        matches!(self.lock().waiting.front(), Some(Message::Notification(_)))
    }

    /// The work on a request is done, or was given up where it `has_stopped`.
    pub fn done(&self, has_stopped: bool) -> Outcome {
        let mut state = self.lock();
        self.stop.clear();
        match state.running.take() {
            Some(Running { refusal: Some(refusal), .. }) => Outcome::Refusal(refusal),
            Some(Running { long: Some((mut request, true)), .. }) if has_stopped => {
                // Its progress has ended, which a client hears once for its token.
                request.params.as_object_mut().map(|params| params.remove("workDoneToken"));
                state.waiting.push_front(Message::Request(request));
                Outcome::Later
            }
            _done => Outcome::Result,
        }
    }
}
