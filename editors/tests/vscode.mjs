// The packed extension for VS Code, `vscode/tk.vsix`, with stand-ins for VS Code itself.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const unpacked = mkdtempSync(join(tmpdir(), "tk-vsix-"));
after(() => rmSync(unpacked, { recursive: true, force: true }));
execFileSync("python3", ["-m", "zipfile", "-e", join(root, "editors/vscode/tk.vsix"), unpacked]);
/** The folder of the extension. */
export const inside = join(unpacked, "extension");
export const manifest = JSON.parse(readFileSync(join(inside, "package.json"), "utf8"));

/** What the sources of the extension name of VS Code. */
const sources = readdirSync(join(root, "editors/vscode/src")).map((name) => readFileSync(join(root, "editors/vscode/src", name), "utf8"));
const used = sources.flatMap((text) => Array.from(text.matchAll(/\bvscode\.(\w+)/g), ([, name]) => name));

/** Anything of VS Code that a test does not play itself: a function, a class and an object at once. */
function anything(known = function () {}) {
  return new Proxy(known, {
    get: (target, name) => (name in target || typeof name === "symbol" ? target[name] : (target[name] = anything())),
  });
}

/** Loads the extension with a VS Code of which this is known. */
export function loaded(known) {
  const plain = (value) => Object.getPrototypeOf(value) === Object.prototype;
  const filled = Object.entries(known).map(([k, v]) => [k, plain(v) ? anything(v) : v]);
  const vscode = Object.assign(anything(), Object.fromEntries(filled));
  // The bundle copies what is there when it is loaded.
  for (const name of used) vscode[name];
  const require = createRequire(join(inside, "test.cjs"));
  const load = Module._load;
  Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
  try {
    delete require.cache[join(inside, manifest.main)];
    return require(join(inside, manifest.main));
  } finally {
    Module._load = load;
  }
}
