//! Notifications about files: opened, changed, closed, changed on disk.

use std::collections::BTreeSet;

use gen_lsp_types as lsp;
use lsp_server::ErrorCode;
use serde_json::Value;

use super::answer::{Answer, Refusal};
use super::documents::Document;
use super::lifecycle::Server;
use super::position::Lines;
use super::slack;
use super::uri;

/// The suffix of source files, whatever language the client takes them for.
const SUFFIX: &str = ".tk";

impl Server {
    /// A file belongs to the client from now on.
    pub fn did_open(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let lsp::TextDocumentItem { uri, language_id, version, text } = params.text_document;
        let path = self.path(&uri);
        let named = matches!(&language_id, lsp::LanguageKind::Custom(word) if word == "tk");
        if !path.ends_with(SUFFIX) && !named {
            return;
        }
        let lines = Lines::new(text.as_str().into(), self.client.encoding).into();
        self.ws.open(&path, text);
        self.documents.insert(path.clone(), Document { uri, version, lines, sent: None });
        self.changed(&path);
    }

    /// The text of an open file changes.
    pub fn did_change(&mut self, params: lsp::DidChangeTextDocumentParams) -> Answer<()> {
        let document = params.text_document;
        let path = self.path(&document.text_document_identifier.uri);
        let last = self.ws.last(&path);
        let Some(open) = self.documents.get_mut(&path) else {
            return Err(Refusal::new(ErrorCode::InvalidRequest, format!("{path} is not open")));
        };
        for change in params.content_changes {
            // The places of a tree are those of the text that it was made from.
            let tree = last.as_ref().filter(|a| *a.root_text() == **open.lines.text()).and_then(|a| a.root());
            let lines = match change {
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    slack::edited(&open.lines, open.lines.bytes(part.range), &part.text, tree)
                }
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(all) => {
                    slack::rewritten(&open.lines, &all.text, tree)
                }
            };
            open.lines = lines.into();
        }
        drop(last);
        open.version = document.version;
        self.ws.open(&path, open.lines.text().to_string());
        self.changed(&path);
        Ok(())
    }

    /// An open file was stored. A client that cannot report changes of other files has not reported those that were
    /// read from the disk: they are read again.
    pub fn did_save(&mut self, params: lsp::DidSaveTextDocumentParams) {
        if self.client.watches {
            return;
        }
        let open: Vec<String> = self.documents.iter().map(|(p, _)| p.clone()).collect();
        let mut read = BTreeSet::new();
        for path in &open {
            read.extend(self.ws.analysis(path).read.iter().filter(|p| !open.contains(p)).cloned());
        }
        read.iter().for_each(|path| self.ws.changed_on_disk(path));
        let path = self.path(&params.text_document.uri);
        self.changed(&path);
    }

    /// A file belongs to the disk again.
    pub fn did_close(&mut self, params: lsp::DidCloseTextDocumentParams) {
        let path = self.path(&params.text_document.uri);
        let Some(document) = self.documents.remove(&path) else { return };
        self.ws.close(&path);
        self.costs.forget(&path);
        self.kept.forget(&path);
        if !self.client.pulls {
            let nothing =
                lsp::PublishDiagnosticsParams { uri: document.uri, version: None, diagnostics: vec![] };
            self.notify("textDocument/publishDiagnostics", nothing);
        }
        self.changed(&path);
    }

    /// Files changed on disk.
    pub fn did_change_files(&mut self, params: lsp::DidChangeWatchedFilesParams) {
        for event in params.changes {
            let path = self.path(&event.uri);
            self.ws.changed_on_disk(&path);
            self.changed(&path);
        }
        self.refresh();
    }

    /// The workspace has other folders.
    pub fn did_change_folders(&mut self, params: lsp::DidChangeWorkspaceFoldersParams) {
        let paths = |all: Vec<lsp::WorkspaceFolder>| all.into_iter().map(|f| uri::path(f.uri.as_ref()));
        let removed: Vec<String> = paths(params.event.removed).collect();
        let added: Vec<String> = paths(params.event.added).collect();
        self.client.folders.retain(|f| !removed.contains(f) && !added.contains(f));
        self.client.folders.extend(added);
        self.rebuild();
    }

    /// The diagnostics of a file may be others now, and of each open file that uses it.
    fn changed(&mut self, path: &str) {
        self.due.retain(|p| p != path);
        self.due.push_front(path.to_string());
        let rest: Vec<String> = self.documents.iter().map(|(p, _)| p.clone()).collect();
        for p in rest {
            if !self.due.contains(&p) {
                self.due.push_back(p);
            }
        }
    }

    /// Lets the client ask again for what it was told.
    pub fn refresh(&mut self) {
        for method in self.client.refreshes.clone() {
            self.ask(method, &Value::Null);
        }
    }
}
