//! The capabilities of the client at initialization.
//!
//! Accepts any shape: unknown values count as absent, so that no client is turned away.

use serde_json::Value;

use super::position::Encoding;
use super::uri;

/// The capabilities of a client.
#[derive(Clone, Debug)]
pub struct Client {
    /// The encoding of positions.
    pub encoding: Encoding,
    /// It asks for diagnostics, so none are sent.
    pub pulls: bool,
    /// Edits may name versions of documents.
    pub versions: bool,
    /// Text may be Markdown.
    pub markdown: bool,
    /// Whether it asks for the documentation of a completion when it shows it.
    pub resolves: bool,
    /// Whether it shows other places of a diagnostic below it.
    pub related: bool,
    /// Completions may have places to stop at.
    pub snippets: bool,
    /// Symbols may contain symbols.
    pub tree: bool,
    /// It colors by a grammar too, so what that knows is left to it: its colors do not change when the tokens come.
    pub has_grammar: bool,
    /// Whole lines are folded.
    pub folds_lines: bool,
    /// It shows the progress of work that takes long.
    pub progress: bool,
    /// Changes of files can be asked for.
    pub watches: bool,
    /// It asks for the text of files that are on no disk.
    pub contents: bool,
    /// The methods by which the server may ask the client to repeat requests.
    pub refreshes: Vec<&'static str>,
    /// The folders of the workspace, as paths.
    pub folders: Vec<String>,
}

const REFRESHES: &[(&str, &str)] = &[
    ("diagnostics", "workspace/diagnostic/refresh"),
    ("semanticTokens", "workspace/semanticTokens/refresh"),
    ("inlayHint", "workspace/inlayHint/refresh"),
    ("codeLens", "workspace/codeLens/refresh"),
];

impl Client {
    /// Reads the parameters of `initialize`.
    pub fn new(params: &Value) -> Client {
        let at = |path: &str| params.pointer(&format!("/capabilities/{path}"));
        let is = |path: &str| at(path).and_then(Value::as_bool).unwrap_or(false);
        let lists = |path: &str, word: &str| {
            at(path).and_then(Value::as_array).is_some_and(|all| all.iter().any(|w| w == word))
        };
        let utf8 = lists("general/positionEncodings", "utf-8");
        let hover = "textDocument/hover/contentFormat";
        Client {
            encoding: if utf8 { Encoding::Utf8 } else { Encoding::Utf16 },
            pulls: at("textDocument/diagnostic").is_some_and(Value::is_object),
            versions: is("workspace/workspaceEdit/documentChanges"),
            related: is("textDocument/publishDiagnostics/relatedInformation"),
            markdown: at(hover).is_none() || lists(hover, "markdown"),
            resolves: lists(
                "textDocument/completion/completionItem/resolveSupport/properties",
                "documentation",
            ),
            snippets: is("textDocument/completion/completionItem/snippetSupport"),
            tree: is("textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
            has_grammar: is("textDocument/semanticTokens/augmentsSyntaxTokens"),
            folds_lines: is("textDocument/foldingRange/lineFoldingOnly"),
            progress: is("window/workDoneProgress"),
            watches: is("workspace/didChangeWatchedFiles/dynamicRegistration"),
            contents: at("workspace/textDocumentContent").is_some_and(Value::is_object),
            refreshes: REFRESHES
                .iter()
                .filter(|(name, _)| is(&format!("workspace/{name}/refreshSupport")))
                .map(|(_, method)| *method)
                .collect(),
            folders: folders(params),
        }
    }
}

fn folders(params: &Value) -> Vec<String> {
    let named = params.get("workspaceFolders").and_then(Value::as_array);
    let mut uris: Vec<&str> =
        named.into_iter().flatten().filter_map(|f| f.get("uri").and_then(Value::as_str)).collect();
    if uris.is_empty() {
        uris.extend(params.get("rootUri").and_then(Value::as_str));
    }
    uris.into_iter().map(uri::path).collect()
}
