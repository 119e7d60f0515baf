//! Every name of Triton in the tables of `docs/from-triton.md` has a lead: the page promises that `tk check` names what
//! replaces what was written from habit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use tk_sema::{Loader, check};

/// One text under the name `main.tk`.
struct One(String);

impl Loader for One {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "main.tk" { Ok(self.0.clone()) } else { Err(format!("{path}: not found")) }
    }
}

/// Forms of Python and of the host, and values: no names that a kernel can have.
const NOT_IN_KERNELS: [&str; 4] = ["x", "v", "is_cuda", "cuda_capability_geq"];

/// The names in backquotes of the first column of the tables about `triton.language`.
fn names(page: &str) -> BTreeSet<String> {
    let (_, tables) = page.split_once("## Every function of `triton.language`").unwrap();
    let (tables, _) = tables.split_once("### `triton`").unwrap();
    let rows = tables.lines().filter_map(|l| l.strip_prefix("| ")?.split(" | ").next());
    let quoted = rows.flat_map(|first| first.split('`').skip(1).step_by(2));
    let word = |text: &str| -> String {
        let text = text.strip_prefix("x.").or(text.strip_prefix("desc.")).unwrap_or(text);
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut all: BTreeSet<String> = quoted.map(word).filter(|w| !w.is_empty()).collect();
    all.retain(|w| !NOT_IN_KERNELS.contains(&w.as_str()));
    all
}

/// Whether a program has no error, or one that says more than that something is unknown.
fn leads(text: &str) -> bool {
    let checked = check(&One(text.to_string()), "main.tk");
    let says = |d: &tk_syntax::Diagnostic| {
        let idle = |n: &String| n.contains("is not a builtin") || n.starts_with("its parameters are");
        !d.fixes.is_empty() || d.notes.iter().any(|n| !idle(n)) || d.message.contains(" takes ")
    };
    let mut errors = checked.diagnostics.iter().filter(|d| d.is_error());
    errors.next().is_none_or(says)
}

#[test]
fn every_name_of_the_tables_has_a_lead() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-triton.md");
    let page = std::fs::read_to_string(page).unwrap();
    let calls = [
        "load(p, NAME = 1)",
        "sum(v, NAME = 1)",
        "max(v, axis = 0, NAME = 1)",
        "dot(m, m, NAME = 1)",
        "cast(v, f16, NAME = 1)",
        "rand(1, arange(0, 4), NAME = 1)",
        "inline_asm(\"\", \"\", f32, v, NAME = 1)",
        "range(0, 4, NAME = 1)",
    ];
    let program = |use_of: &str| {
        format!(
            "kernel k(p: *f32, w: view[f32, 2]) {{\n    let m = w.load([0, 0], [16, 16]);\n    let v = m[0];\n    {use_of}\n}}\n"
        )
    };
    let mut missing = vec![];
    for name in names(&page) {
        let bare = leads(&program(&format!("let r = {name}(v);")));
        let of_module = leads(&program(&format!("let r = tl.{name}(v);")));
        let as_type = || leads(&format!("fn f(x: tl.{name}) {{ }}\n"));
        let as_option = || {
            calls.iter().any(|call| {
                let call = call.replace("NAME", &name);
                let use_of = match call.starts_with("range") {
                    true => format!("for i in {call} {{ }}"),
                    false => format!("let r = {call};"),
                };
                leads(&program(&use_of))
            })
        };
        if !(bare && of_module || as_type() || as_option()) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "no lead: {missing:?}");
}
