"""Generates the files with which the JupyterLab extension plays views, from the scripts in `viz/static`:
`static/player.json`.

    python tinote/viz/labextensions/generate.py

What it makes is checked in, so that installing the project needs nothing; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path

from tinote.viz.notebook.page import NOTICE, compact
from tinote.viz.notebook.view import static_source
from tinote.viz.pages.bundle import ENGINES, engine_script, joined, page_script
from tinote.viz.pages.export import STYLES, STYLES_OF_VIEWS

FOLDER = Path(__file__).parent / "tinote" / "static"


def generated() -> dict[str, str]:
    """The texts of the files, by their names."""
    kinds = sorted(ENGINES)
    player = {
        "notice": NOTICE,
        "styles": static_source(*STYLES, *STYLES_OF_VIEWS, "pages/player.css"),
        "first": compact(static_source("pages/player.js")),
        "page": joined(page_script(kinds, space=True)),
        "engine": joined(engine_script(kinds, gpu=True, space=True)),
    }
    return {"player.json": _text(player)}


def _text(parts: dict[str, str]) -> str:
    """JSON with the lines of each part on lines of their own, so that a change can be read."""
    lines = {name: text.split("\n") for name, text in parts.items()}
    return json.dumps(lines, ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    for name, text in generated().items():
        (FOLDER / name).write_text(text, "utf-8")
