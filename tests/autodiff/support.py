"""Gradients against central differences, by the interpreter alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinote.autodiff.forward import forward
from tinote.autodiff.gradient import reverse
from tinote.ir.buffers import clone_of
from tinote.ir.build import Builder
from tinote.ir.forms import Form
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Atom, Buffer, For, Function, Lit, Var
from tinote.ir.redirect import redirected
from tinote.ir.types import f64, i32
from tinote.ir.verify import verify
from tinote.runtime.memory import Memory

INPUTS = (0.31, 0.72, -0.43, 1.14)
WEIGHTS = (1.0, -2.0, 0.5, 3.0)
DIRECTION = (0.6, -0.3, 1.7, 0.9)


def unfilled(nbytes: int, *, clear: bool = True) -> Memory:
    """Memory as `Memory` gives it, but that no number is in what nobody promised to be zero."""
    found = Memory(nbytes, clear=clear)
    if not clear:
        found.view()[:] = b"\xff" * nbytes
    return found


def pair(name: str, shape: tuple[int, ...]) -> Buffer:
    """A buffer of f64 with a gradient."""
    primal, adjoint = Buffer(name, f64, shape), Buffer(f"{name}.grad", f64, shape)
    tangent = Buffer(f"{name}.dual", f64, shape)
    primal.adjoint, adjoint.primal = adjoint, primal
    primal.tangent, tangent.primal = tangent, primal
    return primal


class Program:
    """A function of the inputs `x` that stores into `y` and accumulates into `total`; loss: total + Σ weight · y."""

    def __init__(self) -> None:
        self.x, self.y, self.total = pair("x", (4,)), pair("y", (4,)), pair("total", ())
        self.fn: Function | None = None

    def memory(self, inputs: Sequence[float]) -> DictMemory:
        memory = DictMemory()
        memory.fill(self.x, list(inputs))
        memory.fill(self.y, [0.0] * 4)
        memory.fill(self.total, 0.0)
        return memory

    def loss(self, inputs: Sequence[float]) -> float:
        assert self.fn is not None
        memory = self.memory(inputs)
        interpret(self.fn, (), memory)
        return memory.nested(self.total) + sum(w * v for w, v in zip(WEIGHTS, memory.nested(self.y), strict=True))

    def gradient(self, inputs: Sequence[float], weights: Sequence[float] = WEIGHTS) -> list[float]:
        """By reverse mode, as a launch would: after the primal, on the memory that it left."""
        assert self.fn is not None
        assert self.x.adjoint and self.y.adjoint and self.total.adjoint
        memory = self.memory(inputs)
        interpret(self.fn, (), memory)
        gradient = reverse(self.fn)
        before = self.memory(inputs)
        for buffer in gradient.live_in_before:
            memory.fill(buffer, before.nested(buffer))
        memory.fill(self.x.adjoint, [0.0] * 4)
        memory.fill(self.y.adjoint, list(weights))
        memory.fill(self.total.adjoint, 1.0)
        interpret(gradient.function, (), memory)
        return memory.nested(self.x.adjoint)

    def gradients(self, inputs: Sequence[float], weights: Sequence[Sequence[float]]) -> list[list[float]]:
        """Several gradients in one reverse run, of total + Σ weight · y with other weights."""
        assert self.fn is not None
        count = len(weights)
        originals = (self.x, self.y, self.total)
        x, y, total = clones = [clone_of(one, adjoint=True, tangent=False, directions=count) for one in originals]
        fn = redirected(self.fn, dict(zip(originals, clones, strict=True)))
        gradient = reverse(fn, directions=count)
        verify(gradient.function, Form.PROMOTED)
        memory, before = DictMemory(), DictMemory()
        for one in (memory, before):
            one.fill(x, list(inputs))
            one.fill(y, [0.0] * 4)
            one.fill(total, 0.0)
        interpret(fn, (), memory)
        for buffer in gradient.live_in_before:
            memory.fill(buffer, before.nested(buffer))
        assert x.adjoint and y.adjoint and total.adjoint
        memory.fill(x.adjoint, [(0.0,) * count] * 4)
        memory.fill(y.adjoint, list(zip(*weights, strict=True)))
        memory.fill(total.adjoint, (1.0,) * count)
        interpret(gradient.function, (), memory)
        found = memory.nested(x.adjoint)
        return [[number[k] for number in found] for k in range(count)]

    def tangent(self, inputs: Sequence[float], direction: Sequence[float]) -> float:
        """The loss's derivative along `direction`, by forward mode; the values must be the primal's own."""
        assert self.fn is not None
        assert self.x.tangent and self.y.tangent and self.total.tangent
        memory = self.memory(inputs)
        memory.fill(self.x.tangent, list(direction))
        memory.fill(self.y.tangent, [0.0] * 4)
        memory.fill(self.total.tangent, 0.0)
        interpret(forward(self.fn).function, (), memory)
        loss = memory.nested(self.total) + sum(w * v for w, v in zip(WEIGHTS, memory.nested(self.y), strict=True))
        assert loss == self.loss(inputs)
        duals = memory.nested(self.y.tangent)
        return memory.nested(self.total.tangent) + sum(w * v for w, v in zip(WEIGHTS, duals, strict=True))

    def tangents(self, inputs: Sequence[float], directions: Sequence[Sequence[float]]) -> list[float]:
        """The loss's derivatives along several directions at once."""
        assert self.fn is not None
        count = len(directions)
        x, y, total = clones = [
            clone_of(one, adjoint=False, tangent=True, directions=count) for one in (self.x, self.y, self.total)
        ]
        memory = DictMemory({x: list(inputs), y: [0.0] * 4, total: 0.0})
        assert x.tangent and y.tangent and total.tangent
        memory.fill(x.tangent, list(zip(*directions, strict=True)))
        fn = redirected(self.fn, dict(zip((self.x, self.y, self.total), clones, strict=True)))
        pushed = forward(fn, directions=count).function
        verify(pushed, Form.PROMOTED)
        interpret(pushed, (), memory)
        sums, duals = memory.nested(total.tangent), memory.nested(y.tangent)
        return [sums[k] + sum(w * dual[k] for w, dual in zip(WEIGHTS, duals, strict=True)) for k in range(count)]

    def differences(self, inputs: Sequence[float], step: float = 1e-5) -> list[float]:
        """Central differences of fourth order."""
        slopes: list[float] = []
        for k in range(len(inputs)):

            def at(offset: float, k: int = k) -> float:
                moved = list(inputs)
                moved[k] += offset
                return self.loss(moved)

            slopes.append((8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step))
        return slopes


def assert_gradient(program: Program, inputs: Sequence[float] = INPUTS, tolerance: float = 1e-7) -> None:
    """Reverse mode equals central differences, component by component, and forward mode equals reverse mode."""
    got, wanted = program.gradient(inputs), program.differences(inputs)
    for g, w in zip(got, wanted, strict=True):
        assert abs(g - w) <= tolerance * (1 + abs(w)), f"gradient {got}, differences {wanted}"
    along = program.tangent(inputs, DIRECTION)
    several = (DIRECTION, DIRECTION[::-1], (0.0, 1.0, 0.0, 0.0))
    assert program.tangents(inputs, several) == [program.tangent(inputs, one) for one in several]
    rows = (WEIGHTS, WEIGHTS[::-1], (0.0, 1.0, 0.0, 0.0))
    assert program.gradients(inputs, rows) == [program.gradient(inputs, one) for one in rows]
    dot = sum(g * d for g, d in zip(got, DIRECTION, strict=True))
    assert abs(along - dot) <= 1e-11 * (1 + abs(dot)), f"forward mode {along}, reverse mode {dot}"


def loop(b: Builder, lo: int, hi: Atom | int, body: Callable[[Var], Any], *, parallel: bool = False) -> None:
    """A loop from `lo` to `hi` around what `body` emits for its index."""
    t = Var(i32, "t")
    with b.region(t) as inside:
        body(t)
    b.emit(For(Lit(lo, i32), Lit(hi, i32) if isinstance(hi, int) else hi, (), inside.close(), parallel=parallel))


def made(build: Callable[[Builder, Program], Any]) -> Program:
    """The program that `build` emits."""
    program, b = Program(), Builder()
    with b.region() as top:
        build(b, program)
    program.fn = Function("f", top.close())
    return program
