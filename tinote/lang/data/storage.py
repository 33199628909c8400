"""The storage of a field: its place in memory, its gradient and dual, and its transfer to another process."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tinote.errors import FieldError, Note, no_attribute
from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar
from tinote.lang.data.assigned import assigned_name
from tinote.lang.data.layout import Layout, Placement, array_over, dense, part_of
from tinote.lang.session.missing import HABITS
from tinote.lang.session.owners import claim, coming_into_being
from tinote.lang.session.state import clears_duals, forget_gradients, session
from tinote.lang.shipping.arrivals import arrivals
from tinote.lang.shipping.tokens import Tokenised
from tinote.runtime.memory import Memory
from tinote.runtime.resident import ResidentMemory
from tinote.source import Span, caller

if TYPE_CHECKING:
    from tinote.ir.units import Unit

#: What a field has only once its place in memory is settled.
_PLACED = ("_array", "buffer", "memory", "shape")

#: One number for each dimension.
_Extents = tuple[int, ...]


class Stored(Tokenised):
    """A field's memory, and that of its gradient and dual."""

    shape: tuple[int, ...]
    memory: Memory
    buffer: Buffer
    _array: np.ndarray[Any, Any]
    _word = "field"  # what texts call it that has no name
    _suffix = ""  # ".pos" for the member of a struct
    _kind = ""  # "grad" or "dual" for the shadows of a field

    def __init__(
        self,
        dtype: Scalar,
        element: tuple[int, ...],
        made_at: Span,
        name: str,
        needs_grad: bool | None = None,
        needs_dual: bool | None = None,
    ) -> None:
        if needs_grad and dtype.kind != "f":
            raise FieldError(
                f"a field of {dtype} cannot have a gradient", made_at, hint="use a float type, or leave needs_grad out"
            )
        self.dtype = dtype
        self.element = element
        self._made_at = made_at
        self._name = name
        self._generation = session.resets
        #: `session.order` when Python last wrote to all of it, if that matters; -1: it has not
        self.noted: int | None = None
        self._level = None
        #: what its numbers are measured in, if that was declared
        self.unit: Unit | None = None
        #: of a gradient or dual, the field; which holds it, and no circle keeps both
        self._primal_reference: weakref.ref[Self] | None = None
        self._grad: Self | None = None
        self._dual: Self | None = None
        #: what it is as an array argument, once a kernel was called with it (`ndarrays`)
        self._bound: Any = None
        #: the first index of each dimension, as it was given when it was placed
        self._offset: Any = None
        #: gradient and dual that were asked for, by kind, while nothing has a place yet
        self._shadows: dict[str, Self] = {}
        self._needed = {kind for kind, needed in (("grad", needs_grad), ("dual", needs_dual)) if needed}
        #: in which modes its values are constants, since the user has said that it has no gradient (no dual)
        self._constant = needs_grad is False, needs_dual is False or (needs_dual is None and needs_grad is False)

    if not TYPE_CHECKING:  # a type checker would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            if name in _PLACED:
                if "memory" not in self.__dict__:
                    self._settle()
                return self._array_again() if name == "_array" else self.__dict__[name]
            public = not name.startswith("_")  # the compiler asks every object for names of its protocol
            raise no_attribute("a field", name, [*dir(type(self)), *_PLACED] if public else (), HABITS.get(name, ""))

    def _array_again(self) -> np.ndarray[Any, Any]:
        """The array that a launch on a device has taken back, or has not asked for yet."""
        if "_array" not in self.__dict__:
            memory = self.memory
            self._array = array_over(self.buffer, memory)
            whole = memory.whole
            if isinstance(whole, ResidentMemory):
                whole.held_by(self)
        return self._array

    def _look(self) -> np.ndarray[Any, Any]:
        """Its numbers for callers that copy them at once: a device that has them need not get them back."""
        if "_array" not in self.__dict__:
            memory = self.memory
            if isinstance(memory, ResidentMemory):
                return array_over(self.buffer, memory, memory.look())
        return self._array

    def __copy__(self) -> Any:
        raise FieldError(
            f"'{self.name}' is memory of this session, and is not copied",
            self._made_at,
            hint="take its values with `.to_numpy()`, and put them into another field with `.from_numpy(…)`",
        )

    def __deepcopy__(self, memo: Any) -> Any:
        return Stored.__copy__(self)

    # ---- in another process

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Its declaration with what it holds: where it arrives it is a field of its own. Those that share a block of
        memory share one there. Raises `FieldError` for a field that is gone, or has no place in memory.
        """
        primal = self._primal
        if primal is not None:
            return getattr, (primal, self._kind)
        if not self.is_placed:
            self._settle()
        self._require_alive()
        return new_field, (type(self),), self._declared(), None, None, _arrive

    def _declared(self) -> dict[str, Any]:
        whole, buffer = self.memory.whole, self.buffer
        return {
            "dtype": self.dtype,
            "element": self.element,
            "made_at": self._made_at,
            "name": self.name,
            "suffix": self._suffix,
            "constant": self._constant,
            "unit": self.unit,
            "placement": (self.shape, buffer.strides, buffer.element_strides, buffer.offset, buffer.levels),
            "block": whole,
            "start": None if self.memory is whole else self.memory.begin - whole.begin,
            "level": self._level,
            "offset": self._offset,
            "shadows": {
                kind: other._declared()
                for kind, other in self._shadows.items()
                if other.is_placed and other._has_memory
            },
        }

    def _arrived(self, declared: dict[str, Any]) -> None:
        """Come into being as it was elsewhere."""
        shape, strides, apart, offset, levels = declared["placement"]
        memory = declared["block"]
        if declared["start"] is not None:
            extents = (*shape, *self.element)
            memory = part_of(memory, declared["start"], self.dtype, extents, (*strides, *apart))
        self._suffix, self._constant = declared["suffix"], declared["constant"]
        self.unit = declared["unit"]
        self._level, self._offset = declared["level"], declared["offset"]
        self._place(Placement(shape, strides, apart, offset, memory, levels))
        for kind, other in declared["shadows"].items():
            self._shadow(kind)._arrived(other)
            self._attach(kind)

    @property
    def _has_memory(self) -> bool:
        return "memory" in self.__dict__

    def _token_parts(self) -> Any:
        if not self.is_placed:
            self._settle()
        self._require_alive()
        facts = self.buffer.strides, self.buffer.element_strides, self.buffer.offset, self._constant
        shadows = {kind: other._token_parts() for kind, other in self._shadows.items() if other.is_placed}
        return self.dtype.name, self._array, facts, shadows

    @property
    def _primal(self) -> Self | None:
        """What it is the gradient or dual of, as long as that is there."""
        return None if self._primal_reference is None else self._primal_reference()

    def _settle(self) -> None:
        """Come into being, as the layout tree says. Raises `FieldError` when no tree does."""
        self._require_alive()
        if self._level is None and self._primal is not None:
            self._primal._settle()
        elif self._level is None:
            raise FieldError(
                f"the field '{self.name}' has no place in memory yet",
                self._made_at,
                hint="give it a shape, or place it first: ti.root.dense(ti.i, n).place(x)",
            )
        else:
            self._level.settle()
        if "buffer" not in self.__dict__:
            raise FieldError(
                f"'{self.name}' has no place in memory",
                self._made_at,
                hint="place it, or make its field with needs_grad=True (or needs_dual=True)",
            )

    @property
    def is_placed(self) -> bool:
        """Whether its place in memory is settled."""
        return "buffer" in self.__dict__

    def _leaves(self) -> list[Self]:
        """The fields of numbers, vectors or matrices that it consists of."""
        return [self]

    def _place(self, at: Placement) -> None:
        """Come into being."""
        assert not self.is_placed, "a field has one place"
        self.shape = at.shape
        self.memory = at.memory
        name = self._name or "field" if self._primal is None else self.name
        self.buffer = Buffer(
            name,
            self.dtype,
            at.shape,
            self.element,
            strides=at.strides,
            element_strides=at.element_strides,
            offset=at.offset,
        )
        self.buffer.no_adjoint, self.buffer.no_tangent = self._constant
        self.buffer.levels = at.levels
        self.buffer.unit = self.unit
        if not self.memory.whole.is_resident:
            self._array = array_over(self.buffer, self.memory)
        session.memories[self.buffer] = self.memory
        session.fields.add(self)
        forget_gradients()
        weakref.finalize(self, _forget, self.buffer).atexit = False
        if self._primal is None:
            for kind in sorted(self._needed - self._shadows.keys()):
                self._shadow(kind)

    def _make_dense(self, shape: _Extents, order: _Extents, layout: Layout, offset: _Extents) -> None:
        """Come into being in memory of its own, with the gradient and dual that it needs."""
        strides, apart, nbytes = dense(self.dtype, shape, self.element, order, layout)
        try:
            memory = self._new_memory(max(nbytes, self.dtype.size))
        except MemoryError as error:
            raise FieldError(f"a field of shape {shape} needs {nbytes:,} bytes: {error}", self._made_at) from None
        self._place(Placement(shape, strides, apart, offset, memory))
        for kind in sorted(self._needed):
            self._shadows[kind]._make_dense(shape, order, layout, offset)
            self._attach(kind)
        _give_duals(self)

    def _new_memory(self, nbytes: int) -> Memory:
        """Memory of its own where kernels run."""
        return session.new_memory(nbytes)

    def _make_dense_like(self, other: Stored) -> None:
        """Come into being in memory of its own, with another field's shape and offset."""
        self._make_dense(other.shape, tuple(range(len(other.shape))), Layout.AOS, other.buffer.offset)

    def _shadow(self, kind: str) -> Self:
        """Its gradient or dual, which may not have a place yet."""
        found = self._shadows.get(kind)
        if found is None:
            found = self._shadows[kind] = type(self)(self.dtype, self.element, self._made_at, "")
            found._primal_reference = weakref.ref(self)
            found._kind = kind
        return found

    def _give(self, kind: str) -> None:
        """A gradient or dual of its own for a field that has a place, unless it has one."""
        with coming_into_being():
            if kind not in self._shadows:
                self._shadow(kind)._make_dense_like(self)
                self._attach(kind)

    def _move(self, memory: Memory) -> None:
        """Have its numbers in other memory from now on."""
        self.memory = session.memories[self.buffer] = memory
        self.__dict__.pop("_array", None)
        if not memory.whole.is_resident:
            self._array = array_over(self.buffer, memory)
        self._bound = None

    def _attach(self, kind: str) -> None:
        """Its gradient or dual has a place now."""
        other = self._shadows[kind]
        if other.shape != self.shape:
            raise FieldError(
                f"'{self.name}' has shape {self.shape}, and its {kind} was placed with shape {other.shape}",
                self._made_at,
            )
        other.buffer.primal = self.buffer
        if kind == "grad":
            self._grad, self.buffer.adjoint = other, other.buffer
        else:
            self._dual, self.buffer.tangent = other, other.buffer
        for bound in (self, self._primal):
            if bound is not None:
                bound._bound = None
        session.attached += 1
        claim([other.buffer])
        forget_gradients()

    # ---- what the compiler asks

    def __tinote_buffer__(self) -> Buffer:
        self._require_alive()
        self.buffer.name = self.name
        return self.buffer

    @property
    def name(self) -> str:
        """The name of the variable that the field was first assigned to, as far as its source line shows."""
        if self._kind:
            primal = self._primal
            return f"{self._word if primal is None else primal.name}.{self._kind}"
        if not self._name:
            self._name = (assigned_name(self._made_at) or self._word) + self._suffix
        return self._name

    def _require_alive(self) -> None:
        if self._generation != session.resets:
            end = "was made before ti.init() or ti.reset()" if self._generation >= 0 else "was destroyed by its builder"
            raise FieldError(
                f"the field '{self.name}' {end} and is gone",
                self._made_at,
                hint="run the cell that makes it again",
            )

    def _destroy(self) -> None:
        """Let the memory go, with that of gradient and dual."""
        self._generation = -1
        session.fields.discard(self)
        forget_gradients()
        for what in ("_array", "memory"):
            self.__dict__.pop(what, None)
        for other in self._shadows.values():
            other._destroy()

    # ---- gradient and dual

    @property
    def grad(self) -> Self:
        """The gradient, a field of the same shape and type.

        Raises
        ------
        FieldError
            For a field made without `needs_grad=True`.
        """
        found = self._grad
        return self._missing("grad", "gradient") if found is None else found

    @property
    def dual(self) -> Self:
        """The tangent of forward mode, a field of the same shape and type.

        Raises
        ------
        FieldError
            For a field made without `needs_dual=True`.
        """
        if self._dual is None:
            return self._missing("dual", "dual")
        return self._dual

    def ensure_dual(self) -> None:
        """Give it a dual, in memory of its own, if it was made without."""
        if not self.has_dual:
            self._give("dual")

    def _missing(self, kind: str, word: str) -> Self:
        """What is not there: before the field has a place in memory it can still be placed."""
        if not self.is_placed and self._primal is None and self.dtype.kind == "f":
            return self._shadow(kind)
        problem, hint = f"the field '{self.name}' has no {word}", f"make it with needs_{kind}=True"
        raise FieldError(problem, caller(), hint, [Note("it is made here", self._made_at)])

    @property
    def has_grad(self) -> bool:
        """Whether it has a gradient."""
        if self._grad is not None:
            return True
        self._settle_if_placed()
        return self._grad is not None

    @property
    def has_dual(self) -> bool:
        """Whether it has a dual."""
        self._settle_if_placed()
        return self._dual is not None

    def _settle_if_placed(self) -> None:
        if self._level is not None and not self.is_placed:
            self._settle()


def new_field(kind: type[Any]) -> Any:
    """A field that arrives from another process: what it is follows."""
    return object.__new__(kind)


def _arrive(made: Any, declared: dict[str, Any]) -> None:
    made.__init__(declared["dtype"], declared["element"], declared["made_at"], declared["name"])
    made._arrived(declared)
    arrivals.add(made)


def _forget(buffer: Buffer) -> None:
    """A field is gone: what was its gradient and its dual is memory of its own, if anybody has it."""
    forget_gradients()
    session.drop_entries(buffer)
    for shadow in (buffer.adjoint, buffer.tangent):
        if shadow is not None:
            session.drop_entries(shadow)
            shadow.primal = None


def _give_duals(made: Any) -> None:
    """In a recording whose launches carry tangents, those of adjoints too, what has a gradient gets duals of both."""
    if "grad" in made._needed and clears_duals():
        for one in (made, made.grad):
            one.ensure_dual()
