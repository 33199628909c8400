"""Three derivatives in each other, and four: all combinations of tapes, forward-mode blocks and functions. Against
differences of what the inner ones give.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

Array = np.ndarray[Any, Any]

N = 3
ALONG = np.array([1.0, -0.5, 0.25])
START = np.array([0.3, 0.7, -0.4])
OUTER = ("tape", "block", "grad", "jvp")


class Levels:
    """losses[k + 1] is computed of a derivative of losses[k], by x."""

    #: whether a custom gradient is used, in a subclass that has one
    is_custom = True

    def __init__(self, depth: int = 3) -> None:
        ti.init(default_fp=ti.f64)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x = x = ti.field(ti.f64, shape=N, **both)
        self.losses = [ti.field(ti.f64, shape=(), **both) for _ in range(depth)]
        first = self.losses[0]

        @ti.kernel
        def base(by: ti.f64):
            for i in x:
                first[None] += by * ti.sin(x[i]) * x[i] * (i + 1) + x[i] ** 3

        self.base = base
        self.uses = [self._use(*pair) for pair in zip(self.losses, self.losses[1:], strict=False)]

    def _use(self, loss: Any, total: Any) -> dict[str, Callable[..., None]]:
        x = self.x
        column = ti.types.ndarray(dtype=ti.f64, ndim=1)

        @ti.kernel
        def gradients():
            for i in x:
                total[None] += ti.sin(x.grad[i]) * (i + 1) + x[i] * loss[None]

        @ti.kernel
        def dual():
            total[None] += ti.sin(loss.dual[None]) * x[0] + loss[None] * x[1]

        @ti.kernel
        def array(slopes: column):
            for i in x:
                total[None] += ti.sin(slopes[i]) * (i + 1) + x[i] * loss[None]

        @ti.kernel
        def number(product: ti.f64):
            total[None] += ti.sin(product) * x[0] + loss[None] * x[1]

        return {
            "tape": gradients,
            "added": gradients,
            "repeated": gradients,
            "block": dual,
            "grad": array,
            "hvp": array,
            "jvp": number,
        }

    def run(self, kinds: tuple[str, ...]) -> None:
        """The program with derivatives of these kinds in it, the innermost first."""
        if not kinds:
            self.base(1.0 + 0.5 * self.x[0])  # a number that Python computes
            return
        *further, kind = kinds
        x, loss, use = self.x, self.losses[len(further)], self.uses[len(further)][kind]

        def inner() -> None:
            self.run(tuple(further))

        if kind == "tape":
            with ti.ad.Tape(loss):
                inner()
            use()
        elif kind in ("added", "repeated"):
            for clears in (True, kind == "repeated"):
                with ti.ad.Tape(loss, clear_gradients=clears):
                    inner()
                x[0] = x[0] * 1.2
            use()
        elif kind == "block":
            with ti.ad.FwdMode(loss=loss, param=x, seed=ALONG):
                inner()
            use()
        elif kind == "jvp":
            use(ti.ad.jvp(inner, wrt=x, loss=loss)(ALONG)[1])
        elif kind == "hvp":
            use(ti.ad.hvp(inner, wrt=x, loss=loss)(ALONG))
        else:
            use(ti.ad.grad(inner, wrt=x, loss=loss)())

    def begin(self, start: Array) -> None:
        self.x.from_numpy(start)
        for loss in self.losses:
            loss[None] = 0
        for field in (self.x, *self.losses):
            field.grad.fill(0)
            field.dual.fill(0)

    def value(self, kinds: tuple[str, ...], start: Array) -> float:
        """Without custom gradients, where there are some."""
        self.begin(start)
        self.is_custom = False
        self.run(kinds)
        self.is_custom = True
        return self.losses[len(kinds)][None]

    def derivative(self, kinds: tuple[str, ...], outer: str) -> float:
        """Along `ALONG`."""
        self.begin(START)
        x, loss = self.x, self.losses[len(kinds)]
        if outer == "tape":
            with ti.ad.Tape(loss):
                self.run(kinds)
            return x.grad.to_numpy() @ ALONG
        if outer == "block":
            with ti.ad.FwdMode(loss=loss, param=x, seed=ALONG):
                self.run(kinds)
            return loss.dual[None]
        if outer == "grad":
            return ti.ad.grad(lambda: self.run(kinds), wrt=x, loss=loss)() @ ALONG
        return ti.ad.jvp(lambda: self.run(kinds), wrt=x, loss=loss)(ALONG)[1]


KINDS = ("tape", "block", "grad", "jvp", "hvp")


def check(levels: Levels, kinds: tuple[str, ...], *, rel: float = 1e-5) -> None:
    """The derivative of each kind around these agrees with differences, and computes the same once more."""
    h = 1e-6
    slope = (levels.value(kinds, START + h * ALONG) - levels.value(kinds, START - h * ALONG)) / (2 * h)
    for outer in OUTER:
        found = levels.derivative(kinds, outer)
        assert found == pytest.approx(slope, rel=rel), (kinds, outer)
        assert levels.derivative(kinds, outer) == pytest.approx(found, rel=1e-12), (kinds, outer)


def test_all_combinations() -> None:
    levels = Levels()
    for kinds in itertools.product(KINDS, KINDS):
        check(levels, kinds)


@pytest.mark.parametrize("kind", ["added", "repeated"])
def test_two_tapes_in_a_row(kind: str) -> None:
    """The second one adds to the gradients that the first one leaves, those of what lies between included; or not."""
    levels = Levels()
    others = ("tape", "grad", "jvp")
    for kinds in [(kind, kind), *((kind, other) for other in others), *((other, kind) for other in others)]:
        check(levels, kinds)


def test_four_derivatives() -> None:
    levels = Levels(4)
    for kinds in [("tape", "tape", "tape"), ("block", "jvp", "tape"), ("grad", "tape", "grad")]:
        check(levels, kinds, rel=1e-4)


@pytest.mark.parametrize("inner", ["tape", "block"])
def test_an_exception_in_the_innermost_block_leaves_the_others_usable(inner: str) -> None:
    levels = Levels()
    base, first = levels.base, levels.losses[0]

    def program(*, fails: bool) -> None:
        with ti.ad.Tape(levels.losses[1]):
            try:
                if fails:
                    kind = ti.ad.Tape(first) if inner == "tape" else ti.ad.FwdMode(first, levels.x, ALONG)
                    with kind:
                        base(2.0)
                        raise KeyError
            except KeyError:
                pass
            first[None] = 0
            levels.run((inner,))
        levels.uses[1]["tape"]()

    found = []
    for fails in (True, False):
        levels.begin(START)
        with ti.ad.Tape(levels.losses[2]):
            program(fails=fails)
        found.append(levels.x.grad.to_numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


class Replaced(Levels):
    """The innermost function has a custom gradient: by launches of gradients, in kernels or in Python, or one that is
    not its gradient.
    """

    def __init__(self, how: str, depth: int = 3) -> None:
        super().__init__(depth)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        x, first = self.x, self.losses[0]
        y = ti.field(ti.f64, shape=N, name="y", **both)
        factor = -1.0 if how == "of another function" else 1.0

        @ti.kernel
        def start():
            for i in x:
                y[i] = ti.sin(x[i])

        @ti.kernel
        def couple():
            for i in x:
                y[i] = y[i] * x[(i + 1) % N] + x[i] ** 2

        @ti.kernel
        def multiply():
            for i in x:
                y[i] = ti.sin(x[i]) * x[(i + 1) % N] + x[i] ** 2

        @ti.kernel
        def multiply_back():
            for i in x:
                x.grad[i] += y.grad[i] * (ti.cos(x[i]) * x[(i + 1) % N] + factor * 2 * x[i])
                x.grad[(i + 1) % N] += y.grad[i] * ti.sin(x[i])
            for i in x:
                y.grad[i] = 0

        @ti.kernel
        def add():
            for i in x:
                first[None] += y[i] * (i + 1)

        def back_in_python() -> None:
            for i in range(N):
                x.grad[i] += y.grad[i] * (ti.cos(x[i]) * x[(i + 1) % N] + 2 * x[i])
                x.grad[(i + 1) % N] += y.grad[i] * ti.sin(x[i])
                y.grad[i] = 0.0

        def by_numpy() -> None:
            held, bar = x.to_numpy(), y.grad.to_numpy()
            found = bar * (np.cos(held) * np.roll(held, -1) + 2 * held)
            x.grad.from_numpy(x.grad.to_numpy() + found + np.roll(bar * np.sin(held), 1))
            y.grad.fill(0)

        def two_launches() -> None:
            start()
            couple()

        gradients: dict[str, Callable[[], None]] = {
            "launched": multiply.grad,
            "in Python": back_in_python,
            "by NumPy": by_numpy,
        }
        two = how == "in kernels"
        function = two_launches if two else lambda: multiply()
        replaced = ti.ad.grad_replaced(function)
        ti.ad.grad_for(replaced)(lambda: gradients.get(how, multiply_back)())

        def base(by: Any) -> None:
            (replaced if self.is_custom else function)()
            add()

        self.base: Any = base


@pytest.mark.parametrize("how", ["launched", "in kernels", "in Python"])
def test_custom_gradients_in_all_combinations(how: str) -> None:
    """Those of one, two and three derivatives; each with one kind of a custom gradient."""
    levels, hows = Replaced(how), ("launched", "in kernels", "in Python")
    for kinds in [*itertools.product(KINDS, KINDS), *[(kind,) for kind in KINDS], ()]:
        if hows[sum(map(KINDS.index, kinds)) % 3] == how:
            check(levels, kinds)


#: a line of each kind of derivative in `Levels`
LINES = {
    "tape": "with ti.ad.Tape(loss)",
    "block": "with ti.ad.FwdMode(loss=loss",
    "grad": "use(ti.ad.grad(",
    "jvp": "use(ti.ad.jvp(",
    "hvp": "use(ti.ad.hvp(",
}


@pytest.mark.parametrize("how", ["of another function", "by NumPy"])
@pytest.mark.parametrize(
    "kinds", [("block", "tape"), ("jvp", "grad"), ("grad", "jvp"), ("tape", "tape"), ("hvp", "jvp"), ("jvp", "block")]
)
def test_custom_gradients_that_are_not_derivatives_are_refused(kinds: tuple[str, str], how: str) -> None:
    """In third derivatives of all kinds, and in forward mode; the lines of the call and the blocks are named."""
    levels = Replaced(how)
    with pytest.raises(DifferentiationError, match=r"' is another one than that|derivative is lost") as refused:
        levels.derivative(kinds, "tape")
    assert "self.is_custom" in str(refused.value) and "with ti.ad.Tape(loss)" in str(refused.value)
    assert LINES[kinds[0 if kinds[0] != "grad" else 1]] in str(refused.value)
    if how == "of another function":
        for outer in ("block", "jvp"):
            with pytest.raises(DifferentiationError, match="'<lambda>' is another one than that"):
                levels.derivative((), outer)


@pytest.mark.parametrize("what", ["taken", "filled", "assigned"])
def test_python_cannot_touch_a_dual_that_is_a_value_where_tangents_lie(what: str) -> None:
    levels = Levels()
    outer, middle = ti.ad.FwdMode(levels.losses[2], levels.x, ALONG), ti.ad.Tape(levels.losses[1])
    with pytest.raises(DifferentiationError, match="its memory holds a tangent"), outer, middle:
        with ti.ad.FwdMode(levels.losses[0], levels.x, ALONG):
            levels.base(1.0)
        dual = levels.losses[0].dual
        if what == "taken":
            dual.to_numpy()
        elif what == "filled":
            dual.fill(1)
        else:
            dual[None] = 1.0


@pytest.mark.parametrize("inner", ["grad", "jvp", "hvp"])
def test_numbers_go_into_inner_derivatives_and_come_out_of_them(inner: str) -> None:
    """By their arguments, by variables of the function around, and as what they give."""
    ti.init(default_fp=ti.f64)
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x, energy, total = [ti.field(ti.f64, shape=(), **both) for _ in range(3)]

    @ti.kernel
    def curve(a: ti.f64, k: ti.f64) -> ti.f64:
        return ti.sin(a) * k * k + a**3

    @ti.kernel
    def add(a: ti.f64, b: ti.f64):
        energy[None] += ti.exp(0.3 * a) * b * x[None]

    @ti.kernel
    def use():
        total[None] += ti.sin(x.grad[None]) + energy[None] * x[None]

    def program() -> None:
        with ti.ad.Tape(energy):
            k = 0.5 * x[None] + 1.0

            def by(a: Any) -> Any:
                return curve(a, k) * k

            at = x[None] ** 2
            if inner == "grad":
                add(ti.ad.grad(by)(at), k)
            elif inner == "jvp":
                value, product = ti.ad.jvp(by)(k, at)
                add(product, value)
            else:
                add(ti.ad.hvp(by)(1.5, at), k)
        use()

    def outcome(start: float) -> float:
        x[None], total[None] = start, 0.0
        program()
        return total[None]

    start, h = 0.7, 1e-6
    slope = (outcome(start + h) - outcome(start - h)) / (2 * h)
    for _ in range(2):
        x[None] = start
        with ti.ad.Tape(total):
            program()
        assert x.grad[None] == pytest.approx(slope, rel=1e-6)
        x[None], total[None] = start, 0.0
        assert ti.ad.grad(program, wrt=x, loss=total)() == pytest.approx(slope, rel=1e-6)


Column = ti.types.ndarray(dtype=ti.f64, ndim=1)


@ti.kernel
def ring(a: Column) -> ti.f64:
    found = 0.0
    for i in range(a.shape[0]):
        found += ti.sin(a[i]) * a[(i + 1) % a.shape[0]] ** 2
    return found


@ti.kernel
def product(a: Column, b: Column) -> ti.f64:
    found = 0.0
    for i in range(a.shape[0]):
        found += a[i] * b[i]
    return found


def along(how: str, f: Callable[[Any], Any], direction: Array) -> Callable[[Any], Any]:
    """The derivative of a function of an array along a direction."""
    if how == "grad":
        gradient = ti.ad.grad(f)
        return lambda a: product(gradient(a), direction)
    if how == "vjp":
        pulled = ti.ad.vjp(f)
        return lambda a: product(pulled(1.0, a)[1], direction)
    if how == "hvp":
        products = ti.ad.hvp(f)
        return lambda a: product(products(direction, a), direction)
    pushed = ti.ad.jvp(f)
    return lambda a: pushed(direction, a)[1]


@pytest.mark.parametrize("outer", ["grad", "vjp", "jvp"])
def test_functions_of_arrays_in_all_modes(outer: str) -> None:
    """Arrays that stand in for the caller's are declared by nobody: what has no dual may get one."""
    ti.init(default_fp=ti.f64, num_threads=1)
    u, v, w = ALONG, np.array([0.5, -1.0, 0.7]), np.array([0.2, 0.4, 1.0])

    def third(second: Callable[[Any], Any]) -> float:
        return (second(START + 1e-5 * w) - second(START - 1e-5 * w)) / 2e-5

    for inner in ("grad", "vjp", "jvp"):
        for middle in ("grad", "vjp", "jvp"):
            second = along(middle, along(inner, ring, u), v)
            found = along(outer, second, w)
            for _ in range(2):
                assert found(START) == pytest.approx(third(second), rel=1e-7), (inner, middle)
    second = along("hvp", ring, u)
    assert along(outer, second, w)(START) == pytest.approx(third(second), rel=1e-7)


@pytest.mark.parametrize("where", ["kept", "stored", "given by Python", "a value that varies"])
def test_memory_that_was_declared_constant_in_three_derivatives(where: str) -> None:
    ti.init(default_fp=ti.f64, num_threads=1)
    constant = ti.field(ti.f64, 3, needs_grad=False, needs_dual=False)
    constant.fill(2.0)

    @ti.kernel
    def weighted(a: ti.f64) -> ti.f64:
        total = 0.0
        for i in range(3):
            total += constant[i] * a**4
        return total

    @ti.kernel
    def store(a: ti.f64):
        for i in range(3):
            constant[i] = 2.0 * ti.stop_grad(a)

    def f(a: Any) -> Any:
        if where == "stored":
            store(a)
        elif where != "kept":
            for i in range(3):
                constant[i] = 2.0 if where == "given by Python" else a
        return weighted(a)

    modes: list[Callable[..., Any]] = [ti.ad.grad, lambda g: lambda a: ti.ad.jvp(g)(1.0, a)[1]]
    for first in modes:
        for second in modes:
            for third in modes:
                derivative = third(second(first(f)))
                if where == "a value that varies":
                    with pytest.raises(DifferentiationError, match="was declared to have no gradient"):
                        derivative(1.3)
                else:
                    expected = 3 * 2.0 * (1.3 if where == "stored" else 1.0) * 24 * 1.3
                    assert derivative(1.3) == pytest.approx(expected, rel=1e-12)
