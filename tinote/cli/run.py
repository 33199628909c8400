"""`tinote run`: a notebook without a browser."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from tqdm import tqdm

from tinote.cli.html_export import OfflineHTMLExporter
from tinote.cli.status import FAILED, Unusable, reason


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return run(options.notebook, html=options.html, timeout=options.timeout)


class Progress:
    """The cells that have run: a bar on a terminal, else one plain line per cell.

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
    document, failure = executed(notebook, timeout)
    return finished(notebook, html or notebook.with_suffix(".html"), _page(document, notebook.stem), failure)


def finished(notebook: Path, page: Path, text: str, failure: str) -> int:
    """Write the page of a notebook, and say what became of it; gives the exit status. Raises `Unusable`."""
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unusable(f"cannot write {page}: {reason(error)}") from None
    print(page)
    if not failure:
        return 0
    said = f"{notebook}: {failure}"
    print(said if sys.stderr.isatty() else _plain(said), file=sys.stderr)
    return FAILED


def executed(
    notebook: Path, timeout: float | None = None, variables: Mapping[str, str] | None = None
) -> tuple[nbformat.NotebookNode, str]:
    """A notebook with the outputs of a fresh kernel of this Python, which has further environment `variables`; and what
    went wrong, "" if nothing. `timeout` is in seconds a cell. Raises `Unusable`.
    """
    try:
        document = nbformat.read(notebook, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a notebook"
        raise Unusable(f"cannot read {notebook}: {why}") from None
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
    # The process's own standard error is for the case that it ends: else it tells how the kernel shut itself down.
    with tempfile.TemporaryFile() as kernel_errors:
        try:
            client.execute(stderr=kernel_errors, env={**os.environ, **(variables or {})})
        except CellExecutionError:
            failure = f"raised\n{_error_text(document.cells[progress.current])}"
        except CellTimeoutError:
            failure = f"took longer than {timeout:g} s\n{document.cells[progress.current].source}"
        except DeadKernelError:
            source = document.cells[progress.current].source
            failure = f"ended the kernel's process\n{source}\n{_text_of(kernel_errors)}"
        except RuntimeError as error:
            raise Unusable(f"the kernel did not start: {error}\n{_text_of(kernel_errors)}") from None
        finally:
            progress.close()
    return document, failure and f"cell {progress.current + 1} {failure}"


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").rstrip()


def _page(document: nbformat.NotebookNode, title: str) -> str:
    text, _ = OfflineHTMLExporter().from_notebook_node(document, resources={"metadata": {"name": title}})
    return text


def _error_text(cell: nbformat.NotebookNode) -> str:
    """What IPython showed: for an error in a kernel that is the user's line with its caret."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return "\n".join("\n".join(output.traceback) or f"{output.ename}: {output.evalue}" for output in errors)


def _plain(text: str) -> str:
    """The text without the escape sequences that colour it."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
