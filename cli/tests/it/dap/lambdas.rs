//! Stops in lambdas, and breakpoints in code that no program runs.

use serde_json::{Value, json};

use super::{Client, lines};

const PROGRAM: &str = r#"const N: i32 = double(4);

fn double(n: i32) -> i32 {
    let m = n * 2;
    m
}

fn largest[M: i32](x: tile[f32, M]) -> f32 {
    let factor = 2.0;
    let y = map(
        |v| {
            let w = v * 2.0;
            w + 1.0
        },
        x,
    );
    let z = y * factor;
    reduce(
        z,
        axis = 0,
        combine = |a, b| {
            let bigger = a > b;
            where(bigger, a, b)
        },
    )
}

kernel k(x: view[f32, 1], y: mut view[f32, 1])
    grid(1)
    require(x.shape[0] == 4)
{
    let s = largest(x.load([0], [4]));
    let t = reduce(x.load([0], [4]), axis = 0, combine = |a, b| a + b);
    y.store([0], full([4], s + t, f32));
}

test "a" {
    let y = buffer(zeros([N / 2], f32));
    k(buffer(arange(0, 4) as f32), y);
    assert(all(y.tile() == 20.0));
}
"#;

fn client(breakpoints: Value) -> (Client, Value) {
    Client::of(PROGRAM, json!({ "test": "a" }), breakpoints, &[])
}

#[test]
fn a_lambda_stops_for_each_element() {
    let (mut c, _) = client(json!([12]));
    let (reason, frames) = c.stopped();
    assert_eq!(reason, "breakpoint");
    assert_eq!(lines(&frames), [("lambda", 12), ("largest", 10), ("k", 32), ("test \"a\"", 39)]);
    assert_eq!((c.value("v"), c.value("factor")), ("0.0".into(), "2.0".into()));
    assert_eq!(lines(&c.go("next").1)[0], ("lambda", 13));
    assert_eq!(c.value("w"), "0.0");
    assert_eq!(lines(&c.go("next").1)[0], ("lambda", 12));
    assert_eq!(c.value("v"), "1.0");
    // The frame of the caller has the variables of its statement.
    let scopes = c.ask("scopes", json!({ "frameId": 2 }));
    let variables = c.below(&scopes["scopes"][0]["variablesReference"], json!({}));
    assert_eq!(variables, ["x = [0.0, 1.0, 2.0, 3.0]", "factor = 2.0"]);
    c.ask("setBreakpoints", json!({ "source": { "path": c.folder.path("p.tk") }, "breakpoints": [] }));
    assert_eq!(lines(&c.go("stepOut").1)[0], ("largest", 17));
    assert_eq!(c.value("y"), "[1.0, 3.0, 5.0, 7.0]");
    // Over a lambda, and into it.
    assert_eq!(lines(&c.go("next").1)[0], ("largest", 18));
    assert_eq!(lines(&c.go("stepIn").1)[0], ("lambda", 22));
    assert_eq!((c.value("a"), c.value("b")), ("2.0".into(), "6.0".into()));
    assert_eq!(lines(&c.go("stepOut").1)[0], ("k", 33));
    assert_eq!(lines(&c.go("next").1)[0], ("k", 34));
    assert_eq!(c.end(), 0);
}

#[test]
fn a_condition_finds_one_element() {
    let (mut c, _) = client(json!([{ "line": 13, "condition": "v == 2.0" }]));
    assert_eq!(lines(&c.stopped().1)[0], ("lambda", 13));
    assert_eq!(c.value("w"), "4.0");
    assert_eq!(c.end(), 0);
    // On the line of a call, a breakpoint means the call.
    let (mut c, _) = client(json!([33]));
    assert_eq!(lines(&c.stopped().1)[0], ("k", 33));
    assert_eq!(lines(&c.go("stepIn").1)[0], ("lambda", 33));
    c.ask("setBreakpoints", json!({ "source": { "path": c.folder.path("p.tk") }, "breakpoints": [] }));
    assert_eq!(c.end(), 0);
}

#[test]
fn what_the_compiler_evaluates_never_stops_and_says_so() {
    let (mut c, set) = client(json!([1, 4, 29, 30, 32]));
    let reasons = [
        "nothing stops here: the constant `N` is evaluated at compile time",
        "nothing stops here: `double` is called only at compile time",
        "nothing stops here: the clauses of `k` are evaluated before its launch",
    ];
    assert_eq!(set[0], json!({ "verified": false, "line": 1, "message": reasons[0] }));
    assert_eq!(set[1], json!({ "verified": false, "line": 4, "message": reasons[1] }));
    assert_eq!(set[2], json!({ "verified": false, "line": 29, "message": reasons[2] }));
    assert_eq!(set[3], json!({ "verified": false, "line": 30, "message": reasons[2] }));
    assert_eq!(set[4], json!({ "verified": true, "line": 32 }));
    assert_eq!(lines(&c.stopped().1)[0], ("k", 32));
    assert_eq!(c.end(), 0);
}
