"""Random programs under a tape, in the user's language: kernels that overwrite, scatter, loop and branch.

A kernel has one to three pieces: parallel loops, serial loops, statements at the top. In each parallel loop an array is
only read (at any index), or each iteration reads and writes its own elements, or all accumulate into it; in serial code
anything goes. So the result does not depend on the order of iterations, and overwriting happens at all three depths:
between launches, between the pieces of a kernel, and inside of serial loops. Numbers stay within a few units.

A loop that writes to the array argument stands in a kernel of its own: between the pieces of one kernel only values of
fields are kept, whose shape is known.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["COLUMNS", "N", "TapeWriter"]

N = 4
COLUMNS = 3
#: fields of N numbers, the last of them without a gradient; an array argument of N numbers
LINES = ("a", "b", "c", "h", "d")
READ, OWN, SUM, ANY = "read", "own", "sum", "any"

FUNCTIONS = """
import functools


def soft(x, y):
    if x > 0.4:
        return x * y + 0.1
    r = y
    for q in range(3):
        r = ti.sin(r + x) * 0.8
        if r < -0.2:
            return r - 0.5 * x
    return r


@ti.func
def turned(v, x):
    m = ti.Matrix([[ti.cos(x), -ti.sin(x)], [ti.sin(x), ti.cos(x)]])
    return m @ v


class Curve:
    rate = 0.7

    def at(self, x, shift=0.1):
        return self.rate * ti.sin(x + shift)


curve = Curve()
steeper = functools.partial(curve.at, shift=-0.4)
product = lambda x, y: x * y - 0.3 * x
"""


class TapeWriter:
    """Writes kernels over fields `a`, `b`, `c`, `h` and an array `d` (N numbers), `g` (N × COLUMNS), `w` (N vectors
    of 2), `p` (N structs of a number `s` and a vector `v`), `m` (one number), `k` (N integers below N), and `loss`.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.ways: dict[str, str] = {}
        self.indices: tuple[str, ...] = ()  # of the parallel loop that is being written
        self.vectors: list[str] = []  # local vectors of 3, written at run-time indices

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, stem: str = "t") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # places

    def line(self) -> str:
        """Some index below N."""
        if not self.indices or self.chance(0.1):
            return self.pick(str(self.random.randrange(N)), "iterations % N", "(iterations + 1) % N")
        i = self.indices[0]
        if self.ways["k"] == OWN:
            return self.pick(i, f"({i} + {self.random.randint(1, 3)}) % N", f"k[{i}]")
        away = self.pick(str(self.random.randint(1, 3)), "iterations")
        return self.pick(i, i, f"({i} + {away}) % N", f"ti.max({i} - {away}, 0)", f"k[{i}]", f"k[({i} + 1) % N]")

    def place(self, name: str, way: str) -> str:
        """An element of a field as this iteration may touch it, with the component for vectors and structs."""
        i = self.indices[0] if way == OWN else self.line()
        if name == "m":
            return "m[None]"
        if name == "g":
            j = self.indices[1] if way == OWN and len(self.indices) > 1 else f"({self.line()} % {COLUMNS})"
            return f"g[{i}, {j}]"
        if name == "w":
            return f"w[{i}][{self.pick('0', '1', f'k[{i}] % 2')}]"
        if name == "p":
            return f"p[{i}].{self.pick('s', 'v[0]', 'v.y')}"
        return f"{name}[{i}]"

    def usable(self, *ways: str) -> list[str]:
        return [name for name, way in self.ways.items() if way in ways and name not in ("k", "loss")]

    def choose_ways(self, parallel: bool) -> None:
        names = (*LINES, "g", "w", "p", "m")
        self.ways = dict.fromkeys((*names, "k"), ANY) | {"loss": SUM}
        if parallel:
            for name in names:
                own = 0.0 if name == "m" else 0.35
                draw = self.random.random()
                # Where the loop has two indices, only what has two can belong to an iteration.
                self.ways[name] = OWN if draw < own and (len(self.indices) == 1 or name == "g") else READ
                if draw > 0.8:
                    self.ways[name] = SUM
            self.ways["k"] = OWN if len(self.indices) == 1 and self.chance(0.15) else READ

    # expressions

    def leaf(self, names: list[str]) -> str:
        draw = self.random.random()
        if names and draw < 0.4:
            return self.pick(*names)
        if self.vectors and draw < 0.5:
            return f"{self.pick(*self.vectors)}[{self.component()}]"
        fields = self.usable(READ, OWN, ANY)
        if fields and draw < 0.85:
            name = self.pick(*fields)
            return self.place(name, self.ways[name])
        if draw < 0.9:
            return "amount"
        return f"{self.random.uniform(-1.5, 1.5):.3f}"

    def component(self) -> str:
        return self.pick("0", "2", f"{self.line()} % 3")

    def expression(self, names: list[str], depth: int = 2) -> str:
        if depth == 0 or self.chance(0.2):
            return self.leaf(names)

        def inner() -> str:
            return self.expression(names, depth - 1)

        return self.pick(
            lambda: f"({inner()} + {inner()})",
            lambda: f"({inner()} - {inner()})",
            lambda: f"({inner()} * {inner()})",
            lambda: f"({inner()} / (1.5 + ({inner()}) ** 2))",
            lambda: f"ti.{self.pick('sin', 'cos', 'tanh')}({inner()})",
            lambda: f"ti.exp(0.3 * ti.sin({inner()}))",
            lambda: f"ti.log(1.6 + ti.cos({inner()}))",
            lambda: f"ti.sqrt(1.2 + ({inner()}) ** 2)",
            lambda: f"(1.5 + 0.4 * ti.sin({inner()})) ** (0.7 + ti.cos({inner()}))",
            lambda: f"ti.atan2({inner()}, 1.6 + ti.sin({inner()}))",
            lambda: f"ti.abs({inner()} + 0.377)",
            lambda: f"ti.{self.pick('max', 'min')}({inner()}, {inner()} + 0.01)",
            lambda: f"({inner()} if {inner()} > 0.1 else {inner()})",
            lambda: f"ti.Vector([{inner()}, {inner()}]).norm(0.1)",
            lambda: f"turned(ti.Vector([{inner()}, {inner()}]), {inner()}).{self.pick('x', 'y', 'sum()')}",
            lambda: f"soft({inner()}, {inner()})",
            lambda: f"{self.pick('curve.at', 'steeper')}({inner()})",
            lambda: f"product({inner()}, {inner()})",
        )()

    def bounded(self, names: list[str], depth: int = 2) -> str:
        return f"ti.{self.pick('sin', 'tanh')}({self.expression(names, depth)})"

    # statements

    def block(self, names: list[str], indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        names, known = list(names), len(self.vectors)
        for _ in range(self.random.randint(1, 3)):
            simple = [self.assign, self.assign, self.update, self.write, self.write, self.accumulate, self.vector]
            nested = [self.branch, self.branch, self.loop, self.loop, self.while_loop, self.unrolled] if depth else []
            lines += self.pick(*simple, *nested)(names, indent, depth)
        del self.vectors[known:]
        return lines

    def assign(self, names: list[str], indent: str, depth: int) -> list[str]:
        value, new = self.expression(names), self.name()
        names.append(new)
        return [f"{indent}{new} = {value}"]

    def update(self, names: list[str], indent: str, depth: int) -> list[str]:
        if not names:
            return self.assign(names, indent, depth)
        return [f"{indent}{self.pick(*names)} {self.pick('=', '+=', '-=')} {self.bounded(names)}"]

    def vector(self, names: list[str], indent: str, depth: int) -> list[str]:
        """A local vector, or a write to one at an index known at run time only."""
        if self.vectors and self.chance(0.7):
            place = f"{self.pick(*self.vectors)}[{self.component()}]"
            return [f"{indent}{place} {self.pick('=', '=', '+=')} {self.bounded(names)}"]
        values = ", ".join([self.bounded(names, 1) for _ in range(3)])
        self.vectors.append(self.name("v"))
        return [f"{indent}{self.vectors[-1]} = ti.Vector([{values}])"]

    def write(self, names: list[str], indent: str, depth: int) -> list[str]:
        """Overwrite something; in parallel loops an element of this iteration."""
        fields = self.usable(OWN, ANY)
        if not fields:
            return self.accumulate(names, indent, depth)
        if self.chance(0.1) and self.ways["k"] != READ:
            place = f"k[{self.indices[0] if self.ways['k'] == OWN else self.line()}]"
            return [f"{indent}{place} = ({place} + {self.random.randint(1, 3)}) % N"]
        name = self.pick(*fields)
        place = self.place(name, self.ways[name])
        new = self.name()
        return self.pick(
            lambda: [f"{indent}{place} = {self.bounded(names)}"],
            lambda: [f"{indent}{place} = 0.6 * {place} + 0.5 * {self.bounded(names)}"],
            lambda: [f"{indent}{place} {self.pick('+=', '-=')} {self.bounded(names)}"],
            lambda: [f"{indent}{place} *= 0.9 * {self.bounded(names)}"],
            lambda: [f"{indent}ti.atomic_{self.pick('max', 'min', 'mul')}({place}, {self.bounded(names)})"],
            lambda: [
                f"{indent}{new} = ti.atomic_{self.pick('add', 'sub', 'max', 'min')}({place}, {self.bounded(names)})",
                f"{indent}{self.pick(*names, new)} += 0.5 * {new}",
            ],
        )()

    def accumulate(self, names: list[str], indent: str, depth: int) -> list[str]:
        """Add to something that all iterations add to."""
        target = self.pick(*self.usable(SUM, ANY), "loss")
        place = "loss[None]" if target == "loss" else self.place(target, self.ways[target])
        return [f"{indent}{place} {self.pick('+=', '-=')} {self.bounded(names)}"]

    def branch(self, names: list[str], indent: str, depth: int) -> list[str]:
        condition = f"{self.expression(names)} > {self.random.uniform(-0.5, 0.5):.3f}"
        if self.indices and self.chance(0.3):
            condition = f"(k[{self.indices[0]}] + {self.indices[-1]}) % 2 == {self.pick('0', '1')}"
        lines = [f"{indent}if {condition}:", *self.block(names, indent + "    ", depth - 1)]
        if self.chance(0.5):
            lines += [f"{indent}else:", *self.block(names, indent + "    ", depth - 1)]
        return lines

    def loop(self, names: list[str], indent: str, depth: int) -> list[str]:
        step = self.name()
        bounds = ["2", "3", "iterations"]
        if self.indices:
            # What the body may change is no bound that the reader could rely on, but a kernel may use it all the same.
            bounds += [f"k[{self.indices[0]}]", self.indices[0], f"{self.indices[0]}, N"]
        lines = [f"{indent}for {step} in range({self.pick(*bounds)}):"]
        carried = self.pick(*names) if names else ""
        if carried:
            lines.append(f"{indent}    {carried} = ti.tanh({carried} * 0.7 + {self.expression(names)}) + 0.1 * {step}")
        lines += self.block(names, indent + "    ", depth - 1)
        if carried and self.chance(0.3):
            lines.append(f"{indent}    if {carried} > 0.9:\n{indent}        {self.pick('break', 'continue')}")
            lines.append(f"{indent}    {carried} += 0.05")
        return lines

    def while_loop(self, names: list[str], indent: str, depth: int) -> list[str]:
        if not names:
            return self.assign(names, indent, depth)
        iteration, carried = self.name(), self.pick(*names)
        return [
            f"{indent}{iteration} = 0",
            f"{indent}while {iteration} < 3 and {carried} < 1.7:",
            f"{indent}    {iteration} += 1",
            f"{indent}    {carried} = 0.8 * {carried} + 0.3 * ti.cos({self.expression(names)})",
            *self.block(names, indent + "    ", depth - 1),
        ]

    def unrolled(self, names: list[str], indent: str, depth: int) -> list[str]:
        return [f"{indent}for _ in ti.static(range(2)):", *self.block(names, indent + "    ", 0)]

    # kernels and programs

    def piece(self, names: list[str], alone: bool) -> list[str]:
        """One loop at the top of a kernel, or some statements there. `alone`: nothing else is in this kernel."""
        kind = self.random.random()
        if kind < 0.15:
            self.indices = ()
            self.choose_ways(False)
            if not alone:
                self.ways["d"] = READ
            lines = self.write(names, "    ", 0)
            if self.chance(0.5):
                lines += self.assign(names, "    ", 0)
            return lines
        serial, two = kind < 0.35, self.chance(0.2)
        self.indices = (self.name("i"), self.name("j")) if two else (self.name("i"),)
        self.choose_ways(not serial)
        if not alone:
            self.ways["d"] = READ
        domain = (
            f"ti.ndrange(N, {COLUMNS})"
            if two
            else self.pick("range(N)", "a", "d", "range(iterations, N)", "range(N - iterations)")
        )
        head = ["    ti.loop_config(serialize=True)"] if serial else []
        start, inner = self.name("s"), list(names)
        body = [f"        {start} = {self.expression(inner)}"]
        # In a parallel loop what lies outside may only be read.
        body += self.block([start], "        ", 2)
        body += self.write([start], "        ", 0)
        return [*head, f"    for {', '.join(self.indices)} in {domain}:", *body]

    def kernel(self, number: int) -> str:
        names: list[str] = []
        lines: list[str] = []
        count = self.pick(1, 1, 2, 3)
        for _ in range(count):
            lines += self.piece(names, count == 1)
        head = f"def kernel{number}(iterations: ti.i32, amount: ti.f64, d: ti.types.ndarray(ndim=1)):"
        return "\n".join(["@ti.kernel", head, *lines, ""])

    def between(self) -> str:
        """Something that Python does to memory between two launches.

        What it writes into single elements is no part of the tape. Where it has read the element before, the gradient
        passes by: then it only shifts it.
        """
        field, number = self.pick("a", "b", "c", "h"), f"{self.random.uniform(-1, 1):.2f}"
        return self.pick(
            f"k[{self.random.randrange(N)}] = {self.random.randrange(N)}",
            f"{field}[{self.random.randrange(N)}] += {number}",
            f"{field}[{self.random.randrange(N)}] = {number}",
            f"w[{self.random.randrange(N)}] = ti.Vector([{number}, 0.4])",
            f"w[{self.random.randrange(N)}] += ti.Vector([{number}, 0.4])",
            f"w[{self.random.randrange(N)}][{self.random.randrange(2)}] = {number}",
            f"w[{self.random.randrange(N)}].y += {number}",
            f"m[None] += {number}",
            f"{field}.fill({number})",
            f"m.fill({number})",
            f"g.fill({number})",
            f"{field}.copy_from({self.pick('a', 'b', 'c', 'h')})",
            f"d.fill({number})",
        )

    def program(self) -> tuple[str, list[str]]:
        """The text of the kernels, and the calls."""
        kernels = [self.kernel(n) for n in range(self.random.randint(1, 3))]
        calls = [
            f"kernel{self.random.randrange(len(kernels))}("
            f"{self.random.randint(0, 3)}, {self.random.uniform(-1, 1):.2f}, {self.pick('d', 'd', 'e')})"
            for _ in range(self.random.randint(1, 5))
        ]
        for at in range(len(calls), 0, -1):
            if self.chance(0.25):
                calls.insert(at, self.between())
        # Everything is used before anything may replace it, and again at the end.
        frame = "@ti.kernel\ndef {}(d: ti.types.ndarray(ndim=1)):\n    for i in range(N):\n        loss[None] += {}\n"
        terms = (
            "a[i] * b[i] - 0.3 * c[i] ** 2 + w[i].sum() * a[i] + d[i] * p[i].s + g[i, 0] * g[i, 2] + m[None] * p[i].v.x"
        )
        begin = frame.format("begin", terms)
        terms = "(a[i] + 0.5 * b[i] * c[i]) * (i + 1) + w[i].norm_sqr() * 0.3 + g[i, 1] * m[None] + g[i, i % 3] * d[i]"
        end = frame.format("end", terms + " + p[i].s * p[i].v[0] - p[i].v[1] + 0.7 * h[i]")
        return "\n".join([FUNCTIONS, begin, *kernels, end]), ["begin(d)", "begin(e)", *calls, "end(d)", "end(e)"]
