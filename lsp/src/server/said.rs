//! What the server says, as the text of its messages.
//!
//! A result goes from the types of the protocol to text without a tree of JSON between them, which takes five times as
//! long for the colors of a long file.

use std::sync::Arc;

use lsp_server::{ErrorCode, RequestId, ResponseError};
use serde::Serialize;

use super::answer::{Answer, Refusal};

/// A text of JSON.
pub type Json = Arc<str>;

fn json(what: &impl Serialize) -> String {
    // The types of the protocol have no keys that are no strings.
    serde_json::to_string(what).unwrap_or_else(|_| "null".into())
}

/// A result as JSON.
pub fn result(result: impl Serialize) -> Answer<Json> {
    match serde_json::to_string(&result) {
        Ok(text) => Ok(text.into()),
        Err(e) => Err(Refusal::new(ErrorCode::InternalError, e.to_string())),
    }
}

/// An answer.
pub fn answer(id: &RequestId, answer: Answer<Json>) -> String {
    let id = json(id);
    match answer {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(refusal) => {
            let error = json(&ResponseError::from(refusal));
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

/// A notification.
pub fn notification(method: &str, params: &impl Serialize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#, json(params))
}

/// A request; many have no parameters.
pub fn request(id: &RequestId, method: &str, params: &serde_json::Value) -> String {
    let params = if params.is_null() { String::new() } else { format!(r#","params":{params}"#) };
    format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, json(id))
}
