"""Which parallel loops a gradient runs in order: those whose iterations may meet, and no others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tinote as ti
from tests.autodiff.user import overwrites
from tinote.compiler.requests import GRADIENT
from tinote.ir.access import Access, Accesses
from tinote.ir.nodes import For
from tinote.ir.query import walk
from tinote.ir.ranges import Loop

Kernel = Callable[..., Any]


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def line() -> Any:
    return ti.field(ti.f64, 6, needs_grad=True)


def plane() -> Any:
    return ti.field(ti.f64, (4, 6), needs_grad=True)


def own_elements(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in x:
            x[i] = ti.sin(x[i])
            for j in range(4):
                g[j, i] = g[j, i] * x[i]

    return run


def a_ring_of_buffers(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        t = k[0]
        for i in range(1, 5):
            if x[i] > 0:
                g[(t + 1) % 3, i] = g[t % 3, i - 1] * g[t % 3, i + 1]

    return run


def a_window_in_a_ring(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        t = k[0]
        for i in range(1, 5):
            total = 0.0
            for j in range(3):
                total += g[t % 2, i + j - 1] * x[j]
            g[(t + 1) % 2, i] = total

    return run


def red_and_black(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i, j in ti.ndrange((1, 3), (1, 5)):
            if (i + j) % 2 == 0:
                g[i, j] = g[i - 1, j] * g[i, j + 1]

    return run


def additions(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in x:
            g[0, k[i]] += x[i] ** 2

    return run


def appended(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in x:
            j = ti.atomic_add(k[0], 1)
            g[1, j] = x[i] ** 2

    return run


@pytest.mark.parametrize(
    "program", [own_elements, a_ring_of_buffers, a_window_in_a_ring, red_and_black, additions, appended]
)
@overwrites
def test_loops_that_stay_parallel(program: Callable[..., Kernel]) -> None:
    assert all(loop.parallel for loop in loops(program) if loop.index.name == "i")


def scattered(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in x:
            g[0, k[i]] = x[i] ** 2

    return run


def gathered_in_place(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i] * x[k[i]]

    return run


def every_second_one(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i in range(2, 6):
            if i % 2 == 0 and i > 1:
                x[i] = x[i] * x[i - 2]

    return run


@pytest.mark.parametrize("program", [scattered, gathered_in_place, every_second_one])
@overwrites
def test_loops_that_run_in_order(program: Callable[..., Kernel]) -> None:
    assert not any(loop.parallel for loop in loops(program))


def last_of_each_row(x: Any, g: Any, k: Any) -> Kernel:
    @ti.kernel
    def run():
        for i, j in g:
            x[i] = g[i, j] ** 2

    return run


def test_only_the_inner_loop_of_a_nest() -> None:
    assert [loop.parallel for loop in loops(last_of_each_row)] == [True, False]


def loops(program: Callable[..., Kernel]) -> list[For]:
    """The loops of a kernel as its gradient runs them."""
    run = program(line(), plane(), ti.field(ti.i32, 6))
    run()
    differentiated = run.instances[0].specialisation.differentiated(GRADIENT)  # type: ignore[attr-defined]
    return [op for op in walk(differentiated.region) if isinstance(op, For)]


def test_branches_that_write_to_one_place_are_not_compared_pair_by_pair(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A thousand arms of an `elif` took half a minute."""
    asked: list[Access] = []
    may_meet_across = Accesses.may_meet_across

    def note(self: Accesses, a: Access, b: Access, loop: Loop) -> bool:
        asked.append(a)
        return may_meet_across(self, a, b, loop)

    monkeypatch.setattr(Accesses, "may_meet_across", note)
    arms = [f"        {'elif' if k else 'if'} k[0] == {k}: g[0, i] = {k}.0 * x[i]\n" for k in range(60)]
    text = f"import tinote as ti\n\n@ti.kernel\ndef run():\n    for i in x:\n{''.join(arms)}"
    file = tmp_path / "arms.py"
    file.write_text(text)
    scope: dict[str, Any] = {"x": line(), "g": plane(), "k": ti.field(ti.i32, 4)}
    exec(compile(text, str(file), "exec"), scope)
    run = scope["run"].specialise()
    asked.clear()
    run.code(GRADIENT)
    assert all(loop.parallel for loop in walk(run.differentiated().region) if isinstance(loop, For))
    assert len(asked) < 20 * len(arms)  # each with each: 3,600
