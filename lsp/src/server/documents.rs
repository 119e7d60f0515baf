//! The open files, and the lines of files that an answer names.

use std::collections::BTreeMap;
use std::sync::Arc;

use gen_lsp_types as lsp;

use super::position::Lines;

/// An open file.
#[derive(Clone, Debug)]
pub struct Document {
    /// The URI under which the client opened it.
    pub uri: lsp::Uri,
    /// The version of its text.
    pub version: i32,
    /// Its text.
    pub lines: Arc<Lines>,
    /// The diagnostics that the client was sent last, with the version.
    pub sent: Option<(i32, Vec<lsp::Diagnostic>)>,
}

/// The open files by path.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    open: BTreeMap<String, Document>,
    /// Files that are not open, as they were when the message was begun that is being answered.
    others: BTreeMap<String, Option<Arc<Lines>>>,
}

impl Documents {
    /// Takes a file from the client.
    pub fn insert(&mut self, path: String, document: Document) {
        self.open.insert(path, document);
    }

    /// Gives a file back; whether it was open.
    pub fn remove(&mut self, path: &str) -> Option<Document> {
        self.open.remove(path)
    }

    /// An open file.
    pub fn get(&self, path: &str) -> Option<&Document> {
        self.open.get(path)
    }

    /// An open file.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Document> {
        self.open.get_mut(path)
    }

    /// All open files.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Document)> {
        self.open.iter()
    }

    /// The lines of a file; of one that is not open they are made at most once for a message.
    pub fn lines(&mut self, path: &str, make: impl FnOnce() -> Option<Lines>) -> Option<Arc<Lines>> {
        match self.open.get(path) {
            Some(document) => Some(document.lines.clone()),
            None => self.others.entry(path.to_string()).or_insert_with(|| make().map(Arc::new)).clone(),
        }
    }

    /// Begins another message.
    pub fn forget_others(&mut self) {
        self.others.clear();
    }
}
