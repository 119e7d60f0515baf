//! How far the reader is: a small text file beside the files of the puzzles.
//!
//! Accepts any contents: what it cannot read counts as nothing. A line for a puzzle that this version does not have is
//! kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tk_bundle::regular;
use tk_runtime::files::{reason, write_all};

use tk_learn::Puzzle;

/// The name of the file.
const NAME: &str = "progress.txt";

const HEAD: &str = "# Written by `tk learn`: the current puzzle, and for each one whether it is done and how many\n\
    # hints it has shown. Without this file, nothing is done.\n";

/// The state of the puzzles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The folder of the file.
    folder: PathBuf,
    /// The puzzle that was checked or begun last, or the one after it.
    current: Option<String>,
    /// Whether the file has lines that this command did not write.
    pub is_damaged: bool,
    puzzles: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    is_done: bool,
    hints: usize,
}

impl Progress {
    /// Reads the file in a folder.
    pub fn load(folder: &Path) -> Progress {
        let bytes = regular::read(&folder.join(NAME)).unwrap_or_default();
        let mut progress = Progress { folder: folder.to_path_buf(), ..Progress::default() };
        for line in String::from_utf8_lossy(&bytes).lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.clone().next()) {
                (None, _) => {}
                (Some(word), _) if word.starts_with('#') => {}
                (Some("current"), Some(name)) if is_name(name) => progress.current = Some(name.to_string()),
                (Some(name), Some(_)) if is_name(name) => {
                    let entry = progress.puzzles.entry(name.to_string()).or_default();
                    for word in words {
                        let hints = word.strip_prefix("hints=").and_then(|n| n.parse().ok());
                        entry.is_done |= word == "done";
                        entry.hints = hints.unwrap_or(entry.hints);
                    }
                }
                _ => progress.is_damaged = true,
            }
        }
        progress
    }

    /// The path of the file.
    pub fn path(&self) -> String {
        self.folder.join(NAME).display().to_string()
    }

    /// Writes the file, and makes its folder. What another command has written since stays: a puzzle that is done is done,
    /// and hints that were shown were shown. The error is one sentence.
    pub fn save(&self) -> Result<(), String> {
        let mut puzzles = Progress::load(&self.folder).puzzles;
        for (name, own) in &self.puzzles {
            let entry = puzzles.entry(name.clone()).or_default();
            entry.is_done |= own.is_done;
            entry.hints = entry.hints.max(own.hints);
        }
        let mut text = HEAD.to_string();
        if let Some(name) = &self.current {
            text += &format!("current {name}\n");
        }
        for (name, entry) in &puzzles {
            let done = if entry.is_done { " done" } else { "" };
            text += &format!("{name}{done} hints={}\n", entry.hints);
        }
        make_folder(&self.folder)?;
        write_all(&[(self.folder.join(NAME), text.into_bytes())])
    }

    /// Returns true if the reader has solved the puzzle once.
    pub fn is_done(&self, puzzle: &Puzzle) -> bool {
        self.puzzles.get(puzzle.name).is_some_and(|e| e.is_done)
    }

    /// The puzzle is solved, and the next one is the current one.
    pub fn done(&mut self, puzzle: &Puzzle, puzzles: &[Puzzle]) {
        self.puzzles.entry(puzzle.name.to_string()).or_default().is_done = true;
        if let Some(next) = self.next(puzzles) {
            self.begin(next);
        }
    }

    /// The puzzle is the current one.
    pub fn begin(&mut self, puzzle: &Puzzle) {
        self.current = Some(puzzle.name.to_string());
    }

    /// Shows one hint more, as long as there is one: its number, from 1 on.
    pub fn hint(&mut self, puzzle: &Puzzle) -> usize {
        let entry = self.puzzles.entry(puzzle.name.to_string()).or_default();
        entry.hints = entry.hints.saturating_add(1).min(puzzle.hints.len());
        entry.hints
    }

    /// The puzzle that is meant where none is named: the current one, even if it is done.
    pub fn current<'p>(&self, puzzles: &'p [Puzzle]) -> Option<&'p Puzzle> {
        let current = puzzles.iter().find(|p| Some(p.name) == self.current.as_deref());
        current.or_else(|| self.next(puzzles))
    }

    /// The puzzle to do next: the current one, or the first after it that is not done; `None` if all are done.
    pub fn next<'p>(&self, puzzles: &'p [Puzzle]) -> Option<&'p Puzzle> {
        let at = puzzles.iter().position(|p| Some(p.name) == self.current.as_deref()).unwrap_or(0);
        let (before, after) = puzzles.split_at(at.min(puzzles.len()));
        after.iter().chain(before).find(|p| !self.is_done(p))
    }
}

/// Returns true for what is the name of a puzzle in some version: `03_edges`.
fn is_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.starts_with(|c: char| c.is_ascii_digit()) && word.len() <= 40 && word.chars().all(plain)
}

/// Says that a path is a link to something that does not exist.
pub fn dangling(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok().filter(|_| !path.exists())?;
    Some(format!(
        "{} is a link to {}, which does not exist; remove the link",
        path.display(),
        target.display()
    ))
}

/// Makes the folder of the puzzles; the current folder is there.
pub fn make_folder(folder: &Path) -> Result<(), String> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(why) = dangling(folder) {
        return Err(why);
    }
    if folder.is_file() {
        let name = folder.display();
        return Err(format!(
            "cannot make the folder {name}: a file has that name; rename it, or work in another folder"
        ));
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot make the folder {}: {}", folder.display(), reason(&e)))
}
