"""The exceptions of the package, and :class:`Diagnostic`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence

__all__ = ["CompileError", "CompileWarning", "DeviceError", "Diagnostic", "Error", "LaunchError"]


@dataclass(frozen=True)
class Diagnostic:
    """A message about a place in a source file."""

    #: The code, which ``tk explain`` explains: ``E0304``.
    code: str
    #: ``error`` or ``warning``.
    severity: str
    #: One sentence.
    message: str
    file: str
    #: Counted from 1.
    line: int
    #: In characters, counted from 1.
    column: int
    #: The text that the command prints, with the source.
    rendered: str

    def __str__(self) -> str:
        return self.rendered.rstrip()


class Error(Exception):
    """The base of all exceptions of this package."""


class _Explained(Error):
    """An exception with diagnostics."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic] = (), code: Optional[str] = None) -> None:
        super().__init__(text)
        #: What is wrong, in source order.
        self.diagnostics: List[Diagnostic] = list(diagnostics)
        #: The code, which ``tk explain`` explains; ``None`` if there is none.
        self.code: Optional[str] = self.diagnostics[0].code if self.diagnostics else code

    def _render_traceback_(self) -> List[str]:
        # IPython: the place in the kernel is what matters, not the frames of this package.
        return [f"{type(self).__name__}:", *str(self).splitlines()]


class CompileError(_Explained):
    """A source file is wrong. The text is what ``tk check`` prints."""


class LaunchError(_Explained, ValueError):
    """A launch is refused by the kernel's contract, or an assertion of the kernel failed."""


class DeviceError(Error, RuntimeError):
    """A device or its driver failed, or is not there."""

    def __init__(self, text: str, code: Optional[int] = None) -> None:
        super().__init__(text)
        #: The driver's number, ``CUresult`` or ``hipError_t``; ``None`` if the driver was not asked.
        self.code = code


class CompileWarning(UserWarning):
    """A warning of the compiler about a source file."""
