"""The algebra of constant folding: identities of each primitive.

    add %x, 0i32 -> %x                        mul %x, 1.0f32 -> %x            not (eq %a, %b) -> ne %a, %b
    add (add %x, 1i32), 2i32 -> add %x, 3i32  sub %i, %i -> 0i32 (integers)   cast to i32 (cast to i64 %i) -> %i
    select %c, true, false -> %c              neg (neg %x) -> %x              extract (pack %a, %b), 1i32 -> %b

Each identity holds for every value, bit for bit: integers wrap; floats keep signed zeros, infinities and NaNs (except
for payloads). `fast_math` adds identities of real numbers that may round differently or lose the sign of a zero, but
none that is wrong for infinities and NaNs (so `x * 0.0` and `x - x` stay), and none that makes infinities or NaNs from
finite numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Prim, Var, false, true
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, Tensor, Type, element_type, is_integer, u1

#: A primitive and its operands that replace another application.
Application = tuple[Primitive, tuple[Atom, ...]]
Result = Atom | Application | None


class Algebra:
    """Simplifies applications with the definitions seen so far; `emit` adds an operation before the one being
    simplified.
    """

    def __init__(self, fast_math: bool, emit: Callable[[Primitive, tuple[Atom, ...], Type], Var]) -> None:
        self.fast_math = fast_math
        self.emit = emit
        self.definitions: dict[Var, Prim] = {}

    def simplify(self, prim: Primitive, args: tuple[Atom, ...], t: Type) -> Result:
        """The simplified form of `prim` on `args`, of type `t`: an atom, another application, or None if there is
        none.
        """
        if type(args[0]) is Lit:
            if (
                prim not in (p.pack, p.extract, p.insert)
                and isinstance(t, Scalar)
                and all(type(a) is Lit for a in args)
            ):
                return _evaluated(prim, args, t)
            if prim.commutative:
                args = (args[1], args[0])
                return self.simplify(prim, args, t) or (prim, args)
        rule = _RULES.get(prim)
        return rule(self, args, t) if rule is not None else None

    def made_by(self, atom: Atom, prim: Primitive) -> tuple[Atom, ...] | None:
        """The operands of `atom` if it is an application of `prim`."""
        op = self.definitions.get(atom) if type(atom) is Var else None
        return op.args if op is not None and op.prim is prim else None


def _evaluated(prim: Primitive, args: tuple[Atom, ...], t: Scalar) -> Lit | None:
    try:
        return Lit(prim.evaluate(t, *[a.value for a in args if isinstance(a, Lit)]), t)
    except (ArithmeticError, ValueError):
        return None  # A division by zero is reported by its check at run time.


def _is(atom: Atom, value: float) -> bool:
    """Whether `atom` is a literal with this value; floats with this sign, too."""
    if type(atom) is not Lit or atom.value != value:
        return False
    return atom.type.kind != "f" or value != 0 or math.copysign(1.0, atom.value) == math.copysign(1.0, value)


def _zero(atom: Atom) -> bool:
    """Whether `atom` is a literal zero of either sign."""
    return type(atom) is Lit and atom.value == 0


def _number(value: float, like: Type) -> Lit:
    return Lit(value, element_type(like))


def _combined(prim: Primitive, a: Atom, b: Atom, t: Type) -> Lit:
    assert isinstance(a, Lit) and isinstance(b, Lit)
    dtype = element_type(t)
    return Lit(prim.evaluate(dtype, a.value, b.value), dtype)


def _term(prim: Primitive, a: Atom, b: Atom, t: Type) -> Lit | None:
    """Combines two literal terms, unless their sum overflows where adding one after the other would not."""
    found = _combined(prim, a, b, t)
    return found if math.isfinite(found.value) else None


def _add(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    whole = is_integer(t)
    if _is(y, 0 if whole else -0.0) or (c.fast_math and _zero(y)):
        return x
    if (inner := c.made_by(y, p.neg)) is not None:
        return p.sub, (x, inner[0])
    if (inner := c.made_by(x, p.neg)) is not None:
        return p.sub, (y, inner[0])
    if type(y) is Lit and (whole or c.fast_math):
        if (inner := c.made_by(x, p.add)) is not None and type(inner[1]) is Lit:
            if (number := _term(p.add, inner[1], y, t)) is not None:
                return p.add, (inner[0], number)
        if (inner := c.made_by(x, p.sub)) is not None:
            if type(inner[1]) is Lit and (number := _term(p.sub, y, inner[1], t)) is not None:
                return p.add, (inner[0], number)
            if type(inner[0]) is Lit and (number := _term(p.add, inner[0], y, t)) is not None:
                return p.sub, (number, inner[1])
    if whole:
        if (inner := c.made_by(x, p.sub)) is not None and inner[1] == y:
            return inner[0]
        if (inner := c.made_by(y, p.sub)) is not None and inner[1] == x:
            return inner[0]
    return None


def _sub(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    whole = is_integer(t)
    if _is(y, 0 if whole else 0.0) or (c.fast_math and _zero(y)):
        return x
    if _is(x, 0 if whole else -0.0) or (c.fast_math and _zero(x)):
        return p.neg, (y,)
    if (inner := c.made_by(y, p.neg)) is not None:
        return p.add, (x, inner[0])
    if type(y) is Lit and (whole or c.fast_math):
        if (inner := c.made_by(x, p.add)) is not None and type(inner[1]) is Lit:
            if (number := _term(p.sub, inner[1], y, t)) is not None:
                return p.add, (inner[0], number)
        if (inner := c.made_by(x, p.sub)) is not None and type(inner[1]) is Lit:
            if (number := _term(p.add, inner[1], y, t)) is not None:
                return p.sub, (inner[0], number)
    if whole:
        if x == y:
            return _number(0, t)
        if (inner := c.made_by(x, p.add)) is not None and y in inner:
            return inner[1] if inner[0] == y else inner[0]
    return None


def _mul(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    whole = is_integer(t)
    if _is(y, 1):
        return x
    if _is(y, -1):
        return p.neg, (x,)
    if whole and _zero(y):
        return _number(0, t)
    negated, other = c.made_by(x, p.neg), c.made_by(y, p.neg)
    if negated is not None:
        if other is not None:
            return p.mul, (negated[0], other[0])
        if type(y) is Lit:
            return p.mul, (negated[0], _combined(p.mul, y, _number(-1, t), t))
    if type(y) is Lit and (whole or c.fast_math):
        if (inner := c.made_by(x, p.mul)) is not None and type(inner[1]) is Lit:
            product = _combined(p.mul, inner[1], y, t)
            # The product of the two factors must not overflow or underflow where multiplying one after the other would
            # not.
            if whole or element_type(t).smallest_normal <= abs(product.value) < math.inf:
                return p.mul, (inner[0], product)
    return None


def _strong_mul(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    if _zero(x) or _is(y, 1.0):
        return x
    if type(x) is Lit or (type(y) is Lit and math.isfinite(y.value)):
        return p.mul, (x, y)
    return None


def _div(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    if _is(y, 1.0):
        return x
    if _is(y, -1.0):
        return p.neg, (x,)
    return None


def _floordiv(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    return args[0] if is_integer(t) and _is(args[1], 1) else None


def _mod(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    return _number(0, t) if is_integer(t) and _is(args[1], 1) else None


def _neg(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    if (inner := c.made_by(args[0], p.neg)) is not None:
        return inner[0]
    if (is_integer(t) or c.fast_math) and (inner := c.made_by(args[0], p.sub)) is not None:
        return p.sub, (inner[1], inner[0])
    return None


def _abs(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    if c.made_by(args[0], p.absolute) is not None:
        return args[0]
    # The negative of an unsigned number is another number, which is its own absolute value.
    inner = c.made_by(args[0], p.neg) if element_type(t).kind != "u" else None
    return (p.absolute, inner) if inner is not None else None


def _extremum(prim: Primitive) -> Callable[[Algebra, tuple[Atom, ...], Type], Result]:
    def rule(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
        x, y = args
        if x == y:
            return x
        if is_integer(t):
            if type(x) is Lit:
                return prim, (y, x)
            if type(y) is Lit and (inner := c.made_by(x, prim)) is not None and type(inner[1]) is Lit:
                return prim, (inner[0], _combined(prim, inner[1], y, t))
        return None

    return rule


def _power(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, n = args
    if type(n) is not Lit:
        return None
    if n.value == 0:
        return _number(1, t)
    if n.value == 1:
        return x
    if n.value == 2:
        return p.mul, (x, x)
    if is_integer(t) or c.fast_math:
        if n.value in (3, 4):
            square = c.emit(p.mul, (x, x), t)
            return p.mul, (square, x if n.value == 3 else square)
        if n.value == -1 and not is_integer(t):
            return p.div, (_number(1, t), x)
    return None


def _and(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    if x == y:
        return x
    if _zero(y):
        return _number(0, t)
    return x if type(y) is Lit and y.value == p.neutral(p.and_, y.type) else None


def _or(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    if x == y or _zero(y):
        return x
    return y if type(y) is Lit and y.value == p.neutral(p.and_, y.type) else None


def _xor(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x, y = args
    if x == y:
        return _number(0, t)
    if _zero(y):
        return x
    return (p.logical_not, (x,)) if y == true else None


def _invert(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    if t is u1:
        return p.logical_not, args
    inner = c.made_by(args[0], p.invert)
    return inner[0] if inner is not None else None


def _shift(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    return args[0] if _zero(args[1]) else None


def _comparison(prim: Primitive) -> Callable[[Algebra, tuple[Atom, ...], Type], Result]:
    def rule(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
        x, y = args
        operand = element_type(x.type)
        if operand.kind != "f" and x == y:
            return true if prim in (p.le, p.ge, p.eq) else false
        if operand is u1 and type(y) is Lit and prim in (p.eq, p.ne):
            return x if (prim is p.eq) == bool(y.value) else (p.logical_not, (x,))
        if type(x) is Lit:
            return p.MIRRORED[prim], (y, x)
        return None

    return rule


def _not(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    op = c.definitions.get(args[0]) if type(args[0]) is Var else None
    if op is None:
        return None
    if op.prim is p.logical_not:
        return op.args[0]
    if op.prim in p.NEGATED and (element_type(op.args[0].type).kind != "f" or op.prim in (p.eq, p.ne)):
        return p.NEGATED[op.prim], op.args
    return None


def _select(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    condition, x, y = args
    if type(condition) is Lit:
        return x if condition.value else y
    if x == y:
        return x
    if x == true and y == false:
        return condition
    if x == false and y == true:
        return p.logical_not, (condition,)
    if y == false:
        return p.and_, (condition, x)
    if x == true:
        return p.or_, (condition, y)
    inner = c.made_by(condition, p.logical_not)
    return (p.select, (inner[0], y, x)) if inner is not None else None


def _keeps_values(a: Scalar, b: Scalar) -> bool:
    """Whether type `b` represents every value of type `a`."""
    if a is b:
        return True
    if b is u1:
        return False
    if a is u1:
        return True
    if a.kind == "f":
        return b.kind == "f" and b.bits > a.bits
    if b.kind == "f":
        return a.bits - (a.kind == "i") <= b.mantissa
    return b.lowest <= a.lowest and a.highest <= b.highest


def _cast(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    x = args[0]
    if x.type == t:
        return x
    inner = c.made_by(x, p.cast)
    if inner is None:
        return None
    first, middle, last = element_type(inner[0].type), element_type(x.type), element_type(t)
    if _keeps_values(first, middle):
        # An integer that went through a float saturates on its way back; one that did not wraps.
        through_float = middle.kind == "f" and first.kind != "f" and last.kind in "iu"
        if not through_float or _keeps_values(first, last):
            return inner[0] if inner[0].type == t else (p.cast, inner)
    wraps = first.kind in "iu" and middle.kind in "iu" and last.kind in "iu" and last.bits <= middle.bits
    return ((p.cast, inner) if inner[0].type != t else inner[0]) if wraps else None


def _flat_index(t: Type, indices: tuple[Atom, ...]) -> int | None:
    """The row-major position of literal indices that are in range."""
    assert isinstance(t, Tensor)
    position = 0
    for index, extent in zip(indices, t.shape, strict=True):
        if not isinstance(index, Lit) or not 0 <= index.value < extent:
            return None
        position = position * extent + int(index.value)
    return position


def _extract(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    tensor, indices = args[0], args[1:]
    position = _flat_index(tensor.type, indices)
    if position is None:
        return None
    while (inner := c.made_by(tensor, p.insert)) is not None:
        where = _flat_index(tensor.type, inner[1:-1])
        if where is None:
            break
        if where == position:
            return inner[-1]
        tensor = inner[0]
    if (inner := c.made_by(tensor, p.pack)) is not None:
        return inner[position]
    return (p.extract, (tensor, *indices)) if tensor is not args[0] else None


def _insert(c: Algebra, args: tuple[Atom, ...], t: Type) -> Result:
    position = _flat_index(t, args[1:-1])
    inner = c.made_by(args[0], p.pack)
    if position is None or inner is None:
        return None
    return p.pack, (*inner[:position], args[-1], *inner[position + 1 :])


_RULES: dict[Primitive, Callable[[Algebra, tuple[Atom, ...], Type], Result]] = {
    p.add: _add,
    p.sub: _sub,
    p.mul: _mul,
    p.strong_mul: _strong_mul,
    p.div: _div,
    p.floordiv: _floordiv,
    p.raw_div: _floordiv,
    p.mod: _mod,
    p.raw_mod: _mod,
    p.neg: _neg,
    p.absolute: _abs,
    p.minimum: _extremum(p.minimum),
    p.maximum: _extremum(p.maximum),
    p.power: _power,
    p.and_: _and,
    p.or_: _or,
    p.xor: _xor,
    p.invert: _invert,
    p.shl: _shift,
    p.shr: _shift,
    **{prim: _comparison(prim) for prim in p.MIRRORED},
    p.logical_not: _not,
    p.select: _select,
    p.cast: _cast,
    p.extract: _extract,
    p.insert: _insert,
}
