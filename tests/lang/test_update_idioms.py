"""What programs do with elements that several iterations of a parallel loop have in common: on one thread and on two,
in lanes and not, under a tape and not. Values and gradients are those of `arch=ti.python`.

Updates of one element by one operation come to the same on any number of threads. All else is compared on one thread,
and under tapes on any, since gradients have an order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

#: Iterations: enough for two threads.
N = 20_000
CELLS = 16

Run = Callable[..., Any]
UPDATES: dict[str, Run] = {}
FLOAT_UPDATES: set[str] = set()
IN_ORDER: dict[str, Run] = {}
INTEGERS = {"int32", "int64", "int16", "uint8"}


def update(make: Run) -> Run:
    UPDATES[make.__name__] = make
    return make


def in_order(make: Run) -> Run:
    IN_ORDER[make.__name__] = make
    return make


@update
def histogram(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = h[c] + x[i]

    return run


@update
def index_twice(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            h[k[i] % CELLS] = x[i] * x[i] + h[k[i] % CELLS]

    return run


@update
def clamped(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = int(ti.math.clamp(f[i], 0.0, CELLS - 1.0))
            h[c] = h[c] + x[i] * x[i]

    return run


@update
def by_a_local_in_a_branch(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] & (CELLS - 1)
            old = h[c]
            if i % 3 != 1:
                h[c] = old - x[i] + 1

    return run


@update
def by_a_new_local(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            for j in range(k[i] % 3):
                c = (k[i] + j) % CELLS
                new = h[c] + x[i]
                h[c] = new

    return run


@update
def largest(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = ti.max(h[c], x[i])
            h[(c + 1) % CELLS] = max(x[i], h[(c + 1) % CELLS])

    return run


@update
def least(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = min(h[c], -x[i])

    return run


@update
def a_scalar(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            h[3] = h[3] + x[i]

    return run


@update
def bits(x, h, k, f):
    if str(np.dtype(x.to_numpy().dtype)) not in INTEGERS:
        return None

    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = h[c] ^ x[i]
            h[CELLS] = h[CELLS] | x[i]
            h[CELLS + 1] = x[i] & h[CELLS + 1]

    return run


@in_order
def pulled(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            x[i] = 0.5 * x[k[i]] + x[i] * 0.25

    return run


@in_order
def last_one_wins(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            h[k[i] % CELLS] = x[i] * 2

    return run


@in_order
def read_and_written_by_others(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = 0.25 * h[c] + 0.5 * x[i]

    return run


@in_order
def counted_and_looked_at(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            h[c] = h[c] + x[i] * 0.001
            x[i] = x[i] * h[c]

    return run


@in_order
def where_the_largest_is(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            if x[i] > h[0]:
                h[0] = x[i]
                h[1] = i % 100

    return run


@in_order
def first_of_its_kind(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            if h[c] == 0:
                h[c] = 1
                h[CELLS] += x[i]

    return run


@in_order
def visited(x, h, k, f):
    seen = ti.field(ti.i32, CELLS)

    @ti.kernel
    def run():
        for i in x:
            c = k[i] % CELLS
            if seen[c] < 3:
                seen[c] = seen[c] * 2 + 1
                h[c] += x[i] * (i % 7)

    return run


@in_order
def appended(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            if k[i] % 7 == 0:
                c = k[N]
                x[c % N] = i % 50
                k[N] = c + 1

    return run


@in_order
def neighbours(x, h, k, f):
    @ti.kernel
    def run():
        for i in range(1, N):
            x[i] = x[i] * 0.5 + x[i - 1] * 0.5

    return run


@in_order
def opposite(x, h, k, f):
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[N - 1 - i] * 0.5 + 1

    return run


def left_by(make: Run, dtype: str, *, under_tape: bool, **options: Any) -> list[Any] | None:
    """What a program leaves in memory, and the gradients."""
    ti.init(offline_cache=False, **options)
    t = getattr(ti, {"int": "i", "uin": "u", "flo": "f"}[dtype[:3]] + "".join(filter(str.isdigit, dtype)))
    rng = np.random.default_rng(5)
    x, h = [ti.field(t, n, needs_grad=under_tape) for n in (N, CELLS + 2)]
    k, f = ti.field(ti.i32, N + 1), ti.field(ti.f32, N)
    x.from_numpy(rng.integers(0, 9, N).astype(dtype) if dtype in INTEGERS else rng.normal(size=N).astype(dtype))
    k.from_numpy(np.append(rng.integers(0, N, N), 0).astype(np.int32))
    f.from_numpy(rng.uniform(-3, CELLS + 3, N).astype(np.float32))
    run = make(x, h, k, f)
    if run is None:
        return None
    if not under_tape:
        run()
        return [x.to_numpy(), h.to_numpy(), k.to_numpy()]
    loss = ti.field(t, (), needs_grad=True)

    @ti.kernel
    def add_up():
        for i in x:
            loss[None] += x[i] * (i % 5)
        for c in h:
            loss[None] += h[c] * (c + 1)

    with ti.ad.Tape(loss):
        run()
        add_up()
    return [x.to_numpy(), h.to_numpy(), x.grad.to_numpy(), h.grad.to_numpy()]


TARGETS = {
    f"{threads} threads, lanes={lanes}": {"num_threads": threads, "lanes": lanes}
    for threads in (1, 2)
    for lanes in ("never", "auto", "always")
}


DTYPES = ["int32", "int64", "int16", "uint8", "float32", "float64"]


def half(name: str, dtype: str) -> dict[str, dict[str, Any]]:
    """Half of the targets, with each value of each option among them: each program and each type has the other half,
    too, with its neighbours in the tables.
    """
    first = (list(UPDATES).index(name) + DTYPES.index(dtype)) % 2
    return dict(list(TARGETS.items())[first::2])


def compare(found: list[Any] | None, expected: list[Any] | None, dtype: str, what: str) -> None:
    if expected is None:
        assert found is None
        return
    assert found is not None
    for one, other in zip(found, expected, strict=True):
        if dtype in INTEGERS:
            np.testing.assert_array_equal(one, other, what)
        else:
            rtol = 1e-9 if dtype == "float64" else 1e-3
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * float(np.abs(other).max()), err_msg=what)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UPDATES)
def test_updates(name: str, dtype: str) -> None:
    make = UPDATES[name]
    expected = left_by(make, dtype, under_tape=False, arch=ti.python)
    for target, options in half(name, dtype).items():
        compare(left_by(make, dtype, under_tape=False, **options), expected, dtype, target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_under_a_tape(name: str, dtype: str) -> None:
    make = UPDATES[name]
    expected = left_by(make, dtype, under_tape=True, arch=ti.python)
    for target, options in half(name, dtype).items():
        compare(left_by(make, dtype, under_tape=True, **options), expected, dtype, target)


@pytest.mark.filterwarnings("ignore:.*the fraction")
@pytest.mark.parametrize("dtype", ["int32", "float64"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_iterations_that_meet_otherwise(name: str, dtype: str) -> None:
    make = IN_ORDER[name]
    expected = left_by(make, dtype, under_tape=False, arch=ti.python)
    for target, options in TARGETS.items():
        if options["num_threads"] == 1:
            compare(left_by(make, dtype, under_tape=False, **options), expected, dtype, target)


@pytest.mark.parametrize("name", IN_ORDER)
def test_iterations_that_meet_otherwise_under_a_tape(name: str) -> None:
    """In the order that the gradient has, on any number of threads, or refused in all cases."""
    make = IN_ORDER[name]

    def found(**options: Any) -> list[Any] | None:
        try:
            return left_by(make, "float64", under_tape=True, **options)
        except DifferentiationError as error:
            assert "order" in str(error)
            return None

    expected = found(arch=ti.python)
    for target, options in TARGETS.items():
        compare(found(**options), expected, "float64", target)
