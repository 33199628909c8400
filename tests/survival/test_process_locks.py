"""Processes that need the same code at once: one compiles it, the others wait for it, whatever becomes of the first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tinote.runtime import process_locks
from tinote.runtime.process_locks import process_lock

# Each child says that it is ready, waits for a line, and calls kernels that are long enough to be compiled at once.
CHILD = """
import os, sys
import tinote as ti
ti.init(num_threads=1)
x = ti.field(ti.f64, shape=64, needs_grad=True)
total = ti.field(ti.f64, (), needs_grad=True)

@ti.kernel
def shake(k: ti.f64):
    for i in x:
        for j in ti.static(range(40)):
            x[i] += ti.sin(k * x[i] + j) * ti.exp(-x[i] * x[i])

@ti.kernel
def sum_up():
    for i in x:
        for j in ti.static(range(20)):
            total[None] += ti.cos(j * x[i]) * x[i]

def origins(kernel):
    return [native.origin.value for _, native in kernel.instances[0].specialisation.results()]

print("ready", flush=True)
sys.stdin.readline()
shake(0.5)
with ti.ad.Tape(total):
    sum_up()
print(*origins(shake), *origins(sum_up), repr(total[None]), repr(x.grad[3]), flush=True)
"""


def _child(folder: Path, script: Path) -> subprocess.Popen[str]:
    """The text is a file's: what a kernel is found by on disk."""
    environment = os.environ | {"TINOTE_CACHE_DIR": str(folder), "TINOTE_CACHE_LIMIT": "256M"}
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def test_what_several_processes_need_is_compiled_once(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    children = [_child(tmp_path / "cache", script) for _ in range(4)]
    assert [_line(child) for child in children] == ["ready"] * 4
    for child in children:
        _go(child)
    found = [child.communicate(timeout=300)[0].split() for child in children]
    assert len({tuple(words[-2:]) for words in found}) == 1  # the same numbers
    for number in range(3):  # shake, sum_up and its gradient
        assert sorted(words[number] for words in found) == ["compiled", "disk", "disk", "disk"]


def test_a_killed_holder_lets_the_next_one_in(tmp_path: Path) -> None:
    text = (
        "import sys, time\nfrom pathlib import Path\nfrom tinote.runtime.process_locks import process_lock\n"
        "with process_lock(Path(sys.argv[1]), 'abcd'):\n    print('has it', flush=True)\n    time.sleep(600)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", text, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert _line(holder) == "has it"
    entered = threading.Event()

    def enter() -> None:
        with process_lock(tmp_path, "abcd"):
            entered.set()

    waiting = threading.Thread(target=enter, daemon=True)
    waiting.start()
    assert not entered.wait(0.3)
    with process_lock(tmp_path, "0123"):
        pass  # another key: nobody waits
    holder.send_signal(signal.SIGKILL)
    assert entered.wait(process_locks.LONGEST_WAIT - 10)
    waiting.join()
    holder.communicate()


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_locks, "LONGEST_WAIT", 0.2)
    held: list[Any] = []
    release = threading.Event()

    def hold() -> None:
        with process_lock(tmp_path, "ab"):
            held.append(1)
            release.wait(120)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    while not held:
        time.sleep(0.01)
    begun = time.monotonic()
    with process_lock(tmp_path, "ab"):
        assert time.monotonic() - begun >= 0.2
    with process_lock(tmp_path, "cd"), process_lock(tmp_path, "ab"):
        pass  # whoever holds one waits for no other one
    release.set()
    holder.join()
    with process_lock(tmp_path / "missing", "ab"):
        pass


def test_a_wait_is_interrupted(tmp_path: Path) -> None:
    text = (
        "import sys, time\nfrom pathlib import Path\nfrom tinote.runtime.process_locks import process_lock\n"
        "print('waits', flush=True)\n"
        "try:\n    with process_lock(Path(sys.argv[1]), 'ab'):\n        print('has it')\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    with process_lock(tmp_path, "ab"):
        child = subprocess.Popen([sys.executable, "-c", text, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert _line(child) == "waits"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=process_locks.LONGEST_WAIT - 10)[0].strip() == "interrupted"
