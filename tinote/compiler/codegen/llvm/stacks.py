"""Stacks of saved values, and the arena that holds them.

A stack whose capacity is a small literal lives on the machine's stack; one whose capacity is known when it is made
is a single piece of the arena; one of unknown capacity is a chain of pieces. A region returns its memory to the arena
at its end.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.compiler.codegen.llvm import memory as llvm_memory
from tinote.compiler.codegen.llvm.checks import fail_unless
from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES
from tinote.errors import CompilerBug
from tinote.ir.nodes import Lit, NewStack, Op, Pop, Push, Region, Var
from tinote.ir.query import walk
from tinote.ir.types import Lanes, Scalar, Stack, Tensor, element_type
from tinote.runtime.sites import Site, SiteKind
from tinote.source import Span

#: Greatest size of a stack of saved values on the machine's stack, in bytes. Chosen, not measured.
_MAX_BYTES_ON_STACK = 1024
#: Values per chunk of a stack without a bound. Chosen, not measured.
_CHUNK_VALUES = 1024
#: Bytes before a chunk's values: the addresses of the previous and of the next chunk, in a cache line.
_CHUNK_HEADER_BYTES = 64
#: More values than any memory holds, few enough that their bytes are counted without wrapping.
_MAX_VALUES = 1 << 48


class _Open(NamedTuple):
    """A stack: its values' type (lanes: a row of them for each push), its memory (for a chain: the cell that holds the
    current chunk), the cell of its count, and its alias metadata.
    """

    content: Scalar | Lanes
    memory: str
    top: str
    chained: bool
    metadata: str


def _size(t: Scalar | Lanes) -> int:
    """Bytes of a value: of all lanes, which lie side by side."""
    return t.dtype.size * t.lanes if isinstance(t, Lanes) else t.size


class Stacks:
    """The stacks of one function under construction."""

    __slots__ = ("_e", "_marks", "_open", "_outer")

    def __init__(self, emitter: FunctionEmitter, outer: Stacks | None = None) -> None:
        self._e = emitter
        self._outer = outer
        self._open: dict[Var, _Open] = {}
        #: a mark for each open region that took something from the arena
        self._marks: list[str | None] = []

    # the arena

    def enter(self) -> None:
        """A region begins."""
        self._marks.append(None)

    def leave(self, region: Region) -> None:
        """A region ends: free its memory in the arena, unless a chain that outlives it has grown meanwhile."""
        mark = self._marks.pop()
        if mark is None or self._grows_outer(region):
            return
        e = self._e
        e.do(f"call void @tn_arena_release(ptr %block, i32 {e.tid}, i64 {mark})")

    def _grows_outer(self, region: Region) -> bool:
        inner = {op.out for op in walk(region) if isinstance(op, NewStack)}
        for op in walk(region):
            if isinstance(op, Push) and op.args[0] not in inner:
                stack = self._find(op.args[0])  # type: ignore[arg-type]
                if stack is not None and stack.chained:
                    return True
        return False

    def _mark(self) -> None:
        """Mark the arena: memory allocated from here on is freed at the end of the open region."""
        if self._marks[-1] is None:
            self._marks[-1] = self._e.value(f"call i64 @tn_arena_mark(ptr %block, i32 {self._e.tid})")

    def allocate(self, size: str, loc: Span, what: str = "") -> str:
        """Allocate memory from the arena until the end of the open region; a located fault when the limit is
        reached.
        """
        e = self._e
        self._mark()
        address = e.value(f"call ptr @tn_arena_alloc(ptr %block, i32 {e.tid}, i64 {size})")
        fail_unless(e, e.value(f"icmp ne ptr {address}, null"), Site(SiteKind.MEMORY, loc, what), [size])
        return address

    # stacks

    def new(self, op: NewStack) -> None:
        e = self._e
        stack = op.out.type
        if not isinstance(stack, Stack) or isinstance(stack.content, Tensor):
            raise CompilerBug("LLVM code", f"a stack of tensors in machine code: {op!r}")
        t = stack.content
        top = e.first("alloca i64")
        metadata = ""
        if not op.args:
            self._mark()
            memory = e.first("alloca ptr")
            e.do(f"store ptr null, ptr {memory}")
            e.do(f"store i64 {_CHUNK_VALUES}, ptr {top}")
            metadata = e.module.aliasing.of(op)
        else:
            e.do(f"store i64 0, ptr {top}")
            capacity = op.args[0]
            values = max(int(capacity.value), 1) if isinstance(capacity, Lit) else None
            if (
                values is not None
                and values * element_type(t).size <= _MAX_BYTES_ON_STACK
                and e.fits_stack(values * _size(t))
            ):
                memory = e.first(f"alloca [{values} x {MEMORY_TYPES[t]}], align 64")
            else:
                memory = self.allocate(self._bytes(e.use(capacity), t), op.loc)
                metadata = e.module.aliasing.of(op)
        self._open[op.out] = _Open(t, memory, top, not op.args, metadata)

    def _bytes(self, capacity: str, t: Scalar | Lanes) -> str:
        e = self._e
        least = e.value(f"call i64 @llvm.smax.i64(i64 {capacity}, i64 1)")
        values = e.value(f"call i64 @llvm.smin.i64(i64 {least}, i64 {_MAX_VALUES})")
        return e.value(f"mul nuw nsw i64 {values}, {_size(t)}")

    def _of(self, op: Op) -> _Open:
        stack = self._find(op.args[0])  # type: ignore[arg-type]
        if stack is None:
            raise CompilerBug("LLVM code", f"a stack that another task made: {op!r}")
        return stack

    def _find(self, stack: Var) -> _Open | None:
        """A stack of this function, or of the caller of this part."""
        found = self._open.get(stack)
        if found is None and self._outer is not None:
            found = self._outer._find(stack)
            if found is not None:
                memory, top = (self._e.capture("ptr", text) for text in (found.memory, found.top))
                found = self._open[stack] = found._replace(memory=memory, top=top)
        return found

    def push(self, op: Push) -> None:
        e = self._e
        stack = self._of(op)
        value = e.use(op.args[1])
        if stack.chained:
            self._next_chunk(stack, op)
        top = e.value(f"load i64, ptr {stack.top}")
        llvm_memory.store_cell(e, stack.content, value, self._slot(stack, top), stack.metadata)
        e.do(f"store i64 {e.value(f'add nuw nsw i64 {top}, 1')}, ptr {stack.top}")

    def pop(self, op: Pop) -> None:
        e = self._e
        stack = self._of(op)
        if stack.chained:
            self._previous_chunk(stack)
        top = e.value(f"add nsw i64 {e.value(f'load i64, ptr {stack.top}')}, -1")
        e.do(f"store i64 {top}, ptr {stack.top}")
        e.env[op.out] = llvm_memory.load_cell(e, stack.content, self._slot(stack, top), stack.metadata)

    def _slot(self, stack: _Open, index: str) -> str:
        e = self._e
        base = stack.memory
        if stack.chained:
            chunk = e.value(f"load ptr, ptr {stack.memory}")
            base = e.value(f"getelementptr i8, ptr {chunk}, i64 {_CHUNK_HEADER_BYTES}")
        return e.value(f"getelementptr inbounds {MEMORY_TYPES[stack.content]}, ptr {base}, i64 {index}")

    def _next_chunk(self, stack: _Open, op: Push) -> None:
        """Before a push: when the chunk is full, go on with the next one, which may be there from before."""
        e = self._e
        full, have, look, make, link, switch, ready = (e.label() for _ in range(7))
        top = e.value(f"load i64, ptr {stack.top}")
        is_full = e.value(f"icmp eq i64 {top}, {_CHUNK_VALUES}")
        e.do(f"br i1 {is_full}, label %{full}, label %{ready}, !prof !{e.module.unlikely}")
        e.begin(full)
        old = e.value(f"load ptr, ptr {stack.memory}")
        e.do(f"br i1 {e.value(f'icmp eq ptr {old}, null')}, label %{make}, label %{look}")
        e.begin(look)
        after = e.value(f"getelementptr i8, ptr {old}, i64 8")
        next_one = e.value(f"load ptr, ptr {after}")
        e.do(f"br i1 {e.value(f'icmp eq ptr {next_one}, null')}, label %{make}, label %{have}")
        e.begin(have)
        e.do(f"br label %{switch}")
        e.begin(make)
        made = self._chunk(stack, op)
        e.do(f"store ptr {old}, ptr {made}")
        made_next = e.value(f"getelementptr i8, ptr {made}, i64 8")
        e.do(f"store ptr null, ptr {made_next}")
        made_block = e.block
        e.do(f"br i1 {e.value(f'icmp eq ptr {old}, null')}, label %{switch}, label %{link}")
        e.begin(link)
        e.do(f"store ptr {made}, ptr {e.value(f'getelementptr i8, ptr {old}, i64 8')}")
        e.do(f"br label %{switch}")
        e.begin(switch)
        chunk = e.value(f"phi ptr [ {next_one}, %{have} ], [ {made}, %{made_block} ], [ {made}, %{link} ]")
        e.do(f"store ptr {chunk}, ptr {stack.memory}")
        e.do(f"store i64 0, ptr {stack.top}")
        e.do(f"br label %{ready}")
        e.begin(ready)

    def _chunk(self, stack: _Open, op: Push) -> str:
        e = self._e
        size = str(_CHUNK_HEADER_BYTES + _CHUNK_VALUES * _size(stack.content))
        address = e.value(f"call ptr @tn_arena_alloc(ptr %block, i32 {e.tid}, i64 {size})")
        fail_unless(e, e.value(f"icmp ne ptr {address}, null"), Site(SiteKind.MEMORY, op.loc), [size])
        return address

    def _previous_chunk(self, stack: _Open) -> None:
        """Before a pop: when the chunk is empty, go back to the one before."""
        e = self._e
        empty, ready = e.label(), e.label()
        top = e.value(f"load i64, ptr {stack.top}")
        e.do(f"br i1 {e.value(f'icmp eq i64 {top}, 0')}, label %{empty}, label %{ready}, !prof !{e.module.unlikely}")
        e.begin(empty)
        old = e.value(f"load ptr, ptr {stack.memory}")
        e.do(f"store ptr {e.value(f'load ptr, ptr {old}')}, ptr {stack.memory}")
        e.do(f"store i64 {_CHUNK_VALUES}, ptr {stack.top}")
        e.do(f"br label %{ready}")
        e.begin(ready)
