//! Costs and machine code, for clients that ask for them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Memory, range};
use super::features::{ADD, URI, about};

/// Asks until an answer is as expected: the compiler needs a moment.
fn until(client: &mut Client, holds: impl Fn(&mut Client) -> bool) {
    for _ in 0..2000 {
        if holds(client) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it does not happen");
}

#[test]
fn costs_are_shown_where_they_are_asked_for() {
    let refresh = json!({ "refreshSupport": true });
    let capabilities = json!({ "workspace": { "codeLens": refresh, "inlayHint": refresh } });
    let mut client = Client::new(capabilities);
    client.open(URI, ADD);
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let whole = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end } });
    let shown = |client: &mut Client| {
        let lenses = client.ok("textDocument/codeLens", about(URI));
        let hints = client.ok("textDocument/inlayHint", whole.clone());
        let is_cost = |l: &&Value| l["command"]["command"] == "";
        let lenses: Vec<Value> = lenses.as_array().unwrap().iter().filter(is_cost).cloned().collect();
        let is_cost = |h: &&Value| h["label"] == "50 %";
        let hints: Vec<Value> = hints.as_array().unwrap().iter().filter(is_cost).cloned().collect();
        (lenses, hints)
    };
    // Off by default.
    assert_eq!(shown(&mut client), (vec![], vec![]));
    let set = |costs: Value| json!({ "settings": { "tk": { "costs": costs } } });
    let on = json!({ "lens": true, "hints": true, "target": "sm_80" });
    client.notify("workspace/didChangeConfiguration", set(on));
    until(&mut client, |client| shown(client).1.len() == 2);
    let (lenses, hints) = shown(&mut client);
    // The client was told to ask again.
    for method in ["workspace/codeLens/refresh", "workspace/inlayHint/refresh"] {
        assert!(client.asked.iter().any(|m| m == method), "{:?}", client.asked);
    }
    assert_eq!(lenses[0]["command"]["title"], "32 registers (sm_80)", "{lenses:?}");
    assert_eq!(lenses[0]["range"], range(ADD, "add", 0));
    let loads: Vec<usize> =
        (0..).zip(ADD.lines()).filter(|(_, l)| l.contains("load")).map(|(n, _)| n).collect();
    assert_eq!(
        hints.iter().map(|h| h["position"]["line"].as_u64().unwrap() as usize).collect::<Vec<_>>(),
        loads
    );
    let ends: Vec<usize> = loads.iter().map(|n| ADD.lines().nth(*n).unwrap().len()).collect();
    assert_eq!(
        hints.iter().map(|h| h["position"]["character"].as_u64().unwrap() as usize).collect::<Vec<_>>(),
        ends
    );

    // A compiler that falls leaves the rest alone.
    client.change(URI, 2, json!([{ "text": format!("{ADD}// boom\n") }]));
    let stale = client.ok("textDocument/codeLens", about(URI));
    assert!(stale.as_array().unwrap().iter().any(|l| l["command"]["command"] == "tk.runTests"));
    until(&mut client, |client| shown(client) == (vec![], vec![]));
    // A target that is not there is named once.
    client.change(URI, 3, json!([{ "text": ADD }]));
    client.notify("workspace/didChangeConfiguration", set(json!({ "lens": true, "target": "sm_99" })));
    let warnings = |client: &Client| {
        let shows = client.said.iter().filter(|n| n.method == "window/showMessage");
        shows.map(|n| n.params["message"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    until(&mut client, |client| shown(client) == (vec![], vec![]) && !warnings(client).is_empty());
    client.change(URI, 4, json!([{ "text": format!("{ADD}// 4\n") }]));
    let asked = client.asked.len();
    until(&mut client, |client| shown(client) == (vec![], vec![]) && client.asked.len() > asked);
    assert_eq!(warnings(&client), ["no costs are shown: there is no target `sm_99`"]);
    // Nonsense turns them off.
    client.change(URI, 9, json!([{ "text": ADD }]));
    client.notify("workspace/didChangeConfiguration", set(json!({ "lens": "yes" })));
    assert_eq!(shown(&mut client), (vec![], vec![]));
    assert!(
        warnings(&client)[1].contains("the setting `tk.costs` is not used: invalid type"),
        "{:?}",
        client.said
    );
    client.notify("workspace/didChangeConfiguration", json!(null));
    assert_eq!(shown(&mut client), (vec![], vec![]));
}

/// The titles and commands of the lenses of a file.
fn lenses(client: &mut Client, uri: &str) -> Vec<(String, String)> {
    let found = client.ok("textDocument/codeLens", about(uri));
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let one = |l: &Value| (text(&l["command"]["title"]), text(&l["command"]["command"]));
    found.as_array().unwrap().iter().map(one).collect()
}

fn set(client: &Client, costs: &Value) {
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "tk": { "costs": costs } } }));
}

#[test]
fn machine_code_is_a_click_away_where_the_client_can_show_it() {
    let mut client = Client::new(json!({}));
    client.open(URI, &format!("{ADD}export add[BLOCK = 64];\n"));
    assert_eq!(lenses(&mut client, URI).len(), 2);
    set(&client, &json!({ "code": true }));
    let found = client.ok("textDocument/codeLens", about(URI));
    let opens = |l: &&Value| l["command"]["command"].as_str().unwrap().starts_with("tk.open");
    let found: Vec<Value> = found.as_array().unwrap().iter().filter(opens).cloned().collect();
    let titles: Vec<&str> = found.iter().map(|l| l["command"]["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["PTX", "SASS", "Tile IR", "PTX", "SASS", "Tile IR"]);
    assert_eq!(found[1]["command"]["command"], "tk.openSass");
    assert_eq!(found[1]["command"]["arguments"], json!([{ "uri": URI, "kernel": "add" }]));
    assert_eq!(found[1]["range"], range(ADD, "add", 0));
    let export = u64::try_from(ADD.lines().count()).unwrap();
    assert_eq!(found[5]["range"]["start"], json!({ "line": export, "character": 7 }));
    // AMD's has no SASS.
    set(&client, &json!({ "code": true, "target": "gfx942" }));
    let titles: Vec<String> = lenses(&mut client, URI).into_iter().map(|l| l.0).collect();
    assert_eq!(titles.iter().filter(|t| *t == "Assembly").count(), 2);
    assert!(!titles.iter().any(|t| t == "SASS"));
    // Without the compiler there is nothing to open.
    let mut client = Client::compiling(None, Memory::default(), json!({}));
    client.open(URI, ADD);
    set(&client, &json!({ "code": true, "lens": true, "hints": true }));
    assert_eq!(lenses(&mut client, URI).len(), 2);
}

#[test]
fn a_compiler_that_takes_a_minute_holds_nothing_up() {
    let start = Instant::now();
    let mut client = Client::new(json!({}));
    client.open(URI, &format!("{ADD}// takes a minute\n"));
    client.open("file:///w/other.tk", ADD);
    set(&client, &json!({ "lens": true, "hints": true }));
    for uri in [URI, "file:///w/other.tk", URI] {
        assert!(lenses(&mut client, uri).iter().all(|l| l.1 == "tk.runTests"));
    }
    // A change, a hover, and the end of the server do not wait for it either.
    client.change(URI, 2, json!([{ "text": ADD }]));
    assert_ne!(client.at("textDocument/hover", URI, json!({ "line": 7, "character": 8 })), Value::Null);
    assert_eq!(client.end(), 0);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

const KERNELS: &str = r#"kernel good(x: view[f32, 1], y: mut view[f32, 1])
    grid(cdiv(x.shape[0], 256))
{
    let at = program_id(0) * 256;
    y.store([at], x.load([at], [256]) * 2.0);
}

kernel narrow(x: *f16, y: *mut f16, n: i32) grid(cdiv(n, 256)) {
    let at = program_id(0) * 256 + arange(0, 256);
    store(y + at, load(x + at * 3, at < n), at < n);
}

kernel bad(x: view[f32, 1], y: mut view[f32, 1]) grid(1) {
    // More shared memory than a block has.
    y.store([0], sort(x.load([0], [1 << 18])));
}

kernel product[UNIT: i32](a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2], at: view[i32, 1]) {
    let mut acc = zeros([64, 64], f32);
    for k in range(0, a.shape[1], 64) {
        acc = dot(a.load([0, k], [64, 64]), b.load([k, at.load([0]) * UNIT], [64, 64]), acc);
    }
    c.store([0, 0], acc);
}
export product[UNIT = [1]];
"#;

#[test]
fn a_kernel_that_does_not_compile_leaves_the_others_their_costs() {
    let compiler = tk_lsp::predicted::of_kernels;
    let mut client = Client::compiling(Some(compiler), Memory::default(), json!({}));
    client.open(URI, KERNELS);
    set(&client, &json!({ "lens": true, "hints": true }));
    until(&mut client, |client| lenses(client, URI).len() >= 4);
    let found = lenses(&mut client, URI);
    // One for `good`, `narrow` and `product`, and one for its export; none for `bad`.
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.iter().all(|l| l.0.contains(" registers · 0 spilled · ")), "{found:?}");
    assert!(found.iter().all(|l| l.0.contains("(sm_90a, ")), "{found:?}");
    // This program has no assembler, and the lens says that none is asked.
    let shown = client.ok("textDocument/codeLens", about(URI));
    let of_costs: Vec<&Value> =
        shown.as_array().unwrap().iter().filter(|l| l["command"]["command"] == "").collect();
    assert_eq!(of_costs.len(), 4);
    for lens in of_costs {
        let tooltip = lens["command"]["tooltip"].as_str().unwrap();
        assert!(tooltip.contains("no assembler is asked"), "{tooltip}");
    }
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let whole = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end } });
    let hints = client.ok("textDocument/inlayHint", whole);
    let tooltip = |line: u64| {
        let mut at = hints.as_array().unwrap().iter().filter(|h| h["position"]["line"] == line);
        at.find_map(|h| h["tooltip"].as_str().map(str::to_string)).unwrap_or_default()
    };
    // Of a tile its bytes, of an access its width, of what TMA does not copy the reason.
    let copy = tooltip(4);
    assert!(copy.contains(" bytes a thread") && copy.contains(" bytes a lane"), "{copy}");
    let narrow = tooltip(9);
    assert!(
        narrow.contains("2 bytes a lane")
            && narrow.contains("because the pointers are not known to follow one another"),
        "{narrow}"
    );
    let product = tooltip(20);
    assert!(
        product.contains("operand b of a product is not copied by TMA: its first column is not known"),
        "{product}"
    );
    // A text with an error has none, and is otherwise answered.
    client.change(URI, 2, json!([{ "text": format!("{KERNELS}fn f() {{ undefined }}\n") }]));
    until(&mut client, |client| lenses(client, URI).is_empty());
}

/// The first instance copies, the second one computes: it has lines that the first one has not.
const INSTANCES: &str = r#"kernel k[T: f16 | f32](x: view[T, 1], y: mut view[T, 1])
    grid(cdiv(x.shape[0], 256))
{
    let at = program_id(0) * 256;
    let copied = x.load([at], [256]);
    let mut v = copied as f32;
    if T == f32 {
        for i in static_range(0, 64) {
            v = exp(v * 0.5) + sin(v);
        }
    }
    let given = v as T;
    y.store([at], given);
}
export k[T = [f16, f32]];
"#;

#[test]
fn instances_share_a_unit_and_every_tile_has_its_bytes() {
    let compiler = tk_lsp::predicted::of_kernels;
    let mut client = Client::compiling(Some(compiler), Memory::default(), json!({}));
    client.open(URI, INSTANCES);
    set(&client, &json!({ "lens": true, "hints": true }));
    until(&mut client, |client| {
        lenses(client, URI).iter().filter(|l| l.0.contains("registers")).count() >= 3
    });
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let whole = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end } });
    let hints = client.ok("textDocument/inlayHint", whole);
    let labels = hints.as_array().unwrap().iter().filter_map(|h| h["label"].as_str());
    let units: std::collections::BTreeSet<String> =
        labels.filter_map(|l| Some(l.split_once(" % of ")?.1.split(" · ").next()?.to_string())).collect();
    assert_eq!(units.len(), 1, "{units:?} of {hints}");
    let hinted =
        |line: u64| {
            hints.as_array().unwrap().iter().any(|h| {
                h["position"]["line"] == line && h["label"].as_str().is_some_and(|l| l.contains('%'))
            })
        };
    // `copied`, `v` and `given`.
    let lines = [(4, 8), (5, 12), (11, 8)];
    for (line, character) in lines {
        let found = client.at("textDocument/hover", URI, json!({ "line": line, "character": character }));
        assert!(found["contents"]["value"].as_str().unwrap().contains(" bytes in each thread"), "{found}");
    }
    assert!(lines.iter().any(|l| !hinted(l.0)), "{hints}");
}

#[test]
fn an_export_has_the_lenses_of_its_own_instances() {
    let text = "kernel k[N: i32](y: mut view[f32, 1]) grid(y.shape[0]) {\n    y.store([program_id(0) * N], \
                zeros([N], f32));\n}\nexport k[N = 16];\nexport k[N = [64, 128, 256, 512, 1024, 4096]];\n";
    let compiler = tk_lsp::predicted::of_kernels;
    let mut client = Client::compiling(Some(compiler), Memory::default(), json!({}));
    client.open(URI, text);
    set(&client, &json!({ "lens": true }));
    until(&mut client, |client| !lenses(client, URI).is_empty());
    let found = client.ok("textDocument/codeLens", about(URI));
    let one = |l: &Value| {
        let title = l["command"]["title"].as_str().unwrap().split(':').next().unwrap().to_string();
        (l["range"]["start"]["line"].as_u64().unwrap(), title)
    };
    let found: Vec<(u64, String)> = found.as_array().unwrap().iter().map(one).collect();
    let expected = [(0, 16), (3, 16), (4, 64), (4, 128), (4, 256), (4, 512)];
    assert_eq!(found, expected.map(|(line, n)| (line, format!("N={n}"))));
}

/// A function of the library costs what its call does; a condition bounds one extent and no other; what spills has its place.
const LAUNCHED: &str = r#"use std::math;

kernel called[BN: i32 = 1024](x: view[f32, 2], y: mut view[f32, 2])
    grid(x.shape[0])
    require(x.shape == y.shape, x.shape[1] <= BN)
{
    let v = x.load([program_id(0), 0], [1, BN], other = 0.0);
    let w = math::gelu(v);
    y.store([program_id(0), 0], w);
}

kernel multiples(x: view[f32, 1], y: mut view[f32, 1])
    grid(x.shape[0] / 192)
    require(x.shape == y.shape, x.shape[0] % 192 == 0)
{
    y.store([program_id(0) * 192], x.load([program_id(0) * 192], [192]));
}

kernel between(x: view[f32, 2], y: mut view[f32, 2])
    grid(x.shape[0])
    require(x.shape[0] == y.shape[0], y.shape[1] > x.shape[1], x.shape[1] < 100)
{
    y.store([program_id(0), 0], x.load([program_id(0), 0], [1, 64]));
}

kernel spilled[BLOCK: i32 = 32768](x: view[f32, 2], y: mut view[f32, 2])
    grid(x.shape[0])
{
    let v = x.load([program_id(0), 0], [1, BLOCK]);
    let e = exp(v - max(v));
    y.store([program_id(0), 0], e / sum(e) * v);
}
"#;

#[test]
fn calls_conditions_and_spills() {
    let compiler = tk_lsp::predicted::of_kernels;
    let mut client = Client::compiling(Some(compiler), Memory::default(), json!({}));
    client.open(URI, LAUNCHED);
    set(&client, &json!({ "lens": true, "hints": true }));
    until(&mut client, |client| lenses(client, URI).len() >= 4);
    let found = lenses(&mut client, URI);
    let extents: Vec<&str> =
        found.iter().filter_map(|l| l.0.split_once("NVIDIA H100, ")?.1.strip_suffix(')')).collect();
    let expected =
        ["extents of 4096 and 1024", "extents of 4032", "extents of 4096 and 64", "extents of 4096"];
    assert_eq!(extents, expected, "{found:?}");
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let whole = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end } });
    let hints = client.ok("textDocument/inlayHint", whole);
    let hint = |text_of: &str, part: &str| {
        let line = LAUNCHED.lines().position(|l| l.contains(text_of)).unwrap();
        let mut at = hints.as_array().unwrap().iter().filter(|h| h["position"]["line"] == line);
        at.find_map(|h| {
            h[part].as_str().filter(|t| t.contains('%') || t.contains("live")).map(str::to_string)
        })
    };
    // The library computes at the line of its call, where most registers are live.
    let registers = |text: &str| {
        let words = text.split(", ").find(|w| w.ends_with("registers live"));
        words.and_then(|w| w.split(' ').next()?.parse::<u32>().ok()).unwrap()
    };
    assert!(hint("store([program_id(0), 0], w)", "label").is_some(), "{hints}");
    let spills = hint("e / sum(e) * v", "label").unwrap();
    assert!(spills.ends_with(" registers spill"), "{spills}");
    let tooltip = hint("e / sum(e) * v", "tooltip").unwrap();
    assert!(tooltip.contains("most registers are live here") && registers(&tooltip) > 255, "{tooltip}");
    assert!(!hint("let e = exp", "label").is_some_and(|l| l.contains("spill")), "{hints}");
}

/// A kernel that computes nearly everything in the library.
const GELU: &str = r#"use std::math;

kernel k(x: view[f32, 1], y: mut view[f32, 1])
    grid(cdiv(x.shape[0], 256))
{
    let mut v = x.load([program_id(0) * 256], [256]);
    for i in static_range(0, 32) {
        v = math::gelu(v);
    }
    y.store([program_id(0) * 256], v);
}
"#;

#[test]
fn the_library_costs_at_its_calls() {
    let compiler = tk_lsp::predicted::of_kernels;
    let mut client = Client::compiling(Some(compiler), Memory::default(), json!({}));
    client.open(URI, GELU);
    set(&client, &json!({ "lens": true, "hints": true }));
    until(&mut client, |client| lenses(client, URI).iter().any(|l| l.0.contains("registers")));
    let (start, end) = (json!({ "line": 0, "character": 0 }), json!({ "line": 99, "character": 0 }));
    let whole = json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": end } });
    let hints = client.ok("textDocument/inlayHint", whole);
    let shares = |line: u64| {
        let at = hints.as_array().unwrap().iter().filter(|h| h["position"]["line"] == line);
        let share = |h: &Value| h["label"].as_str()?.split_once(" %")?.0.parse::<u32>().ok();
        at.filter_map(share).next().unwrap_or(0)
    };
    assert!(shares(7) > 90, "{hints}");
}
