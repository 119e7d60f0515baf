//! The answers about what is shown around the text: hover, completion, signatures, hints, colours, folds, lenses,
//! actions.

use gen_lsp_types as lsp;
use serde_json::json;

use super::answer::Answer;
use super::capabilities::{token_modifiers, token_type};
use super::lifecycle::Server;
use super::position::{Lines, clip};
use crate::ide::actions::{Action, ActionKind};
use crate::ide::complete::{Completion, CompletionKind};
use crate::ide::folding::FoldKind;
use crate::ide::hints::HintKind;
use crate::ide::lens::{CodeForm, Lens, LensCommand};
use crate::ide::tokens::Token;
use crate::ide::{
    actions, complete, costs, folding, hints, hover, lens, navigate, selection, signature, source_actions,
    tokens,
};

/// The command of a lens that runs tests. The client runs it, in a terminal: the server never runs code of a program.
const RUN_TESTS: &str = "tk.runTests";

/// The command of a lens that opens machine code; the client runs the compiler for it.
fn open_code(form: CodeForm) -> &'static str {
    match form {
        CodeForm::Assembly => "tk.openPtx",
        CodeForm::Sass => "tk.openSass",
        CodeForm::Tile => "tk.openTileIr",
    }
}

/// What the lens of costs is about, for clients that show tooltips of commands.
const PREDICTED: &str =
    "Expected from the schedule of the kernel: no assembler is asked, and nothing is launched.";

impl Server {
    /// `textDocument/hover`
    pub fn hover(&mut self, p: lsp::HoverParams) -> Answer<Option<lsp::Hover>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let Some(mut found) = hover::hover(&mut self.ws, &path, at) else { return Ok(None) };
        found.markdown += &self.tile_bytes(&path, at).unwrap_or_default();
        let contents = lsp::Contents::MarkupContent(self.markup(found.markdown));
        Ok(Some(lsp::Hover { contents, range: self.range(&found.place) }))
    }

    /// How large a tile is in each thread, by the line that declares it, where costs are known.
    fn tile_bytes(&mut self, path: &str, at: usize) -> Option<String> {
        if !self.costs.options.hints && !self.costs.options.lens {
            return None;
        }
        let line = hover::tile_line(&mut self.ws, path, at)?;
        let (kernels, is_newest) = self.costs(path);
        let bytes = kernels.iter().find_map(|k| k.tiles.get(&line)).filter(|_| is_newest)?;
        Some(format!("\n\nThe largest tile of its line has {bytes} bytes in each thread."))
    }

    /// `textDocument/completion`
    pub fn completion(&mut self, p: lsp::CompletionParams) -> Answer<Option<lsp::CompletionResponse>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let mut found = complete::complete(&mut self.ws, &path, at);
        // A list has some hundred items, of which few are looked at.
        if self.client.resolves {
            self.offered.list += 1;
            self.offered.docs = found.iter_mut().map(|c| std::mem::take(&mut c.doc)).collect();
        }
        let items: Vec<_> =
            found.into_iter().enumerate().filter_map(|(i, c)| self.completion_item(i, c)).collect();
        Ok(Some(items.into()))
    }

    /// `completionItem/resolve`: the documentation of an item of the last list.
    pub fn resolve(&mut self, mut item: lsp::CompletionItem) -> Answer<lsp::CompletionItem> {
        let data =
            item.data.as_ref().and_then(|data| serde_json::from_value::<(u64, usize)>(data.clone()).ok());
        if let Some((list, number)) = data
            && list == self.offered.list
            && let Some(doc) = self.offered.docs.get(number).cloned()
        {
            item.documentation = self.documentation(doc);
        }
        Ok(item)
    }

    /// `textDocument/documentLink`: the files that `use` names.
    pub fn links(&mut self, p: lsp::DocumentLinkParams) -> Answer<Option<Vec<lsp::DocumentLink>>> {
        let Some((path, _)) = self.document(&p.text_document) else { return Ok(None) };
        let found = navigate::links(&mut self.ws, &path);
        let link = |(place, file): (crate::ide::Place, String)| {
            let (range, target) = (self.range(&place)?, self.uri(&file));
            Some(lsp::DocumentLink { range, target: Some(target?), tooltip: None, data: None })
        };
        Ok(Some(found.into_iter().filter_map(link).collect()))
    }

    fn completion_item(&mut self, number: usize, c: Completion) -> Option<lsp::CompletionItem> {
        let range = self.range(&c.replace)?;
        let snippet = c.snippet && self.client.snippets;
        let new_text = if c.snippet && !snippet { plain(&c.insert) } else { c.insert };
        let extra: Vec<_> = c
            .extra
            .iter()
            .filter_map(|e| Some(lsp::TextEdit { range: self.range(&e.place)?, new_text: e.text.clone() }))
            .collect();
        let format = if snippet { lsp::InsertTextFormat::Snippet } else { lsp::InsertTextFormat::PlainText };
        Some(lsp::CompletionItem {
            label: c.label,
            kind: Some(completion_kind(c.kind)),
            detail: (!c.detail.is_empty()).then_some(c.detail),
            documentation: self.documentation(c.doc),
            // Clients sort by the label otherwise; the order has a meaning.
            sort_text: Some(format!("{number:05}")),
            insert_text_format: Some(format),
            text_edit: Some(lsp::TextEdit { range, new_text }.into()),
            additional_text_edits: (!extra.is_empty()).then_some(extra),
            data: self.client.resolves.then(|| serde_json::json!([self.offered.list, number])),
            ..Default::default()
        })
    }

    /// `textDocument/signatureHelp`
    pub fn signature(&mut self, p: lsp::SignatureHelpParams) -> Answer<Option<lsp::SignatureHelp>> {
        let Some((path, at)) = self.at(&p.text_document_position_params) else { return Ok(None) };
        let Some(found) = signature::signature(&mut self.ws, &path, at) else { return Ok(None) };
        // Inside of a label the protocol counts units of 16 bits, whatever was agreed for positions.
        let units = |at: usize| clip(found.label.get(..at).unwrap_or(&found.label).encode_utf16().count());
        let parameters = found.params.iter().map(|(range, doc)| lsp::ParameterInformation {
            label: lsp::ParameterInformationLabel::Tuple((units(range.start), units(range.end))),
            documentation: self.documentation(doc.clone()),
        });
        let active = found.active.map(|n| lsp::ActiveParameter::Int(clip(n)));
        let information = lsp::SignatureInformation {
            label: found.label.clone(),
            documentation: self.documentation(found.doc.clone()),
            parameters: Some(parameters.collect()),
            active_parameter: active,
        };
        Ok(Some(lsp::SignatureHelp {
            signatures: vec![information],
            active_signature: Some(0),
            active_parameter: active,
        }))
    }

    /// `textDocument/inlayHint`
    pub fn hints(&mut self, p: lsp::InlayHintParams) -> Answer<Option<Vec<lsp::InlayHint>>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let found = hints::hints(&mut self.ws, &path, lines.bytes(p.range));
        let costs = self.hints_of_costs(&path, &lines, p.range);
        let hints = found.into_iter().map(|h| lsp::InlayHint {
            position: lines.position(h.offset),
            label: lsp::Label::String(h.label),
            kind: match h.kind {
                HintKind::Type => Some(lsp::InlayHintKind::Type),
                // What the protocol calls a parameter is the name of one.
                HintKind::Argument => None,
            },
            text_edits: None,
            tooltip: None,
            padding_left: None,
            padding_right: h.before.then_some(true),
            data: None,
        });
        Ok(Some(hints.chain(costs).collect()))
    }

    /// The costs of the lines of a range, if the client wants to see them and they are those of the newest text.
    fn hints_of_costs(&mut self, path: &str, lines: &Lines, range: lsp::Range) -> Vec<lsp::InlayHint> {
        if !self.costs.options.hints {
            return vec![];
        }
        let (kernels, is_newest) = self.costs(path);
        let lines_of = range.start.line as usize + 1..=range.end.line as usize + 1;
        let found = costs::of_lines(if is_newest { &kernels } else { &[] }, &lines_of);
        let hint = |cost: costs::LineCost| {
            let line = clip(cost.line.saturating_sub(1));
            let end = lines.offset(lsp::Position { line, character: u32::MAX });
            lsp::InlayHint {
                position: lines.position(end),
                label: lsp::Label::String(cost.label),
                kind: None,
                text_edits: None,
                tooltip: Some(lsp::Tooltip::String(cost.tooltip)),
                padding_left: Some(true),
                padding_right: None,
                data: None,
            }
        };
        found.into_iter().map(hint).collect()
    }

    /// `textDocument/semanticTokens/full`
    pub fn tokens(&mut self, p: lsp::SemanticTokensParams) -> Answer<Option<lsp::SemanticTokens>> {
        let Some((path, _)) = self.document(&p.text_document) else { return Ok(None) };
        Ok(self.all_tokens(&path))
    }

    /// The tokens of a file, which the client has from now on.
    pub fn all_tokens(&mut self, path: &str) -> Option<lsp::SemanticTokens> {
        let lines = self.lines(path)?;
        let data = match self.unchanged_tokens(path, &lines) {
            Some((old, part)) => {
                let mut tokens = self.sent_tokens(path, Some(part.clone()));
                tokens.retain(|t| part.contains(&t.start));
                old.with(&lines, &part, encode(&lines, tokens))
            }
            None => encode(&lines, self.sent_tokens(path, None)),
        };
        Some(self.remember_tokens(path, data))
    }

    /// `textDocument/semanticTokens/range`
    pub fn tokens_in(&mut self, p: lsp::SemanticTokensRangeParams) -> Answer<Option<lsp::SemanticTokens>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let data = encode(&lines, self.sent_tokens(&path, Some(lines.bytes(p.range))));
        Ok(Some(lsp::SemanticTokens { result_id: None, data }))
    }

    /// The tokens that this client wants.
    fn sent_tokens(&mut self, path: &str, range: Option<std::ops::Range<usize>>) -> Vec<Token> {
        let mut tokens = tokens::tokens(&mut self.ws, path, range);
        tokens.retain(|t| !self.client.has_grammar || !t.kind.is_lexical());
        tokens
    }

    /// `textDocument/foldingRange`
    pub fn folding(&mut self, p: lsp::FoldingRangeParams) -> Answer<Option<Vec<lsp::FoldingRange>>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let whole = self.client.folds_lines;
        let folds = folding::folding(&mut self.ws, &path).into_iter().filter_map(|f| {
            let lsp::Range { start, end } = lines.range(f.start, f.end);
            // What follows in the last line would be folded away with it.
            let spared = u32::from(whole && lines.more_in_line(f.end));
            let end_line = end.line.saturating_sub(spared);
            (end_line > start.line).then(|| lsp::FoldingRange {
                start_line: start.line,
                start_character: (!whole).then_some(start.character),
                end_line,
                end_character: (!whole).then_some(end.character),
                kind: Some(match f.kind {
                    FoldKind::Region => lsp::FoldingRangeKind::Region,
                    FoldKind::Comment => lsp::FoldingRangeKind::Comment,
                    FoldKind::Imports => lsp::FoldingRangeKind::Imports,
                }),
                collapsed_text: None,
            })
        });
        Ok(Some(folds.collect()))
    }

    /// `textDocument/selectionRange`
    pub fn selection(&mut self, p: lsp::SelectionRangeParams) -> Answer<Option<Vec<lsp::SelectionRange>>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let ranges = p.positions.iter().map(|position| {
            let at = lines.offset(*position);
            let around = selection::selection(&mut self.ws, &path, at);
            let outer = around.iter().rev().fold(None, |parent, place| {
                let range = lines.range(place.start, place.end);
                Some(Box::new(lsp::SelectionRange { range, parent }))
            });
            outer.map_or(lsp::SelectionRange { range: lines.range(at, at), parent: None }, |r| *r)
        });
        Ok(Some(ranges.collect()))
    }

    /// `textDocument/codeLens`
    pub fn lenses(&mut self, p: lsp::CodeLensParams) -> Answer<Option<Vec<lsp::CodeLens>>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let mut found = lens::lens(&mut self.ws, &path);
        // Without the compiler there is no code.
        if self.costs.options.code && self.config.costs.is_some() {
            let target = self.costs.options.target.clone();
            found.extend(costs::code_lenses(&mut self.ws, &path, &target));
        }
        if self.costs.options.lens {
            let (kernels, _) = self.costs(&path);
            found.extend(costs::lenses(&mut self.ws, &path, &kernels));
        }
        let lenses = found.into_iter().map(|Lens { place, title, command }| {
            let (command, arguments) = match command {
                LensCommand::RunTests { path, filter, exact } => {
                    let mut arguments = json!({ "uri": self.uri(&path), "filter": filter });
                    if let (true, serde_json::Value::Object(fields)) = (exact, &mut arguments) {
                        fields.insert("exact".into(), true.into());
                    }
                    (RUN_TESTS, Some(vec![arguments]))
                }
                LensCommand::OpenCode { path, kernel, form } => {
                    let arguments = json!({ "uri": self.uri(&path), "kernel": kernel });
                    (open_code(form), Some(vec![arguments]))
                }
                LensCommand::Info => ("", None),
            };
            let tooltip = command.is_empty().then(|| PREDICTED.to_string());
            let command = lsp::Command { title, tooltip, command: command.into(), arguments };
            lsp::CodeLens { range: lines.range(place.start, place.end), command: Some(command), data: None }
        });
        Ok(Some(lenses.collect()))
    }

    /// `textDocument/codeAction`
    pub fn actions(&mut self, p: lsp::CodeActionParams) -> Answer<Option<Vec<lsp::CodeActionResponse>>> {
        let Some((path, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let asked = p.context.trigger_kind != Some(lsp::CodeActionTriggerKind::Automatic);
        let mut found = actions::actions(&mut self.ws, &path, lines.bytes(p.range), asked);
        // Of the whole file, so only for who asks: on save, or in the menu of source actions.
        if let Some(only) = &p.context.only
            && only.iter().any(|o| covers(o, ActionKind::FixAll) || covers(o, ActionKind::OrganizeImports))
        {
            // Of the text that the client has, since an edit writes what is between the changes again.
            let mut whole = source_actions::source_actions(&self.ws, &path, &lines.plain());
            for place in whole.iter_mut().flat_map(|a| &mut a.edits).map(|e| &mut e.place) {
                (place.start, place.end) = (lines.of_plain(place.start), lines.of_plain(place.end));
            }
            found.extend(whole);
        }
        let wanted =
            |a: &Action| p.context.only.as_ref().is_none_or(|only| only.iter().any(|o| covers(o, a.kind)));
        let found: Vec<Action> = found.into_iter().filter(wanted).collect();
        let mended = found.iter().any(|a| a.diagnostic.is_some());
        let diagnostics = if mended { self.found_diagnostics(&path) } else { vec![] };
        let mut answer = vec![];
        for (i, action) in found.iter().enumerate() {
            // The first fix of a diagnostic is the best one.
            let first = !found.iter().take(i).any(|a| a.diagnostic == action.diagnostic);
            let mends = action.diagnostic.and_then(|n| diagnostics.get(n)).cloned();
            let Ok(edit) = self.workspace_edit(&action.edits) else { continue };
            let action = lsp::CodeAction {
                title: action.title.clone(),
                kind: Some(action_kind(action.kind)),
                is_preferred: (mends.is_some() && first).then_some(true),
                diagnostics: mends.map(|d| vec![d]),
                edit: Some(edit),
                ..Default::default()
            };
            answer.push(lsp::CodeActionResponse::CodeAction(action));
        }
        Ok(Some(answer))
    }

    fn markup(&self, value: String) -> lsp::MarkupContent {
        if self.client.markdown {
            return lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value };
        }
        lsp::MarkupContent { kind: lsp::MarkupKind::PlainText, value: without_markup(&value) }
    }

    fn documentation(&self, text: String) -> Option<lsp::Documentation> {
        (!text.is_empty()).then(|| self.markup(text).into())
    }
}

/// A text in Markdown for a client that shows it as it is: without fences, and without the marks of code and of what is
/// emphasised.
fn without_markup(markdown: &str) -> String {
    let mut in_code = false;
    let mut out = String::with_capacity(markdown.len());
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        out += &if in_code { line.to_string() } else { line.replace("**", "").replace('`', "") };
        out.push('\n');
    }
    out.trim_end().to_string()
}

/// Numbers five for each token: lines and columns from the token before it, length, type, modifiers.
fn encode(lines: &Lines, tokens: Vec<Token>) -> Vec<lsp::SemanticToken> {
    let mut before = lsp::Position::default();
    let mut walk = lines.walk();
    let data = tokens.iter().filter_map(|t| {
        let (start, end) = (walk.position(t.start), walk.position(t.end));
        if start.line != end.line || start >= end || start < before {
            return None;
        }
        let delta_line = start.line - before.line;
        let column = if delta_line == 0 { before.character } else { 0 };
        before = start;
        Some(lsp::SemanticToken {
            delta_line,
            delta_start: start.character - column,
            length: end.character - start.character,
            token_type: token_type(t.kind),
            token_modifiers_bitset: token_modifiers(t.modifiers),
        })
    });
    data.collect()
}

fn action_kind(kind: ActionKind) -> lsp::CodeActionKind {
    match kind {
        ActionKind::QuickFix => lsp::CodeActionKind::QuickFix,
        ActionKind::Refactor => lsp::CodeActionKind::Refactor,
        ActionKind::Inline => lsp::CodeActionKind::RefactorInline,
        ActionKind::Extract => lsp::CodeActionKind::RefactorExtract,
        ActionKind::FixAll => lsp::CodeActionKind::SourceFixAll,
        ActionKind::OrganizeImports => lsp::CodeActionKind::SourceOrganizeImports,
    }
}

/// Returns true if a client that asks for a kind asks for this one: kinds are paths, and the empty one is all.
fn covers(asked: &lsp::CodeActionKind, kind: ActionKind) -> bool {
    let path = |kind: &lsp::CodeActionKind| {
        serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
    };
    let (asked, kind) = (path(asked), path(&action_kind(kind)));
    asked.is_empty() || kind.strip_prefix(&asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A snippet without the places to stop at, for clients that have none: `${1:name}` is `name`.
fn plain(snippet: &str) -> String {
    let mut out = String::new();
    let mut rest = snippet;
    // How many `${` are open: another `}` is text.
    let mut open = 0;
    while let Some(at) = rest.find(['$', '\\', '}']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let mut chars = found.chars();
        match chars.next() {
            Some('\\') => out.extend(chars.next()),
            Some('}') if open > 0 => open -= 1,
            Some('}') => out.push('}'),
            Some('$') => {
                open += usize::from(chars.as_str().starts_with('{'));
                let digits =
                    chars.as_str().trim_start_matches('{').trim_start_matches(|c: char| c.is_ascii_digit());
                chars = digits.strip_prefix(':').unwrap_or(digits).chars();
            }
            _ => {}
        }
        rest = chars.as_str();
    }
    out + rest
}

fn completion_kind(kind: CompletionKind) -> lsp::CompletionItemKind {
    match kind {
        CompletionKind::Keyword | CompletionKind::Word => lsp::CompletionItemKind::Keyword,
        CompletionKind::Function | CompletionKind::Kernel | CompletionKind::Builtin => {
            lsp::CompletionItemKind::Function
        }
        CompletionKind::Method => lsp::CompletionItemKind::Method,
        CompletionKind::Field => lsp::CompletionItemKind::Field,
        CompletionKind::Property | CompletionKind::Argument => lsp::CompletionItemKind::Property,
        CompletionKind::Variable | CompletionKind::Parameter => lsp::CompletionItemKind::Variable,
        CompletionKind::CompileTime => lsp::CompletionItemKind::TypeParameter,
        CompletionKind::Const => lsp::CompletionItemKind::Constant,
        CompletionKind::Struct => lsp::CompletionItemKind::Struct,
        CompletionKind::Type => lsp::CompletionItemKind::Class,
        CompletionKind::Module => lsp::CompletionItemKind::Module,
        CompletionKind::Snippet => lsp::CompletionItemKind::Snippet,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_snippet_without_places() {
        let snippet = "for ${1:i} in range(0, ${2:n}) {\n    $0\n} \\$ \\} f($1)${0}";
        assert_eq!(super::plain(snippet), "for i in range(0, n) {\n    \n} $ } f()");
    }
}
