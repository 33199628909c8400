"""Pages: one HTML file that needs no kernel and no network, and whose content security policy forbids requests.

A Content-Security-Policy names the scripts of the file by their digests, and allows nothing else: no other script, no
`eval`, no request. WebAssembly may be compiled, and Workers may be started of what the page holds.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from typing import Any

from tinote.viz.notebook.view import static_source

NOTICE = """This page was made by tinote, copyright the tinote authors, and contains parts of it, licensed under the
Apache License, Version 2.0 (www.apache.org/licenses/LICENSE-2.0)."""


def as_json(data: Any) -> str:
    """`data` as JSON that may stand in a script element and be written as UTF-8, whatever texts are in it."""
    # In a script element only these sequences end the text; as escapes they mean the same to JSON.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def as_text(text: str) -> str:
    """A text as HTML shows it; half a character is shown as one that is not known."""
    return html.escape(re.sub("[\ud800-\udfff]", "\ufffd", text))


def compact(script: str) -> str:
    """JavaScript without the comments that have lines of their own, and without indentation."""
    lines: list[str] = []
    in_comment = False
    for line in script.splitlines():
        text = line.strip()
        if in_comment or text.startswith("/*"):
            in_comment = "*/" not in text
        elif text and not text.startswith("//"):
            lines.append(text)
    return "\n".join(lines)


def policy(scripts: Sequence[str]) -> str:
    """The Content-Security-Policy of a page with these scripts."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; base-uri 'none'; "
        "form-action 'none'"
    )


def scripts_in(page: str) -> list[str]:
    """The modules of a page that `document` has made."""
    return re.findall(r'<script type="module">(.*?)</script>', page, flags=re.DOTALL)


def document(
    title: str,
    *,
    styles: str,
    scripts: Sequence[str],
    compressed: Sequence[str] = (),
    body: str,
    kind: str = "tinote-page",
    data: str = "",
) -> str:
    """The text of a page. `title`: as plain text; `styles`: its style sheet; `scripts`: its modules, in order;
    `compressed`: scripts that these may add; `body`: HTML, in a body of the class `kind`; `data`: an element that holds
    what scripts read; `notices`: of licences, besides that of this package. In a frame of another page, it tells that
    one its height, and takes the theme that it is sent (`static/pages/framed.js`).
    """
    modules = [f"\n{script}\n" for script in (compact(static_source("pages/framed.js")), *scripts)]
    for script in modules:
        assert "</script" not in script.lower() and "<!--" not in script
    written = "\n".join(f'<script type="module">{script}</script>' for script in modules)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy([*modules, *compressed]))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{as_text(title)}</title>
<style>
/*!
{NOTICE}
*/
{styles}
</style>
</head>
<body class="{kind}">
{body}
{data}
{written}
</body>
</html>
"""


def page(title: str, styles: Sequence[str], scripts: Sequence[str], start: str, data: dict[str, Any]) -> str:
    """The text of the page of one view: the style sheets, the modules and the data, and a call of the JavaScript
    function `start` with the element to fill and the data.
    """
    call = f'{start}(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));'
    return document(
        title,
        styles=static_source(*styles),
        scripts=[f"{static_source(*scripts)}\n{call}"],
        body='<main id="view"></main>',
        data=f'<script type="application/json" id="data">{as_json(data)}</script>',
    )
