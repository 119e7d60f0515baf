//! Each request once.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, Memory, codes, position, range};

const HELPER: &str =
    "/// Twice as much.\nfn twice[S: shape](x: tile[f32, S]) -> tile[f32, S] {\n    x + x\n}\n";
pub const ADD: &str = r#"use std::grid;
use helper;

/// A pair of numbers.
struct Pair { a: i32, b: i32 }

/// z = 2 x + y.
kernel add[BLOCK: i32 = 1024](x: view[f32, 1], y: view[f32, 1], z: mut view[f32, 1])
    grid(cdiv(z.shape[0], BLOCK))
    require(x.shape == z.shape, y.shape == z.shape)
{
    let at = program_id(0) * BLOCK;
    let pair = Pair(a = at, b = 2);
    let v = x.load([pair.a], [BLOCK]);
    z.store([at], helper::twice(v) + y.load([at], [BLOCK]));
}

fn tile_of(i: i32) -> i32 {
    let (a, b) = grid::grouped(i, 4, 4, 2);
    a + b
}

test "adds" {
    let z = buffer(zeros([8], f32));
    add(buffer(full([8], 1.0, f32)), buffer(full([8], 1.0, f32)), z);
    assert(all(z.tile() == 3.0));
}
"#;
pub const URI: &str = "file:///w/add.tk";

fn opened() -> Client {
    let disk = Memory::default();
    disk.write("/w/helper.tk", HELPER);
    disk.write("/w/add.tk", "");
    let abilities = json!({
        "workspace": { "workspaceEdit": { "documentChanges": true } },
        "textDocument": {
            "completion": { "completionItem": { "snippetSupport": true } },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "foldingRange": { "lineFoldingOnly": true },
        },
    });
    let mut client = Client::over(disk, abilities);
    client.open(URI, ADD);
    assert_eq!(client.pushed_codes(URI), [] as [&str; 0]);
    client
}

pub fn about(uri: &str) -> Value {
    json!({ "textDocument": { "uri": uri } })
}

#[test]
fn diagnostics_are_pushed_with_everything_that_belongs_to_them() {
    let mut client = opened();
    let text = ADD.replace("a + b\n", "a + c\n");
    client.change(URI, 2, json!([{ "text": text }]));
    let pushed = client.pushed(URI);
    assert_eq!(pushed["version"], 2);
    let unknown = pushed["diagnostics"].as_array().unwrap().iter().find(|d| d["code"] == "E0201").unwrap();
    let start = position(&text, "c\n}", 0, false);
    let end = json!({ "line": start["line"], "character": start["character"].as_u64().unwrap() + 1 });
    assert_eq!(unknown["range"], json!({ "start": start, "end": end }));
    assert_eq!((&unknown["severity"], &unknown["source"]), (&json!(1), &json!("tk")));
    let href = unknown["codeDescription"]["href"].as_str().unwrap();
    let page = Path::new(href.strip_prefix("file://").unwrap());
    assert_eq!(std::fs::read_to_string(page).unwrap(), "# The page\n");
    assert!(std::fs::metadata(page).unwrap().permissions().readonly());
    client.change(URI, 3, json!([{ "text": ADD.replace("use helper;", "use helper; use std::math;") }]));
    let pushed = client.pushed(URI);
    let unused = pushed["diagnostics"].as_array().unwrap().iter().find(|d| d["code"] == "W0203").unwrap();
    assert_eq!((&unused["severity"], &unused["tags"]), (&json!(2), &json!([1])));

    // Another place, and fixes.
    let text = "fn f() -> i32 { 1 }\nfn f() -> i32 { 2 }\nfn g(x: i32) -> f32 {\n    x\n}\n";
    client.change(URI, 4, json!([{ "text": text }]));
    let pushed = client.pushed(URI);
    // This client shows no other places.
    assert_eq!(pushed["diagnostics"][0]["relatedInformation"], Value::Null);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_problem_is_one_line() {
    let related = json!({ "textDocument": { "publishDiagnostics": { "relatedInformation": true } } });
    let text = "fn f[N: i32, M: i32](a: tile[f32, 2 * N], b: tile[f32, 2 * M]) -> tile[f32, 2 * N] {\n    a + b\n}\n";
    let mut client = Client::new(related);
    client.open(URI, text);
    let wrong = client.pushed(URI)["diagnostics"][0].clone();
    assert_eq!(wrong["message"], "`+` needs equal shapes, but has `[2 * N]` and `[2 * M]`");
    // The operator and both operands, and the shape of each.
    let at = |from: u32, to: u32| json!({ "start": { "line": 1, "character": from }, "end": { "line": 1, "character": to } });
    assert_eq!(wrong["range"], at(4, 9));
    let operands = wrong["relatedInformation"].as_array().unwrap();
    let said: Vec<_> =
        operands.iter().map(|o| (o["message"].as_str().unwrap(), &o["location"]["range"])).collect();
    let note = "all pairs of their elements are `a[:, None]` with `b[None, :]`, of shape `[2 * N, 2 * M]`, or `a[None, :]` with `b[:, None]`, of shape `[2 * M, 2 * N]`";
    assert_eq!(said, [("this is `[2 * M]`", &at(8, 9)), (note, &at(8, 9)), ("this is `[2 * N]`", &at(4, 5))]);
    assert_eq!(wrong["data"]["fixes"], json!(["`require(N == M)` in the signature would make them equal"]));
    client.end();
    // A client that shows no other places has everything in the message.
    let mut client = Client::new(json!({}));
    client.open(URI, text);
    let message = client.pushed(URI)["diagnostics"][0]["message"].clone();
    assert_eq!(
        message,
        format!("`+` needs equal shapes, but has `[2 * N]` and `[2 * M]`\nthis is `[2 * M]`\n{note}")
    );
    client.end();
}

#[test]
fn documentation_of_completions_comes_when_it_is_shown() {
    let item = json!({ "resolveSupport": { "properties": ["documentation"] } });
    let mut client = Client::new(json!({ "textDocument": { "completion": { "completionItem": item } } }));
    let text = "/// Doubles.\nfn twice(x: f32) -> f32 { x }\n\nfn f() -> f32 { t }\n";
    client.open(URI, text);
    let ask = |client: &mut Client| {
        let list = client.at("textDocument/completion", URI, position(text, "t }", 0, false));
        let items = list.as_array().or(list["items"].as_array()).unwrap().clone();
        assert!(items.iter().all(|i| i.get("documentation").is_none()));
        items.into_iter().find(|i| i["label"] == "twice").unwrap()
    };
    let old = ask(&mut client);
    let new = ask(&mut client);
    let resolved = client.ok("completionItem/resolve", new.clone());
    assert_eq!(resolved["documentation"]["value"], "Doubles.");
    assert_eq!((&resolved["label"], &resolved["textEdit"]), (&new["label"], &new["textEdit"]));
    // An item of an earlier list, and one that is none of ours.
    assert!(client.ok("completionItem/resolve", old).get("documentation").is_none());
    for data in [json!(null), json!([0, 99]), json!("x")] {
        let resolved = client.ok("completionItem/resolve", json!({ "label": "a", "data": data }));
        assert!(resolved.get("documentation").is_none());
    }
    client.end();
}

#[test]
fn a_statement_is_formatted_when_it_ends() {
    let mut client = Client::new(json!({}));
    let text = "fn f() {\n  let  a=1 ;\n  let  b=2;\n}\n";
    client.open(URI, text);
    let mut typed = |at: Value, ch: &str| {
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        let given = json!({ "textDocument": { "uri": URI }, "position": at, "ch": ch, "options": options });
        client.ok("textDocument/onTypeFormatting", given)
    };
    let edits = typed(position(text, "\n  let  b", 0, false), ";");
    assert_eq!(edits.as_array().unwrap().len(), 1, "{edits}");
    assert_eq!(edits[0]["newText"], "    let a = 1;");
    // The end of the item formats all of it; what does not stand there nothing.
    let all = typed(position(text, "\n", 3, false), "}");
    let new: String = all.as_array().unwrap().iter().map(|e| e["newText"].as_str().unwrap()).collect();
    assert_eq!(new, "    let a = 1;\n    let b = 2;\n");
    assert_eq!(typed(position(text, "let", 0, false), ";"), json!(null));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_string_or_comment_ends_no_statement() {
    let mut client = Client::new(json!({}));
    let text = "test \"a;\" {\n  assert( true, \"a; b}\" ); // c; d\n}\n";
    client.open(URI, text);
    for (before, ch) in [(" b", ";"), ("\" )", "}"), (" d", ";")] {
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        let at = position(text, before, 0, false);
        let given = json!({ "textDocument": { "uri": URI }, "position": at, "ch": ch, "options": options });
        assert_eq!(client.ok("textDocument/onTypeFormatting", given), json!(null), "before `{before}`");
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn files_that_are_used_are_links() {
    let mut client = opened();
    client.change(URI, 2, json!([{ "text": "use std::nn::softmax::softmax;\nuse helper;\nuse missing;\n" }]));
    let links = client.ok("textDocument/documentLink", about(URI));
    let found: Vec<(u64, &str)> = links
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["range"]["start"]["line"].as_u64().unwrap(), l["target"].as_str().unwrap()))
        .collect();
    assert!(found.iter().any(|(line, to)| *line == 0 && to.ends_with("nn/softmax.tk")), "{found:?}");
    assert!(found.iter().any(|(line, to)| *line == 1 && to.ends_with("helper.tk")), "{found:?}");
    assert!(found.iter().all(|(line, _)| *line < 2), "{found:?}");
    client.end();
}

#[test]
fn a_client_without_markdown_gets_plain_text() {
    let plain = json!({ "textDocument": { "hover": { "contentFormat": ["plaintext"] } } });
    let mut client = Client::new(plain);
    client.open(URI, "/// Doubles `x`, **always**.\nfn twice(x: f32) -> f32 { x }\n");
    let place = position("/// Doubles `x`, **always**.\nfn twice", "twice", 0, false);
    let hover = client.at("textDocument/hover", URI, place);
    assert_eq!(hover["contents"]["kind"], "plaintext");
    assert_eq!(hover["contents"]["value"], "fn twice(x: f32) -> f32\n\nDoubles x, always.");
    client.end();
}

#[test]
fn diagnostics_are_pulled_and_do_not_come_twice() {
    let mut client = Client::new(json!({ "textDocument": { "diagnostic": {} } }));
    client.open(URI, "fn f() -> i32 { x }\n");
    let full = client.ok("textDocument/diagnostic", about(URI));
    assert_eq!((&full["kind"], codes(&full["items"])), (&json!("full"), vec!["E0201".to_string()]));
    let again = json!({ "textDocument": { "uri": URI }, "previousResultId": full["resultId"] });
    let unchanged = client.ok("textDocument/diagnostic", again);
    assert_eq!(unchanged, json!({ "kind": "unchanged", "resultId": full["resultId"] }));
    assert!(client.said.is_empty(), "{:?}", client.said);
}

#[test]
fn hover_completion_and_signatures() {
    let mut client = opened();
    let hover = client.at("textDocument/hover", URI, position(ADD, "twice", 0, false));
    assert_eq!(hover["contents"]["kind"], "markdown");
    assert!(hover["contents"]["value"].as_str().unwrap().contains("Twice as much."), "{hover}");
    assert_eq!(hover["range"], range(ADD, "twice", 0));

    let typed = ADD.replace("    a + b\n", "    pr\n");
    client.change(URI, 2, json!([{ "text": typed }]));
    let mut at = position(&typed, "pr\n", 0, false);
    at["character"] = json!(6);
    let items = client.at("textDocument/completion", URI, at);
    let item = items.as_array().unwrap().iter().find(|i| i["label"] == "program_id").unwrap();
    assert_eq!(item["textEdit"]["range"]["end"]["character"], 6);
    assert!(item["insertTextFormat"] == 2 || item["insertTextFormat"] == 1);

    let typed = ADD.replace("    a + b\n", "    cdiv(1, ");
    client.change(URI, 3, json!([{ "text": typed }]));
    let mut at = position(&typed, "cdiv(1, ", 0, false);
    at["character"] = json!(12);
    let help = client.at("textDocument/signatureHelp", URI, at);
    assert_eq!(help["activeParameter"], 1, "{help}");
    let label = help["signatures"][0]["label"].as_str().unwrap();
    let second = &help["signatures"][0]["parameters"][1]["label"];
    let (from, to) = (second[0].as_u64().unwrap() as usize, second[1].as_u64().unwrap() as usize);
    assert!(label[from..to].starts_with('b'), "{label} {second}");
}

#[test]
fn definitions_references_and_highlights() {
    let mut client = opened();
    let twice = client.at("textDocument/definition", URI, position(ADD, "twice", 0, false));
    assert_eq!(twice, json!([{ "uri": "file:///w/helper.tk", "range": range(HELPER, "twice", 0) }]));

    // The standard library has no file here, so there is a copy that can be opened, and it is the same library.
    let grouped = client.at("textDocument/definition", URI, position(ADD, "grouped", 0, false));
    let uri = grouped[0]["uri"].as_str().unwrap().to_string();
    let text = std::fs::read_to_string(uri.strip_prefix("file://").unwrap()).unwrap();
    assert!(text.contains("fn grouped") && uri.ends_with("/stdlib/grid.tk"), "{uri}");
    client.open(&uri, &text);
    let context = json!({ "includeDeclaration": false });
    let asked = json!({ "textDocument": { "uri": uri }, "position": grouped[0]["range"]["start"], "context": context });
    let references = client.ok("textDocument/references", asked);
    let here = json!({ "uri": URI, "range": range(ADD, "grouped", 0) });
    assert!(references.as_array().unwrap().contains(&here), "{references}");

    let pair = client.at("textDocument/typeDefinition", URI, position(ADD, "pair.a", 0, false));
    assert_eq!(pair, json!([{ "uri": URI, "range": range(ADD, "Pair", 0) }]));

    let lights = client.at("textDocument/documentHighlight", URI, position(ADD, "at =", 0, false));
    assert_eq!(lights.as_array().unwrap().len(), 4);
    assert_eq!(lights[0]["kind"], 3);
    assert!(lights.as_array().unwrap().iter().skip(1).all(|l| l["kind"] == 2), "{lights}");
}

#[test]
fn rename_asks_first_and_names_versions() {
    let mut client = opened();
    let at = position(ADD, "twice", 0, false);
    let prepared = client.at("textDocument/prepareRename", URI, at.clone());
    assert_eq!(prepared, json!({ "range": range(ADD, "twice", 0), "placeholder": "twice" }));
    let asked = |name: &str| json!({ "textDocument": { "uri": URI }, "position": at, "newName": name });
    let edit = client.ok("textDocument/rename", asked("double"));
    let expected = json!({ "documentChanges": [
        { "textDocument": { "uri": URI, "version": 1 }, "edits": [{ "range": range(ADD, "twice", 0), "newText": "double" }] },
        { "textDocument": { "uri": "file:///w/helper.tk", "version": null },
          "edits": [{ "range": range(HELPER, "twice", 0), "newText": "double" }] },
    ] });
    assert_eq!(edit, expected);
    for taken in ["let", "sum", "f32", "float", "view"] {
        let refused = client.request("textDocument/rename", asked(taken)).unwrap_err();
        assert_eq!(refused.code, -32803, "{taken}");
    }
    let builtin = position(ADD, "program_id", 0, false);
    let asked = json!({ "textDocument": { "uri": URI }, "position": builtin });
    assert_eq!(client.request("textDocument/prepareRename", asked).unwrap_err().code, -32803);
}

#[test]
fn symbols_folds_selections_and_calls() {
    let mut client = opened();
    let symbols = client.ok("textDocument/documentSymbol", about(URI));
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Pair", "add", "tile_of", "adds"]);
    assert_eq!(symbols[0]["children"][0]["name"], "a");

    let found = client.ok("workspace/symbol", json!({ "query": "twi" }));
    assert_eq!(found[0]["name"], "twice");
    assert_eq!(found[0]["location"]["uri"], "file:///w/helper.tk");

    let folds = client.ok("textDocument/foldingRange", about(URI));
    let body = position(ADD, "{\n    let at", 0, false)["line"].clone();
    let fold = folds.as_array().unwrap().iter().find(|f| f["startLine"] == body).unwrap();
    assert!(fold.get("startCharacter").is_none());

    let at = position(ADD, "pair.a", 0, false);
    let asked = json!({ "textDocument": { "uri": URI }, "positions": [at, { "line": 999, "character": 0 }] });
    let selections = client.ok("textDocument/selectionRange", asked);
    assert_eq!(selections.as_array().unwrap().len(), 2);
    let mut depth = 0;
    let mut around = &selections[0];
    while around.get("parent").is_some() {
        around = &around["parent"];
        depth += 1;
    }
    assert!(depth > 3 && around["range"]["start"]["line"] == 0, "{selections}");

    let item = client.at("textDocument/prepareCallHierarchy", URI, position(ADD, "twice", 0, false));
    assert_eq!((&item[0]["name"], &item[0]["uri"]), (&json!("twice"), &json!("file:///w/helper.tk")));
    let incoming = client.ok("callHierarchy/incomingCalls", json!({ "item": item[0] }));
    assert_eq!(incoming[0]["from"]["name"], "add");
    assert_eq!(incoming[0]["fromRanges"], json!([range(ADD, "twice", 0)]));
    let outgoing = client.ok("callHierarchy/outgoingCalls", json!({ "item": incoming[0]["from"] }));
    assert!(outgoing.as_array().unwrap().iter().any(|c| c["to"]["name"] == "twice"), "{outgoing}");
}

/// The tokens of an answer as text and type.
fn decode(client: &Client, text: &str, answer: &Value) -> Vec<(String, String)> {
    let legend = &client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"];
    let numbers: Vec<usize> =
        answer["data"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let (mut line, mut column) = (0, 0);
    let mut out = vec![];
    for token in numbers.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let units: Vec<u16> = text.lines().nth(line).unwrap().encode_utf16().collect();
        let word = String::from_utf16(&units[column..column + token[2]]).unwrap();
        out.push((word, legend[token[3]].as_str().unwrap().to_string()));
    }
    out
}

#[test]
fn colours_and_hints() {
    let mut client = opened();
    let all = client.ok("textDocument/semanticTokens/full", about(URI));
    let all = decode(&client, ADD, &all);
    for (word, kind) in
        [("BLOCK", "enumMember"), ("kernel", "keyword"), ("at", "variable"), ("x", "parameter")]
    {
        assert!(all.contains(&(word.into(), kind.into())), "{word} is no {kind} in {all:?}");
    }
    let line = position(ADD, "let at", 0, false)["line"].as_u64().unwrap();
    let part =
        json!({ "start": { "line": line, "character": 0 }, "end": { "line": line + 1, "character": 0 } });
    let asked = json!({ "textDocument": { "uri": URI }, "range": part });
    let some = client.ok("textDocument/semanticTokens/range", asked.clone());
    let some = decode(&client, ADD, &some);
    assert!(some.len() < all.len() && some[0].0 == "let", "{some:?}");

    let hints = client.ok("textDocument/inlayHint", asked);
    assert!(
        hints.as_array().unwrap().iter().any(|h| h["label"].as_str().unwrap().contains("i32")),
        "{hints}"
    );
}

/// The numbers of tokens that a client has after an answer to a request for changes.
fn with_delta(before: &Value, answer: &Value) -> Vec<u64> {
    let list =
        |v: &Value| -> Vec<u64> { v.as_array().into_iter().flatten().map(|n| n.as_u64().unwrap()).collect() };
    let mut numbers = list(&before["data"]);
    for edit in answer["edits"].as_array().unwrap() {
        let (start, count) = (edit["start"].as_u64().unwrap(), edit["deleteCount"].as_u64().unwrap());
        numbers.splice(start as usize..(start + count) as usize, list(&edit["data"]));
    }
    numbers
}

#[test]
fn a_client_with_a_grammar_gets_the_colors_of_names() {
    let capabilities = json!({ "textDocument": { "semanticTokens": { "augmentsSyntaxTokens": true } } });
    let mut client = Client::new(capabilities);
    client.open(URI, ADD);
    let all = client.ok("textDocument/semanticTokens/full", about(URI));
    let all = decode(&client, ADD, &all);
    assert!(all.contains(&("add".into(), "function".into())), "{all:?}");
    let lexical = ["keyword", "comment", "string", "number", "operator"];
    assert!(!all.iter().any(|(_, kind)| lexical.contains(&kind.as_str())), "{all:?}");
}

#[test]
fn tokens_are_sent_once() {
    let mut client = opened();
    let delta = "textDocument/semanticTokens/full/delta";
    let asked = |id: &Value| json!({ "textDocument": { "uri": URI }, "previousResultId": id });
    let all = client.ok("textDocument/semanticTokens/full", about(URI));
    assert_eq!(client.ok("textDocument/semanticTokens/full", about(URI)), all);
    let same = client.ok(delta, asked(&all["resultId"]));
    assert_eq!(same, json!({ "resultId": all["resultId"], "edits": [] }));

    // One name more, in the middle; then a line less, at the end; then no text at all.
    let text = ADD.replacen("let at", "let another_name = 1;\n    let at", 1);
    let short = text.trim_end().rsplit_once('\n').unwrap().0.to_string();
    let mut before = all.clone();
    for (version, text) in [(2, text.as_str()), (3, &short), (4, ""), (5, ADD)] {
        client.change(URI, version, json!([{ "text": text }]));
        let answer = client.ok(delta, asked(&before["resultId"]));
        let numbers = with_delta(&before, &answer);
        let mut fresh = opened();
        fresh.change(URI, 2, json!([{ "text": text }]));
        let whole = fresh.ok("textDocument/semanticTokens/full", about(URI));
        assert_eq!(json!(numbers), whole["data"], "version {version}");
        if version == 2 {
            assert!(answer["edits"][0]["data"].as_array().unwrap().len() <= 30, "{answer}");
        }
        before = json!({ "resultId": answer["resultId"], "data": numbers });
    }
    // A list that the server does not know: all of them.
    let answer = client.ok(delta, asked(&json!("nonsense")));
    assert_eq!(answer["data"], all["data"]);
}

#[test]
fn an_outline_is_that_of_the_newest_text() {
    let mut client = opened();
    let names = |client: &mut Client| -> Vec<String> {
        let all = client.ok("textDocument/documentSymbol", about(URI));
        all.as_array().unwrap().iter().map(|s| s["name"].to_string()).collect()
    };
    let before = names(&mut client);
    assert_eq!(names(&mut client), before);
    client.change(URI, 2, json!([{ "text": "fn only() -> i32 { 1 }\n" }]));
    let position = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    assert!(names(&mut client)[0].contains("only"));
    client.change(URI, 3, json!([{ "range": position, "text": "\n\n" }]));
    let all = client.ok("textDocument/documentSymbol", about(URI));
    let start = all.pointer("/0/selectionRange/start").or(all.pointer("/0/location/range/start")).unwrap();
    assert_eq!(start["line"], 2, "{all}");
    client.close(URI);
    client.open(URI, "fn other() -> i32 { 1 }\n");
    assert!(names(&mut client)[0].contains("other"));
}

#[test]
fn actions_lenses_and_formatting() {
    let mut client = opened();
    let text = "fn f(x: i32) -> i32 {\n    let y = x\n    y\n}\n";
    client.change(URI, 2, json!([{ "text": text }]));
    let diagnostic = client.pushed(URI)["diagnostics"][0].clone();
    assert!(diagnostic["data"]["fixes"][0].is_string(), "{diagnostic}");
    let asked = |only: Value| {
        json!({ "textDocument": { "uri": URI }, "range": diagnostic["range"],
            "context": { "diagnostics": [diagnostic], "only": only } })
    };
    let actions = client.ok("textDocument/codeAction", asked(json!(["quickfix"])));
    assert_eq!(actions[0]["title"], diagnostic["data"]["fixes"][0]);
    assert_eq!((&actions[0]["kind"], &actions[0]["isPreferred"]), (&json!("quickfix"), &json!(true)));
    assert_eq!(actions[0]["diagnostics"][0], diagnostic);
    let change = &actions[0]["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"]["version"], 2);
    assert_eq!(change["edits"][0]["newText"], ";");
    assert_eq!(client.ok("textDocument/codeAction", asked(json!(["source"]))), json!([]));

    client.change(URI, 3, json!([{ "text": ADD }]));
    let lenses = client.ok("textDocument/codeLens", about(URI));
    let lens = &lenses.as_array().unwrap().iter().find(|l| l["command"]["command"] == "tk.runTests").unwrap();
    assert_eq!(lens["command"]["arguments"], json!([{ "uri": URI, "filter": "adds", "exact": true }]));

    let messy = ADD.replace("    let at = ", "  let   at=").replace("a + b\n", "a+b\n");
    client.change(URI, 4, json!([{ "text": messy }]));
    let options = json!({ "tabSize": 4, "insertSpaces": true });
    let edits =
        client.ok("textDocument/formatting", json!({ "textDocument": { "uri": URI }, "options": options }));
    assert_eq!(edits.as_array().unwrap().len(), 2, "{edits}");
    assert_eq!(apply(&messy, &edits), tk_fmt::format(&messy).unwrap());
    let line = range(&messy, "let   at", 0);
    let asked = json!({ "textDocument": { "uri": URI }, "range": line, "options": options });
    let edits = client.ok("textDocument/rangeFormatting", asked);
    let mended = apply(&messy, &edits);
    assert!(mended.contains("    let at = program_id") && mended.contains("a+b"), "{mended}");
    client.change(URI, 5, json!([{ "text": "fn (" }]));
    let asked = json!({ "textDocument": { "uri": URI }, "options": options });
    assert_eq!(client.ok("textDocument/formatting", asked), Value::Null);
}

/// Applies edits of whole lines.
pub fn apply(text: &str, edits: &Value) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = |p: &Value| {
        lines.iter().take(p["line"].as_u64().unwrap() as usize).map(|l| l.len()).sum::<usize>()
            + p["character"].as_u64().unwrap() as usize
    };
    let mut out = text.to_string();
    for edit in edits.as_array().unwrap().iter().rev() {
        let bytes = at(&edit["range"]["start"])..at(&edit["range"]["end"]);
        out.replace_range(bytes, edit["newText"].as_str().unwrap());
    }
    out
}

#[test]
fn clients_that_can_do_little() {
    let disk = Memory::default();
    disk.write("/w/helper.tk", HELPER);
    let mut client =
        Client::over(disk, json!({ "textDocument": { "hover": { "contentFormat": ["plaintext"] } } }));
    client.open(URI, ADD);
    client.pushed(URI);
    let hover = client.at("textDocument/hover", URI, position(ADD, "twice", 0, false));
    assert_eq!(hover["contents"]["kind"], "plaintext");
    let symbols = client.ok("textDocument/documentSymbol", about(URI));
    let field = symbols.as_array().unwrap().iter().find(|s| s["name"] == "a").unwrap();
    assert_eq!(field["containerName"], "Pair");
    let asked = json!({ "textDocument": { "uri": URI }, "position": position(ADD, "tile_of", 0, false), "newName": "t" });
    let edit = client.ok("textDocument/rename", asked);
    assert_eq!(edit["changes"][URI][0]["newText"], "t");
    let items = client.at("textDocument/completion", URI, position(ADD, "a + b", 0, false));
    for item in items.as_array().unwrap() {
        assert!(!item["textEdit"]["newText"].as_str().unwrap().contains('$'), "{item}");
    }
}
