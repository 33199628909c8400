"""Random kernels on a software GPU: integers as the interpreter has them, floats within what rounding can make of the
program.

    pytest tests/properties/test_on_gpu.py --random-programs 5000      many more than usual
"""

from __future__ import annotations

from tests.codegen.gpu import GPU, execute_on_gpu
from tests.properties.compare import Outcome
from tests.properties.generate import Program, generate
from tests.properties.rounding import disagreement, spread
from tests.properties.test_compiled import taken_apart
from tests.properties.test_programs import SIZE, report
from tinote.compiler.pipeline import gpu_steps_for, run_pipeline
from tinote.compiler.requests import PRIMAL
from tinote.errors import KernelTargetError


def wrong_on_gpu(program: Program) -> str | None:
    """What the GPU computes that rounding does not explain. Empty: nothing. None: the program leaves too much open."""
    fn, _ = run_pipeline(program.function, gpu_steps_for(PRIMAL), GPU)
    memory, printed = program.memory(), [""]
    returned = execute_on_gpu(fn, program.arguments, memory, printed)
    found = Outcome(returned, {b: memory.nested(b) for b in program.contents}, ["".join(printed)])
    return disagreement(program, [taken_apart(o) for o in spread(program, True)], found)


def size_of(seed: int) -> int:
    """Small ones as well as large ones: what they take is the driver's time to compile them."""
    return 4 + seed % (SIZE - 3)


def test_kernels(random_programs_on_gpu: range) -> None:
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

    for seed in random_programs_on_gpu:
        report(generate, wrong, seed, size_of(seed))
    assert decided > 0.5 * len(random_programs_on_gpu) - 3, (decided, refused)
