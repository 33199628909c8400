"""Traced numbers: Python floats under a recording of derivatives, which remember how they were computed.

    with ti.ad.Tape(loss):
        e = energy()            # what a kernel returns, and elements that are read, are traced numbers
        y[0] = 0.5 * e**2       # so is what is computed of them; here the derivative goes on to the field
        scaled(ti.sin(y[1]))    # and here to a launch

Arithmetic, NumPy's functions on scalars and `ti.*` functions give traced numbers. Comparing, printing, formatting,
hashing and rounding them gives what a float gives. A traced number is what `isinstance(_, float)` says, and is pickled
and copied as a float; NumPy, `statistics` and complex arithmetic make floats of it. It is not a subclass of `float`,
since C code reads the number in such an object unseen: that `math.sin(e)` asks for `float(e)` is how a tape knows that
a plain number was taken out. So there are differences, which last when the recording has ended. What takes nothing but
a float refuses a traced number, with an error that says what to write: `json` (which also has `default=float`),
`Decimal(e)`, `timedelta(seconds=e)`, `time.sleep(e)`, `float.hex(e)`, JAX. And pandas makes columns of objects of
traced numbers until they are converted (`.astype(float)`).

The derivatives are those of kernels, at ties and kinks too (`ir/primitives.py`). `max(a, b)` and `min(a,
b)` of Python's own compare, and give one of the two, of equal ones the first; `ti.max` and NumPy's compute.

What is taken out (`float(e)`, `math.sin(e)`, `np.array([e])`, `x.to_numpy()`) is a constant. When plain numbers go into
the program after that, one of them may have come from there: `Trace.note_plain` says so, once. Text and copies by
`pickle` are for reading, as a rule: they count as taken out where the same number comes back.

When the recording has ended, a traced number is a float in every other respect, and holds nothing.

While a step is captured (`lang/capture/`), numbers that are read are traced, too, integers among them: `symbol` says
how the step computes the number, and looking at it is part of the step: a comparison is a branch, and what needs the
number itself is refused.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dis import opmap
from numbers import Number, Real
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer
from tinote.lang.data.traced_derivatives import RULES, SCALE, ConstantDual, Dual, ScalarRule, SumOfSquares
from tinote.lang.session.state import recorder
from tinote.program.recorded import RecordedOperation
from tinote.runtime.seam import active_listener
from tinote.source import Span, caller, line_text

Array = np.ndarray[Any, Any]
_Binary = Callable[[Any, Any], Any]

_numbers = itertools.count(1)

#: Asked of a number by what only looks at it; whoever reads the text of a call that takes a plain number finds these.
_LOOKS = re.compile(r"(math\.|np\.|numpy\.)?(isnan|isfinite|isinf|isclose|allclose)\(")
#: Python's operators, of which one alone asks a number for a float: `"%.2f" % x`, which formats it.
_OPERATOR = opmap["BINARY_OP"]


class Computed(RecordedOperation):
    """Python has computed the traced number `result` by a rule. Active `operands` are traced numbers, others floats."""

    __slots__ = ("operands", "result", "rule")

    def __init__(self, result: Traced, rule: ScalarRule, operands: tuple[Traced | float, ...]) -> None:
        self.result = result
        self.rule = rule
        self.operands = operands

    @property
    def gradients(self) -> Collection[Buffer]:
        """Empty: it concerns numbers alone."""
        return ()

    @property
    def number(self) -> int:
        """The number of the result."""
        return self.result.number

    @property
    def results(self) -> tuple[int]:
        return (self.result.number,)

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple([one.number if type(one) is Traced else 0 for one in self.operands])

    def adjoints(self, adjoint: Dual) -> tuple[Dual, ...]:
        """The adjoints of the operands, by that of the result."""
        return self.rule.adjoints(adjoint, dual_of(self.result), *[dual_of(one) for one in self.operands])

    def emit(self, recorder: Any, known: dict[int, Any]) -> None:
        operands = [number_now(one, known) for one in self.operands]
        value = self.rule.value(*constants(tuple(operands)))
        symbol = value if type(value) is Traced else None
        known[self.number] = _differentiated(self.rule, stored(value), operands, symbol)


def number_now(one: Any, known: Mapping[int, Any]) -> Any:
    """What a recorded number is where those in `known` have other values; anything else is what it was."""
    return known.get(one.number, one) if type(one) is Traced else one


class SymbolicNumber(Protocol):
    """A number of a step that is being captured. `is_open`: whether it still is."""

    @property
    def is_open(self) -> bool: ...

    def in_vector(self, inside: bool) -> SymbolicNumber:
        """The same as a component of a vector, or as a separate number."""
        ...

    def computed(
        self, operation: str, operands: Sequence[Any], value: Any, function: np.ufunc | None
    ) -> SymbolicNumber:
        """What an operation of the table makes of it and others; as a NumPy `function`, or an operator."""
        ...

    def compared(self, operation: str, a: Any, b: Any, found: bool) -> bool:
        """What the program goes on with: a comparison is a branch."""
        ...

    def condition(self, operation: str, operands: Sequence[Any]) -> SymbolicNumber | None:
        """A condition of a derivative's, which selects; None where such conditions are branches."""
        ...

    def selected(self, condition: Any, a: Any, b: Any) -> SymbolicNumber:
        """One of two numbers."""
        ...

    def as_literal(self) -> None:
        """A rule asks whether it is a constant, or a zero tangent, as numbers of other calls may be."""
        ...

    def refuse(self, how: str) -> None:
        """The number is needed itself. Raises `CaptureError`."""
        ...


class Computes(Protocol):
    """Numbers that have parts, which are numbers of another recording."""

    def computed(self, rule: ScalarRule, value: float, operands: Sequence[Traced | float]) -> Traced:
        """What an operation makes of numbers."""
        ...


class _TakenOut(NamedTuple):
    """A plain number was taken out at `span`. `older`: floats that were there before, by identity. `written`: the
    numbers, where nothing but their text and copies were made, any of which may be read again.
    """

    span: Span
    older: dict[int, float]
    written: set[float] | None = None


class Trace:
    """What traced numbers belong to: one recording. `events`: where it is noted how numbers are computed, if it is.
    `outer`: the trace of a recording around this one, whose numbers are active in this one too. `family`: recordings
    that follow each other, whose numbers must not go from one to the next. `refuses`: whether a plain number that may
    have come from a traced one is an error. `computes`: who computes with its numbers, if these have parts.
    """

    __slots__ = (
        "_said", "computes", "events", "family", "is_open", "outer", "refuses", "root", "taken_in", "taken_out"
    )  # fmt: skip

    def __init__(
        self,
        events: list[Any] | None = None,
        *,
        outer: Trace | None = None,
        family: object | None = None,
        refuses: bool = False,
    ) -> None:
        self.events = events
        self.outer = outer
        self.family = family
        self.refuses = refuses
        self.computes: Computes | None = None
        self.is_open = True
        self.root: Trace = self if outer is None else outer.root  # that of the outermost recording
        self.taken_in: dict[int, Traced] = {}  # the numbers of `outer` that were used, by their numbers
        self.taken_out: _TakenOut | None = None  # of the outermost: what was taken out, and not reported yet
        self._said = False

    def close(self) -> None:
        """The recording has ended: its numbers are floats."""
        self.is_open = False
        self.events = self.taken_out = self.computes = None
        self.root = _CLOSED

    def inner(self, events: list[Any] | None = None) -> Trace:
        """A trace for a recording inside of this one, whose numbers may leave it only as its results."""
        if self.family is None:
            self.family = object()
        return Trace(events, outer=self, family=self.family)

    def new(self, value: float, tangent: float = 0.0) -> Traced:
        """A number that Python did not compute: one that was read, that a kernel returned, or an argument."""
        if type(value) is Traced:
            return traced(self, value.value, tangent, next(_numbers), value.symbol)
        return traced(self, value, tangent, next(_numbers))

    def is_active(self, value: Traced) -> bool:
        """Whether a number is one of this recording's, or of one around it. Raises `DifferentiationError` for numbers
        whose derivative would be lost.
        """
        owner = value.trace
        if owner is self or not value.number:
            return value.number != 0
        around = self.outer
        while around is not None:
            if owner is around:
                inner: Trace | None = self
                while inner is not None and inner is not around:
                    inner.taken_in.setdefault(value.number, value)
                    inner = inner.outer
                return True
            around = around.outer
        if owner.is_open or (owner.family is not None and owner.family is self.family):
            raise DifferentiationError(
                "a number that depends on what is differentiated comes from another recording, such as another step of "
                "a checkpointed loop: its derivative would be lost",
                caller(),
                hint="keep it in a field with a gradient, or write float(…) where a constant is meant",
            )
        return False

    def holds(self, value: Any, *, captured: bool = True) -> bool:
        """Whether a number, or a list, tuple, array or vector of numbers, holds an active one, or one of a step that is
        being `captured`.
        """
        kind = type(value)
        if kind is float or kind is int:
            return False
        if kind is Traced:
            return (captured and value.is_captured) or self.is_active(value)
        if isinstance(value, _SEQUENCES):
            return any(self.holds(one, captured=captured) for one in value)
        array = value if isinstance(value, np.ndarray) else getattr(value, "values", None)
        if not isinstance(array, np.ndarray) or array.dtype != object:
            return False
        return any(self.holds(one, captured=captured) for one in array.ravel().tolist())

    def numbers_in(self, value: Any, buffer: Buffer, active: Collection[Buffer]) -> Array | int | None:
        """The numbers of a value that is written to a field, 0 for constants; None where all are constants. `active`:
        the gradients and duals that hold differentiated values.
        """
        if buffer.dtype.kind != "f" or (buffer.primal is not None and buffer not in active):
            return None
        if type(value) is Traced:
            return value.number if self.is_active(value) else None
        if type(value) in (int, float) or not holds_traced(value):
            if self.root.taken_out is not None:
                self.note_plain(value, f"'{buffer.name}'")
            return None
        array = traced_array(value)
        items = [one.number if self.is_active(one) else 0 for one in array.ravel().tolist()]
        return np.array(items, np.int64).reshape(array.shape) if any(items) else None

    # ---- plain numbers

    @property
    def has_taken_out(self) -> bool:
        """Whether a plain number was taken out and not yet reported; text and copies alone do not count."""
        taken = self.root.taken_out
        return taken is not None and taken.written is None

    def note_taken_out(self) -> None:
        """A plain number that depends on what is differentiated is taken out."""
        root = self.root
        if root.is_open and (root.taken_out is None or root.taken_out.written is not None) and not root._said:
            span = caller("numpy")
            if not _looks(span):
                before = _floats_around() if root.taken_out is None else root.taken_out.older
                root.taken_out = _TakenOut(span, before)

    def note_written(self, *values: float) -> None:
        """A number that depends on what is differentiated is written as text, from which one of these can be read."""
        root = self.root
        if not root.is_open or root._said:
            return
        if root.taken_out is None:
            root.taken_out = _TakenOut(caller("numpy"), _floats_around(), set())
        if root.taken_out.written is not None:
            root.taken_out.written.update(values)

    def note_plain(self, values: Any, what: str) -> None:
        """Plain numbers go into the program again, to `what`. Raises or warns, once, where they may have come from
        traced ones.
        """
        taken = self.root.taken_out
        if taken is None or not may_be_computed(values, taken.older, taken.written) or _looks(caller("numpy")):
            return
        before, doubt = "converted to a plain one", "if it was computed from that"
        if taken.written is not None:
            before, doubt = "written as text or copied", "if it was read from that"
        self.tell(
            f"a plain number goes to {what} after a differentiated number was {before}: {doubt}, its derivative "
            "is lost",
            taken.span,
        )

    def tell(self, message: str, taken_out: Span) -> None:
        """Say, once, that a derivative may be lost: raise or warn. `taken_out`: where a number became a plain one."""
        root = self.root
        if root._said or not root.is_open:
            return
        root._said, root.taken_out = True, None
        error = DifferentiationError(
            message,
            caller("numpy"),
            hint="compute with it in a kernel, by arithmetic, NumPy's functions on numbers or ti.*; "
            "nothing is lost where it is not part of the derivative",
            notes=[Note("converted here", taken_out)],
        )
        if root.refuses:
            raise error
        warnings.warn_explicit(str(error), UserWarning, error.span.file, error.span.line)


#: The root of all recordings that have ended: one that referred to itself would be left to the garbage collector, with
#: all that its numbers hold.
_CLOSED = Trace()
_CLOSED.is_open = False


def _looks(span: Span) -> bool:
    """Whether an expression of the user's only looks at numbers."""
    return _LOOKS.match(line_text(span)[span.column :]) is not None


def _floats_around() -> dict[int, float]:
    """The floats that the user's functions have under names or as literals: they were not computed later."""
    found: dict[int, float] = {}
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "tinote":
            for values in (frame.f_locals.values(), frame.f_globals.values()):
                found.update((id(value), value) for value in list(values) if type(value) is float)
        frame = frame.f_back
    return found


def may_be_computed(values: Any, older: dict[int, float], written: set[float] | None = None) -> bool:
    """Whether a value holds plain floats that are neither literals nor among the `older` ones; of those that are
    `written`, if that is given.
    """
    if isinstance(values, _SEQUENCES):
        return any(may_be_computed(value, older, written) for value in values)
    array = values if isinstance(values, np.ndarray) else getattr(values, "values", None)
    if isinstance(array, np.ndarray):
        if written is None:
            return array.dtype.kind in "fO"
        if array.dtype == object:
            return may_be_computed(array.ravel().tolist(), older, written)
        return array.dtype.kind == "f" and bool(np.isin(array, np.array(list(written), array.dtype)).any())
    if type(values) is Traced or not isinstance(values, float | np.floating):
        return False
    if written is not None and not any(type(values)(one) == values for one in written):
        return False
    return id(values) not in older and not _is_literal(values)


def _read_back(text: str, value: float) -> Sequence[float]:
    """The numbers that can be read from the text of a value."""
    try:
        return (float(text),)
    except ValueError:  # with separators, or as a percentage
        return _roundings(value)


def _roundings(value: float) -> list[float]:
    """The numbers that can be read from a text of a value with an unknown number of digits."""
    return [value, *[float(f"{value:.{digits}e}") for digits in range(17)]]


def _is_literal(value: Any) -> bool:
    """Whether a number stands in the user's code that has called us: no computation gives the same object."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tinote":
        frame = frame.f_back
    return frame is not None and any(value is constant for constant in _constants(frame.f_code.co_consts))


def _constants(constants: Sequence[Any]) -> list[Any]:
    return [inner for one in constants for inner in (_constants(one) if isinstance(one, tuple) else [one])]


def _of_integers(python: Callable[..., Any], *operands: Any) -> Any:
    """An operation on integers that no program has: it takes the numbers themselves."""
    values = [one.value if type(one) is Traced else one for one in operands]
    if not all(isinstance(one, int | np.integer) for one in values):
        return NotImplemented
    for one in operands:
        if type(one) is Traced:
            one._look("a plain integer of it")
    return python(*values)


def _bitwise(python: _Binary) -> tuple[_Binary, _Binary]:
    """The methods for an operator on bits, with the number on its left and on its right."""
    return (
        lambda self, other: _of_integers(python, self, other),
        lambda self, other: _of_integers(python, other, self),
    )


def _arithmetic(rule: str, python: _Binary) -> tuple[_Binary, _Binary]:
    """The methods for an operator that has a derivative, with the number on its left and on its right."""
    of = RULES[rule]
    return (
        lambda self, other: _by_operator(of, python, self, other),
        lambda self, other: _by_operator(of, python, other, self),
    )


def _comparison(python: _Binary) -> _Binary:
    return lambda self, other: self._compared(other, python)


def _as_integer(python: Callable[[Any], int]) -> Callable[[Any], int]:
    """A method that makes a plain integer of the number."""

    def make(self: Traced) -> int:
        self._look("a plain integer of it")
        return python(self.value)

    return make


@final
class Traced:
    """A number that remembers where it came from. It is made by what reads fields and launches kernels.

    `trace`: the recording that it belongs to; `value`: the number as a constant; `tangent`: its derivative along the
    direction of forward mode; `number`: its own, 0 for a constant among traced numbers. `symbol`: how a step that is
    being captured computes it. `is_sum_of_squares`: whether it was computed as t·t, or as a sum of such.
    """

    __slots__ = ("is_sum_of_squares", "number", "symbol", "tangent", "trace", "value")

    def __new__(cls, value: Any = 0.0) -> Any:
        """A float: what libraries make of a number of the type that they were given (`statistics.mean`)."""
        return float(value)

    fromhex = staticmethod(float.fromhex)

    @property
    def __class__(self) -> type:  # so that `isinstance` says what programs expect
        kind = type(self.value)
        return _TracedFloat if kind is float else kind

    @property
    def is_captured(self) -> bool:
        """Whether it is a number of a step that is being captured."""
        return self.symbol is not None and self.symbol.is_open

    # ---- leaving

    def _look(self, how: str) -> None:
        """Something depends on the number: what a captured step does not have is refused."""
        if self.symbol is not None and self.symbol.is_open:
            self.symbol.refuse(how)

    def _take_out(self) -> float:
        self._look("a plain number of it")
        if self._may_be_lost:
            self.trace.note_taken_out()
        return self.value

    def _note_written(self, value: float) -> None:
        if self._may_be_lost:
            self.trace.note_written(value)

    @property
    def _may_be_lost(self) -> bool:
        """Whether a plain number of it lacks a derivative. Where tangents alone are carried, what has none is a
        constant.
        """
        trace = self.trace
        return trace.is_open and self.number != 0 and (trace.events is not None or bool(self.tangent))

    def __float__(self) -> float:
        self._look("a plain number of it")
        if self.trace.is_open:
            frame = sys._getframe(1)
            if frame.f_code.co_code[frame.f_lasti] != _OPERATOR:
                return float(self._take_out())
            if self._may_be_lost:
                self.trace.note_written(*_roundings(self.value))
        return float(self.value)

    def __tinote_captured__(self) -> float:
        """What a kernel has of a number that it captures."""
        self._look("a kernel that captures it")
        return constant_of(self, "the compiled code, which captures it")

    def __complex__(self) -> complex:
        return complex(self._take_out())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._take_out(), dtype)

    def as_integer_ratio(self) -> tuple[int, int]:
        return self._take_out().as_integer_ratio()

    def hex(self) -> str:
        return self._take_out().hex()

    def is_integer(self) -> bool:
        self._look("a question about it")
        return self.value.is_integer()

    def __index__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"a {Traced.__name__} cannot be interpreted as an integer")
        self._look("a plain integer of it, as an index or a count")
        return self.value

    def __reduce__(self) -> Any:
        self._look("a copy of it")
        self._note_written(self.value)
        return type(self.value), (self.value,)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __copy__(self) -> Traced:
        return self

    def __deepcopy__(self, memo: Any) -> Traced:
        return self

    # ---- looking

    def __repr__(self) -> str:
        self._look("its text")
        self._note_written(self.value)
        return repr(self.value)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        self._look("its text")
        text = format(self.value, spec)
        if self._may_be_lost:
            self.trace.note_written(*_read_back(text, self.value))
        return text

    def __hash__(self) -> int:
        self._look("its hash")
        return hash(self.value)

    def __bool__(self) -> bool:
        if self.symbol is not None and self.symbol.is_open:
            return self.symbol.compared("ne", self, 0, self.value != 0)
        return bool(self.value)

    __int__, __trunc__ = _as_integer(int), _as_integer(math.trunc)
    __floor__, __ceil__ = _as_integer(math.floor), _as_integer(math.ceil)

    def __round__(self, digits: int | None = None) -> Any:
        self._look("its rounding")
        return round(self.value, digits)

    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    def _compared(self, other: Any, compare: Callable[[Any, Any], Any]) -> Any:
        if type(other) is Traced:
            found = compare(self.value, other.value)
        elif isinstance(other, int | float | np.generic) or (isinstance(other, np.ndarray) and not other.ndim):
            found = compare(self.value, other)
        elif isinstance(other, Number):  # a complex number, a fraction: which would not know it
            self._look("a comparison with it")
            return compare(self.value, other)
        else:
            return NotImplemented
        for one in (self, other):
            if type(one) is Traced and one.is_captured:
                return one.symbol.compared(compare.__name__, self, other, found)  # type: ignore[union-attr]
        return found

    # ---- arithmetic

    real = property(lambda self: self)
    imag = property(lambda self: 0.0)
    ndim = property(lambda self: 0)
    shape = property(lambda self: ())

    def conjugate(self) -> Traced:
        return self

    __add__, __radd__ = _arithmetic("add", operator.add)
    __sub__, __rsub__ = _arithmetic("subtract", operator.sub)
    __mul__, __rmul__ = _arithmetic("multiply", operator.mul)
    __truediv__, __rtruediv__ = _arithmetic("true_divide", operator.truediv)
    __floordiv__, __rfloordiv__ = _arithmetic("floor_divide", operator.floordiv)
    __mod__, __rmod__ = _arithmetic("remainder", operator.mod)
    _power, __rpow__ = _arithmetic("float_power", operator.pow)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return _of_integers(pow, self, other, modulus)
        return self._power(other)

    __and__, __rand__ = _bitwise(operator.and_)
    __or__, __ror__ = _bitwise(operator.or_)
    __xor__, __rxor__ = _bitwise(operator.xor)
    __lshift__, __rlshift__ = _bitwise(operator.lshift)
    __rshift__, __rrshift__ = _bitwise(operator.rshift)

    def __invert__(self) -> Any:
        return _of_integers(operator.invert, self)

    def scaling(self, slope: Any) -> Any:
        """The product with a slope, 0 where it is zero itself: of derivatives, which are constants here."""
        return _compute(SCALE, SCALE.value(stored(slope), self.value), (slope, self))

    def condition(self, operation: str, python: Callable[..., bool], operands: Sequence[Any]) -> Any:
        """A condition of a derivative's: a number of the step that is captured, if it selects there."""
        captured = next((one.symbol for one in operands if type(one) is Traced and one.is_captured), None)
        symbol = None if captured is None else captured.condition(operation, operands)
        return python(*operands) if symbol is None else traced(self.trace, python(*stored(operands)), 0.0, 0, symbol)

    def as_literal(self) -> None:
        """A derivative's rule asks whether it is a constant."""
        if self.is_captured:
            self.symbol.as_literal()  # type: ignore[union-attr]

    @property
    def select(self) -> Callable[[Any, Any], Any] | None:
        """What selects one of two numbers by this one, if it is a condition."""
        return self._selected if type(self.value) is bool and self.is_captured else None

    def _selected(self, a: Any, b: Any) -> Any:
        value = stored(a if self.value else b)
        return traced(self.trace, value, 0.0, 0, self.symbol.selected(self, a, b))  # type: ignore[union-attr]

    def __neg__(self) -> Any:
        return _compute(RULES["negative"], -self.value, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _compute(RULES["absolute"], abs(self.value), (self,))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            if any(isinstance(one, np.ndarray) and one.dtype == object for one in inputs):
                return ufunc(*[objects([one], ()) if type(one) is Traced else one for one in inputs])
            if not any(isinstance(one, list | tuple) or (isinstance(one, np.ndarray) and one.ndim) for one in inputs):
                # As with floats, a result out of range is an infinity or NaN.
                plain_inputs = [one.value if type(one) is Traced else one for one in inputs]
                value = ufunc(*plain_inputs)
                rule = RULES.get(ufunc.__name__)
                if rule is not None and not isinstance(value, complex | np.complexfloating):
                    return _compute(rule, float(value), inputs, ufunc)
                if isinstance(value, bool | np.bool_ | np.integer):  # comparisons, and what is piecewise constant
                    for one in inputs:
                        if type(one) is Traced:
                            one._look(f"np.{ufunc.__name__}")
                    return value
        taken = [one._take_out() if type(one) is Traced else one for one in inputs]
        return getattr(ufunc, method)(*taken, **options)

    def __getattr__(self, name: str) -> Any:
        # NumPy's functions ask the elements of an array of objects for a method of their own name.
        if name in RULES and not name.startswith("_"):
            return lambda *others: getattr(np, name)(self, *others)
        kind = type(self.value)
        if name.startswith("_") or not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        self._look("a plain integer of it")  # of floats there is nothing else
        return getattr(self.value, name)


class _TracedFloat(float):
    """What a traced number says that it is: its name is in the messages of libraries that refuse it."""


# Python and its libraries name the type of what they refuse, and so say what to write.
Traced.__name__ = Traced.__qualname__ = _TracedFloat.__name__ = "traced number (write float(…) for a plain one)"
Real.register(Traced)

_allocate = object.__new__


def traced(
    trace: Trace,
    value: float,
    tangent: float,
    number: int,
    symbol: SymbolicNumber | None = None,
    is_sum_of_squares: bool = False,
) -> Traced:
    """A traced number; the parameters are its attributes."""
    made = _allocate(Traced)
    made.trace = trace
    made.value = value
    made.tangent = tangent
    made.number = number
    made.symbol = symbol
    made.is_sum_of_squares = is_sum_of_squares
    return made


_NUMBERS = (int, float, np.bool_, np.integer, np.floating)
_SEQUENCES = (list, tuple)


def _is_number(value: Any) -> bool:
    """Whether Python computes with it as with a float."""
    if isinstance(value, _NUMBERS):
        return True
    return isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "biuf"


def _by_operator(rule: ScalarRule, python: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    x = a.value if type(a) is Traced else a
    y = b.value if type(b) is Traced else b
    if not (type(x) is float or _is_number(x)) or not (type(y) is float or _is_number(y)):
        return _with_others(python, a, b)
    try:
        value = python(x, y)
    except ArithmeticError:
        for one in (a, b):
            if type(one) is Traced:
                one._look("whether arithmetic with it raises an exception")
        raise
    if isinstance(value, complex):  # a root of a negative number
        for one in (a, b):
            if type(one) is Traced:
                one._take_out()
        return value
    return _compute(rule, value, (a, b))


def _with_others(python: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Arithmetic with what is not a real number: a complex number, or a type that has refused a traced number."""
    if type(a) is Traced and not isinstance(b, complex | np.complexfloating):
        return NotImplemented
    found = python(*[one.value if type(one) is Traced else one for one in (a, b)])
    for one in (a, b):
        if type(one) is Traced:
            one._take_out()
    return found


def _compute(rule: ScalarRule, value: Any, operands: Sequence[Any], function: np.ufunc | None = None) -> Any:
    """Computes in Python with numbers, some of them traced, by a NumPy function or an operator."""
    for one in operands:
        if type(one) is Traced and one.is_captured:
            symbol = one.symbol.computed(rule.name, operands, value, function)  # type: ignore[union-attr]
            return _differentiated(rule, value, operands, traced(one.trace, value, 0.0, 0, symbol))
    return _differentiated(rule, value, operands, None)


def _differentiated(rule: ScalarRule, value: Any, operands: Sequence[Any], captured: Traced | None) -> Any:
    """The same, as a number of the recording, if it is one. `captured`: as a number of the step that is captured."""
    constant = value if captured is None else captured
    if rule.rule is None:
        return constant
    trace = _trace_of(operands)
    if trace is None:
        return constant
    given: list[Traced | float] = []
    is_active = has_tangents = False
    for one in operands:
        if type(one) is Traced and trace.is_active(one):
            is_active = True
            has_tangents = has_tangents or type(one.tangent) is Traced or one.tangent != 0
            given.append(one)
        else:
            given.append(_constant(one) if type(one) is Traced and one.is_captured else float(stored(one)))
    if not is_active:
        # A constant that stands among traced numbers is one of them; of a recording that has ended, a float.
        among = any(type(one) is Traced and one.trace.is_open for one in operands)
        is_number = among and captured is None and not isinstance(value, int)
        return traced(trace, float(value), 0.0, 0) if is_number else constant
    if trace.root.taken_out is not None:
        others = [one for one, kept in zip(operands, given, strict=True) if type(kept) is not Traced]
        trace.note_plain(others, "arithmetic")
    if trace.computes is not None:
        return trace.computes.computed(rule, float(value), given)
    tangent = 0.0
    if has_tangents:
        known: Any = float(value) if captured is None else captured
        tangent = rule.of(*[dual_of(one) for one in given], value=known).tangent
    squares = rule.squares is not None and rule.squares(*operands)
    if captured is None:
        found = traced(trace, float(value), tangent, next(_numbers), None, squares)
    else:
        found = traced(trace, value, tangent, next(_numbers), captured.symbol, squares)
    if trace.events is not None:
        trace.events.append(Computed(found, rule, tuple(given)))
    return found


def dual_of(operand: Traced | float) -> Dual:
    """An operand of a rule, as a number with its tangent."""
    if type(operand) is not Traced:
        return ConstantDual(operand)
    return kind_of_dual(operand)(_constant(operand), operand.tangent)


def kind_of_dual(operand: Traced | float) -> type[Dual]:
    """As which kind of number a rule gets it."""
    if type(operand) is not Traced or (operand.is_captured and not operand.number):
        return ConstantDual
    return SumOfSquares if operand.is_sum_of_squares else Dual


def computed_as(rule: ScalarRule, value: float, operands: Sequence[Any]) -> Any:
    """What a rule makes of these operands, whose `value` is known, as a number of the present recording."""
    return _compute(rule, value, operands)


def _trace_of(operands: Sequence[Any]) -> Trace | None:
    """The recording that computing with these numbers belongs to: the present one, or else that of one of them."""
    found = _present()
    if found is not None:
        return found
    return next((one.trace for one in operands if type(one) is Traced and one.trace.is_open), None)


def _present() -> Trace | None:
    """What numbers belong to in this context: the innermost recording, else a capture."""
    open_recorder = recorder.get()
    if open_recorder is not None and open_recorder.trace is not None:
        return open_recorder.trace  # type: ignore[no-any-return]
    listener = active_listener()
    return None if listener is None else listener.trace


# ---- arrays of numbers


def as_components(array: Array) -> Array:
    """The numbers of a vector or matrix. In a step that is being captured they are known as such: NumPy computes with a
    whole vector in its own type, and in an order of its own.
    """
    if active_listener() is None:
        return array
    return objects([_placed(one, inside=True) for one in array.ravel().tolist()], array.shape)


def as_number(component: Traced) -> Traced:
    """A component of a vector as a separate number."""
    return _placed(component, inside=False)


def _placed(value: Traced, *, inside: bool) -> Traced:
    if not value.is_captured:
        return value
    assert value.symbol is not None
    return traced(value.trace, value.value, value.tangent, value.number, value.symbol.in_vector(inside))


def objects(items: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """An array of objects. (Assigning them one by one would ask each for an array of its own.)"""
    found = np.frompyfunc(items.__getitem__, 1, 1)(np.arange(len(items)))
    return np.asarray(found).reshape(shape)


def extreme(function: np.ufunc, items: Sequence[Any]) -> Any:
    """`np.fmin` or `np.fmax` of numbers and arrays; of one array, of its components. Of objects, NumPy's own compares
    and gives the first of equal ones.
    """
    if len(items) == 1:
        array = np.asarray(items[0])
        if array.dtype != object:
            return function.reduce(array, axis=None)
        items = array.ravel().tolist()
    is_of_objects = any(isinstance(one, np.ndarray) and one.dtype == object for one in items)
    return functools.reduce(np.frompyfunc(function, 2, 1) if is_of_objects else function, items)


def holds_traced(value: Any) -> bool:
    """Whether a number, or a list, tuple, array or vector of numbers, holds one that is traced while derivatives are
    recorded.
    """
    trace = _present()
    return trace is not None and trace.holds(value)


def traced_array(value: Any) -> Array:
    """What `holds_traced` as an array of traced numbers."""
    trace = _present() or Trace()
    if trace.root.taken_out is not None and isinstance(value, _SEQUENCES):
        trace.note_plain(value, "a vector of numbers that are differentiated")
    array = _as_objects(value)
    items = [one if type(one) is Traced else traced(trace, float(one), 0.0, 0) for one in array.ravel().tolist()]
    return objects(items, array.shape)


def _as_objects(value: Any) -> Array:
    if type(value) is Traced:
        return objects([value], ())
    if isinstance(value, _SEQUENCES):
        return np.stack([_as_objects(one) for one in value])
    array = getattr(value, "values", value)
    return np.asarray(array).astype(object)


def constants(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a launch, with floats in place of traced numbers. Those of a step that is being captured remain, as
    constants.
    """
    return tuple([_constant(value) if type(value) is Traced else value for value in values])


def _constant(value: Traced) -> Any:
    return traced(value.trace, value.value, 0.0, 0, value.symbol) if value.is_captured else value.value


def all_traced(value: Any) -> Any:
    """A number or an array of floats as one of traced numbers, to go together with such."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return traced_array(value) if number or (isinstance(value, np.ndarray) and value.dtype.kind in "fO") else value


def with_values(value: Any, new: Callable[[float], float]) -> Any:
    """Traced numbers with other values, and the derivatives of the old ones."""
    array = traced_array(value)
    items = [_compute(RULES["positive"], new(one.value), (one,)) for one in array.ravel().tolist()]
    return objects(items, array.shape)[()]


def constant_of(value: Traced, where: str) -> float:
    """A traced number as a constant of `where`. Raises `DifferentiationError` where that loses a derivative."""
    value._look(where)
    if holds_traced(value):
        raise DifferentiationError(
            f"a number that depends on what is differentiated would become a constant of {where}",
            caller(),
            hint="pass it as a number (`a: ti.f64`), or write float(…) where a constant is meant",
        )
    return value.value


def plain(value: Any) -> Any:
    """A number, or a list, array or vector, with floats in place of traced numbers: nothing is taken out. A step that
    is being captured would go on with constants, and is refused.
    """
    return _with_numbers(value, _looked_at)


def stored(value: Any) -> Any:
    """The same for a capture, which records the traced numbers."""
    return _with_numbers(value, _value)


def _looked_at(number: Traced) -> Any:
    number._look("a plain number of it")
    return number.value


def _value(number: Traced) -> Any:
    return number.value


def _with_numbers(value: Any, of: Callable[[Traced], Any]) -> Any:
    kind = type(value)
    if kind is float or kind is int:
        return value
    if kind is Traced:
        return of(value)
    if isinstance(value, _SEQUENCES):
        return [_with_numbers(one, of) for one in value]
    array = value if isinstance(value, np.ndarray) else getattr(value, "values", None)
    if isinstance(array, np.ndarray) and array.dtype == object:
        return np.array([_with_numbers(one, of) for one in array.ravel().tolist()], np.float64).reshape(array.shape)
    return value


def tangents_in(value: Any) -> Any:
    """The tangents of a number or of an array of numbers, where they are traced; else 0."""
    if not holds_traced(value):
        return 0.0
    array = _as_objects(value)
    found = [one.tangent if type(one) is Traced else 0.0 for one in array.ravel().tolist()]
    return arranged(found, array.shape)


def arranged(numbers: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Numbers as an array of floats, or of objects where there are some of a step that is being captured."""
    if any(type(one) is Traced for one in numbers):
        return objects(numbers, shape)
    return np.array(numbers, np.float64).reshape(shape)
