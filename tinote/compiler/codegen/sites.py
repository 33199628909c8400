"""Messages of a function's sites (`runtime/sites.py`), the same for every target, so that a program fails and prints
with the same words everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.errors import CompilerBug
from tinote.ir.buffers import family_of, help_with_order
from tinote.ir.messages import nested_parts, split_message
from tinote.ir.nodes import Atom, Buffer, Check, FaultKind, Lit, Print
from tinote.ir.types import element_type, shape_of
from tinote.runtime.layout import PAYLOAD_WORDS
from tinote.runtime.sites import Bounds, Part, PrintedValue, Site, SiteKind
from tinote.source import Span


def bounds_site(buffers: Sequence[Buffer], name: str, axis: int, extent: int | None, loc: Span, first: int = 0) -> Site:
    """The site of a bounds check on `name`: a field, an array, or a local tensor. `extent`: the length along
    `axis` where it is known; `first`: the first index as the user counts. Words: the index, then the extents in the
    text that are known only at launch.
    """
    array = array_named(buffers, name, axis)
    if array is not None:
        shown = axis if array.rank > 1 else None
        return Site(SiteKind.BOUNDS, loc, name, Bounds(None, (0,), tuple(range(1, array.rank + 1)), shown))
    shape = _shape_named(buffers, name, axis, extent)
    meant = next(filter(None, (help_with_order(b) for b in buffers if b.name == name)), "")
    return Site(SiteKind.BOUNDS, loc, name, Bounds(shape, (0,), () if shape else (1,), axis, first, meant))


def _shape_named(buffers: Sequence[Buffer], name: str, axis: int, extent: int | None) -> tuple[int, ...] | None:
    """The shape of the buffer that a bounds check is about, where it is known."""
    sparsities = {b: family_of(b).sparsity for b in buffers if b.name == name}
    shapes = {b.shape if sparsity is None else sparsity.shape for b, sparsity in sparsities.items()}
    shapes = {shape for shape in shapes if len(shape) > axis}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    if None in shape or (extent is not None and extent != shape[axis]):
        return None
    return shape  # type: ignore[return-value]


def array_named(buffers: Sequence[Buffer], name: str, axis: int) -> Buffer | None:
    """The array of unknown shape that a bounds check is about, if its name says so and its shape fits into a fault's
    payload. (An array's shadow has the same name and shape.)
    """
    found = [b for b in buffers if b.name == name and len(b.shape) > axis]
    alone = len({b.shape for b in found}) == 1 and None in found[0].shape and found[0].rank < PAYLOAD_WORDS
    return found[0] if alone else None


def first_index(op: Check) -> int:
    """The first index along the axis of a bounds check, as the user counts."""
    first = op.args[3] if len(op.args) > 3 else None
    return int(first.value) if isinstance(first, Lit) else 0


def shown_by(op: Check) -> tuple[Atom, ...]:
    """The values that a fault shows, limited by the size of its payload."""
    return op.args[1:][:PAYLOAD_WORDS]


def fault_site(op: Check) -> Site:
    """The site of a check other than a bounds check."""
    if op.kind is FaultKind.BOUNDS:
        raise CompilerBug("sites", f"a check of an index has a site of its own: {op!r}")
    kind = SiteKind(op.kind.value)
    has_message = op.kind in (FaultKind.ASSERT, FaultKind.OVERFLOW, FaultKind.FINITE)
    return Site(kind, op.loc, op.text, _message(op.text, shown_by(op)) if has_message else ())


def print_site(op: Print) -> Site:
    """The site of a print; a tensor is printed as nested lists of its components, in row-major order."""
    values = iter(zip(op.args, op.specs, strict=True))
    parts: list[Part] = []
    for part in op.parts:
        parts += [part] if part is not None else _parts(*next(values))
    return Site(SiteKind.PRINT, op.loc, op.about, tuple(parts))


def _parts(atom: Atom, spec: str) -> list[Part]:
    value = PrintedValue(element_type(atom.type).name, spec)
    return [value if part is None else part for part in nested_parts(shape_of(atom.type))]


def _message(text: str, shown: Sequence[Atom]) -> tuple[Part, ...]:
    """A format text as parts; values that do not fit into a fault's payload are shown as dots."""
    rest = iter(shown)
    parts: list[Part] = []
    room = PAYLOAD_WORDS
    for hole in split_message(text):
        if isinstance(hole, str):
            parts.append(hole)
            continue
        atom = next(rest, None)
        for part in ["..."] if atom is None else _parts(atom, hole.spec):
            if isinstance(part, PrintedValue):
                room -= 1
            parts.append(part if room >= 0 else "...")
    return tuple(parts)
