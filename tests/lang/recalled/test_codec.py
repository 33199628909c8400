"""Named tuples to JSON and back: what annotations can say, and what is refused."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, NamedTuple

import pytest

from tinote.compiler.cache.codec import Codec, Unencodable
from tinote.compiler.function_source import function_source
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.launch_values import Applied, BoundedInteger, LoopIndex, Real, SymbolicShapes
from tinote.ir.primitives import Primitive, add
from tinote.ir.types import Scalar, Tensor, f32, i32
from tinote.source import NOWHERE, Span


class Colour(Enum):
    RED = "red"
    BLUE = 7


class Pair(NamedTuple):
    one: int
    other: tuple[Pair, ...]


class Everything(NamedTuple):
    number: int
    real: float
    text: str
    truth: bool
    colour: Colour
    maybe: int | None
    pairs: tuple[Pair, ...]
    mixed: tuple[str | Pair | int, ...]
    fixed: tuple[int, str]
    names: frozenset[str]
    scalar: Scalar
    either: Scalar | Tensor
    primitive: Primitive
    buffer: Buffer
    buffers: frozenset[Buffer]


KNOWN = (Buffer("a", f32, (3,)), Buffer("b", i32, (2,)))

EVERYTHING = Everything(
    -3,
    float("inf"),
    "text",
    True,
    Colour.BLUE,
    None,
    (Pair(1, (Pair(2, ()),)),),
    ("x", Pair(3, ()), 4),
    (1, "one"),
    frozenset({"p", "q"}),
    f32,
    Tensor(f32, (2, 3)),
    add,
    KNOWN[1],
    frozenset(KNOWN),
)


def there_and_back(value: Any, annotation: Any) -> Any:
    data = Codec(KNOWN, ()).encode(value, annotation)
    return Codec(KNOWN, ()).decode(json.loads(json.dumps(data)), annotation)


def test_everything_comes_back() -> None:
    assert there_and_back(EVERYTHING, Everything) == EVERYTHING
    assert there_and_back(EVERYTHING._replace(maybe=5, either=i32), Everything).maybe == 5


def test_every_kind_of_node_comes_back() -> None:
    shapes = SymbolicShapes(
        (KNOWN[0],),
        (((0, 2),),),
        (BoundedInteger(0, 0), Real(0.1), Applied(add, i32, (0, 0)), LoopIndex(0, 2)),
        ((KNOWN[0], 0),),
        (True,),
    )
    assert there_and_back(shapes, SymbolicShapes) == shapes


def test_buffers_that_the_compiler_made_come_back_with_their_links() -> None:
    copy = Buffer("a.before", f32, (None, 3), (2,), BufferKind.ARRAY, offset=(0, 1))
    copy.tangent = Buffer("a.before.dual", f32, (None, 3), (2,), BufferKind.SAVED)
    copy.tangent.primal = copy
    again, same, known = there_and_back((copy, copy, KNOWN[0]), tuple[Buffer, Buffer, Buffer])
    assert again is same is not copy
    assert known is KNOWN[0]
    assert again.tangent.primal is again
    for made, wanted in ((again, copy), (again.tangent, copy.tangent)):
        for name in ("name", "dtype", "shape", "element", "kind", "strides", "element_strides", "offset"):
            assert getattr(made, name) == getattr(wanted, name)


def test_a_place_follows_its_function() -> None:
    here, there = [function_source(f) for f in (there_and_back, test_everything_comes_back)]
    place = Span(here.file, here.tree.lineno + 1, 4, here.tree.lineno + 2, 9, Span(here.file, here.tree.lineno, 2))
    data = Codec((), (here,)).encode((place, NOWHERE), tuple[Span, Span])
    moved = there.tree.lineno - here.tree.lineno
    assert Codec((), (there,)).decode(data, tuple[Span, Span]) == (
        place._replace(
            line=place.line + moved,
            end_line=place.end_line + moved,
            inlined_at=Span(here.file, there.tree.lineno, 2),
        ),
        NOWHERE,
    )


@pytest.mark.parametrize(
    ("value", "annotation"), [(Buffer("field", f32, (3,)), Buffer), (Span("elsewhere.py", 3), Span)]
)
def test_what_nobody_else_knows_is_refused(value: Any, annotation: Any) -> None:
    with pytest.raises(Unencodable):
        Codec(KNOWN, ()).encode(value, annotation)


@pytest.mark.parametrize("annotation", [Any, object, tuple, dict[str, int], list[int]])
def test_an_annotation_that_says_too_little_is_an_error(annotation: Any) -> None:
    with pytest.raises(TypeError, match="does not say"):
        Codec((), ()).encode(3, annotation)


@pytest.mark.parametrize("data", [[], None, 3, [[], [1]], [[["?"]], 0], [[], [1, 2, 3]], {"a": 1}])
def test_other_data_is_an_error_that_readers_expect(data: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        Codec(KNOWN, ()).decode(data, Pair)
