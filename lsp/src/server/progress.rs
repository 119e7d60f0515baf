//! Tells the client that a request reads through the workspace: the first search for a name, or the problems of all files,
//! checks every file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::lifecycle::Server;
use super::said;

/// The number of files that one request checks before anything is said: fewer take less than a moment.
const SILENT: usize = 8;

/// What is said about one request at a time.
pub struct Progress {
    state: Mutex<State>,
    /// Whether the client shows progress that it has given no token for.
    creates: bool,
    say: Box<dyn Fn(String) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The files that were checked for this request.
    files: usize,
    /// The number of the last progress that was begun.
    number: u64,
    /// The token of the client.
    given: Option<Value>,
}

impl State {
    fn token(&self) -> Value {
        self.given.clone().unwrap_or_else(|| format!("tk {}", self.number).into())
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, token: &Value, value: Value) {
        (self.say)(said::notification("$/progress", &json!({ "token": token, "value": value })));
    }

    /// A file is being checked for a request.
    fn file(&self, path: &str) {
        let mut state = self.lock();
        if !self.creates && state.given.is_none() {
            return;
        }
        state.files += 1;
        if state.files == SILENT {
            if state.given.is_none() {
                state.number += 1;
                let id = format!("tk {}", state.number).into();
                let params = json!({ "token": state.token() });
                (self.say)(said::request(&id, "window/workDoneProgress/create", &params));
            }
            self.tell(&state.token(), json!({ "kind": "begin", "title": "Checking the workspace" }));
        }
        if state.files >= SILENT {
            let name = path.rsplit('/').next().unwrap_or(path);
            let message = format!("{} files, {name}", state.files);
            self.tell(&state.token(), json!({ "kind": "report", "message": message }));
        }
    }

    /// A request begins, for which the client may give a token.
    pub fn begin(&self, token: Option<&Value>) {
        self.lock().given = token.filter(|t| t.is_string() || t.is_i64()).cloned();
    }

    /// The work on the request has ended.
    pub fn end(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.files) >= SILENT {
            self.tell(&state.token(), json!({ "kind": "end" }));
        }
        state.given = None;
    }
}

impl Server {
    /// Shows the progress of requests from now on, if the client can show it.
    pub fn show_progress(&mut self) {
        let (say, creates) = (Box::new(self.speaker()), self.client.progress);
        let progress = Arc::new(Progress { state: Mutex::default(), creates, say });
        self.progress = Some(progress.clone());
        self.ws.on_check = Some(Box::new(move |path| progress.file(path)));
    }
}
