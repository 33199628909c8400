"""The text form: printing and reading back."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.ir.texts import BY_FORM, CHECKED, FIRST, IN_LANES, LOWERED, TASKS
from tinote.ir import nodes
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Buffer, For, Function, Lit, Op, Region, Var
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.text import equal, literal, show, show_lines, show_op
from tinote.ir.tokens import ParseError
from tinote.ir.types import FLOATS, Scalar, f16, f32, f64, i32, i64, u1, u8, u64, weak_float, weak_int
from tinote.ir.verify import Form, verify


def test_loops_in_lanes_are_read_back() -> None:
    fn = parse(IN_LANES)
    verify(fn, Form.LOWERED)
    assert show(fn) == IN_LANES and equal(parse(show(fn)), fn)


@pytest.mark.parametrize("form", BY_FORM, ids=lambda form: form.name)
def test_text_round_trip(form: Form) -> None:
    """What is printed is what was written: the text is a fixed point of parsing and printing."""
    text = BY_FORM[form]
    fn = parse(text)
    verify(fn, form)
    assert show(fn) == text
    assert equal(fn, parse(show(fn)))


def test_texts_hold_every_operation() -> None:
    used = {type(op) for text in BY_FORM.values() for op in walk(parse(text).region)}
    kinds = {c for c in vars(nodes).values() if isinstance(c, type) and issubclass(c, Op)} | {CustomVJP}
    leaves = {c for c in kinds if not any(c in other.__mro__[1:] for other in kinds)}
    assert used == leaves


def body(*lines: str) -> str:
    return "".join(f"  {line}\n" for line in lines)


def test_golden_printing(golden: Callable[..., None]) -> None:
    """How a person sees a kernel that has a little of everything."""
    x = Buffer("x", f32, (64,), (2,))
    x.adjoint = Buffer("x.grad", f32, (64,), (2,))
    energy = Buffer("U", f64)
    b = Builder()
    n = Var(i32, "n")
    with b.region(n) as top:
        i, j = Var(i32, "i"), Var(i32, "j")
        with b.region(i) as outer:
            first = b.load(x, (i,), "p")
            start = b.local(f32, Lit(0, weak_int), "s")
            with b.region(j) as inner:
                difference = b.prim(p.sub, first, b.load(x, (j,), "q"), name="d")
                near = b.prim(p.lt, b.extract(difference, Lit(0, i32)), Lit(0.1, f32))
                with b.region() as then:
                    b.set(start, b.prim(p.add, b.get(start), Lit(1.5, weak_float)))
                b.if_(near, then.close())
            b.emit(For(Lit(0, i32), n, (), inner.close()))
            b.atomic(p.add, energy, (), b.get(start, name="s"))
        b.emit(For(Lit(0, i32), n, (), outer.close(), parallel=True))
    golden(show(Function("energy", top.close(n))))


def test_lines_know_their_operations() -> None:
    fn = parse(FIRST)
    lines = show_lines(fn)
    assert "\n".join(line.text for line in lines) + "\n" == FIRST
    assert {line.op for line in lines} - {None} == set(walk(fn.region))
    (otherwise,) = [line for line in lines if line.text.strip() == "else:"]
    assert isinstance(otherwise.op, nodes.If)
    assert all(line.op is None for line in lines if line.text.strip().startswith(("yield", "return", "buffer")))


def test_operations_are_located_at_their_lines() -> None:
    fn = parse(CHECKED, "kernel.ir")
    check = fn.region.body[1]
    assert (check.loc.file, check.loc.line) == ("kernel.ir", 4)
    assert show_op(check) == 'check bounds "x" %ok, %n, 8i32'


def test_names_are_made_unique_and_ascii() -> None:
    b = Builder()
    with b.region() as top:
        a = b.prim(p.add, Lit(1, i32), Lit(2, i32), name="a")
        again = b.prim(p.add, a, a, name="a")
        theta = b.prim(p.add, again, a, name="θ")
        nameless = b.prim(p.add, theta, theta)
        odd = b.prim(p.add, nameless, nameless, name="7")
        b.prim(p.add, odd, odd, name="a.1")
    text = show(Function("<lambda>", top.close()))
    bound = [line.strip().split(":")[0] for line in text.splitlines()[1:]]
    assert bound == ["%a", "%a.1", "%theta", "%0", "%1", "%a.1.1"]
    assert text.isascii()
    assert show(parse(text)) == text


LITERALS = {
    "0i32": Lit(0, i32),
    "-128i64": Lit(-128, i64),
    "255u8": Lit(255, u8),
    "18446744073709551615u64": Lit(2**64 - 1, u64),
    "7": Lit(7, weak_int),
    "0.1": Lit(0.1, weak_float),
    "0.1f32": Lit(0.1, f32),
    "0.1f64": Lit(0.1, f64),
    "-0.0f32": Lit(-0.0, f32),
    "1e-45f32": Lit(1e-45, f32),
    "3.4028235e+38f32": Lit(3.4028234663852886e38, f32),
    "5e-324f64": Lit(5e-324, f64),
    "0.10000000149011612f64": Lit(0.10000000149011612, f64),
    "6e-08f16": Lit(6e-8, f16),
    "inf": Lit(math.inf, weak_float),
    "-inf_f64": Lit(-math.inf, f64),
    "nan_f32": Lit(math.nan, f32),
    "true": Lit(1, u1),
    "false": Lit(0, u1),
}


@pytest.mark.parametrize("text", LITERALS)
def test_literals_keep_their_bits(text: str) -> None:
    wanted = LITERALS[text]
    assert literal(wanted) == text
    (found,) = parse(f"func f():\n  return {text}\n").region.yields
    assert found == wanted


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_float_literals_of_all_sizes_keep_their_bits(t: Scalar) -> None:
    for exponent in range(-60, 60):
        for digits in (1.0, 1.1, 1.7320508075688772, 9.99999):
            wanted = Lit(digits * 10.0**exponent, t)
            (found,) = parse(f"func f():\n  return {literal(wanted)}\n").region.yields
            assert found == wanted


def test_equality_ignores_names_and_places() -> None:
    renamed = (
        TASKS.replace("@n", "@count").replace("%hi", "%top").replace("offloaded", "other").replace('"sum"', '"total"')
    )
    a, b = parse(TASKS), parse("\n\n" + renamed)
    assert show(a) != show(b)
    assert equal(a, b)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("floordiv 100i32", "floordiv 100i64"),
        ("floordiv", "raw_div"),
        ("(8)", "(9)"),
        ("field (8)", "array (8)"),
        ("lt %n, 8i32", "lt 8i32, %n"),
        ("return %q", "return %a"),
        ("check division", "check assert"),
        ('"the sum"', '"a sum"'),
        ("axis 1", "axis 2"),
    ],
)
def test_equality_sees_what_matters(old: str, new: str) -> None:
    assert old in CHECKED
    a, b = parse(CHECKED), parse(CHECKED.replace(old, new, 1))
    assert not equal(a, b)


def test_equality_sees_which_buffer_is_which() -> None:
    text = "buffer @a: f32 field ()\nbuffer @b: f32 field ()\nfunc f():\n"
    straight = body("store @a[], 1.0f32", "store @b[], 2.0f32", "store @a[], 3.0f32")
    crossed = body("store @a[], 1.0f32", "store @b[], 2.0f32", "store @b[], 3.0f32")
    assert not equal(parse(text + straight), parse(text + crossed))
    assert equal(
        parse(text + straight), parse(text + straight.replace("@a", "@c").replace("@b", "@a").replace("@c", "@b"))
    )


def test_flag_of_literal_zero_counts_for_equality() -> None:
    assert not equal(parse("func f():\n  return 0.0f32\n"), parse("func f():\n  return -0.0f32\n"))
    assert equal(parse("func f():\n  return nan_f32\n"), parse("func f():\n  return nan_f32\n"))


def test_comments_and_blank_lines() -> None:
    commented = "# a kernel\n\n" + LOWERED.replace("func", "\nfunc").replace("mul %o, 8i64", "mul %o, 8i64  # bytes")
    assert show(parse(commented)) == LOWERED


MISTAKES = {
    "expected a function": "",
    "%y is not bound": "func f():\n  %x: i32 = neg %y\n",
    "%x is bound twice": "func f(%x: i32):\n  %x: i32 = neg 1i32\n",
    "@x is not declared": "func f():\n  store @x[], 1i32\n",
    "@x is declared twice": "buffer @x: f32 field ()\nbuffer @x: f32 field ()\nfunc f():\n  pass\n",
    "@y is not declared": "buffer @x: f32 field () adjoint @y\nfunc f():\n  pass\n",
    "no operation is called plus": "func f():\n  %x: i32 = plus 1i32, 2i32\n",
    "no type is called i33": "func f(%x: i33):\n  pass\n",
    "1.5i32 is not a literal": "func f():\n  return 1.5i32\n",
    "expected 'in'": "func f():\n  for %i: i32 = 0 .. 4:\n    pass\n",
    "expected '..'": "func f():\n  for %i: i32 in 0, 4:\n    pass\n",
    "expected a 'do' block after the condition": "func f():\n  while:\n    yield true\n",
    "nothing may follow 'yield'": "func f():\n  if true:\n    yield 1\n    pass\n",
    "the indentation does not fit the lines above": "func f():\n  if true:\n    pass\n   pass\n",
    "'store' binds no variables": "buffer @x: i32 field ()\nfunc f():\n  %a: i32 = store @x[], 1i32\n",
    "expected the end of the line": "func f():\n  %a: ref i32 = local 1i32\n  set %a, 1i32 2i32\n",
    "expected the end of the text": "func f():\n  pass\nfunc g():\n  pass\n",
    "this is not IR": "func f():\n  §\n",
    "expected one of bounds, division, assert, memory, overflow, finite, recursion": "func f():\n  check maybe true\n",
    "expected one of field, array, temporary, saved, private": "buffer @x: f32 somewhere ()\nfunc f():\n  pass\n",
    "a buffer holds scalars or tensors": "buffer @x: ref f32 field ()\nfunc f():\n  pass\n",
    "expected '['": "buffer @x: i32 field ()\nfunc f():\n  store @x, 1i32\n",
}


@pytest.mark.parametrize("message", MISTAKES)
def test_parse_errors_name_the_place(message: str) -> None:
    text = MISTAKES[message]
    with pytest.raises(ParseError) as caught:
        parse(text, "bad.ir")
    assert caught.value.message == message
    assert f"bad.ir, line {caught.value.line}:" in str(caught.value)
    if text:
        assert text.splitlines()[caught.value.line - 1] in str(caught.value)


def test_empty_regions_are_shown() -> None:
    fn = Function("f", Region((), (nodes.If(nodes.true, Region((), ()), Region((), ())),)))
    assert show(fn) == "func f():\n  if true:\n    pass\n"
    assert equal(parse(show(fn)), fn)
