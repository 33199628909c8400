"""Random programs that are kernels and plain Python at once, with helper functions of every kind: both must compute the
same.
"""

import functools
import linecache
import random
import types
from typing import Any

import pytest

import tinote as ti

INTEGERS = ("i", "j", "k")
NUMBERS = ("x", "y", "z")


class Writer:
    """Writes functions of two integers and two floats. Integers stay small, so that nothing overflows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.inside = 0  # how many loops are around
        self.counters: list[str] = []
        self.helpers: list[tuple[str, bool]] = []  # how each is called, and whether it gives an integer

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def integer(self, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.25:
            return self.pick(*INTEGERS, *self.counters, str(self.random.randint(-9, 9)))
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
            f"twist({a} % 50, {b} % 50)",
            *self.calls(depth, True),
        )

    def number(self, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.25:
            return self.pick(*NUMBERS, f"{self.random.uniform(-3, 3):.2f}")
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
            *self.calls(depth, False),
        )

    def calls(self, depth: int, integer: bool) -> list[str]:
        """A call of a helper function, if there is one."""
        found = [helper for helper, gives in self.helpers if gives is integer]
        if not found or depth < 2:
            return []
        arguments = [
            *(f"{self.integer(1)} % 1000" for _ in INTEGERS),
            *(f"({self.number(1)}) % 10.4837" for _ in NUMBERS),
        ]
        return [f"{self.pick(*found)}({', '.join(arguments)})"] * 3

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
        )

    def block(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.25:
                lines.append(f"{indent}{self.pick(*INTEGERS)} = ({self.integer()}) % 1000 - 500")
            elif kind < 0.45:
                lines.append(f"{indent}{self.pick(*NUMBERS)} = ({self.number()}) % 10.4837 - 5.0")
            elif kind < 0.55:
                name = self.pick(*INTEGERS)
                lines.append(f"{indent}{name} {self.pick('+=', '-=', '*=', '^=', '|=', '&=')} {self.integer(1)}")
                lines.append(f"{indent}{name} %= 997")
            elif kind < 0.6:
                a, b = self.random.sample(INTEGERS, 2)
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
            self.counters.append(name)
            lines = [f"{indent}for {name} in {domain}:", *self.block(indent + "    ", depth - 1)]
            self.counters.pop()
        else:
            # Counted first, so that `continue` does not make it endless.
            lines = [f"{indent}{name} = 0", f"{indent}while {name} < {bound} and {self.condition(1)}:"]
            lines += [f"{indent}    {name} += 1", *self.block(indent + "    ", depth - 1)]
        self.inside -= 1
        return lines

    def helper(self, number: int) -> list[str]:
        """A function that the program calls, of one of the kinds of things that can be called."""
        integer = self.pick(True, False)
        name, names = f"h{number}", ", ".join([*INTEGERS, *NUMBERS])

        def result() -> str:
            return self.integer() if integer else self.number()

        def function(head: str, indent: str = "") -> list[str]:
            body = self.block(indent + "    ", 1) if self.random.random() < 0.6 else []
            if self.random.random() < 0.3:
                body += [f"{indent}    if {self.condition()}:", f"{indent}        return {result()}"]
            return [f"{indent}def {head}:", *body, f"{indent}    return {result()}"]

        kind = self.pick(
            "def", "func", "lambda", "method", "static", "class", "called", "partial", "closure", "wrapped"
        )
        call = name
        match kind:
            case "def":
                lines = function(f"{name}({names})")
            case "func":
                lines = ["@ti.func", *function(f"{name}({names})")]
            case "lambda":
                lines = [f"{name} = lambda {names}: {result()}"]
            case "method" | "called":
                method = "__call__" if kind == "called" else "m"
                lines = ["class C:", *function(f"{method}(self, {names})", "    "), f"{name} = C()"]
                call = name if kind == "called" else f"{name}.m"
            case "static":
                lines = [f"class C{number}:", "    @staticmethod", *function(f"m({names})", "    ")]
                call = f"C{number}.m"
            case "class":
                lines = [f"class C{number}:", "    @classmethod", *function(f"m(cls, {names})", "    ")]
                call = f"C{number}.m"
            case "partial":
                fixed = self.random.randint(-9, 9)
                lines = [*function(f"p{number}(n, {names}, *, c=3)")]
                lines[-1] += " + n * c"
                lines += [f"{name} = functools.partial(p{number}, {fixed}, c={self.random.randint(-9, 9)})"]
            case "closure":
                fixed = self.random.randint(-9, 9)
                lines = ["def make(n):", *function(f"inner({names})", "    "), "    return inner"]
                lines[-2] += " + n"
                lines += [f"{name} = make({fixed})"]
            case _:
                wrapper = [
                    "def wrap(f):",
                    "    @functools.wraps(f)",
                    "    def inner(*args):",
                    "        return f(*args)",
                ]
                lines = [*wrapper, "    return inner", "@wrap", *function(f"{name}({names})")]
        self.helpers.append((call, integer))
        return [*lines, ""]

    def inside_helper(self) -> list[str]:
        """A function in the kernel, which sees the variables that are not its parameters."""
        integer = self.pick(True, False)
        self.helpers.append(("inner", integer))
        known, self.helpers = self.helpers, []
        result = self.integer() if integer else self.number()
        if self.pick(True, False):
            lines = [f"    inner = lambda i, b, k, x, d, z: {result}"]  # `j` and `y` are those of the kernel
        else:
            lines = [f"    def inner({', '.join([*INTEGERS, *NUMBERS])}):", *self.block("        ", 1)]
            lines += [f"        return {result}"]
        self.helpers = known
        return lines

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
        helpers = [line for number in range(self.random.randint(0, 3)) for line in self.helper(number)]
        body = ["    k = i - j", "    z = x * y"]
        if self.random.random() < 0.3:
            body += self.inside_helper()
        body += [*self.block("    ", 3), *self.block("    ", 3)]
        result = "    return (i * 3 + j * 5 + k * 7) + (x + 2.0 * y + 4.0 * z)"
        decorator = self.pick(["@ti.func"], [])
        return "\n".join([*decorator, *twist, "", *helpers, "def program(i, j, x, y):", *body, result, ""])


def as_python(text: str) -> Any:
    """The function of a program."""
    space: dict[str, Any] = {"ti": types.SimpleNamespace(func=lambda function: function), "functools": functools}
    exec(compile(text, "reference", "exec"), space)
    return space["program"]


def as_kernel(text: str) -> str:
    """The same text in the kernel language. What changes its parameters copies them first."""
    signature = "def program(a: ti.i64, b: ti.i64, c: ti.f64, d: ti.f64) -> ti.f64:\n    i, j, x, y = a, b, c, d"
    kernel = text.replace("def program(i, j, x, y):", "@ti.kernel\n" + signature)
    # A loop that is in no other one is parallel in a kernel; these are to run in order.
    lines: list[str] = []
    for line in kernel.splitlines():
        if line.lstrip().startswith("for "):
            lines.append(line[: -len(line.lstrip())] + "ti.loop_config(serialize=True)")
        lines.append(line)
    return "\n".join(lines) + "\n"


def check(seed: int) -> None:
    # Approximations may decide a jump of `//` or `%` differently, so they are left out.
    ti.init(default_fp=ti.f64, default_ip=ti.i64, fast_math=False, opt_level=seed % 4)
    text = Writer(seed).program()
    python = as_python(text)
    source = as_kernel(text)
    file = f"random_python_{seed}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    compiled: dict[str, Any] = {"ti": ti, "functools": functools}
    exec(compile(source, file, "exec"), compiled)
    numbers = random.Random(seed)
    for _ in range(6):
        arguments = (numbers.randint(-50, 50), numbers.randint(-50, 50), numbers.uniform(-5, 5), numbers.uniform(-5, 5))
        expected = python(*arguments)
        found = compiled["program"](*arguments)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), f"seed {seed}, {arguments}\n{source}"


def test_random_programs_agree_with_python(random_programs: range) -> None:
    for seed in random_programs[::4]:
        check(seed)
