"""`python -m benchmarks sweeps`: what it costs to run a function many times in other processes.

- *1,000 points of 5 ms on two processes of this machine*: from the call of `ti.sweep` to its table, against 1.3 times
  the points' own time on two cores, and two seconds. The simulation is made to take 5 ms alone, and its time is
  measured again before each sweep, since a processor does not always run equally fast.
- *A point's overhead over Dask's own*: a function that does nothing, for 2,000 points, by `ti.sweep(where=client)` and
  by `client.map` and `gather`, in turns on one cluster of two workers; the difference of the minima, for each point.
- *A field of 10⁶ elements*: how often each worker unpacks it in a sweep of 200 points, counted by an object that is
  sent with it, and what a point takes longer than without it.
- *A kernel on eight processes* with an empty cache: how many of them compile it.
- *An interrupt*, as by Ctrl-C, of a script whose sweep on two workers is in points that never end, and of one whose
  points come quickly: the time until the sweep has ended, with its results in its table and its store.

The minimum is held against the limit, because other programs on the machine only ever slow it down.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tinote as ti
from tests.sweeps.interrupts import CLUSTER, interrupted

__all__ = ["MEASUREMENTS", "Row", "main"]

SIMULATION_SECONDS = 5e-3


class Row(NamedTuple):
    """One number and the most that it may be."""

    what: str
    measured: float
    limit: float
    unit: str

    @property
    def within(self) -> bool:
        """Whether the number is within its limit."""
        return self.measured <= self.limit


def simulation(seconds: float) -> tuple[Callable[[int], float], Callable[[], float]]:
    """A function of a point that takes `seconds` on one thread, and one that measures it: the least of some runs."""
    ti.init(num_threads=1)
    x = ti.field(ti.f64, 1024)

    @ti.kernel
    def step(k: ti.f64):
        for i in x:
            x[i] += 1e-3 * ti.sin(k + x[i] * x[i])

    def run(k: int, steps: int) -> float:
        for _ in range(steps):
            step(k)
        return x[7]

    def least(steps: int) -> float:
        found = []
        for _ in range(20):
            begun = time.perf_counter()
            run(1, steps)
            found.append(time.perf_counter() - begun)
        return min(found)

    least(100)
    steps = max(1, round(100 * seconds / least(100)))
    return lambda k: run(k, steps), lambda: least(steps)


def many_points(points: int, rounds: int) -> list[Row]:
    """A sweep on two processes against the time of its points."""
    run, alone = simulation(SIMULATION_SECONDS)
    found: list[Row] = []
    for _ in range(rounds):
        limit = 1.3 * points * alone() / 2 + 2
        begun = time.perf_counter()
        ti.sweep(run, {"k": range(points)}, workers=2, progress=False)
        taken = time.perf_counter() - begun
        found.append(Row(f"{points:,} points of 5 ms, two processes", taken, limit, "s"))
    return [min(found, key=lambda row: row.measured / row.limit)]


def overhead(points: int, rounds: int) -> list[Row]:
    """What a point costs more than a task of Dask's that does the same: nothing."""

    def nothing(k: int) -> int:
        return k

    ours, theirs = [], []
    with _cluster(2) as client:
        ti.sweep(nothing, {"k": range(8)}, where=client, progress=False)  # the workers import what they need
        for _ in range(rounds):
            begun = time.perf_counter()
            client.gather(client.map(nothing, range(points), pure=False))
            theirs.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            ti.sweep(nothing, {"k": range(points)}, where=client, progress=False)
            ours.append(time.perf_counter() - begun)
    own = 1e3 * min(theirs) / points
    more = 1e3 * (min(ours) - min(theirs)) / points
    return [Row(f"a point's overhead over Dask's own {own:.2f} ms", more, 1.0, "ms")]


class Counted:
    """Leaves a byte in a file wherever it arrives."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with open(self.path, "ab") as file:
            file.write(b"1")


def large_fields(points: int, rounds: int) -> list[Row]:
    """How often a field of 10⁶ elements is sent, and what that costs each point."""
    ti.init(num_threads=1)
    x, small = ti.field(ti.f32, 1_000_000), ti.field(ti.f32, 1)

    @ti.kernel
    def first(a: ti.template()) -> ti.f32:
        return a[0]

    with tempfile.TemporaryDirectory() as folder, _cluster(2) as client:
        arrivals = Path(folder, "arrivals")
        counted = Counted(str(arrivals))

        def with_field(k: int) -> float:
            return first(x) + k + len(counted.path) * 0

        def without(k: int) -> float:
            return first(small) + k

        ti.sweep(without, {"k": range(8)}, where=client, progress=False)  # the workers import what they need
        copies, times = [], {with_field: list[float](), without: list[float]()}
        for number in range(rounds):
            x[0] = number  # another program each time: nothing of it is there already
            arrivals.write_bytes(b"")
            for function, taken in times.items():
                begun = time.perf_counter()
                ti.sweep(function, {"k": range(points)}, where=client, progress=False)
                taken.append(time.perf_counter() - begun)
            copies.append(arrivals.stat().st_size / 2)
    more = 1e3 * (min(times[with_field]) - min(times[without])) / points
    return [
        Row("copies of a field of 10⁶ elements, for each worker", max(copies), 1, ""),
        Row(f"what it costs each of {points} points", more, 10.0, "ms"),
    ]


def compilations(workers: int = 8) -> list[Row]:
    """How many of some processes compile a kernel that all of them need at once."""
    ti.init(num_threads=1)
    x = ti.field(ti.f64, 64)

    @ti.kernel
    def step(k: ti.f64):
        for i in x:
            for j in ti.static(range(60)):
                x[i] += ti.sin(k * x[i] + j) * ti.exp(-x[i] * x[i])

    def run(k: int) -> int:
        step(k)
        time.sleep(0.05)
        origins = [code.origin.value for _, code in step.instances[0].specialisation.results()]
        return os.getpid() if "compiled" in origins else 0

    names = ("TINOTE_CACHE_DIR", "TINOTE_CACHE_LIMIT")
    before = {name: os.environ[name] for name in names if name in os.environ}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(dict(zip(names, (folder, "256M"), strict=True)))
        try:
            table = ti.sweep(run, {"k": range(8 * workers)}, workers=workers, progress=False)
        finally:
            for name in names:
                del os.environ[name]
            os.environ.update(before)
    compiled = {int(process) for process in table["result"].values} - {0}
    return [Row(f"of {workers} processes compile a kernel", len(compiled), 1, "")]


WHERE = {"processes": ("workers=2", ""), "Dask workers": ("where=cluster", CLUSTER)}


def interrupts(rounds: int, where: Sequence[str] = tuple(WHERE), busy: Sequence[bool] = (False, True)) -> list[Row]:
    """How long a sweep goes on after an interrupt."""
    found: list[Row] = []
    for name in where:
        options, prepare = WHERE[name]
        for quick in busy:
            taken = []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    taken.append(interrupted(Path(folder), options, prepare, busy=quick).seconds)
            points = "quick points" if quick else "points that never end"
            found.append(Row(f"an interrupt of {points}, two {name}", min(taken), 1.0, "s"))
    return found


MEASUREMENTS: dict[str, Callable[[int], list[Row]]] = {
    "points": lambda rounds: many_points(1000, rounds),
    "overhead": lambda rounds: overhead(2000, rounds),
    "fields": lambda rounds: large_fields(200, rounds),
    "compilations": lambda rounds: compilations(),
    "interrupts": interrupts,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table; return 1 if anything is beyond its limit, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks sweeps", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="WHAT", help=f"of {', '.join(MEASUREMENTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write what was measured to this file")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in MEASUREMENTS:
            parser.error(f"there is no {name!r}; there are {', '.join(MEASUREMENTS)}")
    rows: list[Row] = []
    for name in options.names or MEASUREMENTS:
        for row in MEASUREMENTS[name](max(1, options.rounds)):
            rows.append(row)
            said = "" if row.within else "   beyond the limit"
            print(f"{row.what:60} {row.measured:8.3g} {row.unit:2}   limit {row.limit:6.3g}{said}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
    return int(not all(row.within for row in rows))


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """A client of a cluster of workers of one thread each, processes of this machine."""
    import distributed

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tcp://"}
    with distributed.LocalCluster(**options) as made, distributed.Client(made, set_as_default=False) as client:
        client.wait_for_workers(workers)
        yield client
