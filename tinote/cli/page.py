"""`tinote page`: a notebook as one page in which its live views run."""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat

from tinote.cli.html_export import PageExporter
from tinote.cli.run import executed, finished
from tinote.viz.pages.export import report


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return page(options.notebook, output=options.output, timeout=options.timeout)


def page(notebook: Path, *, output: Path | None = None, timeout: float | None = None) -> int:
    """Executes a notebook in a fresh kernel of this Python and writes it as one HTML page, in which each live view runs
    without Python, server or network. What became of each view is printed, with the reason where it is a picture.

    `timeout` is in seconds a cell. A cell that fails ends the run: its error goes to standard error, the page shows
    what was reached, and the status is 1. Raises `Unusable` for a notebook that cannot be read, and a page that cannot
    be written.
    """
    document, failure = executed(notebook, timeout, {"TINOTE_PAGE": "1"})
    exporter = PageExporter()
    resources = {"metadata": {"name": notebook.stem, "title": _title(document), "path": str(notebook.resolve().parent)}}
    text, _ = exporter.from_notebook_node(document, resources=resources)
    status = finished(notebook, output or notebook.with_suffix(".html"), text, failure)
    for line in report(exporter.shown):
        print(line)
    return status


def _title(document: nbformat.NotebookNode) -> str:
    """The first heading of a notebook; "" where there is none."""
    for cell in document.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if line.startswith("# "):
                    return line[2:].strip()
    return ""
