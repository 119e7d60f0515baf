//! Tells the client that a request reads through the workspace: the first search for a name, or the problems of all files,
//! checks every file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::lifecycle::Server;
use super::said;

/// The number of files that one request checks before anything is said: fewer take less than a moment.
const SILENT: usize = 8;

/// What is said about one request at a time.
pub struct Progress {
    state: Mutex<State>,
    say: Box<dyn Fn(String) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The files that were checked for this request.
    files: usize,
    /// The number of the last progress that was begun.
    token: u64,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, token: u64, value: serde_json::Value) {
        let token = format!("tk {token}");
        (self.say)(said::notification("$/progress", &json!({ "token": token, "value": value })));
    }

    /// A file is being checked for a request.
    fn file(&self, path: &str) {
        let mut state = self.lock();
        state.files += 1;
        if state.files == SILENT {
            state.token += 1;
            let token = format!("tk {}", state.token);
            let create = said::request(
                &token.clone().into(),
                "window/workDoneProgress/create",
                &json!({ "token": token }),
            );
            (self.say)(create);
            self.tell(state.token, json!({ "kind": "begin", "title": "Checking the workspace" }));
        }
        if state.files >= SILENT {
            let name = path.rsplit('/').next().unwrap_or(path);
            let message = format!("{} files, {name}", state.files);
            self.tell(state.token, json!({ "kind": "report", "message": message }));
        }
    }

    /// The request is answered.
    pub fn end(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.files) >= SILENT {
            self.tell(state.token, json!({ "kind": "end" }));
        }
    }
}

impl Server {
    /// Shows the progress of requests from now on, if the client can show it.
    pub fn show_progress(&mut self) {
        if self.client.progress {
            let say = Box::new(self.speaker());
            let progress = Arc::new(Progress { state: Mutex::default(), say });
            self.progress = Some(progress.clone());
            self.ws.on_check = Some(Box::new(move |path| progress.file(path)));
        }
    }
}
