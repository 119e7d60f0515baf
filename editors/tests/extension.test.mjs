// The tests of the extension for VS Code: what the package holds, that it runs without the folder it was built in,
// and its language configuration. Assumes `vscode/tk.vsix`, which `run` has made. VS Code itself is played by stand-ins.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { inside, loaded, manifest, root } from "./vscode.mjs";

const command = process.env.TK;

test("the package holds what its manifest names, and little else", () => {
  const { contributes, main } = manifest;
  const steps = contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps);
  const named = [main, contributes.languages[0].configuration, manifest.icon];
  named.push(...contributes.grammars.map((grammar) => grammar.path), ...steps.map((step) => step.media.markdown));
  for (const path of named) assert.ok(existsSync(join(inside, path)), path);
  const files = readdirSync(inside, { recursive: true }).filter((path) => statSync(join(inside, path)).isFile());
  assert.deepEqual(files.sort(), [...named, "LICENSE.txt", "package.json", "README.md"].sort());
  assert.ok(readFileSync(join(root, "editors/vscode/tk.vsix")).length < 300_000, "the package has grown");
});

/** The items of a test controller or of an item. */
function items(parent) {
  const map = new Map();
  const put = (item) => map.set(item.id, Object.assign(item, { parent }));
  return {
    add: put,
    get: (id) => map.get(id),
    delete: (id) => map.delete(id),
    forEach: (each) => map.forEach(each),
    replace: (all) => (map.clear(), all.forEach(put)),
    all: () => [...map.values()],
  };
}

/** A test controller that writes down the results of its runs. */
function controller(done) {
  return {
    items: items(undefined),
    createTestItem(id, label, uri) {
      const item = { id, label, uri };
      item.children = items(item);
      return item;
    },
    createRunProfile: (name, _, run) => (done[name.toLowerCase()] = run),
    createTestRun() {
      const run = { results: {}, output: "", ended: false };
      const set = (how) => (test, message) => (run.results[test.label] = [how, message]);
      for (const how of ["started", "passed", "failed", "skipped", "errored"]) run[how] = set(how);
      run.appendOutput = (text) => (run.output += text);
      run.end = () => (run.ended = true);
      done.runs.push(run);
      return run;
    },
  };
}

/** Loads the extension with a VS Code that has these settings, and writes down what it does. */
function load({ path = "tk", trusted = true, documents = [], files = [] } = {}) {
  const done = { commands: {}, errors: [], warnings: [], tasks: [], provider: undefined, controller: undefined, runs: [], path };
  const nothing = () => ({ dispose() {} });
  const file = (fsPath) => ({ scheme: "file", fsPath, toString: () => `file://${fsPath}` });
  const known = {
    workspace: {
      isTrusted: trusted,
      textDocuments: documents,
      workspaceFolders: [{ uri: file("/folder") }],
      getConfiguration: () => ({ get: () => done.path }),
      getWorkspaceFolder: () => undefined,
      onDidChangeConfiguration: nothing,
      onDidOpenTextDocument: nothing,
      onDidChangeTextDocument: (heard) => ((done.changed = heard), nothing()),
      createFileSystemWatcher: () => ({
        onDidCreate: nothing,
        onDidChange: nothing,
        onDidDelete: (heard) => ((done.deleted = heard), nothing()),
      }),
      findFiles: async () => files.map(file),
      fs: { readFile: async (uri) => readFileSync(uri.fsPath) },
      asRelativePath: (uri) => uri.fsPath.split("/").at(-1),
    },
    tests: { createTestController: () => (done.controller = controller(done)) },
    TestRunProfileKind: { Run: 1, Debug: 2 },
    TestMessage: class {
      constructor(message) {
        this.message = message;
      }
    },
    Range: class {
      constructor(...numbers) {
        this.numbers = numbers;
      }
    },
    Location: class {
      constructor(uri, range) {
        Object.assign(this, { uri, range });
      }
    },
    Disposable: { from: nothing },
    commands: { registerCommand: (name, run) => ((done.commands[name] = run), { dispose() {} }) },
    window: {
      activeTextEditor: { document: { uri: file("/folder/active.tk") } },
      showErrorMessage: async (text) => void done.errors.push(text),
      showWarningMessage: async (text) => void done.warnings.push(text),
    },
    tasks: {
      registerTaskProvider: (_, provider) => ((done.provider = provider), { dispose() {} }),
      executeTask: async (task) => void done.tasks.push(task),
    },
    Uri: { parse: (text) => ({ ...file(new URL(text).pathname), scheme: new URL(text).protocol.slice(0, -1) }), file },
    Task: class {
      constructor(definition, scope, name, source, execution) {
        Object.assign(this, { definition, scope, name, source, execution });
      }
    },
    ProcessExecution: class {
      constructor(process, args) {
        Object.assign(this, { process, args });
      }
    },
    TaskScope: { Workspace: 2 },
    TaskPanelKind: { Dedicated: 2 },
  };
  return { extension: loaded(known), done };
}

async function activated(options) {
  const { extension, done } = load(options);
  const context = { subscriptions: [] };
  await extension.activate(context);
  return { extension, done };
}

test("a command that does not start is named, with the folder put in", async () => {
  const { extension, done } = await activated({ path: "${workspaceFolder}/no/tk" });
  assert.equal(done.errors.length, 1);
  assert.match(done.errors[0], /`\/folder\/no\/tk` does not start: .*ENOENT/);
  await done.commands["tk.restart"]();
  assert.equal(done.errors.length, 2);
  await extension.deactivate();
});

test("the kernel of the walkthrough passes its test", () => {
  const [, program] = /```tk\n(.*?)```/s.exec(readFileSync(join(inside, "walkthrough/kernel.md"), "utf8"));
  const printed = execFileSync(command, ["test", "-"], { input: program, encoding: "utf8" });
  assert.match(printed, /1 passed, 0 failed/);
});

test("every command of the manifest exists", async () => {
  const { done } = await activated({ path: "/no/tk" });
  assert.deepEqual(Object.keys(done.commands).sort(), manifest.contributes.commands.map((c) => c.command).sort());
});

test("the tests of a kernel run by name, after what was changed is saved", async () => {
  const saved = [];
  const save = (name) => async () => saved.push(name);
  const uri = { scheme: "untitled" };
  const document = (name, more) => ({ languageId: "tk", uri, isDirty: true, isUntitled: false, save: save(name), ...more });
  const documents = [
    document("a.tk"),
    document("b.tk", { isDirty: false }),
    document("untitled", { isUntitled: true }),
    document("c.md", { languageId: "markdown" }),
  ];
  const { done } = await activated({ path: "/no/tk", documents });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk", filter: 'rows of "every" length; $(x)' });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk", filter: "rows", exact: true });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk", filter: "" });
  await done.commands["tk.runTests"]();
  assert.deepEqual(saved, ["a.tk", "a.tk", "a.tk", "a.tk"]);
  assert.deepEqual(
    done.tasks.map((task) => [task.execution.process, ...task.execution.args]),
    [
      ["/no/tk", "test", "/folder/a.tk", "--filter", 'rows of "every" length; $(x)'],
      ["/no/tk", "test", "/folder/a.tk", "--filter", "rows", "--exact"],
      ["/no/tk", "test", "/folder/a.tk"],
      ["/no/tk", "test", "/folder/active.tk"],
    ],
  );
  const task = done.provider.resolveTask({ definition: { type: "tk", file: "/x.tk", filter: "y" }, scope: 2 });
  assert.deepEqual(task.execution.args, ["test", "/x.tk", "--filter", "y"]);
  assert.equal(done.provider.resolveTask({ definition: { type: "tk" }, scope: 2 }), undefined);
});

test("nothing of a folder is run that is not trusted, or not on disk", async () => {
  const { done } = await activated({ path: "/no/tk", trusted: false });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk" });
  const other = await activated({ path: "/no/tk" });
  await other.done.commands["tk.runTests"]({ uri: "untitled:Untitled-1" });
  assert.deepEqual([done.tasks, other.done.tasks], [[], []]);
  assert.deepEqual([done.warnings.length, other.done.warnings.length], [1, 1]);
  assert.ok(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes("tk.path"));
});

const never = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };

/** The Test Explorer over files with these texts. */
async function explorer(texts, { path = "/no/tk", ...options } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tk-tests-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const files = Object.entries(texts).map(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  });
  // Without a server; the command is there when tests are run.
  const { done } = await activated({ path: "/no/tk", files, ...options });
  done.path = path;
  await done.controller.resolveHandler(undefined);
  return { done, folder };
}

const BAD = `test "good \\"quotes\\"" {
    print("hello");
}

  test "bad" {
    let x = arange(0, 4) as f32;
    assert_close(x, x + where(arange(0, 4) == 2, 1.0, 0.0), rtol = 1e-3);
}
// test "no test" {}
`;

test("the Test Explorer shows the tests of all files, at their lines", async () => {
  const { done, folder } = await explorer({ "a.tk": BAD, "b.tk": "fn f() {}\n", "c.tk": 'test "only" {}\n' });
  const shown = done.controller.items.all().map((file) => [
    file.label,
    file.children.all().map((test) => [test.label, test.range.numbers[0]]),
  ]);
  assert.deepEqual(shown, [["a.tk", [['good "quotes"', 0], ["bad", 4]]], ["c.tk", [["only", 0]]]]);
  const uri = { scheme: "file", fsPath: join(folder, "c.tk"), toString: () => `file://${join(folder, "c.tk")}` };
  const typed = (text) => done.changed({ document: { languageId: "tk", uri, getText: () => text } });
  typed('\n\ntest "another" {}\ntest "another" {}\n');
  assert.deepEqual(done.controller.items.all()[1].children.all().map((test) => test.label), ["another", "another"]);
  typed("");
  assert.equal(done.controller.items.all().length, 1);
});

test("the Test Explorer knows the files that were open before it", async () => {
  const uri = { scheme: "file", fsPath: "/folder/a.tk", toString: () => "file:///folder/a.tk" };
  const { done } = await activated({ path: "/no/tk", documents: [{ languageId: "tk", uri, getText: () => BAD }] });
  assert.deepEqual(done.controller.items.all().map((file) => file.label), ["a.tk"]);
});

test("a run gives every test its result, a failure with its line and value", async () => {
  const { done } = await explorer({ "a.tk": BAD, "broken.tk": 'fn f() -> i32 { x }\ntest "t" {}\n' }, { path: command });
  await done.run({}, never);
  const [{ results, output, ended }] = done.runs;
  assert.ok(ended);
  assert.equal(results['good "quotes"'][0], "passed");
  assert.match(output, /hello\r\n/);
  const [how, [message]] = results.bad;
  assert.equal(how, "failed");
  assert.match(message.message, /2\.0 instead of 3\.0 at \[2\]/);
  assert.deepEqual(message.location.range.numbers.slice(0, 2), [6, 4]);
  assert.equal(results.t[0], "errored");
  assert.match(results.t[1][0].message, /cannot find `x`/);

  // One test, by its name; and all but one.
  const [good, bad] = done.controller.items.all()[0].children.all();
  await done.run({ include: [good] }, never);
  assert.deepEqual(Object.keys(done.runs[1].results), ['good "quotes"']);
  await done.run({ include: [done.controller.items.all()[0]], exclude: [bad] }, never);
  assert.deepEqual(Object.keys(done.runs[2].results), ['good "quotes"']);
});

test("a run without the command, without trust, and one that is cancelled", async () => {
  const missing = await explorer({ "a.tk": BAD });
  await missing.done.run({}, never);
  assert.match(missing.done.runs[0].results.bad[1].message, /`\/no\/tk` does not start/);
  const foreign = await explorer({ "a.tk": BAD }, { trusted: false });
  await foreign.done.run({}, never);
  assert.deepEqual([foreign.done.runs[0].results, foreign.done.runs[0].ended], [{}, true]);
  const endless = 'test "endless" {\n    let mut i = 0;\n    while i < 1 { i = 0; }\n}\n';
  const long = await explorer({ "a.tk": endless, "b.tk": 'test "later" {}\n' }, { path: command });
  const token = { isCancellationRequested: false, onCancellationRequested: (stop) => ((token.stop = stop), { dispose() {} }) };
  const run = long.done.run({}, token);
  await new Promise((wait) => setTimeout(wait, 500));
  token.isCancellationRequested = true;
  token.stop();
  await run;
  assert.deepEqual(Object.values(long.done.runs[0].results).map(([how]) => how), ["skipped", "skipped"]);
});

const configuration = JSON.parse(readFileSync(join(inside, manifest.contributes.languages[0].configuration), "utf8"));
const sources = ["examples", "stdlib", "stdlib/nn"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".tk"))
    .map((name) => ({ name, lines: readFileSync(join(root, folder, name), "utf8").split("\n") })),
);
const indentation = (line) => line.length - line.trimStart().length;

test("indentation rules agree with how the examples and the library are laid out", () => {
  const increase = new RegExp(configuration.indentationRules.increaseIndentPattern);
  const decrease = new RegExp(configuration.indentationRules.decreaseIndentPattern);
  let checked = 0;
  for (const { name, lines } of sources) {
    lines.slice(1).forEach((line, i) => {
      const before = lines[i];
      // A signature of several lines is laid out by the formatter.
      if (!line.trim() || !before.trim() || /^\s*\/\//.test(before) || before.endsWith("](")) return;
      const step = increase.test(before) ? 4 : 0;
      if (step && !decrease.test(line)) {
        assert.equal(indentation(line), indentation(before) + step, `${name}:${i + 2}: ${line}`);
        checked++;
      }
      // The condition of an entry of `tune` may stand below it.
      const statement = /^ *(?:let|for|if|return|\/\/|assert)/.test(line) && !/[=,}]$/.test(before);
      if (statement && indentation(line) > indentation(before)) {
        assert.ok(step, `${name}:${i + 2}: nothing says why this is indented: ${line}`);
      }
      if (indentation(line) < indentation(before) && /^ *[\])}]/.test(line)) assert.ok(decrease.test(line), line);
    });
  }
  assert.ok(checked > 100, `only ${checked} lines`);
});

test("words, comments and doc comments", () => {
  const { pattern, flags } = configuration.wordPattern;
  const words = "acc += x[größe].load([BLOCK_1], other = -1.5e-3) as T.acc; 0xff".match(new RegExp(pattern, `${flags}g`));
  assert.deepEqual(words, ["acc", "x", "größe", "load", "BLOCK_1", "other", "1.5e-3", "as", "T", "acc", "0xff"]);
  assert.equal(configuration.comments.lineComment, "//");
  const [doc, signature] = configuration.onEnterRules.map((rule) => new RegExp(rule.beforeText));
  assert.ok(doc.test("    /// text") && !doc.test("//// text") && !doc.test("// text") && !doc.test("let x = 1; /// text"));
  for (const line of ["@fast kernel f(x: view[f32, 1])", "](x: view[f32, 1])", ")"]) assert.ok(signature.test(line), line);
  assert.ok(!signature.test("fn f(x: f32)"));
});
