// The debugger: starts `tk dap` for a session, completes launch configurations, and tells the Test Explorer how a test
// has ended that was debugged.
//
// Guarantees that a program of a folder that is not trusted is not run, and that the adapter is the command of the
// language server.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { Environment } from "./environment";

/** What `launch` of `tk dap` takes; `docs/debugger.md` describes it. */
interface Launch extends vscode.DebugConfiguration {
  program?: string;
  programId?: number | number[];
  /** The key in `chosen`, of a session that the extension starts itself. */
  chosen?: string;
}

/** A file or one of its tests. */
interface Chosen {
  program: string;
  test?: string;
}

/**
 * What is debugged in the sessions that the extension starts itself. It is not in their configurations, where VS Code would
 * replace `${..}` in the names of files and tests, and run `${command:..}`.
 */
const chosen = new Map<string, Chosen>();
let sessions = 0;
/** The code with which the program of a session has ended. */
const codes = new Map<string, number>();

/** Registers the debugger and its commands. */
export function debugging(environment: Environment): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.debug.registerDebugConfigurationProvider("tk", {
      resolveDebugConfiguration: (_, given) => completed(given as Launch),
      resolveDebugConfigurationWithSubstitutedVariables: async (_, given) => {
        // The command reads files from disk.
        await environment.save();
        return { ...given, ...chosen.get((given as Launch).chosen ?? "") };
      },
    }),
    vscode.debug.registerDebugAdapterDescriptorFactory("tk", {
      createDebugAdapterDescriptor: (session) =>
        new vscode.DebugAdapterExecutable(environment.program(), ["dap"], { cwd: session.workspaceFolder?.uri.fsPath }),
    }),
    vscode.debug.registerDebugAdapterTrackerFactory("tk", {
      createDebugAdapterTracker: (session) => ({
        onDidSendMessage: (message: { event?: string; body?: { exitCode?: number } }) => {
          if (message.event === "exited") codes.set(session.id, message.body?.exitCode ?? 1);
        },
      }),
    }),
    vscode.commands.registerCommand("tk.debugTests", (uri?: vscode.Uri) => debugFile(uri)),
  );
}

/** A launch configuration with what is left out of it; undefined if nothing can be started. */
function completed(given: Launch): Launch | undefined {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Programs are debugged only in folders that are trusted.");
    return undefined;
  }
  // It is empty for F5 without a launch.json.
  const out: Launch = { ...given, type: "tk", request: "launch", name: given.name || "Debug the tests of this file" };
  if (!out.program && !out.chosen) {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "tk" || document.uri.scheme !== "file") {
      void vscode.window.showWarningMessage("Open the .tk file that is to be debugged, or name it as `program`.");
      return undefined;
    }
    out.program = "${file}";
  }
  if (typeof out.programId === "number") out.programId = [out.programId];
  return out;
}

async function debugFile(uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
  if (uri?.scheme !== "file") {
    void vscode.window.showWarningMessage("Tests are debugged of files that are stored on disk.");
    return;
  }
  await started(uri, { program: uri.fsPath });
}

/** Debugs a test to its end; the exit code, or undefined if it was stopped or did not start. */
export function debugTest(uri: vscode.Uri, test: string, testRun: vscode.TestRun): Promise<number | undefined> {
  return started(uri, { program: uri.fsPath, test }, { testRun });
}

/** Debugs a file or test to its end. */
async function started(
  uri: vscode.Uri,
  what: Chosen,
  options?: vscode.DebugSessionOptions,
): Promise<number | undefined> {
  const key = `${++sessions}`;
  chosen.set(key, what);
  const name = (what.test || basename(what.program)).replaceAll("$", "");
  let ended = (_code: number | undefined): void => undefined;
  const code = new Promise<number | undefined>((resolve) => (ended = resolve));
  const heard = vscode.debug.onDidTerminateDebugSession(({ id, configuration }) => {
    if ((configuration as Launch).chosen !== key) return;
    ended(codes.get(id));
    codes.delete(id);
  });
  try {
    const configuration: Launch = { type: "tk", request: "launch", name, chosen: key };
    const runs = await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(uri), configuration, options);
    return runs ? await code : undefined;
  } finally {
    heard.dispose();
    chosen.delete(key);
  }
}
