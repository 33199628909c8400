"""The cache on disk, treated badly: damaged, contended, full, forbidden. The child answers, and answers right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What every child runs; `sys.argv[1]` is the folder of the cache.
KERNELS = """
import os, sys
import tinote as ti
ti.init()
N = 3
x = ti.field(ti.f64, shape=100, needs_grad=True)
U = ti.field(ti.f64, shape=(), needs_grad=True)

@ti.func
def cube(a):
    return a ** N

def make():
    @ti.kernel
    def energy(k: ti.f64) -> ti.f64:
        for i in x:
            U[None] += cube(x[i]) * k
        return U[None]
    return energy

def answer():
    energy = make()
    x.fill(2)
    U[None] = 0
    value = energy(0.5)
    x.grad.fill(0)
    U.grad[None] = 1
    energy.grad(0.5)
    return value, x.grad[7], [native.origin.value for _, native in energy.instances[0].specialisation.results()]

RIGHT = (400.0, 6.0)
"""

DAMAGE = """
import random
from pathlib import Path
from tinote.compiler.driver import binary_cache
generator = random.Random(int(os.environ["SEED"]))
folder = Path(os.environ["TINOTE_CACHE_DIR"])

def damage(path):
    data = bytearray(path.read_bytes())
    kind = generator.randrange(6)
    if kind < 3 and data:
        for _ in range(1 + kind * 3):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    elif kind == 3:
        del data[generator.randrange(len(data) + 1):]
    elif kind == 4:
        data += generator.randbytes(generator.randrange(1, 50))
    else:
        data = bytearray(generator.choice(list(folder.glob("[!.]*"))).read_bytes())
    path.write_bytes(data)
"""


def child(script: str, folder: Path, **more: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"TINOTE_CACHE_DIR": str(folder), "TINOTE_CACHE_LIMIT": "64M", **more}
    # From a file: a kernel's source must be readable.
    file = folder.parent / f"child_{abs(hash(script))}.py"
    if not file.exists() or file.read_text() != script:  # another child may be about to read it
        file.write_text(script)
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(file)],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str], seconds: float = 600) -> str:
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, f"the child ended with {process.returncode}:\n{out}\n{err}"
    assert err == "", err
    return out


ANSWER = KERNELS + "\nprint(answer())\n"


def test_random_damage(tmp_path: Path) -> None:
    """Entries are damaged again and again under a running process, which never takes a damaged one."""
    script = (
        KERNELS
        + DAMAGE
        + """
assert answer()[:2] == RIGHT
damaged = 0
for turn in range(60):
    binary_cache._known.clear()
    for path in generator.sample(sorted(folder.glob("[!.]*")), k=2):
        damage(path)
        damaged += 1
    found = answer()
    assert found[:2] == RIGHT, found
binary_cache._known.clear()
assert answer() == (*RIGHT, ["disk", "disk"]), "what was damaged is written anew"
print("survived", damaged)
"""
    )
    assert result(child(script, tmp_path / "cache", SEED="1")) == "survived 120\n"


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_finds_everything_damaged(tmp_path: Path, seed: int) -> None:
    """Among it the native runtime, which a process links before anything else."""
    folder = tmp_path / "cache"
    result(child(ANSWER, folder))
    found = result(
        child(
            KERNELS + DAMAGE + "\nfor path in sorted(folder.glob('[!.]*')): damage(path)\nprint(answer())",
            folder,
            SEED=str(seed),
        )
    )
    assert found.startswith("(400.0, 6.0, ")
    assert result(child(ANSWER, folder)) == "(400.0, 6.0, ['disk', 'disk'])\n"


def test_entries_of_another_make(tmp_path: Path) -> None:
    """Well sealed and full of nonsense: as if an older version had written them under the same key."""
    script = (
        KERNELS
        + """
import json, random
from pathlib import Path
from tinote.compiler.driver import binary_cache
from tinote.runtime.store import open_store
store, generator = open_store(), random.Random(3)
answer()
keys = [path.name for path in Path(store.folder).glob("[!.]*")]
texts = [b"", b"null", b"[]", b"{}", b"[[]]", b'[["name", ["globals", 0], "N"]]', b"[[[]]]", b'[[["name", 1, 2]]]',
         b"[[1, 2], null, null]", b"\\xff", b"[" * 100_000, json.dumps([[["attribute", ["value", 9], "x"]]]).encode()]
for turn in range(40):
    plain = {key: store.get(key) for key in keys}
    for key, data in plain.items():
        if data is not None and data[:1] in b"[{":
            store.put(key, generator.choice(texts))
    found = answer()
    assert found[:2] == RIGHT, found
print("survived")
"""
    )
    assert result(child(script, tmp_path / "cache")) == "survived\n"


def test_several_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    children = [child(ANSWER, folder) for _ in range(4)]
    assert all(result(process).startswith("(400.0, 6.0, ") for process in children)
    assert result(child(ANSWER, folder)) == "(400.0, 6.0, ['disk', 'disk'])\n"
    assert not [path for path in folder.iterdir() if path.name.startswith(".writing")]


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    assert result(child(full + ANSWER, folder)) == "(400.0, 6.0, ['compiled', 'compiled'])\n"
    assert list(folder.glob("[!.]*")) == []
    (tmp_path / "file").write_text("")
    assert result(child(ANSWER, tmp_path / "file")) == "(400.0, 6.0, ['compiled', 'compiled'])\n"


def test_a_fork_while_the_cache_is_in_use(tmp_path: Path) -> None:
    script = (
        KERNELS
        + """
from tinote.compiler.driver import binary_cache
first = answer()
child = os.fork()
if child == 0:
    binary_cache._known.clear()
    found = answer()
    os._exit(0 if found == (*RIGHT, ["disk", "disk"]) else 1)
_, status = os.waitpid(child, 0)
binary_cache._known.clear()
print(os.waitstatus_to_exitcode(status), answer())
"""
    )
    assert result(child(script, tmp_path / "cache")) == "0 (400.0, 6.0, ['disk', 'disk'])\n"


def test_a_warm_first_call_leaves_the_compiler_alone(tmp_path: Path) -> None:
    """Neither the front end nor the passes, nor code generation, nor differentiation are loaded."""
    folder = tmp_path / "cache"
    script = KERNELS + (
        "\nfound = answer()"
        "\nheavy = ('tinote.compiler.frontend.', 'tinote.compiler.passes', 'tinote.compiler.pipeline',"
        "\n         'tinote.compiler.codegen', 'tinote.autodiff.', 'tinote.ir.text', 'tinote.ir.verify')"
        "\nprint(found, [m for m in sys.modules if m.startswith(heavy)"
        " and not m.endswith('.protocol')])"
    )
    cold = result(child(script, folder))
    assert cold.startswith("(400.0, 6.0, ['compiled', 'compiled']) ['tinote.")
    assert result(child(script, folder)) == "(400.0, 6.0, ['disk', 'disk']) []\n"


def test_a_first_call_without_a_derivative_loads_none_of_differentiation(tmp_path: Path) -> None:
    """Neither one that compiles nor one that finds the kernel on disk; what it must know of memory is for gradients."""
    folder = tmp_path / "cache"
    script = KERNELS + (
        "\nenergy = make()\nenergy(0.5)"
        "\nunused = ('tinote.autodiff.gradient', 'tinote.autodiff.storage', 'tinote.compiler.derivative_steps',"
        "\n          'tinote.compiler.launch.memory_facts', 'tinote.ir.checked_accesses', 'difflib', 'hashlib',"
        "\n          'dataclasses')"
        "\nprint(energy.instances[0].origin.value, [m for m in unused if m in sys.modules])"
    )
    assert result(child(script, folder)) == "compiled []\n"
    script += "\nprint('tinote.ir.launch_values' in sys.modules)"
    assert result(child(script, folder)) == "disk []\nFalse\n"


def test_a_first_call_from_disk_costs_a_fraction_of_one_that_compiles(tmp_path: Path) -> None:
    """Time of the processor in all threads, of which LLVM has one of its own: other work on the machine hardly changes
    it; `benchmarks first` has the seconds.
    """
    script = (
        "import json, signal, sys, time\nimport llvmlite.binding\n"
        + KERNELS
        + """
energy = make()
begin = time.process_time()
energy(0.5)
print(energy.instances[0].origin.value, time.process_time() - begin)
"""
    )
    folder = tmp_path / "cache"
    origin, compiled = result(child(script, folder)).split()
    assert origin == "compiled"
    found = [result(child(script, folder)).split() for _ in range(3)]
    assert {origin for origin, _ in found} == {"disk"}
    assert min(float(seconds) for _, seconds in found) < 0.2 * float(compiled)


def test_a_bare_import_loads_no_compiler(tmp_path: Path) -> None:
    script = (
        "import sys, tinote\n"
        "print([m for m in sys.modules if m.startswith(('tinote.compiler.frontend.', 'tinote.autodiff.', 'llvmlite'))])"
    )
    assert result(child(script, tmp_path / "cache")) == "[]\n"


def test_a_user_without_a_home(tmp_path: Path) -> None:
    """As in containers: no HOME, and a number that the system has no name for. Nothing is kept, and all else works."""
    script = (
        """
import os, pwd, sys
def unknown(user):
    raise KeyError(user)
del os.environ["TINOTE_CACHE_DIR"]
for name in ("HOME", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)
pwd.getpwuid = unknown
"""
        + KERNELS
        + """
from tinote.cli import main
print(answer())
print(main(["cache", "info"]))
"""
    )
    value, note, status = result(child(script, tmp_path)).splitlines()
    assert value == "(400.0, 6.0, ['compiled', 'compiled'])"
    assert "the user has no home folder" in note
    assert status == "1"
