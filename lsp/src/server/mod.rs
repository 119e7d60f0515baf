//! The protocol: how editors ask [`crate::ide`] and hear the answers. Nothing else of the compiler knows it.
//!
//! Accepts any client. Guarantees an answer to every request, in the order of the requests and for the newest text;
//! that a compiler bug is an error for one request and nothing more; and that no program is run.

mod answer;
mod capabilities;
mod changes;
mod client;
mod costs;
mod diagnostics;
mod disk;
mod documents;
mod format;
mod kept;
mod library;
mod lifecycle;
mod local;
mod look;
mod names;
mod places;
mod position;
mod requests;
mod slack;
mod transport;
mod uri;

use std::sync::Arc;

use lsp_server::Connection;

use crate::ide::Disk;

pub use costs::Predict;
pub use disk::Files;
pub use library::Library;
pub use local::Local;
pub use transport::{Frame, read_frame, serve};

/// Bytes of the stack on which the compiler runs, as in the command `tk`: its walks are recursive.
const STACK: usize = 64 << 20;

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

/// Serves a client until it is gone or says `exit`; returns the exit code: 0 after `shutdown`, otherwise 1.
pub fn run(connection: Connection, config: Config) -> u8 {
    let serve = move || lifecycle::Server::new(connection, config).serve();
    let thread = std::thread::Builder::new().name("tk-lsp".into()).stack_size(STACK).spawn(serve);
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) | Err(_) => 101,
    }
}
