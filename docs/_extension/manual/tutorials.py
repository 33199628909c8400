"""The tutorials as pages of the site: executed, with each live view running in a frame."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from manual.places import REPOSITORY, VIEWS, described, frame, running_frame, write
from tinote.cli.html_export import PageExporter
from tinote.cli.run import executed
from tinote.viz.notebook.front_end import PAGE_TYPE
from tinote.viz.pages.bundle import unpacked

NOTEBOOKS = REPOSITORY / "notebooks"
EXPLORER_HEIGHT = 640
WIDGETS = ("application/vnd.jupyter.widget-view+json", "application/vnd.tinote.view+json")
SECONDS = 900
WELCOME = "00_welcome"
HEAD = """# Tutorials

The notebooks of the repository, executed, with each live view running and each explorer open. `tinote lab` opens them
for you to change.
"""


def lists() -> str:
    """The tables of the first notebook, which lists the others in the order in which they are read."""
    cells = nbformat.read(NOTEBOOKS / f"{WELCOME}.ipynb", as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown" and "\n|--" in cell.source)


def names() -> list[str]:
    """The names of all tutorials, in that order."""
    return [WELCOME, *re.findall(r"\]\((\w+)\.ipynb\)", lists())]


def missing(file: Path) -> list[str]:
    """The libraries that a tutorial needs besides the package, as its metadata say, and that are not installed."""
    needed = nbformat.read(file, as_version=4).metadata.get("tinote", {}).get("needs", [])
    return [name for name in needed if find_spec(name) is None]


def write_tutorials(sources: Path, views: Path, cache: Path, run: set[str]) -> None:
    """Write the tutorials as sources of the site, and the pages of their views into the folder `views`. Those named in
    `run` are executed, unless `cache` holds what became of them; the others, and those that need a library which is not
    there, keep their stored outputs.
    """
    for name in names():
        file = NOTEBOOKS / f"{name}.ipynb"
        if name in run and not missing(file):
            found = executed_for_site(file, cache)
            text, _ = PageExporter().from_notebook_node(
                found, resources={"metadata": {"name": name, "path": NOTEBOOKS}}
            )
            write(views / f"{name}.html", text)
            link = (
                f'<a href="../{VIEWS}/{name}.html">This tutorial as one file that runs</a> · {len(text) / 1e6:.1f} MB'
            )
            found.cells.insert(1, nbformat.v4.new_markdown_cell(f'<p class="tinote-alone">{link}</p>', id="alone"))
        else:
            found = nbformat.read(file, as_version=4)
        write(sources / f"{name}.ipynb", nbformat.writes(placed(found, name, views)))
    shutil.copytree(NOTEBOOKS / "pictures", sources / "pictures", dirs_exist_ok=True)
    write(sources / "errors.md", (NOTEBOOKS / "errors.md").read_text("utf-8"))
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names(), "errors", "```"])
    first = f"[Welcome]({WELCOME}.ipynb) sees that everything works; [errors](errors.md) explains each class of errors."
    write(sources / "index.md", f"{HEAD}\n{first}\n\n{lists()}\n\n{tree}\n")


def executed_for_site(file: Path, cache: Path, variables: Mapping[str, str] | None = None) -> NotebookNode:
    """The notebook with the outputs of a run for a site, whose kernel has further environment `variables`: of the last
    run in `cache`, if neither it nor the package has changed. Raises `RuntimeError` where a cell fails.
    """
    held = cache / f"{file.stem}-{_digest(file)}.ipynb"
    if not held.is_file():
        found, failure = executed(file, SECONDS, {"TINOTE_PAGE": "1", **(variables or {})})
        if failure:
            raise RuntimeError(f"{file.name}: {failure}")
        for old in cache.glob(f"{file.stem}-*.ipynb"):
            old.unlink()
        write(held, nbformat.writes(found))
    return nbformat.read(held, as_version=4)


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    digest.update("\0".join(cell.source for cell in nbformat.read(file, as_version=4).cells).encode())
    for source in sorted((REPOSITORY / "tinote").rglob("*")):
        if source.suffix in {".py", ".js", ".css", ".c", ".h", ".ll"}:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def placed(notebook: NotebookNode, name: str, views: Path) -> NotebookNode:
    """The notebook with frames in place of its views; their pages are written."""
    notebook.metadata.pop("widgets", None)
    number = 0
    for cell in notebook.cells:
        outputs: list[NotebookNode] = []
        for output in cell.get("outputs", []):
            payload = output.get("data", {}).get(PAGE_TYPE, {})
            if "views" in payload:
                for found in unpacked(payload["views"]):
                    number += 1
                    outputs.append(_shown(_view(found, views, f"{name}-{number}.html")))
            elif "page" in payload:
                number += 1
                page = f"{name}-{number}.html"
                write(views / page, payload["page"])
                said = f"{len(payload['page']) // 1000} kB"
                outputs.append(
                    _shown(
                        frame(f"../{VIEWS}/{page}", payload["name"].splitlines()[0], EXPLORER_HEIGHT, said, "is-high")
                    )
                )
            else:
                outputs.append(_without_scripts(output))
        if cell.cell_type == "code":
            cell.outputs = outputs
    return notebook


def _view(found: dict[str, Any], views: Path, page: str) -> str:
    if "running" in found:
        return running_frame(described(found), views, page, "../")
    source = base64.b64encode(found["png"]).decode()
    said = f"This view is a picture: {found['reason'].strip()}"
    return (
        f'<figure><img src="data:image/png;base64,{source}" alt="{html.escape(found["label"])}">'
        f"<figcaption>{html.escape(said)}</figcaption></figure>"
    )


def _shown(text: str) -> NotebookNode:
    return nbformat.v4.new_output("display_data", {"text/html": text})


def _without_scripts(output: NotebookNode) -> NotebookNode:
    """An output without what scripts of other hosts would show."""
    data = output.get("data")
    if data is None:
        return output
    kept = {kind: value for kind, value in data.items() if kind not in {*WIDGETS, PAGE_TYPE}}
    if isinstance(text := kept.get("text/html"), str):
        kept["text/html"] = re.sub(r"<script\b.*?(</script\s*>|$)", "", text, flags=re.DOTALL | re.IGNORECASE)
    return NotebookNode({**output, "data": NotebookNode(kept)})
