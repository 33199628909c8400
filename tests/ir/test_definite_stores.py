"""Which stores happen in every run, and what a function reads of the values that it finds."""

from __future__ import annotations

import math

import pytest

from tinote.ir.access import Accesses
from tinote.ir.access_region import effects_of
from tinote.ir.definite_stores import definite_stores, live_in_reads
from tinote.ir.parse import parse

HEAD = """\
buffer @x: f32 field (8)
buffer @g: f32 field (8, 4)
buffer @v: f32[2] field (8)
buffer @a: f32 array (?)
func f(%n: i32, %c: u1):
"""


def found(body: str) -> tuple[list[str], list[str]]:
    fn = parse(HEAD + body)
    accesses = Accesses(fn)
    stores, reads = definite_stores(fn, accesses), live_in_reads(fn, accesses)
    return [access.buffer.name for access in stores], [access.buffer.name for access in reads]


@pytest.mark.parametrize(
    ("body", "stores"),
    [
        pytest.param("  for parallel %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 0.0f32\n", ["x"], id="a loop"),
        pytest.param("  store @x[%n], 0.0f32\n", ["x"], id="an element known at launch"),
        pytest.param(
            "  %e: i32 = extent @a, 0\n  for parallel %i: i32 in 0i32 .. %e:\n    store @a[%i], 0.0f32\n",
            ["a"],
            id="all of an array",
        ),
        pytest.param(
            "  for parallel %i: i32 in 1i32 .. %n:\n    %j: i32 = sub %i, 1i32\n    store @x[%j], 0.0f32\n",
            ["x"],
            id="a range known at launch, shifted",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. 4i32:\n"
            "      store @g[%i, %j], 0.0f32\n",
            ["g"],
            id="a nest",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    store @v[%i][0], 0.0f32\n    store @v[%i][1], 0.0f32\n",
            ["v"],
            id="all components",
        ),
        pytest.param("  for %i: i32 in 0i32 .. 8i32:\n    store @v[%i][0], 0.0f32\n", [], id="one component"),
        pytest.param(
            "  for %i: i32 in 0i32 .. 8i32:\n    if %c:\n      store @x[%i], 0.0f32\n", [], id="under a branch"
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 4i32:\n    %j: i32 = mul %i, 2i32\n    store @x[%j], 0.0f32\n",
            [],
            id="every other element",
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 4i32:\n    store @g[%i, %i], 0.0f32\n",
            [],
            id="a diagonal is not its bounding region",
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 4i32:\n    for %j: i32 in 0i32 .. %i:\n      store @g[%i, %j], 0.0f32\n",
            [],
            id="a triangle is not its bounding region",
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. %n:\n      store @x[%i], 0.0f32\n",
            [],
            id="inside of a loop that may be empty",
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. 3i32:\n      store @x[%i], 0.0f32\n",
            ["x"],
            id="inside of a loop that is not",
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 8i32:\n    atomic add @x[%i], 1.0f32\n", [], id="to add is not to store"
        ),
        pytest.param(
            "  for %i: i32 in 0i32 .. 8i32:\n    %a: f32 = load @x[%i]\n    %k: i32 = cast %a\n"
            "    store @x[%k], 0.0f32\n",
            [],
            id="an index from memory",
        ),
    ],
)
def test_definite_stores(body: str, stores: list[str]) -> None:
    assert found(body)[0] == stores


def test_what_is_stored_before_is_not_read() -> None:
    clear = "  for parallel %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 0.0f32\n"
    part = "  for parallel %i: i32 in 0i32 .. 7i32:\n    store @x[%i], 0.0f32\n"
    use = "  for parallel %k: i32 in 0i32 .. 8i32:\n    atomic add @x[%k], 1.0f32\n    %a: f32 = load @v[%k][0]\n"
    assert found(clear + use)[1] == ["v"]
    assert found(use + clear)[1] == ["x", "v"]
    assert found(part + use)[1] == ["x", "v"]
    within = "  for parallel %i: i32 in 0i32 .. 8i32:\n    %a: f32 = load @x[%i]\n    store @x[%i], 0.0f32\n"
    assert found(within)[1] == ["x"]


@pytest.mark.parametrize(
    ("body", "work"),
    [
        pytest.param("  for parallel %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 0.0f32\n", 1, id="a store"),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    %a: f32 = load @x[%i]\n    %b: f32 = exp %a\n"
            "    store @x[%i], %b\n",
            17,
            id="a function",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. 4i32:\n"
            "      store @g[%i, %j], 0.0f32\n",
            1,
            id="a nest over elements",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. 4i32:\n      %a: f32 = load @x[%j]\n"
            "    store @x[%i], 0.0f32\n",
            5,
            id="a loop for each element",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    for %j: i32 in 0i32 .. %n:\n      %a: f32 = load @x[%j]\n"
            "    store @x[%i], 0.0f32\n",
            math.inf,
            id="a loop of unknown length",
        ),
        pytest.param(
            "  for parallel %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 0.0f32\n"
            "  for parallel %j: i32 in 0i32 .. 8i32:\n    atomic add @x[%j], 1.0f32\n",
            math.inf,
            id="an update",
        ),
    ],
)
def test_work(body: str, work: float) -> None:
    assert effects_of(parse(HEAD + body)).work == work
