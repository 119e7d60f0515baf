//! Reads the file system for the server.
//!
//! Guarantees that what is no regular file is not read (a pipe would never end) and that a search in a folder ends soon
//! whatever it contains.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ide::Disk;

use super::uri;

/// The maximum number of `*.tk` files of a folder that are read: far more than any program has.
const FILES: usize = 4096;
/// The maximum number of folder entries that are visited on the way: about a second on a slow disk.
const ENTRIES: usize = 100_000;
/// Folders without sources.
const SKIPPED: &[&str] = &["target", "node_modules", "__pycache__"];

/// The file system.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// A folder whose `NAME.tk` replaces the built-in `std::NAME`.
    pub stdlib: Option<PathBuf>,
}

impl Disk for Files {
    fn read(&self, path: &str) -> Result<String, String> {
        let place = match path.strip_prefix("std:/") {
            Some(name) => self.stdlib.as_ref().map(|folder| folder.join(name)),
            // No files are next to text without a file.
            None => uri::is_file(path).then(|| PathBuf::from(path)),
        };
        let place = place.ok_or_else(|| format!("{path} is not a file"))?;
        let regular = fs::metadata(&place).is_ok_and(|m| m.is_file());
        match regular.then(|| fs::read(&place)) {
            Some(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Some(Err(_)) | None => Err(format!("cannot read {path}")),
        }
    }

    fn leads_out(&self, path: &str, from: &str) -> bool {
        let folder = |path: &str| Path::new(path).parent().and_then(|folder| folder.canonicalize().ok());
        let beside = || Path::new(from).canonicalize().ok().and_then(|f| Some(f.parent()?.to_path_buf()));
        let Ok(real) = Path::new(path).canonicalize() else { return false };
        ![folder(path), beside()].into_iter().flatten().any(|allowed| real.starts_with(allowed))
    }

    fn list(&self, root: &str) -> Vec<String> {
        let mut found = vec![];
        let mut folders = if uri::is_file(root) { vec![PathBuf::from(root)] } else { vec![] };
        let mut entries = 0;
        while let Some(folder) = folders.pop() {
            let Ok(inside) = fs::read_dir(&folder) else { continue };
            for entry in inside.flatten() {
                entries += 1;
                if entries > ENTRIES || found.len() >= FILES {
                    folders.clear();
                    break;
                }
                // Links are not followed: they may lead in circles.
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && !is_skipped(&entry.path()) {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    found.extend(source(&entry.path()));
                }
            }
        }
        found.sort();
        found
    }
}

fn is_skipped(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || SKIPPED.contains(&&*name)
}

/// The path of a source file, as [`crate::ide`] writes it.
fn source(file: &Path) -> Option<String> {
    let path = file.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    path.ends_with(".tk").then_some(path)
}
