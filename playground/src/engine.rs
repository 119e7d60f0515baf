//! Requests and where they go: [`Engine`].

use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::Server;
use crate::{forms, puzzles, tests};

/// What the page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
enum Request {
    /// Runs the `test` blocks of a text.
    Test {
        text: String,
        /// Whether in checked mode.
        checked: bool,
        /// Only the tests whose name contains it.
        #[serde(default)]
        filter: String,
    },
    /// The names of targets, their vendors first.
    Targets,
    /// The kernels of a text, and the forms of one of them for a target.
    Forms { text: String, target: String, chosen: usize },
    /// All puzzles.
    Puzzles,
    /// Judges the answer to a puzzle.
    Answer { puzzle: usize, text: String },
}

/// The compiler, with the state of its language server.
pub struct Engine {
    server: Server,
}

impl Default for Engine {
    fn default() -> Engine {
        Engine { server: Server::new() }
    }
}

impl Engine {
    /// Hands messages of the language server protocol to the server, an array of JSON; returns an array with its messages.
    pub fn serve(&mut self, messages: &str) -> String {
        self.server.serve(messages)
    }

    /// Does what a request asks; says one or more objects, the last of which has `done`.
    pub fn ask(&mut self, request: &str, say: &mut dyn FnMut(&Value)) {
        match serde_json::from_str(request) {
            Ok(Request::Test { text, checked, filter }) => tests::run(&text, checked, &filter, say),
            Ok(Request::Targets) => say(&forms::targets()),
            Ok(Request::Forms { text, target, chosen }) => forms::forms(&text, &target, chosen, say),
            Ok(Request::Puzzles) => say(&puzzles::all()),
            Ok(Request::Answer { puzzle, text }) => puzzles::answer(puzzle, &text, say),
            Err(e) => say(&json!({ "error": format!("this is no request: {e}") })),
        }
        say(&json!({ "done": true }));
    }
}
