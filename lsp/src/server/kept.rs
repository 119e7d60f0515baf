//! Answers about whole files that are given again while what they were made from has not changed, and the difference of
//! semantic tokens to those that the client has.
//!
//! An editor asks for the outline, the folds and the tokens of a file after every key and whenever the file is shown.
//! The outline and the folds are made from the text. The tokens are kept beside the analysis that they were made from, so
//! they are outdated when a file changes that the analysis read. An answer is kept as text, which takes a tenth of the memory of a tree, and does not keep what it was made from alive.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use gen_lsp_types as lsp;

use super::answer::Answer;
use super::lifecycle::Server;
use super::position::Lines;
use super::said::Json;
use crate::ide::Analysis;

/// Numbers of a token in the protocol.
const NUMBERS: usize = 5;

/// The answers that were given last.
#[derive(Default)]
pub struct Kept {
    /// By method and path.
    answers: BTreeMap<(&'static str, String), (Origin, Json)>,
    /// The tokens that the client has of each file.
    tokens: BTreeMap<String, Tokens>,
    /// The number of the last list of tokens.
    lists: u64,
}

/// What an answer was made from.
pub enum Origin {
    Text(Weak<Lines>),
    Program(Weak<Analysis>),
}

impl Origin {
    fn is(&self, other: &Origin) -> bool {
        match (self, other) {
            (Origin::Text(a), Origin::Text(b)) => a.ptr_eq(b),
            (Origin::Program(a), Origin::Program(b)) => a.ptr_eq(b),
            (Origin::Text(_), Origin::Program(_)) | (Origin::Program(_), Origin::Text(_)) => false,
        }
    }
}

/// Returns true if something was made from an analysis.
fn is_of(of: &Weak<Analysis>, analysis: &Arc<Analysis>) -> bool {
    of.ptr_eq(&Arc::downgrade(analysis))
}

/// The tokens of a file.
pub struct Tokens {
    of: Weak<Analysis>,
    id: String,
    /// The number of the last analysis before them that checked everything.
    full: u64,
    /// The lines of the file.
    lines: u32,
    data: Vec<lsp::SemanticToken>,
}

impl Tokens {
    /// The tokens of the text as it is now: those of a part are new, which begins and ends where lines do, the others are
    /// as they were.
    pub fn with(
        self,
        lines: &Lines,
        part: &Range<usize>,
        new: Vec<lsp::SemanticToken>,
    ) -> Vec<lsp::SemanticToken> {
        let all = lines.position(lines.text().len()).line;
        let start = lines.position(part.start).line;
        // The lines behind the part are as many as they were.
        let behind = all - lines.position(part.end).line;
        let end = if part.end == lines.text().len() { u32::MAX } else { self.lines.saturating_sub(behind) };
        let mut line = 0;
        let at = |t: &lsp::SemanticToken| {
            line += t.delta_line;
            line
        };
        let places: Vec<u32> = self.data.iter().map(at).collect();
        let (head, tail) = (places.partition_point(|l| *l < start), places.partition_point(|l| *l < end));
        let mut data = Vec::with_capacity(self.data.len() + new.len());
        let mut last = head.checked_sub(1).and_then(|i| places.get(i)).copied().unwrap_or(0);
        data.extend_from_slice(self.data.get(..head).unwrap_or_default());
        // The first of each is relative to the last before it.
        let of_new: u32 = new.iter().map(|t| t.delta_line).sum();
        let first = new.first().map(|t| lsp::SemanticToken { delta_line: t.delta_line - last, ..*t });
        data.extend(first);
        data.extend_from_slice(new.get(1..).unwrap_or_default());
        last = if new.is_empty() { last } else { of_new };
        let moved = |l: u32| (l + all).saturating_sub(self.lines);
        let first = self.data.get(tail).zip(places.get(tail));
        data.extend(
            first.map(|(t, l)| lsp::SemanticToken { delta_line: moved(*l).saturating_sub(last), ..*t }),
        );
        data.extend_from_slice(self.data.get(tail + 1..).unwrap_or_default());
        data
    }
}

impl Kept {
    /// Forgets a file that is no longer open.
    pub fn forget(&mut self, path: &str) {
        self.answers.retain(|(_, p), _| p != path);
        self.tokens.remove(path);
    }
}

impl Server {
    /// An answer about a file: the last one, if the file is open and what it is made from has not changed.
    pub fn kept(
        &mut self,
        method: &'static str,
        document: &lsp::TextDocumentIdentifier,
        of_text: bool,
        make: impl FnOnce(&mut Server) -> Answer<Json>,
    ) -> Answer<Json> {
        let path = self.path(&document.uri);
        let Some(open) = self.documents.get(&path) else { return make(self) };
        let origin = match of_text {
            true => Origin::Text(Arc::downgrade(&open.lines)),
            false => Origin::Program(Arc::downgrade(&self.ws.analysis(&path))),
        };
        if let Some((of, answer)) = self.kept.answers.get(&(method, path.clone()))
            && of.is(&origin)
        {
            return Ok(answer.clone());
        }
        let answer = make(self)?;
        self.kept.answers.insert((method, path), (origin, answer.clone()));
        Ok(answer)
    }

    /// Remembers the tokens of a file as those that the client has; returns them with their number.
    pub fn remember_tokens(&mut self, path: &str, data: Vec<lsp::SemanticToken>) -> lsp::SemanticTokens {
        self.kept.lists += 1;
        let (id, analysis) = (self.kept.lists.to_string(), self.ws.analysis(path));
        if let Some(document) = self.documents.get(path) {
            let lines = document.lines.position(document.lines.text().len()).line;
            let (of, full) = (Arc::downgrade(&analysis), analysis.since.0);
            let tokens = Tokens { of, id: id.clone(), full, lines, data: data.clone() };
            self.kept.tokens.insert(path.to_string(), tokens);
        }
        lsp::SemanticTokens { result_id: Some(id), data }
    }

    /// The last tokens of a file of which only a part has other ones now, and that part.
    pub fn unchanged_tokens(&mut self, path: &str, lines: &Lines) -> Option<(Tokens, Range<usize>)> {
        let analysis = self.ws.analysis(path);
        let (full, changed) = &analysis.since;
        // The places of the analysis have to be those of the client's text.
        let same = self.kept.tokens.get(path)?.full == *full && !changed.is_empty();
        if !same || analysis.root_text() != &**lines.text() {
            return None;
        }
        Some((self.kept.tokens.remove(path)?, analysis.near(changed)))
    }

    /// `textDocument/semanticTokens/full/delta`: what is new since the last list, or all if the client has another one.
    pub fn tokens_delta(
        &mut self,
        p: lsp::SemanticTokensDeltaParams,
    ) -> Answer<Option<lsp::SemanticTokensDeltaResponse>> {
        let Some((path, _)) = self.document(&p.text_document) else { return Ok(None) };
        let analysis = self.ws.analysis(&path);
        if let Some(before) = self.kept.tokens.get(&path)
            && before.id == p.previous_result_id
            && is_of(&before.of, &analysis)
        {
            let result_id = Some(before.id.clone());
            return Ok(Some(lsp::SemanticTokensDelta { result_id, edits: vec![] }.into()));
        }
        let before = self.kept.tokens.get(&path).filter(|before| before.id == p.previous_result_id);
        let before = before.map(|before| before.data.clone());
        let Some(now) = self.all_tokens(&path) else { return Ok(None) };
        let Some(before) = before else { return Ok(Some(now.into())) };
        let edits = difference(&before, &now.data).into_iter().collect();
        Ok(Some(lsp::SemanticTokensDelta { result_id: now.result_id, edits }.into()))
    }
}

/// The edit that makes the new list from the old one: all between what both begin with and what both end with.
fn difference(old: &[lsp::SemanticToken], new: &[lsp::SemanticToken]) -> Option<lsp::SemanticTokensEdit> {
    let same = |pairs: &mut dyn Iterator<Item = (&lsp::SemanticToken, &lsp::SemanticToken)>| {
        pairs.take_while(|(a, b)| a == b).count()
    };
    let head = same(&mut old.iter().zip(new));
    let (old, new) = (old.get(head..)?, new.get(head..)?);
    let tail = same(&mut old.iter().rev().zip(new.iter().rev()));
    let (deleted, added) = (old.len() - tail, new.get(..new.len() - tail)?);
    if deleted == 0 && added.is_empty() {
        return None;
    }
    let number = |n: usize| u32::try_from(n * NUMBERS).unwrap_or(u32::MAX);
    let data: Vec<u32> = added.iter().flat_map(numbers).collect();
    let data = (!data.is_empty()).then_some(data);
    Some(lsp::SemanticTokensEdit { start: number(head), delete_count: number(deleted), data })
}

/// A token as the protocol counts it.
fn numbers(t: &lsp::SemanticToken) -> [u32; NUMBERS] {
    [t.delta_line, t.delta_start, t.length, t.token_type, t.token_modifiers_bitset]
}
