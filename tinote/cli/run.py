"""`tinote run`: a notebook without a browser."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.exporters import HTMLExporter
from tqdm import tqdm

from tinote.cli.status import FAILED, UNUSABLE, reason


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return run(options.notebook, html=options.html, timeout=options.timeout)


class Progress:
    """The cells that have run: a bar on a terminal, else one plain line a cell.

    `current` is the index, in the notebook, of the cell that runs or ran last.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.total = total
        self.done = 0
        self.current = 0
        self.started = time.perf_counter()
        self.bar = tqdm(total=total, desc=name, unit="cell", disable=not sys.stderr.isatty())

    def cell_starts(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """Called by the notebook client before a code cell."""
        self.current = cell_index
        self.started = time.perf_counter()

    def cell_executed(self, cell: nbformat.NotebookNode, cell_index: int, execute_reply: object) -> None:
        """Called by the notebook client after a code cell, whether it failed or not."""
        seconds = time.perf_counter() - self.started
        self.done += 1
        self.bar.update()
        if self.bar.disable:
            print(f"{self.name}: cell {self.done} of {self.total}, {seconds:.1f} s", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the bar as it stands."""
        self.bar.close()


def run(notebook: Path, *, html: Path | None = None, timeout: float | None = None) -> int:
    """Executes a notebook in a fresh kernel of this Python and writes an HTML page with its pictures.

    `timeout` is in seconds a cell. A cell that fails ends the run: its error goes to standard error, the page shows
    what was reached, and the status is 1. A notebook that cannot be read, or a page that cannot be written, gives 2.
    """
    page = html or notebook.with_suffix(".html")
    try:
        document = nbformat.read(notebook, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a notebook"
        print(f"tinote run: cannot read {notebook}: {why}", file=sys.stderr)
        return UNUSABLE
    code_cells = [cell for cell in document.cells if cell.cell_type == "code" and cell.source.strip()]
    for cell in code_cells:
        cell.outputs = []
        cell.execution_count = None
    progress = Progress(notebook.name, len(code_cells))
    client = nbclient.NotebookClient(
        document,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.resolve().parent)}},
        # Without the state of its widgets a page shows their pictures, and needs no network to do so.
        store_widget_state=False,
        # The kernel's own warnings are about servers; what a cell prints and raises comes with its outputs.
        extra_arguments=["--log-level=ERROR"],
        on_cell_execute=progress.cell_starts,
        on_cell_executed=progress.cell_executed,
    )
    failure = ""
    try:
        client.execute()
    except CellExecutionError:
        failure = f"raised\n{_error_text(document.cells[progress.current])}"
    except CellTimeoutError:
        failure = f"took longer than {timeout:g} s\n{document.cells[progress.current].source}"
    except DeadKernelError:
        failure = f"ended the kernel's process\n{document.cells[progress.current].source}"
    except RuntimeError as error:
        print(f"tinote run: the kernel did not start: {error}", file=sys.stderr)
        return UNUSABLE
    finally:
        progress.close()

    try:
        page.write_text(_page(document, notebook.stem), encoding="utf-8")
    except OSError as error:
        print(f"tinote run: cannot write {page}: {reason(error)}", file=sys.stderr)
        return UNUSABLE
    print(page)
    if failure:
        text = f"{notebook}: cell {progress.current + 1} {failure}"
        print(text if sys.stderr.isatty() else _plain(text), file=sys.stderr)
        return FAILED
    return 0


def _page(document: nbformat.NotebookNode, title: str) -> str:
    exporter = HTMLExporter(template_name="lab", embed_images=True)
    text, _ = exporter.from_notebook_node(document, resources={"metadata": {"name": title}})
    return text


def _error_text(cell: nbformat.NotebookNode) -> str:
    """What IPython showed: for an error in a kernel that is the user's line with its caret."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return "\n".join("\n".join(output.traceback) or f"{output.ename}: {output.evalue}" for output in errors)


def _plain(text: str) -> str:
    """The text without the escape sequences that colour it."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
