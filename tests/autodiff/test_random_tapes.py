"""Random programs in the user's language against differences: several kernels under a tape, with overwrites between."""

import linecache
import random
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

N = 4
FIELDS = ("a", "b", "c")


class Writer:
    """Writes kernels over the fields `a`, `b`, `c` (numbers), `w` (vectors of 2), `k` (integers below N) and `loss`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def index(self) -> str:
        return self.pick("i", "i", f"(i + {self.random.randint(1, 3)}) % N", "k[i]", "k[(i + 1) % N]")

    def expression(self, names: list[str], fields: tuple[str, ...], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.2:
            leaf = self.random.random()
            if names and leaf < 0.45:
                return self.pick(*names)
            if fields and leaf < 0.85:
                field = self.pick(*fields)
                return (
                    f"w[{self.index()}][{self.pick('0', '1', 'k[i] % 2')}]"
                    if field == "w"
                    else f"{field}[{self.index()}]"
                )
            return f"{self.random.uniform(-1.5, 1.5):.3f}"

        def inner() -> str:
            return self.expression(names, fields, depth - 1)

        return self.pick(
            lambda: f"({inner()} + {inner()})",
            lambda: f"({inner()} - {inner()})",
            lambda: f"({inner()} * {inner()})",
            lambda: f"({inner()} / (1.5 + ({inner()}) ** 2))",
            lambda: f"ti.{self.pick('sin', 'cos', 'tanh')}({inner()})",
            lambda: f"ti.exp(0.3 * ti.sin({inner()}))",
            lambda: f"ti.sqrt(1.2 + ({inner()}) ** 2)",
            lambda: f"ti.{self.pick('max', 'min')}({inner()}, {inner()} + 0.01)",
            lambda: f"({inner()} if {inner()} > 0.1 else {inner()})",
            lambda: f"ti.Vector([{inner()}, {inner()}]).norm(0.1)",
        )()

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def block(self, names: list[str], fields: tuple[str, ...], indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        names = list(names)

        def value() -> str:
            return self.expression(names, fields)

        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.35 or not names:
                new = self.name()
                lines.append(f"{indent}{new} = {value()}")
                names.append(new)
            elif kind < 0.55:
                lines.append(f"{indent}{self.pick(*names)} {self.pick('=', '+=', '-=')} {value()}")
            elif kind < 0.7 and depth:
                lines.append(f"{indent}if {value()} > {self.random.uniform(-0.5, 0.5):.3f}:")
                lines += self.block(names, fields, indent + "    ", depth - 1)
                if self.random.random() < 0.5:
                    lines.append(f"{indent}else:")
                    lines += self.block(names, fields, indent + "    ", depth - 1)
            elif kind < 0.9 and depth:
                index = self.name()
                lines.append(f"{indent}for {index} in range({self.pick('2', '3', 'k[i]', 'i', 'turns')}):")
                carried = self.pick(*names)
                lines.append(f"{indent}    {carried} = ti.tanh({carried} * 0.7 + {value()}) + 0.1 * {index}")
                lines += self.block(names, fields, indent + "    ", depth - 1)
                if self.random.random() < 0.3:
                    lines.append(f"{indent}    if {carried} > 1.3:\n{indent}        {self.pick('break', 'continue')}")
                    lines.append(f"{indent}    {carried} += 0.05")
            elif depth:
                turn = self.name()
                carried = self.pick(*names)
                lines += [
                    f"{indent}{turn} = 0",
                    f"{indent}while {turn} < 3 and {carried} < 1.7:",
                    f"{indent}    {carried} = 0.8 * {carried} + 0.3 * ti.cos({value()})",
                    f"{indent}    {turn} += 1",
                ]
        return lines or [f"{indent}pass"]

    def kernel(self, number: int) -> str:
        """Reads some fields, and stores or accumulates into another one at its own index."""
        target = self.pick(*FIELDS, "loss", "w")
        fields = tuple(f for f in (*FIELDS, "w") if f != target)
        body = ["        s = " + self.expression([], fields), *self.block(["s"], fields, "        ", 2)]
        if target == "loss":
            body.append(f"        loss[None] += s * {self.expression(['s'], fields, 1)}")
        elif target == "w":
            body.append(
                f"        w[i] {self.pick('=', '+=')} ti.Vector([s, ti.sin(s) * {self.expression(['s'], fields, 1)}])"
            )
        else:
            scatter = self.random.random() < 0.4
            body.append(
                f"        {target}[{self.index() if scatter else 'i'}] += ti.sin(s)"
                if scatter
                else f"        {target}[i] {self.pick('=', '+=')} ti.sin(s) + s * 0.2"
            )
        return "\n".join(["@ti.kernel", f"def kernel{number}(turns: ti.i32):", "    for i in range(N):", *body, ""])

    def program(self) -> tuple[str, list[str]]:
        kernels = [self.kernel(n) for n in range(self.random.randint(2, 4))]
        calls = [
            f"kernel{self.random.randrange(len(kernels))}({self.random.randint(0, 3)})"
            for _ in range(self.random.randint(2, 6))
        ]
        for at in range(len(calls), 0, -1):
            if self.random.random() < 0.25:
                field = self.pick(*FIELDS)
                calls.insert(
                    at,
                    self.pick(
                        f"k[{self.random.randrange(N)}] = {self.random.randrange(N)}",
                        f"{field}.fill(0.25)",
                        f"{field}.copy_from({self.pick(*FIELDS)})",
                    ),
                )
        # Every field is used before Python may replace it: its gradient is that of the values it has at the start.
        frame = "@ti.kernel\ndef {}():\n    for i in range(N):\n        loss[None] += {}\n"
        begin = frame.format("begin", "a[i] * b[i] - 0.3 * c[i] ** 2 + w[i].sum() * a[i]")
        end = frame.format("end", "(a[i] + 0.5 * b[i] * c[i]) * (i + 1) + w[i].norm_sqr() * 0.3")
        return "\n".join([begin, *kernels, end]), ["begin()", *calls, "end()"]


def differentiate(seed: int) -> str:
    """Run one program. Gives "right" or "refused"; anything else is a failure."""
    ti.init(default_fp=ti.f64, num_threads=1 + seed % 2)
    space: dict[str, Any] = {"ti": ti, "N": N}
    for name in FIELDS:
        space[name] = ti.field(ti.f64, shape=N, needs_grad=True, name=name)
    space["w"] = ti.Vector.field(2, ti.f64, shape=N, needs_grad=True, name="w")
    space["k"] = ti.field(ti.i32, shape=N, name="k")
    loss = space["loss"] = ti.field(ti.f64, shape=(), needs_grad=True, name="loss")
    text, calls = Writer(seed).program()
    file = f"random_tape_{seed}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
    run = compile("\n".join(calls), "calls", "exec")
    numbers = np.random.default_rng(seed)
    start = {name: numbers.uniform(-1, 1, space[name].to_numpy().shape) for name in (*FIELDS, "w")}
    steer = numbers.integers(0, N, N).astype(np.int32)

    def reset(shift: float, direction: dict[str, Any]) -> None:
        for name, value in start.items():
            space[name].from_numpy(value + shift * direction[name])
        space["k"].from_numpy(steer)

    def value(shift: float, direction: dict[str, Any]) -> float:
        reset(shift, direction)
        loss[None] = 0
        exec(run, space)
        return loss[None]

    still = {name: np.zeros_like(v) for name, v in start.items()}
    reset(0, still)
    try:
        with ti.ad.Tape(loss=loss):
            exec(run, space)
    except DifferentiationError:
        return "refused"
    assert loss[None] == pytest.approx(value(0, still), rel=1e-12)
    reset(0, still)
    with ti.ad.Tape(loss=loss):
        exec(run, space)
    gradient = {name: space[name].grad.to_numpy() for name in start}
    jumps = 0
    for _ in range(3):
        direction = {name: numbers.normal(size=v.shape) for name, v in start.items()}
        found = sum((gradient[name] * direction[name]).sum() for name in start)
        differences = [(value(h, direction) - value(-h, direction)) / (2 * h) for h in (1e-5, 3e-6, 1e-6)]
        if abs(differences[0] - differences[2]) > 1e-4 * (1 + abs(differences[2])):
            jumps += 1  # a branch is decided differently on the two sides: there is no derivative to compare with
            continue
        assert found == pytest.approx(differences[1], rel=2e-6, abs=2e-6), f"seed {seed}\n{text}\n" + "\n".join(calls)
    return "right" if jumps < 3 else "no derivative"


def test_random_tapes(random_programs: int) -> None:
    results = [differentiate(seed) for seed in range(max(random_programs // 5, 1))]
    assert results.count("right") > 0.7 * len(results), results
