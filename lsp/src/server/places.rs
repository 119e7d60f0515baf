//! Converts between URIs and positions of a client and paths and bytes of [`crate::ide`].

use std::collections::BTreeMap;
use std::sync::Arc;

use gen_lsp_types as lsp;
use lsp_server::ErrorCode;

use super::answer::{Answer, Refusal};
use super::lifecycle::Server;
use super::position::Lines;
use super::uri;
use crate::ide::workspace::REFERENCE;
use crate::ide::{Place, TextEdit};

/// Before the paths of the standard library.
const STD: &str = "std:/";

impl Server {
    /// The path of a URI. A file of the standard library has one path, wherever it was opened.
    pub fn path(&self, uri: &lsp::Uri) -> String {
        let path = uri::path(uri.as_ref());
        let known = |p: &String| self.ws.text(p).is_some();
        let std = self.config.library.std_of(&path).map(|name| format!("{STD}{name}"));
        std.filter(known).unwrap_or(path)
    }

    /// The URI of a path; a file of the standard library may have none. One without a place on the disk has its path as
    /// URI, if the client asks for the text of such files.
    pub fn uri(&self, path: &str) -> Option<lsp::Uri> {
        if let Some(document) = self.documents.get(path) {
            return Some(document.uri.clone());
        }
        let Some(name) = path.strip_prefix(STD) else { return Some(uri::uri(path).into()) };
        let file = self.config.library.std(name, &self.ws.text(path)?);
        file.or_else(|| self.client.contents.then(|| path.to_string())).map(Into::into)
    }

    /// `workspace/textDocumentContent`: a file of the standard library.
    pub fn content(&mut self, p: lsp::TextDocumentContentParams) -> Answer<lsp::TextDocumentContentResult> {
        let path = self.path(&p.uri);
        let text = path.starts_with(STD).then(|| self.ws.text(&path)).flatten();
        let why =
            || Refusal::new(ErrorCode::RequestFailed, format!("{path} is no file of the standard library"));
        Ok(lsp::TextDocumentContentResult::new(text.ok_or_else(why)?))
    }

    /// The lines of a file that is open or a source file of the disk.
    pub fn lines(&mut self, path: &str) -> Option<Arc<Lines>> {
        let (ws, encoding) = (&self.ws, self.client.encoding);
        self.documents.lines(path, || {
            let is_read = path.ends_with(".tk") || path == REFERENCE;
            let text = is_read.then(|| ws.text(path)).flatten()?;
            Some(Lines::new(Arc::from(&*text), encoding))
        })
    }

    /// The path of a document with its lines; nothing for what is no source file.
    pub fn document(&mut self, document: &lsp::TextDocumentIdentifier) -> Option<(String, Arc<Lines>)> {
        let path = self.path(&document.uri);
        let lines = self.lines(&path)?;
        Some((path, lines))
    }

    /// The same, with the text that the client has.
    pub fn plain(&mut self, document: &lsp::TextDocumentIdentifier) -> Option<(String, Arc<Lines>)> {
        let (path, lines) = self.document(document)?;
        if lines.slack().is_empty() {
            return Some((path, lines));
        }
        Some((path, Lines::new(lines.plain().into(), lines.encoding()).into()))
    }

    /// The path and the byte of a position.
    pub fn at(&mut self, at: &lsp::TextDocumentPositionParams) -> Option<(String, usize)> {
        let (path, lines) = self.document(&at.text_document)?;
        Some((path, lines.offset(at.position)))
    }

    /// The range of a place.
    pub fn range(&mut self, place: &Place) -> Option<lsp::Range> {
        Some(self.lines(&place.path)?.range(place.start, place.end))
    }

    /// The location of a place.
    pub fn location(&mut self, place: &Place) -> Option<lsp::Location> {
        Some(lsp::Location { uri: self.uri(&place.path)?, range: self.range(place)? })
    }

    /// The locations of places.
    pub fn locations(&mut self, places: &[Place]) -> Vec<lsp::Location> {
        places.iter().filter_map(|p| self.location(p)).collect()
    }

    /// Edits of files, for the versions of them that the client has.
    pub fn workspace_edit(&mut self, edits: &[TextEdit]) -> Answer<lsp::WorkspaceEdit> {
        let mut files: BTreeMap<&str, Vec<lsp::TextEdit>> = BTreeMap::new();
        for edit in edits {
            let path = edit.place.path.as_str();
            let range = self.range(&edit.place).filter(|_| !path.starts_with(STD));
            let why = || Refusal::new(ErrorCode::RequestFailed, format!("{path} cannot be changed"));
            let edit = lsp::TextEdit { range: range.ok_or_else(why)?, new_text: edit.text.clone() };
            files.entry(path).or_default().push(edit);
        }
        let (mut changes, mut versioned) = (std::collections::HashMap::new(), vec![]);
        for (path, edits) in files {
            let Some(uri) = self.uri(path) else { continue };
            if !self.client.versions {
                changes.insert(uri, edits);
                continue;
            }
            let text_document = lsp::OptionalVersionedTextDocumentIdentifier {
                version: self.documents.get(path).map(|d| d.version),
                text_document_identifier: lsp::TextDocumentIdentifier { uri },
            };
            let edits = edits.into_iter().map(lsp::Edit::TextEdit).collect();
            versioned
                .push(lsp::DocumentChange::TextDocumentEdit(lsp::TextDocumentEdit { text_document, edits }));
        }
        Ok(match self.client.versions {
            true => lsp::WorkspaceEdit { document_changes: Some(versioned), ..Default::default() },
            false => lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() },
        })
    }
}
