//! Answers: a result, or a code and a sentence with the reason for its absence.

use gen_lsp_types as lsp;
use lsp_server::{ErrorCode, ResponseError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Why a request has no result.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The kind of error.
    pub code: ErrorCode,
    /// One sentence for the user.
    pub message: String,
}

/// A result, or an error.
pub type Answer<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal with a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

impl From<Refusal> for ResponseError {
    fn from(refusal: Refusal) -> ResponseError {
        // What the protocol asks of a server that cancels a request for diagnostics.
        let data =
            matches!(refusal.code, ErrorCode::ServerCancelled).then(|| json!({ "retriggerRequest": true }));
        ResponseError { code: refusal.code as i32, message: refusal.message, data }
    }
}

/// The parameters of a message. Positions that are no numbers of the protocol are moved to the nearest ones.
pub fn params<P: DeserializeOwned>(mut params: Value) -> Answer<P> {
    clamp(&mut params);
    let invalid = |why: String| Refusal::new(ErrorCode::InvalidParams, why);
    if broken_change(&params) {
        return Err(invalid("the range of a change is none".into()));
    }
    serde_json::from_value(params).map_err(|e| invalid(e.to_string()))
}

/// Returns true if a change of a text has an invalid range: it would be taken for the text of the whole document.
fn broken_change(params: &Value) -> bool {
    let changes = params.get("contentChanges").and_then(Value::as_array);
    let mut ranges = changes.into_iter().flatten().filter_map(|c| c.get("range"));
    ranges.any(|r| serde_json::from_value::<lsp::Range>(r.clone()).is_err())
}

fn clamp(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clamp),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_f64() {
                    // A cast from a float saturates.
                    Some(n) if name == "line" || name == "character" => *field = (n as u32).into(),
                    Some(_) | None => clamp(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
