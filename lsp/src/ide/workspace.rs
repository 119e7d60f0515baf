//! The open files over those of the disk, and the analyses of them.
//!
//! An analysis is kept until a file changes that it read. Whatever the files hold, there is an analysis: of a file that
//! cannot be read, an empty one with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use tk_sema::Indexed;
use tk_sema::index::Symbol;
use tk_syntax::token::{LINE_END, Lexed, lex_range};
use tk_syntax::{FileId, SourceMap, Span, ast};

use super::background::{Job, Worker};
use super::navigate::Key;
use super::stop::Stop;
use super::texts::Texts;
use super::{Place, TextEdit, describe};

/// The number of analyses kept for files that are not open; a search through a workspace makes one of each file.
pub const MAX_KEPT: usize = 256;

/// Before the names of the standard library's files, which have no place on a disk.
pub(super) const STD: &str = "std:/";

/// The reference of the builtins, which have no source, and of the words of signatures.
pub const REFERENCE: &str = "std:/ops.md";
/// Its text.
pub(super) static REFERENCE_TEXT: LazyLock<String> = LazyLock::new(|| {
    let words = describe::all_words().map(|(_, code, doc)| format!("\n### `{code}`\n\n{doc}\n"));
    let operations = include_str!("../../../spec/ops.md");
    format!("{operations}\n## Clauses, attributes, exports and tests\n{}", words.collect::<String>())
});

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
    /// The number of the last analysis that checked everything, and the bytes of the file that have changed since then:
    /// all others have the text, the places and the meanings that they had there.
    pub since: (u64, Range<usize>),
    /// The files that were asked for, those that could not be read included.
    pub read: BTreeSet<String>,
}

impl std::ops::Deref for Analysis {
    type Target = Indexed;

    fn deref(&self) -> &Indexed {
        &self.program
    }
}

/// The bytes of a text that differ from another one of its length; all of it for other lengths.
fn difference(old: &str, new: &str) -> Range<usize> {
    if old.len() != new.len() {
        return 0..new.len();
    }
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let start = old.iter().zip(new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    start..(new.len() - tail).max(start)
}

impl Analysis {
    pub(super) fn new(program: Indexed, read: BTreeSet<String>) -> Analysis {
        let number = next_number();
        let size = program.checked.sources.get(Self::ROOT).map_or(0, |s| s.text.len());
        Analysis { program, number, since: (number, size..0), read }
    }

    /// The analysis of another text of the file that was asked for, if only one body has changed.
    pub(super) fn with_text(self, text: &str) -> Option<Analysis> {
        let changed = difference(self.root_text(), text);
        let (full, all) = self.since;
        let since = (full, all.start.min(changed.start)..all.end.max(changed.end));
        Some(Analysis { since, ..Analysis::new(self.program.with_text(text)?, self.read) })
    }

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

    /// The tokens of a part of the file that [`Analysis::near`] gives.
    pub(super) fn lexed(&self, part: &Range<usize>) -> Lexed<'_> {
        let text = self.root_text();
        lex_range(Self::ROOT, text.get(..part.end).unwrap_or(text), part.start, &BTreeSet::new())
    }

    /// The items at some bytes, and those before and after them. A lexer that begins where an item begins a line finds the
    /// tokens that one of the whole text finds.
    pub fn near(&self, bytes: &Range<usize>) -> Range<usize> {
        let text = self.root_text();
        let items: &[ast::Item] = self.root().map_or(&[], |f| &f.items);
        let begins_line = |at: usize| text.get(..at).is_some_and(|t| t.is_empty() || t.ends_with(LINE_END));
        let starts = |items: &[ast::Item]| -> Vec<usize> {
            items.iter().map(|i| i.span.start as usize).filter(|at| begins_line(*at)).collect()
        };
        let split = items.partition_point(|i| i.span.start as usize <= bytes.start);
        let start = items.get(..split).map(starts).unwrap_or_default().iter().rev().nth(1).copied();
        let behind = items.partition_point(|i| i.span.start as usize <= bytes.end);
        let end = items.get(behind..).map(starts).unwrap_or_default().get(1).copied();
        start.unwrap_or(0)..end.unwrap_or(text.len())
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

/// The tree of a file, which is there before its check ends.
pub(super) enum Parsed {
    /// The file as the root.
    Checked(Arc<Analysis>),
    /// Its sources and its tree.
    Alone(SourceMap, ast::File),
}

impl Parsed {
    /// The sources of the file, which has the number [`Analysis::ROOT`] in them.
    pub(super) fn sources(&self) -> &SourceMap {
        match self {
            Parsed::Checked(a) => &a.checked.sources,
            Parsed::Alone(sources, _) => sources,
        }
    }

    /// The text of the file.
    pub(super) fn text(&self) -> &str {
        self.sources().get(Analysis::ROOT).map_or("", |s| &s.text)
    }

    /// The items of the file.
    pub(super) fn items(&self) -> &[ast::Item] {
        match self {
            Parsed::Checked(a) => a.root().map_or(&[], |f| &f.items),
            Parsed::Alone(_, tree) => &tree.items,
        }
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Hears of the path of a file.
pub type OnCheck = Box<dyn Fn(&str) + Send>;

/// What was found in each file, with the number of its analysis.
type Found = BTreeMap<String, (u64, Vec<Place>)>;

/// Open files over a disk, with the analyses that were asked for.
pub struct Workspace {
    texts: Texts,
    roots: Vec<String>,
    analyses: BTreeMap<String, Arc<Analysis>>,
    /// The last analyses of open files whose text has changed since, and nothing else that they read: where one body
    /// has changed, the rest is as it was.
    outdated: BTreeMap<String, Arc<Analysis>>,
    /// The number of the last analysis of each file, if nothing that it read has changed, and what that is; it may be kept no
    /// longer.
    numbers: BTreeMap<String, (u64, BTreeSet<String>)>,
    /// The last search for a name: what was found in each file, by the number of its analysis.
    pub(super) searched: Option<(Key, Found)>,
    /// The edits of the last renaming, and the files that mean the same after it.
    pub(super) verified: Option<(Vec<TextEdit>, BTreeSet<String>)>,
    /// The check that runs in the background.
    job: Option<Job>,
    worker: Worker,
    /// The file whose check in the background failed.
    failed: Option<String>,
    /// Tells the work on an answer that nobody waits for it.
    pub stop: Stop,
    /// Hears of each file that is checked while somebody waits for it.
    pub on_check: Option<OnCheck>,
}

impl Workspace {
    /// A workspace of some folders.
    pub fn new(disk: Box<dyn Disk>, roots: Vec<String>) -> Self {
        let (analyses, outdated, numbers, searched, verified) = Default::default();
        let (texts, (job, worker, failed, stop, on_check)) = (Texts::new(disk), Default::default());
        Workspace {
            texts,
            roots,
            analyses,
            outdated,
            numbers,
            searched,
            verified,
            job,
            worker,
            failed,
            stop,
            on_check,
        }
    }

    /// Takes the text of a file from the editor: when it is opened and after every change.
    pub fn open(&mut self, path: &str, text: String) {
        if self.texts.overlays.get(path).is_some_and(|before| **before == *text) {
            return;
        }
        self.give_up_check();
        self.texts.overlays.insert(path.to_string(), text.into());
        let last = self.analyses.remove(path).or_else(|| self.outdated.remove(path));
        self.forget(path);
        self.outdated.extend(last.map(|a| (path.to_string(), a)));
    }

    /// Takes the text of a file from the disk again.
    pub fn close(&mut self, path: &str) {
        self.give_up_check();
        self.texts.overlays.remove(path);
        self.changed_on_disk(path);
    }

    /// The text of a file as it is now; `None` where there is none.
    pub fn text(&self, path: &str) -> Option<String> {
        self.texts.load(path).ok().map(|t| t.to_string())
    }

    /// Forgets what was read from a file of the disk.
    pub fn changed_on_disk(&mut self, path: &str) {
        self.give_up_check();
        self.texts.forget(path);
        if !self.texts.overlays.contains_key(path) {
            self.forget(path);
        }
    }

    /// The analysis of a file as the root.
    pub fn analysis(&mut self, path: &str) -> Arc<Analysis> {
        if let Some(a) = self.analyses.get(path) {
            return a.clone();
        }
        if self.is_checking(path) {
            self.wait_for_check();
            return self.analysis(path);
        }
        self.on_check.iter().for_each(|hear| hear(path));
        let last = self.outdated.remove(path).and_then(Arc::into_inner);
        let a = self.texts.check_again(path, last, &self.stop);
        self.keep(path, a)
    }

    /// The tree of a file as it is now; `None` where there is no file. It waits for no check but that of one body, which takes
    /// less than to read the whole file.
    pub(super) fn parsed(&mut self, path: &str) -> Option<Parsed> {
        if let Some(job) = self.job.as_ref().filter(|job| job.path == path)
            && let Some(found) = job.soon()
        {
            self.finish_check(found);
        }
        if let Some(a) = self.analyses.get(path) {
            return Some(Parsed::Checked(a.clone()));
        }
        let last = self.outdated.remove(path).and_then(Arc::into_inner);
        if let Some(a) = last.and_then(|last| self.texts.check_body(path, last)) {
            return Some(Parsed::Checked(self.keep(path, a)));
        }
        let text = self.texts.load(path).ok()?;
        let mut sources = SourceMap::default();
        let (tree, _) = tk_syntax::parse(sources.add(path, &text), &text);
        Some(Parsed::Alone(sources, tree))
    }

    fn keep(&mut self, path: &str, a: Analysis) -> Arc<Analysis> {
        if self.analyses.len() >= MAX_KEPT {
            let overlays = &self.texts.overlays;
            self.analyses.retain(|p, _| overlays.contains_key(p));
        }
        self.numbers.insert(path.to_string(), (a.number, a.read.clone()));
        let a = Arc::new(a);
        self.analyses.insert(path.to_string(), a.clone());
        a
    }

    /// Begins the check of an open file in the background, unless one runs; says when it is done.
    pub fn begin_check(&mut self, path: &str, done: impl FnOnce() + Send + 'static) {
        if self.job.is_none() && !self.is_checked(path) {
            let last = self.outdated.remove(path).and_then(Arc::into_inner);
            self.job = Job::start(&mut self.worker, path, self.texts.clone(), last, done);
            self.failed = self.job.is_none().then(|| path.to_string());
        }
    }

    /// Returns true if a file is being checked in the background.
    pub fn is_checking(&self, path: &str) -> bool {
        self.job.as_ref().is_some_and(|job| job.path == path)
    }

    /// Returns true if nothing is left to be checked of a file in the background.
    pub fn is_checked(&self, path: &str) -> bool {
        self.analyses.contains_key(path) || self.failed.as_deref() == Some(path)
    }

    /// Takes the result of the check in the background if it is done; returns false if it is not.
    pub fn take_check(&mut self) -> bool {
        let Some(job) = &self.job else { return true };
        let Some(found) = job.poll() else { return false };
        self.finish_check(found);
        true
    }

    fn wait_for_check(&mut self) {
        let Some(found) = self.job.as_ref().and_then(|job| job.wait(&self.stop)) else {
            return self.stop.check();
        };
        self.finish_check(found);
    }

    fn finish_check(&mut self, found: Option<Analysis>) {
        let Some(job) = self.job.take() else { return };
        match found {
            Some(a) => drop(self.keep(&job.path, a)),
            None => self.failed = Some(job.path.clone()),
        }
    }

    /// A file changes: the check in the background is for nothing, unless it ends soon.
    fn give_up_check(&mut self) {
        self.failed = None;
        let Some(job) = self.job.take() else { return };
        let path = job.path.clone();
        if let Some(a) = job.give_up() {
            self.keep(&path, a);
        }
    }

    /// The last analysis of a file, if there is one; its text may be an older one.
    pub fn last(&mut self, path: &str) -> Option<Arc<Analysis>> {
        self.give_up_check();
        self.analyses.get(path).or_else(|| self.outdated.get(path)).cloned()
    }

    /// The analysis of a file as it would be with other texts, which is not kept.
    pub fn analyse(&self, path: &str, replaced: &BTreeMap<String, String>) -> Analysis {
        self.texts.check(path, replaced, &self.stop)
    }

    /// The open files whose analysis reads a file.
    pub fn dependents(&mut self, path: &str) -> Vec<String> {
        let open: Vec<String> = self.texts.overlays.keys().cloned().collect();
        open.into_iter().filter(|p| self.analysis(p).read.contains(path)).collect()
    }

    /// Every file of the workspace, and every open one.
    pub fn files(&self) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = self.texts.overlays.keys().cloned().collect();
        all.extend(self.roots.iter().flat_map(|r| self.texts.list(r)));
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

    /// The number of the last analysis of a file; `None` if another one would be made of what has changed since.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.numbers.get(path).map(|n| n.0)
    }

    fn forget(&mut self, path: &str) {
        self.verified = None;
        self.numbers.retain(|_, (_, read)| !read.contains(path));
        self.analyses.retain(|_, a| !a.read.contains(path));
        self.outdated.retain(|_, a| !a.read.contains(path));
    }
}
