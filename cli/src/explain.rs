//! `tk explain`: prints the page of a code, or the reference of an operation. `spec/errors` and `spec/ops.md` are part
//! of the binary.

use include_dir::{Dir, include_dir};

use crate::args::ExplainArgs;
use crate::terminal::{Failure, Outcome, Terminal};

static PAGES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../spec/errors");

/// The reference of operations, with examples; every section is one operation.
static OPERATIONS: &str = include_str!("../../spec/ops.md");

/// Prints the page of a code, or the sections of an operation.
pub fn run(terminal: &Terminal, args: &ExplainArgs) -> Outcome {
    let topic = args.topic.trim();
    let code = topic.to_ascii_uppercase();
    if let Some(text) = page(&code) {
        return terminal.data(text);
    }
    let sections: Vec<&str> = sections().filter(|s| name(s) == Some(topic)).collect();
    if sections.is_empty() {
        return Err(Failure::Sentence(unknown(topic, &code)));
    }
    terminal.data(&format!("{}\n", sections.join("\n\n")))
}

/// The sections of the reference, without the blanks around them.
fn sections() -> impl Iterator<Item = &'static str> {
    OPERATIONS.split("\n## ").flat_map(|chapter| chapter.split("\n### ").skip(1)).map(str::trim)
}

/// The name of the operation of a section: `load` of ``v.load(at, ..)``, `&&` of ``a && b``.
fn name(section: &'static str) -> Option<&'static str> {
    let form = section.lines().next()?.trim_matches('`');
    if let Some((call, _)) = form.split_once('(') {
        return Some(call.rsplit('.').next().unwrap_or(call));
    }
    match form.split(' ').collect::<Vec<_>>().as_slice() {
        [_, operator, _] => Some(operator),
        _prefix => form.get(..1),
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
    // What has the digits of a code is meant as one.
    let (what, close) = if digits.len() >= 3 || known.contains(&padded.as_str()) {
        let exact = known.iter().find(|k| **k == padded).copied();
        ("code", exact.or_else(|| crate::suggest::closest(code, &known)))
    } else {
        let operations: Vec<&str> = sections().filter_map(name).collect();
        ("code or operation", crate::suggest::closest(given.trim(), &operations))
    };
    match close.map(|c| (c, tk_syntax::codes::title(c))) {
        Some((c, Some(title))) => format!("unknown {what} `{given}`; did you mean {c} ({title})?"),
        Some((c, None)) => format!("unknown {what} `{given}`; did you mean {c}?"),
        None => format!(
            "unknown {what} `{given}`; codes look like E0304, operations are in spec/ops.md, clauses such as `launch` in spec/06-kernels.md, and `tk doc std::views` prints a part of the library"
        ),
    }
}
