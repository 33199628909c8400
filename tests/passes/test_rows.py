"""Loops over the cells of blocks as rows: `unflatten`, and `peel_borders` for what a row needs of the next block."""

from __future__ import annotations

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.peel_borders import peel_borders
from tinote.compiler.passes.loops.unflatten import unflatten
from tinote.ir.nodes import Load
from tinote.ir.query import walk

HEAD = """\
buffer @x: i32 field (6, 128)
buffer @y: i32 field (6, 128)
buffer @z: i32 field (8, 16)
buffer @w: i32 array (?, ?)
func f(%b: i32):
"""
#: All numbers are different.
CONTENTS = {"x": [[1000 * i + j for j in range(128)] for i in range(6)]}


def program(lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines.strip("\n").splitlines())


CELLS = """
for %c: i32 in 0i32 .. 128i32:
  %i: i32 = shr %c, 4i32
  %j: i32 = and %c, 15i32
"""


def test_a_loop_that_leaves_its_cell_becomes_a_nest() -> None:
    becomes(
        unflatten,
        program(
            CELLS
            + """
  %v: i32 = load @z[%i, %j]
  store @x[%b, %c], %v
"""
        ),
        program("""
for %i: i32 in 0i32 .. 8i32:
  for %j: i32 in 0i32 .. 16i32:
    %r: i32 = mul %i, 16i32
    %c: i32 = add %r, %j
    %v: i32 = load @z[%i, %j]
    store @x[%b, %c], %v
"""),
    )


@pytest.mark.parametrize(
    "lines",
    [
        CELLS + "\n  %s: i32 = add %i, %j\n  store @x[%b, %c], %s",  # it stays in its cell
        "for %c: i32 in 0i32 .. %b:\n  %i: i32 = shr %c, 4i32\n  %j: i32 = and %c, 15i32\n  store @z[%i, %j], %c",
        "for %c: i32 in 0i32 .. 16i32:\n  %i: i32 = shr %c, 2i32\n  %j: i32 = and %c, 3i32\n  store @z[%i, %j], %c",
        "for %c: i32 in 0i32 .. 120i32:\n  %i: i32 = shr %c, 4i32\n  %j: i32 = and %c, 15i32\n  store @z[%i, %j], %c",
        "for %c: i32 in 1i32 .. 128i32:\n  %i: i32 = shr %c, 4i32\n  %j: i32 = and %c, 15i32\n  store @z[%i, %j], %c",
    ],
)
def test_other_loops_stay(lines: str) -> None:
    stays(unflatten, program(lines))


@pytest.mark.parametrize("kind", ["for", "for reverse"])
@pytest.mark.parametrize("rows", [(2, 3, 16), (8, 9), (3, 5, 8)])
def test_nests_do_the_same(rows: tuple[int, ...], kind: str) -> None:
    """Any number of digits, powers of two or not."""
    count = 1
    lines: list[str] = []
    digits: list[str] = []
    for k, extent in enumerate(reversed(rows)):
        quotient = "%c"
        if count > 1:
            quotient = f"%q{k}"
            lines.append(f"  {quotient}: i32 = floordiv %c, {count}i32")
        if k < len(rows) - 1:
            lines.append(f"  %d{k}: i32 = mod {quotient}, {extent}i32")
            quotient = f"%d{k}"
        digits.append(quotient)
        count *= extent
    lines += [f"  %s: i32 = mul {digits[0]}, 7i32", f"  %e: i32 = add %s, {digits[-1]}"]
    lines += ["  %m: i32 = mod %e, 128i32", "  %o: i32 = load @x[1i32, %m]", "  %w: i32 = add %o, %c"]
    lines += ["  store @x[1i32, %m], %w"]
    text = program(f"{kind} %c: i32 in 0i32 .. {count}i32:\n" + "\n".join(lines))
    fn = agrees(unflatten, text, (0,), CONTENTS)
    assert sum(type(op).__name__ == "For" for op in walk(fn.region)) == len(rows)


def _row(extent: int, shift: int, target: str = "y", *, by_shift: bool = True) -> str:
    divide, rest = ("shr", "and") if by_shift else ("floordiv", "mod")
    by, modulus = (extent.bit_length() - 1, extent - 1) if by_shift else (extent, extent)
    return program(f"""
%q: i32 = and %b, 3i32
%first: i32 = mul %q, {extent}i32
for %k: i32 in 0i32 .. {extent}i32:
  %i: i32 = add %first, %k
  %t: i32 = add %i, {shift}i32
  %g: u1 = ge %t, 0i32
  if %g:
    %n: i32 = {divide} %t, {by}i32
    %c: i32 = {rest} %t, {modulus}i32
    %v: i32 = load @x[%n, %c]
    store @{target}[%q, %k], %v
""")


@pytest.mark.parametrize("b", [0, 1, 3])
@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize(("extent", "by_shift"), [(16, True), (8, True), (12, False), (16, False)])
def test_borders_are_read_before_the_row(extent: int, by_shift: bool, shift: int, b: int) -> None:
    fn = agrees(peel_borders, _row(extent, shift, by_shift=by_shift), (b,), CONTENTS)
    loads = [op for op in walk(fn.region) if isinstance(op, Load)]
    assert len(loads) == 2 and loads[0] in fn.region.body


@pytest.mark.parametrize(
    "text",
    [
        _row(16, 1, "x"),  # the row changes what it reads
        _row(16, 1, "w"),  # the array may be a view of it
        _row(16, 2),
        _row(4, 1),
        _row(16, 0),
        _row(16, 1).replace("mul %q, 16i32", "mul %q, 8i32"),  # not the first of a block
        _row(16, 1).replace("add %first, %k", "sub %first, %k"),
    ],
)
def test_other_rows_stay(text: str) -> None:
    stays(peel_borders, text)
