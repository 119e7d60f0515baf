"""The cell magic ``%%tk`` for notebooks: the cell is a source file, its kernels become variables.

>>> %load_ext tk
>>> %%tk
... kernel copy(x: view[f32, 1], y: mut view[f32, 1]) grid(1) { .. }
"""

from __future__ import annotations

import html
import shlex
from typing import Any

from tk._kernel import Module
from tk.errors import CompileError

__all__ = ["register"]


class Shown:
    """Text in the type of a source file, for notebooks and terminals."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f'<pre style="line-height: 1.2">{html.escape(self._text)}</pre>'


def register(shell: Any) -> None:
    """Registers ``%%tk`` with an IPython shell."""

    def tk(line: str, cell: str) -> Any:
        """``%%tk [NAME]``: compiles the cell. Its kernels become variables; with a name, one module with them."""
        words = shlex.split(line)
        if len(words) > 1 or (words and not words[0].isidentifier()):
            raise ValueError("`%%tk` takes at most a name for the module of the cell's kernels")
        try:
            module = Module("cell.tk", cell)
        except CompileError as error:
            return Shown(str(error))
        if words:
            shell.push({words[0]: module})
        else:
            shell.push({name: module[name] for name in module if name.isidentifier()})
        return None

    shell.register_magic_function(tk, magic_kind="cell", magic_name="tk")
