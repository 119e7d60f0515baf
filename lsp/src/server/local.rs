//! A server without threads: [`Local`] answers while it is called, for a program in a browser.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use lsp_server::Message;

use super::Config;
use super::inbox::Inbox;
use super::lifecycle::Server;

/// A server and what it said.
pub struct Local {
    server: Server,
    inbox: Arc<Inbox>,
    said: Receiver<String>,
}

impl Local {
    /// A server that has heard nothing yet.
    pub fn new(config: Config) -> Local {
        let (answers, said) = channel();
        let inbox = Inbox::new(answers.clone());
        Local { server: Server::new(inbox.clone(), answers, config), inbox, said }
    }

    /// Handles messages of the client; returns what the server says, diagnostics of changed files included: texts of JSON.
    pub fn handle(&mut self, messages: impl IntoIterator<Item = Message>) -> Vec<String> {
        messages.into_iter().for_each(|message| self.inbox.deliver(message));
        self.server.settle();
        self.said.try_iter().collect()
    }
}
