"""Random programs: fields, constants and scratch blocks, copies there and back as derivatives make them, arithmetic,
conditions, and launches of codes that are known by what they write. `mixed` runs these: what it leaves depends on all
that a code reads, and on its arguments.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from tinote.program import operations as ops
from tinote.program.interpret import OPERATIONS
from tinote.program.program import Path, Program
from tinote.source import NOWHERE


class RandomProgram:
    """`launches`: with codes; without them every program is one that any target runs."""

    def __init__(self, seed: int, *, launches: bool = True, choices: bool = True) -> None:
        self.random = random.Random(seed)
        self.choices = choices
        self.program = Program()
        self.next = 0
        blocks = self.program.blocks
        for k in range(self.random.randint(2, 4)):
            blocks.append(ops.Block("field", f"x{k}", 8 * self.random.choice((1, 4, 6))))
        for k in range(2):
            blocks.append(ops.Block("input", f"input {k}", 32))
        data = struct.pack("<4d", *[self.random.uniform(-2, 2) for _ in range(4)])
        blocks.append(ops.Block("data", "data", 32, data))
        if launches:
            for k in range(3):
                used = self.random.sample(range(len(blocks)), 2)
                pointers = tuple([(8 * slot, block, 0) for slot, block in enumerate(used)])
                written = [slot for slot, block, _ in pointers if blocks[block].kind != "data"]
                written = [*written[: self.random.randint(0, 1)], 16] if self.random.random() < 0.7 else []
                takes = (("f64", 24),) if self.random.random() < 0.5 else ()
                self.program.codes.append(
                    ops.Code(f"k{k}", f"{k}", pointers, takes, frozenset(written), self.random.random() < 0.5)
                )
        self.program.inputs = [self.register("f") for _ in range(2)]
        self.program.root = self.path(list(self.program.inputs), 2)

    def register(self, kind: str) -> ops.Register:
        self.next += 1
        return ops.Register(kind, self.next - 1)

    # ---- memory

    def writable(self) -> list[int]:
        return [k for k, block in enumerate(self.program.blocks) if block.kind in ("field", "input", "scratch")]

    def whole(self, block: int) -> ops.View:
        return self.view(block, self.program.blocks[block].nbytes // 8)

    def view(self, block: int, count: int, *, strided: bool = False) -> ops.View:
        room = self.program.blocks[block].nbytes // 8 - count
        if strided and 2 * count - 1 <= room + count:
            return ops.View(block, 0, "f64", (count,), (16,))
        return ops.View(block, 8 * self.random.randint(0, room), "f64", (count,), (8,))

    def scratch(self, nbytes: int) -> int:
        self.program.blocks.append(ops.Block("scratch", f"scratch {len(self.program.blocks)}", nbytes))
        return len(self.program.blocks) - 1

    # ---- operations

    def path(self, known: list[ops.Register], depth: int) -> Path:
        found = Path()
        for _ in range(self.random.randint(2, 9)):
            found.steps += self.some(known)
        if self.choices and depth and self.random.random() < 0.6:
            test = self.register("b")
            operands = (self.random.choice(known), ops.Constant.of_float(self.random.uniform(-1, 1)))
            found.steps.append(ops.Compute(self.random.choice(("lt", "ge")), test, operands, NOWHERE))
            found.branch = ops.Branch(test, True, NOWHERE)
            for taken in (True, False):
                found.sides[taken] = self.path(list(known), depth - 1)
        else:
            found.steps.append(self.end(known))
        return found

    def some(self, known: list[ops.Register]) -> list[ops.Operation]:
        makes: list[Callable[[list[ops.Register]], list[ops.Operation]]] = [
            self.copy, self.copy, self.clear, self.fill, self.load, self.compute, self.compute, self.around,
        ]  # fmt: skip
        if self.program.codes:
            makes += [self.launch, self.launch, self.launch]
        return self.random.choice(makes)(known)

    def copy(self, known: list[ops.Register]) -> list[ops.Operation]:
        source, target = self.random.randrange(len(self.program.blocks)), self.random.choice(self.writable())
        count = min(self.program.blocks[one].nbytes // 8 for one in (source, target))
        count = self.random.randint(1, count)
        if target == source:
            count = 1
        strided = target != source and self.random.random() < 0.2
        views = [self.view(one, count, strided=strided) for one in (target, source)]
        return [ops.Copy(*views)]

    def clear(self, known: list[ops.Register]) -> list[ops.Operation]:
        block = self.random.choice(self.writable())
        nbytes = self.program.blocks[block].nbytes
        offset = self.random.choice((0, 0, 8)) if nbytes > 8 else 0
        return [ops.Clear(block, offset, nbytes - offset)]

    def fill(self, known: list[ops.Register]) -> list[ops.Operation]:
        block = self.random.choice(self.writable())
        count = self.random.randint(1, self.program.blocks[block].nbytes // 8)
        return [ops.Fill(self.view(block, count), self.operand(known), NOWHERE)]

    def load(self, known: list[ops.Register]) -> list[ops.Operation]:
        made = self.register("f")
        block = self.random.randrange(len(self.program.blocks))
        view = self.view(block, 1)
        known.append(made)
        return [ops.LoadElement(made, view._replace(shape=(), strides=()), NOWHERE)]

    def compute(self, known: list[ops.Register]) -> list[ops.Operation]:
        made = self.register("f")
        operation = self.random.choice(("add", "subtract", "multiply", "scale", "negative", "absolute"))
        operands = tuple([self.operand(known) for _ in range(OPERATIONS[operation].operands)])
        known.append(made)
        return [ops.Compute(operation, made, operands, NOWHERE)]

    def operand(self, known: list[ops.Register]) -> ops.Operand:
        if self.random.random() < 0.3:
            return ops.Constant.of_float(self.random.choice((0.0, 1.0, -0.5, 0.75)))
        return self.random.choice(known)

    def launch(self, known: list[ops.Register]) -> list[ops.Operation]:
        code = self.random.randrange(len(self.program.codes))
        takes = self.program.codes[code].parameters
        results: tuple[tuple[int, str, ops.Register], ...] = ()
        if self.random.random() < 0.3:
            results = ((32, "f64", self.register("f")),)
        pointer = (16, self.random.choice(self.writable()), 0)
        arguments = tuple([self.operand(known) for _ in takes])
        known += [register for _, _, register in results]
        return [ops.Launch(code, (pointer,), (), arguments, results, NOWHERE)]

    def around(self, known: list[ops.Register]) -> list[ops.Operation]:
        """Memory is saved, used, and put back."""
        block = self.random.choice([k for k in self.writable() if self.program.blocks[k].kind != "input"])
        saved = self.scratch(self.program.blocks[block].nbytes)
        there, here = self.whole(saved), self.whole(block)
        whole = ops.Clear(block, 0, self.program.blocks[block].nbytes)
        inner: list[ops.Operation] = []
        if self.program.codes and self.random.random() < 0.3:  # written twice before, and something may fail between
            inner = [ops.Fill(here, self.operand(known), NOWHERE), *self.launch(known), whole]
        inner.append(ops.Copy(there, here))
        if self.random.random() < 0.6:
            inner.append(whole)
        for _ in range(self.random.randint(0, 3)):
            inner += self.some(known)
        if self.random.random() < 0.5:
            target = self.scratch(self.program.blocks[block].nbytes)
            inner.append(ops.Copy(self.whole(target), here))
        return [*inner, ops.Copy(here, there, NOWHERE, self.random.random() < 0.7)]

    def end(self, known: list[ops.Register]) -> ops.End:
        parts: list[ops.Result] = [ops.Result("number", (self.operand(known),))]
        scratch = [k for k, block in enumerate(self.program.blocks) if block.kind == "scratch"]
        if scratch and self.random.random() < 0.5:
            parts.append(ops.Result("array", (self.whole(self.random.choice(scratch)), "<f8")))
        updates = ((0, self.operand(known)),) if self.random.random() < 0.3 else ()
        return ops.End(ops.Result("tuple", tuple(parts)), updates, ())


def memory_of(blocks: Sequence[ops.Block], seed: int) -> list[bytearray]:
    """What the blocks of a program hold at first: those of its own are zero."""
    values = random.Random(seed)
    found: list[bytearray] = []
    for block in blocks:
        made = bytearray(block.data or bytes(block.nbytes))
        if block.kind in ("field", "input"):
            made[:] = struct.pack(f"<{block.nbytes // 8}d", *[values.uniform(-2, 2) for _ in range(block.nbytes // 8)])
        found.append(made)
    return found


class Failed(Exception):
    """A launch that ends a program."""


def mixed(
    program: Program, memory: Sequence[bytearray], launched: list[str], fails_at: int | None = None
) -> Callable[..., Any]:
    """What runs the codes. `launched` gets what each is run with that may fail; the one with the number `fails_at`
    does, after it has written.
    """

    def launch(step: ops.Launch, arguments: list[float]) -> list[float]:
        code = program.codes[step.code]
        pointers = (*code.pointers, *step.pointers)
        seen = b"".join([bytes(memory[block]) for _, block, _ in pointers])
        seen += struct.pack(f"<{len(arguments)}d", *arguments) + code.digest.encode()
        if code.may_fail:
            launched.append(f"{code.name} {crc32(seen)}")
        for slot, block, _ in pointers:
            if slot in code.written:
                count = len(memory[block]) // 8
                words = [crc32(seen + bytes([slot, k])) % 4001 / 1000 - 2 for k in range(count)]
                memory[block][: 8 * count] = struct.pack(f"<{count}d", *words)
        if code.may_fail and len(launched) - 1 == fails_at:
            raise Failed
        return [crc32(seen + b"result") % 4001 / 1000 - 2 for _ in step.results]

    return launch
