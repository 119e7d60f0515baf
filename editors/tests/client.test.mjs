// Tests `tk lsp` as an editor sees it, with the protocol's published client library: every feature once, on the two
// files of `workspace/`. What each feature answers in detail is tested beside the server.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { lex } from "./grammar/lexer.mjs";
import { Client, lsp } from "./lsp/client.mjs";

let client, main, helpers;

before(async () => {
  client = await Client.start();
  main = await client.open("main.tk");
  helpers = await client.open("helpers.tk");
});

after(async () => assert.equal(await client.stop(), 0, "the exit code"));

/** Does something with a document of its own in the workspace. */
async function withDocument(name, text, use) {
  const document = await client.open(name, text);
  try {
    return await use(document);
  } finally {
    await client.close(document);
  }
}

const pull = (document) => client.ask(lsp.DocumentDiagnosticRequest.type, { textDocument: document.id });
const markdown = (content) => (assert.equal(content.kind, "markdown"), content.value);
const sorted = (list) => [...list].sort();

test("it names itself, UTF-16, and no notebooks", () => {
  const { capabilities, serverInfo } = client.initialized;
  assert.equal(serverInfo.name, "tk");
  assert.match(serverInfo.version, /^\d+\.\d+\.\d+/);
  assert.equal(capabilities.positionEncoding, "utf-16");
  assert.equal(capabilities.notebookDocumentSync, undefined);
});

test("diagnostics, pulled: message, code with its explanation, the other place; they follow the text", async () => {
  assert.deepEqual((await pull(main)).items, []);
  await client.edit(main, "program_id(0) * BLOCK;", "program_id(0) * BLOK;");
  const { kind, items } = await pull(main);
  assert.equal(kind, "full");
  assert.deepEqual(items.map((d) => [d.code, d.severity, d.source, main.textOf(d.range)]), [
    ["E0201", lsp.DiagnosticSeverity.Error, "tk", "BLOK"],
  ]);
  assert.match(items[0].message, /cannot find `BLOK`/);
  assert.match(readFileSync(fileURLToPath(items[0].codeDescription.href), "utf8"), /E0201/);
  await client.edit(main, "BLOK", "BLOCK");
  assert.deepEqual((await pull(main)).items, []);

  const text = "fn f(x: tile[f32, 4], y: tile[f32, 8]) -> tile[f32, 4] {\n    x + y\n}\n";
  await withDocument("related.tk", text, async (document) => {
    const [shapes] = (await pull(document)).items;
    assert.ok(shapes.relatedInformation.length > 0, JSON.stringify(shapes));
    for (const { location, message } of shapes.relatedInformation) {
      assert.equal(location.uri, document.uri);
      assert.ok(message.length > 0 && document.textOf(location.range).length > 0);
    }
  });
});

test("diagnostics, pushed to a client that does not pull, with the version; gone when the file is closed", async () => {
  const pushing = await Client.start({ pull: false });
  const document = await pushing.open("main.tk");
  await pushing.pushed(document, (diagnostics) => diagnostics.length === 0);
  await pushing.edit(document, "let start", "let strat");
  const diagnostics = await pushing.pushed(document, (_, params) => params.version === 2);
  const wrong = diagnostics.filter((d) => d.severity === lsp.DiagnosticSeverity.Error);
  assert.deepEqual([...new Set(wrong.map((d) => document.textOf(d.range)))], ["start"]);
  const used = await pushing.open("helpers.tk");
  await pushing.edit(document, "let strat", "let start");
  await pushing.pushed(document, (found, params) => params.version === 3 && found.length === 0);
  // What is wrong in a file shows in those that use it.
  await pushing.edit(used, "fn twice", "fn thrice");
  await pushing.pushed(document, (found) => found.some((d) => d.message.includes("twice")));
  await pushing.edit(document, "let start", "let strat");
  await pushing.pushed(document, (_, params) => params.version === 4);
  await pushing.close(document);
  await pushing.pushed(document, (found) => found.length === 0);
  assert.equal(await pushing.stop(), 0);
});

test("hover: types with shapes by name, documentation, compile-time values, the table's text of builtins", async () => {
  const hover = async (document, pattern) => {
    const answer = await client.ask(lsp.HoverRequest.type, document.at(pattern));
    return [document.textOf(answer.range), markdown(answer.contents)];
  };
  const [name, variable] = await hover(main, "let |values| =");
  assert.equal(name, "values");
  assert.match(variable, /```tk\n.*values: tile\[T, BLOCK\]/);
  assert.match((await hover(main, "|twice|(values)"))[1], /fn twice\[T: float, S: shape\][\s\S]*Twice its argument\./);
  assert.match((await hover(main, "|BLOCK| / 2"))[1], /BLOCK: i32/);
  assert.match((await hover(main, "|program_id|(0)"))[1], /program_id[\s\S]*```tk/);
  assert.match((await hover(main, "high = row |+| 4"))[1], /i32/);
  const constant = "const N = 6 * 7;\nconst M = N + 1;\n";
  await withDocument("constants.tk", constant, async (document) => {
    assert.match((await hover(document, "const |M|"))[1], /43/);
  });
  const behind = { textDocument: main.id, position: { line: 1e6, character: 7 } };
  assert.equal(await client.ask(lsp.HoverRequest.type, behind), null);
});

test("completion: members, named arguments, keywords with snippets, imports, after a dot too", async () => {
  const complete = async (text) =>
    withDocument("complete.tk", text.replace("|", ""), async (document) => {
      const position = document.position(text.indexOf("|"));
      const answer = await client.ask(lsp.CompletionRequest.type, { textDocument: document.id, position });
      return Array.isArray(answer) ? answer : answer.items;
    });
  const labels = (items) => items.map((item) => item.label);
  const includes = (items, ...names) => {
    for (const name of names) assert.ok(labels(items).includes(name), `${name} is not among ${labels(items)}`);
  };
  const kernel = (line) => `kernel k(a: view[f32, 2], b: mut view[f32, 2]) {\n    ${line}\n}\n`;
  const members = await complete(kernel("a.|"));
  includes(members, "load", "shape", "strides", "T", "inside");
  assert.ok(!labels(members).includes("kernel"), "a keyword is no member");
  const load = members.find((item) => item.label === "load");
  assert.equal(load.kind, lsp.CompletionItemKind.Method);
  assert.ok(load.documentation.value.length > 20, "members are documented");
  includes(await complete(kernel("let t = a.load([0, 0], [4, 4]);\n    t.|")), "T");
  includes(await complete(kernel("a.load([0, 0], [4, 4], |)")), "other =");
  includes(await complete(kernel("let value = 1;\n    val|")), "value", "let", "for", "maximum");
  includes(await complete("use |\n"), "std", "helpers", "main");
  includes(await complete("use std::|\n"), "grid", "math");
  includes(await complete("use std::math;\nfn f(x: f32) -> f32 { math::| }\n"), "gelu", "relu");
  const snippets = (await complete("|")).filter((item) => item.insertTextFormat === lsp.InsertTextFormat.Snippet);
  const kernels = snippets.filter((item) => item.label.startsWith("kernel"));
  assert.ok(kernels.some((item) => /\$\{?1/.test(item.textEdit?.newText ?? item.insertText)), "a snippet of a kernel");
});

test("signature help: the argument that is being written, its documentation", async () => {
  await withDocument("signature.tk", `${main.text}\nfn g() -> i32 { grid::grouped(1, 2, `, async (document) => {
    const position = document.position(document.text.length);
    const help = await client.ask(lsp.SignatureHelpRequest.type, { textDocument: document.id, position });
    const signature = help.signatures[help.activeSignature ?? 0];
    const parameter = signature.parameters[signature.activeParameter ?? help.activeParameter];
    assert.match(signature.label, /grouped\(pid: i32, tiles_m: i32, tiles_n: i32, GROUP: const i32\)/);
    const label = Array.isArray(parameter.label) ? signature.label.slice(...parameter.label) : parameter.label;
    assert.match(label, /^tiles_n/);
    assert.match(markdown(signature.documentation), /L2 cache/);
  });
});

test("definition and type definition, across files and into the library", async () => {
  const go = async (type, pattern) => {
    const answer = [await client.ask(type, main.at(pattern))].flat();
    assert.equal(answer.length, 1, pattern);
    return answer[0];
  };
  const local = await go(lsp.DefinitionRequest.type, "twice(|values|)");
  assert.deepEqual([local.uri, main.textOf(local.range), local.range.start.line], [main.uri, "values", 10]);
  const across = await go(lsp.DefinitionRequest.type, "|twice|(values)");
  assert.deepEqual([across.uri, helpers.textOf(across.range)], [helpers.uri, "twice"]);
  const library = await go(lsp.DefinitionRequest.type, "grid::|grouped|");
  const lines = readFileSync(fileURLToPath(library.uri), "utf8").split("\n");
  assert.match(lines[library.range.start.line], /^fn grouped\(/);
  const type = await go(lsp.TypeDefinitionRequest.type, "extent(|whole|)");
  assert.deepEqual([type.uri, helpers.textOf(type.range)], [helpers.uri, "Range"]);
  assert.equal(await client.ask(lsp.DefinitionRequest.type, main.at("|=| x.load")).then((a) => [a ?? []].flat().length), 0);
});

test("references across files, with the declaration or without; highlight tells writes from reads", async () => {
  const find = (includeDeclaration) =>
    client.ask(lsp.ReferencesRequest.type, { ...helpers.at("fn |twice|"), context: { includeDeclaration } });
  const shown = (list) => sorted(list.map((l) => `${l.uri.split("/").at(-1)}:${l.range.start.line}`));
  assert.deepEqual(shown(await find(true)), ["helpers.tk:3", "main.tk:0", "main.tk:11", "main.tk:27"]);
  assert.deepEqual(shown(await find(false)), ["main.tk:0", "main.tk:11", "main.tk:27"]);
  const marks = await client.ask(lsp.DocumentHighlightRequest.type, main.at("mut |sum|"));
  const { Write, Read } = lsp.DocumentHighlightKind;
  const kinds = marks.map((m) => [m.range.start.line, m.kind]).sort(([a], [b]) => a - b);
  assert.deepEqual(kinds, [[18, Write], [19, Write], [20, Read]]);
});

test("rename: prepared, across files; it refuses what would break", async () => {
  const prepare = await client.ask(lsp.PrepareRenameRequest.type, main.at("|twice|(values)"));
  assert.equal(main.textOf(prepare.range ?? prepare), "twice");
  const rename = (pattern, newName) => client.ask(lsp.RenameRequest.type, { ...main.at(pattern), newName });
  const { documentChanges } = await rename("|twice|(values)", "doubled");
  const texts = Object.fromEntries(
    documentChanges.map(({ textDocument, edits }) => {
      const document = [main, helpers].find((d) => d.uri === textDocument.uri);
      assert.equal(textDocument.version, document.version);
      return [textDocument.uri, document.with(edits)];
    }),
  );
  assert.equal(texts[main.uri], main.text.replaceAll("twice", "doubled"));
  assert.equal(texts[helpers.uri], helpers.text.replaceAll("twice", "doubled"));
  await assert.rejects(rename("let |values|", "start"), /start/, "a name that is taken");
  await assert.rejects(rename("let |values|", "while"), /while/, "a keyword");
  await assert.rejects(rename("|program_id|(0)", "pid"), /built into the language/);
  await assert.rejects(rename("grid::|grouped|", "other"), /standard library/);
  const refused = client.ask(lsp.PrepareRenameRequest.type, main.at("|program_id|(0)"));
  await assert.rejects(refused.then((answer) => assert.ok(answer, "null refuses")));
});

test("symbols of a document and of the workspace", async () => {
  const outline = (list) => list.map((s) => [s.name, s.kind, outline(s.children ?? []).length]);
  const symbols = await client.ask(lsp.DocumentSymbolRequest.type, { textDocument: helpers.id });
  assert.deepEqual(symbols.map((s) => s.name), ["twice", "Range", "extent"]);
  assert.deepEqual(symbols[1].children.map((s) => s.name), ["low", "high"]);
  assert.equal(symbols[1].kind, lsp.SymbolKind.Struct);
  assert.equal(helpers.textOf(symbols[0].selectionRange), "twice");
  assert.ok(outline(symbols).length === 3);
  const found = await client.ask(lsp.WorkspaceSymbolRequest.type, { query: "ext" });
  assert.ok(found.some((s) => s.name === "extent" && s.location.uri === helpers.uri), JSON.stringify(found));
  assert.ok(!found.some((s) => s.name === "double"), "what does not match is left out");
});

test("folding and selection ranges", async () => {
  const folds = await client.ask(lsp.FoldingRangeRequest.type, { textDocument: main.id });
  assert.ok(folds.some((f) => f.startLine <= 7 && f.endLine >= 12), JSON.stringify(folds));
  const positions = ["twice(|values|)", "fn |order|"].map((pattern) => main.range(pattern).start);
  const request = { textDocument: main.id, positions };
  const selections = await client.ask(lsp.SelectionRangeRequest.type, request);
  assert.equal(selections.length, 2);
  const texts = [];
  for (let s = selections[0]; s; s = s.parent) texts.push(main.textOf(s.range));
  const steps = ["values", "twice(values)", "y.store([start], twice(values))"];
  const places = steps.map((step) => texts.indexOf(step));
  assert.ok(places.every((at, i) => at >= 0 && (i === 0 || at > places[i - 1])), JSON.stringify(texts.slice(0, 6)));
  texts.slice(1).forEach((text, i) => assert.ok(text.includes(texts[i]) && text.length > texts[i].length));
});

test("call hierarchy in both directions, across files", async () => {
  const [item] = await client.ask(lsp.CallHierarchyPrepareRequest.type, helpers.at("fn |extent|"));
  assert.equal(item.name, "extent");
  const incoming = await client.ask(lsp.CallHierarchyIncomingCallsRequest.type, { item });
  assert.deepEqual(incoming.map((c) => [c.from.name, c.from.uri, c.fromRanges.map((r) => main.textOf(r))]), [
    ["order", main.uri, ["extent"]],
  ]);
  const [order] = await client.ask(lsp.CallHierarchyPrepareRequest.type, main.at("fn |order|"));
  const outgoing = await client.ask(lsp.CallHierarchyOutgoingCallsRequest.type, { item: order });
  const names = outgoing.map((c) => c.to.name);
  for (const name of ["extent", "grouped"]) assert.ok(names.includes(name), `${names}`);
});

/** The tokens of a document as `{ text, type, modifiers }`. */
function decode(document, { data }) {
  const { tokenTypes, tokenModifiers } = client.initialized.capabilities.semanticTokensProvider.legend;
  let [line, character] = [0, 0];
  return Array.from({ length: data.length / 5 }, (_, i) => {
    const [lines, columns, length, type, bits] = data.slice(5 * i, 5 * i + 5);
    [line, character] = [line + lines, lines === 0 ? character + columns : columns];
    const text = document.text.split("\n")[line].slice(character, character + length);
    return { line, text, type: tokenTypes[type], modifiers: tokenModifiers.filter((_, bit) => bits & (1 << bit)) };
  });
}

test("semantic tokens: compile-time parameters look different from run-time values", async () => {
  const full = decode(main, await client.ask(lsp.SemanticTokensRequest.type, { textDocument: main.id }));
  const types = (text) => [...new Set(full.filter((t) => t.text === text).map((t) => t.type))];
  for (const name of ["BLOCK", "T"]) {
    assert.equal(types(name).length, 1, name);
    for (const other of ["start", "x"]) assert.notDeepEqual(types(name), types(other));
  }
  assert.deepEqual([types("twice"), types("double"), types("Range")], [["function"], ["function"], ["struct"]]);
  assert.ok(full.find((t) => t.text === "program_id").modifiers.includes("defaultLibrary"));
  assert.ok(full.find((t) => t.text === "sum").modifiers.includes("mutable"));
  const range = { start: { line: 15, character: 0 }, end: { line: 16, character: 0 } };
  const part = decode(main, await client.ask(lsp.SemanticTokensRangeRequest.type, { textDocument: main.id, range }));
  assert.deepEqual(part, full.filter((t) => t.line === 15));
  assert.ok(part.length >= 4);
});

test("inlay hints: inferred types of `let`, inferred compile-time arguments; only of the range", async () => {
  const range = { start: { line: 0, character: 0 }, end: { line: 40, character: 0 } };
  const hints = await client.ask(lsp.InlayHintRequest.type, { textDocument: main.id, range });
  const at = (pattern) => {
    const { end } = main.range(pattern);
    const here = hints.filter((h) => h.position.line === end.line && h.position.character === end.character);
    return here.map((h) => (Array.isArray(h.label) ? h.label.map((part) => part.value).join("") : h.label)).join("");
  };
  assert.match(at("let |values|"), /: tile\[T, BLOCK\]/);
  assert.match(at("y.store([start], |twice|"), /\[.*BLOCK.*\]/);
  const one = { start: { line: 10, character: 0 }, end: { line: 11, character: 0 } };
  const part = await client.ask(lsp.InlayHintRequest.type, { textDocument: main.id, range: one });
  assert.ok(part.length > 0 && part.every((h) => h.position.line === 10), JSON.stringify(part));
});

test("code actions: the fix of a diagnostic, `add use`, a missing mask, pointer access to view", async () => {
  const actions = async (text, pattern, check) =>
    withDocument("actions.tk", text, async (document) => {
      const diagnostics = (await pull(document)).items;
      const request = { textDocument: document.id, range: document.range(pattern), context: { diagnostics } };
      const found = await client.ask(lsp.CodeActionRequest.type, request);
      for (const action of found) {
        const changed = action.edit.documentChanges[0];
        action.text = document.with(changed.edits);
      }
      return check(found);
    });
  await actions("fn f(x: f32) -> f32 {\n    let y = x\n    y\n}\n", "let y = x", (found) => {
    const fix = found.find((a) => a.text.includes("let y = x;"));
    assert.equal(fix.kind, "quickfix");
    assert.equal(fix.diagnostics[0].code, "E0105");
  });
  await actions("fn f(x: f32) -> f32 {\n    gelu(x)\n}\n", "gelu", (found) => {
    assert.ok(found.some((a) => /^use std::math/m.test(a.text)), JSON.stringify(found.map((a) => a.title)));
  });
  const pointers = `kernel copy(x: *f32, y: *mut f32, n: i32, BLOCK: const i32 = 128)\n    grid(cdiv(n, BLOCK))\n{
    let offs = program_id(0) * BLOCK + arange(0, BLOCK);\n    store(y + offs, load(x + offs, offs < n), offs < n);\n}\n`;
  await actions(pointers.replace("load(x + offs, offs < n)", "load(x + offs)"), "load(x", (found) => {
    assert.ok(found.some((a) => /load\(x \+ offs, (?:mask = )?offs < n\)/.test(a.text)), JSON.stringify(found));
  });
  await actions(pointers, "load(x", (found) => {
    assert.ok(found.some((a) => /view\(x, \[n\], \[1\]\)\.load\(/.test(a.text)), JSON.stringify(found));
  });
});

test("code lenses run the tests of a kernel", async () => {
  const lenses = await client.ask(lsp.CodeLensRequest.type, { textDocument: main.id });
  const kernel = lenses.find((l) => main.textOf(l.range) === "double" || l.range.start.line === 4);
  assert.equal(kernel.command.command, "tk.runTests");
  assert.match(kernel.command.title, /[Rr]un/);
  const [{ uri, filter }] = kernel.command.arguments;
  assert.equal(uri, main.uri);
  assert.ok("double: every element".includes(filter) && !"order starts at the first tile".includes(filter), filter);
});

test("formatting, of a file and of a range; what is in order stays", async () => {
  const options = { tabSize: 8, insertSpaces: false };
  const ask = (document, range) =>
    range
      ? client.ask(lsp.DocumentRangeFormattingRequest.type, { textDocument: document.id, options, range })
      : client.ask(lsp.DocumentFormattingRequest.type, { textDocument: document.id, options });
  assert.equal(helpers.with((await ask(helpers)) ?? []), helpers.text);
  const untidy = "fn  f(x:f32)->f32{\n  x+x // twice\n}\n\nfn  g(x:f32)->f32{\n  x\n}\n";
  await withDocument("untidy.tk", untidy, async (document) => {
    assert.match(document.with(await ask(document)), /^fn f\(x: f32\) -> f32 \{\n    x \+ x \/\/ twice\n\}\n\nfn g/);
    const part = document.with(await ask(document, document.range("fn  g(x:f32)->f32{\n  x\n}")));
    assert.match(part, /^fn  f\(x:f32\)[\s\S]*fn g\(x: f32\) -> f32 \{/);
  });
});

test("positions count UTF-8 bytes where the client can, and UTF-16 units where it cannot", async () => {
  const text = 'test "𝒳 größe" { assert(wrong); }\n';
  const expected = { "utf-8": Buffer.byteLength(text.split("wrong")[0]), "utf-16": text.indexOf("wrong") };
  for (const encodings of [["utf-8", "utf-16"], ["utf-16"], ["utf-32", "utf-16"]]) {
    const other = await Client.start({ encodings });
    const { positionEncoding } = other.initialized.capabilities;
    assert.equal(positionEncoding, encodings[0] === "utf-8" ? "utf-8" : "utf-16");
    const document = await other.open("encoding.tk", text);
    const { items } = await other.ask(lsp.DocumentDiagnosticRequest.type, { textDocument: document.id });
    assert.equal(items[0].range.start.character, expected[positionEncoding]);
    assert.equal(await other.stop(), 0);
  }
});

test("a file is known by its suffix, whatever the language id; one outside of the workspace too", async () => {
  const document = await client.open("plain.tk", "let x = 1;\n", "plaintext");
  assert.ok((await pull(document)).items.length > 0);
  await client.close(document);
  await withDocument("../outside-of-the-workspace.tk", "fn f() -> i32 { wrong }\n", async (other) => {
    assert.equal((await pull(other)).items[0].code, "E0201");
  });
});

test("in every example a definition has the name that leads to it, and its references come back", async () => {
  const examples = new URL("../../examples/", import.meta.url);
  let count = 0;
  for (const name of readdirSync(examples).filter((name) => name.endsWith(".tk"))) {
    await withDocument(name, readFileSync(new URL(name, examples), "utf8"), async (document) => {
      assert.deepEqual((await pull(document)).items.filter((d) => d.severity === lsp.DiagnosticSeverity.Error), []);
      for (const token of lex(document.text).filter((token) => token.kind === "name")) {
        const here = { textDocument: document.id, position: document.position(token.start) };
        const where = `${name}:${here.position.line + 1}: ${token.text}`;
        const [place] = [(await client.ask(lsp.DefinitionRequest.type, here)) ?? []].flat();
        if (place?.uri !== document.uri) continue;
        assert.equal(document.textOf(place.range), token.text, where);
        const context = { includeDeclaration: true };
        const found = await client.ask(lsp.ReferencesRequest.type, { ...here, context });
        const starts = found.filter((l) => l.uri === document.uri).map((l) => document.offset(l.range.start));
        assert.ok(starts.includes(token.start), `${where} is not among its references`);
        count++;
      }
    });
  }
  assert.ok(count > 1500, `only ${count} names`);
});

test("what is asked wrongly, cancelled or unknown gets an answer, and the server goes on", async () => {
  await assert.rejects(client.ask({ method: "tk/unknown" }, {}), { code: lsp.LSPErrorCodes.MethodNotFound ?? -32601 });
  await assert.rejects(client.ask({ method: "textDocument/hover" }, { textDocument: 3 }));
  const nowhere = { textDocument: { uri: "file:///no/such/file.tk" }, position: { line: 3, character: 5 } };
  for (const type of [lsp.HoverRequest.type, lsp.DefinitionRequest.type, lsp.CompletionRequest.type]) {
    await client.ask(type, nowhere).catch((error) => assert.ok(error.code, error));
  }
  const source = new lsp.CancellationTokenSource();
  const cancelled = client.connection.sendRequest(lsp.HoverRequest.type, main.at("|twice|(values)"), source.token);
  source.cancel();
  await cancelled.catch((error) => assert.equal(error.code, lsp.LSPErrorCodes.RequestCancelled));
  assert.deepEqual((await pull(main)).items, []);
});

test("standard output carries nothing but the protocol, and the end of the client ends the server", async () => {
  const other = await Client.start();
  await other.open("main.tk");
  other.process.stdin.end();
  const late = new Promise((resolve) => setTimeout(resolve, 10_000, "still there").unref());
  assert.notEqual(await Promise.race([other.ended, late]), "still there");
});
