//! Clients that ask at the wrong time, and conditions that the language rejects.

use super::{Client, lines};
use serde_json::json;

#[test]
fn a_session_launches_once() {
    let mut c = Client::new(json!({ "test": "rows" }), json!([16]), &[]);
    c.stopped();
    let path = c.folder.path("p.tk");
    let answer = c.answer("launch", json!({ "program": path }));
    assert_eq!(answer["success"], false);
    assert_eq!(answer["message"], "this session has launched a program already");
    c.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": [] }));
    assert_eq!(c.end(), 0);
}

/// A program that runs on may never stop again.
#[test]
fn what_comes_right_after_a_step_has_an_answer() {
    let mut c = Client::new(json!({ "test": "forever" }), json!([50]), &[]);
    assert_eq!(lines(&c.stopped().1)[0], ("forever", 50));
    let path = c.folder.path("p.tk");
    c.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": [] }));
    c.send("continue", json!({ "threadId": 1 }));
    let answer = c.answer("stackTrace", json!({ "threadId": 1 }));
    assert_eq!(answer["message"], "no program stands still", "{answer}");
    c.ask("disconnect", json!({}));
    assert!(c.gone(), "it runs on");
}

#[test]
fn a_program_that_stands_still_does_not_pause() {
    let mut c = Client::new(json!({ "test": "rows" }), json!([19]), &[]);
    c.stopped();
    c.ask("pause", json!({ "threadId": 1 }));
    // The next program, at the breakpoint.
    assert_eq!(c.go("continue").0, "breakpoint");
}

#[test]
fn literals_out_of_range() {
    let mut c = Client::new(json!({ "test": "rows" }), json!([16]), &[]);
    c.stopped();
    for (condition, why) in [
        ("k == 3000000000", "3000000000 is out of range for `i32`"),
        ("-3000000000 < k", "-3000000000 is out of range for `i32`"),
        ("k + 4294967296 == 0", "4294967296 is out of range for `i32`"),
    ] {
        let answer = c.answer("evaluate", json!({ "expression": condition, "frameId": 1 }));
        assert_eq!(answer["message"], why);
    }
    let answer = c.answer("evaluate", json!({ "expression": "scale < 1e39", "frameId": 1 }));
    assert!(answer["message"].as_str().unwrap().ends_with("is out of range for `f32`"), "{answer}");
    assert_eq!((c.value("k == 2147483647"), c.value("scale < 1e38")), ("false".into(), "true".into()));
}

/// Counts at the end of their range.
#[test]
fn numbers_that_nobody_means() {
    let last = u64::MAX;
    let hits = json!({ "line": 16, "hitCondition": format!(">{last}") });
    let mut c = Client::new(json!({ "test": "rows", "stopOnEntry": true }), json!([hits]), &[]);
    c.stopped();
    let path = c.folder.path("p.tk");
    c.ask("initialize", json!({ "linesStartAt1": false }));
    let asked = json!({ "source": { "path": path }, "breakpoints": [{ "line": last }] });
    assert_eq!(c.ask("setBreakpoints", asked)["breakpoints"][0]["verified"], false);
    c.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": [{ "line": 18 }] }));
    c.go("continue");
    let scopes = c.ask("scopes", json!({ "frameId": 1 }))["scopes"].clone();
    let all = c.ask("variables", json!({ "variablesReference": scopes[0]["variablesReference"] }));
    let tile = all["variables"].as_array().unwrap().iter().find(|v| v["name"] == "out").unwrap().clone();
    let rest = c.below(&tile["variablesReference"], json!({ "start": 1, "count": last }));
    assert_eq!(rest.len(), 7, "{rest:?}");
}
