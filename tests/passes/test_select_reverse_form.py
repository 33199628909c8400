"""Of a value with another form for reverse mode, one is taken."""

from __future__ import annotations

import pytest

from tinote.compiler.passes.lowering.select_reverse_form import select_reverse_form
from tinote.ir.parse import parse
from tinote.ir.text import show
from tinote.ir.verify import Form, verify

BEFORE = """\
buffer @y: f64 field ()
func chosen(%x: f64):
  %r: f64 = sqrt %x
  %s: f64 = sin %x
  %t: f64 = in_reverse %r, %s
  store @y[], %t
"""

AFTER = """\
buffer @y: f64 field ()
func chosen(%x: f64):
  %r: f64 = sqrt %x
  %s: f64 = sin %x
  store @y[], {}
"""


@pytest.mark.parametrize("reverse, taken", [(False, "%r"), (True, "%s")])
def test_one_is_taken(reverse: bool, taken: str) -> None:
    fn = parse(BEFORE)
    verify(fn, Form.SCALAR)
    chosen = select_reverse_form(fn, reverse=reverse)
    verify(chosen, Form.SCALAR)
    assert show(chosen) == AFTER.format(taken)
    assert select_reverse_form(chosen, reverse=reverse) is chosen
