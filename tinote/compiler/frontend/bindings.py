"""New variables, and names that are assigned again."""

from __future__ import annotations

from typing import Any

from tinote.compiler.frontend import structs
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.loops import Loops
from tinote.compiler.frontend.scopes import Constant, Variable
from tinote.compiler.frontend.values import CellPlace, MemoryPlace, Place, StructValue, Text, Value
from tinote.errors import Note
from tinote.ir.nodes import Buffer, BufferKind, Var
from tinote.ir.types import shape_of

__all__ = ["Bindings"]


class Bindings(Loops):
    """The emitter that knows what a name comes to stand for. Statements are left to the next layer."""

    def rebind(self, binding: Constant, front: Any) -> bool:
        """Assign a name that stands for a tuple of cells, or for a compile-time object."""
        if self._same_structure(binding.value, front):
            self.store_all(binding.value, front, f"`{binding.name}`")
            return True
        if binding.depth != self.depth:
            self.error(
                f"`{binding.name}` stands for {describe(binding.value)} at compile time, "
                "and cannot change where a condition or loop decides at run time",
                "use a number, a vector or a field",
                notes=[Note(f"`{binding.name}` is assigned here", binding.span)],
            )
        binding.value = front if not self.is_value(front) or isinstance(front, tuple | list) else self.strong(front)
        return True

    def _same_structure(self, cells: Any, front: Any) -> bool:
        if isinstance(cells, Place):
            return self.is_value(front) and self.shape(front) in ((), shape_of(cells.type))
        if isinstance(cells, StructValue):
            return isinstance(front, dict) or structs.as_struct(self, front) is not None
        return (
            isinstance(cells, tuple | list)
            and isinstance(front, tuple | list)
            and bool(cells)
            and len(cells) == len(front)
            and all(map(self._same_structure, cells, front))
        )

    def store_all(self, cells: Any, front: Any, what: str) -> None:
        if isinstance(cells, Place):
            self.store(cells, front, what)
        elif isinstance(cells, StructValue):
            for place, part, named in structs.paired(self, cells, front, what):
                self.store_all(place, part, named)
        else:
            for cell, part in zip(cells, front, strict=True):
                self.store_all(cell, part, what)

    def declare(self, name: str, front: Any) -> None:
        """Make a new variable that starts at `front`. A name that is assigned once needs no cell; one that the
        iterations of a parallel loop assign is memory.
        """
        frame = self.frame
        if isinstance(front, Text):
            self.error("an f-string can only be printed, or be the message of an `assert`")
        struct = structs.as_struct(self, front)
        if struct is not None:
            self.bind(name, self.cells(name, struct))  # a method may assign what the function itself does not
            return
        if isinstance(front, tuple | list) and front and not self.is_static(front) and frame.assigned.get(name, 0) > 1:
            self.bind(name, self.cells(name, front))
            return
        if isinstance(front, tuple | list) or not self.is_value(front):
            self.bind(name, front)
            return
        value = self.strong(front)
        if frame.assigned.get(name, 0) <= 1:
            if isinstance(value.atom, Var) and not value.atom.name:
                value.atom.name = name
            self.bind(name, value)
            return
        self.scope.names[name] = self.variable(name, value)

    def variable(self, name: str, value: Value) -> Variable:
        variable = Variable(name, None, self.b.loc, self.nest)
        if self.depth == 0 and name in self.frame.shared:
            buffer = Buffer(name, value.dtype, (), value.shape, BufferKind.TEMPORARY)
            variable.place = MemoryPlace(buffer, ())
            self.b.store(buffer, (), value.atom)
        else:
            variable.place = CellPlace(self.cell(value.type, value.atom, name), owner=variable)
        return variable

    def cells(self, name: str, front: Any) -> Any:
        """A struct, tuple or list with a cell in place of each number."""
        if isinstance(front, StructValue):
            return front.map(lambda part: self.cells(name, part))
        if isinstance(front, tuple | list):
            return type(front)(self.cells(name, part) for part in front)
        if not self.is_value(front):
            return front
        return self.variable(name, self.strong(front)).place
