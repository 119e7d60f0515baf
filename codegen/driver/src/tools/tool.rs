//! Errors about tools and files that the driver needs, and helpers to run tools.

use std::path::Path;
use std::process::{ExitStatus, Output};
use std::sync::Once;
use std::time::UNIX_EPOCH;
use std::{fs, io};

use tempfile::TempDir;
use tk_runtime::leftovers::{Lock, lock, sweep};
use tk_syntax::{Code, Diagnostic, Span, codes};

use crate::compile::cache::{Cache, Key};

/// The reason that a tool could not be used: a message without a position, since no source is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The code.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// Remedies, a sentence each.
    pub notes: Vec<String>,
}

impl ToolError {
    /// An error with one thing to try.
    pub fn new(code: Code, message: impl Into<String>, note: impl Into<String>) -> ToolError {
        ToolError { code, message: message.into(), notes: vec![note.into()] }
    }

    /// The diagnostic; `place` is the kernel that needed the tool. A missing tool is not the fault of a kernel.
    pub fn at(self, place: Span) -> Diagnostic {
        let place = if self.code == codes::NO_ASSEMBLER { Span::NOWHERE } else { place };
        let mut d = Diagnostic::error(self.code, place, self.message, "");
        d.notes = self.notes;
        d
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

/// The error in words and without the number of the operating system: `no such file or directory`.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The prefix of the names of folders of temporary files.
const PREFIX: &str = "tk-tool-";

/// A folder of temporary files for its user alone, removed when it goes out of scope, or by a later process.
pub(crate) struct Files {
    folder: TempDir,
    _lock: Lock,
}

impl Files {
    pub(crate) fn new() -> io::Result<Files> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir(), |name| name.starts_with(PREFIX)));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.prefix(PREFIX).tempdir()?;
        let _lock = lock(folder.path());
        Ok(Files { folder, _lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The version of a tool: its last answer, which the cache keeps under this name, or its answer now.
pub(crate) fn version(
    name: &str,
    path: &Path,
    cache: &Cache,
    ask: impl FnOnce(&Path) -> Result<String, ToolError>,
) -> Result<String, ToolError> {
    let key = identity(path).map(|id| Key::of(&[name.as_bytes(), id.as_bytes()]));
    let known = key.and_then(|key| cache.get(&key)).and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(version) = known {
        return Ok(version);
    }
    let version = ask(path)?;
    if let Some(key) = key {
        cache.put(&key, version.as_bytes());
    }
    Ok(version)
}

/// An identity of a file that needs no read of its contents.
fn identity(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let path = path.canonicalize().ok()?;
    Some(format!("{} {} {}", path.display(), metadata.len(), changed.as_nanos()))
}

/// Both outputs as text: which of them a tool uses differs between versions.
pub(crate) fn output_text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

/// The end of a program that printed nothing.
pub(crate) fn ending(status: ExitStatus) -> String {
    status.code().map_or("it was killed".to_string(), |code| format!("it exits with code {code}"))
}
