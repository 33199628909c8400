"""Stages made by hand, for tests of the explorer that need no compiler."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tinote.compiler.inspect.stages import KernelSource, Stages, ir_stages
from tinote.compiler.pipeline import Snapshot
from tinote.ir.nodes import Function, Op, Region, Store
from tinote.ir.parse import parse

SMALL = """\
buffer @x: f32 field (8)
func small():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f32 = load @x[%i]
    %b: f32 = mul %a, 0.5f32
    %c: f32 = add %b, 0.0f32
    store @x[%i], %c
"""


def line_of(path: str, text: str) -> int:
    """The number of the line of a file that ends with `text`."""
    with open(path, encoding="utf-8") as file:
        (found,) = [n for n, line in enumerate(file, 1) if line.rstrip().endswith(text) and "line_of" not in line]
    return found


def located(fn: Function, file: str, line_of: dict[int, int] | None = None) -> Function:
    """`fn` with its operations placed in `file`: on the lines of its text, or on `line_of[line]`, else on line 1."""

    def place(region: Region) -> Region:
        return Region(region.params, tuple(map(move, region.body)), region.yields)

    def move(op: Op) -> Op:
        new = op.rebuilt(op.args, tuple(map(place, op.regions)))
        line = op.loc.line if line_of is None else line_of.get(op.loc.line, 1)
        new.loc = op.loc._replace(file=file, line=line, end_line=line)
        return new

    return Function(fn.name, place(fn.region), fn.loc._replace(file=file))


def parsed_stages(source: str) -> Stages:
    """A small function before and after a step that drops `add %b, 0` and stores `%b`; everything comes from line 1 of
    `source`.
    """
    first = located(parse(SMALL), "cell", {})
    (loop,) = first.region.body
    body = loop.regions[0]
    store = body.body[-1]
    assert isinstance(store, Store)
    stored = store.rebuilt((*store.index, body.body[1].out))
    after = first.with_region(Region((), (loop.rebuilt(loop.args, (Region(body.params, (*body.body[:2], stored)),)),)))
    snapshots = [Snapshot("infer_types", first, first, 1e-5), Snapshot("simplify 1: fold", first, after, 2e-4)]
    text = KernelSource("small", "cell", 1, tuple(source.splitlines()))
    return Stages("small", False, (text,), tuple(ir_stages(first, snapshots)))


def big_stages(count: int) -> Stages:
    """A function of about `count` operations, and the same after three steps that drop, turn around and exchange things
    all over it.
    """
    lines = ["buffer @x: f32 field (100000)", "func big():", "  %v0: f32 = load @x[0i32]"]
    for n in range(1, count):
        if n % 10:
            lines.append(f"  %v{n}: f32 = {('add', 'mul', 'sub')[n % 3]} %v{n - 1}, %v{n // 2}")
        else:
            lines += [f"  store @x[{n}i32], %v{n - 1}", f"  %v{n}: f32 = load @x[{n}i32]"]
    first = located(parse("\n".join(lines) + "\n"), "cell")

    def with_body(body: Iterable[Op]) -> Function:
        return first.with_region(Region((), tuple(body)))

    def exchanged(n: int, op: Op) -> Op:
        return op.rebuilt(op.args[::-1]) if n % 5 == 0 and len(op.args) == 2 and op.outs else op

    body = first.region.body
    kept = [op for n, op in enumerate(body) if n % 7]
    pieces = [kept[n : n + 50][:: 1 if n % 200 else -1] for n in range(0, len(kept), 50)]
    dropped, turned = with_body(kept), with_body(chain.from_iterable(pieces))
    changed = with_body(exchanged(n, op) for n, op in enumerate(body))
    snapshots = [
        Snapshot("drop", first, dropped, 0.004),
        Snapshot("turn", dropped, turned, 0.003),
        Snapshot("exchange", turned, changed, 0.002),
    ]
    return Stages("big", False, (KernelSource("big", "cell", 1, tuple(lines)),), tuple(ir_stages(first, snapshots)))
