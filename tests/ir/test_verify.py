"""What the verifier rejects: one case a rule."""

from __future__ import annotations

from copy import copy

import pytest

from tests.ir.texts import BY_FORM
from tinote.ir import primitives as p
from tinote.ir.forms import Form, InvalidIR
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Buffer,
    BufferKind,
    For,
    Function,
    Get,
    If,
    Lit,
    Local,
    NewStack,
    Op,
    Pop,
    Prim,
    Print,
    Private,
    Push,
    Region,
    Set,
    Task,
    Var,
    While,
)
from tinote.ir.parse import parse
from tinote.ir.types import Ref, Stack, Tensor, f32, i32, u1, u8
from tinote.ir.verify import verify

BUFFERS = """\
buffer @x: f32 field (4)
buffer @v: f32[2] field (4)
buffer @k: i32 field ()
buffer @t: f32 temporary ()
buffer @T: f32 temporary (4)
buffer @q: f32 private (4)
buffer @flat: f32 field (?) flat @x
"""

VECTOR = "%v: f32[2] = pack %a, %a"
LOOP = "%b: f32 = for %i: i32 in 0i32 .. %n carrying %s: f32 = %a:"
LANES = "task parallel %i: i32, %m: u1x4 in 0i32 .. 4i32:"
TILE = "%r: tile f32x4 = load tile @flat[0i64] by 8i64, 8i64 where %m"
STORE_TILE = "store tile @flat[0i64] by 8i64, 8i64 where %m"
PARALLEL = "for parallel %i: i32 in 0i32 .. 4i32:"

# (form, message, lines of the body; `%n: i32` and `%c: u1` and `%a: f32` are parameters)
REJECTED: list[tuple[Form, str, str]] = [
    # operands
    (Form.TYPED, "operand 1 must be of f32", "%b: f32 = add %a, %n"),
    (Form.TYPED, "operand 0 must be of u1", "%b: f32 = select %n, %a, %a"),
    (Form.TYPED, "operand 1 must be of i64", "%b: u1 = lt 1i64, %n"),
    (Form.TYPED, "gives u1, not i32", "%b: i32 = lt %n, %n"),
    (Form.TYPED, "weak literal", "%b: f32 = add %a, 1.0"),
    (Form.TYPED, "weak type", "%b: weak_int = cast %n"),
    (Form.FIRST, "gives f32[2], not f32", f"{VECTOR}\n%b: f32 = add %v, %a"),
    (Form.FIRST, "gives u1, not i32", "%b: i32 = lt %n, %n"),
    (Form.FIRST, "shapes (2,) and (3,) do not fit", f"{VECTOR}\n%w: f32[3] = pack 1, 2, 3\n%b: f32[2] = add %v, %w"),
    (Form.FIRST, "bit operations need integers", "%b: f32 = and %a, %a"),
    (Form.FIRST, "operands: 1 instead of 2", "%b: f32 = add %a"),
    (Form.FIRST, "outs: 0 instead of 1", "add %a, %a"),
    (Form.FIRST, "cast keeps the shape", "%v: f32[2] = cast %a"),
    (Form.FIRST, "bitcast keeps the width", "%v: i64 = bitcast %a"),
    (Form.FIRST, "pack makes a tensor", "%v: f32 = pack %a"),
    (Form.FIRST, "components of pack: 1 instead of 2", "%v: f32[2] = pack %a"),
    (Form.FIRST, "extract needs a tensor", "%b: f32 = extract %a, 0"),
    (Form.FIRST, "indices: 2 instead of 1", f"{VECTOR}\n%b: f32 = extract %v, 0, 0"),
    (Form.FIRST, "an index must be an integer", f"{VECTOR}\n%b: f32 = extract %v, %a"),
    (Form.TYPED, "extract gives f32, not f64", f"{VECTOR}\n%b: f64 = extract %v, 0i32"),
    (Form.TYPED, "the inserted value must be f32", f"{VECTOR}\n%b: f32[2] = insert %v, 0i32, 1i32"),
    (Form.TYPED, "a component must be f32", "%v: f32[2] = pack %n, %a"),
    (Form.TYPED, "a counter of random_bits must be u64", "%b: u32 = random_bits %n, 0i64, 0i32"),
    (Form.SCALAR, "add on tensors after scalarisation", f"{VECTOR}\n%b: f32[2] = add %v, %v"),
    (Form.SCALAR, "a tensor is printed after scalarisation", f"{VECTOR}\nprint %v"),
    (Form.FIRST, "a tensor needs positive dimensions", "%v: f32[0] = pack"),
    # memory
    (Form.FIRST, "takes 1 indices, not 0", "%b: f32 = load @x[]"),
    (Form.FIRST, "takes 1 indices, not 3", "store @v[0, 0, 0], %a"),
    (Form.FIRST, "an index must be an integer", "%b: f32 = load @x[%a]"),
    (Form.TYPED, "an index must be an integer (i32 or i64 once typed)", "%b: f32 = load @x[1u8]"),
    (Form.FIRST, "v gives f32[2], not %b: f32", "%b: f32 = load @v[0]"),
    (Form.FIRST, "a written value must be f32[2]", "store @v[0], %a"),
    (Form.TYPED, "a written value must be f32", "store @x[0i32], %n"),
    (Form.TYPED, "a written value must be f32", "atomic add @x[0i32], %n"),
    (Form.FIRST, "sub is not an atomic operation", "atomic sub @x[0], %a"),
    (Form.FIRST, "and on f32", "atomic and @x[0], %n"),
    (Form.FIRST, "wrong number of outs", "load @x[0]"),
    (Form.SCALAR, "v must be moved by components", "%b: f32[2] = load @v[0i32]"),
    (Form.FIRST, "has no axis 1", "%b: i32 = extent @x, 1"),
    (Form.FIRST, "an extent is one i32", "%b: i64 = extent @x, 0"),
    (Form.SCALAR, "a flat view before lowering of accesses", "%b: f32 = load @flat[0i64]"),
    (Form.FIRST, "is not private to the task", "%b: f32 = load @q[0]"),
    # scopes
    (Form.FIRST, "is used out of its scope", "if %c:\n  %b: f32 = neg %a\nstore @x[0], %b"),
    (Form.FIRST, "is used out of its scope", "for %i: i32 in 0 .. 4:\n  pass\nstore @k[], %i"),
    # control
    (Form.TYPED, "a condition must be u1", "if %n:\n  pass"),
    (Form.FIRST, "a condition must be a scalar", f"{VECTOR}\nif %v:\n  pass"),
    (Form.FIRST, "a yield: 0 instead of 1", "%b: f32 = if %c:\n  yield %a\nelse:\n  pass"),
    (Form.TYPED, "a yield must be f32, not %n: i32", "%b: f32 = if %c:\n  yield %n\nelse:\n  yield %a"),
    (Form.TYPED, "an initial value must be f32", f"{LOOP}\n  yield %s".replace("= %a", "= %n")),
    (Form.TYPED, "a yield must be f32", f"{LOOP}\n  yield %i"),
    (Form.FIRST, "a yield: 0 instead of 1", "%b: f32 = for %i: i32 in 0 .. %n carrying %s: f32 = %a:\n  pass"),
    (Form.FIRST, "outs of a loop: 0 instead of 1", "for %i: i32 in 0 .. %n carrying %s: f32 = %a:\n  yield %s"),
    (Form.TYPED, "an out must be f64", "%b: f64 = for %i: i32 in 0i32 .. %n carrying %s: f32 = %a:\n  yield %s"),
    (Form.FIRST, "a parallel loop carries nothing", f"{LOOP}\n  yield %s".replace("for", "for parallel")),
    (Form.TYPED, "adjoints: 0 instead of 1", "%b: f32 = custom_vjp %a, %a adjoint %d: f32:\n  pass"),
    (Form.TYPED, "an adjoint must be i32", "%b: f32 = custom_vjp %a, %n adjoint %d: f32:\n  yield %d"),
    (Form.TYPED, "a parameter must be f32", "%b: f32 = custom_vjp %a adjoint %d: f64:\n  pass"),
    (Form.TASKS, "a custom VJP after", "task serial:\n  %b: f32 = custom_vjp %a adjoint %d: f32:\n    pass"),
    (Form.TYPED, "bounds and index of a loop must have one type", "for %i: i32 in 0i64 .. %n:\n  pass"),
    (Form.FIRST, "a loop bound or index must be an integer", "for %i: i32 in 0 .. %a:\n  pass"),
    (Form.FIRST, "yields of a condition: 0 instead of 1", "while:\n  pass\ndo:\n  pass"),
    (Form.TYPED, "a condition must be u1", "while:\n  yield %n\ndo:\n  pass"),
    (Form.FIRST, "a parameter: 1 instead of 0", "%b: f32 = while carrying %s: f32 = %a:\n  yield %c\ndo:\n  pass"),
    # cells and stacks
    (Form.FIRST, "a local must be bound to a cell", "%b: f32 = local %a"),
    (Form.TYPED, "an initial value must be f32", "%r: ref f32 = local %n"),
    (Form.TYPED, "a value for a cell must be f32", "%r: ref f32 = local\nset %r, %n"),
    (Form.FIRST, "the first operand must be a cell", "%b: f32 = get %a"),
    (Form.FIRST, "1 indices into ref f32", "%r: ref f32 = local\nset %r[0], %a"),
    (Form.FIRST, "the cell holds f32, not %b: f64", "%r: ref f32 = local\n%b: f64 = get %r"),
    (Form.FIRST, "a cell or stack cannot be an operand here", "%r: ref f32 = local\n%b: f32 = neg %r"),
    (Form.FIRST, "is made outside of a parallel loop", f"%r: ref f32 = local\n{PARALLEL}\n  set %r, %a"),
    (Form.PROMOTED, "a local cell after promotion of locals", "%r: ref f32 = local"),
    (Form.SCALAR, "a stack must be bound", "%s: f32 = stack"),
    (Form.SCALAR, "a capacity must be i64", "%s: stack f32 = stack %n"),
    (Form.SCALAR, "the first operand must be a stack", "push %a, %a"),
    (Form.SCALAR, "the stack holds f32, not %n: i32", "%s: stack f32 = stack\npush %s, %n"),
    (Form.SCALAR, "the stack holds f32, not %b: f64", "%s: stack f32 = stack\n%b: f64 = pop %s"),
    (Form.SCALAR, "operands: 1 instead of 2", "%s: stack f32 = stack\npush %s"),
    (Form.SCALAR, "is made outside of a parallel loop", f"%s: stack f32 = stack\n{PARALLEL}\n  push %s, %a"),
    # checks and prints
    (Form.FIRST, "a check needs its condition", "check assert"),
    (Form.TYPED, "the condition of a check must be u1", "check assert %n"),
    (Form.FIRST, "operands of a bounds check: 2 instead of 3", "check bounds %c, %n"),
    (Form.FIRST, "an index or extent must be an integer", "check bounds %c, %a, %n"),
    (Form.FIRST, "operands of an assertion: 1 instead of 2", 'check assert "{}" %c'),
    # tasks
    (Form.SCALAR, "a task before offloading", "task serial:\n  pass"),
    (Form.TASKS, "the body of a function must consist of tasks", "store @k[], %n"),
    (Form.TASKS, "only temporaries of rank 0 are loaded", "%b: i32 = load @k[]"),
    (Form.TASKS, "only temporaries of rank 0 are loaded", "%b: f32 = load @T[0i32]"),
    (Form.TASKS, "is used out of its scope", "%b: f32 = load @t[]\ntask serial:\n  store @t[], %b"),
    (Form.TASKS, "a task inside of another", "task serial:\n  task serial:\n    pass"),
    (Form.TASKS, "bounds of a parallel task: 0 instead of 2", "task parallel:\n  pass"),
    (Form.TASKS, "bounds of a serial task: 2 instead of 0", "task serial %i: i32 in 0i32 .. %n:\n  pass"),
    (Form.TASKS, "yields of a task: 1 instead of 0", "task serial:\n  yield %n"),
    (Form.TASKS, "is not private to the task", "task serial:\n  store @q[0i32], %a"),
    (Form.TASKS, "the copy is not private", "task serial:\n  private add @t of @t\n  pass"),
    (Form.TASKS, "the shapes must be known and the same", "task serial:\n  private add @q of @t\n  pass"),
    (Form.TASKS, "sub is not an atomic operation", "task serial:\n  private sub @q of @x\n  pass"),
    # lowered
    (Form.LOWERED, "tensor value of type f32[2]", "task serial:\n  %v: f32[2] = pack %a, %a"),
    (Form.LOWERED, "must be reached through a flat view", "task serial:\n  store @x[0i64], %a"),
    (Form.LOWERED, "a byte offset must be i64", "task serial:\n  store @flat[0i32], %a"),
    (Form.LOWERED, "byte offsets: 2 instead of 1", "task serial:\n  store @flat[0i64, 0i64], %a"),
    # lanes
    (Form.TASKS, "before lowering of accesses", f"{LANES}\n  pass"),
    (Form.LOWERED, "a power of two, not u1x6", f"{LANES.replace('x4', 'x6')}\n  pass"),
    (Form.LOWERED, "carries nothing: %m: f32x4", f"{LANES.replace('u1', 'f32')}\n  pass"),
    (Form.LOWERED, "gives f32x4, not f32", f"{LANES}\n  %v: f32x4 = broadcast %a\n  %b: f32 = add %v, %a"),
    (Form.LOWERED, "do not fit", f"{LANES}\n  %v: f32x8 = broadcast %a\n  %b: f32x8 = select %m, %v, %v"),
    (Form.LOWERED, "must be f32, not 1i32", f"{LANES}\n  %v: f32x4 = broadcast 1i32"),
    (Form.LOWERED, "lanes are wanted, not f32", f"{LANES}\n  %v: f32 = broadcast %a"),
    (Form.LOWERED, "a ramp of f32x4", f"{LANES}\n  %v: f32x4 = ramp %a, 1.0f32"),
    (Form.LOWERED, "not combined by sub", f"{LANES}\n  %v: u1 = reduce sub %m"),
    (Form.LOWERED, "combined into must be u1", f"{LANES}\n  %v: i32 = reduce or %m"),
    (Form.LOWERED, "gives f32x4, not %v: f32x8", f"{LANES}\n  %v: f32x8 = load @flat[0i64] where %m"),
    (Form.LOWERED, "must be i64, not 0i32", f"{LANES}\n  %v: f32x4 = load @flat[0i32] where %m"),
    (Form.LOWERED, "must be lanes of u1, not %c", f"{LANES}\n  %v: f32x4 = load @flat[0i64] where %c"),
    (Form.LOWERED, "a written value must be f32x4", f"{LANES}\n  store @flat[0i64] where %m, %a"),
    (Form.LOWERED, "a condition must be a scalar, not %m", f"{LANES}\n  if %m:\n    store @flat[0i64], %a"),
    (Form.LOWERED, "where rows are must be i64", f"{LANES}\n  {TILE.replace('8i64, ', '8i32, ')}"),
    (Form.LOWERED, "gives tile f32x4, not %r: tile f32x8", f"{LANES}\n  {TILE.replace('f32x4', 'f32x8')}"),
    (Form.LOWERED, "a place in a row must be i64", f"{LANES}\n  {TILE}\n  %v: f32x4 = get %r[0i32]"),
    (Form.LOWERED, "what a tile holds must be f32x4", f"{LANES}\n  {TILE}\n  %v: f32 = get %r[0i64]"),
    (Form.LOWERED, "what a tile holds must be f32x4", f"{LANES}\n  {TILE}\n  set %r[0i64], %a"),
    (Form.LOWERED, "operands: 1 instead of 2", f"{LANES}\n  {TILE}\n  %v: f32x4 = get %r"),
    (Form.LOWERED, "a cell or stack cannot be an operand here", f"{LANES}\n  {TILE}\n  %v: f32x4 = neg %r"),
    (Form.LOWERED, "a written tile must be tile f32x4", f"{LANES}\n  {STORE_TILE}, %a"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "message", "lines"), REJECTED, ids=[f"{form.name}-{message}" for form, message, _ in REJECTED]
)
def test_rejects(form: Form, message: str, lines: str) -> None:
    body = "".join(f"  {line}\n" for line in lines.splitlines())
    fn = parse(f"{BUFFERS}func f(%n: i32, %c: u1, %a: f32):\n{body}")
    with pytest.raises(InvalidIR) as caught:
        verify(fn, form)
    assert message in caught.value.message
    assert caught.value.op is not None


X = Buffer("x", f32, (4,))
N, A = Var(i32, "n"), Var(f32, "a")


def function(*body: Op, yields: tuple[Atom, ...] = (), params: tuple[Var, ...] = (N, A)) -> Function:
    return Function("f", Region(params, body, yields))


def broken() -> dict[str, Function]:
    """What the text form cannot say."""
    b, s = Var(f32, "b"), Var(f32, "s")
    i = Var(i32, "i")
    ref, stack = Var(Ref(f32), "r"), Var(Stack(f32), "k")
    empty = Region((), ())
    wide = Lit(0, u8)
    wide.value = 300
    inexact = Lit(0.0, f32)
    inexact.value = 0.1
    fractional = Lit(0, i32)
    fractional.value = 0.5
    rogue = copy(p.add)
    return {
        "is bound twice": function(Prim(p.neg, (A,), (b,)), Prim(p.neg, (A,), (b,))),
        "is bound twice (parameter)": function(For(Lit(0, i32), N, (), Region((N,), ()))),
        "is used before it is bound": function(Prim(p.neg, (s,), (b,)), Prim(p.neg, (A,), (s,))),
        "does not fit its type": function(Prim(p.neg, (wide,), (Var(u8),))),
        "does not fit its type (f32)": function(Prim(p.neg, (inexact,), (b,))),
        "must be an integer": function(Prim(p.neg, (fractional,), (Var(i32),))),
        "unknown primitive add": function(Prim(rogue, (A, A), (b,))),
        "a primitive cannot give a cell or stack": function(Prim(p.neg, (A,), (ref,))),
        "a region's parameter cannot be a cell or stack": function(
            For(Lit(0, i32), N, (A,), Region((i, ref), (), (A,)), (b,))
        ),
        "parameter %v: f32[2] of a function must be a scalar": function(params=(Var(Tensor(f32, (2,)), "v"),)),
        "a yielded value cannot be a cell or stack": function(Local((), (ref,)), yields=(ref,)),
        "a loop needs two bounds": function(_with_args(For(Lit(0, i32), N, (), Region((i,), ())), (N,))),
        "a loop needs an index parameter": function(For(Lit(0, i32), N, (), empty)),
        "parameters of a branch: 1 instead of 0": function(If(Lit(1, u1), Region((i,), ()), empty)),
        "outs of a loop: 1 instead of 0": function(While((), Region((), (), (Lit(0, u1),)), empty, (b,))),
        "nothing to set": function(Local((), (ref,)), Set((ref,))),
        "the first operand must be a cell": function(Get((), (b,))),
        "the first operand must be a stack": function(Pop((), (b,))),
        "printed values: 0 instead of 1": function(Print((None,), ())),
        "an initial value: 1 instead of 0": function(For(Lit(0, i32), N, (A,), Region((i,), ()))),
        "unknown operation Op": function(Op((), ())),
        "the stack holds f32, not %k: stack f32": function(NewStack((), (stack,)), Push((stack, stack))),
    }


def _with_args(op: Op, args: tuple[Atom, ...]) -> Op:
    return op.rebuilt(args, op.regions)


@pytest.mark.parametrize("message", broken())
def test_rejects_what_text_cannot_say(message: str) -> None:
    fn = broken()[message]
    with pytest.raises(InvalidIR) as caught:
        verify(fn)
    assert message.split(" (")[0] in caught.value.message


@pytest.mark.parametrize("form", BY_FORM, ids=lambda form: form.name)
def test_accepts(form: Form) -> None:
    verify(parse(BY_FORM[form]), form)


@pytest.mark.parametrize("form", [Form.FIRST, Form.TYPED, Form.PROMOTED])
def test_scalar_form_is_also_every_earlier_form(form: Form) -> None:
    verify(parse(BY_FORM[Form.SCALAR]), form)


UNSTORED = """\
buffer @x: f64 field (4)
func f(%n: i32):
  for %i: i32 in 0i32 .. %n:
    %a: f64 = load @x[%i]
    %y: f64 = sin %a
    store @x[%i], %y
  for reverse %j: i32 in 0i32 .. %n:
    %d: f64 = cos %a
    store @x[%j], %d
"""


def test_not_yet_stored() -> None:
    """Until they are saved, the reverse part may refer to variables of the forward part, but to no others."""
    fn = parse(UNSTORED)
    verify(fn, Form.SCALAR, stored=False)
    with pytest.raises(InvalidIR, match="%a: f64 is used out of its scope"):
        verify(fn, Form.SCALAR)
    loop = fn.region.body[1]
    with pytest.raises(InvalidIR, match="%a: f64 is used before it is bound"):
        verify(fn.with_region(Region(fn.region.params, (loop,))), Form.SCALAR, stored=False)


def test_a_private_copy_is_only_seen_by_its_task() -> None:
    copy = Buffer("q", f32, (4,), kind=BufferKind.PRIVATE)
    update = Atomic(p.add, copy, (Lit(0, i32),), Lit(1.0, f32))
    private = Private(X, copy, p.add)
    seen = Task("a", (), Region((), (update,)), parallel=False, privates=(private,))
    verify(function(seen), Form.TASKS)
    with pytest.raises(InvalidIR, match="not private to the task"):
        verify(function(seen, Task("b", (), Region((), (update,)), parallel=False)), Form.TASKS)


def test_the_message_shows_the_operation_and_its_place() -> None:
    fn = parse("func f(%n: i32):\n  %b: f32 = add %n, 1.0f32\n", "kernel.ir")
    with pytest.raises(InvalidIR) as caught:
        verify(fn, Form.TYPED)
    assert str(caught.value).splitlines() == [
        "operand 0 must be of f32, not %n: i32",
        "  in: %b: f32 = add %n, 1.0f32",
        "  from: kernel.ir:2:2",
    ]
