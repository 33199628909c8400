"""What the package asks of Python is there on Windows, too.

A process takes away what Python does not have there, says that it is on Windows while the package is imported, and then
runs kernels: with the older linker, memory without flags and locks by `msvcrt`. What Windows itself does is run
elsewhere (`tests/runtime/test_other_platforms.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tinote.runtime.native import defined_functions, runtime_text

PACKAGE = Path(__file__).parents[1] / "tinote"

PROGRAM = """
import importlib, mmap, os, pkgutil, signal, subprocess, sys, time, types

# Libraries of others have ways of their own for Windows.
import anywidget, asyncio, IPython, ipywidgets, jupyter_client, llvmlite.binding, matplotlib.pyplot, multiprocessing
import multiprocessing.connection, nbclient, nbconvert, nbformat, numpy as np, PIL.Image, scipy.optimize, socket, tqdm
import tempfile, webbrowser, shutil, concurrent.futures, distributed, pandas, xarray, zarr, ipykernel.comm, wgpu

for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios", "tty", "pty", "readline"):
    sys.modules[name] = None
system = "fork forkpty geteuid getuid getegid getgid getpgrp getpgid killpg setsid register_at_fork sysconf mkfifo"
system += " sched_getaffinity sched_yield uname getloadavg pread pwrite nice chown fchmod wait4 WNOHANG"
for place, names in {
    os: system + " O_CLOEXEC O_NOFOLLOW O_NONBLOCK",
    mmap: "MAP_PRIVATE MAP_ANONYMOUS MAP_SHARED MADV_HUGEPAGE PROT_READ PROT_WRITE",
    signal: "SIGKILL SIGUSR1 SIGUSR2 SIGALRM setitimer ITIMER_REAL pthread_sigmask SIGHUP",
    time: "clock_gettime CLOCK_MONOTONIC CLOCK_BOOTTIME",
}.items():
    for name in names.split():
        if hasattr(place, name):
            delattr(place, name)

locked = []


def locking(file, mode, count):
    locked.append((mode, count))


sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
multiprocessing.connection.PipeConnection = multiprocessing.connection.Connection

system, sys.platform = sys.platform, "win32"
import tinote as ti

for found in pkgutil.walk_packages(ti.__path__, "tinote."):
    if not found.name.endswith(("__main__", ".generate")):
        importlib.import_module(found.name)
sys.platform = system

ti.init(num_threads=2)
x = ti.field(ti.f64, shape=1 << 18, needs_grad=True)  # pages of its own
loss = ti.field(ti.f64, shape=(), needs_grad=True)


@ti.kernel
def total():
    for i in x:
        loss[None] += ti.sin(x[i]) ** 2


given = np.linspace(0, 1, 1 << 18)
x.from_numpy(given)
with ti.ad.Tape(loss=loss):
    total()
np.testing.assert_allclose(loss[None], (np.sin(given) ** 2).sum(), rtol=1e-12)
np.testing.assert_allclose(x.grad.to_numpy(), np.sin(2 * given), rtol=1e-12, atol=1e-12)
from tinote.runtime.process_locks import process_lock
from tinote.runtime.store import open_store

assert locked, "compiled code has its lock"
with process_lock(open_store().folder, "ab"):
    assert locked[-1] == (2, 1)
assert locked[-1] == (0, 1)
assert open_store().problem == "" and open_store().usage().entries, open_store().problem
"""


def test_the_package_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    variables = {**os.environ, "TINOTE_CACHE_DIR": str(tmp_path / "cache"), "TINOTE_CACHE_LIMIT": "64M"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_only_posix_has_is_asked_for_in_few_places() -> None:
    """A new use has its way for Windows in one of these modules, or behind `hasattr`."""
    names = (
        r"fcntl\.|resource\.(?:get|set)rlimit|os\.(?:fork|killpg|setsid|getpgrp|sysconf|register_at_fork)\b|pass_fds"
    )
    known = {"runtime/process_locks.py", "lang/sweeps/children.py", "system.py", "compiler/pysource/definitions.py"}
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(names, path.read_text(encoding="utf-8"))
    }
    assert found == known


def test_the_runtime_finds_its_functions_in_libraries_of_every_process() -> None:
    """Those that this Windows' Python has loaded: kernel32, the C library (ucrtbase) and Python's own."""
    kernel32 = {
        *(
            "AcquireSRWLockExclusive",
            "CloseHandle",
            "CreateThread",
            "GetCurrentThreadId",
            "InitializeConditionVariable",
        ),
        *("InitializeSRWLock", "QueryPerformanceCounter", "QueryPerformanceFrequency", "ReleaseSRWLockExclusive"),
        *("Sleep", "SleepConditionVariableSRW", "SwitchToThread", "WakeAllConditionVariable", "WakeConditionVariable"),
    }
    c_library = {"_aligned_free", "_aligned_malloc", "fmod", "free", "malloc", "pow", "sqrt"}
    for processor in ("AMD64", "ARM64"):
        text = runtime_text(processor, "win32")
        declared = set(re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE))
        asked = {name for name in declared if not name.startswith(("llvm.", "Py"))} - defined_functions(text)
        assert asked == kernel32 | c_library
