//! Output to the user: data on standard output, messages on standard error, and the exit code.
//!
//! With `--message-format json` everything is an object on a line of standard output ([`crate::report`]).
//! Guarantees that a reader who closes a pipe early ends the program quietly.

use std::io::{self, IsTerminal, Write};

use tk_syntax::{Diagnostic, Renderer, SourceMap, codes, escaped};

use crate::args::{Color, MessageFormat};
use crate::report::{self, Line};

/// Diagnostics of one file that are printed for people: more would not be read, and a file that is no program at all
/// gives one for every other token.
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
        /// The text of the message.
        what: String,
    },
    /// An editor went away without the end that the protocol asks for. Exit code 1.
    Disconnected,
    /// Nobody reads the output any more: nothing is wrong.
    Closed,
}

/// The result of a command.
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

/// The destination of messages and data.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Whether messages are colored.
    pub color: bool,
    /// Whether data is that is meant for people.
    data_color: bool,
    /// The format of messages.
    pub format: MessageFormat,
}

impl Terminal {
    /// Decides about color.
    pub fn new(color: Color, format: MessageFormat) -> Terminal {
        let wanted =
            |is_terminal: bool| is_terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let choose = |is_terminal| match color {
            Color::Auto => format != MessageFormat::Json && wanted(is_terminal),
            Color::Always => true,
            Color::Never => false,
        };
        let (color, data_color) = (choose(io::stderr().is_terminal()), choose(io::stdout().is_terminal()));
        Terminal { color, data_color, format }
    }

    /// Returns true if standard output holds objects.
    pub fn is_json(&self) -> bool {
        match self.format {
            MessageFormat::Json => true,
            MessageFormat::Human | MessageFormat::Short => false,
        }
    }

    /// Prints an object on a line of standard output.
    pub fn object(&self, line: &Line) -> Outcome {
        let mut text = to_json(line)?;
        text.push(b'\n');
        let mut out = io::stdout().lock();
        out.write_all(&text)?;
        Ok(out.flush()?)
    }

    /// Prints data to standard output.
    pub fn data(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// A part of data for people in a color, which is the number of an escape sequence, where there are colors.
    pub fn painted(&self, color: &str, text: &str) -> String {
        if self.data_color { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Shows what a kernel printed.
    pub fn printed(&self, text: &str) -> Outcome {
        if self.is_json() {
            return self.object(&Line::Printed { text });
        }
        self.message(&escaped(text));
        Ok(())
    }

    /// Prints a line of ours to standard error: what is from outside is [`escaped`] in it. A message that cannot be printed is lost.
    pub fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }

    /// Prints a fact that is no mistake.
    pub fn note(&self, text: &str) -> Outcome {
        if self.is_json() {
            return self.object(&Line::Note { message: text });
        }
        self.message(&format!("note: {}", escaped(text)));
        Ok(())
    }

    /// Prints diagnostics: for people to standard error, with one empty line after each; as objects to standard
    /// output. Programs get all of them.
    pub fn diagnostics(&self, sources: &SourceMap, diagnostics: &[Diagnostic]) -> Outcome {
        match self.format {
            MessageFormat::Human => {
                let mut renderer = Renderer::new(sources);
                for diagnostic in diagnostics.iter().take(SHOWN) {
                    self.message(&renderer.render(diagnostic, self.color));
                    self.message("");
                }
                if let Some(more) = diagnostics.len().checked_sub(SHOWN).filter(|n| *n > 0) {
                    self.message(&format!("{more} more not shown\n"));
                }
            }
            MessageFormat::Short => {
                let mut out = io::BufWriter::new(io::stderr().lock());
                for diagnostic in diagnostics {
                    // As in `message`, the failure is ignored.
                    let _ = writeln!(out, "{}", report::short(sources, diagnostic));
                }
            }
            MessageFormat::Json => {
                let mut renderer = Renderer::new(sources);
                let mut out = io::BufWriter::new(io::stdout().lock());
                for diagnostic in diagnostics {
                    let object = report::Diagnostic::new(sources, &mut renderer, diagnostic, self.color);
                    out.write_all(&to_json(&Line::Diagnostic(object))?)?;
                    out.write_all(b"\n")?;
                }
                out.flush()?;
            }
        }
        Ok(())
    }

    /// Says which files `--watch` waits for.
    pub fn watching(&self, files: Vec<String>) -> Outcome {
        if self.is_json() {
            return self.object(&Line::Watching { files });
        }
        let count = if files.len() == 1 { "1 file".to_string() } else { format!("{} files", files.len()) };
        self.message(&format!("watching {count}; press Ctrl-C to stop"));
        Ok(())
    }

    /// Empties the screen before the next round of `--watch`, where there is one.
    pub fn clear(&self) {
        if !self.is_json() && io::stderr().is_terminal() {
            // Home, erase what is below: the history above stays.
            let _ = write!(io::stderr().lock(), "\x1b[2J\x1b[H");
        }
    }

    /// Prints why the command could not do what it was asked to.
    pub fn failure(&self, message: &str, exit_code: u8) -> Outcome {
        if self.is_json() {
            return self.object(&Line::Failure { message, exit_code });
        }
        self.message(&format!("{} {}", self.error_word(), escaped(message)));
        Ok(())
    }

    /// Fails when one of the diagnostics reports a compiler bug.
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
    pub fn finish(&self, outcome: Outcome) -> u8 {
        match outcome {
            Ok(()) | Err(Failure::Closed) => 0,
            Err(Failure::Diagnostics | Failure::Disconnected) => 1,
            Err(Failure::Reported) => 2,
            Err(Failure::Sentence(text)) => {
                // When this fails, the reader is gone, and the exit code says what there is to say.
                let _ = self.failure(&text, 2);
                2
            }
            Err(Failure::Internal { pass, what }) => {
                let line = internal_error(&pass, &what);
                if self.is_json() {
                    let _ = self.failure(&line, INTERNAL_ERROR);
                } else {
                    self.message(&escaped(&line));
                }
                INTERNAL_ERROR
            }
        }
    }

    fn error_word(&self) -> &'static str {
        if self.color { "\x1b[31merror:\x1b[0m" } else { "error:" }
    }
}

/// The text of an object. Every value that a [`Line`] holds can be written as JSON.
fn to_json(line: &Line) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(line).map_err(|e| Failure::Sentence(format!("cannot write an object: {e}")))
}

/// The exit code after a compiler bug.
const INTERNAL_ERROR: u8 = 101;

/// The one line that reports a compiler bug.
pub fn internal_error(pass: &str, what: &str) -> String {
    let what = what.lines().collect::<Vec<_>>().join(" ");
    format!("internal compiler error in {pass}: {what}; this is a bug in tk, please report it")
}
