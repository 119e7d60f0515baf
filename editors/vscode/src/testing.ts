// The Test Explorer: the `test` blocks of all files of the workspace, and their results at the lines that failed.
//
// Tests are found in the text, without a server. A run starts `tk test FILE --message-format json`, one process for each
// file, which reports each test when it has ended. Debugging a test is a session of the debugger. Guarantees that
// nothing is run in a folder that is not trusted, and that every test of a run gets a result.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import { debugTest } from "./debug";
import type { Environment } from "./environment";

/** A line of `tk test --message-format json`; `docs/tool.md` describes it. */
interface Result {
  kind: "test" | "diagnostic" | "summary";
  name: string;
  outcome: "passed" | "failed" | "left_out";
  printed: string;
  diagnostics: Diagnostic[];
  rendered?: string;
}

interface Diagnostic {
  message: string;
  notes: string[];
  rendered: string;
  primary: { file: string; line_start: number; column_start: number; line_end: number; column_end: number };
}

/** `test "name" {` at the start of a line; the name with its escapes. */
const TEST = /^[ \t]*test\s+"((?:[^"\\\n]|\\.)*)"/gm;
const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", "0": "\0" };

/** The name of a test as the command reports it. */
export function unescaped(name: string): string {
  return name.replace(/\\(?:u\{([0-9a-fA-F]+)\}|(.))/g, (_, code?: string, letter?: string) =>
    code === undefined ? (ESCAPES[letter ?? ""] ?? letter ?? "") : String.fromCodePoint(parseInt(code, 16)),
  );
}

/** The names of the tests of a text, and the offset of each. */
export function found(text: string): { name: string; offset: number }[] {
  return Array.from(text.matchAll(TEST), (match) => ({
    name: unescaped(match[1] ?? ""),
    offset: match.index + match[0].indexOf("test"),
  }));
}

/** Registers the controller; what it holds ends with the extension. */
export function explorer(environment: Environment): vscode.Disposable {
  const controller = vscode.tests.createTestController("tk", "tk");
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.tk");
  const read = async (uri: vscode.Uri): Promise<void> => {
    const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
    const text = open?.getText() ?? new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
    update(controller, uri, text);
  };
  const changed = (document: vscode.TextDocument): void => {
    if (document.languageId === "tk" && document.uri.scheme === "file") update(controller, document.uri, document.getText());
  };
  controller.resolveHandler = async (item) => {
    if (item !== undefined) return;
    const files = await vscode.workspace.findFiles("**/*.tk", "**/{target,node_modules,.*}/**");
    // A file that cannot be read has no tests to show.
    await Promise.all(files.map((uri) => read(uri).catch(() => undefined)));
  };
  controller.refreshHandler = () => controller.resolveHandler?.(undefined);
  controller.createRunProfile(
    "Run",
    vscode.TestRunProfileKind.Run,
    (request, token) => run(controller, environment, request, token),
    true,
  );
  controller.createRunProfile(
    "Debug",
    vscode.TestRunProfileKind.Debug,
    (request, token) => debug(controller, request, token),
    true,
  );
  // Those that were open before the extension.
  vscode.workspace.textDocuments.forEach(changed);
  return vscode.Disposable.from(
    controller,
    watcher,
    watcher.onDidCreate((uri) => void read(uri).catch(() => undefined)),
    watcher.onDidChange((uri) => void read(uri).catch(() => undefined)),
    watcher.onDidDelete((uri) => controller.items.delete(uri.toString())),
    vscode.workspace.onDidOpenTextDocument(changed),
    vscode.workspace.onDidChangeTextDocument((change) => changed(change.document)),
  );
}

/** Shows the tests of a file as they are now. */
function update(controller: vscode.TestController, uri: vscode.Uri, text: string): void {
  const tests = found(text);
  if (tests.length === 0) {
    controller.items.delete(uri.toString());
    return;
  }
  const file =
    controller.items.get(uri.toString()) ??
    controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
  const lines = lineStarts(text);
  file.children.replace(
    tests.map(({ name, offset }, number) => {
      // Two tests may have one name.
      const twin = tests.findIndex((other) => other.name === name) !== number;
      const item = controller.createTestItem(twin ? `${name}#${number}` : name, name, uri);
      const line = lines.filter((start) => start <= offset).length - 1;
      item.range = new vscode.Range(line, 0, line, 0);
      return item;
    }),
  );
  controller.items.add(file);
}

function lineStarts(text: string): number[] {
  return [0, ...Array.from(text.matchAll(/\n/g), (match) => match.index + 1)];
}

/** Runs the tests of a request, file after file. */
async function run(
  controller: vscode.TestController,
  environment: Environment,
  request: vscode.TestRunRequest,
  token: vscode.CancellationToken,
): Promise<void> {
  const run = controller.createTestRun(request);
  try {
    if (!vscode.workspace.isTrusted) {
      void vscode.window.showWarningMessage("Tests are run only in folders that are trusted.");
      return;
    }
    await environment.save();
    for (const [file, tests] of chosen(controller, request)) {
      if (token.isCancellationRequested) tests.forEach((test) => run.skipped(test));
      else await runFile(environment.program(), file, tests, run, token);
    }
  } finally {
    run.end();
  }
}

/** Debugs the tests of a request, one after the other. */
async function debug(
  controller: vscode.TestController,
  request: vscode.TestRunRequest,
  token: vscode.CancellationToken,
): Promise<void> {
  const run = controller.createTestRun(request);
  try {
    for (const [file, tests] of chosen(controller, request)) {
      for (const test of tests) {
        if (token.isCancellationRequested || file.uri === undefined) {
          run.skipped(test);
          continue;
        }
        run.started(test);
        const { how, output } = await debugTest(file.uri, test.label, run, token);
        if (how === "passed") run.passed(test);
        else if (how === "stopped") run.skipped(test);
        else if (how === "failed") run.failed(test, new vscode.TestMessage(output.trim() || "It has failed."));
        else run.errored(test, new vscode.TestMessage("The debugger has not started; its console shows why."));
      }
    }
  } finally {
    run.end();
  }
}

/** The tests of a request by file, those that it excludes left out. */
function chosen(
  controller: vscode.TestController,
  request: vscode.TestRunRequest,
): Map<vscode.TestItem, vscode.TestItem[]> {
  const files = new Map<vscode.TestItem, vscode.TestItem[]>();
  const add = (item: vscode.TestItem): void => {
    if (request.exclude?.includes(item)) return;
    if (item.parent === undefined) item.children.forEach(add);
    else files.set(item.parent, [...(files.get(item.parent) ?? []), item]);
  };
  if (request.include === undefined) controller.items.forEach(add);
  else request.include.forEach(add);
  return files;
}

/** Runs the tests of one file, and waits for the end of the process. */
function runFile(
  program: string,
  file: vscode.TestItem,
  tests: vscode.TestItem[],
  run: vscode.TestRun,
  token: vscode.CancellationToken,
): Promise<void> {
  const path = file.uri?.fsPath ?? "";
  const [first] = tests;
  const filter = tests.length === 1 && first !== undefined ? ["--filter", first.label, "--exact"] : [];
  tests.forEach((test) => run.started(test));
  const waiting = [...tests];
  return new Promise((resolve) => {
    const child = spawn(program, ["test", path, ...filter, "--message-format", "json"], {
      cwd: vscode.workspace.getWorkspaceFolder(vscode.Uri.file(path))?.uri.fsPath,
    });
    const stop = token.onCancellationRequested(() => child.kill());
    const messages: vscode.TestMessage[] = [];
    let errors = "";
    child.stderr.on("data", (data: Buffer) => (errors += data.toString()));
    const output = createInterface({ input: child.stdout });
    output.on("line", (line) => {
      const result = parsed(line);
      if (result === undefined) return;
      if (result.kind === "diagnostic") messages.push(...message([result as unknown as Diagnostic]));
      if (result.kind !== "test") return;
      const at = waiting.findIndex((test) => test.label === result.name);
      const [test] = at < 0 ? [] : waiting.splice(at, 1);
      if (test !== undefined) report(run, test, result);
    });
    const ended = (why: string): void => {
      stop.dispose();
      // The file has an error, or the command ended early.
      for (const test of waiting.splice(0)) {
        if (token.isCancellationRequested) run.skipped(test);
        else run.errored(test, messages.length > 0 ? messages : new vscode.TestMessage(errors.trim() || why));
      }
      resolve();
    };
    child.on("error", (error) => ended(`\`${program}\` does not start: ${error.message}`));
    // After the last line was read.
    child.on("close", (code) => ended(`\`tk test\` ended with code ${code ?? "none"} before this test`));
  });
}

function parsed(line: string): Result | undefined {
  try {
    return JSON.parse(line) as Result;
  } catch {
    return undefined;
  }
}

/** Shows the result of a test. */
function report(run: vscode.TestRun, test: vscode.TestItem, result: Result): void {
  if (result.printed) run.appendOutput(result.printed.replaceAll(/\r?\n/g, "\r\n"), undefined, test);
  for (const { rendered } of result.diagnostics) {
    run.appendOutput(rendered.replaceAll(/\r?\n/g, "\r\n"), undefined, test);
  }
  if (result.outcome === "passed") run.passed(test);
  else if (result.outcome === "left_out") run.skipped(test);
  else run.failed(test, message(result.diagnostics));
}

/** The messages of diagnostics, each at its line. */
function message(diagnostics: Diagnostic[]): vscode.TestMessage[] {
  return diagnostics.map(({ message, notes, primary }) => {
    const shown = new vscode.TestMessage([message, ...notes].join("\n"));
    const { line_start, column_start, line_end, column_end } = primary;
    const range = new vscode.Range(line_start - 1, column_start - 1, line_end - 1, column_end - 1);
    shown.location = new vscode.Location(vscode.Uri.file(primary.file), range);
    return shown;
  });
}
