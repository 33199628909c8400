"""Kernels whose loops run in lanes: the same results as one iteration at a time, whatever lanes do differently, for any
number of iterations; the same faults; and what `kernel.loops()` says.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.runtime.processors import machine_with
from tinote.errors import KernelAssertionError, KernelIndexError, KernelOverflowError, KernelZeroDivisionError
from tinote.runtime import jit
from tinote.runtime.jit import host

LONGEST = 70
#: Around the number of lanes, whatever the machine has, and none at all.
COUNTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, LONGEST)


def while_(i, a, k):
    while a < 50.0:
        a = a * a + 1.5
        k += 1
    return a + k


def nested_while(i, a, k):
    n = i % 7
    while n > 0:
        m = n
        while m < 6 and a < 1e4:
            a += 0.25 * m
            m += 2
        n -= 1
        k += m
    return a + k


def break_(i, a, k):
    for j in range(20):
        if a > 6.0:
            break
        a += 0.5 * j
        k += 1
    return a * 100 + k


def continue_(i, a, k):
    for j in range(12):
        if (i + j) % 3 == 0:
            continue
        if j == 9 and i % 2 == 0:
            break
        a += j
    return a + k


def early_return(i, a, k):
    for j in range(9):
        if j * 3 > i:
            return a - j
        a += 1.0
    if a > 5.0:
        return a * 2
    return a


def trip_counts(i, a, k):
    for j in range(i % 5):
        for l in range(j, i % 9):  # noqa: E741
            a += 0.5 * j - l
            k += 1
    return a + k


def begins_elsewhere(i, a, k):
    for j in range(i, i + 3):
        a += j
    for j in range(k % 4, i % 11):
        a += 0.25 * j
    return a


def branches(i, a, k):
    if a > 2.0:
        if i % 2 == 0:
            a = a * 3
        elif i % 3 == 0:
            a = a + k
        else:
            k = k - 5
    elif k > 0:
        for _ in range(k % 4):
            a += 0.125
    return a + k


def uniform_inside(i, a, k):
    n = 0
    for j in range(6):
        n += j
        if a < 3.0:
            for l in range(n):  # noqa: E741
                a += 0.01 * l
    return a + n


def integers(i, a, k):
    for j in range(1, 5 + i % 3):
        k = (k * 7 + j) % 31 - (k // j) + (k >> (j % 3)) ^ j
    return a + k


def functions(i, a, k):
    for _ in range(i % 4 + 1):
        a = ti.sin(a) + ti.sqrt(ti.abs(a)) + ti.exp(-a * a) + ti.atan2(a, 2.0) + ti.pow(ti.abs(a), 1.3) + a % 0.7
    return a


def truths(i, a, k):
    on = i % 2 == 0
    while not on or k > 3:
        on = not on
        k -= 1
        if k < -4:
            on = True
    return a + k


BODIES = (
    while_, nested_while, break_, continue_, early_return, trip_counts, begins_elsewhere, branches, uniform_inside,
    integers, functions, truths,
)  # fmt: skip


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.uniform(-3.0, 8.0, LONGEST), rng.integers(-9, 20, LONGEST)


def results(
    body: Callable[..., Any], dtype: Any, lanes: str, numbers: tuple[np.ndarray, np.ndarray]
) -> list[np.ndarray]:
    """What the loop leaves for each number of iterations. Elements after it must stay."""
    ti.init(lanes=lanes, default_fp=dtype, debug=True, opt_level=1, num_threads=1, offline_cache=False)
    x, y = ti.field(dtype, LONGEST), ti.field(dtype, LONGEST)
    c = ti.field(ti.i32, LONGEST)
    f = ti.func(body)

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            y[i] = f(i, x[i], c[i])

    x.from_numpy(numbers[0])
    c.from_numpy(numbers[1].astype(np.int32))
    found: list[np.ndarray] = []
    for n in COUNTS:
        y.fill(-1.0)
        run(n)
        found.append(y.to_numpy())
    assert any(one.lanes for one in run.loops()) == (lanes == "always")
    return found


@pytest.mark.parametrize(
    ("body", "dtype"),
    [*((body, ti.f32) for body in BODIES), *((body, ti.f64) for body in (break_, trip_counts, branches, functions))],
)
def test_lanes_compute_what_single_iterations_do(body, dtype, numbers) -> None:
    wanted = results(body, dtype, "never", numbers)
    found = results(body, dtype, "always", numbers)
    tolerance = 1e-4 if dtype is ti.f32 else 1e-9
    for n, one, other in zip(COUNTS, wanted, found, strict=True):
        assert (other[n:] == -1.0).all()
        np.testing.assert_allclose(other, one, rtol=tolerance, err_msg=f"{n} iterations")


def test_all_types_in_memory_and_out_of_it() -> None:
    kinds = (ti.u1, ti.i8, ti.u8, ti.i16, ti.u16, ti.i32, ti.u32, ti.i64, ti.u64, ti.f16, ti.f32, ti.f64)

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, num_threads=1, offline_cache=False, opt_level=1)
        given = [ti.field(t, 111) for t in kinds]
        results = [ti.field(t, 37) for t in kinds]

        @ti.kernel
        def run():
            for i in range(37):
                n = 0
                while n * n < i:
                    n += 1
                for f, g in ti.static(zip(given, results, strict=True)):
                    g[i] = ti.cast(f[i] + f[3 * i + 1] * f[n], g.dtype)  # one after the other, apart, anywhere

        for f in given:
            f.from_numpy((np.arange(111) % 5 % 3).astype(f.to_numpy().dtype))
        return ran(run, lanes, results)

    for one, other in zip(left("never"), left("always"), strict=True):
        np.testing.assert_array_equal(other, one)


def ran(kernel: Any, lanes: str, fields: Sequence[Any], *arguments: int) -> list[np.ndarray]:
    """What a kernel leaves in fields, which runs in lanes if all do that can."""
    kernel(*arguments)
    assert any(one.lanes for one in kernel.loops()) == (lanes == "always")
    return [f.to_numpy() for f in fields]


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_reductions_and_updates(count: int) -> None:
    """Of one element, of elements where lanes meet, of elements of one's own; by a branch that no lane may take."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, default_fp=ti.f64, offline_cache=False, opt_level=1)
        x, total = ti.field(ti.f64, 1000), ti.field(ti.f64, ())
        least, bits, counts = ti.field(ti.i32, ()), ti.field(ti.i32, ()), ti.field(ti.i32, 5)

        @ti.kernel
        def run(n: ti.i32):
            for i in range(n):
                s = 0.0
                for j in range(i % 5):
                    s += j
                if i % 3 == 1:
                    total[None] += s
                    ti.atomic_min(least[None], -i)
                    counts[i * i % 5] += ti.cast(s, ti.i32)
                ti.atomic_xor(bits[None], i * 7)
                x[i] += s
                x[i] *= 2.0

        return ran(run, lanes, (total, least, bits, counts, x), count)

    for one, other in zip(left("never"), left("always"), strict=True):
        np.testing.assert_array_equal(other, one)


def test_the_inner_of_two_indices_runs_in_lanes() -> None:
    def left(lanes: str) -> np.ndarray:
        ti.init(lanes=lanes, offline_cache=False, opt_level=1)
        image = ti.field(ti.i32, (9, 21))

        @ti.kernel
        def run():
            for i, j in image:
                n = i * 21 + j + 1
                while n > 1 and image[i, j] < 90:
                    n = n // 2 if n % 2 == 0 else 3 * n + 1
                    image[i, j] += 1

        return ran(run, lanes, (image,))[0]

    np.testing.assert_array_equal(left("always"), left("never"))


def test_draws_are_those_of_their_iterations() -> None:
    def left(lanes: str) -> np.ndarray:
        ti.init(lanes=lanes, offline_cache=False, opt_level=1, random_seed=5)
        hits = ti.field(ti.i32, 100)

        @ti.kernel
        def run():
            for i in hits:
                while ti.random() < 0.8:
                    hits[i] += 1

        return ran(run, lanes, (hits,))[0]

    found = left("always")
    np.testing.assert_array_equal(found, left("never"))
    assert found.std() > 1


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.i8, ti.i32, ti.u1], ids=repr)
def test_local_arrays(dtype: Any, numbers: tuple[np.ndarray, np.ndarray]) -> None:
    """At places that are the same for all lanes and at others, under conditions, made anew in a loop."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, num_threads=1, offline_cache=False, opt_level=1)
        x, k, y = ti.field(dtype, LONGEST), ti.field(ti.i32, LONGEST), ti.field(dtype, LONGEST)
        x.from_numpy((numbers[0] > 2.0).astype(x.to_numpy().dtype))
        k.from_numpy(numbers[1].astype(np.int32))

        @ti.kernel
        def run(n: ti.i32):
            for i in range(n):
                found = ti.Matrix.zero(dtype, 3, 4)
                for j in range(k[i] % 5 + 1):
                    row = ti.Vector.zero(dtype, 4)
                    for c in range(4):
                        row[(c + i) % 4] = x[(i + c * j) % n]
                    if x[i]:
                        for c in range(i % 4 + 1):
                            found[j % 3, c] = row[c]
                y[i] = found[i % 3, k[i] % 4] + found[n % 3, 1]

        return ran(run, lanes, (y,), 61)

    np.testing.assert_array_equal(left("always"), left("never"))


def test_old_values_of_updates() -> None:
    """A list that grows by what iterations append, and counts of elements of their own."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, num_threads=1, offline_cache=False, opt_level=1)
        count, listed, own = ti.field(ti.i32, ()), ti.field(ti.i32, 100), ti.field(ti.i32, 100)

        @ti.kernel
        def run(n: ti.i32):
            for i in range(n):
                last = 0
                while own[i] < i % 3:
                    last = ti.atomic_add(own[i], 1)
                if last == 1:
                    listed[ti.atomic_add(count[None], 1)] = i

        return ran(run, lanes, (count, listed, own), 83)

    for one, other in zip(left("never"), left("always"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("first", [0, -5, 2**31 - 9, 2**63 - 1 - 21, -(2**63)])
def test_indices_of_64_bits(first: int) -> None:
    """Up to the last number there is."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, default_ip=ti.i64, num_threads=1, offline_cache=False, opt_level=1)
        x = ti.field(ti.i64, 21)

        @ti.kernel
        def run(lo: ti.i64, hi: ti.i64):
            for i in range(lo, hi):
                n = i - lo
                while n > 1:
                    n = n // 2
                    x[i - lo] += i % 7

        return ran(run, lanes, (x,), first, first + 21)

    np.testing.assert_array_equal(left("always"), left("never"))


# Rows, and elements that lanes have in common


#: The annotations of parameters with one index and with two, as a test wants them.
PARAMETERS: dict[int, Any] = {}


def mixture(n, k, d):
    """Arrays and a kernel of two parallel loops that suits lanes of the outer one: rows of x, rows of y that iterations
    change, elements of q and g that are the same for all lanes, and some where lanes meet.
    """
    rng = np.random.default_rng(n + k + d)
    x, q = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (k, d))
    y, g, counts = np.zeros((n, d)), np.zeros((k, d)), np.zeros(4)

    @ti.kernel
    def run(x: PARAMETERS[2], q: PARAMETERS[2], y: PARAMETERS[2], g: PARAMETERS[2], counts: PARAMETERS[1]):
        for i, k in ti.ndrange(x.shape[0], q.shape[0]):
            for r in range(x.shape[1]):
                s = 0.0
                for c in range(r):
                    s += x[i, c] * q[k, c]
                if s > 0.1:
                    g[k, r] += x[i, r] * s
                g[k, 0] -= s
                ti.atomic_max(counts[(i + r) % 4], s)

        for i in range(x.shape[0]):
            for k in range(q.shape[0]):
                s = 0.0
                for r in range(x.shape[1]):
                    s += x[i, r] * q[k, r]
                for r in range(y.shape[1]):
                    y[i, r] += s
                    if y[i, r] > 0.5:
                        y[i, r] *= 0.5

    return run, (x, q, y, g, counts)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=repr)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("arrays", [False, True], ids=["fields", "arrays"])
def test_rows_and_columns(arrays: bool, threads: int, dtype: Any) -> None:
    """Shapes that fill vectors and shapes that do not; none at all where they are known at launch."""

    def left(lanes: str, shape: tuple[int, int, int]) -> list[np.ndarray]:
        ti.init(lanes=lanes, default_fp=dtype, num_threads=threads, debug=True, offline_cache=False, opt_level=1)
        PARAMETERS.update({n: ti.types.ndarray(dtype, n) if arrays else ti.template() for n in (1, 2)})
        kernel, values = mixture(*shape)
        made = [(ti.ndarray if arrays else ti.field)(dtype, v.shape) for v in values]
        for one, v in zip(made, values, strict=True):
            one.from_numpy(v.astype(one.to_numpy().dtype))
        kernel(*made)
        shown = repr(kernel.ir("vectorise"))
        assert ("load tile" in shown, "store tile" in shown) == ((lanes == "always",) * 2)
        return [one.to_numpy() for one in made]

    for shape in ((67, 5, 3), (16, 3, 8), (3, 2, 17), *([(5, 0, 4), (2, 3, 0)] if arrays else [])):
        for one, other in zip(left("never", shape), left("always", shape), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4 if dtype is ti.f32 else 1e-10, atol=1e-5)


@pytest.mark.parametrize("arrays", [False, True], ids=["fields", "arrays"])
def test_rows_next_to_the_own_one(arrays: bool) -> None:
    """Each iteration reads its own row, and those before and after it."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, num_threads=1, offline_cache=False, opt_level=1)
        PARAMETERS.update({n: ti.types.ndarray(ti.f32, n) if arrays else ti.template() for n in (1, 2, 3)})
        x, z = np.random.default_rng(4).uniform(-1, 1, (40, 7)), np.random.default_rng(5).uniform(-1, 1, (40, 3, 2))
        made = [(ti.ndarray if arrays else ti.field)(ti.f32, shape) for shape in (x.shape, z.shape, 40)]
        made[0].from_numpy(x.astype(np.float32))
        made[1].from_numpy(z.astype(np.float32))

        @ti.kernel
        def run(x: PARAMETERS[2], z: PARAMETERS[3], y: PARAMETERS[1]):
            for i in range(1, 39):
                s = 0.0
                for j in range(x.shape[1]):
                    s += x[i, j] * x[i - 1, j] - 0.5 * x[i + 1, j]
                for j in range(z.shape[1]):
                    for l in range(z.shape[2]):  # noqa: E741
                        s += z[i, j, l] * z[i + 1, j, l]
                y[i] = s

        run(*made)
        assert any(one.lanes for one in run.loops()) == (lanes == "always")
        return [made[2].to_numpy()]

    np.testing.assert_allclose(left("always")[0], left("never")[0], rtol=1e-4, atol=1e-5)


def test_vectors_of_a_structure_are_rows() -> None:
    """A few places of a row that stand in the code; those next to them stay as they are."""

    def left(lanes: str) -> list[np.ndarray]:
        ti.init(lanes=lanes, num_threads=1, offline_cache=False, opt_level=1)
        v = ti.Vector.field(12, ti.f32, 45)
        w = ti.field(ti.f32, 45)
        v.from_numpy(np.random.default_rng(3).uniform(-1, 1, (45, 12)).astype(np.float32))

        @ti.kernel
        def run():
            for i in range(3, 42):
                n = 0
                for c in ti.static(range(2, 9)):
                    w[i] += ti.sin(v[i][c])
                while n < 3 and w[i] < 2.0:
                    n += 1
                    w[i] += n
                for c in ti.static(range(3, 9)):
                    v[i][c] += w[i] * v[i][c - 1]

        found = ran(run, lanes, (v, w))
        assert ("by 48i64, 28i64" in repr(run.ir("vectorise"))) == (lanes == "always")
        return found

    for one, other in zip(left("never"), left("always"), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5)


def test_what_moves_rows_is_found_on_disk_with_the_kernel(tmp_path) -> None:
    """Where it is missing there, it is made again."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nimport tinote as ti\nfrom tinote.runtime import jit\n"
        "if sys.argv[1:]:\n    jit.package_stamp = lambda: sys.argv[1]\n"
        "ti.init(lanes='always')\nx, y = ti.field(ti.f32, (20, 3)), ti.field(ti.f32, 20)\nx.fill(2.0)\n"
        "@ti.kernel\ndef k():\n    for i in y:\n        for j in range(3):\n            y[i] += x[i, j]\n"
        "k()\nprint(y.to_numpy().sum(), 'load tile' in repr(k.ir('vectorise')), k.instances[-1].origin.value)\n"
    )
    environment = {**os.environ, "TINOTE_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    environment.pop("TINOTE_CACHE_LIMIT", None)
    found: list[str] = []
    for arguments in ((), (), ("another package",)):
        run = subprocess.run([sys.executable, program, *arguments], env=environment, capture_output=True, text=True)
        assert run.stdout.startswith("120.0 True "), run.stderr
        found.append(run.stdout.split()[-1])
    assert found == ["compiled", "disk", "disk"]


# Faults: of the first lane that fails, of those that take part


def test_faults_name_the_first_iteration_that_fails() -> None:
    ti.init(lanes="always", debug=True, offline_cache=False, opt_level=1, num_threads=1)
    where, k = ti.field(ti.i32, 64), ti.field(ti.i32, 64)
    k.fill(1)

    @ti.kernel
    def look(n: ti.i32):
        for i in range(n):
            j = i
            while k[j] == 0:
                j += where[i]
            where[i] = 3

    @ti.kernel
    def divide(n: ti.i32):
        for i in range(n):
            s = 0
            for _ in range(i % 3):
                s = s ^ (7 // k[i])
            where[i] = s

    @ti.kernel
    def insist(n: ti.i32):
        for i in range(n):
            if i % 2 == 1:
                assert k[i] == 1, f"k[{i}] is {k[i]}"

    @ti.kernel
    def grow(n: ti.i32):
        for i in range(n):
            s = k[i]
            for _ in range(40):
                s *= 2
            where[i] = s

    for kernel in (look, divide, insist, grow):
        assert any(one.lanes for one in kernel.loops()), kernel
    look(64)  # nobody looks further
    k[13] = k[21] = 0
    where[13], where[21] = 60, 600
    with pytest.raises(KernelIndexError, match=r"index 73 is out of bounds"):
        look(64)
    k.fill(1)
    k[4], k[6], k[9] = 0, 0, 0  # 6 and 9 have no inner iteration
    divide(4)
    with pytest.raises(KernelZeroDivisionError):
        divide(64)
    k.fill(1)
    k[6], k[17], k[19] = 5, 6, 7
    with pytest.raises(KernelAssertionError, match=r"k\[17\] is 6"):
        insist(64)
    insist(17)
    k.fill(0)
    grow(64)
    k[11] = 1
    with pytest.raises(KernelOverflowError):
        grow(64)


def test_a_loop_that_ends_only_when_it_is_stopped_is_interrupted() -> None:
    """Lanes poll the stop word as single iterations do."""
    ti.init(lanes="always", offline_cache=False, opt_level=1)
    x = ti.field(ti.f32, 64)

    @ti.kernel
    def endless():
        for i in x:
            while x[i] < 1.0:
                x[i] *= 0.5

    assert any(one.lanes for one in endless.loops())
    x.fill(1e-30)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless()
    timer.join()


# What is said


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_the_gradient_of_a_mixture_runs_in_lanes_of_its_points(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads rows of points and adds adjoints of parameters in columns: no reduction, no update of single lanes. Its
    innermost loop is short: on average half as long as the loop around it.
    """
    monkeypatch.setattr(jit, "_host", machine_with(bits))
    ti.init(default_fp=ti.f64, offline_cache=False)
    n, k, d = 512, 25, 10
    x, means, q = ti.field(ti.f64, (n, d)), ti.field(ti.f64, (k, d)), ti.field(ti.f64, (k, d, d))
    terms = ti.field(ti.f64, (n, k))

    @ti.kernel
    def squares(means: ti.template(), q: ti.template(), terms: ti.template()):
        for i, k in ti.ndrange(x.shape[0], means.shape[0]):
            square = 0.0
            for r in range(x.shape[1]):
                whitened = 0.0
                for c in range(r):
                    whitened += q[k, r, c] * (x[i, c] - means[k, c])
                square += whitened**2
            terms[i, k] = square

    means, q, terms = [ti.field(ti.f64, f.shape, needs_grad=True) for f in (means, q, terms)]
    squares(means, q, terms)
    lanes = bits // 64
    table = squares.loops(gradient=True)
    if lanes < 4:
        assert not any(one.lanes for one in table)
        return
    assert {(one.lanes, one.width) for one in table} == {(True, lanes)}
    for gradient in (False, True):
        text = repr(squares.ir("vectorise", gradient=gradient))
        assert "load tile" in text
        assert "reduce" not in text and "atomic" not in text


def test_loops_in_lanes_are_reported_and_why_others_are_not() -> None:
    ti.init(offline_cache=False)
    x, y = ti.field(ti.f32, 4096), ti.field(ti.f32, 4096)

    @ti.kernel
    def escape():
        for i in x:
            v = x[i]
            n = 0
            while v * v < 9.0 and n < 50:
                v = v * v - 0.8
                n += 1
            y[i] = n

    @ti.kernel
    def shout():
        for i in x:
            while x[i] > 1.0:
                x[i] *= 0.5
                print(i)

    table = escape.loops()
    if host().vector_bits < 256:
        assert "128 bits" in repr(table)
    else:
        lanes = table[0].width
        assert lanes % (host().vector_bits // 32) == 0
        assert [(one.lanes, one.width, one.reasons) for one in table] == [(True, lanes, ())] * 2
        assert f"vectorised ×{lanes} (masked)" in repr(table)
        assert "u1x" in repr(escape.ir("vectorise")) and "reduce or" in repr(escape.ir("vectorise"))
    assert "it prints" in repr(shout.loops())


def test_a_search_that_divides_by_its_index_runs_one_iteration_at_a_time() -> None:
    """Integer remainders have no vector form, and lanes would wait for the longest search."""
    ti.init(num_threads=1)

    @ti.func
    def is_prime(n):
        found = True
        for k in range(2, int(n**0.5) + 1):
            if n % k == 0:
                found = False
                break
        return found

    @ti.kernel
    def count_primes(n: ti.i32) -> ti.i32:
        count = 0
        for i in range(2, n):
            if is_prime(i):
                count += 1
        return count

    assert count_primes(1000) == 168
    assert not any(loop.lanes for loop in count_primes.loops())
