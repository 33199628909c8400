"""The output of `%%kernel --time` and `--grad`."""

from __future__ import annotations

from collections.abc import Iterable

from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.ir.nodes import Buffer
from tinote.ir.types import element_type


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
    """Print from which gradients the reverse of a kernel starts and where it accumulates, or why it does nothing and
    what to do about that.
    """
    kernel = specialisation.source.name
    accesses = specialisation.accesses()
    outputs = [b for b in accesses.written if b.adjoint is not None]
    accumulated = [b for task in specialisation.code(GRADIENT).tasks for b in task.accesses.written]
    inputs = [b.primal for b in accumulated if b.primal is not None]
    if outputs and inputs:
        print(f"{kernel}.grad: from the gradient of {_names(outputs)} to that of {_names(inputs)}")
    elif outputs:
        print(f"{kernel}.grad changes no gradient: {_names(outputs)} depends on no field with a gradient")
        _print_help(_with_gradient(accesses.loaded))
    elif any(element_type(t).kind == "f" for t in specialisation.returns or ()):
        print(f"{kernel}.grad does nothing: {kernel} writes no field with a gradient")
        _print_help(f"what {kernel} returns is differentiated by `ti.ad.grad({kernel}, …)`, and under a tape")
    else:
        written = f"{_names(accesses.written)}, without a gradient" if accesses.written else "no field"
        print(f"{kernel}.grad does nothing: {kernel} writes {written}")
        _print_help(_with_gradient(accesses.written))


def _with_gradient(buffers: Iterable[Buffer]) -> str:
    """What gives those of the buffers a gradient that can have one."""
    names = _names(b for b in buffers if b.adjoint is None and b.dtype.kind == "f")
    return f"make {names} with needs_grad=True" if names else ""


def _print_help(text: str) -> None:
    if text:
        print(f"help: {text}")


def _names(buffers: Iterable[Buffer]) -> str:
    return ", ".join(sorted({b.name for b in buffers}))
