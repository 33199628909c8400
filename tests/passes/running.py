"""Running functions before and after a pass: what the tests of passes that move memory accesses share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of
from tinote.ir.text import show
from tinote.ir.verify import Form, verify

__all__ = ["agrees", "results", "shuffled"]

Contents = Mapping[str, object]


def shuffled(iterations: range) -> Iterable[int]:
    """An order of iterations that no kernel expects."""
    order = list(iterations)
    random.Random(7).shuffle(order)
    return order


def results(fn: Function, args: tuple[float, ...] = (), contents: Contents | None = None) -> dict[str, object]:
    """What `fn` leaves in its fields and arrays. They start with `contents`, by name, and with zeros if absent."""
    memory = DictMemory()
    kinds = (BufferKind.FIELD, BufferKind.ARRAY)
    buffers = [buffer for buffer in buffers_of(fn) if buffer.kind in kinds]
    for buffer in buffers:
        given = (contents or {}).get(buffer.name)
        memory.fill(buffer, _zeros(buffer) if given is None else given)
    interpret(fn, args, memory, order=shuffled)
    return {buffer.name: memory.nested(buffer) for buffer in sorted(buffers, key=lambda b: b.name)}


def _zeros(buffer: Buffer) -> object:
    nested: object = 0
    for n in reversed((*buffer.shape, *buffer.element)):
        assert n is not None, f"{buffer!r} needs its contents"
        nested = [nested] * n
    return nested


def agrees(
    run: Callable[[Function], Function],
    text: str,
    args: tuple[float, ...] = (),
    contents: Contents | None = None,
    form: Form = Form.SCALAR,
) -> Function:
    """Assert that `run` changes the function but not what it leaves in memory, bit for bit; gives the new function."""
    fn = parse(text)
    verify(fn, form)
    new = run(fn)
    verify(new, form)
    assert new is not fn, f"nothing changed in\n{show(fn)}"
    # Numbers are compared as text: a NaN equals itself, and zeros differ by sign.
    before, after = results(fn, args, contents), results(new, args, contents)
    assert repr(after) == repr(before), show(new)
    return new
