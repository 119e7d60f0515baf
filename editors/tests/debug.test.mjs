// The tests of what the extension for VS Code does about running and compiled programs: debugging with the real `tk dap`,
// heat maps, machine code beside its source. Assumes `vscode/tk.vsix`, which `run` has made, and the command TK. VS Code
// itself is played by stand-ins.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { loaded, manifest } from "./vscode.mjs";

const command = process.env.TK;
const folder = mkdtempSync(join(tmpdir(), "tk-debug-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const PROGRAM = `use std::math::{relu};

struct State { total: f32, last: i32 }

kernel scale[BLOCK: i32 = 8](x: view[f32, 1], y: mut view[f32, 1], by: f32)
    grid(cdiv(y.shape[0], BLOCK))
{
    let at = program_id(0) * BLOCK;
    let mut a = relu(x.load([at], [BLOCK]));
    a = a * by;
    y.store([at], a);
}

kernel other[T: f16 | f32, N: i32](x: mut view[T, 1])
    grid(1)
{
    x.store([0], zeros([N], T));
}
export other[T = [f16, f32], N = 64];

kernel open[T: f16 | f32](x: mut view[T, 1])
    grid(1)
{
    x.store([0], zeros([8], T));
}

test "good" {
    let y = buffer(zeros([16], f32));
    scale(buffer(zeros([16], f32) + 1.0), y, 2.0);
    assert(all(y.tile() == 2.0));
}

test "a NaN" {
    scale(buffer(zeros([16], f32)), buffer(zeros([16], f32)), inf);
}

test "bad \\"quotes\\" \${command:quit}" {
    assert(1 == 2);
}
`;
const file = join(folder, "p.tk");
writeFileSync(file, PROGRAM);
/** The line that begins with a text, from 1. */
const lineOf = (text) => PROGRAM.split("\n").findIndex((line) => line.trim().startsWith(text)) + 1;

/** Something that is listened to. */
function event() {
  const heard = new Set();
  const on = (listener) => (heard.add(listener), { dispose: () => heard.delete(listener) });
  return Object.assign(on, { fire: (what) => heard.forEach((listener) => listener(what)) });
}

class Range {
  constructor(start, _, end) {
    Object.assign(this, { start: { line: start }, end: { line: end } });
  }
}

class Uri {
  constructor(parts) {
    Object.assign(this, { query: "", ...parts, fsPath: parts.path });
  }
  static file = (path) => new Uri({ scheme: "file", path });
  static from = (parts) => new Uri(parts);
  static parse = (text) => Uri.known.get(text);
  static known = new Map();
  toString() {
    const text = `${this.scheme}:${this.path}?${this.query}`;
    Uri.known.set(text, this);
    return text;
  }
}

/** An editor that writes down what is highlighted and revealed. */
function editor(document) {
  const selection = { active: { line: 0 }, start: { line: 0 }, end: { line: 0 } };
  return {
    document,
    selection,
    selections: [selection],
    marked: [],
    setDecorations(_, ranges) {
      this.marked = ranges.map((range) => range.start.line);
    },
    revealRange(range) {
      this.revealed = range.start.line;
    },
  };
}

/** A VS Code with the program open, and what the extension does with it. */
async function opened({ path = command, target = "sm_90a", trusted = true } = {}) {
  const uri = Uri.file(file);
  const document = { uri, languageId: "tk", isDirty: false, getText: () => readFileSync(file, "utf8") };
  const source = editor(document);
  const done = { commands: {}, messages: [], panels: [], picked: [], sessions: [], runs: [], source, path: "/no/tk", breakpoints: [], choose: (all) => all[0] };
  const [stack, begun, ended, saved, selection] = [event(), event(), event(), event(), event()];
  const known = {
    Uri,
    Range,
    Disposable: { from: (...all) => ({ dispose: () => all.forEach((one) => one?.dispose?.()) }) },
    EventEmitter: class {
      event = event();
      fire = this.event.fire;
      dispose() {}
    },
    DebugAdapterExecutable: class {
      constructor(command, args, options) {
        Object.assign(this, { command, args, options });
      }
    },
    commands: { registerCommand: (name, run) => ((done.commands[name] = run), { dispose() {} }) },
    workspace: {
      isTrusted: trusted,
      textDocuments: [document],
      workspaceFolders: [{ uri: Uri.file(folder) }],
      getWorkspaceFolder: () => undefined,
      getConfiguration: () => ({ get: (name) => (name === "path" ? done.path : target) }),
      createFileSystemWatcher: () => ({ onDidCreate() {}, onDidChange() {}, onDidDelete() {} }),
      registerTextDocumentContentProvider: (_, provider) => (done.provider = provider),
      onDidSaveTextDocument: saved,
      findFiles: async () => [uri],
      fs: { readFile: async () => readFileSync(file) },
      asRelativePath: () => "p.tk",
    },
    window: {
      activeTextEditor: source,
      visibleTextEditors: [source],
      onDidChangeTextEditorSelection: selection,
      withProgress: (_, work) => work(undefined, done.token),
      showQuickPick: async (all) => (done.picked.push(all), done.choose(all)),
      showInputBox: async ({ value }) => ((done.asked = value), done.typed),
      async showTextDocument(uri) {
        const shown = editor({ uri, languageId: "plaintext", text: () => done.provider.provideTextDocumentContent(uri) });
        this.visibleTextEditors.push(shown);
        return (done.shown = shown);
      },
      createWebviewPanel: (_, title) => {
        const panel = { title, webview: { html: "" }, onDidDispose() {}, reveal() {}, dispose() {} };
        done.panels.push(panel);
        return panel;
      },
    },
    tests: { createTestController: () => controller(done) },
    TestRunProfileKind: { Run: 1, Debug: 2 },
    TestMessage: class {
      constructor(message) {
        this.message = message;
      }
    },
    debug: {
      activeStackItem: undefined,
      onDidChangeActiveStackItem: stack,
      onDidStartDebugSession: begun,
      onDidTerminateDebugSession: ended,
      stopDebugging: (session) => session.customRequest("terminate").then(() => session.customRequest("disconnect")),
      registerDebugConfigurationProvider: (_, provider) => (done.configurations = provider),
      registerDebugAdapterDescriptorFactory: (_, factory) => (done.adapters = factory),
      registerDebugAdapterTrackerFactory: (_, factory) => (done.trackers = factory),
      async startDebugging(_, given) {
        const session = await start(done, given);
        if (session) begun.fire(session);
        session?.ended.then(() => ended.fire(session));
        return session !== undefined;
      },
    },
  };
  for (const how of ["showErrorMessage", "showWarningMessage", "setStatusBarMessage"]) {
    known.window[how] = async (text) => void done.messages.push(text);
  }
  const extension = loaded(known);
  // Without a server.
  await extension.activate({ subscriptions: [] });
  done.messages = [];
  done.path = path;
  done.stopped = (session, frameId = 1) => stack.fire((known.debug.activeStackItem = { session, threadId: 1, frameId }));
  done.select = (editor, first, last = first) => {
    Object.assign(editor.selection, { active: { line: first }, start: { line: first }, end: { line: last } });
    selection.fire({ textEditor: editor });
  };
  done.save = (text) => {
    writeFileSync(file, text);
    saved.fire(document);
  };
  return done;
}

/** A test controller with the tests of the program. */
function controller(done) {
  const all = new Map();
  const items = () => {
    const map = new Map();
    const replace = (all) => (map.clear(), all.forEach((item) => map.set(item.id, item)));
    return { add: (item) => map.set(item.id, item), get: (id) => map.get(id), forEach: (each) => map.forEach(each), replace };
  };
  return (done.controller = {
    items: items(),
    createTestItem(id, label, uri) {
      const item = { id, label, uri, children: items() };
      const { replace } = item.children;
      item.children.replace = (all) => (all.forEach((child) => (child.parent = item)), replace(all));
      return all.set(label, item), item;
    },
    item: (label) => all.get(label),
    createRunProfile: (name, _, run) => (done[name] = run),
    createTestRun() {
      const run = { results: {} };
      for (const how of ["started", "passed", "failed", "skipped", "errored"]) run[how] = (test, message) => ((run.results[test.label] = how), (run.message = message?.message));
      run.end = () => (run.ended = true);
      done.runs.push(run);
      return run;
    },
  });
}

/** What VS Code does with a configuration: completes it, starts the adapter, and sets breakpoints. */
async function start(done, given) {
  const first = await done.configurations.resolveDebugConfiguration(undefined, given);
  if (!first) return undefined;
  const put = (value) =>
    typeof value === "string" ? value.replaceAll("${file}", file).replaceAll("${command:quit}", "RAN") : value;
  const substituted = Object.fromEntries(Object.entries(first).map(([name, value]) => [name, put(value)]));
  const configuration = await done.configurations.resolveDebugConfigurationWithSubstitutedVariables(undefined, substituted);
  const session = { id: `${done.sessions.length}`, type: "tk", configuration };
  const { command, args } = done.adapters.createDebugAdapterDescriptor(session);
  const tracker = done.trackers.createDebugAdapterTracker(session);
  assert.deepEqual(args, ["dap"]);
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  const events = [];
  let next = () => {};
  let bytes = Buffer.alloc(0);
  child.stdout.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    for (;;) {
      const header = bytes.indexOf("\r\n\r\n");
      if (header < 0) return;
      const length = Number(/Content-Length: (\d+)/.exec(bytes.subarray(0, header).toString())[1]);
      if (bytes.length < header + 4 + length) return;
      const message = JSON.parse(bytes.subarray(header + 4, header + 4 + length).toString());
      bytes = bytes.subarray(header + 4 + length);
      tracker.onDidSendMessage(message);
      if (message.type === "response") waiting.get(message.request_seq)?.(message);
      else (events.push(message), next());
    }
  });
  let seq = 0;
  session.customRequest = (command, args = {}) =>
    new Promise((resolve, reject) => {
      tracker.onWillReceiveMessage({ command });
      waiting.set(++seq, ({ success, body, message }) => (success ? resolve(body) : reject(new Error(message))));
      const text = JSON.stringify({ seq, type: "request", command, arguments: args });
      child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    });
  session.event = async (...names) => {
    for (;;) {
      const at = events.findIndex(({ event }) => names.includes(event));
      if (at >= 0) return events.splice(at, 1)[0];
      await new Promise((resolve) => (next = resolve));
    }
  };
  session.ended = new Promise((resolve) => child.on("close", resolve));
  session.value = async (expression) => (await session.customRequest("evaluate", { expression, frameId: 1 })).result;
  done.sessions.push(session);
  await session.customRequest("initialize", { adapterID: "tk" });
  const launched = session.customRequest("launch", configuration);
  await session.customRequest("setBreakpoints", { source: { path: configuration.program }, breakpoints: done.breakpoints });
  await session.customRequest("setExceptionBreakpoints", { filters: done.filters ?? [] });
  await session.customRequest("configurationDone");
  await launched;
  if (done.unattended) session.event("terminated").then(() => session.customRequest("disconnect"));
  return session;
}

test("a session stops where a value becomes NaN, and shows a tile", async () => {
  const done = await opened();
  done.filters = ["nan"];
  const session = await start(done, { type: "tk", request: "launch", name: "x", program: file, test: "a NaN", programId: 1 });
  assert.deepEqual(session.configuration.programId, [1]);
  const { body } = await session.event("stopped");
  assert.equal(body.text, "a value becomes NaN here");
  const { stackFrames } = await session.customRequest("stackTrace", { threadId: 1 });
  assert.deepEqual([stackFrames[0].name, stackFrames[0].line], ["scale", lineOf("a = a * by")]);
  assert.equal(await session.value("program_id(0) == 1 && by > 1000"), "true");
  done.stopped(session);
  // From the menu of a variable, then from the palette.
  await done.commands["tk.showTile"]({ container: { name: "Variables" }, variable: { name: "a", evaluateName: "a" } });
  done.typed = " x ";
  await done.commands["tk.showTile"]();
  assert.deepEqual(done.panels.map((panel) => panel.title), ["a", "x"]);
  const [a, x] = done.panels.map(data);
  assert.deepEqual([a.tile.type, a.tile.shape, a.tile.numbers[3]], ["f32[8]", [8], 0]);
  assert.deepEqual([x.tile.shape, x.tile.max], [[16], 0]);
  // It is drawn again at the next stop, here after the statement.
  await session.customRequest("next", { threadId: 1 });
  await session.event("stopped");
  done.stopped(session);
  await settled(() => data(done.panels[0]).tile?.nan === 8);
  assert.deepEqual([data(done.panels[0]).tile.numbers[0], data(done.panels[0]).tile.texts[0]], [null, "nan"]);
  // In the frame of the test there is no such variable.
  done.stopped(session, 2);
  await settled(() => data(done.panels[0]).message !== undefined);
  assert.match(data(done.panels[0]).message, /there is no variable `a` here/);
  await session.customRequest("disconnect");
  await session.ended;
});

const data = (panel) => JSON.parse(/id="data"[^>]*>(.*?)<\/script>/s.exec(panel.webview.html)[1]);

async function settled(check) {
  for (let tries = 0; !check(); tries++) {
    assert.ok(tries < 500, "nothing has changed");
    await new Promise((wait) => setTimeout(wait, 20));
  }
}

test("what a launch configuration leaves out", async () => {
  const done = await opened();
  const complete = (given) => done.configurations.resolveDebugConfiguration(undefined, given);
  // F5 without a launch.json.
  const empty = complete({});
  assert.deepEqual(empty, { type: "tk", request: "launch", name: "Debug the tests of this file", program: "${file}" });
  const kernel = complete({ type: "tk", request: "launch", name: "k", program: "/a.tk", kernel: "scale", programId: [2, 1] });
  assert.deepEqual([kernel.program, kernel.kernel, kernel.programId, kernel.name], ["/a.tk", "scale", [2, 1], "k"]);
  done.source.document.languageId = "markdown";
  assert.equal(complete({}), undefined);
  const foreign = await opened({ trusted: false });
  assert.equal(foreign.configurations.resolveDebugConfiguration(undefined, { program: file }), undefined);
  assert.deepEqual([done.messages.length, foreign.messages.length], [1, 1]);
  // Every attribute of the manifest is one of `tk dap`.
  const adapter = readFileSync(new URL("../../cli/src/dap/mod.rs", import.meta.url), "utf8");
  const fields = /struct Launch \{(.*?)\n\}/s.exec(adapter)[1].matchAll(/^    (\w+): /gm);
  const camel = Array.from(fields, ([, name]) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
  const { properties } = manifest.contributes.debuggers[0].configurationAttributes.launch;
  assert.deepEqual(Object.keys(properties), camel.filter((name) => name !== "noDebug"));
});

test("the Test Explorer debugs single tests", async () => {
  const done = await opened();
  done.unattended = true;
  await done.controller.resolveHandler(undefined);
  const bad = 'bad "quotes" ${command:quit}';
  const include = ["good", bad].map((name) => done.controller.item(name));
  const never = { isCancellationRequested: false, onCancellationRequested: event() };
  await done.Debug({ include }, never);
  assert.deepEqual(done.runs[0], { ...done.runs[0], results: { good: "passed", [bad]: "failed" }, ended: true });
  assert.match(done.runs[0].message, /E0708.*assert\(1 == 2\)/s);
  // Names are not text in which VS Code replaces variables.
  assert.deepEqual(done.sessions.map(({ configuration }) => configuration.test), ["good", bad]);
  await done.commands["tk.debugTests"]();
  assert.equal(done.sessions[2].configuration.test, undefined);
  const cancelled = { isCancellationRequested: true };
  await done.Debug({ include }, cancelled);
  assert.deepEqual(Object.values(done.runs[1].results), ["skipped", "skipped"]);
  // One that is stopped while it stands still.
  Object.assign(done, { unattended: false, breakpoints: [{ line: lineOf("let mut a") }] });
  const token = { isCancellationRequested: false, onCancellationRequested: event() };
  const debugged = done.Debug({ include }, token);
  await settled(() => done.sessions.length === 4);
  await done.sessions[3].event("stopped");
  token.isCancellationRequested = true;
  token.onCancellationRequested.fire();
  await debugged;
  assert.deepEqual(done.runs[2].results, { good: "skipped", [bad]: "skipped" });
  const foreign = await opened({ trusted: false });
  await foreign.controller.resolveHandler(undefined);
  await foreign.Debug({ include: [foreign.controller.item("good")] }, never);
  assert.deepEqual(foreign.runs[0].results, { good: "errored" });
  assert.equal(foreign.sessions.length, 0);
});

test("names and values of a program are never markup of a heat map", async () => {
  const done = await opened();
  const hostile = "</script><img src=x onerror=alert(1)>{{nonce}}$&<!--";
  const tile = { name: hostile, type: hostile, shape: [1], min: 0, max: 0, nan: 0, infinite: 0, numbers: [0], texts: [hostile] };
  let answer = async () => tile;
  done.stopped({ type: "tk", customRequest: (...request) => answer(...request) });
  await done.commands["tk.showTile"]({ container: { evaluateName: "st" }, variable: { name: hostile, evaluateName: hostile } });
  const [panel] = done.panels;
  assert.equal(panel.webview.html.match(/<img|<!--/), null);
  assert.equal(panel.webview.html.match(/<\/script>/g).length, 2);
  assert.deepEqual(data(panel), { name: `st.${hostile}`, tile });
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(panel.webview.html)[1];
  const nonce = /script nonce="(\w{32})"/.exec(panel.webview.html)[1];
  assert.equal(policy, `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}';`);
  // Too large, as the adapter says.
  answer = async () => Promise.reject(new Error("`x` has 70000 elements"));
  await done.commands["tk.showTile"]({ variable: { name: "x", evaluateName: "x" } });
  assert.deepEqual(data(done.panels[1]), { name: "x", message: "`x` has 70000 elements" });
  // Nothing is asked of another debugger.
  done.stopped({ type: "cppdbg", customRequest: () => assert.fail("asked") });
  await done.commands["tk.showTile"]();
  assert.equal(done.messages.length, 1);
});

test("PTX is shown beside, with its lines tied in both directions", async () => {
  const done = await opened();
  done.select(done.source, lineOf("let at") - 1);
  done.choose = (all) => all.find((label) => label.includes("general"));
  await done.commands["tk.openPtx"]();
  assert.deepEqual(done.messages, []);
  assert.deepEqual(done.picked, [["scale[BLOCK=8] aligned sm_90a", "scale[BLOCK=8] general sm_90a"]]);
  const ptx = done.shown.document.text().split("\n");
  assert.ok(done.shown.document.uri.path.endsWith(".ptx") && ptx.includes(".target sm_90a"));
  const store = lineOf("y.store") - 1;
  done.select(done.source, store);
  const lines = done.shown.marked.map((line) => ptx[line]);
  assert.ok(lines.some((line) => line.includes("st.global")) && !lines.some((line) => line.includes("ld.global")), lines.join("\n"));
  assert.ok(!lines.some((line) => line.trim().startsWith(".")));
  assert.equal(done.shown.revealed, done.shown.marked[0]);
  // Back: the load; and an instruction of the library, which no line of this file has.
  done.select(done.shown, ptx.findIndex((line) => line.includes("ld.global")));
  assert.deepEqual(done.source.marked, [lineOf("let mut a") - 1]);
  assert.deepEqual(done.shown.marked, []);
  done.select(done.shown, ptx.findIndex((line) => line.includes("max")));
  assert.deepEqual(done.source.marked, []);
  done.select(done.shown, 0, ptx.length - 1);
  assert.ok(done.source.marked.length > 2);
  // After a save the lines are those of the new text.
  done.save(`// A line more.\n${PROGRAM}`);
  await settled(() => (done.select(done.source, store + 1), done.shown.marked.length > 0));
  done.select(done.source, store + 1);
  assert.ok(done.shown.marked.some((line) => done.shown.document.text().split("\n")[line].includes("st.global")));
  // What does not compile leaves what was there.
  done.save("kernel scale() { undefined }");
  await settled(() => done.messages.length > 0);
  assert.match(done.messages[0], /not up to date: E0201: cannot find `undefined`/);
  assert.ok(done.shown.document.text().includes("st.global"));
  done.save(PROGRAM);
  assert.deepEqual(readdirSync(folder), ["p.tk"], "nothing is left beside the source");
});

test("all kernels of a file without one under the cursor; assembly for AMD; tile IR", async () => {
  const done = await opened({ target: "gfx942" });
  await done.commands["tk.openPtx"]();
  assert.deepEqual(done.picked[0].filter((label) => label.startsWith("other")).length, 4, done.picked[0].join());
  assert.ok(done.shown.document.uri.path.endsWith(".gcn"));
  const gcn = done.shown.document.text().split("\n");
  done.select(done.source, lineOf("y.store") - 1);
  assert.ok(done.shown.marked.some((line) => /global_store|buffer_store/.test(gcn[line])));
  await done.commands["tk.openSass"]();
  assert.match(done.messages[0], /SASS is code for NVIDIA/);
  done.select(done.source, lineOf("a = a * by") - 1);
  await done.commands["tk.openTileIr"]();
  const tile = done.shown.document.text().split("\n");
  assert.ok(tile.some((line) => line.includes("view_store")));
});

test("values that no `export` gives are asked for", async () => {
  const done = await opened();
  done.select(done.source, lineOf("x.store([0], zeros([8]") - 1);
  await done.commands["tk.openPtx"]();
  assert.deepEqual([done.shown, done.messages], [undefined, []]);
  done.typed = "T=f16";
  await done.commands["tk.openPtx"]();
  assert.deepEqual(done.asked, "T=");
  assert.deepEqual(done.picked[0], ["open[T=f16] aligned sm_90a", "open[T=f16] general sm_90a"]);
  done.typed = "T=i32";
  await done.commands["tk.openPtx"]();
  assert.match(done.messages[0], /T/);
});

test("why there is no machine code", async () => {
  const missing = await opened({ path: "/no/tk" });
  await missing.commands["tk.openPtx"]();
  assert.match(missing.messages[0], /\/no\/tk.*ENOENT/);
  const unknown = await opened({ target: "sm_1" });
  await unknown.commands["tk.openPtx"]();
  assert.match(unknown.messages[0], /sm_1/);
  const done = await opened();
  done.source.document.languageId = "markdown";
  await done.commands["tk.openPtx"]();
  assert.match(done.messages[0], /stored on disk/);
  // Cancelled, it says nothing.
  const cancelled = await opened();
  cancelled.token = { isCancellationRequested: true, onCancellationRequested: (stop) => (stop(), { dispose() {} }) };
  await cancelled.commands["tk.openPtx"]();
  assert.deepEqual([cancelled.messages, cancelled.shown], [[], undefined]);
});

test("the lens opens the machine code of its kernel", async () => {
  const done = await opened();
  done.select(done.source, lineOf("let at") - 1);
  await done.commands["tk.openPtx"]({ uri: done.source.document.uri.toString(), kernel: "other" });
  assert.deepEqual(done.messages, []);
  assert.ok(done.picked[0].every((label) => label.startsWith("other[T=")), done.picked[0].join());
  assert.ok(done.shown.document.text().includes(".target sm_90a"));
});

test("without an assembler there is PTX, tile IR as text, and the reason for no SASS", async () => {
  process.env.TK_PTXAS = "/no/ptxas";
  try {
    const done = await opened();
    done.select(done.source, lineOf("a = a * by") - 1);
    await done.commands["tk.openPtx"]();
    assert.ok(done.shown.document.text().includes(".target sm_90a"));
    await done.commands["tk.openTileIr"]();
    assert.ok(done.shown.document.text().includes("view_store"));
    assert.deepEqual(done.messages, []);
    await done.commands["tk.openSass"]();
    assert.match(done.messages[0], /E1002: the assembler \/no\/ptxas/);
  } finally {
    delete process.env.TK_PTXAS;
  }
});

test("SASS, where NVIDIA's tools are", async (t) => {
  const done = await opened();
  done.select(done.source, lineOf("a = a * by") - 1);
  await done.commands["tk.openSass"]();
  if (process.env.CI !== "true" && /nvdisasm|E1001/.test(done.messages[0] ?? "")) return t.skip(done.messages[0]);
  assert.deepEqual(done.messages, []);
  const sass = done.shown.document.text().split("\n");
  done.select(done.source, lineOf("y.store") - 1);
  assert.ok(done.shown.marked.some((line) => sass[line].includes("STG")), sass.join("\n"));
  await done.commands["tk.openTileIr"]();
  const tile = done.shown.document.text().split("\n");
  done.select(done.source, lineOf("y.store") - 1);
  assert.deepEqual(done.shown.marked.map((line) => tile[line].trim().split(" ")[0]), ["view_store"]);
});
