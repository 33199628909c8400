"""Loops with clamped or wrapped indices: sums index memory in the middle, and the boundary runs as it was."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.passes.running import agrees, results
from tests.passes.support import becomes, stays
from tinote.compiler.passes.analyses.decide_indices import Decisions
from tinote.compiler.passes.loops.scatter_to_gather import scatter_to_gather
from tinote.compiler.passes.loops.split_loops import split_loops
from tinote.errors import KernelIndexError
from tinote.ir.affine import Affine
from tinote.ir.nodes import For, Function, If, Prim
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.text import show
from tinote.ir.types import is_whole
from tinote.ir.verify import Form, verify


def middle(fn: Function) -> For:
    """The last parallel nest at the top of a function, which is the middle of the only one that was there."""
    return [op for op in fn.region.body if isinstance(op, For) and op.parallel][-1]


def left(fn: Function) -> set[str]:
    """What is left in the middle of operations that are decided elsewhere."""
    found = {op.prim.name for op in walk(middle(fn).body) if isinstance(op, Prim) and is_whole(op.out.type)}
    return found & {"mod", "raw_mod", "min", "max", "abs", "and", "select", "lt", "le", "gt", "ge", "eq", "ne"}


def test_a_clamped_index_leaves_a_sum_and_an_iteration_by_itself() -> None:
    becomes(
        split_loops,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f():
          for parallel %i: i32 in 0i32 .. 64i32:
            %a: i32 = sub %i, 1i32
            %j: i32 = max %a, 0i32
            %v: f32 = load @x[%j]
            store @y[%i], %v
        """,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f():
          for %i: i32 in 0i32 .. 1i32:
            %a: i32 = sub %i, 1i32
            %j: i32 = max %a, 0i32
            %v: f32 = load @x[%j]
            store @y[%i], %v
          for parallel %k: i32 in 1i32 .. 64i32:
            %b: i32 = sub %k, 1i32
            %w: f32 = load @x[%b]
            store @y[%k], %w
        """,
    )


def test_both_ends_share_the_code_of_the_boundary() -> None:
    becomes(
        split_loops,
        """
        buffer @x: f32 array (?)
        buffer @y: f32 field (64)
        func f():
          %n: i32 = extent @x, 0
          for parallel %i: i32 in 0i32 .. %n:
            %a: i32 = sub %i, 1i32
            %j: i32 = max %a, 0i32
            %b: i32 = add %i, 2i32
            %m: i32 = sub %n, 1i32
            %k: i32 = min %b, %m
            %v: f32 = load @x[%j]
            store @y[%k], %v
        """,
        """
        buffer @x: f32 array (?)
        buffer @y: f32 field (64)
        func f():
          %n: i32 = extent @x, 0
          %e: i32 = add %n, -2i32
          %1: i32 = min 1i32, %n
          %2: i32 = max 1i32, %e
          for %s: i32 in 0i32 .. 2i32:
            %first: u1 = eq %s, 0i32
            %lo: i32 = select %first, 0i32, %2
            %hi: i32 = select %first, %1, %n
            for %i: i32 in %lo .. %hi:
              %a: i32 = sub %i, 1i32
              %j: i32 = max %a, 0i32
              %b: i32 = add %i, 2i32
              %m: i32 = sub %n, 1i32
              %k: i32 = min %b, %m
              %v: f32 = load @x[%j]
              store @y[%k], %v
          for parallel %p: i32 in 1i32 .. %e:
            %q: i32 = sub %p, 1i32
            %r: i32 = add %p, 2i32
            %w: f32 = load @x[%q]
            store @y[%r], %w
        """,
    )


def test_a_nest_has_one_boundary() -> None:
    """Rows at the boundary run whole, other rows at their ends; the loop over rows stays parallel."""
    fn = agrees(
        split_loops,
        """
        buffer @x: i32 field (40, 50)
        buffer @y: i32 field (40, 50)
        func f():
          for parallel %i: i32 in 0i32 .. 40i32:
            %a: i32 = sub %i, 1i32
            %c: i32 = max %a, 0i32
            for parallel %j: i32 in 0i32 .. 50i32:
              %d: i32 = add %j, 2i32
              %e: i32 = mod %d, 50i32
              %v: i32 = load @x[%c, %e]
              %w: i32 = add %v, 1i32
              atomic add @y[%c, %e], %w
              atomic add @y[%i, %j], %i
        """,
        (),
        {"x": [[i * 50 + j for j in range(50)] for i in range(40)]},
    )
    boundary, rest = [op for op in fn.region.body if isinstance(op, For)]
    assert boundary.parallel and [type(op) for op in boundary.body.body][-1] is For
    assert [[int(a.value) for a in loop.args] for loop in (rest, rest.body.body[-1])] == [[1, 40], [0, 48]]  # type: ignore[union-attr]
    assert left(fn) == set()


HEAD = """
buffer @x: i32 field (96)
buffer @y: i32 field (96)
func f(%n: i32):
  for parallel %i: i32 in 0i32 .. %n:
"""

FORMULAS = {
    "(i + 1) % n": "%a: i32 = add %i, 1i32\n%j: i32 = mod %a, %n",
    "(i - 1) % n": "%a: i32 = sub %i, 1i32\n%j: i32 = mod %a, %n",
    "(i - 1 + n) % n": "%a: i32 = sub %i, 1i32\n%b: i32 = add %a, %n\n%j: i32 = mod %b, %n",
    "(i + n - 3) % n": "%a: i32 = add %i, %n\n%b: i32 = sub %a, 3i32\n%j: i32 = mod %b, %n",
    "raw_mod(i + 2, n)": "%a: i32 = add %i, 2i32\n%j: i32 = raw_mod %a, %n",
    "max(i - 1, 0)": "%a: i32 = sub %i, 1i32\n%j: i32 = max %a, 0i32",
    "min(i + 1, n - 1)": "%a: i32 = add %i, 1i32\n%m: i32 = sub %n, 1i32\n%j: i32 = min %a, %m",
    "max(min(i + 4, n - 1), 0)": (
        "%a: i32 = add %i, 4i32\n%m: i32 = sub %n, 1i32\n%b: i32 = min %a, %m\n%j: i32 = max %b, 0i32"
    ),
    "min(max(i - 3, 0) + 1, n - 1)": (
        "%a: i32 = sub %i, 3i32\n%b: i32 = max %a, 0i32\n%c: i32 = add %b, 1i32\n%m: i32 = sub %n, 1i32\n"
        "%j: i32 = min %c, %m"
    ),
    "abs(i - 2)": "%a: i32 = sub %i, 2i32\n%j: i32 = abs %a",
    "n - 1 - abs(n - 1 - (i + 2))": (
        "%m: i32 = sub %n, 1i32\n%a: i32 = add %i, 2i32\n%b: i32 = sub %m, %a\n%c: i32 = abs %b\n%d: i32 = sub %m, %c\n"
        "%j: i32 = abs %d"
    ),
    "i - 1 if i > 0 else n - 1": (
        "%c: u1 = gt %i, 0i32\n%a: i32 = sub %i, 1i32\n%m: i32 = sub %n, 1i32\n%j: i32 = select %c, %a, %m"
    ),
    "0 if i == n - 1 else i + 1": (
        "%m: i32 = sub %n, 1i32\n%c: u1 = eq %i, %m\n%a: i32 = add %i, 1i32\n%j: i32 = select %c, 0i32, %a"
    ),
    "if j < 0: j += n": (
        "%a: i32 = sub %i, 2i32\n%c: u1 = lt %a, 0i32\n%b: i32 = if %c:\n  %q: i32 = add %a, %n\n  yield %q\nelse:\n"
        "  yield %a\n%j: i32 = mod %b, %n"
    ),
    "if not (i >= 1 and i != n - 1)": (
        "%m: i32 = sub %n, 1i32\n%c: u1 = ge %i, 1i32\n%d: u1 = ne %i, %m\n%e: u1 = and %c, %d\n%g: u1 = not %e\n"
        "%j: i32 = if %g:\n  yield %i\nelse:\n  %q: i32 = add %i, 1i32\n  yield %q"
    ),
    "2 i + 1 if 2 i + 1 < 2 n - 4 else 0": (
        "%a: i32 = mul %i, 2i32\n%b: i32 = add %a, 1i32\n%c: u1 = lt 6i32, %b\n%j: i32 = select %c, %i, 0i32"
    ),
}  # fmt: skip


def formula(lines: str) -> str:
    body = f"{lines}\n%v: i32 = load @x[%i]\n%w: i32 = add %v, %j\natomic add @y[%j], %w\n"
    return HEAD + "".join(f"    {line}\n" for line in body.splitlines())


@pytest.mark.parametrize("name", FORMULAS)
def test_each_formula_is_a_sum_in_the_middle(name: str) -> None:
    """For loops of any length, no and negative ones too, and for those in which there is no middle."""
    text = formula(FORMULAS[name])
    for n in (*range(-1, 8), 20, 61):
        fn = agrees(split_loops, text, (n,), {"x": [7 * k * k for k in range(96)]})
        assert left(fn) == set() and not any(isinstance(op, If) for op in walk(middle(fn).body)), show(fn)
        gathered = scatter_to_gather(fn)
        assert repr(results(gathered, (n,))) == repr(results(fn, (n,)))


def test_offsets_of_an_inner_loop() -> None:
    text = formula(
        """
for %k: i32 in 1i32 .. 4i32:
  %a: i32 = add %i, %k
  %b: i32 = mod %a, %n
  atomic add @y[%b], %k
%j: i32 = max %i, 0i32
"""
    )
    for n in (0, 1, 2, 3, 4, 5, 30):
        assert left(agrees(split_loops, text, (n,))) == set()


def test_a_branch_at_the_boundary_goes_with_its_effects() -> None:
    text = formula(
        """
%m: i32 = sub %n, 1i32
%c: u1 = eq %i, %m
if %c:
  store @x[%i], 5i32
%j: i32 = add %i, 0i32
"""
    )
    for n in (0, 1, 2, 30):
        agrees(split_loops, text, (n,))


OVERFLOWS = {
    "near the largest number": ((1 << 31) - 70, (1 << 31) - 1),
    "at the largest number": ((1 << 31) - 6, (1 << 31) - 1),
    "from the least number": (-(1 << 31), -(1 << 31) + 20),
    "across zero": (-20, 20),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_sums_that_wrap_are_not_of_the_middle(name: str) -> None:
    """i + 5 and i + n wrap for some i, and not for others."""
    lo, hi = OVERFLOWS[name]
    text = """
        buffer @y: i32 field (96)
        buffer @z: i32 field (96)
        func f(%lo: i32, %n: i32):
          for parallel %i: i32 in %lo .. %n:
            %p: i32 = sub %i, %lo
            %a: i32 = add %i, 5i32
            %b: i32 = mod %a, %n
            %c: i32 = add %i, %n
            %d: i32 = min %c, 77i32
            %e: i32 = max %d, -8i32
            %m: i32 = sub %n, 1i32
            %g: i32 = min %a, %m
            %h: i32 = sub %i, 1i32
            %l: i32 = max %h, %lo
            %o: i32 = sub %l, %lo
            %q: i32 = mod %o, 96i32
            store @y[%p], %b
            atomic add @z[%q], %g
            atomic add @z[%p], %e
        """
    fn = parse(text)
    verify(fn, Form.SCALAR)
    new = split_loops(fn)
    verify(new, Form.SCALAR)
    assert new is not fn
    assert repr(results(new, (lo, hi))) == repr(results(fn, (lo, hi)))


class Writer:
    """Random arithmetic on the index of a loop, of the operations that are decided and of some that are not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values = ["%i", "%i", "%i", "%n"]
        self.conditions: list[str] = []

    def let(self, text: str, kind: str = "i32") -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name}: {kind} = {text}")
        return name

    def pick(self, among: Sequence[str]) -> str:
        return self.random.choice(among)

    def small(self) -> str:
        return f"{self.random.choice((0, 1, 1, 2, 3, 5, -1, -2, 63))}i32"

    def value(self) -> str:
        return self.pick(self.values[-6:]) if self.random.random() < 0.8 else self.small()

    def statement(self) -> None:
        kind = self.random.randrange(12)
        a, b = self.value(), self.value()
        if kind < 3:
            self.values.append(self.let(f"{self.pick(('add', 'sub'))} {a}, {self.small()}"))
        elif kind == 3:
            self.values.append(self.let(f"{self.pick(('add', 'sub', 'mul'))} {a}, {b}"))
        elif kind < 6:
            last = self.let("sub %n, 1i32")
            self.values.append(self.let(f"{self.pick(('min', 'max'))} {a}, {self.pick((b, '0i32', last))}"))
        elif kind < 8:
            self.values.append(
                self.let(f"{self.pick(('mod', 'raw_mod'))} {a}, {self.pick(('%n', '%n', '5i32', '64i32'))}")
            )
        elif kind == 8:
            self.values.append(self.let(self.pick((f"abs {a}", f"neg {a}", f"and {a}, 63i32", f"floordiv {a}, 3i32"))))
        else:
            prim = self.pick(("lt", "le", "gt", "ge", "eq", "ne"))
            condition = self.let(f"{prim} {self.pick((a, '%i'))}, {self.pick((b, '0i32', '%n'))}", "u1")
            self.conditions.append(condition)
            if len(self.conditions) > 1 and self.random.random() < 0.4:
                condition = self.let(f"{self.pick(('and', 'or'))} {condition}, {self.pick(self.conditions)}", "u1")
            if self.random.random() < 0.3:
                condition = self.let(f"not {condition}", "u1")
            if self.random.random() < 0.6:
                self.values.append(self.let(f"select {condition}, {a}, {b}"))
            else:
                name = f"%w{len(self.lines)}"
                inner = f"%u{len(self.lines)}"
                self.lines += [f"{name}: i32 = if {condition}:", f"  {inner}: i32 = sub {a}, {b}", f"  yield {inner}"]
                self.lines += ["else:", f"  yield {b}"]
                self.values.append(name)

    def text(self) -> str:
        for _ in range(self.random.randint(2, 9)):
            self.statement()
        self.lines += ["%place: i32 = sub %i, %lo", f"store @x[%place], {self.values[-1]}"]
        for value in self.random.sample(self.values, 2):
            index = self.let(f"mod {value}, 96i32")
            self.lines.append(f"atomic add @y[{index}], {self.value()}")
        lo, hi = self.pick(("%lo", "%lo", "0i32", "1i32")), "%n"
        if lo != "%lo":
            self.lines = [line.replace("%lo", lo) for line in self.lines]
        body = "".join(f"    {line}\n" for line in self.lines)
        return (
            "buffer @x: i32 field (96)\nbuffer @y: i32 field (96)\nfunc f(%lo: i32, %n: i32):\n"
            f"  for parallel %i: i32 in {lo} .. {hi}:\n{body}"
        )


SEEDS = range(120)
RANGES = ((0, 0), (0, 1), (0, 2), (0, 3), (0, 17), (0, 40), (5, 30), (-9, 20), (2147483600, 2147483647))


def test_random_index_arithmetic() -> None:
    """Split, and gathered, it leaves what it left: for no, one, two and many iterations, and where numbers wrap."""
    split = 0
    for seed in SEEDS:
        fn = parse(Writer(seed).text())
        verify(fn, Form.SCALAR)
        new = split_loops(fn)
        verify(new, Form.SCALAR)
        gathered = scatter_to_gather(new)
        verify(gathered, Form.SCALAR)
        split += new is not fn
        if new is fn:
            continue
        for lo, n in RANGES:
            literal = " in 0i32 .." in show(fn) or " in 1i32 .." in show(fn)
            if literal and (lo or n > 90):
                continue  # the loop begins at a number of its own
            wanted = repr(results(fn, (lo, n)))
            for other in (new, gathered):
                assert repr(results(other, (lo, n))) == wanted, f"seed {seed}, {lo} .. {n}\n{show(fn)}\n{show(other)}"
    assert split > len(SEEDS) // 4, split


def test_what_stays() -> None:
    unchanged = {
        "a clamp at no end": "%a: i32 = max %i, 40i32\n%j: i32 = min %a, 95i32",
        "a selection that no index needs": (
            "%c: u1 = gt %i, 0i32\n%a: i32 = select %c, 4i32, 7i32\nstore @x[%i], %a\n%j: i32 = mul %i, 1i32"
        ),
        "a remainder of another number": "%a: i32 = load @x[%i]\n%j: i32 = mod %a, 96i32",
    }
    for lines in unchanged.values():
        stays(split_loops, formula(lines))


def test_short_loops_stay() -> None:
    """Of a loop of three iterations the boundary would be the most part."""
    stays(
        split_loops,
        """
        buffer @x: f32 field (3)
        func f():
          for parallel %i: i32 in 0i32 .. 3i32:
            %a: i32 = add %i, 1i32
            %j: i32 = mod %a, 3i32
            store @x[%j], 1.0f32
        """,
    )


def test_who_asks_for_old_values_keeps_the_order_of_one_thread() -> None:
    stays(
        split_loops,
        HEAD
        + """
    %a: i32 = sub %i, 1i32
    %j: i32 = max %a, 0i32
    %o: i32 = atomic add @y[0i32], 1i32
    store @x[%o], %j
    store @x[%j], 1i32
""",
    )


@pytest.mark.parametrize("side", [0, 1])
def test_a_middle_that_is_one_iteration_too_long_is_noticed(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Decisions.bounds

    def wrong(decisions: Decisions) -> list[tuple[list[Affine], list[Affine]]]:
        by = -1, 1
        return [
            tuple([[form.shifted(by[k]) if k == side else form for form in forms] for k, forms in enumerate(both)])
            for both in right(decisions)
        ]  # type: ignore[return-value]

    monkeypatch.setattr(Decisions, "bounds", wrong)
    noticed = 0
    for lines in FORMULAS.values():
        fn = parse(formula(lines))
        try:
            noticed += repr(results(split_loops(fn), (20,))) != repr(results(fn, (20,)))
        except KernelIndexError:
            noticed += 1
    assert noticed > 4
