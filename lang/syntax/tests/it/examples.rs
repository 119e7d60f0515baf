//! Every prefix of every example and library file gives a tree, a few messages and no panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use tk_syntax::{FileId, parse};

#[test]
fn every_prefix_gives_a_tree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = 0;
    for folder in ["examples", "stdlib"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "tk") {
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let (whole, _) = parse(FileId(0), &text);
            for (end, _) in text.char_indices() {
                let (tree, messages) = parse(FileId(0), &text[..end]);
                assert!(tree.items.len() <= whole.items.len() + 1, "{}: {end}", path.display());
                assert!(messages.len() <= 4, "{}: {end}: {messages:?}", path.display());
            }
        }
    }
    assert!(files >= 10, "only {files} files found");
}
