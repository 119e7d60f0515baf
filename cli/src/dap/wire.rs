//! Messages of the debug adapter protocol: requests of a client, answers and events to it.
//!
//! Guarantees that messages are numbered in the order in which they are written, whichever thread writes them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A request.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    /// Its number.
    pub seq: i64,
    /// What it wants.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Json,
}

/// The way to the client.
pub struct Wire {
    /// The stream, and the number of the last message.
    output: Mutex<(Box<dyn Write + Send>, i64)>,
    /// Whether the client counts lines, and columns, from 0.
    from_zero: [AtomicBool; 2],
}

impl Wire {
    /// Over a stream.
    pub fn new(output: Box<dyn Write + Send>) -> Wire {
        Wire { output: Mutex::new((output, 0)), from_zero: Default::default() }
    }

    /// Takes from the arguments of `initialize` how the client counts; from 1 unless it says otherwise.
    pub fn count_as(&self, arguments: &Json) {
        for (flag, name) in self.from_zero.iter().zip(["linesStartAt1", "columnsStartAt1"]) {
            flag.store(arguments.get(name) == Some(&Json::Bool(false)), Ordering::Relaxed);
        }
    }

    fn first(&self, of: usize) -> usize {
        usize::from(!self.from_zero.get(of).is_some_and(|flag| flag.load(Ordering::Relaxed)))
    }

    /// A line as the client counts it, of one counted from 1.
    pub fn line(&self, line: usize) -> usize {
        (line + self.first(0)).saturating_sub(1)
    }

    /// A column as the client counts it, of one counted from 1.
    pub fn column(&self, column: usize) -> usize {
        (column + self.first(1)).saturating_sub(1)
    }

    /// A line counted from 1, of one as the client counts it.
    pub fn line_of_client(&self, line: usize) -> usize {
        line.saturating_add(1 - self.first(0))
    }

    /// An event.
    pub fn event(&self, event: &str, body: &Json) {
        self.write(json!({ "type": "event", "event": event, "body": body }));
    }

    /// Text for the console.
    pub fn say(&self, text: &str) {
        self.event("output", &json!({ "category": "console", "output": text }));
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Request, body: Json) {
        self.write(json!({
            "type": "response", "request_seq": request.seq, "success": true, "command": request.command, "body": body,
        }));
    }

    /// Why a request has no answer, in a sentence.
    pub fn refuse(&self, request: &Request, why: &str) {
        self.write(json!({
            "type": "response", "request_seq": request.seq, "success": false, "command": request.command,
            "message": why, "body": { "error": { "id": 1, "format": why, "showUser": true } },
        }));
    }

    fn write(&self, mut message: Json) {
        let mut guard = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (output, last) = &mut *guard;
        *last += 1;
        if let Json::Object(fields) = &mut message {
            fields.insert("seq".into(), (*last).into());
        }
        let text = message.to_string();
        // Nothing can be done for a client that does not read: its silence ends the session.
        let _ = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| output.flush());
    }
}
