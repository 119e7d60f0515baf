//! Answers about whole files that are given again while the program of the file has not changed, and the difference of
//! semantic tokens to those that the client has.
//!
//! An editor asks for the outline, the folds and the tokens of a file after every key and whenever the file is shown.
//! An answer is kept beside the analysis that it was made from, so it is outdated when a file changes that the analysis
//! read. It is kept as text, which takes a tenth of the memory of a tree, and does not keep the analysis alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use gen_lsp_types as lsp;

use super::answer::Answer;
use super::lifecycle::Server;
use super::said::Json;
use crate::ide::Analysis;

/// Numbers of a token in the protocol.
const NUMBERS: usize = 5;

/// The answers that were given last.
#[derive(Default)]
pub struct Kept {
    /// By method and path.
    answers: BTreeMap<(&'static str, String), (Weak<Analysis>, Json)>,
    /// The tokens that the client has of each file.
    tokens: BTreeMap<String, Tokens>,
    /// The number of the last list of tokens.
    lists: u64,
}

/// Returns true if something was made from an analysis.
fn is_of(of: &Weak<Analysis>, analysis: &Arc<Analysis>) -> bool {
    of.ptr_eq(&Arc::downgrade(analysis))
}

/// The tokens of a file.
struct Tokens {
    of: Weak<Analysis>,
    id: String,
    data: Vec<lsp::SemanticToken>,
}

impl Kept {
    /// Forgets a file that is no longer open.
    pub fn forget(&mut self, path: &str) {
        self.answers.retain(|(_, p), _| p != path);
        self.tokens.remove(path);
    }
}

impl Server {
    /// An answer about a file: the last one, if the file is open and its program has not changed.
    pub fn kept(
        &mut self,
        method: &'static str,
        document: &lsp::TextDocumentIdentifier,
        make: impl FnOnce(&mut Server) -> Answer<Json>,
    ) -> Answer<Json> {
        let path = self.path(&document.uri);
        if self.documents.get(&path).is_none() {
            return make(self);
        }
        let analysis = self.ws.analysis(&path);
        if let Some((of, answer)) = self.kept.answers.get(&(method, path.clone()))
            && is_of(of, &analysis)
        {
            return Ok(answer.clone());
        }
        let answer = make(self)?;
        self.kept.answers.insert((method, path), (Arc::downgrade(&analysis), answer.clone()));
        Ok(answer)
    }

    /// Remembers the tokens of a file as those that the client has; returns them with their number.
    pub fn remember_tokens(&mut self, path: &str, data: Vec<lsp::SemanticToken>) -> lsp::SemanticTokens {
        self.kept.lists += 1;
        let (id, of) = (self.kept.lists.to_string(), Arc::downgrade(&self.ws.analysis(path)));
        if self.documents.get(path).is_some() {
            self.kept.tokens.insert(path.to_string(), Tokens { of, id: id.clone(), data: data.clone() });
        }
        lsp::SemanticTokens { result_id: Some(id), data }
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
        let before = self.kept.tokens.remove(&path).filter(|before| before.id == p.previous_result_id);
        let Some(now) = self.all_tokens(&path) else { return Ok(None) };
        let Some(before) = before else { return Ok(Some(now.into())) };
        let edits = difference(&before.data, &now.data).into_iter().collect();
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
