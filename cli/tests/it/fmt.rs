//! `tk fmt`: which files change, what is printed where, exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::command::{self, Folder, Ran};

const MESSY: &str = "fn  f(x:i32)->i32{x+1} // one\n";
const TIDY: &str = "fn f(x: i32) -> i32 { x + 1 } // one\n";
const BROKEN: &str = "fn f( {}\n";

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap()
}

fn with_input(folder: &Folder, args: &[&str], input: &[u8]) -> Ran {
    let mut command = command::command(&folder.path("."), args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ran::new(child.wait_with_output().unwrap())
}

#[test]
fn files_are_rewritten_only_where_they_change() {
    let folder = Folder::new("fmt-files");
    folder.write("a.tk", MESSY).write("b.tk", TIDY);
    let before = fs::metadata(folder.path("b.tk")).unwrap().modified().unwrap();
    let ran = folder.tk(&["fmt", "a.tk", "b.tk"]);
    assert_eq!((ran.code(0).out.as_str(), ran.err.as_str()), ("", ""));
    assert_eq!((read(&folder, "a.tk").as_str(), read(&folder, "b.tk").as_str()), (TIDY, TIDY));
    assert_eq!(fs::metadata(folder.path("b.tk")).unwrap().modified().unwrap(), before);
    assert_eq!(folder.names(), ["a.tk", "b.tk"]);
}

#[test]
fn folders_are_walked() {
    let folder = Folder::new("fmt-folders");
    fs::create_dir_all(folder.path("in/deep/er.tk")).unwrap();
    fs::create_dir_all(folder.path("in/.hidden")).unwrap();
    let changed = ["in/a.tk", "in/deep/b.tk", "in/deep/er.tk/c.tk"];
    let kept = ["in/notes.txt", "in/.hidden/d.tk", "outside.tk"];
    for name in changed.iter().chain(&kept) {
        folder.write(name, MESSY);
    }
    let ran = folder.tk(&["--message-format", "short", "fmt", "--check", "in"]);
    assert_eq!(ran.code(1).out, "in/a.tk\nin/deep/b.tk\nin/deep/er.tk/c.tk\n");
    folder.tk(&["fmt", "in"]).code(0);
    assert!(changed.iter().all(|name| read(&folder, name) == TIDY));
    assert!(kept.iter().all(|name| read(&folder, name) == MESSY));
}

#[test]
fn check_shows_what_would_change() {
    let folder = Folder::new("fmt-check");
    folder.write("a.tk", format!("const A = 1;\n{MESSY}const B = 2;")).write("b.tk", TIDY);
    let ran = folder.tk(&["fmt", "--check", "a.tk", "b.tk"]);
    let expected = "--- a.tk\n+++ a.tk formatted\n@@ -2,1 +2,1 @@\n\
        -fn  f(x:i32)->i32{x+1} // one\n+fn f(x: i32) -> i32 { x + 1 } // one\n";
    assert_eq!((ran.code(1).out.as_str(), ran.err.as_str()), (expected, ""));
    assert!(read(&folder, "a.tk").contains("fn  f"), "nothing is written");
    let ran = folder.tk(&["fmt", "--check", "b.tk"]);
    assert_eq!((ran.code(0).out.as_str(), ran.err.as_str()), ("", ""));
}

#[test]
fn the_difference_is_short() {
    let folder = Folder::new("fmt-diff");
    let hunks = |text: &str| {
        let ran = with_input(&folder, &["fmt", "--check", "-"], text.as_bytes());
        ran.code(1).out.strip_prefix("--- <stdin>\n+++ <stdin> formatted\n").unwrap().to_string()
    };
    let text = "\n\nconst A = 1;\n\n\n\nconst B = [1,\n2,\n];\nconst C = 3;\nfn f() { a(); b(); }\n\n";
    let expected = "@@ -1,2 +0,0 @@\n-\n-\n@@ -5,5 +3,1 @@\n-\n-\n-const B = [1,\n-2,\n-];\n+const B = [1, 2];\n\
        @@ -11,1 +5,4 @@\n-fn f() { a(); b(); }\n+fn f() {\n+    a();\n+    b();\n+}\n@@ -12,1 +8,0 @@\n-\n";
    assert_eq!(hunks(text), expected);
    assert_eq!(hunks("const A = 1;\r\nconst B = 2;\n"), "@@ line endings @@\n");
    assert_eq!(hunks("const A = 1;"), "@@ line endings @@\n");
    assert_eq!(hunks("\n"), "@@ -1,1 +0,0 @@\n-\n");
}

#[test]
fn errors_are_shown_and_the_other_files_formatted() {
    let folder = Folder::new("fmt-errors");
    folder.write("a.tk", BROKEN).write("b.tk", MESSY).write("c.tk", b"// \xff\n").write("d.tk", MESSY);
    let ran = folder.tk(&["fmt", "a.tk", "b.tk"]);
    assert_eq!(ran.code(1).err_has("E0102").err_has("a.tk:1:5").out, "");
    assert_eq!((read(&folder, "a.tk").as_str(), read(&folder, "b.tk").as_str()), (BROKEN, TIDY));
    // A file that cannot be read is a mistake in the command.
    let ran = folder.tk(&["fmt", "missing.tk", "a.tk", "c.tk", "d.tk"]);
    ran.code(2)
        .err_has("cannot read missing.tk: no such file")
        .err_has("cannot read c.tk: invalid UTF-8 at byte 3");
    assert_eq!(read(&folder, "d.tk"), TIDY);
    assert_eq!(fs::read(folder.path("c.tk")).unwrap(), b"// \xff\n");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = Folder::new("fmt-stdin");
    let ran = with_input(&folder, &["fmt", "-"], MESSY.as_bytes());
    assert_eq!((ran.code(0).out.as_str(), ran.err.as_str()), (TIDY, ""));
    let ran = with_input(&folder, &["fmt", "-", "--stdin-name", "src/a.tk"], BROKEN.as_bytes());
    assert_eq!(ran.code(1).err_has("src/a.tk:1:5").out, "");
    let ran = with_input(&folder, &["fmt", "-", "--check"], MESSY.as_bytes());
    ran.code(1).out_has("+++ <stdin> formatted");
    with_input(&folder, &["fmt", "-"], b"\xff")
        .code(2)
        .says(&["cannot read <stdin>: invalid UTF-8 at byte 0"]);
    folder.tk(&["fmt", "a.tk", "--stdin-name", "b.tk"]).code(2).says(&["--stdin-name needs standard input"]);
}

#[test]
fn objects_for_programs() {
    let folder = Folder::new("fmt-json");
    folder.write("a.tk", MESSY).write("b.tk", TIDY);
    let json = |args: &[&'static str]| [&["--message-format", "json", "fmt"], args].concat();
    let line = "{\"kind\":\"formatted\",\"file\":\"a.tk\",\"text\":null}\n";
    assert_eq!(folder.tk(&json(&["--check", "a.tk", "b.tk"])).code(1).out, line);
    assert_eq!(folder.tk(&json(&["a.tk", "b.tk"])).code(0).out, line);
    let ran = with_input(&folder, &json(&["-"]), b"const A=1;");
    let expected = "{\"kind\":\"formatted\",\"file\":\"<stdin>\",\"text\":\"const A = 1;\\n\"}\n";
    assert_eq!(ran.code(0).out, expected);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("fmt-links");
    folder.write("a.tk", MESSY).write("locked.tk", MESSY);
    symlink("a.tk", folder.path("link.tk")).unwrap();
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(folder.path("a.tk"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(folder.path("locked.tk"), fs::Permissions::from_mode(0o444)).unwrap();
    folder.tk(&["fmt", "link.tk"]).code(0);
    assert!(fs::symlink_metadata(folder.path("link.tk")).unwrap().is_symlink());
    assert_eq!((read(&folder, "a.tk").as_str(), mode("a.tk")), (TIDY, 0o751));
    folder.tk(&["fmt", "locked.tk"]).code(2).says(&["cannot write locked.tk: it is read-only"]);
    assert_eq!(read(&folder, "locked.tk"), MESSY);
}
