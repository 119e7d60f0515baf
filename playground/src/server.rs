//! The language server of the page.

use std::sync::Arc;

use lsp_server::Message;
use tk_lsp::ide::Disk;
use tk_lsp::server::{Config, Library, Local};

/// There are no files but the open ones.
struct Nothing;

impl Disk for Nothing {
    fn read(&self, path: &str) -> Result<String, String> {
        Err(format!("{path} does not exist: a program of the playground is one file"))
    }
    fn list(&self, _: &str) -> Vec<String> {
        vec![]
    }
}

/// A server that answers while it is called.
pub struct Server(Local);

impl Server {
    /// A server that has heard nothing yet.
    pub fn new() -> Server {
        Server(Local::new(Config {
            disk: Arc::new(Nothing),
            library: Library::default(),
            // The page links to those of the site.
            page: |_| None,
            costs: Some(tk_lsp::predicted::of_kernels),
            version: env!("CARGO_PKG_VERSION").into(),
        }))
    }

    /// Handles an array of messages; returns an array. What is no message is left out.
    pub fn serve(&mut self, messages: &str) -> String {
        let messages: Vec<Message> = serde_json::from_str(messages).unwrap_or_default();
        format!("[{}]", self.0.handle(messages).join(","))
    }
}
