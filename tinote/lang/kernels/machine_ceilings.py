"""The ceilings of this machine, measured: how many bytes a second a loop can move, and how many operations it can
compute.

Bytes are moved by the triad of J. D. McCalpin's STREAM (IEEE TCCA Newsletter, December 1995). Unlike there, the lines
that are fetched before they are written count as well: this is what memory can carry. Arrays of different sizes lie in
different caches, so the triad is measured at the size that is asked about.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.function_source import function_source
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import PRIMAL
from tinote.compiler.signature import ArrayArgument, ValueArgument
from tinote.config import Config
from tinote.ir.types import Scalar, f32, f64, i32
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.ndarrays import array_kind, formal_array
from tinote.lang.session.state import memory_of
from tinote.runtime.digest import digest
from tinote.runtime.jit import machine_name
from tinote.runtime.seam import unwatched
from tinote.runtime.store import open_store

#: Bytes of the smallest and the largest arrays together that are measured. Chosen, not measured.
_LEAST_BYTES, _MOST_BYTES = 1 << 14, 1 << 28
#: Seconds that a measurement lasts, at least, and measurements, the fastest of which counts. Chosen, not measured.
_SECONDS, _TIMES = 0.003, 9
#: Iterations of a loop that computes, and what each computes: eight chains of a multiplication and an addition.
_STEPS, _OPERATIONS = 2000, 16


def triad(a, b, c):  # type: ignore[no-untyped-def]
    for i in a:
        a[i] = b[i] + 3.0 * c[i]


def chains(x, steps):  # type: ignore[no-untyped-def]
    for i in x:
        t = x[i]
        a, b, c, d = t, t + 1.0, t + 2.0, t + 3.0
        e, f, g, h = t + 4.0, t + 5.0, t + 6.0, t + 7.0
        for _ in range(steps):
            a, b, c, d = a * t + t, b * t + t, c * t + t, d * t + t
            e, f, g, h = e * t + t, f * t + t, g * t + t, h * t + t
        x[i] = a + b + c + d + e + f + g + h


def bandwidth(nbytes: float, config: Config, seen: float = 0.0) -> float:
    """Bytes a second that a loop over `nbytes` of memory moves. `seen`: what one has moved already."""
    size = 1 << round(math.log2(min(max(nbytes, _LEAST_BYTES), _MOST_BYTES)))
    return _remembered(f"triad {size}", config, seen, lambda: _bandwidth(size, config))


def peak(size: int, config: Config, seen: float = 0.0) -> float:
    """Additions and multiplications a second of numbers of `size` bytes. `seen`: what a loop has computed already."""
    number = f32 if size <= f32.size else f64
    return _remembered(f"chains {number.name}", config, seen, lambda: _peak(number, config))


def _bandwidth(nbytes: int, config: Config) -> float:
    n = nbytes // 24
    return 32 * n / _seconds(triad, {"a": f64, "b": f64, "c": f64}, n, (), config)


def _peak(number: Scalar, config: Config) -> float:
    n = 1024 * config.num_threads
    return _OPERATIONS * _STEPS * n / _seconds(chains, {"x": number}, n, (_STEPS,), config)


def _seconds(
    function: Callable[..., None], arrays: dict[str, Scalar], n: int, numbers: tuple[int, ...], config: Config
) -> float:
    """The least time of a launch with arrays of `n` numbers. They are not zero: what was never written may be one page
    of zeros.
    """
    formals = [formal_array(name, array_kind(t, 1, (), noalias=True)) for name, t in arrays.items()]
    specs = [*map(ArrayArgument, formals), *[ValueArgument(i32) for _ in numbers]]
    memories = [np.full(n, 0.5, numpy_type(t)) for t in arrays.values()]
    values = (*[BoundArray(m.ctypes.data, 0, 0, 0, (n,), m.nbytes, True, None, m) for m in memories], *numbers)
    plain = config._replace(kernel_profiler=False, debug=False, default_fp="f32")
    launch = Specialisation(function_source(function), specs, plain, memory_of).code(PRIMAL).launch
    launch(values)
    times: list[float] = []
    for _ in range(_TIMES):
        count, begin = 0, time.perf_counter()
        while (taken := time.perf_counter() - begin) < _SECONDS or not count:
            launch(values)
            count += 1
        times.append(taken / count)
    return min(times)


_known: dict[str, float] = {}


def _remembered(what: str, config: Config, seen: float, measure: Callable[[], float]) -> float:
    """What was measured before, by this process or another on this machine; again if it cannot be the most, as on a
    machine that was busy.
    """
    key = digest("machine ceiling", what, str(config.num_threads), str(config.opt_level), machine_name())
    store = open_store() if config.offline_cache else None
    if key not in _known and store is not None and (content := store.get(key)) is not None:
        _known[key] = float(content)
    if _known.get(key, 0.0) < seen or key not in _known:
        with unwatched():
            _known[key] = max(measure(), _known.get(key, 0.0))
        if store is not None:
            store.put(key, repr(_known[key]).encode())
    return _known[key]
