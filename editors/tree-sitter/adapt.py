"""Writes the highlight queries of Helix and Zed: `queries/highlights.scm` with the names that these editors use.

`python adapt.py` after every change of that file; `test_grammar.py` compares.
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "queries/highlights.scm"

HELIX = {
    "boolean": "constant.builtin.boolean",
    "comment": "comment.line",
    "comment.documentation": "comment.line.documentation",
    "function.call": "function",
    "function.method.call": "function.method",
    "keyword.conditional": "keyword.control.conditional",
    "keyword.import": "keyword.control.import",
    "keyword.modifier": "keyword.storage.modifier",
    "keyword.repeat": "keyword.control.repeat",
    "keyword.return": "keyword.control.return",
    "keyword.type": "keyword.storage.type",
    "module": "namespace",
    "number": "constant.numeric.integer",
    "number.float": "constant.numeric.float",
    "string.escape": "constant.character.escape",
    "variable.member": "variable.other.member",
}

ZED = {
    "comment.documentation": "comment.doc",
    "module": "namespace",
    "variable.builtin": "variable.special",
    "variable.member": "property",
}

FILES = {
    HERE.parent / "helix/queries/tk/highlights.scm": HELIX,
    HERE.parent / "zed/languages/tk/highlights.scm": ZED,
}

OPENING = "; Written by `editors/tree-sitter/adapt.py`. A later pattern wins over an earlier one.\n"


def adapted(names):
    """The text of the query with the names of another editor."""
    query = SOURCE.read_text(encoding="utf-8")
    body = query[query.index("\n\n") + 1 :]
    return OPENING + re.sub(r"@([a-z][\w.]*)", lambda m: "@" + names.get(m[1], m[1]), body)


if __name__ == "__main__":
    for path, names in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(adapted(names), encoding="utf-8")
