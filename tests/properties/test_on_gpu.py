"""Random kernels and gradients on a software GPU: integers as the interpreter has them, floats within what rounding can
make of the program.

    pytest tests/properties/test_on_gpu.py --random-programs 5000      many more than usual
"""

from __future__ import annotations

import math

from tests.codegen.gpu import GPU, execute_on_gpu
from tests.properties.compare import Outcome
from tests.properties.generate import Program, generate
from tests.properties.rounding import disagreement, spread
from tests.properties.smooth import generate_smooth
from tests.properties.test_compiled import USUAL, taken_apart
from tests.properties.test_programs import SIZE, SMOOTH_SIZE, gradients_after, report
from tinote.compiler.pipeline import gpu_steps_for, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT, PRIMAL
from tinote.errors import KernelTargetError
from tinote.ir.interpret import interpret


def wrong_on_gpu(program: Program) -> str | None:
    """What the GPU computes that rounding does not explain. Empty: nothing. None: the program leaves too much open."""
    fn, _ = run_pipeline(program.function, gpu_steps_for(PRIMAL), GPU)
    memory, printed = program.memory(), [""]
    returned = execute_on_gpu(fn, program.arguments, memory, printed)
    found = Outcome(returned, {b: memory.nested(b) for b in program.contents}, ["".join(printed)])
    return disagreement(program, [taken_apart(o) for o in spread(program, True)], found)


def some(seeds: range) -> range:
    """A few programs, because drivers take their time to compile; all of them in a long run."""
    return seeds if len(seeds) > USUAL else seeds[:45:2]


def test_kernels(random_programs: range) -> None:
    seeds = some(random_programs)
    decided = refused = 0

    def wrong(program: Program) -> str:
        nonlocal decided, refused
        try:
            problem = wrong_on_gpu(program)
        except KernelTargetError:
            refused += 1
            return ""
        decided += problem is not None
        return problem or ""

    for seed in seeds:
        report(generate, wrong, seed, SIZE)
    assert decided > 0.4 * len(seeds), (decided, refused)


def wrong_gradient(program: Program) -> str:
    """Where the gradient on the GPU is not what the interpreter finds."""
    assert program.loss is not None and program.loss.adjoint is not None
    fn, context = run_pipeline(program.function, gpu_steps_for(GRADIENT), GPU)
    reference, _ = run_pipeline(program.function, steps_for(GRADIENT, lower=False), GPU)
    gradient = context.gradient
    assert gradient is not None
    begin = program.memory()
    interpret(program.function, program.arguments, begin)
    for buffer in gradient.live_in_before:
        begin.fill(buffer, program.contents[buffer])
    begin.store(program.loss.adjoint, (), 1.0)
    wanted = gradients_after(program, reference, begin)
    after = begin.copy()
    execute_on_gpu(fn, program.arguments, after, [])
    size = 1 + sum(map(abs, wanted.values()))
    for (buffer, index), value in wanted.items():
        assert buffer.adjoint is not None
        found = after.load(buffer.adjoint, index)
        if not math.isclose(found, value, rel_tol=1e-4, abs_tol=1e-5 * size):
            return f"the derivative by {buffer.name}{list(index)} is {found}, not {value}"
    return ""


def test_gradients(random_programs: range) -> None:
    refused = 0

    def wrong(program: Program) -> str:
        nonlocal refused
        try:
            return wrong_gradient(program)
        except KernelTargetError:
            refused += 1
            return ""

    for seed in some(random_programs):
        report(generate_smooth, wrong, seed, SMOOTH_SIZE)
    assert refused == 0
