"""The bounds checks of unrolled subscripts, of which there is one for each window."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelAssertionError, KernelIndexError


@pytest.fixture
def x() -> Any:
    field = ti.field(ti.i32, shape=16, name="x")
    field.from_numpy(np.arange(16, dtype=np.int32))
    return field


@pytest.mark.parametrize("base", [-(2**31), -3, -2, -1, 0, 1, 5, 13, 14, 15, 16, 2**31 - 2, 2**31 - 1])
def test_the_window_of_a_static_loop(x: Any, base: int) -> None:
    @ti.kernel
    def run(at: ti.i32) -> ti.i32:
        total = 0
        for k in ti.static(range(-1, 3)):
            total += x[at + k]
        return total

    touched = [(base + k + 2**31) % 2**32 - 2**31 for k in range(-1, 3)]
    wrong = [k for k in touched if not 0 <= k < 16]
    if not wrong:
        assert run(base) == sum(touched)
        return
    with pytest.raises(KernelIndexError) as raised:
        run(base)
    assert any(f"index {k} " in str(raised.value) for k in wrong)
    assert "x[at + k]" in str(raised.value)


def test_subscripts_at_two_places_are_reported_where_they_are(x: Any) -> None:
    @ti.kernel
    def run(at: ti.i32) -> ti.i32:
        first = x[at]
        second = x[at + 1]
        return first + second

    assert run(14) == 29
    with pytest.raises(KernelIndexError, match="index 16 ") as raised:
        run(15)
    assert "second = x[at + 1]" in str(raised.value)


def test_an_assertion_between_the_subscripts_of_a_window_comes_first(x: Any) -> None:
    @ti.kernel
    def run(at: ti.i32) -> ti.i32:
        total = 0
        for k in ti.static(range(2)):
            assert at + k < 16, "too far"
            total += x[at + k]
        return total

    with pytest.raises(KernelAssertionError, match="too far"):
        run(15)
