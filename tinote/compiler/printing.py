"""`ti.init(print_ir=True)`: the IR after every step that changed it, printed while a kernel is compiled."""

from __future__ import annotations

from tinote.compiler.pipeline import Listener, Snapshot
from tinote.compiler.requests import PRIMAL, Request
from tinote.ir.nodes import Function
from tinote.ir.text import show


def print_first(fn: Function, seconds: float) -> None:
    """Print what the front end made."""
    _print(fn.name, "front end", seconds, fn)


def printer(name: str, request: Request) -> Listener:
    """Prints the function after a step that changed it."""
    title = name if request is PRIMAL else f"{name}, {request.name}"

    def listen(snapshot: Snapshot) -> None:
        if snapshot.after is not snapshot.before:
            _print(title, snapshot.step, snapshot.seconds, snapshot.after)

    return listen


def _print(title: str, step: str, seconds: float, fn: Function) -> None:
    print(f"==== {title}: {step} ({1e3 * seconds:.1f} ms) ====\n{show(fn)}")
