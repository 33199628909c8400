"""The table of contents of the compiler: every step a function goes through between the front end and code generation,
in order.

`steps_for` composes what a request needs. A step is a function from IR to IR that returns its argument when there is
nothing to do; a `Fixpoint` repeats its steps until none of them changes anything. The listener receives a `Snapshot`
after each step: the old function and the new one, both immutable. The steps that differentiate, record and instrument
are in `derivative_steps.py`, which is loaded when one of them runs: most first calls are of a kernel alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tinote.compiler.context import Context
from tinote.compiler.passes.analyses.choose_lanes import Machine, is_candidate
from tinote.compiler.passes.checks.check_bounds import check_bounds
from tinote.compiler.passes.checks.check_finite import check_finite
from tinote.compiler.passes.checks.check_overflow import check_overflow
from tinote.compiler.passes.checks.drop_checks import drop_checks
from tinote.compiler.passes.checks.guard_accesses import guard_accesses
from tinote.compiler.passes.checks.hoist_checks import hoist_checks
from tinote.compiler.passes.checks.merge_checks import merge_checks
from tinote.compiler.passes.checks.unswitch_guards import unswitch_guards
from tinote.compiler.passes.checks.watch_conflicts import watch_conflicts
from tinote.compiler.passes.loops.collapse import collapse
from tinote.compiler.passes.loops.if_convert import if_convert
from tinote.compiler.passes.loops.interchange import interchange
from tinote.compiler.passes.loops.keep_order import keep_order
from tinote.compiler.passes.loops.mark_vector_loops import mark_vector_loops
from tinote.compiler.passes.loops.narrow_loops import narrow_loops
from tinote.compiler.passes.loops.peel_borders import peel_borders
from tinote.compiler.passes.loops.scatter_to_gather import scatter_to_gather
from tinote.compiler.passes.loops.split_loops import split_loops
from tinote.compiler.passes.loops.unflatten import unflatten
from tinote.compiler.passes.loops.unroll_and_jam import unroll_and_jam
from tinote.compiler.passes.loops.unroll_partially import unroll_partially
from tinote.compiler.passes.loops.vectorise import vectorise
from tinote.compiler.passes.lowering.drop_adjoints import drop_adjoints
from tinote.compiler.passes.lowering.infer_types import infer_types
from tinote.compiler.passes.lowering.lower_access import lower_access
from tinote.compiler.passes.lowering.lower_arrays import lower_arrays
from tinote.compiler.passes.lowering.offload import offload
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.compiler.passes.lowering.scalarise import scalarise
from tinote.compiler.passes.lowering.select_reverse_form import select_reverse_form
from tinote.compiler.passes.lowering.split_directions import split_directions
from tinote.compiler.passes.lowering.split_temporaries import split_temporaries
from tinote.compiler.passes.simplification.cse import cse
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.compiler.passes.simplification.fold import fold
from tinote.compiler.passes.simplification.forward_stores import forward_stores
from tinote.compiler.passes.simplification.hoist_invariants import hoist_invariants
from tinote.compiler.passes.simplification.reassociate import reassociate
from tinote.compiler.passes.simplification.solve_inductions import solve_inductions
from tinote.compiler.passes.updates.accumulate import accumulate
from tinote.compiler.passes.updates.demote_atomics import demote_atomics
from tinote.compiler.passes.updates.privatise import privatise
from tinote.compiler.passes.updates.recognise_reductions import order_iterations, recognise_reductions
from tinote.compiler.passes.updates.recognise_updates import recognise_updates
from tinote.compiler.passes.updates.store_first import storing_first
from tinote.compiler.requests import PRIMAL, Checks, Derivative, Request
from tinote.config import Config
from tinote.errors import CompilerBug, TinoteError, refusing_deep_nests
from tinote.ir.access import sharing_accesses
from tinote.ir.forms import Form, InvalidIR
from tinote.ir.nodes import Buffer, Function, MemoryOp
from tinote.ir.query import walk
from tinote.ir.verify import verify
from tinote.lazy import lazy
from tinote.remarks import Remark, Report

if TYPE_CHECKING:
    from tinote.autodiff import keep_order as differentiable_order
    from tinote.compiler import derivative_steps
    from tinote.compiler.launch import gpu_launch
    from tinote.ir import access_region
    from tinote.runtime import jit
else:
    differentiable_order = lazy("tinote.autodiff.keep_order")
    derivative_steps = lazy("tinote.compiler.derivative_steps")
    gpu_launch = lazy("tinote.compiler.launch.gpu_launch")
    access_region = lazy("tinote.ir.access_region")
    # llvmlite takes long to load, and what becomes plain Python does without it.
    jit = lazy("tinote.runtime.jit")

#: Invocations for which a GPU has a use, and a CPU that stands in for one. Chosen, not measured.
_INVOCATIONS_AT_ONCE, _INVOCATIONS_AT_ONCE_IN_SOFTWARE = 1 << 18, 1 << 10


class Snapshot(NamedTuple):
    """One step that ran: `after is before` when it changed nothing."""

    step: str
    before: Function
    after: Function
    seconds: float


Listener = Callable[[Snapshot], None]


class Step(NamedTuple):
    """`form`: what the function must look like afterwards (the verifier checks it in debug mode and in tests)."""

    run: Callable[[Function, Context], Function]
    form: Form
    name: str


class Fixpoint(NamedTuple):
    """Repeat `steps` until all of them, one after the other, change nothing; more than `limit` rounds is a bug."""

    name: str
    steps: tuple[Step, ...]
    limit: int = 20


Steps = tuple[Step | Fixpoint, ...]


def _plain(run: Callable[[Function], Function], form: Form) -> Step:
    return Step(lambda fn, _: run(fn), form, run.__name__)


def _reporting(run: Callable[[Function, Report], Function], form: Form) -> Step:
    """A step that says where and why it leaves something as it is."""
    return Step(lambda fn, context: run(fn, context.report), form, run.__name__)


def _simplify(form: Form, *, keep_checks: bool = False) -> Fixpoint:
    """`keep_checks`: the program is still as it was written, and what it drops leaves its checks."""
    return Fixpoint(
        "simplify",
        (
            Step(lambda fn, context: fold(fn, fast_math=context.config.fast_math), form, "fold"),
            *((_plain(solve_inductions, form),) if keep_checks else ()),
            _plain(cse, form),
            _plain(forward_stores, form),
            _plain(hoist_invariants, form),
            Step(
                lambda fn, context: eliminate_dead(fn, keep_checks=keep_checks and context.config.bounds_check),
                form,
                "eliminate_dead",
            ),
        ),
    )


def _reverse(*, arguments: bool, once: bool, shares: bool, directions: int) -> Steps:
    """`once`: nothing is differentiated afterwards."""
    return (
        Step(
            lambda fn, context: derivative_steps.take_reverse(
                fn, context, arguments=arguments, shares=shares, directions=directions
            ),
            Form.PROMOTED,
            "reverse",
        ),
        *((_plain(split_directions, Form.PROMOTED),) if directions > 1 else ()),
        *((_plain(drop_adjoints, Form.PROMOTED),) if once else ()),
        _plain(scalarise, Form.SCALAR),
        SPLITTING,
        Step(
            lambda fn, context: scatter_to_gather(fn, context.report, fast_math=context.config.fast_math),
            Form.SCALAR,
            "scatter_to_gather",
        ),
        _simplify(Form.SCALAR),
    )


def _forward(*, arguments: bool, directions: int) -> Steps:
    return (
        Step(
            lambda fn, context: derivative_steps.take_forward(fn, context, arguments=arguments, directions=directions),
            Form.PROMOTED,
            "forward",
        ),
        _plain(drop_adjoints, Form.PROMOTED),
        _plain(scalarise, Form.SCALAR),
        _simplify(Form.SCALAR),
    )


def _check(fn: Function, context: Context) -> Function:
    return check_bounds(fn) if context.config.bounds_check else fn


def _guard(fn: Function, context: Context) -> Function:
    return guard_accesses(fn) if context.config.bounds_check == "ignore" else fn


def _unswitch(fn: Function, context: Context) -> Function:
    return unswitch_guards(fn) if context.config.bounds_check == "ignore" else fn


def _recognise_updates(fn: Function, context: Context) -> Function:
    """On a GPU, updates of 64 bits would run in one invocation."""
    on_gpu = context.config.arch == "gpu"
    return recognise_updates(fn, lambda t: t.bits < 64 or not on_gpu)


def _check_overflow(fn: Function, context: Context) -> Function:
    return check_overflow(recognise_reductions(fn)) if context.config.reports_overflow else fn


def _privatise(fn: Function, context: Context) -> Function:
    return privatise(fn, context.report, one_thread=context.config.num_threads == 1)


def _demote_atomics(fn: Function, context: Context) -> Function:
    return demote_atomics(fn, one_thread=context.config.num_threads == 1)


def machine_of(config: Config) -> Machine:
    """What it is estimated for whether a loop should run in lanes."""
    bits: int = jit.host().vector_bits
    return Machine(bits, 32 if bits == 512 else 16, config.fast_math)


def wasm_machine(config: Config) -> Machine:
    """The same for WebAssembly."""
    return Machine(128, 16, config.fast_math)


def _keep_order(fn: Function, context: Context) -> Function:
    """On a GPU what keeps its order runs in one invocation: there only where the order of one thread counts, which is
    where its values are differentiated.
    """
    if context.config.arch != "gpu":
        return keep_order(fn, context.report, exact=not context.config.fast_math)
    accesses = [op for op in walk(fn.region) if isinstance(op, MemoryOp)]
    differentiated = any(op.buffer.adjoint is not None or op.buffer.tangent is not None for op in accesses)
    return differentiable_order.keep_order(fn, context.report) if differentiated else fn


def _watch_conflicts(fn: Function, context: Context) -> Function:
    watches = context.config.debug and context.config.arch == "cpu"
    return watch_conflicts(fn, context.report) if watches else fn


def _vectorise(fn: Function, context: Context) -> Function:
    config = context.config
    if config.lanes == "never":
        for op in filter(is_candidate, walk(fn.region)):
            context.report(Remark("vectorise", op.loc, "lanes='never' is in force"))
        return fn
    return vectorise(fn, context.machine or machine_of(config), context.report, always=config.lanes == "always")


def _record(fn: Function, context: Context, *, shares: bool) -> Function:
    return derivative_steps.record_old_values(fn, context, shares=shares)


def _accumulate(fn: Function, context: Context, *, reduces: bool = False) -> Function:
    return accumulate(fn, context.config.fast_math, reduces=reduces)


def _store_first(fn: Function, context: Context, *, zeroed: frozenset[Buffer]) -> Function:
    found, stores = storing_first(fn, zeroed)
    context.filled = access_region.filled_by(found, stores)
    return found


def _reassociate(fn: Function, context: Context) -> Function:
    return reassociate(fn) if context.config.fast_math else fn


def _unroll_and_jam(fn: Function, context: Context) -> Function:
    at_once = _INVOCATIONS_AT_ONCE
    if context.config.arch == "gpu":
        if gpu_launch.device_of(context.config, fn.loc).info.software:
            at_once = _INVOCATIONS_AT_ONCE_IN_SOFTWARE
    return unroll_and_jam(fn, at_once, context.report)


INFERENCE = Step(lambda fn, context: infer_types(fn, context.defaults), Form.TYPED, "infer_types")

SIMPLIFICATION: Steps = (
    _plain(promote_locals, Form.PROMOTED),
    _plain(scalarise, Form.SCALAR),
    Step(_recognise_updates, Form.SCALAR, "recognise_updates"),
    Step(_guard, Form.SCALAR, "guard_accesses"),
    Step(_check_overflow, Form.SCALAR, "check_overflow"),
    _simplify(Form.SCALAR, keep_checks=True),
    _reporting(order_iterations, Form.SCALAR),
    _plain(split_temporaries, Form.SCALAR),
    _plain(narrow_loops, Form.SCALAR),
)

VECTORISATION = Step(_vectorise, Form.LOWERED, "vectorise")

ACCUMULATION = Step(_accumulate, Form.SCALAR, "accumulate")
GPU_ACCUMULATION = Step(partial(_accumulate, reduces=True), Form.SCALAR, "accumulate")

LOWERING: Steps = (
    Step(_check, Form.SCALAR, "check_bounds"),
    _plain(hoist_checks, Form.SCALAR),
    _plain(merge_checks, Form.SCALAR),
    ACCUMULATION,
    _plain(offload, Form.TASKS),
    Step(_privatise, Form.TASKS, "privatise"),
    Step(_demote_atomics, Form.TASKS, "demote_atomics"),
    _plain(lower_arrays, Form.TASKS),
    _reporting(mark_vector_loops, Form.TASKS),
    _plain(if_convert, Form.TASKS),
    Step(_reassociate, Form.TASKS, "reassociate"),
    _plain(lower_access, Form.LOWERED),
    _simplify(Form.LOWERED),
    VECTORISATION,
    Step(_unswitch, Form.LOWERED, "unswitch_guards"),
)

#: For a GPU: what serves the threads and the vectors of a CPU is left out, and accesses keep their indices. Iterations
#: that would update the same elements at the same time are taken apart.
GPU_LOWERING: Steps = (
    GPU_ACCUMULATION,
    _plain(interchange, Form.SCALAR),
    *[GPU_ACCUMULATION if step is ACCUMULATION else step for step in LOWERING[:5]],
    Step(lambda fn, _: demote_atomics(fn, one_thread=False), Form.TASKS, "demote_atomics"),
    _plain(collapse, Form.TASKS),
    Step(_unroll_and_jam, Form.TASKS, "unroll_and_jam"),
    _plain(lower_arrays, Form.TASKS),
    Step(_reassociate, Form.TASKS, "reassociate"),
    _reporting(unroll_partially, Form.TASKS),
    _simplify(Form.TASKS),
)

ORDERING = Step(_keep_order, Form.SCALAR, "keep_order")
WATCHING = Step(_watch_conflicts, Form.SCALAR, "watch_conflicts")
SPLITTING = _plain(split_loops, Form.SCALAR)
ROWS: Steps = (
    _plain(unflatten, Form.SCALAR),
    _plain(hoist_invariants, Form.SCALAR),
    _plain(narrow_loops, Form.SCALAR),
    _plain(peel_borders, Form.SCALAR),
    _plain(drop_checks, Form.SCALAR),
)
CHOOSING = Step(lambda fn, _: select_reverse_form(fn, reverse=False), Form.TYPED, "select_reverse_form")
CHOOSING_FOR_REVERSE = Step(lambda fn, _: select_reverse_form(fn, reverse=True), Form.TYPED, "select_reverse_form")
DROPPING = _plain(drop_adjoints, Form.TYPED)
GUARDING = Step(_guard, Form.TYPED, "guard_accesses")
INSTRUMENTING = Step(lambda fn, context: derivative_steps.add_checks(fn, context), Form.TYPED, "instrument")
RECORDING, SHARING = [Step(partial(_record, shares=shares), Form.SCALAR, "record") for shares in (False, True)]
SKIPPING = Step(lambda fn, _: derivative_steps.skip_zero_adjoints(fn), Form.SCALAR, "skip_zero_adjoints")
FINITE_CHECKING = _plain(check_finite, Form.SCALAR)


def storing_first_in(zeroed: frozenset[Buffer]) -> Step:
    """The step that stores what is added first to these gradients."""
    return Step(partial(_store_first, zeroed=zeroed), Form.SCALAR, "store_first")


def _when(condition: bool, *steps: Step | Fixpoint) -> Steps:
    return steps if condition else ()


def steps_for(request: Request, *, lower: bool = True, lowering: Steps = LOWERING) -> Steps:
    """What compiles a request, in order. Unless `lower`, it ends where the IR still speaks of loops, not of tasks."""
    arguments, checks = request.arguments, request.checks
    values_only = request.derivative is Derivative.NONE
    # To record, and to look for NaN, is to ask which values are differentiated.
    asks = request.records or checks is Checks.FINITE
    return (
        INFERENCE,
        CHOOSING_FOR_REVERSE if (request.reverses or request.shares) and not request.has_tangents else CHOOSING,
        *_when(values_only and not asks, DROPPING),
        *_when(checks is Checks.ACCESS_RULES, INSTRUMENTING),  # before anything is simplified: it sees every access
        *SIMPLIFICATION,
        *_when(request.records, SHARING if request.shares else RECORDING),
        *_when(request.records and values_only, DROPPING),
        *_when(
            request.reverses,
            *_reverse(
                arguments=arguments,
                once=not request.has_tangents,
                shares=request.shares,
                directions=request.directions,
            ),
        ),
        *_when(request.has_tangents, *_forward(arguments=arguments, directions=request.directions)),
        *_when(request.reverses, SKIPPING),
        # What an inner loop adds to one element is one sum by then.
        *_when(bool(request.zeroed), ACCUMULATION, storing_first_in(request.zeroed)),
        *_when(checks is Checks.FINITE, FINITE_CHECKING),
        # On a GPU a gradient's loops are those of which the iterations may run in any order.
        *_when(lower and not (request.reverses and lowering is GPU_LOWERING), ORDERING),
        *_when(lower and request is PRIMAL, WATCHING),
        *_when(lower and not request.reverses, SPLITTING),
        *_when(lower and lowering is LOWERING, *ROWS),
        *_when(lower, *lowering),
    )


#: What brings the primal into the form in which its accesses are looked at.
SCALAR_PRIMAL: Steps = (INFERENCE, DROPPING, *SIMPLIFICATION)


def python_steps_for(request: Request) -> Steps:
    """What precedes plain Python: a kernel as it was written, with types; derivatives before they speak of machines."""
    return (INFERENCE, CHOOSING, DROPPING, GUARDING) if request is PRIMAL else steps_for(request, lower=False)


def gpu_steps_for(request: Request) -> Steps:
    """What precedes WGSL."""
    return steps_for(request, lowering=GPU_LOWERING)


def steps_on(arch: str, request: Request) -> Steps:
    """What compiles a request for a target (`Config.arch`)."""
    made = {"python": python_steps_for, "gpu": gpu_steps_for}.get(arch)
    return steps_for(request) if made is None else made(request)


#: What makes of a function in first form one that can be differentiated, and the same of one that was already.
DIFFERENTIABLE: Steps = (INFERENCE, CHOOSING, *SIMPLIFICATION)
TIDYING: Steps = (_plain(scalarise, Form.SCALAR), _simplify(Form.SCALAR))


def after_inference(steps: Steps) -> Steps:
    """The same for a function whose types are known, and whose values are chosen."""
    return tuple([step for step in steps if step not in (INFERENCE, CHOOSING, CHOOSING_FOR_REVERSE)])


def run_pipeline(
    fn: Function,
    steps: Steps,
    config: Config,
    listen: Listener | None = None,
    enter: Callable[[str], None] | None = None,
    machine: Machine | None = None,
) -> tuple[Function, Context]:
    """Run `steps` on a function in first form. Gives the lowered function, and what the steps found out about it.
    `enter` is called with the name of each step when it begins; `machine`: for another one than this.
    """
    context = Context(config, machine)
    with refusing_deep_nests(fn.name, fn.loc), sharing_accesses():
        for step in steps:
            if enter is not None:
                enter(step.name)
            fn = _run(step, fn, context, "", listen)
    return fn, context


def _run(step: Step | Fixpoint, fn: Function, context: Context, path: str, listen: Listener | None) -> Function:
    if isinstance(step, Fixpoint):
        unchanged = 0
        for number in range(step.limit):
            for inner in step.steps:
                before = fn
                fn = _run(inner, fn, context, f"{path}{step.name} {number + 1}: ", listen)
                unchanged = unchanged + 1 if fn is before else 0
                if unchanged == len(step.steps):
                    return fn
        raise CompilerBug(step.name, f"did not settle after {step.limit} rounds")
    started = time.perf_counter()
    try:
        after = step.run(fn, context)
    except (TinoteError, CompilerBug, RecursionError):
        raise
    except Exception as error:
        raise CompilerBug(step.name, f"{type(error).__name__}: {error}") from error
    seconds = time.perf_counter() - started
    if after is not fn and context.config.debug:
        try:
            verify(after, step.form)
        except InvalidIR as error:
            raise CompilerBug(step.name, str(error)) from error
    if listen is not None:
        listen(Snapshot(path + step.name, fn, after, seconds))
    return after
