"""The text form: printing and reading back."""

from __future__ import annotations

import math

import pytest

from tests.ir.texts import BY_FORM, CHECKED, FIRST, LOWERED, SCALAR, TASKS
from tinote.ir import nodes
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Buffer, For, Function, Lit, Op, Region, Var
from tinote.ir.parse import ParseError, parse
from tinote.ir.query import walk
from tinote.ir.text import equal, fingerprint, literal, show, show_lines, show_op
from tinote.ir.types import SCALARS, f16, f32, f64, i32, i64, u1, u8, u64, weak_float, weak_int
from tinote.ir.verify import Form, verify


@pytest.mark.parametrize("form", BY_FORM, ids=lambda form: form.name)
def test_text_round_trip(form: Form) -> None:
    """What is printed is what was written: the text is a fixed point of parsing and printing."""
    text = BY_FORM[form]
    fn = parse(text)
    verify(fn, form)
    assert show(fn) == text
    assert equal(fn, parse(show(fn)))


def test_texts_hold_every_operation() -> None:
    used = {type(op) for text in BY_FORM.values() for op in walk(parse(text).region)}
    kinds = {c for c in vars(nodes).values() if isinstance(c, type) and issubclass(c, Op)}
    leaves = {c for c in kinds if not any(c in other.__mro__[1:] for other in kinds)}
    assert used == leaves
