"""Integer overflow is reported with its line in debug mode, and wraps without it."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

import tinote as ti
from tinote.errors import KernelOverflowError

pytestmark = pytest.mark.optimised

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    "**": operator.pow,
    "//": operator.floordiv,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
}


def compiled(name: str, dtype: Any) -> Any:
    @ti.kernel
    def run(a: dtype, b: dtype) -> dtype:
        result = a
        if ti.static(name == "+"):
            result = a + b
        elif ti.static(name == "-"):
            result = a - b
        elif ti.static(name == "*"):
            result = a * b
        elif ti.static(name == "<<"):
            result = a << b
        elif ti.static(name == "**"):
            result = a**b
        elif ti.static(name == "//"):
            result = a // b
        elif ti.static(name == "neg"):
            result = -a
        else:
            result = abs(a)
        return result

    return run


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", OPERATIONS)
def test_exactly_what_does_not_fit_is_reported(name: str, bits: int) -> None:
    run, exact = compiled(name, getattr(ti, f"i{bits}")), OPERATIONS[name]
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    root = int(high**0.5)
    numbers = sorted(
        {low, low + 1, -root - 1, -3, -2, -1, 0, 1, 2, 3, 7, root, root + 1, high // 2 + 1, high - 1, high}
    )

    def meant(a: int, b: int) -> bool:
        return not (name == "//" and b == 0) and not (name in ("<<", "**") and not 0 <= b <= bits)

    cases = [(a, b) for a in numbers for b in numbers if meant(a, b)]
    wanted = {case: exact(*case) for case in cases}

    ti.init(debug=False)
    for case in cases:
        wrapped = (wanted[case] - low) % 2**bits + low
        assert run(*case) == wrapped, case

    ti.init(debug=True)
    for case in cases:
        if low <= wanted[case] <= high:
            assert run(*case) == wanted[case], case
        else:
            with pytest.raises(KernelOverflowError, match=r"integer overflow: .* does not fit into i"):
                run(*case)


def test_the_error_shows_the_line_and_the_numbers() -> None:
    ti.init(debug=True)

    @ti.kernel
    def run(a: ti.i32, b: ti.i32) -> ti.i32:
        c = a + 1
        return c * b  # here

    with pytest.raises(OverflowError) as caught:
        run(99_999, 100_000)
    text = str(caught.value)
    assert "return c * b  # here" in text
    assert "integer overflow: 100000 * 100000 does not fit into i32" in text


def test_what_wraps_by_its_meaning() -> None:
    ti.init(debug=True)

    @ti.kernel
    def hashed(a: ti.u32) -> ti.u32:
        return a * ti.u32(1664525) + ti.u32(1013904223) + ti.u32(ti.popcnt(a))

    @ti.kernel
    def drawn() -> ti.f32:
        s = 0.0
        for _ in range(100):
            s += ti.random() + ti.randn()
        return s

    a = 2**31 + 5
    assert hashed(a) == (a * 1664525 + 1013904223 + 3) % 2**32
    assert drawn() > -1000


def test_in_memory() -> None:
    ti.init(debug=True)
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def run(step: ti.i32):
        for _ in range(10):
            count[None] += step

    run(2**27)
    assert count[None] == 10 * 2**27
    with pytest.raises(KernelOverflowError, match="integer overflow: 1342177280"):
        run(2**30)


def test_what_is_not_asked_for_does_not_overflow() -> None:
    ti.init(debug=True)

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        b = a * a if a < 10_000 else 0
        if a < 10_000 and a * a > 0:
            b += 1
        return b

    assert run(100_000) == 0
    assert run(3) == 10


def test_under_a_tape() -> None:
    ti.init(debug=True)
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def run(k: ti.i32):
        for i in x:
            count[None] += 1
            loss[None] += x[i] ** 2 * (i + k)

    x.fill(1.0)
    with ti.ad.Tape(loss=loss):
        run(1)
    assert x.grad.to_numpy().tolist() == [2, 4, 6, 8]
    assert count[None] == 4
    with pytest.raises(KernelOverflowError):
        run(2**31 - 2)
