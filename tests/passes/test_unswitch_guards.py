"""One test of a window where many guards hold at once."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.checks.unswitch_guards import unswitch_guards
from tinote.ir.verify import Form

HEAD = """
buffer @x: i32 field (64)
buffer @y: i32 field (64)
buffer @x.flat: i32 field (?) flat @x
buffer @outside: i32 private ()
buffer @outside.flat: i32 private (?) flat @outside
buffer @k: i32 field (8)
buffer @k.flat: i32 field (?) flat @k
func f(%n: i32):
  task parallel "f.0" %p: i32 in 0i32 .. 8i32:
    %p.1: i64 = cast %p
    %p.2: i64 = mul %p.1, 4i64
    %b: i32 = load @k.flat[%p.2]
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines.strip("\n").splitlines())


UPDATE = "atomic plain add @x.flat[0i64], 1i32"


def guard(index: str, name: str, extent: str = "64i32", what: str = UPDATE, outside: str = "") -> str:
    other = f"\nelse:\n  {outside}" if outside else ""
    return f"""
%{name}.1: u1 = ge {index}, 0i32
%{name}.2: u1 = lt {index}, {extent}
%{name}: u1 = and %{name}.1, %{name}.2
if %{name}:
  {what}{other}"""


SUMS = "%b.1: i32 = add %b, 1i32\n%b.2: i32 = sub %b, 2i32\n%b.3: i32 = add %b.1, 1i32"
MEMBERS = (("%b", "q"), ("%b.1", "r"), ("%b.2", "s"), ("%b.3", "t"))


def window(**options: str) -> str:
    return SUMS + "".join(guard(index, name, **options) for index, name in MEMBERS)


def indented(lines: str) -> str:
    return "".join(f"  {line}\n" for line in lines.strip("\n").splitlines())


def test_a_window_of_four() -> None:
    tested = """
%b.1: i32 = add %b, 1i32
%b.2: i32 = sub %b, 2i32
%b.3: i32 = add %b.1, 1i32
%q.1: u1 = ge %b, 0i32
%q.2: u1 = lt %b, 64i32
%q: u1 = and %q.1, %q.2
%low: u1 = ge %b, 2i32
%high: u1 = lt %b, 62i32
%all: u1 = and %low, %high
if likely %all:
"""
    straight = [UPDATE]
    for index, name in MEMBERS[1:]:
        straight += [f"%{name}.4: u1 = ge {index}, 0i32", f"%{name}.5: u1 = lt {index}, 64i32", UPDATE]
    guarded = f"if %q:\n  {UPDATE}" + "".join(guard(*member) for member in MEMBERS[1:])
    after = tested + indented("\n".join(straight)) + "else:\n" + indented(guarded)
    becomes(unswitch_guards, program(window()), program(after), Form.LOWERED)


STAYING = {
    "too few": SUMS + "".join(guard(*member) for member in MEMBERS[:3]),
    "they only read": SUMS
    + "".join(guard(index, name, what=f"%v.{name}: i32 = load @x.flat[0i64]") for index, name in MEMBERS),
    "the bound may be negative": window(extent="%n"),
    "they depend on each other": "\n".join(
        f"%b.{k}: i32 = load @k.flat[0i64]" + guard(f"%b.{k}", f"q{k}") for k in range(4)
    ),
    "each tests another index": "".join(f"\n%c{k}: i32 = load @k.flat[{4 * k}i64]" for k in range(4))
    + "".join(guard(f"%c{k}", f"q{k}") for k in range(4)),
    "the sum may wrap": window().replace("add %b, 1i32", "add %b, 1073741824i32").replace("sub %b, 2", "sub %b, 3"),
    "something else happens outside": window(outside="store @k.flat[0i64], 1i32"),
}


@pytest.mark.parametrize("why", STAYING)
def test_stays(why: str) -> None:
    stays(unswitch_guards, program(STAYING[why]), Form.LOWERED)
