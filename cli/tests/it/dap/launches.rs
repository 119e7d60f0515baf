//! Launches that fail.

use serde_json::json;

use super::Client;

const PROGRAM: &str = "kernel k[N: i32 = 8](x: *f32, n: i32) {
    let at = arange(0, N);
    let t = load(x + at, at < n);
}

test \"t\" {
    k(buffer(zeros([8], f32)), 8);
}
";

/// A launch of what is not there, or cannot be launched, is answered with the reason and ends the session.
#[test]
fn launches_that_fail_end_the_session() {
    for (launch, why) in [
        (json!({ "test": "none" }), "has no test \"none\""),
        (json!({ "kernel": "none" }), "has no kernel `none`"),
        (json!({ "kernel": "k", "args": ["n=1"] }), "needs a value for `x`"),
        (json!({ "kernel": "k", "args": ["z=1"] }), "`z`"),
        (json!({ "kernel": "k", "set": ["N"] }), "`N`"),
        (json!({ "kernel": 7 }), "the launch configuration: "),
        (json!({ "programId": [1, 2, 3, 4] }), "at most 3"),
    ] {
        let said = Client::of(PROGRAM, launch.clone(), json!([]), &[]).0.refused();
        assert!(said.contains(why), "{launch}: {said}");
    }
    for (program, why) in
        [("fn f() {}\n", "has no tests; `kernel`"), ("kernel k() { undefined }\n", "has errors")]
    {
        let said = Client::of(program, json!({}), json!([]), &[]).0.refused();
        assert!(said.contains(why), "{said}");
    }
    let (mut c, _) = Client::of(PROGRAM, json!({ "kernel": 7 }), json!([]), &[]);
    let folder = c.folder.path("");
    for program in [c.folder.path("none.tk"), folder] {
        let answer = c.answer("launch", json!({ "program": program }));
        assert_eq!(answer["success"], false, "{answer}");
        assert!(!answer["message"].as_str().unwrap().is_empty());
    }
    // One that is mended runs in the same session.
    let program = c.folder.path("p.tk");
    c.ask("launch", json!({ "program": program, "test": "t" }));
    while c.receive()["event"] != "exited" {}
}
