"""Nests that add to neighbours become nests that sum up what each element gets."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.scatter_to_gather import scatter_to_gather
from tinote.compiler.passes.lowering.offload import offload
from tinote.compiler.passes.updates.demote_atomics import demote_atomics
from tinote.ir.nodes import Atomic, Function
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify
from tinote.remarks import Remark


def indivisible(fn: Function) -> int:
    """How many updates remain that threads could meet in."""
    updates = [op for op in walk(demote_atomics(offload(fn)).region) if isinstance(op, Atomic)]
    return sum(not op.plain for op in updates)


def test_the_middle_is_summed_up_and_the_rim_is_written_out() -> None:
    becomes(
        scatter_to_gather,
        """
        buffer @x: i32 field (64)
        buffer @y: i32 field (64)
        func f():
          for parallel %i: i32 in 1i32 .. 63i32:
            %a: i32 = load @x[%i]
            %n: i32 = add %i, 1i32
            %m: i32 = sub %i, 1i32
            atomic add @y[%n], %a
            atomic add @y[%m], %a
        """,
        """
        buffer @x: i32 field (64)
        buffer @y: i32 field (64)
        func f():
          %a: i32 = load @x[1i32]
          atomic add @y[0i32], %a
          %b: i32 = load @x[61i32]
          atomic add @y[62i32], %b
          %c: i32 = load @x[2i32]
          atomic add @y[1i32], %c
          %d: i32 = load @x[62i32]
          atomic add @y[63i32], %d
          for parallel %p: i32 in 2i32 .. 62i32:
            %q: i32 = add %p, -1i32
            %e: i32 = load @x[%q]
            %r: i32 = add %p, 1i32
            %g: i32 = load @x[%r]
            %s: i32 = add %e, %g
            atomic add @y[%p], %s
        """,
    )


WAVE = """
buffer @g: i32 field (4, 7, 9)
func f(%t: i32):
  for parallel %i: i32 in 1i32 .. 6i32:
    for parallel %j: i32 in 1i32 .. 8i32:
      %after: i32 = add %t, 1i32
      %before: i32 = sub %t, 1i32
      %a: i32 = load @g[%after, %i, %j]
      store @g[%after, %i, %j], 0i32
      %b: i32 = neg %a
      atomic add @g[%before, %i, %j], %b
      %e: i32 = add %i, 1i32
      %w: i32 = sub %i, 1i32
      %n: i32 = add %j, 1i32
      %s: i32 = sub %j, 1i32
      %c: i32 = mul %a, 3i32
      atomic add @g[%t, %e, %j], %c
      atomic add @g[%t, %w, %j], %c
      atomic add @g[%t, %i, %n], %c
      atomic add @g[%t, %i, %s], %c
      atomic add @g[%t, %i, %j], %a
"""


def test_a_wave_backwards() -> None:
    contents = {"g": [[[100 * t + 10 * i + j for j in range(9)] for i in range(7)] for t in range(4)]}
    for t in (1, 2):
        assert indivisible(agrees(scatter_to_gather, WAVE, (t,), contents)) == 0


def stencil(extents: Sequence[int], offsets: Sequence[Sequence[int]], bounds: Sequence[tuple[str, str]]) -> str:
    """A nest that adds x[i, j, …] times a number of its own to y at each offset; `bounds` as they are written."""
    shape = ", ".join(map(str, extents))
    lines = [f"buffer @x: i32 field ({shape})", f"buffer @y: i32 field ({shape})", "func f(%a: i32, %b: i32):"]
    lines += ["  %a0: i32 = max %a, 2i32", "  %lo: i32 = min %a0, 20i32"]
    lines += ["  %b0: i32 = max %b, 2i32", "  %hi: i32 = min %b0, 20i32"]
    for level, (lo, hi) in enumerate(bounds):
        lines.append("  " * (level + 1) + f"for parallel %i{level}: i32 in {lo} .. {hi}:")
    inside = "  " * (len(bounds) + 1)
    lines.append(inside + f"%v: i32 = load @x[{', '.join(f'%i{k}' for k in range(len(bounds)))}]")
    for number, offset in enumerate(offsets):
        for level, c in enumerate(offset):
            lines.append(inside + f"%p{number}_{level}: i32 = add %i{level}, {c}i32")
        lines.append(inside + f"%w{number}: i32 = mul %v, {number + 2}i32")
        index = ", ".join(f"%p{number}_{level}" for level in range(len(bounds)))
        lines.append(inside + f"atomic add @y[{index}], %w{number}")
    return "\n".join(lines) + "\n"


def numbers(extents: Sequence[int], rng: random.Random) -> object:
    return [numbers(extents[1:], rng) for _ in range(extents[0])] if extents else rng.randrange(100)


@pytest.mark.parametrize("seed", range(24))
def test_any_stencil_leaves_the_same_numbers(seed: int) -> None:
    """Offsets up to 2, in one to three dimensions, with literal bounds and others, wide and narrow and empty."""
    rng = random.Random(seed)
    rank = 1 + seed % 3
    extents = [24] if rank == 1 else [12] * rank if rank == 2 else [9] * 3
    offsets = {tuple(rng.randint(-2, 2) for _ in range(rank)) for _ in range(rng.randint(2, 5))} | {
        (0,) * rank,
        (1,) * rank,
    }
    runtime = seed % 2 == 1 and rank < 3
    bounds = [("2i32", f"{n - 2}i32") for n in extents]
    arguments = [(0, 0)]
    if runtime:
        extents = [24] * rank
        bounds[rng.randrange(rank)] = ("%lo", "%hi")
        arguments = [(2, 20), (5, 6), (9, 9), (12, 3), (4, 8)]
        bounds = [b if b[0] == "%lo" else ("2i32", "9i32") for b in bounds]
    text = stencil(extents, sorted(offsets), bounds)
    contents = {"x": numbers(extents, rng), "y": numbers(extents, rng)}
    for args in arguments:
        assert indivisible(agrees(scatter_to_gather, text, args, contents)) == 0


def test_the_contributions_of_a_turn_may_share_what_they_are_computed_from() -> None:
    text = """
buffer @x: i32 field (40)
buffer @k: i32 field ()
buffer @y: i32 field (40)
buffer @z: i32 field (40)
func f():
  for parallel %i: i32 in 3i32 .. 37i32:
    %a: i32 = load @x[%i]
    %c: i32 = load @k[]
    %b: i32 = mul %a, %c
    %n: i32 = add %i, 3i32
    %m: i32 = sub %i, 1i32
    %d: i32 = mul %b, %i
    atomic add @y[%n], %b
    atomic add @y[%m], %d
    atomic add @z[%i], %d
    atomic add @z[%m], %c
"""
    contents = {"x": [k * k for k in range(40)], "k": 7}
    assert indivisible(agrees(scatter_to_gather, text, (), contents)) == 0


def test_a_serial_loop_inside_is_as_good_if_sums_may_be_reordered() -> None:
    contents = {"g": [[[7 * t + 3 * i + j for j in range(9)] for i in range(7)] for t in range(4)]}
    for direction in ("for", "for reverse"):
        serial = WAVE.replace("    for parallel %j", f"    {direction} %j")
        assert indivisible(agrees(scatter_to_gather, serial, (1,), contents)) == 0
        floats = serial.replace(" i32 field", " f32 field").replace("%a: i32", "%a: f32").replace("%b: i32", "%b: f32")
        floats = floats.replace("%c: i32 = mul %a, 3i32", "%c: f32 = mul %a, 3.0f32").replace("], 0i32", "], 0.0f32")
        stays(scatter_to_gather, floats)
        assert indivisible(scatter_to_gather(parse(floats), fast_math=True)) == 0


LOOP = "for parallel %i: i32 in 1i32 .. 63i32:\n"
NEXT = "%n: i32 = add %i, 1i32\n"
BUFFERS = {"x": "i32 field (64)", "y": "i32 field (64)", "z": "i32 field (200)", "w": "i32 field (64, 64)"}
BUFFERS["r"] = "f32 field (64)"
STAYING = {
    "it reads what it adds to": NEXT + "%a: i32 = load @y[%i]\natomic add @y[%i], %a\natomic add @y[%n], %a",
    "it reads what other iterations write": NEXT
    + "%a: i32 = load @x[%n]\nstore @x[%i], 1i32\natomic add @y[%i], %a\natomic add @y[%n], %a",
    "it reads what it wrote": NEXT
    + "store @x[%i], 1i32\n%a: i32 = load @x[%i]\natomic add @y[%i], %a\natomic add @y[%n], %a",
    "it sets what it adds to": NEXT + "store @y[%i], 1i32\natomic add @y[%i], 2i32\natomic add @y[%n], 3i32",
    "each element has one iteration": "atomic add @y[%i], 1i32",
    "every second element": "%d: i32 = mul %i, 2i32\n%n: i32 = add %d, 1i32\n"
    + "atomic add @z[%d], 1i32\natomic add @z[%n], 1i32",
    "an index from memory": "%k: i32 = load @x[%i]\n%n: i32 = add %k, 1i32\n"
    + "atomic add @y[%k], 1i32\natomic add @y[%n], 1i32",
    "another operation": NEXT + "atomic mul @y[%i], 2i32\natomic mul @y[%n], 2i32",
    "the old value": NEXT + "%o: i32 = atomic add @y[%i], 2i32\n%q: i32 = atomic add @y[%n], 2i32\nstore @x[%i], %o",
    "too far apart": "%n: i32 = add %i, 9i32\natomic add @z[%i], 1i32\natomic add @z[%n], 1i32",
    "a branch": NEXT + "%t: u1 = gt %i, 5i32\nif %t:\n  atomic add @y[%i], 1i32\n  atomic add @y[%n], 1i32",
    "a place that may be any": NEXT
    + "%k: i32 = load @x[0i32]\natomic add @w[%k, %i], 1i32\natomic add @w[%i, %n], 1i32",
    "too expensive": NEXT
    + "%f: f32 = cast %i\n%a: f32 = sin %f\n%b: f32 = sin %a\n"
    + "%c: f32 = pow %b, %a\n%d: f32 = sin %c\n%e: f32 = pow %d, %c\n"
    + "atomic add @r[%i], %e\natomic add @r[%n], %e",
}  # fmt: skip


#: What a remark says of those that scatter to neighbours.
SAID = {
    "it reads what it adds to": "touches in another way what it adds to",
    "it reads what other iterations write": "changes what it computes sums from",
    "it reads what it wrote": "changes what it computes sums from",
    "it sets what it adds to": "touches in another way what it adds to",
    "too far apart": "more than 8 apart",
    "a branch": "has a branch",
    "too expensive": "would cost more than it saves",
}


@pytest.mark.parametrize("reason", STAYING)
def test_what_stays(reason: str) -> None:
    head = "".join(f"buffer @{name}: {kind}\n" for name, kind in BUFFERS.items())
    body = "".join(f"    {line}\n" for line in STAYING[reason].splitlines())
    said: list[Remark] = []
    stays(lambda fn: scatter_to_gather(fn, said.append), f"{head}func f():\n  {LOOP}{body}")
    assert len(said) == (reason in SAID)
    assert all(SAID[reason] in remark.text and not remark.done for remark in said)


def test_bounds_that_could_wrap_stay() -> None:
    text = stencil([24], [(0,), (1,)], [("%a", "%b")])
    stays(scatter_to_gather, text)


def test_an_update_that_cannot_be_gathered_stays_behind() -> None:
    text = """
buffer @x: i32 field (64)
buffer @y: i32 field (64)
buffer @h: i32 field (4)
func f():
  for parallel %i: i32 in 1i32 .. 63i32:
    %a: i32 = load @x[%i]
    %n: i32 = add %i, 1i32
    atomic add @y[%i], %a
    atomic add @y[%n], %a
    %k: i32 = and %a, 3i32
    atomic add @h[%k], 1i32
    store @x[%i], 5i32
"""
    fn = agrees(scatter_to_gather, text, (), {"x": [k * 7 % 11 for k in range(64)]})
    assert indivisible(fn) == 1
    verify(fn, Form.SCALAR)
    assert scatter_to_gather(fn) is fn
    assert parse(text).name == fn.name
