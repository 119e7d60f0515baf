//! Steps out of functions and past them, stops on one line, output, and what the console knows.

use serde_json::{Value, json};

use super::{Client, lines};

const PROGRAM: &str = r#"fn one(x: f32) -> f32 {
    let y = x + 1.0;
    y * 2.0
}

fn two(x: f32) -> f32 {
    let y = x + 2.0;
    y
}

test "calls" {
    let s = 1.0 as f32;
    let r = one(s) + two(s);
    print(r);
    assert(r == 7.0);
}

kernel k[T: float](x: view[T, 2], n: i32) {
    let big = inf;
    let mut i = 0;
    while i < n {
        i += 1;
    }
    print("i is", i);
    assert(i == n);
}

test "kernel" {
    k(buffer(zeros([3, 5], f32)), 2);
}
"#;

fn client(test: &str, breakpoints: Value) -> Client {
    Client::of(PROGRAM, json!({ "test": test }), breakpoints, &[]).0
}

#[test]
fn steps_return_to_the_caller() {
    let mut c = client("calls", json!([13]));
    assert_eq!(lines(&c.stopped().1)[0], ("test \"calls\"", 13));
    assert_eq!(lines(&c.go("stepIn").1)[0], ("one", 2));
    // The rest of the statement still runs.
    assert_eq!(lines(&c.go("stepOut").1)[0], ("test \"calls\"", 13));
    assert_eq!(lines(&c.go("stepIn").1)[0], ("two", 7));
    // Nothing but the sum is left.
    assert_eq!(lines(&c.go("stepOut").1)[0], ("test \"calls\"", 13));
    assert_eq!(lines(&c.go("next").1)[0], ("test \"calls\"", 14));
    assert_eq!(c.end(), 0);
    let mut c = client("calls", json!([3]));
    assert_eq!(lines(&c.stopped().1)[0], ("one", 3));
    assert_eq!(lines(&c.go("next").1)[0], ("test \"calls\"", 13));
    assert_eq!(lines(&c.go("next").1)[0], ("test \"calls\"", 14));
    assert_eq!(c.end(), 0);
}

#[test]
fn lines_are_printed_before_the_next_stop() {
    for (test, line, text) in [("calls", 15, "7.0\n"), ("kernel", 25, "program 0, 0, 0: i is 2\n")] {
        let mut c = client(test, json!([line]));
        let output = c.event("output");
        assert_eq!(output, json!({ "category": "stdout", "output": text }));
        c.stopped();
        assert_eq!(c.end(), 0);
    }
}

#[test]
fn the_condition_of_a_loop_is_part_of_it() {
    let mut c = client("kernel", json!([21, 22]));
    assert_eq!(lines(&c.stopped().1)[0], ("k", 21));
    for line in [22, 21, 22, 21] {
        assert_eq!(lines(&c.go("continue").1)[0], ("k", line));
    }
    assert_eq!(c.end(), 0);
}

#[test]
fn shapes_types_and_special_numbers() {
    let mut c = client("kernel", json!([24]));
    c.stopped();
    for (text, value) in [
        ("x.shape", "[3, 5]"),
        ("x.shape[0] + x.shape[1]", "8"),
        ("x.strides[0]", "5"),
        ("T == f32", "true"),
        ("T != f16", "true"),
        ("inf > 1.0", "true"),
        ("-inf", "-inf"),
        ("nan == nan", "false"),
    ] {
        assert_eq!(c.value(text), value, "{text}");
    }
    for (text, why) in [("", "an expression is missing"), ("let a = 1", "`let a = 1` is no expression")] {
        let answer = c.answer("evaluate", json!({ "expression": text, "frameId": 1 }));
        assert_eq!(answer["message"], why);
    }
    assert_eq!(c.end(), 0);
}

#[test]
fn braces_of_log_messages_and_programs_of_any_number() {
    let said = json!({ "line": 24, "logMessage": "{{{i}}} of {n" });
    let launch = json!({ "test": "kernel", "programId": [] });
    let mut c = Client::of(PROGRAM, launch, json!([said, 25]), &[]).0;
    assert_eq!(c.event("output")["output"], "{2} of {n\n");
    c.stopped();
    assert_eq!(c.end(), 0);
    let launch = json!({ "test": "kernel", "programId": [0, 0, 0, 0] });
    let mut c = Client::of(PROGRAM, launch, json!([25]), &[]).0;
    let answer = c.events.iter().find(|m| m["command"] == "launch").expect("an answer").clone();
    assert_eq!(answer["success"], false);
    assert!(answer["message"].as_str().unwrap().contains("at most 3"), "{answer}");
    c.ask("disconnect", json!({}));
    assert!(c.gone());
}
