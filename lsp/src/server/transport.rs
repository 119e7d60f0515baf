//! Reads messages from a stream and writes them to one.
//!
//! Accepts any input. Guarantees that reading continues after a malformed message, and that its sender gets an error:
//! the answer to what has no id that could be answered carries `null` or the value found there.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId};
use serde_json::{Value, json};

use super::{Config, run};

/// The longest line of a header; longer ones are read in parts, which are no headers either.
const HEADER: u64 = 1 << 16;
/// The longest message. No editor sends a text of this size; a header that says more is taken for a mistake, because
/// skipping so much would swallow what follows.
const MESSAGE: usize = 1 << 30;
const LENGTH: &[u8] = b"content-length:";

/// The result of reading.
#[derive(Debug)]
pub enum Frame {
    /// The bytes of a message.
    Message(Vec<u8>),
    /// Headers from which no message follows, in one sentence.
    Malformed(String),
    /// Nothing follows any more.
    End,
}

/// An id as an answer repeats it: `null` for what can be none.
fn told(id: Value) -> Value {
    if id.is_string() || id.is_i64() || id.is_u64() { id } else { Value::Null }
}

/// An answer to what is no message: the id that stood there, the code, one sentence.
type Rejection = (Value, ErrorCode, String);

/// Serves a client over two streams until it is gone or says `exit`; returns the exit code.
pub fn serve<R, W>(input: R, output: W, config: Config) -> u8
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let (sender, messages) = channel();
    let (answers, said) = channel::<String>();
    let output = Arc::new(Mutex::new(output));
    let shared = output.clone();
    // It ends with the input, for which a server that ends does not wait.
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        loop {
            let message = match read_frame(&mut input) {
                Frame::Message(bytes) => parse(&bytes),
                Frame::Malformed(why) => Err((Value::Null, ErrorCode::ParseError, why)),
                Frame::End => return,
            };
            let sent = match message {
                Ok(message) => sender.send(message).is_ok(),
                Err((id, code, why)) => {
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": why } });
                    write(&shared, &answer.to_string())
                }
            };
            if !sent {
                return;
            }
        }
    });
    let writer = std::thread::spawn(move || {
        // It ends with the server, or when the client does not read any more.
        let _ = said.iter().all(|message| write(&output, &message));
    });
    let code = run(messages, answers, config);
    // Nothing else can be done about answers that cannot be written.
    let _ = writer.join();
    code
}

/// Writes a message; returns false if it cannot be written.
fn write<W: Write>(output: &Mutex<W>, text: &str) -> bool {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| output.flush()).is_ok()
}

/// Reads the next message. After something malformed it goes on at the next `Content-Length`, wherever that is.
pub fn read_frame(input: &mut impl BufRead) -> Frame {
    let mut length = None;
    let mut garbage = false;
    loop {
        let mut line = vec![];
        match input.by_ref().take(HEADER).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Frame::End,
            Ok(_) => {}
        }
        let content = line.trim_ascii();
        if let Some(found) = length_of(content) {
            length = Some(found);
            continue;
        }
        if !content.is_empty() {
            // Other headers are allowed and mean nothing here.
            garbage |= !content.contains(&b':') || content.starts_with(b"{");
            continue;
        }
        match length {
            Some(Some(length)) => return body(input, length),
            Some(None) => return Frame::Malformed("the Content-Length is not a number of bytes".into()),
            None if garbage => return Frame::Malformed("a message without Content-Length".into()),
            None => {}
        }
    }
}

/// The number after the last `Content-Length:` of a line; `Some(None)` when it is not a number.
fn length_of(line: &[u8]) -> Option<Option<usize>> {
    let at = line.windows(LENGTH.len()).rposition(|w| w.eq_ignore_ascii_case(LENGTH))?;
    let digits = std::str::from_utf8(line.get(at + LENGTH.len()..)?).unwrap_or("");
    Some(digits.trim().parse().ok().filter(|n| *n <= MESSAGE))
}

fn body(input: &mut impl BufRead, length: usize) -> Frame {
    let mut bytes = vec![];
    match input.by_ref().take(length as u64).read_to_end(&mut bytes) {
        Ok(read) if read == length => Frame::Message(bytes),
        Ok(_) | Err(_) => Frame::End,
    }
}

/// Understands the bytes of a message.
pub fn parse(bytes: &[u8]) -> Result<Message, Rejection> {
    let value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        // Half of a surrogate pair is what an editor sends whose text holds one, and it is no JSON.
        Err(first) => serde_json::from_str(&whole_pairs(&String::from_utf8_lossy(bytes)))
            .map_err(|_| (Value::Null, ErrorCode::ParseError, format!("invalid JSON: {first}")))?,
    };
    let Value::Object(mut fields) = value else {
        return Err((Value::Null, ErrorCode::InvalidRequest, "a message must be an object".into()));
    };
    let params = fields.remove("params").unwrap_or_default();
    let id = fields.remove("id");
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), None) => Ok(Message::Notification(Notification { method, params })),
        (Some(Value::String(method)), Some(id)) => match serde_json::from_value::<RequestId>(id.clone()) {
            Ok(id) => Ok(Message::Request(Request { id, method, params })),
            Err(_) => {
                let why = "an id must be a string or a 32-bit number";
                Err((told(id), ErrorCode::InvalidRequest, why.into()))
            }
        },
        // The server's own requests need no answer: what they asked for was done or not.
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(Message::Notification(Notification { method: ANSWER.into(), params: Value::Null }))
        }
        (_, id) => {
            Err((told(id.unwrap_or_default()), ErrorCode::InvalidRequest, "the method is missing".into()))
        }
    }
}

/// The method that stands for an answer of the client; methods that begin so may be ignored.
const ANSWER: &str = "$/answer";

/// The text with U+FFFD for each escape that is half of a surrogate pair. It counts as one unit like the half.
fn whole_pairs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or("");
                continue;
            }
            // The escaped character belongs to the backslash, it may be one.
            _ => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        out.push_str(escape.get(..length).unwrap_or(escape));
        rest = escape.get(length..).unwrap_or("");
    }
    out + rest
}

/// The unit of an escape `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_goes_on_behind_what_is_malformed() {
        let stream = b"garbage\r\nContent-Length: x\r\n\r\ncontent-length:2\r\nX: y\r\n\r\n{}tailContent-Length: 4\n\nnull\r\nno: length\r\n\r\n{broken\r\n\r\nContent-Length: 99999999999999\r\n\r\nContent-Length: 3\r\n\r\nab";
        let mut input = &stream[..];
        let mut seen = vec![];
        loop {
            match read_frame(&mut input) {
                Frame::Message(bytes) => seen.push(String::from_utf8(bytes).unwrap()),
                Frame::Malformed(_) => seen.push("!".into()),
                Frame::End => break,
            }
        }
        assert_eq!(seen, ["!", "{}", "null", "!", "!"]);
    }

    #[test]
    fn halves_of_pairs_become_one_unit() {
        assert_eq!(
            whole_pairs(r"a\ud83d\ude00b\ud83dc\ude00\\ud83d\n\u12"),
            r"a\ud83d\ude00b\ufffdc\ufffd\\ud83d\n\u12"
        );
        assert!(
            matches!(parse(br#"{"method":"x\ud800"}"#), Ok(Message::Notification(n)) if n.method == "x\u{fffd}")
        );
    }

    #[test]
    fn what_is_no_message_is_rejected_with_its_id() {
        for (text, id) in [
            ("", Value::Null),
            ("[]", Value::Null),
            ("{\"id\":7}", json!(7)),
            ("{\"id\":1.5,\"method\":\"x\"}", Value::Null),
            ("{\"id\":{},\"method\":\"x\"}", Value::Null),
            ("{\"id\":3000000000,\"method\":\"x\"}", json!(3000000000u64)),
            ("{\"id\":null,\"method\":\"x\"}", Value::Null),
            ("{\"id\":1,\"method\":5}", json!(1)),
        ] {
            assert_eq!(parse(text.as_bytes()).map_err(|e| e.0).unwrap_err(), id, "{text}");
        }
    }
}
