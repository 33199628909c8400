"""Random control flow: a device function means in a kernel what Python makes of the same text."""

from __future__ import annotations

import linecache
import random
from typing import Any

import pytest

from tests.lang.dialect import func, run, ti
from tinote.ir.types import i32

ARGUMENTS = [(0, 0), (1, 3), (5, 2), (-4, 7)]


class Writer:
    """Writes a function of `a` and `b` with nested loops, conditions and jumps; every loop ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        #: the number of generators that loops may run over, and whether this function is one
        self.generators = 0
        self.yields = False

    def expression(self, names: list[str]) -> str:
        left, right = self.random.choice(names), self.random.choice(names)
        operation = self.random.choice(["+", "-", "^", "&"])
        return f"({left} {operation} {right} + {self.random.randint(-3, 5)})"

    def condition(self, names: list[str]) -> str:
        found = (
            f"{self.expression(names)} % {self.random.randint(2, 5)} {self.random.choice(['==', '!=', '<', '>='])} 1"
        )
        if self.random.random() < 0.2:
            found = f"{found} {self.random.choice(['and', 'or'])} not {self.random.choice(names)} > 2"
        return found

    def block(self, indent: str, names: list[str], depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if self.yields and self.random.random() < 0.3:
                items = f"yield {self.expression(names)}"
                if self.generators and self.random.random() < 0.3:
                    items = f"yield from g{self.random.randrange(self.generators)}({self.random.choice(names)}, t)"
                self.lines.append(indent + items)
            elif kind < 0.4 or depth == 0:
                target = self.random.choice("st")
                form = self.random.choice(["{0} = {1}", "{0} += {1}", "{0} -= {1}"])
                self.lines.append(indent + form.format(target, self.expression(names)))
                self.lines.append(f"{indent}{target} %= 1000")  # Python's integers do not wrap
            elif kind < 0.65:
                self.lines.append(f"{indent}if {self.condition(names)}:")
                self.block(indent + "    ", names, depth - 1, in_loop)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.block(indent + "    ", names, depth - 1, in_loop)
            elif kind < 0.85:
                self.loop(indent, names, depth)
            elif in_loop and self.random.random() < 0.8:
                self.lines.append(indent + self.random.choice(["break", "continue"]))
                return
            else:
                self.lines.append(f"{indent}return" + ("" if self.yields else f" {self.expression(names)}"))
                return

    def loop(self, indent: str, names: list[str], depth: int) -> None:
        self.loops += 1
        index = f"i{self.loops}"
        if self.random.random() < 0.3:
            self.lines += [f"{indent}{index} = 0", f"{indent}while {index} < {self.random.randint(2, 6)}:"]
            self.lines.append(f"{indent}    {index} += 1")
        else:
            if self.generators and self.random.random() < 0.5:
                over = (
                    f"g{self.random.randrange(self.generators)}({self.random.choice(names)}, {self.expression(names)})"
                )
                self.lines.append(f"{indent}for {index} in {over}:")
                self.block(indent + "    ", [*names, index], depth - 1, True)
                return
            bounds = self.random.choice(["4", "1, 6", "5, 0, -2", "a, b"])
            static = bounds != "a, b" and self.random.random() < 0.3
            domain = f"range({bounds})"
            self.lines.append(f"{indent}for {index} in {f'ti.static({domain})' if static else domain}:")
        self.block(indent + "    ", [*names, index], depth - 1, True)

    def function(self) -> str:
        self.lines = ["def f(a, b):", "    s = a", "    t = 1"]
        self.block("    ", ["a", "b", "s", "t"], 4, False)
        self.lines.append("    return s * 7 + t")
        return "\n".join(self.lines) + "\n"

    def generator(self) -> str:
        """A generator, which may loop over those before."""
        self.yields, self.lines = True, [f"def g{self.generators}(a, b):", "    s = a % 1000", "    t = 1"]
        self.block("    ", ["a", "b", "s", "t"], 2, False)
        self.lines.append("    yield s - t")
        self.yields, self.generators = False, self.generators + 1
        return "\n".join(self.lines) + "\n"


class Python:
    """What `ti` is when the text runs as Python."""

    @staticmethod
    def static(front: Any) -> Any:
        return front


@pytest.mark.parametrize("generators", [0, 2])
@pytest.mark.parametrize("seed", [*range(60), 338])
def test_control_flow_is_pythons(seed: int, generators: int):
    writer = Writer(seed)
    text = "".join([*[writer.generator() for _ in range(generators)], writer.function()])
    file = f"jumps_{seed}_{generators}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    plain: dict[str, Any] = {"ti": Python}
    exec(compile(text, file, "exec"), plain)
    compiled: dict[str, Any] = {"ti": ti}
    exec(compile(text, file, "exec"), compiled)
    compiled.update({f"g{number}": func(compiled[f"g{number}"]) for number in range(generators)})
    f = func(compiled["f"])

    def kernel(a: i32, b: i32) -> i32:
        return f(a, b)

    for a, b in ARGUMENTS:
        assert run(kernel, a, b).result == plain["f"](a, b), text
    linecache.cache.pop(file)
