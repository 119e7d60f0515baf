// The packed extension in a real Visual Studio Code: the server of code-server, used by keyboard and mouse in Chromium.
// Assumes what `install` fetches, `vscode/tk.vsix`, Chromium, and the command TK. Each test leaves a picture in
// `out/vscode` of the repository.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const here = fileURLToPath(new URL(".", import.meta.url));
const pictures = join(here, "../../../out/vscode");
const main = join(here, "node_modules/code-server/lib/vscode/out/server-main.js");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const settings = {
  "tk.path": process.env.TK,
  "tk.costs.lens": true,
  "tk.costs.hints": true,
  "editor.inlayHints.fontSize": 11,
  "editor.minimap.enabled": false,
  "editor.accessibilitySupport": "off",
  "telemetry.telemetryLevel": "off",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

// For machines that are several times slower than the ones that the tests were written on.
const patience = 60_000;

const folder = mkdtempSync(join(tmpdir(), "tk-vscode-"));
const workspace = join(folder, "workspace");
let server, browser, page;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  cpSync(join(here, "workspace"), workspace, { recursive: true });
  mkdirSync(join(folder, "data/Machine"), { recursive: true });
  set({});
  const places = ["--server-data-dir", folder, "--user-data-dir", join(folder, "data"), "--extensions-dir", join(folder, "extensions")];
  execFileSync(process.execPath, [main, ...places, "--install-extension", join(here, "../../vscode/tk.vsix")], { stdio: "ignore" });
  const words = [...places, "--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--accept-server-license-terms"];
  server = spawn(process.execPath, [main, ...words], { stdio: ["ignore", "pipe", "ignore"] });
  const port = await new Promise((resolve, reject) => {
    let said = "";
    server.on("exit", () => reject(new Error(`code-server has ended: ${said}`)));
    server.stdout.on("data", (data) => {
      said += data;
      const [, port] = /listening on (\d+)/.exec(said) ?? [];
      if (port !== undefined) resolve(port);
    });
  });
  browser = await chromium.launch({ executablePath: browserPath, args: flags });
  page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(patience);
  await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`, { waitUntil: "domcontentloaded" });
  const trust = page.getByRole("button", { name: "Yes, I trust the authors" });
  await trust.waitFor();
  await repeat("the end of the question", () => trust.click({ timeout: 5000 }), () => trust.isHidden());
});

after(async () => {
  await browser?.close();
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs what a test does, and keeps a picture of the end, also of a bad one. */
function shows(name, steps) {
  test(name, { timeout: 4 * patience }, async () => {
    try {
      await steps();
    } finally {
      await page.screenshot({ path: join(pictures, `${name.replaceAll(/\W+/g, "-")}.png`) });
    }
  });
}

const picker = () => page.locator(".quick-input-widget");

/** Does something until what it leads to is the case: an editor that is busy loses keys and clicks. */
async function repeat(what, step, is) {
  for (const end = Date.now() + patience; Date.now() < end; ) {
    await step().catch(() => {});
    for (const again = Date.now() + 10_000; Date.now() < again; await pause()) {
      if (await is()) return;
    }
  }
  assert.fail(`did all for ${what} in vain:\n${await painted()}`);
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 100));

/** Presses a key until what it opens is there. */
const press = (key, opens) => repeat(`what ${key} opens`, () => page.keyboard.press(key), () => opens.isVisible());

/** Presses a key until what it closes has gone. */
const close = (key, closes) => repeat(`what ${key} closes`, () => page.keyboard.press(key), async () => !(await closes.isVisible()));

/** Opens the picker by a key and writes into it. */
async function pick(key, text) {
  const input = picker().locator("input.input");
  await press(key, input);
  await input.fill(text);
  await until(`the text ${text}`, async () => (await input.inputValue()) === text);
}

/** Presses Enter in the picker until it has another text or is closed. A key that is late does not get into the editor. */
async function enter() {
  const input = picker().locator("input.input");
  const text = await input.inputValue();
  const changed = async () => (await input.isHidden()) || (await input.inputValue({ timeout: 1000 }).catch(() => "")) !== text;
  await repeat("what the picker does", () => input.press("Enter", { timeout: 1000 }), changed);
}

/** Runs a command of the palette. */
async function command(title) {
  await pick("F1", `>${title}`);
  await picker().locator(".monaco-list-row.focused", { hasText: title }).waitFor();
  await enter();
}

/** Opens a file of the workspace, in the editor alone. */
async function open(name) {
  await pick("Control+p", name);
  await picker().locator(".monaco-list-row.focused", { hasText: name }).waitFor();
  await enter();
  await page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
}

/** Puts the cursor on a line, counted from 1. */
async function go(line, column = 1) {
  await pick("Control+g", `:${line}:${column}`);
  await enter();
  await page.getByText(`Ln ${line}, Col ${column}`, { exact: true }).waitFor();
  await page.locator(".monaco-editor.focused").waitFor();
}

/** The text of the editors that are visible, as it is painted, hints among it. */
async function painted() {
  const lines = await page.locator(".monaco-editor .view-line").evaluateAll((all) =>
    all.map((line) => ({ top: line.getBoundingClientRect().top, text: line.textContent })),
  );
  const sorted = lines.sort((a, b) => a.top - b.top).map(({ text }) => text);
  return sorted.join("\n").replaceAll("\u00a0", " ");
}

/** Waits until something is the case. */
async function until(what, is) {
  for (const end = Date.now() + patience; Date.now() < end; await pause()) {
    if (await is()) return;
  }
  assert.fail(`waited for ${what} in vain:\n${await painted()}`);
}

/** The lines of an editor that the extension highlights. */
async function marked(editor) {
  return editor.evaluate((all) => {
    const tops = new Set(Array.from(all.querySelectorAll('[class*="TextEditorDecorationType"]'), (mark) => mark.parentElement.style.top));
    return Array.from(all.querySelectorAll(".view-line")).filter((line) => tops.has(line.style.top)).map((line) => line.textContent.replaceAll("\u00a0", " "));
  });
}

const paints = (text) => until(text, async () => (await painted()).includes(text));

/** The visible lines, each with the color of every character. */
async function colors() {
  const lines = await page.locator(".monaco-editor .view-line").evaluateAll((all) =>
    all.map((line) => ({
      top: parseFloat(line.style.top),
      letters: Array.from(line.querySelectorAll("span > span"), (span) => {
        const { color } = getComputedStyle(span);
        return Array.from(span.textContent, (letter) => [letter, color]);
      }).flat(),
    })),
  );
  return lines.sort((a, b) => a.top - b.top).flatMap(({ letters }) => [...letters, ["\n", ""]]);
}

/** Changes the settings. */
function set(more) {
  writeFileSync(join(folder, "data/Machine/settings.json"), JSON.stringify({ ...settings, ...more }));
}

shows("colors that stay when the server knows the names", async () => {
  const quiet = { "editor.inlayHints.enabled": "off", "editor.codeLens": false };
  set({ ...quiet, "[tk]": { "editor.semanticHighlighting.enabled": false } });
  await open("softmax.tk");
  await paints("kernel softmax[BLOCK: i32 = 8](");
  // The grammar is loaded after the text, and colors what is visible piece by piece.
  let grammar = [];
  const isColored = (all) => all.length > 600 && new Set(all.map(([, color]) => color)).size > 4;
  const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  await until("the colors of the grammar", async () => {
    const before = grammar;
    grammar = await colors();
    return isColored(grammar) && isSame(before, grammar);
  });
  // The line under them tells that the tokens of the server have come.
  const underlined = { ...quiet, "editor.semanticTokenColorCustomizations": { enabled: true, rules: { "*": { underline: true } } } };
  const line = page.locator(".view-line", { hasText: "assert_close" }).last().locator(".mtku").first();
  await repeat("the settings", async () => set(underlined), () => line.isVisible());
  const named = await colors();
  const text = (all) => all.map(([letter]) => letter).join("");
  assert.equal(text(named), text(grammar));
  const changed = grammar.map(([letter, color], i) => (color === named[i][1] ? " " : letter));
  assert.equal(changed.join("").trim().split(/\s+/).join(" "), "");
  // A watcher of files may lose a change.
  await repeat("the settings", async () => set({}), async () => (await page.locator(".view-line .mtku").count()) === 0);
});

shows("an error and its fix", async () => {
  await open("scale.tk");
  await page.locator(".squiggly-error").first().waitFor();
  await press("F8", page.locator(".zone-widget", { hasText: "cannot find `factor`" }));
  await page.screenshot({ path: join(pictures, "an-error.png") });
  await close("Escape", page.locator(".zone-widget"));
  const fix = page.locator(".action-widget .monaco-list-row", { hasText: "use `factr`" }).first();
  await press("Control+.", fix);
  await close("Enter", page.locator(".action-widget"));
  await paints("y, factr);");
  await page.locator(".squiggly-error").waitFor({ state: "detached" });
});

shows("completion of a member", async () => {
  await go(7, 1);
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByText("Ln 8, Col 5", { exact: true }).waitFor();
  await page.keyboard.type("let c = y.");
  const suggestions = page.locator(".suggest-widget.visible .monaco-list-row");
  const shape = suggestions.filter({ hasText: "shape" }).first();
  await shape.waitFor({ timeout: 10_000 }).catch(() => press("Control+Space", shape));
  await page.screenshot({ path: join(pictures, "members.png") });
  await page.keyboard.type("sh");
  const has = async (text) => (await painted()).includes(text);
  const chosen = page.locator(".suggest-widget.visible .monaco-list-row.focused", { hasText: "shape" });
  await repeat("the member", () => chosen.click({ timeout: 5000 }), () => has("y.shape"));
  // Keys that come before the list is closed are lost.
  await page.locator(".monaco-editor.focused").waitFor();
  await repeat("the position", async () => (await has("y.shape[")) || (await page.keyboard.type("[0];")), () => has("let c: i32 = y.shape[0];"));
});

shows("hints and lenses", async () => {
  // Types, shares of the time, what the compiler expects, tests.
  await paints("let a: tile[T, BLOCK] = x.load(");
  await paints("% of ");
  const lens = page.locator(".codelens-decoration");
  await lens.filter({ hasText: /T=f16, BLOCK=256: \d+ registers/ }).first().waitFor();
  await lens.filter({ hasText: "Run test" }).first().waitFor();
  await close("Control+s", page.locator(".tab.dirty"));
});

shows("PTX beside with lines tied both ways", async () => {
  await go(6);
  // A lens that is made anew loses a click.
  const lens = page.locator(".codelens-decoration a", { hasText: /^PTX$/ }).first();
  const instance = picker().locator(".monaco-list-row", { hasText: "scale[T=f16, BLOCK=256] aligned sm_90a" });
  await lens.waitFor();
  await repeat("the instances", () => lens.click({ timeout: 5000 }), () => instance.isVisible());
  await page.screenshot({ path: join(pictures, "instances.png") });
  await instance.click();
  await page.locator(".tab", { hasText: ".ptx" }).waitFor();
  const [source, ptx] = [0, 1].map((group) => page.locator(".editor-group-container").nth(group));
  await until("the product", async () => /^\s*mul.*f32/m.test((await marked(ptx)).join("\n")));
  assert(!(await marked(ptx)).join("\n").includes("ld.global"));
  const load = ptx.locator(".view-line", { hasText: "ld.global" }).first();
  const isLoad = (lines) => lines.length === 1 && lines[0].includes("x.load(");
  await repeat("the load", () => load.click({ timeout: 5000 }), async () => isLoad(await marked(source)));
});

shows("the Test Explorer with a failing test", async () => {
  await command("View: Close All Editors");
  await open("softmax.tk");
  await page.locator(".testing-run-glyph").nth(1).waitFor();
  await command("Test: Run Tests in Current File");
  const message = "values are not close: nan instead of 1.0 at [0]";
  await page.getByText(message).first().waitFor();
  await command("Testing: Focus on Test Explorer View");
  const tests = page.locator(".test-explorer .monaco-list-row");
  const file = tests.filter({ hasText: "softmax.tk" });
  await file.waitFor();
  await repeat("the tests of the file", () => file.locator(".monaco-tl-twistie.collapsed").click({ timeout: 5000 }), () => tests.filter({ hasText: "small values" }).isVisible());
  await tests.filter({ hasText: "large values" }).locator(".codicon-testing-failed-icon").waitFor();
  await tests.filter({ hasText: "small values" }).locator(".codicon-testing-passed-icon").waitFor();
});

shows("a debug session that stops on a NaN", async () => {
  // The first session brings the debugger's exceptions into the view of breakpoints.
  const breakpoint = page.locator(".glyph-margin-widgets .codicon-debug-breakpoint, .glyph-margin-widgets .codicon-debug-stackframe-dot").first();
  await go(7);
  await press("F9", breakpoint);
  await press("F5", page.locator(".debug-toolbar"));
  await page.locator(".debug-top-stack-frame-line").waitFor();
  const nan = page.locator(".debug-breakpoints .monaco-list-row", { hasText: "NaN" }).locator("input[type=checkbox]");
  await nan.waitFor();
  await repeat("the exception", () => nan.check({ timeout: 5000 }), () => nan.isChecked());
  await page.screenshot({ path: join(pictures, "a-breakpoint.png") });
  await go(7);
  await close("F9", breakpoint);
  await press("F5", page.locator(".exception-widget", { hasText: "becomes NaN" }));
  const stack = page.locator(".debug-call-stack");
  await stack.getByText('test "large values"').waitFor();
  await page.locator(".debug-variables .monaco-list-row", { hasText: /^e\b.*inf/ }).waitFor();
  await command("tk: Show Tile");
  await picker().locator("input.input").fill("e");
  await enter();
  const frames = async () => Promise.all(page.frames().map((frame) => frame.locator("body").innerText({ timeout: 500 }).catch(() => "")));
  await until("the picture of `e`", async () => (await frames()).some((text) => /\be\b.*f32\[8\]/s.test(text)));
});
