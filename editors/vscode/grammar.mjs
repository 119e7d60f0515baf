// The TextMate grammar of the language; `npm run grammar` writes it to `syntaxes/tk.tmLanguage.json`, and a test
// compares the two. May assume nothing: colours are needed most while a text is wrong. Guarantees that a comment ends
// with its line, a string too, and that a bracket that was not closed colours nothing after the next item.
//
// What needs knowledge of names (is this a builtin?) is left to the semantic tokens of `tk lsp`.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const NAME = String.raw`[[:alpha:]_]\w*`;
const NO_KEYWORD = String.raw`(?!(?:as|break|const|continue|else|false|fn|for|if|in|kernel|let|mut|None|return|struct|true|use|while)\b)`;
const FREE = String.raw`(?<![.\w])`; // not a member, not inside of a name
const CLAUSE = String.raw`\b(?:grid|launch|tune|require|prefer|alias|scratch)\b(?=\s*\()`;
const ITEM_WORDS = String.raw`(?:@\w+\s+)*(?:(?:use|const|struct|fn|kernel)\b|export\s+[[:alpha:]_]|test\s*")`;
// An item in the first column ends whatever is open. Between a signature and its body that is so in any column.
const ITEM = `^(?=${ITEM_WORDS})`;
const ITEM_OR_METHOD = String.raw`^(?=\s*${ITEM_WORDS})`;
// Text in which square brackets are in balance. Possessive, so that long lines take linear time.
const BALANCED = String.raw`(?<nest>[^\[\]"]++|\[\g<nest>*+\])*+`;
const NAMED = String.raw`\s*${NAME}\s*=(?!=)`;

// `captures("a", "b")` names groups 1 and 2; `captures0("a")` names all of the match.
const captures = (...names) => Object.fromEntries(names.map((name, i) => [i + 1, { name: `${name}.tk` }]));
const captures0 = (name) => ({ 0: { name: `${name}.tk` } });
const include = (...names) => names.map((name) => ({ include: `#${name}` }));
const match = (name, match) => ({ name: `${name}.tk`, match });
const parts = (match, ...names) => ({ match, captures: captures(...names) });
const enclosed = (name, begin, end, punctuation, patterns) => ({
  name: `${name}.tk`,
  begin,
  beginCaptures: captures0(punctuation[0]),
  end: `${end}|${ITEM}`,
  endCaptures: captures0(punctuation.at(-1)),
  patterns,
});
const round = (name, patterns) => enclosed(name, "\\(", "\\)", ["punctuation.brackets.round"], patterns);
const square = (name, patterns) => enclosed(name, "\\[", "\\]", ["punctuation.brackets.square"], patterns);
const curly = (name, patterns) => enclosed(name, "\\{", "\\}", ["punctuation.brackets.curly"], patterns);
const BRACKET = ["punctuation.definition.compile-time.begin", "punctuation.definition.compile-time.end"];

// The brackets of compile-time arguments, after a name: as the `[` of `tile[f32, M]` and `matmul[BM = 32](a, b)`.
const argumentsOf = (name, scope, followedBy) => ({
  name: "meta.compile-time.arguments.tk",
  begin: String.raw`${FREE}${NO_KEYWORD}(${name})(\[)${followedBy}`,
  beginCaptures: captures(scope, BRACKET[0]),
  end: String.raw`\]|${ITEM}`,
  endCaptures: captures0(BRACKET[1]),
  patterns: include("named-arguments", "type"),
});

const declared = (scope) => parts(String.raw`${FREE}${NO_KEYWORD}(${NAME})(?=\s*:(?!:))`, scope);

const items = {
  functions: {
    comment: "From the word to the body: name, both parameter lists, result, clauses.",
    name: "meta.function.tk",
    begin: String.raw`\b(kernel|fn)\s+${NO_KEYWORD}(${NAME})`,
    beginCaptures: captures("storage.type.function", "entity.name.function"),
    end: String.raw`(?=[{};])|${ITEM_OR_METHOD}`,
    patterns: include("comments", "compile-time-parameters", "result", "tune", "clauses", "parameters", "operators", "punctuation"),
  },
  "compile-time-parameters": enclosed("meta.compile-time.parameters", "\\[", "\\]", BRACKET, [
    parts(
      String.raw`(?:(?<=[\[,])|^)\s*${NO_KEYWORD}(${NAME})(?=\s*(?:[:=,\]]|$))`,
      "variable.other.constant.parameter",
    ),
    ...include("annotations", "code"),
  ]),
  parameters: enclosed(
    "meta.parameters",
    "\\(",
    "\\)",
    ["punctuation.definition.parameters.begin", "punctuation.definition.parameters.end"],
    [declared("variable.parameter"), ...include("annotations", "code")],
  ),
  result: {
    name: "meta.annotation.result.tk",
    begin: "->",
    beginCaptures: captures0("keyword.operator.arrow"),
    end: String.raw`(?=[{};])|(?=${CLAUSE})|${ITEM_OR_METHOD}`,
    patterns: include("type"),
  },
  clauses: {
    name: "meta.clause.tk",
    begin: String.raw`\b(grid|launch|require|prefer|alias|scratch)\s*(\()`,
    beginCaptures: captures("keyword.other.clause", "punctuation.brackets.round"),
    end: String.raw`\)|${ITEM}`,
    endCaptures: captures0("punctuation.brackets.round"),
    patterns: [
      { comment: "`scratch(name: T, ..)` declares.", ...parts(String.raw`(?<=\()\s*(${NAME})(?=\s*:(?!:))`, "variable.parameter") },
      ...include("annotations", "named-arguments", "code"),
    ],
  },
  tune: {
    comment: "The braces after `tune(..)` hold rows; they are not the body.",
    name: "meta.clause.tune.tk",
    begin: String.raw`\b(tune)(?=\s*\()`,
    beginCaptures: captures("keyword.other.clause"),
    end: String.raw`(?<=\})|(?=[;}])|(?=${CLAUSE})|${ITEM_OR_METHOD}`,
    patterns: [
      ...include("comments", "parentheses"),
      curly("meta.rows", [curly("meta.row", include("named-arguments", "code")), ...include("code")]),
    ],
  },
  structs: {
    name: "meta.struct.tk",
    begin: String.raw`\b(struct)\s+${NO_KEYWORD}(${NAME})`,
    beginCaptures: captures("storage.type.struct", "entity.name.type.struct"),
    end: String.raw`(?<=\})|(?=[;}])|${ITEM}`,
    patterns: [
      ...include("comments", "compile-time-parameters"),
      curly("meta.struct.body", [
        ...include("comments", "attributes", "functions"),
        declared("variable.other.member"),
        ...include("annotations", "code"),
      ]),
    ],
  },
  use: {
    name: "meta.use.tk",
    begin: String.raw`\b(use)\b`,
    beginCaptures: captures("keyword.other.use"),
    end: String.raw`(?=;)|${ITEM}`,
    patterns: [
      ...include("comments"),
      match("keyword.operator.cast", String.raw`\bas\b`),
      ...include("path"),
      match("variable.other", String.raw`\b${NAME}`),
      match("punctuation.brackets.curly", "[{}]"),
      ...include("punctuation"),
    ],
  },
  export: {
    name: "meta.export.tk",
    begin: String.raw`^\s*(export)\b(?=\s+[[:alpha:]_])`,
    beginCaptures: captures("keyword.other.export"),
    end: String.raw`(?=;)|${ITEM}`,
    patterns: [
      ...include("comments", "path"),
      match("entity.name.function", String.raw`\b${NAME}`),
      enclosed("meta.compile-time.arguments", "\\[", "\\]", BRACKET, include("named-arguments", "type")),
    ],
  },
  test: parts(String.raw`\b(test|assert_error)(?=\s*")`, "keyword.other.test"),
};

const types = {
  annotations: {
    name: "meta.annotation.tk",
    begin: "(?<!:):(?!:)",
    beginCaptures: captures0("punctuation.separator.annotation"),
    end: String.raw`(?=[,;=)\]{}])|${ITEM}`,
    patterns: include("type"),
  },
  type: {
    comment: "Where only a type or a bound can stand: the words for classes of types are names elsewhere.",
    patterns: [
      ...include("comments"),
      match("storage.modifier.const", String.raw`\bconst\b`),
      match("support.type.class", String.raw`${FREE}(?:int|sint|uint|float|f8|number|dtype|shape)\b(?!\s*[.:(=])`),
      {
        comment: "The parameters of a function type.",
        begin: String.raw`\b(fn)\s*(\()`,
        beginCaptures: captures("storage.type.function", "punctuation.brackets.round"),
        end: String.raw`\)|${ITEM}`,
        endCaptures: captures0("punctuation.brackets.round"),
        patterns: include("type"),
      },
      ...include("code"),
    ],
  },
  "compile-time-arguments": {
    comment: "Brackets hold compile-time arguments after a type, where one is named, where a call follows, and at the end of a line; elsewhere they index.",
    patterns: [
      argumentsOf("tile|view", "support.type", ""),
      argumentsOf(String.raw`_*[A-Z]\w*[a-z]\w*`, "entity.name.type", ""),
      argumentsOf(NAME, "entity.name.function", String.raw`(?=${BALANCED}\]\s*\(|${NAMED}|\s*$)`),
    ],
  },
  types: {
    patterns: [
      match(
        "support.type.primitive",
        String.raw`${FREE}(?:bool|[iu](?:8|16|32|64)|f(?:16|32|64)|bf16|f8e4m3(?:fnuz)?|f8e5m2(?:fnuz)?|e2m1|e8m0)\b(?!\s*[(:])`,
      ),
      match("support.type", String.raw`${FREE}(?:tile|view)\b(?!\s*(?:[.(:]|=(?!=)))`),
    ],
  },
};

const lexical = {
  comments: {
    patterns: [
      { name: "comment.line.documentation.tk", ...parts("(///)(?!/).*$", "punctuation.definition.comment") },
      { name: "comment.line.double-slash.tk", ...parts("(//).*$", "punctuation.definition.comment") },
      { comment: "There are no block comments.", ...match("invalid.illegal.block-comment", String.raw`/\*.*?\*/`) },
    ],
  },
  strings: {
    name: "string.quoted.double.tk",
    begin: '"',
    beginCaptures: captures0("punctuation.definition.string.begin"),
    end: '"|$',
    endCaptures: captures0("punctuation.definition.string.end"),
    patterns: [
      match("constant.character.escape", String.raw`\\(?:[ntr0\\"]|u\{[0-9a-fA-F]+\})`),
      match("invalid.illegal.escape", String.raw`\\.`),
    ],
  },
  attributes: {
    name: "meta.attribute.tk",
    ...parts(`(@)(${NAME})`, "punctuation.definition.attribute", "entity.other.attribute-name"),
  },
  numbers: {
    patterns: [
      match("constant.numeric.hex", String.raw`\b0[xX][0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*\b`),
      match("constant.numeric.binary", String.raw`\b0[bB][01_]*[01][01_]*\b`),
      match("constant.numeric.octal", String.raw`\b0[oO][0-7_]*[0-7][0-7_]*\b`),
      match("constant.numeric.float", String.raw`\b[0-9][0-9_]*(?:\.[0-9][0-9_]*(?:[eE][+-]?[0-9][0-9_]*)?|[eE][+-]?[0-9][0-9_]*)\b`),
      match("constant.numeric.decimal", String.raw`\b[0-9][0-9_]*\b`),
      { comment: "A number has no suffix.", ...match("invalid.illegal.number", String.raw`\b[0-9]\w*`) },
    ],
  },
};

const expressions = {
  declarations: {
    patterns: [
      parts(String.raw`\b(const)\s+${NO_KEYWORD}(${NAME})(?=\s*[:=;])`, "storage.type.const", "variable.other.constant"),
      {
        comment: "`let x: T = e`",
        begin: String.raw`\b(let)\s+(?:(mut)\s+)?${NO_KEYWORD}(${NAME})\s*(:)(?!:)`,
        beginCaptures: captures("storage.type.let", "storage.modifier.mut", "variable.other", "punctuation.separator.annotation"),
        end: String.raw`(?=[;=})])|${ITEM}`,
        patterns: include("type"),
      },
    ],
  },
  keywords: {
    patterns: [
      match("keyword.control.conditional", String.raw`\b(?:if|else)\b`),
      match("keyword.control.loop", String.raw`\b(?:for|in|while|break|continue)\b`),
      match("keyword.control.return", String.raw`\breturn\b`),
      match("keyword.operator.cast", String.raw`\bas\b`),
      match("storage.type.function", String.raw`\b(?:kernel|fn)\b`),
      match("storage.type.struct", String.raw`\bstruct\b`),
      match("storage.type.let", String.raw`\blet\b`),
      match("storage.modifier.const", String.raw`\bconst\b`),
      match("storage.modifier.mut", String.raw`\bmut\b`),
    ],
  },
  constants: {
    patterns: [
      match("constant.language.boolean", String.raw`\b(?:true|false)\b`),
      match("constant.language.none", String.raw`\bNone\b`),
      match("constant.language.float", String.raw`${FREE}(?:inf|nan)\b(?!\s*(?:[.(\[:]|=(?!=)))`),
      match("variable.language.self", String.raw`${FREE}self\b`),
      match("support.variable", String.raw`${FREE}(?:target|device)(?=\.)`),
    ],
  },
  "named-arguments": parts(
    String.raw`${FREE}${NO_KEYWORD}(${NAME})\s*(=)(?!=)`,
    "variable.parameter.named",
    "keyword.operator.assignment",
  ),
  members: {
    patterns: [
      {
        comment: "Compile-time arguments of a method.",
        name: "meta.compile-time.arguments.tk",
        begin: String.raw`(\.)\s*(${NAME})(\[)(?=${BALANCED}\]\s*\(|${NAMED})`,
        beginCaptures: captures("punctuation.accessor", "entity.name.function.member", BRACKET[0]),
        end: String.raw`\]|${ITEM}`,
        endCaptures: captures0(BRACKET[1]),
        patterns: include("named-arguments", "type"),
      },
      parts(String.raw`(\.)\s*(${NAME})(?=\s*\()`, "punctuation.accessor", "entity.name.function.member"),
      parts(String.raw`(\.)\s*(${NAME})`, "punctuation.accessor", "variable.other.member"),
    ],
  },
  path: parts(String.raw`\b(${NAME})\s*(::)`, "entity.name.namespace", "punctuation.separator.path"),
  names: {
    patterns: [
      ...include("path"),
      {
        comment: "By convention COMPILE_TIME, CamelCase for structs, lower_case for what a launch passes.",
        ...match("variable.other.constant", String.raw`\b_*[A-Z][A-Z0-9_]*\b(?!\s*\()`),
      },
      match("entity.name.type", String.raw`\b_*[A-Z]\w*[a-z]\w*`),
      match("entity.name.function", String.raw`\b${NAME}(?=\s*\()`),
      match("variable.other", String.raw`\b${NAME}`),
    ],
  },
  blocks: curly("meta.block", include("code")),
  brackets: square("meta.brackets", include("code")),
  parentheses: round("meta.parentheses", include("named-arguments", "code")),
  operators: {
    patterns: [
      match("keyword.operator.arrow", "->"),
      match("keyword.operator.comparison", "==|!=|<=|>=|<(?!<)|>(?!>)"),
      match("keyword.operator.assignment", "(?:<<|>>|[-+*/%&|^])?="),
      match("keyword.operator.logical", String.raw`&&|\|\||!`),
      match("keyword.operator.bitwise", "<<|>>|[&|^]"),
      match("keyword.operator.arithmetic", "[-+*/%]"),
      match("keyword.operator.optional", String.raw`\?`),
    ],
  },
  punctuation: {
    patterns: [
      match("punctuation.separator.comma", ","),
      match("punctuation.terminator", ";"),
      match("punctuation.separator.path", "::"),
      match("punctuation.separator.colon", ":"),
    ],
  },
};

/** The text of `syntaxes/tk.tmLanguage.json`. */
export const grammar =
  JSON.stringify(
    {
      comment: "Generated from grammar.mjs by `npm run grammar`.",
      name: "tk",
      scopeName: "source.tk",
      fileTypes: ["tk"],
      patterns: include("code"),
      repository: {
        // The order matters: the first pattern that matches at a place wins.
        code: {
          patterns: include(
            ...["comments", "strings", "attributes", "functions", "structs", "use", "export", "test", "numbers"],
            ...["declarations", "keywords", "constants", "compile-time-arguments", "types", "members", "names"],
            ...["blocks", "brackets", "parentheses", "operators", "punctuation"],
          ),
        },
        ...items,
        ...types,
        ...lexical,
        ...expressions,
      },
    },
    null,
    1,
  ) + "\n";

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL("syntaxes/tk.tmLanguage.json", import.meta.url), grammar);
}
