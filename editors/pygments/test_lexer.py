"""Tests of the lexer against the sources of the repository and the grammar of the editors."""

import json
import re
import sys
import unittest
from pathlib import Path

from pygments.token import Comment, Error, Keyword, Name, Number, String

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from tk_pygments import ELEMENT_TYPES, KEYWORDS, TkLexer  # noqa: E402


def tokens(text):
    return list(TkLexer(stripnl=False, ensurenl=False).get_tokens(text))


class Lexer(unittest.TestCase):
    def test_every_source_has_no_error_and_loses_nothing(self):
        sources = [p for folder in ("examples", "stdlib", "docs", "tests/device") for p in (ROOT / folder).rglob("*.tk")]
        self.assertGreater(len(sources), 60)
        for source in sources:
            text = source.read_text(encoding="utf-8")
            found = tokens(text)
            self.assertEqual("".join(value for _, value in found), text, source)
            wrong = [value for kind, value in found if kind in Error]
            self.assertEqual(wrong, [], source)

    def test_words_are_those_of_the_grammar(self):
        grammar = (ROOT / "editors/vscode/syntaxes/tk.tmLanguage.json").read_text(encoding="utf-8")
        names = re.search(r"\(\?!\(\?:((?:\w+\|)+use\|while)\)", json.dumps(json.loads(grammar)))
        self.assertEqual(sorted(KEYWORDS), sorted(names[1].split("|")))
        types = re.search(r"bool\|\[iu\]\(\?:8\|16\|32\|64\).*?e8m0", grammar)[0]
        pattern = re.compile(f"(?:{types})")
        self.assertTrue(all(pattern.fullmatch(name) for name in ELEMENT_TYPES))

    def test_kinds(self):
        text = (
            '/// Doubles.\n@fast fn twice[T: float](x: tile[T, 4]) -> f32 { let a = 0x1F + 1.5e3; // c\n'
            'static_assert(true, "a\\n"); a }\ntest "t" {}\nexport k[T = [f16]];\nlet grid = 1;\nuse std::math;'
        )
        found = tokens(text)
        for value, kind in [
            ("/// Doubles.", String.Doc), ("@fast", Name.Decorator), ("twice", Name.Function), ("float", Keyword.Type),
            ("tile", Keyword.Type), ("f32", Keyword.Type), ("let", Keyword.Declaration), ("0x1F", Number.Hex),
            ("1.5e3", Number.Float), ("// c", Comment.Single), ("true", Keyword.Constant), ("\\n", String.Escape),
            ("test", Keyword), ("export", Keyword), ("grid", Name), ("math", Name.Namespace), ("T", Name.Constant),
        ]:
            self.assertIn((kind, value), found)

    def test_what_is_no_token(self):
        for text in ("$", '"open\n', "\\", "'a'", '"\\q"'):
            self.assertTrue(any(kind in Error for kind, _ in tokens(text)), text)


if __name__ == "__main__":
    unittest.main()
