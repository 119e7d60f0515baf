//! The capabilities of the server at initialization, and the names of semantic tokens.

use gen_lsp_types as lsp;

use super::position::Encoding;
use crate::ide::tokens::{Modifiers, TokenKind};

/// The kinds of tokens in the order of their numbers; all are words of the protocol, so that every theme has colours.
pub const TOKEN_TYPES: &[&str] = &[
    "keyword",
    "comment",
    "string",
    "number",
    "operator",
    "decorator",
    "namespace",
    "function",
    "method",
    "struct",
    "type",
    "property",
    "parameter",
    "variable",
    "typeParameter",
    "enumMember",
];

/// The modifiers in the order of their bits; `mutable` is a word of ours.
pub const TOKEN_MODIFIERS: &[&str] =
    &["declaration", "readonly", "mutable", "defaultLibrary", "documentation"];

/// The number of a kind of tokens.
///
/// Compile-time numbers and constants of a file are `enumMember`: themes color it as constants, unlike variables.
pub fn token_type(kind: TokenKind) -> u32 {
    match kind {
        TokenKind::Keyword => 0,
        TokenKind::Comment => 1,
        TokenKind::String => 2,
        TokenKind::Number => 3,
        TokenKind::Operator => 4,
        TokenKind::Decorator => 5,
        TokenKind::Module => 6,
        TokenKind::Function => 7,
        TokenKind::Method => 8,
        TokenKind::Struct => 9,
        TokenKind::Type => 10,
        TokenKind::Property => 11,
        TokenKind::Parameter => 12,
        TokenKind::Variable => 13,
        TokenKind::TypeParameter => 14,
        TokenKind::Const | TokenKind::CompileTime => 15,
    }
}

/// The bits of modifiers.
pub fn token_modifiers(m: Modifiers) -> u32 {
    [m.declaration, m.fixed, m.mutable, m.library, m.documentation]
        .iter()
        .enumerate()
        .map(|(bit, is)| u32::from(*is) << bit)
        .sum()
}

/// The files of the language.
fn sources() -> lsp::FileOperationFilter {
    let pattern = lsp::FileOperationPattern { glob: "**/*.tk".into(), matches: None, options: None };
    lsp::FileOperationFilter { scheme: Some("file".into()), pattern }
}

/// What concerns folders and files.
fn workspace() -> lsp::WorkspaceOptions {
    lsp::WorkspaceOptions {
        workspace_folders: Some(lsp::WorkspaceFoldersServerCapabilities {
            supported: Some(true),
            change_notifications: Some(lsp::ChangeNotifications::Bool(true)),
        }),
        file_operations: Some(lsp::FileOperationOptions {
            will_rename: Some(lsp::FileOperationRegistrationOptions { filters: vec![sources()] }),
            ..Default::default()
        }),
        text_document_content: Some(lsp::TextDocumentContentOptions::new(vec!["std".into()]).into()),
    }
}

/// The capabilities of the server.
pub fn capabilities(encoding: Encoding) -> lsp::ServerCapabilities {
    let words = |all: &[&str]| all.iter().map(|w| (*w).to_string()).collect::<Vec<_>>();
    let tokens = lsp::SemanticTokensOptions {
        legend: lsp::SemanticTokensLegend {
            token_types: words(TOKEN_TYPES),
            token_modifiers: words(TOKEN_MODIFIERS),
        },
        range: Some(lsp::SemanticTokensOptionsRange::Bool(true)),
        full: Some(lsp::SemanticTokensFullDelta { delta: Some(true) }.into()),
        ..Default::default()
    };
    lsp::ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
            Encoding::Utf16 => lsp::PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(lsp::TextDocumentSync::Options(lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::Incremental),
            save: Some(lsp::Save::Bool(true)),
            ..Default::default()
        })),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some(words(&[".", ":", "@"])),
            resolve_provider: Some(true),
            ..Default::default()
        }),
        signature_help_provider: Some(lsp::SignatureHelpOptions {
            trigger_characters: Some(words(&["(", "[", ","])),
            ..Default::default()
        }),
        hover_provider: Some(lsp::HoverProvider::Bool(true)),
        definition_provider: Some(lsp::DefinitionProvider::Bool(true)),
        type_definition_provider: Some(lsp::TypeDefinitionProvider::Bool(true)),
        references_provider: Some(lsp::ReferencesProvider::Bool(true)),
        document_highlight_provider: Some(lsp::DocumentHighlightProvider::Bool(true)),
        document_symbol_provider: Some(lsp::DocumentSymbolProvider::Bool(true)),
        workspace_symbol_provider: Some(lsp::WorkspaceSymbolProvider::Bool(true)),
        folding_range_provider: Some(lsp::FoldingRangeProvider::Bool(true)),
        selection_range_provider: Some(lsp::SelectionRangeProvider::Bool(true)),
        call_hierarchy_provider: Some(lsp::CallHierarchyProvider::Bool(true)),
        inlay_hint_provider: Some(lsp::InlayHintProvider::Bool(true)),
        document_formatting_provider: Some(lsp::DocumentFormattingProvider::Bool(true)),
        document_range_formatting_provider: Some(lsp::DocumentRangeFormattingProvider::Bool(true)),
        document_on_type_formatting_provider: Some(lsp::DocumentOnTypeFormattingOptions {
            first_trigger_character: ";".into(),
            more_trigger_character: Some(words(&["}"])),
        }),
        document_link_provider: Some(lsp::DocumentLinkOptions::default()),
        code_lens_provider: Some(lsp::CodeLensOptions::default()),
        code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(lsp::CodeActionOptions {
            code_action_kinds: Some(vec![
                lsp::CodeActionKind::QuickFix,
                lsp::CodeActionKind::Refactor,
                lsp::CodeActionKind::SourceFixAll,
                lsp::CodeActionKind::SourceOrganizeImports,
            ]),
            ..Default::default()
        })),
        rename_provider: Some(lsp::RenameProvider::RenameOptions(lsp::RenameOptions {
            prepare_provider: Some(true),
            ..Default::default()
        })),
        semantic_tokens_provider: Some(lsp::SemanticTokensProvider::SemanticTokensOptions(tokens)),
        diagnostic_provider: Some(lsp::DiagnosticProvider::DiagnosticOptions(lsp::DiagnosticOptions {
            identifier: Some("tk".into()),
            inter_file_dependencies: true,
            workspace_diagnostics: true,
            ..Default::default()
        })),
        workspace: Some(workspace()),
        ..Default::default()
    }
}
