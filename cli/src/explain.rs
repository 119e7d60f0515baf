//! Owns `tk explain CODE`: prints the page of a code. The pages of `spec/errors` are part of the binary.

use include_dir::{Dir, include_dir};

use crate::args::ExplainArgs;
use crate::terminal::{Failure, Outcome, Terminal};

static PAGES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../spec/errors");

/// Prints the page.
pub fn run(terminal: &Terminal, args: &ExplainArgs) -> Outcome {
    let code = args.code.trim().to_ascii_uppercase();
    match page(&code) {
        Some(text) => terminal.data(text),
        None => Err(Failure::Sentence(unknown(&args.code, &code))),
    }
}

/// The page of a code.
pub fn page(code: &str) -> Option<&'static str> {
    let name = tk_syntax::codes::find(code)?;
    PAGES.get_file(format!("{name}.md"))?.contents_utf8()
}

fn unknown(given: &str, code: &str) -> String {
    let known: Vec<&str> = tk_syntax::codes::ALL.iter().map(|(c, _)| c.0).collect();
    // `304` and `E304` are `E0304`, `w504` is `W0504`.
    let class = if code.starts_with('W') { 'W' } else { 'E' };
    let digits: String = code.chars().filter(char::is_ascii_digit).collect();
    let padded = format!("{class}{digits:0>4}");
    let close =
        known.iter().find(|k| **k == padded).copied().or_else(|| crate::suggest::closest(code, &known));
    match close.and_then(|c| Some((c, tk_syntax::codes::title(c)?))) {
        Some((c, title)) => format!("there is no code `{given}`; did you mean {c} ({title})?"),
        None => format!("there is no code `{given}`; codes look like E0304"),
    }
}
