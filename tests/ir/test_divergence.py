"""Which values differ between iterations that run at once, and how they grow from one to the next."""

from __future__ import annotations

from tinote.ir.divergence import Divergence, Step, Stride
from tinote.ir.nodes import Task, Var
from tinote.ir.parse import parse
from tinote.ir.query import definitions, walk

BUFFER = "buffer @k: i32 field (8)\nbuffer @k.flat: i32 field (?) flat @k\n"

#: Bodies of a parallel loop over %i: the step of a value stands in a comment after the line that binds it.
BODY = """\
    %a: i64 = cast %i  # 1
    %b: i64 = mul 4i64, %a  # 4
    %c: i64 = add %b, 12i64  # 4
    %d: i64 = sub %c, %a  # 3
    %e: i64 = sub %n, %c  # -4
    %f: i64 = shl %a, 3i64  # 8
    %g: i64 = mul %a, %n  # 1n
    %ga: i64 = mul 4i64, %g  # 4n
    %gb: i64 = add %ga, %g  # 5n
    %gc: i64 = sub %n, %gb  # -5n
    %gd: i64 = sub %g, %g  # 0
    %ge: i64 = mul %gb, %n  # 5nn
    %gf: i64 = add %ge, %g  # varying
    %gg: i64 = add %g, %a  # varying
    %gh: i64 = shl %g, 2i64  # 4n
    %h: i64 = min %a, %n  # varying
    %j: i64 = mul %n, %n  # 0
    %k: i8 = cast %i  # varying
    %l: i64 = cast %k  # varying
    %q: i32 = load @k.flat[0i64]  # 0
    %r: i32 = load @k.flat[%b]  # varying
    %s: i64 = sub %b, %b  # 0
    %t: f64 = cast %a  # varying
    %u: u1 = lt %q, 3i32  # 0
    %v: u1 = lt %r, 3i32  # varying
    %w: i32 = if %u:  # 0
      yield %q
    else:
      yield 0i32
    %x: i32 = if %v:  # varying
      yield %q
    else:
      yield 0i32
    %y: i32 = for %o: i32 in 0i32 .. %q carrying %p: i32 = 0i32:  # 0
      %z: i32 = add %p, %o  # 0
      yield %z
    %aa: i32 = for %ab: i32 in 0i32 .. %r carrying %ac: i32 = 0i32:  # varying
      %ad: i32 = add %ab, 1i32  # 0
      yield %ad
    %ae: i32 = for %af: i32 in %i .. %q carrying %ag: i32 = 0i32:  # varying
      %ah: i32 = add %af, 1i32  # 1
      yield %ah
    %ai: i32, %aj: i32 = for %ak: i32 in 0i32 .. 3i32 carrying %al: i32 = 0i32, %am: i32 = %q:  # varying varying
      %an: i32 = add %al, %am  # varying
      yield %an, %r
    %ao: i32 = while carrying %ap: i32 = 0i32:  # 0
      %aq: u1 = lt %ap, %q  # 0
      yield %aq
    do %ar: i32:
      %as: i32 = add %ar, 1i32  # 0
      yield %as
    %at: i32 = while carrying %au: i32 = 0i32:  # varying
      %av: u1 = lt %au, %r  # varying
      yield %av
    do %aw: i32:
      %ax: i32 = add %aw, 1i32  # varying
      yield %ax
    %ay: stack i32 = stack 2i64  # 0
    push %ay, %q
    %az: i32 = pop %ay  # 0
    %ba: stack i32 = stack 2i64  # varying
    push %ba, %r
    %bb: i32 = pop %ba  # varying
"""


def test_steps() -> None:
    fn = parse(f"{BUFFER}func f(%n: i64):\n  task parallel %i: i32 in 0i32 .. 8i32:\n{BODY}")
    (task,) = fn.region.body
    assert isinstance(task, Task)
    divergence = Divergence(task)
    reported = [line.partition("  # ")[2].split() for line in BODY.splitlines() if "  # " in line]
    bound = [op.outs for op in walk(task.body) if op.outs]
    assert len(reported) == len(bound)
    for wanted, outs in zip(reported, bound, strict=True):
        steps = [divergence.step(v) for v in outs]
        assert steps == [given_step(w, fn.region.params[0]) for w in wanted], outs


def given_step(text: str, n: Var) -> Step:
    """`varying`, a number, or one that is followed by an n for each factor %n."""
    digits = text.rstrip("n")
    if text == "varying":
        return None
    return Stride(int(digits), (n,) * (len(text) - len(digits))) if digits != text else int(text)


def test_lanes_lie_apart_by_extents_but_not_by_any_number() -> None:
    fn = parse(
        "buffer @x: f64 array (?, ?)\nfunc f(%n: i64):\n  task parallel %i: i32 in 0i32 .. 8i32:\n"
        "    %e: i32 = extent @x, 1\n    %f: i64 = cast %e\n    %a: i64 = cast %i\n    %b: i64 = mul %a, %f\n"
        "    %c: i64 = mul %b, 8i64\n    %d: i64 = mul %b, 4i64\n    %g: i64 = mul %a, %n\n    %h: i64 = mul %g, 8i64\n"
    )
    (task,) = fn.region.body
    assert isinstance(task, Task)
    made = definitions(fn.region)
    named = {v.name: v for v in made}
    divergence = Divergence(task, made)
    assert [name for name in "abcdgh" if divergence.lies_apart(named[name], 8)] == ["c"]
    assert not Divergence(task).lies_apart(named["c"], 8)
