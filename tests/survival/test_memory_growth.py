"""A cell that is run again and again, as in a notebook: what earlier runs made goes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.survival.child import run_child

# The shell that a notebook's kernel runs cells in; `{runs}` and `{most}`: how often, and how many bytes it may cost.
SESSION = """
import gc, os
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()

def run(cell):
    shell.run_cell(cell, store_history=True).raise_error()

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

run("import numpy as np\\nimport tinote as ti\\nti.init(opt_level={level}, num_threads=1)")
run("x = ti.field(ti.f32, shape=100, needs_grad=True)\\nU = ti.field(ti.f32, shape=(), needs_grad=True)")
for number in range(100 + {runs}):
    if number == 100:
        before = resident()
    run({cell!r}.replace("NUMBER", str(number)))
grown = resident() - before
assert grown < {most}, f"{{grown:,}} bytes"
print("done")
"""

UNCHANGED = """
y = ti.Vector.field(2, ti.f32, shape=1000)

@ti.kernel
def add(f: ti.template(), a: ti.types.ndarray(), b: ti.f32) -> ti.f32:
    for i in f:
        y[i][0] = b
        f[i] += a[i] * y[i][0]
    return f[3]

found = add(x, np.ones(100, np.float32), 3.0)
"""

WITH_GRADIENT = """
@ti.data_oriented
class Energy:
    def __init__(self):
        self.k = ti.field(ti.f32, shape=100)
        self.k.fill(2)

    @ti.kernel
    def compute(self):
        for i in x:
            U[None] += self.k[i] * x[i] ** 2

with ti.ad.Tape(U):
    Energy().compute()
"""

CHANGED = """
@ti.kernel
def scale(b: ti.f32):
    for i in x:
        x[i] = b * NUMBER

scale(3.0)
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a cell in a shell of its own. Nothing is kept on disk, so that every version of a cell is compiled."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "0")

    def run(cell: str, runs: int, most: int, level: int = 3) -> str:
        return run_child(SESSION.format(cell=cell, runs=runs, most=most, level=level))

    return run


def test_runs_of_an_unchanged_cell(session: Callable[..., str]) -> None:
    assert session(UNCHANGED, 300, 6_000_000) == "done\n"


def test_runs_of_a_cell_with_a_gradient(session: Callable[..., str]) -> None:
    assert session(WITH_GRADIENT, 100, 2_000_000) == "done\n"


def test_runs_of_a_cell_that_changes_each_time(session: Callable[..., str]) -> None:
    """Machine code goes with the last kernel that uses it, but for some that a cell may come back to."""
    assert session(CHANGED, 150, 3_000_000, level=0) == "done\n"
