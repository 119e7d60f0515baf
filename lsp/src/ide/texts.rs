//! The texts of files: those of the editor over those of the disk; and the check of a file that reads them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tk_sema::Loader;

use super::stop::Stop;
use super::workspace::{Analysis, Disk, REFERENCE, REFERENCE_TEXT, STD};

/// What was read of a file, or a sentence why it was not.
type Read = Result<Arc<str>, String>;

/// Texts; a copy of them reads the disk at most once for both.
#[derive(Clone)]
pub(super) struct Texts {
    disk: Arc<dyn Disk>,
    /// The texts of open files.
    pub overlays: BTreeMap<String, Arc<str>>,
    cached: Arc<Mutex<BTreeMap<String, Read>>>,
}

/// The files of an analysis, with some texts replaced.
struct Files<'a> {
    texts: &'a Texts,
    replaced: &'a BTreeMap<String, String>,
    stop: &'a Stop,
    read: RefCell<BTreeSet<String>>,
}

impl Loader for Files<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        self.stop.check();
        self.read.borrow_mut().insert(path.to_string());
        match self.replaced.get(path) {
            Some(text) => Ok(text.clone()),
            None => self.texts.load(path).map(|t| t.to_string()),
        }
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        if self.texts.disk.leads_out(path, from) {
            self.read.borrow_mut().insert(path.to_string());
            return Err(Some(format!("`{path}` is a link that leads out of the program's folder")));
        }
        self.load(path).map_err(|_| None)
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        let path = format!("{STD}{name}.tk");
        self.load(&path).ok().map(|text| (path, text))
    }

    fn checkpoint(&self) {
        self.stop.check();
    }
}

impl Texts {
    pub(super) fn new(disk: Box<dyn Disk>) -> Texts {
        Texts { disk: Arc::from(disk), overlays: BTreeMap::new(), cached: Arc::default() }
    }

    /// The text of a file as it is now.
    pub(super) fn load(&self, path: &str) -> Read {
        if let Some(text) = self.overlays.get(path) {
            return Ok(text.clone());
        }
        if path == REFERENCE {
            return Ok(REFERENCE_TEXT.as_str().into());
        }
        if let Some(name) = path.strip_prefix(STD) {
            let found = tk_sema::std_files().find(|f| Some(f.0) == name.strip_suffix(".tk"));
            return found.map(|f| f.1.into()).ok_or_else(|| format!("the standard library has no `{name}`"));
        }
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.entry(path.to_string()).or_insert_with(|| self.disk.read(path).map(Arc::from)).clone()
    }

    /// Forgets what was read of a file from the disk.
    pub(super) fn forget(&self, path: &str) {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }

    /// The `*.tk` files below a folder.
    pub(super) fn list(&self, root: &str) -> Vec<String> {
        self.disk.list(root)
    }

    /// Checks a file as the root, with other texts for some files.
    pub(super) fn check(&self, path: &str, replaced: &BTreeMap<String, String>, stop: &Stop) -> Analysis {
        let files = Files { texts: self, replaced, stop, read: RefCell::default() };
        let program = tk_sema::check_indexed(&files, path);
        Analysis::new(program, files.read.into_inner())
    }

    /// Checks an open file: from its last analysis, if only one body has changed since.
    pub(super) fn check_again(&self, path: &str, last: Option<Analysis>, stop: &Stop) -> Analysis {
        let again = last.and_then(|last| self.check_body(path, last));
        again.unwrap_or_else(|| self.check(path, &BTreeMap::new(), stop))
    }

    /// Checks the body of an open file that has changed since its last analysis, if nothing else has.
    pub(super) fn check_body(&self, path: &str, last: Analysis) -> Option<Analysis> {
        last.with_text(self.overlays.get(path)?)
    }
}
