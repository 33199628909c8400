"""Random programs of Python around kernels, captured: what is replayed leaves what the function leaves, bit for bit,
for other arguments and from other states than those that it was captured at, or the program is refused. Those that are
captured unasked leave that after each call.

    pytest tests/autodiff/test_random_captures.py --random-programs 1000
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.python_library import SCRATCH
from tests.autodiff.python_writer import write
from tests.autodiff.test_random_python_programs import Library, compiled, start_of
from tests.lang.test_portable import numbers, played
from tinote.errors import CaptureError
from tinote.lang.capture import automatic
from tinote.lang.capture.automatic import AutomaticCapture
from tinote.lang.capture.portable import portable

#: A program of a number, alone and under a tape.
STEPS = """\

def plainly(a):
    return program(a, Q, HELD, [])

def taped(a):
    with ti.ad.Tape(loss):
        result = program(a, Q, HELD, [])
    return result

def step():
    plainly(now)

def taped_step():
    taped(now)
"""


class Steps:
    """A program with the library that it runs on."""

    def __init__(self, library: Library, seed: int) -> None:
        self.library = library
        self.start = start_of(seed)
        self.text = write(seed, ("full", "calls", "none")[seed % 3]).text + STEPS
        now = float(self.start["a"])
        given = {"__name__": "captured", "HELD": [], "Q": self.start["q"].copy(), "now": now, "ti": ti}
        self.space = compiled(self.text, f"captured_program_{seed}.py", dict(library.space) | given)

    def begin(self) -> None:
        """All memory is as at first."""
        for name, field in self.library.fields.items():
            field.from_numpy(self.start[name])
        for name, value in SCRATCH.items():
            self.library.space[name].from_numpy(np.array(value))
        self.library.loss[None] = 0

    @property
    def arguments(self) -> list[float]:
        """Those of the calls."""
        return [float(self.start["a"]) * scale for scale in (1.0, 0.7, -0.4, 1.9)]

    @property
    def fields(self) -> list[Any]:
        """All that a call may change."""
        fields = self.library.fields.values()
        return [*fields, *[f.grad for f in fields if f.has_grad], self.library.loss]

    def follow(self, step: Callable[[float], Any]) -> list[Any]:
        """What each call leaves: the number that it returns, and arrays."""
        self.begin()
        left: list[Any] = []
        for argument in self.arguments:
            returned = step(argument)
            left.append([np.float64(returned), *[field.to_numpy() for field in self.fields]])
        return left

    def follow_frames(self, step: Any) -> list[Any]:
        """What each call of a step leaves; a user changes its number, and the state, from time to time."""
        left: list[Any] = []
        for call in range(20):
            if call % 10 == 0:
                self.space["now"] = float(self.start["a"]) * (1.0 - 0.1 * (call // 10))
            if call % 5 == 0:
                self.begin()
            if isinstance(step, AutomaticCapture) and call % 2 == 0:
                step.renew()
            step()
            left.append([field.to_numpy().tobytes() for field in self.fields])
        return left

    def members(self, step: Callable[[float], Any]) -> tuple[list[Any], Callable[[], list[Any]]]:
        """What is left in each of some members, all of which begin with the same fields; and how to find it out as a
        batch.
        """
        space, fields = self.library.space, self.library.fields
        every = [*fields.values(), *[f.grad for f in fields.values() if f.has_grad], self.library.loss]
        values = [float(self.start["a"]) * scale for scale in (1.0, 0.7, -0.4, 1.9, 0.2)]

        def begin() -> None:
            for name, field in fields.items():
                field.from_numpy(self.start[name])
            for field in every:
                if field not in fields.values():
                    field.fill(0)
            for name, value in SCRATCH.items():
                space[name].from_numpy(np.array(value))
            self.space["Q"][...] = self.start["q"]

        def member(a: float) -> Any:
            return step(a), [field.to_numpy() for field in every]

        def batch() -> list[Any]:
            begin()
            before = [field.to_numpy().tobytes() for field in every]
            numbers, arrays = ti.ad.vmap(member)(np.array(values))
            assert [field.to_numpy().tobytes() for field in every] == before, "no member is the session's"
            return [
                [np.float64(number).tobytes(), *[array[k].tobytes() for array in arrays]]
                for k, number in enumerate(numbers)
            ]

        left: list[Any] = []
        for value in values:
            begin()
            number, arrays = member(value)
            left.append([np.float64(number).tobytes(), *[array.tobytes() for array in arrays]])
        return left, batch


def bits(left: list[Any]) -> list[Any]:
    """What calls leave, to be compared exactly."""
    return [[number.tobytes() for number in numbers] for numbers in left]


def test_random_captures(random_programs: range) -> None:
    library, captured = Library(0), 0
    ti.init(default_fp=ti.f64, num_threads=1)
    for seed in random_programs[::4]:
        if captured == 0 or seed % 40 == 0:
            library = Library(0)  # on one thread, where sums have one order
        steps = Steps(library, seed)
        for name in ("plainly", "taped"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = bits(steps.follow(steps.space[name]))
                except Exception:
                    continue  # it does not run
                program = ti.capture(steps.space[name])
                try:
                    found = bits(steps.follow(program))
                except CaptureError:
                    continue
            assert found == wanted, f"seed {seed}, {name}\n{steps.text}"
            captured += 1
    assert captured > 0.1 * len(random_programs[::4]), f"only {captured} programs were captured"


def test_random_captures_without_python(random_programs: range) -> None:
    """The same in WebAssembly, where sums and products round apart; the first that are captured."""
    library, captured = Library(0), 0
    ti.init(default_fp=ti.f64, num_threads=1)
    for seed in random_programs[::4]:
        if captured == len(random_programs) // 32:
            break
        if captured == 0 or seed % 40 == 0:
            library = Library(0)
        steps = Steps(library, seed)
        step = steps.space["taped" if seed % 8 else "plainly"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = steps.follow(step)
            except Exception:
                continue  # it does not run
            steps.begin()
            keys = [str(k) for k in range(len(steps.fields))]
            made = portable([("step", step, steps.arguments[:1])], dict(zip(keys, steps.fields, strict=True)))
        if made.refused:
            assert isinstance(made.refused["step"], CaptureError)
            continue
        commands = [part for a in steps.arguments for part in (["call", "step", a], *[["read", key] for key in keys])]
        answers = iter(played(made.encode(), *commands))
        for left in wanted:
            returned = next(answers)
            found = [returned.get("value"), *[numbers(next(answers), one) for one in left[1:]]]
            for one, other in zip(found, left, strict=True):
                if one is not None and not isinstance(one, str):
                    close = np.isclose(np.asarray(one, float), other, rtol=1e-6, atol=1e-9, equal_nan=True)
                    assert close.all(), f"seed {seed}: {one}, not {other}\n{steps.text}"
        captured += 1
    assert captured > 0.02 * len(random_programs), f"only {captured} programs were captured"


def test_random_batches(random_programs: range) -> None:
    library, batched = Library(0), 0
    for seed in random_programs[2::8]:
        library = Library(0) if batched == 0 or seed % 40 == 2 else library
        steps = Steps(library, seed)
        for name in ("plainly", "taped"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted, batch = steps.members(steps.space[name])
                except Exception:
                    continue  # it does not run
                try:
                    found = batch()
                except CaptureError:
                    continue
            assert found == wanted, f"seed {seed}, {name}\n{steps.text}"
            batched += 1
    assert batched > 0.1 * len(random_programs[2::8]), f"only {batched} programs ran as a batch"


def test_random_captures_unasked(random_programs: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)
    library, replayed = Library(0), 0
    ti.init(default_fp=ti.f64, num_threads=1)
    for seed in random_programs[::8]:
        if seed % 40 == 0 or not replayed:
            library = Library(0)
        for name in ("step", "taped_step"):
            steps = Steps(library, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = steps.follow_frames(steps.space[name])
                except Exception:
                    continue  # it does not run
                steps = Steps(library, seed)  # what it did in Python is not done
                step = AutomaticCapture(steps.space[name])
                assert steps.follow_frames(step) == wanted, f"seed {seed}, {name}\n{step.how}\n{steps.text}"
            replayed += step.how.replays > 0
    assert replayed > 0.1 * len(random_programs[::8]), f"only {replayed} programs were replayed"
