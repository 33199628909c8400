"""Kernels are launched from signal handlers, which interrupt a program anywhere: while it compiles, while it
differentiates, and while a part of the package is loaded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.survival.child import run_child

STRESS = """
import signal, sys
import numpy as np
import tinote as ti
ti.init(default_fp=ti.f64)

ticks = ti.field(ti.f64, 8)
calls = 0

@ti.kernel
def tick():
    for i in ticks:
        ticks[i] += 1

def handle(*_):
    # One at a time: the next signal is sent a while after this call. The last of them sends none, as no program may
    # end while one is under way.
    global calls
    tick()
    calls += 1
    if calls == 1:
        assert not any(name.startswith("tinote.autodiff.reverse") for name in loaded)
    if calls < 100:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)

loaded = set(sys.modules)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, SECONDS)

x, y = (ti.field(ti.f64, 64, needs_grad=True) for _ in range(2))
loss = ti.field(ti.f64, (), needs_grad=True)

@ti.kernel
def step(a: ti.f64):
    for i in x:
        y[i] = y[i] * 0.9 + a * ti.sin(x[i])

@ti.kernel
def measure():
    for i in y:
        loss[None] += y[i] ** 2

start = np.linspace(0.1, 1, 64)
factor = 2 * (0.3 * 0.9 + 0.1) ** 2
while calls < 100:
    x.from_numpy(start)
    y.fill(0)
    with ti.ad.Tape(loss):
        step(0.3)
        step(0.1)
        measure()
    assert np.allclose(x.grad.to_numpy(), factor * np.sin(start) * np.cos(start))
    product = ti.ad.hvp(lambda: (loss.fill(0), measure()), wrt=y, loss=loss)(np.ones(64))
    assert np.allclose(product, 2)
assert (ticks.to_numpy() == 100).all()
"""


@pytest.mark.parametrize("seconds", [0.001, 0.003])
def test_kernels_run_in_a_handler_from_the_start(tmp_path: Path, seconds: float) -> None:
    file = tmp_path / "stress.py"
    file.write_text(f"SECONDS = {seconds}\n{STRESS}")
    folder = f"import os; os.environ['TINOTE_CACHE_DIR'] = {str(tmp_path / 'cache')!r}"
    for _ in range(2):  # without stored code, and with it
        run_child(f"{folder}\nimport runpy; runpy.run_path({str(file)!r}, run_name='__main__')")


#: A module that is interrupted when half of it is there, and a handler that uses it.
HALF = "import signal\nsignal.raise_signal(signal.SIGUSR1)\nwhole = True\n"
USES = """
import signal, sys
from tinote.errors import TinoteError
from tinote.lazy import lazy, load
said = []
half_loaded = lazy("half")
def handle(*_):
    try:
        said.append(half_loaded.whole)
    except TinoteError as error:
        said.append(error.message)
signal.signal(signal.SIGUSR1, handle)
"""


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("load('half')", "[True]"),
        # The main thread imports it itself, and cannot wait for itself.
        ("import half", "['this interrupts an import that loads a part of tinote ('half'), which cannot"),
        ("import uses", "['this interrupts an import that loads a part of tinote ('half'), which cannot"),
    ],
)
def test_a_handler_waits_for_what_is_half_loaded_or_says_so(tmp_path: Path, use: str, said: str) -> None:
    (tmp_path / "half.py").write_text(HALF)
    (tmp_path / "uses.py").write_text("from tinote.lazy import load\nload('half')\n")
    printed = run_child(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USES}\n{use}\nimport half\n"
        "assert load('half').whole\nprint(said)"
    )
    assert printed.replace('"', "'").startswith(said)


def test_a_lazy_module_is_loaded_when_an_attribute_is_read(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("value = 3\n")
    printed = run_child(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom tinote.lazy import lazy\nlater = lazy('later')\n"
        "print('later' in sys.modules, later.value, 'later' in sys.modules)\nsys.modules['later'].value = 4\n"
        "print(later.value)\ntry:\n    later.absent\nexcept AttributeError as error:\n    print(error)"
    )
    assert printed == "False 3 True\n4\nmodule 'later' has no attribute 'absent'\n"


def test_an_import_that_fails_fails_as_it_does_in_python(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_at_all\n")
    printed = run_child(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom tinote.lazy import load\nfor _ in range(2):\n"
        "    try:\n        load('broken')\n    except ImportError as error:\n        print(error.name)"
    )
    assert printed == "no_such_module_at_all\n" * 2
