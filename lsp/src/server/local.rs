//! A server without threads: [`Local`] answers while it is called, for a program in a browser.

use lsp_server::{Connection, Message};

use super::Config;
use super::lifecycle::Server;

/// A server and the other end of its connection.
pub struct Local {
    server: Server,
    client: Connection,
}

impl Local {
    /// A server that has heard nothing yet.
    pub fn new(config: Config) -> Local {
        let (connection, client) = Connection::memory();
        Local { server: Server::new(connection, config), client }
    }

    /// Handles messages of the client; returns what the server says, diagnostics of changed files included.
    pub fn handle(&mut self, messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
        for message in messages {
            // The server holds the other end.
            let _ = self.client.sender.send(message);
        }
        self.server.settle();
        self.client.receiver.try_iter().collect()
    }
}
