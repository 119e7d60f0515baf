//! The protocol: how editors ask [`crate::ide`] and hear the answers. Nothing else of the compiler knows it.
//!
//! Accepts any client. Guarantees an answer to every request, for the text after the changes that came before it, and in
//! the order of the requests, except that what need not wait for a check does not wait, and what reads through the workspace gives way; that a compiler bug is an error for one request and nothing more; and that no program is run.

mod answer;
mod capabilities;
mod changes;
mod client;
mod costs;
mod diagnostics;
mod disk;
mod documents;
mod format;
mod inbox;
mod kept;
mod library;
mod lifecycle;
mod local;
mod look;
mod names;
mod places;
mod position;
mod progress;
mod requests;
mod said;
mod slack;
mod transport;
mod uri;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use inbox::Inbox;
use lsp_server::Message;

use crate::ide::Disk;

pub use costs::Predict;
pub use disk::Files;
pub use library::Library;
pub use local::Local;
pub use transport::{Frame, read_frame, serve};

/// The services that the server needs from the program around it.
#[derive(Clone)]
pub struct Config {
    /// The files below the open ones.
    pub disk: Arc<dyn Disk>,
    /// The files of the standard library and the pages of codes that an editor opens.
    pub library: Library,
    /// The page of a diagnostic code.
    pub page: fn(&str) -> Option<&'static str>,
    /// Asks the compiler what kernels cost; `None` without a compiler.
    pub costs: Option<Predict>,
    /// The version of the program.
    pub version: String,
}

/// Serves a client until it is gone or says `exit`; returns the exit code: 0 after `shutdown`, otherwise 1. The answers are
/// texts of JSON.
pub fn run(messages: Receiver<Message>, answers: Sender<String>, config: Config) -> u8 {
    let inbox = Inbox::new(answers.clone());
    let weak = Arc::downgrade(&inbox);
    // It ends with the messages, for which a server that ends does not wait.
    std::thread::spawn(move || {
        for message in messages {
            let Some(inbox) = weak.upgrade() else { return };
            inbox.deliver(message);
        }
        weak.upgrade().inspect(|inbox| inbox.close());
    });
    let serve = move || lifecycle::Server::new(inbox, answers, config).serve();
    let thread =
        std::thread::Builder::new().name("tk-lsp".into()).stack_size(tk_syntax::stack::STACK).spawn(serve);
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) | Err(_) => 101,
    }
}
