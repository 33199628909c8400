"""Random programs under a tape: the gradient is that of differences and of forward mode, and the tape changes nothing.

pytest tests/autodiff/test_random_tapes.py --random-programs 5000     a program for every eighth
"""

import linecache
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.tape_programs import COLUMNS, N, TapeWriter
from tinote.errors import DifferentiationError

Numbers = dict[str, np.ndarray]


class Trial:
    """One program with its fields, from given starting values."""

    LEVELS: tuple[int, ...] = (0,)
    """How much LLVM optimises, in turn: what runs a few times is made in a tenth of the time at 0, and most tests are
    of what happens between launches."""

    def __init__(self, seed: int) -> None:
        # Of the seeds, each eighth is used.
        ti.init(default_fp=ti.f64, num_threads=1 + seed // 8 % 2, opt_level=self.LEVELS[seed // 16 % len(self.LEVELS)])
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        a, b, c = [ti.field(ti.f64, shape=N, name=name, **both) for name in "abc"]
        d, e = [ti.ndarray(ti.f64, shape=N, name=name, **both) for name in "de"]
        g = ti.field(ti.f64, shape=(N, COLUMNS), name="g", **both)
        w = ti.Vector.field(2, ti.f64, shape=N, name="w", **both)
        p = ti.Struct.field({"s": ti.f64, "v": ti.types.vector(2, ti.f64)}, shape=N, **both)
        m, self.loss = [ti.field(ti.f64, shape=(), name=name, **both) for name in ("m", "loss")]
        self.k = ti.field(ti.i32, shape=N, name="k")
        self.h = ti.field(ti.f64, shape=N, name="h")  # numbers pass through it
        self.fields = {"a": a, "b": b, "c": c, "d": d, "e": e, "g": g, "w": w, "s": p.s, "v": p.v, "m": m}
        space = {"ti": ti, "N": N, "a": a, "b": b, "c": c, "d": d, "e": e, "g": g, "w": w, "p": p, "m": m}
        self.space: dict[str, Any] = {**space, "h": self.h, "k": self.k, "loss": self.loss}
        self.text, calls = TapeWriter(seed).program()
        self.calls = "\n".join(calls)
        file = f"random_tape_{seed}.py"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        exec(compile(self.text, file, "exec"), self.space)
        self.run = compile(self.calls, "calls", "exec")
        self.numbers = np.random.default_rng(seed)
        self.start = {name: self.numbers.uniform(-1, 1, f.to_numpy().shape) for name, f in self.fields.items()}
        self.choices = self.numbers.integers(0, N, N).astype(np.int32)
        self.hidden = self.numbers.uniform(-1, 1, N)

    def direction(self) -> Numbers:
        return {name: self.numbers.normal(size=v.shape) for name, v in self.start.items()}

    def launch(self, shift: float = 0.0, direction: Numbers | None = None) -> None:
        """Begin anew, `shift` along the direction, and run the calls."""
        for name, value in self.start.items():
            self.fields[name].from_numpy(value if direction is None else value + shift * direction[name])
        self.reset()
        exec(self.run, self.space)

    def reset(self) -> None:
        """What is not differentiated by begins the same."""
        self.k.from_numpy(self.choices)
        self.h.from_numpy(self.hidden)
        self.loss[None] = 0

    def value(self, shift: float = 0.0, direction: Numbers | None = None) -> float:
        self.launch(shift, direction)
        return self.loss[None]

    def left(self) -> Numbers:
        others = {"h": self.h, "k": self.k, "loss": self.loss}
        return {name: field.to_numpy() for name, field in (self.fields | others).items()}

    def gradient(self) -> Numbers:
        """By reverse mode, under a tape."""
        with ti.ad.Tape(loss=self.loss):
            self.launch()
        return {name: f.grad.to_numpy() for name, f in self.fields.items()}

    def tangent(self, direction: Numbers) -> float:
        """The derivative along a direction, by forward mode."""
        for name, field in self.fields.items():
            field.from_numpy(self.start[name])
        self.reset()
        fields = {name: f for name, f in self.fields.items() if name not in ("d", "e")}
        with ti.ad.FwdMode(loss=self.loss, param=list(fields.values()), seed=[direction[name] for name in fields]):
            for name in ("d", "e"):
                self.fields[name].dual.from_numpy(direction[name])
            exec(self.run, self.space)
        return self.loss.dual[None]

    def products(self, seeds: np.ndarray) -> list[np.ndarray]:
        """The product of a seed, or of several, and the Jacobian of a field."""
        for name, value in self.start.items():
            self.fields[name].from_numpy(value)
        self.reset()
        inputs = [self.fields[name] for name in self.start]
        return ti.ad.vjp(lambda: exec(self.run, self.space), wrt=inputs, loss=self.fields["w"])(seeds)[1]


class Optimised(Trial):
    """The same where machine code is a subject, too."""

    LEVELS = (3, 0, 0, 1, 0, 0, 2, 0)


def check_rows(trial: Trial, count: int, shown: str) -> None:
    """Several adjoints in one sweep are what each is alone."""
    seeds = trial.numbers.normal(size=(count, N, 2))
    try:
        alone = [trial.products(one) for one in seeds]
    except DifferentiationError:  # of a loss alone, the gradient of what is refused here is not needed
        return
    for several, *one_by_one in zip(trial.products(seeds), *alone, strict=True):
        wanted = np.stack(one_by_one)
        tolerance = 1e-9 * (1 + np.abs(wanted).sum())
        np.testing.assert_allclose(several, wanted, rtol=1e-9, atol=tolerance, err_msg=f"{count} rows of {shown}")


def check(seed: int) -> str:
    """Differentiate one program. Gives "right", "no derivative" or "refused"; what is wrong fails."""
    trial = Optimised(seed)
    shown = f"seed {seed}\n{trial.text}\n{trial.calls}"
    trial.launch()
    untaped = trial.left()
    try:
        gradient = trial.gradient()
    except DifferentiationError:
        return "refused"
    for name, values in trial.left().items():
        np.testing.assert_allclose(values, untaped[name], rtol=1e-12, atol=1e-12, err_msg=f"{name} of {shown}")
    smooth = 0
    for _ in range(3):
        direction = trial.direction()
        found = sum([float((gradient[name] * direction[name]).sum()) for name in gradient])
        size = sum([float(np.abs(gradient[name] * direction[name]).sum()) for name in gradient])
        forwards = trial.tangent(direction)
        assert found == pytest.approx(forwards, rel=1e-9, abs=1e-9 * (1 + size)), f"forward mode, {shown}"
        steps = (1e-5, 3e-6, 1e-6)
        slopes = [(trial.value(h, direction) - trial.value(-h, direction)) / (2 * h) for h in steps]
        # Where a branch is decided differently on the two sides, there is no derivative to compare with.
        if abs(slopes[0] - slopes[2]) <= 1e-4 * (1 + abs(slopes[2])):
            assert found == pytest.approx(slopes[1], rel=1e-5, abs=1e-5 * (1 + size)), f"differences, {shown}"
            smooth += 1
    if seed // 8 % 4 == 1:
        check_rows(trial, 2 if seed // 32 % 2 else 7, shown)
    return "right" if smooth else "no derivative"


@pytest.mark.parametrize("half", [0, 1])
def test_random_tapes(half: int, random_programs: range) -> None:
    results = [check(seed) for seed in random_programs[::8][half::2]]
    assert "refused" not in results
    assert results.count("right") > 0.7 * len(results), results
