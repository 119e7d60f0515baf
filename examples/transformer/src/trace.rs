//! The file that shows the kernels of a step on a line of time, in the format of chrome://tracing.
//!
//! Guarantees that the file is either written as a whole or not touched.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::setup::Span;

/// Checks whether the file can be written, before a text is generated.
pub fn check(path: &Path) -> Result<()> {
    let Some(name) = path.file_name() else {
        return Err(Failure::mistake(format!("{} is not the name of a file", path.display())));
    };
    if path.is_dir() {
        return Err(Failure::mistake(format!("{} is a folder", path.display())));
    }
    if path.exists() && !path.is_file() {
        return Err(Failure::mistake(format!("{} is not a file", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let (folder, name) = (folder.display(), name.to_string_lossy());
            Err(Failure::mistake(format!("there is no folder {folder} to write {name} to")))
        }
        _ => {
            let beside = beside(&target(path));
            let made = std::fs::File::create(&beside).and_then(|_| std::fs::remove_file(&beside));
            made.map_err(|e| Failure::file("write", path, &e))
        }
    }
}

/// The file itself, where the path is a link to one.
fn target(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Writes the spans.
pub fn write(path: &Path, spans: &[Span]) -> Result<()> {
    let events: Vec<Value> = spans.iter().map(event).collect();
    let text = json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string();
    write_whole(path, |beside| std::fs::write(beside, text).map_err(|e| Failure::file("write", path, &e)))
}

/// Lets `write` make a file with another name in the same folder, which then takes the name of this one.
pub fn write_whole(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let target = target(path);
    let beside = beside(&target);
    let renamed = || std::fs::rename(&beside, &target).map_err(|e| Failure::file("write", path, &e));
    write(&beside).and_then(|()| renamed()).inspect_err(|_| {
        // The first error is the one to tell; that nothing was there to remove is none.
        let _ = std::fs::remove_file(&beside);
    })
}

fn event(span: &Span) -> Value {
    json!({
        "name": span.name,
        "cat": "kernel",
        "ph": "X",
        "pid": 0,
        "tid": 0,
        "ts": span.start_us,
        "dur": span.us,
    })
}

/// A name in the same folder, because a file can only be renamed within one file system.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
