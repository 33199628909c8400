"""Functions of LLVM text written as expressions: each operator appends an instruction.

    body, x = begin(f32, "x")
    body.end(x * x + 1.0)           %v0 = fmul float %x, %x
                               ->   %v1 = fadd float %v0, 0x3FF0000000000000
                                    ret float %v1

A Python number takes the type of the other operand. Integers without a sign shift logically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinote.compiler.codegen.llvm.types import TYPES, number
from tinote.ir.types import Scalar, u1


class Body:
    """The instructions of a function so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, instruction: str) -> str:
        """An instruction with a result, by the name of that."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def add(self, t: Scalar, instruction: str) -> Operand:
        """The result of an instruction, of type `t`."""
        return Operand(self, t, self.value(instruction))

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def branch(self, condition: Operand, then: str, orelse: str) -> None:
        """End a block: with `then`, where the condition holds, else with `orelse`."""
        self.lines.append(f"  br i1 {condition.name}, label %{then}, label %{orelse}")

    def end(self, result: Operand) -> None:
        """End the function."""
        self.lines.append(f"  ret {TYPES[result.t]} {result.name}")

    @property
    def text(self) -> str:
        """All lines."""
        return "".join([f"{line}\n" for line in self.lines])


def begin(t: Scalar, parameter: str) -> tuple[Body, Operand]:
    """A function of one parameter."""
    body = Body()
    return body, Operand(body, t, f"%{parameter}")


def _operator(word: str) -> Callable[[Operand, Operand | float], Operand]:
    def apply(value: Operand, other: Operand | float) -> Operand:
        of_floats = "f" if value.t.kind == "f" else ""
        return value.body.add(value.t, f"{of_floats}{word} {TYPES[value.t]} {value.name}, {value.like(other).name}")

    return apply


class Operand:
    """A value of type `t` in a function's body."""

    __slots__ = ("body", "name", "t")

    def __init__(self, body: Body, t: Scalar, name: str) -> None:
        self.body = body
        self.t = t
        self.name = name

    def like(self, operand: Operand | float) -> Operand:
        """An operand of the same type."""
        if isinstance(operand, Operand):
            return operand
        return Operand(self.body, self.t, number(self.t, self.t.round(operand) if self.t.kind == "f" else operand))

    __add__, __sub__, __mul__, __truediv__ = map(_operator, ("add", "sub", "mul", "div"))
    __lshift__, __and__, __xor__ = map(_operator, ("shl", "and", "xor"))

    def __rshift__(self, by: int) -> Operand:
        return _operator("ashr" if self.t.kind == "i" else "lshr")(self, by)

    def __rsub__(self, other: float) -> Operand:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> Operand:
        return self.like(other) / self

    def __neg__(self) -> Operand:
        return self.body.add(self.t, f"fneg {TYPES[self.t]} {self.name}")

    def compared(self, order: str, other: Operand | float) -> Operand:
        """Whether an order holds, by LLVM's name for it."""
        word = "fcmp" if self.t.kind == "f" else "icmp"
        return self.body.add(u1, f"{word} {order} {TYPES[self.t]} {self.name}, {self.like(other).name}")

    def chosen(self, condition: Operand, other: Operand | float) -> Operand:
        """This value where a condition holds, else another one."""
        ty = TYPES[self.t]
        return self.body.add(self.t, f"select i1 {condition.name}, {ty} {self.name}, {ty} {self.like(other).name}")

    def converted(self, word: str, t: Scalar) -> Operand:
        """This value as another type, by the instruction of this name."""
        return self.body.add(t, f"{word} {TYPES[self.t]} {self.name} to {TYPES[t]}")

    def called(self, function: str, *others: Operand | float, gives: Scalar | None = None) -> Operand:
        """The result of a function of this value and others, which has their type unless it `gives` another one."""
        t = gives or self.t
        arguments = ", ".join([f"{TYPES[self.t]} {self.like(x).name}" for x in (self, *others)])
        return self.body.add(t, f"call {TYPES[t]} @{function}({arguments})")

    def intrinsic(self, name: str, *others: Operand | float) -> Operand:
        """The result of one of LLVM's own functions."""
        return self.called(f"llvm.{name}.f{self.t.bits}", *others)

    def times(self, factor: Operand | float, plus: Operand | float) -> Operand:
        """The product, plus another value: with one rounding where that is no slower."""
        return self.intrinsic("fmuladd", factor, plus)

    def polynomial(self, coefficients: Sequence[float]) -> Operand:
        """A polynomial of this value, by Horner's rule."""
        found = self.like(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            found = found.times(self, c)
        return found
