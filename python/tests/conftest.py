"""Runs the tests on the package of this folder, whose extension module `make python` copies there."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture(scope="session")
def examples() -> pathlib.Path:
    return ROOT / "examples"


@pytest.fixture(scope="session")
def stdlib() -> pathlib.Path:
    return ROOT / "stdlib"
