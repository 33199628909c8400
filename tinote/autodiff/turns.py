"""Small pieces that differentiated loops are made of."""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Prim, Region, Var, While
from tinote.ir.types import Scalar, Tensor, i64

__all__ = ["Carried", "content_of", "counting", "look"]


class Carried(NamedTuple):
    """What a reverse loop carries: its parameters, their initial values, the primal variables they are adjoints of;
    `active`: positions in the primal loop.
    """

    params: tuple[Var, ...]
    initial: tuple[Atom, ...]
    targets: tuple[Var, ...]
    active: tuple[int, ...]


def look(env: dict[Var, Atom], atom: Atom) -> Atom:
    return env.get(atom, atom) if type(atom) is Var else atom


def content_of(v: Var) -> Scalar | Tensor:
    assert isinstance(v.type, Scalar | Tensor)
    return v.type


def counting(loop: While) -> tuple[While, Var]:
    """`loop` with a further carried value that counts its turns, and the variable that holds the final count."""
    asked, turn, following = Var(i64, "turns"), Var(i64, "turns"), Var(i64, "turns")
    step = Prim(p.add, (turn, Lit(1, i64)), (following,), loop.loc, loop.origin)
    condition = Region((*loop.condition.params, asked), loop.condition.body, loop.condition.yields)
    body = Region((*loop.body.params, turn), (*loop.body.body, step), (*loop.body.yields, following))
    count = Var(i64, "turns")
    return While((*loop.initial, Lit(0, i64)), condition, body, (*loop.outs, count), loop.loc, loop.origin), count
