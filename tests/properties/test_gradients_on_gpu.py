"""Gradients of random kernels on a software GPU, within what rounding can make of what the interpreter finds.

pytest tests/properties/test_gradients_on_gpu.py --random-programs 5000      many more than usual
"""

from __future__ import annotations

from tests.codegen.gpu import GPU, execute_on_gpu
from tests.properties.generate import Program
from tests.properties.rounding import fits, scattered
from tests.properties.smooth import generate_smooth
from tests.properties.test_programs import SMOOTH_SIZE, after_primal, gradients_after, report
from tinote.compiler.pipeline import gpu_steps_for, run_pipeline, steps_for
from tinote.compiler.requests import GRADIENT
from tinote.ir.types import f32, f64


def wrong_gradient(program: Program) -> str | None:
    """Where the gradient on the GPU is not what the interpreter finds. None: the program leaves too much open."""
    assert program.loss is not None and program.loss.adjoint is not None
    fn, context = run_pipeline(program.function, gpu_steps_for(GRADIENT), GPU)
    reference, _ = run_pipeline(program.function, steps_for(GRADIENT, lower=False), GPU)
    gradient = context.gradient
    assert gradient is not None
    begin = after_primal(program, gradient.live_in_before)
    begin.store(program.loss.adjoint, (), 1.0)
    possible = scattered(reference, lambda fn: gradients_after(program, fn, begin), fast_math=True)
    after = begin.copy()
    execute_on_gpu(fn, program.arguments, after, [])
    undecided = False
    for buffer, index in possible[0]:
        assert buffer.adjoint is not None
        found = after.load(buffer.adjoint, index)
        several = [outcome[buffer, index] for outcome in possible]
        verdict = fits(several, found, summed=False)
        undecided = undecided or verdict is None
        if verdict is False:
            return f"the derivative by {buffer.name}{list(index)} is {found}, not {several[0]} (or {several[1:]})"
    return None if undecided else ""


def make(seed: int, size: int) -> Program:
    """A differentiable program: in f32, which every GPU has, one of eight in f64."""
    return generate_smooth(seed, size, f64 if seed % 8 == 5 else f32)


def size_of(seed: int) -> int:
    """Small ones as well as large ones: what they take is the driver's time to compile them."""
    return 2 + seed % (SMOOTH_SIZE - 1)


def test_gradients(random_programs_on_gpu: range) -> None:
    decided = 0

    def wrong(program: Program) -> str:
        nonlocal decided
        problem = wrong_gradient(program)
        decided += problem is not None
        return problem or ""

    for seed in random_programs_on_gpu:
        report(make, wrong, seed, size_of(seed))
    assert decided > 0.9 * len(random_programs_on_gpu) - 3, decided
