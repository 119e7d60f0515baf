//! The puzzles: `docs/learn` is part of the program.

use include_dir::{Dir, include_dir};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../docs/learn");

/// A puzzle.
#[derive(Clone, Debug)]
pub struct Puzzle {
    /// From 1 on.
    pub number: usize,
    /// The name of its folder: `03_edges`.
    pub name: &'static str,
    /// The title: `Edges`.
    pub title: &'static str,
    /// The file that the reader completes.
    pub text: &'static str,
    /// A complete one.
    pub solution: &'static str,
    /// The `test` blocks that come after the reader's own.
    pub hidden: &'static str,
    /// The hints, in order.
    pub hints: Vec<&'static str>,
}

impl Puzzle {
    /// The puzzle in a folder that is named after its number.
    fn new(folder: &'static Dir<'static>) -> Option<Puzzle> {
        let name = folder.path().file_name()?.to_str()?;
        let number = name.split_once('_')?.0.parse().ok()?;
        let file = |name: &str| FILES.get_file(folder.path().join(name))?.contents_utf8();
        let text = file("puzzle.tk")?;
        let title = text.lines().next()?.split_once(": ")?.1;
        let hints = file("hints.md")?.split("\n---\n").map(str::trim).collect();
        Some(Puzzle {
            number,
            name,
            title,
            text,
            solution: file("solution.tk")?,
            hidden: file("hidden.tk")?,
            hints,
        })
    }

    /// The task: the comment at the beginning of the file, without its first line.
    pub fn task(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//")).skip(1);
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    }
}

/// All of them, in order.
pub fn all() -> Vec<Puzzle> {
    let mut all: Vec<Puzzle> = FILES.dirs().filter_map(Puzzle::new).collect();
    all.sort_by_key(|p| p.number);
    all
}
