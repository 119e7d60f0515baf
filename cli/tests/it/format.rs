//! `--message-format`: what programs read is complete and correct, down to applying the fixes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use crate::support::command::{ADD, Folder, Ran};
use serde_json::Value;

/// The objects of standard output. Everything there must be one.
fn objects(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.err, "", "{ran:#?}");
    ran.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|o| o["kind"] == kind).collect()
}

fn number(v: &Value, key: &str) -> usize {
    usize::try_from(v[key].as_u64().unwrap_or_else(|| panic!("`{key}` is no number in {v}"))).unwrap()
}

/// Compares the lines and columns of a range with what counting in the file gives.
fn range_agrees(folder: &Folder, range: &Value) {
    let text = std::fs::read_to_string(folder.path(range["file"].as_str().unwrap())).unwrap();
    for side in ["start", "end"] {
        let before = text.get(..number(range, &format!("byte_{side}"))).unwrap();
        assert_eq!(number(range, &format!("line_{side}")), before.matches('\n').count() + 1, "{range}");
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        assert_eq!(number(range, &format!("column_{side}")), column, "{range}");
    }
}

/// Four mistakes, each with a fix, after characters of several bytes.
const MENDABLE: &str = "\
// Größe: ½ — 𝛑
kernel k(größe: view[f32, 1], y: mut view[f32, 1])
    grid(cdiv(größe.shape[0], 16))
{
    let ñ = größe.load([0], [16]); let z = größ.load([0], [16]);
    let w = maximun(z, ñ)
    let n = größe.shape[0];
    if n { y.store([0], w); }
}
";

#[test]
fn the_edits_of_fixes_mend_the_program() {
    let folder = Folder::new("json-fixes");
    folder.write("a.tk", MENDABLE);
    let ran = folder.tk(&["check", "--message-format", "json", "a.tk"]);
    let objects = objects(ran.code(1));
    let codes: Vec<&str> = objects.iter().map(|o| o["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["E0201", "E0201", "E0105", "E0314"]);
    let mut text = MENDABLE.to_string();
    // From the end, so that offsets stay right.
    let mut edits = BTreeMap::new();
    for d in &objects {
        assert_eq!((&d["kind"], &d["severity"]), (&Value::from("diagnostic"), &Value::from("error")));
        range_agrees(&folder, &d["primary"]);
        d["labels"].as_array().unwrap().iter().for_each(|l| range_agrees(&folder, l));
        let fix = &d["fixes"][0];
        assert!(!fix["title"].as_str().unwrap().is_empty());
        for edit in fix["edits"].as_array().unwrap() {
            range_agrees(&folder, edit);
            let range = number(edit, "byte_start")..number(edit, "byte_end");
            edits.insert(range.start, (range, edit["replacement"].as_str().unwrap().to_string()));
        }
    }
    for (range, replacement) in edits.into_values().rev() {
        text.replace_range(range, &replacement);
    }
    folder.write("a.tk", &text);
    folder.tk(&["check", "a.tk"]).code(0);
}

#[test]
fn columns_count_characters() {
    let folder = Folder::new("json-columns");
    folder.write("a.tk", "fn f(é: f32, 𝛑: f32) -> f32 { é + 𝛑 + missing }\r\n");
    let ran = folder.tk(&["check", "--message-format=json", "a.tk"]);
    let d = &objects(&ran)[0];
    let place = &d["primary"];
    assert_eq!((number(place, "byte_start"), number(place, "column_start")), (46, 39));
    assert_eq!((number(place, "line_start"), number(place, "line_end")), (1, 1));
    assert_eq!(place["text"], "unknown name");
    folder
        .tk(&["check", "--message-format", "short", "a.tk"])
        .code(1)
        .says(&["a.tk:1:39: error[E0201]: cannot find `missing`"]);
    // The same text as for people, and in color only where that was asked for.
    assert_eq!(folder.tk(&["check", "a.tk"]).err.trim_end(), d["rendered"].as_str().unwrap().trim_end());
    let colored = folder.tk(&["check", "--message-format=json", "--color=always", "a.tk"]);
    assert!(objects(&colored)[0]["rendered"].as_str().unwrap().contains('\x1b'));
}

#[test]
fn programs_get_all_diagnostics() {
    let folder = Folder::new("json-all");
    let source: String = (0..300).map(|i| format!("fn f{i}() -> i32 {{ missing{i} }}\n")).collect();
    folder.write("a.tk", source);
    assert_eq!(objects(&folder.tk(&["check", "--message-format", "json", "a.tk"])).len(), 300);
    let short = folder.tk(&["check", "--message-format", "short", "a.tk"]);
    assert_eq!((short.err.lines().count(), short.out.as_str()), (300, ""));
    folder.tk(&["check", "a.tk"]).err_has("200 more not shown");
}

#[test]
fn labels_name_the_file_that_they_are_in() {
    let folder = Folder::new("json-files");
    folder.write("helpers.tk", "fn twice(x: f32) -> f32 { x * 2 * }\n");
    folder.write("main.tk", "use helpers::twice;\nfn f() -> f32 { twice(1.0) }\n");
    let ran = folder.tk(&["check", "--message-format", "json", "main.tk"]);
    let objects = objects(ran.code(1));
    assert_eq!(objects[0]["primary"]["file"], "helpers.tk");
}

#[test]
fn emitted_forms_are_objects_too() {
    let folder = Folder::new("json-emit");
    folder.write("add.tk", ADD).write(
        "note.tk",
        "kernel a[N: i32 = 2]() { static_print(N); } kernel b[T: float](_x: view[T, 1]) {}",
    );
    let objects =
        objects(folder.tk(&["check", "--message-format", "json", "--emit", "tile", "note.tk"]).code(0));
    let [emitted] = of_kind(&objects, "emitted")[..] else { panic!("{objects:#?}") };
    assert_eq!((&emitted["file"], &emitted["form"]), (&Value::from("note.tk"), &Value::from("tile")));
    let plain = folder.tk(&["check", "--emit", "tile", "note.tk"]);
    assert_eq!(emitted["text"].as_str(), Some(plain.out.as_str()));
    let [note] = of_kind(&objects, "note")[..] else { panic!("{objects:#?}") };
    assert!(note["message"].as_str().unwrap().contains("--set T="), "{note}");
    let [printed] = of_kind(&objects, "diagnostic")[..] else { panic!("{objects:#?}") };
    assert_eq!((&printed["severity"], &printed["message"]), (&Value::from("note"), &Value::from("2")));
}

#[test]
fn failures_are_objects_with_their_exit_code() {
    let folder = Folder::new("json-failure");
    let ran = folder.tk(&["check", "missing.tk", "--message-format", "json"]);
    let objects = objects(ran.code(2));
    assert_eq!(objects.len(), 1);
    assert_eq!((&objects[0]["kind"], number(&objects[0], "exit_code")), (&Value::from("failure"), 2));
    assert!(objects[0]["message"].as_str().unwrap().starts_with("cannot read missing.tk"));
}

#[test]
fn results_of_tests_are_the_same_every_time() {
    let folder = Folder::new("json-test");
    folder.write(
        "t.tk",
        "test \"right\" { assert(true); }\ntest \"wrong\" {\n    let x = 1;\n    assert(x == 2);\n}\n",
    );
    folder.write("broken.tk", "test \"a\" { let x = nothing; }");
    let ran = folder.tk(&["test", "--message-format", "json", "t.tk", "broken.tk"]);
    let objects = objects(ran.code(1));
    let tests: Vec<(&str, Option<&str>, &str)> = of_kind(&objects, "test")
        .iter()
        .map(|t| (t["file"].as_str().unwrap(), t["name"].as_str(), t["outcome"].as_str().unwrap()))
        .collect();
    let expected =
        [("t.tk", Some("right"), "passed"), ("t.tk", Some("wrong"), "failed"), ("broken.tk", None, "failed")];
    assert_eq!(tests, expected);
    let failed = of_kind(&objects, "test")[1];
    range_agrees(&folder, &failed["place"]);
    assert_eq!(number(&failed["diagnostics"][0]["primary"], "line_start"), 4);
    let summary = objects.last().unwrap();
    assert_eq!(
        (number(summary, "passed"), number(summary, "failed"), number(summary, "left_out")),
        (1, 2, 0)
    );
    assert_eq!(folder.tk(&["test", "--message-format", "json", "t.tk", "broken.tk"]).out, ran.out);
    let ran = folder.tk(&["test", "--message-format", "json", "--device", "cuda", "t.tk"]);
    assert_eq!(ran.out.matches("\"outcome\":\"left_out\"").count(), 2, "{ran:#?}");
}

#[test]
fn arrays_of_a_run_are_objects() {
    let folder = Folder::new("json-run");
    folder.write("add.tk", ADD);
    let ran = folder.tk(&["run", "add.tk", "x=full:f32[20]@inf", "z=zeros:f32[20]", "--message-format=json"]);
    let objects = objects(ran.code(0));
    let array = &objects[0];
    assert_eq!((&array["name"], &array["dtype"]), (&Value::from("z"), &Value::from("f32")));
    assert_eq!(array["shape"], serde_json::json!([20]));
    assert_eq!(array["first"], serde_json::json!(vec!["inf"; 8]));
    let ran = folder.tk(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[4]", "--message-format=json"]);
    assert_eq!(self::objects(ran.code(2))[0]["code"], "E0704");
}
