"""Starts tk-gpu-bench and peers.py in turns."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Seconds that one program may take: a kernel that never ends must not keep the machine.
LIMIT = 400


def stop(code, sentence):
    print(f"benches/gpu/run: {sentence}", file=sys.stderr)
    sys.exit(code)


def bench_program():
    """The program that measures this project."""
    given = os.environ.get("TK_GPU_BENCH")
    if given:
        if not os.access(given, os.X_OK):
            stop(3, f"TK_GPU_BENCH is {given}, which is no program")
        return given
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / "release" / "tk-gpu-bench"
    if not os.access(built, os.X_OK):
        stop(3, "there is no tk-gpu-bench; build it with `cargo build --release -p tk-gpu-bench`, or let TK_GPU_BENCH name it")
    return str(built)


def environment(folder):
    """The environment of both programs: what one round compiles, the next ones find."""
    found = dict(os.environ, TK_CACHE_DIR=str(folder / "cache"))
    # The assembler that scripts/setup installs: `tk` uses no `.venv` that is not named.
    found.setdefault("TK_VENV", str(ROOT / ".venv"))
    found.pop("TK_CACHE", None)
    return found


def ours(out):
    """The command of tk-gpu-bench with its first arguments."""
    return [bench_program(), "--root", str(ROOT), "--out", str(out)]


def peers(out):
    """The command of peers.py with its first arguments."""
    return [sys.executable, str(HERE / "peers.py"), "--out", str(out)]


def start(name, command, variables, limit=LIMIT):
    """Runs a program. What it lacks ends this one too; anything else it says is shown and the other goes on."""
    try:
        code = subprocess.run(command, env=variables, timeout=limit, check=False).returncode
    except subprocess.TimeoutExpired:
        return f"{name} took longer than {limit:.0f} s; what it had measured by then counts"
    except OSError as error:
        stop(3, f"{command[0]} cannot be started: {error.strerror}")
    if code in (2, 3):
        sys.exit(code)
    return None if code == 0 else f"{name} ended with exit code {code}"


def read(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
