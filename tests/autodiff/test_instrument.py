"""The checks of the access rules in the IR: which reads they follow, and that they change nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties.compare import STEPS, Outcome, difference, run
from tests.properties.generate import Program, generate
from tests.properties.smooth import generate_smooth
from tinote.autodiff.control_dependence import controlling_reads
from tinote.autodiff.instrument import instrument
from tinote.compiler.pipeline import Snapshot, run_pipeline, steps_for
from tinote.compiler.requests import Checks, Request
from tinote.config import Config
from tinote.ir.checked_accesses import CheckedAccesses, Kind, Ledger
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function, Load, MemoryOp
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify

STRICT = Config(debug=True, overflow_check=False, fast_math=False)
BUFFERS = """
buffer @y: f64 field (4) adjoint @y.grad
buffer @y.grad: f64 field (4)
buffer @a: i32 field (4)
buffer @b: i32 field (4)
buffer @t: f64 field (4)
"""


def typed(text: str) -> Function:
    fn = parse(BUFFERS + text)
    verify(fn, Form.TYPED)
    return fn


# ---- reads that matter


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("%k: i32 = load @a[0i32]\n store @y[%k], 1.0f64", "a"),
        ("%k: i32 = load @a[0i32]\n store @t[%k], 1.0f64", ""),
        ("%k: i32 = load @a[0i32]\n for %i: i32 in 0i32 .. %k:\n  atomic add @y[%i], 1.0f64", "a"),
        ("%k: i32 = load @a[0i32]\n for %i: i32 in 0i32 .. %k:\n  store @t[%i], 1.0f64", ""),
        ("%k: i32 = load @a[0i32]\n %c: u1 = gt %k, 0i32\n if %c:\n  store @y[0i32], 1.0f64", "a"),
        # By way of other memory without a gradient, and of a local cell.
        ("%k: i32 = load @a[0i32]\n store @b[0i32], %k\n %l: i32 = load @b[1i32]\n store @y[%l], 1.0f64", "ab"),
        (
            "%r: ref i32 = local 0i32\n %k: i32 = load @a[0i32]\n set %r, %k\n %l: i32 = get %r\n"
            " store @y[%l], 1.0f64\n %m: i32 = load @b[0i32]\n store @t[%m], 1.0f64",
            "a",
        ),
        # The cell is only set where a condition holds.
        (
            "%r: ref i32 = local 0i32\n %k: i32 = load @a[0i32]\n %c: u1 = gt %k, 0i32\n if %c:\n  set %r, 1i32\n"
            " %l: i32 = get %r\n store @y[%l], 1.0f64",
            "a",
        ),
        (
            "while:\n  %k: i32 = load @a[0i32]\n  %c: u1 = gt %k, 0i32\n  yield %c\n do:\n"
            "  store @y[0i32], 1.0f64\n  store @a[0i32], 0i32",
            "a",
        ),
        ("%k: i32 = atomic add @a[0i32], 1i32\n store @y[%k], 1.0f64", "a"),
        ("%k: i32 = atomic add @a[0i32], 1i32\n store @t[%k], 1.0f64", ""),
    ],
)
def test_steering_reads(text: str, names: str) -> None:
    fn = typed(f"func f():\n {text}\n")
    reads = controlling_reads(fn)
    assert sorted(op.buffer.name for op in reads if isinstance(op, MemoryOp)) == list(names)


# ---- checks


def test_sites_stand_in_the_order_of_the_program() -> None:
    fn = typed(
        "func f():\n for parallel %i: i32 in 0i32 .. 4i32:\n  %y: f64 = load @y[%i]\n  store @t[%i], %y\n"
        "  atomic add @y[%i], %y\n  %o: f64 = atomic add @y[%i], 1.0f64\n  atomic mul @y[%i], %o\n"
        "  %t: f64 = load @t[%i]\n  atomic max @t[%i], %t\n"
    )
    instrumented, made = instrument(fn)
    verify(instrumented, Form.TYPED)
    assert [(site.buffer.name, site.kind) for site in made.sites] == [
        ("y", Kind.READ),
        ("t", Kind.STORE),
        ("y", Kind.ADD),
        ("y", Kind.TAKE),
        ("y", Kind.COMBINE),
        ("t", Kind.STORE),
    ]
    shadowed = {buffer.name: shadow for buffer, shadow in made.shadows}
    assert set(shadowed) == {"y", "t"}
    first = next(op for op in walk(instrumented.region) if isinstance(op, Load) and op.buffer.name != "ledger")
    assert first.buffer is made.sites[0].buffer, "an index out of range is reported about the user's memory"


def prepared(program: Program, made: CheckedAccesses) -> DictMemory:
    memory = program.memory()
    for buffer, shadow in made.shadows:
        if None in shadow.shape:
            memory.shapes[shadow] = memory.shape(buffer)
    memory.store(made.ledger, (Ledger.FIRST_CODE,), 1)
    return memory


@pytest.mark.parametrize("make", [generate, generate_smooth])
def test_checks_change_nothing_else(make: Callable[[int], Program]) -> None:
    """Random programs leave and print the same, before and after the checks are compiled."""
    followed = 0
    for seed in range(6):
        program = make(seed)
        wanted = run(program, program.function)
        stages: list[Snapshot] = []
        steps = steps_for(Request(checks=Checks.ACCESS_RULES))
        final, facts = run_pipeline(program.function, steps, STRICT, stages.append)
        made = facts.checks
        assert made is not None
        instrumented = next(stage.after for stage in stages if stage.step == "instrument")
        followed += len(made.sites)
        for fn in (instrumented, final):
            memory = prepared(program, made)
            printed: list[str] = []
            returned = interpret(fn, program.arguments, memory, on_print=printed.append, step_limit=20 * STEPS)
            contents = {b: memory.nested(b) for b in program.contents}
            assert difference(program, wanted, Outcome(returned, contents, printed)) == "", seed
    assert followed > 30
