"""`break`, `continue` and `return`.

Jumps become structured control flow where possible (code after `if c: continue` goes into the other branch), and flags
elsewhere: a flag is a cell that says that the loop was left, the iteration ended or the function returned, and the code
that follows runs unless it is set.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Control, Emitter
from tinote.compiler.frontend.expressions import structs
from tinote.compiler.frontend.functions.results import as_annotated
from tinote.compiler.frontend.scopes import Anchor, Completion, Results
from tinote.compiler.frontend.values import CellPlace, StructValue, Text, Value, with_items
from tinote.errors import Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Local, Var, false, true
from tinote.ir.types import Ref, Scalar, promote, shape_of, strengthen, u1, with_element


def _declare_flag(e: Emitter, anchor: Anchor, name: str) -> Var:
    """A cell that holds false, declared at `anchor`."""
    cell = Var(Ref(u1), name)
    anchor.insert(Local((false,), (cell,), (), e.b.loc))
    return cell


def returned_flag(e: Emitter) -> Var:
    """The flag that this function has returned."""
    results = e.frame.results
    if results.returned is None:
        results.returned = _declare_flag(e, results.anchor, "returned")
    return results.returned


def unless(e: Emitter, flags: Sequence[Var], then: Callable[[], Any]) -> None:
    """Emit code that runs unless one of the flags is set."""
    condition = none_of(e, flags)
    with e.region() as opened:
        then()
    e.b.if_(condition.atom, opened.close())


def none_of(e: Emitter, flags: Sequence[Var]) -> Value:
    found = Value(e.b.get(flags[0]))
    for flag in flags[1:]:
        found = e.prim(p.or_, found, Value(e.b.get(flag)))
    return e.prim(p.logical_not, found)


def jumps_of(e: Emitter, body: list[ast.stmt]) -> analysis.Jumps:
    """How control can leave statements of the current function. A `yield` ends a generator where the loop over it can
    be left.
    """
    return analysis.Jumps(body, yields_return=e.frame.consumer is not None and e.frame.consumer.left is not None)


def flags_after(e: Emitter, leaving: analysis.Jumps) -> list[Var]:
    """The flags that say whether control continues after a statement with these jumps."""
    loop = e.frame.loops[-1] if e.frame.loops else None
    found: list[Var] = []
    if loop is not None and leaving.continues and loop.continued is not None:
        found.append(loop.continued)
    if loop is not None and leaving.breaks and loop.broken is not None:
        found.append(loop.broken)
    if leaving.returns and e.frame.results.returned is not None:
        found.append(e.frame.results.returned)
    return found


def break_(e: Emitter, node: ast.Break, rest: list[ast.stmt], tail: bool) -> Completion:
    loop = e.frame.loops[-1] if e.frame.loops else None
    if loop is None:
        e.unsupported("`break` outside of a loop")
    assert loop.broken is not None
    loop.breaks += 1
    e.b.set(loop.broken, true)
    return Completion.LEAVES


def continue_(e: Emitter, node: ast.Continue, rest: list[ast.stmt], tail: bool) -> Completion:
    loop = e.frame.loops[-1] if e.frame.loops else None
    if loop is None:
        e.unsupported("`continue` outside of a loop")
    if tail and not rest:
        return Completion.CONTINUES
    if loop.continued is None:
        assert loop.start is not None
        loop.continued = _declare_flag(e, loop.start, "continued")
    e.b.set(loop.continued, true)
    return Completion.CONTINUES


def return_(e: Emitter, node: ast.Return, rest: list[ast.stmt], tail: bool) -> Completion:
    tail = tail and not rest
    results = e.frame.results
    if node.value is not None and e.frame.consumer is not None:
        e.error("a generator gives its items by `yield`, and returns no value", "write `return` alone", node.value)
    front = None if node.value is None else e.evaluate(node.value)
    if isinstance(front, Text):
        e.error("text cannot be returned")
    if e.frame.annotated is not None and front is not None:
        front = as_annotated(e, e.frame.annotated, front)
    e.show("result", front)
    if results.seen and (front is None) != (results.cells is None and results.direct is None):
        e.error(
            "some `return`s of this function give a value and others do not",
            notes=[Note("another one is here", results.span or e.b.loc)],
        )
    first, results.seen, results.span = not results.seen, True, e.b.loc
    if first and tail and not e.frame.loops and e.depth == e.frame.depth:
        results.direct = front  # the only `return` that is reached, and nothing follows it
        return Completion.LEAVES
    if front is not None:
        if first:
            results.cells = _result_cells(e, results, front)
        _give(e, results, results.cells, front)
    if not tail or e.frame.loops:
        e.b.set(returned_flag(e), true)
        results.sets += 1
    return Completion.LEAVES


def _result_cells(e: Emitter, results: Results, front: Any) -> Any:
    """Cells for the values of an early `return`, declared at the top of the function."""
    if isinstance(front, tuple | list):
        return with_items(front, [_result_cells(e, results, part) for part in front])
    struct = structs.as_struct(e, front)
    if struct is not None:
        return struct.map(lambda part: _result_cells(e, results, part))
    if not e.is_value(front):
        e.error(
            f"{describe(front)} cannot be returned from one of several `return`s",
            "only numbers, vectors and matrices are known at run time",
        )
    t = strong_value(e, front).type
    cell = Var(Ref(t), "result")
    results.anchor.insert(Local((), (cell,), (), e.b.loc))
    return CellPlace(cell)


def _give(e: Emitter, results: Results, cells: Any, front: Any) -> None:
    if isinstance(cells, tuple | list):
        if not isinstance(front, tuple | list) or len(front) != len(cells):
            e.error("the `return`s of this function give different numbers of values")
        for cell, part in zip(cells, front, strict=True):
            _give(e, results, cell, part)
        return
    if isinstance(cells, StructValue):
        for cell, part, _ in structs.paired(e, cells, front, "the result"):
            _give(e, results, cell, part)
        return
    assert isinstance(cells, CellPlace) and isinstance(cells.ref.type, Ref)
    held = cells.type
    value = strong_value(e, front)
    if value.shape != shape_of(held):
        e.error(f"the `return`s of this function give {describe(cells)} and {describe(value)}")
    # A cell has the promoted type of all returned values, so that no `return` rounds another one's value.
    dtype = strengthen(promote(value.dtype, held if isinstance(held, Scalar) else held.dtype, e.fp, e.ip), e.fp, e.ip)
    cells.ref.type = Ref(with_element(held, dtype))
    cells.store(e.b, value.atom)


CONTROL: Control = {
    ast.Break: break_,
    ast.Continue: continue_,
    ast.Return: return_,
}
