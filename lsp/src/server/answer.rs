//! Owns what an answer is: a result, or a code and a sentence why there is none.

use lsp_server::{ErrorCode, ResponseError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a request has no result.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What kind of mistake.
    pub code: ErrorCode,
    /// One sentence for the user.
    pub message: String,
}

/// A result, or why there is none.
pub type Answer<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal with a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

impl From<Refusal> for ResponseError {
    fn from(refusal: Refusal) -> ResponseError {
        ResponseError { code: refusal.code as i32, message: refusal.message, data: None }
    }
}

/// The parameters of a message. Positions that are no numbers of the protocol are moved to the nearest ones.
pub fn params<P: DeserializeOwned>(params: Value) -> Answer<P> {
    serde_json::from_value(params.clone()).or_else(|_| {
        let mut moved = params;
        clamp(&mut moved);
        serde_json::from_value(moved).map_err(|e| Refusal::new(ErrorCode::InvalidParams, e.to_string()))
    })
}

fn clamp(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clamp),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_f64() {
                    Some(n) if name == "line" || name == "character" => {
                        // A cast from a float saturates.
                        *field = (n as u32).into();
                    }
                    _ => clamp(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
