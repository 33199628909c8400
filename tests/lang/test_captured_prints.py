"""Kernels of captured steps print in each replay what their launches print, in the same order: in Python, in a live
view's step, and without Python.
"""

from __future__ import annotations

from typing import Any

import pytest

import tinote as ti
from tests.lang.test_portable import played
from tinote.errors import KernelAssertionError
from tinote.lang.capture.automatic import AutomaticCapture
from tinote.lang.capture.portable import portable


class Talking:
    """Kernels that print, and a step of them."""

    def __init__(self) -> None:
        ti.init(num_threads=1)
        self.x = x = ti.field(ti.f32, shape=4)

        @ti.kernel
        def count(k: ti.i32):
            ti.loop_config(serialize=True)
            for i in range(3):
                print("count", k + i, f"{x[i]:.3f}", i == 1, x[i] > 0)

        @ti.kernel
        def add():
            x[0] += 0.1
            print("sum", x[0], 1e-7 * x[0])
            assert x[0] < 0.75, f"{x[0]} is too much"

        def step(k: int) -> None:
            count(k)
            add()
            count(-k)

        self.count, self.add, self.step = count, add, step

    def printed(self, capsys: Any, calls: int, step: Any, *arguments: int) -> str:
        """What a number of calls print."""
        capsys.readouterr()
        self.x.fill(0)
        for _ in range(calls):
            step(*arguments)
        found: str = capsys.readouterr().out
        return found


@pytest.fixture
def talking() -> Talking:
    return Talking()


def test_a_replay_prints_what_the_function_prints(talking: Talking, capsys: Any) -> None:
    wanted = talking.printed(capsys, 3, talking.step, 7)
    assert wanted.startswith("count 7 0.000 False False\n") and wanted.count("\n") == 21
    captured = ti.capture(talking.step)
    assert talking.printed(capsys, 3, captured, 7) == wanted
    assert talking.printed(capsys, 3, captured, 7) == wanted  # nothing was printed to find out what it does


def test_what_was_printed_before_a_fault_is_shown(talking: Talking, capsys: Any) -> None:
    captured = ti.capture(talking.step)
    captured(1)
    talking.x.fill(0.7)
    capsys.readouterr()
    with pytest.raises(KernelAssertionError, match="is too much"):
        captured(1)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["count"] * 3 + ["sum"]


def test_the_step_of_a_view_prints(talking: Talking, capsys: Any) -> None:
    def step() -> None:
        talking.count(2)
        talking.add()

    wanted = talking.printed(capsys, 6, step)
    assert talking.printed(capsys, 6, AutomaticCapture(step)) == wanted


def test_without_python_the_same_is_printed(talking: Talking, capsys: Any) -> None:
    made = portable([("step", talking.step, (7,))], {"x": talking.x})
    wanted = talking.printed(capsys, 3, talking.step, 7)
    answers = played(made.encode(), ["repeat", 3, "step", 7], ["takePrints"], ["takePrints"], ["restore"],
                     ["call", "step", 7], ["takePrints"])  # fmt: skip
    assert answers[1] == {"value": wanted}
    assert answers[2] == {"value": ""}
    assert wanted.startswith(answers[5]["value"]) and answers[5]["value"].count("\n") == 7


def test_what_is_too_much_is_counted_and_dropped() -> None:
    ti.init(num_threads=1)
    x = ti.field(ti.i32, shape=20_000)

    @ti.kernel
    def shout():
        for i in x:
            print(i)

    def step() -> None:
        shout()

    made = portable([("step", step, ())], {"x": x})
    (_, first, _, second) = played(made.encode(), ["step"], ["takePrints"], ["step"], ["takePrints"])
    kept = first["value"].splitlines()
    dropped = int(kept[-1].split()[0].removeprefix("["))
    assert "more prints were dropped" in kept[-1]
    assert int(kept[-2]) + 1 + dropped == 20_000
    assert second == first
