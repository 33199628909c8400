"""A signal handler may launch a kernel anywhere within a derivative, and compute a derivative of its own, which is
right all the same, or an error says why there is none. Here a profiler's hook does so at each call of a function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

SIZE = 16


@ti.kernel
def tick(ticks: ti.template()):
    for i in ticks:
        ticks[i] += 1


@ti.kernel
def advance(x: ti.template(), y: ti.template()):
    for i in x:
        y[i] = y[i] * 0.5 + x[i] ** 2


@ti.kernel
def measure(y: ti.template(), loss: ti.template()):
    for i in y:
        loss[None] += y[i] ** 2


class Scene:
    def __init__(self) -> None:
        options = {"needs_grad": True, "needs_dual": True}
        self.x, self.y = (ti.field(ti.f64, SIZE, **options) for _ in range(2))
        self.loss = ti.field(ti.f64, (), **options)
        self.ticks = ti.field(ti.f64, 4)

    def begin(self) -> None:
        self.x.fill(0.5)
        self.y.fill(0)

    def run(self) -> None:
        self.y.fill(0)
        self.loss.fill(0)
        advance(self.x, self.y)
        advance(self.x, self.y)
        measure(self.y, self.loss)


def of_a_tape(scene: Scene) -> Any:
    with ti.ad.Tape(scene.loss):
        advance(scene.x, scene.y)
        advance(scene.x, scene.y)
        measure(scene.y, scene.loss)
    return scene.x.grad.to_numpy()


def of_forward_mode(scene: Scene) -> Any:
    scene.loss.fill(0)
    with ti.ad.FwdMode(loss=scene.loss, param=scene.x, seed=[1.0] * SIZE):
        advance(scene.x, scene.y)
        advance(scene.x, scene.y)
        measure(scene.y, scene.loss)
    return scene.loss.dual[None]


def of_a_function(scene: Scene) -> Any:
    return ti.ad.grad(scene.run, wrt=scene.x, loss=scene.loss)()


def of_second_order(scene: Scene) -> Any:
    return ti.ad.hvp(scene.run, wrt=scene.x, loss=scene.loss)(np.ones(SIZE))


def of_a_checkpointed_step(scene: Scene) -> Any:
    with ti.ad.Tape(scene.loss):
        ti.ad.checkpoint(lambda _: advance(scene.x, scene.y), 4)
        measure(scene.y, scene.loss)
    return scene.x.grad.to_numpy()


@pytest.mark.parametrize(
    "derivative", [of_a_tape, of_forward_mode, of_a_function, of_second_order, of_a_checkpointed_step]
)
def test_a_kernel_may_be_launched_at_any_point_of_a_derivative(derivative: Callable[[Scene], Any]) -> None:
    scene = Scene()
    passed = 0
    wanted = -1

    def interrupt(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal passed
        passed += event == "call"
        if event == "call" and passed == wanted:
            sys.setprofile(None)
            tick(scene.ticks)

    def run() -> Any:
        nonlocal passed
        passed = 0
        scene.begin()
        try:
            sys.setprofile(interrupt)
            return np.array(derivative(scene))
        finally:
            sys.setprofile(None)

    tick(scene.ticks)
    run()
    right = run()
    calls = passed
    assert calls > 80 and np.any(right)
    points = range(1, calls, 1 + calls // 800)
    for wanted in points:
        try:
            assert np.array_equal(run(), right), wanted
        except DifferentiationError as error:  # what runs again does not launch the kernel again
            assert derivative is of_a_checkpointed_step and "did something else" in str(error)
    # A checkpointed step that runs again takes back what has happened in it.
    assert scene.ticks[0] == 1 + len(points) or derivative is of_a_checkpointed_step


def test_a_kernel_that_writes_what_the_interrupted_one_uses_is_refused() -> None:
    scene = Scene()
    refused = []

    def interrupt(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "launching":
            sys.setprofile(None)
            try:
                tick(scene.x)
            except DifferentiationError as error:
                refused.append(error.message)

    tick(scene.x)
    right = of_a_tape(scene)
    scene.y.fill(0)
    try:
        sys.setprofile(interrupt)
        found = of_a_tape(scene)
    finally:
        sys.setprofile(None)
    assert np.array_equal(found, right)
    assert len(refused) == 1 and "'tick' is launched by what interrupts 'advance'" in refused[0]


def inside(derivative: Callable[[Scene], Any], scene: Scene, interrupt: Callable[..., None]) -> Any:
    """The derivative, interrupted until it has been computed: gradients that are read later are those of the last."""

    def reads_later(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("grad", "dual") and frame.f_back.f_code in CODES:
            sys.setprofile(None)
        else:
            interrupt(frame, event, argument)

    try:
        sys.setprofile(reads_later)
        return np.array(derivative(scene))
    finally:
        sys.setprofile(None)


CODES = [of_a_tape.__code__, of_forward_mode.__code__]


@pytest.mark.parametrize("inner", [of_a_tape, of_forward_mode, of_a_function, of_second_order])
@pytest.mark.parametrize("outer", [of_a_tape, of_forward_mode, of_a_function, of_second_order])
def test_a_derivative_may_be_computed_at_any_point_of_another_one(
    outer: Callable[[Scene], Any], inner: Callable[[Scene], Any]
) -> None:
    scene, own = Scene(), Scene()
    passed, wanted = 0, -1
    found: list[Any] = []

    def interrupt(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal passed
        passed += event == "call"
        if event == "call" and passed == wanted:
            sys.setprofile(None)
            try:
                found.append(np.array(inner(own)))
            except DifferentiationError as error:  # what it writes before belongs to the launch under way
                assert "where one interrupts the other" in error.message, wanted
                assert inner is of_forward_mode

    def run() -> Any:
        nonlocal passed
        passed = 0
        scene.begin()
        own.begin()
        found.clear()
        return inside(outer, scene, interrupt)

    own.begin()
    expected = np.array(inner(own))
    run()
    right = run()
    assert passed > 80 and np.any(right) and np.any(expected)
    count = passed
    refused: list[int] = []
    step = 1 + count // 400
    for wanted in range(1, count, step):
        try:
            assert np.array_equal(run(), right), wanted
        except DifferentiationError as error:
            assert "where one interrupts the other" in error.message, wanted
            assert inner is of_forward_mode
            refused.append(wanted)
        if found:
            assert np.array_equal(found[0], expected), wanted
    runs = [wanted for wanted in refused if wanted - step not in refused]
    assert len(runs) == (3 if refused else 0)  # while one of the three launches is under way, and at no other point


@pytest.mark.parametrize("inner", [of_a_tape, of_forward_mode])
@pytest.mark.parametrize("outer", [of_a_tape, of_a_function])
def test_a_derivative_in_the_memory_of_the_sweep_that_it_interrupts_is_refused(
    outer: Callable[[Scene], Any], inner: Callable[[Scene], Any]
) -> None:
    scene = Scene()
    other = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    refused = []

    def interrupt(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "_run" and frame.f_code.co_filename.endswith("sweep.py"):
            sys.setprofile(None)
            scene.loss = other
            try:
                inner(scene)
            except DifferentiationError as error:
                refused.append(error.message)

    loss = scene.loss
    scene.begin()
    inner(scene)  # compiled
    scene.begin()
    try:
        inside(outer, scene, interrupt)
    except DifferentiationError as error:
        refused.append(error.message)
    scene.loss = loss
    assert len(refused) == 2
    assert all("is used by two recordings where one interrupts the other" in one for one in refused)
