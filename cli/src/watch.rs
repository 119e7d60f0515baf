//! `--watch`: repeats a command whenever a source file that it read changes.
//!
//! Folders are watched, not files, because editors replace files; whether something changed is decided by contents, so
//! neither reading a file nor saving it unchanged counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use tk_runtime::files::Files;
use tk_sema::Loader;

use crate::args::InputArgs;
use crate::input::{Inputs, STDIN};
use crate::terminal::{Failure, Outcome, Terminal};

/// The quiet time before the next round: programs that save several files do that within a few milliseconds, a delay
/// that is not noticeable.
const QUIET: Duration = Duration::from_millis(50);

/// The maximum delay of a round by a folder that is written to all the time.
const LONGEST: Duration = Duration::from_secs(1);

/// Runs rounds until the program is ended from outside, or until one fails for a reason that no change of a file
/// fixes.
pub fn rounds(
    terminal: &Terminal,
    args: &InputArgs,
    files: &[String],
    mut round: impl FnMut(&Inputs) -> Outcome,
) -> Outcome {
    if files.iter().any(|f| f == STDIN) {
        return Err(Failure::Sentence("standard input (`-`) cannot be watched".into()));
    }
    for number in 0.. {
        let inputs = Inputs::new(args, files.iter().map(String::as_str))?;
        match round(&inputs) {
            Ok(()) | Err(Failure::Diagnostics | Failure::Reported) => {}
            // At first this is a wrong name; later the file may come back.
            Err(Failure::Sentence(text)) if number > 0 => terminal.failure(&text, 2)?,
            Err(failure) => return Err(failure),
        }
        let read = inputs.read();
        terminal.watching(read.keys().map(|p| p.display().to_string()).collect())?;
        wait(&read)?;
        terminal.clear();
    }
    Ok(())
}

/// Returns when one of the files has other contents than those that were read.
fn wait(read: &BTreeMap<PathBuf, Option<String>>) -> Result<(), String> {
    let wrong = |e: notify::Error| format!("cannot watch files: {}", e.to_string().replace('\n', " "));
    let (sender, events) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender).map_err(wrong)?;
    let folder = |p: &Path| match p.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    };
    for folder in read.keys().map(|p| folder(p)).collect::<BTreeSet<_>>() {
        // A missing file may have no folder yet.
        if folder.is_dir() {
            watcher.watch(&folder, RecursiveMode::NonRecursive).map_err(wrong)?;
        }
    }
    loop {
        // What changed before the folders were watched gives no event, so files are compared first.
        while !changed(read) {
            loop {
                let event = events.recv().map_err(|e| format!("cannot watch files: {e}"))?.map_err(wrong)?;
                if !is_reading(event.kind) {
                    break;
                }
            }
        }
        let begin = Instant::now();
        while begin.elapsed() < LONGEST && events.recv_timeout(QUIET).is_ok() {}
        // A file that is being saved is empty for a moment: only what is there when it is quiet counts.
        if changed(read) {
            return Ok(());
        }
    }
}

/// Comparing the files gives such events itself.
fn is_reading(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}

fn changed(read: &BTreeMap<PathBuf, Option<String>>) -> bool {
    let files = Files::default();
    read.iter().any(|(path, before)| {
        let now = path.to_str().and_then(|p| files.load(p).ok());
        now != *before
    })
}
