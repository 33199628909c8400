"""Arithmetic that emits operations, with which derivative rules compute in kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Lit, Op, Prim, Var, component_indices
from tinote.ir.primitives import Primitive
from tinote.ir.query import operands_first
from tinote.ir.types import Scalar, Tangents, Tensor, Type, element_type, i32, is_float, tangent_type, with_element


class Emit:
    """Arithmetic on atoms of one float type, with the zeros and ones left out. Where tangents along several directions
    meet a number, it is repeated.

    `definitions`: how the variables of the primal function are computed. `discardable`: those whose value may not
    count. `stops`: whether there is any `stop_gradient_once`.
    """

    __slots__ = ("_positive", "_squares", "builder", "definitions", "discardable", "stops")

    def __init__(self, builder: Builder, definitions: dict[Var, Op], discardable: set[Var]) -> None:
        self.builder = builder
        self.definitions = definitions
        self.discardable = discardable
        #: what is known of `is_positive` and `is_sum_of_squares`
        self._positive: dict[Atom, bool] = {}
        self._squares: dict[Atom, bool] = {}
        self.stops = any(isinstance(op, Prim) and op.prim is p.stop_gradient_once for op in definitions.values())

    def without_stop_gradient(self, atom: Atom) -> Atom:
        """What an atom is in the next derivative: `stop_gradient_once` stops only one."""
        return self._without_stop_gradient(atom, {}) if self.stops else atom

    def _without_stop_gradient(self, atom: Atom, known: dict[Atom, Atom]) -> Atom:
        op = self.definitions.get(atom) if isinstance(atom, Var) else None
        if not isinstance(op, Prim) or op.prim is p.surrogate:
            return atom
        if op.prim is p.stop_gradient_once:
            return op.args[0]
        if atom not in known:
            args = tuple([self._without_stop_gradient(a, known) for a in op.args])
            known[atom] = atom if args == op.args else self.builder.prim(op.prim, *args, type=op.out.type)
        return known[atom]

    def lit(self, value: float, like: Atom) -> Lit:
        assert isinstance(like.type, Scalar)
        return Lit(value, like.type)

    def literal(self, a: Atom) -> float | None:
        """The value of a literal."""
        return a.value if isinstance(a, Lit) else None

    def _alike(self, a: Atom, b: Atom) -> tuple[Atom, Atom]:
        """Both along the same number of directions."""
        if isinstance(a.type, Tangents):
            return a, self.builder.cast(b, a.type)
        return (self.builder.cast(a, b.type), b) if isinstance(b.type, Tangents) else (a, b)

    def add(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.add, *self._alike(a, b))

    def sub(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.sub, *self._alike(a, b))

    def mul(self, a: Atom, b: Atom) -> Atom:
        if isinstance(a, Lit) and a.value == 1.0:
            return b
        if isinstance(b, Lit) and b.value == 1.0:
            return a
        return self.builder.prim(p.mul, *self._alike(a, b))

    def div(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.div, *self._alike(a, b))

    def neg(self, a: Atom) -> Atom:
        return self.builder.prim(p.neg, a)

    def of(self, prim: Primitive, *args: Atom) -> Atom:
        return self.builder.prim(prim, *args)

    def zero(self, like: Atom) -> Atom:
        """A zero of the type of `like`, a scalar or a tensor."""
        return self.zero_of(like.type)

    def zero_of(self, t: Type) -> Atom:
        """A zero of a type, a scalar's or a tensor's."""
        if isinstance(t, Tensor):
            return self.builder.pack([Lit(0.0, t.dtype)] * t.count, t)
        assert isinstance(t, Scalar)
        return Lit(0.0, t)

    def where(self, condition: Atom, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.select, condition, a, b)

    def strong_mul(self, g: Atom, slope: Atom) -> Atom:
        """`g` times a slope that may be infinite or no number; 0 where `g` is 0."""
        return self.mul(g, slope) if isinstance(g, Lit) else self.builder.prim(p.strong_mul, *self._alike(g, slope))

    def times(self, y: Atom, g: Atom, slope: Atom, *, regular: bool = True) -> Atom:
        """`g` times the slope of `y`. `regular`: it is a number unless `y` is not."""
        return self.mul(g, slope) if regular and y not in self.discardable else self.strong_mul(g, slope)

    def is_square(self, y: Atom, g: Atom) -> bool:
        """Whether a product is that of a variable with itself; not one with itself held constant."""
        op = self.definitions.get(y) if isinstance(y, Var) else None
        return op is not None and op.args[0] == op.args[1] and isinstance(g.type, Scalar)

    def is_sum_of_squares(self, a: Atom) -> bool:
        """Whether `a` is computed as t·t, or as a sum of such."""
        squares = self._squares
        for op in operands_first(a, self.definitions, squares, (p.add, p.mul)):
            first, second = op.args
            one = first == second if op.prim is p.mul else squares.get(first, False) and squares.get(second, False)
            squares[op.out] = one
        return squares.get(a, False)

    def is_positive(self, a: Atom) -> bool:
        """Whether `a` is computed as a positive number, plus what is not negative or not at all, or as its root: 1/a is
        finite.

        Not `Magnitudes.is_positive`: that wants all digits, where of a denormal number the reciprocal may be finite,
        too, and it knows of what is not marked here, such as maxima.
        """
        if isinstance(a, Lit):
            return a.value > 0 and math.isfinite(a.type.round(1 / a.value))
        for op in operands_first(a, self.definitions, self._positive, (p.add, p.sqrt)):
            positive = [self.is_positive(x) for x in op.args]
            if not all(positive) and any(positive):
                positive = [found or self.is_sum_of_squares(x) for found, x in zip(positive, op.args, strict=True)]
            self._positive[op.out] = all(positive)
        return self._positive.get(a, False)

    def of_operand(self, g: Atom, a: Atom) -> Atom | None:
        """The adjoint of a converted number as one of the number itself."""
        if not is_float(a.type):
            return None
        of_adjoint, dtype = element_type(g.type), element_type(a.type)
        if isinstance(of_adjoint, Tangents):
            dtype = tangent_type(dtype, of_adjoint.count)
        return self.builder.cast(g, with_element(a.type, dtype))

    def components(self, tensor: Atom) -> list[Atom]:
        """The components of a tensor, in row-major order."""
        assert isinstance(tensor.type, Tensor)
        return [self.builder.extract(tensor, *index) for index in component_indices(tensor.type.shape)]


def joined_tangents(builder: Builder, numbers: Sequence[Atom]) -> Atom:
    """One value of numbers, one for each direction."""
    if len(numbers) == 1:
        return numbers[0]
    t = numbers[0].type
    assert isinstance(t, Scalar)
    return builder.prim(p.join_tangents, *numbers, type=tangent_type(t, len(numbers)))


def tangent_numbers(builder: Builder, joined: Atom, directions: int) -> list[Atom]:
    """The numbers of such a value, one for each direction."""
    if directions == 1:
        return [joined]
    t = joined.type
    assert isinstance(t, Tangents)
    if isinstance(joined, Lit):
        return [Lit(joined.value, t.scalar)] * directions
    return [builder.prim(p.tangent_at, joined, Lit(k, i32), type=t.scalar) for k in range(directions)]
