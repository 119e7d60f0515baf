// A second reading of the language's tokens, after `lang/syntax/src/token.rs`: what the grammar's colours are
// compared with. Guarantees pieces `{ kind, text, start, end }` in order, where `kind` is one of those in `KINDS`.

export const KEYWORDS = new Set(
  "as break const continue else false fn for if in kernel let mut None return struct true use while".split(" "),
);
export const PRIMITIVES = new Set(
  "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 f8e4m3fnuz f8e5m2fnuz e2m1 e8m0".split(" "),
);

const NAME = String.raw`[\p{XIDS}_]\p{XIDC}*`;
const KINDS = [
  ["doc", String.raw`\/\/\/(?!\/)[^\n]*`],
  ["comment", String.raw`\/\/[^\n]*`],
  ["badComment", String.raw`\/\*(?:[^*]|\*+[^*/])*\*+\/`],
  ["string", String.raw`"(?:[^"\\\n]|\\[^\n])*"`],
  ["openString", String.raw`"(?:[^"\\\n]|\\[^\n])*`],
  ["number", String.raw`0[xX][0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*(?!\p{XIDC})`],
  ["number", String.raw`0[bB][01_]*[01][01_]*(?!\p{XIDC})`],
  ["number", String.raw`0[oO][0-7_]*[0-7][0-7_]*(?!\p{XIDC})`],
  ["number", String.raw`[0-9][0-9_]*\.[0-9][0-9_]*(?:[eE][+-]?[0-9][0-9_]*)?(?!\p{XIDC})`],
  ["number", String.raw`[0-9][0-9_]*(?:[eE][+-]?[0-9][0-9_]*)?(?!\p{XIDC})`],
  ["badNumber", String.raw`[0-9]\p{XIDC}*`],
  ["name", NAME],
  ["path", "::"],
  ["other", String.raw`[^\s]`],
];
const TOKEN = new RegExp(KINDS.map(([, text]) => `(${text})`).join("|"), "gu");

/** The tokens of a text; a keyword has the kind `keyword`. */
export function lex(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)][0];
    const word = kind === "name" && KEYWORDS.has(match[0]) ? "keyword" : kind;
    found.push({ kind: word, text: match[0], start: match.index, end: match.index + match[0].length });
  }
  return found;
}

const ITEM_WORDS = new Set(["kernel", "fn", "struct", "export"]);

/**
 * The square brackets of compile-time parameters and arguments, by the rules of the language: after the name of a
 * definition or an `export`, after a type (structs are CamelCase), with a named argument, and before a call.
 */
export function compileTimeBrackets(tokens) {
  const code = tokens.filter((token) => !["doc", "comment"].includes(token.kind));
  const [open, found] = [[], []];
  code.forEach((token, i) => {
    if ("([{".includes(token.text)) open.push(i);
    if (!")]}".includes(token.text)) return;
    const begin = open.pop();
    if (token.text !== "]" || begin === undefined) return;
    const [name, before] = [code[begin - 1], code[begin - 2]];
    if (name?.kind !== "name" || name.end !== code[begin].start) return;
    const named = code[begin + 1].kind === "name" && code[begin + 2].text === "=" && code[begin + 3].text !== "=";
    const member = before?.text === ".";
    if (
      ITEM_WORDS.has(before?.text) ||
      (!member && (["tile", "view"].includes(name.text) || /^_*[A-Z].*[a-z]/.test(name.text))) ||
      named ||
      (code[i + 1]?.text === "(" && code[i + 1].start === token.end)
    ) {
      found.push([code[begin], token]);
    }
  });
  return found;
}
