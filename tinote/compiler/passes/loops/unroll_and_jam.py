"""Unroll and jam: runs several iterations of a parallel task through their inner loop together.

                                                     task parallel %g: i32 in 0i32 .. 256i32:
                                                       %h: i32 = add %g, 256i32
    task parallel %i: i32 in 0i32 .. 512i32:           %a: f32 = load @x[%g]
      %a: f32 = load @x[%i]                            %b: f32 = load @x[%h]
      %t: f32 = for %j … carrying %s: f32 …:           %t: f32, %u: f32 = for %j … carrying %s: f32 …, %r: f32 …:
        %q: f32 = load @x[%j]                 ->         %q: f32 = load @x[%j]
        %d: f32 = sub %a, %q                             %d: f32 = sub %a, %q
        %v: f32 = add %s, %d                             %v: f32 = add %s, %d
        yield %v                                         %e: f32 = sub %b, %q
      store @y[%i], %t                                   %w: f32 = add %r, %e
                                                         yield %v, %w
                                                       store @y[%g], %t
                                                       store @y[%h], %u

Operations that do not depend on the iteration, such as the loads of a pair's other element, are done once for all of
them. That pays where there are more iterations than the device runs at once. The jammed iterations are one stride
apart, the number of invocations, so that neighbouring invocations still touch neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.build import Builder
from tinote.ir.query import trip_count, walk
from tinote.ir.rewrite import clone_region, with_body
from tinote.ir.types import Scalar
from tinote.remarks import Remark, Report, unread

#: Numbers of iterations to jam; the first that fits is taken. Chosen, not measured.
_ITERATIONS_TOGETHER = (8, 4, 2)
#: Least number of iterations of the inner loop. Chosen, not measured.
_MIN_ITERATIONS = 16
#: Operations of an iteration. Chosen, not measured.
_MAX_OPERATIONS = 64
#: Greatest number of values carried by all jammed iterations. Chosen, not measured.
_MAX_CARRIED = 32

_SIMPLE = (ir.Prim, ir.Load, ir.Extent, ir.Check)


def unroll_and_jam(fn: ir.Function, at_once: int, report: Report = unread) -> ir.Function:
    """`fn` with iterations of its tasks jammed where there are more than a device runs `at_once`."""
    body = [_joined(op, at_once, report) if isinstance(op, ir.Task) else op for op in fn.region.body]
    return with_body(fn, body)


def _joined(task: ir.Task, at_once: int, report: Report) -> ir.Task:
    """The task, with iterations jammed if that is legal and pays."""
    loops = [op for op in task.body.body if isinstance(op, ir.For)]
    if not task.parallel or not loops:
        return task
    varying = _varying(task)
    iterations = trip_count(*task.args) or 0
    fitting = [
        together
        for together in _ITERATIONS_TOGETHER
        if iterations % together == 0
        and iterations // together >= at_once
        and together * len(loops[0].carried) <= _MAX_CARRIED
    ]
    why = _why_apart(task, loops, varying) or ("" if fitting else _why_none_fits(iterations, at_once))
    text = why or f"{fitting[0]} iterations go through the inner loop together"
    report(Remark("unroll_and_jam", task.loc, text, done=not why))
    return task if why else _jammed(task, loops[0], varying, iterations // fitting[0], fitting[0])


def _why_apart(task: ir.Task, loops: Sequence[ir.For], varying: set[ir.Var]) -> str:
    """Why iterations of a task cannot go through its inner loop together, or do not gain by it; empty if they do."""
    loop, body = loops[0], loops[0].body.body
    others = [op for op in task.body.body if not isinstance(op, ir.For)]
    count = trip_count(loop.lo, loop.hi)
    if task.ordered:
        return "its iterations run in order"
    if task.privates or len(task.body.params) > 1:
        return "each thread sums up in a variable or a copy of its own"
    if trip_count(*task.args) is None:
        return "its number of iterations is known at run time only"
    if len(loops) > 1:
        return "it has more than one inner loop"
    if any(op.regions or not isinstance(op, (*_SIMPLE, ir.Store, ir.Atomic)) for op in others):
        return "outside of its inner loop it has a branch or a call"
    if any(a in varying for a in (loop.lo, loop.hi)):
        return "the bounds of its inner loop differ between iterations"
    if any(not isinstance(op, _SIMPLE) for op in body):
        return "its inner loop has a branch, a loop or a store"
    if count is not None and count < _MIN_ITERATIONS:
        return f"its inner loop has fewer than {_MIN_ITERATIONS} iterations"
    if not any(isinstance(op, ir.Load) and op.outs[0] not in varying for op in body):
        return "its inner loop loads nothing that iterations have in common"
    if len(others) + len(body) > _MAX_OPERATIONS:
        return f"an iteration has more than {_MAX_OPERATIONS} operations"
    return ""


def _why_none_fits(iterations: int, at_once: int) -> str:
    if iterations < _ITERATIONS_TOGETHER[-1] * at_once:
        return f"{iterations} iterations are less than two for each of the {at_once} that the device runs at once"
    if iterations % _ITERATIONS_TOGETHER[-1]:
        return "its number of iterations is odd"
    return "its inner loop carries too many values"


def _varying(task: ir.Task) -> set[ir.Var]:
    """The variables that may differ between jammed iterations of the task."""
    varying = {task.body.params[0]}
    written = {op.buffer for op in walk(task.body) if isinstance(op, ir.Store | ir.Atomic)}

    def is_constant(op: ir.Op) -> bool:
        if isinstance(op, ir.Load):
            return not any(buffers_may_meet(op.buffer, b) for b in written)
        return isinstance(op, ir.Prim | ir.Extent)

    for op in walk(task.body):
        if isinstance(op, ir.For):
            varying.update(op.carried)
        if not is_constant(op) or any(a in varying for a in op.args):
            varying.update(op.outs)
    return varying


def _jammed(task: ir.Task, loop: ir.For, varying: set[ir.Var], count: int, together: int) -> ir.Task:
    body, index = task.body.body, task.body.params[0]
    t = index.type
    lo = task.args[0]
    assert isinstance(t, Scalar) and isinstance(lo, ir.Lit)
    at = body.index(loop)
    first = ir.Var(t, index.name)
    builder = Builder(loc=task.loc)
    with builder.region(first) as region:
        apart = [first, *[builder.prim(p.add, first, ir.Lit(k * count, t)) for k in range(1, together)]]
        envs: list[dict[ir.Var, ir.Atom]] = [{index: i} for i in apart]
        for env in envs:
            _copy(builder, body[:at], env)
        _copy_loop(builder, loop, varying, envs)
        for env in envs:
            _copy(builder, body[at + 1 :], env)
    made = task.rebuilt((lo, ir.Lit(int(lo.value) + count, t)), (region.close(),))
    assert isinstance(made, ir.Task)
    return made


def _copy(builder: Builder, ops: Sequence[ir.Op], env: dict[ir.Var, ir.Atom]) -> None:
    """Emit a copy of operations under the substitutions of `env`, which gets entries for their results."""
    copied, known = clone_region(ir.Region((), tuple(ops)), env)
    for op in copied.body:
        builder.emit(op)
    env.update(known)


def _copy_loop(builder: Builder, loop: ir.For, varying: set[ir.Var], envs: list[dict[ir.Var, ir.Atom]]) -> None:
    j = ir.Var(loop.index.type, loop.index.name)
    carried = [[ir.Var(v.type, v.name) for v in loop.carried] for _ in envs]
    with builder.region(j, *[v for own in carried for v in own]) as region:
        shared: dict[ir.Var, ir.Atom] = {**envs[0], loop.index: j}
        inside: list[dict[ir.Var, ir.Atom]] = []
        for env, own in zip(envs, carried, strict=True):
            inside.append({**env, loop.index: j, **dict(zip(loop.carried, own, strict=True))})
        for op in loop.body.body:
            if op.outs and not any(out in varying for out in op.outs):
                _copy(builder, (op,), shared)
                for env in inside:
                    env.update({out: shared[out] for out in op.outs})
            else:
                for env in inside:
                    _copy(builder, (op,), env)
        yields = [env.get(y, y) if type(y) is ir.Var else y for env in inside for y in loop.body.yields]
    initial = [env.get(a, a) if type(a) is ir.Var else a for env in envs for a in loop.initial]
    lo, hi = [envs[0].get(a, a) if type(a) is ir.Var else a for a in (loop.lo, loop.hi)]
    outs = [[ir.Var(v.type, v.name) for v in loop.outs] for _ in envs]
    builder.emit(loop.rebuilt((lo, hi, *initial), (region.close(*yields),), tuple([v for own in outs for v in own])))
    for env, own in zip(envs, outs, strict=True):
        env.update(zip(loop.outs, own, strict=True))
