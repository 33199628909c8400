"""Reverse mode: adds the sweep that computes adjoints from the loss back to the parameters.

And what makes a gradient trustworthy: what it reads again, what it must not read, and where the path from parameter to
loss would break.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from tinote.autodiff.activity import Broken, broken_at, reached_from
from tinote.autodiff.atomic_old_values import NO_OLD_VALUES, OldValues, plan_old_values, replay
from tinote.autodiff.custom_vjp import lift_values
from tinote.autodiff.dependence_distance import CarriedDependence, refuse_carried_dependence
from tinote.autodiff.overwritten_inputs import Overwrite, find_overwrites, refuse_overwrite
from tinote.autodiff.reverse import Adjoint, Reverser
from tinote.autodiff.sequential_reverse import make_sequential
from tinote.autodiff.settled_extrema import settled_extrema
from tinote.autodiff.shared_values import NOTHING_SHARED, SharedValues, replay_shared, share
from tinote.autodiff.storage import NO_PLAN, StoragePlan, store
from tinote.autodiff.storage_plan import begins_anew, executed_loads, plan_storage, with_temporaries
from tinote.autodiff.unfold import may_serialise, unfold_atomics
from tinote.autodiff.winners import select_winners
from tinote.autodiff.write_conflicts import refuse_write_conflicts
from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, Function, Lit, Load, Prim, Region, Store
from tinote.ir.primitives import Defaults, surrogate
from tinote.ir.query import definitions, free_variables, walk

DEFAULTS = Defaults()


class Gradient(NamedTuple):
    """The gradient function, and what must be known to trust it.

    `live_in_loads`: the primal loads that it executes again. `broken`: stores of an active value into a buffer without
    a gradient, where the gradient path breaks if anybody needs that. `primal`: what was differentiated.
    `live_in_before`: the buffers that are live in to the gradient as they were before the primal launch, because of
    `overwrites`, unless they are extrema whose final value suffices; those that the launch fills first are not, since
    the gradient works on a temporary instead.
    `old_values`: what the primal launch must have saved, in the order in which a launch gets it after its arrays.
    `copies`: memory, and the array that has its shape, which the launch gets after these. `in_order`: loops that are
    parallel in the primal have the order of one thread in it.
    """

    function: Function
    live_in_loads: tuple[Load, ...]
    broken: tuple[Broken, ...]
    primal: Function
    live_in_before: frozenset[Buffer] = frozenset()
    overwrites: tuple[Overwrite, ...] = ()
    old_values: OldValues | SharedValues = NO_OLD_VALUES
    copies: tuple[tuple[Buffer, Buffer], ...] = ()
    in_order: bool = False


def reverse(
    fn: Function,
    defaults: Defaults = DEFAULTS,
    *,
    arguments: bool = False,
    reverser: type[Reverser] = Reverser,
    shares: bool = False,
    directions: int = 1,
) -> Gradient:
    """Differentiate `fn` (scalar form, simplified), also with respect to its float arguments if `arguments` says so
    (`Reverser`). Raises a located `DifferentiationError` for what has no derivative. `reverser`: the class that does
    it, for callers that observe it. `shares`: the primal launch saves what both compute. `directions`: how many
    adjoints each value has; gradients of fields hold as many for each number.
    """
    given, dependence, in_order = fn, None, False
    found, shared = share(fn, defaults) if shares else (fn, NOTHING_SHARED)
    old: OldValues | SharedValues = shared
    if shared.values:
        fn = replay_shared(found, shared)
    else:
        old = plan_old_values(fn)
        distinct = {value.buffer for value in old.values}
        fn, dependence, in_order = make_sequential(
            unfold_atomics(replay(lift_values(fn), old), may_serialise), distinct
        )
        fn = select_winners(fn, arguments=arguments)
    saved = {value.buffer for value in old.values}
    adjoint = reverser(fn, defaults, arguments=arguments, directions=directions).adjoint()
    _refuse(given, fn, dependence, adjoint)
    broken = tuple([broken_at(write, fn, arguments=arguments) for write in adjoint.broken])
    overwrites: tuple[Overwrite, ...] = ()
    plan = NO_PLAN
    while True:
        gradient = _stored(fn, adjoint, plan, executed_loads(plan, overwrites), defaults, shared)
        further = tuple(find_overwrites(fn, gradient.live_in_loads))
        if not further:
            read = {load.buffer for load in gradient.live_in_loads}
            settled = settled_extrema(given) if overwrites else frozenset[Buffer]()
            return gradient._replace(
                live_in_loads=tuple([load for load in gradient.live_in_loads if load.buffer not in saved]),
                overwrites=tuple([o for o in overwrites if o.load.buffer in gradient.live_in_before - settled]),
                old_values=old if read & saved else NO_OLD_VALUES,
                broken=broken,
                in_order=in_order,
            )
        if all(overwrite.load.buffer in plan.buffers for overwrite in further):
            refuse_overwrite(
                further[0],
                hint="write to another field, or let reading and overwriting be separate launches",
            )
        # Operations that are executed for their effects may use what was not used before.
        overwrites += further
        plan = plan_storage(fn, overwrites)


def _refuse(given: Function, fn: Function, dependence: CarriedDependence | None, adjoint: Adjoint) -> None:
    """Raise where `given` has no gradient that could be trusted; `fn` is what was differentiated in its place."""
    if adjoint.region.body:
        refuse_gradient_access(fn)
        refuse_write_conflicts(given)
        refuse_carried_dependence(dependence)


def _stored(
    fn: Function, adjoint: Adjoint, plan: StoragePlan, found: Set[Load], defaults: Defaults, shared: SharedValues
) -> Gradient:
    """`found`: the loads that find their values in any case."""
    region = store(fn, adjoint, plan, defaults, frozenset([value.buffer for value in shared.values]))
    needed: dict[Load, None] = {}
    for op in walk(region):
        if (
            isinstance(op, Load)
            and isinstance(op.origin, Load)
            and op.buffer is op.origin.buffer
            and op.origin not in found
        ):
            needed[op.origin] = None
    _refuse_needed_gradients(needed)
    _refuse_unavailable(region, fn)
    kept = [b for b in plan.buffers if b.kind is not BufferKind.TEMPORARY]
    anew = [b for b in kept if begins_anew(fn, b)]
    grad = with_temporaries(Function(f"{fn.name}.grad", region, fn.loc), anew)
    return Gradient(grad, tuple(needed), (), fn, frozenset(kept).difference(anew), copies=plan.provided)


def _refuse_unavailable(region: Region, fn: Function) -> None:
    """Raise where a gradient uses a value that storage cannot provide."""
    free = free_variables(region)
    if not free:
        return
    made = definitions(fn.region)
    for v in free:
        if isinstance(made.get(v), Atomic):
            raise DifferentiationError(
                "the gradient needs the old value that this atomic operation returned, which depends on the order in "
                "which the iterations of a parallel loop ran, and is kept only where it is not a differentiated value "
                "itself and the number of iterations is known before the launch",
                made[v].loc,
                hint="write ti.loop_config(serialize=True) before the loop",
            )


def carried_on(buffer: Buffer, fn: Function, *, arguments: bool = False) -> tuple[list[Store | Atomic], Note | None]:
    """What becomes in `fn` of active values of `buffer`, which has no gradient: the writes that carry them on into
    fields, and where they come to one that has a gradient, or are returned where `arguments` says that this counts:
    they would silently count as constant.
    """
    writes, returned = reached_from(fn, buffer)
    needed = next((w for w in writes if w.buffer.adjoint is not None), None)
    if needed is not None:
        return writes, Note(f"from there they reach '{needed.buffer.name}'", needed.loc)
    return writes, Note("from there this kernel returns them", fn.loc) if returned and arguments else None


def refuse_gradient_access(fn: Function) -> None:
    """Raise for a kernel that itself works on gradients: it has no derivative by these rules, unless those that it
    reads are constants to it (`ti.stop_grad`).
    """
    used: set[Atom] = set()
    for op in walk(fn.region):
        used.update(op.args[1:] if isinstance(op, Prim) and _stops(op) else op.args)
        used.update(*[inner.yields for inner in op.regions])
    used.update(fn.region.yields)
    for op in walk(fn.region):
        if not isinstance(op, Load | Store | Atomic) or op.buffer.primal is None:
            continue
        if isinstance(op, Load) and op.out not in used:
            continue
        verb = "reads" if isinstance(op, Load) else "writes"
        read = f"read it under ti.stop_grad({op.buffer.name}) if it is a constant here, " if verb == "reads" else ""
        raise DifferentiationError(
            f"this kernel {verb} the gradient '{op.buffer.name}' and cannot be differentiated itself",
            op.loc,
            hint=f"{read}launch it outside of the tape, or put this part into a kernel of its own",
        )


def _stops(op: Prim) -> bool:
    """Whether the first operand becomes a constant."""
    return op.prim is surrogate and isinstance(op.args[1], Lit) and op.args[1].value == 0


def _refuse_needed_gradients(needed: Iterable[Load]) -> None:
    """Raise if a gradient is to be read again: the reverse sweep changes gradients as it proceeds."""
    for load in needed:
        if load.buffer.primal is not None:
            raise DifferentiationError(
                f"the derivative needs the value of the gradient '{load.buffer.name}' as the kernel found it, "
                "and the reverse sweep changes that",
                load.loc,
                hint="copy it into a field of its own before, and read that",
            )
