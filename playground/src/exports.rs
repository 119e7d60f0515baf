//! The functions that a page calls: bytes in, bytes out.
//!
//! ```text
//! input(n) -> address of n bytes, which the page fills;  serve() -> n bytes, at output();  ask(), which calls said(address, n)
//! ```

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};
use tk_syntax::escaped;

use crate::Engine;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Takes an object of an answer.
    fn said(address: *const u8, bytes: usize);
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new(printed));
    static LEFT: Cell<usize> = const { Cell::new(0) };
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
}

/// The most bytes of `print` that are told while a request runs, and what a line counts at least: a page shows a thousand
/// short lines without delay.
const MOST_PRINTED: usize = 100_000;
const LEAST_LINE: usize = 100;

/// Room for the next request.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

fn request() -> String {
    INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned())
}

/// Hands messages to the language server; returns how many bytes its own have.
#[unsafe(no_mangle)]
pub extern "C" fn serve() -> usize {
    let messages = ENGINE.with_borrow_mut(|engine| engine.serve(&request()));
    let bytes = messages.len();
    OUTPUT.set(messages.into_bytes());
    bytes
}

/// Where the messages of the language server are, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// Does what the request asks.
#[unsafe(no_mangle)]
pub extern "C" fn ask() {
    let request = request();
    ENGINE.with_borrow_mut(|engine| {
        LEFT.set(MOST_PRINTED);
        engine.ask(&request, &mut say);
    });
}

fn say(value: &Value) {
    let text = value.to_string();
    // SAFETY: the page reads this many bytes before it returns, and nothing else.
    unsafe { said(text.as_ptr(), text.len()) }
}

/// Says a line that was printed, as long as there are not too many.
fn printed(line: &str) {
    let left = LEFT.get();
    if left == 0 {
        return;
    }
    let rest = left.saturating_sub(line.len().max(LEAST_LINE));
    LEFT.set(rest);
    say(&json!({ "line": if rest > 0 { escaped(line) } else { "…\n".into() } }));
}
