"""Random programs of Python around kernels: launches whose arguments come from what kernels return and from elements
that are read, elements that are written, whole fields that are filled and copied, NumPy, loops, functions and methods.

A program is a function of a number `a` and an array `q` over the fields of `LIBRARY`. It is a tree, so that one that
fails can be made smaller (`smaller`), and shows itself as Python that runs (`source`). Numbers stay within a few units,
by construction for the most part.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

__all__ = ["FIELDS", "LIBRARY", "SCRATCH", "Expr", "Program", "Stmt", "smaller", "source", "write"]

#: the fields that a program starts from and is differentiated with respect to: expressions, and shapes of their numbers
FIELDS = {"x": (3,), "y": (3,), "v": (2, 2), "s": (), "m": (2, 2), "p.mass": (2,), "p.at": (2, 2)}

#: what has no derivative of its own, and what it holds at the start: numbers pass through it
SCRATCH = {"c": [0.3, -0.2, 0.5], "w": [[0.4, -0.1], [0.2, 0.6]], "e": [-0.4, 0.1, 0.7]}

LIBRARY = """\
import functools
import math

import numpy as np

import tinote as ti

both = {"needs_grad": True, "needs_dual": True}
x, y = [ti.field(ti.f64, 3, name=name, **both) for name in "xy"]
v = ti.Vector.field(2, ti.f64, 2, name="v", **both)
s, loss = [ti.field(ti.f64, (), name=name, **both) for name in ("s", "loss")]
m = ti.Matrix.field(2, 2, ti.f64, (), name="m", **both)
p = ti.Struct.field({"mass": ti.f64, "at": ti.types.vector(2, ti.f64)}, shape=2, **both)
c = ti.field(ti.f64, 3, name="c")
w = ti.Vector.field(2, ti.f64, 2, name="w")
e = ti.ndarray(ti.f64, 3, name="e")
numbers = ti.types.ndarray(dtype=ti.f64, ndim=1)


def wave(u, height=0.5):
    if u > 2.1:
        return height * ti.sin(2.1)
    return height * ti.sin(u)


def rotated(u, angle):
    cos, sin = ti.cos(angle), ti.sin(angle)
    return ti.Vector([cos * u.x - sin * u.y, sin * u.x + cos * u.y])


def damped(share, u):
    return share * ti.tanh(u)


lightly = functools.partial(damped, 0.3)


@ti.kernel
def norm2() -> ti.f64:
    found = 0.0
    for i in x:
        found += x[i] ** 2
    return found


@ti.kernel
def total(f: ti.template()) -> ti.f64:
    found = 0.0
    for i in f:
        found += ti.sin(f[i]) * (i + 1)
    return found


@ti.kernel
def pair(a: ti.f64, i: ti.i32) -> tuple[ti.f64, ti.f64]:
    return a * x[i] - y[i], ti.sin(a) + s[None]


@ti.kernel
def count() -> ti.i32:
    found = 0
    for i in x:
        if x[i] > 0.1:
            found += 1
    return found


@ti.kernel
def scaled(a: ti.f64):
    for i in x:
        loss[None] += a * x[i]


@ti.kernel
def advance(a: ti.f64):
    for i in y:
        y[i] = 0.8 * y[i] + wave(a + x[i])


@ti.kernel
def mix(f: ti.template(), g: ti.template(), a: ti.f64):
    for i in f:
        f[i] = 0.6 * f[i] + lightly(a * g[i])


@ti.kernel
def put(f: ti.template(), i: ti.i32, a: ti.f64):
    f[i] = 0.5 * f[i] * a + 0.2 * a


@ti.kernel
def spin(a: ti.f64):
    for i in v:
        v[i] = rotated(v[i], a)
        v[i].y += 0.1 * a


@ti.kernel
def push(i: ti.i32, u: ti.types.vector(2, ti.f64)):
    v[i] = 0.7 * v[i] + 0.4 * u


@ti.kernel
def centre() -> ti.types.vector(2, ti.f64):
    return 0.5 * (v[0] + v[1]) * s[None]


@ti.kernel
def shear(a: ti.f64):
    for _ in range(1):
        m[None] = 0.5 * m[None] + 0.2 * a * ti.Matrix([[m[None][1, 0], a], [s[None], m[None][0, 1]]])


@ti.kernel
def drift(i: ti.i32, a: ti.f64) -> ti.f64:
    p[i].at = 0.8 * p[i].at + 0.3 * a * p[i].mass * v[i]
    return p[i].at.norm_sqr()


@ti.kernel
def weigh(q: numbers, a: ti.f64) -> ti.f64:
    found = 0.0
    for i in q:
        found += q[i] * x[i] * a
    return found


@ti.kernel
def spread(q: numbers, a: ti.f64):
    for i in q:
        y[i] += 0.3 * q[i] * a


@ti.kernel
def ripple(q: numbers):
    for i in q:
        q[i] = ti.sin(q[i] + 0.3)


@ti.kernel
def use_c():
    for i in c:
        x[i] += 0.2 * c[i]


@ti.kernel
def lay(i: ti.i32, a: ti.f64):
    c[i] = 0.7 * c[i] + 0.2 * a * x[i]
    w[i % 2] = 0.5 * w[i % 2] + a * v[i % 2] * c[i]


@ti.kernel
def take(i: ti.i32, a: ti.f64) -> ti.f64:
    v[i] = 0.8 * v[i] + 0.3 * a * w[1 - i]
    return w[i].norm_sqr()


@ti.kernel
def begin(q: numbers):
    for i in q:
        loss[None] += 0.05 * q[i] * x[i]
    for i in x:
        loss[None] += 0.1 * x[i] * y[i] + 0.2 * ti.sin(x[i])
    for i in v:
        loss[None] += 0.3 * v[i].x * v[i].y * s[None] + 0.2 * p[i].mass * p[i].at.norm_sqr()
    loss[None] += 0.1 * m[None].determinant()


@ti.kernel
def finish():
    for i in x:
        loss[None] += 0.3 * x[i] * (i + 1) + 0.2 * y[i] ** 2 + x[i] * y[i]
    for i in v:
        loss[None] += v[i].x * v[i].y * (i + 0.5) + 0.1 * s[None] * v[i].x
        loss[None] += 0.2 * p[i].mass * p[i].at.x + 0.1 * p[i].at.y ** 2
    loss[None] += 0.3 * m[None].determinant() + 0.2 * m[None][0, 1] ** 2


@ti.data_oriented
class Body:
    def __init__(self):
        self.rate = 0.7

    def weighted(self, u):
        return self.rate * u

    @ti.kernel
    def energy(self, a: ti.f64) -> ti.f64:
        return self.weighted(s[None] ** 2) * a + x[0] * y[1]

    @ti.kernel
    def decay(self):
        s[None] = self.weighted(s[None]) + 0.1 * x[2]

    def step(self, a):
        self.decay()
        return 0.5 * self.energy(a) + a


body = Body()


def squash(u):
    return u / (1 + u * u)
"""


@dataclass(frozen=True)
class Expr:
    """An expression of numbers: `form` with its `parts` put in. `lossy`: it takes a plain number out of its parts."""

    form: str
    parts: tuple[Expr, ...] = ()
    lossy: bool = False

    def __str__(self) -> str:
        return self.form.format(*self.parts)


@dataclass(frozen=True)
class Stmt:
    """A statement, or one with a block: `form` with the `parts` put in, the `body` indented below it, and `after` that.
    `lossy`: it makes constants of active numbers; `look`: it looks at values and does nothing else.
    """

    form: str
    parts: tuple[Expr, ...] = ()
    body: tuple[Stmt, ...] | None = None
    after: Stmt | None = None
    lossy: bool = False
    look: bool = False

    def lines(self, indent: str = "    ") -> list[str]:
        found = [indent + line for line in self.form.format(*self.parts).split("\n")]
        if self.body is not None:
            found += [line for one in self.body for line in one.lines(indent + "    ")] or [f"{indent}    pass"]
        return found + (self.after.lines(indent) if self.after else [])


@dataclass(frozen=True)
class Program:
    """`before` runs first, under a tape of its own that has ended when the program begins; it leaves numbers in the
    list `held`. `result`: what the program returns. Every field and array is used before anything may replace it: what
    Python writes to a field that no launch has used yet is what the field begins with.
    """

    seed: int
    before: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    result: Expr

    @property
    def text(self) -> str:
        before = [line for one in self.before for line in one.lines()]
        head = ["def before(held, log):", *(before or ["    pass"]), "", "", "def program(a, q, held, log):"]
        body = [line for one in self.body for line in one.lines()]
        return "\n".join([*head, "    begin(q)", *body, "    finish()", f"    return {self.result}", ""])

    @property
    def lossy(self) -> bool:
        """Whether plain numbers are taken out of active ones and come back: then a warning or an error may say so."""
        return any(one.lossy for one in walk(self))

    @property
    def may_warn(self) -> bool:
        """Whether plain numbers are taken out, if only to look at them."""
        return self.lossy or any(isinstance(one, Stmt) and one.look and "float" in one.form for one in walk(self))

    def without_looks(self) -> Program:
        return replace(self, body=_without_looks(self.body))


def _without_looks(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(
        [replace(one, body=None if one.body is None else _without_looks(one.body)) for one in body if not one.look]
    )


def walk(program: Program) -> Iterator[Stmt | Expr]:
    """All statements and expressions of a program."""

    def expression(one: Expr) -> Iterator[Expr]:
        yield one
        for part in one.parts:
            yield from expression(part)

    def block(body: tuple[Stmt, ...]) -> Iterator[Stmt | Expr]:
        for one in body:
            yield one
            for part in one.parts:
                yield from expression(part)
            yield from block((*(one.body or ()), *([one.after] if one.after else [])))

    yield from block((*program.before, *program.body))
    yield from expression(program.result)


# ---- writing

ARITHMETIC = (
    "({0} + {1})",
    "({0} - {1})",
    "{0} * {1}",
    "{0} / (1.5 + ({1}) ** 2)",
    "-{0}",
    "abs({0} + 0.377)",
    "({0}) ** 2 * 0.3",
    "(1.5 + ({0}) ** 2) ** 0.5",
)
FUNCTIONS = (
    "ti.sin({0})",
    "ti.tanh({0})",
    "ti.exp(0.3 * ti.sin({0}))",
    "ti.sqrt(1.2 + ({0}) ** 2)",
    "ti.atan2({0}, 1.6 + ti.sin({1}))",
    "ti.max({0}, {1} + 0.01)",
    "ti.min({0}, {1} - 0.01)",
    "ti.abs({0} + 0.213)",
    "ti.pow(1.5 + ({0}) ** 2, 0.7)",
    "ti.log(1.6 + ti.cos({0}))",
    "np.sin({0})",
    "np.cos({0})",
    "np.exp(0.3 * np.sin({0}))",
    "np.tanh({0})",
    "np.sqrt(1.2 + np.square({0}))",
    "np.hypot({0}, 1.1)",
    "np.arctan2({0}, 1.7 + np.sin({1}))",
    "np.maximum({0}, {1} - 0.02)",
    "np.minimum({0}, {1} + 0.02)",
    "np.float64({2}) * {0}",
    "np.add({0}, {1})",
    "np.multiply({0}, {1})",
    "np.abs({0} - 0.241)",
    "min({0}, {1} + 0.03)",
    "max({0}, {1} - 0.03)",
    "pow(1.4 + ({0}) ** 2, 0.6)",
    "(1.3 + np.cos({0})) ** (0.5 + np.sin({1}))",
    "({0} if {0} > {1} else 0.5 * {1})",
    "sum([{0}, {1}, 0.5])",
    "sorted([{0}, {1}])[0]",
    "+{0}",
    "({0} + 3.3) % 7.7",
)
TAKEN_OUT = (
    "float({0})",
    "math.sin({0})",
    "math.sqrt(1.5 + float({0}) ** 2)",
    "np.array([{0}, 0.5])[0]",
    "np.array([{0}, {1}]).sum()",
    "np.asarray({0}).item()",
    "y.to_numpy()[1]",
    "x.to_numpy().max()",
)


class _Writer:
    """`flow`: "none" (numbers in Python are constants), "calls" (they are active through arguments, what kernels return
    and arithmetic) or "full".
    """

    def __init__(self, seed: int, flow: str) -> None:
        self.random = random.Random(seed)
        self.flow = flow
        self.count = 0
        self.inside = False  # a step that runs again, or the part before the program
        self.early = False  # in the latter
        # Where elements are looked at, and elements are written, the two must not meet before numbers are traced.
        self.looks = flow == "full" or self.chance(0.5)
        self.writes = flow == "full" or not self.looks

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # expressions

    def constant(self) -> Expr:
        return Expr(f"{self.random.uniform(-1.2, 1.2):.2f}")

    def index(self, below: int = 3) -> str:
        k = self.random.randrange(below)
        if self.flow == "full" and below == 3 and self.chance(0.1):
            return self.pick("count() % 3", f"np.int64({k})")
        return str(k)

    def read(self) -> Expr:
        """An element or a component that is read."""
        return Expr(
            self.pick(
                f"x[{self.index()}]",
                f"y[{self.index()}]",
                "s[None]",
                f"v[{self.index(2)}].{self.pick('x', 'y')}",
                f"v[{self.index(2)}][{self.index(2)}]",
                "v[0].dot(v[1])",
                f"v[{self.index(2)}].norm_sqr()",
                f"m[None][{self.index(2)}, {self.index(2)}]",
                self.pick("m[None].determinant()", "m[None].trace()"),
                f"p[{self.index(2)}].mass",
                f"p[{self.index(2)}].at.{self.pick('x', 'y')}",
                f"c[{self.index()}]",
                f"e[{self.index()}]",
                f"w[{self.index(2)}].{self.pick('x', 'norm_sqr()')}",
            )
        )

    def call(self, names: list[str], depth: int) -> Expr:
        """A number that a kernel returns, or a function that launches kernels."""
        form = self.pick(
            "norm2()",
            "total({f})",
            "weigh(q, {0})",
            "body.energy({0})",
            "body.step({0})",
            "pair({0}, {i})[{j}]",
            "drift({j}, {0})",
            "weigh(e, {0})",
            "take({j}, {0})",
        )
        form = form.replace("{f}", self.pick("x", "y", "c")).replace("{i}", self.index()).replace("{j}", self.index(2))
        if "weigh(q" in form and self.inside:
            form = "norm2()"
        return Expr(f"0.3 * {form}", (self.number(names, depth - 1),))

    def number(self, names: list[str], depth: int = 2) -> Expr:
        """An expression of numbers; a constant where numbers are not active."""
        if self.flow == "none":
            return self.constant()
        if depth <= 0 or self.chance(0.2):
            draw = self.random.random()
            if names and draw < 0.55:
                return Expr(self.pick(*names))
            if self.flow == "full" and draw < 0.85:
                return self.read()
            return self.constant()
        if self.chance(0.25):
            return self.call(names, depth)
        if self.flow == "full" and self.chance(0.04):
            return Expr(self.pick(*TAKEN_OUT), self.several(names, depth), lossy=True)
        form = self.pick(*ARITHMETIC, *FUNCTIONS) if self.flow == "full" else self.pick(*ARITHMETIC)
        return Expr(form, self.several(names, depth))

    def several(self, names: list[str], depth: int) -> tuple[Expr, ...]:
        return (self.number(names, depth - 1), self.number(names, depth - 1), self.constant())

    def bounded(self, names: list[str], depth: int = 2) -> Expr:
        """An expression that is at most a few units large."""
        inner = self.number(names, depth)
        if self.flow == "none":
            return inner
        return Expr(self.pick("ti.sin({0})", "np.tanh({0})") if self.flow == "full" else "squash({0})", (inner,))

    # statements

    def block(self, names: list[str], depth: int, least: int = 1, most: int = 3) -> tuple[Stmt, ...]:
        names = list(names)
        return tuple([self.statement(names, depth) for _ in range(self.random.randint(least, most))])

    def statement(self, names: list[str], depth: int) -> Stmt:
        kinds: list[Callable[[list[str], int], Stmt]] = [self.launch, self.launch, self.launch, self.field]
        if self.flow != "none":
            kinds += [self.assign, self.assign]
        if self.writes and self.flow != "calls":
            kinds += [self.element, self.element, self.vector]
        if self.looks:
            kinds += [self.look]
        if self.flow == "full":
            kinds += [self.element, self.taken]
        if depth:
            kinds += [self.loop, self.branch, self.function]
            if not self.inside and self.flow != "calls":
                kinds.append(self.checkpoint)
        return self.random.choice(kinds)(names, depth)

    def launch(self, names: list[str], depth: int) -> Stmt:
        form = self.pick(
            "scaled({0})",
            "advance({0})",
            f"mix({self.pick('x', 'y', 'c')}, {self.pick('x', 'y', 'c')}, {{0}})",
            f"put({self.pick('x', 'y', 'c')}, {self.index()}, {{0}})",
            "spin({0})",
            "shear({0})",
            f"drift({self.index(2)}, {{0}})" if self.flow == "full" or not self.inside else "shear({0})",
            f"push({self.index(2)}, ti.Vector([{{0}}, {{1}}]))" if self.flow != "calls" else "spin({0})",
            f"push({self.index(2)}, v[{self.index(2)}] * {{0}})" if self.flow == "full" else "spin({0})",
            f"push({self.index(2)}, centre())" if self.flow == "full" else "body.decay()",
            "spread(q, {0})" if not self.inside else "scaled({0})",
            "ripple(q)" if not self.inside else "advance({0})",
            "body.decay()",
            # What a kernel returns in a step that runs again is an active number.
            "body.step({0})" if self.flow == "full" or not self.inside else "spin({0})",
            "use_c()",
            f"lay({self.index()}, {{0}})",
            f"take({self.index(2)}, {{0}})",
            "spread(e, {0})",
            "ripple(e)",
        )
        return Stmt(form, (self.bounded(names), self.bounded(names)))

    def assign(self, names: list[str], depth: int) -> Stmt:
        name = self.name("n")
        value = self.number(names, 3)
        names.append(name)
        return Stmt(f"{name} = {{0}}", (value,))

    def element(self, names: list[str], depth: int) -> Stmt:
        """Python writes an element."""
        k = self.index(2)
        place = self.pick(
            f"x[{self.index()}]",
            f"x[{self.index()}]",
            f"y[{self.index()}]",
            f"y[{self.index()}]",
            "s[None]",
            f"v[{k}].{self.pick('x', 'y')}",
            f"m[None][{k}, {self.index(2)}]",
            f"p[{k}].mass",
            f"p[{k}].at.{self.pick('x', 'y')}",
        )
        if self.flow == "full" and self.chance(0.15):
            place = self.pick(f"c[{self.index()}]", f"e[{self.index()}]", f"w[{k}].{self.pick('x', 'y')}")
        if self.chance(0.1):
            place = "loss[None]"
        operator = self.pick("=", "=", "+=", "-=") if place != "loss[None]" else "+="
        if self.flow == "full" and self.chance(0.15):
            return Stmt(f"{place} {operator} {{0}}", (Expr(f"{{0}} * {place}", (self.bounded(names),)),))
        return Stmt(f"{place} {operator} {{0}}", (self.bounded(names),))

    def vector(self, names: list[str], depth: int) -> Stmt:
        """Python writes a whole vector."""
        i, j = self.index(2), self.index(2)
        if self.chance(0.3):
            return self.matrix(names)
        forms = [
            f"v[{i}] = ti.Vector([{{0}}, {{1}}])",
            f"v[{i}] = [{{0}}, {{1}}]",
            f"v[{i}] += ti.Vector([{{0}}, {{1}}])",
        ]
        if self.flow == "full":
            forms += [
                f"v[{i}] = v[{j}] * {{0}}",
                f"v[{i}] = v[{i}] + {{0}}",
                f"v[{i}] *= {{0}}",
                f"v[{i}] = ti.Vector([v[{j}].y, {{0}}])",
                f"v[{i}] = centre() + {{0}}",
                f"w[{i}] = v[{j}] * {{0}}",
                f"v[{i}] = w[{j}] + {{0}}",
            ]
        return Stmt(self.pick(*forms), (self.bounded(names), self.bounded(names)))

    def matrix(self, names: list[str]) -> Stmt:
        """Python writes a whole matrix or struct."""
        i = self.index(2)
        forms = ["m[None] = ti.Matrix([[{0}, 0.5], [{1}, {0}]])", f"p[{i}] = dict(mass={{0}}, at=[{{1}}, 0.3])"]
        if self.flow == "full":
            forms += [
                "m[None] = m[None] * {0}",
                "m[None] = m[None] @ m[None].transpose() * {0}",
                "m[None] += ti.Matrix([[{0}, 0.0], [{1}, 0.1]])",
                f"p[{i}].at = v[{i}] * {{0}}",
                f"v[{i}] = m[None] @ p[{i}].at",
                f"p[{i}].mass = m[None].trace() * {{0}}",
            ]
        return Stmt(self.pick(*forms), (self.bounded(names), self.bounded(names)))

    def field(self, names: list[str], depth: int) -> Stmt:
        """Python gives a whole field new values."""
        constant = self.constant()
        forms = [
            ("y.fill({0})", constant),
            ("c.fill({0})", constant),
            ("x.copy_from(y)", constant),
            ("y.copy_from(x)", constant),
            ("y.from_numpy(np.array([0.3, {0}, -0.2]))", constant),
        ]
        if self.flow == "full":
            forms += [(f"{name}.fill({{0}})", self.bounded(names)) for name in "xyce"]
            forms += [("c.copy_from(x)", constant), ("y.copy_from(c)", constant), ("w.copy_from(v)", constant)]
        form, value = self.random.choice(forms)
        return Stmt(form, (value,))

    def taken(self, names: list[str], depth: int) -> Stmt:
        """Plain numbers are taken out of active ones and come back."""
        if self.chance(0.6):
            return self.element(names, depth)
        form = self.pick(
            "y.from_numpy(y.to_numpy() * {0})",
            "x.from_numpy(np.sin(x.to_numpy()))",
            "x.from_numpy(np.array([{0}, {1}, 0.3]))",
            "q[1] = {0}" if not self.early else "y[1] = float(y[2])",
            "c.from_numpy(x.to_numpy())",
        )
        return Stmt(form, (self.bounded(names), self.bounded(names)), lossy=True)

    def look(self, names: list[str], depth: int) -> Stmt:
        """Values are looked at, and nothing else."""
        value = self.number(names, 1) if names else Expr(self.pick("norm2()", "total(x)"))
        if self.chance(0.6):
            value = Expr(self.pick("x[1]", "y[0]", "s[None]", "loss[None]", "norm2()", "total(y)"))
        form = self.pick(
            "log.append({0})",
            "log.append(str({0}))",
            "log.append(f'{{{{{0}:.3f}}}}')",
            "log.append({0} > 0.3)",
            "log.append({0} == 0.3)",
            "log.append(-1.0 < {0} <= 1.0)",
            "log.append(repr({0}))",
            "log.append(bool({0}))",
            "log.append(hash({0}))",
            "log.append(isinstance({0}, float))",
            "log.append(str(v[0]))",
            "log.append((v[0] * 2)[1])",
            "log.append(float({0}))",
            "log.append(math.floor(float({0})))",
            "log.append(x.to_numpy().sum() + float({0}))",
        )
        if self.flow != "full" and "float" in form:
            form = "log.append(str({0}))"
        return Stmt(form, (value,), look=True)

    def loop(self, names: list[str], depth: int) -> Stmt:
        name = self.name("k")
        bounds = self.pick("range(2)", "range(3)", "(2, 0)")
        body = self.block(names, depth - 1)
        if self.writes and self.flow != "calls" and self.chance(0.5):
            value = Expr(f"x[{name}] * {{0}}", (self.bounded(names, 1),)) if self.flow == "full" else self.constant()
            body = (*body, Stmt(f"{self.pick('x', 'y')}[{name}] = {{0}}", (value,)))
        return Stmt(f"for {name} in {bounds}:", body=body)

    def branch(self, names: list[str], depth: int) -> Stmt:
        condition = self.pick("not held", "len(held) < 2", *([] if self.early else ["a > 0", "len(q) == 3"]))
        return Stmt(f"if {condition}:", body=self.block(names, depth - 1))

    def function(self, names: list[str], depth: int) -> Stmt:
        """A function of the user's that launches kernels, and one call of it."""
        name, argument = self.name("helper"), self.name("u")
        is_active = self.flow != "none"
        body = self.block([argument] if is_active else [], depth - 1)
        result = self.name("n")
        value = self.number([argument], 1)
        body = (*body, Stmt("return {0}", (value,)))
        made = Stmt(
            f"def {name}({argument}):", body=body, after=Stmt(f"{result} = {name}({{0}})", (self.bounded(names, 1),))
        )
        if is_active:
            names.append(result)
        return made

    def checkpoint(self, names: list[str], depth: int) -> Stmt:
        name = self.name("step")
        flow, looks = self.flow, self.looks
        # What runs again must do the same: it appends nothing. A number from outside comes in as it is.
        self.inside, self.looks, self.flow = True, False, "full" if flow == "full" else "none"
        body = self.block(names if flow == "full" and self.chance(0.3) else [], depth - 1)
        self.inside, self.looks, self.flow = False, looks, flow
        # Bound here, not when the step runs again: then they may be the numbers of a later iteration.
        bound = "".join([f", {one}={one}" for one in names if re.fullmatch(r"n\d+", one)])
        return Stmt(f"def {name}(t{bound}):", body=body, after=Stmt(f"ti.ad.checkpoint({name}, 3, progress=False)"))


def write(seed: int, flow: str) -> Program:
    """The program of a seed; `flow` as for `_Writer`."""
    writer = _Writer(seed, flow)
    names = ["a"] if flow != "none" else []
    before: tuple[Stmt, ...] = ()
    if writer.chance(0.25):
        writer.inside = writer.early = True
        before = (*writer.block([], 1), Stmt("held.append({0})", (writer.call([], 1),)))
        writer.inside = writer.early = False
        if flow == "full":
            names.append("held[0]")
    body = [writer.statement(names, 2) for _ in range(writer.random.randint(3, 7))]
    terms = ["0.4 * total(x)", "0.3 * norm2()", "body.energy(0.7)", "0.2 * total(y)"]
    result = Expr(f"{writer.pick(*terms)} + {{0}}", (writer.bounded(names),))
    return Program(seed, before, tuple(body), result)


# ---- making smaller

ONE = Expr("0.5")


def smaller(program: Program) -> Iterator[Program]:
    """Programs with something less, those with much less first."""
    if program.before:
        yield replace(program, before=())
        for body in _blocks(program.before):
            yield replace(program, before=body)
    for body in _blocks(program.body):
        yield replace(program, body=body)
    for result in _expressions(program.result):
        yield replace(program, result=result)


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    size = len(body)
    while size:
        for start in range(0, len(body), size):
            yield body[:start] + body[start + size :]
        size //= 2
    for k, one in enumerate(body):
        for made in _statements(one):
            yield body[:k] + made + body[k + 1 :]


def _statements(one: Stmt) -> Iterator[tuple[Stmt, ...]]:
    if one.body is not None:
        yield one.body
        for inner in _blocks(one.body):
            yield (replace(one, body=inner),)
    if one.after is not None:
        for (made,) in _statements(one.after):
            yield (replace(one, after=made),)
    for k, part in enumerate(one.parts):
        for made in _expressions(part):
            yield (replace(one, parts=(*one.parts[:k], made, *one.parts[k + 1 :])),)


def _expressions(one: Expr) -> Iterator[Expr]:
    if one.parts or re.fullmatch(r"[\w.]+", one.form) is None:
        yield ONE
    yield from one.parts
    for k, part in enumerate(one.parts):
        if f"{{{k}}}" in one.form:
            for made in _expressions(part):
                yield replace(one, parts=(*one.parts[:k], made, *one.parts[k + 1 :]))


# ---- showing


def source(program: Program, start: dict[str, object], driver: str) -> str:
    """The program as Python that runs by itself: the kernels that it uses, the values it starts from, and `driver`."""
    text = program.text
    head, *parts = LIBRARY.split("\n\n\n")
    used: list[str] = []
    for part in reversed(parts):  # what a part uses stands before it
        name = re.search(
            r"^(?:def |class )?(\w+)", part[part.find("\n") + 1 :] if part[0] == "@" else part, re.MULTILINE
        )
        assert name is not None
        known = name[1].replace("Body", "body")
        if re.search(rf"\b{known}\b", "\n".join([text, *used])):
            used.insert(0, part)
    given = ["held, log = [], []", *[f"{name}.from_numpy(np.array({value}))" for name, value in SCRATCH.items()]]
    for name, value in start.items():
        if name in FIELDS:
            given.append(f"{name}.from_numpy(np.array({value!r}))")
        else:
            given.append(f"{name} = {value!r}" if name == "a" else f"{name} = np.array({value!r})")
    head = head.replace("both = ", "ti.init(default_fp=ti.f64)\nboth = ")
    if program.before:
        given += ["with ti.ad.Tape(loss):", "    before(held, log)"]
    return "\n\n\n".join([head, *used, text, "\n".join([*given, driver])])
