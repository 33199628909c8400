"""Mathematical functions on floats as LLVM instructions."""

from __future__ import annotations

import math
from collections.abc import Callable

from tinote.compiler.codegen.llvm.fast_maths import inline
from tinote.compiler.codegen.llvm.text import TYPES, FunctionText, number
from tinote.ir.nodes import Atom, Lit
from tinote.ir.types import Scalar, f32

__all__ = [
    "acos", "asin", "atan2", "cos", "exp", "floor_divide", "log", "modulo",
    "over_sqrt", "power", "rsqrt", "sin", "sqrt", "tan", "tanh", "truncating_modulo",
]  # fmt: skip

Atoms = tuple[Atom, ...]
_LONGEST_UNROLLED_POWER = 16


def _call(f: FunctionText, name: str, t: Scalar, *operands: str, flags: str | None = None) -> str:
    """An LLVM intrinsic on operands of its result's type."""
    ty = TYPES[t]
    arguments = ", ".join(f"{ty} {x}" for x in operands)
    return f.value(f"call{f.flags if flags is None else flags} {ty} @llvm.{name}.f{t.bits}({arguments})")


def _intrinsic(name: str) -> Callable[..., str]:
    """Inline where that is possible and allowed, else LLVM's intrinsic, which becomes an instruction or a call."""

    def emit(f: FunctionText, t: Scalar, atoms: Atoms, *operands: str) -> str:
        return inline(f, name, t, operands[0]) or _call(f, name, t, *operands)

    return emit


exp = _intrinsic("exp")
log = _intrinsic("log")
sin = _intrinsic("sin")
cos = _intrinsic("cos")
tan = _intrinsic("tan")
asin = _intrinsic("asin")
acos = _intrinsic("acos")
atan2 = _intrinsic("atan2")
tanh = _intrinsic("tanh")


def sqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    root = _call(f, "sqrt", t, a)
    f.roots[root] = a
    return root


def rsqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    return over_sqrt(f, t, number(t, 1.0), a, sqrt(f, t, atoms, a))


def over_sqrt(f: FunctionText, t: Scalar, numerator: str, a: str, root: str) -> str:
    """`numerator` over the square root of `a`, which is `root`.

    Under fast maths LLVM takes an estimate of the reciprocal root and a step of Newton's method for f32, which makes a
    NaN of 0 and of infinity; they are put right behind it.
    """
    if t is not f32 or not f.flags:
        return f.value(f"fdiv{f.flags} {TYPES[t]} {numerator}, {root}")
    one, zero, infinity = (number(t, x) for x in (1.0, 0.0, math.inf))
    near = f.value(f"fdiv{f.flags} float {one}, {root}")
    if a in f.positive:
        wrong, right = f.value(f"fcmp oeq float {a}, {infinity}"), zero
    else:
        # |a| + |a| = a only for the zeros and +infinity, which exchanging the bits of infinity turns into
        # their results.
        size = f.value(f"call float @llvm.fabs.f32(float {a})")
        wrong = f.value(f"fcmp oeq float {f.value(f'fadd float {size}, {size}')}, {a}")
        bits = f.value(f"xor i32 {f.value(f'bitcast float {a} to i32')}, {0x7F800000}")
        right = f.value(f"bitcast i32 {bits} to float")
    right = f.value(f"select i1 {wrong}, float {right}, float {near}")
    return right if numerator == one else f.value(f"fmul{f.flags} float {numerator}, {right}")


def power(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """Small whole literal exponents become products: a square in strict maths, more under fast maths."""
    exponent = atoms[1].value if len(atoms) > 1 and isinstance(atoms[1], Lit) else None
    longest = _LONGEST_UNROLLED_POWER if f.flags else 2
    if exponent is not None and abs(exponent) <= longest and exponent == int(exponent):
        result, base, left = "", a, abs(int(exponent))
        while left:
            if left & 1:
                result = f.value(f"fmul{f.flags} {TYPES[t]} {result}, {base}") if result else base
            left >>= 1
            if left:
                base = f.value(f"fmul{f.flags} {TYPES[t]} {base}, {base}")
        one = number(t, 1.0)
        if exponent == 0:
            return one
        return result if exponent > 0 else f.value(f"fdiv{f.flags} {TYPES[t]} {one}, {result}")
    return _call(f, "pow", t, a, b)


def floor_divide(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    # No fast maths: by way of a reciprocal 6 / 3 may come out just under 2.
    return _call(f, "floor", t, f.value(f"fdiv {TYPES[t]} {a}, {b}"), flags="")


def modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """a - floor(a / b) * b, with each step rounded; NaN where the quotient or `b` is not finite."""
    ty = TYPES[t]
    quotient = floor_divide(f, t, atoms, a, b)
    rest = f.value(f"fsub {ty} {a}, {f.value(f'fmul {ty} {quotient}, {b}')}")
    infinity = number(t, float("inf"))
    fine = [f.value(f"fcmp olt {ty} {_call(f, 'fabs', t, x, flags='')}, {infinity}") for x in (quotient, b)]
    return f.value(f"select i1 {f.value(f'and i1 {fine[0]}, {fine[1]}')}, {ty} {rest}, {ty} {number(t, float('nan'))}")


def truncating_modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    return f.value(f"frem {TYPES[t]} {a}, {b}")
