//! Prompts: from arguments or a file, through UTF-8, to tokens that fit in the context.

use std::path::Path;

use crate::arguments::Generate;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::output::tokens;
use crate::text::Tokenizer;

/// The texts to continue, as they were given.
pub fn texts(args: &Generate) -> Result<Vec<String>> {
    if let Some(path) = &args.prompt_file {
        return Ok(vec![from_file(path)?]);
    }
    let texts = args.prompt.iter().enumerate().map(|(number, prompt)| {
        let which =
            if args.prompt.len() == 1 { "the prompt".into() } else { format!("prompt {}", number + 1) };
        utf8(prompt.as_encoded_bytes(), &which)
    });
    texts.collect()
}

/// The tokens of the texts, none empty and none longer than the context.
pub fn encode(texts: &[String], tokenizer: &Tokenizer, config: &Config) -> Result<Vec<Vec<u32>>> {
    texts.iter().map(|text| encode_one(text, tokenizer, config)).collect()
}

fn from_file(path: &Path) -> Result<String> {
    let bytes = crate::failure::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let mut text = utf8(&bytes, &path.display().to_string())?;
    // Editors end a file with a line break that is not meant as part of the prompt.
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn utf8(bytes: &[u8], which: &str) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        let byte = bytes.get(place).copied().unwrap_or_default();
        Failure::mistake(format!("{which} is not valid UTF-8: byte {byte:#04x} at position {place}"))
    })?;
    Ok(text.to_string())
}

fn encode_one(text: &str, tokenizer: &Tokenizer, config: &Config) -> Result<Vec<u32>> {
    let mut prompt = tokenizer.encode(text)?;
    if prompt.is_empty() {
        // A model in this layout was trained on texts with this token between them.
        let Some(first) = config.begin.or(config.end) else {
            let sentence = "the prompt is empty, and the model has no token that begins a text";
            return Err(Failure::mistake(sentence));
        };
        prompt.push(first);
    }
    if prompt.len() > config.context {
        let (long, context) = (tokens(prompt.len()), tokens(config.context));
        return Err(Failure::mistake(format!(
            "the prompt has {long}, but the model's context has {context}"
        )));
    }
    Ok(prompt)
}

/// Tokens that mean nothing, always the same ones.
pub fn any(vocabulary: usize) -> impl Iterator<Item = u32> {
    let mut state = 1u32;
    std::iter::repeat_with(move || {
        // The constants of Numerical Recipes' linear congruential generator, whose upper bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * vocabulary as u64) >> 32) as u32
    })
}
