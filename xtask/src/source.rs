//! The repository for the checks: its files in a fixed order, with paths relative to the root.

use std::fs;
use std::path::Path;

/// A text file.
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// Every file below `folder` with this extension, sorted. Build outputs and hidden folders are left out.
pub fn files(root: &Path, folder: &str, extension: &str) -> Vec<File> {
    let mut found = vec![];
    collect(root, folder, extension, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, folder: &str, extension: &str, found: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
        // Cargo marks a build folder only if it creates it.
        let is_output = name == "out" || folder.is_empty() && name == "target";
        if is_folder && !name.starts_with('.') && !is_output && !is_cache(&entry.path()) {
            collect(root, &path, extension, found);
        } else if !is_folder && name.rsplit_once('.').is_some_and(|(_, e)| e == extension) {
            // What is no UTF-8 is no text that the checks could say anything about.
            found.extend(fs::read_to_string(entry.path()).map(|text| File { path, text }));
        }
    }
}

/// Returns true if a folder is a cache, as Cargo marks its build folders (bford.info/cachedir).
fn is_cache(folder: &Path) -> bool {
    folder.join("CACHEDIR.TAG").exists()
}

/// The folders in a folder, sorted.
pub fn folders(root: &Path, folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return vec![] };
    let folders = entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    let mut names: Vec<String> =
        folders.map(|e| format!("{folder}/{}", e.file_name().to_string_lossy())).collect();
    names.sort();
    names
}

/// The contents of one file, or the problem.
pub fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))
}
