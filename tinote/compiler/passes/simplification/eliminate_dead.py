"""Dead code elimination: removes operations whose results are not used.

    %a: f32 = exp %x                                %s: f32 = for %i: i32 in 0i32 .. %n carrying %t: f32 = 0.0f32:
    %r: f32, %s: f32 = for %i: i32 in 0i32 .. %n      %2: f32 = add %t, %y
        carrying %q: f32 = %a, %t: f32 = 0.0f32:      yield %2
      %1: f32 = add %q, %x                    ->    store @z[], %s
      %2: f32 = add %t, %y
      yield %1, %2
    store @z[], %s

It removes operations without effects whose results are unused, carried values that only feed themselves, unused results
of an `if`, unused old values of atomics, and stores to temporaries that are never read (see `tinote.ir.prune`). A
`while` stays: it might not terminate, and then nothing after it may happen. Where faults are checked, an access that
may be out of range and a division that may be by zero leave their check behind.
"""

from __future__ import annotations

from tinote.compiler.passes.checks.check_bounds import check_bounds, may_fault
from tinote.ir.nodes import Atomic, Buffer, BufferKind, Function, Load, MemoryOp, Op, Store
from tinote.ir.prune import prune
from tinote.ir.query import walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter


def eliminate_dead(fn: Function, *, keep_checks: bool = False) -> Function:
    """`fn` without dead code.

    `keep_checks`: an operation that may fault leaves its check, unless it is proved to be in range.
    """
    new = _without_dead(fn)
    if keep_checks and new is not fn:
        faults = [op for op in walk(fn.region) if may_fault(op)]
        if faults:
            lost = set(faults).difference(walk(new.region))
            checked = check_bounds(fn, lost) if lost else fn
            if checked is not fn:
                return _without_dead(checked)
    return new


def _without_dead(fn: Function) -> Function:
    fn = fn.with_region(prune(fn.region, keep_while=True))
    unread = _unread_temporaries(fn)
    if unread:
        fn = _Forget(unread).run(fn)
        fn = fn.with_region(prune(fn.region, keep_while=True))
    return fn


def _unread_temporaries(fn: Function) -> set[Buffer]:
    """Temporaries that are written and never read."""
    written: set[Buffer] = set()
    read: set[Buffer] = set()
    for op in walk(fn.region):
        if isinstance(op, MemoryOp):
            buffer = op.buffer
            while buffer.flat is not None:
                buffer = buffer.flat
            if buffer.kind is BufferKind.TEMPORARY:
                if isinstance(op, Load) or (isinstance(op, Atomic) and op.outs):
                    read.add(buffer)
                else:
                    written.add(buffer)
    return written - read


class _Forget(Rewriter):
    """Drops the writes to some buffers."""

    def __init__(self, buffers: set[Buffer]) -> None:
        super().__init__()
        self.buffers = buffers

    def on(self, op: Op) -> Decision:
        if isinstance(op, Store | Atomic):
            buffer = op.buffer
            while buffer.flat is not None:
                buffer = buffer.flat
            if buffer in self.buffers:
                return DROP
        return KEEP
