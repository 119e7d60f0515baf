// The extension for VS Code: the client of `tk lsp`, its restart, the tests of a code lens, and the registration
// of the rest: the Test Explorer, the debugger, heat maps, machine code.
//
// Everything about the language comes from the server; nothing is sent anywhere else. Guarantees that there is at most
// one server, and that no program of a folder that is not trusted is run.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { debugging } from "./debug";
import { heatmaps } from "./heatmap";
import { machineCode } from "./machine";
import { explorer } from "./testing";

/** What the server gives to the command of the lens of a kernel; see `lsp/src/server/look.rs`. */
interface Tests {
  uri: string;
  /** Part of the names of the tests; all of the file when it is empty or missing. */
  filter?: string;
  /** Whether that is the whole name of one test. */
  exact?: boolean;
}

let client: LanguageClient | undefined;
// Starts and stops come one after the other, however fast somebody asks for them.
let last: Promise<void> = Promise.resolve();

export function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("tk.restart", restart),
    vscode.commands.registerCommand("tk.runTests", runTests),
    vscode.tasks.registerTaskProvider("tk", { provideTasks: () => [], resolveTask: (task) => resolved(task) }),
    explorer({ program, save }),
    debugging({ program, save }),
    heatmaps(),
    machineCode({ program, save }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("tk.path")) void restart();
    }),
  );
  return restart();
}

export function deactivate(): Promise<void> {
  return queued(stop);
}

/** The command `tk`, by the setting. */
function program(): string {
  const path = vscode.workspace.getConfiguration("tk").get<string>("path", "tk").trim() || "tk";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return folder === undefined ? path : path.replaceAll("${workspaceFolder}", folder);
}

function queued(step: () => Promise<void>): Promise<void> {
  last = last.then(step, step);
  return last;
}

function restart(): Promise<void> {
  return queued(async () => {
    await stop();
    await start();
  });
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  // A server that has ended already cannot be stopped, and does not need to be.
  await running?.dispose().catch(() => undefined);
}

async function start(): Promise<void> {
  const command = program();
  try {
    await promisify(execFile)(command, ["--version"], { timeout: 10_000 });
  } catch (error) {
    void missing(command, error);
    return;
  }
  client = new LanguageClient(
    "tk",
    "tk",
    { command, args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: "tk" },
        { scheme: "untitled", language: "tk" },
      ],
      initializationOptions: { costs: vscode.workspace.getConfiguration("tk").get("costs") },
      synchronize: { configurationSection: "tk" },
    },
  );
  // What goes wrong here is shown by the client itself, with its log.
  await client.start().catch(() => undefined);
}

/** Says that the command does not start, and where to change that. */
async function missing(command: string, error: unknown): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  const setting = "Change tk.path";
  const chosen = await vscode.window.showErrorMessage(`The command \`${command}\` does not start: ${reason}`, setting);
  if (chosen === setting) await vscode.commands.executeCommand("workbench.action.openSettings", "tk.path");
}

async function runTests(tests?: Tests): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Tests are run only in folders that are trusted.");
    return;
  }
  const file = tests === undefined ? vscode.window.activeTextEditor?.document.uri : vscode.Uri.parse(tests.uri, true);
  if (file?.scheme !== "file") {
    void vscode.window.showWarningMessage("Tests are run of files that are stored on disk.");
    return;
  }
  await save();
  await vscode.tasks.executeTask(testTask({ type: "tk", file: file.fsPath, filter: tests?.filter, exact: tests?.exact }));
}

/** Saves the files of the language: the command reads them from disk, those that a file uses among them. */
async function save(): Promise<void> {
  const changed = vscode.workspace.textDocuments.filter((document) => document.languageId === "tk" && document.isDirty);
  await Promise.all(changed.filter((document) => !document.isUntitled).map((document) => document.save()));
}

/** The task of a `tasks.json`, ready to run. */
function resolved(task: vscode.Task): vscode.Task | undefined {
  const { file } = task.definition;
  return typeof file === "string" ? testTask(task.definition, task.scope) : undefined;
}

/** `tk test FILE --filter NAME [--exact]` in a terminal. No shell reads the words, so none needs quotes. */
function testTask(definition: vscode.TaskDefinition, scope?: vscode.WorkspaceFolder | vscode.TaskScope): vscode.Task {
  const { file, filter, exact } = definition as unknown as { file: string; filter?: string; exact?: boolean };
  const words = ["test", file, ...(filter ? ["--filter", filter, ...(exact ? ["--exact"] : [])] : [])];
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(file));
  const task = new vscode.Task(
    definition,
    scope ?? folder ?? vscode.TaskScope.Workspace,
    words.join(" "),
    "tk",
    new vscode.ProcessExecution(program(), words),
  );
  task.presentationOptions = { clear: true, panel: vscode.TaskPanelKind.Dedicated };
  return task;
}
