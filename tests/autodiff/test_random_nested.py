"""Random programs with a derivative inside, differentiated themselves: all pairs of modes, as functions and as
blocks, against differences of what the inner derivative gives.

pytest tests/autodiff/test_random_nested.py --random-programs 32000     2,000 programs with a derivative in a derivative
"""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.tape_programs import TapeWriter
from tests.autodiff.test_random_tapes import Numbers, Trial
from tinote.errors import DifferentiationError


class Nested(Trial):
    """One program whose derivative is taken by the fields `inner`; what that gives and leaves goes into `total`."""

    def __init__(self, seed: int, *, temporary: bool) -> None:
        super().__init__(seed)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        if not temporary:
            self.h = self.space["h"] = ti.field(ti.f64, shape=self.hidden.shape, name="h", **both)
        self.total = ti.field(ti.f64, shape=(), name="total", **both)
        self.inner = [self.fields[name] for name in "ac"]
        total, a, b, c, loss, m = self.total, *self.inner, self.fields["b"], self.loss, self.fields["m"]
        a, c, b = self.inner[0], self.inner[1], self.fields["b"]
        column = ti.types.ndarray(dtype=ti.f64, ndim=1)

        @ti.kernel
        def before():
            for i in a:
                a[i] = a[i] * (1.0 + 0.1 * m[None])

        @ti.kernel
        def add_slopes(by_a: column, by_c: column):
            for i in a:
                total[None] += ti.sin(by_a[i]) * (i + 1) + by_c[i] * c[i] + 0.3 * b[i] * by_a[i]

        @ti.kernel
        def add_product(product: ti.f64):
            total[None] += ti.sin(product) * (1.0 + b[0])

        @ti.kernel
        def add_gradients():
            for i in a:
                total[None] += ti.sin(a.grad[i]) * (i + 1) + c.grad[i] * c[i] + 0.3 * b[i] * a.grad[i]

        @ti.kernel
        def add_dual():
            total[None] += ti.sin(loss.dual[None] * loss[None]) * (1.0 + b[0])

        @ti.kernel
        def add_rest():
            total[None] += 0.1 * loss[None]
            for i in a:
                total[None] += a[i] * b[i]

        self.add_gradients, self.add_dual = add_gradients, add_dual
        self.before, self.add_slopes, self.add_product, self.add_rest = before, add_slopes, add_product, add_rest
        self.add_third(total)
        self.along = [np.cos(np.arange(f.shape[0])) for f in self.inner]

    def add_third(self, total: Any) -> None:
        """What takes a derivative of the whole program."""
        self.last = last = ti.field(ti.f64, shape=(), name="last", needs_grad=True, needs_dual=True)
        a, c, b = self.inner[0], self.inner[1], self.fields["b"]
        column = ti.types.ndarray(dtype=ti.f64, ndim=1)

        @ti.kernel
        def use_slopes(by_a: column, by_c: column):
            for i in a:
                last[None] += ti.sin(by_a[i]) * (i + 1) + 0.2 * by_c[i] * c[i] + 0.3 * b[i] * by_a[i]

        @ti.kernel
        def use_product(product: ti.f64):
            last[None] += ti.sin(product) * (1.0 + b[0])

        @ti.kernel
        def use_gradients():
            for i in a:
                last[None] += ti.sin(a.grad[i]) * (i + 1) + 0.2 * c.grad[i] * c[i] + 0.3 * b[i] * a.grad[i]

        @ti.kernel
        def use_dual():
            last[None] += ti.sin(total.dual[None] * total[None]) * (1.0 + b[0])

        @ti.kernel
        def use_rest():
            last[None] += 0.1 * total[None]
            for i in a:
                last[None] += a[i] * b[i]

        self.use_slopes, self.use_product, self.use_rest = use_slopes, use_product, use_rest
        self.use_gradients, self.use_dual = use_gradients, use_dual

    def once(self) -> None:
        exec(self.run, self.space)

    def reset(self) -> None:
        super().reset()
        self.total[None] = self.last[None] = 0

    def program(self, mode: str) -> None:
        """The program, with an inner derivative of this mode; or the program with one in it, and that in another."""
        if " in " in mode:
            self.third(*mode.split(" in "))
            return
        self.before()
        if mode == "tape":
            with ti.ad.Tape(self.loss):
                self.once()
            self.add_gradients()
        elif mode == "block":
            with ti.ad.FwdMode(loss=self.loss, param=self.inner, seed=self.along):
                self.once()
            self.add_dual()
        elif mode == "reverse":
            self.add_slopes(*ti.ad.grad(self.once, wrt=self.inner, loss=self.loss)())
        elif mode == "hessian":
            self.add_slopes(*ti.ad.hvp(self.once, wrt=self.inner, loss=self.loss)(self.along))
        else:
            value, product = ti.ad.jvp(self.once, wrt=self.inner, loss=self.loss)(self.along)
            self.add_product(product * value)
        self.add_rest()

    def third(self, inner: str, middle: str) -> None:
        """A derivative of the program that has one inside."""

        def run() -> None:
            self.program(inner)

        if middle == "tape":
            with ti.ad.Tape(self.total):
                run()
            self.use_gradients()
        elif middle == "block":
            with ti.ad.FwdMode(loss=self.total, param=self.inner, seed=self.along):
                run()
            self.use_dual()
        elif middle == "hessian":
            self.use_slopes(*ti.ad.hvp(run, wrt=self.inner, loss=self.total)(self.along))
        elif middle == "reverse":
            self.use_slopes(*ti.ad.grad(run, wrt=self.inner, loss=self.total)())
        else:
            value, product = ti.ad.jvp(run, wrt=self.inner, loss=self.total)(self.along)
            self.use_product(product * value)
        self.use_rest()

    def result(self, mode: str) -> Any:
        """Where it leaves its number."""
        return self.last if " in " in mode else self.total

    def begin(self, shift: float = 0.0, direction: Numbers | None = None) -> None:
        for name, value in self.start.items():
            self.fields[name].from_numpy(value if direction is None else value + shift * direction[name])
        self.reset()

    def outcome(self, mode: str, shift: float, direction: Numbers) -> float:
        self.begin(shift, direction)
        self.program(mode)
        return self.result(mode)[None]

    def reverse(self, mode: str) -> Numbers:
        self.begin()
        with ti.ad.Tape(loss=self.result(mode)):
            self.program(mode)
        return {name: f.grad.to_numpy() for name, f in self.fields.items()}

    def forward(self, mode: str, direction: Numbers) -> float:
        self.begin()
        fields = {name: f for name, f in self.fields.items() if name not in ("d", "e")}
        with ti.ad.FwdMode(
            loss=self.result(mode), param=list(fields.values()), seed=[direction[name] for name in fields]
        ):
            for name in ("d", "e"):
                self.fields[name].dual.from_numpy(direction[name])
            self.program(mode)
        return self.result(mode).dual[None]


TWO = ("reverse", "forward", "tape", "block", "hessian")
THREE = tuple([f"{inner} in {middle}" for inner in TWO for middle in TWO])


def check(seed: int, *, temporary: bool, modes: tuple[str, ...] = TWO) -> str:
    """Differentiate one program. Gives "right", "no derivative" or "refused"; what is wrong fails."""
    trial = Nested(seed, temporary=temporary)
    smooth = refused = 0
    for mode in modes:
        shown = f"seed {seed}, {mode} inside\n{trial.text}\n{trial.calls}"
        direction = trial.direction()
        try:
            gradient = trial.reverse(mode)
        except DifferentiationError:
            if not temporary:
                raise
            refused += 1
            continue
        found = sum([float((gradient[name] * direction[name]).sum()) for name in gradient])
        size = sum([float(np.abs(gradient[name] * direction[name]).sum()) for name in gradient])
        if " in " in mode and size > 1e5:  # sines of what is so steep oscillate within any step, and roundings count
            continue
        steps = (1e-5, 3e-6, 1e-6)
        slopes = [(trial.outcome(mode, h, direction) - trial.outcome(mode, -h, direction)) / (2 * h) for h in steps]
        forwards = trial.forward(mode, direction)
        assert found == pytest.approx(forwards, rel=1e-9, abs=1e-9 * (1 + size)), f"forward mode around, {shown}"
        if abs(slopes[0] - slopes[2]) <= 1e-4 * (1 + abs(slopes[2])):
            assert found == pytest.approx(slopes[1], rel=1e-4, abs=1e-5 * (1 + size)), f"differences, {shown}"
            smooth += 1
    return "refused" if refused else "right" if smooth else "no derivative"


def modes_of(seed: int, modes: tuple[str, ...]) -> tuple[str, ...]:
    """The derivative inside of one program: another one for the next."""
    return (modes[seed % len(modes)],)


def shortest(seed: int) -> int:
    """Of eight programs: a derivative of a derivative of a derivative of a long one takes up to 13 s."""
    return min(range(seed // 8 * 8, seed // 8 * 8 + 8), key=lambda one: len(TapeWriter(one).program()[0]))


def test_random_nested_programs(random_programs: range) -> None:
    seeds = random_programs[::16]
    results = [check(seed, temporary=False, modes=modes_of(seed // 16, TWO)) for seed in seeds]
    assert results.count("right") > 0.6 * len(results), results


def test_with_temporary_adjoints_they_are_right_or_refused(random_programs: range) -> None:
    for seed in random_programs[8::32]:
        check(seed, temporary=True, modes=modes_of(seed // 32, TWO))


@pytest.mark.parametrize("part", range(3))
def test_third_derivatives_of_random_programs(random_programs: range, part: int) -> None:
    seeds = random_programs[1 + 16 * part :: 48]
    results = [check(shortest(seed), temporary=False, modes=modes_of(seed // 16, THREE)) for seed in seeds]
    assert results.count("right") > 0.3 * len(results), results
