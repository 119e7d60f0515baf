//! Reads source text and data from the file system, and writes results.
//!
//! Accepts any paths and contents. Guarantees that every failure is one sentence without codes of the operating
//! system, and that [`write_all`] writes either every file completely or none.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use tk_bundle::regular;
use tk_sema::Loader;

use crate::leftovers::{self, Lock};

/// The files that a compilation sees.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// A folder whose `NAME.tk` replaces the built-in `std::NAME`, `A/NAME.tk` the built-in `std::A::NAME`.
    pub stdlib: Option<PathBuf>,
}

impl Files {
    /// With the standard library next to the running program, if there is one.
    ///
    /// That is `stdlib` in the program's folder, `../share/tk/stdlib` of an installation, or `../../stdlib` of a build
    /// inside of the repository.
    pub fn beside_program() -> Files {
        let program = std::env::current_exe().ok().map(|p| p.canonicalize().unwrap_or(p));
        program.map(|p| Files::beside(&p)).unwrap_or_default()
    }

    /// The same for the program of a path without links. Editors are shown the folder, so no `..` is in it.
    fn beside(program: &Path) -> Files {
        let places = [(1, "stdlib"), (2, "share/tk/stdlib"), (3, "stdlib")];
        let folders = places.iter().filter_map(|(up, name)| Some(program.ancestors().nth(*up)?.join(name)));
        Files { stdlib: { folders }.find(|f| f.is_dir()) }
    }
}

impl Loader for Files {
    fn load(&self, path: &str) -> Result<String, String> {
        let bytes =
            regular::read(Path::new(path)).map_err(|e| format!("cannot read {path}: {}", reason(&e)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        if leads_out(Path::new(path), Path::new(from)) {
            return Err(Some(format!("`{path}` is a link that leads out of the program's folder")));
        }
        // Whatever is there and cannot be read is told from a name that does not exist.
        self.load(path).map_err(|why| fs::symlink_metadata(path).is_ok().then_some(why))
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        // Only plain names are asked for, and those in a folder (`nn/softmax`); another path would leave the library.
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/')) || name.starts_with('/')
        {
            return None;
        }
        let text = regular::read(&self.stdlib.as_ref()?.join(format!("{name}.tk"))).ok()?;
        Some((format!("std/{name}.tk"), String::from_utf8_lossy(&text).into_owned()))
    }
}

/// Returns true if a file that another one uses is elsewhere than its name says: neither in that folder nor beside
/// the real place of the file that uses it, which may be a link itself. A checkout must not show files of its user by
/// a link.
fn leads_out(path: &Path, from: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let folder = path.parent().map(|f| if f.as_os_str().is_empty() { Path::new(".") } else { f });
    let allowed = [
        folder.and_then(|f| f.canonicalize().ok()),
        from.canonicalize().ok().and_then(|f| Some(f.parent()?.to_path_buf())),
    ];
    !allowed.into_iter().flatten().any(|allowed| real.starts_with(allowed))
}

/// A file of data that is read from left to right, never more than requested.
pub(crate) struct Input {
    file: fs::File,
    /// Its length.
    pub length: usize,
    /// The number of bytes read.
    pub at: usize,
}

impl Input {
    /// Opens a file. The error is one sentence; those of the other functions continue one that begins with the file's
    /// name.
    pub fn open(path: &Path) -> Result<Input, String> {
        let wrong = |e: io::Error| format!("cannot read {}: {}", path.display(), reason(&e));
        let file = regular::open(path).map_err(wrong)?;
        let length = usize::try_from(file.metadata().map_err(wrong)?.len()).unwrap_or(usize::MAX);
        Ok(Input { file, length, at: 0 })
    }

    /// The next bytes: fewer at the end of the file.
    pub fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        // A regular file has no more than its length, so no allocation can exceed it.
        let there = self.length.saturating_sub(self.at);
        let mut bytes = Vec::with_capacity(count.min(there));
        (&mut self.file).take(count as u64).read_to_end(&mut bytes).map_err(unreadable)?;
        self.at += bytes.len();
        Ok(bytes)
    }

    /// Goes on somewhere else.
    pub fn seek(&mut self, at: usize) -> Result<(), String> {
        self.file.seek(io::SeekFrom::Start(at as u64)).map_err(unreadable)?;
        self.at = at;
        Ok(())
    }
}

fn unreadable(error: io::Error) -> String {
    format!("cannot be read: {}", reason(&error))
}

/// A description of the error: `no such file or directory`.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Writes several files: all to temporary names first, then each to its own. A file that exists keeps its permissions.
///
/// If one cannot be written, none of the temporary files is left and no file has changed, unless moving a file to
/// its own name fails. The error is one sentence.
pub fn write_all(files: &[(PathBuf, Vec<u8>)]) -> Result<(), String> {
    let cannot = |path: &Path, e: &io::Error| format!("cannot write {}: {}", path.display(), reason(e));
    let mut written: Vec<(NamedTempFile, Lock, &Path)> = vec![];
    let folders: BTreeSet<&Path> = files.iter().filter_map(|(path, _)| path.parent()).collect();
    for folder in folders {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        leftovers::sweep(folder, |name| name.starts_with(BEGINNING) && name.ends_with(ENDING));
    }
    for (path, bytes) in files {
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(format!("cannot write {}: not a regular file", path.display()));
        }
        let (file, lock) = beside(path, bytes).map_err(|e| cannot(path, &e))?;
        written.push((file, lock, path));
    }
    for (file, _, path) in written {
        file.persist(path).map_err(|e| cannot(path, &e.error))?;
    }
    Ok(())
}

/// The first and last part of the names of incomplete files.
const BEGINNING: &str = ".tk-";
const ENDING: &str = ".unfinished";

/// A temporary file beside a path that holds these bytes and gets the permissions of what is there, removed unless it is moved
/// to its own name.
fn beside(path: &Path, bytes: &[u8]) -> io::Result<(NamedTempFile, Lock)> {
    path.file_name().ok_or_else(|| io::Error::other("that is not the name of a file"))?;
    let kept = fs::metadata(path).ok().map(|m| m.permissions());
    let mut builder = tempfile::Builder::new();
    builder.prefix(BEGINNING).suffix(ENDING);
    // As of any new file: the user's mask takes away from this.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = builder.tempfile_in(folder)?;
    let lock = leftovers::lock(file.path());
    file.write_all(bytes)?;
    if let Some(kept) = kept {
        fs::set_permissions(file.path(), kept)?;
    }
    Ok((file, lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_an_installation_has_a_plain_path() {
        let root = std::env::temp_dir().join(format!("tk-beside-{}", std::process::id()));
        let stdlib = root.join("share/tk/stdlib");
        fs::create_dir_all(&stdlib).unwrap();
        assert_eq!(Files::beside(&root.join("bin/tk")).stdlib, Some(stdlib));
        assert_eq!(Files::beside(&root.join("tk")).stdlib, None);
        fs::remove_dir_all(&root).unwrap();
    }
}
