//! What belongs to a problem, for clients that show much or little of it; what a hover says of costs.

use serde_json::{Value, json};

use super::client::{Client, position};
use super::features::URI;

#[test]
fn other_places_are_sent_to_who_shows_them() {
    let text = "fn f() -> i32 { 1 }\nfn f() -> i32 { 2 }\n";
    let related = json!({ "textDocument": { "publishDiagnostics": { "relatedInformation": true } } });
    let mut client = Client::new(related);
    client.open(URI, text);
    let twice = client.pushed(URI)["diagnostics"][0].clone();
    let first = json!({ "start": { "line": 0, "character": 3 }, "end": { "line": 0, "character": 4 } });
    let places = twice["relatedInformation"].as_array().unwrap();
    assert!(places.iter().any(|p| p["location"] == json!({ "uri": URI, "range": first })), "{places:?}");
    assert_eq!(client.end(), 0);
    let mut client = Client::new(json!({}));
    client.open(URI, text);
    assert_eq!(client.pushed(URI)["diagnostics"][0]["relatedInformation"], Value::Null);
    assert_eq!(client.end(), 0);
}

/// The titles that come with the problems of a text, and those of the actions for all of it.
fn titles(text: &str) -> (Vec<String>, Vec<String>) {
    let mut client = Client::new(json!({}));
    client.open(URI, text);
    let pushed = client.pushed(URI)["diagnostics"].clone();
    let listed = pushed.as_array().unwrap().iter().flat_map(|d| d["data"]["fixes"].as_array().cloned());
    let listed = listed.flatten().map(|t| t.as_str().unwrap().to_string()).collect();
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let context = json!({ "diagnostics": [], "only": ["quickfix"] });
    let params = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end }, "context": context });
    let offered = client.ok("textDocument/codeAction", params);
    let offered = offered.as_array().unwrap().iter().map(|a| a["title"].as_str().unwrap().to_string());
    let offered = offered.collect();
    client.end();
    (listed, offered)
}

#[test]
fn a_problem_names_the_fixes_that_are_offered() {
    // With the comma, `y` would be unknown.
    let foo = "fn foo(x: i32, z: i32) -> i32 { x + z }\n";
    let (listed, offered) = titles(&format!("{foo}fn f(x: i32) -> i32 {{ foo(x y) }}\n"));
    assert_eq!((listed, offered), (vec![], vec![]));
    let (listed, offered) = titles(&format!("{foo}fn f(x: i32) -> i32 {{ foo(x x) }}\n"));
    assert!(!listed.is_empty());
    assert_eq!(listed, offered);
}

#[test]
fn the_size_of_a_tile_in_a_thread() {
    let text = "kernel k(x: view[f32, 1], y: mut view[f32, 1]) grid(1) {\n    let v = x.load([0], [64]);\n    y.store([0], v);\n}\n";
    let mut client = Client::new(json!({}));
    client.open(URI, text);
    let on = json!({ "tk": { "costs": { "hints": true, "target": "sm_80" } } });
    let at = json!({ "textDocument": { "uri": URI }, "position": position(text, "v =", 0, false) });
    let said = |client: &mut Client| {
        let hover = client.ok("textDocument/hover", at.clone());
        hover["contents"]["value"].as_str().unwrap().contains("16 bytes in each thread")
    };
    assert!(!said(&mut client));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": on }));
    let start = std::time::Instant::now();
    while !said(&mut client) {
        assert!(start.elapsed().as_secs() < 20);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Its view has no size.
    let view = json!({ "textDocument": { "uri": URI }, "position": position(text, "x.load", 0, false) });
    let hover = client.ok("textDocument/hover", view);
    assert!(!hover["contents"]["value"].as_str().unwrap().contains("bytes"));
    client.end();
}
