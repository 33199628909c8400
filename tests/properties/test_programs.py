"""Random kernels: the generator keeps its promises, and every step of the compiler keeps the meaning.

    pytest tests/properties --random-programs 5000      many more than usual

A failure shows the program at the smallest size at which it still fails, before and after the step at fault.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest

from tests.properties.compare import Direction, difference, run, slope
from tests.properties.generate import Program, generate, generate_meeting, smallest
from tests.properties.shrink import shrunk
from tests.properties.smooth import generate_smooth, generate_uneven
from tinote.compiler import pipeline
from tinote.compiler.passes.analyses.choose_lanes import Machine
from tinote.compiler.pipeline import WATCHING, Snapshot, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT, PRIMAL, TANGENT, Derivative, Request
from tinote.config import Config
from tinote.errors import CompilerBug
from tinote.ir.buffers import clone_of
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, Function
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of
from tinote.ir.redirect import redirected
from tinote.ir.text import equal, show
from tinote.ir.verify import verify

SIZE = 12
SMOOTH_SIZE = 8
#: IEEE arithmetic, so that every step must keep every bit; `debug` runs the verifier after every step; all loops that
#: can run in lanes do, and none is made serial to be watched
PRIMAL_STEPS = tuple([step for step in steps_for(PRIMAL) if step is not WATCHING])
STRICT = Config(debug=True, overflow_check=False, fast_math=False, lanes="always")
UNVERIFIED = Config(fast_math=False)


def few_lanes(config: Config) -> Machine:
    """Vectors so narrow that the short loops of random programs need several, and leave lanes idle at their end."""
    return Machine(128, registers=0, fast_math=config.fast_math)


@pytest.fixture(autouse=True)
def lanes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "machine_of", few_lanes)


def report(make: Callable[[int, int], Program], problem: Callable[[Program], str], seed: int, size: int) -> None:
    """Fail with a small program that has the problem which the program of this seed has, if it has one."""
    if problem(make(seed, size)):
        least = smallest(lambda s: bool(problem(make(seed, s))), size)
        program = shrunk(make(seed, least), problem)
        contents = "".join([f"# {buffer.name} = {held}\n" for buffer, held in program.contents.items()])
        pytest.fail(f"{problem(program)}\n\nin\n{contents}{program}", pytrace=False)


def broken_promise(program: Program) -> str:
    """What the generator promised and did not keep."""
    fn = program.function
    verify(fn)
    again = parse(show(fn))
    if show(again) != show(fn) or not equal(again, fn):
        return "the text form does not read back"
    first = run(program, fn)
    backwards = run(program, fn, order=lambda iterations: reversed(iterations))
    wrong = difference(program, first, backwards)
    return f"depends on the order of iterations: {wrong}" if wrong else ""


def test_programs_keep_their_promises(random_programs: range) -> None:
    for seed in random_programs[::2]:
        report(generate, broken_promise, seed, SIZE)
        report(generate_smooth, broken_smooth_promise, seed, SMOOTH_SIZE)


def broken_smooth_promise(program: Program) -> str:
    verify(program.function)
    assert program.loss is not None
    loss = run(program, program.function).contents[program.loss]
    return "" if math.isfinite(loss) and abs(loss) < 1e6 else f"the loss is {loss}"


def test_the_same_seed_gives_the_same_program() -> None:
    assert str(generate(7)) == str(generate(7))
    assert str(generate_smooth(7)) == str(generate_smooth(7))
    assert len({show(generate(seed).function) for seed in range(50)}) == 50


def stages(snapshot: Snapshot) -> str:
    return f"before\n{show(snapshot.before)}\nafter\n{show(snapshot.after)}"


def changed_meaning(program: Program) -> str:
    """The first step of the compiler after which the interpreter finds another result."""
    wanted = run(program, program.function)
    problems: list[str] = []

    def listen(snapshot: Snapshot) -> None:
        if snapshot.after is snapshot.before or problems:
            return
        wrong = difference(program, wanted, run(program, snapshot.after))
        if wrong:
            problems.append(f"after '{snapshot.step}' it {wrong}\n\n{stages(snapshot)}")

    try:
        run_pipeline(program.function, PRIMAL_STEPS, STRICT, listen)
    except CompilerBug as error:
        problems.append(str(error))
    return problems[0] if problems else ""


def test_every_step_keeps_the_meaning(random_programs: range) -> None:
    for seed in random_programs:
        report(generate, changed_meaning, seed, SIZE)


def test_every_step_keeps_the_order_of_iterations_that_meet(random_programs: range) -> None:
    for seed in random_programs[::2]:
        report(generate_meeting, changed_meaning, seed, SIZE)


def after_primal(program: Program, live_in_before: Iterable[Buffer]) -> DictMemory:
    """What a gradient finds: memory as the program leaves it, but for what it needs as it was before."""
    memory = program.memory()
    interpret(program.function, program.arguments, memory)
    for buffer in live_in_before:
        memory.fill(buffer, program.contents[buffer])
    return memory


def wrong_gradient(program: Program) -> str:
    """Where the gradient, at any stage after differentiation, is not what differences and forward mode say."""
    assert program.loss is not None and program.loss.adjoint is not None
    snapshots: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        if snapshot.step == "reverse" or (snapshots and snapshot.after is not snapshot.before):
            snapshots.append(snapshot)

    try:
        # Lanes may sum up in another order: what is compared here is not exact.
        machine = few_lanes(STRICT)._replace(fast_math=True)
        _, context = run_pipeline(program.function, steps_for(GRADIENT), STRICT, listen, machine=machine)
        tangent, _ = run_pipeline(program.function, steps_for(TANGENT), UNVERIFIED)
    except CompilerBug as error:
        return str(error)
    gradient = context.gradient
    assert gradient is not None
    begin = after_primal(program, gradient.live_in_before)
    # A difference of losses loses what is below their last bits.
    noise = 1e-6 + 1e-8 * abs(begin.nested(program.loss))
    begin.store(program.loss.adjoint, (), 1.0)
    numbers = random.Random(program.seed)
    found: Direction = {}
    for snapshot in snapshots:
        gradients = gradients_after(program, snapshot.after, begin)
        if not found:
            found = gradients
            size = 1 + sum(map(abs, found.values()))
        for place, value in gradients.items():
            if not math.isclose(value, found[place], rel_tol=1e-9, abs_tol=1e-9 * size):
                where = f"{place[0].name}{list(place[1])}"
                text = f"after '{snapshot.step}' the derivative by {where} is {value}, not {found[place]}"
                return f"{text}\n\n{stages(snapshot)}"
    for _ in range(2):
        direction = {place: numbers.choice((-1, 1)) * numbers.uniform(0.5, 1) for place in found}
        product = sum([along * found[place] for place, along in direction.items()])
        forwards = tangent_along(program, tangent, direction)
        if not math.isclose(forwards, product, rel_tol=1e-9, abs_tol=1e-9 * size):
            return f"forward mode finds {forwards}, the gradient {product}\n\n{show(snapshots[0].after)}"
        wanted = slope(program, direction)
        if wanted is not None and not math.isclose(wanted, product, rel_tol=1e-4, abs_tol=noise * size):
            return f"differences give {wanted}, the gradient {product}\n\n{show(snapshots[0].after)}"
    return ""


def wrong_rows(program: Program) -> str:
    """Where several adjoints at once are not what each is alone: in planes of memory, and in vectors."""
    assert program.loss is not None and program.loss.adjoint is not None
    fn = program.function
    machine = few_lanes(STRICT)._replace(fast_math=True)
    gradient, context = run_pipeline(fn, steps_for(GRADIENT), UNVERIFIED, machine=machine)
    assert context.gradient is not None
    begin = after_primal(program, context.gradient.live_in_before)
    alone = begin.copy()
    alone.store(program.loss.adjoint, (), 1.0)
    found = gradients_after(program, gradient, alone)
    size = 1 + sum(map(abs, found.values()))
    for factors in ((1.0, -0.5), (1.0, 0.0, 2.0, -0.5, 1.0, 1.0, 0.0, 3.0)):
        count = len(factors)
        differentiated = [b for b in buffers_of(fn) if b.adjoint is not None]
        clones = {b: clone_of(b, adjoint=True, tangent=False, directions=count) for b in differentiated}
        request = Request(Derivative.REVERSE, directions=count)
        try:
            together, _ = run_pipeline(redirected(fn, clones), steps_for(request), STRICT, machine=machine)
        except CompilerBug as error:
            return str(error)
        memory = begin.copy()
        for buffer, clone in clones.items():
            memory.cells[clone] = dict(memory.cells.get(buffer, {}))
            for one in (clone, clone.adjoint, *(clone.adjoint.planes if clone.adjoint else ())):
                if one is not None and buffer in begin.shapes:
                    memory.shapes[one] = begin.shapes[buffer]
        seeded = clones[program.loss].adjoint
        assert seeded is not None
        for direction, plane in enumerate(seeded.planes):
            memory.store(plane, (), factors[direction])
        if not seeded.planes:
            memory.store(seeded, (), factors)
        interpret(together, program.arguments, memory)
        for (buffer, index), wanted in found.items():
            rows = clones[buffer].adjoint if buffer in clones else None
            if rows is None:
                continue
            held = [memory.load(one, index) for one in rows.planes] or memory.load(rows, index)
            for factor, value in zip(factors, held, strict=True):
                if not math.isclose(value, factor * wanted, rel_tol=1e-9, abs_tol=1e-9 * size):
                    where = f"{buffer.name}{list(index)}"
                    return f"of {count} the adjoint of {where} is {value}, not {factor * wanted}\n\n{show(together)}"
    return ""


def gradients_after(program: Program, fn: Function, begin: DictMemory) -> Direction:
    """What the gradient function, at some stage, finds for each number of the inputs."""
    after = begin.copy()
    interpret(fn, program.arguments, after)
    found: Direction = {}
    for buffer in program.inputs:
        assert buffer.adjoint is not None
        found |= {(buffer, index): after.load(buffer.adjoint, index) for index in begin.cells[buffer]}
    return found


def tangent_along(program: Program, fn: Function, direction: Direction) -> float:
    """The derivative of the loss along a direction, by the function that computes tangents."""
    assert program.loss is not None and program.loss.tangent is not None
    memory = program.memory()
    for (buffer, index), along in direction.items():
        assert buffer.tangent is not None
        memory.store(buffer.tangent, index, along)
    interpret(fn, program.arguments, memory)
    return memory.load(program.loss.tangent, ())


def test_gradients_are_differences_and_tangents(random_programs: range) -> None:
    """The gradient of what overwrites its own inputs is right as well: none of these programs may be refused."""
    for seed in random_programs:
        report(generate_uneven if seed % 8 == 5 else generate_smooth, wrong_gradient, seed, SMOOTH_SIZE)


def test_several_adjoints_at_once(random_programs: range) -> None:
    for seed in random_programs[::3]:
        report(generate_uneven if seed % 8 == 5 else generate_smooth, wrong_rows, seed, SMOOTH_SIZE)
