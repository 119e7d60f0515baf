//! The answers about names: where they are defined and used, other names, outlines, calls.

use gen_lsp_types as lsp;
use lsp_server::ErrorCode;

use super::answer::{Answer, Refusal};
use super::lifecycle::Server;
use super::position::Lines;
use crate::ide::symbols::{Symbol, SymbolKind};
use crate::ide::{Place, calls, navigate, rename, symbols};

/// No more symbols of a workspace are sent: the user goes on typing.
const SYMBOLS: usize = 512;

impl Server {
    /// `textDocument/definition`
    pub fn definition(&mut self, p: lsp::DefinitionParams) -> Answer<Option<lsp::DefinitionResponse>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let found = navigate::definition(&mut self.ws, &path, at);
        let found = lsp::Definition::LocationList(self.locations(&found));
        Ok(Some(lsp::DefinitionResponse::Definition(found)))
    }

    /// `textDocument/typeDefinition`
    pub fn type_definition(
        &mut self,
        p: lsp::TypeDefinitionParams,
    ) -> Answer<Option<lsp::TypeDefinitionResponse>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let found = navigate::type_definition(&mut self.ws, &path, at);
        let found = lsp::Definition::LocationList(self.locations(&found));
        Ok(Some(lsp::TypeDefinitionResponse::Definition(found)))
    }

    /// `textDocument/references`
    pub fn references(&mut self, p: lsp::ReferenceParams) -> Answer<Option<Vec<lsp::Location>>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let found = navigate::references(&mut self.ws, &path, at, p.context.include_declaration);
        Ok(Some(self.locations(&found)))
    }

    /// `textDocument/documentHighlight`
    pub fn highlights(
        &mut self,
        p: lsp::DocumentHighlightParams,
    ) -> Answer<Option<Vec<lsp::DocumentHighlight>>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let found = navigate::highlight(&mut self.ws, &path, at);
        let highlights = found.iter().filter_map(|(place, writes)| {
            let kind =
                if *writes { lsp::DocumentHighlightKind::Write } else { lsp::DocumentHighlightKind::Read };
            Some(lsp::DocumentHighlight { range: self.range(place)?, kind: Some(kind) })
        });
        Ok(Some(highlights.collect()))
    }

    /// `textDocument/prepareRename`
    pub fn prepare_rename(
        &mut self,
        p: lsp::PrepareRenameParams,
    ) -> Answer<Option<lsp::PrepareRenameResult>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let place = rename::prepare(&mut self.ws, &path, at).map_err(refused)?;
        let Some(lines) = self.lines(&place.path) else { return Ok(None) };
        let placeholder = lines.text().get(place.start..place.end).unwrap_or("").to_string();
        let range = lines.range(place.start, place.end);
        Ok(Some(lsp::PrepareRenamePlaceholder { range, placeholder }.into()))
    }

    /// `textDocument/rename`
    pub fn rename(&mut self, p: lsp::RenameParams) -> Answer<Option<lsp::WorkspaceEdit>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let edits = rename::rename(&mut self.ws, &path, at, &p.new_name).map_err(refused)?;
        self.workspace_edit(&edits).map(Some)
    }

    /// `textDocument/documentSymbol`
    pub fn symbols(&mut self, p: lsp::DocumentSymbolParams) -> Answer<Option<lsp::DocumentSymbolResponse>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let found = symbols::document(&mut self.ws, &path);
        if self.client.tree {
            return Ok(Some(found.iter().map(|s| symbol(&lines, s)).collect::<Vec<_>>().into()));
        }
        let mut flat = vec![];
        found.iter().for_each(|s| flatten(&lines, &p.text_document.uri, s, None, &mut flat));
        Ok(Some(flat.into()))
    }

    /// `workspace/symbol`
    pub fn workspace_symbols(
        &mut self,
        p: lsp::WorkspaceSymbolParams,
    ) -> Answer<Option<lsp::WorkspaceSymbolResponse>> {
        let found = symbols::workspace(&mut self.ws, &p.query);
        let symbols = found.iter().take(SYMBOLS).filter_map(|s| {
            Some(lsp::WorkspaceSymbol {
                location: lsp::WorkspaceSymbolLocation::Location(self.location(&s.name_place)?),
                data: None,
                base_symbol_information: information(s, None),
            })
        });
        Ok(Some(symbols.collect::<Vec<_>>().into()))
    }

    /// `workspace/willRenameFiles`
    pub fn will_rename(&mut self, p: lsp::RenameFilesParams) -> Answer<Option<lsp::WorkspaceEdit>> {
        let mut edits = vec![];
        for file in &p.files {
            let (old, new) = (self.path(&file.old_uri), self.path(&file.new_uri));
            let (own, lost) = rename::rename_file(&mut self.ws, &old, &new);
            edits.extend(own);
            if let Some(message) = lost {
                let kind = lsp::MessageType::Warning;
                self.notify("window/showMessage", lsp::ShowMessageParams { kind, message });
            }
        }
        if edits.is_empty() { Ok(None) } else { self.workspace_edit(&edits).map(Some) }
    }

    /// `textDocument/prepareCallHierarchy`
    pub fn prepare_calls(
        &mut self,
        p: lsp::CallHierarchyPrepareParams,
    ) -> Answer<Option<Vec<lsp::CallHierarchyItem>>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let found = calls::prepare(&mut self.ws, &path, at);
        Ok(found.and_then(|s| self.call_item(&s)).map(|item| vec![item]))
    }

    /// `callHierarchy/incomingCalls`
    pub fn incoming(
        &mut self,
        p: lsp::CallHierarchyIncomingCallsParams,
    ) -> Answer<Option<Vec<lsp::CallHierarchyIncomingCall>>> {
        let Some((path, at)) = self.item_at(&p.item) else { return Ok(None) };
        let found = calls::incoming(&mut self.ws, &path, at);
        let calls = found.iter().filter_map(|call| {
            let from = self.call_item(&call.symbol)?;
            Some(lsp::CallHierarchyIncomingCall { from, from_ranges: self.ranges(&call.places) })
        });
        Ok(Some(calls.collect()))
    }

    /// `callHierarchy/outgoingCalls`
    pub fn outgoing(
        &mut self,
        p: lsp::CallHierarchyOutgoingCallsParams,
    ) -> Answer<Option<Vec<lsp::CallHierarchyOutgoingCall>>> {
        let Some((path, at)) = self.item_at(&p.item) else { return Ok(None) };
        let found = calls::outgoing(&mut self.ws, &path, at);
        let calls = found.iter().filter_map(|call| {
            let to = self.call_item(&call.symbol)?;
            Some(lsp::CallHierarchyOutgoingCall { to, from_ranges: self.ranges(&call.places) })
        });
        Ok(Some(calls.collect()))
    }

    fn item_at(&mut self, item: &lsp::CallHierarchyItem) -> Option<(String, usize)> {
        let (path, lines) = self.document(&lsp::TextDocumentIdentifier { uri: item.uri.clone() })?;
        Some((path, lines.offset(item.selection_range.start)))
    }

    fn ranges(&mut self, places: &[Place]) -> Vec<lsp::Range> {
        places.iter().filter_map(|p| self.range(p)).collect()
    }

    fn call_item(&mut self, s: &Symbol) -> Option<lsp::CallHierarchyItem> {
        Some(lsp::CallHierarchyItem {
            name: s.name.clone(),
            kind: kind(s.kind),
            tags: None,
            detail: some(&s.detail),
            uri: self.uri(&s.place.path)?,
            range: self.range(&s.place)?,
            selection_range: self.range(&s.name_place)?,
            data: None,
        })
    }
}

#[allow(deprecated, reason = "the type has no other constructor")]
fn symbol(lines: &Lines, s: &Symbol) -> lsp::DocumentSymbol {
    let children: Vec<_> = s.children.iter().map(|c| symbol(lines, c)).collect();
    lsp::DocumentSymbol {
        name: s.name.clone(),
        detail: some(&s.detail),
        kind: kind(s.kind),
        tags: None,
        deprecated: None,
        range: lines.range(s.place.start, s.place.end),
        selection_range: lines.range(s.name_place.start, s.name_place.end),
        children: (!children.is_empty()).then_some(children),
    }
}

/// The symbol of a file and what it contains in one list, for clients that know no trees.
#[allow(deprecated, reason = "the type has no other constructor")]
fn flatten(
    lines: &Lines,
    uri: &lsp::Uri,
    s: &Symbol,
    container: Option<&str>,
    out: &mut Vec<lsp::SymbolInformation>,
) {
    let location = lsp::Location { uri: uri.clone(), range: lines.range(s.place.start, s.place.end) };
    let base_symbol_information = information(s, container);
    out.push(lsp::SymbolInformation { deprecated: None, location, base_symbol_information });
    s.children.iter().for_each(|c| flatten(lines, uri, c, Some(&s.name), out));
}

fn information(s: &Symbol, container: Option<&str>) -> lsp::BaseSymbolInformation {
    lsp::BaseSymbolInformation {
        name: s.name.clone(),
        kind: kind(s.kind),
        tags: None,
        container_name: container.map(str::to_string),
    }
}

fn kind(kind: SymbolKind) -> lsp::SymbolKind {
    match kind {
        SymbolKind::Function | SymbolKind::Kernel => lsp::SymbolKind::Function,
        SymbolKind::Struct => lsp::SymbolKind::Struct,
        SymbolKind::Field => lsp::SymbolKind::Field,
        SymbolKind::Method | SymbolKind::Test => lsp::SymbolKind::Method,
        SymbolKind::Const => lsp::SymbolKind::Constant,
        SymbolKind::Module => lsp::SymbolKind::Module,
        SymbolKind::Export => lsp::SymbolKind::Event,
        SymbolKind::CompileTime => lsp::SymbolKind::TypeParameter,
        SymbolKind::Parameter | SymbolKind::Variable => lsp::SymbolKind::Variable,
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn refused(why: String) -> Refusal {
    Refusal::new(ErrorCode::RequestFailed, why)
}
