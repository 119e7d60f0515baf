//! What a debugger says, and how often; the numbers of its console.

use super::{Client, lines};
use serde_json::{Value, json};

const PROGRAM: &str = "kernel rows(y: mut view[i64, 1], unsigned: u32)
    grid(3)
{
    let i = program_id(0);
    let wide = 4294967295 as i64;
    y.store([i], full([1], wide, i64));
}

test \"rows\" {
    let y = buffer(zeros([3], i64));
    rows(y, 7);
}
";

/// All that is said until it has stopped this many times, with the reasons; it ends then.
fn stops(launch: Value, lines: Value) -> (Vec<String>, Vec<String>) {
    stops_of(PROGRAM, launch, lines)
}

/// The same of another program.
fn stops_of(program: &str, launch: Value, lines: Value) -> (Vec<String>, Vec<String>) {
    let (mut c, _) = Client::of(program, launch, lines, &["nan"]);
    let (mut reasons, mut said) = (vec![], vec![]);
    loop {
        let message = if c.events.is_empty() { c.receive() } else { c.events.remove(0) };
        let body = &message["body"];
        match message["event"].as_str() {
            Some("stopped") => {
                reasons.push(body["reason"].as_str().unwrap().to_string());
                c.ask("continue", json!({ "threadId": 1 }));
            }
            Some("output") => said.extend(body["output"].as_str().map(str::to_string)),
            Some("exited") => return (reasons, said),
            _other => {}
        }
    }
}

fn of<'a>(said: &'a [String], word: &str) -> Vec<&'a str> {
    said.iter().map(String::as_str).filter(|s| s.contains(word)).collect()
}

#[test]
fn the_first_stop_is_the_entry() {
    assert_eq!(
        stops(json!({ "stopOnEntry": true }), json!([6])).0,
        ["entry", "breakpoint", "breakpoint", "breakpoint"]
    );
}

#[test]
fn a_condition_without_a_value_is_reported_once() {
    let (reasons, said) = stops(json!({}), json!([{ "line": 6, "condition": "nothing == 1" }]));
    assert_eq!(reasons, ["breakpoint"; 3]);
    assert_eq!(
        of(&said, "condition"),
        ["the condition `nothing == 1`: there is no variable `nothing` here\n"]
    );
}

#[test]
fn a_program_beyond_the_grid_is_reported_once() {
    let (reasons, said) = stops(json!({ "programId": [3] }), json!([4, 6]));
    assert_eq!(reasons, [""; 0]);
    assert_eq!(of(&said, "grid"), ["`rows` has no program 3, 0, 0: its grid is 3, 1, 1\n"]);
    let (reasons, said) = stops(json!({ "programId": [2] }), json!([6]));
    assert_eq!((reasons.as_slice(), of(&said, "grid").len()), (&["breakpoint".to_string()][..], 0));
}

#[test]
fn integers_of_several_types() {
    let (mut c, _) = Client::of(PROGRAM, json!({ "programId": [1] }), json!([6]), &[]);
    assert_eq!(lines(&c.stopped().1)[0], ("rows", 6));
    // The narrower of two integers widens.
    assert_eq!(c.value("wide + i"), "4294967296");
    assert_eq!(c.value("i - wide * wide * 2"), "17179869183");
    // Those of different signs have no type in common.
    assert_eq!(c.value("i < unsigned && wide > unsigned"), "true");
    assert_eq!(c.value("i - unsigned"), "-6");
    assert_eq!(c.end(), 0);
}

/// Of several breakpoints on a line each counts, also of those that have moved to it.
#[test]
fn two_breakpoints_on_one_line() {
    let never = json!({ "line": 6, "condition": "1 == 2" });
    let said = json!({ "line": 6, "logMessage": "at {i}" });
    let (reasons, _) = stops(json!({ "test": "rows" }), json!([never, 6]));
    assert_eq!(reasons, ["breakpoint"; 3]);
    let (reasons, out) = stops(json!({ "test": "rows" }), json!([6, said, never]));
    assert_eq!(reasons, ["breakpoint"; 3]);
    assert_eq!(of(&out, "at "), ["at 0\n", "at 1\n", "at 2\n"]);
    let (reasons, _) = stops(json!({ "test": "rows" }), json!([never, never]));
    assert_eq!(reasons, [] as [&str; 0]);
}

const LINES: &str = "fn add(a: i32, b: i32) -> i32 {
    let c = a + b; c
}

test \"two\" {
    let mut n = 0;
    for i in range(0, 2) {
        n = n + 1; n = add(n, i); n = n + 1;
    }
    n = add(n, 1); n = add(n, 2);
    assert(n == 8);
}
";

/// A line with several statements stops once for each time that the run comes to it, also where functions are called between
/// its statements.
#[test]
fn two_statements_on_one_line() {
    assert_eq!(stops_of(LINES, json!({}), json!([8])).0, ["breakpoint"; 2]);
    assert_eq!(stops_of(LINES, json!({}), json!([10])).0, ["breakpoint"]);
    assert_eq!(stops_of(LINES, json!({}), json!([2, 10])).0, ["breakpoint"; 5]);
}

/// Memory that holds NaN already, and one that is written, are no reason to stop.
#[test]
fn a_nan_in_memory() {
    let program = "kernel twice(x: view[f32, 1], y: mut view[f32, 1]) {
    y.store([0], x.load([0], [4]) * 2.0);
}

test \"nan\" {
    let y = buffer(zeros([4], f32));
    twice(buffer(full([4], nan, f32)), y);
    assert(all(y.tile() != y.tile()));
}
";
    assert_eq!(stops_of(program, json!({}), json!([])).0, [""; 0]);
}

/// What nothing was written to has no number; a table of three dimensions has one matrix after the other.
#[test]
fn uninitialized_elements_and_tables() {
    let program = "kernel one(y: mut view[i32, 1]) {
    y.store([1], full([1], 7, i32));
}

test \"t\" {
    let x = empty([2, 2], f32);
    let y = empty([3], i32);
    one(y);
    let t = reshape(arange(0, 8), [2, 2, 2]);
    assert(t[0, 0, 0] == 0);
}
";
    let (mut c, _) = Client::of(program, json!({}), json!([10]), &[]);
    c.stopped();
    assert!(c.value("x").ends_with(" · uninitialized"), "{}", c.value("x"));
    assert!(c.value("y").ends_with(" · all 7, 2 uninitialized"), "{}", c.value("y"));
    let y = c.ask("evaluate", json!({ "expression": "y", "frameId": 1 }));
    let elements = c.below(&y["variablesReference"], json!({}));
    assert_eq!(elements, ["[0] = uninitialized", "[1] = 7", "[2] = uninitialized"]);
    let rows =
        |text: String| text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let table: Vec<String> = rows(c.value("table t"));
    assert_eq!(table, ["i32[2, 2, 2]", "[0]", "0 0 1", "1 2 3", "[1]", "0 4 5", "1 6 7"]);
    assert_eq!(c.end(), 0);
}
