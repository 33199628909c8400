"""What `%%kernel --time` and `--grad` print."""

from __future__ import annotations

from collections.abc import Iterable

from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.ir.nodes import Buffer


def show_times(specialisation: Specialisation, *, gradient: bool) -> None:
    """Print a table of the compiler's steps with their times; those of steps that changed nothing are summed up."""
    native = specialisation.code(GRADIENT if gradient else PRIMAL)
    rows: list[tuple[str, float]] = [("front end", specialisation.front_end_seconds)]
    idle = 0.0
    for snapshot in specialisation.snapshots(gradient=gradient):
        if snapshot.after is snapshot.before:
            idle += snapshot.seconds
        else:
            rows.append((snapshot.step, snapshot.seconds))
    rows.append(("steps that changed nothing", idle))
    last = "plain Python" if specialisation.config.arch == "python" else "LLVM"
    rows.append((last + (" (machine code was known)" if native.cached else ""), native.seconds))
    width = max(len(name) for name, _ in rows)
    name = specialisation.source.name + (".grad" if gradient else "")
    print(f"{name}: {1e3 * sum(s for _, s in rows):.1f} ms")
    for step, seconds in rows:
        print(f"  {step:<{width}}  {1e3 * seconds:8.2f} ms")


def show_gradient(specialisation: Specialisation) -> None:
    """Print from which gradients the reverse of a kernel starts and where it accumulates, or why it does nothing."""
    kernel = specialisation.source.name
    written = specialisation.accesses().written
    outputs = _names(written, with_gradient=True)
    accumulated = [b for task in specialisation.code(GRADIENT).tasks for b in task.accesses.written]
    inputs = _names([b.primal for b in accumulated if b.primal is not None])
    if outputs and inputs:
        print(f"{kernel}.grad: from the gradient of {outputs} to that of {inputs}")
    elif outputs:
        print(f"{kernel}.grad adds to no gradient: {outputs} depends on no other field with needs_grad=True")
    else:
        print(f"{kernel}.grad does nothing: {kernel} writes {_names(written) or 'no field'}; give it needs_grad=True")


def _names(buffers: Iterable[Buffer], *, with_gradient: bool = False) -> str:
    return ", ".join(sorted({b.name for b in buffers if b.adjoint is not None or not with_gradient}))
