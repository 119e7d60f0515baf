//! Owns what reaches the user: data on standard output, messages on standard error, and the exit code.
//!
//! Guarantees that a reader who closes a pipe early ends the program quietly.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use tk_syntax::{Diagnostic, SourceMap, codes};

use crate::args::Color;

/// Diagnostics of one file that are printed: nobody reads more, and a file that is no program at all gives one for
/// every other token.
const SHOWN: usize = 100;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The program is wrong; the diagnostics have been printed. Exit code 1.
    Diagnostics,
    /// Usage, files or a launch: one sentence. Exit code 2.
    Sentence(String),
    /// As `Sentence`, but the message has been printed. Exit code 2.
    Reported,
    /// A mistake of the compiler. Exit code 101.
    Internal {
        /// In which pass.
        pass: String,
        /// What it said.
        what: String,
    },
    /// Nobody reads the output any more: nothing is wrong.
    Closed,
}

/// What a command gives.
pub type Outcome = Result<(), Failure>;

impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure::Sentence(sentence)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Sentence(format!("cannot write the output: {}", tk_runtime::files::reason(&error))),
        }
    }
}

/// Where messages and data go.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Whether messages are colored.
    pub color: bool,
}

impl Terminal {
    /// Decides about color.
    pub fn new(color: Color) -> Terminal {
        let wanted =
            || io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let color = match color {
            Color::Auto => wanted(),
            Color::Always => true,
            Color::Never => false,
        };
        Terminal { color }
    }

    /// Prints data to standard output.
    pub fn data(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Prints a line to standard error. A message that cannot be printed is lost: there is no one to tell.
    pub fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }

    /// Prints diagnostics to standard error, one empty line behind each.
    pub fn diagnostics(&self, sources: &SourceMap, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics.iter().take(SHOWN) {
            self.message(&tk_syntax::render(sources, diagnostic, self.color));
            self.message("");
        }
        if let Some(more) = diagnostics.len().checked_sub(SHOWN).filter(|n| *n > 0) {
            self.message(&format!("{more} more are not shown\n"));
        }
    }

    /// Fails when one of the diagnostics reports a mistake of the compiler.
    pub fn internal(&self, diagnostics: &[Diagnostic]) -> Outcome {
        match diagnostics.iter().find(|d| d.code == codes::INTERNAL) {
            Some(d) => {
                // Some passes name themselves: `internal error in PASS: ..`.
                let named = d.message.strip_prefix("internal error in ").and_then(|t| t.split_once(": "));
                let (pass, what) = named.unwrap_or((tk_runtime::pass::current(), &d.message));
                Err(Failure::Internal { pass: pass.to_string(), what: what.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Reports a failure and chooses the exit code.
    pub fn finish(&self, outcome: Outcome) -> ExitCode {
        match outcome {
            Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
            Err(Failure::Diagnostics) => ExitCode::from(1),
            Err(Failure::Reported) => ExitCode::from(2),
            Err(Failure::Sentence(text)) => {
                self.message(&format!("{} {text}", self.error_word()));
                ExitCode::from(2)
            }
            Err(Failure::Internal { pass, what }) => {
                self.message(&internal_error(&pass, &what));
                ExitCode::from(INTERNAL_ERROR)
            }
        }
    }

    fn error_word(&self) -> &'static str {
        if self.color { "\x1b[31merror:\x1b[0m" } else { "error:" }
    }
}

/// The exit code after a mistake of the compiler.
const INTERNAL_ERROR: u8 = 101;

/// The one line that reports a mistake of the compiler.
pub fn internal_error(pass: &str, what: &str) -> String {
    let what = what.lines().collect::<Vec<_>>().join(" ");
    format!("internal compiler error in {pass}: {what}; this is a bug in tk, please report it")
}
