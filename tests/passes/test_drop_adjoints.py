"""Gradients that were declared are forgotten where nobody asks for them."""

from __future__ import annotations

from tinote.compiler.passes.lowering.drop_adjoints import drop_adjoints
from tinote.ir.parse import parse
from tinote.ir.text import show
from tinote.ir.verify import Form, verify

BEFORE = """\
buffer @y: f64 field ()
func declared(%x: f64):
  %r: f64 = sqrt %x
  %y: f64 = custom_vjp %r, %x adjoint %g: f64:
    %h: f64 = mul %g, %r
    yield %h
  %s: f64 = sin %x
  %t: f64 = stop_gradient_once %y
  %z: f64 = surrogate %t, %s
  store @y[], %z
"""

AFTER = """\
buffer @y: f64 field ()
func declared(%x: f64):
  %r: f64 = sqrt %x
  %s: f64 = sin %x
  store @y[], %r
"""


def test_the_results_stand_for_themselves() -> None:
    fn = parse(BEFORE)
    verify(fn, Form.SCALAR)
    dropped = drop_adjoints(fn)
    verify(dropped, Form.SCALAR)
    assert show(dropped) == AFTER
    assert drop_adjoints(dropped) is dropped
