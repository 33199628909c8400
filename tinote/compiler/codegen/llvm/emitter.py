"""A function under construction: variables as LLVM text, and values loaded from the launch block."""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.llvm.shared import Shared
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES, TYPES, literal
from tinote.errors import CompilerBug
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, Lit, Region, Store, Var
from tinote.ir.query import walk
from tinote.ir.types import Lanes, Scalar, element_type, i32, i64, u1
from tinote.source import Span


class FunctionEmitter(FunctionText):
    """`env` maps variables to LLVM text. `tid` is the thread's number as LLVM text."""

    def __init__(self, module: Shared, region: Region, tid: str, loc: Span) -> None:
        super().__init__(module.flags, module.helpers, fused=module.options.fused)
        self.numeric_extrema = module.options.numeric_extrema
        self.module = module
        self.debug_scope = module.debug.function(module.fn.name, module.fn.loc)
        self.scope = self.debug_scope.number
        self.mark = module.debug.location(loc, self.debug_scope)
        self.tid = tid
        self.env: dict[Var, str] = {}
        #: integer variables that also exist as an i64
        self.widened: dict[Var, str] = {}
        #: the metadata by which an access belongs to the parallel loops around it …
        self.group_text = ""
        #: … and to the innermost loop alone, if that was proved independent, updates included
        self.proved_text = ""
        #: the address of an i1 where failing checks are recorded, while they do not leave the task
        self.gathered = ""
        #: variables that represent lanes where the definition of a scalar is needed
        self.one_lane: dict[Var, Var] = {}
        #: alias metadata of accesses to each tile
        self.tiles: dict[Var, str] = {}
        self.written = {root_of(op.buffer) for op in walk(region) if isinstance(op, Store | Atomic)}
        #: the caller of a part, and the values that it hands over: from the text there to type and own name
        self.caller: FunctionEmitter | None = None
        self.captured: dict[str, tuple[str, str]] = {}
        #: the function of the task, the places of the parts' results in its memory, and their size in bytes
        self.root: FunctionEmitter = self
        self.places: dict[Atom, int] = {}
        self.room_bytes = 0
        #: the results of the parts that this function calls
        self.made: set[Atom] = set()
        self._pointers: dict[Buffer, str] = {}
        self._constants: dict[tuple[Buffer, int], str] = {}
        #: the greatest number of words that a fault or print of this function shows
        self.words = 0

    # atoms

    def use(self, atom: Atom) -> str:
        """An atom as LLVM text."""
        if type(atom) is Lit:
            return literal(atom)
        found = self.env.get(atom)  # type: ignore[arg-type]
        if found is not None:
            return found
        if atom in self.made:
            return self.load_place(atom, self.value)
        offset = self.module.layout.parameters.get(atom)  # type: ignore[arg-type]
        if offset is not None:
            text = self.slot(atom.type, offset)  # type: ignore[arg-type]
        elif self.caller is None:
            raise CompilerBug("LLVM code", f"{atom!r} is not bound in this task")
        elif atom in self.root.places:
            text = self.load_place(atom, self.first)
        else:
            ty = TYPES[atom.type] if isinstance(atom.type, Scalar | Lanes) else "ptr"
            text = self.capture(ty, self.caller.use(atom))
        self.env[atom] = text  # type: ignore[index]
        return text

    def room(self) -> str:
        """The memory of the parts' results: in the function of the task."""
        return "%room" if self.caller is None else self.capture("ptr", self.caller.room())

    def reserve(self, v: Var) -> int:
        """Reserve memory for a result of a part; returns its offset."""
        assert isinstance(v.type, Scalar | Lanes)
        size = element_type(v.type).size * (v.type.lanes if isinstance(v.type, Lanes) else 1)
        offset = self.root.places[v] = -(-self.root.room_bytes // size) * size
        self.root.room_bytes = offset + size
        return offset

    def load_place(self, v: Atom, emit: Callable[[str], str]) -> str:
        """Load a result of a part. `emit`: here, or at the start of the function."""
        t = v.type
        assert isinstance(t, Scalar | Lanes)
        at = emit(f"getelementptr i8, ptr {self.room()}, i64 {self.root.places[v]}")
        text = emit(f"load {MEMORY_TYPES[t]}, ptr {at}, align {element_type(t).alignment}")
        return emit(f"icmp ne {MEMORY_TYPES[t]} {text}, zeroinitializer") if element_type(t) is u1 else text

    def capture(self, ty: str, text: str) -> str:
        """The name in a part for a value that its caller calls `text` and hands over."""
        if not text.startswith("%"):
            return text
        if text not in self.captured:
            self.captured[text] = ty, self.name()
        return self.captured[text][1]

    def slot(self, t: Scalar, offset: int, notes: str = ", !invariant.load !0") -> str:
        """A scalar in the launch block, loaded once at the start.

        `notes`: metadata, as that nothing in the launch writes it.
        """
        at = self.first(f"getelementptr i8, ptr %block, i64 {offset}")
        value = self.first(f"load {MEMORY_TYPES[t]}, ptr {at}, align 8{notes}")
        return self.first(f"icmp ne i8 {value}, 0") if t is u1 else value

    def wide(self, atom: Atom) -> str:
        """An integer atom as an i64."""
        t = atom.type
        assert isinstance(t, Scalar)
        if type(atom) is Lit:
            return str(i64.wrap(int(atom.value)))
        found = self.widened.get(atom)  # type: ignore[arg-type]
        if found is None:
            text = self.use(atom)
            found = (
                text if t.bits == 64 else self.value(f"{'sext' if t.kind == 'i' else 'zext'} {TYPES[t]} {text} to i64")
            )
        return found

    # the launch block

    def pointer(self, buffer: Buffer) -> str:
        """The base address of a buffer, loaded once."""
        found = self._pointers.get(buffer)
        if found is None:
            layout = self.module.layout
            if buffer.kind is BufferKind.PRIVATE and self.caller is not None:
                found = self.capture("ptr", self.caller.pointer(buffer))
            elif buffer.kind is BufferKind.PRIVATE:
                raise CompilerBug("LLVM code", f"{buffer!r} is not private to this task")
            elif buffer.kind is BufferKind.TEMPORARY:
                found = self.first(f"getelementptr i8, ptr %block, i64 {layout.temporaries[buffer]}")
            else:
                at = self.first(f"getelementptr i8, ptr %block, i64 {layout.pointers[buffer]}")
                found = self.first(f"load ptr, ptr {at}, align 8, !invariant.load !0")
            self._pointers[buffer] = found
        return found

    def extent(self, buffer: Buffer, axis: int) -> str:
        key = (buffer, -1 - axis)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.slot(i32, self.module.layout.extents[buffer, axis])
        return found

    def wide_extent(self, buffer: Buffer, axis: int) -> str:
        """The extent as an i64: the slot is that wide, and an extent is never negative."""
        known = buffer.shape[axis]
        if known is not None:
            return str(known)
        key = (buffer, -100 - axis)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.slot(i64, self.module.layout.extents[buffer, axis])
        return found

    def constant_temporary(self, buffer: Buffer, offset: int) -> str:
        """A temporary that this task only reads."""
        found = self._constants.get((buffer, offset))
        if found is None:
            # Not an invariant load: the task before writes it, and LLVM may inline both into one function.
            at = self.module.layout.temporaries[buffer] + offset
            found = self.slot(buffer.dtype, at, self.module.aliasing.of(buffer))
            self._constants[buffer, offset] = found
        return found

    def assign_pointer(self, buffer: Buffer, address: str) -> None:
        """Set the address of a private copy."""
        self._pointers[buffer] = address
