"""Random programs that are kernels and plain Python at once: both must compute the same, to the last bit.

They call functions of every kind that a kernel takes: plain ones, `ti.func`s, lambdas, methods, closures, partial
applications, operators. Others consist of `ti.real_func`s that call themselves and each other.
"""

import functools
import linecache
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tinote as ti

INTEGERS = ("i", "j", "k")
NUMBERS = ("x", "y", "z")


class Writer:
    """Writes functions of two integers and two floats. Integers stay small, so that nothing overflows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.inside = 0  # how many loops are around
        self.integers: tuple[str, ...] = INTEGERS
        self.numbers: tuple[str, ...] = NUMBERS
        self.constants: list[str] = []  # integers that are not assigned to
        self.whole: list[Callable[..., str]] = []  # calls of functions that give integers
        self.broken: list[Callable[..., str]] = []  # and of those that give floats

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def integer(self, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.25:
            return self.pick(*self.integers, *self.constants, str(self.random.randint(-9, 9)))
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} // (abs({b}) + 1))",
            f"({a} // -(abs({b}) + 2))",
            f"({a} % (abs({b}) + 1))",
            f"({a} % -(abs({b}) + 3))",
            f"({a} & {b})",
            f"({a} | {b})",
            f"({a} ^ {b})",
            f"(~{a})",
            f"(-{a})",
            f"({a} >> (abs({b}) % 5))",
            f"({a} << (abs({b}) % 3))",
            f"min({a}, {b})",
            f"max({a}, {b}, {self.integer(0)})",
            f"({a} if {self.condition(depth - 1)} else {b})",
            f"int({self.number(depth - 1)})",
            f"operator.{self.pick('add', 'sub', 'mul', 'xor', 'and_', 'or_')}({a}, {b})",
            f"math.gcd({self.random.randint(1, 60)}, {self.random.randint(1, 60)})",
            *[call(f"{a} % 50", f"{b} % 50", self.number(0)) for call in self.whole],
        )

    def number(self, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.25:
            return self.pick(*self.numbers, f"{self.random.uniform(-3, 3):.2f}")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / (abs({b}) + 1.5))",
            f"({a} % (abs({b}) + 1.2671))",
            f"({a} // (abs({b}) + 1.2671))",
            f"(-{a})",
            f"abs({a})",
            f"min({a}, {b})",
            f"max({a}, {b})",
            f"({a} if {self.condition(depth - 1)} else {b})",
            f"float({self.integer(depth - 1)})",
            f"({a} + {self.integer(depth - 1)})",
            f"({self.integer(depth - 1)} / 7)",
            f"({a}) ** 2",
            f"operator.{self.pick('add', 'sub', 'mul')}({a}, {b})",
            f"operator.truediv({a}, abs({b}) + 1.5)",
            f"np.float64({self.random.uniform(-3, 3):.2f}) * {a}",
            *[call(f"{self.integer(0)} % 50", f"{self.integer(0)} % 50", a) for call in self.broken],
        )

    def condition(self, depth: int = 2) -> str:
        if not depth:
            return f"{self.integer(0)} {self.pick('<', '<=', '==', '!=', '>', '>=')} {self.integer(0)}"
        a, b, c = self.integer(depth - 1), self.integer(depth - 1), self.integer(0)
        return self.pick(
            f"{a} < {b}",
            f"{self.number(depth - 1)} > {self.number(depth - 1)}",
            f"{a} <= {c} < {b}",
            f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
            f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
            f"not ({self.condition(depth - 1)})",
            f"{a} % 2 == 0",
            f"operator.{self.pick('lt', 'ge', 'ne')}({a}, {b})",
        )

    def block(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.25:
                lines.append(f"{indent}{self.pick(*self.integers)} = ({self.integer()}) % 1000 - 500")
            elif kind < 0.45:
                lines.append(f"{indent}{self.pick(*self.numbers)} = ({self.number()}) % 10.4837 - 5.0")
            elif kind < 0.55:
                name = self.pick(*self.integers)
                lines.append(f"{indent}{name} {self.pick('+=', '-=', '*=', '^=', '|=', '&=')} {self.integer(1)}")
                lines.append(f"{indent}{name} %= 997")
            elif kind < 0.6:
                a, b = self.random.sample(self.integers, 2)
                lines.append(f"{indent}{a}, {b} = {b}, ({a} + {self.integer(1)}) % 300")
            elif kind < 0.75 and depth:
                lines.append(f"{indent}if {self.condition()}:")
                lines += self.block(indent + "    ", depth - 1)
                if self.random.random() < 0.4:
                    lines.append(f"{indent}elif {self.condition()}:")
                    lines += self.block(indent + "    ", depth - 1)
                if self.random.random() < 0.5:
                    lines.append(f"{indent}else:")
                    lines += self.block(indent + "    ", depth - 1)
            elif kind < 0.93 and depth:
                lines += self.loop(indent, depth)
            elif self.inside:
                lines.append(f"{indent}if {self.condition()}:")
                lines.append(f"{indent}    {self.pick('break', 'continue')}")
        return lines or [f"{indent}pass"]

    def loop(self, indent: str, depth: int) -> list[str]:
        self.loops += 1
        name = f"n{self.loops}"
        bound = f"abs({self.integer(1)}) % 6"
        self.inside += 1
        if self.random.random() < 0.65:
            domain = self.pick(
                f"range({bound})",
                f"range(-2, {bound})",
                f"range({bound}, -3, -2)",
                f"range({self.integer(1)} % 5, {bound}, 2)",
            )
            self.constants.append(name)
            lines = [f"{indent}for {name} in {domain}:", *self.block(indent + "    ", depth - 1)]
            self.constants.pop()
        else:
            # Counted first, so that `continue` does not make it endless.
            lines = [f"{indent}{name} = 0", f"{indent}while {name} < {bound} and {self.condition(1)}:"]
            lines += [f"{indent}    {name} += 1", *self.block(indent + "    ", depth - 1)]
        self.inside -= 1
        return lines

    def function(self, name: str) -> list[str]:
        """A function of two integers and a float, of a random kind; notes how it is called."""
        self.integers, self.numbers = ("i", "j"), ("x",)
        kind = self.pick("plain", "func", "default", "lambda", "method", "closure", "partial")
        self.constants = {"method": ["self.rate"], "closure": ["c"]}.get(kind, [])
        whole = self.random.random() < 0.6
        result = f"({self.integer()}) % 1000 - 500" if whole else f"({self.number()}) % 10.4837 - 5.0"

        def defined(head: str, indent: str = "") -> list[str]:
            return [f"{indent}def {head}:", *self.block(indent + "    ", 1), f"{indent}    return {result}"]

        match kind:
            case "plain":
                lines = defined(f"{name}(i, j, x)")
            case "func":
                lines = ["@ti.func", *defined(f"{name}(i, j, x)")]
            case "default":
                lines = defined(f"{name}(i, *, x, j=7)")
            case "lambda":
                lines = [f"{name} = lambda i, j, x: {result}"]
            case "method":
                lines = ["class Owner:", "    rate = 4", *defined("apply(self, i, j, x)", "    "), f"{name} = Owner()"]
            case "closure":
                lines = [f"def make_{name}(c):", *defined("inner(i, j, x)", "    "), "    return inner"]
                lines.append(f"{name} = make_{name}(-3)")
            case "partial":
                lines = [*defined(f"whole_{name}(i, j, x)"), f"{name} = functools.partial(whole_{name}, 7)"]

        def call(i: str, j: str, x: str) -> str:
            match kind:
                case "default":
                    return f"{name}({i}, x={x})"
                case "method":
                    return f"{name}.apply({i}, {j}, {x})"
                case "partial":
                    return f"{name}({j}, x={x})"
                case _:
                    return f"{name}({i}, {j}, {x})"

        (self.whole if whole else self.broken).append(call)
        self.integers, self.numbers, self.constants = INTEGERS, NUMBERS, []
        return lines

    def recursion(self) -> str:
        """A program of two functions that call themselves and each other, as deep as their last argument says."""
        name, other = "f", "g"
        self.whole = [lambda i, j, x: f"{name}({i}, {j}, {x}, fuel - 1)"] * 8
        self.broken = [lambda i, j, x: f"{other}({i}, {j}, {x}, fuel - 1)"] * 8
        self.integers, self.numbers, self.constants = ("i", "j"), ("x", "y"), ["fuel"]
        lines: list[str] = []
        for function, result, least in ((name, "ti.i64", "i - j"), (other, "ti.f64", "x * 0.5")):
            lines += ["@ti.real_func"]
            lines += [f"def {function}(i: ti.i64, j: ti.i64, x: ti.f64, fuel: ti.i64) -> {result}:"]
            lines += ["    if fuel <= 0:", f"        return {least}", "    y = x - i", *self.block("    ", 2)]
            again = f"({self.integer(1)}) % 1000 - 500" if function == name else f"({self.number(1)}) % 10.4837 - 5.0"
            if self.random.random() < 0.5:
                lines += [f"    if {self.condition(1)}:", f"        return {again}"]
            lines += [f"    return {self.pick(again, f'{function}(j % 40, i % 40, y, fuel - 1)')}", ""]
        body = ["def program(i, j, x, y):", "    return f(i, j, x, 2) + g(j, i, y, 2)", ""]
        return "\n".join([*lines, *body])

    def program(self) -> str:
        twist = [
            "def twist(a, b):",
            "    if a > b:",
            f"        return {self.pick('a - b', 'a * b % 7', 'a // (abs(b) + 1)')}",
            "    for n in range(5):",
            f"        if (a + n) % {self.random.randint(2, 5)} == 1:",
            "            return n - b",
            f"    return a {self.pick('+', '^', '|')} b",
        ]
        self.whole.append(lambda i, j, _x: f"twist({i}, {j})")
        functions = [line for k in range(self.random.randint(0, 2)) for line in [*self.function(f"f{k}"), ""]]
        body = ["    k = i - j", "    z = x * y", *self.block("    ", 3), *self.block("    ", 3)]
        result = "    return (i * 3 + j * 5 + k * 7) + (x + 2.0 * y + 4.0 * z)"
        return "\n".join([*twist, "", *functions, "def program(i, j, x, y):", *body, result, ""])


MODULES = {"functools": functools, "math": math, "np": np, "operator": operator}


def as_python(text: str) -> Any:
    """The function of a program."""
    space: dict[str, Any] = {**MODULES, "ti": ti}
    undecorated = text.replace("@ti.func\n", "").replace("@ti.real_func\n", "")
    exec(compile(undecorated, "reference", "exec"), space)
    return space["program"]


def as_kernel(text: str) -> str:
    """The same text in the kernel language. What changes its parameters copies them first."""
    signature = "def program(a: ti.i64, b: ti.i64, c: ti.f64, d: ti.f64) -> ti.f64:\n    i, j, x, y = a, b, c, d"
    kernel = text.replace("def program(i, j, x, y):", "@ti.kernel\n" + signature)
    # A loop that is in no other one is parallel in a kernel; these are to run in order.
    lines: list[str] = []
    for line in kernel.splitlines():
        if line.lstrip().startswith("for ") and "@ti.kernel" in lines:
            lines.append(line[: -len(line.lstrip())] + "ti.loop_config(serialize=True)")
        lines.append(line)
    return "\n".join(lines) + "\n"


def check(seed: int, write: Callable[[Writer], str] = Writer.program) -> None:
    # Arithmetic as IEEE has it: in loops, a difference of a rounding would grow to any size. Each fourth seed is used.
    ti.init(default_fp=ti.f64, default_ip=ti.i64, fast_math=False, opt_level=seed // 4 % 4)
    text = write(Writer(seed))
    python = as_python(text)
    source = as_kernel(text)
    file = f"random_python_{seed}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    compiled: dict[str, Any] = {**MODULES, "ti": ti}
    exec(compile(source, file, "exec"), compiled)
    numbers = random.Random(seed)
    for _ in range(6):
        arguments = (numbers.randint(-50, 50), numbers.randint(-50, 50), numbers.uniform(-5, 5), numbers.uniform(-5, 5))
        expected = python(*arguments)
        found = compiled["program"](*arguments)
        assert found == expected, f"seed {seed}, {arguments}\n{source}"


def test_random_programs_agree_with_python(random_programs: range) -> None:
    for seed in random_programs[::4]:
        check(seed)


def test_random_recursion_agrees_with_python(random_programs: range) -> None:
    for seed in random_programs[::16]:
        check(seed, Writer.recursion)
