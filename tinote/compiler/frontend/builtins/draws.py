"""Random numbers in a kernel, numbered by iteration and draw."""

from __future__ import annotations

from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.scopes import Anchor, ParallelNest
from tinote.compiler.frontend.values import Value
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Local, Var
from tinote.ir.types import Ref, i32, i64, u64


def random_bits(e: Emitter) -> Value:
    """Another 32 random bits: the next draw of this iteration."""
    if e.launch_seed is None:
        e.launch_seed = Var(u64, "launch_seed")
    nest = e.nest
    draws = e.top_draws if nest is None else nest.draws
    if draws is None:
        draws = _start_draws(e, e.top if nest is None else nest.start, nest)
        if nest is None:
            e.top_draws = draws
        else:
            nest.draws = draws
    iteration, counter = draws
    draw = e.b.get(counter)
    e.b.set(counter, e.b.prim(p.add, draw, Lit(1, i32)))
    return Value(e.b.prim(p.random_bits, e.launch_seed, iteration, draw))


def _start_draws(e: Emitter, start: Anchor, nest: ParallelNest | None) -> tuple[Atom, Var]:
    """Put the iteration's number and the counter of its draws at the start of the iteration. The counter starts
    elsewhere in every loop of the kernel, so that two loops do not draw the same numbers.
    """
    iteration: Atom = Lit(0, i64)
    number = 0 if nest is None else nest.number
    with e.b.region() as opened:
        for index, first, end in () if nest is None else nest.axes:
            offset, extent = e.b.cast(index, i64), e.b.cast(end, i64)
            if not (isinstance(first, Lit) and first.value == 0):
                offset = e.b.prim(p.sub, offset, e.b.cast(first, i64))
                extent = e.b.prim(p.sub, extent, e.b.cast(first, i64))
            if not isinstance(iteration, Lit):
                offset = e.b.prim(p.add, e.b.prim(p.mul, iteration, extent), offset)
            iteration = offset
        counter = Var(Ref(i32), "draw")
        e.b.emit(Local((Lit(i32.wrap(number << 24), i32),), (counter,), (), e.b.loc))
    start.insert(*opened.body)
    return iteration, counter
