"""WGSL: what is made of kernels and their gradients is what GPUs' compilers accept, and what cannot be said is refused
where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinote as ti
from tests.codegen.adapters import validate
from tinote.compiler.codegen.wgsl.features import Features
from tinote.compiler.codegen.wgsl.maths import TEXTS
from tinote.compiler.codegen.wgsl.module import generate
from tinote.compiler.codegen.wgsl.primitives import Provided
from tinote.compiler.codegen.wgsl.types import literal, words_of
from tinote.compiler.codegen.wgsl.wide import TEXTS as WIDE_TEXTS
from tinote.compiler.inspect.stages import wgsl_of
from tinote.compiler.pipeline import gpu_steps_for, run_pipeline
from tinote.compiler.requests import PRIMAL
from tinote.config import Config
from tinote.errors import KernelTargetError
from tinote.ir.nodes import Lit
from tinote.ir.types import SCALARS, f16, f32, f64, i8, i32, i64, u1, u64


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    ti.init()
    yield
    ti.init()


def sums() -> tuple[Any, tuple[Any, ...]]:
    x = ti.field(ti.f32, shape=8, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def sums(n: ti.i32):
        for i in x:
            s = 0.0
            for j in range(n):
                s += ti.sin(x[i] * j)
            total[None] += s * x[(i + 1) % 8]

    return sums, (3,)


def loops_without_bound() -> tuple[Any, tuple[Any, ...]]:
    x = ti.field(ti.f32, shape=8, needs_grad=True)

    @ti.kernel
    def loops_without_bound():
        for i in x:
            s = x[i]
            while s < 10.0:
                s = s * s + ti.exp(s) + 1.0
            x[i] += s

    return loops_without_bound, ()


def vectors() -> tuple[Any, tuple[Any, ...]]:
    x = ti.Vector.field(3, ti.f32, shape=(4, 5), needs_grad=True)
    m = ti.Matrix.field(3, 3, ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def vectors(k: ti.i32):
        for i, j in x:
            a = m[None] @ x[i, j]
            a[k % 3] = a.norm()
            x[i, j] = a / (1.0 + a.dot(a))

    return vectors, (1,)


def narrow_types() -> tuple[Any, tuple[Any, ...]]:
    a = ti.field(ti.u8, shape=10)
    b = ti.field(ti.i16, shape=10)
    c = ti.field(ti.f16, shape=10)
    d = ti.field(ti.u1, shape=10)
    e = ti.field(ti.i64, shape=10)

    @ti.kernel
    def narrow_types(n: ti.i64) -> ti.i64:
        for i in range(10):
            a[i] += ti.u8(i)
            b[i] = ti.i16(a[i]) << 3
            c[i] = ti.f16(b[i]) * 0.5
            d[i] = c[i] > 1.0
            e[i] = (n * i) // 3 % 7
        return e[3] + n

    return narrow_types, (1 << 40,)


def arrays() -> tuple[Any, tuple[Any, ...]]:
    given = ti.ndarray(ti.f32, shape=(3, 4))

    @ti.kernel
    def arrays(a: ti.types.ndarray(dtype=ti.f32, ndim=2), scale: ti.f32) -> ti.f32:
        s = 0.0
        for i, j in ti.ndrange(a.shape[0], a.shape[1]):
            a[i, j] *= scale
            s += a[i, j]
            assert a[i, j] < 1e9, f"{a[i, j]} at {i}"
        return s

    return arrays, (given, 2.0)


def chance_and_prints() -> tuple[Any, tuple[Any, ...]]:
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def chance_and_prints():
        for i in x:
            x[i] = ti.random() + ti.atan2(x[i], 2.0) ** 1.5
            print("element", i, f"{x[i]:.3f}")

    return chance_and_prints, ()


MADE: list[Callable[[], tuple[Any, tuple[Any, ...]]]] = [
    sums,
    loops_without_bound,
    vectors,
    narrow_types,
    arrays,
    chance_and_prints,
]
DIFFERENTIABLE = [sums, loops_without_bound, vectors]


@pytest.mark.parametrize("make", MADE)
def test_kernels_are_valid(make: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    kernel, arguments = make()
    kernel(*arguments) if make is not chance_and_prints else kernel.specialise_by_types()
    validate(wgsl_of(kernel.specialise(*arguments), gradient=False).text)


@pytest.mark.parametrize("make", DIFFERENTIABLE)
def test_gradients_are_valid(make: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    kernel, arguments = make()
    validate(wgsl_of(kernel.specialise(*arguments), gradient=True).text)


def test_every_function_of_our_own_is_valid() -> None:
    provided = Provided()
    for name in (*TEXTS, *WIDE_TEXTS):
        provided.provide(name)
    head = (
        "var<private> nan_bits: u32 = 0x7fc00000u;\nvar<private> inf_bits: u32 = 0x7f800000u;\n"
        "alias Wide = vec2<u32>;\n"
    )
    validate(head + "\n".join(provided.texts.values()))


@pytest.mark.parametrize(
    ("value", "t", "text"),
    [
        (-(2**31), i32, "i32(-2147483648)"),
        (-3, i8, "(-3i)"),
        (-1, i64, "Wide(4294967295u, 4294967295u)"),
        (1 << 63, u64, "Wide(0u, 2147483648u)"),
        (True, u1, "true"),
        (-0.0, f32, "(-0.0f)"),
        (float("inf"), f32, "bitcast<f32>(inf_bits)"),
        (float("nan"), f64, "f64(bitcast<f32>(nan_bits))"),
        (2.0**-149, f32, "bitcast<f32>(1u)"),
        (0.1, f64, "0.1lf"),
        (0.5, f16, "0.5f"),
    ],
)
def test_literals(value: float, t: Any, text: str) -> None:
    assert literal(Lit(value, t)) == text


def test_every_type_has_words() -> None:
    assert {words_of(t) for t in SCALARS} == {1, 2}


def test_names_of_the_user_do_not_meet_words_of_the_language() -> None:
    array = ti.field(ti.f32, shape=4)

    @ti.kernel
    def fn(var: ti.f32, let: ti.i32):
        for loop in array:
            bitcast = var + let
            arena = bitcast * 2
            array[loop] = arena

    fn(1.0, 2)
    validate(fn.wgsl())


def test_names_of_ours_do_not_meet_types() -> None:
    array = ti.field(ti.f32, shape=4)

    @ti.kernel
    def many(n: ti.i32):
        for i in array:
            for j in ti.static(range(40)):
                for k in range(n):
                    array[i] += k * j

    many(2)
    validate(many.wgsl())


def test_f64_is_refused_where_the_adapter_has_none() -> None:
    wide = ti.field(ti.f64, shape=4)

    @ti.kernel
    def doubles():
        for i in wide:
            wide[i] = 1.0

    fn, _ = run_pipeline(doubles.specialise_by_types().lowered.function, gpu_steps_for(PRIMAL), Config())
    with pytest.raises(KernelTargetError, match="'wide' of f64, which this GPU does not have, cannot run on the GPU"):
        generate(fn, Features(f64=False))
    validate(generate(fn, Features(f64=True)).text)


def test_a_function_that_is_not_there_is_refused_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TEXTS, "asin_f64")
    x = ti.field(ti.f64, shape=4)

    @ti.kernel
    def arcs():
        for i in x:
            x[i] = ti.asin(x[i])

    with pytest.raises(KernelTargetError, match="'asin' of f64 cannot run on the GPU") as caught:
        arcs.wgsl()
    assert caught.value.span.line == arcs.source.span.line + 2
