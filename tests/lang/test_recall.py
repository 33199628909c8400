"""Machine code from an earlier process: found when everything is the same, and only then.

Every test plays two processes: the text of a module is written to a file and imported, under another name and with
something changed the second time. `recalled` tells whether the second one did without the front end.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tinote as ti
from tinote.compiler.driver import Mode, Origin, binary_cache
from tinote.errors import DifferentiationError, KernelIndexError, KernelTypeError
from tinote.runtime.cache import open_store

HEAD = """\
import math
import enum
import dataclasses
import numpy as np
import tinote as ti
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "64M")
    ti.init()
    yield tmp_path / "cache"
    ti.reset()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    numbers = itertools.count()

    def load(text: str, **others: str) -> ModuleType:
        """A module of this text; `others` are modules that it may import, by name."""
        for name, other in others.items():
            monkeypatch.setitem(sys.modules, name, load(other))
        file = tmp_path / f"module_{next(numbers)}.py"
        file.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location("played", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "played", module)
        spec.loader.exec_module(module)
        return module

    return load


def is_recalled(kernel: Any) -> bool:
    """Whether the kernel's last instance came without the front end."""
    return kernel.specialisations()[-1]._lowered is None


SIMPLE = """
N = 3
SCALE = (1.5, 2.0)
weights = ti.Vector([1.0, 2.0, 4.0])
table = [1, 2, [3, 4]]
x = ti.field(ti.f32, shape=(4,))
y = ti.field(ti.f32, shape=(4,))

@ti.func
def inner(v):
    return v * N

@ti.func
def f(v, more=10):
    return inner(v) + more

@ti.kernel
def run(a: ti.f32) -> ti.f32:
    s = 0.0
    for i in range(2):
        s += f(a) + SCALE[i] * weights[i] + table[2][0] + math.pi + min(a, 1.0)
    return s
"""

# What is changed, and whether the second process may take the code of the first.
CHANGES = [
    ("", "", True),
    ("import math", "import math  # moved\n\n\nimport math", True),
    ("N = 3", "N = 4", False),
    ("N = 3", "N = 3.0", False),
    ("N = 3", "N = True", False),
    ("SCALE = (1.5, 2.0)", "SCALE = (1.5, 2.5)", False),
    ("SCALE = (1.5, 2.0)", "SCALE = [1.5, 2.0]", False),
    ("ti.Vector([1.0, 2.0, 4.0])", "ti.Vector([1.0, 2.0, 5.0])", False),
    ("[3, 4]", "[5, 4]", False),
    ("return v * N", "return v * N + 1", False),
    ("return inner(v) + more", "return inner(v) - more", False),
    ("more=10", "more=11", False),
    ("@ti.kernel", "min = ti.max\n\n@ti.kernel", False),
    ("a: ti.f32", "a: ti.f64", False),
    ("-> ti.f32", "-> ti.f64", False),
]


@pytest.mark.parametrize(("old", "new", "same"), CHANGES, ids=[f"{o} to {n}"[:40] for o, n, _ in CHANGES])
def test_constants_and_functions_count_by_value(load: Any, old: str, new: str, same: bool) -> None:
    first = load(SIMPLE)
    assert first.run(2.0) == pytest.approx(2 * (2 * 3 + 10) + 1.5 + 4 + 6 + 2 * 3.14159265 + 2, rel=1e-6)
    assert not is_recalled(first.run)
    assert (old in HEAD + SIMPLE) or not old
    second = load((HEAD + SIMPLE).replace(old, new, 1) if old else SIMPLE)
    found = second.run(2.0)
    assert is_recalled(second.run) is same
    ti.init(offline_cache=False)
    fresh = load((HEAD + SIMPLE).replace(old, new, 1) if old else SIMPLE)
    assert fresh.run(2.0) == found
    assert not is_recalled(fresh.run)


FIELDS = """
x = ti.field(ti.f32, shape=(4,), needs_grad=True)
y = ti.field(ti.f32, shape=(4,))

@ti.kernel
def run():
    for i in x:
        y[i] += x[i] + 1

def main():
    x.fill(2)
    y.fill(5)
    run()
    return y.to_numpy().tolist()
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("shape=(4,)", "shape=(4,)  ", True),
        ("y = ti.field(ti.f32, shape=(4,))", "y = ti.field(ti.f32, shape=(6,))", False),
        ("y = ti.field(ti.f32", "y = ti.field(ti.f64", False),
        ("y = ti.field(ti.f32, shape=(4,))", "y = x", False),
        (", needs_grad=True", "", False),
        ("x = ti.field(ti.f32, shape=(4,), needs_grad=True)", "x = ti.field(ti.i32, shape=(4,))", False),
    ],
)
def test_fields_count_by_type_and_layout(load: Any, old: str, new: str, same: bool) -> None:
    first = load(FIELDS)
    assert first.main() == [8, 8, 8, 8]
    second = load(FIELDS.replace(old, new, 1))
    found = second.main()
    assert is_recalled(second.run) is same
    assert found[:4] == ([11, 11, 11, 11] if new == "y = x" else [8, 8, 8, 8])
    assert first.main() == [8, 8, 8, 8], "the code is bound to the memory of its own fields"


def test_two_names_for_one_field_are_not_two_fields(load: Any) -> None:
    """Fields are declared not to alias; one under two names must not run such code."""
    text = """
x = ti.field(ti.i32, shape=8)
y = {}

@ti.kernel
def run():
    for _ in range(1):
        for i in range(7):
            y[i + 1] = x[i] + 1
"""
    apart = load(text.format("ti.field(ti.i32, shape=8)"))
    apart.run()
    assert apart.y.to_numpy().tolist() == [0] + [1] * 7
    same = load(text.format("x"))
    same.run()
    assert not is_recalled(same.run)
    assert same.x.to_numpy().tolist() == list(range(8))


CLASS = """
class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

@dataclasses.dataclass
class Settings:
    scale: float = 2.0

class Part:
    def __init__(self):
        self.offset = 5

class Sim:
    def __init__(self):
        self.n = 3
        self.mode = Mode.FAST
        self.settings = Settings()
        self.parts = [Part(), Part()]
        self.x = ti.field(ti.f32, shape=4)

    @ti.func
    def scaled(self, v):
        return v * self.settings.scale

    @ti.kernel
    def run(self) -> ti.f32:
        s = 0.0
        for i in range(self.n):
            s += self.scaled(1.0) + self.parts[1].offset
        if ti.static(self.mode == Mode.FAST):
            s += 100
        return s

sim = Sim()
"""


@pytest.mark.parametrize(
    ("change", "expected", "same"),
    [
        ("", 121, True),
        ("sim.n = 2", 114, False),
        ("sim.mode = Mode.SLOW", 21, False),
        ("sim.settings.scale = 3.0", 124, False),
        ("sim.settings = Settings(2.0)", 121, True),
        ("sim.parts[1].offset = 6", 124, False),
        ("sim.parts[0].offset = 6", 121, True),
        ("sim.parts[0] = sim.parts[1]", 121, False),
        ("sim.x = ti.field(ti.f32, shape=9)", 121, True),
        ("sim.other = 1", 121, True),
    ],
)
def test_attributes_count_as_far_as_they_are_read(load: Any, change: str, expected: float, same: bool) -> None:
    first = load(CLASS)
    assert first.sim.run() == 121
    second = load(CLASS + change)
    assert second.sim.run() == expected
    assert is_recalled(second.Sim.run) is same


def test_what_python_computes_while_compiling_is_never_taken_for_known(load: Any) -> None:
    text = """
import helper

class Sim:
    k = {k}
    def count(self):
        return self.k

sim = Sim()

@ti.kernel
def by_method() -> ti.i32:
    s = 0
    for _ in ti.static(range(sim.count())):
        s += 1
    return s

@ti.kernel
def by_function() -> ti.i32:
    return ti.static(helper.double({k} - {k} + 4))

@ti.kernel
def by_question() -> ti.i32:
    return 1 if ti.static(hasattr(sim, "extra")) else 0
"""
    first = load(text.format(k=2), helper="def double(v): return 2 * v")
    assert (first.by_method(), first.by_function(), first.by_question()) == (2, 8, 0)
    second = load(text.format(k=3) + "\nSim.extra = 1\n", helper="def double(v): return 20 * v")
    assert (second.by_method(), second.by_question()) == (3, 1)
    third = load(text.format(k=2), helper="def double(v): return 20 * v")
    assert third.by_function() == 80
    assert not any(map(is_recalled, (second.by_method, second.by_question, third.by_function)))


def test_functions_and_constants_of_other_modules(load: Any) -> None:
    text = """
import library

@ti.kernel
def run(a: ti.i32) -> ti.i32:
    return library.twice(a) + library.N
"""
    library = "N = 1\n@ti.func\ndef twice(a): return a * 2 * M\nM = 1\n"
    assert load(text, library=library).run(5) == 11
    same = load(text, library=library)
    assert same.run(5) == 11
    for old, new, expected in (("N = 1", "N = 2", 12), ("M = 1", "M = 3", 31), ("a * 2", "a * 4", 21)):
        changed = load(text, library=library.replace(old, new))
        assert changed.run(5) == expected, new
        assert not is_recalled(changed.run)


def test_the_languages_own_device_functions(load: Any) -> None:
    text = """
@ti.kernel
def run(a: ti.f32) -> ti.f32:
    m = ti.Matrix([[a, 1.0], [0.0, 2.0]])
    U, S, V = ti.svd(m)
    return S[0, 0] * S[1, 1]
"""
    first, second = load(text), load(text)
    assert first.run(3.0) == pytest.approx(6, rel=1e-5)
    assert second.run(3.0) == first.run(3.0)
    assert is_recalled(second.run)


def test_the_modules_of_the_language(load: Any) -> None:
    text = """
@ti.kernel
def run(a: ti.f32) -> ti.f32:
    return ti.math.mix(a, ti.math.pi, 0.5)
"""
    assert load(text).run(1.0) == pytest.approx((1 + 3.14159265) / 2)
    del sys.modules["tinote.math"]
    vars(ti).pop("math")
    second = load(text)
    assert second.run(1.0) == pytest.approx((1 + 3.14159265) / 2)
    assert is_recalled(second.run)


def test_annotations_of_variables_and_those_kept_as_text(load: Any) -> None:
    text = """
T = ti.f32

@ti.func
def half(v: "T") -> "T":
    return v / 2

@ti.kernel
def run(a: "T") -> "T":
    b: T = 16777217
    return b - 16777216 + half(a)
"""
    assert load(text).run(2.0) == 1.0
    wide = load(text.replace("T = ti.f32", "T = ti.f64"))
    assert wide.run(2.0) == 2.0
    assert not is_recalled(wide.run)
    again = load(text)
    assert again.run(2.0) == 1.0


def test_templates(load: Any) -> None:
    text = """
a = ti.field(ti.i32, shape=3)
b = ti.field(ti.i32, shape=5)

@ti.kernel
def add(x: ti.template(), k: ti.template(), n: ti.i32):
    for i in x:
        x[i] += k * n
"""
    first = load(text)
    first.add(first.a, 2, 3)
    second = load(text)
    second.add(second.a, 2, 4)
    assert is_recalled(second.add)
    assert second.a.to_numpy().tolist() == [8, 8, 8]
    second.add(second.b, 2, 4)
    second.add(second.a, 3, 1)
    assert second.b.to_numpy().tolist() == [8] * 5
    assert second.a.to_numpy().tolist() == [11] * 3


def test_options_count(load: Any) -> None:
    text = """
@ti.kernel
def run(a: ti.i32) -> float:
    return 1 / 3 * a
"""
    first = load(text).run(1)
    ti.init(default_fp=ti.f64)
    wide = load(text)
    assert wide.run(1) == 1 / 3 != first
    assert not is_recalled(wide.run)
    ti.init(random_seed=4)
    other_seed = load(text)
    assert other_seed.run(1) == first
    assert is_recalled(other_seed.run)


def test_locations_follow_the_text(load: Any) -> None:
    text = """
x = ti.field(ti.i32, shape=4)

@ti.func
def read(i):
    return x[i]

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    print("n is", n)
    assert n != 3, f"not {n}"
    return read(n)
"""
    load(text).run(1)
    moved = load("\n\n\n" + text)
    with pytest.raises(KernelIndexError, match=r"index 7 is out of bounds for axis 0 of 'x' of shape \(4,\)") as caught:
        moved.run(7)
    assert is_recalled(moved.run)
    lines = Path(moved.__file__).read_text().splitlines()
    assert lines[caught.value.span.line - 1].strip() == "return x[i]"
    assert caught.value.span.inlined_at is not None
    assert lines[caught.value.span.inlined_at.line - 1].strip() == "return read(n)"
    assert caught.value.span.file == moved.__file__
    with pytest.raises(ti.TaichiAssertionError, match="not 3"):
        moved.run(3)


def test_prints_and_random_numbers(load: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
@ti.kernel
def run(n: ti.i32, v: ti.f32) -> ti.f32:
    print("n", n, f"{v} m", 0.1)
    return ti.random() + v
"""
    ti.init(random_seed=7)
    first = load(text)
    values = [first.run(1, 2.5), first.run(2, 0.5)]
    ti.init(random_seed=7)
    second = load(text)
    assert [second.run(1, 2.5), second.run(2, 0.5)] == values
    assert is_recalled(second.run)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == lines[2:]


def test_gradients_and_tapes_need_no_passes(load: Any) -> None:
    text = """
x = ti.field(ti.f32, shape=4, needs_grad=True)
U = ti.field(ti.f32, shape=(), needs_grad=True)
hidden = ti.field(ti.f32, shape=4)

@ti.kernel
def square():
    for i in x:
        U[None] += x[i] ** 2

@ti.kernel
def lose():
    for i in x:
        hidden[i] = x[i]

@ti.kernel
def use():
    for i in x:
        U[None] += hidden[i] * x[i]

def main():
    x.fill(3)
    with ti.ad.Tape(U):
        square()
    return x.grad.to_numpy().tolist()

def wrong():
    with ti.ad.Tape(U):
        lose()
        use()
"""
    assert load(text).main() == [6] * 4
    second = load(text)
    assert second.main() == [6] * 4
    (specialisation,) = second.square.specialisations()
    assert is_recalled(second.square)
    assert dict(specialisation.compiled())[Mode.GRADIENT].cached
    for module in (second, load(text)):
        with pytest.raises(DifferentiationError, match="hidden"):
            module.wrong()


def test_several_returns(load: Any) -> None:
    text = """
vec = ti.types.vector(2, ti.f32)

@ti.kernel
def run(a: ti.f32, v: vec) -> tuple[vec, ti.i32]:
    return v * a, 7
"""
    for module in (load(text), load(text)):
        vector, number = module.run(2.0, ti.Vector([1.0, 2.0]))
        assert (vector.to_list(), number) == ([2.0, 4.0], 7)
    assert is_recalled(module.run)


def test_warnings_are_given_again(load: Any) -> None:
    text = """
@ti.kernel
def run(a: ti.f32) -> ti.f32:
    s = ti.cast(0, ti.i32)
    s += a
    return s
"""
    for space in ("", "\n\n"):
        module = load(space + text)
        with pytest.warns(UserWarning) as found:
            module.run(1.5)
        assert is_recalled(module.run) is bool(space)
        assert [w.filename for w in found] == [module.__file__] * len(found)
        assert {Path(module.__file__).read_text().splitlines()[w.lineno - 1].strip() for w in found} == {"s += a"}


def test_a_changed_capture_recalls_or_compiles_its_own_version(load: Any) -> None:
    text = "N = 1\n@ti.kernel\ndef run() -> ti.i32:\n    return N\n"
    first = load(text)
    for n in (1, 2, 3):
        first.N = n
        assert first.run() == n
    second = load(text)
    for n in (1, 2, 3, 4):
        second.N = n
        assert second.run() == n
        assert is_recalled(second.run) is (n < 4)


def test_what_was_recalled_is_lowered_when_somebody_looks(load: Any) -> None:
    text = "N = 1\n@ti.kernel\ndef run() -> ti.i32:\n    return N + 41\n"
    load(text).run()
    second = load(text)
    second.run()
    (instance,) = second.run.instances
    assert "task" in second.run.ir() or "func run" in second.run.ir()
    assert second.run.llvm().count("define") >= 1
    third = load(text)
    third.run()
    (instance,) = third.run.instances
    third.N = 2
    with pytest.raises(KernelTypeError, match="has changed since this version was compiled"):
        instance.ir()
    assert third.run() == 43


def test_origin_tells_where_code_came_from(load: Any, cache: Path) -> None:
    text = "@ti.kernel\ndef run(a: ti.i32) -> ti.i32:\n    return a * 1234567\n"
    first = load(text)
    first.run(1)
    assert first.run.instances[0].origin is Origin.COMPILED
    second = load(text)
    second.run(1)
    assert second.run.instances[0].origin is Origin.MEMORY
    binary_cache._known.clear()
    third = load(text)
    assert third.run(2) == 2469134
    assert third.run.instances[0].origin is Origin.DISK
    assert third.run.instances[0].cache_hits == 1
    open_store().clear()
    binary_cache._known.clear()
    fourth = load(text)
    assert fourth.run(2) == 2469134
    assert fourth.run.instances[0].origin is Origin.COMPILED


def test_another_machine_compiles_its_own(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jit = sys.modules["tinote.runtime.jit"]
    text = "@ti.kernel\ndef run(a: ti.i32) -> ti.i32:\n    return a * 7654321\n"
    load(text).run(1)
    name = jit.machine_name()
    monkeypatch.setattr(jit, "machine_name", lambda: name.replace("LLVM", "another LLVM"))
    binary_cache._known.clear()
    other = load(text)
    assert other.run(1) == 7654321
    assert not is_recalled(other.run)
    assert other.run.instances[0].origin is Origin.COMPILED


def test_another_compiler_compiles_its_own(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recall = sys.modules["tinote.compiler.recall"]
    text = "@ti.kernel\ndef run(a: ti.i32) -> ti.i32:\n    return a * 555\n"
    load(text).run(1)
    monkeypatch.setattr(recall, "_compiler_stamp", lambda: "another")
    other = load(text)
    other.run(1)
    assert not is_recalled(other.run)


def test_the_cache_can_be_switched_off(load: Any, cache: Path) -> None:
    ti.init(offline_cache=False)
    text = "@ti.kernel\ndef run(a: ti.i32) -> ti.i32:\n    return a * 99\n"
    load(text).run(1)
    second = load(text)
    second.run(1)
    assert not is_recalled(second.run)
    assert open_store().usage().entries == 0
