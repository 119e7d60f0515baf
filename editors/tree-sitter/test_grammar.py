"""Tests of the grammar against the parser of the language, its tables, and a sample of the queries.

Needs `tree_sitter` from PyPI, a C compiler, git, and the command `tk` (`$TK`, else `target/debug/tk`). The texts are
every `.tk` file that git tracks, every block marked `tk` of a Markdown page, and those of `test/corpus`.
"""

import atexit
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tree_sitter import Language, Parser, Query, QueryCursor

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from adapt import FILES, adapted

ROOT = HERE.parents[1]
TK = os.environ.get("TK", str(ROOT / "target/debug/tk"))
SCRATCH = Path(tempfile.mkdtemp(prefix="tk-tree-sitter-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)

# The grammar has no limit of depth.
TOO_DEEP = "E0106"
# The grammar reads `x ** y` as a product with the pointer type `*y`.
POWER = "there is no `**`; a power is `pow(x, y)`"
# It reads `x //= y` as `x` and a comment.
QUOTIENT = "`//` starts a comment; a division is written `/=`"
# Nor does it know the values of numbers.
TOO_LARGE = "this number does not fit in 128 bits"


def compiled():
    library = SCRATCH / "tk.so"
    compiler = os.environ.get("CC", "cc")
    source = HERE / "src/parser.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-I", HERE / "src", source, "-o", library], check=True)
    entry = ctypes.CDLL(str(library)).tree_sitter_tk
    entry.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return Language(capsule(entry(), b"tree_sitter.Language", None))


LANGUAGE = compiled()
PARSER = Parser(LANGUAGE)


def tracked(pattern):
    names = subprocess.run(["git", "ls-files", "-z", pattern], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in names.stdout.split("\0") if name and (ROOT / name).exists()]


# Rows behind a clause that is not `tune`: E0706 of the checker, and no clause of the grammar.
CHECKED = {"tests/diagnostics/rows_of_launch.tk"}


def texts():
    """Pairs of a name for messages and a text."""
    for path in tracked("*.tk"):
        # Where the parser leaves it to the checker to refuse a text.
        if str(path.relative_to(ROOT)) in CHECKED:
            continue
        yield str(path.relative_to(ROOT)), path.read_bytes()
    for path in tracked("*.md"):
        page = path.read_text(encoding="utf-8")
        for block in re.finditer(r"^```tk\n(.*?)^```", page, re.M | re.S):
            line = page.count("\n", 0, block.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}", block[1].encode()
    for path in sorted(HERE.glob("test/corpus/*.txt")):
        for test in re.finditer(r"^=+\n(.*?)\n=+\n\n(.*?)\n---\n", path.read_text(encoding="utf-8"), re.M | re.S):
            yield f"{path.name}: {test[1]}", test[2].encode()


def parsed_by_tk(sources):
    """Of each text: what is printed for its syntax tree, and the messages of its syntax errors by their codes."""
    files = {}
    for number, source in enumerate(sources):
        path = SCRATCH / f"{number}.tk"
        path.write_bytes(source)
        files[str(path)] = number
    trees, errors = [""] * len(files), [[] for _ in files]
    names = list(files)
    for start in range(0, len(names), 100):
        command = [TK, "check", "--emit", "ast", "--message-format", "json", *names[start : start + 100]]
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for message in map(json.loads, out.splitlines()):
            if message["kind"] == "emitted":
                trees[files[message["file"]]] = message["text"]
            elif message["kind"] == "diagnostic" and message["code"].startswith("E01"):
                number = files.get((message["primary"] or {}).get("file"))
                if number is not None:
                    errors[number].append((message["code"], message["message"]))
    for found in errors:
        found[:] = [e for e in found if e[1] != TOO_LARGE]
    return trees, errors


class Dump:
    """The tree in the words of `tk check --emit ast` (`lang/syntax/src/print.rs`)."""

    def __init__(self):
        self.lines, self.depth = [], 0

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def inside(self, show, *nodes):
        self.depth += 1
        for node in nodes:
            if node is not None:
                show(node)
        self.depth -= 1

    def part(self, word, node):
        self.line(word)
        self.inside(self.expr, node)

    def attributes(self, node):
        for attribute in of_type(node, "attribute"):
            self.line("@" + name(attribute))
            self.inside(self.args, attribute.child_by_field_name("arguments"))

    def item(self, node):
        self.attributes(node)
        getattr(self, node.type)(node)

    def use_item(self, node):
        group = of_type(node, "use_group")
        if group:
            path = "::".join(map(text, node.children_by_field_name("module")))
            self.line(f"use {path}::{{{', '.join(map(text, named(group[0])))}}}")
            return
        alias = node.child_by_field_name("alias")
        self.line(f"use {path_of(node.child_by_field_name('path'))}" + (f" as {text(alias)}" if alias else ""))

    def const_item(self, node):
        self.line(f"const {name(node)}{typed(node)}")
        self.inside(self.expr, node.child_by_field_name("value"))

    def struct_item(self, node):
        self.line(f"struct {name(node)}")
        body = node.child_by_field_name("body")
        self.inside(self.cparams, node.child_by_field_name("compile_time_parameters"))
        self.inside(lambda p: self.param("field", p), *of_type(body, "field"))
        self.inside(self.item, *of_type(body, "function_item"))

    def function_item(self, node):
        result = node.child_by_field_name("result")
        word = "kernel" if node.type == "kernel_item" else "fn"
        self.line(f"{word} {name(node)}" + (f" -> {type_of(result)}" if result else ""))
        self.inside(self.cparams, node.child_by_field_name("compile_time_parameters"))
        self.inside(lambda p: self.param("param", p), *of_type(node.child_by_field_name("parameters"), "parameter"))
        self.inside(self.clause, *of_type(node, "clause"))
        self.block(node.child_by_field_name("body"))

    kernel_item = function_item

    def export_item(self, node):
        self.line(f"export {path_of(node.child_by_field_name('path'))}")
        args = [n for n in node.children_by_field_name("arguments") if n.is_named and not n.is_extra]
        self.inside(self.arg, *args)

    def test_item(self, node):
        self.line(f"test {string(node.child_by_field_name('name'))}")
        self.block(node.child_by_field_name("body"))

    def cparams(self, node):
        for param in named(node):
            bound = param.child_by_field_name("bound")
            types = named(bound) if bound.type == "type_set" else [bound]
            self.line(f"cparam {name(param)}: {' | '.join(map(type_of, types))}")
            self.inside(self.expr, param.child_by_field_name("default"))

    def param(self, word, node):
        self.attributes(node)
        const = " const" if any(c.type == "const" for c in node.children) else ""
        self.line(f"{word}{const} {name(node)}{typed(node)}")
        self.inside(self.expr, node.child_by_field_name("default"))

    def clause(self, node):
        self.line(f"clause {name(node)}")
        self.inside(self.args, node.child_by_field_name("arguments"))
        rows = node.child_by_field_name("rows")
        self.inside(self.row, *(of_type(rows, "tune_row") if rows else []))

    def row(self, node):
        self.line("row")
        condition = node.child_by_field_name("condition")
        self.inside(self.arg, *[n for n in named(node) if n != condition])
        if condition:
            self.inside(lambda c: self.part("if", c), condition)

    def block(self, node):
        value = node.child_by_field_name("value")
        self.inside(self.stmt, *[n for n in named(node) if n != value])
        if value:
            self.inside(lambda v: self.part("value", v), value)

    def stmt(self, node):
        self.attributes(node)
        field = node.child_by_field_name
        match node.type:
            case "let_statement":
                self.line(f"let {pattern(field('pattern'))}{typed(node)}")
                self.inside(self.expr, field("value"))
            case "const_item":
                self.const_item(node)
            case "assign_statement":
                self.line(text(field("operator")).removesuffix("=") + "=")
                self.inside(self.expr, field("place"), field("value"))
            case "expression_statement":
                self.part("do", named(node)[0])
            case "for_statement":
                self.line(f"for {pattern(field('pattern'))}")
                self.inside(lambda e: self.part("in", e), field("iterator"))
                self.block(field("body"))
            case "while_statement":
                self.line("while")
                self.inside(self.expr, field("condition"))
                self.block(field("body"))
            case "return_statement":
                self.line("return")
                self.inside(self.expr, *named(node))
            case "break_statement" | "continue_statement":
                self.line(node.type.removesuffix("_statement"))
            case "assert_error_statement":
                self.line(f"assert_error {string(field('code'))}")
                self.block(field("body"))
            case _:
                raise AssertionError(f"a statement of the type {node.type}")

    def expr(self, node):
        node = without_parentheses(node)
        field = node.child_by_field_name
        match node.type:
            case "identifier" | "path":
                self.line(path_of(node))
            case "integer":
                self.line(str(int(text(node), 0) if text(node)[:2].lower() in ("0x", "0b", "0o") else int(text(node))))
            case "float":
                self.line(text(node).replace("_", ""))
            case "string":
                self.line(string(node))
            case "boolean" | "none":
                self.line(text(node))
            case "tuple" | "array":
                self.line(node.type)
                self.inside(self.expr, *named(node))
            case "unary_expression":
                self.part(text(field("operator")), field("operand"))
            case "binary_expression":
                self.line(text(field("operator")))
                self.inside(self.expr, field("left"), field("right"))
            case "cast_expression":
                self.part(f"as {type_of(field('type'))}", field("value"))
            case "index_expression":
                self.part("index", field("value"))
                self.inside(self.arg, *named(field("subscripts")))
            case "call_expression":
                self.part("call", field("function"))
                self.inside(self.args, field("arguments"))
            case "member_expression":
                self.part(f".{text(field('member'))}", field("value"))
            case "if_expression" | "if_let_expression":
                let = f" let {name(node)}" if node.type == "if_let_expression" else ""
                self.part(f"if{let}", field("value") if let else field("condition"))
                self.line("then")
                self.block(field("then"))
                if field("else"):
                    self.part("else", field("else"))
            case "block":
                self.line("block")
                self.block(node)
            case "lambda":
                params = [pattern(p.child_by_field_name("pattern")) + typed(p) for p in named(field("parameters"))]
                self.part(f"|{', '.join(params)}|", field("body"))
            case "pointer_type" | "function_type":
                self.line(f"type {type_of(node)}")
            case "return_expression":
                self.line("return")
                self.inside(self.expr, *named(node))
            case _:
                raise AssertionError(f"an expression of the type {node.type}")

    def args(self, node):
        for arg in named(node):
            self.arg(arg)

    def arg(self, node):
        if node.type == "named_argument":
            self.part(f"{name(node)} =", node.child_by_field_name("value"))
        elif node.type == "scratch_argument":
            self.line(f"{name(node)} =")
            self.inside(lambda t: self.line(f"type {type_of(t)}"), node.child_by_field_name("type"))
        elif node.type == "slice":
            self.line(":")
            for word in ("from", "to"):
                if side := node.child_by_field_name(word):
                    self.inside(lambda e, word=word: self.part(word, e), side)
        else:
            self.expr(node)


def named(node):
    return [child for child in node.named_children if not child.is_extra]


def of_type(node, kind):
    return [child for child in node.named_children if child.type == kind]


def text(node):
    return node.text.decode()


def name(node):
    return text(node.child_by_field_name("name"))


def path_of(node):
    return text(node) if node.type == "identifier" else "::".join(map(text, named(node)))


def without_parentheses(node):
    while node.type.startswith("parenthesized_"):
        node = named(node)[0]
    return node


def string(node):
    """As Rust shows a string, with its escapes resolved."""
    out = ""
    for part in named(node):
        escape = text(part)
        if part.type == "string_content":
            out += escape
        elif escape[1] == "u":
            out += chr(int(escape[3:-1], 16))
        else:
            out += {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(escape[1], escape[1])
    special = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\", '"': '\\"'}
    return '"' + "".join(special.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in out) + '"'


def typed(node):
    type_node = node.child_by_field_name("type")
    return f": {type_of(type_node)}" if type_node else ""


def type_of(node):
    node = without_parentheses(node)
    field = node.child_by_field_name
    mut = "mut " if any(child.type == "mut" for child in node.children) else ""
    match node.type:
        case "named_type":
            member = f".{text(field('member'))}" if field("member") else ""
            args = f"[{', '.join(map(flat, named(field('arguments'))))}]" if field("arguments") else ""
            return path_of(field("name")) + member + args
        case "pointer_type":
            return f"*{mut}{type_of(named(node)[0])}"
        case "mut_type":
            return f"mut {type_of(named(node)[0])}"
        case "option_type":
            return f"{type_of(named(node)[0])}?"
        case "tuple_type":
            return f"({', '.join(map(type_of, named(node)))})"
        case "function_type":
            result = field("result")
            params = ", ".join(type_of(p) for p in named(node) if p != result)
            return f"fn({params}) -> {type_of(result)}"
    raise AssertionError(f"a type of the type {node.type}")


def flat(node):
    """An argument of a type, on one line."""
    inner = without_parentheses(node)
    if inner.type == "member_expression":
        return f"{flat_tree(inner.child_by_field_name('value'))}.{text(inner.child_by_field_name('member'))}"
    if inner.type in ("pointer_type", "function_type"):
        return type_of(inner)
    return flat_tree(node)


def flat_tree(node):
    dump = Dump()
    dump.arg(node)
    return " ".join(line.strip() for line in dump.lines)


def pattern(node):
    node = without_parentheses(node)
    if node.type == "tuple_pattern":
        return f"({', '.join(map(pattern, named(node)))})"
    return f"mut {text(named(node)[0])}" if node.type == "mut_pattern" else text(node)


def dump(tree):
    out = Dump()
    for item in named(tree.root_node):
        out.item(item)
    return "".join(line + "\n" for line in out.lines)


def first_error(tree):
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            return f"{node.start_point[0] + 1}:{node.start_point[1] + 1}: {node}"
        nodes.extend(child for child in reversed(node.children) if child.has_error)
    return None


class Trees(unittest.TestCase):
    maxDiff = 2000

    def test_every_text_is_read_as_the_parser_reads_it(self):
        sources = list(texts())
        self.assertGreater(len(sources), 900)
        trees, errors = parsed_by_tk([source for _, source in sources])
        read = 0
        for (where, source), tree, error in zip(sources, trees, errors):
            with self.subTest(where):
                ours = PARSER.parse(source)
                if TOO_DEEP in (code for code, _ in error):
                    continue
                if error and all(message in (POWER, QUOTIENT) for _, message in error):
                    continue
                self.assertEqual(ours.root_node.has_error, bool(error), f"{where}: {error or first_error(ours)}")
                if not error:
                    self.assertEqual(dump(ours), tree, where)
                    read += 1
        self.assertGreater(read, 900)


def contents(path):
    return (ROOT / path).read_text(encoding="utf-8")


def query_text(path):
    """A query without its comments."""
    return re.sub(r"^\s*;.*$", "", path.read_text(encoding="utf-8"), flags=re.M)


class Words(unittest.TestCase):
    """The words of the grammar and of the highlights are those of the tables of the language."""

    def setUp(self):
        grammar = json.loads((HERE / "src/grammar.json").read_text(encoding="utf-8"))
        self.reserved = {rule["value"] for rule in grammar["reserved"]["global"]}
        self.strings = {node["value"] for node in nodes_of(grammar["rules"]) if node["type"] == "STRING"}
        text = query_text(HERE / "queries/highlights.scm")
        self.lists = [set(re.findall(r'"(\S+?)"', p)) for p in re.findall(r"\(#any-of\? (?:[^()]*)\)", text)]
        self.shown = set(re.findall(r'"([^"\s]+)"', re.sub(r"\(#[^()]*(?:\([^()]*\)[^()]*)*\)", "", text)))
        self.tokens = set(re.findall(r'#\[token\("(.+?)"\)\]', contents("lang/syntax/src/token.rs")))

    def test_keywords(self):
        keywords = {token for token in self.tokens if token.isalpha()}
        contextual = set(re.findall(r'Tok::Id\("([a-z]\w*)"\)', contents("lang/syntax/src/parse.rs")))
        self.assertGreater(len(keywords), 15)
        self.assertEqual(self.reserved, keywords)
        self.assertEqual({s for s in self.strings if re.fullmatch(r"\w+", s)}, keywords | contextual | {"self"})
        # The other words are nodes with a name.
        words = keywords - {"true", "false", "None"} | contextual - {"tune"}
        self.assertEqual({s for s in self.shown if re.fullmatch(r"\w+", s)}, words)

    def test_operators_and_punctuation(self):
        tokens = {token for token in self.tokens if not token.isalpha()}
        self.assertEqual({s for s in self.strings if not re.fullmatch(r"\w+", s)}, tokens | {'"'})
        self.assertEqual({s for s in self.shown if not re.fullmatch(r"\w+", s)}, tokens)

    def test_types_and_values(self):
        dtypes = contents("lang/ops/src/dtype.rs")
        elements = re.search(r"fn name\(self\).*?\n    }\n", dtypes, re.S)[0]
        classes = re.search(r"fn class\(name: &str\).*?\n    }\n", dtypes, re.S)[0]
        types = contents("lang/sema/src/check/types.rs")
        other = re.search(r"DType::ALL\.map\(DType::name\).*?chain\(\[(.*?)\]\)", types)[1]
        values = re.search(r"\[(.*?)\]\.contains.*\n.*NOT_CALLABLE", contents("lang/sema/src/check/call.rs"))[1]
        facts = {"target", "device"}
        self.assertIn("f32", strings_of(elements))
        self.assertIn("tile", strings_of(other))
        expected = [strings_of(elements), strings_of(classes) | strings_of(other), strings_of(values) - facts, facts]
        self.assertEqual(self.lists, expected)


def strings_of(rust):
    return set(re.findall(r'"(\w+)"', rust))


def nodes_of(tree):
    """The rules inside of a part of `grammar.json`."""
    if isinstance(tree, dict):
        if isinstance(tree.get("type"), str):
            yield tree
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else []:
        yield from nodes_of(part)


SAMPLE = """\
use std::math::{gelu, relu};
use std::nn::norm as n;
/// Documentation.
@fast kernel scale[BM: i32 = 64, T: f16 | float](x: view[T, 2], p: *mut T.acc, axis: const i32)
    grid(cdiv(x.shape[0], BM))
    launch(warps = 4)
    tune(key = axis) {
        { BM = [64, 128] } if target.has_tma,
    }
    scratch(part: *mut f32, 4)
{
    let mut acc = zeros([BM, 4], f32); // a comment
    for i in range(0, 0x10) {
        acc += math::relu(x.load([i, 0], [BM, 4])) as f32 * 1.5e3;
    }
    let add = |a, b| a + b;
    let m = Max(value = -inf);
    if let v = m.value { print("tab\\t", v); } else { return; }
    matmul[BK = 32](acc, None);
    let test = true;
}
struct Max { value: f32, fn join(self, other: Max) -> f32 { self.value } }
const LIMIT = 4;
export scale[T = f16];
test "name" { assert_error "E0304" { scale(1); } }
"""

# Where: what is before a text; if that is empty or spaces, since the start of the line. Then the text and its capture.
EXPECTED = [
    ("", "use", "keyword.import"),
    ("use ", "std", "module"),
    ("nn::", "norm", "variable"),
    ("norm ", "as", "keyword.import"),
    ("", "/// Documentation.", "comment.documentation"),
    ("@", "fast", "attribute"),
    ("@fast ", "kernel", "keyword.function"),
    ("kernel ", "scale", "function"),
    ("scale[", "BM", "constant"),
    ("BM: ", "i32", "type.builtin"),
    ("| ", "float", "type.builtin"),
    ("](", "x", "variable.parameter"),
    ("x: ", "view", "type.builtin"),
    ("view[", "T", "constant"),
    ("*", "mut", "keyword.modifier"),
    ("*mut T.", "acc", "variable.member"),
    ("axis: ", "const", "keyword.modifier"),
    ("    ", "grid", "keyword"),
    ("grid(", "cdiv", "function.call"),
    ("launch(", "warps", "variable.parameter"),
    ("    ", "tune", "keyword"),
    ("if ", "target", "variable.builtin"),
    ("scratch(", "part", "variable.parameter"),
    ("    ", "let", "keyword"),
    ("let ", "mut", "keyword.modifier"),
    ("mut ", "acc", "variable"),
    ("4], ", "f32", "type.builtin"),
    ("f32); ", "// a comment", "comment"),
    ("for i ", "in", "keyword.repeat"),
    ("0, ", "0x10", "number"),
    ("acc ", "+=", "operator"),
    ("+= ", "math", "module"),
    ("math::", "relu", "function.call"),
    ("x.", "load", "function.method.call"),
    (")) ", "as", "keyword.operator"),
    ("* ", "1.5e3", "number.float"),
    ("= ", "|", "punctuation.bracket"),
    ("|", "a", "variable.parameter"),
    ("= ", "Max", "constructor"),
    ("-", "inf", "constant.builtin"),
    ("    ", "if", "keyword.conditional"),
    ("m.", "value", "variable.member"),
    ("tab", "\\t", "string.escape"),
    ("{ ", "return", "keyword.return"),
    ("    ", "matmul", "function.call"),
    ("acc, ", "None", "constant.builtin"),
    ("let ", "test", "variable"),
    ("test = ", "true", "boolean"),
    ("", "struct", "keyword.type"),
    ("struct ", "Max", "type"),
    ("Max { ", "value", "variable.member"),
    ("fn ", "join", "function.method"),
    ("join(", "self", "variable.builtin"),
    ("other: ", "Max", "type"),
    ("f32 { ", "self", "variable.builtin"),
    ("const ", "LIMIT", "constant"),
    ("", "export", "keyword.import"),
    ("export ", "scale", "function"),
    ("", "test", "keyword"),
    ("test ", '"name"', "string"),
    ("{ ", "assert_error", "keyword"),
]


class Queries(unittest.TestCase):
    def test_all_compile(self):
        files = sorted(HERE.glob("queries/*.scm")) + [p for f in FILES for p in sorted(f.parent.glob("*.scm"))]
        self.assertGreater(len(files), 12)
        for path in files:
            with self.subTest(path.name):
                Query(LANGUAGE, path.read_text(encoding="utf-8"))

    def test_sample(self):
        tree = PARSER.parse(SAMPLE.encode())
        self.assertFalse(tree.root_node.has_error, first_error(tree))
        query = Query(LANGUAGE, (HERE / "queries/highlights.scm").read_text(encoding="utf-8"))
        winner = {}
        for pattern_index, captures in QueryCursor(query).matches(tree.root_node):
            for capture, nodes in captures.items():
                for node in nodes:
                    place = (node.start_byte, node.end_byte)
                    winner[place] = max(winner.get(place, (-1, "")), (pattern_index, capture))
        for before, word, capture in EXPECTED:
            with self.subTest(f"{before}{word}"):
                line_start = "\n" if before.strip() == "" else ""
                found = ("\n" + SAMPLE).index(line_start + before + word)
                start = found + len(line_start) + len(before) - 1
                self.assertEqual(winner[(start, start + len(word))][1], capture)

    def test_other_editors_have_the_same_highlights(self):
        for path, names in FILES.items():
            self.assertEqual(path.read_text(encoding="utf-8"), adapted(names), f"{path.name}: run adapt.py")


class Generated(unittest.TestCase):
    def test_sources_are_those_of_the_grammar(self):
        lines = (HERE / "generated.sha256").read_text(encoding="utf-8").splitlines()
        sums = dict(reversed(line.split()) for line in lines)
        self.assertEqual(sorted(sums), ["grammar.js", "src/grammar.json", "src/node-types.json", "src/parser.c"])
        for name, digest in sums.items():
            found = hashlib.sha256((HERE / name).read_bytes()).hexdigest()
            self.assertEqual(found, digest, f"{name} has changed: run `npm run generate`")


if __name__ == "__main__":
    unittest.main()
