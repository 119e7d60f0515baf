//! `tk dap` over real pipes, as an editor starts it: stops, steps, variables, and clients that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod console;
mod hostile;
mod lambdas;
mod launches;
mod reports;
mod steps;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::support::command::{Folder, command};
use serde_json::{Value, json};

const PROGRAM: &str = r#"// A kernel with a loop, a call and a struct.
struct Pair[N: i32] { a: tile[f32, N], n: i32 }

fn soft[N: i32](p: Pair[N]) -> tile[f32, N] {
    let e = exp(p.a - max(p.a));
    let total = sum(e);
    e / total
}

kernel rows[BN: i32 = next_pow2(x.shape[1])](x: view[f32, 2], y: mut view[f32, 2], scale: f32)
    grid(x.shape[0])
{
    let i = program_id(0);
    let mut a = reshape(x.load([i, 0], [1, BN], other = -inf), [BN]);
    for k in range(0, 3) {
        a = a * scale;
    }
    let out = soft(Pair(a = a, n = i));
    y.store([i, 0], reshape(out, [1, BN]));
}

test "rows" {
    let x = reshape(arange(0, 15) as f32, [3, 5]);
    let y = buffer(zeros([3, 5], f32));
    rows(buffer(x), y, 2.0);
    assert(all(y.tile() >= 0.0));
}

test "a NaN" {
    let y = buffer(zeros([2, 4], f32));
    rows(buffer(zeros([2, 4], f32)), y, inf);
}

kernel past(x: *f32, y: *mut f32) {
    let at = arange(0, 8);
    store(y + at, load(x + at));
}

test "past the end" {
    past(buffer(zeros([4], f32)), buffer(zeros([8], f32)));
}

test "expected" {
    assert_error "E0708" {
        past(buffer(zeros([4], f32)), buffer(zeros([8], f32)));
    }
}

kernel forever(n: i32) {
    let mut k = n;
    while k > 0 {
        k = k + 0;
    }
}

test "forever" {
    forever(1);
}

test "blocks" {
    let v = 1;
    let mut n = 7;
    if n > 0 {
        let v = 2;
        assert(v == 2);
    }
    assert(v == 1);
    while n > 0 {
        // A comment is no statement.
        n = n - 1;
    }
}
"#;

/// A client and the adapter that it has started.
struct Client {
    child: Child,
    output: BufReader<ChildStdout>,
    folder: Folder,
    seq: i64,
    /// What came while something else was waited for.
    events: Vec<Value>,
}

impl Client {
    /// A client that has said which breakpoints it wants; `lines` are lines or whole breakpoints.
    fn new(launch: Value, lines: Value, filters: &[&str]) -> Client {
        Client::of(PROGRAM, launch, lines, filters).0
    }

    /// The same over another program; and the answers about its breakpoints.
    fn of(program: &str, launch: Value, lines: Value, filters: &[&str]) -> (Client, Value) {
        let folder = Folder::new("dap");
        folder.write("p.tk", program);
        let mut child =
            command(&folder.path(""), &["dap"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client { child, output, folder, seq: 0, events: vec![] };
        client.ask("initialize", json!({ "adapterID": "tk" }));
        client.event("initialized");
        let path = client.folder.path("p.tk");
        let mut launch = launch;
        launch["program"] = path.to_str().unwrap().into();
        client.send("launch", launch);
        let breakpoints: Vec<Value> = lines
            .as_array()
            .unwrap()
            .iter()
            .map(|l| if l.is_object() { l.clone() } else { json!({ "line": l }) })
            .collect();
        let set =
            client.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": breakpoints }));
        client.ask("setExceptionBreakpoints", json!({ "filters": filters }));
        client.ask("configurationDone", json!({}));
        (client, set["breakpoints"].clone())
    }

    fn send(&mut self, command: &str, arguments: Value) -> i64 {
        self.seq += 1;
        let message =
            json!({ "seq": self.seq, "type": "request", "command": command, "arguments": arguments });
        self.raw(&message.to_string());
        self.seq
    }

    fn raw(&mut self, text: &str) {
        let message = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.child.stdin.as_mut().unwrap().write_all(message.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut header = String::new();
        self.output.read_line(&mut header).unwrap();
        let length = header.trim().strip_prefix("Content-Length: ").expect("a header").parse().unwrap();
        self.output.read_line(&mut header).unwrap();
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The whole answer.
    fn answer(&mut self, command: &str, arguments: Value) -> Value {
        let seq = self.send(command, arguments);
        loop {
            let message = self.receive();
            if message["type"] == "response" && message["request_seq"] == seq {
                return message;
            }
            self.events.push(message);
        }
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.answer(command, arguments);
        assert_eq!(answer["success"], true, "{answer}");
        answer["body"].clone()
    }

    fn event(&mut self, name: &str) -> Value {
        loop {
            let message = match self.events.is_empty() {
                true => self.receive(),
                false => self.events.remove(0),
            };
            if message["event"] == name {
                return message["body"].clone();
            }
            assert_ne!(message["event"], "terminated", "the run has ended");
        }
    }

    /// Why the launch has failed; the session has ended then.
    fn refused(mut self) -> String {
        let mut message = None;
        loop {
            let next = if self.events.is_empty() { self.receive() } else { self.events.remove(0) };
            if next["event"] == "terminated" {
                break;
            }
            assert_ne!(next["event"], "exited", "it has run");
            if next["command"] == "launch" {
                assert_eq!(next["success"], false, "{next}");
                message = next["message"].as_str().map(str::to_string);
            }
        }
        self.ask("disconnect", json!({}));
        assert!(self.gone(), "the adapter has not ended");
        message.expect("an answer before the end")
    }

    /// Waits until it stops: the reason, the functions with their lines.
    fn stopped(&mut self) -> (String, Vec<(String, u64)>) {
        let why = self.event("stopped");
        let frames = self.ask("stackTrace", json!({ "threadId": 1 }))["stackFrames"].clone();
        let frame = |f: &Value| (f["name"].as_str().unwrap().to_string(), f["line"].as_u64().unwrap());
        let reason = why["text"].as_str().or(why["reason"].as_str()).unwrap().to_string();
        (reason, frames.as_array().unwrap().iter().map(frame).collect())
    }

    fn go(&mut self, how: &str) -> (String, Vec<(String, u64)>) {
        self.ask(how, json!({ "threadId": 1 }));
        self.stopped()
    }

    fn value(&mut self, expression: &str) -> String {
        let body = self.ask("evaluate", json!({ "expression": expression, "frameId": 1, "context": "repl" }));
        body["result"].as_str().unwrap().to_string()
    }

    /// The variables below a reference, `name = value`.
    fn below(&mut self, reference: &Value, more: Value) -> Vec<String> {
        let mut arguments = more;
        arguments["variablesReference"] = reference.clone();
        let body = self.ask("variables", arguments);
        let text = |v: &Value| format!("{} = {}", v["name"].as_str().unwrap(), v["value"].as_str().unwrap());
        body["variables"].as_array().unwrap().iter().map(text).collect()
    }

    /// Lets it run to its end; the exit code.
    fn end(mut self) -> i64 {
        self.ask("continue", json!({ "threadId": 1 }));
        let code = self.event("exited")["exitCode"].as_i64().unwrap();
        self.ask("disconnect", json!({}));
        assert!(self.gone(), "the adapter has not ended");
        code
    }

    fn gone(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        false
    }
}

fn lines(frames: &[(String, u64)]) -> Vec<(&str, u64)> {
    frames.iter().map(|(name, line)| (name.as_str(), *line)).collect()
}

#[test]
fn stops_steps_and_variables() {
    let mut c = Client::new(json!({ "test": "rows" }), json!([16]), &[]);
    let (reason, frames) = c.stopped();
    assert_eq!(reason, "breakpoint");
    assert_eq!(lines(&frames), [("rows", 16), ("test \"rows\"", 25)]);
    assert_eq!(c.value("a"), "[0.0, 1.0, 2.0, 3.0, 4.0, -inf, -inf, -inf]");
    assert_eq!(c.value("BN + k * 10"), "8");
    // As the kernel computes: in the types of the operands, and no more of `&&` and `||` than matters.
    assert_eq!(c.value("a[1] / 3.0"), "0.33333334");
    assert_eq!(c.value("a[1] * 0.1 == 0.1 && 0.1 == a[1] * 0.1"), "true");
    assert_eq!(c.value("k - 2147483647 - 2"), "2147483647");
    assert_eq!(c.value("k == 5 && 1 / k == 0"), "false");
    assert_eq!(c.value("k == 0 || 1 / k == 0"), "true");
    let (reason, frames) = c.go("next");
    assert_eq!((reason.as_str(), lines(&frames)[0]), ("breakpoint", ("rows", 16)));
    assert_eq!(c.value("a[4] == 8.0 && program_id(0) == 0"), "true");
    assert_eq!(c.value("num_programs(0)"), "3");
    c.ask("setBreakpoints", json!({ "source": { "path": c.folder.path("p.tk") }, "breakpoints": [] }));
    assert_eq!(lines(&c.go("stepOut").1), [("test \"rows\"", 26)]);
    let y = c.value("y");
    assert!(y.contains("strides [5, 1] · 0.0000") && y.ends_with(".. 0.9996645450592041"), "{y}");
    assert_eq!(c.end(), 0);
}

#[test]
fn into_functions_and_parts() {
    let mut c = Client::new(json!({ "test": "rows", "programId": [2] }), json!([18]), &[]);
    assert_eq!(lines(&c.stopped().1)[0], ("rows", 18));
    assert_eq!(c.value("i"), "2");
    let (reason, frames) = c.go("stepIn");
    assert_eq!(reason, "step");
    assert_eq!(lines(&frames), [("soft", 5), ("rows", 18), ("test \"rows\"", 25)]);
    let scopes = c.ask("scopes", json!({ "frameId": 1 }));
    let names: Vec<&str> =
        scopes["scopes"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Variables", "Compile time"]);
    assert_eq!(c.below(&scopes["scopes"][0]["variablesReference"], json!({})), ["p = { a: f32[8], n: 2 }"]);
    assert_eq!(c.below(&scopes["scopes"][1]["variablesReference"], json!({})), ["N = 8"]);
    let p = c.ask("evaluate", json!({ "expression": "p", "frameId": 1 }));
    let parts =
        c.ask("variables", json!({ "variablesReference": p["variablesReference"] }))["variables"].clone();
    assert_eq!(parts[0]["evaluateName"], "p.a");
    let p = c.ask("evaluate", json!({ "expression": "p.a", "frameId": 1 }));
    assert_eq!((&p["type"], &p["indexedVariables"]), (&json!("f32[8]"), &json!(8)));
    assert_eq!(
        c.below(&p["variablesReference"], json!({ "start": 3, "count": 2 })),
        ["[3] = 104.0", "[4] = 112.0"]
    );
    assert_eq!(lines(&c.go("next").1)[0], ("soft", 6));
    assert_eq!(lines(&c.go("next").1)[0], ("soft", 7));
    assert_eq!(lines(&c.go("next").1)[0], ("rows", 19));
    // The frames below have their variables too.
    let scopes = c.ask("scopes", json!({ "frameId": 2 }));
    let of_test = c.below(&scopes["scopes"][0]["variablesReference"], json!({}));
    assert!(of_test.iter().any(|v| v.starts_with("x = 0 .. 14")), "{of_test:?}");
    assert_eq!(c.value("heat out").lines().nth(1), Some("|    @   |"));
    assert_eq!(c.end(), 0);
}

#[test]
fn conditions_hits_and_logs() {
    let condition = json!({ "line": 16, "condition": "program_id(0) == 1 && k == 2" });
    let mut c = Client::new(json!({ "test": "rows" }), json!([condition]), &[]);
    assert_eq!(lines(&c.stopped().1)[0], ("rows", 16));
    assert_eq!((c.value("program_id(0)"), c.value("k")), ("1".into(), "2".into()));
    assert_eq!(c.end(), 0);
    let hits = json!({ "line": 16, "hitCondition": "5" });
    let mut c = Client::new(json!({ "test": "rows" }), json!([hits]), &[]);
    c.stopped();
    assert_eq!((c.value("program_id(0)"), c.value("k")), ("1".into(), "1".into()));
    assert_eq!(c.end(), 0);
    let hits = json!({ "line": 16, "hitCondition": ">=8" });
    let mut c = Client::new(json!({ "test": "rows" }), json!([hits]), &[]);
    c.stopped();
    assert_eq!((c.value("program_id(0)"), c.value("k")), ("2".into(), "1".into()));
    c.go("continue");
    let wrong = json!([{ "line": 16, "hitCondition": "often" }]);
    let path = c.folder.path("p.tk");
    let set = c.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": wrong }));
    assert_eq!(set["breakpoints"][0]["verified"], false);
    assert!(set["breakpoints"][0]["message"].as_str().unwrap().contains("`often`"));
    assert_eq!(c.end(), 0);
    let log = json!({ "line": 19, "logMessage": "program {i}: {sum}, {out[0] > 1.0}" });
    let mut c = Client::new(json!({ "test": "rows" }), json!([log]), &[]);
    let mut said = vec![];
    loop {
        let message = if c.events.is_empty() { c.receive() } else { c.events.remove(0) };
        if message["event"] == "exited" {
            break;
        }
        said.extend(message["body"]["output"].as_str().map(str::to_string));
    }
    assert!(said.iter().any(|s| s == "program 2: <there is no variable `sum` here>, false\n"), "{said:?}");
}

#[test]
fn the_inner_of_two_variables_ends_with_its_block() {
    let mut c = Client::new(json!({ "test": "blocks" }), json!([65]), &[]);
    assert_eq!(lines(&c.stopped().1), [("test \"blocks\"", 65)]);
    assert_eq!(
        (c.value("v"), c.value("n / 2"), c.value("n / 2 * 2 == n")),
        ("2".into(), "3".into(), "false".into())
    );
    assert_eq!(lines(&c.go("next").1), [("test \"blocks\"", 67)]);
    assert_eq!(c.value("v"), "1");
    let condition = json!({ "line": 70, "condition": "n / 2 == 0" });
    let path = c.folder.path("p.tk");
    c.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": [condition] }));
    assert_eq!(lines(&c.go("continue").1), [("test \"blocks\"", 70)]);
    assert_eq!(c.value("n"), "1");
    assert_eq!(c.end(), 0);
}

#[test]
fn a_nan_and_a_wrong_access() {
    let mut c = Client::new(json!({ "test": "a NaN" }), json!([]), &["nan", "fault"]);
    let (reason, frames) = c.stopped();
    assert_eq!(reason, "a value becomes NaN here");
    assert_eq!(lines(&frames)[0], ("rows", 16));
    assert_eq!(c.value("a"), "[0.0, 0.0, 0.0, 0.0]", "the value before the statement");
    assert_eq!(c.value("scale"), "inf");
    c.send("disconnect", json!({}));
    assert!(c.gone());

    let mut c = Client::new(json!({ "test": "past the end" }), json!([]), &["fault"]);
    let (reason, frames) = c.stopped();
    assert!(reason.starts_with("E0708: ") && reason.contains("past the end"), "{reason}");
    assert_eq!(lines(&frames), [("past", 36), ("test \"past the end\"", 40)]);
    assert_eq!(c.value("at[7]"), "7");
    assert_eq!(c.end(), 1);
    // An error that a test expects is none; one that nobody asked for does not stop.
    for (test, filters, code) in [("expected", vec!["fault"], 0), ("past the end", vec![], 1)] {
        let mut c = Client::new(json!({ "test": test }), json!([]), &filters);
        assert_eq!(c.event("exited")["exitCode"], code);
    }
}

/// The console takes a part of a tuple wherever it takes a variable.
#[test]
fn parts_of_tuples() {
    let program =
        "test \"t\" {\n    let t = (arange(0, 4), 7);\n    let (_, b) = t;\n    assert(b == 7);\n}\n";
    let (mut c, _) = Client::of(program, json!({}), json!([4]), &[]);
    c.stopped();
    assert_eq!(c.value("t[1]"), "7");
    assert_eq!(c.value("t[0][3] + t[1]"), "10");
    assert!(c.value("table t[0]").ends_with("0          1          2          3\n"));
    assert!(c.value("heat t[0]").starts_with("i32[4], 0 .. 3\n"));
    let tile = c.ask("tk/tile", json!({ "expression": "t[0]", "frameId": 1 }));
    assert_eq!((&tile["shape"], &tile["max"]), (&json!([4]), &json!(3.0)));
    assert_eq!(c.end(), 0);
}

/// A client that goes away before it has set its breakpoints has all answers.
#[test]
fn a_launch_that_never_begins() {
    let folder = Folder::new("dap");
    let mut child =
        command(&folder.path(""), &["dap"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut c = Client { child, output, folder, seq: 0, events: vec![] };
    c.ask("initialize", json!({ "adapterID": "tk" }));
    let launch = c.send("launch", json!({ "program": "p.tk" }));
    c.ask("disconnect", json!({}));
    let answer = c.events.iter().find(|m| m["type"] == "response" && m["request_seq"] == launch);
    assert_eq!(answer.expect("an answer")["success"], false);
    assert!(c.gone());
}

#[test]
fn a_kernel_that_never_ends() {
    let mut c = Client::new(json!({ "test": "forever" }), json!([]), &[]);
    let mut frames = vec![];
    // It may not have come to the kernel yet.
    for _ in 0..100 {
        c.ask("pause", json!({ "threadId": 1 }));
        let stopped = c.stopped();
        assert_eq!(stopped.0, "pause");
        frames = stopped.1;
        if frames.len() == 2 {
            break;
        }
        c.ask("continue", json!({ "threadId": 1 }));
    }
    assert!(matches!(lines(&frames)[0], ("forever", 49..=52)), "{frames:?}");
    assert_eq!(c.value("k"), "1");
    c.ask("continue", json!({ "threadId": 1 }));
    c.ask("disconnect", json!({}));
    assert!(c.gone(), "it runs on");
}

#[test]
fn a_kernel_with_arguments() {
    let launch = json!({ "kernel": "rows", "args": ["x=ones:f32[2,3]", "y=zeros:f32[2,3]", "scale=1.5"], "set": ["BN=4"], "stopOnEntry": true });
    let mut c = Client::new(launch, json!([]), &[]);
    assert_eq!(lines(&c.stopped().1), [("rows", 13)]);
    assert_eq!(c.value("scale"), "1.5");
    assert_eq!(c.value("x"), "buffer x + 0, strides [3, 1] · all 1");
    assert!(c.value("table x").contains("    0        1.0        1.0        1.0\n"));
    let tile = c.ask("tk/tile", json!({ "expression": "x", "frameId": 1 }));
    assert_eq!(
        (&tile["shape"], &tile["max"], &tile["numbers"][5]),
        (&json!([2, 3]), &json!(1.0), &json!(1.0))
    );
    assert_eq!(c.end(), 0);
}

#[test]
fn clients_that_misbehave() {
    // One that is gone in the middle of a step.
    let mut c = Client::new(json!({ "test": "rows" }), json!([16]), &[]);
    c.stopped();
    c.send("next", json!({ "threadId": 1 }));
    c.child.stdin.take();
    assert!(c.gone(), "it waits for a client that is gone");
    // Breakpoints in comments go to the next statement, those behind the last one and in other files nowhere.
    let mut c = Client::new(json!({ "test": "rows", "stopOnEntry": true }), json!([]), &[]);
    c.stopped();
    let path = c.folder.path("p.tk");
    let asked = json!({ "source": { "path": path }, "breakpoints": [{ "line": 1 }, { "line": 12 }, { "line": 1000 }] });
    let set = c.ask("setBreakpoints", asked)["breakpoints"].clone();
    let places: Vec<(bool, u64)> = set
        .as_array()
        .unwrap()
        .iter()
        .map(|b| (b["verified"].as_bool().unwrap(), b["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(true, 5), (true, 13), (false, 1000)]);
    c.ask("setBreakpoints", json!({ "source": { "path": c.folder.path("p.tk") }, "breakpoints": [] }));
    let elsewhere = json!({ "source": { "path": "/nowhere/else.tk" }, "breakpoints": [{ "line": 1 }] });
    assert_eq!(c.ask("setBreakpoints", elsewhere)["breakpoints"][0]["verified"], false);
    // What is no request, what is unknown, what has no meaning here.
    c.raw("{]");
    c.raw("{\"seq\": 1}");
    for (command, arguments) in [
        ("dance", json!({})),
        ("variables", json!({ "variablesReference": 999 })),
        ("scopes", json!({ "frameId": 77 })),
        ("evaluate", json!({ "expression": "what", "frameId": 1 })),
        ("evaluate", json!({ "expression": "x[", "frameId": 1 })),
        ("evaluate", json!({ "expression": "heat what", "frameId": 1 })),
        ("tk/tile", json!({})),
    ] {
        let answer = c.answer(command, arguments.clone());
        assert_eq!(answer["success"], false, "{command} {arguments}");
        assert!(!answer["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(c.end(), 0);
    // Programs that do not check, or are not there.
    let folder = Folder::new("dap-errors");
    folder.write("p.tk", "kernel k() { undefined }");
    for (program, why) in [(folder.path("p.tk"), "has errors"), (folder.path("none.tk"), "cannot read")] {
        let mut c = Client::new(json!({ "test": "rows", "stopOnEntry": true }), json!([]), &[]);
        c.stopped();
        drop(c);
        let mut child =
            command(&folder.path(""), &["dap"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut c = Client { child, output, folder: Folder::new("dap-other"), seq: 0, events: vec![] };
        c.ask("initialize", json!({}));
        c.ask("configurationDone", json!({}));
        let answer = c.answer("launch", json!({ "program": program }));
        assert!(answer["message"].as_str().unwrap().contains(why), "{answer}");
        c.ask("disconnect", json!({}));
        assert!(c.gone());
    }
}

/// A client over a program of its own, which counts lines and columns from 0. The command is a copy without the
/// repository around it, so the library is the one that is built in.
fn from_zero(program: &str) -> Client {
    let folder = Folder::new("dap");
    folder.write("p.tk", program);
    // By another process: a file that this one has written is busy while another thread starts a process.
    let from = command(&folder.path(""), &[]).get_program().to_os_string();
    assert!(std::process::Command::new("cp").arg(from).arg(folder.path("tk")).status().unwrap().success());
    let mut alone = std::process::Command::new(folder.path("tk"));
    let mut child = alone.arg("dap").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut client = Client { child, output, folder, seq: 0, events: vec![] };
    client.ask("initialize", json!({ "adapterID": "tk", "linesStartAt1": false, "columnsStartAt1": false }));
    client.event("initialized");
    let path = client.folder.path("p.tk");
    client.send("launch", json!({ "program": path }));
    client
}

#[test]
fn lines_from_zero_constants_and_large_integers() {
    let program = "const LIMIT: i64 = 9007199254740993;\nconst HALF = 0.5;\n\ntest \"t\" {\n    let x = full([16], \
                   LIMIT, i64);\n    let n = 3;\n    assert(n == 3 && all(x == LIMIT));\n}\n";
    let mut client = from_zero(program);
    let path = client.folder.path("p.tk");
    let condition = json!([{ "line": 6, "condition": "n * HALF == 1.5 && LIMIT > 9007199254740992" }]);
    let set = client.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": condition }));
    assert_eq!(set["breakpoints"], json!([{ "verified": true, "line": 6 }]));
    client.ask("configurationDone", json!({}));
    let (reason, frames) = client.stopped();
    assert_eq!((reason.as_str(), lines(&frames)), ("breakpoint", vec![("test \"t\"", 6)]));
    let stack = client.ask("stackTrace", json!({ "threadId": 1 }));
    assert_eq!(stack["stackFrames"][0]["column"], 4);
    // A float would be 9007199254740992.
    assert_eq!(client.value("x"), "all 9007199254740993");
    assert_eq!(client.value("LIMIT + 1"), "9007199254740994");
    assert_eq!(client.end(), 0);
}

#[test]
fn breakpoints_in_the_library() {
    let program = "use std::math;\n\ntest \"t\" {\n    let n = sum(zeros([2], f32));\n    let x = math::sigmoid(n);\n    assert(x == 0.5);\n}\n";
    let mut client = from_zero(program);
    let path = client.folder.path("p.tk");
    client.ask("setBreakpoints", json!({ "source": { "path": path }, "breakpoints": [{ "line": 4 }] }));
    client.ask("configurationDone", json!({}));
    assert_eq!(lines(&client.stopped().1), [("test \"t\"", 4)]);
    let (_, frames) = client.go("stepIn");
    let stack = client.ask("stackTrace", json!({ "threadId": 1 }));
    let (source, first) = (stack["stackFrames"][0]["source"].clone(), frames[0].1);
    assert!(source["sourceReference"].as_u64().is_some_and(|n| n > 0), "{stack}");
    let text =
        client.ask("source", json!({ "source": source, "sourceReference": source["sourceReference"] }));
    let body = text["content"].as_str().unwrap().lines().nth(first as usize).unwrap().to_string();
    assert!(body.contains("let v = x as T.acc;"), "{body}");
    // Another session stops there by itself.
    let mut client = from_zero(program);
    let place = json!({ "source": source, "breakpoints": [{ "line": first + 1 }] });
    let set = client.ask("setBreakpoints", place);
    assert_eq!(set["breakpoints"], json!([{ "verified": true, "line": first + 1 }]));
    client.ask("configurationDone", json!({}));
    let (reason, frames) = client.stopped();
    assert_eq!(
        (reason.as_str(), lines(&frames)),
        ("breakpoint", vec![("sigmoid", first + 1), ("test \"t\"", 4)])
    );
    assert_eq!(client.end(), 0);
}
