"""Serial code at the top of a kernel, whose gradient needs saved values, next to parallel loops: each kind of it at
each place, against differences.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import tinote as ti

SERIAL = {
    "a loop of one iteration": """\
    for one in range(1):
        p = 1.0
        for j in range(3):
            p *= f[j] + 0.1
        L[None] += p
""",
    "a serialised loop": """\
    ti.loop_config(serialize=True)
    for j in range(3):
        q = f[j]
        for _ in range(2):
            q = ti.sin(q) + q * q
        L[None] += q
""",
    "a while": """\
    for one in range(1):
        w = f[0]
        while w < 20.0:
            w = w * w + f[1]
        L[None] += w
""",
    "a branch": """\
    for one in range(1):
        b = f[2]
        if f[0] > 0.5:
            for j in range(4):
                b = ti.sin(b) * f[0] + b
        L[None] += b
""",
    "a value that a parallel loop reads": """\
    c = 1.0
    for one in range(1):
        for j in range(3):
            c *= f[j]
    for i in g:
        L[None] += c * g[i]
""",
    "a loop whose input is overwritten": """\
    for one in range(1):
        e = 1.0
        for j in range(3):
            e *= h[j] * f[j]
        L[None] += e
    for i in h:
        h[i] = f[i] * 2.0
""",
}
PARALLEL = {
    "nothing": "",
    "a sum": "    for i in g:\n        L[None] += g[i] * g[i]\n",
    "a sum of the same input": "    for i in f:\n        L[None] += ti.sin(f[i])\n",
}


def kernel_of(before: str, serial: str, after: str) -> tuple[Any, dict[str, Any]]:
    """The kernel that is made of these parts, and its fields."""
    ti.init(default_fp=ti.f64)
    shapes = {"f": 3, "g": 5, "h": 3, "L": ()}
    fields = {name: ti.field(ti.f64, shape=shape, needs_grad=True) for name, shape in shapes.items()}
    text = f"@ti.kernel\ndef k():\n{before}{serial}{after}"
    linecache.cache["<parts>"] = (len(text), None, text.splitlines(True), "<parts>")
    space = {"ti": ti, **fields}
    exec(compile(text, "<parts>", "exec"), space)
    return space["k"], fields


def start(fields: dict[str, Any]) -> None:
    fields["f"].from_numpy(np.array([1.3, 0.7, 1.1]))
    fields["g"].from_numpy(np.linspace(0.2, 0.9, 5))
    fields["h"].from_numpy(np.array([0.8, 1.2, 0.6]))
    fields["L"][None] = 0.0


@pytest.mark.parametrize("parts", [*itertools.product(PARALLEL, SERIAL, PARALLEL)], ids="-".join)
def test_saved_values_of_serial_code_next_to_parallel_loops(parts: tuple[str, str, str]) -> None:
    kernel, fields = kernel_of(PARALLEL[parts[0]], SERIAL[parts[1]], PARALLEL[parts[2]])
    start(fields)
    with ti.ad.Tape(fields["L"]):
        kernel()
    for name in "fg":
        found = fields[name].grad.to_numpy()
        for position in range(len(found)):
            sides = []
            for step in (1e-6, -1e-6):
                start(fields)
                fields[name][position] += step
                kernel()
                sides.append(fields["L"][None])
            expected = (sides[0] - sides[1]) / 2e-6
            assert found[position] == pytest.approx(expected, rel=1e-6, abs=1e-7), (name, position)
