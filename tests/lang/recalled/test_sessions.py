"""Machine code from an earlier process does all that freshly compiled code does, and comes from where it should."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled
from tinote.compiler.driver import Origin, binary_cache
from tinote.compiler.requests import GRADIENT
from tinote.errors import KernelIndexError, KernelTypeError
from tinote.runtime.store import open_store


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
def copy():
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

def through():
    x.fill(3)
    with ti.ad.Tape(U):
        copy()
        use()
    return x.grad.to_numpy().tolist()
"""
    assert load(text).main() == [6] * 4
    second = load(text)
    assert second.main() == [6] * 4
    (specialisation,) = second.square.specialisations()
    assert is_recalled(second.square)
    assert dict(specialisation.results())[GRADIENT].cached
    # Through a field that has a gradient for the time of the tape.
    for module in (second, load(text)):
        assert module.through() == [6] * 4
    for kernel in (module.copy, module.use):
        assert is_recalled(kernel)
        assert all(result.cached for one in kernel.specialisations() for _, result in one.results())


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
    recall = sys.modules["tinote.compiler.cache.lookup"]
    text = "@ti.kernel\ndef run(a: ti.i32) -> ti.i32:\n    return a * 555\n"
    load(text).run(1)
    monkeypatch.setattr(recall, "package_stamp", lambda: "another")
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
