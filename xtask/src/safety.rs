//! Checks what every package declares: that its crates have no unsafe code where none is needed, and its licence.

use std::path::Path;

use crate::source::{self, File};

/// The first line of a crate without unsafe code.
const FORBID: &str = "#![forbid(unsafe_code)]";
/// The licence, as manifests name it.
const LICENSE: &str = "\"MIT OR Apache-2.0\"";
/// Its texts.
const TEXTS: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The problems; `rust` are all Rust files.
pub fn check(root: &Path, rust: &[File]) -> Vec<String> {
    let mut problems: Vec<String> = rust.iter().filter_map(|file| unsafe_code(file, rust)).collect();
    let manifests = source::files(root, "", "toml").into_iter().filter(|f| f.path.ends_with("Cargo.toml"));
    let packages = source::files(root, "editors", "json")
        .into_iter()
        .filter(|f| f.path.ends_with("/package.json") && !f.path.contains("node_modules/"));
    problems.extend(
        manifests
            .chain(packages)
            .filter(|f| !is_licensed(&f.text))
            .map(|f| format!("{}: names no licence; `license.workspace = true`, or {LICENSE}", f.path)),
    );
    let missing = TEXTS.iter().filter(|name| !root.join(name).is_file());
    problems.extend(missing.map(|name| format!("{name}: is missing")));
    problems
}

fn is_licensed(text: &str) -> bool {
    let named = [format!("license = {LICENSE}"), format!("\"license\": {LICENSE}")];
    text.lines()
        .any(|l| l == "license.workspace = true" || named.iter().any(|n| l.trim().starts_with(n.as_str())))
}

/// The root of a crate that could forbid unsafe code and does not.
fn unsafe_code(file: &File, rust: &[File]) -> Option<String> {
    let (folder, name) = file.path.rsplit_once('/')?;
    let is_script = name == "build.rs" && !folder.ends_with("/src") && !folder.contains("/tests");
    let is_root = folder.ends_with("/src") && ["lib.rs", "main.rs"].contains(&name);
    if !(is_script || is_root) || file.text.lines().any(|l| l == FORBID) {
        return None;
    }
    let below = format!("{folder}/");
    let mut parts = rust.iter().filter(|f| f.path == file.path || is_root && f.path.starts_with(&below));
    (!parts.any(|f| f.text.lines().any(is_unsafe)))
        .then(|| format!("{}: has no unsafe code; say so with `{FORBID}`", file.path))
}

/// Returns true if a line has a block, a function, an implementation or an attribute that is unsafe.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe("]
        .iter()
        .any(|form| code.contains(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_root_without_unsafe_code_has_to_say_so() {
        let safe = "//! A crate.\n// unsafe { }\nconst WORD: &str = \"unsafe\";\n";
        let files = [
            file("a/src/lib.rs", safe),
            file("a/src/other.rs", "fn f() { unsafe { g() } }\n"),
            file("a/build.rs", safe),
            file("b/src/main.rs", &format!("{safe}{FORBID}\n")),
            file("c/src/lib.rs", safe),
            file("c/tests/build.rs", safe),
        ];
        let wrong: Vec<String> = files.iter().filter_map(|f| unsafe_code(f, &files)).collect();
        assert_eq!(
            wrong,
            ["a/build.rs", "c/src/lib.rs"]
                .map(|p| format!("{p}: has no unsafe code; say so with `{FORBID}`"))
        );
    }

    #[test]
    fn manifests_name_the_licence() {
        assert!(is_licensed("[package]\nlicense.workspace = true\n"));
        assert!(is_licensed("{\n  \"license\": \"MIT OR Apache-2.0\",\n}"));
        assert!(!is_licensed("[package]\nname = \"x\"\n") && !is_licensed("license = \"MIT\"\n"));
    }
}
