"""``python -m tk``: the command ``tk``."""

import os
import sys

from tk import _native


def main() -> int:
    # The packages of this Python may have NVIDIA's assembler.
    os.environ.setdefault("TK_VENV", sys.prefix)
    sys.stdout.flush()
    return _native.command(["tk", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
