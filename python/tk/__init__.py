"""Kernels of the tk language on tensors of PyTorch, JAX, CuPy, NumPy and anything with DLPack.

>>> import tk
>>> m = tk.load("softmax.tk")
>>> m.softmax(x, y)                  # on the device and the stream of the tensors
>>> m.softmax(x, y, BLOCK=1024)      # compile-time parameters by name
>>> m.softmax[{"BLOCK": 1024}]       # the same, as a kernel of its own
"""

from __future__ import annotations

import os
from typing import Any, List, Optional, Union

from tk import _native
from tk._kernel import Kernel, Module
from tk._measure import Times, bench, profile, tune
from tk._native import __version__
from tk._stubs import stubs
from tk.errors import CompileError, CompileWarning, DeviceError, Diagnostic, Error, LaunchError

__all__ = [
    "CompileError",
    "CompileWarning",
    "DeviceError",
    "Diagnostic",
    "Error",
    "Kernel",
    "LaunchError",
    "Module",
    "Times",
    "__version__",
    "bench",
    "check",
    "load",
    "loads",
    "profile",
    "stubs",
    "tune",
]


def load(path: Union[str, "os.PathLike[str]"]) -> Module:
    """The kernels of a source file (``.tk``), compiled when they are launched; of a file of the standard library
    (``std::nn::softmax``); or of a bundle (``.tkb``).

    :raises CompileError: the source is wrong.
    :raises Error: the bundle is none, or damaged.
    """
    return Module(_path(path))


def loads(source: str, name: str = "source.tk") -> Module:
    """The kernels of a text. ``name`` stands for its file in messages; files that it uses are beside that.

    :raises CompileError: the source is wrong.
    """
    if not isinstance(source, str):
        raise TypeError(f"a source is a text, not `{type(source).__name__}`")
    return Module(name, source)


def check(path: Union[str, "os.PathLike[str]", None] = None, *, source: Optional[str] = None) -> List[Diagnostic]:
    """The diagnostics of a file, or of a text, in source order; none if nothing is wrong. With both, the text is checked
    under the name of the file.
    """
    if path is None and source is None:
        raise TypeError("`check` needs a path or a source")
    return _native.check(_path(path) if path is not None else "source.tk", source)


def _path(path: Union[str, "os.PathLike[str]"]) -> str:
    text = os.fsdecode(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Error(f"the path {text!r} is not UTF-8") from None
    return text


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tk``: the cell magic ``%%tk``."""
    from tk import magic

    magic.register(shell)


def __getattr__(name: str) -> Any:
    # `tk.torch` and `tk.jax` import what they are about.
    if name in ("torch", "jax", "magic"):
        import importlib

        return importlib.import_module(f"tk.{name}")
    raise AttributeError(f"module 'tk' has no attribute {name!r}")
