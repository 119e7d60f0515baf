//! The table of requests: which method is answered by which function.

use gen_lsp_types::{self as lsp, Request};
use lsp_server::ErrorCode;
use serde_json::Value;

use super::answer::{Answer, Refusal, params};
use super::lifecycle::Server;
use super::said::{self, Json};

impl Server {
    /// Answers a request of an initialized client.
    pub fn dispatch(&mut self, method: &str, given: Value) -> Answer<Json> {
        match method {
            "textDocument/hover" => self.on::<lsp::HoverRequest>(given, Server::hover),
            "textDocument/completion" => self.on::<lsp::CompletionRequest>(given, Server::completion),
            "textDocument/signatureHelp" => self.on::<lsp::SignatureHelpRequest>(given, Server::signature),
            "textDocument/definition" => self.on::<lsp::DefinitionRequest>(given, Server::definition),
            "textDocument/rename" => self.on::<lsp::RenameRequest>(given, Server::rename),
            "workspace/textDocumentContent" => {
                self.on::<lsp::TextDocumentContentRequest>(given, Server::content)
            }
            "textDocument/semanticTokens/full" => {
                self.on_kept::<lsp::SemanticTokensRequest>("tokens", false, given, Server::tokens)
            }
            "textDocument/inlayHint" => self.on::<lsp::InlayHintRequest>(given, Server::hints),
            "textDocument/codeAction" => self.on::<lsp::CodeActionRequest>(given, Server::actions),
            "textDocument/formatting" => self.on::<lsp::DocumentFormattingRequest>(given, Server::format),
            "completionItem/resolve" => self.on::<lsp::CompletionResolveRequest>(given, Server::resolve),
            // A page has one file, and is as small as possible.
            _ if cfg!(not(target_family = "wasm")) => self.dispatch_for_editors(method, given),
            _ => Err(Refusal::new(ErrorCode::MethodNotFound, format!("unknown method `{method}`"))),
        }
    }

    /// Answers what editors ask beside what `playground/` does.
    fn dispatch_for_editors(&mut self, method: &str, given: Value) -> Answer<Json> {
        match method {
            "textDocument/typeDefinition" => {
                self.on::<lsp::TypeDefinitionRequest>(given, Server::type_definition)
            }
            "textDocument/references" => self.on::<lsp::ReferencesRequest>(given, Server::references),
            "textDocument/prepareRename" => {
                self.on::<lsp::PrepareRenameRequest>(given, Server::prepare_rename)
            }
            "textDocument/diagnostic" => self.on::<lsp::DocumentDiagnosticRequest>(given, Server::pull),
            "workspace/diagnostic" => {
                self.on::<lsp::WorkspaceDiagnosticRequest>(given, Server::pull_workspace)
            }
            "textDocument/documentHighlight" => {
                self.on::<lsp::DocumentHighlightRequest>(given, Server::highlights)
            }
            "textDocument/documentSymbol" => {
                self.on_kept::<lsp::DocumentSymbolRequest>("symbols", true, given, Server::symbols)
            }
            "workspace/willRenameFiles" => self.on::<lsp::WillRenameFilesRequest>(given, Server::will_rename),
            "workspace/symbol" => self.on::<lsp::WorkspaceSymbolRequest>(given, Server::workspace_symbols),
            "textDocument/foldingRange" => {
                self.on_kept::<lsp::FoldingRangeRequest>("folds", true, given, Server::folding)
            }
            "textDocument/selectionRange" => self.on::<lsp::SelectionRangeRequest>(given, Server::selection),
            "textDocument/prepareCallHierarchy" => {
                self.on::<lsp::CallHierarchyPrepareRequest>(given, Server::prepare_calls)
            }
            "callHierarchy/incomingCalls" => {
                self.on::<lsp::CallHierarchyIncomingCallsRequest>(given, Server::incoming)
            }
            "callHierarchy/outgoingCalls" => {
                self.on::<lsp::CallHierarchyOutgoingCallsRequest>(given, Server::outgoing)
            }
            "textDocument/semanticTokens/full/delta" => {
                self.on::<lsp::SemanticTokensDeltaRequest>(given, Server::tokens_delta)
            }
            "textDocument/semanticTokens/range" => {
                self.on::<lsp::SemanticTokensRangeRequest>(given, Server::tokens_in)
            }
            "textDocument/codeLens" => self.on::<lsp::CodeLensRequest>(given, Server::lenses),
            "textDocument/rangeFormatting" => {
                self.on::<lsp::DocumentRangeFormattingRequest>(given, Server::format_range)
            }
            "textDocument/onTypeFormatting" => {
                self.on::<lsp::DocumentOnTypeFormattingRequest>(given, Server::format_typed)
            }
            "textDocument/documentLink" => self.on::<lsp::DocumentLinkRequest>(given, Server::links),
            _ => Err(Refusal::new(ErrorCode::MethodNotFound, format!("unknown method `{method}`"))),
        }
    }

    fn on<R: Request>(
        &mut self,
        given: Value,
        answer: fn(&mut Server, R::Params) -> Answer<R::Result>,
    ) -> Answer<Json> {
        let result = answer(self, params(given)?)?;
        said::result(result)
    }

    /// Answers what depends on one file alone: on its text, or on its program.
    fn on_kept<R: Request>(
        &mut self,
        name: &'static str,
        of_text: bool,
        given: Value,
        answer: fn(&mut Server, R::Params) -> Answer<R::Result>,
    ) -> Answer<Json> {
        let document: lsp::TextDocumentIdentifier =
            params(given.get("textDocument").cloned().unwrap_or(Value::Null))?;
        self.kept(name, &document, of_text, |s| s.on::<R>(given, answer))
    }
}
