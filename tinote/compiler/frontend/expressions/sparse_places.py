"""The place of an index in the storage of a sparse field.

    x[i, j] = 1.0          check 0 <= i < 32; check 0 <= j < 32
                           block = (i // 8) * 4 + j // 8;  cell = i % 8 * 8 + j % 8
                           store x[block, cell], 1.0

The indices of a loop over active cells are in range, and have the places of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinote.compiler.frontend.conversions import index_atom
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.sparse_elements import Places
from tinote.errors import KernelSubscriptError
from tinote.ir import primitives as p
from tinote.ir.index_arithmetic import IndexArithmetic
from tinote.ir.nodes import Atom, Check, FaultKind, Lit
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import Scalar, i32


def located(e: Emitter, sparsity: Sparsity, index: Sequence[Atom], name: str) -> Places:
    """The places of an index as its users count. `name`: that of the field, for a fault."""
    index = tuple(index)
    known = e.sparse.located.get((sparsity.geometry, index))
    if known is not None:
        return known
    first = sparsity.offset or (0,) * len(index)
    inside: Atom | None = None
    arithmetic = IndexArithmetic(e.b)
    digits: list[tuple[Atom | None, ...]] = []
    for axis, (i, start, extent) in enumerate(zip(index, first, sparsity.shape, strict=True)):
        own = e.sparse.digits.get((sparsity.geometry, axis, i))
        if own is not None:  # the index of a loop is in range
            digits.append(own)
            continue
        t = i.type
        assert isinstance(t, Scalar)
        if start:
            i = Lit(int(i.value) - start, t) if isinstance(i, Lit) else e.b.prim(p.sub, i, Lit(start, t))
        if not (isinstance(i, Lit) and 0 <= i.value < extent):
            holds = e.b.prim(p.and_, e.b.prim(p.ge, i, Lit(0, t)), e.b.prim(p.lt, i, Lit(extent, t)))
            if e.config.bounds_check is True:
                shown = (i, Lit(extent, t), Lit(start, t)) if start else (i, Lit(extent, t))
                e.b.emit(Check(FaultKind.BOUNDS, (holds, *shown), name, axis, e.b.loc))
            inside = holds if inside is None else e.b.prim(p.and_, inside, holds)
        digits.append(sparsity.digits(axis, e.b.cast(i, i32), arithmetic.divide, arithmetic.remainder))
    places = sparsity.joined(digits, arithmetic.join, Lit(0, i32))
    if inside is not None and e.config.bounds_check == "ignore":  # what lies outside has a place outside
        places = (e.b.prim(p.select, inside, places[0], Lit(-1, i32)), *places[1:])
    return places


def node_index(e: Emitter, sparsity: Sparsity, front: Any, name: str) -> Places:
    """The place of an index that a function of a level is given: a number, a vector or several numbers."""
    if isinstance(front, tuple | list) or e.shape(front):
        parts = e.components(front)
    else:
        parts = [front]
    if len(parts) != len(sparsity.shape):
        e.error(
            f"`{name}` has {len(sparsity.shape)} dimensions, and is indexed with {len(parts)}",
            "give one index for each: `[i, j]`",
            kind=KernelSubscriptError,
        )
    return located(e, sparsity, [index_atom(e, part) for part in parts], name)
