"""The whole chain on the program that matters: the gradient of a sum over all pairs comes out as one tight loop."""

from __future__ import annotations

import math
import random

import pytest

from tests.passes.running import shuffled
from tinote.compiler.pipeline import Snapshot, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT
from tinote.config import Config
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atomic, Buffer, BufferKind, For, Function, Load, Task
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of, walk
from tinote.ir.text import show

BODIES = 12
ENERGY = f"""
buffer @x: f64[2] field ({BODIES}) adjoint @x.grad
buffer @U: f64 field () adjoint @U.grad
buffer @x.grad: f64[2] field ({BODIES})
buffer @U.grad: f64 field ()
func energy():
  for parallel %i: i32 in 0 .. {BODIES}:
    for parallel %j: i32 in 0 .. {BODIES}:
      %xi: f64[2] = load @x[%i]
      %xj: f64[2] = load @x[%j]
      %r: f64[2] = sub %xi, %xj
      %r0: f64 = extract %r, 0
      %r1: f64 = extract %r, 1
      %a: f64 = mul %r0, %r0
      %b: f64 = mul %r1, %r1
      %c: f64 = add %a, %b
      %d: f64 = add %c, 0.01
      %e: f64 = sqrt %d
      %f: f64 = div -1.0, %e
      atomic add @U[], %f
"""


def energy(x: list[list[float]]) -> float:
    return -sum(1 / math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + 0.01) for a in x for b in x)


@pytest.fixture(scope="module")
def stages() -> dict[str, Function]:
    """The gradient after each step that changed it, and at the end."""
    found: dict[str, Function] = {}

    def listen(snapshot: Snapshot) -> None:
        found[snapshot.step] = snapshot.after

    end, _ = run_pipeline(parse(ENERGY), steps_for(GRADIENT), Config(debug=True, default_fp="f64"), listen)
    return {**found, "end": end}


def test_the_inner_loop_is_tight(stages: dict[str, Function]) -> None:
    fn = stages["mark_vector_loops"]
    (task,) = fn.region.body
    assert isinstance(task, Task) and task.parallel
    assert [(p.target.name, p.prim.name) for p in task.privates] == [("x.grad", "add")]
    (loop,) = [op for op in walk(task.body) if isinstance(op, For)]
    assert loop.vectorize and len(loop.carried) == 2, show(fn)
    inside = [op.buffer.name for op in walk(loop.body) if isinstance(op, Load | Atomic)]
    # Both components of the other body are loaded and updated; this body's own and the seed stay in registers.
    assert sorted(inside) == ["x", "x", "x.grad.private", "x.grad.private"]
    atomics = [op for op in walk(task.body) if isinstance(op, Atomic)]
    assert len(atomics) == 4 and all(op.plain and op.buffer.kind is BufferKind.PRIVATE for op in atomics)


@pytest.mark.parametrize("stage", ["reverse", "offload", "privatise", "mark_vector_loops", "end"])
def test_it_is_the_gradient(stages: dict[str, Function], stage: str) -> None:
    fn = stages[stage]
    rng = random.Random(3)
    x = [[rng.random(), rng.random()] for _ in range(BODIES)]
    buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in buffers_of(fn)}
    memory = DictMemory({buffers["x"]: x, buffers["U.grad"]: 1.0})
    interpret(fn, (), memory, order=shuffled)
    gradient = memory.nested(buffers["x.grad"])
    for k in range(BODIES):
        for axis in range(2):
            ahead, behind = ([list(p) for p in x] for _ in range(2))
            ahead[k][axis] += 1e-6
            behind[k][axis] -= 1e-6
            assert gradient[k][axis] == pytest.approx((energy(ahead) - energy(behind)) / 2e-6, rel=1e-5, abs=1e-5)
