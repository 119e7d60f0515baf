"""Measures language servers over their pipes and prints a table: `tk lsp` beside `ty server` for Python.

    scripts/bench-editor [--tk target/release/tk]

Files of 2,000 and 10,000 lines, as people write them. A key is typed somewhere in a body and taken back; then the client
asks, as an editor does. CPU time is that of the server's process, with all of its threads: other work on the machine does
not count. Both servers run in the same minutes.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = "use std::grid;\nuse std::math;\n\nconst LOG2E = 1.4426950408889634;\n\n"
KEYS = 60
TICK = os.sysconf("SC_CLK_TCK")

PYTHON = '''
@dataclass
class Shape_N:
    """Extents of a tensor, and where its elements are."""

    extents: list[int]
    strides: list[int]
    offset: int = 0

    def count(self) -> int:
        total = 1
        for extent in self.extents:
            total *= extent
        return total

    def at(self, place: Sequence[int]) -> int:
        pairs = zip(place, self.strides)
        return self.offset + sum(i * stride for i, stride in pairs)


def softmax_N(rows: list[list[float]], scale: float = 1.0) -> list[list[float]]:
    """Softmax of each row."""
    result: list[list[float]] = []
    for row in rows:
        largest = max(row)
        powers = [math.exp((x - largest) * scale) for x in row]
        total = sum(powers)
        result.append([p / total for p in powers])
    return result


def matmul_N(a: Sequence[float], b: Sequence[float], shape: Shape_N, act: Callable[[float], float] | None = None) -> list[float]:
    """A product of square matrices, with a function of each element."""
    n = shape.extents[0]
    out = [0.0] * shape.count()
    for i in range(n):
        for j in range(n):
            acc = 0.0
            for k in range(n):
                acc = acc + a[shape.at([i, k])] * b[shape.at([k, j])]
            out[shape.at([i, j])] = act(acc) if act is not None else acc
    return out


def test_N() -> None:
    shape = Shape_N([2, 2], [2, 1])
    values = matmul_N([1.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0], shape)
    rows = softmax_N([values[:2], values[2:]], scale=0.5)
    assert abs(sum(rows[0]) - 1.0) < 1e-6
'''
IMPORTS = "import math\nfrom collections.abc import Callable, Sequence\nfrom dataclasses import dataclass\n\n"


def tk_file(lines: int) -> str:
    kernels = (ROOT / "benches/cpu/benches/kernels.tk").read_text()
    return grown(HEAD, lambda i: kernels.replace("_N", f"_{i}").replace("gated N", f"gated {i}"), lines)


def python_file(lines: int) -> str:
    return grown(IMPORTS, lambda i: PYTHON.replace("_N", f"_{i}"), lines)


def grown(text: str, part, lines: int) -> str:
    for i in range(lines):
        if text.count("\n") >= lines:
            break
        text += part(i)
    return text


class Server:
    """A language server with one file open."""

    def __init__(self, command: list[str], language: str, suffix: str, text: str, folder: str):
        path = pathlib.Path(folder) / f"main{suffix}"
        path.write_text(text)
        self.uri, self.version, self.number = path.as_uri(), 1, 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        tokens = {"requests": {"full": True}, "formats": ["relative"], "tokenTypes": [], "tokenModifiers": []}
        capabilities = {"textDocument": {"diagnostic": {}, "semanticTokens": tokens}}
        root = {"uri": pathlib.Path(folder).as_uri(), "name": "w"}
        self.ask("initialize", {"processId": None, "capabilities": capabilities, "workspaceFolders": [root], "rootUri": root["uri"]})
        self.notify("initialized", {})
        document = {"uri": self.uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        self.about("diagnostic")

    def send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: dict) -> None:
        self.send({"method": method, "params": params})

    def receive(self) -> bytes:
        length = 0
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        return self.process.stdout.read(length)

    def ask(self, method: str, params: dict | None) -> dict:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            body = self.receive()
            # Before the client reads it: that takes longer than many answers.
            self.arrival = time.perf_counter()
            message = json.loads(body)
            if "method" in message and "id" in message:
                # Both may ask for settings or registrations, which they do without.
                empty = [None] * len((message.get("params") or {}).get("items", []))
                self.send({"id": message["id"], "result": empty or None})
            elif message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def about(self, method: str, place: dict | None = None):
        params = {"textDocument": {"uri": self.uri}}
        return self.ask(f"textDocument/{method}", {**params, "position": place} if place else params)

    def key(self, place: dict, insert: bool) -> None:
        end = {**place, "character": place["character"] + (0 if insert else 1)}
        self.version += 1
        change = {"range": {"start": place, "end": end}, "text": "q" if insert else ""}
        document = {"uri": self.uri, "version": self.version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def cpu(self) -> float:
        """Milliseconds of all threads; a tick is 10 of them, so only sums of many keys mean something."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / TICK

    def memory(self) -> float:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def end(self) -> None:
        self.ask("shutdown", None)
        self.notify("exit", None)
        self.process.wait(timeout=10)


def measured(server: Server, places: list[dict]) -> list[str]:
    """The cells of the table."""
    rows = []
    start, walls = server.cpu(), []
    for place in places:
        for insert in [True, False]:
            begin = time.perf_counter()
            server.key(place, insert)
            server.about("diagnostic")
            walls.append((server.arrival - begin) * 1000)
    rows.append(f"{(server.cpu() - start) / len(walls):.1f}")
    rows.append(f"{statistics.median(walls):.1f}")
    for method in ["hover", "completion", "semanticTokens/full", "documentSymbol"]:
        after, again = [], []
        for place in places[: KEYS // 3]:
            for insert in [True, False]:
                server.key(place, insert)
                begin = time.perf_counter()
                asked = place if method in ["hover", "completion"] else None
                server.about(method, asked)
                after.append((server.arrival - begin) * 1000)
                server.about("diagnostic")
                server.about(method, asked)
                begin = time.perf_counter()
                server.about(method, asked)
                again.append((server.arrival - begin) * 1000)
        rows.append(f"{statistics.median(after):.1f}, {statistics.median(again):.1f}")
    rows.append(f"{server.memory():.0f}")
    return rows


NAMES = [
    "CPU time of a key to diagnostics, ms",
    "a key to diagnostics, ms",
    "hover after a key, again, ms",
    "completion after a key, again, ms",
    "colors of the file after a key, again, ms",
    "symbols of the file after a key, again, ms",
    "memory, MB",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tk", default=str(ROOT / "target/release/tk"))
    parser.add_argument("--ty", default=str(ROOT / ".venv/bin/ty"))
    options = parser.parse_args()
    servers = [
        ("tk", [options.tk, "lsp"], "tk", ".tk", tk_file),
        ("ty", [options.ty, "server"], "python", ".py", python_file),
    ]
    columns = []
    for lines in [2000, 10000]:
        for name, command, language, suffix, make in servers:
            text = make(lines)
            bodies = [(i, line) for i, line in enumerate(text.split("\n")) if line.startswith("    ") and "= " in line]
            step = max(1, len(bodies) // KEYS)
            places = [{"line": i, "character": line.index("= ") + 2} for i, line in bodies[::step][:KEYS]]
            with tempfile.TemporaryDirectory() as folder:
                server = Server(command, language, suffix, text, folder)
                columns.append((f"`{name}`, {lines:,} lines", measured(server, places)))
                server.end()
    print("| |" + "".join(f" {title} |" for title, _ in columns))
    print("|---|" + "---|" * len(columns))
    for i, name in enumerate(NAMES):
        print(f"| {name} |" + "".join(f" {cells[i]} |" for _, cells in columns))


if __name__ == "__main__":
    main()
