// The heat map of a tile: a panel for each expression, drawn again at each stop of the debugger.
//
// `heatmap.html` is the page. Guarantees that names and values of a program are data of the page and never its markup,
// and that the page loads nothing.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import page from "./heatmap.html";

/** The answer of `tk dap` to `tk/tile`. */
export interface Tile {
  name: string;
  type: string;
  shape: number[];
  /** Of the finite numbers; null without any. */
  min: number | null;
  max: number | null;
  nan: number;
  infinite: number;
  /** Null where an element is no finite number. */
  numbers: (number | null)[];
  texts: string[];
}

/** What a panel shows: a tile, or why there is none. */
export type Shown = { tile: Tile } | { message: string };

/** A variable in the menu of the debugger. */
interface Chosen {
  container?: { evaluateName?: string };
  variable?: { name?: string; evaluateName?: string };
}

/** Where the debugger stands still. */
interface Place {
  session: vscode.DebugSession;
  frameId: number | undefined;
}

/** The page that shows a tile. */
export function html(name: string, shown: Shown): string {
  const data = JSON.stringify({ name, ...shown }).replaceAll("<", "\\u003c");
  // First the nonce: the data may hold any text.
  return page.replaceAll("{{nonce}}", randomBytes(16).toString("hex")).replace("{{data}}", () => data);
}

/** Registers the command that shows tiles. */
export function heatmaps(): vscode.Disposable {
  const panels = new Map<string, vscode.WebviewPanel>();
  const refresh = async (name: string, panel: vscode.WebviewPanel): Promise<void> => {
    const place = stopped();
    const shown = place === undefined ? { message: "The debugger does not stand still." } : await asked(name, place);
    if (panels.get(name) === panel) panel.webview.html = html(name, shown);
  };
  const show = async (chosen?: Chosen): Promise<void> => {
    if (stopped() === undefined) {
      void vscode.window.showWarningMessage("A tile is shown while the debugger of tk stands still.");
      return;
    }
    const name = expression(chosen) ?? (await asking());
    if (!name) return;
    const open = panels.get(name);
    if (open !== undefined) {
      open.reveal(undefined, true);
      return refresh(name, open);
    }
    const at = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel("tk.tile", name, at, { enableScripts: true, localResourceRoots: [] });
    panels.set(name, panel);
    panel.onDidDispose(() => panels.delete(name));
    await refresh(name, panel);
  };
  return vscode.Disposable.from(
    vscode.commands.registerCommand("tk.showTile", show),
    // After each stop, and when another frame is chosen.
    vscode.debug.onDidChangeActiveStackItem(() => {
      if (stopped() !== undefined) panels.forEach((panel, name) => void refresh(name, panel));
    }),
    { dispose: () => panels.forEach((panel) => panel.dispose()) },
  );
}

/** Where the debugger of this language stands still, if it does. */
function stopped(): Place | undefined {
  const item = vscode.debug.activeStackItem;
  if (item?.session.type !== "tk" || !("frameId" in item)) return undefined;
  return { session: item.session, frameId: item.frameId };
}

/** The expression of a variable that was chosen; a part of a struct has the name of the part alone. */
function expression(chosen?: Chosen): string | undefined {
  const { name, evaluateName } = chosen?.variable ?? {};
  const container = chosen?.container?.evaluateName;
  if (container && name && (evaluateName ?? name) === name) return `${container}.${name}`;
  return evaluateName ?? name;
}

function asking(): Thenable<string | undefined> {
  return vscode.window
    .showInputBox({ prompt: "A variable that holds a tile or view", placeHolder: "acc, or st.m for a part of a struct" })
    .then((text) => text?.trim());
}

async function asked(name: string, { session, frameId }: Place): Promise<Shown> {
  try {
    return { tile: (await session.customRequest("tk/tile", { expression: name, frameId })) as Tile };
  } catch (error) {
    return { message: error instanceof Error ? error.message : String(error) };
  }
}
