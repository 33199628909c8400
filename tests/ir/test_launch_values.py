"""What a launch determines: exact values are those of the interpreter, and intervals hold whatever a run reaches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tinote.ir.access_region import regions_of
from tinote.ir.buffers import Buffer
from tinote.ir.interpret import interpret
from tinote.ir.launch_values import ExactNodes, LaunchInputs, SymbolicRegions, exact_values
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function, Load, Var
from tinote.ir.parse import parse
from tinote.ir.query import definitions, walk

EXTREMES = (0, 1, -1, 2, 7, 100, -100, 2**31 - 1, -(2**31), 46341)
BINARY = ("add", "sub", "mul", "min", "max", "floordiv", "mod", "and", "or", "xor")
LENGTH = 5


def random_function(rng: random.Random) -> Function:
    """Integers computed from three arguments, a length and memory, in a straight line; then a loop between two of them
    whose index and one of them are an index of a load.
    """
    known = ["%a", "%b", "%c", "%n"]
    lines = ["%n: i32 = extent @arr, 0"]
    if rng.random() < 0.5:
        lines.append("%m: i32 = load @count[]")
        known.append("%m")
    for k in range(rng.randrange(1, 8)):
        one, other = [rng.choice([*known, f"{rng.choice(EXTREMES)}i32"]) for _ in range(2)]
        op = rng.choice([*BINARY, "neg", "abs", "select"])
        if op == "select":
            lines += [f"%t{k}: u1 = lt {one}, {other}", f"%v{k}: i32 = select %t{k}, {rng.choice(known)}, {other}"]
        else:
            operands = one if op in ("neg", "abs") else f"{one}, {other}"
            lines.append(f"%v{k}: i32 = {op} {operands}")
        known.append(f"%v{k}")
    last, first, end = known[-1], rng.choice(known), rng.choice(known)
    body = "\n".join(f"  {line}" for line in lines)
    return parse(
        "buffer @x: f32 field (4, 4)\nbuffer @arr: f32 array (?)\nbuffer @count: i32 field ()\n"
        f"func f(%a: i32, %b: i32, %c: i32):\n{body}\n"
        f"  for %i: i32 in {first} .. {end}:\n    %y: f32 = load @x[{last}, %i]\n    store @x[0i32, 0i32], %y\n"
        f"  return {', '.join(known[3:])}, {first}, {end}\n"
    )


def run(fn: Function, arguments: Sequence[int], count: int) -> tuple[int, ...]:
    """What the straight line gives, without the loop."""
    straight = Function(fn.name, type(fn.region)(fn.region.params, fn.region.body[:-1], fn.region.yields))
    return interpret(straight, arguments, memory_of(fn, count))


def buffer(fn: Function, name: str) -> Buffer:
    return next(op.buffer for op in walk(fn.region) if getattr(op, "buffer", None) and op.buffer.name == name)  # type: ignore[attr-defined]


def memory_of(fn: Function, count: int) -> DictMemory:
    memory = DictMemory()
    for op in walk(fn.region):
        if isinstance(op, Load) and op.buffer.name == "count":
            memory.fill(op.buffer, count)
    memory.shapes[buffer(fn, "arr")] = (LENGTH,)
    return memory


def intervals(regions: SymbolicRegions, arguments: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for node in regions.nodes:
        found.append(node.interval(arguments, [LENGTH for _ in regions.lengths], found))
    return found


def test_both_domains_agree_with_the_interpreter() -> None:
    rng = random.Random(3)
    compared = exact = 0
    for _ in range(400):
        fn = random_function(rng)
        loop = fn.region.body[-1]
        (load,) = [op for op in walk(fn.region) if isinstance(op, Load) and op.buffer.name == "x"]
        regions = regions_of(fn, [load], frozenset())
        nodes = ExactNodes(definitions(fn.region), fn.region.params)
        roots = [nodes.node(atom) for atom in fn.region.yields]
        for _ in range(4):
            arguments = [rng.choice(EXTREMES) for _ in range(3)]
            count = rng.choice(EXTREMES)
            wanted = run(fn, arguments, count)
            memory = memory_of(fn, count)
            launch = LaunchInputs(arguments, [LENGTH for _ in nodes.lengths], memory.load)
            known = exact_values(nodes.all, [root for root in roots if root is not None], launch)
            assert None not in roots
            assert known == list(wanted)
            exact += len(known)
            (region,) = regions.live_in
            found = intervals(regions, arguments)
            row, column = [found[node] for node in region.axes]
            assert row[0] <= wanted[-3] <= row[1]
            first, end = wanted[-2:]
            if first < end:
                assert column[0] <= first
                assert end - 1 <= column[1]
            compared += 1
        assert loop.regions
    assert compared == 1600
    assert exact > 6000


def test_what_a_launch_does_not_determine_is_unknown() -> None:
    fn = parse(
        "buffer @x: i32 field (4)\n"
        "func f(%a: i32, %b: i32):\n  %q: i32 = floordiv %a, %b\n  %v: i32 = load @x[%a]\n  %w: i32 = add %v, %q\n"
        "  for %i: i32 in 0i32 .. %a:\n    %s: i32 = add %i, %a\n    store @x[%s], %w\n"
    )
    loop = fn.region.body[-1]
    nodes = ExactNodes(definitions(fn.region), fn.region.params)
    index = nodes.index(loop.regions[0].params[0])
    by_name = {v.name: v for op in walk(fn.region) for v in op.outs}
    total, inner = [nodes.node(by_name[name]) for name in ("w", "s")]
    assert total is not None and inner is not None
    (x,) = {op.buffer for op in walk(fn.region) if isinstance(op, Load)}
    memory = DictMemory({x: [10, 20, 30, 40]})

    def values(arguments: list[int], bound: dict[int, int] | None = None) -> list[int | float | None]:
        return exact_values(nodes.all, (total, inner), LaunchInputs(arguments, (), memory.load), bound)

    assert values([3, 2]) == [41, None]
    assert values([3, 2], {index: 5}) == [41, 8]
    assert values([3, 0]) == [40, None], "a division by zero is 0 where nothing checks it"
    assert values([4, 2]) == [None, None], "out of range"
    assert values([-1, 2]) == [None, None], "out of range"
    assert values([3]) == [None, None], "an argument that is not there"


@pytest.mark.parametrize("admitted", [True, False])
def test_an_operation_that_is_not_admitted_is_unknown(admitted: bool) -> None:
    fn = parse("buffer @x: i32 field ()\nfunc f():\n  %v: i32 = load @x[]\n  return %v\n")
    nodes = ExactNodes(definitions(fn.region), (), lambda op: admitted or not isinstance(op, Load))
    (result,) = fn.region.yields
    assert isinstance(result, Var)
    assert (nodes.node(result) is not None) is admitted
