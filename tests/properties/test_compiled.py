"""Random kernels as machine code: at every optimisation level, on one thread and on two, with fast maths and without.

    pytest tests/properties --random-programs 5000      many more than usual, each at all four levels
    pytest tests/properties --random-programs 5000 --cpu x86-64-v3      the same for a machine with less

Integers, conversions and IEEE arithmetic must agree with the interpreter to the last bit, functions within the bounds
of the table of primitives, and fast maths within what rounding can make of the program (`tests.properties.rounding`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.codegen.native import execute
from tests.properties.compare import Outcome, difference, run
from tests.properties.generate import Program, generate, generate_meeting
from tests.properties.rounding import disagreement, spread
from tests.properties.test_programs import PRIMAL_STEPS, SIZE, few_lanes, report
from tests.runtime.processors import machine_with
from tinote.compiler import pipeline
from tinote.compiler.codegen.llvm import module as llvm
from tinote.compiler.passes.analyses.choose_lanes import Machine
from tinote.compiler.passes.updates import privatise
from tinote.compiler.pipeline import run_pipeline
from tinote.config import Config
from tinote.ir.nodes import Function
from tinote.runtime import jit

LEVELS = (0, 1, 2, 3)
USUAL = 200


@pytest.fixture(autouse=True)
def everything_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops of random programs are short and their buffers small: threads and copies are used all the same."""
    monkeypatch.setattr(privatise, "_MIN_UPDATES_PER_ELEMENT", 0)
    monkeypatch.setattr(llvm, "MIN_PARALLEL_COST", 1)
    monkeypatch.setattr(pipeline, "machine_of", few_lanes)


def native(program: Program, fn: Function, level: int, threads: int, fast_math: bool) -> Outcome:
    """What machine code leaves of the program. Tensors that it returns are taken apart."""
    memory, printed = program.memory(), [""]
    options = llvm.Options(fast_math=fast_math)
    returned = execute(
        fn, program.arguments, memory, on_print=printed.append, threads=threads, options=options, level=level
    )
    return Outcome(returned, {b: memory.nested(b) for b in program.contents}, ["".join(printed)])


def lowered(program: Program, fast_math: bool) -> Function:
    """Every second program with all loops in lanes that can be, the others as the estimate says."""
    lanes = "always" if program.seed // 8 % 2 else "auto"
    config = Config(debug=True, overflow_check=False, fast_math=fast_math, lanes=lanes)
    return run_pipeline(program.function, PRIMAL_STEPS, config)[0]


def taken_apart(outcome: Outcome) -> Outcome:
    """An outcome of the interpreter as machine code gives it."""
    flat = tuple([x for value in outcome.returned for x in (value if isinstance(value, tuple) else (value,))])
    return outcome._replace(returned=flat, printed=["".join(outcome.printed)])


def wrong_strictly(program: Program, levels: Sequence[int]) -> str:
    """What machine code computes differently with IEEE arithmetic, at the first of these levels where it does."""
    fn = lowered(program, False)
    possible = [taken_apart(o) for o in ([run(program, program.function)] if program.exact else spread(program, False))]
    for level in levels:
        threads = 1 if program.in_order else 1 + (program.seed + level) % 2
        found = native(program, fn, level, threads, False)
        if program.exact:
            wrong = difference(program, possible[0], found)
        else:
            wrong = disagreement(program, possible, found) or ""
        if wrong:
            return f"at level {level} on {threads} threads: {wrong}"
    return ""


def wrong_with_fast_maths(program: Program, levels: Sequence[int]) -> str | None:
    """What machine code computes with fast maths that rounding does not explain, at the first of these levels.

    Empty: nothing. None: the program leaves too much open to say.
    """
    fn = lowered(program, True)
    possible = [taken_apart(o) for o in spread(program, True)]
    open_ = False
    for level in levels:
        threads = 1 if program.in_order else 1 + (program.seed + level) % 2
        wrong = disagreement(program, possible, native(program, fn, level, threads, True))
        if wrong:
            return f"at level {level} on {threads} threads: {wrong}"
        open_ = open_ or wrong is None
    return None if open_ else ""


@pytest.fixture(params=[128, 256])
def narrower(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> jit.Host:
    """A machine with vectors of 128 or 256 bits, and as many lanes as they hold."""
    machine = machine_with(request.param)
    monkeypatch.setattr(jit, "_host", machine)
    monkeypatch.setattr(pipeline, "machine_of", lambda config: Machine(request.param, 16, config.fast_math))
    return machine


def some(seeds: range, part: int) -> range:
    """Some of the programs, because LLVM takes its time; all of them in a long run."""
    return seeds if len(seeds) > USUAL else seeds[::part]


def levels(seed: int, count: int) -> Sequence[int]:
    """Each program at one level in turn, or at all of them in a long run."""
    return LEVELS if count > USUAL else (LEVELS[seed % 4],)


def test_machine_code_is_exact(random_programs: range) -> None:
    for seed in some(random_programs, 2):
        chosen = levels(seed // 2, len(random_programs))
        report(generate, lambda program, chosen=chosen: wrong_strictly(program, chosen), seed, SIZE)


def test_machine_code_keeps_the_order_of_iterations_that_meet(random_programs: range) -> None:
    for seed in some(random_programs, 3):
        report(generate_meeting, lambda program: wrong_strictly(program, (3,)), seed, SIZE)


def test_machine_code_for_narrower_vectors_is_exact(random_programs: range, narrower: jit.Host) -> None:
    for seed in some(random_programs, 13):
        report(generate, lambda program: wrong_strictly(program, (3,)), seed, SIZE)


def test_fast_maths_stays_near(random_programs: range) -> None:
    decided = 0

    def wrong(program: Program) -> str:
        nonlocal decided
        problem = wrong_with_fast_maths(program, chosen)
        decided += problem is not None
        return problem or ""

    seeds = some(random_programs, 4)
    for seed in seeds:
        chosen = levels(seed // 4 + 1, len(random_programs))
        report(generate, wrong, seed, SIZE)
    assert decided > 0.5 * len(seeds) - 3, decided  # of a few programs all may be open
