"""A view as one HTML file that needs no kernel and nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from tinote.viz.notebook.view import static_source


def page(title: str, styles: Sequence[str], scripts: Sequence[str], start: str, data: dict[str, Any]) -> str:
    """The text of the file: the style sheets, the modules and the data, and a call of the JavaScript function `start`
    with the element to fill and the data.
    """
    # In a script element only these sequences end the text; as escapes they mean the same to JSON.
    embedded = (
        json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    script = static_source(*scripts)
    assert "</script" not in script and "<!--" not in script
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>
{static_source(*styles)}
</style>
</head>
<body class="tinote-page">
<main id="view"></main>
<script type="application/json" id="data">{embedded}</script>
<script type="module">
{script}
{start}(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));
</script>
</body>
</html>
"""
