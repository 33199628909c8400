"""Every primitive as machine code against its meaning in `ir/primitives.py`, for every type and the corners of each."""

from __future__ import annotations

import itertools
import math
import re
import struct
from typing import Any

import pytest

from tests.codegen.native import STRICT, execute, lower
from tinote.compiler.codegen.llvm.module import Options, generate
from tinote.compiler.codegen.llvm.primitives import EMITTERS, NO_CODE
from tinote.compiler.codegen.wgsl.features import Unsupported
from tinote.compiler.codegen.wgsl.primitives import REFUSED, Provided, expression
from tinote.compiler.passes.analyses.choose_lanes import Machine
from tinote.compiler.passes.loops.vectorise import vectorise
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atom, Buffer, For, Function, Lit, Region, Var
from tinote.ir.primitives import PRIMITIVES, Defaults, Primitive, require_all
from tinote.ir.types import (
    FLOATS,
    INTEGERS,
    SCALARS,
    Scalar,
    element_type,
    f16,
    f32,
    f64,
    i32,
    i64,
    tangent_type,
    u1,
    u32,
    u64,
)
from tinote.ir.verify import Form, verify

#: LLVM's functions that are the C library's.
LIBRARY = ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan2", "tanh", "pow")


def takes(prim: Primitive, t: Scalar) -> bool:
    """Whether a primitive may be applied to numbers of a type, and computes with them as they are."""
    types = (t,) * (prim.arity or 0)
    try:
        result = prim.rule(types, Defaults()) if prim.rule is not None else t
    except TypeError:
        return False
    return p.operand_type(prim, types, 0, result, Defaults()) is t  # type: ignore[arg-type]


ELEMENTWISE = [prim for prim in PRIMITIVES.values() if prim.elementwise]
FLOAT_ONLY = {prim for prim in ELEMENTWISE if not takes(prim, i32)}
BITS_ONLY = {prim for prim in ELEMENTWISE if not takes(prim, f32)}
TRUTH = [p.and_, p.or_, p.xor, p.eq, p.ne, p.lt, p.ge, p.invert, p.logical_not]
OTHERS = {p.select, p.cast, p.bitcast, p.random_bits, p.logical_not, p.join_tangents, p.tangent_at}


def corners(t: Scalar) -> list[Any]:
    if t is u1:
        return [0, 1]
    if t.kind == "f":
        numbers = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.0,
            -2.5,
            3.0,
            7.25,
            0.1,
            -0.3,
            100.0,
            -77.7,
            0.999,
            12345.678,
        ]
        numbers += [math.inf, -math.inf, math.nan, 1e-3, 1e3, 3e-39, 1e-300, 1e300, 2147483648.0, -2147483649.0]
        return [t.round(x) for x in numbers]
    found = {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 100, t.highest, t.highest - 1, t.lowest, t.lowest + 1}
    if t.kind == "i":
        found |= {-1, -2, -3, -7, -64, -100}
    return sorted(x for x in found if t.lowest <= x <= t.highest)


def kernel(
    uses: list[tuple[Primitive, Scalar, Scalar | None]], n: int
) -> tuple[Function, list[list[Buffer]], list[Buffer]]:
    """A function that applies each primitive (with operand and result type) to each element; inputs by use, outputs."""
    b = Builder()
    i = Var(i32)
    inputs: dict[tuple[Scalar, int], Buffer] = {}
    taken: list[list[Buffer]] = []
    outputs: list[Buffer] = []
    with b.region(i) as inside:
        for number, (prim, t, result) in enumerate(uses):
            types = operand_types(prim, t)
            mine = [inputs.setdefault((s, k), Buffer(f"{s}_{k}", s, (n,))) for k, s in enumerate(types)]
            taken.append(mine)
            value = b.prim(prim, *(b.load(buffer, (i,)) for buffer in mine), type=result)
            out = Buffer(f"out{number}", value.type, (n,))  # type: ignore[arg-type]
            outputs.append(out)
            b.store(out, (i,), value)
    with b.region() as top:
        b.emit(For(Lit(0, i32), Lit(n, i32), (), inside.close(), (), parallel=True))
    return lower(Function("all", top.close())), taken, outputs


def operand_types(prim: Primitive, t: Scalar) -> tuple[Scalar, ...]:
    if prim is p.select:
        return (u1, t, t)
    if prim is p.random_bits:
        return (u64, i64, i32)
    return (t,) * (prim.arity or 0)


def ulps(t: Scalar, a: float, b: float) -> float:
    if (math.isnan(a) and math.isnan(b)) or a == b:
        return 0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    smallest = {16: 2.0**-24, 32: 2.0**-149, 64: 5e-324}[t.bits]
    digits = {16: 11, 32: 24, 64: 53}[t.bits]
    unit = max(math.ldexp(1.0, math.frexp(b)[1] - digits), smallest)
    return abs(a - b) / unit


def compare(
    uses: list[tuple[Primitive, Scalar, Scalar | None]],
    operands: list[tuple[Any, ...]],
    options: Options = STRICT,
    slack: float = 0,
    lanes: bool = False,
) -> None:
    """Run all `uses` on rows of operands (the first as many as a primitive takes) and compare with `evaluate`. `lanes`:
    several rows at once.
    """
    fn, taken, outputs = kernel(uses, len(operands))
    if lanes:
        scalar, fn = fn, vectorise(fn, Machine(256, registers=0, fast_math=options.fast_math), always=True)
        assert fn is not scalar
    memory = DictMemory()
    for mine in taken:
        for k, buffer in enumerate(mine):
            memory.fill(buffer, [row[k] for row in operands])
    inputs = memory.copy()
    execute(fn, (), memory, options=options, level=1)
    for (prim, _, _), mine, out in zip(uses, taken, outputs, strict=True):
        t = out.dtype
        for at in range(len(operands)):
            row = tuple(inputs.load(buffer, (at,)) for buffer in mine)
            found = memory.load(out, (at,))
            if prim in (p.floordiv, p.mod, p.raw_div, p.raw_mod) and mine[0].dtype.kind != "f" and row[1] == 0:
                wanted: Any = 0
            else:
                wanted = prim.evaluate(t, *row)
            allowed = prim.ulps + slack
            if t.kind == "f":
                close = ulps(t, found, wanted) <= allowed and (
                    found != 0 or wanted != 0 or options.fast_math or same_sign(found, wanted)
                )
            else:
                close = found == wanted
            assert close, f"{prim}{row} of {t} is {found}, not {wanted}"


def same_sign(a: float, b: float) -> bool:
    return math.copysign(1.0, a) == math.copysign(1.0, b)


def test_a_table_with_holes_is_refused() -> None:
    assert not set(EMITTERS) & set(NO_CODE)
    with pytest.raises(CompilerBug, match="'LLVM code': neither code for these primitives nor a reason why not: tanh"):
        require_all("LLVM code", EMITTERS.keys() - {p.tanh}, NO_CODE)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'derivative'"):
        Primitive("unfinished", 1, p.sin.rule, p.sin.evaluate)  # type: ignore[call-arg]


@pytest.mark.parametrize("prim", [prim for prim in PRIMITIVES.values() if prim.rule is p.sin.rule], ids=repr)
def test_what_lanes_have_is_what_the_table_says(prim: Primitive) -> None:
    """LLVM makes calls of the C library, number by number, of functions for which it has no instruction."""

    def calls_library(options: Options) -> bool:
        fn, _, _ = kernel([(prim, f32, None)], 8)
        text = generate(vectorise(fn, Machine(256, registers=0), always=True), options).text
        return re.search(rf"@llvm\.({'|'.join(LIBRARY)})\.v8f32", text) is not None

    found = "always" if not calls_library(STRICT) else "never" if calls_library(Options()) else "fast"
    assert found == prim.lanes


def uses_of(prim: Primitive) -> list[tuple[Scalar, Scalar | None]]:
    """The operand types that a primitive takes, each with the type of its result where the operands do not give it."""
    if prim is p.cast:
        return list(itertools.permutations(SCALARS, 2))
    if prim is p.bitcast:
        return [(s, t) for s, t in itertools.permutations(SCALARS, 2) if s.bits == t.bits and u1 not in (s, t)]
    if prim is p.random_bits:
        return [(u64, None)]
    if prim is p.select:
        return [(t, t) for t in SCALARS]
    if prim in FLOAT_ONLY:
        return [(t, None) for t in FLOATS]
    return [(t, None) for t in (INTEGERS if prim in BITS_ONLY else SCALARS) if t is not u1 or prim in TRUTH]


@pytest.mark.parametrize("prim", PRIMITIVES.values(), ids=repr)
def test_wgsl_of_each_primitive_and_type_or_the_reason_why_not(prim: Primitive) -> None:
    if prim in REFUSED:
        with pytest.raises(Unsupported, match=REFUSED[prim]):
            expression(Provided(), prim, f32, (Var(f32), Var(f32)), ["a", "b"])
        return
    if prim in (p.join_tangents, p.tangent_at):
        return  # test_tangents_go_number_by_number
    for t, result in uses_of(prim):
        operands: tuple[Atom, ...] = tuple(map(Var, operand_types(prim, t)))
        if result is None:
            assert prim.rule is not None
            result = element_type(prim.rule(tuple(v.type for v in operands), Defaults()))
        assert expression(Provided(), prim, result, operands, [f"v{k}" for k in range(len(operands))])


def test_tangents_go_number_by_number() -> None:
    pair = tangent_type(f32, 2)
    both, one, flag = Var(pair), Var(f32), Var(u1)

    def text(prim: Primitive, t: Scalar, atoms: tuple[Atom, ...], *operands: str) -> str:
        return expression(Provided(), prim, t, atoms, [*operands])

    assert text(p.join_tangents, pair, (one, one), "a", "b") == "array<f32, 2>(a, b)"
    assert text(p.tangent_at, f32, (both, Lit(1, i32)), "v", "1i") == "v[1i]"
    assert text(p.mul, pair, (both, one), "v", "a") == "array<f32, 2>((v[0] * a), (v[1] * a))"
    assert text(p.cast, pair, (one,), "a") == "array<f32, 2>(a, a)"
    assert text(p.select, pair, (flag, both, both), "c", "v", "w") == (
        "array<f32, 2>(select(w[0], v[0], c), select(w[1], v[1], c))"
    )


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_integers(t: Scalar) -> None:
    chosen = [prim for prim in EMITTERS if prim not in FLOAT_ONLY | OTHERS]
    compare([(prim, t, None) for prim in chosen], list(itertools.product(corners(t), corners(t))))


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_floats(t: Scalar) -> None:
    chosen = [prim for prim in EMITTERS if prim not in BITS_ONLY | OTHERS]
    compare([(prim, t, None) for prim in chosen], list(itertools.product(corners(t), corners(t))))


@pytest.mark.parametrize("t", SCALARS, ids=repr)
def test_lanes(t: Scalar) -> None:
    """The code for one number, on vectors."""
    if t is u1:
        chosen = TRUTH
    else:
        chosen = [prim for prim in EMITTERS if prim not in OTHERS | (BITS_ONLY if t.kind == "f" else FLOAT_ONLY)]
    uses: list[tuple[Primitive, Scalar, Scalar | None]] = [(prim, t, None) for prim in chosen]
    rows = list(itertools.product(corners(t), corners(t)))[:: 1 if t is u1 else 11]
    compare(uses, rows, lanes=True)
    compare([(p.cast, t, other) for other in SCALARS if other is not t], [(x,) for x in corners(t)], lanes=True)
    compare([(p.select, t, t)], [(c, a, b) for c in (0, 1) for a, b in itertools.pairwise(corners(t))], lanes=True)
    if t.kind == "f":
        tame = [(a, b) for a, b in rows if abs(a) < 10 and abs(b) < 10]
        compare(uses, tame, Options(), 4, lanes=True)
    if t is u64:
        draws = [(s, k, d) for s in (0, 2**64 - 1) for k in (0, 5, -1) for d in (0, -7)]
        compare([(p.random_bits, u64, None)], draws, lanes=True)


def test_truth_values() -> None:
    compare([(prim, u1, None) for prim in TRUTH], list(itertools.product((0, 1), (0, 1))))


@pytest.mark.parametrize("t", SCALARS, ids=repr)
def test_casts_and_select(t: Scalar) -> None:
    uses: list[tuple[Primitive, Scalar, Scalar | None]] = [(p.cast, t, other) for other in SCALARS if other is not t]
    compare(uses, [(x,) for x in corners(t)])
    compare([(p.select, t, t)], [(c, a, b) for c in (0, 1) for a, b in itertools.pairwise(corners(t))])


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_tangents_along_several_directions(t: Scalar) -> None:
    """Arithmetic number by number, as the interpreter has it; conversions; a number that is repeated."""
    numbers = [x for x in corners(t) if x == x]
    x, i, b = Buffer("x", t, (len(numbers),)), Var(i32), Builder()
    outputs: list[Buffer] = []
    with b.region(i) as inside:
        own = b.load(x, (i,))
        joined = b.prim(
            p.join_tangents, own, Lit(0.0, t), b.prim(p.neg, own), Lit(math.inf, t), type=tangent_type(t, 4)
        )
        other = b.cast(own, tangent_type(t, 4))
        half = Lit(0.5, tangent_type(t, 4))
        found: list[Atom] = [b.prim(prim, joined, other) for prim in (p.add, p.sub, p.mul, p.div, p.strong_mul)]
        found += [b.prim(p.neg, joined), b.prim(p.mul, joined, half), b.prim(p.strong_mul, other, joined)]
        found.append(b.prim(p.select, b.prim(p.gt, own, Lit(0.5, t)), joined, half))
        found += [b.cast(b.cast(joined, tangent_type(s, 4)), tangent_type(t, 4)) for s in FLOATS if s is not t]
        for number, value in enumerate(found):
            for k in range(4):
                out = Buffer(f"out{number}_{k}", t, (len(numbers),))
                outputs.append(out)
                b.store(out, (i,), b.prim(p.tangent_at, value, Lit(k, i32), type=t))
    with b.region() as top:
        b.emit(For(Lit(0, i32), Lit(len(numbers), i32), (), inside.close(), (), parallel=True))
    fn = Function("tangents", top.close())
    verify(fn, Form.SCALAR)
    memory = DictMemory({x: numbers, **{out: [0.0] * len(numbers) for out in outputs}})
    wanted = memory.copy()
    interpret(fn, (), wanted)
    execute(lower(fn), (), memory, options=STRICT, level=1)
    for out in outputs:
        for a, b_ in zip(memory.nested(out), wanted.nested(out), strict=True):
            assert (math.isnan(a) and math.isnan(b_)) or (a == b_ and same_sign(a, b_)), out.name


def test_f64_to_f16_rounds_once() -> None:
    between = [
        1.0 + 2.0**-11,
        1.0 + 2.0**-11 + 2.0**-40,
        1.0 + 2.0**-11 - 2.0**-40,
        65519.999999,
        65520.0,
        2.0**-25,
        2.0**-25 * 1.0000001,
    ]
    compare([(p.cast, f64, f16)], [(s * x,) for x in between for s in (1, -1)])


@pytest.mark.parametrize(("source", "target"), [(f32, i32), (i32, f32), (f32, u32), (f64, i64), (u64, f64)], ids=repr)
def test_bitcast(source: Scalar, target: Scalar) -> None:
    compare([(p.bitcast, source, target)], [(x,) for x in corners(source) if x == x])


def test_random_bits() -> None:
    compare(
        [(p.random_bits, u64, None)],
        [(s, k, d) for s in (0, 1, 2**63, 2**64 - 1) for k in (0, 5, -1, 2**40) for d in (0, 1, -7, 2**31 - 1)],
    )


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 5, 2.5])
@pytest.mark.parametrize("options", [STRICT, Options()], ids=["strict", "fast"])
def test_literal_powers(exponent: float, options: Options) -> None:
    values = [0.1, 1.0, 3.5, 2.0, 77.0, 0.0]
    for t in (f32, f64):
        x, y, i = Buffer("x", t, (len(values),)), Buffer("y", t, (len(values),)), Var(i32)
        b = Builder()
        with b.region(i) as inside:
            b.store(y, (i,), b.prim(p.power, b.load(x, (i,)), Lit(exponent, t)))
        loop = For(Lit(0, i32), Lit(len(values), i32), (), inside.close(), (), parallel=True)
        memory = DictMemory({x: values})
        execute(lower(Function("power", Region((), (loop,)))), (), memory, options=options, level=1)
        for k in range(len(values)):
            wanted = p.power.evaluate(t, memory.load(x, (k,)), t.round(exponent))
            assert ulps(t, memory.load(y, (k,)), wanted) <= (4 if options.fast_math else 2)


def test_literal_integer_power_wraps() -> None:
    x, y, i = Buffer("x", i32, (4,)), Buffer("y", i32, (4,)), Var(i32)
    b = Builder()
    with b.region(i) as inside:
        power: Atom = b.prim(p.power, b.load(x, (i,)), Lit(13, i32))
        b.store(y, (i,), power)
    loop = For(Lit(0, i32), Lit(4, i32), (), inside.close(), (), parallel=True)
    memory = DictMemory({x: [3, -7, 1000, 2]})
    execute(lower(Function("power", Region((), (loop,)))), (), memory, level=1)
    assert memory.nested(y) == [i32.wrap(v**13) for v in (3, -7, 1000, 2)]


def test_fast_maths_keeps_infinity_and_nan() -> None:
    """Reciprocal roots come from an estimate in vector loops; what it makes of 0 and infinity is put right."""
    values = [0.0, math.inf, math.nan, -1.0, -math.inf, 1e-40, 1e38, 4.0, 2.0, 0.3] * 8
    x, y, z, i = Buffer("x", f32, (80,)), Buffer("y", f32, (80,)), Buffer("z", f32, (80,)), Var(i32)
    b = Builder()
    with b.region(i) as inside:
        v = b.load(x, (i,))
        b.store(y, (i,), b.prim(p.div, Lit(1.0, f32), b.prim(p.sqrt, v)))
        shifted = b.prim(p.add, b.prim(p.mul, v, v), Lit(0.5, f32))
        b.store(z, (i,), b.prim(p.rsqrt, shifted))
    loop = For(Lit(0, i32), Lit(80, i32), (), inside.close(), (), parallel=True)
    memory = DictMemory({x: values})
    execute(lower(Function("roots", Region((), (loop,)))), (), memory, options=Options())
    for k in range(80):
        v = memory.load(x, (k,))
        assert ulps(f32, memory.load(y, (k,)), p.rsqrt.evaluate(f32, v)) <= 3, v
        square = f32.round(f32.round(v * v) + 0.5)
        assert ulps(f32, memory.load(z, (k,)), p.rsqrt.evaluate(f32, square)) <= 3, v


def test_literals_keep_their_bits() -> None:
    out = [Buffer(f"o{k}", t, ()) for k, t in enumerate((f16, f32, f64))]
    b = Builder()
    with b.region() as top:
        for buffer in out:
            b.store(buffer, (), Lit(0.1, buffer.dtype))
    memory = DictMemory()
    execute(lower(Function("literals", top.close())), (), memory, level=0)
    for buffer in out:
        assert struct.pack("<d", memory.load(buffer, ())) == struct.pack("<d", buffer.dtype.round(0.1))
