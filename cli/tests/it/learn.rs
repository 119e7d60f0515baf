//! `tk learn`: every puzzle, hints, the state, pictures, and readers who do something else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use tk_snapshot::Snapshots;

use crate::input::Watching;
use crate::support::command::Folder;

/// The folder of a puzzle: `03_edges`.
fn puzzle(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/learn").join(name)
}

fn puzzles() -> Vec<String> {
    let entries = fs::read_dir(puzzle("")).unwrap().map(|e| e.unwrap());
    let folders = entries.filter(|e| e.path().is_dir()).map(|e| e.file_name().into_string().unwrap());
    let mut names: Vec<String> = folders.collect();
    names.sort();
    names
}

fn text(name: &str, file: &str) -> String {
    fs::read_to_string(puzzle(name).join(file)).unwrap()
}

/// A folder with the reader's file of a puzzle.
fn with(name: &str, contents: &str) -> Folder {
    let folder = Folder::new("learn");
    fs::create_dir(folder.path("tk-learn")).unwrap();
    folder.write(&format!("tk-learn/{name}.tk"), contents);
    folder
}

#[test]
fn puzzles_fail_as_they_are_and_pass_with_their_solutions() {
    let names = puzzles();
    assert_eq!(names.len(), 20);
    for (i, name) in names.iter().enumerate() {
        let folder = Folder::new("learn-all");
        let number = (i + 1).to_string();
        let begun = folder.tk(&["learn", &number]);
        begun.code(0).out_has(&format!("Puzzle {number}: ")).out_has(&format!("tk-learn/{name}.tk"));
        let own = folder.path(&format!("tk-learn/{name}.tk"));
        assert_eq!(fs::read_to_string(&own).unwrap(), text(name, "puzzle.tk"));
        assert!(text(name, "puzzle.tk").contains("// TODO"), "{name}");
        let ran = folder.tk(&["learn", "check"]);
        ran.code(1).out_has("FAIL  test \"").out_has(&format!("Puzzle {number} is not solved yet"));
        assert!(!ran.err.contains("warning"), "{name}: {ran:#?}");
        let solution = folder.tk(&["learn", "solution"]).code(0).out.clone();
        assert_eq!(solution, text(name, "solution.tk"));
        fs::write(&own, solution).unwrap();
        let ran = folder.tk(&["learn", "check"]);
        ran.code(0).out_has("ok    hidden test \"").out_has(&format!("Puzzle {number} is done."));
        assert!(!ran.err.contains("warning") && !ran.out.contains("No program"), "{name}: {ran:#?}");
        assert!(text(name, "hidden.tk").matches("\ntest \"").count() + 1 >= 3, "{name}");
    }
}

#[test]
fn the_page_lists_the_puzzles() {
    let page = fs::read_to_string(puzzle("README.md")).unwrap();
    let mut listed = String::new();
    for line in Folder::new("learn-page").tk(&["learn"]).code(0).out.lines() {
        let words: Vec<&str> = line.trim_start_matches('→').split_whitespace().collect();
        if let [number, title @ .., "open"] = words.as_slice() {
            let name = &puzzles()[number.parse::<usize>().unwrap() - 1];
            let row = format!("| {number} | [{}]({name}/puzzle.tk) |", title.join(" "));
            assert!(page.contains(&row), "{row}");
            listed += number;
        }
    }
    assert_eq!(listed, (1..=20).map(|n| n.to_string()).collect::<String>());
}

#[test]
fn pictures() {
    let mut snapshots = Snapshots::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/learn");
    let edges = text("03_edges", "solution.tk");
    let several = r#"kernel spread(x: view[i32, 1], y: mut view[i32, 3], n: mut view[i32, 1])
    grid(12, 2)
{
    let row = x.load([0], [4]);
    y.store([program_id(1), 0, program_id(0)], row[None, :, None]);
    n.atomic_add([0], 1);
}

test "mine" {
    let (x, y, n) = (buffer(zeros([100], i32)), buffer(zeros([2, 3, 40], i32)), buffer(zeros([1], i32)));
    spread(x, y, n);
}

"#;
    for (name, file, contents) in [
        ("03_edges", "edges", edges.clone()),
        ("05_distances", "distances", text("05_distances", "solution.tk")),
        ("03_edges", "edges_outside", edges.replace("i < n", "i < n + 1")),
        ("03_edges", "several", several.to_string() + &edges),
    ] {
        let folder = with(name, &contents);
        let plain = folder.tk(&["learn", "check", name]).out.clone();
        snapshots.check(data.join(file).with_extension("txt"), &plain);
        assert_eq!(folder.tk(&["learn", "check", name]).out, plain, "another one the second time");
        let colored = folder.tk(&["learn", "check", name, "--color", "always"]).out.clone();
        assert_ne!(colored, plain);
        let parts = colored.split('\x1b').map(|part| part.split_once('m').unwrap_or(("", part)));
        let first = colored.split('\x1b').next().unwrap();
        let bare = first.to_string() + &parts.skip(1).map(|(_, text)| text).collect::<String>();
        assert_eq!(bare, plain);
        if file == "edges_outside" {
            let picture = plain.get(plain.find("The first launch").unwrap()..plain.find("A fault").unwrap());
            let page = fs::read_to_string(puzzle("README.md")).unwrap();
            assert!(page.contains(picture.unwrap()), "docs/learn/README.md shows another picture");
        }
    }
    snapshots.finish();
}

#[test]
fn a_hidden_test_that_fails_shows_its_case() {
    // Right for the visible test alone.
    let folder = with("03_edges", &text("03_edges", "solution.tk").replace("i < n;", "i < n && i < 10;"));
    let ran = folder.tk(&["learn", "check", "3"]);
    ran.code(1).out_has("ok    test").out_has("FAIL  hidden test \"lengths around a block\"");
    ran.out_has("for N in [1, 3, 4, 5, 8, 100]").out_has("3 more tests").out_has("n = 100), 25 programs");
    ran.err_has("nan instead of").err_has("[ hidden tests of puzzle 3:6:9 ]");
    assert!(!folder.tk(&["learn"]).out.contains("done\n"));
}

#[test]
fn hints_come_one_by_one() {
    let folder = Folder::new("learn-hints");
    let hints = text("03_edges", "hints.md");
    let hints: Vec<&str> = hints.split("\n---\n").map(str::trim).collect();
    for (i, hint) in hints.iter().enumerate() {
        let ran = folder.tk(&["learn", "hint", "edges"]);
        ran.code(0).out_has(hint).out_has(&format!("hint {} of {}", i + 1, hints.len()));
    }
    let ran = folder.tk(&["learn", "hint", "3"]);
    ran.code(0).out_has(hints.last().unwrap()).out_has("`tk learn solution 3`");
    folder.tk(&["learn", "hint"]).code(0).out_has("Puzzle 1, hint 1");
    folder.tk(&["learn", "4", "hint"]).code(0).out_has("Puzzle 4, hint 1");
    folder.tk(&["learn", "--color", "never", "hint", "5"]).code(0).out_has("Puzzle 5, hint 1");
}

#[test]
fn the_list_shows_how_far_the_reader_is() {
    let folder = Folder::new("learn-list");
    let list = || folder.tk(&["learn"]).code(0).out.clone();
    let row = |title: &str| list().lines().find(|l| l.contains(title)).unwrap().to_string();
    assert!(list().starts_with("0 of 20 puzzles are done.") && list().ends_with("Next: `tk learn 1`\n"));
    assert!(folder.names().is_empty(), "a list writes nothing");
    folder.tk(&["learn", "1"]).code(0);
    assert!(row("Vector add").ends_with("tried") && list().contains("then `tk learn check 1`"));
    folder.write("tk-learn/01_vector_add.tk", text("01_vector_add", "solution.tk"));
    folder.tk(&["learn", "check"]).code(0).out_has("Next: `tk learn 2` (A grid of programs)");
    assert!(row("Vector add").ends_with("done") && row("A grid").starts_with('→'));
    // What the reader wrote stays.
    folder.tk(&["learn", "01_vector_add"]).code(0).out_has("It was there already");
    folder.tk(&["learn", "check"]).code(0).out_has("Puzzle 1 is done");
    folder.tk(&["learn", "check", "tk-learn/01_vector_add.tk"]).code(0);
    // In the folder itself, too.
    let inside = crate::support::command::command(&folder.path("tk-learn"), &["learn"]).output().unwrap();
    assert!(String::from_utf8(inside.stdout).unwrap().starts_with("1 of 20"));
    // Puzzles are done in any order, and everything ends.
    for (i, name) in puzzles().iter().enumerate().rev() {
        folder.write(&format!("tk-learn/{name}.tk"), text(name, "solution.tk"));
        folder.tk(&["learn", "check", &(i + 1).to_string()]).code(0);
    }
    assert!(list().starts_with("20 of 20") && list().contains("All puzzles are done."));
    folder.tk(&["learn", "check"]).code(0).out_has("All puzzles are done.");
}

#[test]
fn the_state_may_be_anything() {
    let folder = with("01_vector_add", &text("01_vector_add", "solution.tk"));
    folder.tk(&["learn", "check", "1"]).code(0);
    let state = fs::read(folder.path("tk-learn/progress.txt")).unwrap();
    for contents in [
        state.get(..state.len() - 20).unwrap(),
        b"",
        b"\xff\xfe\0\0current current\n01_vector_add hints=99999999999999999999 doneish\n\n   \n",
        b"current 99_later\n99_later done stars=3\n",
        b"current 03_edges\n03_edges hints=18446744073709551615\n",
    ] {
        folder.write("tk-learn/progress.txt", contents);
        folder.tk(&["learn"]).code(0).out_has("0 of 20");
        folder.tk(&["learn", "hint", "3"]).code(0);
        folder.tk(&["learn", "check", "1"]).code(0).out_has("Puzzle 1 is done. Next");
        folder.tk(&["learn"]).code(0).out_has("1 of 20");
        let later = fs::read_to_string(folder.path("tk-learn/progress.txt")).unwrap();
        assert_eq!(later.contains("99_later done"), contents.starts_with(b"current 99"), "{later}");
    }
    folder.write("tk-learn/progress.txt", "my own notes\n");
    folder
        .tk(&["learn"])
        .code(0)
        .err_has("note: tk-learn/progress.txt: what is unreadable in it counts as nothing done");
    folder.write("tk-learn/progress.txt", "# a comment\n\n03_edges hints=1\n");
    assert_eq!(folder.tk(&["learn"]).code(0).err, "");
    // Without a place for it, everything else works.
    fs::remove_file(folder.path("tk-learn/progress.txt")).unwrap();
    fs::create_dir(folder.path("tk-learn/progress.txt")).unwrap();
    let ran = folder.tk(&["learn", "check"]);
    ran.code(0).out_has("Puzzle 1 is done").err_has("note: your progress is not kept: cannot write");
}

#[test]
fn a_folder_that_cannot_be_made_is_a_sentence() {
    let folder = Folder::new("learn-denied");
    folder.write("tk-learn", "a file");
    folder.tk(&["learn"]).code(0);
    folder.tk(&["learn", "3"]).code(2).says(&["cannot make the folder tk-learn"]);
    folder.tk(&["learn", "watch"]).code(2).says(&["cannot make the folder tk-learn"]);
    folder.tk(&["learn", "hint", "3"]).code(0).err_has("your progress is not kept").out_has("hint 1 of 3");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = Folder::new("learn-links");
        symlink("/nowhere", folder.path("tk-learn")).unwrap();
        let why = "tk-learn is a link to /nowhere, which does not exist; remove the link";
        folder.tk(&["learn", "3"]).code(2).says(&[why]);
        folder.tk(&["learn", "hint", "3"]).code(0).err_has(why).out_has("hint 1 of 3");
        fs::remove_file(folder.path("tk-learn")).unwrap();
        fs::create_dir(folder.path("tk-learn")).unwrap();
        symlink("/nowhere", folder.path("tk-learn/03_edges.tk")).unwrap();
        for args in [&["learn", "3"] as &[_], &["learn", "check", "3"], &["learn", "watch", "3"]] {
            folder.tk(args).code(2).says(&["tk-learn/03_edges.tk is a link to /nowhere"]);
        }
        let folder = Folder::new("learn-locked");
        fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o555)).unwrap();
        let may = fs::write(folder.path("probe"), "").is_ok();
        let ran = folder.tk(&["learn", "3"]);
        fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        // Root may write everywhere.
        if !may {
            ran.code(2).says(&["cannot make the folder tk-learn: permission denied"]);
        }
    }
}

#[test]
fn unknown_puzzles_are_sentences() {
    let folder = Folder::new("learn-unknown");
    folder.tk(&["learn", "21"]).code(2).says(&["there is no puzzle `21`, they are 1 to 20"]);
    folder.tk(&["learn", "0"]).code(2).says(&["no puzzle `0`"]);
    folder.tk(&["learn", "check", "edge"]).code(2).says(&["did you mean `edges`?"]);
    folder.tk(&["learn", "chek", "3"]).code(2).says(&["did you mean `check`?"]);
    folder.tk(&["learn", "3", "4"]).code(2).says(&["takes nothing after it"]);
    folder
        .tk(&["learn", "check", "3"])
        .code(2)
        .says(&["tk-learn/03_edges.tk does not exist", "`tk learn 3`"]);
    assert!(folder.names().is_empty());
}

#[test]
fn a_file_with_mistakes_is_reported_with_its_own_lines() {
    let solution = text("03_edges", "solution.tk");
    let folder = with("03_edges", &solution.replace("n - 1 - i;", "n - 1 - ;"));
    let ran = folder.tk(&["learn", "check", "3"]);
    ran.code(1).err_has("error[E01").err_has("[ tk-learn/03_edges.tk:15:");
    assert_eq!(ran.out, "");
    folder.write("tk-learn/03_edges.tk", solution.replace("let mask = i < n;", "let mask = i < m;"));
    folder
        .tk(&["learn", "check", "3", "--message-format", "short"])
        .code(1)
        .err_has("03_edges.tk:16:20: error[E0201]");
    // Without a line break at the end, and with other ones.
    folder.write("tk-learn/03_edges.tk", solution.trim_end());
    folder.tk(&["learn", "check", "3"]).code(0);
    folder.write("tk-learn/03_edges.tk", format!("\u{feff}{}", solution.replace('\n', "\r\n")));
    folder.tk(&["learn", "check", "3"]).code(0);
    folder.write("tk-learn/03_edges.tk", "");
    folder.tk(&["learn", "check", "3"]).code(1).err_has("has no such kernel");
}

#[test]
fn name_and_parameters_of_the_kernel_stay() {
    let solution = text("03_edges", "solution.tk");
    let folder = with("03_edges", "");
    for (before, after, says) in [
        ("n: i32)", "m: i32)", "has `reverse[BLOCK: i32 = 4](x: *f32, y: *mut f32, m: i32)`"),
        ("n: i32)", "n: i64)", "has `reverse["),
        ("x: *f32, y: *mut f32", "y: *mut f32, x: *f32", "has `reverse["),
        ("BLOCK: i32 = 4", "BLOCK: i32", "has `reverse[BLOCK: i32]("),
        ("kernel reverse", "kernel backwards", "has no such kernel"),
    ] {
        folder.write("tk-learn/03_edges.tk", solution.replace(before, after));
        let ran = folder.tk(&["learn", "check", "3"]);
        ran.code(1).err_has("the tests launch `reverse[BLOCK: i32 = 4](x: *f32, y: *mut f32, n: i32)`");
        ran.err_has(says);
    }
    // Another default, other clauses and line breaks are the reader's.
    let other = solution
        .replace("BLOCK: i32 = 4](", "BLOCK: i32 = 8](\n")
        .replace("cdiv(n, BLOCK)", "(n + BLOCK - 1) / BLOCK");
    folder.write("tk-learn/03_edges.tk", other);
    folder.tk(&["learn", "check", "3"]).code(0).out_has("2 programs");
    folder.write("tk-learn/03_edges.tk", solution + "\nfn hidden_last() -> i32 { 1 }\n");
    folder.tk(&["learn", "check", "3"]).code(0);
    let folder = with("10_count", &(text("10_count", "solution.tk") + "\nfn hidden_last() -> i32 { 1 }\n"));
    folder.tk(&["learn", "check", "10"]).code(1).err_has("the hidden tests use `hidden_last`");
    // Nobody judges the own answer.
    let own = "\nfn assert_close(a: i32, b: i32) -> i32 { a + b }\n";
    let folder = with("03_edges", &(text("03_edges", "puzzle.tk") + own));
    folder.tk(&["learn", "check", "3"]).code(1).err_has("the hidden tests use `assert_close`");
    // A file that does not parse has messages of its own.
    folder.write("tk-learn/03_edges.tk", text("03_edges", "solution.tk").replace("kernel ", "kernel 1"));
    let ran = folder.tk(&["learn", "check", "3"]).code(1).err.clone();
    assert!(!ran.contains("must stay"), "{ran}");
}

#[test]
fn an_endless_loop_ends_with_a_sentence() {
    let endless = "let mut from = n - 1 - i;\n    while n > 0 { from = from + 1; }";
    let folder = with("03_edges", &text("03_edges", "solution.tk").replace("let from = n - 1 - i;", endless));
    let ran = folder.tk(&["learn", "check", "3", "--timeout", "0.2"]);
    ran.code(1).err_has("still running after the time limit of 200ms; a loop may never end");
    // Of a loop that touches memory, a part is drawn.
    let endless = "while n > 0 { store(y + program_id(0), 1.0); }\n    let from = n - 1 - i;";
    folder.write(
        "tk-learn/03_edges.tk",
        text("03_edges", "solution.tk").replace("let from = n - 1 - i;", endless),
    );
    let ran = folder.tk(&["learn", "check", "3", "--timeout", "2"]);
    ran.code(1).err_has("still running").out_has("y: f32[10], written:\n  0 ");
}

#[test]
fn watching_checks_at_each_save() {
    let folder = Folder::new("learn-watch");
    let watching = Watching::start(&folder, &["learn", "watch", "1", "--message-format=json"]);
    let has = |lines: &[String], text: &str| lines.iter().any(|l| l.contains(text));
    let (lines, files) = watching.round();
    assert!(has(&lines, "\"outcome\":\"failed\"") && files.contains("01_vector_add.tk"), "{lines:?} {files}");
    folder.write("tk-learn/01_vector_add.tk", text("01_vector_add", "solution.tk"));
    watching.until(|lines| has(lines, "\"failed\":0") && has(lines, "\"state\":\"done\""));
}

#[test]
fn programs_read_objects() {
    let folder = Folder::new("learn-json");
    let json = |args: &[&str], code| {
        let ran = folder.tk(&[&["learn", "--message-format", "json"], args].concat());
        assert_eq!(ran.code(code).err, "");
        let lines = ran.out.lines().map(|l| serde_json::from_str(l).unwrap());
        lines.collect::<Vec<serde_json::Value>>()
    };
    let list = json(&[], 0);
    assert_eq!((list.len(), &list[2]["name"], &list[2]["state"]), (20, &"03_edges".into(), &"open".into()));
    let begun = json(&["2"], 0);
    assert_eq!((&begun[0]["state"], &begun[1]["what"]), (&"tried".into(), &"task".into()));
    let checked = json(&["check"], 1);
    let kinds: Vec<&str> = checked.iter().map(|o| o["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["test", "summary", "lesson", "puzzle"]);
    assert!(checked[1]["left_out"].as_u64().unwrap() >= 3);
    assert_eq!(json(&["hint"], 0)[0]["what"], "hint");
    assert_eq!(json(&["solution"], 0)[0]["text"], text("02_grid", "solution.tk"));
    assert_eq!(json(&["77"], 2)[0]["kind"], "failure");
}
