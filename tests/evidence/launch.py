"""Owns the call of `tk run` on arrays, the element types on both sides, and how results are compared.

May assume that kernels lie beside this file. Guarantees that both sides read the same bits: an array goes through a
`.npy` file as it is, types that NumPy lacks as raw elements.
"""

import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
F8 = ["f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]

DTYPES = {
    "bool": np.bool_,
    **{name: {"i": "int", "u": "uint"}[name[0]] + name[1:] for name in INTS},
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
DTYPES = {name: np.dtype(dtype) for name, dtype in DTYPES.items()}

# How many wrong elements are shown of one comparison.
SHOWN = 3


def bits_type(name):
    """The unsigned integer of the same width."""
    return np.dtype(f"u{DTYPES[name].itemsize}")


def is_raw(name):
    """Whether NumPy itself lacks the type, so that a file holds raw elements."""
    return name == "bf16" or name in F8


class Launcher:
    """Runs kernels. A context manager: it owns a folder for the files."""

    def __init__(self, tk, device="cpu"):
        self.tk = tk
        self.device = device

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, target, inputs, outputs, sets=()):
        """Runs `target` (`file.tk` or `file.tk::kernel`). `inputs`: name to (type, array) or a number; `outputs`: name
        to (type, shape); `sets`: compile-time arguments. Gives the outputs by name."""
        folder = pathlib.Path(self.folder.name)
        words = [str(self.tk), "run", "--device", self.device, str(HERE / target)]
        for name, value in inputs.items():
            if isinstance(value, tuple):
                dtype, array = value
                array = np.ascontiguousarray(array)
                assert array.dtype == DTYPES[dtype], f"{name}: {array.dtype} is not {dtype}"
                np.save(folder / f"{name}.npy", array.view(f"V{array.itemsize}") if is_raw(dtype) else array)
                value = folder / f"{name}.npy"
            words.append(f"{name}={value}")
        for name, (dtype, shape) in outputs.items():
            words.append(f"{name}=zeros:{dtype}[{','.join(map(str, shape))}]")
            words += ["--out", f"{name}={folder / name}_out.npy"]
        for name, value in dict(sets).items():
            words += ["--set", f"{name}={value}"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}\nexit code {done.returncode}\n{done.stderr}")
        results = {}
        for name, (dtype, _) in outputs.items():
            results[name] = np.load(folder / f"{name}_out.npy").view(DTYPES[dtype])
        return results


def is_float(array):
    return array.dtype.kind not in "iub"


def differ(got, expected):
    """Where two arrays of one type differ in bits; NaNs are equal to each other."""
    assert got.dtype == expected.dtype and got.shape == expected.shape, f"{got.dtype} {expected.dtype}"
    bits = np.dtype(f"u{got.itemsize}")
    wrong = got.view(bits) != expected.view(bits)
    if is_float(got):
        wrong &= ~(np.isnan(got) & np.isnan(expected))
    return wrong


def problem(wrong, got, expected, *inputs):
    """The first wrong elements in words, or None if there are none."""
    places = np.flatnonzero(wrong)
    if len(places) == 0:
        return None
    shown = []
    for i in places[:SHOWN]:
        args = ", ".join(str(x.flat[i]) for x in inputs)
        shown.append(f"of {args} is {got.flat[i]!s}, expected {expected.flat[i]!s}")
    return f"{len(places)} of {np.size(wrong)} differ: " + "; ".join(shown)


def same(got, expected, *inputs):
    """The problem of a comparison bit by bit."""
    return problem(differ(got, expected), got, expected, *inputs)


def all_values(name):
    """Every value of a type of at most 16 bits."""
    if name == "bool":
        return np.array([False, True])
    bits = bits_type(name)
    return np.arange(1 << (8 * bits.itemsize), dtype=np.uint32).astype(bits).view(DTYPES[name])
