"""Store-to-load forwarding and dead store elimination: replaces loads by stored values, and drops stores that are
overwritten before any read.

    store @x[%i], %a
    %b: f32 = load @x[%i]                           %c: f32 = load @y[%i]
    %c: f32 = load @y[%i]                           %e: f32 = mul %a, %c
    %d: f32 = load @y[%i]                     ->    store @x[%i], %e
    %e: f32 = mul %b, %d
    store @x[%i], %e

After a store or a load the element is known until it may be written: by a store to the same buffer, unless the indices
certainly differ, or to an aliasing one. Entering a loop forgets the elements that the loop may write; a parallel loop
is a barrier for them. A store is dropped when the element already holds that value, or when the same region overwrites
it before any read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinote.ir import nodes as ir
from tinote.ir.access import buffers_may_meet, indices_differ, shared_memory
from tinote.ir.buffers import root_of
from tinote.ir.query import walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter

#: Whether the index is a byte offset into a flat view, and the index.
Index = tuple[bool, tuple[ir.Atom, ...]]
#: Known memory contents, by buffer and index.
Contents = dict[ir.Buffer, dict[Index, ir.Atom]]

#: Known elements per buffer, at most, so that long straight-line code is processed in linear time. Chosen, not
#: measured.
_MAX_REMEMBERED = 48


def forward_stores(fn: ir.Function) -> ir.Function:
    """`fn` with loads of known elements replaced and useless stores dropped."""
    touched = dict.fromkeys([root_of(op.buffer) for op in walk(fn.region) if isinstance(op, ir.MemoryOp)])
    return _Forwarder(shared_memory(touched)).run(fn)


def _index_of(op: ir.MemoryOp) -> Index:
    return op.buffer.flat is not None, op.index if isinstance(op, ir.Store | ir.Atomic) else op.args


class _Forwarder(Rewriter):
    def __init__(self, shared: Sequence[ir.Buffer]) -> None:
        super().__init__()
        self.shared = shared
        self.known: Contents = {}
        self.saved: list[Contents] = []
        self.ended: Contents = {}
        self.definitions: dict[ir.Var, ir.Op] = {}
        self.writes: dict[ir.Op, frozenset[ir.Buffer]] = {}

    def meeting(self, root: ir.Buffer, known: Collection[ir.Buffer]) -> list[ir.Buffer]:
        """The roots in `known` that may alias another one."""
        if root.kind is ir.BufferKind.ARRAY:
            return [other for other in known if buffers_may_meet(other, root)]
        arrays = [other for other in self.shared if other in known] if root.kind is ir.BufferKind.FIELD else []
        return [*arrays, root] if root in known else arrays

    # what is known

    def differ(self, a: Index, b: Index, buffer: ir.Buffer) -> bool:
        """Whether two indices of one buffer never name the same element."""
        if a[0] is not b[0]:
            return False
        return indices_differ(a[1], b[1], self.definitions, buffer.dtype.size if a[0] else 1)

    def forget(self, buffer: ir.Buffer, index: Index | None = None) -> None:
        """Forget the elements that a write to `buffer` may change: all of them, or those at one index."""
        root = root_of(buffer)
        for other in self.meeting(root, self.known):
            if index is None or other is not root:
                del self.known[other]
                continue
            held = self.known[root]
            for key in [k for k in held if not self.differ(k, index, root)]:
                del held[key]

    def learn(self, buffer: ir.Buffer, index: Index, value: ir.Atom) -> None:
        held = self.known.setdefault(root_of(buffer), {})
        held[index] = value
        if len(held) > _MAX_REMEMBERED:
            del held[next(iter(held))]

    def written_in(self, op: ir.Op) -> frozenset[ir.Buffer]:
        """The buffers that an operation or anything inside it writes."""
        found = self.writes.get(op)
        if found is None:
            inside: set[ir.Buffer] = set()
            for region in op.regions:
                for inner in region.body:
                    if inner.regions:
                        inside |= self.written_in(inner)
                    elif isinstance(inner, ir.Store | ir.Atomic):
                        inside.add(root_of(inner.buffer))
            found = self.writes[op] = frozenset(inside)
        return found

    # the walk

    def enter(self, region: ir.Region) -> None:
        self.saved.append(self.known)
        self.known = {buffer: dict(held) for buffer, held in self.known.items()}

    def leave(self, region: ir.Region) -> None:
        self.ended = self.known
        self.known = self.saved.pop()
        self.out = _without_overwritten(self.out, self)

    def nest(self, op: ir.Op) -> None:
        if isinstance(op, ir.If):
            self.branch(op)
        elif isinstance(op, ir.For | ir.While):
            for buffer in self.written_in(op):
                self.forget(buffer)
            super().nest(op)
        elif isinstance(op, ir.Task):
            self.known = {}
            super().nest(op)
            self.known = {}
        else:
            super().nest(op)

    def branch(self, op: ir.If) -> None:
        """Walk both sides; afterwards only elements on which both agree are known."""
        then = self.region(op.then)
        after_then = self.ended
        orelse = self.region(op.orelse)
        after_else = self.ended
        condition = self.get(op.condition)
        same = condition is op.condition and then is op.then and orelse is op.orelse
        self.out.append(op if same else op.rebuilt((condition,), (then, orelse)))
        self.known = {}
        for buffer, held in after_then.items():
            other = after_else.get(buffer)
            if other:
                self.known[buffer] = {index: v for index, v in held.items() if other.get(index) == v}

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if isinstance(op, ir.Load):
            index = _index_of(op)
            value = self.known.get(root_of(op.buffer), {}).get(index)
            if value is not None and value.type == op.out.type:
                return (value,)
            self.learn(op.buffer, index, op.out)
        elif isinstance(op, ir.Store):
            index = _index_of(op)
            if self.known.get(root_of(op.buffer), {}).get(index) == op.value:
                return DROP
            self.forget(op.buffer, index)
            self.learn(op.buffer, index, op.value)
        elif isinstance(op, ir.Atomic):
            self.forget(op.buffer, _index_of(op))
        elif len(op.outs) == 1:
            self.definitions[op.outs[0]] = op
        return KEEP


def _without_overwritten(body: list[ir.Op], forwarder: _Forwarder) -> list[ir.Op]:
    """A region's operations without the stores that a later one overwrites before anything could read them."""
    stored = [root_of(op.buffer) for op in body if isinstance(op, ir.Store)]
    if len(set(stored)) == len(stored):
        return body
    covered: dict[ir.Buffer, dict[Index, None]] = {}
    kept: list[ir.Op] = []
    for op in reversed(body):
        if isinstance(op, ir.Store):
            indices = covered.setdefault(root_of(op.buffer), {})
            if _index_of(op) in indices:
                continue
            indices[_index_of(op)] = None
            if len(indices) > _MAX_REMEMBERED:
                del indices[next(iter(indices))]
        elif covered:
            if isinstance(op, ir.Load | ir.Atomic):
                _uncover(covered, op, forwarder, compare=True)
            elif isinstance(op, ir.Check | ir.While | ir.Task):
                covered.clear()  # The launch may stop here, and then the stores remain visible.
            elif op.regions:
                for inner in (i for r in op.regions for i in walk(r)):
                    if isinstance(inner, ir.Load | ir.Atomic):
                        _uncover(covered, inner, forwarder, compare=False)
                    elif isinstance(inner, ir.Check | ir.While):
                        covered.clear()
        kept.append(op)
    kept.reverse()
    return kept


def _uncover(
    covered: dict[ir.Buffer, dict[Index, None]], op: ir.MemoryOp, forwarder: _Forwarder, *, compare: bool
) -> None:
    """Remove the elements that `op` reads.

    Indices are compared only with `compare`; otherwise they are bound elsewhere.
    """
    root = root_of(op.buffer)
    for buffer in forwarder.meeting(root, covered):
        if compare and buffer is root:
            here = _index_of(op)
            covered[buffer] = {index: None for index in covered[buffer] if forwarder.differ(index, here, root)}
        else:
            del covered[buffer]
