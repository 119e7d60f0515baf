// Machine code beside its source: PTX, SASS and tile IR of a kernel in a document that cannot be edited, where the lines
// that belong to the selected ones are highlighted, in both directions.
//
// It runs `tk build` into a temporary folder when somebody asks for it, and again after a file is saved while such a
// document is open. Guarantees that nothing is left in the folder of the source.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import type { Environment } from "./environment";
import { type Listing, listing, listings } from "./lines";

const SCHEME = "tk-code";

/** A form of machine code. */
type Form = "PTX" | "SASS" | "tile IR";

/** What is shown, and how it is made again. */
interface Asked {
  source: vscode.Uri;
  /** The kernel under the cursor; all of the file without one. */
  kernel: string | undefined;
  form: Form;
  target: string;
  /** Values of compile-time parameters that nothing else gives, `NAME=VALUE`. */
  set: string[];
}

interface View extends Asked {
  /** The kernel with its values and variant. */
  label: string;
  listing: Listing;
}

/** What the server gives to the command of a lens; see `lsp/src/server/look.rs`. */
interface OfLens {
  uri: string;
  kernel: string;
}

/** Why there is no machine code, for a person. */
class Refused extends Error {}

/** What the views need of each other. */
interface State {
  environment: Environment;
  /** By the address of the document. */
  views: Map<string, View>;
  changed: vscode.EventEmitter<vscode.Uri>;
  mark: vscode.TextEditorDecorationType;
}

/** Registers the commands, and what ties the lines. */
export function machineCode(environment: Environment): vscode.Disposable {
  const state: State = {
    environment,
    views: new Map(),
    changed: new vscode.EventEmitter(),
    mark: vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      backgroundColor: new vscode.ThemeColor("editor.wordHighlightStrongBackground"),
      overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.wordHighlightStrongForeground"),
    }),
  };
  const { views, changed, mark } = state;
  let refreshed = Promise.resolve();
  const command = (name: string, form: Form): vscode.Disposable =>
    vscode.commands.registerCommand(name, (of?: vscode.Uri | OfLens) => open(state, form, of));
  return vscode.Disposable.from(
    changed,
    mark,
    command("tk.openPtx", "PTX"),
    command("tk.openSass", "SASS"),
    command("tk.openTileIr", "tile IR"),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: (uri) =>
        views.get(uri.toString())?.listing.text ?? "// This is of an earlier session; the command makes it again.\n",
    }),
    vscode.workspace.onDidCloseTextDocument((document) => views.delete(document.uri.toString())),
    vscode.workspace.onDidSaveTextDocument((document) => {
      // One after the other, so that the last one counts.
      if (document.languageId === "tk") refreshed = refreshed.then(() => refresh(state));
    }),
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => tie(state, textEditor)),
  );
}

async function open(state: State, form: Form, of?: vscode.Uri | OfLens): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const lens = of !== undefined && "kernel" in of ? of : undefined;
  const source = lens === undefined ? ((of as vscode.Uri | undefined) ?? editor?.document.uri) : vscode.Uri.parse(lens.uri, true);
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === source?.toString()) ?? editor?.document;
  if (source?.scheme !== "file" || document?.languageId !== "tk") {
    void vscode.window.showWarningMessage("Machine code is shown of .tk files that are stored on disk.");
    return;
  }
  await state.environment.save();
  const cursor = editor?.document === document ? editor.selection.active.line : 0;
  const target = vscode.workspace.getConfiguration("tk").get<string>("costs.target", "sm_90a");
  const kernel = lens?.kernel ?? kernelAt(document.getText(), cursor);
  const asked: Asked = { source, kernel, form, target, set: [] };
  try {
    const built = await compiled(state.environment.program(), asked);
    if (built === undefined) return;
    const label = await pick([...built.keys()], form);
    const found = label === undefined ? undefined : built.get(label);
    if (label !== undefined && found !== undefined) await show(state, { ...asked, label, listing: found });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    void vscode.window.showErrorMessage(error.message);
  }
}

/** Builds with progress, and asks for the values of parameters that nothing gives. */
async function compiled(program: string, asked: Asked): Promise<Map<string, Listing> | undefined> {
  const title = `${asked.form} of ${basename(asked.source.fsPath)} for ${asked.target}`;
  const once = (): Thenable<Map<string, Listing> | undefined> =>
    vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      (_, token) => build(program, asked, token),
    );
  try {
    return await once();
  } catch (error) {
    const missing = error instanceof Refused ? Array.from(error.message.matchAll(/--set (\w+)=\.\./g), ([, name]) => name) : [];
    if (missing.length === 0) throw error;
    const prompt = `The values of ${missing.join(", ")}, which no \`export\` gives`;
    const typed = await vscode.window.showInputBox({ title, prompt, value: missing.map((name) => `${name}=`).join(" ") });
    if (!typed?.trim()) return undefined;
    asked.set = typed.trim().split(/\s+/);
    return once();
  }
}

/** The kernel that a line is in. */
export function kernelAt(text: string, line: number): string | undefined {
  const items = text
    .split("\n")
    .slice(0, line + 1)
    .map((start) => /^(?:@\w+(?:\([^)]*\))?\s+)*(kernel|fn|struct|const|test)\s+(\w+)?/.exec(start))
    .filter((item) => item !== null);
  const [, word, name] = items.at(-1) ?? [];
  return word === "kernel" ? name : undefined;
}

async function pick(labels: string[], form: Form): Promise<string | undefined> {
  if (labels.length < 2) return labels[0];
  return vscode.window.showQuickPick(labels, { placeHolder: `The kernel, with its values, of which ${form} is shown` });
}

async function show(state: State, view: View): Promise<void> {
  // `.sass` would be style sheets.
  const ending = { PTX: `.${assembly(view.target)}`, SASS: " SASS", "tile IR": ".tile" }[view.form];
  const path = `/${view.label.replaceAll("/", "∕")}${ending}`;
  const uri = vscode.Uri.from({ scheme: SCHEME, path, query: view.source.fsPath });
  state.views.set(uri.toString(), view);
  state.changed.fire(uri);
  const from = vscode.window.activeTextEditor;
  await vscode.window.showTextDocument(uri, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: false });
  if (from !== undefined) tie(state, from);
}

/** Makes what is shown again; what cannot be made stays as it was. */
async function refresh({ environment, views, changed }: State): Promise<void> {
  for (const [address, view] of [...views]) {
    let why: string | undefined;
    try {
      const built = await build(environment.program(), view);
      const made = built?.get(view.label);
      if (made === undefined) why = "the kernel is gone";
      else views.set(address, { ...view, listing: made });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      why = error.message;
    }
    if (why === undefined) changed.fire(vscode.Uri.parse(address, true));
    else vscode.window.setStatusBarMessage(`${view.form} is not up to date: ${why}`, 10_000);
  }
}

/** The form of `--emit` that is the assembly of a target. */
function assembly(target: string): string {
  return target.startsWith("gfx") ? "gcn" : "ptx";
}

/** The listings of a form, by kernel with values and variant; undefined if it was cancelled. */
async function build(
  program: string,
  { source, kernel, form, target, set }: Asked,
  token?: vscode.CancellationToken,
): Promise<Map<string, Listing> | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "tk-code-"));
  const run = (words: string[]): Promise<Line[]> => tk(program, words, dirname(source.fsPath), token);
  const file = kernel === undefined ? source.fsPath : `${source.fsPath}::${kernel}`;
  const of = [file, "--target", target, ...set.flatMap((value) => ["--set", value])];
  const emit = async (what: string): Promise<Map<string, Listing>> => {
    const lines = await run(["build", ...of, "--emit", what, "-o", folder]);
    const built = lines.filter((line) => line.kind === "built");
    return new Map(
      await Promise.all(
        built.map(async ({ kernel, variant, target, files }): Promise<[string, Listing]> => {
          const text = await readFile(join(folder, files?.[0] ?? ""), "utf8");
          return [what === "tile" ? `${kernel}` : `${kernel} ${variant} ${target}`, listing(text)];
        }),
      ),
    );
  };
  try {
    if (form === "PTX") return nonempty(await emit(assembly(target)));
    if (form === "SASS" && assembly(target) === "gcn") throw new Refused("SASS is code for NVIDIA; PTX shows the assembly for AMD.");
    try {
      // Line by line, these forms are only in the page that shows a bundle.
      const bundle = ["--emit", "bundle", "--listing", "--no-ptx", "-o", folder];
      await run(["build", ...of, ...bundle]);
      const name = basename(source.fsPath, ".tk");
      await run(["inspect", join(folder, `${name}.tkb`), "--html", join(folder, "page.html")]);
    } catch (error) {
      // Without an assembler (E1001), or with one that does not work (E1002), tile IR has no lines.
      if (form === "tile IR" && error instanceof Refused && /E100[12]/.test(error.message)) return nonempty(await emit("tile"));
      throw error;
    }
    const found = listings(await readFile(join(folder, "page.html"), "utf8"), form);
    if (form === "SASS" && found.size === 0) {
      throw new Refused("NVIDIA's disassembler `nvdisasm` is not found: `pip install nvidia-cuda-nvdisasm`, or set TK_NVDISASM.");
    }
    return nonempty(found);
  } catch (error) {
    if (token?.isCancellationRequested) return undefined;
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function nonempty(found: Map<string, Listing>): Map<string, Listing> {
  if (found.size === 0) throw new Refused("No kernel is built: an `export` says with which values.");
  return found;
}

/** A line of `--message-format json`; `docs/tool.md` describes it. */
interface Line {
  kind: string;
  code?: string;
  severity?: string;
  message?: string;
  notes?: string[];
  kernel?: string;
  variant?: string;
  target?: string;
  files?: string[];
}

/** Runs the command, and reads what it says. */
function tk(program: string, words: string[], cwd: string, token?: vscode.CancellationToken): Promise<Line[]> {
  return new Promise((resolve, reject) => {
    const options = { cwd, maxBuffer: 256 << 20 };
    const child = execFile(program, [...words, "--message-format", "json"], options, (error, output, errors) => {
      stop?.dispose();
      if (error === null) return resolve(lines(output));
      const wrong = lines(output).find((line) => line.severity === "error" || line.kind === "failure");
      const code = wrong?.code === undefined ? "" : `${wrong.code}: `;
      const why = wrong?.message === undefined ? errors.trim() || error.message : [code + wrong.message, ...(wrong.notes ?? [])].join("; ");
      reject(new Refused(why));
    });
    const stop = token?.onCancellationRequested(() => child.kill());
  });
}

function lines(output: string): Line[] {
  return output.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Line];
    } catch {
      return [];
    }
  });
}

/** Highlights in the other editors what belongs to the selected lines of one, and shows the first of it. */
function tie({ views, mark }: State, editor: vscode.TextEditor): void {
  const address = editor.document.uri.toString();
  const selected = editor.selections.flatMap(({ start, end }) =>
    Array.from({ length: end.line - start.line + 1 }, (_, i) => start.line + i),
  );
  const own = views.get(address);
  const others = vscode.window.visibleTextEditors.filter((other) => other !== editor);
  if (own !== undefined) {
    const places = selected.flatMap((line) => own.listing.places[line] ?? []);
    for (const other of others.filter((other) => other.document.languageId === "tk")) {
      const here = places.filter(({ file }) => path(own, file) === other.document.uri.fsPath);
      highlight(mark, other, [...new Set(here.map(({ line }) => line - 1))].sort((a, b) => a - b));
    }
    editor.setDecorations(mark, []);
  } else if (editor.document.languageId === "tk") {
    for (const other of others) {
      const view = views.get(other.document.uri.toString());
      if (view === undefined) continue;
      const belongs = (line: number): boolean => {
        const place = view.listing.places[line];
        if (place === undefined || path(view, place.file) !== editor.document.uri.fsPath) return false;
        return selected.includes(place.line - 1);
      };
      highlight(mark, other, [...view.listing.places.keys()].filter(belongs));
    }
    editor.setDecorations(mark, []);
  }
}

/** The path of a file that the compiler names. */
function path(view: View, file: string): string {
  return join(dirname(view.source.fsPath), file);
}

function highlight(mark: vscode.TextEditorDecorationType, editor: vscode.TextEditor, lines: number[]): void {
  const ranges = lines.map((line) => new vscode.Range(line, 0, line, 0));
  editor.setDecorations(mark, ranges);
  const [first] = ranges;
  if (first !== undefined) editor.revealRange(first, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
