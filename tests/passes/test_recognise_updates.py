"""Read-modify-writes of elements that iterations share become atomic updates."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.updates.recognise_updates import recognise_updates
from tinote.ir.types import Scalar

HEAD = """\
buffer @x: i32 field (64)
buffer @h: i32 field (16)
buffer @b: i8 field (16)
buffer @f: f64 field (16)
func k(%n: i32, %v: f64):
  for parallel %i: i32 in 0i32 .. %n:
    %c: i32 = load @x[%i]
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines.strip("\n").splitlines())


#: What is left of an update once nothing uses it.
LOAD = "%a: i32 = load @h[%c]\n"
UPDATES = {
    "a sum": (LOAD + "%d: i32 = add %a, %i\nstore @h[%c], %d", LOAD + "atomic add @h[%c], %i"),
    "the other way round": (LOAD + "%d: i32 = add %i, %a\nstore @h[%c], %d", LOAD + "atomic add @h[%c], %i"),
    "a difference": (
        LOAD + "%d: i32 = sub %a, %i\nstore @h[%c], %d",
        LOAD + "%e: i32 = neg %i\natomic add @h[%c], %e",
    ),
    "bits": (LOAD + "%d: i32 = xor %a, %i\nstore @h[%c], %d", LOAD + "atomic xor @h[%c], %i"),
    "in a branch": (
        "%t: u1 = lt %i, 3i32\nif %t:\n  %a: i32 = load @h[%c]\n  %d: i32 = max %a, %i\n  store @h[%c], %d",
        "%t: u1 = lt %i, 3i32\nif %t:\n  %a: i32 = load @h[%c]\n  atomic max @h[%c], %i",
    ),
    "an index that is computed twice": (
        "%a: i32 = load @h[%c]\n%d: i32 = add %a, %i\n%e: i32 = load @x[%i]\nstore @h[%e], %d",
        "%a: i32 = load @h[%c]\n%e: i32 = load @x[%i]\natomic add @h[%e], %i",
    ),
    "a narrow one": (
        "%a: i8 = load @b[%c]\n%w: i32 = cast %a\n%d: i32 = add %w, %i\n%s: i8 = cast %d\nstore @b[%c], %s",
        "%a: i8 = load @b[%c]\n%e: i8 = cast %i\natomic add @b[%c], %e",
    ),
    "a narrow one by several steps": (
        "%a: i8 = load @b[%c]\n%d: i8 = sub %a, 3i8\n%w: i32 = cast %d\n%s: i32 = add %w, %i\n%z: i8 = cast %s\n"
        "store @b[%c], %z",
        "%a: i8 = load @b[%c]\n%f: i8 = neg 3i8\natomic add @b[%c], %f\n%e: i8 = cast %i\natomic add @b[%c], %e",
    ),
    "another element in between": (
        LOAD + "%d: i32 = add %a, %i\nstore @x[%i], %i\nstore @h[%c], %d",
        LOAD + "store @x[%i], %i\natomic add @h[%c], %i",
    ),
    "an extremum of floats": (
        "%a: f64 = load @f[%c]\n%d: f64 = min %a, %v\nstore @f[%c], %d",
        "%a: f64 = load @f[%c]\natomic min @f[%c], %v",
    ),
}
STAYING = {
    "an element of its own": "%a: i32 = load @x[%i]\n%d: i32 = add %a, %i\nstore @x[%i], %d",
    "what is read goes elsewhere": LOAD + "%d: i32 = add %a, %i\nstore @h[%c], %d\nstore @x[%i], %a",
    "what is written goes elsewhere": LOAD + "%d: i32 = add %a, %i\nstore @h[%c], %d\nstore @x[%i], %d",
    "twice itself": LOAD + "%d: i32 = add %a, %a\nstore @h[%c], %d",
    "made of the element": LOAD + "%b: i32 = load @h[%c]\n%e: i32 = mul %b, %i\n%d: i32 = add %a, %e\nstore @h[%c], %d",
    "the other difference": LOAD + "%d: i32 = sub %i, %a\nstore @h[%c], %d",
    "two operations": LOAD + "%b: i32 = mul %a, %i\n%d: i32 = add %b, 1i32\nstore @h[%c], %d",
    "another element": LOAD + "%d: i32 = add %a, %i\nstore @h[3i32], %d",
    "changed in between": LOAD + "%d: i32 = add %a, %i\nstore @h[3i32], %i\nstore @h[%c], %d",
    "a narrow extremum": (
        "%a: i8 = load @b[%c]\n%w: i32 = cast %a\n%d: i32 = max %w, %i\n%s: i8 = cast %d\nstore @b[%c], %s"
    ),
    "an extremum of floats that others read": (
        "%a: f64 = load @f[%c]\n%d: f64 = min %a, %v\nstore @f[%c], %d\n%e: f64 = load @f[%c]\n%g: i32 = cast %e\n"
        "store @x[%i], %g"
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name: str) -> None:
    before, after = UPDATES[name]
    becomes(recognise_updates, program(before), program(after))


@pytest.mark.parametrize("name", STAYING)
def test_what_is_no_update(name: str) -> None:
    stays(recognise_updates, program(STAYING[name]))


def test_loops_in_order_and_types_without_atomic_operations_stay() -> None:
    text = program(UPDATES["a sum"][0])
    stays(recognise_updates, text.replace("parallel ", ""))

    def narrow(t: Scalar) -> bool:
        return t.bits < 32

    stays(lambda fn: recognise_updates(fn, narrow), text)
