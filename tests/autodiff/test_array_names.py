"""Arrays that a differentiated function knows under several names: it runs as the kernel does, or is refused.

    pytest tests/autodiff/test_array_names.py --random-programs 5000

Memory that is only read may have several names; the derivatives are those of a run in which each name has an array of
its own. Memory that is written must have one.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError

Array = np.ndarray[Any, Any]
Kernels = dict[str, Any]


@pytest.fixture
def kernels() -> Kernels:
    return _kernels()


def _kernels() -> Kernels:
    line = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @ti.kernel
    def write(a: line, b: line) -> ti.f64:
        s = 0.0
        ti.loop_config(serialize=True)
        for j in range(3):
            b[j] = a[j] * 2
            s += a[j] * b[j]
        return s

    @ti.kernel
    def read(a: line, b: line) -> ti.f64:
        s = 0.0
        for j in range(3):
            s += a[j] ** 2 * b[j]
        return s

    @ti.kernel
    def double(a: line) -> ti.f64:
        s = 0.0
        for j in range(3):
            a[j] = a[j] * 2
            s += a[j]
        return s

    return {"write": write, "read": read, "double": double}


def interfaces(f: Callable[..., Any], count: int) -> dict[str, Callable[..., Any]]:
    """Every way to differentiate `f` with respect to its first `count` arguments, as functions of the arguments."""
    numbers = tuple(range(count))

    def seeds(arrays: Any) -> Any:
        return tuple([np.ones(a.shape) for a in arrays[:count]])

    return {
        "value_and_grad": ti.ad.value_and_grad(f, numbers),
        "grad": ti.ad.grad(f, numbers),
        "vjp": lambda *a: ti.ad.vjp(f, numbers)(1.0, *a),
        "jvp": lambda *a: ti.ad.jvp(f, numbers)(seeds(a), *a),
        "forward": ti.ad.jacobian(f, numbers, mode="forward"),
        "reverse": ti.ad.jacobian(f, numbers, mode="reverse"),
        "hvp": lambda *a: ti.ad.hvp(f, numbers)(seeds(a), *a),
    }


INTERFACES = ("value_and_grad", "grad", "vjp", "jvp", "forward", "reverse", "hvp")


def struct_members(q: Array) -> tuple[Array, Array]:
    both = np.zeros(3, [("a", np.float64), ("b", np.float64)])
    both["a"] = q[:3]
    return both["a"], both["a"]


def twice(q: Array) -> tuple[Array, Array]:
    return q, q


def slices(q: Array) -> tuple[Array, Array]:
    return q[:-1], q[1:]


def reversed_view(q: Array) -> tuple[Array, Array]:
    return q[:3], q[2::-1]


def by_dlpack(q: Array) -> tuple[Array, Array]:
    return q, np.from_dlpack(q)


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("made", [twice, slices, reversed_view, by_dlpack, struct_members])
def test_memory_that_is_written_under_two_names(made: Any, interface: str, kernels: Kernels) -> None:
    arrays = made(np.array([1.0, 2.0, 3.0, 4.0]))
    before = [a.copy() for a in arrays]
    with pytest.raises(DifferentiationError, match="share memory") as caught:
        interfaces(kernels["write"], 2)[interface](*arrays)
    assert caught.value.span.file == __file__
    for array, held in zip(arrays, before, strict=True):
        assert (array == held).all()


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("count", [1, 2])
def test_memory_that_is_only_read(interface: str, count: int, kernels: Kernels) -> None:
    q = np.array([1.0, 2.0, 3.0, 4.0])
    run = interfaces(kernels["read"], count)[interface]
    wanted, found = run(q[:-1].copy(), q[1:].copy()), run(q[:-1], q[1:])
    for one, other in zip(flat(found), flat(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


def flat(found: Any) -> list[Any]:
    return [leaf for part in found for leaf in flat(part)] if isinstance(found, tuple) else [found]


PROGRAMS: list[tuple[str, Callable[..., Any]]] = [
    ("a, then its other name", lambda k, a, b: k["double"](a) + k["read"](b, b)),
    ("its other name, then a", lambda k, a, b: k["read"](b, b) + k["double"](a)),
    ("only the second is written", lambda k, a, b: k["read"](a, a) + k["double"](b)),
    ("by Python", lambda k, a, b: (a.__setitem__(1, 7.0), k["read"](b, b))[1]),
    ("in a checkpoint", lambda k, a, b: (ti.ad.checkpoint(lambda t: k["double"](a), 2), k["read"](b, b))[1]),
    ("without a gradient", lambda k, a, b: (ti.ad.no_grad(k["double"])(b), k["read"](a, a))[1]),
]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("name", "program"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_several_launches(name: str, program: Any, count: int, kernels: Kernels) -> None:
    q = np.array([1.0, 2.0, 3.0, 4.0])
    f: Any = lambda a, b: program(kernels, a, b)  # noqa: E731
    with pytest.raises(DifferentiationError, match=r"share memory|written under another name|not tinote's own"):
        ti.ad.grad(f, tuple(range(count)))(q[:-1], q[1:])


def test_an_array_that_the_function_knows_from_elsewhere(kernels: Kernels) -> None:
    q = np.array([1.0, 2.0, 3.0])
    assert ti.ad.grad(lambda a: kernels["read"](a, q))(q).tolist() == [2.0, 8.0, 18.0]
    for f, names in (
        (lambda a: kernels["write"](a, q), "'a' and 'b'"),
        (lambda a: kernels["read"](q, a) + kernels["double"](q), "argument 0 and 'a'"),
        (lambda a: kernels["double"](q) + kernels["read"](a, a), "argument 0 and 'a'"),
    ):
        with pytest.raises(DifferentiationError, match=f"\n{names} share memory that is written"):
            ti.ad.grad(f)(q)

    def by_python(a: Any) -> Any:
        q[0] = 5.0
        return kernels["read"](a, a)

    with pytest.raises(DifferentiationError, match="written under another name"):
        ti.ad.grad(by_python)(q)


def test_a_view_of_a_field_and_a_read_only_array(kernels: Kernels) -> None:
    for made in (ti.field(ti.f64, 3), ti.ndarray(ti.f64, 3)):
        view = np.from_dlpack(made)
        with pytest.raises(DifferentiationError, match="argument 0 is a view of"):
            ti.ad.grad(kernels["double"])(view)
    fixed = np.array([1.0, 2.0, 3.0])
    fixed.flags.writeable = False
    assert ti.ad.grad(kernels["read"])(fixed, fixed).tolist() == [2.0, 8.0, 18.0]
    with pytest.raises(DifferentiationError, match="argument 0 is written, and the array is read-only"):
        ti.ad.grad(kernels["double"])(fixed)


def test_elements_that_share_memory(kernels: Kernels) -> None:
    q = np.lib.stride_tricks.as_strided(np.array([1.0, 2.0, 3.0, 4.0]), (3,), (0,))
    assert ti.ad.grad(kernels["read"], 0)(q, np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(DifferentiationError, match="share memory with each other"):
        ti.ad.grad(kernels["double"])(q)


def test_one_array_of_ours_at_two_positions(kernels: Kernels) -> None:
    x = ti.ndarray(ti.f64, 3, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    for run in interfaces(kernels["read"], 2).values():
        with pytest.raises(DifferentiationError, match=r"argument 0 and argument 1 of .* are one array"):
            run(x, x)
    with pytest.raises(DifferentiationError, match="argument 0 and 'x' in wrt"):
        ti.ad.grad(kernels["read"], 0, wrt=x)(x, np.ones(3))
    with pytest.raises(DifferentiationError, match="'x' in wrt and 'x' in wrt"):
        ti.ad.grad(lambda: kernels["read"](x, x), wrt=[x, x])()
    assert loss[None] == 0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_jacobian_starts_from_the_same_arrays_each_time(mode: str, kernels: Kernels) -> None:
    q, other = np.array([1.0, 2.0, 3.0]), np.ones(3)

    def f(a: Any) -> Any:
        kernels["double"](other)
        return kernels["double"](a) + kernels["read"](a, other)

    found = ti.ad.jacobian(f, mode=mode)(q)
    assert found.tolist() == [2 + 4 * 2 * 2 * n for n in (1, 2, 3)]
    assert q.tolist() == [2.0, 4.0, 6.0]  # it ran for real, once
    assert other.tolist() == [2.0] * 3


# ---- at random

STEPS = ("read({0}, {1})", "read({0}, {0})", "write({0}, {1})", "double({0})")


def program(numbers: random.Random) -> tuple[str, str]:
    """The body of a function of three arrays that also knows `q`, and the arrays that it is called with."""

    def part() -> str:
        begin = numbers.randrange(0, 7)
        return f"q[{begin}:{begin + 3}]"

    names = ["a", "b", "c", part()]
    lines = [
        f"    s = s + {numbers.choice(STEPS).format(numbers.choice(names), numbers.choice(names))}"
        for _ in range(numbers.randint(1, 3))
    ]
    if numbers.random() < 0.2:
        place = f"{numbers.choice(names)}[{numbers.randrange(3)}]"
        lines.insert(numbers.randrange(len(lines)), f"    {place} = {numbers.uniform(-1, 1):.2f}")
    calls = ", ".join([part() for _ in "abc"])
    return "\n".join(["def f(a, b, c):", "    s = read(a, b) * 0.1", *lines, "    return s", ""]), f"({calls},)"


def check(seed: int, kernels: Kernels) -> str:
    """Give "right" or "refused"; what is wrong fails."""
    numbers = random.Random(seed)
    text, call = program(numbers)
    shown = f"seed {seed}\n{text}\nq of 9 numbers, called with {call}"
    space: dict[str, Any] = dict(kernels)
    exec(text, space)
    start = np.random.default_rng(seed).uniform(0.5, 1.5, 9)
    count = numbers.randint(1, 3)
    derivatives = interfaces(space["f"], count)

    def begin() -> Any:
        space["q"] = start.copy()
        return eval(call, space)

    try:
        value = space["f"](*begin())
    except DifferentiationError as error:
        raise AssertionError(shown) from error
    left = space["q"]
    name = numbers.choice(INTERFACES)
    arrays = begin()
    try:
        found = derivatives[name](*arrays)
    except DifferentiationError:
        return "refused"
    np.testing.assert_allclose(space["q"], left, rtol=1e-12, err_msg=f"{name}, {shown}")
    if name in ("value_and_grad", "vjp", "jvp"):
        assert found[0] == pytest.approx(value, rel=1e-12), f"{name}, {shown}"

    def moved(which: int, at: int, h: float) -> float:
        """The value where one argument has changed, and nothing else that lies in the same memory."""
        arrays = [a.copy() if k < count else a for k, a in enumerate(begin())]
        arrays[which][at] += h
        return space["f"](*arrays)

    slopes = [
        np.array([(moved(which, at, 1e-5) - moved(which, at, -1e-5)) / 2e-5 for at in range(3)])
        for which in range(count)
    ]
    if name in ("jvp", "hvp"):
        slopes = [np.array(sum([s.sum() for s in slopes]))]
    got = [] if name == "hvp" else [found[1]] if name == "jvp" else flat(found[1] if name[0] == "v" else found)
    for one, wanted in zip(got, slopes, strict=True) if got else ():
        np.testing.assert_allclose(one, wanted, rtol=1e-6, atol=1e-6, err_msg=f"{name}, {shown}")
    return "right"


@pytest.mark.filterwarnings(r"ignore:[\s\S]*its derivative is lost:UserWarning")
def test_random_programs(random_programs: range, kernels: Kernels) -> None:
    results = [check(seed, kernels) for seed in random_programs]
    assert results.count("right") > 0.1 * len(results), results
    assert results.count("refused") > 0.3 * len(results), results
