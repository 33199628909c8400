"""Branches in independent loops become selections where every iteration touches their elements anyway."""

from __future__ import annotations

import functools
from random import Random

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.if_convert import if_convert
from tinote.ir.nodes import If
from tinote.ir.query import walk
from tinote.ir.verify import Form

becomes_in_tasks = functools.partial(becomes, form=Form.TASKS)
stays_in_tasks = functools.partial(stays, form=Form.TASKS)
agrees_in_tasks = functools.partial(agrees, form=Form.TASKS)

HEAD = """\
buffer @x: i32 field (16)
buffer @y: i32 field (16)
buffer @v: f32[2] field (16)
func f(%n: i32):
  task parallel vectorize %i: i32 in 0i32 .. 16i32:
    %a: i32 = load @x[%i]
    %c: u1 = gt %a, %n
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines.strip("\n").splitlines())


def test_a_store_becomes_one_of_the_old_value() -> None:
    before = program("""
if %c:
  %b: i32 = sub %a, 1i32
  store @x[%i], %b
""")
    after = program("""
%b: i32 = sub %a, 1i32
%old: i32 = load @x[%i]
%new: i32 = select %c, %b, %old
store @x[%i], %new
""")
    becomes_in_tasks(if_convert, before, after)


FLAT = {
    "both sides write": """
%r: i32 = if %c:
  store @x[%i], 7i32
  yield 1i32
else:
  %b: i32 = load @x[%i]
  %d: i32 = mul %b, %b
  store @x[%i], %d
  yield %b
store @y[%i], %r
""",
    "branches in branches": """
if %c:
  store @x[%i], 3i32
  %d: u1 = lt %i, 5i32
  if %d:
    store @x[%i], 4i32
  else:
    %b: i32 = load @x[%i]
    %e: i32 = add %b, 100i32
    store @x[%i], %e
""",
    "updates and old values": """
if %c:
  %b: i32 = atomic plain add @x[%i], 5i32
  atomic plain max @x[%i], %b
else:
  atomic plain mul @x[%i], 3i32
""",
    "another component": """
store @v[%i][1i32], 1.0f32
if %c:
  store @v[%i][0i32], 2.0f32
""",
    "a division by a literal": """
if %c:
  %b: i32 = floordiv %a, 3i32
  store @x[%i], %b
""",
}
KEPT = {
    "an element that not every iteration touches": "if %c:\n  store @y[%i], 1i32",
    "a load of one": "%r: i32 = if %c:\n  %b: i32 = load @y[%a]\n  yield %b\nelse:\n  yield 0i32\nstore @x[%i], %r",
    "a division by what may be zero": "if %c:\n  %b: i32 = floordiv 5i32, %a\n  store @x[%i], %b",
    "a check": 'if %c:\n  %d: u1 = lt %a, 5i32\n  check bounds "y" %d, %a, 5i32\n  store @x[%i], %a',
    "much to compute": "if %c:\n  %b: f32 = cast %a\n  %d: f32 = pow %b, 2.5f32\n  %e: f32 = pow %d, 2.5f32\n"
    "  %g: i32 = cast %e\n  store @x[%i], %g",
    "a component that is known at run time only": "store @v[%i][1i32], 1.0f32\nif %c:\n  store @v[%i][%n], 2.0f32",
}


@pytest.mark.parametrize("what", FLAT)
def test_what_goes_means_the_same(what: str) -> None:
    for n in (-1, 3, 100):
        contents = {"x": [k * 7 % 11 - 3 for k in range(16)], "y": [1] * 16}
        fn = agrees_in_tasks(if_convert, program(FLAT[what]), (n,), contents)
        assert not any(isinstance(op, If) for op in walk(fn.region))


@pytest.mark.parametrize("why", KEPT)
def test_what_stays_a_branch(why: str) -> None:
    stays_in_tasks(if_convert, program(KEPT[why]))


def test_a_loop_that_is_not_independent_keeps_its_branches() -> None:
    text = program("if %c:\n  store @x[%i], 1i32").replace(" vectorize", "")
    stays_in_tasks(if_convert, text)


def random_body(random: Random) -> str:
    """Nested branches over two elements that every iteration touches, with loads, stores, updates and sums."""
    names = (f"%r{k}" for k in range(1000))
    lines: list[str] = []

    def fill(scope: list[str], depth: int, indent: str) -> list[str]:
        scope = list(scope)
        for number in range(random.randint(1, 4)):
            name, buffer = next(names), random.choice("xy")
            kind = random.choice(["load", "store", "update", "old", "sum", "if", "if"])
            kind = "if" if depth == number == 0 else kind
            if kind == "load":
                lines.append(f"{indent}{name}: i32 = load @{buffer}[%i]")
                scope.append(name)
            elif kind == "store":
                lines.append(f"{indent}store @{buffer}[%i], {random.choice(scope)}")
            elif kind in ("update", "old"):
                out = f"{name}: i32 = " if kind == "old" else ""
                prim = random.choice(["add", "max", "xor"])
                lines.append(f"{indent}{out}atomic plain {prim} @{buffer}[%i], {random.choice(scope)}")
                scope += [name] if out else []
            elif kind == "sum":
                lines.append(f"{indent}{name}: i32 = add {random.choice(scope)}, {random.choice(scope)}")
                scope.append(name)
            elif depth < 3:
                lines.append(f"{indent}{name}.c: u1 = lt {random.choice(scope)}, {random.choice(scope)}")
                lines.append(f"{indent}{name}: i32 = if {name}.c:")
                for side in ("then", "else"):
                    if side == "else":
                        lines.append(f"{indent}else:")
                    inner = fill(scope, depth + 1, indent + "  ")
                    lines.append(f"{indent}  yield {random.choice(inner)}")
                scope.append(name)
        return scope

    fill(["%a", "%i", "%n"], 0, "")
    return "\n".join([*lines, "%last: i32 = load @y[%i]", "store @y[%i], %last"])


@pytest.mark.parametrize("seed", range(40))
def test_random_branches(seed: int) -> None:
    contents = {"x": [k * 7 % 11 - 3 for k in range(16)], "y": [k * 5 % 13 - 6 for k in range(16)]}
    agrees_in_tasks(if_convert, program(random_body(Random(seed))), (seed % 7 - 3,), contents)
