"""Checks of a sparse field are those of a dense one: the same errors and warnings, with the indices of the user."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelIndexError, TinoteError

N = 12
PLACES: dict[str, Callable[[], Any]] = {
    "pointer": lambda: ti.root.pointer(ti.ij, 3).dense(ti.ij, 4),
    "bitmasked": lambda: ti.root.bitmasked(ti.ij, N),
    "three levels": lambda: ti.root.pointer(ti.ij, (2, 3)).dense(ti.ij, (3, 1)).bitmasked(ti.ij, (2, 4)),
}


def _placed(field: Any, place: Callable[[], Any] | None, offset: int = 0) -> Any:
    (ti.root.dense(ti.ij, N) if place is None else place()).place(field, offset=(offset, offset) if offset else None)
    return field


def _index(x: Any, at: int) -> None:
    @ti.kernel
    def write(i: ti.i32) -> None:
        x[3, i] = 1.0

    write(at)


def _read_index(x: Any, at: int) -> None:
    @ti.kernel
    def read(i: ti.i32) -> ti.f32:
        return x[i, 5]

    read(-at)


def _python_index(x: Any, at: int) -> None:
    x[2, at] = 1.0


def _races(x: Any, at: int) -> None:
    @ti.kernel
    def first() -> None:
        for i in range(9):
            x[at + 7, at + 5] = i

    @ti.kernel
    def second() -> None:
        for i in range(8):
            x[at + i, at + 2] = x[at + i + 1, at + 2] + 1

    first()
    second()


#: A program, the type of numbers, the element's shape, the first index, and what is given to the program.
PROGRAMS: dict[str, tuple[Callable[[Any, int], None], Any, int, int]] = {
    "index": (_index, ti.f32, 0, 12),
    "index behind an offset": (_index, ti.f32, -4, 8),
    "negative index": (_read_index, ti.f32, 0, 1),
    "index in Python": (_python_index, ti.f32, 0, 12),
    "races": (_races, ti.f32, 0, 0),
    "races behind an offset": (_races, ti.f32, -4, -4),
}


def _said(name: str, place: Callable[[], Any] | None, *, debug: bool) -> list[str]:
    ti.init(debug=debug)
    program, dtype, offset, at = PROGRAMS[name]
    x = ti.field(dtype, name="x")
    _placed(x, place, offset)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program(x, at)
            found = []
        except TinoteError as error:
            found = [f"{type(error).__name__}: {error}"]
    return [*found, *[str(one.message) for one in caught]]


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_faults_and_races(program: str, place: str, debug: bool) -> None:
    wanted = _said(program, None, debug=debug)
    assert bool(wanted) == (debug or "races" not in program)
    assert _said(program, PLACES[place], debug=debug) == wanted


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("check", [True, "ignore"])
@pytest.mark.parametrize("place", PLACES)
def test_components_out_of_range(place: str, check: Any, debug: bool) -> None:
    """The component of an element is checked as its index is: what lies behind it is another element."""
    ti.init(debug=debug, bounds_check=check)
    x = _placed(ti.Vector.field(3, ti.f32, name="x"), PLACES[place])

    @ti.kernel
    def store(c: ti.i32) -> None:
        x[5, 6][c] = 1.0

    @ti.kernel
    def add(c: ti.i32) -> None:
        x[5, 6][c] += 1.0

    @ti.kernel
    def read(c: ti.i32) -> ti.f32:
        return x[5, 6][c]

    @ti.kernel
    def sweep(c: ti.i32) -> None:
        for i, j in x:
            x[i, j][c] = 1.0

    x[5, 6] = [7.0, 8.0, 9.0]
    for kernel in (store, add, read, sweep):
        for c in (3, -1):
            if check == "ignore":
                assert not kernel(c)
                continue
            with pytest.raises(KernelIndexError, match=f"index {c} is out of bounds for axis 2 of 'x'"):
                kernel(c)
    values = x.to_numpy()
    assert values[5, 6].tolist() == [7.0, 8.0, 9.0]
    assert np.count_nonzero(values) == 3
    if check == "ignore":
        with pytest.warns(UserWarning, match="reads out of bounds gave 0"):
            ti.reset()


def test_levels_in_another_order_than_their_letters() -> None:
    """Indices follow the letters, as in the dialect, and an index out of range says so."""
    for place in (ti.root.dense, ti.root.pointer):
        x = ti.field(ti.f32, name="x")
        place(ti.l, 5).dense(ti.i, 3).place(x)

        @ti.kernel
        def run(n: ti.i32, x: ti.template()) -> None:  # pyright: ignore[reportInvalidTypeForm]
            for t in range(n):
                for i in range(3):
                    x[t, i] = 10 * t + i

        assert x.shape == (3, 5)
        run(3, x)
        assert x[2, 1] == 21
        for act in (lambda x=x: run(5, x), lambda x=x: x[4, 0]):
            with pytest.raises(KernelIndexError, match=r"indices follow the letters.*: x\[i, l\], not \[l, i\]"):
                act()
    y = ti.field(ti.f32)
    ti.root.dense(ti.i, 3).dense(ti.j, 5).place(y)
    with pytest.raises(KernelIndexError) as caught:
        _ = y[3, 0]
    assert "letters" not in str(caught.value)
