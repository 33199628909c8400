"""Adjoints along a few directions, taken apart."""

from __future__ import annotations

import pytest

from tests.autodiff.support import Program, made
from tinote.autodiff.gradient import reverse
from tinote.compiler.passes.lowering.split_directions import split_directions
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import clone_of
from tinote.ir.build import Builder
from tinote.ir.forms import Form
from tinote.ir.query import walk
from tinote.ir.redirect import redirected
from tinote.ir.types import Tangents, element_type, f64, i32
from tinote.ir.verify import verify

zero = ir.Lit(0, i32)


def looped(b: Builder, program: Program) -> None:
    """A product of sines of all numbers: a loop that carries an adjoint, and a stack."""
    i, s, outside = ir.Var(i32, "i"), ir.Var(f64, "s"), ir.Var(f64, "product")
    with b.region(i, s) as inside:
        following = b.prim(p.mul, s, b.prim(p.sin, b.load(program.x, (i,))))
    b.emit(ir.For(zero, ir.Lit(4, i32), (ir.Lit(1.0, f64),), inside.close(following), (outside,)))
    b.store(program.y, (zero,), outside)


def gradient(directions: int) -> ir.Function:
    program = made(looped)
    assert program.fn is not None
    clones = {
        one: clone_of(one, adjoint=True, tangent=False, directions=directions)
        for one in (program.x, program.y, program.total)
    }
    return reverse(redirected(program.fn, clones), directions=directions).function


def tangents_in(fn: ir.Function) -> bool:
    return any(isinstance(element_type(v.type), Tangents) for op in walk(fn.region) for v in op.outs)


@pytest.mark.parametrize("directions", [2, 4])
def test_a_few_become_numbers(directions: int) -> None:
    before = gradient(directions)
    assert tangents_in(before)
    after = split_directions(before)
    verify(after, Form.PROMOTED)
    assert not tangents_in(after)
    names = {op.buffer.name for op in walk(after.region) if isinstance(op, ir.Store | ir.Atomic)}
    assert names == {f"{name}.grad.{k}" for name in "xy" for k in range(directions)}
    # Values and slopes are there once.
    assert [op.prim for op in walk(after.region) if isinstance(op, ir.Prim)].count(p.cos) == 1


def test_many_stay_vectors() -> None:
    before = gradient(8)
    assert split_directions(before) is before
