"""The native runtime: what is generated belongs to its C sources, is valid everywhere, and stands the sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tinote.runtime import jit, threads
from tinote.runtime.native import defined_functions, generate, runtime_text

SOURCES = Path(generate.__file__).parent
TRIPLES = {
    ("x86_64", "linux"): "x86_64-unknown-linux-gnu",
    ("aarch64", "linux"): "aarch64-unknown-linux-gnu",
    ("x86_64", "darwin"): "x86_64-apple-macosx11.0",
    ("arm64", "darwin"): "arm64-apple-macosx11.0",
    ("AMD64", "win32"): "x86_64-pc-windows-msvc",
    ("ARM64", "win32"): "aarch64-pc-windows-msvc",
}
#: What LLVM's code generator calls and a process without compiler-rt does not have.
COMPILER_RT = {"__powisf2", "__powidf2", "__truncdfhf2"}


def test_generated_files_belong_to_their_sources() -> None:
    """Mended by `python tinote/runtime/native/generate.py`."""
    pytest.importorskip("ziglang")
    stale = [path.name for path, text in generate.generated().items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


@pytest.mark.parametrize(("processor", "system"), TRIPLES, ids="-".join)
def test_the_text_becomes_machine_code_for_every_platform(processor: str, system: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = runtime_text(processor, system)
    machine = llvm.Target.from_triple(TRIPLES[processor, system]).create_target_machine(cpu="generic", reloc="pic")
    with jit._parsed(text, machine) as module:
        assert machine.emit_object(module)
    assert defined_functions(text) >= {*threads.CALLED, *COMPILER_RT, "tn_clear", "tn_parallel_for", "tn_poll"}
    assert "/" not in text and "target-" not in text, "the text names a folder or a processor"
    assert ("pthread_cond_timedwait_relative_np" in text) == (system == "darwin")
    assert ("SleepConditionVariableSRW" in text) == (system == "win32") == ("pthread" not in text)
    is_arm = processor.lower() in ("aarch64", "arm64")
    assert ("llvm.aarch64.hint" in text) == is_arm == ("llvm.x86.sse2.pause" not in text)


def test_generated_code_finds_what_it_declares() -> None:
    """Every function of the runtime that code generation names is exported."""
    codegen = Path(jit.__file__).parents[1] / "compiler" / "codegen"
    named = {
        name
        for path in codegen.rglob("*.py")
        for name in re.findall(r"\btn_[a-z_]+\b", path.read_text(encoding="utf-8"))
    }
    assert "tn_poll" in named
    assert named <= defined_functions(runtime_text())


@pytest.mark.parametrize(
    ("processor", "system", "message"),
    [
        ("riscv64", "linux", "x86-64 and arm64; this is linux on riscv64"),
        ("amd64", "freebsd14", "this is freebsd14 on amd64"),
    ],
)
def test_other_platforms_are_refused(processor: str, system: str, message: str) -> None:
    with pytest.raises(OSError, match=message):
        runtime_text(processor, system)


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_the_runtime_under_a_sanitizer(sanitizer: str, tmp_path: Path) -> None:
    """Without Python: forks, several launchers at once, stops, parking, nested launches, growing pools and arenas."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, program = Path(__file__).with_name("runtime_test.c"), tmp_path / "runtime_test"
    options = ["-std=c17", "-g", "-O1", "-Wall", "-Wextra", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    command = [compiler, *options, "-I", str(SOURCES), str(source), "-pthread", "-lm", "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    done = _run([str(program)])
    if "unexpected memory mapping" in done.stderr:
        # Some kernels put things where this sanitizer's shadow has to be.
        done = _run(["setarch", "--addr-no-randomize", str(program)])
    assert done.returncode == 0, done.stdout + done.stderr
    tests = re.findall(r"TEST\((\w+)\)[,\s]", source.read_text(encoding="utf-8").partition("int main(")[2])
    assert done.stdout.split() == tests and len(tests) > 10


def test_functions_of_webassembly_are_exact(tmp_path: Path) -> None:
    """Those of `maths.c` compared with the C library's."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, program = Path(__file__).with_name("maths_test.c"), tmp_path / "maths_test"
    options = ["-std=gnu17", "-O1", "-Wall", "-Wextra", "-ffp-contract=off", "-I", str(SOURCES)]
    built = subprocess.run(
        [compiler, *options, str(source), "-lm", "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    # The thread sanitizer must know that a child of a process with threads starts threads.
    environment = {**os.environ, "TSAN_OPTIONS": "die_after_fork=0 halt_on_error=1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
