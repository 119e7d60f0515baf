//! Standard input, `--watch`, and what packages ship beside the command.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::support::command::{self, ADD, Folder, Ran};

/// Runs `tk` with a text on standard input.
fn with_input(folder: &Folder, args: &[&str], text: impl AsRef<[u8]>) -> Ran {
    let mut child = command::command(&folder.path(""), args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_ref()).unwrap();
    Ran::new(child.wait_with_output().unwrap())
}

#[test]
fn a_program_comes_from_standard_input() {
    let folder = Folder::new("stdin");
    with_input(&folder, &["check", "-"], ADD).code(0);
    with_input(&folder, &["check", "-", "--emit", "ast"], ADD).code(0).out_has("add");
    with_input(&folder, &["check", "-"], "fn f() -> f32 { x }").code(1).err_has("<stdin>:1:17");
    with_input(&folder, &["test", "-"], ADD).code(0).out_has("1 passed, 0 failed");
    let run = ["run", "-", "x=ones:f32[3]", "z=zeros:f32[3]"];
    with_input(&folder, &run, ADD).code(0).out_has("z  f32[3]  1.0, 1.0, 1.0");
    let run = ["run", "--", "-::add", "x=ones:f32[3]", "z=zeros:f32[3]"];
    with_input(&folder, &run, ADD).code(0).out_has("z  f32[3]  1.0, 1.0, 1.0");
    with_input(&folder, &["check", "-"], "").code(0);
    // As in a file, bytes that are no UTF-8 are no token.
    with_input(&folder, &["check", "-"], b"fn f() {} \xff\n")
        .code(1)
        .err_has("E0104")
        .err_has("<stdin>:1:11");
    with_input(&folder, &["check", "-", "-"], ADD).code(2).says(&["given twice"]);
}

#[test]
fn standard_input_can_have_a_name() {
    let folder = Folder::new("stdin-name");
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/helpers.tk", "fn twice(x: f32) -> f32 { x * 2.0 }");
    // What was saved under the name does not matter.
    folder.write("sub/main.tk", "kernel broken(");
    let source = "use helpers::twice;\nfn f() -> f32 { twice(1.0) + missing }";
    let named = ["check", "-", "--stdin-name", "sub/main.tk"];
    with_input(&folder, &named, source).code(1).err_has("sub/main.tk:2:30").err_has("missing");
    with_input(&folder, &named, source.replace("missing", "1.0")).code(0);
    with_input(&folder, &["check", "-"], source).code(1).err_has("E0204");
    folder.write("a.tk", "fn f() {}");
    folder.tk(&["check", "a.tk", "--stdin-name", "b.tk"]).code(2).says(&["--stdin-name"]);
}

#[test]
fn completions_and_manual_pages_are_made() {
    let folder = Folder::new("generated");
    for (shell, text) in [
        ("bash", "complete -F _tk -o"),
        ("zsh", "#compdef tk"),
        ("fish", "complete -c tk"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        folder.tk(&["completions", shell]).code(0).out_has(text).out_has("message-format");
    }
    folder.tk(&["completions", "tcsh"]).code(2).err_has("powershell");
    folder.tk(&["man", "share/man1"]).code(0);
    let mut pages: Vec<String> = std::fs::read_dir(folder.path("share/man1"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    pages.sort();
    assert_eq!(
        pages,
        [
            "tk-bench.1",
            "tk-build.1",
            "tk-cache.1",
            "tk-check.1",
            "tk-completions.1",
            "tk-dap.1",
            "tk-doc.1",
            "tk-doctor.1",
            "tk-explain-launch.1",
            "tk-explain.1",
            "tk-fmt.1",
            "tk-inspect.1",
            "tk-layout.1",
            "tk-learn.1",
            "tk-lsp.1",
            "tk-man.1",
            "tk-profile.1",
            "tk-run.1",
            "tk-setup.1",
            "tk-test.1",
            "tk-tune.1",
            "tk.1"
        ]
    );
    let page = std::fs::read_to_string(folder.path("share/man1/tk-run.1")).unwrap();
    assert!(page.contains(".TH tk-run 1") && page.contains("arange:i32"), "{page}");
    folder.write("file", "");
    folder.tk(&["man", "file/sub"]).code(2).says(&["cannot create file/sub"]);
}

/// A command that watches; it is ended with the test.
pub struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    pub fn start(folder: &Folder, args: &[&str]) -> Watching {
        let mut child = command::command(&folder.path(""), args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| sender.send(l)));
        Watching { child, lines }
    }

    /// The lines of a round without its last one, which says what is watched.
    pub fn round(&self) -> (Vec<String>, String) {
        let mut lines = vec![];
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(20)).unwrap();
            if line.contains("\"kind\":\"watching\"") {
                return (lines, line);
            }
            lines.push(line);
        }
    }

    /// Waits for a round whose lines are as they should be: a busy machine may show a file that is being written.
    pub fn until(&self, right: impl Fn(&[String]) -> bool) {
        while !right(&self.round().0) {}
    }

    /// Fails the test when a round begins soon.
    fn rests(&self) {
        let line = self.lines.recv_timeout(Duration::from_millis(400));
        assert!(line.is_err(), "{line:?}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watching_runs_again_when_a_file_changes() {
    let folder = Folder::new("watch");
    folder.write("helpers.tk", "fn twice(x: f32) -> f32 { x * 2.0 }");
    folder.write("main.tk", "use helpers::twice;\nfn f() -> f32 { twice(1.0) }");
    let watching = Watching::start(&folder, &["check", "--watch", "--message-format=json", "main.tk"]);
    let (lines, files) = watching.round();
    assert!(
        lines.is_empty() && files.contains("main.tk") && files.contains("helpers.tk"),
        "{lines:?} {files}"
    );
    // An import changes, and comes back.
    folder.write("helpers.tk", "fn twice(x: f32) -> i32 { 2 }");
    watching.until(|lines| lines.iter().any(|l| l.contains("E0605")));
    // Editors write to another file and rename it.
    folder.write("next.tmp", "fn twice(x: f32) -> f32 { x + x }");
    std::fs::rename(folder.path("next.tmp"), folder.path("helpers.tk")).unwrap();
    watching.until(<[String]>::is_empty);
    // Other files and the same contents do not count.
    folder.write("other.tk", "fn g(").write("next.tmp", "use helpers::twice;\nfn f() -> f32 { twice(1.0) }");
    std::fs::rename(folder.path("next.tmp"), folder.path("main.tk")).unwrap();
    watching.rests();
    // The file goes and comes back.
    std::fs::remove_file(folder.path("main.tk")).unwrap();
    watching.until(|lines| lines.iter().any(|l| l.contains("cannot read main.tk")));
    folder.write("main.tk", "fn f() -> f32 { missing }");
    watching.until(|lines| lines.iter().any(|l| l.contains("E0201")));
}

#[test]
fn watching_runs_tests_again() {
    let folder = Folder::new("watch-test");
    folder.write("a.tk", "test \"a\" { assert(1 == 1); }");
    let watching = Watching::start(&folder, &["test", "--watch", "--message-format=json", "a.tk"]);
    assert!(watching.round().0.iter().any(|l| l.contains("\"passed\":1")));
    folder.write("a.tk", "test \"a\" { assert(1 == 2); }");
    watching.until(|lines| lines.iter().any(|l| l.contains("\"failed\":1")));
    folder.tk(&["check", "--watch", "nowhere.tk"]).code(2).says(&["cannot read nowhere.tk"]);
    folder.tk(&["check", "--watch", "-"]).code(2).says(&["cannot be watched"]);
}
