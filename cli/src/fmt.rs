//! `tk fmt FILE..`: formats files with [`tk_fmt`], or reports which of them differ.
//!
//! Guarantees that a file is complete at any time, keeps its permissions, and is not touched when nothing changes or when
//! it has a syntax error; and that a file with a problem does not keep the others from being formatted.

use std::path::PathBuf;

use tk_runtime::files::write_all;
use tk_runtime::pass;
use tk_syntax::{SourceMap, escaped, escaped_name};

use crate::args::{FmtArgs, MessageFormat};
use crate::diff::diff;
use crate::input::{Inputs, STDIN, sources};
use crate::report::Line;
use crate::terminal::{Failure, Outcome, Terminal};

/// The results of the files so far.
#[derive(Default)]
struct Found {
    /// A file has a syntax error, or with `--check` another layout.
    wrong: bool,
    /// A file could not be read or written.
    failed: bool,
}

/// Formats all files.
pub fn run(terminal: &Terminal, args: &FmtArgs) -> Outcome {
    let inputs = Inputs::new(&args.input, args.files.iter().map(String::as_str))?;
    pass::enter("format");
    let mut found = Found::default();
    for path in &args.files {
        for file in sources(path) {
            match file.and_then(|file| inputs.exact(&file).map(|(name, text)| (file, name, text))) {
                Ok((file, name, text)) => one(terminal, args, (&file, &name, &text), &mut found)?,
                Err(problem) => fail(terminal, &problem, &mut found)?,
            }
        }
    }
    match found {
        Found { failed: true, .. } => Err(Failure::Reported),
        Found { wrong: true, .. } => Err(Failure::Diagnostics),
        Found { .. } => Ok(()),
    }
}

fn fail(terminal: &Terminal, problem: &str, found: &mut Found) -> Outcome {
    found.failed = true;
    terminal.failure(problem, 2)
}

/// Formats one file: its path, its name in messages, its text.
fn one(terminal: &Terminal, args: &FmtArgs, file: (&str, &str, &str), found: &mut Found) -> Outcome {
    let (path, name, text) = file;
    let formatted = match tk_fmt::format(text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            found.wrong = true;
            let mut sources = SourceMap::default();
            sources.add(name, text);
            return terminal.diagnostics(&sources, &diagnostics);
        }
    };
    let changed = formatted != text;
    if args.check {
        found.wrong |= changed;
        return if changed { differs(terminal, name, text, &formatted) } else { Ok(()) };
    }
    if path == STDIN {
        return if terminal.is_json() {
            terminal.object(&Line::Formatted { file: name, text: Some(&formatted) })
        } else {
            terminal.data(&formatted)
        };
    }
    if !changed {
        return Ok(());
    }
    // A link stays a link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    if target.metadata().is_ok_and(|m| m.permissions().readonly()) {
        return fail(terminal, &format!("cannot write {path}: it is read-only"), found);
    }
    match write_all(&[(target, formatted.into_bytes())]) {
        Ok(()) if terminal.is_json() => terminal.object(&Line::Formatted { file: name, text: None }),
        Ok(()) => Ok(()),
        Err(problem) => fail(terminal, &problem, found),
    }
}

/// Says that a file has another layout, and what would change.
fn differs(terminal: &Terminal, name: &str, text: &str, formatted: &str) -> Outcome {
    match terminal.format {
        MessageFormat::Json => terminal.object(&Line::Formatted { file: name, text: None }),
        MessageFormat::Short => terminal.data(&format!("{}\n", escaped_name(name))),
        MessageFormat::Human => {
            let (name, lines) = (escaped_name(name), diff(text, formatted));
            let lines = escaped(&lines);
            terminal.data(&format!("--- {name}\n+++ {name} formatted\n{lines}"))
        }
    }
}
