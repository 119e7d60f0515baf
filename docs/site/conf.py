"""The configuration of `make docs` for Sphinx; `docs/site/build` puts the pages into one folder first."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "editors" / "pygments"))

from tk_pygments import TkLexer  # noqa: E402

project = "tk"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "tk"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# Headings have the anchors that GitHub gives them.
myst_heading_anchors = 6
# Blocks of statements, and shell sessions, are not whole files of a language.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app):
    app.add_lexer("tk", TkLexer)
