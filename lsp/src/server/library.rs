//! Locates files that are part of the program: the standard library and the pages of diagnostic codes.
//!
//! Guarantees a real file with exactly the text that the program means, since no editor can open anything else: one that
//! was installed with the program, or a copy in the user's cache that is written when it is first needed.

use std::fs;
use std::path::{Path, PathBuf};

use super::uri;

/// The places of the files.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The folder of the standard library beside the program.
    pub stdlib: Option<PathBuf>,
    /// The folder of the pages beside the program.
    pub pages: Option<PathBuf>,
    /// The folder for copies.
    pub cache: Option<PathBuf>,
}

/// A folder of files, and its name in the cache.
const STDLIB: &str = "stdlib";
const PAGES: &str = "errors";

impl Library {
    /// The URI of a file of the standard library (`grid.tk`, `nn/softmax.tk`) with its text.
    pub fn std(&self, name: &str, text: &str) -> Option<String> {
        self.file(self.stdlib.as_deref(), STDLIB, name, text)
    }

    /// The URI of the page of a code with its text.
    pub fn page(&self, code: &str, text: &str) -> Option<String> {
        self.file(self.pages.as_deref(), PAGES, &format!("{code}.md"), text)
    }

    /// The file of the standard library (`grid.tk`, `nn/softmax.tk`) that a path names.
    pub fn std_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        let folders = [self.stdlib.clone(), self.cache.as_ref().map(|c| c.join(STDLIB))];
        folders.iter().flatten().find_map(|f| path.strip_prefix(&slashes(f)?)?.strip_prefix('/'))
    }

    fn file(&self, installed: Option<&Path>, kind: &str, name: &str, text: &str) -> Option<String> {
        let same = |p: &PathBuf| fs::read(p).is_ok_and(|t| t == text.as_bytes());
        let installed = installed.map(|f| f.join(name)).filter(same);
        let file = match installed {
            Some(file) => file,
            None => {
                let copy = self.cache.as_ref()?.join(kind).join(name);
                if !same(&copy) {
                    write(&copy, text).ok()?;
                }
                copy
            }
        };
        slashes(&file).map(|path| uri::uri(&path))
    }
}

/// Writes a copy that is not meant to be edited. A reader sees the old one or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text)?;
    let mut permissions = fs::metadata(&temporary)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&temporary, permissions)?;
    fs::rename(&temporary, path)
}

fn slashes(path: &Path) -> Option<String> {
    path.to_str().map(|p| p.replace(std::path::MAIN_SEPARATOR, "/"))
}
