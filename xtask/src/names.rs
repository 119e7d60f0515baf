//! Checks that a name of a public type has one meaning in the compiler.
//!
//! Guarantees that no two types of `codegen/*/src` and `lang/*/src` that are `pub` have the same name, whatever their
//! modules. Types of tests, inside of functions and of a narrower visibility are not restricted.

use std::collections::BTreeMap;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::source;

/// The folders of the crates whose names are compared.
const FOLDERS: &[&str] = &["codegen", "lang"];

/// The problems.
pub fn check(root: &Path) -> Vec<String> {
    let crates = FOLDERS.iter().flat_map(|folder| source::folders(root, folder));
    let files = crates.flat_map(|c| source::files(root, &format!("{c}/src"), "rs"));
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut problems = vec![];
    for file in files {
        let tree = match syn::parse_file(&file.text) {
            Ok(tree) => tree,
            Err(error) => {
                problems.push(format!("{}: {error}", file.path));
                continue;
            }
        };
        let mut types = Types::default();
        types.visit_file(&tree);
        for name in types.found {
            match first.get(&name) {
                Some(other) => problems.push(format!(
                    "{}: the public type `{name}` has the name of one in {other}; say in the name what it is, or make it \
                     `pub(crate)`",
                    file.path
                )),
                None => {
                    first.insert(name, file.path.clone());
                }
            }
        }
    }
    problems
}

/// The public types of a file, outside of its tests.
#[derive(Default)]
struct Types {
    found: Vec<String>,
}

impl Types {
    fn add(&mut self, vis: &syn::Visibility, name: &syn::Ident) {
        if matches!(vis, syn::Visibility::Public(_)) {
            self.found.push(name.to_string());
        }
    }

    /// The types that a macro defines, by the words of its text. Names that it is given begin with `$`.
    fn in_macro(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        for three in words.windows(3) {
            if let ["pub", "struct" | "enum" | "union" | "trait" | "type", name] = three
                && name.starts_with(char::is_alphabetic)
            {
                self.found.push(name.to_string());
            }
        }
    }
}

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Struct(i) => self.add(&i.vis, &i.ident),
            syn::Item::Enum(i) => self.add(&i.vis, &i.ident),
            syn::Item::Union(i) => self.add(&i.vis, &i.ident),
            syn::Item::Trait(i) => self.add(&i.vis, &i.ident),
            syn::Item::Type(i) => self.add(&i.vis, &i.ident),
            syn::Item::Macro(i) => self.in_macro(&i.mac.tokens.to_string()),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let is_test = item.attrs.iter().any(|a| a.path().is_ident("cfg"));
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    // A type inside of a function is of that function.
    fn visit_block(&mut self, _: &'a syn::Block) {}
}
