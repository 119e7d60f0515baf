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

/** A message of the debug adapter protocol. */
interface Message {
  command?: string;
  event?: string;
  body?: { exitCode?: number; category?: string; output?: string };
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
/** How a test has ended that was debugged. */
export interface Ended {
  how: "passed" | "failed" | "stopped" | "not started";
  /** The messages of its failure. */
  output: string;
}

/** How the programs of the sessions end, by session. */
const ends = new Map<string, Ended>();

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
      createDebugAdapterTracker: ({ id }) => {
        // Until it ends by itself, it was stopped.
        const end: Ended = { how: "stopped", output: "" };
        ends.set(id, end);
        let stopped = false;
        return {
          onWillReceiveMessage: ({ command }: Message) => {
            stopped ||= command === "terminate" || command === "disconnect";
          },
          onDidSendMessage: ({ event, body }: Message) => {
            if (event === "exited" && !stopped) end.how = body?.exitCode === 0 ? "passed" : "failed";
            if (event === "output" && body?.category === "stderr") end.output += body.output ?? "";
          },
        };
      },
    }),
    vscode.debug.onDidTerminateDebugSession(({ id }) => {
      // After those who wait for its end.
      setTimeout(() => ends.delete(id));
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

/** Debugs a test of a run to its end. */
export function debugTest(
  uri: vscode.Uri,
  test: string,
  testRun: vscode.TestRun,
  token: vscode.CancellationToken,
): Promise<Ended> {
  return started(uri, { program: uri.fsPath, test }, { testRun }, token);
}

/** Debugs a file or test to its end. */
async function started(
  uri: vscode.Uri,
  what: Chosen,
  options?: vscode.DebugSessionOptions,
  token?: vscode.CancellationToken,
): Promise<Ended> {
  const key = `${++sessions}`;
  chosen.set(key, what);
  const name = (what.test || basename(what.program)).replaceAll("$", "");
  const nothing: Ended = { how: "not started", output: "" };
  let over = (_end: Ended): void => undefined;
  const end = new Promise<Ended>((resolve) => (over = resolve));
  let session: vscode.DebugSession | undefined;
  const ours = ({ configuration }: vscode.DebugSession): boolean => (configuration as Launch).chosen === key;
  const heard = vscode.Disposable.from(
    vscode.debug.onDidStartDebugSession((begun) => {
      if (ours(begun)) session = begun;
    }),
    vscode.debug.onDidTerminateDebugSession((ended) => {
      if (ours(ended)) over(ends.get(ended.id) ?? nothing);
    }),
    // Stopping the debugger of a test run only cancels the run: the session is ended here.
    token?.onCancellationRequested(() => session && vscode.debug.stopDebugging(session)) ?? { dispose: () => undefined },
  );
  try {
    const configuration: Launch = { type: "tk", request: "launch", name, chosen: key };
    const runs = await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(uri), configuration, options);
    return runs ? await end : nothing;
  } finally {
    heard.dispose();
    chosen.delete(key);
  }
}
