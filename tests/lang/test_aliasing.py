"""Arguments that share memory: a launch does what Python does with the same memory, and one in which nothing is shared
is compiled for that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import scalar
from tinote.errors import DifferentiationError

pytestmark = pytest.mark.optimised

N = 5


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


line = ti.types.ndarray(dtype=ti.f64, ndim=1)


def numpy_array(shape: tuple[int, ...] = (N,)) -> Any:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


def ndarray() -> Any:
    x = ti.ndarray(ti.f64, N, needs_grad=True, needs_dual=True, name="x")
    for filled, first in ((x, 1.0), (x.grad, 11.0), (x.dual, 21.0)):
        filled.from_numpy(np.arange(first, first + N))
    return x


def with_view(kind: str) -> tuple[Any, Any]:
    x = ndarray()
    return x, (x if kind == "value" else getattr(x, kind)).numpy_view()


def field_and_view() -> tuple[Any, Any]:
    f = ti.field(ti.f64, N)
    f.from_numpy(numpy_array())
    return f, f.numpy_view()


def twice(x: Any) -> tuple[Any, Any]:
    return x, x


def slices() -> tuple[Any, Any]:
    memory = numpy_array((N + 1,))
    return memory[1:], memory[:-1]


def by_dlpack(x: Any) -> tuple[Any, Any]:
    return x, np.from_dlpack(x)


def with_gradient(x: Any) -> tuple[Any, Any]:
    return x, x.grad


SHARED: dict[str, Callable[[], tuple[Any, Any]]] = {
    "the same NumPy array": lambda: twice(numpy_array()),
    "slices": slices,
    "DLPack of NumPy": lambda: by_dlpack(numpy_array()),
    "the same ndarray": lambda: twice(ndarray()),
    "an ndarray and a view": lambda: with_view("value"),
    "DLPack of an ndarray": lambda: by_dlpack(ndarray()),
    "a view before the ndarray": lambda: with_view("value")[::-1],
    "an ndarray and its gradient": lambda: with_gradient(ndarray()),
    "a gradient before its ndarray": lambda: with_gradient(ndarray())[::-1],
    "an ndarray and a view of its gradient": lambda: with_view("grad"),
    "an ndarray and a view of its dual": lambda: with_view("dual"),
    "the same field": lambda: twice(field_and_view()[0]),
    "a field and a view": field_and_view,
}

APART: dict[str, Callable[[], tuple[Any, Any]]] = {
    "NumPy arrays": lambda: (numpy_array(), numpy_array()),
    "halves": lambda: (numpy_array((2 * N,))[:N], numpy_array((2 * N,))[N:]),
    "ndarrays": lambda: (ndarray(), ndarray()),
    "an ndarray and a view of another": lambda: (ndarray(), with_view("value")[1]),
}


def spread_in_python(a: Any, b: Any) -> None:
    for j in range(N):
        b[j] = b[j] + a[0]
    for j in range(N):
        a[j] = a[j] * b[N - 1]


@pytest.fixture(scope="module")
def spread() -> Any:
    @ti.kernel
    def spread(a: line, b: line):
        ti.loop_config(serialize=True)
        for j in range(b.shape[0]):
            b[j] = b[j] + a[0]
        ti.loop_config(serialize=True)
        for j in range(a.shape[0]):
            a[j] = a[j] * b[b.shape[0] - 1]

    return spread


def contents(arrays: tuple[Any, ...]) -> list[np.ndarray]:
    return [np.array(a.to_numpy() if hasattr(a, "to_numpy") else a) for a in arrays]


@pytest.mark.parametrize("case", [*SHARED, *APART])
def test_a_launch_does_what_python_does(case: str, spread: Any) -> None:
    make = {**SHARED, **APART}[case]
    launched, interpreted = make(), make()
    spread(*launched)
    spread_in_python(*interpreted)
    for found, wanted in zip(contents(launched), contents(interpreted), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("case", [*SHARED, *APART])
def test_only_arrays_apart_are_compiled_for_it(case: str, spread: Any) -> None:
    specialisation = spread.specialise(*{**SHARED, **APART}[case]())
    assert [array.noalias for array in specialisation.arrays] == [case in APART] * 2


@pytest.mark.parametrize("kind", ["grad", "dual"])
def test_shadows_in_a_kernel_are_seen_through_other_names(kind: str) -> None:
    @ti.kernel
    def gradient(x: line, g: line):
        ti.loop_config(serialize=True)
        for j in range(g.shape[0]):
            g[j] = g[j] + x.grad[0]

    @ti.kernel
    def dual(x: line, g: line):
        ti.loop_config(serialize=True)
        for j in range(g.shape[0]):
            g[j] = g[j] + x.dual[0]

    kernel = {"grad": gradient, "dual": dual}[kind]
    for shared in (False, True):
        x = ndarray()
        shadow = getattr(x, kind)
        start = shadow.to_numpy()
        g = shadow if shared else ndarray()
        wanted = g.to_numpy()
        for j in range(N):
            wanted[j] += (wanted if shared else start)[0]
        kernel(x, g)
        np.testing.assert_array_equal(g.to_numpy(), wanted)


def test_captured_memory_is_seen_through_arguments() -> None:
    """Where the same kernel is launched with and without an array that it captured, of whatever name."""
    x, f = ndarray(), field_and_view()[0]
    other = ndarray()

    @ti.kernel
    def spread(a: line):
        ti.loop_config(serialize=True)
        for j in range(N):
            a[j] = a[j] + x[0]
        ti.loop_config(serialize=True)
        for j in range(N):
            a[j] = a[j] + f[0] + x.grad[0]

    view = f.numpy_view()
    for a in (other, x, other, x.grad, f, view, other, x.numpy_view(), x.grad.numpy_view(), numpy_array()):
        before = [one.to_numpy() for one in (x, f, x.grad)]
        start = contents((a,))[0]
        spread(a)
        found = contents((a,))[0]
        for one, memory in zip((x, f, x.grad), before, strict=True):
            one.from_numpy(memory)
        if isinstance(a, np.ndarray):
            a[...] = start
        else:
            a.from_numpy(start)
        for j in range(N):
            a[j] = a[j] + x[0]
        for j in range(N):
            a[j] = a[j] + f[0] + x.grad[0]
        np.testing.assert_array_equal(found, contents((a,))[0])


def test_vectors_that_share_memory() -> None:
    vectors = ti.types.ndarray(dtype=ti.types.vector(2, ti.f64), ndim=1)

    @ti.kernel
    def spread(a: vectors, b: vectors):
        ti.loop_config(serialize=True)
        for j in range(b.shape[0]):
            b[j] = b[j] + a[0]

    x = ti.Vector.ndarray(2, ti.f64, 3, needs_grad=True)
    for first, second in ((x, x), (x, x.grad), (x.grad, x.grad)):
        x.from_numpy(numpy_array((3, 2)))
        x.grad.from_numpy(10 * numpy_array((3, 2)))
        a = first.to_numpy()
        b = a if first is second else second.to_numpy()
        for j in range(3):
            b[j] = b[j] + a[0]
        spread(first, second)
        np.testing.assert_array_equal(second.to_numpy(), b)


@pytest.mark.parametrize("kind", [ti.ndarray, np.zeros])
def test_only_arguments_that_share_memory_are_compiled_for_that(kind: Any) -> None:
    size = 64
    apart = [kind(ti.f64, size) if kind is ti.ndarray else kind(size) for _ in range(4)]
    for chosen in np.ndindex(4, 4, 4):

        @ti.kernel
        def shifted(a: line, b: line, c: line, d: line):
            for i in a:
                a[i] = b[ti.max(i - 1, 0)] + 2 * c[i] * d[i]

        given = [apart[0], *[apart[k] for k in chosen]]
        for k, one in enumerate(apart):
            if kind is np.zeros:
                one[:] = numpy_array((size,)) + k
            else:
                one.from_numpy(numpy_array((size,)) + k)
        b, c, d = [numpy_array((size,)) + k for k in chosen]
        wanted = [b[max(i - 1, 0)] + 2 * c[i] * d[i] for i in range(size)]
        if chosen[0] == 0:  # each iteration reads what the one before has written
            for i in range(size):
                wanted[i] = (wanted[max(i - 1, 0)] if i else b[0]) + 2 * c[i] * d[i]
        shifted(*given)
        np.testing.assert_array_equal(given[0] if kind is np.zeros else given[0].to_numpy(), wanted, str(chosen))
        assert ("ordered" in shifted.ir("keep_order")) == (0 in chosen), chosen


# ---- derivatives


@pytest.fixture
def weighted() -> Any:
    @ti.kernel
    def weighted(x: line, w: line, loss: ti.template()):
        for i in x:
            for j in range(w.shape[0]):
                loss[None] += x[i] ** 2 * w[j]

    return weighted


def test_adjoints_of_arrays_that_are_apart_are_sums_in_registers(weighted: Any) -> None:
    """One plain update of `x.grad` for each `i`, after the loop over `j`; only what all iterations add to is left."""
    x, w, loss = ndarray(), ndarray(), scalar()
    with ti.ad.Tape(loss):
        weighted(x, w, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * x.to_numpy() * w.to_numpy().sum())
    np.testing.assert_allclose(w.grad.to_numpy(), (x.to_numpy() ** 2).sum())
    text = weighted.ir("demote_atomics", gradient=True)
    # One task has a private copy of `w.grad`, the other none (`privatise`).
    updates = [line for line in text.splitlines() if "@x.grad" in line and "atomic" in line]
    assert len(updates) == 2 and all("atomic plain add" in update for update in updates)
    inner = next(line for line in text.splitlines() if " for " in line)
    assert all(len(update) - len(update.lstrip()) <= len(inner) - len(inner.lstrip()) for update in updates)


def test_one_thread_needs_no_atomics(weighted: Any) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, num_threads=1)
    x, w, loss = ndarray(), ndarray(), scalar()
    with ti.ad.Tape(loss):
        weighted(x, w, loss)
    np.testing.assert_allclose(w.grad.to_numpy(), (x.to_numpy() ** 2).sum())
    updates = [line for line in weighted.ir("demote_atomics", gradient=True).splitlines() if "atomic" in line]
    assert updates
    assert all("atomic plain" in line for line in updates)


def test_one_array_twice_adds_up(weighted: Any) -> None:
    x, loss = ndarray(), scalar()
    with ti.ad.Tape(loss):
        weighted(x, x, loss)
    v = x.to_numpy()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * v * v.sum() + (v**2).sum())


@pytest.mark.parametrize("by", ["tape", "kernel.grad"])
@pytest.mark.parametrize("case", ["gradient", "view of the gradient"])
def test_a_gradient_that_the_sweep_changes_is_no_argument(by: str, case: str, weighted: Any) -> None:
    x, loss = ndarray(), scalar()
    g = x.grad if case == "gradient" else x.grad.numpy_view()
    with pytest.raises(DifferentiationError, match=r"x\.grad") as caught:
        if by == "tape":
            with ti.ad.Tape(loss):
                weighted(x, g, loss)
        else:
            loss.grad.fill(1)
            weighted.grad(x, g, loss)
    assert caught.value.span.file == __file__


def test_a_dual_that_is_computed_is_no_argument(weighted: Any) -> None:
    x, loss = ndarray(), ti.field(ti.f64, (), needs_dual=True)
    with pytest.raises(DifferentiationError, match=r"x\.dual"), ti.ad.FwdMode(loss, x, np.ones(N)):
        weighted(x, x.dual, loss)


def test_another_ones_gradient_is_a_value_like_any(weighted: Any) -> None:
    x, y, loss = ndarray(), ndarray(), scalar()
    with ti.ad.Tape(loss, clear_gradients=False):
        x.grad.fill(0)
        weighted(x, y.grad, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * x.to_numpy() * y.grad.to_numpy().sum())
