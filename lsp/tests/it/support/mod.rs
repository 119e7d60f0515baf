//! A workspace in memory, and places drawn under their lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use tk_lsp::ide::{Disk, Place, Workspace};

pub struct Memory(pub BTreeMap<String, String>);

impl Disk for Memory {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| format!("there is no file `{path}`"))
    }
    fn list(&self, root: &str) -> Vec<String> {
        self.0.keys().filter(|k| k.starts_with(root)).cloned().collect()
    }
}

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A workspace of these files in the folder `/w`.
pub fn workspace(files: &[(&str, &str)]) -> Workspace {
    let files = files.iter().map(|(n, t)| (format!("/w/{n}"), (*t).to_string()));
    Workspace::new(Box::new(Memory(files.collect())), vec!["/w/".into()])
}

/// The `.tk` files of a folder of the repository: name and text.
pub fn folder(name: &str) -> Vec<(String, String)> {
    let mut out = vec![];
    for entry in std::fs::read_dir(root().join(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "tk") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            out.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    out.sort();
    assert!(!out.is_empty());
    out
}

/// The line of a place with the place drawn under it, and a text.
pub fn draw(ws: &Workspace, p: &Place, note: &str) -> String {
    let text = ws.text(&p.path).unwrap_or_default();
    let begin = text[..p.start].rfind('\n').map_or(0, |i| i + 1);
    let stop = text[p.start..].find('\n').map_or(text.len(), |i| p.start + i);
    let end = p.end.min(stop);
    let number = text[..p.start].matches('\n').count() + 1;
    let more = if p.end > stop {
        format!(" .. {} lines", text[p.start..p.end].matches('\n').count() + 1)
    } else {
        String::new()
    };
    let width = text[p.start..end].chars().count().max(1);
    let pad = text[begin..p.start].chars().count();
    let name = p.path.trim_start_matches("/w/");
    let note = if note.is_empty() { String::new() } else { format!(" {note}") };
    format!(
        "{name}:{number}\n    {}\n    {}{}{more}{note}\n",
        &text[begin..stop],
        " ".repeat(pad),
        "^".repeat(width)
    )
}
