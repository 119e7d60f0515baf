//! Converts between text and tokens: `tokenizer.json`, and streamed text.
//!
//! Guarantees that every token it makes is one of the model's vocabulary, and that text which is handed out consists
//! of whole characters, although a token may be a part of one.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Once;

use serde_json::Value;

use crate::failure::{Failure, Result};

/// The file that describes a tokenizer.
const FILE: &str = "tokenizer.json";

/// Tokens without a whole character after which a text is taken as it is. A character has at most 4 bytes, a token at
/// least one, so only a model that writes no text at all gets there, and its output should still be seen.
const PATIENCE: usize = 16;

/// A tokenizer that fits to a model.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// Reads the tokenizer in a model's folder, for a model with that many tokens.
    pub fn open(folder: &Path, vocabulary: usize) -> Result<Tokenizer> {
        let path = folder.join(FILE);
        let bytes = crate::failure::read(&path).map_err(|error| {
            let failure = Failure::file("read", &path, &error);
            if error.kind() == std::io::ErrorKind::NotFound {
                failure
                    .advise("vocab.json and merges.txt are not read; save the tokenizer as tokenizer.json.")
            } else {
                failure
            }
        })?;
        Tokenizer::of(&bytes, vocabulary)
            .map_err(|what| Failure::mistake(format!("{} {what}", path.display())))
    }

    fn of(bytes: &[u8], vocabulary: usize) -> std::result::Result<Tokenizer, String> {
        let wrong = |error: String| format!("is not a tokenizer that can be read: {error}");
        prefixed(bytes).map_err(wrong)?;
        let read = || tokenizers::Tokenizer::from_bytes(bytes);
        let mut inner = guarded(read).map_err(wrong)?.map_err(|error| wrong(error.to_string()))?;
        // Both would change a prompt without a word.
        inner.with_truncation(None).map_err(|error| format!("cannot be used: {error}"))?;
        inner.with_padding(None);
        let last = inner.get_vocab(true).values().copied().max();
        match last {
            None => Err("has no tokens".into()),
            Some(last) if last as usize >= vocabulary => {
                Err(format!("has tokens up to {last} but the model's vocabulary has {vocabulary}"))
            }
            Some(_) => Ok(Tokenizer { inner }),
        }
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let wrong = |error: String| Failure::mistake(format!("cannot tokenize the prompt: {error}"));
        let encoding = guarded(|| self.inner.encode_fast(text, true)).map_err(wrong)?;
        Ok(encoding.map_err(|error| wrong(error.to_string()))?.get_ids().to_vec())
    }

    /// A decoder for tokens that come one at a time.
    pub fn stream(&self) -> Stream<'_> {
        Stream { tokenizer: self, tokens: Vec::new(), given: 0 }
    }

    fn decode(&self, tokens: &[u32]) -> Result<String> {
        let wrong = |error: String| Failure::mistake(format!("cannot turn tokens into text: {error}"));
        let text = guarded(|| self.inner.decode(tokens, true)).map_err(wrong)?;
        text.map_err(|error| wrong(error.to_string()))
    }
}

/// Demands what the reader of merges takes for granted: the second part of each begins with the prefix of tokens that
/// continue a word, which is cut off.
fn prefixed(bytes: &[u8]) -> std::result::Result<(), String> {
    let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Some(model) = file.get("model") else { return Ok(()) };
    let prefix = model.get("continuing_subword_prefix").and_then(Value::as_str).unwrap_or_default();
    let merges = model.get("merges").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let second = |merge: &Value| match merge {
        Value::String(both) => both.split_once(' ').map(|(_, second)| second.to_string()),
        Value::Array(parts) => parts.get(1)?.as_str().map(ToString::to_string),
        // The reader refuses it.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    match merges.iter().filter_map(second).find(|second| !second.starts_with(prefix)) {
        Some(second) => Err(format!(
            "its merges have `{second}`, which does not begin with its continuing_subword_prefix, `{prefix}`"
        )),
        None => Ok(()),
    }
}

/// Calls the library for tokenizers, whose panics about strange files are mistakes of the file, not of this program.
fn guarded<T>(call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                shown(info);
            }
        }));
    });
    QUIET.set(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(call));
    QUIET.set(false);
    result.map_err(|_| "the library for tokenizers fails on it".to_string())
}

/// Text that grows.
///
/// How a token reads may depend on the one before it, so the tokens of the last piece are decoded again with each
/// new one, and the piece is cut off.
pub struct Stream<'t> {
    tokenizer: &'t Tokenizer,
    /// The tokens of the last piece, then those that are not handed out yet.
    tokens: Vec<u32>,
    /// How many are of the last piece.
    given: usize,
}

impl Stream<'_> {
    /// Takes a token, and gives the text that is complete with it.
    pub fn push(&mut self, token: u32) -> Result<Option<String>> {
        self.tokens.push(token);
        let new = self.pending()?;
        // An unfinished character is decoded as the replacement character.
        let unfinished = new.ends_with(char::REPLACEMENT_CHARACTER);
        if new.is_empty() || unfinished && self.tokens.len() - self.given < PATIENCE {
            return Ok(None);
        }
        self.tokens.drain(..self.given);
        self.given = self.tokens.len();
        if unfinished {
            self.tokens.clear();
            self.given = 0;
        }
        Ok(Some(new))
    }

    /// Gives what is left, complete or not.
    pub fn flush(&mut self) -> Result<Option<String>> {
        let new = self.pending()?;
        self.tokens.clear();
        self.given = 0;
        Ok(Some(new).filter(|new| !new.is_empty()))
    }

    /// The text after the last piece.
    fn pending(&self) -> Result<String> {
        let old = self.tokenizer.decode(self.tokens.get(..self.given).unwrap_or_default())?;
        let all = self.tokenizer.decode(&self.tokens)?;
        // Some decoders change the end of a text when it grows; what is handed out cannot be taken back.
        let alike = old.chars().zip(all.chars()).take_while(|(old, all)| old == all);
        let common = alike.map(|(letter, _)| letter.len_utf8()).sum::<usize>();
        Ok(all.get(common..).unwrap_or_default().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer whose 256 tokens are the bytes in the order of GPT-2's vocabulary.
    fn of_bytes() -> Tokenizer {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bytes.json");
        Tokenizer::of(&std::fs::read(path).unwrap(), 256).unwrap()
    }

    fn streamed(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
        let mut stream = tokenizer.stream();
        let mut pieces: Vec<String> =
            tokens.iter().filter_map(|token| stream.push(*token).unwrap()).collect();
        pieces.extend(stream.flush().unwrap());
        pieces
    }

    #[test]
    fn characters_are_whole() {
        let tokenizer = of_bytes();
        let tokens = tokenizer.encode("aé €😀z").unwrap();
        assert_eq!(tokens.len(), 12);
        assert_eq!(streamed(&tokenizer, &tokens), ["a", "é", " ", "€", "😀", "z"]);
    }

    #[test]
    fn an_unfinished_character_appears_at_the_end() {
        let tokenizer = of_bytes();
        let tokens = tokenizer.encode("a€").unwrap();
        assert_eq!(streamed(&tokenizer, &tokens[..3]), ["a", "\u{fffd}"]);
    }

    #[test]
    fn what_is_no_text_is_shown_nevertheless() {
        let tokenizer = of_bytes();
        let tokens = tokenizer.encode("é").unwrap();
        let pieces = streamed(&tokenizer, &[tokens[1]; 40]);
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.concat(), "\u{fffd}".repeat(40));
    }

    #[test]
    fn wrong_bytes_do_not_swallow_what_follows() {
        let tokenizer = of_bytes();
        let accent = tokenizer.encode("é").unwrap();
        let letter = tokenizer.encode("b").unwrap();
        let tokens = [accent[1], accent[0], letter[0], letter[0]];
        assert_eq!(streamed(&tokenizer, &tokens), ["\u{fffd}\u{fffd}b", "b"]);
    }
}
