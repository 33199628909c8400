"""IR as generated Python against the interpreter: each primitive, each operation, control flow, random programs and
their derivatives, all to the last bit.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest

from tests.codegen.native import memory_of
from tests.codegen.plain import code_of, execute, placed, prepared
from tests.codegen.test_primitives import BITS_ONLY, FLOAT_ONLY, corners
from tests.properties.compare import Outcome, difference, run
from tests.properties.generate import generate as generate_program
from tests.properties.smooth import generate_smooth
from tests.properties.test_programs import report
from tests.properties.writer import Program
from tinote.compiler.codegen.python.handlers import HANDLERS
from tinote.compiler.codegen.python.module import generate
from tinote.compiler.codegen.python.text import lines_of
from tinote.compiler.requests import GRADIENT, TANGENT, Request
from tinote.config import Config
from tinote.errors import CompilerBug, KernelMemoryError
from tinote.ir import nodes
from tinote.ir import primitives as p
from tinote.ir.build import DEFAULTS, Builder
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atom, BufferKind, Function, Lit, Op, Region, Var
from tinote.ir.parse import parse
from tinote.ir.primitives import PRIMITIVES, Primitive
from tinote.ir.query import buffers_of
from tinote.ir.types import FLOATS, INTEGERS, SCALARS, Scalar, Tensor, i32, i64, u1, u32, u64

SIZE = 12
SMOOTH_SIZE = 8


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or struct.pack("d", a) == struct.pack("d", b)
    return a == b


def text_of(fn: Function) -> str:
    """The generated code without the line of its `def` and its return."""
    lines = [text for text, _ in lines_of(generate(placed(fn)).tree)]
    return "\n".join(line[4:] for line in lines[1:-1])


# ---- primitives


def uses_of(prim: Primitive) -> list[tuple[tuple[Scalar, ...], Scalar]]:
    """The types of operands that a primitive is tried on, and that of its result."""
    if prim is p.cast:
        return [((a,), b) for a, b in itertools.product(SCALARS, SCALARS) if a is not b]
    if prim is p.bitcast:
        return [((a,), b) for a, b in itertools.product(SCALARS, SCALARS) if a.bits == b.bits and u1 not in (a, b)]
    if prim is p.random_bits:
        return [((u64, i64, i32), u32)]
    if prim is p.select:
        return [((u1, t, t), t) for t in SCALARS]
    if prim is p.logical_not:
        return [((u1,), u1)]
    assert prim.arity is not None
    assert prim.rule is not None
    types = FLOATS if prim in FLOAT_ONLY else INTEGERS if prim in BITS_ONLY else (*FLOATS, *INTEGERS)
    if prim in (p.and_, p.or_, p.xor):
        types = (*types, u1)
    found: list[tuple[tuple[Scalar, ...], Scalar]] = []
    for t in types:
        result = prim.rule((t,) * prim.arity, DEFAULTS)
        assert isinstance(result, Scalar)
        found.append(((t,) * prim.arity, result))
    return found


ON_NUMBERS = [prim for prim in PRIMITIVES.values() if prim.elementwise or prim is p.random_bits]


@pytest.mark.parametrize("prim", ON_NUMBERS, ids=repr)
def test_each_primitive_is_what_the_table_says(prim: Primitive) -> None:
    """On the corners of each type, and as a component of vectors."""
    for types, result in uses_of(prim):
        b = Builder()
        params = tuple([Var(t, "abc"[k]) for k, t in enumerate(types)])
        with b.region() as opened:
            outs: list[Atom] = [b.prim(prim, *params, type=result)]
            if prim.elementwise:
                pairs = [b.pack([v, v], Tensor(v.type, (2,))) for v in params if isinstance(v.type, Scalar)]
                both = b.prim(prim, *pairs, type=Tensor(result, (2,)))
                outs.append(b.extract(both, Lit(1, i32)))
        fn = Function("apply", Region(params, tuple(opened.body), tuple(outs)))
        code = code_of(fn)
        values = [corners(t) for t in types]
        if len(types) > 1:
            values = [numbers[:: 1 + len(numbers) // 9] for numbers in values]
        for args in itertools.product(*values):
            if prim in p.DIVISIONS and result.kind != "f" and args[1] == 0:
                continue  # which is a fault
            wanted = interpret(fn, args, DictMemory())
            found = code.launch(args)
            assert all(map(same, found, wanted)), f"{prim} {types} of {args} is {wanted[0]}, not {found}"


#: What Python code never meets: its tangents are along one direction.
TANGENTS = (p.join_tangents, p.tangent_at)


@pytest.mark.parametrize(
    "prim", [prim for prim in PRIMITIVES.values() if prim not in (*ON_NUMBERS, *TANGENTS)], ids=repr
)
def test_primitives_on_tensors(prim: Primitive) -> None:
    program = {
        "pack": "%t: f32[2] = pack %x, %x\n  %y: f32 = extract %t, 1i32",
        "extract": "%t: i32[2, 2] = pack %n, 5i32, 6i32, 7i32\n  %y: i32 = extract %t, %n, 1i32",
        "insert": "%t: f32[3] = pack %x, 1.0f32, 2.0f32\n  %u: f32[3] = insert %t, %n, 9.5f32\n"
        "  %y: f32 = extract %u, 1i32",
    }[prim.name]
    fn = parse(f"func f(%x: f32, %n: i32):\n  {program}\n  return %y\n")
    assert code_of(fn).launch((2.5, 1)) == interpret(fn, (2.5, 1), DictMemory())


def test_every_operation_before_offloading_has_code() -> None:
    def kinds(base: type[Op]) -> set[type[Op]]:
        # Not the placeholders of the front end, which leave none of theirs behind.
        below = [kind for kind in base.__subclasses__() if kind.__module__ == nodes.__name__]
        return {base}.union(*[kinds(kind) for kind in below])

    abstract = {Op, nodes.MemoryOp, nodes._Write}
    reported = {CustomVJP}  # gone with differentiation, or before it
    assert kinds(Op) - abstract - reported - {nodes.Task} == set(HANDLERS)


def test_later_forms_are_a_bug_with_a_name() -> None:
    fn = parse('func f():\n  task serial:\n    print "x"\n')
    with pytest.raises(CompilerBug, match="later form"):
        generate(placed(fn))


# ---- what the code looks like


def test_the_order_of_evaluation_is_that_of_the_ir() -> None:
    """A load waits for its use as long as nothing is stored, and not past that."""
    body = """\
buffer @x: i32 field (4)
func f(%n: i32):
  %0: i32 = load @x[0i32]
  %1: i32 = load @x[1i32]
  %2: i32 = add %1, %0
  store @x[0i32], %n
  %3: i32 = load @x[2i32]
  store @x[2i32], %2
  store @x[3i32], %3
"""
    fn = parse(body)
    assert text_of(fn) == "_1 = rt.i32(rt.x[1] + rt.x[0])\nrt.x[0] = n\n_2 = rt.x[2]\nrt.x[2] = _1\nrt.x[3] = _2"
    memory = memory_of(fn, {"x": [1, 2, 3, 4]})
    execute(placed(fn), (9,), memory)
    assert memory.nested(buffers_of(fn)[0]) == [9, 2, 3, 3]


def test_what_may_fail_keeps_its_order() -> None:
    """The second load is checked before the first division, as in the IR."""
    fn = parse(
        """\
buffer @x: i32 field (4)
func f(%n: i32, %z: i32):
  %0: i32 = load @x[%n]
  %1: i32 = floordiv 7i32, %z
  %2: i32 = add %1, %0
  store @x[0i32], %2
"""
    )
    assert text_of(fn) == (
        "_1 = rt.x[rt.inside(n, 4, at=0)]\n_2 = rt.i32.floordiv(7, rt.nonzero(z, at=1))\nrt.x[0] = rt.i32(_2 + _1)"
    )


def test_names_are_shared_by_variables_that_do_not_live_together() -> None:
    fn = parse(
        """\
buffer @x: f32 field (4)
func f(%n: i32):
  for %i: i32 in 0i32 .. 4i32:
    %y: f32 = load @x[%i]
    store @x[%i], %y
  for %i.1: i32 in 0i32 .. %n:
    %y.1: f32 = load @x[0i32]
    for %i.2: i32 in 0i32 .. %i.1:
      store @x[1i32], %y.1
    %y.2: f32 = load @x[2i32]
    store @x[2i32], %y.2
    %y.3: f32 = load @x[3i32]
    store @x[3i32], %y.1
    store @x[0i32], %y.3
"""
    )
    for op in fn.region.body:
        _shorten(op)
    assert text_of(fn) == (
        "for i in rt.iterations(0, 4):\n"
        "    y = rt.x[i]\n"
        "    rt.x[i] = y\n"
        "for i in rt.iterations(0, n):\n"
        "    y = rt.x[0]\n"
        "    for i_1 in rt.iterations(0, i):\n"
        "        rt.x[1] = y\n"
        "    y_1 = rt.x[2]\n"
        "    rt.x[2] = y_1\n"
        "    y_1 = rt.x[3]\n"
        "    rt.x[3] = y\n"
        "    rt.x[0] = y_1"
    )


def _shorten(op: Op) -> None:
    """The text form numbers variables of one name; the user did not."""
    for region in op.regions:
        for v in region.params:
            v.name = v.name.partition(".")[0]
        for inner in region.body:
            _shorten(inner)
    for v in op.outs:
        v.name = v.name.partition(".")[0]


def test_names_that_python_or_the_code_needs() -> None:
    fn = parse(
        """\
buffer @f32: f32 field ()
buffer @rt: f32 field ()
func lambda(%rt: f32, %f32: f32, %for: f32, %_1: f32):
  store @f32[], %rt
  store @rt[], %f32
  %a: f32 = load @f32[]
  %sum: f32 = add %a, %for
  %b: f32 = mul %sum, %_1
  %c: f32 = add %sum, %b
  return %c
"""
    )
    memory = DictMemory()
    wanted = interpret(fn, (1.5, 2.5, 3.5, 4.5), memory)
    assert execute(placed(fn), (1.5, 2.5, 3.5, 4.5), DictMemory()) == wanted


def test_a_long_expression_is_cut() -> None:
    """Python's own compiler gives up at deeply nested expressions."""
    lines = "".join(f"  %v{k + 1}: f32 = add %v{k}, 1.0f32\n" for k in range(500))
    fn = parse(f"func f(%v0: f32):\n{lines}  return %v500\n")
    assert code_of(fn).launch((0.0,)) == (500.0,)


def test_deep_nests_are_refused_with_the_reason() -> None:
    """Python nests twenty loops at most."""
    indent = "".join(f"{'  ' * k}  for %i{k}: i32 in 0i32 .. 1i32:\n" for k in range(30))
    fn = parse(f"buffer @x: i32 field ()\nfunc f():\n{indent}{'  ' * 31}store @x[], 1i32\n")
    with pytest.raises(Exception, match="nested too deeply to run as plain Python") as caught:
        code_of(fn)
    assert caught.value.span.line == 1


# ---- whole functions

CARRIED = """\
buffer @x: i32 field (3)
func f(%a: i32, %b: i32):
  %n: i32, %m: i32 = for %i: i32 in 0i32 .. 5i32 carrying %p: i32 = %b, %q: i32 = %a:
    yield %q, %p
  %lo: i32 = load @x[0i32]
  %k: i32 = for reverse %i2: i32 in %lo .. %n carrying %n2: i32 = %m:
    %t: i32 = mul %n2, 3i32
    %u: i32 = sub %t, %i2
    yield %u
  %w: i32, %v: i32 = while carrying %c: i32 = %k, %d: i32 = 0i32:
    %l: i32 = load @x[1i32]
    %go: u1 = lt %d, %l
    yield %go
  do %e: i32, %g: i32:
    store @x[2i32], %g
    %h: i32 = add %g, 1i32
    %r: i32 = sub %e, %g
    yield %r, %h
  %y: i32 = if %go2:
    yield %w
  else:
    yield %v
  return %n, %m, %k, %w, %v, %y
""".replace("  %y: i32 = if %go2", "  %go2: u1 = gt %w, %v\n  %y: i32 = if %go2")


@pytest.mark.parametrize("args", [(3, 8), (8, 3), (-4, 0)])
def test_carried_values(args: tuple[int, int]) -> None:
    """They are exchanged at once, also where loops, bounds and results share names."""
    for text in (CARRIED, CARRIED.replace("%n2", "%n.1").replace("%i2", "%i.1").replace("%e", "%c.1")):
        fn = parse(text)
        if ".1" in text:
            for op in fn.region.body:
                _shorten(op)
        wanted, found = memory_of(fn, {"x": [1, 4, 0]}), memory_of(fn, {"x": [1, 4, 0]})
        assert execute(placed(fn), args, found) == interpret(fn, args, wanted)
        assert found.cells == wanted.cells


def test_saved_values_and_their_limit() -> None:
    text = """\
buffer @y: f64 field (9)
func f(%n: i32):
  %s: stack f64 = stack
  for %i: i32 in 0i32 .. %n:
    %v: f64 = cast %i
    push %s, %v
  for %j: i32 in 0i32 .. %n:
    %w: f64 = pop %s
    store @y[%j], %w
"""
    fn = parse(text)
    memory = memory_of(fn, {"y": [0.0] * 9})
    execute(placed(fn), (9,), memory)
    assert memory.nested(buffers_of(fn)[0]) == [8.0 - k for k in range(9)]
    limited = Config(arch="python", memory_limit=800)
    execute(placed(fn), (9,), memory, limited)
    with pytest.raises(KernelMemoryError, match="memory limit of 800 bytes"):
        execute(placed(fn), (101,), memory, limited)


def outcome(program: Program, fn: Function, args: tuple[float, ...], memory: DictMemory, printed: Any) -> Outcome:
    returned = execute(fn, args, memory)
    return Outcome(returned, {b: memory.nested(b) for b in program.contents}, [printed.readouterr().out])


def test_random_programs(random_programs: range, capsys: pytest.CaptureFixture[str]) -> None:
    """Both run in order: even sums of floats agree to the last bit."""

    def problem(program: Program) -> str:
        fn = prepared(program.function)
        wanted = run(program, fn)
        wanted = wanted._replace(printed=["".join(wanted.printed)])
        found = outcome(program, fn, program.arguments, program.memory(), capsys)
        return difference(program._replace(approximate=frozenset()), wanted, found)

    for seed in random_programs[::4]:
        report(generate_program, problem, seed, SIZE)


@pytest.mark.parametrize("derivative", [GRADIENT, TANGENT])
def test_derivatives_of_random_programs(
    derivative: Request, random_programs: range, capsys: pytest.CaptureFixture[str]
) -> None:
    def problem(program: Program) -> str:
        assert program.loss is not None
        assert program.loss.adjoint is not None
        fn = prepared(program.function, derivative)
        wanted, found = program.memory(), program.memory()
        for memory in (wanted, found):
            interpret(program.function, program.arguments, memory)
            memory.store(program.loss.adjoint, (), 1.0)
        interpret(fn, program.arguments, wanted)
        execute(fn, program.arguments, found)
        # Copies that a launch makes are its own affair.
        for buffer in [b for b in buffers_of(fn) if b.kind in (BufferKind.FIELD, BufferKind.ARRAY)]:
            if repr(wanted.nested(buffer)) != repr(found.nested(buffer)):  # a NaN equals itself
                return f"left {found.nested(buffer)} in {buffer.name} instead of {wanted.nested(buffer)}"
        return ""

    for seed in random_programs[::4]:
        report(generate_smooth, problem, seed, SMOOTH_SIZE)
