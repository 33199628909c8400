"""What other platforms run, run here: arm64 under QEMU, Windows under Wine. What cannot be run is linked.

`pytest -m emulated` asks for them: they need `qemu-user` and `wine64` of the system, the compiler in the `ziglang`
wheel and, from an index, llvmlite's wheel for Windows.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from threading import get_ident
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tinote as ti
from tinote.compiler.launch.native import Native
from tinote.runtime import jit
from tinote.runtime.memory import Memory
from tinote.runtime.native import generate, half_text, runtime_text
from tinote.runtime.seam import Listener, listeners, silently

pytestmark = [pytest.mark.emulated, pytest.mark.slow, pytest.mark.timeout(1800)]

SOURCES = Path(generate.__file__).parent
TESTS = Path(__file__).with_name("runtime_test.c")
WINE = "/usr/lib/wine/wine64" if Path("/usr/lib/wine/wine64").exists() else shutil.which("wine64") or "wine64"
WINDOWS = "x86_64-pc-windows-msvc"
#: What both processors have, this one and the one that Wine shows.
CPU = "x86-64-v2"


def build(target: str, source: Path, program: Path, *options: str) -> None:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-std=c17", "-O1", "-Wall", "-Wextra"]
    command += [*options, "-I", str(SOURCES), str(source), "-pthread", "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert built.returncode == 0, built.stderr


def names_of_tests(source: Path) -> list[str]:
    return re.findall(r"TEST\((\w+)\)[,\s]", source.read_text(encoding="utf-8").partition("int main(")[2])


FORKS = {"fork", "fork_inside_a_launch"}


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables for Wine, with a Windows of its own."""
    prefix = tmp_path_factory.mktemp("wine")
    variables = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    subprocess.run([WINE, "wineboot", "-i"], env=variables, capture_output=True, timeout=300, check=True)
    yield variables
    subprocess.run([Path(WINE).with_name("wineserver"), "-k"], env=variables, timeout=60, check=False)


def test_the_runtime_on_arm64(tmp_path: Path) -> None:
    """But for forks, which the emulator does not survive."""
    program = tmp_path / "runtime_test"
    build("aarch64-linux-musl", TESTS, program, "-static", "-D_GNU_SOURCE")
    for name in names_of_tests(TESTS):
        if name not in FORKS:
            done = subprocess.run(
                ["qemu-aarch64", program, name], capture_output=True, text=True, timeout=600, check=False
            )
            assert (done.returncode, done.stdout.split()) == (0, [name]), done.stderr


def test_the_runtime_on_windows(tmp_path: Path, wine: dict[str, str]) -> None:
    program = tmp_path / "runtime_test.exe"
    build("x86_64-windows-gnu", TESTS, program)
    done = subprocess.run([WINE, program], env=wine, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [name for name in names_of_tests(TESTS) if name not in FORKS]


@pytest.mark.parametrize("target", ["x86_64-macos", "aarch64-macos", "aarch64-windows-gnu"])
def test_the_runtime_links_where_it_cannot_be_run(target: str, tmp_path: Path) -> None:
    build(target, TESTS, tmp_path / "runtime_test")
    assert (tmp_path / "runtime_test").stat().st_size > 10_000


class Launches(Listener):
    """Every launch as the text of its kernel, what it is launched with, and what memory holds before and after."""

    def __init__(self, texts: dict[int, str]) -> None:
        super().__init__()
        self._texts = texts
        self.texts: list[str] = []
        self.launches: list[bytes] = []
        self.results: list[list[bytes]] = []

    def launch(self, code: Native, values: Any) -> Any:
        memories = list(dict.fromkeys(memory for _, _, memory in code.fixed_addresses()))
        before = [bytes(memory.view()) for memory in memories]
        results = silently(code.launch, values)
        launcher = code.launcher
        block = launcher.acquire()
        words = list(block.integers[: launcher.slots])
        launcher.release(block)
        image = struct.pack("<4q", launcher.num_threads, launcher.scratch_stride, launcher.slots, len(memories))
        for value in words:
            image += struct.pack("<2q", *_place_of(value, memories))
        for content in before:
            image += struct.pack("<q", len(content)) + content
        self.texts.append(self._texts[launcher.entry_address])
        self.launches.append(image)
        self.results.append([bytes(memory.view()) for memory in memories])
        return results


def _place_of(value: int, memories: list[Memory]) -> tuple[int, int]:
    for k, memory in enumerate(memories):
        if memory.address <= value < memory.address + max(memory.nbytes, 1):
            return k, value - memory.address
    return -1, value


@contextmanager
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    texts: dict[int, str] = {}
    compile_image = jit.compile_image

    def compiled(text: str, **options: Any) -> Any:
        image, binary = compile_image(text, **options)
        texts[binary.address("entry")] = text
        return image, binary

    monkeypatch.setattr(jit, "compile_image", compiled)
    found = Launches(texts)
    monkeypatch.setitem(listeners, get_ident(), found)
    return found


def windows_text(text: str) -> str:
    """A kernel's text after LLVM's passes for Windows."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(WINDOWS).create_target_machine(cpu=CPU, opt=3, reloc="pic", jit=True)
    with jit._optimised(text, 3, machine) as module:
        return str(module)


def llvmlite_for_windows(folder: Path) -> Path:
    """The DLL of the installed version's wheel for Windows, with the libraries that it brings along."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--platform", "win_amd64", "--python-version", "3.12", "--dest", str(folder)]
    subprocess.run([*command, f"llvmlite=={metadata.version('llvmlite')}"], check=True, timeout=600)
    [wheel] = folder.glob("llvmlite-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".dll"):
                (folder / Path(name).name).write_bytes(archive.read(name))
    return folder / "llvmlite.dll"


def test_kernels_and_gradients_on_windows(
    tmp_path: Path, wine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of all kinds, and the reverse ones of two, compiled and linked by LLVM on Windows, compute what they do
    here: loops in parallel, reductions, atomic operations, functions of the C library, saved values, f16, large frames.
    """
    monkeypatch.setenv(jit.CPU_VARIABLE, CPU)
    ti.init(num_threads=3, offline_cache=False)
    n = 3000
    x = ti.field(ti.f64, shape=n, needs_grad=True)
    single = ti.field(ti.f32, shape=n, needs_grad=True)
    half = ti.field(ti.f16, shape=n)
    counts = ti.field(ti.i32, shape=16)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def functions():
        for i in x:
            loss[None] += ti.sin(x[i]) * ti.exp(-x[i]) + ti.pow(x[i], 1.5) + ti.tanh(x[i]) + ti.atan2(x[i], 2.0)

    @ti.kernel
    def saves():
        for i in single:
            y = single[i]
            for _ in range(i % 7 + 3):
                y = ti.sin(y) + 0.5 * y * y
            loss[None] += y

    @ti.kernel
    def counting():
        for i in x:
            counts[i % 16] += i // 16
            half[i] = ti.cast(x[i], ti.f16) * 2

    @ti.kernel
    def large() -> ti.f64:
        table = ti.Matrix.zero(ti.f64, 25, 25)
        for k in range(n):
            table[k % 25, (k * 7) % 25] += x[k]
        return table.sum() + ti.log(x[5]) % 0.25

    given = np.linspace(0.1, 2, n)
    x.from_numpy(given)
    single.from_numpy(given.astype(np.float32) / 4)
    with launches(monkeypatch) as found:
        with ti.ad.Tape(loss=loss):
            functions()
            saves()
        counting()
        large()
    assert len(found.texts) >= 6
    assert any("tn_arena_alloc" in text for text in found.texts) and any("half" in text for text in found.texts)

    dll = llvmlite_for_windows(tmp_path)
    (tmp_path / "runtime.ll").write_text(runtime_with_half(), encoding="utf-8")
    for k, (text, launch) in enumerate(zip(found.texts, found.launches, strict=True)):
        (tmp_path / f"{k}.ll").write_text(windows_text(text), encoding="utf-8")
        (tmp_path / f"{k}.launch").write_bytes(launch)
    program = tmp_path / "windows_jit.exe"
    build("x86_64-windows-gnu", Path(__file__).with_name("windows_jit.c"), program)
    command = [WINE, program, dll.name, CPU, ".", str(len(found.texts))]
    done = subprocess.run(command, cwd=tmp_path, env=wine, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [WINDOWS, *map(str, range(len(found.texts)))]
    for k, expected in enumerate(found.results):
        result = (tmp_path / f"{k}.result").read_bytes()
        assert struct.unpack_from("<q", result) == (0,)
        at = 8
        for memory in expected:
            _assert_same_numbers(result[at : at + len(memory)], memory)
            at += len(memory)
        assert at == len(result)


def runtime_with_half() -> str:
    """The runtime's text for Windows with the conversions of f16, as the JIT links them."""
    machine = llvm.Target.from_triple(WINDOWS).create_target_machine(cpu=CPU, opt=0, reloc="pic", jit=True)
    with jit._parsed(runtime_text("AMD64", "win32"), machine, half_text()) as module:
        return str(module)


def _assert_same_numbers(found: bytes, expected: bytes) -> None:
    """The bytes are the same, or they are floats that differ by what two C libraries differ in."""
    if found == expected:
        return
    for kind, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        values = np.frombuffer(expected, kind)
        if np.isfinite(values).all() and np.abs(values[values != 0]).min() > 1e-9:
            np.testing.assert_allclose(np.frombuffer(found, kind), values, rtol=tolerance)
            return
    pytest.fail("other bytes")
