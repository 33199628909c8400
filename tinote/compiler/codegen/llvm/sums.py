"""Finds the additions of loop-carried sums, which fast maths may reorder.

%s: f32 = for %i: i32 in 0i32 .. %n carrying %t: f32 = 0.0f32:
  %a: f32 = add %x, %y            not one: 3e38 + 3e38 - 3e38 must not be reordered
  %u: f32 = add %t, %a            from what is carried to what is yielded: a step of the sum
  yield %u
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, For, If, Op, Prim, Region, Var, While
from tinote.ir.query import walk
from tinote.ir.types import Scalar

#: For each variable, as bits, the carried values that it sums up or is added to.
Sets = dict[Var, int]


def steps_of_sums(region: Region) -> set[Op]:
    """The float additions and subtractions in `region` from a carried value to its value in the next iteration."""
    found: set[Op] = set()
    for loop in walk(region):
        if isinstance(loop, For | While) and loop.outs:
            body = loop.regions[-1]
            carried = body.params[1:] if isinstance(loop, For) else body.params
            bits = {v: 1 << k for k, v in enumerate(carried) if isinstance(v.type, Scalar) and v.type.kind == "f"}
            if bits:
                _forwards(body, bits)
                _backwards(body, bits, {}, [1 << k for k in range(len(carried))], found)
    return found


def _terms(op: Prim) -> tuple[Atom, ...]:
    """The operands that may be partial sums."""
    if op.prim is p.add:
        return op.args
    return op.args[:1] if op.prim is p.sub else op.args[1:] if op.prim is p.select else ()


def _sources(op: Op) -> list[tuple[Atom, ...]]:
    """For each result, the atoms that pass a sum on to it."""
    if isinstance(op, Prim):
        return [_terms(op)]
    if isinstance(op, If):
        return list(zip(op.then.yields, op.orelse.yields, strict=True))
    if isinstance(op, For | While):
        return [(a,) for a in op.initial]
    return []


def _forwards(region: Region, sums: Sets) -> None:
    for op in region.body:
        for inner in op.regions:
            _forwards(inner, sums)
        for out, atoms in zip(op.outs, _sources(op), strict=False):
            bits = 0
            for a in atoms:
                if type(a) is Var:
                    bits |= sums.get(a, 0)
            if bits:
                sums[out] = bits


def _backwards(region: Region, sums: Sets, wanted: Sets, yields: list[int], found: set[Op]) -> None:
    for a, bits in zip(region.yields, yields, strict=False):
        if type(a) is Var:
            wanted[a] = wanted.get(a, 0) | bits
    for op in reversed(region.body):
        outs = [wanted.get(out, 0) & sums.get(out, 0) for out in op.outs]
        if not any(outs):
            continue
        if isinstance(op, If):
            for inner in op.regions:
                _backwards(inner, sums, wanted, outs, found)
            continue
        if isinstance(op, Prim) and op.prim is not p.select:
            found.add(op)
        for bits, atoms in zip(outs, _sources(op), strict=False):
            for a in atoms:
                if type(a) is Var:
                    wanted[a] = wanted.get(a, 0) | bits
