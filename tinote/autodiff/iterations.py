"""Small pieces that differentiated functions are made of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple, Protocol

from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.build import Builder, OpenRegion
from tinote.ir.nodes import Atom, Atomic, If, Lit, Load, NewStack, Op, Prim, Push, Region, Store, Var, While
from tinote.ir.prune import prune
from tinote.ir.query import walk
from tinote.ir.types import Scalar, Tensor, i32, i64

__all__ = [
    "Carried",
    "Differentiator",
    "add_to_shared",
    "content_of",
    "counting",
    "look",
    "pruned",
    "shared_adjoint",
    "shared_sum",
    "with_pushes",
]


class Differentiator(Protocol):
    """What differentiates single operations and knows their adjoints: `reverse.Reverser`, as its parts see it."""

    builder: Builder
    unavailable: dict[Var, Op]

    def register(self, op: Op, copy: Op) -> Op: ...

    def backward(self, op: Op, item: list[Op], env: dict[Var, Atom], adjoints: dict[Var, Atom], top: bool) -> None: ...

    def backward_if(
        self,
        op: If,
        env: dict[Var, Atom],
        adjoints: dict[Var, Atom],
        emit: Callable[[int, OpenRegion, dict[Var, Atom]], None] | None = None,
        finish: Callable[[int, Region], Region] = ...,
    ) -> None: ...

    def accumulate(self, adjoints: dict[Var, Atom], target: Atom, g: Atom | None) -> None: ...

    def zero_of(self, v: Var) -> Atom: ...

    def has_adjoint_work(self, op: Op, seeds: list[Atom | None]) -> bool: ...

    def outer_varied(self, *regions: Region) -> list[Var]: ...

    def adjoint_body(
        self,
        region: Region,
        params: tuple[Var, ...],
        initial: tuple[Atom, ...],
        seeds: list[Atom | None],
        outer: list[Var],
        adjoints: dict[Var, Atom],
        emit: Callable[[OpenRegion, dict[Var, Atom]], None],
    ) -> tuple[Region, Carried]: ...

    def settle(
        self, carried: Carried, outs: tuple[Var, ...], initial: tuple[Atom, ...], adjoints: dict[Var, Atom]
    ) -> None: ...


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


def shared_adjoint(v: Var) -> Buffer:
    """A temporary in which the turns of a parallel loop add up the adjoint of `v`."""
    t = content_of(v)
    dtype, element = (t.dtype, t.shape) if isinstance(t, Tensor) else (t, ())
    return Buffer(f"{v.name or 'shared'}.grad", dtype, (), element, BufferKind.TEMPORARY)


def add_to_shared(builder: Builder, shared: Buffer, g: Atom) -> None:
    """Add one turn's share, `g`, to the adjoint in `shared`."""
    for index in _components(shared):
        builder.atomic(p.add, shared, index, builder.extract(g, *index) if index else g)


def shared_sum(builder: Builder, shared: Buffer, v: Var) -> Atom:
    """The adjoint of `v` that all turns have added up in `shared`."""
    found = [builder.load(shared, index) for index in _components(shared)]
    return builder.pack(found, v.type) if isinstance(v.type, Tensor) else found[0]


def _components(buffer: Buffer) -> list[tuple[Atom, ...]]:
    return [tuple([Lit(k, i32) for k in index]) for index in product(*[range(n) for n in buffer.element])]


def counting(loop: While) -> tuple[While, Var]:
    """`loop` with a further carried value that counts its turns, and the variable that holds the final count."""
    asked, turn, following = Var(i64, "turns"), Var(i64, "turns"), Var(i64, "turns")
    step = Prim(p.add, (turn, Lit(1, i64)), (following,), loop.loc, loop.origin)
    condition = Region((*loop.condition.params, asked), loop.condition.body, loop.condition.yields)
    body = Region((*loop.body.params, turn), (*loop.body.body, step), (*loop.body.yields, following))
    count = Var(i64, "turns")
    return While((*loop.initial, Lit(0, i64)), condition, body, (*loop.outs, count), loop.loc, loop.origin), count


def pruned(region: Region) -> Region:
    """`region` without dead code, writes to temporaries that nobody loads included."""
    region = prune(region)
    while True:
        read = {op.buffer for op in walk(region) if isinstance(op, Load)}
        without = _without_unread_temporaries(region, read)
        if without is region:
            return region
        region = prune(without)


def _without_unread_temporaries(region: Region, read: set[Buffer]) -> Region:
    """`region` without writes to temporaries that nobody loads; itself when there are none."""
    body: list[Op] = []
    for op in region.body:
        if isinstance(op, Store | Atomic) and op.buffer.kind is BufferKind.TEMPORARY and op.buffer not in read:
            continue
        regions = tuple([_without_unread_temporaries(r, read) for r in op.regions])
        body.append(
            op if all(a is b for a, b in zip(regions, op.regions, strict=True)) else op.rebuilt(op.args, regions)
        )
    if len(body) == len(region.body) and all(a is b for a, b in zip(body, region.body, strict=True)):
        return region
    return Region(region.params, tuple(body), region.yields)


def with_pushes(
    builder: Builder, loop: Op, params: tuple[Var, ...], pops: list[tuple[int, Var]], bounds: tuple[Atom, Atom] | None
) -> list[Op]:
    """New stacks, and `loop` with a push of each needed carried value at the start of its body. Without bounds the
    stacks must grow.
    """
    with builder.region() as opened:
        capacity = () if bounds is None else (trip_count(builder, *bounds),)
        for _, stack in pops:
            builder.emit(NewStack(capacity, (stack,), (), loop.loc, loop.origin))
    pushes: list[Op] = [Push((stack, params[k]), (), (), loop.loc, loop.origin) for k, stack in pops]
    body = loop.regions[-1]
    regions = (*loop.regions[:-1], Region(body.params, (*pushes, *body.body), body.yields))
    return [*opened.body, loop.rebuilt(loop.args, regions)]


def trip_count(builder: Builder, lo: Atom, hi: Atom) -> Atom:
    if isinstance(lo, Lit) and isinstance(hi, Lit):
        return Lit(max(int(hi.value) - int(lo.value), 0), i64)
    count = builder.prim(p.sub, builder.cast(hi, i64), builder.cast(lo, i64))
    return builder.prim(p.maximum, count, Lit(0, i64))
