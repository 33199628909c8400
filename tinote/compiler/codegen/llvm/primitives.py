"""Primitives as LLVM instructions: one table, keyed by the primitive.

Each entry takes the function under construction, the result type, the operands as IR atoms and as LLVM text, and
returns the result as LLVM text. The meaning is that of `ir/primitives.py`, corner cases included.
"""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.llvm import integers as llvm_integers
from tinote.compiler.codegen.llvm import maths as llvm_maths
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES, number
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.affine import span_of_type
from tinote.ir.float_ranges import FloatRange, fits
from tinote.ir.nodes import Atom
from tinote.ir.primitives import Primitive, require_all
from tinote.ir.types import Scalar, Tangents, f16, f32, f64, i64, tangent_type, u1

Emitter = Callable[..., str]
Atoms = tuple[Atom, ...]


def emit_prim(f: FunctionText, prim: Primitive, t: Scalar, atoms: Atoms, operands: list[str]) -> str:
    """`prim` on scalar operands. Raises `CompilerBug` for a primitive that has no machine code."""
    emitter = EMITTERS.get(prim)
    if emitter is None:
        raise CompilerBug("LLVM code", f"no code for '{prim.name}'")
    return emitter(f, t, atoms, *operands)


def combine(f: FunctionText, prim: Primitive, t: Scalar, old: str, value: str) -> str:
    """The value that an atomic operation leaves in memory."""
    if t is u1:
        return f.value(f"{p.ON_TRUTHS.get(prim, prim).name} i1 {old}, {value}")
    f.no_wrap = False
    f.summing = prim is p.add
    return EMITTERS[prim](f, t, (), old, value)


def _operand_type(atoms: Atoms) -> Scalar:
    t = atoms[0].type
    assert isinstance(t, Scalar)
    return t


def _arithmetic(word: str) -> Emitter:
    def emit(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
        if t.kind == "f":
            return f.value(f"f{word}{f.sum_flags if f.summing else f.flags} {TYPES[t]} {a}, {b}")
        if f.no_wrap:
            return f.value(f"{word} {'nsw' if t.kind == 'i' else 'nuw'} {TYPES[t]} {a}, {b}")
        return f.value(f"{word} {TYPES[t]} {a}, {b}")

    return emit


def _div(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    if b in f.roots:
        return llvm_maths.over_sqrt(f, t, a, b)
    return f.value(f"fdiv{f.flags} {TYPES[t]} {a}, {b}")


def _strong_mul(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    product = f.value(f"fmul{f.flags} {TYPES[t]} {a}, {b}")
    counts = f.value(f"fcmp une {TYPES[t]} {a}, {number(t, 0.0)}")
    truth = TYPES[tangent_type(u1, t.count)] if isinstance(t, Tangents) else "i1"
    return f.value(f"select{f.flags} {truth} {counts}, {TYPES[t]} {product}, {TYPES[t]} {a}")


def _neg(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    return (
        f.value(f"fneg{f.flags} {TYPES[t]} {a}")
        if t.kind == "f"
        else f.value(f"sub{' nsw' if f.no_wrap and t.kind == 'i' else ''} {TYPES[t]} 0, {a}")
    )


def _absolute(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    if t.kind == "f":
        return f.value(f"call{f.flags} {TYPES[t]} @llvm.fabs.{_suffix(t)}({TYPES[t]} {a})")
    return f.value(f"call {TYPES[t]} @llvm.abs.{TYPES[t]}({TYPES[t]} {a}, i1 false)") if t.kind == "i" else a


def _extremum(word: str) -> Emitter:
    """An extremum that ignores NaN. Under fast maths reductions vectorise."""

    def emit(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
        if t.kind == "f":
            if f.flags and not f.numeric_extrema:
                return _compared_extremum(f, t, word, atoms, a, b)
            order = " nsz" if f.flags else ""
            if not f.flags:
                # LLVM (22) lets a NaN through where it knows that the other operand is not NaN and zeros are ordered,
                # as for a converted integer or the initial value of a reduction.
                unordered = [f.value(f"fcmp uno {TYPES[t]} {one}, {number(t, 0.0)}") for one in (a, b)]
                a, b = (
                    f.value(f"select i1 {unknown}, {TYPES[t]} {other}, {TYPES[t]} {one}")
                    for unknown, one, other in zip(unordered, (a, b), (b, a), strict=True)
                )
            name = f"@llvm.{word}imumnum.{_suffix(t)}"
            return f.value(f"call{order} {TYPES[t]} {name}({TYPES[t]} {a}, {TYPES[t]} {b})")
        return f.value(
            f"call {TYPES[t]} @llvm.{'s' if t.kind == 'i' else 'u'}{word}.{TYPES[t]}({TYPES[t]} {a}, {TYPES[t]} {b})"
        )

    return emit


def _compared_extremum(f: FunctionText, t: Scalar, word: str, atoms: Atoms, a: str, b: str) -> str:
    """An extremum by comparison, with zeros unordered: LLVM scalarises its intrinsics for targets whose instructions
    let a NaN through.
    """
    ty = TYPES[t]
    if atoms and f.float_range(atoms[1]).nan and not f.float_range(atoms[0]).nan:
        a, b, atoms = b, a, (atoms[1], atoms[0])
    chosen = f.value(f"fcmp {'ogt' if word == 'max' else 'olt'} {ty} {a}, {b}")
    found = f.value(f"select{f.flags} i1 {chosen}, {ty} {a}, {ty} {b}")  # `b` where one of them is NaN
    if atoms and not f.float_range(atoms[1]).nan:
        return found
    unknown = f.value(f"fcmp uno {ty} {b}, {number(t, 0.0)}")
    return f.value(f"select{f.flags} i1 {unknown}, {ty} {a}, {ty} {found}")


def _bitwise(word: str) -> Emitter:
    return lambda f, t, atoms, a, b: f.value(f"{word} {TYPES[t]} {a}, {b}")


def _compare(float_order: str, signed: str, unsigned: str) -> Emitter:
    def emit(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
        compared = _operand_type(atoms)
        if compared.kind == "f":
            return f.value(f"fcmp {float_order} {TYPES[compared]} {a}, {b}")
        return f.value(f"icmp {signed if compared.kind == 'i' else unsigned} {TYPES[compared]} {a}, {b}")

    return emit


def _isnan(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    compared = _operand_type(atoms)
    return f.value(f"fcmp uno {TYPES[compared]} {a}, {number(compared, 0.0)}")


def _select(f: FunctionText, t: Scalar, atoms: Atoms, c: str, a: str, b: str) -> str:
    return f.value(f"select{f.flags if t.kind == 'f' else ''} i1 {c}, {TYPES[t]} {a}, {TYPES[t]} {b}")


def _integral(word: str) -> Emitter:
    def emit(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
        return f.value(f"call {TYPES[t]} @llvm.{word}.{_suffix(t)}({TYPES[t]} {a})") if t.kind == "f" else a

    return emit


def _suffix(t: Scalar) -> str:
    return f"v{t.count}f{t.bits}" if isinstance(t, Tangents) else f"f{t.bits}"


def _cast(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    s = _operand_type(atoms)
    known = f.float_range(atoms[0]) if s.kind == "f" and t.kind in "iu" else None
    return _converted(f, s, t, a, known)


def _converted(f: FunctionText, s: Scalar, t: Scalar, a: str, known: FloatRange | None = None) -> str:
    if s is t:
        return a
    if isinstance(t, Tangents):
        if isinstance(s, Tangents):
            return _joined(f, t, [_converted(f, s.scalar, t.scalar, tangent_at(f, s, a, k)) for k in range(t.count)])
        return _spread(f, t, _converted(f, s, t.scalar, a))
    source, target = TYPES[s], TYPES[t]
    if t is u1:
        return (
            f.value(f"fcmp une {source} {a}, {number(s, 0.0)}")
            if s.kind == "f"
            else f.value(f"icmp ne {source} {a}, 0")
        )
    if s.kind == "f" and t.kind == "f":
        if t.bits > s.bits:
            return f.value(f"fpext {source} {a} to {target}")
        return _double_to_half(f, a) if s is f64 and t is f16 else f.value(f"fptrunc {source} {a} to {target}")
    if s.kind == "f":
        return _saturated(f, s, t, a, known)
    if t.kind == "f":
        word = "sitofp" if s.kind == "i" else "uitofp"
        if t is f16 and s.bits > 8:
            # Through f32: numbers that it does not represent exactly are infinite in f16 anyway.
            return f.value(f"fptrunc float {f.value(f'{word} {source} {a} to float')} to half")
        if t is f32 and s.bits == 64:
            # Through f64, like a Python number.
            return f.value(f"fptrunc double {f.value(f'{word} {source} {a} to double')} to float")
        return f.value(f"{word} {source} {a} to {target}")
    if t.bits < s.bits:
        return f.value(f"trunc {source} {a} to {target}")
    if t.bits > s.bits:
        return f.value(f"{'sext' if s.kind == 'i' else 'zext'} {source} {a} to {target}")
    return a


def tangent_at(f: FunctionText, t: Tangents, a: str, position: int) -> str:
    """One of several tangents."""
    return f.value(f"extractelement {TYPES[t]} {a}, i64 {position}")


def _joined(f: FunctionText, t: Tangents, numbers: list[str]) -> str:
    found = "poison"
    for k, one in enumerate(numbers):
        found = f.value(f"insertelement {TYPES[t]} {found}, {TYPES[t.scalar]} {one}, i64 {k}")
    return found


def _spread(f: FunctionText, t: Tangents, a: str) -> str:
    """A number along all directions."""
    ty, first = TYPES[t], f.value(f"insertelement {TYPES[t]} poison, {TYPES[t.scalar]} {a}, i64 0")
    return f.value(f"shufflevector {ty} {first}, {ty} poison, <{t.count} x i32> zeroinitializer")


def _join_tangents(f: FunctionText, t: Scalar, atoms: Atoms, *operands: str) -> str:
    assert isinstance(t, Tangents)
    return _joined(f, t, list(operands))


def _direction(f: FunctionText, t: Scalar, atoms: Atoms, a: str, position: str) -> str:
    joined = _operand_type(atoms)
    assert isinstance(joined, Tangents)
    return tangent_at(f, joined, a, int(position))


def _saturated(f: FunctionText, s: Scalar, t: Scalar, a: str, known: FloatRange | None) -> str:
    """A float truncated to an integer and saturated to the type's range; NaN as zero.

    Not `llvm.fptosi.sat`, which LLVM scalarises where the conversion itself is one vector instruction. The result of
    converting a number out of range is never selected; if the number is certainly in range, only the conversion
    remains. f16 goes through f32: LLVM's own saturating conversion of f16 to i16 makes the lowest number of NaN on
    processors with instructions for f16.
    """
    if s is f16:
        s, a = f32, f.value(f"fpext half {a} to float")
    source, target = TYPES[s], TYPES[t]
    signed = t.kind == "i"
    near = f.value(f"fpto{'s' if signed else 'u'}i {source} {a} to {target}")
    if known is not None and fits(known, span_of_type(t)):
        return near
    low, high = number(s, float(t.lowest)), number(s, float(t.highest + 1))
    below = f.value(f"fcmp olt {source} {a}, {low}")
    above = f.value(f"fcmp oge {source} {a}, {high}")
    neither = f.value(f"fcmp uno {source} {a}, {a}")
    near = f.value(f"select i1 {below}, {target} {t.lowest}, {target} {near}")
    near = f.value(f"select i1 {above}, {target} {i64.wrap(t.highest)}, {target} {near}")
    return f.value(f"select i1 {neither}, {target} 0, {target} {near}")


def _double_to_half(f: FunctionText, a: str) -> str:
    """f64 to f16 with a single rounding: first to f32, rounded to odd, which the second rounding cannot mistake."""
    near = f.value(f"fptrunc double {a} to float")
    back = f.value(f"fpext float {near} to double")
    exact = f.value(f"fcmp ueq double {back}, {a}")
    bits = f.value(f"bitcast float {near} to i32")
    sizes = [f.value(f"call double @llvm.fabs.f64(double {x})") for x in (back, a)]
    larger = f.value(f"fcmp ogt double {sizes[0]}, {sizes[1]}")
    down = f.value(f"sub i32 {bits}, {f.value(f'zext i1 {larger} to i32')}")
    odd = f.value(f"or i32 {down}, 1")
    chosen = f.value(f"select i1 {exact}, i32 {bits}, i32 {odd}")
    return f.value(f"fptrunc float {f.value(f'bitcast i32 {chosen} to float')} to half")


def _bitcast(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    s = _operand_type(atoms)
    return a if TYPES[s] == TYPES[t] else f.value(f"bitcast {TYPES[s]} {a} to {TYPES[t]}")


def _signed(value: int) -> int:
    return i64.wrap(value)


def _random_bits(f: FunctionText, t: Scalar, atoms: Atoms, seed: str, iteration: str, draw: str) -> str:
    """`primitives.mix`, instruction by instruction."""
    z = seed
    for word in (iteration, f.value(f"sext i32 {draw} to i64")):
        counted = f.value(f"add i64 {word}, 1")
        z = f.value(f"add i64 {z}, {f.value(f'mul i64 {counted}, {_signed(0x9E3779B97F4A7C15)}')}")
        z = f.value(f"mul i64 {_folded(f, z, 30)}, {_signed(0xBF58476D1CE4E5B9)}")
        z = f.value(f"mul i64 {_folded(f, z, 27)}, {_signed(0x94D049BB133111EB)}")
        z = _folded(f, z, 31)
    return f.value(f"trunc i64 {f.value(f'lshr i64 {z}, 32')} to i32")


def _folded(f: FunctionText, z: str, by: int) -> str:
    return f.value(f"xor i64 {z}, {f.value(f'lshr i64 {z}, {by}')}")


def _integer_or_float(integer: Emitter, floating: Emitter) -> Emitter:
    return lambda f, t, atoms, *operands: (floating if t.kind == "f" else integer)(f, t, atoms, *operands)


EMITTERS: dict[Primitive, Emitter] = {
    p.add: _arithmetic("add"),
    p.sub: _arithmetic("sub"),
    p.mul: _arithmetic("mul"),
    p.div: _div,
    p.floordiv: _integer_or_float(llvm_integers.floor_divide, llvm_maths.floor_divide),
    p.mod: _integer_or_float(llvm_integers.modulo, llvm_maths.modulo),
    p.raw_div: _integer_or_float(llvm_integers.truncating_divide, _div),
    p.raw_mod: _integer_or_float(llvm_integers.truncating_modulo, llvm_maths.truncating_modulo),
    p.neg: _neg,
    p.absolute: _absolute,
    p.minimum: _extremum("min"),
    p.maximum: _extremum("max"),
    p.power: _integer_or_float(llvm_integers.power, llvm_maths.power),
    p.and_: _bitwise("and"),
    p.or_: _bitwise("or"),
    p.xor: _bitwise("xor"),
    p.invert: lambda f, t, atoms, a: f.value(f"xor {TYPES[t]} {a}, {'true' if t is u1 else -1}"),
    p.shl: llvm_integers.shift_left,
    p.shr: llvm_integers.shift_right,
    p.lt: _compare("olt", "slt", "ult"),
    p.le: _compare("ole", "sle", "ule"),
    p.gt: _compare("ogt", "sgt", "ugt"),
    p.ge: _compare("oge", "sge", "uge"),
    p.eq: _compare("oeq", "eq", "eq"),
    p.ne: _compare("une", "ne", "ne"),
    p.logical_not: lambda f, t, atoms, a: f.value(f"xor i1 {a}, true"),
    p.isnan: _isnan,
    p.select: _select,
    p.sqrt: llvm_maths.sqrt,
    p.rsqrt: llvm_maths.rsqrt,
    **{
        prim: llvm_maths.intrinsic(prim.name)
        for prim in (p.exp, p.log, p.sin, p.cos, p.tan, p.asin, p.acos, p.atan2, p.tanh)
    },
    p.floor: _integral("floor"),
    p.ceil: _integral("ceil"),
    p.round_: _integral("roundeven"),
    p.surrogate: lambda f, t, atoms, x, z: x,
    p.in_reverse: lambda f, t, atoms, x, y: x,
    p.strong_mul: _strong_mul,
    p.stop_gradient_once: lambda f, t, atoms, x: x,
    p.cast: _cast,
    p.join_tangents: _join_tangents,
    p.tangent_at: _direction,
    p.bitcast: _bitcast,
    p.random_bits: _random_bits,
}

#: Primitives that earlier passes remove.
NO_CODE = (p.pack, p.extract, p.insert)
require_all("LLVM code", EMITTERS, NO_CODE)
