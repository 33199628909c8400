"""One check for the checks of a window."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.checks.merge_checks import merge_checks
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.ir.nodes import Function
from tinote.ir.query import walk

HEAD = """
    buffer @x: i32 field (64)
    buffer @y: i32 field (4)
    func f(%b: i32, %n: i32):
"""


def merged(fn: Function) -> Function:
    """The pass on a function whose operations all come from one place in the source."""
    for op in walk(fn.region):
        op.loc = fn.loc
    return merge_checks(fn)


def program(lines: str) -> str:
    return HEAD + "".join(f"      {line}\n" for line in lines.strip("\n").splitlines())


def check(index: str, name: str, extent: str = "64i32") -> str:
    return f"""
%{name}.1: u1 = ge {index}, 0i32
%{name}.2: u1 = lt {index}, {extent}
%{name}.3: u1 = and %{name}.1, %{name}.2
check bounds "x" %{name}.3, {index}, {extent}
%{name}: i32 = load @x[{index}]"""


def test_a_window_of_three() -> None:
    after = program("""
%c: i32 = add %b, 1i32
%d: i32 = sub %b, 2i32
%s: u1 = ge %b, 2i32
%t: u1 = lt %b, 63i32
%first: i32 = add %b, -2i32
%last: i32 = add %b, 1i32
%shown: i32 = select %s, %last, %first
%u: u1 = and %s, %t
check bounds "x" %u, %shown, 64i32
%p: i32 = load @x[%b]
store @y[0i32], %p
%q: i32 = load @x[%c]
%r: i32 = load @x[%d]
store @y[1i32], %q
store @y[2i32], %r
""")
    before = program(
        "%c: i32 = add %b, 1i32\n%d: i32 = sub %b, 2i32"
        + check("%b", "p")
        + "\nstore @y[0i32], %p"
        + check("%c", "q")
        + check("%d", "r")
        + "\nstore @y[1i32], %q\nstore @y[2i32], %r"
    )
    becomes(lambda fn: eliminate_dead(merged(fn)), before, after)


APART = {
    "two bases": check("%b", "p") + check("%n", "q"),
    "two extents": check("%b", "p") + "\n%c: i32 = add %b, 1i32" + check("%c", "q", "32i32"),
    "a length known at launch": check("%b", "p", "%n") + "\n%c: i32 = add %b, 1i32" + check("%c", "q", "%n"),
    "a print between": check("%b", "p") + '\nprint "here"\n%c: i32 = add %b, 1i32' + check("%c", "q"),
    "a print in a branch between": check("%b", "p")
    + '\n%g: u1 = gt %p, 1i32\nif %g:\n  print "here"\n%c: i32 = add %b, 1i32'
    + check("%c", "q"),
    "an assertion between": check("%b", "p")
    + '\n%g: u1 = gt %p, 1i32\ncheck assert "no" %g\n%c: i32 = add %b, 1i32'
    + check("%c", "q"),
    "one side": '%g: u1 = lt %b, 64i32\ncheck bounds "x" %g, %b, 64i32\n%c: i32 = add %b, 1i32\n'
    '%h: u1 = lt %c, 64i32\ncheck bounds "x" %h, %c, 64i32',
    "a step so long that it may wrap": check("%b", "p") + "\n%c: i32 = add %b, 2000000000i32" + check("%c", "q"),
    "another branch": check("%b", "p")
    + "\n%g: u1 = gt %p, 1i32\nif %g:\n  %c: i32 = add %b, 1i32"
    + check("%c", "q").replace("\n", "\n  "),
}


@pytest.mark.parametrize("why", APART)
def test_what_stays_apart(why: str) -> None:
    stays(merged, program(APART[why]))
