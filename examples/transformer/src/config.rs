//! `config.json`: the shape of a model in the layout of GPT-2.
//!
//! May assume nothing about the file. Guarantees that every size is positive and bounded, so that products of a few of
//! them cannot overflow, that heads divide the width, and that a setting which would change what the model computes is
//! refused when this program does not compute it.

use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};

/// The largest size that is believed. It is 100 times the largest vocabulary in use; above it a file is damaged, and
/// a product of two sizes still fits into 64 bits.
const LARGEST: u64 = 1 << 24;

/// The most layers that are believed: ten times those of the deepest models in use. Every layer is a dozen names.
const MOST_LAYERS: u64 = 1 << 10;

/// The shape of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Tokens that exist.
    pub vocabulary: usize,
    /// The longest sequence.
    pub context: usize,
    /// Elements of a token's vector.
    pub width: usize,
    /// Blocks of attention and feed-forward.
    pub layers: usize,
    /// Heads of attention; they divide the width.
    pub heads: usize,
    /// Elements in the middle of a feed-forward layer.
    pub inner: usize,
    /// What layer normalization adds to the variance.
    pub epsilon: f32,
    /// The token that ends a text.
    pub end: Option<u32>,
    /// The token before a text.
    pub begin: Option<u32>,
    /// Whether the output uses the matrix of the token embedding.
    pub tied: bool,
}

impl Config {
    /// Reads `config.json`.
    pub fn open(path: &Path) -> Result<Config> {
        let file = path.display();
        let value = read_json(path)?;
        let Value::Object(fields) = value else {
            return Err(Failure::mistake(format!("{file} does not hold a JSON object")));
        };
        Config::of(&fields).map_err(|what| Failure::mistake(format!("{file}: {what}")))
    }

    /// Elements of one head.
    pub fn head_width(&self) -> usize {
        self.width / self.heads.max(1)
    }

    /// A model that runs in no time, for looking at the program rather than at a model.
    pub fn tiny() -> Config {
        Config { vocabulary: 512, width: 64, layers: 2, heads: 2, inner: 256, ..Config::gpt2_small() }
    }

    /// The smallest of the published GPT-2 models, 124 million parameters.
    pub fn gpt2_small() -> Config {
        Config {
            vocabulary: 50257,
            context: 1024,
            width: 768,
            layers: 12,
            heads: 12,
            inner: 3072,
            epsilon: 1e-5,
            end: None,
            begin: None,
            tied: true,
        }
    }

    fn of(fields: &Map<String, Value>) -> std::result::Result<Config, String> {
        let kind = given(fields, "model_type");
        if kind.is_some_and(|kind| kind.as_str() != Some("gpt2")) {
            return Err(format!("`model_type` must be \"gpt2\", found {}", shown(kind)));
        }
        refuse_variants(fields)?;
        check_activation(fields)?;
        let vocabulary = size(fields, "vocab_size", LARGEST)?;
        let context = match given(fields, "n_positions") {
            Some(_) => size(fields, "n_positions", LARGEST)?,
            None if given(fields, "n_ctx").is_some() => size(fields, "n_ctx", LARGEST)?,
            None => return Err("`n_positions` is missing".into()),
        };
        let width = size(fields, "n_embd", LARGEST)?;
        let heads = size(fields, "n_head", LARGEST)?;
        if !width.is_multiple_of(heads) {
            return Err(format!("`n_embd` = {width} is not divisible by `n_head` = {heads}"));
        }
        let inner = match given(fields, "n_inner") {
            Some(_) => size(fields, "n_inner", LARGEST)?,
            None => 4 * width,
        };
        Ok(Config {
            vocabulary,
            context,
            width,
            layers: size(fields, "n_layer", MOST_LAYERS)?,
            heads,
            inner,
            epsilon: epsilon(fields)?,
            end: token(fields, "eos_token_id", vocabulary)?,
            begin: token(fields, "bos_token_id", vocabulary)?,
            tied: flag(fields, "tie_word_embeddings", true)?,
        })
    }
}

/// Reads a file of JSON.
pub fn read_json(path: &Path) -> Result<Value> {
    let text = crate::failure::read(path).map_err(|error| Failure::file("read", path, &error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::mistake(format!("{} is not valid JSON: {error}", path.display())))
}

/// A field that is present; `null` means absent.
fn given<'f>(fields: &'f Map<String, Value>, name: &str) -> Option<&'f Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".into(), Value::to_string)
}

fn size(fields: &Map<String, Value>, name: &str, most: u64) -> std::result::Result<usize, String> {
    let Some(value) = given(fields, name) else {
        return Err(format!("`{name}` is missing"));
    };
    let fits = value.as_u64().filter(|count| (1..=most).contains(count));
    fits.and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| format!("`{name}` must be a whole number from 1 to {most}, found {value}"))
}

fn flag(fields: &Map<String, Value>, name: &str, default: bool) -> std::result::Result<bool, String> {
    match given(fields, name) {
        None => Ok(default),
        Some(value) => {
            value.as_bool().ok_or_else(|| format!("`{name}` must be true or false, found {value}"))
        }
    }
}

fn epsilon(fields: &Map<String, Value>) -> std::result::Result<f32, String> {
    // The default of the library that writes these files.
    let Some(value) = given(fields, "layer_norm_epsilon") else { return Ok(1e-5) };
    let epsilon = value.as_f64().map(|epsilon| epsilon as f32);
    epsilon
        .filter(|epsilon| *epsilon > 0.0 && epsilon.is_finite())
        .ok_or_else(|| format!("`layer_norm_epsilon` must be a number above 0, found {value}"))
}

/// The function in a feed-forward layer is GELU by its approximation with a hyperbolic tangent, as in all that were published.
fn check_activation(fields: &Map<String, Value>) -> std::result::Result<(), String> {
    // The default of the library that writes these files.
    let Some(value) = given(fields, "activation_function") else { return Ok(()) };
    match value.as_str() {
        Some("gelu_new" | "gelu_pytorch_tanh") => Ok(()),
        _ => {
            Err(format!("`activation_function` must be \"gelu_new\" or \"gelu_pytorch_tanh\", found {value}"))
        }
    }
}

/// A token, if the vocabulary has it. Configurations of small models often keep the number of the published models,
/// which means no token of theirs, and a token that cannot occur is none.
fn token(
    fields: &Map<String, Value>,
    name: &str,
    vocabulary: usize,
) -> std::result::Result<Option<u32>, String> {
    let Some(value) = given(fields, name) else { return Ok(None) };
    let Some(id) = value.as_u64() else {
        return Err(format!("`{name}` must be the number of a token, found {value}"));
    };
    Ok(u32::try_from(id).ok().filter(|_| id < vocabulary as u64))
}

/// Settings of the layout that change the result and that no kernel here follows.
fn refuse_variants(fields: &Map<String, Value>) -> std::result::Result<(), String> {
    let variants = [
        ("scale_attn_weights", true),
        ("scale_attn_by_inverse_layer_idx", false),
        ("add_cross_attention", false),
    ];
    for (name, wanted) in variants {
        let found = flag(fields, name, wanted)?;
        if found != wanted {
            return Err(format!("`{name}` must be {wanted}, found {found}: this variant is not supported"));
        }
    }
    Ok(())
}
