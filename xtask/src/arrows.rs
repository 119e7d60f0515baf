//! Checks how the files of `codegen` import each other: in one direction between the modules of `codegen/gpu`, and without
//! large cycles anywhere. Code generation imports no pass.
//!
//! Guarantees that `codegen/gpu/src/lib.rs` names the direction that the imports have. What only tests import is not
//! restricted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};

use crate::source::{self, File};

/// The crate whose modules have a direction.
const ORDERED: &str = "codegen/gpu/src/";
/// What follows the passes, and knows their result alone: results of earlier runs are used where that is unchanged
/// (`codegen/driver/src/compile/unchanged.rs`).
const AFTER_PASSES: &str = "codegen/llvm/src/";
/// The most files that may import each other in a cycle.
const CYCLE: usize = 4;

/// The problems.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = vec![];
    for folder in source::folders(root, "codegen") {
        let folder = format!("{folder}/src/");
        let files = source::files(root, folder.trim_end_matches('/'), "rs");
        let edges = edges(&folder, &files, &mut problems);
        problems.extend(cycles(&files, &edges));
        if folder == ORDERED {
            match order(&files) {
                Ok(order) => problems.extend(against(&order, &files, &edges)),
                Err(problem) => problems.push(problem),
            }
        }
    }
    problems
}

/// Imports between files, by their indices.
type Edges = BTreeSet<(usize, usize)>;

/// The module that a file is, by the names of its path: `passes/cluster.rs` is `[passes, cluster]`.
fn module<'a>(folder: &str, file: &'a File) -> Vec<&'a str> {
    let path = file.path.strip_prefix(folder).unwrap_or(&file.path).trim_end_matches(".rs");
    path.split('/').filter(|n| !["mod", "lib", "main"].contains(n)).collect()
}

fn edges(folder: &str, files: &[File], problems: &mut Vec<String>) -> Edges {
    let modules: BTreeMap<Vec<String>, usize> =
        files.iter().enumerate().map(|(n, f)| (owned(&module(folder, f)), n)).collect();
    let mut edges = Edges::new();
    for (from, file) in files.iter().enumerate() {
        let tree = match syn::parse_file(&file.text) {
            Ok(tree) => tree,
            Err(error) => {
                problems.push(format!("{}: {error}", file.path));
                continue;
            }
        };
        let mut imports = Imports { module: owned(&module(folder, file)), paths: vec![] };
        imports.visit_file(&tree);
        let is_of_passes = |path: &Vec<String>| path.windows(2).any(|names| names == ["tk_gpu", "passes"]);
        if folder == AFTER_PASSES && imports.paths.iter().any(is_of_passes) {
            problems.push(format!(
                "{}: imports a pass; what a kernel becomes follows from scheduled IR",
                file.path
            ));
        }
        for path in imports.paths {
            // The longest part that is a file, but not the root: everybody may use its re-exports.
            let to = (1..=path.len()).rev().find_map(|n| modules.get(path.get(..n)?));
            edges.extend(to.filter(|to| **to != from).map(|to| (from, *to)));
        }
    }
    edges
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The paths from the root of the crate that a file names, outside of its tests.
struct Imports {
    module: Vec<String>,
    paths: Vec<Vec<String>>,
}

impl Imports {
    /// The path from the root; `None` if it begins elsewhere than in this crate.
    fn add(&mut self, names: &[String]) {
        let mut at: Option<Vec<String>> = None;
        let mut rest = names;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at = Some(vec![]),
                "self" => at = at.or(Some(self.module.clone())),
                "super" => {
                    let mut path = at.unwrap_or_else(|| self.module.clone());
                    path.pop();
                    at = Some(path);
                }
                _ => break,
            }
            rest = others;
        }
        // A child of this module, if there is one with this name.
        let path = at.unwrap_or_else(|| self.module.clone());
        self.paths.push([path, rest.to_vec()].concat());
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(p) => self.tree(&with(&p.ident), &p.tree),
            syn::UseTree::Name(n) => self.add(&with(&n.ident)),
            syn::UseTree::Rename(n) => self.add(&with(&n.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(g) => g.items.iter().for_each(|t| self.tree(before, t)),
        }
    }
}

impl<'a> Visit<'a> for Imports {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        // `pub use` in a folder's file names what is in the folder; it needs nothing of it.
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 {
            self.add(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let is_test = item.attrs.iter().any(|a| a.path().is_ident("cfg"));
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The order of the modules, from the line of the crate's documentation that has arrows.
fn order(files: &[File]) -> Result<Vec<String>, String> {
    let root = files.iter().find(|f| f.path.ends_with("/lib.rs"));
    let line = root.and_then(|f| f.text.lines().find(|l| l.starts_with("//!") && l.contains('→')));
    let line = line.ok_or_else(|| format!("{ORDERED}lib.rs: no line of its documentation has arrows"))?;
    let arrows = line.rsplit(':').next().unwrap_or(line);
    let clean = |n: &str| n.chars().filter(char::is_ascii_lowercase).collect();
    Ok(arrows.split('→').map(clean).collect())
}

/// Imports against the order.
fn against(order: &[String], files: &[File], edges: &Edges) -> Vec<String> {
    let place = |n: usize| {
        let file = files.get(n)?;
        let top = module(ORDERED, file).first().copied()?;
        Some((file, order.iter().position(|o| o == top)?))
    };
    let mut problems = vec![];
    for (from, to) in edges {
        if let (Some((user, high)), Some((used, low))) = (place(*from), place(*to))
            && low < high
        {
            let line = order.join(" → ");
            problems.push(format!("{}: imports {}, against {line}", user.path, used.path));
        }
    }
    let known = |f: &&File| module(ORDERED, f).first().is_none_or(|m| order.iter().any(|o| o == m));
    let unknown = files.iter().filter(|f| !known(f));
    problems.extend(
        unknown.map(|f| format!("{}: {ORDERED}lib.rs does not say which modules may use it", f.path)),
    );
    problems
}

/// Files that import each other.
fn cycles(files: &[File], edges: &Edges) -> Vec<String> {
    let graph: DiGraphMap<usize, ()> = edges.iter().copied().collect();
    let large = tarjan_scc(&graph).into_iter().filter(|c| c.len() > CYCLE);
    large
        .map(|cycle| {
            let mut names: Vec<&str> =
                cycle.iter().filter_map(|n| files.get(*n)).map(|f| f.path.as_str()).collect();
            names.sort_unstable();
            let (first, others) = names.split_first().map_or(("", &[][..]), |(f, o)| (*f, o));
            format!("{first}: in an import cycle with {}", others.join(", "))
        })
        .collect()
}
