"""`tinote explore`: the stages of a kernel, of a Python file or a notebook, as a page."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell

from tinote.cli.status import FAILED, UNUSABLE, Unusable, existing_target, reason
from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT
from tinote.errors import TinoteError, users_trace
from tinote.lang.kernels.kernel import BoundKernel, Kernel
from tinote.viz.explorer.widget import explore


class Shell(InteractiveShell):
    """Runs a notebook's cells in this process."""

    def enable_gui(self, gui: str | None = None) -> None:
        """`%matplotlib` asks for windows; there are none."""


class Failed(Exception):
    """The file, or the compiler, has failed; the message is the whole text of the error."""


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    try:
        page = _explore(options.target, html=options.html, gradient=options.grad, as_main=options.main)
    except Unusable as error:
        print(f"tinote explore: {error}", file=sys.stderr)
        return UNUSABLE
    except Failed as error:
        print(error, file=sys.stderr)
        return FAILED
    print(page)
    return 0


def _explore(target: str, *, html: Path | None, gradient: bool, as_main: bool) -> Path:
    file, name = existing_target(target)
    # What the program prints is not what this command is asked for.
    with contextlib.redirect_stdout(sys.stderr):
        namespace = _run_notebook(file) if file.suffix == ".ipynb" else _run_program(file, as_main)
    kernel = _kernel_named(name, namespace, file)
    try:
        specialisation = _specialisation(kernel)
        if gradient and specialisation is not None:
            specialisation.code(GRADIENT)  # What cannot be differentiated is reported here, not on the page.
        explorer = explore(specialisation or kernel, gradient)
    except TinoteError as error:
        raise Failed(_text_of(error)) from None
    page = html or Path(f"{name or explorer.label}.html")
    try:
        return explorer.save(page)
    except OSError as error:
        raise Unusable(f"cannot write {page}: {reason(error)}") from None


def _specialisation(kernel: Kernel | BoundKernel) -> Specialisation | None:
    """The kernel as the file has compiled it last, or as its annotations say; None if only a call can tell."""
    kernel = kernel.kernel if isinstance(kernel, BoundKernel) else kernel
    compiled = kernel.specialisations()
    if compiled:
        return compiled[-1]
    return None if kernel.has_templates else kernel.specialise_by_types()


def _run_program(file: Path, as_main: bool) -> dict[str, Any]:
    sys.path.insert(0, str(file.resolve().parent))
    try:
        return runpy.run_path(str(file), run_name="__main__" if as_main else file.stem)
    except SystemExit as ended:
        raise Failed(f"{file} has ended the program with the status {ended.code!r}") from None
    except Exception as error:
        raise Failed(_text_of(error)) from None


def _run_notebook(file: Path) -> dict[str, Any]:
    try:
        document = nbformat.read(file, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a notebook"
        raise Unusable(f"cannot read {file}: {why}") from None
    os.environ.setdefault("MPLBACKEND", "agg")
    shell = Shell.instance()
    file = file.resolve()
    for number, cell in enumerate(document.cells, 1):
        if cell.cell_type != "code":
            continue
        with _quiet(shell), contextlib.chdir(file.parent):
            result = shell.run_cell(cell.source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and "raises-exception" not in cell.metadata.get("tags", ()):
            raise Failed(f"{file}: cell {number} raised\n{_text_of(error)}")
    return shell.user_ns


@contextlib.contextmanager
def _quiet(shell: InteractiveShell) -> Iterator[None]:
    """The shell shows no error: this command does."""
    show = shell._showtraceback
    shell._showtraceback = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        shell._showtraceback = show  # type: ignore[method-assign]


def _text_of(error: BaseException) -> str:
    if isinstance(error, TinoteError):
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception(type(error), error, users_trace(error))).rstrip()


def _is_kernel(value: Any) -> bool:
    return bool(getattr(getattr(value, "kernel", value), "__tinote_kernel__", False))


def _kernel_named(name: str, namespace: dict[str, Any], file: Path) -> Any:
    known = _kernels_in(namespace)
    if not known:
        raise Unusable(f"{file} defines no kernel")
    if not name:
        if len(known) == 1:
            return next(iter(known.values()))
        raise Unusable(f"name one of the kernels of {file}: {', '.join(known)}")
    if name in known:
        return known[name]
    what = "is not a kernel" if name in namespace else "does not exist"
    close = difflib.get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are {', '.join(known)}"
    raise Unusable(f"{name!r} {what} in {file}; {hint}")


def _kernels_in(namespace: dict[str, Any]) -> dict[str, Any]:
    """The kernels by name: those of the file, and those of its objects."""
    found: dict[str, Any] = {}
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        if _is_kernel(value):
            found[name] = value
        elif not isinstance(value, type):
            members = [one for one in vars(type(value)) if not one.startswith("_")]
            kernels = [one for one in members if getattr(vars(type(value))[one], "__tinote_kernel__", False)]
            found.update({f"{name}.{one}": getattr(value, one) for one in kernels})
    return found
