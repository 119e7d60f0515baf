"""Files of kernels and their kernels: :class:`Module`, :class:`Kernel`."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from tk import _native
from tk.errors import CompileWarning

#: A kernel, callable with tensors and numbers: ``kernel(x, y, eps=1e-5, BLOCK=1024)``.
Kernel = _native.Kernel


class Module:
    """The kernels of a file, as attributes and by name: ``m.softmax``, ``m["softmax"]``."""

    def __init__(self, path: str, source: Optional[str] = None) -> None:
        self._program = _native.Program(path, source, sys.prefix)
        self.__file__ = path
        self.__name__ = path
        self.__doc__ = f"Kernels of {path}."
        for diagnostic in self._program.warnings:
            warnings.warn(str(diagnostic), CompileWarning, stacklevel=3)
        self._kernels: Dict[str, Kernel] = {}
        for name in self._program.names:
            kernel = Kernel.of(self._program, name)
            self._kernels[name] = kernel
            # What the module itself has stays: such a kernel is `m["__init__"]`.
            if not hasattr(type(self), name) and not name.startswith("_"):
                self.__dict__[name] = kernel

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_kernels" not in self.__dict__:
            raise AttributeError(name)
        has = ", ".join(f"`{k}`" for k in self._kernels) or "none"
        raise AttributeError(f"{self.__file__} has no kernel `{name}`; its kernels: {has}")

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._kernels})

    def __repr__(self) -> str:
        return f"<kernels {', '.join(self._kernels)} of {self.__file__}>"


def require_kernel(kernel: Any, what: str) -> Kernel:
    """The kernel, or an error that says what takes one."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{what} takes a kernel, such as `m.softmax`, and not `{type(kernel).__name__}`")
    return kernel


def without_results(kernel: Kernel, out: Mapping[str, Any]) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
    """The arguments of a kernel, and those of them that are no results; ``out`` is checked to name what it writes."""
    if not isinstance(out, Mapping):
        raise TypeError("`out` is a dict: {'y': 'x'} makes `y` like `x`")
    parameters = [p for p in kernel.parameters if p["kind"] != "compile-time"]
    by_name = {p["name"]: p for p in parameters}
    for result in out:
        if result not in by_name:
            raise ValueError(f"kernel `{kernel.name}` has no parameter `{result}`")
        if not by_name[result]["mutable"]:
            raise ValueError(f"kernel `{kernel.name}` does not write `{result}`, so it cannot be a result")
    return parameters, [p for p in parameters if p["name"] not in out]


@functools.lru_cache(maxsize=64)
def _loaded(path: str, text: Optional[str]) -> Module:
    return Module(path, text)


def _restore(path: str, text: Optional[str], name: str, given: List[Tuple[str, str]]) -> Kernel:
    """A kernel that was pickled."""
    kernel = _loaded(path, text)[name]
    return kernel[dict(given)] if given else kernel
