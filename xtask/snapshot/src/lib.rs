//! Compares what tests produce with files, or writes it to them where `TK_BLESS` is set. For tests only; expected text in
//! a file is always read by this.
//!
//! Guarantees that a test sees every difference before it fails, and that a file which is right is not touched.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// Lines that are shown of one difference.
const SHOWN: usize = 60;
/// Equal lines around a change.
const CONTEXT: usize = 3;

/// What differs so far.
#[must_use = "`finish` fails the test"]
#[derive(Debug)]
pub struct Snapshots {
    bless: bool,
    differences: Vec<String>,
}

impl Snapshots {
    /// None yet. Whether files are written is in the environment.
    pub fn new() -> Snapshots {
        Snapshots { bless: std::env::var_os("TK_BLESS").is_some(), differences: vec![] }
    }

    /// Compares a file with its text; a file that is missing is empty.
    pub fn check(&mut self, path: impl AsRef<Path>, found: &str) {
        let path = path.as_ref();
        let expected = fs::read_to_string(path).unwrap_or_default();
        if expected == found {
            return;
        }
        if self.bless {
            let written = fs::write(path, found);
            assert!(written.is_ok(), "{}: {written:?}", path.display());
        } else {
            self.differences.push(format!("{}:\n{}", path.display(), difference(&expected, found)));
        }
    }

    /// Fails the test with every difference, if there is one.
    pub fn finish(self) {
        let all = self.differences;
        assert!(
            all.is_empty(),
            "{} files differ; TK_BLESS=1 writes what was found\n\n{}",
            all.len(),
            all.join("\n")
        );
    }
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots::new()
    }
}

/// Compares one file with its text and fails the test where they differ: [`Snapshots`] of a test that has only this file.
pub fn check(path: impl AsRef<Path>, found: &str) {
    let mut snapshots = Snapshots::new();
    snapshots.check(path, found);
    snapshots.finish();
}

/// A unified difference, cut where it is long.
fn difference(expected: &str, found: &str) -> String {
    let diff = TextDiff::from_lines(expected, found);
    let whole = diff.unified_diff().context_radius(CONTEXT).header("expected", "found").to_string();
    let count = whole.lines().count();
    let mut shown: String = whole.lines().take(SHOWN).map(|l| format!("{l}\n")).collect();
    if count > SHOWN {
        shown += &format!("({} more lines)\n", count - SHOWN);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_show_the_lines_that_changed() {
        let lines: Vec<String> = (0..20).map(|i| format!("line {i}\n")).collect();
        let (old, new) = (lines.concat(), lines.concat().replace("line 9\n", "line nine\n"));
        assert_eq!(
            difference(&old, &new),
            "--- expected\n+++ found\n@@ -7,7 +7,7 @@\n line 6\n line 7\n line 8\n-line 9\n+line nine\n line 10\n line 11\n line 12\n"
        );
        let all = difference("", &"a line\n".repeat(200));
        assert!(all.ends_with("+a line\n(143 more lines)\n"), "{all}");
    }

    #[test]
    fn every_difference_is_shown_and_nothing_is_written() {
        let folder = std::env::temp_dir().join(format!("tk-snapshot-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a"), "a\n").unwrap();
        let mut snapshots = Snapshots { bless: false, differences: vec![] };
        for (name, text) in [("a", "a\n"), ("b", "b\n"), ("c", "c\n")] {
            snapshots.check(folder.join(name), text);
        }
        assert_eq!(snapshots.differences.len(), 2);
        assert!(snapshots.differences[1].contains("+c\n") && !folder.join("c").exists());
        let mut snapshots = Snapshots { bless: true, differences: vec![] };
        snapshots.check(folder.join("b"), "b\n");
        snapshots.finish();
        assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "b\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
