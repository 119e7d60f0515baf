// The tests of the extension for VS Code: what the package holds, that it runs without the folder it was built in,
// and its language configuration. Assumes `vscode/tk.vsix`, which `run` has made. VS Code itself is played by stand-ins.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const unpacked = mkdtempSync(join(tmpdir(), "tk-vsix-"));
after(() => rmSync(unpacked, { recursive: true, force: true }));
execFileSync("python3", ["-m", "zipfile", "-e", join(root, "editors/vscode/tk.vsix"), unpacked]);
const inside = join(unpacked, "extension");
const manifest = JSON.parse(readFileSync(join(inside, "package.json"), "utf8"));

test("the package holds what its manifest names, and little else", () => {
  const { contributes, main } = manifest;
  const named = [main, contributes.languages[0].configuration, ...contributes.grammars.map((grammar) => grammar.path)];
  for (const path of named) assert.ok(existsSync(join(inside, path)), path);
  const files = readdirSync(inside, { recursive: true }).filter((path) => statSync(join(inside, path)).isFile());
  assert.deepEqual(files.sort(), [...named, "package.json", "README.md"].sort());
  assert.ok(readFileSync(join(root, "editors/vscode/tk.vsix")).length < 300_000, "the package has grown");
});

/** Anything of VS Code that is not asked for by name below: a class, a function and an object at once. */
function anything() {
  return new Proxy(class {}, {
    get: (target, name) => (name in target || typeof name === "symbol" ? target[name] : (target[name] = anything())),
  });
}

/** Loads the extension with a VS Code that has these settings, and writes down what it does. */
function load({ path = "tk", trusted = true, documents = [] } = {}) {
  const done = { commands: {}, errors: [], warnings: [], tasks: [], provider: undefined };
  const file = (fsPath) => ({ scheme: "file", fsPath, toString: () => `file://${fsPath}` });
  const known = {
    workspace: {
      isTrusted: trusted,
      textDocuments: documents,
      workspaceFolders: [{ uri: file("/folder") }],
      getConfiguration: () => ({ get: () => path }),
      getWorkspaceFolder: () => undefined,
      onDidChangeConfiguration: () => ({ dispose() {} }),
    },
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
  const vscode = anything();
  Object.assign(vscode, known);
  const require = createRequire(join(inside, "test.cjs"));
  const load = Module._load;
  Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
  try {
    delete require.cache[join(inside, manifest.main)];
    return { extension: require(join(inside, manifest.main)), done };
  } finally {
    Module._load = load;
  }
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

test("every command of the manifest exists", async () => {
  const { done } = await activated({ path: "/no/tk" });
  assert.deepEqual(Object.keys(done.commands).sort(), manifest.contributes.commands.map((c) => c.command).sort());
});

test("the tests of a kernel run by name, after what was changed is saved", async () => {
  const saved = [];
  const save = (name) => async () => saved.push(name);
  const document = (name, more) => ({ languageId: "tk", isDirty: true, isUntitled: false, save: save(name), ...more });
  const documents = [
    document("a.tk"),
    document("b.tk", { isDirty: false }),
    document("untitled", { isUntitled: true }),
    document("c.md", { languageId: "markdown" }),
  ];
  const { done } = await activated({ path: "/no/tk", documents });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk", filter: 'rows of "every" length; $(x)' });
  await done.commands["tk.runTests"]({ uri: "file:///folder/a.tk", filter: "" });
  await done.commands["tk.runTests"]();
  assert.deepEqual(saved, ["a.tk", "a.tk", "a.tk"]);
  assert.deepEqual(
    done.tasks.map((task) => [task.execution.process, ...task.execution.args]),
    [
      ["/no/tk", "test", "/folder/a.tk", "--filter", 'rows of "every" length; $(x)'],
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
