"""Random kernels: the generator keeps its promises, and every step of the compiler keeps the meaning.

    pytest tests/properties --random-programs 5000      many more than usual

A failure shows the program at the smallest size at which it still fails, before and after the step at fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.properties.compare import difference, gradient_by_differences, run
from tests.properties.generate import Program, generate, smallest
from tests.properties.smooth import generate_smooth
from tinote.compiler.pipeline import GRADIENT, PRIMAL, Snapshot, run_pipeline
from tinote.config import Config
from tinote.errors import CompilerBug
from tinote.ir.interpret import interpret
from tinote.ir.parse import parse
from tinote.ir.text import equal, fingerprint, show
from tinote.ir.verify import verify

SIZE = 12
SMOOTH_SIZE = 8
#: IEEE arithmetic, so that every step must keep every bit; `debug` runs the verifier after every step
STRICT = Config(debug=True, overflow_check=False, fast_math=False)


def report(make: Callable[[int, int], Program], problem: Callable[[Program], str], seed: int, size: int) -> None:
    """Fail with the smallest program of this seed that has a problem, if it has one."""
    if problem(make(seed, size)):
        least = smallest(lambda s: bool(problem(make(seed, s))), size)
        program = make(seed, least)
        pytest.fail(f"{problem(program)}\n\nin\n{program}", pytrace=False)


def broken_promise(program: Program) -> str:
    """What the generator promised and did not keep."""
    fn = program.function
    verify(fn)
    again = parse(show(fn))
    if show(again) != show(fn) or not equal(again, fn) or fingerprint(again) != fingerprint(fn):
        return "the text form does not read back"
    first = run(program, fn)
    backwards = run(program, fn, order=lambda turns: reversed(turns))
    wrong = difference(program, first, backwards)
    return f"depends on the order of iterations: {wrong}" if wrong else ""


def test_programs_keep_their_promises(random_programs: int) -> None:
    for seed in range(random_programs):
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
    assert len({fingerprint(generate(seed).function) for seed in range(50)}) == 50


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
        run_pipeline(program.function, PRIMAL, STRICT, listen)
    except CompilerBug as error:
        problems.append(str(error))
    return problems[0] if problems else ""


def test_every_step_keeps_the_meaning(random_programs: int) -> None:
    for seed in range(random_programs):
        report(generate, changed_meaning, seed, SIZE)


def wrong_gradient(program: Program) -> str:
    """Where the gradient, at any stage after differentiation, is not what differences say."""
    assert program.loss is not None and program.loss.adjoint is not None
    memory = program.memory()
    interpret(program.function, program.arguments, memory)
    memory.store(program.loss.adjoint, (), 1.0)
    expected = gradient_by_differences(program)
    # A difference of losses loses what is below their last bits.
    noise = 1e-5 + 1e-8 * abs(memory.nested(program.loss))
    problems: list[str] = []
    differentiated = False

    def listen(snapshot: Snapshot) -> None:
        nonlocal differentiated
        differentiated = differentiated or snapshot.step == "reverse"
        if not differentiated or snapshot.after is snapshot.before or problems:
            return
        after = memory.copy()
        interpret(snapshot.after, program.arguments, after)
        for buffer, index, value in expected:
            assert buffer.adjoint is not None
            found = after.load(buffer.adjoint, index)
            if value is not None and not math.isclose(found, value, rel_tol=1e-4, abs_tol=noise):
                text = f"after '{snapshot.step}' the derivative by {buffer.name}{list(index)} is {found}, not {value}"
                problems.append(f"{text}\n\n{stages(snapshot)}")
                return

    try:
        run_pipeline(program.function, GRADIENT, STRICT, listen)
    except CompilerBug as error:
        problems.append(str(error))
    return problems[0] if problems else ""


def test_gradients_are_differences(random_programs: int) -> None:
    """None of these programs overwrites what its gradient needs, so that none may be refused either."""
    for seed in range(random_programs):
        report(generate_smooth, wrong_gradient, seed, SMOOTH_SIZE)
