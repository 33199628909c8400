"""Derivatives through sparse fields: those of the same program on dense fields with a mask of active blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tinote.errors import TinoteError

BLOCKS, CELLS = (3, 2), (2, 4)
SHAPE = (6, 8)
PLACES = np.array([[0, 0], [1, 3], [5, 7], [5, 6], [2, 1], [0, 1]], np.int32)


class Program(NamedTuple):
    """The fields and kernels of one of the two; `clear` begins anew."""

    a: Any
    x: Any
    y: Any
    loss: Any
    scatter: Callable[[], None]
    sweep: Callable[[], None]
    spread: Callable[[], None]
    off: Callable[[int], None]
    total: Callable[[], None]
    clear: Callable[[], None]


def _inputs() -> tuple[Any, Any, Any]:
    a = ti.field(ti.f64, shape=6, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
    at = ti.Vector.field(2, ti.i32, shape=6)
    at.from_numpy(PLACES)
    return a, loss, at


def sparse() -> Program:
    a, loss, at = _inputs()
    x = ti.field(ti.f64, needs_grad=True, needs_dual=True)
    y = ti.field(ti.f64)  # what goes through it has a temporary adjoint
    block = ti.root.pointer(ti.ij, BLOCKS)
    block.dense(ti.ij, CELLS).place(x, y)

    @ti.kernel
    def scatter() -> None:
        for k in a:
            x[at[k]] += a[k] * a[k]

    @ti.kernel
    def sweep() -> None:
        for i, j in x:
            x[i, j] = ti.sin(x[i, j]) + 0.1 * (i - j) * x[i, j] * x[i, j]
            y[i, j] += x[i, j] * (0.5 + j)

    @ti.kernel
    def spread() -> None:
        for i, j in x:
            y[(i + 3) % 6, (j + 5) % 8] += x[i, j] * a[i] + 0.25

    @ti.kernel
    def off(k: ti.i32) -> None:
        ti.deactivate(block, [k // 2, k % 2])

    @ti.kernel
    def total() -> None:
        for index in ti.grouped(x):
            loss[None] += x[index] * y[index] + 0.125 * y[index] * y[index] + 1.0

    return Program(a, x, y, loss, scatter, sweep, spread, off, total, block.deactivate_all)


def dense() -> Program:
    a, loss, at = _inputs()
    x = ti.field(ti.f64, shape=SHAPE, needs_grad=True, needs_dual=True)
    y = ti.field(ti.f64, shape=SHAPE)
    on, was_on = ti.field(ti.i32, shape=BLOCKS), ti.field(ti.i32, shape=BLOCKS)

    @ti.kernel
    def scatter() -> None:
        for k in a:
            x[at[k]] += a[k] * a[k]
            on[at[k][0] // 2, at[k][1] // 4] = 1

    @ti.kernel
    def sweep() -> None:
        for i, j in x:
            if on[i // 2, j // 4] == 1:
                x[i, j] = ti.sin(x[i, j]) + 0.1 * (i - j) * x[i, j] * x[i, j]
                y[i, j] += x[i, j] * (0.5 + j)

    @ti.kernel
    def spread() -> None:
        for i, j in on:
            was_on[i, j] = on[i, j]
        for i, j in x:
            if was_on[i // 2, j // 4] == 1:
                y[(i + 3) % 6, (j + 5) % 8] += x[i, j] * a[i] + 0.25
                on[(i + 3) % 6 // 2, (j + 5) % 8 // 4] = 1

    @ti.kernel
    def off(k: ti.i32) -> None:
        if on[k // 2, k % 2] == 1:  # what is not active is not written to
            on[k // 2, k % 2] = 0
            for i, j in ti.ndrange(2, 4):
                x[k // 2 * 2 + i, k % 2 * 4 + j] = 0.0
                y[k // 2 * 2 + i, k % 2 * 4 + j] = 0.0

    @ti.kernel
    def total() -> None:
        for i, j in x:
            if on[i // 2, j // 4] == 1:
                loss[None] += x[i, j] * y[i, j] + 0.125 * y[i, j] * y[i, j] + 1.0

    def clear() -> None:
        on.fill(0)
        x.fill(0)
        y.fill(0)

    return Program(a, x, y, loss, scatter, sweep, spread, off, total, clear)


#: What the two compute the same way.
Computed = Callable[[Program], list[Any]]


def agree(computed: Computed) -> None:
    """Values bit for bit where they are not sums of many, derivatives to rounding."""
    found: list[list[Any]] = []
    for make in (dense, sparse):
        program = make()
        program.a.from_numpy(np.linspace(0.1, 0.9, 6))
        program.clear()
        program.loss.fill(0)
        found.append([np.asarray(part) for part in computed(program)])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-14)


@pytest.fixture(autouse=True)
def doubles() -> None:
    ti.init(default_fp=ti.f64)


def steps(p: Program) -> None:
    """Cells become active, are lost again, and become active once more."""
    p.scatter()
    p.sweep()
    p.spread()
    p.off(0)
    p.scatter()
    p.sweep()
    p.total()


def _state(p: Program) -> list[Any]:
    return [p.loss[None], p.x.to_numpy(), p.y.to_numpy()]


def _gradients(p: Program) -> list[Any]:
    return [*_state(p), p.a.grad.to_numpy(), p.x.grad.to_numpy()]


def _taped(p: Program) -> list[Any]:
    with ti.ad.Tape(p.loss):
        steps(p)
    return _gradients(p)


def _cleared(p: Program) -> list[Any]:
    with ti.ad.Tape(p.loss):
        p.scatter()
        p.sweep()
        p.clear()
        p.scatter()
        p.total()
    return _gradients(p)


def _forward(p: Program) -> list[Any]:
    with ti.ad.FwdMode(loss=p.loss, param=p.a, seed=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]):
        steps(p)
    return [*_state(p), p.loss.dual[None]]


def _python_writes(p: Program) -> list[Any]:
    with ti.ad.Tape(p.loss):
        p.scatter()
        p.x[0, 1] = 2.0
        p.x[5, 6] = p.a[0]
        p.sweep()
        p.total()
    return _gradients(p)


def _arrays(p: Program) -> list[Any]:
    p.scatter()
    given = p.x.to_numpy() * 3
    with ti.ad.Tape(p.loss):
        p.scatter()
        p.x.from_numpy(given)
        p.sweep()
        p.scatter()
        p.total()
    return _gradients(p)


def _checkpointed(p: Program) -> list[Any]:
    def step(i: int) -> None:
        p.scatter()
        p.sweep()
        p.spread()
        p.off(i % 6)

    with ti.ad.Tape(p.loss):
        ti.ad.checkpoint(step, 7, snapshots=2)
        p.scatter()
        p.sweep()
        p.total()
    return _gradients(p)


def _captured(p: Program) -> list[Any]:
    @ti.capture
    def step() -> None:
        steps(p)
        p.clear()
        steps(p)

    step()
    p.loss.fill(0)
    step()
    return _state(p)


def _captured_in_a_tape(p: Program) -> list[Any]:
    @ti.capture
    def step() -> None:
        p.scatter()
        p.sweep()
        p.spread()
        p.off(0)

    with ti.ad.Tape(p.loss):
        for _ in range(3):
            step()
        p.total()
    return _gradients(p)


def _batched(p: Program) -> list[Any]:
    run = ti.ad.vmap(lambda: steps(p), fields=p.a, results=(p.loss, p.x, p.y))
    return list(run(np.random.default_rng(0).random((5, 6))))


def _function(derivative: Callable[..., Any], *given: Any) -> Computed:
    def computed(p: Program) -> list[Any]:
        found = derivative(lambda: steps(p), wrt=p.a, output=p.loss)(*given)
        return list(found) if isinstance(found, tuple) else [found]

    return computed


WAYS: dict[str, Computed] = {
    "tape": _taped,
    "cleared in a tape": _cleared,
    "forward mode": _forward,
    "written by Python": _python_writes,
    "an array copied in": _arrays,
    "checkpoints": _checkpointed,
    "capture": _captured,
    "capture in a tape": _captured_in_a_tape,
    "vmap": _batched,
    "grad": _function(ti.ad.grad),
    "value_and_grad": _function(ti.ad.value_and_grad),
    "jvp": _function(ti.ad.jvp, np.arange(6.0)),
    "hvp": _function(ti.ad.hvp, np.arange(6.0)),
    "jacobian": _function(ti.ad.jacobian),
}


@pytest.mark.parametrize("computed", WAYS.values(), ids=WAYS)
def test_it_is_the_derivative_of_the_dense_program(computed: Computed) -> None:
    agree(computed)


def test_gradcheck_agrees() -> None:
    p = sparse()
    p.a.from_numpy(np.linspace(0.1, 0.9, 6))
    assert ti.ad.gradcheck(lambda: steps(p), p.a, p.loss).ok
    p.x.from_numpy(np.random.default_rng(0).random(SHAPE) + 0.5)
    assert ti.ad.gradcheck(p.total, p.x, p.loss).ok


def _of_field(make: Callable[[Any, Any], None]) -> Any:
    x = ti.field(ti.f64, needs_grad=True, needs_dual=True)
    z = ti.field(ti.f64, needs_grad=True, needs_dual=True)
    make(x, z)

    @ti.kernel
    def run() -> None:
        for i, j in x:
            z[i, j] = ti.sin(x[i, j]) * x[i, j] + 0.5 * i * x[i, j] * x[5 - i, j]

    x.from_numpy(np.random.default_rng(1).random(SHAPE) + 1)
    return x, z, run


def _place_sparsely(x: Any, z: Any) -> None:
    ti.root.pointer(ti.ij, BLOCKS).dense(ti.ij, CELLS).place(x, z)


def _place_densely(x: Any, z: Any) -> None:
    ti.root.dense(ti.ij, SHAPE).place(x, z)


@pytest.mark.parametrize("mode", ["forward", "reverse", "jvp", "vjp", "sparse", "FwdMode"])
def test_arrays_have_the_shape_of_the_field(mode: str) -> None:
    direction = np.random.default_rng(2).random(SHAPE)
    found: list[Any] = []
    for make in (_place_densely, _place_sparsely):
        x, z, run = _of_field(make)
        if mode in ("forward", "reverse"):
            found.append(ti.ad.jacobian(run, wrt=x, output=z, mode=mode)())
        elif mode == "sparse":
            found.append(ti.ad.jacobian(run, wrt=x, output=z, sparse=True)().toarray())
        elif mode == "FwdMode":
            with ti.ad.FwdMode(loss=z, param=x, seed=direction):
                run()
            found.append(z.dual.to_numpy())
        else:
            derivative = ti.ad.jvp if mode == "jvp" else ti.ad.vjp
            found.append(derivative(run, wrt=x, output=z)(direction)[1])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13, atol=1e-14)


def test_what_a_read_of_an_inactive_cell_gets_is_its_gradient() -> None:
    x, loss = ti.field(ti.f64, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)
    ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(x)

    @ti.kernel
    def run() -> None:
        loss[None] += 3.0 * x[9] + x[1] * x[1]

    x[1] = 2.0
    with ti.ad.Tape(loss):
        run()
    np.testing.assert_array_equal(x.grad.to_numpy().nonzero()[0], [1, 9])
    assert (x.grad[9], x.grad[1], loss[None]) == (3.0, 4.0, 4.0)
    assert len(x.to_sparse()[0]) == 4


def test_lists_under_a_tape() -> None:
    a, loss = ti.field(ti.f64, shape=7, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)
    x: Any = ti.field(ti.f64)
    ti.root.dense(ti.i, 2).dynamic(ti.j, 16).place(x)

    @ti.kernel
    def fill() -> None:
        for k in a:
            if a[k] > 0.25:
                x[k % 2].append(a[k] * a[k])

    @ti.kernel
    def clear() -> None:
        for i in range(2):
            x[i].deactivate()

    @ti.kernel
    def total() -> None:
        for i, j in x:
            loss[None] += x[i, j] * x[i, j] * (i + 1)

    given = np.linspace(0.1, 0.9, 7)
    a.from_numpy(given)
    with ti.ad.Tape(loss):
        fill()
        total()
        clear()
        fill()
        fill()
        total()
    weight = np.where(given > 0.25, (np.arange(7) % 2 + 1.0), 0.0)
    assert loss[None] == pytest.approx(float((3 * weight * given**4).sum()), rel=1e-13)
    np.testing.assert_allclose(a.grad.to_numpy(), 12 * weight * given**3, rtol=1e-12)


def test_what_depends_on_numbers_of_a_capture_is_refused() -> None:
    p = sparse()

    @ti.capture
    def step() -> None:
        p.x.from_numpy(p.y.to_numpy())

    with pytest.raises(TinoteError, match="an array copied to a sparse field"):
        step()


_KINDS = ("scatter", "sweep", "spread", "off", "clear", "python")


@settings(max_examples=40)
@given(program=st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(0, 5)), min_size=1, max_size=9))
def test_random_programs(program: list[tuple[str, int]]) -> None:
    ti.init(default_fp=ti.f64)

    def computed(p: Program) -> list[Any]:
        with ti.ad.Tape(p.loss):
            p.scatter()
            for what, k in program:
                match what:
                    case "off":
                        p.off(k)
                    case "python":
                        p.x[0, 0] = p.a[k]
                        p.scatter()  # which has it active in both
                    case _:
                        getattr(p, what)()
            p.total()
        return _gradients(p)

    agree(computed)


def test_rules_of_access_in_the_indices_of_the_user() -> None:
    """What is active is under the rules as elements are, since a tape that checks them keeps none of it. To activate
    what is active is no change.
    """
    x = ti.field(ti.f32, needs_grad=True, name="x")
    block: Any = ti.root.pointer(ti.ij, 128)  # in parts
    block.dense(ti.ij, 8).place(x, offset=(-8, 0))
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def write(first: ti.i32) -> None:
        for i in range(3):
            x[first + i, 30] = 2.0

    @ti.kernel
    def measure() -> None:
        for i, j in x:
            loss[None] += x[i, j] ** 2

    @ti.kernel
    def touch() -> None:
        for i in range(3):
            x[i, 31] += 0.0

    def found(*acts: Callable[[], Any]) -> list[str]:
        block.deactivate_all()
        with ti.ad.Tape(loss, validation="collect") as tape:
            for act in acts:
                act()
        return [violation.reason.partition(" (")[0] for violation in tape.violations]

    def python() -> None:
        x[-7, 30] = 1.0

    assert found(lambda: write(0), measure) == []
    assert found(lambda: write(0), touch, measure) == []
    assert found(measure, lambda: write(40)) == [
        "'active parts of x[0, 0]' is changed by launch 2, 'write', after being read"
    ]
    assert found(lambda: write(0), measure, lambda: write(40)) == [
        "'active blocks of x[6, 3]' is changed by launch 3, 'write', after being read"
    ]
    again = "'x[0, 30]' and 2 more elements are changed by launch 3, 'write', after being read"
    assert found(lambda: write(0), measure, lambda: write(0)) == [again]
    assert found(lambda: write(-8), measure, python) == ["'x[-7, 30]' is changed by Python, after being read"]
    off = found(lambda: write(-8), measure, block.deactivate_all)
    assert off[0] == "'x[-8, 24]' and 63 more elements are changed by Python, after being read"
    assert "'active blocks of x[0, 3]' is changed by Python, after being read" in off
    filled = found(lambda: write(-8), measure, lambda: x.fill(0.0))
    assert filled == ["'x[-8, 24]' and 63 more elements are changed by Python, after being read"]


@pytest.mark.parametrize("place", ["pointer", "bitmasked"])
def test_a_batch_that_begins_with_sparse_fields(place: str) -> None:
    def run(sparse: bool) -> list[Any]:
        ti.init()
        x = ti.field(ti.f64, needs_grad=True)
        level: Any = getattr(ti.root, place)(ti.i, 4) if sparse else ti.root.dense(ti.i, 4)
        level.dense(ti.i, 4).place(x)
        x[5] = 2.0
        loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def measure() -> None:
            for i in x:
                if x[i] != 0:
                    loss[None] += x[i] ** 2 + 1

        def gradient() -> None:
            with ti.ad.Tape(loss):
                measure()

        rng = np.random.default_rng(0)
        given = rng.random((3, 16)) * (rng.random((3, 16)) < 0.3)
        found = ti.ad.vmap(gradient, fields=x, results=[loss, x.grad])(given)
        return [*found, x.to_numpy(), *([sorted(x.to_sparse()[0].tolist())] if sparse else [])]

    *found, active = run(sparse=True)
    for one, other in zip(found, run(sparse=False), strict=True):
        assert one.any()
        np.testing.assert_allclose(one, other, rtol=1e-14)
    assert active == [[4], [5], [6], [7]]
