"""`tinote doctor`: diagnostics of the targets for kernels and of the front ends for views."""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from tinote import __version__
from tinote.cli.status import FAILED
from tinote.distribution import MENDED_BY, other_owners
from tinote.manual import tutorials

FRONT_ENDS = ("jupyterlab", "notebook", "marimo", "ipykernel", "ipython", "ipywidgets", "anywidget", "nbclient")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
C_COMPILERS = ("cc", "gcc", "clang")

# Runs in a child process: a compiler that cannot be loaded, or crashes, is a finding and not the end of the doctor.
PROBE = """
import json, time
start = time.perf_counter()
import tinote
imported = time.perf_counter() - start
import llvmlite, llvmlite.binding
from tinote.runtime import jit
host = jit.host()
found = {name: getattr(host, name) for name in ("triple", "cpu", "features", "vector_bits", "threads")}
found["llvm"] = ".".join(map(str, llvmlite.binding.llvm_version_info))
found["import_seconds"] = imported
print(json.dumps(found, default=list))
"""

GPU_PROBE = """
from tinote.runtime import gpu
try:
    found = gpu.adapters()
except gpu.NoDevice as error:
    print(error)
else:
    for one in found:
        kind = "software driver on the CPU" if one.software else "GPU"
        features = "f32 f64" if one.f64 else "f32"
        print(f"{one.name}  ({one.backend}, {kind}; {features}; {one.binding_bytes >> 20} MiB at once)")
"""

# Of the many features of a CPU, those that decide how wide and how well loops vectorise.
TELLING_FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512fp16"),
    *("neon", "fullfp16", "dotprod", "sve", "sve2"),
)


def main(_options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return doctor()


def doctor() -> int:
    """Prints what kernels will run on and what will show them; 1 when the compiler does not work here."""
    print(f"tinote         {__version__}  ({Path(__file__).resolve().parents[1]})")
    for other in other_owners():
        print(f"WARNING        {other} owns files in a folder tinote/ too: {MENDED_BY}")
    print(f"Python         {platform.python_version()}  ({sys.executable})")
    print(f"system         {platform.platform()}")
    probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    healthy = probe.returncode == 0
    if healthy:
        for name, value in _compiler_lines(json.loads(probe.stdout.splitlines()[-1])):
            print(f"{name:<14} {value}")
    else:
        print(f"compiler       does not work: {_reason(probe)}")
    print(f"GPU            {_gpu_line()}")
    print(f"NumPy          {_version('numpy')}")
    print("front ends     " + ", ".join(f"{name} {_version(name)}" for name in FRONT_ENDS if _version(name)))
    print(f"tutorials      {_tutorials_line()}")
    print(f"browser        {_first_program(BROWSERS)}  (used by the browser tests)")
    print(f"C compiler     {_first_program(C_COMPILERS)}  (used by the benchmarks)")
    return 0 if healthy else FAILED


def _gpu_line() -> str:
    """The adapters that kernels could run on, or why there is none. Asked in a child process, as drivers may crash."""
    probe = subprocess.run([sys.executable, "-c", GPU_PROBE], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        return f"cannot be asked for: {_reason(probe)}"
    return probe.stdout.strip() or "no adapter"


def _compiler_lines(host: dict[str, object]) -> list[tuple[str, str]]:
    features = host["features"]
    text = ",".join(map(str, features)) if isinstance(features, list) else str(features)
    present = {name.removeprefix("+") for name in re.split(r"[,\s]+", text) if name and not name.startswith("-")}
    telling = [name for name in TELLING_FEATURES if name in present]
    return [
        ("LLVM", f"{host['llvm']}  (llvmlite {_version('llvmlite')})"),
        ("CPU", f"{host['cpu']}  ({host['triple']})"),
        ("features", f"{' '.join(telling) or 'none of those that matter'}  (of {len(present)})"),
        ("vectors", f"{host['vector_bits']} bits"),
        ("threads", str(host["threads"])),
        ("import tinote", f"{host['import_seconds']:.2f} s"),
    ]


def _reason(probe: subprocess.CompletedProcess[str]) -> str:
    if probe.returncode < 0:
        return f"a child process ended by signal {-probe.returncode}"
    return (probe.stderr.strip().splitlines() or ["no reason given"])[-1]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _tutorials_line() -> str:
    try:
        folder = tutorials()
    except FileNotFoundError as error:
        return str(error)
    return f"{folder}  ({len(list(folder.glob('*.ipynb')))} notebooks)"


def _first_program(names: tuple[str, ...]) -> str:
    return next((path for path in map(shutil.which, names) if path), "none found")
