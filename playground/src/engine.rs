//! Requests and where they go: [`Engine`].

use serde::Deserialize;
use serde_json::{Value, json};
use tk_runtime::Echo;

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
    echo: Echo,
}

impl Engine {
    /// One that tells `echo` each line of `print` at once, beside what it says of a test that has ended.
    pub fn new(echo: Echo) -> Engine {
        Engine { server: Server::new(), echo }
    }

    /// Hands messages of the language server protocol to the server, an array of JSON; returns an array with its messages.
    pub fn serve(&mut self, messages: &str) -> String {
        self.server.serve(messages)
    }

    /// Does what a request asks; says one or more objects, the last of which has `done`.
    pub fn ask(&mut self, request: &str, say: &mut dyn FnMut(&Value)) {
        match serde_json::from_str(request) {
            Ok(Request::Test { text, checked, filter }) => {
                tests::run(&text, checked, (&filter, self.echo), say)
            }
            Ok(Request::Targets) => say(&forms::targets()),
            Ok(Request::Forms { text, target, chosen }) => forms::forms(&text, &target, chosen, say),
            Ok(Request::Puzzles) => say(&puzzles::all()),
            Ok(Request::Answer { puzzle, text }) => puzzles::answer(puzzle, (&text, self.echo), say),
            Err(e) => say(&json!({ "error": format!("this is no request: {e}") })),
        }
        say(&json!({ "done": true }));
    }
}
