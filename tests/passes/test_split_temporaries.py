"""Vectors from outside of a loop whose components are updated by different operations."""

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.lowering.split_temporaries import split_temporaries
from tinote.ir.verify import Form

HEAD = """
buffer @v: f32[2] temporary ()
buffer @x: f32 field (8)
func f():
  for parallel %i: i32 in 0i32 .. 8i32:
    %a: f32 = load @x[%i]
"""

MIXED = {
    "two operations": "    atomic max @v[][0i32], %a\n    atomic add @v[][1i32], %a\n",
    "one is read": "    %b: f32 = load @v[][0i32]\n    atomic add @v[][1i32], %b\n",
}


@pytest.mark.parametrize("name", MIXED)
def test_components_become_variables(name: str) -> None:
    text = HEAD + MIXED[name] + "  %c: f32 = load @v[][1i32]\n  return %c\n"
    after = text.replace("buffer @v: f32[2] temporary ()\n", "")
    after = after.replace("@v[][0i32]", "@v.0[]").replace("@v[][1i32]", "@v.1[]")
    after = after.replace("\nbuffer", "\nbuffer @v.0: f32 temporary ()\nbuffer @v.1: f32 temporary ()\nbuffer", 1)
    becomes(split_temporaries, text, after, Form.SCALAR)


ALIKE = {
    "one operation": "    atomic add @v[][0i32], %a\n    atomic add @v[][1i32], %a\n",
    "a component that is known at run time": "    atomic max @v[][0i32], %a\n    atomic add @v[][%i], %a\n",
    "stores": "    %b: f32 = load @v[][0i32]\n    store @v[][1i32], %b\n",
}


@pytest.mark.parametrize("name", ALIKE)
def test_other_vectors_stay(name: str) -> None:
    stays(split_temporaries, HEAD + ALIKE[name] + "  %c: f32 = load @v[][1i32]\n  return %c\n", Form.SCALAR)
