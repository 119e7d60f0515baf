"""Type stubs of files of kernels: :func:`stubs`."""

from __future__ import annotations

import keyword
import os
from typing import Any, Dict, List, Union

from tk._kernel import Kernel, Module

_HEAD = '''"""Generated from {file} by `tk.stubs`."""

from typing import Any, Optional

from tk import Kernel, Module
from tk.typing import Tensor
'''


def _annotation(parameter: Dict[str, Any]) -> str:
    if parameter["kind"] == "tensor":
        return "Optional[Tensor]" if parameter["optional"] else "Tensor"
    if parameter["kind"] == "number":
        ty = parameter["type"]
        return "bool" if ty == "bool" else "int" if ty[:1] in "iu" and ty[1:].isdigit() else "float"
    return "Any"


def _parameter(parameter: Dict[str, Any]) -> str:
    text = f"{parameter['name']}: {_annotation(parameter)}"
    return f"{text} = ..." if parameter["optional"] or parameter["kind"] == "compile-time" else text


def _call(kernel: Kernel) -> str:
    all_ = kernel.parameters
    # Names such as `st.m` and words of Python are given by position, or in a dictionary.
    plain = [p for p in all_ if p["name"].isidentifier() and not keyword.iskeyword(p["name"])]
    first = [p for p in all_ if p["kind"] != "compile-time"]
    if any(p not in plain for p in first) or any(p["name"] in ("self", "stream") for p in all_):
        return "*args: Any, **kwargs: Any"
    named = [_parameter(p) for p in plain if p["kind"] == "compile-time"]
    seen_optional = False
    arguments: List[str] = []
    for p in first:
        text = _parameter(p)
        if seen_optional and "= ..." not in text:
            text += " = ..."
        seen_optional = seen_optional or "= ..." in text
        arguments.append(text)
    return ", ".join([*arguments, "*", *named, "stream: Any = ..."])


def stubs(path: Union[str, "os.PathLike[str]"]) -> str:
    """The text of a stub (``.pyi``) for a file of kernels, for type checkers and editors.

    A variable gets it by ``m: "softmax_tk.Kernels" = tk.load("softmax.tk")``.
    """
    path = os.fspath(path)
    module = Module(path)
    out = [_HEAD.format(file=os.path.basename(path))]
    members: List[str] = []
    for name in module:
        if name.startswith("_"):
            continue
        kernel = module[name]
        label = f"_{name}"
        arguments = _call(kernel)
        out.append(f"class {label}(Kernel):")
        doc = kernel.doc.strip()
        head = f"    def __call__(self, {arguments}) -> None:"
        # A literal that is Python whatever the text has.
        body = f"  # type: ignore[override]\n        {doc!r}\n" if doc else " ...  # type: ignore[override]\n"
        out.append(head + body)
        if name.isidentifier() and not keyword.iskeyword(name):
            members.append(f"    {name}: {label}")
    out.append("class Kernels(Module):")
    out.append("\n".join(members) if members else "    ...")
    return "\n".join(out) + "\n"
