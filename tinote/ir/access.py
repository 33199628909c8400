"""The access analysis: what the indices of loads and stores are, and so which elements may meet."""

from __future__ import annotations

from collections.abc import Mapping

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Buffer, BufferKind, Lit, Op, Prim, Var

__all__ = ["buffers_may_meet", "indices_differ", "root_of"]


def root_of(buffer: Buffer) -> Buffer:
    """The memory that a flat view looks at; the buffer itself if it is none."""
    while buffer.flat is not None:
        buffer = buffer.flat
    return buffer


def buffers_may_meet(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers may share memory: arrays may be views of one another or of a field, nothing else does."""
    a, b = root_of(a), root_of(b)
    if a is b:
        return True
    kinds = (BufferKind.ARRAY, BufferKind.FIELD)
    return BufferKind.ARRAY in (a.kind, b.kind) and a.kind in kinds and b.kind in kinds


def _base_and_offset(atom: Atom, definitions: Mapping[Var, Op]) -> tuple[Var | None, int]:
    """An integer as a variable (None for zero) plus a number, modulo the width of its type."""
    offset = 0
    while type(atom) is Var:
        op = definitions.get(atom)
        if not isinstance(op, Prim) or op.prim not in (p.add, p.sub) or type(op.args[1]) is not Lit:
            return atom, offset
        step = int(op.args[1].value)
        offset += step if op.prim is p.add else -step
        atom = op.args[0]
    assert isinstance(atom, Lit)
    return None, offset + int(atom.value)


def indices_differ(a: tuple[Atom, ...], b: tuple[Atom, ...], definitions: Mapping[Var, Op], apart: int = 1) -> bool:
    """Whether two index tuples never name the same element: in some dimension they differ by a known number other than
    zero (of at least `apart`, for byte offsets). `definitions` says how variables are computed."""
    for x, y in zip(a, b, strict=False):
        if x is y:
            continue
        (base, offset), (other, shift) = _base_and_offset(x, definitions), _base_and_offset(y, definitions)
        if base is other:
            distance = (offset - shift) & ((1 << _bits(x)) - 1)
            if apart <= distance <= (1 << _bits(x)) - apart:
                return True
    return False


def _bits(atom: Atom) -> int:
    t = atom.type
    return getattr(t, "bits", 64) or 64
