"""Marks loops whose iterations are proved independent, so that machine code may run several at once.

    task parallel %i: i32 in 0i32 .. 64i32:                task parallel %i: i32 in 0i32 .. 64i32:
      for %j: i32 in 0i32 .. 64i32:                          for vectorize %j: i32 in 0i32 .. 64i32:
        %a: f32 = load @x[%j]                         ->       %a: f32 = load @x[%j]
        store @y[%i, %j], %a                                   store @y[%i, %j], %a

These are innermost loops, and parallel ones around loops that LLVM may write out.
Independent means: no iteration reads or writes memory that another one writes (`ir/conflicts.py`). Reductions are
carried values, which LLVM recognises. A wrong mark gives wrong results, so a loop with any other effect (prints,
stacks, cells, atomic updates) is not marked. LLVM's decision on a loop, with its reason, is in
`compiler/inspect/vectorisation_remarks.py`.

Checks of indices and divisors do not prevent this if they can all be made before the iterations run: machine code tests
many iterations at once, and then runs them without checks. The writes of iterations before a fault may be missing then.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.loops.unroll import unrolled
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, accesses_of, buffers_may_meet
from tinote.ir.checks import checks_alone
from tinote.ir.conflicts import Conflict, find_conflict
from tinote.ir.query import free_variables, span_of, walk
from tinote.ir.ranges import Known, Loop
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.remarks import Remark, Report, unread


def mark_vector_loops(fn: ir.Function, report: Report = unread) -> ir.Function:
    """`fn` with `vectorize` set on loops with independent iterations."""
    return _Marker(accesses_of(fn), report).run(fn)


class _Marker(Rewriter):
    def __init__(self, accesses: Accesses, report: Report) -> None:
        super().__init__()
        self.accesses = accesses
        self.report = report

    def remark(self, op: ir.Op, text: str, *, done: bool = False) -> None:
        self.report(Remark("mark_vector_loops", span_of(op), text, done))

    def nest(self, op: ir.Op) -> None:
        """Mark the loops of a nest. A loop whose inner loops only compute is also tried with these unrolled."""
        if (
            isinstance(op, ir.For | ir.Task)
            and op.parallel
            and any(isinstance(inner, ir.For) for inner in op.regions[0].body)
        ):
            sums = [inner for inner in walk(op.regions[0]) if _sums_up(inner)]
            straight = self.why_unfit(op, sums) or unrolled(op.regions[0])
            if isinstance(straight, str):
                self.remark(op, f"the loops inside of it are not written out: {straight}")
            else:
                self.remark(op, "the loops inside of it are written out", done=True)
                op = op.rebuilt(op.args, (straight,))
                assert isinstance(op, ir.For | ir.Task)
                # Iterations that sum up are not independent, but LLVM recognises the reduction.
                op.vectorize = not sums
        super().nest(op)

    def why_unfit(self, op: ir.For | ir.Task, sums: Sequence[ir.Op]) -> str:
        """Why its inner loops are not worth unrolling; empty if iterations are independent, apart from `sums`, and have
        no other obstacle.
        """
        for inner in walk(op.regions[0]):
            if isinstance(inner, ir.Check):
                return "a check stands in it"
            if not isinstance(inner, ir.For | ir.NewStack | ir.Push | ir.Pop) and not _harmless(inner):
                return _effect_of(inner)
        found = self.accesses.within(self.accesses.loops[op])
        others = [access for access in found if access.op not in sums]
        conflict = self.conflict(others, op) if any(access.writes for access in found) else "it has no result"
        return str(conflict or "")

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not (isinstance(op, ir.For) or (isinstance(op, ir.Task) and op.parallel)):
            return KEEP
        # A loop whose inner loops were unrolled has been decided.
        if op.vectorize or op not in self.accesses.loops:
            return KEEP
        why = self.why_apart(op)
        self.remark(op, why or "its iterations are independent, so that LLVM may run several at once", done=not why)
        if why:
            return KEEP
        new = op.rebuilt(op.args, op.regions)
        assert isinstance(new, ir.For | ir.Task)
        new.vectorize = True
        self.emit(new)
        return new.outs

    def why_apart(self, op: ir.For | ir.Task) -> str:
        """Why iterations cannot run at once; empty if they are independent."""
        inside, body = self.accesses.within(self.accesses.loops[op]), op.regions[0]
        if not op.outs and not any(access.writes for access in inside):
            return "it has no result"
        for inner in walk(body):
            if not _harmless(inner) and not (op.parallel and _is_own(inner)):
                return _effect_of(inner)
        conflict = self.conflict(inside, op)
        if conflict is not None:
            return str(conflict)
        loops = any(isinstance(inner, ir.For) for inner in walk(body))
        if loops and any(isinstance(inner, ir.Check) for inner in walk(body)):
            return "a check stands in it, and a loop"
        first = loops or self.checks_may_go_first(body, self.accesses.loops[op])
        return "" if first else "its checks cannot all be made before its iterations run"

    def conflict(self, inside: list[Access], op: ir.For | ir.Task) -> Conflict | None:
        """Where an iteration may write memory that another one reads or writes."""
        # Updates may come in any order, but still not at the same time.
        unordered = op.parallel and not any(isinstance(access.op, ir.Atomic) for access in inside)
        return find_conflict(self.accesses, self.accesses.loops[op], inside, unordered=unordered)

    def checks_may_go_first(self, body: ir.Region, loop: Loop) -> bool:
        """Whether all checks of an iteration can be made before any of its work, even if one fails."""
        if not any(isinstance(op, ir.Check) for op in walk(body)):
            return True
        alone = checks_alone(body)
        if any(v in body.params[1:] for v in free_variables(ir.Region((), alone.body, ()))):
            return False
        needed = set(walk(alone))
        certain = Known(loop.known, loop=loop)
        checked, written = False, set[ir.Buffer]()
        for op in walk(body):
            if isinstance(op, ir.Check):
                checked = True
            elif isinstance(op, ir.Store | ir.Atomic):
                if op in needed:
                    return False
                written.add(op.buffer)
            elif op not in needed:
                continue
            elif isinstance(op, ir.Load):
                access = self.accesses.of(op)
                if any(buffers_may_meet(op.buffer, buffer) for buffer in written):
                    return False
                # It may be in range only because an earlier check says so.
                if checked and not all(
                    self.accesses.in_range(access, axis, certain) == (True, True) for axis in range(len(access.forms))
                ):
                    return False
            elif isinstance(op, ir.Prim) and op.prim in p.DIVISIONS and not isinstance(op.args[1], ir.Lit):
                return False
        return True


def _sums_up(op: ir.Op) -> bool:
    """Whether an operation adds to one element of a private copy, which is kept in a register."""
    return (
        isinstance(op, ir.Atomic)
        and op.buffer.kind is ir.BufferKind.PRIVATE
        and not op.outs
        and all(isinstance(a, ir.Lit) for a in op.index)
    )


def _is_own(op: ir.Op) -> bool:
    """Whether an operation is local to a parallel iteration: loops inside, and local memory."""
    return isinstance(op, ir.For | ir.Local | ir.Set)


def _effect_of(op: ir.Op) -> str:
    """Why several iterations may not do this at once."""
    if isinstance(op, ir.Atomic):
        return f"several iterations may update one element of `{op.buffer.name}` in line {span_of(op).line}"
    if isinstance(op, ir.For | ir.While):
        return "a loop stands in it"
    if isinstance(op, ir.NewStack | ir.Push | ir.Pop):
        return "it saves values on a stack"
    return "it prints" if isinstance(op, ir.Print) else "it changes more than memory"


def _harmless(op: ir.Op) -> bool:
    """Whether several iterations may do this at once, as far as the operation itself goes."""
    if isinstance(op, ir.Check):
        return op.kind in (ir.FaultKind.BOUNDS, ir.FaultKind.DIVISION)
    return isinstance(op, ir.Prim | ir.Load | ir.Store | ir.Extent | ir.If | ir.Get) or (
        isinstance(op, ir.Atomic) and op.plain
    )
