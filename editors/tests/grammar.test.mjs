// The tests of the TextMate grammar, run by the engine of VS Code. `TK_BLESS=1` writes the snapshot anew.
//
// What is coloured wrong on purpose: nothing. What a regular expression cannot know (which name is a builtin) is not
// asked here but of the semantic tokens of `tk lsp`.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import test from "node:test";
import { scopesOf } from "./grammar/engine.mjs";
import { compileTimeBrackets, lex, PRIMITIVES } from "./grammar/lexer.mjs";
import { grammar } from "../vscode/grammar.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const list = (folder, ending) =>
  readdirSync(new URL(folder, root))
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}${name}`)
    .sort();

const sources = [...list("examples/", ".tk"), ...list("stdlib/", ".tk"), ...list("stdlib/nn/", ".tk")].map((path) => ({ path, text: read(path) }));
const chapters = [...list("spec/", ".md"), ...list("spec/errors/", ".md")].map((path) => ({ path, text: read(path) }));

/** The `tk` blocks of a Markdown text, with the position at which each begins. */
function blocks({ path, text }) {
  return [...text.matchAll(/^```tk\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length + 1;
    return { path: `${path}:${line}`, text: match[1], at: match.index + "```tk\n".length };
  });
}

const scoped = (scopes, prefix) => scopes.some((scope) => scope === prefix || scope.startsWith(`${prefix}.`));

/** The pieces that a range touches. Pieces are in order and disjoint, so a binary search finds the first. */
function piecesOf(pieces, { start, end }) {
  let [first, last] = [0, pieces.length];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (pieces[middle].end > start) last = middle;
    else first = middle + 1;
  }
  while (last < pieces.length && pieces[last].start < end) last++;
  return pieces.slice(first, last);
}

/** Asks for the scopes of a range: `all` must be on every piece of it, `none` on no piece. */
function expectScopes(where, pieces, token, { all, none = [] }) {
  const covered = piecesOf(pieces, token);
  assert.ok(covered.length > 0, `${where}: \`${token.text}\` has no scope`);
  for (const piece of covered) {
    const shown = `${where}:${piece.line}: \`${piece.text}\` of \`${token.text}\` has ${piece.scopes.join(" ")}`;
    assert.ok(all.some((scope) => scoped(piece.scopes, scope)), `${shown}, not ${all.join(" or ")}`);
    for (const scope of none) assert.ok(!scoped(piece.scopes, scope), `${shown}: ${scope} is wrong there`);
  }
}

const WORDS = ["keyword", "storage", "constant.language"];
const NO_CODE = [...WORDS, "support", "entity", "variable", "constant.numeric", "invalid.illegal.number"];
const EXPECTED = {
  doc: { all: ["comment.line.documentation"], none: ["string", ...NO_CODE] },
  comment: { all: ["comment.line.double-slash"], none: ["string", ...NO_CODE] },
  string: { all: ["string.quoted.double"], none: ["comment", ...NO_CODE] },
  openString: { all: ["string.quoted.double"], none: ["comment", ...NO_CODE] },
  number: { all: ["constant.numeric"], none: ["comment", "string", "invalid"] },
  badNumber: { all: ["invalid.illegal.number"], none: ["comment", "string"] },
  keyword: { all: WORDS, none: ["comment", "string", "variable", "entity"] },
};

/** Compares the scopes of a text with its tokens. */
function compare(path, text, pieces) {
  const tokens = lex(text);
  tokens.forEach((token, i) => {
    const before = tokens[i - 1];
    if (EXPECTED[token.kind]) {
      expectScopes(path, pieces, token, EXPECTED[token.kind]);
    } else if (token.kind === "name" && before?.text === "@" && before.end === token.start) {
      expectScopes(path, pieces, { ...token, start: before.start }, { all: ["meta.attribute"] });
    } else if (token.kind === "name" && PRIMITIVES.has(token.text) && before?.text !== ".") {
      expectScopes(path, pieces, token, { all: ["support.type.primitive"], none: ["comment", "string", "keyword"] });
    } else if (token.kind === "name") {
      expectScopes(path, pieces, token, {
        all: ["variable", "entity", "support", "keyword.other", "constant.language.float"],
        none: ["comment", "string", "storage", "keyword.control", "keyword.operator"],
      });
    } else if (["path", "other"].includes(token.kind)) {
      const punctuation = tokens[i + 1]?.start === token.end && "([{}])".includes(token.text);
      expectScopes(path, pieces, token, {
        all: ["punctuation", "keyword.operator", "meta", "source"],
        none: ["comment", "string", ...(punctuation ? WORDS : [])],
      });
    }
  });
}

test("the grammar in the package is the one that grammar.mjs makes", () => {
  assert.equal(read("editors/vscode/syntaxes/tk.tmLanguage.json"), grammar);
});

test("a sample has the scopes of the snapshot", async () => {
  const text = read("editors/tests/grammar/sample.tk");
  const { pieces } = await scopesOf(text);
  const shown = text
    .split("\n")
    .map((line, i) => {
      const found = pieces.filter((piece) => piece.line === i + 1 && piece.text.trim() !== "");
      const scopes = (piece) => piece.scopes.join(" ").replaceAll(".tk", "");
      return [line, ...found.map((piece) => `  ${piece.text.trim().padEnd(16)} ${scopes(piece)}`)].join("\n");
    })
    .join("\n");
  const snapshot = new URL("editors/tests/grammar/sample.scopes", root);
  if (process.env.TK_BLESS) writeFileSync(snapshot, shown);
  assert.equal(shown, readFileSync(snapshot, "utf8"));
});

test("comments, strings, numbers, words, types and attributes of every source are what they are", async () => {
  for (const { path, text } of sources) compare(path, text, (await scopesOf(text)).pieces);
});

test("the same in every block of the specification, mistakes included", async () => {
  const found = chapters.flatMap(blocks);
  assert.ok(found.length > 300, `only ${found.length} blocks`);
  for (const { path, text } of found) {
    if (lex(text).some((token) => token.kind === "badComment")) continue;
    compare(path, text, (await scopesOf(text)).pieces);
  }
});

test("brackets of compile-time parameters and arguments look different from indexing", async () => {
  let [compileTime, indexing] = [0, 0];
  for (const { path, text } of sources) {
    const tokens = lex(text);
    const { pieces } = await scopesOf(text);
    const pairs = compileTimeBrackets(tokens);
    const known = new Set(pairs.flat());
    for (const token of tokens.filter((token) => "[]".includes(token.text))) {
      const expected = known.has(token) ? "punctuation.definition.compile-time" : "punctuation.brackets.square";
      expectScopes(path, pieces, token, { all: [expected] });
      known.has(token) ? compileTime++ : indexing++;
    }
  }
  assert.ok(compileTime > 300 && indexing > 700, `${compileTime} and ${indexing} brackets`);
});

test("every text ends outside of all brackets", async () => {
  for (const { path, text } of sources) {
    const { pieces } = await scopesOf(`${text}\nsentinel`);
    assert.deepEqual(pieces.at(-1), { ...pieces.at(-1), text: "sentinel", scopes: ["variable.other.tk"] }, path);
  }
});

test("what was not closed ends at the next item", async () => {
  const whole = "kernel add(x: view[f32, 1]) {\n    store(x, [1, 2]);\n}\n";
  for (let cut = 0; cut < whole.length; cut++) {
    const text = `${whole.slice(0, cut)}\nkernel next() { }\nsentinel`;
    const { pieces } = await scopesOf(text);
    const name = pieces.find((piece) => piece.text === "next");
    const open = `after ${JSON.stringify(whole.slice(0, cut))}`;
    assert.deepEqual(name.scopes, ["meta.function.tk", "entity.name.function.tk"], open);
    assert.deepEqual(pieces.at(-1).scopes, ["variable.other.tk"], open);
  }
});

test("Markdown: a fenced block has the scopes of a file", async () => {
  let count = 0;
  for (const chapter of chapters) {
    const { pieces } = await scopesOf(chapter.text, "text.html.markdown");
    for (const block of blocks(chapter)) {
      const end = block.at + block.text.length;
      const inside = pieces.filter((piece) => piece.start >= block.at && piece.end <= end);
      assert.ok(inside.every((piece) => piece.scopes.includes("meta.embedded.block.tk")), block.path);
      const own = (scopes) => scopes.filter((scope) => scope.endsWith(".tk") && scope !== "meta.embedded.block.tk");
      const seen = (list) => list.filter((piece) => piece.text.trim());
      const names = (list) => seen(list).map((piece) => [piece.text.trim(), own(piece.scopes)]);
      assert.deepEqual(names(inside), names((await scopesOf(block.text)).pieces), block.path);
      count++;
    }
    const outside = pieces.filter((piece) => piece.scopes.includes("meta.embedded.block.tk")).length;
    assert.equal(outside > 0, blocks(chapter).length > 0, chapter.path);
  }
  assert.ok(count > 300, `only ${count} blocks`);
});

/** What each line takes at best: other programs on the machine make single runs slow. */
async function bestTimes(text) {
  const runs = [];
  for (let i = 0; i < 5; i++) runs.push((await scopesOf(text)).times);
  return runs[0].map((_, line) => Math.min(...runs.map((run) => run[line])));
}

// Lines take well below a millisecond.
test("no line of the sources takes longer than 5 ms", async () => {
  const times = await bestTimes(sources.map((source) => source.text).join("\n"));
  const slow = times.map((ms, i) => ({ line: i + 1, ms })).filter(({ ms }) => ms > 5);
  assert.deepEqual(slow, []);
});

// Nesting this deep costs the engine itself up to 100 ms; a pattern that tries all ways to read a line does not end.
test("long lines of whatever opens something do not hang an editor", async () => {
  const brackets = ["[", "]", "(", "{", "a[", "a.b[", "a[b = ", "tile[", "fn(", "kernel a["];
  const hostile = [...brackets, '"', '"\\', "@fast ", "a::", "::", "let a: ", "0x"];
  for (const part of hostile) {
    const [best] = await bestTimes(part.repeat(2000 / part.length));
    assert.ok(best <= 500, `2000 characters of ${part}: ${best} ms`);
  }
});
