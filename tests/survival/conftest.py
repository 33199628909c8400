"""A session of a user in a child process: data to keep, and ways to treat it badly."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.survival.child import run_child

PRELUDE = """
import os, signal, sys, threading, time, warnings
import numpy as np
import tinote as ti
ti.init()

N = 1000
data = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
data.from_numpy(np.arange(N, dtype=float))

@ti.kernel
def total() -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i in data:
        s += data[i]
    return s

@ti.kernel
def energy():
    for i in data:
        loss[None] += data[i] ** 2

RIGHT = N * (N - 1) / 2

def good():
    assert total() == RIGHT, total()
    with ti.ad.Tape(loss=loss):
        energy()
    assert (data.grad.to_numpy() == 2 * np.arange(N)).all()
    @ti.kernel
    def fresh(a: ti.f64) -> ti.f64:
        return a * data[3] + RIGHT
    assert fresh(2.0) == 6 + RIGHT

interrupts = []  # what was raised

def lateness(act, after):
    sent = []
    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    try:
        thread.start()
        act()
    except KeyboardInterrupt as interrupt:
        interrupts.append(interrupt)
        return time.perf_counter() - sent[0]
    finally:
        thread.join()
    raise AssertionError("it ended by itself")

def interrupted(act, after=0.3):
    # Other work on the machine may hold up one answer; the best of several is the session's own.
    late = [lateness(act, after)]
    while late[-1] > 0.5:
        assert len(late) < 10, late
        late.append(lateness(act, after))

def define(text, file="defined.py", name="k"):
    # The kernel `name` of a program that is not in this file.
    import linecache
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ti": ti, "data": data, "loss": loss}
    exec(compile(text, file, "exec"), space)
    return space[name]

HEAD = "@ti.kernel\\ndef k(a: ti.i32) -> ti.i32:\\n"

def refused(act, *kinds):
    try:
        act()
    except (kinds or (Exception,)) as error:
        text = str(error)
        assert "internal error" not in text, text
        return text
    raise AssertionError("it was not refused")

good()
"""


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., str]:
    """Runs a script after the prelude, in a process of its own and from a file, since kernels need their source."""

    def run(script: str, seconds: float = 600) -> str:
        file = tmp_path / "session.py"
        file.write_text(PRELUDE + script + "\ngood()\nprint('alive')\n")
        return run_child(f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')", seconds=seconds)

    return run
