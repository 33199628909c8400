"""Recursion of `real_func`: results as in Python, at every step of the pipeline, and what is refused."""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled
from tests.lang.recursive_programs import PROGRAMS, REFUSED
from tinote.compiler.frontend.functions.activations import MAX_CALL_DEPTH
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import PRIMAL
from tinote.config import Config
from tinote.errors import KernelRecursionError, KernelSyntaxError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function, Task


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    yield
    ti.init()


def compiled(text: str, **options: Any) -> dict[str, Any]:
    ti.init(**options)
    linecache.cache["program.py"] = (len(text), None, text.splitlines(keepends=True), "program.py")
    namespace: dict[str, Any] = {"ti": ti, "np": np, "__name__": "program"}
    exec(compile(text, "program.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("arch", ["cpu", "python"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, arch: str) -> None:
    text, call, expected = PROGRAMS[name]
    namespace = compiled(text, arch=getattr(ti, arch), debug=True)
    found = eval(call, namespace)
    if isinstance(expected, str):  # what Python gives
        expected = eval(f"[{expected} for n in {call.split(' in ')[1].rstrip(']')}]", namespace)
    assert found == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, kind, message, hint = REFUSED[name]
    namespace = compiled(text)
    with pytest.raises(kind, match=message) as caught:
        namespace["run"](5)
    assert hint in getattr(caught.value, "hint", "")
    assert not getattr(caught.value, "others", ())


DEEP = """
@ti.real_func
def depth(n: ti.i32) -> ti.i32:
    return 0 if n == 0 else 1 + depth(n - 1)

@ti.real_func
def ping(n: ti.i32) -> ti.i32:
    return pong(n + 1)

@ti.real_func
def pong(n: ti.i32) -> ti.i32:
    return ping(n + 1)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return depth(n)

@ti.kernel
def each(n: ti.i32):
    for i in range(1000):
        depth(n)

@ti.kernel
def endless() -> ti.i32:
    return ping(0)
"""


@pytest.mark.parametrize("arch", ["cpu", "python"])
def test_the_limit_is_an_error_at_the_call(arch: str) -> None:
    namespace = compiled(DEEP, arch=getattr(ti, arch))
    run, each, endless = namespace["run"], namespace["each"], namespace["endless"]
    assert run(MAX_CALL_DEPTH) == MAX_CALL_DEPTH
    with pytest.raises(
        KernelRecursionError, match=f"`depth` is called from itself more than {MAX_CALL_DEPTH:,} times deep"
    ) as caught:
        run(MAX_CALL_DEPTH + 1)
    assert isinstance(caught.value, RecursionError) and isinstance(caught.value, RuntimeError)
    assert (caught.value.span.line, caught.value.span.column) == (4, 32)
    assert caught.value.span.chain()[-1].line == 16
    with pytest.raises(KernelRecursionError, match=r"`(ping|pong)` is called from itself"):
        endless()
    if arch == "cpu":
        each(100)
        with pytest.raises(KernelRecursionError):
            each(MAX_CALL_DEPTH + 1)
    assert run(7) == 7


def test_a_frame_needs_no_room_on_the_stack_of_a_thread() -> None:
    """A local array of 16 kB a call, 500 deep on each thread."""
    namespace = compiled(
        """
y = ti.field(ti.i32, shape=8)

@ti.real_func
def f(n: ti.i32, k: ti.i32) -> ti.i32:
    v = ti.Vector.zero(ti.i32, 4096)
    v[(n + k) % 4096] = n
    below = 0
    if n > 0:
        below = f(n - 1, k)
    return below + v[(n + k) % 4096]

@ti.kernel
def run(n: ti.i32):
    for i in y:
        y[i] = f(n, i)
"""
    )
    namespace["run"](500)
    assert namespace["y"].to_numpy().tolist() == [500 * 501 // 2] * 8


def test_one_that_does_not_call_itself_is_inlined() -> None:
    namespace = compiled(
        """
@ti.real_func
def square(x: ti.f32) -> ti.f32:
    return x * x

@ti.kernel
def run(x: ti.f32) -> ti.f32:
    return square(x) + square(2)
"""
    )
    assert namespace["run"](3) == 13
    assert "while" not in namespace["run"].ir()


def test_python_scope_runs_python() -> None:
    namespace = compiled(PROGRAMS["factorial"][0])
    assert namespace["factorial"](20) == math.factorial(20)
    # Its results are of the annotated type, as in kernels: they wrap around.
    assert namespace["factorial"](21) == math.factorial(21) - (3 << 64)
    with pytest.raises(RecursionError):
        namespace["factorial"](sys.getrecursionlimit() + 1)


def test_a_new_definition_takes_effect() -> None:
    text = PROGRAMS["factorial"][0]
    namespace = compiled(text)
    assert namespace["run"](5) == 120
    again = text[: text.index("@ti.kernel")].replace("n * factorial", "n + factorial")
    linecache.cache["again.py"] = (len(again), None, again.splitlines(keepends=True), "again.py")
    exec(compile(again, "again.py", "exec"), namespace)
    assert namespace["run"](5) == 16


def test_another_process_takes_the_code_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "64M")
    text = PROGRAMS["factorial"][0]
    for changed, expected, known in ((text, 120, False), (text, 120, True), (text.replace("n *", "n +"), 16, False)):
        run = compiled(changed)["run"]
        assert run(5) == expected
        assert is_recalled(run) is known
        with pytest.raises(KernelRecursionError, match="`factorial` is called from itself more than 10,000 times deep"):
            run(-1)
    with pytest.raises(KernelSyntaxError, match="calls itself"):
        compiled(text.replace("real_func", "func"))["run"](5)


def test_every_step_computes_the_same() -> None:
    """The interpreter runs what each step of the pipeline leaves."""
    run = compiled(PROGRAMS["loops around calls"][0])["run"]
    expected = [run(n) for n in range(6)]
    steps: list[Function] = []
    first = run.specialisations()[0].lowered.function
    run_pipeline(first, steps_for(PRIMAL), Config(debug=True), lambda snapshot: steps.append(snapshot.after))
    tried = [first, *[fn for fn in dict.fromkeys(steps) if not any(isinstance(op, Task) for op in fn.region.body)]]
    assert len(tried) > 5
    for fn in tried:
        assert [interpret(fn, [n], DictMemory())[0] for n in range(6)] == expected
