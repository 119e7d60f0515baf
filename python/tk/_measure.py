"""Measuring and tuning: :func:`bench`, :func:`tune`, :func:`profile`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from tk._kernel import Kernel, require_kernel
from tk.errors import Error

__all__ = ["Times", "bench", "profile", "tune"]


@dataclass(frozen=True)
class Times:
    """The times of repeated launches of a kernel."""

    #: Milliseconds of each launch, from the shortest to the longest.
    ms: Tuple[float, ...]
    #: Bytes that a launch reads and writes at least, each counted once; ``None`` for a compiled bundle.
    bytes: Optional[float]
    #: Operations of a launch on numbers that count for a rate.
    operations: Optional[float]

    def quantile(self, share: float) -> float:
        """The time in milliseconds that this share of the launches, from 0 to 1, does not exceed."""
        last = len(self.ms) - 1
        return self.ms[round(last * min(max(share, 0.0), 1.0))]

    @property
    def median(self) -> float:
        """Milliseconds."""
        half = len(self.ms) // 2
        return self.ms[half] if len(self.ms) % 2 else (self.ms[half - 1] + self.ms[half]) / 2

    @property
    def gb_per_s(self) -> Optional[float]:
        """Counted bytes over the median."""
        return None if self.bytes is None else self.bytes / self.median / 1e6

    @property
    def tflops(self) -> Optional[float]:
        """Counted operations over the median."""
        return None if self.operations is None else self.operations / self.median / 1e9

    def _cells(self) -> Dict[str, str]:
        cells = {
            "median": f"{self.median * 1e3:.4g} us",
            "10 % to 90 %": f"{self.quantile(0.1) * 1e3:.4g} to {self.quantile(0.9) * 1e3:.4g} us",
            "launches": str(len(self.ms)),
        }
        if self.gb_per_s is not None:
            cells["GB/s"] = f"{self.gb_per_s:.4g}"
        if self.tflops:
            cells["TFLOP/s"] = f"{self.tflops:.4g}"
        return cells

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._cells().items())

    def _repr_html_(self) -> str:
        cells = self._cells()
        head = "".join(f"<th>{name}</th>" for name in cells)
        row = "".join(f"<td>{value}</td>" for value in cells.values())
        return f"<table><tr>{head}</tr><tr>{row}</tr></table>"


def bench(kernel: Kernel, *args: Any, seconds: float = 0.5, cold: bool = True, **kwargs: Any) -> Times:
    """Launches a kernel with these arguments again and again, and returns the times that the device measured.

    What the kernel writes is written that often. ``cold``: on a GPU, other memory is written between launches, so that the
    caches hold nothing of the arguments.
    """
    require_kernel(kernel, "`tk.bench`")
    ms, bytes_, operations = kernel._times(seconds, cold, *args, **kwargs)
    return Times(tuple(ms), bytes_, operations)


def _command(words: List[str]) -> List[Dict[str, Any]]:
    """Runs the command in a process of its own; what it tells, line by line."""
    environment = {**os.environ, "TK_VENV": os.environ.get("TK_VENV", sys.prefix)}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    arguments = [sys.executable, "-m", "tk", *words, "--message-format", "json"]
    ran = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode != 0:
        told = [line.get("rendered") or line.get("message") for line in lines]
        text = "\n".join(t for t in told if t) or ran.stderr.strip()
        raise Error(text or f"`tk {words[0]}` ended with {ran.returncode}")
    return lines


def _words(kernel: Kernel, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[str, List[str]]:
    """The device of a call, and the call as arguments of the command: tensors by type and shape, with random numbers."""
    require_kernel(kernel, "this function")
    if kernel.file is None or kernel.file.endswith(".tkb"):
        raise Error(f"kernel `{kernel.name}` is in no source file, and only those are measured so: write one, and load it")
    described = kernel.describe(*args, **kwargs)
    words = [f"{kernel.file}::{kernel.name}"]
    for name, value in described["arguments"]:
        words.append(f"{name}={value}")
    for name, value in described["given"]:
        words += ["--set", f"{name}={value}"]
    return described["device"], words


def tune(kernel: Kernel, *args: Any, budget: float = 60.0, **kwargs: Any) -> List[Dict[str, Any]]:
    """Measures the members of the kernel's ``tune`` list for the shapes of these arguments, and writes the fastest into
    the tuning record beside the source, as ``tk tune`` does, in a process of its own. Modules that are loaded afterwards
    use it.

    Tensors are random and row-major, with the types and shapes of the arguments. ``budget``: seconds.

    :return: the lines that ``tk tune --message-format json`` prints.
    :raises Error: there is nothing to tune, or the command failed.
    """
    if not budget > 0:
        raise ValueError(f"`budget` is a number of seconds above 0, and not {budget}")
    device, words = _words(kernel, args, kwargs)
    return _command(["tune", *words, "--device", device, "--budget", str(budget)])


def profile(kernel: Kernel, *args: Any, measured: bool = False, **kwargs: Any) -> List[Dict[str, Any]]:
    """The cost of each line of a kernel for a launch with these arguments, as ``tk profile`` predicts it, or with
    ``measured`` measures it on the device of the tensors.

    :return: the lines that ``tk profile --message-format json`` prints.
    """
    device, words = _words(kernel, args, kwargs)
    return _command(["profile", *words, *(["--device", device] if measured else [])])
