//! Checks the edges between crates: the manifests must agree with the table in `docs/architecture.md`.
//!
//! Guarantees that every crate of the workspace has a row and that it depends on no crate of ours which its row does
//! not name. What only tests and build scripts use is not restricted.

use std::collections::BTreeMap;
use std::path::Path;

use crate::source;

const PAGE: &str = "docs/architecture.md";

/// The crates of ours that a crate may use, by folder. `None`: all.
type Allowed = BTreeMap<String, Option<Vec<String>>>;

/// The problems.
pub fn check(root: &Path) -> Vec<String> {
    let page = match source::read(root, PAGE) {
        Ok(page) => page,
        Err(problem) => return vec![problem],
    };
    let allowed = table(&page);
    let mut problems = vec![];
    let mut seen = vec![];
    for manifest in source::files(root, "", "toml").iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let folder = manifest.path.trim_end_matches("/Cargo.toml").to_string();
        match allowed.get(&folder) {
            None => problems.push(format!("{PAGE}: the crate table has no row for `{folder}`")),
            Some(None) => {}
            Some(Some(names)) => problems.extend(
                dependencies(&manifest.text)
                    .into_iter()
                    .filter(|d| !names.contains(d))
                    .map(|d| format!("{}: the crate table of {PAGE} does not allow `{d}`", manifest.path)),
            ),
        }
        seen.push(folder);
    }
    let missing = allowed.keys().filter(|f| !seen.contains(f));
    problems.extend(missing.map(|f| format!("{PAGE}: there is no crate `{f}`")));
    problems
}

/// The rows of the table whose head is `| crate | contents | may depend on |`: the first cell holds the folder and the
/// name, the last one folders or the last parts of them, `nothing of ours` or `all`.
fn table(page: &str) -> Allowed {
    let rows =
        page.lines().skip_while(|l| !l.starts_with("| crate |")).skip(2).take_while(|l| l.starts_with('|'));
    let mut names = BTreeMap::new();
    let mut cells = vec![];
    for row in rows {
        let cell: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (Some(first), Some(last)) = (cell.first(), cell.last()) else { continue };
        let quoted: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
        if let [folder, name] = quoted.as_slice() {
            names.insert(folder.to_string(), name.to_string());
            names.insert(folder.rsplit('/').next().unwrap_or(folder).to_string(), name.to_string());
            cells.push((folder.to_string(), last.to_string()));
        }
    }
    let full = |short: &str| names.get(short).cloned().unwrap_or_else(|| short.to_string());
    let allowed = |cell: &str| match cell {
        "all" => None,
        "nothing of ours" => Some(vec![]),
        list => Some(list.split(',').map(|short| full(short.trim())).collect()),
    };
    cells.into_iter().map(|(folder, cell)| (folder, allowed(&cell))).collect()
}

/// The crates of ours in `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|l| l.trim() != "[dependencies]").skip(1);
    let names = lines.take_while(|l| !l.starts_with('[')).filter_map(|l| l.split(['.', '=', ' ']).next());
    names.filter(|n| n.starts_with("tk-")).map(str::to_string).collect()
}
