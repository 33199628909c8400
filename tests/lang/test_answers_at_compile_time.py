"""What Python answers while a kernel is compiled may be another thing at the next launch: functions of the user's in
`ti.static`, and what objects of the user's say when they are compared, searched, tested, walked over or shown.
"""

from __future__ import annotations

import linecache
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled


class Part:
    def __init__(self, v: int) -> None:
        self.v = v


class Answers:
    """An object that answers in every way, always by `v`."""

    def __init__(self) -> None:
        self.v = 1

    def __eq__(self, other: object) -> bool:
        return self.v == other

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: int) -> bool:
        return self.v < other

    def __contains__(self, item: int) -> bool:
        return self.v == item

    def __bool__(self) -> bool:
        return self.v == 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.v))

    def __call__(self) -> int:
        return self.v

    def __format__(self, spec: str) -> str:
        return f"f{self.v}"

    def __str__(self) -> str:
        return f"s{self.v}"

    def __repr__(self) -> str:
        return f"r{self.v}"

    def __floor__(self) -> int:
        return self.v

    def get(self) -> int:
        return self.v

    def items(self) -> list[int]:
        return [self.v, 2]

    def array(self) -> Any:
        return np.full(3, self.v)

    def large(self) -> Any:
        return np.full(3000, self.v)

    def generated(self) -> Iterator[int]:
        yield from range(self.v)

    def anew(self) -> Part:
        return Part(self.v)

    def nested(self) -> dict[str, list[Part]]:
        return {"parts": [Part(0), Part(self.v)]}

    @property
    def computed(self) -> int:
        return self.v

    @staticmethod
    def of_the_class() -> int:
        return b.v


b = Answers()


def helper(_: int = 0) -> int:
    return b.v


EXPRESSIONS = [
    "1 if b == 1 else 0",
    "1 if b != 1 else 0",
    "1 if 1 == b else 0",
    "1 if b < 2 else 0",
    "1 if 2 > b else 0",
    "1 if [b] == [1] else 0",
    "1 if 1 in b else 0",
    "1 if 1 not in b else 0",
    "1 if 1 in [b, 5] else 0",
    "1 if b else 0",
    "1 if not b else 0",
    "1 if (b and True) else 0",
    "1 if (False or b) else 0",
    "1 if hasattr(b, 'z') else 0",
    "getattr(b, 'z', 0)",
    "ti.static(b.get())",
    "ti.static(helper())",
    "ti.static(helper(3) + helper(4))",
    "ti.static(b())",
    "ti.static(b.items())[0]",
    "ti.static(b.items()[0])",
    "ti.static(b.array())[1]",
    "ti.static(b.large().max())",
    "ti.static(b.anew()).v",
    "ti.static(b.anew().v)",
    "ti.static(b.nested())['parts'][1].v",
    "ti.static(b.of_the_class())",
    "b.computed",
    "math.floor(b)",
    "ti.static(math.floor(b))",
    "1 if f'{b}' == 'f1' else 0",
    "1 if f'{b!s}' == 's1' else 0",
    "1 if '{}'.format(b) == 'f1' else 0",
    "1 if ti.static(str(b) == 's1') else 0",
    "1 if ti.static(repr(b)) == 'r1' else 0",
    "ti.static(len(list(b)))",
    "len(ti.static(sorted(b)))",
    "ti.static(list(map(helper, [1])))[0]",
    "ti.Vector([*b, 1]).n",
    "len([q for q in ti.static(b)])",
    "len([q for q in ti.static(range(2)) if q in b])",
]

STATEMENTS = {
    "walked over": "s = 0\n    for q in ti.static(b): s += 1\n    return s",
    "a range": "s = 0\n    for q in ti.static(range(b.get())): s += 1\n    return s",
    "a generator": "s = 0\n    for q in ti.static(b.generated()): s += 1\n    return s",
    "unpacked": "x, y = ti.static(b.items())\n    return x",
    "a static branch": "s = 0\n    if ti.static(b.get() == 1): s = 1\n    return s",
    "a branch": "s = 0\n    if b: s = 1\n    return s",
}

BODIES = {**{text: f"return {text}" for text in EXPRESSIONS}, **STATEMENTS}
_made: list[str] = []


def kernel(body: str) -> Any:
    name = f"run_{len(_made)}"
    text = f"@ti.kernel\ndef {name}() -> ti.i32:\n    {body}\n"
    file = f"<answers {len(_made)}>"
    _made.append(text)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"ti": ti, "b": b, "helper": helper, "math": math}
    exec(compile(text, file, "exec"), names)
    return names[name]


def become(v: int) -> None:
    b.__dict__.clear()
    b.v = v
    if v == 2:
        b.z = 2  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def fresh() -> None:
    ti.init()
    become(1)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_another_answer_is_another_version(body: str) -> None:
    run = kernel(body)
    first = run()
    assert (run(), len(run.instances)) == (first, 1), "the same answers, and compiled again"
    become(2)
    assert run() == kernel(body)() != first
    become(1)
    assert run() == first


def test_side_effects_are_those_of_a_launch() -> None:
    """A function is asked once for each launch, and once more to compile."""
    calls: list[int] = []

    def counted() -> int:
        calls.append(1)
        return 3

    @ti.kernel
    def run() -> ti.i32:
        return ti.static(counted()) + ti.static(counted())

    assert [run() for _ in range(4)] == [6] * 4
    assert len(run.instances) == 1
    assert len(calls) <= 2 + 2 * 4


def test_a_function_that_raises_later_says_so_in_its_line() -> None:
    def strict() -> int:
        if b.v == 2:
            raise RuntimeError("no longer")
        return 3

    @ti.kernel
    def run() -> ti.i32:
        return ti.static(strict())

    assert run() == 3
    become(2)
    with pytest.raises(ti.TaichiCompilationError, match="RuntimeError: no longer"):
        run()
    become(1)
    assert run() == 3


def test_methods_that_are_put_in_place_of_others() -> None:
    class Own:
        def get(self) -> int:
            return 1

    own = Own()

    @ti.kernel
    def run() -> ti.i32:
        return ti.static(own.get())

    assert run() == 1
    Own.get = lambda self: 2  # type: ignore[method-assign]
    assert run() == 2
    own.get = lambda: 3  # type: ignore[method-assign]
    assert run() == 3


def settled(case: str) -> Callable[[], Any]:
    x = ti.field(ti.f32, 3)
    table = {"a": [1, 2]}

    @ti.kernel
    def types() -> ti.i32:
        return 1 if ti.static(x.dtype == ti.f32 and ti.f32 in (ti.f32, ti.f64) and isinstance(x, ti.Field)) else 0

    @ti.kernel
    def tables() -> ti.i32:
        return 1 if "a" in table and table["a"][0] == 1 and table else 0

    return {"types": types, "tables": tables}[case]


@pytest.mark.parametrize("case", ["types", "tables"])
def test_what_cannot_change_is_not_asked_again(case: str) -> None:
    run: Any = settled(case)
    assert run() == 1
    (instance,) = run.instances
    assert [c for c in instance.specialisation.captures if c.kind.value == "evaluation"] == []


def test_answers_are_never_taken_from_an_earlier_process() -> None:
    for _ in range(2):
        run = kernel("return 1 if b == 1 else 0")
        assert run() == 1
        assert not is_recalled(run)


#: Where a kernel finds an array, and how it reads that.
PLACES = {
    "a name": (lambda array: array, "held"),
    "a list": (lambda array: [array], "held[0]"),
    "a tuple": (lambda array: (array,), "held[0]"),
    "a tuple in a list": (lambda array: [(array,)], "held[0][0]"),
    "a dictionary": (lambda array: {"a": array}, "held['a']"),
    "a list in a dictionary": (lambda array: {"a": [array]}, "held['a'][0]"),
    "an attribute": (lambda array: types.SimpleNamespace(array=array), "held.array"),
}
READS = {"plain": "{}", "static": "ti.static(float({}))", "inlined": "same({})"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("place", PLACES)
def test_arrays_that_change_in_place_are_other_constants(place: str, dtype: Any) -> None:
    """Of no dimension, too."""
    ti.init(default_fp=ti.f64)
    left = ti.field(ti.f64, ())
    hold, read = PLACES[place]
    for rank, index in enumerate(("", "[0]", "[0, 0]")):
        for how in READS.values():
            array = np.ones((1,) * rank, dtype)
            space: dict[str, Any] = {"ti": ti, "left": left, "held": hold(array), "same": lambda value: value + 0}
            lines = ["@ti.kernel\n", "def kernel():\n", f"    left[None] = {how.format(read + index)}\n"]
            file = f"constant {dtype.__name__} {place} {rank} {how}.py"
            linecache.cache[file] = (len("".join(lines)), None, lines, file)
            exec(compile("".join(lines), file, "exec"), space)
            for value in (1, 0):
                array[...] = value
                space["kernel"]()
                assert left[None] == value, (rank, how)


def test_a_tensor_of_another_library_is_asked_for_its_number_again() -> None:
    class Tensor:
        shape = ()
        value = 1.0

        def item(self) -> float:
            return self.value

    tensor = Tensor()
    ti.init(default_fp=ti.f64)
    left = ti.field(ti.f64, ())

    @ti.kernel
    def kernel():
        left[None] = tensor

    kernel()
    tensor.value = 2.0
    kernel()
    assert left[None] == 2.0
