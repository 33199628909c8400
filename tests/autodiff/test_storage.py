"""Storage: reverse code is emitted against primal variables, and each of them has one of four sources."""

from __future__ import annotations

import pytest

from tests.properties.smooth import generate_smooth
from tests.properties.test_programs import STRICT
from tinote.autodiff.gradient import reverse
from tinote.autodiff.reverse import Reverser
from tinote.compiler.pipeline import INFERENCE, SIMPLIFICATION, run_pipeline
from tinote.ir.forms import Form, InvalidIR
from tinote.ir.nodes import For, Function, Region
from tinote.ir.parse import parse
from tinote.ir.primitives import Defaults
from tinote.ir.query import free_variables, walk
from tinote.ir.text import show
from tinote.ir.verify import verify

CARRIED = """\
buffer @x: f64 field (8) adjoint @x.grad
buffer @L: f64 field () adjoint @L.grad
buffer @x.grad: f64 field (8)
buffer @L.grad: f64 field ()
func f(%n: i32):
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f64 = load @x[%i]
    %b: f64 = for %k: i32 in 0i32 .. %n carrying %s: f64 = %a:
      %t: f64 = sin %s
      %u: f64 = mul %t, %a
      yield %u
    atomic add @L[], %b
"""

DEAR = """\
buffer @x: f64 field (8, 6) adjoint @x.grad
buffer @L: f64 field () adjoint @L.grad
buffer @x.grad: f64 field (8, 6)
buffer @L.grad: f64 field ()
func f():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f64, %b: f64 = for %k: i32 in 0i32 .. 6i32 carrying %s: f64 = 1.0f64, %t: f64 = 0.0f64:
      %c: f64 = load @x[%i, %k]
      %d: f64 = exp %c
      %e: f64 = mul %s, %d
      %g: f64 = tanh %c
      %h: f64 = add %t, %g
      yield %e, %h
    %r: f64 = mul %a, %b
    atomic add @L[], %r
"""

NEST = """\
buffer @x: f64 field (8, 6) adjoint @x.grad
buffer @L: f64 field () adjoint @L.grad
buffer @x.grad: f64 field (8, 6)
buffer @L.grad: f64 field ()
func f():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f64 = for %k: i32 in 0i32 .. 4i32 carrying %s: f64 = 1.0f64:
      %b: f64 = for %l: i32 in 0i32 .. 5i32 carrying %t: f64 = %s:
        %c: f64 = for %m: i32 in 0i32 .. 6i32 carrying %u: f64 = %t:
          %d: f64 = load @x[%i, %m]
          %e: f64 = mul %u, %d
          yield %e
        yield %c
      yield %b
    atomic add @L[], %a
"""

IN_PLACE = """\
buffer @x: f64 field (8) adjoint @x.grad
buffer @w: f64 field (4)
buffer @x.grad: f64 field (8)
func f():
  for %t: i32 in 0i32 .. 4i32:
    %w: f64 = load @w[%t]
    for %i: i32 in 0i32 .. 8i32:
      %a: f64 = load @x[%i]
      %b: f64 = mul %a, %w
      %c: f64 = sin %b
      store @x[%i], %c
"""

ONE_AFTER_ANOTHER = """\
buffer @x: f64 field (8) adjoint @x.grad
buffer @y: f64 field (8) adjoint @y.grad
buffer @x.grad: f64 field (8)
buffer @y.grad: f64 field (8)
func f():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f64 = load @x[%i]
    %b: f64 = sin %a
    store @x[%i], %b
  for parallel %j: i32 in 0i32 .. 8i32:
    %c: f64 = load @x[%j]
    %d: f64 = mul %c, %c
    store @y[%j], %d
    store @x[%j], 0.0f64
"""


@pytest.mark.parametrize(
    "text",
    [CARRIED, DEAR, NEST, IN_PLACE, ONE_AFTER_ANOTHER],
    ids=["carried", "dear", "nest", "in_place", "copied"],
)
def test_supply(text: str, golden) -> None:
    """Carried values are pushed, and what is dear and computed with them, and the rest recomputed; loops in loops run
    forwards once; what is overwritten is pushed; whole fields are copied.
    """
    fn = parse(text)
    adjoint = Reverser(fn, Defaults()).adjoint()
    reversal = Function("f.adjoint", adjoint.region)
    golden(f"{text}\nreverse code\n\n{show(reversal)}\nthe gradient\n\n{show(reverse(fn).function)}")


@pytest.mark.parametrize(("old", "new"), [("0i32 .. 4i32", "0i32 .. 40000i32"), ("func f()", "func f(%n: i32)")])
def test_large_nests_are_executed_again(old: str, new: str) -> None:
    """Loops that are nested three deep are pushed as a whole only if that is known to be little."""

    def loops(text: str) -> int:
        return sum([isinstance(op, For) for op in walk(reverse(parse(text)).function.region)])

    text = NEST.replace(old, new).replace("0i32 .. 5i32", "0i32 .. %n" if "%n" in new else "0i32 .. 5i32")
    assert loops(text) > loops(NEST) == 7


@pytest.mark.parametrize("seed", range(40))
def test_reverse_code_uses_nothing_but_what_the_primal_function_binds(seed: int) -> None:
    """Behind the primal function it is well formed, apart from scopes: `while` loops have no trip counts there yet."""
    fn, _ = run_pipeline(generate_smooth(seed, 12).function, (INFERENCE, *SIMPLIFICATION), STRICT)
    gradient = reverse(fn)
    verify(gradient.function, Form.PROMOTED)
    fn = gradient.primal  # atomic operations are unfolded in it
    adjoint = Reverser(fn, Defaults()).adjoint()
    if adjoint.trip_counts:
        assert set(adjoint.trip_counts.values()) <= set(free_variables(adjoint.region))
        return
    unstored = Function("f", Region(fn.region.params, (*fn.region.body, *adjoint.region.body)))
    verify(unstored, Form.PROMOTED, stored=False)
    if any(op.regions for op in adjoint.region.body):
        with pytest.raises(InvalidIR):
            verify(unstored, Form.PROMOTED)
