//! Owns the open files over those of the disk, and the analyses of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tk_sema::Checked;
use tk_sema::index::Index;

/// The files below the open ones.
pub trait Disk: Send + Sync {
    /// The text of a file, bytes that are no UTF-8 replaced; `Err` is one sentence for the user.
    fn read(&self, path: &str) -> Result<String, String>;
    /// The `*.tk` files below a folder.
    fn list(&self, root: &str) -> Vec<String>;
}

/// One file as the root, with everything that it uses.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The program.
    pub checked: Checked,
    /// What its names and expressions mean.
    pub index: Index,
}

/// Open files over a disk, with the analyses that were asked for.
pub struct Workspace {
    disk: Box<dyn Disk>,
    roots: Vec<String>,
    overlays: BTreeMap<String, Arc<str>>,
}

impl Workspace {
    /// A workspace of some folders.
    pub fn new(disk: Box<dyn Disk>, roots: Vec<String>) -> Self {
        Workspace { disk, roots, overlays: BTreeMap::new() }
    }
    /// Takes the text of a file from the editor: when it is opened and after every change.
    pub fn open(&mut self, path: &str, text: String) {
        self.overlays.insert(path.to_string(), text.into());
    }
    /// Takes the text of a file from the disk again.
    pub fn close(&mut self, path: &str) {
        self.overlays.remove(path);
    }
    /// The text of a file as it is now; `None` where there is none.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        self.overlays.get(path).cloned().or_else(|| self.disk.read(path).ok().map(Into::into))
    }
    /// Forgets what was read from a file of the disk.
    pub fn changed_on_disk(&mut self, path: &str) {
        let _ = path;
    }
    /// The analysis of a file as the root.
    pub fn analysis(&mut self, path: &str) -> Arc<Analysis> {
        let _ = (path, &self.roots);
        Arc::new(Analysis { checked: Checked::default(), index: Index::default() })
    }
    /// The open files whose analysis reads a file.
    pub fn dependents(&mut self, path: &str) -> Vec<String> {
        vec![path.to_string()]
    }
}
