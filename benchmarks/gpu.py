"""`python -m benchmarks gpu`: what kernels take on the GPU that `ti.init(arch=ti.gpu)` finds.

- *A launch in a batch*: what the host does for it, which is to take at most 8 µs.
- *The card's rates*: floating-point operations of a loop that only computes, bytes of a copy. Others' shares are of
  these.
- *The gradient of gravity's energy* of `--particles` bodies, and *a substep of MPM* of 8192 particles and of a million
  (where a CPU stands in for a GPU, of 32,768).

Loops and programs are set beside the CPU on one thread. On a CPU that stands in for a GPU (`TINOTE_SOFTWARE_GPU=1`),
what computes, the loop and gravity, is to take at most three times as long. MPM gathers and scatters: no limit.

The minimum of `--rounds` measurements is held against the limit, because other programs only ever slow it down.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tinote as ti
from benchmarks.gravity.system import SOFTENING, initial_positions
from benchmarks.mpm.dialect import DialectMpm
from tinote.runtime import gpu

__all__ = ["Row", "main"]

MOST_LAUNCH_SECONDS = 8e-6
MOST_RATIO = 3.0
#: Additions, products, roots and quotients for an ordered pair of bodies, in value and gradient: what the program asks
#: for, not what is done twice.
OPERATIONS_OF_A_PAIR = 30
#: Bytes that a substep of MPM has to move for each particle: what P2G reads, what G2P reads and writes.
BYTES_OF_A_PARTICLE = 36 + 12 + 36


class Row(NamedTuple):
    """One number, and the most that it may be, if anything is demanded of it."""

    what: str
    measured: float
    limit: float | None
    unit: str

    @property
    def within(self) -> bool:
        """Whether the number is within its limit."""
        return self.limit is None or self.measured <= self.limit


class _Target:
    """The module, with kernels on a target of ours, whatever a program asks for."""

    def __init__(self, **target: Any) -> None:
        self._target = target

    def init(self, **_: Any) -> None:
        """Start with that target."""
        ti.init(**self._target)

    def __getattr__(self, name: str) -> Any:
        return getattr(ti, name)


ON_GPU = _Target(arch=ti.gpu)
ON_CPU = _Target(arch=ti.cpu, num_threads=1)


def least(act: Callable[[], object], rounds: int, count: int = 1) -> float:
    """The least time of some rounds, for each of `count` calls that are waited for together."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(count):
            act()
        ti.sync()
        found.append((time.perf_counter() - begun) / count)
    return min(found)


def launches(rounds: int, _particles: int) -> list[Row]:
    """The host's part of a launch with a scalar argument."""
    ON_GPU.init()
    x = ti.field(ti.f32, shape=1024)

    @ti.kernel
    def add(by: ti.f32):
        for i in x:
            x[i] += by

    def batch() -> float:
        ti.sync()
        add(1.0)
        begun = time.perf_counter()
        for _ in range(50):
            add(1.0)
        return (time.perf_counter() - begun) / 50

    taken = min([batch() for _ in range(10 * rounds)])
    return [Row("a launch in a batch, on the host", 1e6 * taken, 1e6 * MOST_LAUNCH_SECONDS, "µs")]


def operations_a_second(rounds: int, target: _Target) -> float:
    """Products and additions in a loop that loads and stores next to nothing."""
    target.init()
    count, steps = 1 << 16, 1 << 10
    x = ti.field(ti.f32, shape=count)

    @ti.kernel
    def compute():
        for i in x:
            a, b = x[i], 0.5 * x[i]
            for _ in range(steps):
                a, b = a * 0.9 + b * 0.1, b * 0.9 - a * 0.1
            x[i] = a + b

    x.fill(0.5)
    compute()
    compute()
    return 6 * count * steps / least(compute, rounds)


def bytes_a_second(rounds: int) -> float:
    """Read and written in a copy of more than any cache holds, or of what the driver for CPUs binds at once."""
    ON_GPU.init()
    count = 1 << (22 if _is_software() else 26)
    x, y = ti.field(ti.f32, shape=count), ti.field(ti.f32, shape=count)

    @ti.kernel
    def copy():
        for i in x:
            y[i] = x[i]

    copy()
    copy()
    return 8 * count / least(copy, rounds)


def rates(rounds: int, _particles: int) -> list[Row]:
    """What the card does at best."""
    taken, beside = operations_a_second(rounds, ON_GPU), operations_a_second(rounds, ON_CPU)
    return [
        Row("products and additions", 1e-9 * taken, None, "G/s"),
        Row("products and additions, beside one thread", beside / taken, _most_ratio(), "×"),
        Row("a copy, read and written", 1e-9 * bytes_a_second(rounds), None, "GB/s"),
    ]


def gravity(rounds: int, particles: int) -> list[Row]:
    """Energy and gradient of bodies that attract each other."""

    def on(target: _Target) -> float:
        target.init()
        x = ti.Vector.field(2, ti.f32, shape=particles, needs_grad=True)
        energy = ti.field(ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def potential():
            for i in x:
                for j in range(particles):
                    energy[None] += -1 / (x[i] - x[j]).norm(SOFTENING)

        def gradient() -> None:
            with ti.ad.Tape(energy):
                potential()

        x.from_numpy(initial_positions(particles))
        gradient()
        gradient()
        return least(gradient, rounds)

    taken, beside = on(ON_GPU), on(ON_CPU)
    speed = OPERATIONS_OF_A_PAIR * particles**2 / taken
    what = f"gravity with gradient, N = {particles}"
    return [
        Row(what, 1e3 * taken, None, "ms"),
        Row(f"{what}: operations", 1e-9 * speed, None, "G/s"),
        Row(f"{what}: share of its rate", 100 * speed / operations_a_second(rounds, ON_GPU), None, "%"),
        Row(f"{what}, beside one thread", taken / beside, _most_ratio(), "×"),
    ]


def mpm(rounds: int, _particles: int) -> list[Row]:
    """A substep of MPM, as the benchmark of that name has it, and of many particles."""

    def on(target: _Target, refinement: int) -> tuple[int, float]:
        program = DialectMpm(target, refinement)
        program.run(4)
        return program.particles, least(program.substep, rounds, 10)

    rows: list[Row] = []
    for refinement in (1, 2 if _is_software() else 11):
        particles, taken = on(ON_GPU, refinement)
        _, beside = on(ON_CPU, refinement)
        what = f"MPM substep, {particles} particles"
        share = 100 * BYTES_OF_A_PARTICLE * particles / taken / bytes_a_second(rounds)
        rows += [
            Row(what, 1e3 * taken, None, "ms"),
            Row(f"{what}: share of a copy's bytes", share, None, "%"),
            Row(f"{what}, beside one thread", taken / beside, None, "×"),
        ]
    return rows


def _most_ratio() -> float | None:
    return MOST_RATIO if _is_software() else None


def _is_software() -> bool:
    return all(adapter.software for adapter in gpu.adapters())


MEASUREMENTS: dict[str, Callable[[int, int], list[Row]]] = {
    "launches": launches,
    "rates": rates,
    "gravity": gravity,
    "mpm": mpm,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table; return 1 if anything is beyond its limit, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="WHAT", help=f"of {', '.join(MEASUREMENTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often (default: %(default)s)")
    parser.add_argument("--particles", type=int, default=16_384, help="how many bodies (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write what was measured to this file")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in MEASUREMENTS:
            parser.error(f"there is no {name!r}; there are {', '.join(MEASUREMENTS)}")
    try:
        gpu.open_device(gpu.wants_software())
    except gpu.NoDevice as error:
        parser.error(f"there is no GPU: {error}")
    rows: list[Row] = []
    for name in options.names or MEASUREMENTS:
        for row in MEASUREMENTS[name](max(1, options.rounds), max(1, options.particles)):
            rows.append(row)
            limit = "" if row.limit is None else f"   limit {row.limit:6.3g}"
            said = "" if row.within else "   beyond the limit"
            print(f"{row.what:56} {row.measured:8.3g} {row.unit:4}{limit}{said}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
    return int(not all(row.within for row in rows))
