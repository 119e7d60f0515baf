//! The open files over those of the disk, and the analyses of them.
//!
//! An analysis is kept until a file changes that it read. Whatever the files hold, there is an analysis: of a file that
//! cannot be read, an empty one with the reason.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tk_sema::index::Symbol;
use tk_sema::{Indexed, Loader};
use tk_syntax::{FileId, Span, ast};

use super::Place;

/// The number of analyses kept for files that are not open; a search through a workspace makes one of each file.
pub const MAX_KEPT: usize = 256;

/// Before the names of the standard library's files, which have no place on a disk.
const STD: &str = "std:/";

/// The reference of the builtins, which have no source.
pub const REFERENCE: &str = "std:/ops.md";
/// Its text.
pub(super) const REFERENCE_TEXT: &str = include_str!("../../../spec/ops.md");

/// The files below the open ones.
pub trait Disk: Send + Sync {
    /// The text of a file, bytes that are no UTF-8 replaced; `Err` is one sentence for the user.
    fn read(&self, path: &str) -> Result<String, String>;
    /// The `*.tk` files below a folder.
    fn list(&self, root: &str) -> Vec<String>;
    /// Returns true if a file that `from` uses is a link out of the folder of both.
    fn leads_out(&self, path: &str, from: &str) -> bool {
        let _ = (path, from);
        false
    }
}

/// One file as the root, with everything that it uses: the program and the meaning of its names and expressions.
#[derive(Debug)]
pub struct Analysis {
    program: Indexed,
    /// Another one for each analysis.
    pub number: u64,
    /// The files that were asked for, those that could not be read included.
    pub read: BTreeSet<String>,
}

impl std::ops::Deref for Analysis {
    type Target = Indexed;

    fn deref(&self) -> &Indexed {
        &self.program
    }
}

impl Analysis {
    /// The file that was asked for.
    pub const ROOT: FileId = FileId(0);

    /// The position of a span.
    pub fn place(&self, span: Span) -> Place {
        let path = self.checked.sources.get(span.file).map(|s| s.name.to_string()).unwrap_or_default();
        Place { path, start: span.start as usize, end: span.end as usize }
    }

    /// The text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.checked.sources.text(span)
    }

    /// The text of the file that was asked for.
    pub fn root_text(&self) -> &str {
        self.checked.sources.get(Self::ROOT).map_or("", |s| &s.text)
    }

    /// The tree of the file that was asked for; `None` where it could not be read.
    pub fn root(&self) -> Option<&ast::File> {
        self.index.file(Self::ROOT).map(|f| &*f.tree)
    }

    /// The offset if it is in the text, at the start of a character.
    pub fn offset(&self, offset: usize) -> Option<u32> {
        self.root_text().is_char_boundary(offset).then(|| u32::try_from(offset).ok()).flatten()
    }

    /// The symbol at an offset and its name there.
    pub fn symbol_at(&self, offset: usize) -> Option<(Span, &Symbol)> {
        let r = self.index.reference_at(Self::ROOT, self.offset(offset)?)?;
        Some((r.span, self.index.symbol(r.symbol)?))
    }

    /// A type in the user's words.
    pub fn show(&self, ty: &tk_sema::types::Ty) -> String {
        tk_sema::show::ty(&self.checked.hir, ty)
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Open files over a disk, with the analyses that were asked for.
pub struct Workspace {
    disk: Box<dyn Disk>,
    roots: Vec<String>,
    overlays: BTreeMap<String, Arc<str>>,
    /// The texts read from the disk; `None` where a file does not exist.
    cached: RefCell<BTreeMap<String, Result<Arc<str>, String>>>,
    analyses: BTreeMap<String, Arc<Analysis>>,
    /// The last analyses of open files whose text has changed since, and nothing else that they read: where one body
    /// has changed, the rest is as it was.
    outdated: BTreeMap<String, Arc<Analysis>>,
}

/// The files of an analysis: the workspace, with some texts replaced.
struct Files<'a> {
    ws: &'a Workspace,
    replaced: &'a BTreeMap<String, String>,
    read: RefCell<BTreeSet<String>>,
}

impl Loader for Files<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        self.read.borrow_mut().insert(path.to_string());
        match self.replaced.get(path) {
            Some(text) => Ok(text.clone()),
            None => self.ws.load(path).map(|t| t.to_string()),
        }
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        if self.ws.disk.leads_out(path, from) {
            self.read.borrow_mut().insert(path.to_string());
            return Err(Some(format!("`{path}` is a link that leads out of the program's folder")));
        }
        self.load(path).map_err(|_| None)
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        let path = format!("{STD}{name}.tk");
        self.load(&path).ok().map(|text| (path, text))
    }
}

impl Workspace {
    /// A workspace of some folders.
    pub fn new(disk: Box<dyn Disk>, roots: Vec<String>) -> Self {
        let (overlays, cached, analyses, outdated) = Default::default();
        Workspace { disk, roots, overlays, cached, analyses, outdated }
    }

    /// Takes the text of a file from the editor: when it is opened and after every change.
    pub fn open(&mut self, path: &str, text: String) {
        if self.overlays.get(path).is_some_and(|before| **before == *text) {
            return;
        }
        self.overlays.insert(path.to_string(), text.into());
        let last = self.analyses.remove(path).or_else(|| self.outdated.remove(path));
        self.forget(path);
        self.outdated.extend(last.map(|a| (path.to_string(), a)));
    }

    /// Takes the text of a file from the disk again.
    pub fn close(&mut self, path: &str) {
        self.overlays.remove(path);
        self.changed_on_disk(path);
    }

    /// The text of a file as it is now; `None` where there is none.
    pub fn text(&self, path: &str) -> Option<String> {
        self.load(path).ok().map(|t| t.to_string())
    }

    /// Forgets what was read from a file of the disk.
    pub fn changed_on_disk(&mut self, path: &str) {
        self.cached.borrow_mut().remove(path);
        if !self.overlays.contains_key(path) {
            self.forget(path);
        }
    }

    /// The analysis of a file as the root.
    pub fn analysis(&mut self, path: &str) -> Arc<Analysis> {
        if let Some(a) = self.analyses.get(path) {
            return a.clone();
        }
        if self.analyses.len() >= MAX_KEPT {
            let overlays = &self.overlays;
            self.analyses.retain(|p, _| overlays.contains_key(p));
        }
        let a = self.again(path).unwrap_or_else(|| self.analyse(path, &BTreeMap::new()));
        let a = Arc::new(a);
        self.analyses.insert(path.to_string(), a.clone());
        a
    }

    /// The last analysis of a file, if there is one; its text may be an older one.
    pub fn last(&self, path: &str) -> Option<Arc<Analysis>> {
        self.analyses.get(path).or_else(|| self.outdated.get(path)).cloned()
    }

    /// The analysis of an open file, made from the last one: where only one body has changed since.
    fn again(&mut self, path: &str) -> Option<Analysis> {
        let Analysis { program, read, .. } = Arc::into_inner(self.outdated.remove(path)?)?;
        let text = self.overlays.get(path)?;
        Some(Analysis { program: program.with_text(text)?, number: next_number(), read })
    }

    /// The analysis of a file as it would be with other texts, which is not kept.
    pub fn analyse(&self, path: &str, replaced: &BTreeMap<String, String>) -> Analysis {
        let files = Files { ws: self, replaced, read: RefCell::default() };
        let program = tk_sema::check_indexed(&files, path);
        Analysis { program, number: next_number(), read: files.read.into_inner() }
    }

    /// The open files whose analysis reads a file.
    pub fn dependents(&mut self, path: &str) -> Vec<String> {
        let open: Vec<String> = self.overlays.keys().cloned().collect();
        open.into_iter().filter(|p| self.analysis(p).read.contains(path)).collect()
    }

    /// Every file of the workspace, and every open one.
    pub fn files(&self) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = self.overlays.keys().cloned().collect();
        all.extend(self.roots.iter().flat_map(|r| self.disk.list(r)));
        all
    }

    /// The files of the standard library by their names in `use`.
    pub fn std_files() -> impl Iterator<Item = (&'static str, String)> {
        tk_sema::std_files().map(|(name, _)| (name, format!("{STD}{name}.tk")))
    }

    /// Returns true if a file belongs to the standard library.
    pub fn is_std(path: &str) -> bool {
        path.starts_with(STD)
    }

    fn load(&self, path: &str) -> Result<Arc<str>, String> {
        if let Some(text) = self.overlays.get(path) {
            return Ok(text.clone());
        }
        if path == REFERENCE {
            return Ok(REFERENCE_TEXT.into());
        }
        if let Some(name) = path.strip_prefix(STD) {
            let found = tk_sema::std_files().find(|f| Some(f.0) == name.strip_suffix(".tk"));
            return found.map(|f| f.1.into()).ok_or_else(|| format!("the standard library has no `{name}`"));
        }
        let read = || self.disk.read(path).map(Arc::from);
        self.cached.borrow_mut().entry(path.to_string()).or_insert_with(read).clone()
    }

    fn forget(&mut self, path: &str) {
        self.analyses.retain(|_, a| !a.read.contains(path));
        self.outdated.retain(|_, a| !a.read.contains(path));
    }
}
