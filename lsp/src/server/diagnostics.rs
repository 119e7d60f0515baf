//! Delivers diagnostics to the client: pushed when idle, or pulled.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use gen_lsp_types as lsp;
use serde_json::json;
use tk_syntax::codes::{self, Code};
use tk_syntax::{Severity, SourceMap, Span};

use super::Config;
use super::answer::Answer;
use super::lifecycle::Server;
use crate::ide::diagnostics::underlined;
use crate::ide::workspace::MAX_KEPT;
use crate::ide::{Analysis, Place, Workspace};

/// The codes of what can be removed; editors show it faded.
const UNNECESSARY: &[Code] = &[
    codes::UNUSED_VARIABLE,
    codes::UNUSED_MUT,
    codes::UNUSED_IMPORT,
    codes::UNUSED_PRIVATE,
    codes::UNUSED_RESULT,
];

impl Server {
    /// Sends the diagnostics of an open file, unless the client asks for them or has them.
    pub fn push(&mut self, path: &str) {
        if self.client.pulls {
            self.due.clear();
            return;
        }
        self.documents.forget_others();
        let Some(document) = self.documents.get(path) else { return };
        let (uri, version) = (document.uri.clone(), document.version);
        let diagnostics = self.diagnostics(path);
        let now = Some((version, diagnostics.clone()));
        let Some(document) = self.documents.get_mut(path) else { return };
        if document.sent != now {
            document.sent = now;
            let params = lsp::PublishDiagnosticsParams { uri, version: Some(version), diagnostics };
            self.notify("textDocument/publishDiagnostics", params);
        }
    }

    /// Answers with the diagnostics of a file, or that they have not changed.
    pub fn pull(&mut self, params: lsp::DocumentDiagnosticParams) -> Answer<lsp::DocumentDiagnosticReport> {
        let document = self.document(&params.text_document);
        let items = document.map(|(path, _)| self.diagnostics(&path)).unwrap_or_default();
        let id = result_id(&items);
        Ok(if params.previous_result_id.as_ref() == Some(&id) {
            lsp::RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report: lsp::UnchangedDocumentDiagnosticReport {
                    result_id: id,
                },
            }
            .into()
        } else {
            lsp::RelatedFullDocumentDiagnosticReport {
                related_documents: None,
                full_document_diagnostic_report: lsp::FullDocumentDiagnosticReport {
                    result_id: Some(id),
                    items,
                },
            }
            .into()
        })
    }

    /// Answers with the diagnostics of the files of the workspace, of as many as analyses are kept: clients ask again and
    /// again.
    pub fn pull_workspace(
        &mut self,
        params: lsp::WorkspaceDiagnosticParams,
    ) -> Answer<lsp::WorkspaceDiagnosticReport> {
        let known: BTreeMap<String, String> =
            params.previous_result_ids.into_iter().map(|p| (self.path(&p.uri), p.value)).collect();
        let mut items = vec![];
        for path in self.ws.files().into_iter().filter(|p| !Workspace::is_std(p)).take(MAX_KEPT) {
            let Some(uri) = self.uri(&path) else { continue };
            let version = self.documents.get(&path).map(|d| d.version);
            let found = self.known_diagnostics(&path);
            let result_id = result_id(&found);
            items.push(if known.get(&path) == Some(&result_id) {
                let unchanged_document_diagnostic_report =
                    lsp::UnchangedDocumentDiagnosticReport { result_id };
                lsp::WorkspaceUnchangedDocumentDiagnosticReport {
                    uri,
                    version,
                    unchanged_document_diagnostic_report,
                }
                .into()
            } else {
                let full_document_diagnostic_report =
                    lsp::FullDocumentDiagnosticReport { result_id: Some(result_id), items: found };
                lsp::WorkspaceFullDocumentDiagnosticReport { uri, version, full_document_diagnostic_report }
                    .into()
            });
        }
        Ok(lsp::WorkspaceDiagnosticReport { items })
    }

    /// The diagnostics of a file; of one that is not open those that were found before, if nothing has changed.
    fn known_diagnostics(&mut self, path: &str) -> Vec<lsp::Diagnostic> {
        if self.documents.get(path).is_some() {
            return self.diagnostics(path);
        }
        self.found_diagnostics(path)
    }

    /// The diagnostics of a file, those that were found before if nothing has changed.
    pub fn found_diagnostics(&mut self, path: &str) -> Vec<lsp::Diagnostic> {
        let number = self.ws.number(path);
        match self.found.get(path) {
            Some((of, found)) if number == Some(*of) => found.clone(),
            Some(_) | None => self.diagnostics(path),
        }
    }

    /// The diagnostics of a file.
    pub fn diagnostics(&mut self, path: &str) -> Vec<lsp::Diagnostic> {
        let found = crate::ide::diagnostics::diagnostics(&mut self.ws, path);
        let analysis = self.ws.analysis(path);
        let titles = crate::ide::actions::offered(&self.ws, &analysis, path, &found);
        let shown = found.iter().zip(titles).filter_map(|(d, titles)| self.diagnostic(d, titles, &analysis));
        let shown: Vec<lsp::Diagnostic> = shown.collect();
        let number = self.ws.number(path).map(|n| (path.to_string(), (n, shown.clone())));
        self.found.extend(number);
        shown
    }

    /// The file that explains a code; searched once.
    fn page(&mut self, code: Code) -> Option<lsp::Uri> {
        let Config { library, page, .. } = &self.config;
        let find = || Some(library.page(code.0, page(code.0)?)?.into());
        self.pages.entry(code.0).or_insert_with(find).clone()
    }

    fn diagnostic(
        &mut self,
        d: &tk_syntax::Diagnostic,
        titles: Vec<String>,
        analysis: &Analysis,
    ) -> Option<lsp::Diagnostic> {
        let sources = &analysis.checked.sources;
        let mut message = d.message.clone();
        let primary = (d.primary.span, &d.primary.text);
        let mut labels: Vec<(Span, &String)> = d.secondary.iter().map(|l| (l.span, &l.text)).collect();
        let more = std::iter::once(primary).chain(d.notes.iter().map(|note| (d.primary.span, note)));
        let more: Vec<_> = more.filter(|(_, text)| !text.is_empty()).collect();
        // The list of problems has a line for each message; what else there is to say is below it.
        if self.client.related {
            labels.splice(0..0, more);
        } else {
            labels.clear();
            more.iter().for_each(|(_, text)| message += &format!("\n{text}"));
        }
        let range = self.range(&place(sources, underlined(analysis, d))?)?;
        let related = labels.into_iter().filter_map(|(span, text)| {
            let location = self.location(&place(sources, span)?)?;
            let text = if text.is_empty() { "here" } else { text };
            Some(lsp::DiagnosticRelatedInformation { location, message: text.into() })
        });
        let related: Vec<_> = related.collect();
        let page = self.page(d.code);
        Some(lsp::Diagnostic {
            range,
            severity: Some(match d.severity {
                Severity::Error => lsp::DiagnosticSeverity::Error,
                Severity::Warning => lsp::DiagnosticSeverity::Warning,
                Severity::Note => lsp::DiagnosticSeverity::Information,
            }),
            code: Some(lsp::Code::String(d.code.0.into())),
            code_description: page.map(|href| lsp::CodeDescription { href }),
            source: Some("tk".into()),
            message: lsp::Message::String(message),
            tags: UNNECESSARY.contains(&d.code).then(|| vec![lsp::DiagnosticTag::Unnecessary]),
            related_information: (!related.is_empty()).then_some(related),
            data: (!titles.is_empty()).then(|| json!({ "fixes": titles })),
        })
    }
}

/// The number of a list of diagnostics: equal lists have equal ones.
fn result_id(items: &[lsp::Diagnostic]) -> String {
    let mut hasher = DefaultHasher::new();
    items.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn place(sources: &SourceMap, span: Span) -> Option<Place> {
    let path = sources.get(span.file)?.name.to_string();
    Some(Place { path, start: span.start as usize, end: span.end as usize })
}
