//! Errors of a run: one sentence and, where there is one, a suggestion.
//!
//! Guarantees that each failure has one exit code: 2 after a mistake in arguments, files or a device, 1 after a
//! comparison that failed, 0 when whoever read the output went away, which is nobody's mistake.

use std::fmt;
use std::io;
use std::path::Path;

/// What every fallible function of this program returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// Something that was given cannot be used.
    Mistake {
        /// What is wrong, without a full stop.
        sentence: String,
        /// One thing to try, a whole sentence.
        advice: Option<String>,
    },
    /// The comparison was made, and the two sides differ.
    Differs(String),
    /// Nobody reads standard output any more.
    Closed,
}

impl Failure {
    /// A mistake without advice.
    pub fn mistake(sentence: impl Into<String>) -> Failure {
        Failure::Mistake { sentence: sentence.into(), advice: None }
    }

    /// A file or folder that the system did not let us use: `cannot VERB PATH: REASON`.
    pub fn file(verb: &str, path: &Path, error: &io::Error) -> Failure {
        Failure::mistake(format!("cannot {verb} {}: {}", path.display(), reason(error)))
    }

    /// Adds one thing to try to a mistake.
    #[must_use]
    pub fn advise(self, text: impl Into<String>) -> Failure {
        match self {
            Failure::Mistake { sentence, advice: _ } => {
                Failure::Mistake { sentence, advice: Some(text.into()) }
            }
            Failure::Differs(_) | Failure::Closed => self,
        }
    }

    /// The exit code of the program.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Mistake { .. } => 2,
            Failure::Differs(_) => 1,
            Failure::Closed => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Mistake { sentence, advice: None } | Failure::Differs(sentence) => {
                write!(f, "error: {sentence}")
            }
            Failure::Mistake { sentence, advice: Some(advice) } => {
                write!(f, "error: {sentence}\n  help: {advice}")
            }
            Failure::Closed => Ok(()),
        }
    }
}

/// Reads a whole file. What is no file, such as a pipe, is refused: reading one may never end.
pub fn read(path: &Path) -> std::result::Result<Vec<u8>, io::Error> {
    if std::fs::metadata(path)?.is_file() {
        return std::fs::read(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
}

/// The words of the system, in the middle of a sentence and without the number that the standard library appends.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
