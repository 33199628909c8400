"""Pushforwards from disk: a second process that takes second derivatives lowers none, and finds the same, bit for bit;
fields that are declared otherwise, or have other shadows, have entries of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import sys
import numpy as np
import tinote as ti
from tinote.compiler.pushed import PushedSpecialisation
from tinote.errors import DifferentiationError

lowered = 0
lower = PushedSpecialisation._lower

def counting(self):
    global lowered
    lowered += 1
    lower(self)

PushedSpecialisation._lower = counting
what, count = sys.argv[1], 4
ti.init(default_fp=ti.f64, num_threads=1)
x = ti.field(ti.f64, shape=count, needs_grad=True, needs_dual=True)
kept = {"constant": {"needs_grad": False, "needs_dual": False}, "dual": {"needs_grad": True, "needs_dual": True}}
c = ti.field(ti.f64, shape=count, **kept.get(what, {"needs_grad": True}))
y = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
row = ti.types.ndarray(dtype=ti.f64, ndim=1)

@ti.kernel
def keep():
    for i in x:
        c[i] = ti.sin(x[i])

@ti.kernel
def energy(factor: ti.f64, v: row):
    for i in x:
        y[None] += factor * c[i] * x[i] ** 2 * v[i]

@ti.kernel
def norm(v: row) -> ti.f64:
    s = 0.0
    for i in v:
        s += v[i] * v[i]
    return s

def run(factor, v):
    if what != "apart":
        keep()
    energy(factor, v)

c.fill(0.5)
x.from_numpy(np.linspace(0.3, 0.9, count))
v = np.linspace(1.0, 2.0, count)
slope = ti.ad.grad(run, wrt=x, output=y)
along = ti.ad.jvp(run, wrt=x, output=y)
try:
    found = [
        ti.ad.grad(lambda a: along(np.ones(count), a, v)[1] * a, argnums=0)(0.7),
        ti.ad.grad(lambda a: norm(slope(a, v)), argnums=0, wrt=x)(0.7),
        ti.ad.jvp(lambda a: norm(slope(a, v)), argnums=0)(1.0, 0.7),
    ]
    print([np.asarray(part).tolist() for one in found for part in (one if isinstance(one, tuple) else [one])])
except DifferentiationError as error:
    print(error.message)
print(lowered)
"""


def ran(what: str, folder: Path) -> tuple[str, int]:
    """What a process prints of derivatives, and how many pushforwards it has lowered."""
    child = folder / "child.py"  # kernels are read from files
    child.write_text(CHILD)
    environment = {**os.environ, "TINOTE_CACHE_DIR": str(folder / "cache"), "TINOTE_CACHE_LIMIT": "64M"}
    command = [sys.executable, str(child), what]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found, lowered = printed.splitlines()
    return found, int(lowered)


def test_pushforwards_come_from_disk(tmp_path: Path) -> None:
    kinds = ("plain", "constant", "apart", "dual")
    first, again = [{what: ran(what, tmp_path) for what in kinds} for _ in range(2)]
    assert first["plain"][1] > 0 and first["constant"][1] > 0
    assert "'c' was declared" in first["constant"][0]
    assert first["dual"][0] == first["plain"][0] != first["apart"][0]
    assert again == {what: (found, 0) for what, (found, _) in first.items()}
