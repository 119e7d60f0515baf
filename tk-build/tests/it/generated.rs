//! The Rust that a build script generates: what fits compiles, and what does not is an error of the Rust compiler.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

// The library that the generated code uses is built beside this test.
use tk as _;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("tk-build-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    Folder(path)
}

/// The newest library `tk` beside this test, which Cargo has built for it.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let entries = fs::read_dir(&deps).unwrap().flatten().map(|e| e.path());
    let named = |p: &PathBuf| {
        let name = p.file_name().unwrap().to_string_lossy().into_owned();
        name.strip_prefix("libtk-").is_some_and(|rest| rest.ends_with(".rlib") && !rest.contains("build"))
    };
    let age = |p: &PathBuf| fs::metadata(p).and_then(|m| m.modified()).unwrap();
    entries.filter(named).max_by_key(age).unwrap()
}

/// What the Rust compiler says of a function that uses the generated module; nothing if it is content.
fn compiled(folder: &Path, body: &str) -> String {
    let (source, library) = (folder.join("main.rs"), library());
    fs::write(
        &source,
        format!(
            "#![allow(dead_code)]\nuse tk::half::{{bf16, f16}};\nuse tk::{{Device, LaunchError, Stream, View, ViewMut}};\n\
             include!(\"kernels.rs\");\nfn launch(k: &Kernels, s: &Stream, b: &tk::Buffer) -> Result<(), LaunchError> {{\n\
             let (h, f) = (View::<f16, 1>::new(b, [8]), View::<f32, 1>::new(b, [8]));\n{body}\n}}\nfn main() {{}}\n"
        ),
    )
    .unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let ran = Command::new(rustc)
        .current_dir(folder)
        .args(["--edition", "2024", "--emit", "metadata", "--crate-type", "bin", "-A", "unused"])
        .arg(format!("--extern=tk={}", library.display()))
        .arg(format!("-Ldependency={}", library.parent().unwrap().display()))
        .arg(&source)
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn arguments_that_do_not_fit_are_errors_of_the_rust_compiler() {
    if crate::without_ptxas() {
        return;
    }
    let folder = folder("types");
    let build = tk_build::Build::new(format!("{ROOT}/tests/ship/kernels.tk")).target("sm_90a").out(&folder.0);
    let read = build.try_compile().unwrap();
    assert!(read.iter().any(|p| p.ends_with("kernels.tk")), "{read:?}");
    let good = "k.every(s, h, None, ViewMut::new(b, [8]), 5, Some(0.5), None, KernelsEveryMode::Default)?;\n\
                k.every(s, f, Some(f), ViewMut::new(b, [8]), 5i64, None, Some(true), KernelsEveryMode::V2)?;\n\
                k.pointers(s, f, ViewMut::new(b, [8]), 8, 0.5)";
    assert_eq!(compiled(&folder.0, good), "");
    let rest = "5, None, None, KernelsEveryMode::Default)";
    for (what, body, says) in [
        ("two few", format!("k.every(s, h, ViewMut::new(b, [8]), {rest}"), "E0061"),
        ("the order", format!("k.every(s, ViewMut::new(b, [8]), None, h, {rest}"), "E0308"),
        (
            "the rank",
            format!("k.every(s, View::<f16, 2>::new(b, [8, 1]), None, ViewMut::new(b, [8]), {rest}"),
            "E0308",
        ),
        ("two types", format!("k.every(s, h, None, ViewMut::<f32, 1>::new(b, [8]), {rest}"), "E0308"),
        (
            "a type that is not shipped",
            format!("k.every(s, View::<bf16, 1>::new(b, [8]), None, ViewMut::new(b, [8]), {rest}"),
            "E0277",
        ),
        ("a number", "k.pointers(s, f, ViewMut::new(b, [8]), 8.0, 0.5)".to_string(), "E0308"),
        ("one that reads where it writes", "k.pointers(s, f, f, 8, 0.5)".to_string(), "E0308"),
    ] {
        let said = compiled(&folder.0, &body);
        assert!(said.contains(says), "{what}: {said}");
    }
}

#[test]
fn what_did_not_change_is_not_written_again() {
    if crate::without_ptxas() {
        return;
    }
    let folder = folder("again");
    let build = tk_build::Build::new(format!("{ROOT}/tests/ship/kernels.tk")).target("sm_90a").out(&folder.0);
    build.try_compile().unwrap();
    let times =
        || ["kernels.rs", "kernels.tkb"].map(|f| fs::metadata(folder.0.join(f)).unwrap().modified().unwrap());
    let before = times();
    build.try_compile().unwrap();
    assert_eq!(times(), before);
    // Another target is another bundle.
    build.clone().target("sm_80").try_compile().unwrap();
    assert_ne!(times()[1], before[1]);
}

#[test]
fn what_cannot_be_built_is_a_message() {
    let folder = folder("wrong");
    let says = |build: tk_build::Build| build.out(&folder.0).try_compile().unwrap_err();
    let new = |text: &str| {
        let path = folder.0.join("wrong.tk");
        fs::write(&path, text).unwrap();
        tk_build::Build::new(path)
    };
    assert!(says(tk_build::Build::new("nobody.tk").target("sm_80")).contains("cannot read nobody.tk"));
    assert!(says(new("kernel k() {}")).contains("no target"));
    assert!(
        says(new("kernel k() {}").target("sm_8"))
            .contains("unknown target `sm_8`; the targets are sm_80, sm_89, sm_90a")
    );
    let said = says(new("kernel k(x: f32) { let y: i32 = x; }").target("sm_80"));
    assert!(said.contains("error[E0302]") && said.contains("wrong.tk:1"), "{said}");
    let said =
        says(new("kernel k[N: i32](x: mut view[f32, 1]) { x.store([0], zeros([N], f32)); }").target("sm_80"));
    assert!(said.contains("has no `export`"), "{said}");
}
