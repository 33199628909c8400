"""Kernels that shader compilers and drivers trip over: on a software GPU they compute what the CPU does, or are refused
where they stand. Nothing ends the process, and nothing hangs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_gpu import agree, on_gpu
from tinote.errors import KernelIndexError, KernelMemoryError, KernelRuntimeError, KernelTargetError
from tinote.runtime import gpu
from tinote.runtime.slices import Pace


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    ti.init()


# ---- names

#: What WGSL, its compilers and our own text of a module have names for.
RESERVED = [
    *("var", "let", "fn", "array", "vec3", "mat4x4", "loop", "switch", "case", "default", "override", "enable"),
    *("requires", "texture_2d", "sampler", "ptr", "bitcast", "f32", "u32", "bool", "struct", "alias", "discard"),
    *("fallthrough", "const_assert", "storage", "private", "workgroup", "arena", "shared_arena", "block", "params"),
    *("scratch", "me", "stride", "groups", "at", "sp", "stacks", "begin", "end", "iteration", "iterations", "nan_bits"),
    *("inf_bits", "Wide", "wide_add", "task0", "results", "main", "v1", "c1", "n1", "a1", "s1", "sum1", "_", "__naga"),
    *("gl_Position", "SPIRV_Cross", "__reserved"),
]


def from_text(folder: Path, text: str, **names: Any) -> dict[str, Any]:
    """The names of a program that is written to a file, as kernels are read from there."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {"ti": ti, "__name__": "program", **names}
    exec(compile(text, str(program), "exec"), scope)
    return scope


@pytest.mark.parametrize("names", [RESERVED, ["größe", "θ", "数", "переменная", "ñ_1", "ℵ"]])
def test_names(names: list[str], tmp_path: Path) -> None:
    lines = ["@ti.kernel", f"def {names[0]}(x: ti.template(), {names[1]}: ti.i32) -> ti.i32:", "    for i in range(4):"]
    lines += [
        f"        {name} = i + {k} + {names[1] if k > 1 else 2}" for k, name in enumerate(names) if name != names[1]
    ]
    lines += ["        x[i] = " + " + ".join(name for name in names if name != names[1])]
    lines += [f"    return {names[1]}"]

    def program() -> Any:
        x = ti.field(ti.i32, shape=4, name=names[2])
        kernel = from_text(tmp_path, "\n".join(lines))[names[0]]
        return kernel(x, 7), x.to_numpy()

    agree(program, rtol=0, atol=0)


def test_texts_that_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    on_gpu()

    @ti.kernel
    def say():
        print('"; } /* \\ %s {} // \u2028 */ 数', 1)

    say()
    assert capsys.readouterr().out == '"; } /* \\ %s {} // \u2028 */ 数 1\n'


# ---- numbers

FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 3.4028235e38, 1.1754944e-38, 1e-45, 5e-324, 1e-60]


@pytest.mark.parametrize(("number", "dtype"), [*product(FLOATS, [ti.f32, ti.f64]), (1.7976931348623157e308, ti.f64)])
def test_floats_that_are_written(number: float, dtype: Any) -> None:
    def program() -> Any:
        x = ti.field(dtype, shape=2)

        @ti.kernel
        def write(other: dtype):
            for _ in range(1):
                x[0] = ti.cast(number, dtype)
                x[1] = other

        write(number)
        found = x.to_numpy()
        return np.isnan(found), np.nan_to_num(found).view(np.int32)

    agree(program, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [ti.i32, ti.i64, ti.i8])
def test_integers_at_their_ends(dtype: Any) -> None:
    least = -(2 ** (dtype.bits - 1))
    numbers = [least, least + 1, -1, 1, -least - 1]

    def program() -> Any:
        x = ti.field(dtype, shape=(len(numbers), len(numbers), 10))
        y = ti.field(dtype, shape=len(numbers))
        y.from_numpy(np.array(numbers).astype(x.to_numpy().dtype))

        @ti.kernel
        def compute():
            for i, j in ti.ndrange(5, 5):
                a, b = y[i], y[j]
                x[i, j, 0] = a // b
                x[i, j, 1] = a % b
                x[i, j, 2] = a + b
                x[i, j, 3] = a * b
                x[i, j, 4] = a - b
                x[i, j, 5] = -a
                x[i, j, 6] = abs(a)
                x[i, j, 7] = a >> (b & 7)
                x[i, j, 8] = a << (b & 7)
                x[i, j, 9] = ti.max(a, b) ^ ~ti.min(a, b)

        compute()
        return (x.to_numpy(),)

    agree(program, rtol=0, atol=0)


def test_constants_that_a_shaders_compiler_would_compute() -> None:
    def program() -> Any:
        x = ti.field(ti.i32, shape=8)

        @ti.kernel
        def compute():
            for _ in range(1):
                x[0] = ti.i32(-2147483648) // ti.i32(-1)
                x[1] = ti.i32(-2147483648) % ti.i32(-1)
                x[2] = ti.i32(2147483647) + ti.i32(1)
                x[3] = ti.i32(1) << ti.i32(31)
                x[4] = -ti.i32(-2147483648)
                x[5] = ti.cast(ti.f32(1e9) * ti.f32(2.0), ti.i32)
                x[6] = ti.i32(ti.u32(4294967295))
                x[7] = abs(ti.i32(-2147483648))

        compute()
        return (x.to_numpy(),)

    agree(program, rtol=0, atol=0)


# ---- sizes


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.i64, ti.u8, ti.u1, ti.f16])
@pytest.mark.parametrize("n", [2, 3, 32])
def test_large_local_arrays(n: int, dtype: Any) -> None:
    def program() -> Any:
        x = ti.field(ti.f32, shape=300)

        @ti.kernel
        def mix(k: ti.i32):
            for i in x:
                m = ti.Matrix.zero(dtype, n, n)
                other = ti.Matrix.zero(ti.i32, n, n)
                for j in range(k):
                    m[j % n, (i + j) % n] += ti.cast((i + 3 * j) % 5, dtype)
                    other[(i * j) % n, j % n] += j
                s = 0.0
                for a, b in ti.ndrange(n, n):
                    s += ti.cast(m[a, b], ti.f32) * (a + 2 * b) + other[b, a]
                x[i] = s

        mix(2 * n)
        return (x.to_numpy(),)

    agree(program)


def test_derivatives_through_large_local_arrays() -> None:
    def program() -> Any:
        x = ti.field(ti.f32, shape=40, needs_grad=True)
        loss = ti.field(ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def mix(k: ti.i32):
            for i in x:
                m = ti.Vector.zero(ti.f32, 30)
                for j in range(k):
                    m[(i * j) % 30] += x[i] * m[(i + j) % 30] + ti.sin(x[(i + j) % 40])
                for j in range(30):
                    loss[None] += m[j] * m[j]

        x.from_numpy(np.linspace(-1, 1, 40, dtype=np.float32))
        with ti.ad.Tape(loss):
            mix(9)
        return loss[None], x.grad.to_numpy()

    agree(program, rtol=1e-4, atol=1e-5)


def test_more_local_arrays_than_there_is_memory_for_are_refused() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=64)

    @ti.kernel
    def hold():
        for i in x:
            s = 0.0
            for k in ti.static(range(9)):
                m = ti.Matrix.zero(ti.f32, 128, 128)
                m[i, k] = i
                s += m[(i + k) % 128, k]
            x[i] = s

    with pytest.raises(KernelTargetError, match="an array of 16384 numbers among the variables of a kernel") as caught:
        hold()
    assert caught.value.span.line == hold.source.span.line + 5


def test_hundreds_of_fields(tmp_path: Path) -> None:
    def program() -> Any:
        fields = [ti.field(ti.f32, shape=3) for _ in range(300)]
        names = {f"f{k}": field for k, field in enumerate(fields)}
        text = ["@ti.kernel", "def add():", "    for i in range(3):"]
        text += [f"        f{k}[i] = f{k - 1}[i] + {k}" for k in range(1, 300)]
        from_text(tmp_path, "\n".join(text), **names)["add"]()
        return (fields[299].to_numpy(),)

    agree(program)


def test_many_arguments(tmp_path: Path) -> None:
    names = [f"a{k}" for k in range(120)]
    text = ["@ti.kernel", f"def add({', '.join(f'{name}: ti.i64' for name in names)}) -> ti.i64:"]
    text += ["    s = ti.i64(0)", "    for _ in range(1):", "        s += " + " + ".join(names), "    return s"]

    def program() -> Any:
        return (from_text(tmp_path, "\n".join(text))["add"](*range(120)),)

    agree(program, rtol=0, atol=0)


def test_more_arguments_than_a_binding_has_are_refused(tmp_path: Path) -> None:
    names = [f"a{k}" for k in range(9000)]
    text = ["@ti.kernel", f"def add({', '.join(f'{name}: ti.i64' for name in names)}) -> ti.i64:"]
    text += ["    s = ti.i64(0)", *[f"    s += {name}" for name in names], "    return s"]
    on_gpu()
    with pytest.raises(KernelTargetError, match="has more arguments and fields than a GPU takes"):
        from_text(tmp_path, "\n".join(text))["add"](*range(9000))


@pytest.mark.parametrize("depth", [30, 90, 120])
def test_deep_nesting(depth: int, tmp_path: Path) -> None:
    """Functions are part of their callers, so that the nesting of many adds up."""
    each = 10
    text = []
    for number in reversed(range(depth // each)):
        inner = f"f{number + 1}(x, n)" if number + 1 < depth // each else "x * 2 + n"
        text += ["@ti.func", f"def f{number}(x, n):", "    y = x"]
        text += [f"{'    ' * (k + 1)}if y + {k} > n:\n{'    ' * (k + 2)}y += {k}" for k in range(each)]
        text += [f"{'    ' * (each + 1)}y = {inner}", "    return y"]
    text += ["@ti.kernel", "def nest(n: ti.i32):", "    for i in field:", "        field[i] = f0(i, n)"]

    def program() -> Any:
        x = ti.field(ti.i32, shape=100)
        from_text(tmp_path, "\n".join(text), field=x)["nest"](5)
        return (x.to_numpy(),)

    agree(program, rtol=0, atol=0)


@pytest.mark.parametrize("depth", [18, 57, 90])
def test_branches_in_branches_that_store(depth: int, tmp_path: Path) -> None:
    """Mesa's driver for CPUs takes both sides of those that stand in more than 80 others."""
    text = ["@ti.kernel", "def nest(n: ti.i32):", " for i in field:", "  s = i + n"]
    text += [f"{' ' * (k + 2)}if s >= {k}:\n{' ' * (k + 3)}field[i] += 1" for k in range(depth)]

    def program() -> Any:
        x = ti.field(ti.i32, shape=100)
        from_text(tmp_path, "\n".join(text), field=x)["nest"](0)
        return (x.to_numpy(),)

    if depth <= 57:
        agree(program, rtol=0, atol=0)
        return
    on_gpu()
    with pytest.raises(
        KernelTargetError, match=r"code in more than 64 nested branches and loops cannot run on the GPU"
    ):
        program()


CHECKED = {
    "a kernel's own body": ("", "field[{at}] = s"),
    "a parallel loop": ("for i in field:", "field[i] = s + i"),
    "a loop in a loop": ("for i in field:\n for j in range(n - 3):", "field[i] = s + j"),
    "a branch in a loop that goes on": ("for i in field:\n for j in range(n):\n  if i != j:", "field[i] += s + j"),
    "a while loop": ("i = 0\nwhile i < n:\n i += 1", "field[i] = s + i"),
    "a sum": ("for i in field:", "total[None] += s"),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("where", CHECKED)
def test_more_checks_than_branches_may_be_nested(where: str, fails: bool, tmp_path: Path) -> None:
    """Each check that fails leaves the task, and those after it must not stand in its branch."""
    opening, ending = CHECKED[where]
    head = opening.split("\n") if opening else []
    body = ["s = 0", *["s = table[s + 1]"] * 100, ending.format(at=0)]
    last = head[-1] if head else ""
    indent = " " * (1 + len(last) - len(last.lstrip()) + last.endswith(":"))
    text = ["@ti.kernel", "def walk(n: ti.i32):", *[f" {line}" for line in head], *[indent + line for line in body]]

    def program() -> Any:
        field, table = ti.field(ti.i32, shape=20), ti.field(ti.i32, shape=101)
        total = ti.field(ti.i32, shape=())
        table.from_numpy(np.arange(101, dtype=np.int32) + (np.arange(101) == 98) * fails)
        walk = from_text(tmp_path, "\n".join(text), field=field, table=table, total=total)["walk"]
        if not fails:
            walk(5)
            return field.to_numpy(), total.to_numpy()
        with pytest.raises(KernelIndexError) as caught:
            walk(5)
        lines = str(caught.value).strip().split("\n")
        return (np.array([hash(line) for line in lines[1:]]),)

    agree(program, rtol=0, atol=0)


def test_long_expressions(tmp_path: Path) -> None:
    text = ["@ti.kernel", "def long(n: ti.i32):", "    for i in field:"]
    text += ["        field[i] = " + "(" * 90 + "i" + " + n) * 3" * 90]
    text += ["        field[i] += " + " + ".join(["i * n"] * 700)]

    def program() -> Any:
        x = ti.field(ti.i32, shape=10)
        from_text(tmp_path, "\n".join(text), field=x)["long"](5)
        return (x.to_numpy(),)

    agree(program, rtol=0, atol=0)


# ---- nothing, and much


def nothing() -> Any:
    empty, x = ti.field(ti.f32, shape=(0, 3)), ti.field(ti.f32, shape=5)

    @ti.kernel
    def over(a: ti.types.ndarray(), n: ti.i32) -> ti.i32:
        count = 0
        for i, j in empty:
            x[0] += empty[i, j] + 1
        for i in a:
            x[1] += a[i] + 1
        for _ in range(n):
            x[2] += 1
        for _ in range(5, -5):
            x[3] += 1
        for i in range(3):
            for _ in range(i, n):
                count += 1
        return count

    found = over(np.zeros(0, np.float32), 0), over(np.zeros(0, np.float32), -(2**31))
    empty.fill(3.0)
    return *found, x.to_numpy(), empty.to_numpy()


def test_nothing_at_all() -> None:
    agree(nothing, rtol=0, atol=0)


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Has an interrupt come after some slices; gives the iterations of each slice that has ended."""

    def after(slices: int) -> list[int]:
        ended: list[int] = []
        note = Pace.note

        def noting(pace: Pace, iterations: int, seconds: float) -> None:
            note(pace, iterations, seconds)
            ended.append(iterations)
            if len(ended) == slices:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(Pace, "note", noting)
        return ended

    return after


def test_billions_of_iterations_are_interrupted(interrupts: Callable[[int], list[int]]) -> None:
    on_gpu()
    x = ti.field(ti.u32, shape=16)

    @ti.kernel
    def count(first: ti.i32, last: ti.i32):
        for i in range(first, last):
            x[i & 15] += ti.u32(1)

    count(-8, 8)
    for first, last in (0, 2**31 - 1), (-(2**31), 2**31 - 1):
        x.fill(0)
        ended = interrupts(6)
        with pytest.raises(KeyboardInterrupt):
            count(first, last)
        assert len(ended) == 6
        assert x.to_numpy().sum() == sum(ended)


def test_the_last_of_billions_of_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices that begin shortly before the last iteration of as many as there can be."""
    on_gpu()
    x = ti.field(ti.i32, shape=3)
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def touch(first: ti.i32, last: ti.i32):
        for i in range(first, last):
            if i >= 2**31 - 4:
                x[i - (2**31 - 4)] += 1
            total[None] += 1

    dispatch = gpu.Device.dispatch
    begin = 2**32 - 2 - 600

    def late(device: gpu.Device, program: Any, number: int, params: bytearray, groups: int) -> None:
        if params[-12:-8] != b"\xff" * 4:
            params[-16:-12] = begin.to_bytes(4, "little")
            params[-12:-8] = (10_000).to_bytes(4, "little")
            groups = 4096
        dispatch(device, program, number, params, groups)

    monkeypatch.setattr(gpu.Device, "dispatch", late)
    touch(-(2**31), 2**31 - 1)
    assert x.to_numpy().tolist() == [1, 1, 1] and total[None] == 601


def test_more_iterations_than_a_word_counts_are_refused() -> None:
    on_gpu()
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def count(n: ti.i64):
        for i in range(n):
            x[i % 4] += 1

    count(8)
    assert x.to_numpy().tolist() == [2, 2, 2, 2]
    with pytest.raises(
        KernelRuntimeError, match=r"a loop of 2\*\*32 iterations or more cannot run in parallel"
    ) as caught:
        count((1 << 40) + 3)
        ti.sync()
    assert caught.value.span.line == count.source.span.line + 1
    assert x.to_numpy().tolist() == [2, 2, 2, 2]


def test_loops_without_an_end_are_ended() -> None:
    on_gpu()
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def forever(n: ti.i32):
        for i in x:
            while x[i] < n or n == n:
                x[i] += 1

    with pytest.raises(KernelRuntimeError, match="has ended this loop before its last iteration"):
        forever(7)
        ti.sync()


def test_stacks_beyond_all_memory_are_a_located_error() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def long(n: ti.i32):
        for i in x:
            s = x[i]
            for _ in range(n):
                s = s * ti.sin(s)
            loss[None] += s

    loss.grad[None] = 1.0
    with pytest.raises((KernelMemoryError, KernelRuntimeError)) as caught:
        long.grad(2**30)
        ti.sync()
    assert caught.value.span.line > long.source.span.line
