"""The cell magic, with a shell that has what IPython's has."""

import numpy as np

import tk


class Shell:
    def __init__(self):
        self.magics, self.names = {}, {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function

    def push(self, names):
        self.names.update(names)


CELL = "kernel two(x: mut view[f32, 1]) grid(1) { x.store([0], x.load([0], [64]) * 2.0); }"


def test_a_cell_gives_its_kernels():
    shell = Shell()
    tk.load_ipython_extension(shell)
    magic = shell.magics["cell", "tk"]
    assert magic("", CELL) is None
    x = np.ones(64, np.float32)
    shell.names["two"](x)
    assert x[0] == 2
    magic("m", CELL)
    assert list(shell.names["m"]) == ["two"]
    shown = magic("", "kernel two(x: y) grid(1) {}")
    assert "<pre" in shown._repr_html_() and "error[" in repr(shown)
