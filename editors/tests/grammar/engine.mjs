// Computes the scopes of a text, with the engine that VS Code uses.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

const require = createRequire(import.meta.url);
const ours = (name) => new URL(`../../vscode/syntaxes/${name}`, import.meta.url);
const GRAMMARS = {
  "source.tk": ours("tk.tmLanguage.json"),
  "markdown.tk.codeblock": ours("tk.markdown.tmLanguage.json"),
  "text.html.markdown": require.resolve("tm-grammars/grammars/markdown.json"),
};

await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")));

const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  // Languages that Markdown embeds, HTML among them, are not there.
  loadGrammar: async (scope) =>
    GRAMMARS[scope] ? textmate.parseRawGrammar(readFileSync(GRAMMARS[scope], "utf8"), "grammar.json") : null,
  getInjections: (scope) => (scope === "text.html.markdown" ? ["markdown.tk.codeblock"] : undefined),
});

/**
 * Splits a text into pieces `{ line, start, end, text, scopes }`; `start` and `end` are positions in the text, without
 * the scope of the whole language. `times` has the milliseconds of each line.
 */
export async function scopesOf(text, scope = "source.tk") {
  const language = await registry.loadGrammar(scope);
  const pieces = [];
  const times = [];
  let [stack, at] = [textmate.INITIAL, 0];
  text.split("\n").forEach((line, number) => {
    const begin = performance.now();
    const result = language.tokenizeLine(line, stack);
    times.push(performance.now() - begin);
    if (result.stoppedEarly) throw new Error(`the engine gave up in line ${number + 1}`);
    stack = result.ruleStack;
    for (const { startIndex, endIndex, scopes } of result.tokens) {
      const end = Math.min(endIndex, line.length);
      if (startIndex < end) {
        const piece = { line: number + 1, start: at + startIndex, end: at + end, text: line.slice(startIndex, end) };
        pieces.push({ ...piece, scopes: scopes.slice(1) });
      }
    }
    at += line.length + 1;
  });
  return { pieces, times };
}
