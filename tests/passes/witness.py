"""Watches a function run, and says which promises of its IR were broken: plain updates and vectorised loops.

Marks are printed where an iteration begins and where a plain update follows; memory notes who touches what in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.passes.running import shuffled
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory, Index, Number
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, For, Function, MemoryOp, Op, Print, Region, Task
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.text import show_op

__all__ = ["broken_promises"]

Place = tuple[Buffer, Index]


def broken_promises(fn: Function, args: Sequence[float], memory: DictMemory) -> list[str]:
    """What happened that the marks in `fn` (form TASKS) say cannot, in words."""
    witness = _Witness(memory)
    interpret(_Marker(witness).run(fn), args, witness, order=shuffled, on_print=witness.printed)
    return witness.broken


class _Iterations:
    """The iterations of one run of a loop or task. `plain`: only what plain updates touch must be its
    iteration's own.
    """

    def __init__(self, op: Op, plain: bool) -> None:
        self.op = op
        self.plain = plain
        self.number = 0
        self.touched: dict[Place, set[int]] = {}
        self.written: set[Place] = set()

    def note(self, place: Place, written: bool) -> None:
        self.touched.setdefault(place, set()).add(self.number)
        if written:
            self.written.add(place)

    def broken(self) -> list[str]:
        return [
            f"iterations {sorted(iterations)} of `{show_op(self.op)}` meet at {place[0].name}{list(place[1])}"
            for place, iterations in self.touched.items()
            if place in self.written and len(iterations) > 1
        ]


class _Witness:
    """Memory that notes accesses, and gets the marks."""

    def __init__(self, memory: DictMemory) -> None:
        self.memory = memory
        self.marked: list[Op] = []
        self.running: list[_Iterations] = []
        self.plain = False
        self.broken: list[str] = []

    def mark(self, word: str, op: Op) -> Print:
        self.marked.append(op)
        return Print((f"{word} {len(self.marked) - 1}",), ())

    def printed(self, text: str) -> None:
        word, _, number = text.partition(" ")
        if word == "plain":
            self.plain = True
        elif word in ("loop", "task"):
            self.running.append(_Iterations(self.marked[int(number)], word == "task"))
        elif word == "iteration":
            op = self.marked[int(number)]
            for iterations in self.running:
                iterations.number += iterations.op is op
        elif word == "end":
            op = self.marked[int(number)]
            for iterations in self.running:
                if iterations.op is op:
                    self.broken += iterations.broken()
            self.running = [iterations for iterations in self.running if iterations.op is not op]

    def load(self, buffer: Buffer, index: Index) -> Number:
        for iterations in self.running:
            iterations.note((buffer, index), False)
        return self.memory.load(buffer, index)

    def store(self, buffer: Buffer, index: Index, value: Number) -> None:
        for iterations in self.running:
            iterations.note((buffer, index), self.plain or not iterations.plain)
        self.plain = False
        self.memory.store(buffer, index, value)

    def shape(self, buffer: Buffer) -> Index:
        return self.memory.shape(buffer)


class _Marker(Rewriter):
    """Puts the marks in. Temporaries and private copies become fields, which the witness sees."""

    def __init__(self, witness: _Witness) -> None:
        super().__init__()
        self.witness = witness
        self.fields: dict[Buffer, Buffer] = {}
        self.shared = False

    def field(self, buffer: Buffer) -> Buffer:
        if buffer.kind not in (BufferKind.TEMPORARY, BufferKind.PRIVATE):
            return buffer
        if buffer not in self.fields:
            self.fields[buffer] = Buffer(buffer.name, buffer.dtype, buffer.shape, buffer.element)
        return self.fields[buffer]

    def visit(self, op: Op) -> None:
        if isinstance(op, Task):
            self.shared = op.parallel
        super().visit(op)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if isinstance(op, MemoryOp):
            # A private copy belongs to a thread: that all of its updates are plain is no promise about iterations.
            if isinstance(op, Atomic) and op.plain and self.shared and op.buffer.kind is not BufferKind.PRIVATE:
                self.emit(Print(("plain",), ()))
            new = op.rebuilt(op.args)
            assert isinstance(new, MemoryOp)
            new.buffer = self.field(op.buffer)
            self.out.append(new)
            return new.outs
        if isinstance(op, Task):
            body = self.turning(op, op.body) if op.parallel else op.body
            # Marks stand in serial tasks of their own.
            for word in ("task", "loop") if op.vectorize else ("task",):
                self.emit(Task("", (), Region((), (self.witness.mark(word, op),)), parallel=False))
            self.emit(Task(op.name, op.args, body, parallel=op.parallel))
            self.emit(Task("", (), Region((), (self.witness.mark("end", op),)), parallel=False))
            return DROP
        if isinstance(op, For) and op.vectorize:
            self.emit(self.witness.mark("loop", op))
            new = op.rebuilt(op.args, (self.turning(op, op.body),))
            self.out.append(new)
            self.emit(self.witness.mark("end", op))
            return new.outs
        return KEEP

    def turning(self, op: Op, body: Region) -> Region:
        return Region(body.params, (self.witness.mark("iteration", op), *body.body), body.yields)
