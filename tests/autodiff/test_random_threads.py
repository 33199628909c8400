"""Random programs of Python around kernels in two threads at a time, each on fields of its own: what they give and
leave is what they give and leave one after the other, bit for bit, and so are their errors.

    pytest tests/autodiff/test_random_threads.py --random-programs 16000     two threads for every eighth
"""

from __future__ import annotations

import sys
import threading
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.python_programs import Program
from tests.autodiff.python_writer import write
from tests.autodiff.test_random_python_programs import INTERFACES, Library, Trial, direction_of, flows, start_of
from tinote.errors import TinoteError

#: How often each derivative runs.
TIMES = 3


def outcome(library: Library, program: Program, names: list[str]) -> list[Any]:
    """What a program gives under these interfaces, and leaves."""
    point = start_of(program.seed)
    trial, found = Trial(library, program), list[Any]()
    for name in names * TIMES:
        direction = direction_of(program.seed, *(() if INTERFACES[name].arguments else ("a", "q")))
        try:
            along, value, size = INTERFACES[name].run(trial, point, direction)
            found.append((name, np.asarray(along).tobytes(), value, size))
        except (TinoteError, ArithmeticError, IndexError, TypeError, ValueError) as error:
            found.append((name, type(error).__name__, getattr(error, "message", str(error))))
        found.append([field.to_numpy().tobytes() for field in (*library.fields.values(), library.loss)])
    return found


def together(work: list[Any]) -> list[Any]:
    """What calls give that begin at the same time."""
    barrier, found = threading.Barrier(len(work)), [None] * len(work)

    def run(number: int) -> None:
        barrier.wait(60)
        try:
            found[number] = work[number]()
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.filterwarnings("ignore")
def test_two_threads_are_as_one_after_the_other(random_programs: range) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # threads meet at more places
    try:
        libraries: list[Library] = []
        for number, seed in enumerate(random_programs[::8]):
            if number % 50 == 0:
                ti.init(default_fp=ti.f64, num_threads=1, opt_level=0)
                libraries = [Library(None), Library(None)]
            pair = [write(seed, flows(seed)[0]), write(seed + 1, flows(seed + 1)[0])]
            names = [flows(seed)[1], flows(seed + 1)[1]]
            work = [partial(outcome, *given) for given in zip(libraries, pair, names, strict=True)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = [one() for one in work]
                found = together(work)
            for k in range(2):
                for one, other in zip(found[k], wanted[k], strict=True):
                    assert one == other, f"seeds {seed}, {seed + 1}: thread {k}\n{pair[0].text}\n\n{pair[1].text}"
    finally:
        sys.setswitchinterval(interval)
