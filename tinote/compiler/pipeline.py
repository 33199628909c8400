"""The table of contents of the compiler: every step a function goes through between the front end and code generation,
in order.

`steps_for` composes what a request needs. A step is a function from IR to IR that returns its argument when there is
nothing to do; a `Fixpoint` repeats its steps until none of them changes anything. Whoever listens gets a `Snapshot`
after each step: the old function and the new one, both immutable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tinote.autodiff.activity import Broken
from tinote.autodiff.atomic_old_values import NO_OLD_VALUES, plan_old_values, record
from tinote.autodiff.forward import forward
from tinote.autodiff.gradient import Gradient, reverse
from tinote.autodiff.instrument import instrument
from tinote.compiler.passes.accumulate import accumulate
from tinote.compiler.passes.check_bounds import check_bounds
from tinote.compiler.passes.check_finite import check_finite
from tinote.compiler.passes.check_overflow import check_overflow
from tinote.compiler.passes.choose_values import choose_values
from tinote.compiler.passes.cse import cse
from tinote.compiler.passes.demote_atomics import demote_atomics
from tinote.compiler.passes.drop_adjoints import drop_adjoints
from tinote.compiler.passes.eliminate_dead import eliminate_dead
from tinote.compiler.passes.flatten_branches import flatten_branches
from tinote.compiler.passes.fold import fold
from tinote.compiler.passes.forward_stores import forward_stores
from tinote.compiler.passes.gather import gather
from tinote.compiler.passes.hoist_checks import hoist_checks
from tinote.compiler.passes.hoist_invariants import hoist_invariants
from tinote.compiler.passes.infer_types import infer_types
from tinote.compiler.passes.lower_access import lower_access
from tinote.compiler.passes.lower_arrays import lower_arrays
from tinote.compiler.passes.mark_vector_loops import mark_vector_loops
from tinote.compiler.passes.merge_checks import merge_checks
from tinote.compiler.passes.narrow_loops import narrow_loops
from tinote.compiler.passes.offload import offload
from tinote.compiler.passes.order_iterations import order_iterations
from tinote.compiler.passes.privatise import privatise
from tinote.compiler.passes.promote_locals import promote_locals
from tinote.compiler.passes.rearrange import rearrange
from tinote.compiler.passes.scalarise import scalarise
from tinote.compiler.requests import PRIMAL, Checks, Derivative, Request, defaults_of
from tinote.config import Config
from tinote.errors import CompilerBug, TinoteError, refusing_deep_nests
from tinote.ir.checked_accesses import CheckedAccesses
from tinote.ir.nodes import Function
from tinote.ir.verify import Form, InvalidIR, verify

__all__ = [
    "LOWERING",
    "SCALAR_PRIMAL",
    "Context",
    "Fixpoint",
    "Listener",
    "Snapshot",
    "Step",
    "Steps",
    "python_steps_for",
    "run_pipeline",
    "steps_for",
]


class Snapshot(NamedTuple):
    """One step that ran: `after is before` when it changed nothing."""

    step: str
    before: Function
    after: Function
    seconds: float


Listener = Callable[[Snapshot], None]


class Context:
    """What steps may ask and leave: the options, what differentiation found, what the checks of access rules mean."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.defaults = defaults_of(config)
        self.gradient: Gradient | None = None
        self.broken_paths: tuple[Broken, ...] = ()
        self.old_values = NO_OLD_VALUES
        self.checks: CheckedAccesses | None = None


class Step(NamedTuple):
    """`form`: what the function must look like afterwards (the verifier checks it in debug mode and in tests)."""

    run: Callable[[Function, Context], Function]
    form: Form
    name: str


class Fixpoint(NamedTuple):
    """Repeat `steps` until nothing changes; more than `limit` rounds is a bug."""

    name: str
    steps: tuple[Step, ...]
    limit: int = 20


Steps = tuple[Step | Fixpoint, ...]


def _plain(run: Callable[[Function], Function], form: Form) -> Step:
    return Step(lambda fn, _: run(fn), form, run.__name__)


def _simplify(form: Form, *, keep_checks: bool = False) -> Fixpoint:
    """`keep_checks`: the program is still as it was written, and what it drops leaves its checks."""
    return Fixpoint(
        "simplify",
        (
            Step(lambda fn, context: fold(fn, fast_math=context.config.fast_math), form, "fold"),
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


def _differentiate(fn: Function, context: Context, *, arguments: bool) -> Function:
    context.gradient = reverse(fn, context.defaults, arguments=arguments)
    context.broken_paths += context.gradient.broken
    return context.gradient.function


def _push_forward(fn: Function, context: Context, *, arguments: bool) -> Function:
    found = forward(fn, context.defaults, arguments=arguments)
    context.broken_paths += found.broken
    return found.function


def _reverse(*, arguments: bool, once: bool) -> Steps:
    """`once`: nothing is differentiated afterwards."""
    return (
        Step(lambda fn, context: _differentiate(fn, context, arguments=arguments), Form.PROMOTED, "reverse"),
        *((_plain(drop_adjoints, Form.PROMOTED),) if once else ()),
        _plain(scalarise, Form.SCALAR),
        Step(lambda fn, context: gather(fn, context.config.fast_math), Form.SCALAR, "gather"),
        _simplify(Form.SCALAR),
    )


def _forward(*, arguments: bool) -> Steps:
    return (
        Step(lambda fn, context: _push_forward(fn, context, arguments=arguments), Form.PROMOTED, "forward"),
        _plain(drop_adjoints, Form.PROMOTED),
        _plain(scalarise, Form.SCALAR),
        _simplify(Form.SCALAR),
    )


def _instrument(fn: Function, context: Context) -> Function:
    instrumented, context.checks = instrument(fn)
    return instrumented


def _record(fn: Function, context: Context) -> Function:
    context.old_values = plan_old_values(fn)
    return record(fn, context.old_values)


def _check(fn: Function, context: Context) -> Function:
    return check_bounds(fn) if context.config.bounds_check else fn


def _check_overflow(fn: Function, context: Context) -> Function:
    return check_overflow(fn) if context.config.reports_overflow else fn


def _rearrange(fn: Function, context: Context) -> Function:
    return rearrange(fn) if context.config.fast_math else fn


INFERENCE = Step(lambda fn, context: infer_types(fn, context.defaults), Form.TYPED, "infer_types")

SIMPLIFICATION: Steps = (
    _plain(promote_locals, Form.PROMOTED),
    _plain(scalarise, Form.SCALAR),
    Step(_check_overflow, Form.SCALAR, "check_overflow"),
    _simplify(Form.SCALAR, keep_checks=True),
    _plain(order_iterations, Form.SCALAR),
    _plain(narrow_loops, Form.SCALAR),
)

LOWERING: Steps = (
    Step(_check, Form.SCALAR, "check_bounds"),
    _plain(hoist_checks, Form.SCALAR),
    _plain(merge_checks, Form.SCALAR),
    Step(lambda fn, context: accumulate(fn, context.config.fast_math), Form.SCALAR, "accumulate"),
    _plain(offload, Form.TASKS),
    _plain(privatise, Form.TASKS),
    _plain(demote_atomics, Form.TASKS),
    _plain(lower_arrays, Form.TASKS),
    _plain(mark_vector_loops, Form.TASKS),
    _plain(flatten_branches, Form.TASKS),
    Step(_rearrange, Form.TASKS, "rearrange"),
    _plain(lower_access, Form.LOWERED),
    _simplify(Form.LOWERED),
)

CHOOSING = Step(lambda fn, _: choose_values(fn, reverse=False), Form.TYPED, "choose_values")
CHOOSING_FOR_REVERSE = Step(lambda fn, _: choose_values(fn, reverse=True), Form.TYPED, "choose_values")
DROPPING = _plain(drop_adjoints, Form.TYPED)
INSTRUMENTING = Step(_instrument, Form.TYPED, "instrument")
RECORDING = Step(_record, Form.SCALAR, "record")
FINITE_CHECKING = _plain(check_finite, Form.SCALAR)


def _when(condition: bool, *steps: Step | Fixpoint) -> Steps:
    return steps if condition else ()


def steps_for(request: Request, *, lower: bool = True) -> Steps:
    """What compiles a request, in order. Unless `lower`, it ends where the IR still speaks of loops, not of tasks."""
    arguments, checks = request.arguments, request.checks
    values_only = request.derivative is Derivative.NONE
    # To record, and to look for NaN, is to ask which values are differentiated.
    asks = request.records or checks is Checks.FINITE
    return (
        INFERENCE,
        CHOOSING_FOR_REVERSE if request.reverses and not request.has_tangents else CHOOSING,
        *_when(values_only and not asks, DROPPING),
        *_when(checks is Checks.ACCESS_RULES, INSTRUMENTING),  # before anything is simplified: it sees every access
        *SIMPLIFICATION,
        *_when(request.records, RECORDING),
        *_when(request.records and values_only, DROPPING),
        *_when(request.reverses, *_reverse(arguments=arguments, once=not request.has_tangents)),
        *_when(request.has_tangents, *_forward(arguments=arguments)),
        *_when(checks is Checks.FINITE, FINITE_CHECKING),
        *_when(lower, *LOWERING),
    )


#: What brings the primal into the form in which its accesses are looked at.
SCALAR_PRIMAL: Steps = (INFERENCE, DROPPING, *SIMPLIFICATION)


def python_steps_for(request: Request) -> Steps:
    """What precedes plain Python: a kernel as it was written, with types; derivatives before they speak of machines."""
    return (INFERENCE, CHOOSING, DROPPING) if request is PRIMAL else steps_for(request, lower=False)


def run_pipeline(
    fn: Function,
    steps: Steps,
    config: Config,
    listen: Listener | None = None,
    enter: Callable[[str], None] | None = None,
) -> tuple[Function, Context]:
    """Run `steps` on a function in first form. Gives the lowered function, and what the steps found out about it.
    `enter` is called with the name of each step when it begins.
    """
    context = Context(config)
    with refusing_deep_nests(fn.name, fn.loc):
        for step in steps:
            if enter is not None:
                enter(step.name)
            fn = _run(step, fn, context, "", listen)
    return fn, context


def _run(step: Step | Fixpoint, fn: Function, context: Context, path: str, listen: Listener | None) -> Function:
    if isinstance(step, Fixpoint):
        for number in range(step.limit):
            before = fn
            for inner in step.steps:
                fn = _run(inner, fn, context, f"{path}{step.name} {number + 1}: ", listen)
            if fn is before:
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
