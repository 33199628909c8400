"""Deliberately broken rules, passes and machine code: the random programs of an ordinary run notice each of them."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import USUAL, USUAL_ON_GPU
from tests.lang.test_fast_maths_magnitudes import program as products
from tests.lang.test_fast_maths_magnitudes import wrong_program
from tests.passes.witness import broken_promises
from tests.properties import test_on_gpu, test_programs
from tests.properties.generate import Program, generate, generate_meeting
from tests.properties.smooth import generate_smooth, generate_uneven
from tests.properties.test_compiled import wrong_strictly, wrong_with_fast_maths
from tests.properties.test_programs import SIZE, SMOOTH_SIZE, STRICT, changed_meaning, wrong_gradient
from tests.properties.test_store_first import wrong_when_stored
from tinote.autodiff import gradient, reverse, storage
from tinote.autodiff.storage import ValueSource
from tinote.autodiff.storage_plan import plan_storage
from tinote.compiler.codegen.llvm import module as llvm
from tinote.compiler.codegen.llvm import primitives as llvm_primitives
from tinote.compiler.codegen.wgsl import primitives as wgsl_primitives
from tinote.compiler.passes.analyses import match_updates
from tinote.compiler.passes.loops import keep_order, mark_vector_loops
from tinote.compiler.passes.loops.in_lanes import control, memory
from tinote.compiler.passes.loops.in_lanes.loop import LoopInLanes
from tinote.compiler.passes.simplification import cse, forward_stores, hoist_invariants, reassociate
from tinote.compiler.passes.updates import accumulate, demote_atomics, privatise, recognise_updates, store_first
from tinote.compiler.pipeline import Fixpoint, Snapshot, Step, run_pipeline, steps_for
from tinote.compiler.requests import PRIMAL
from tinote.errors import KernelTargetError
from tinote.ir import conflicts, definite_stores
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.divergence import Divergence
from tinote.ir.interpret import StepLimitError
from tinote.ir.nodes import Atomic, Function, Lit, Load, Op, Prim, Store, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import element_type, is_float

PROGRAMS, PROGRAMS_ON_GPU = USUAL, USUAL_ON_GPU

SHOWN_BY = Path(__file__).parent / "golden" / "mutations.json"
"""The number of the first program that shows each mistake; `--update-golden` looks for them anew."""


class Search:
    """For a program of an ordinary run that shows what is broken, from the one on that showed it when the golden file
    was written: the others are made and run only where that one does not.
    """

    def __init__(self, name: str, update: bool) -> None:
        self.name = name
        self.update = update

    def finds(self, seeds: Sequence[int], shows: Callable[[int], object]) -> bool:
        """Whether a program of these does, be it that it does not end."""

        def shown(seed: int) -> bool:
            try:
                return bool(shows(seed))
            except StepLimitError:
                return True

        known: dict[str, int] = json.loads(SHOWN_BY.read_text(encoding="utf-8")) if SHOWN_BY.exists() else {}
        first = None if self.update else known.get(self.name)
        found = next(filter(shown, sorted(seeds, key=lambda seed: seed != first)), None)
        if self.update and found is not None:
            known = dict(sorted({**known, self.name: found}.items()))
            SHOWN_BY.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        return found is not None

    def catches(
        self,
        make: Callable[[int, int], Program],
        size: int,
        problem: Callable[[Program], object],
        concerned: Callable[[Program], bool] = lambda program: True,
        runs: int = 1,
    ) -> bool:
        """Whether a program of an ordinary run, or of so many, does that is concerned."""

        def shows(seed: int) -> object:
            program = made(make, seed, size)
            return concerned(program) and problem(program)

        return self.finds(range(runs * PROGRAMS), shows)


@pytest.fixture
def search(request: pytest.FixtureRequest) -> Search:
    return Search(request.node.name.removeprefix("test_"), request.config.getoption("--update-golden"))


@functools.cache
def made(make: Callable[[int, int], Program], seed: int, size: int) -> Program:
    """Nothing that is broken here has a part in the making of a program: each serves all tests."""
    return make(seed, size)


def uses(prim: Primitive) -> Callable[[Program], bool]:
    """Whether a program applies a primitive."""
    return lambda program: any(isinstance(op, Prim) and op.prim is prim for op in walk(program.function.region))


# ---- derivative rules

#: without what these programs, in f64 alone, do not use: casts between floats, what custom gradients are made of, and
#: what only derivatives are (`tests/autodiff/test_rules.py`, `test_strong_zeros.py` and, of decompositions,
#: `tests/lang/test_linalg_repeated.py` have it)
UNUSED = (p.cast, p.surrogate, p.strong_mul, p.in_reverse)
RULED = [prim for prim in p.PRIMITIVES.values() if callable(prim.derivative) and prim not in UNUSED]


@pytest.mark.parametrize("prim", [prim for prim in RULED if prim.arity != 2], ids=repr)
def test_a_derivative_that_is_half_as_much_again(
    prim: Primitive, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    rule = prim.derivative
    assert callable(rule)

    def wrong(e: Any, g: Any, y: Any, a: Any) -> Any:
        return rule(e, e.builder.prim(p.mul, g, Lit(1.5, element_type(g.type))), y, a)

    monkeypatch.setattr(prim, "derivative", wrong)
    assert search.catches(generate_smooth, 5, wrong_gradient, uses(prim))


@pytest.mark.parametrize("operand", [0, 1])
@pytest.mark.parametrize("prim", [prim for prim in RULED if prim.arity == 2], ids=repr)
def test_a_derivative_that_forgets_an_operand(
    prim: Primitive, operand: int, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    rule = prim.derivative
    assert callable(rule)

    def wrong(e: Any, g: Any, y: Any, a: Any) -> Any:
        return [None if k == operand else g for k, g in enumerate(rule(e, g, y, a))]

    monkeypatch.setattr(prim, "derivative", wrong)
    assert search.catches(generate_smooth, 5, wrong_gradient, uses(prim))


# ---- differentiation


def adjoint_stays(reverser: Any, op: Any, adjoints: Any) -> None:
    with pytest.MonkeyPatch.context() as context:
        context.setattr(Builder, "store", lambda *_: None)
        _backward_write(reverser, op, adjoints)


def nothing_reaches_the_start(reverser: Any, carried: Any, outs: Any, initial: Any, adjoints: Any) -> None:
    _settle(reverser, carried, outs, [Lit(0.0, element_type(a.type)) for a in initial], adjoints)


_backward_write, _settle = reverse.Reverser.backward_write, reverse.Reverser.settle


def read_again(_storage: Any, op: Op, frame: Any) -> ValueSource:
    return ValueSource.READ_AGAIN if isinstance(op, Load) else _value_source(_storage, op, frame)


_value_source = storage._Storage.value_source
DIFFERENTIATION = {
    "overwritten values are not noticed": (gradient, "find_overwrites", lambda fn, loads: ()),
    "no copies between loops": (
        gradient,
        "plan_storage",
        lambda fn, found: plan_storage(fn, found)._replace(copies={}),
    ),
    "the adjoint of an overwritten element stays": (reverse.Reverser, "backward_write", adjoint_stays),
    "initial values of loops have no part": (reverse.Reverser, "settle", nothing_reaches_the_start),
    "what was overwritten is read again": (storage._Storage, "value_source", read_again),
    "no branch is reversed": (reverse.Reverser, "backward_if", lambda self, op, adjoints: None),
    "no outer value is active in loops": (reverse.Reverser, "outer_active", lambda self, *regions: []),
}


@pytest.mark.parametrize("name", DIFFERENTIATION)
def test_broken_differentiation(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(*DIFFERENTIATION[name])
    assert search.catches(generate_smooth, SMOOTH_SIZE, wrong_gradient)


# ---- passes


class Forgetful(Rewriter):
    """Drops the last effect on memory."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.left = sum(self.is_effect(op) for op in walk(fn.region))

    @staticmethod
    def is_effect(op: Op) -> bool:
        return isinstance(op, Store | Atomic) and not op.outs

    def on(self, op: Op) -> Decision:
        self.left -= self.is_effect(op)
        return DROP if self.is_effect(op) and not self.left else KEEP


def broken_at(name: str, step: Step | Fixpoint) -> Step | Fixpoint:
    """A step, or the steps of a fixed point, with an error in the one of this name."""
    if isinstance(step, Fixpoint):
        return step._replace(steps=tuple([broken_at(name, inner) for inner in step.steps]))
    if step.name != name:
        return step
    run = step.run
    return step._replace(run=lambda fn, context: Forgetful(fn).run(run(fn, context)))


#: what runs anyway; the others are reached by options alone
PRIMAL_STEPS = steps_for(PRIMAL)
STEPS = [step.name for step in PRIMAL_STEPS if isinstance(step, Step) and step.name != "check_overflow"]
STEPS += [step.name for step in next(step for step in PRIMAL_STEPS if isinstance(step, Fixpoint)).steps]


@pytest.mark.parametrize("name", STEPS)
def test_a_pass_that_loses_a_store(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    broken = tuple([broken_at(name, step) for step in PRIMAL_STEPS])
    assert broken != PRIMAL_STEPS
    monkeypatch.setattr(test_programs, "PRIMAL_STEPS", broken)
    assert search.catches(generate, SIZE, lambda program: f"{name}'" in changed_meaning(program).partition("\n")[0])


PASSES = {
    "different places never meet": (forward_stores._Forwarder, "differ", lambda *_: True),
    "loops leave what is known": (forward_stores._Forwarder, "written_in", lambda *_: frozenset()),
    "loops write nothing": (hoist_invariants, "_written", lambda loop: set()),
    "nothing goes out of scope": (cse._Cse, "leave", lambda *_: None),
    "sums are never disturbed": (accumulate._Accumulator, "disturbs", lambda *_: False),
    "lanes that have left go on": (LoopInLanes, "chosen", lambda self, mask, new, old: self.spread(new)),
    "all lanes take both sides": (LoopInLanes, "all_of", lambda self, mask, condition: mask),
    "lanes never meet": (Divergence, "lies_apart", lambda *_: True),
    "elements follow each other": (memory, "offset_of", lambda e, op: first_lane(e, op)),
}


GRADIENTS_IN_LANES = {
    "lanes that come into a reverse loop later have lost what they began with": (
        control,
        "waiting",
        lambda e, mask, new, old: new,
    ),
}


def first_lane(self: Any, op: Any) -> Any:
    return op.index[0] if self.divergence.step(op.index[0]) is not None else self.spread(op.index[0])


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_that_overlooks_something(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(*PASSES[name])
    assert search.catches(generate, SIZE, changed_meaning)


def only_writes(some: Any, others: Any, *rest: Any) -> Any:
    return _conflict_of(some, others, *rest) if some[0].writes and others[0].writes else None


_conflict_of = conflicts._conflict_of


def both_operands(self: Any, value: Any) -> Iterator[Any]:
    op = self.definitions.get(value)
    if isinstance(op, Prim) and (op.prim is p.sub or op.prim in p.ATOMICS):
        yield from ((op, k) for k in (0, 1) if isinstance(op.args[k], Var))


MEETING = {
    "iterations never conflict": (keep_order, "find_conflict", lambda *_, **__: None),
    "all that iterations read is theirs": (conflicts, "_conflict_of", only_writes),
    "old values are used nowhere else": (match_updates.UpdateMatcher, "nothing_else_asks", lambda self: True),
    "what is written in between does not matter": (recognise_updates._Matcher, "may_change", lambda *_: False),
    "differences commute": (match_updates.UpdateMatcher, "links", both_operands),
}


@pytest.mark.parametrize("name", MEETING)
def test_meetings_that_are_overlooked(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(*MEETING[name])
    assert search.catches(generate_meeting, SIZE, changed_meaning)


@pytest.mark.parametrize("name", GRADIENTS_IN_LANES)
def test_lanes_of_a_gradient_that_overlook_something(
    name: str, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    monkeypatch.setattr(*GRADIENTS_IN_LANES[name])
    assert search.catches(generate_uneven, SMOOTH_SIZE, wrong_gradient)


FIRST_STORES = {
    "every update is the first": (store_first, "_is_first", lambda *_: True),
    "every store reaches all": (definite_stores, "_covers", lambda *_: True),
}


@pytest.mark.parametrize("name", FIRST_STORES)
def test_stores_in_place_of_updates_that_are_not_the_first(
    name: str, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    monkeypatch.setattr(*FIRST_STORES[name])
    assert search.catches(generate_smooth, SMOOTH_SIZE, lambda program: wrong_when_stored(program, []))


def promise_broken(program: Program) -> list[str]:
    """Promises in the marks of the compiled program that do not hold when it runs."""
    marked: list[Function] = []

    def listen(snapshot: Snapshot) -> None:
        if snapshot.step == "mark_vector_loops":
            marked.append(snapshot.after)

    run_pipeline(program.function, PRIMAL_STEPS, STRICT, listen)
    return broken_promises(marked[0], program.arguments, program.memory())


MARKS = {
    "every update is alone": (demote_atomics._Demoter, "alone", lambda *_: True),
    "every loop is independent": (mark_vector_loops._Marker, "why_apart", lambda *_: ""),
}


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_that_promises_too_much(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(*MARKS[name])
    assert search.catches(generate, SIZE, promise_broken)


# ---- machine code

CONFUSED = {
    p.add: p.sub, p.sub: p.add, p.mul: p.add, p.minimum: p.maximum, p.maximum: p.minimum, p.mod: p.raw_mod,
    p.lt: p.ge, p.div: p.mul, p.sqrt: p.rsqrt, p.exp: p.tanh, p.sin: p.cos, p.asin: p.acos, p.neg: p.absolute,
}  # fmt: skip


@pytest.mark.parametrize("prim", CONFUSED, ids=repr)
def test_machine_code_that_computes_something_else(
    prim: Primitive, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    monkeypatch.setitem(llvm_primitives.EMITTERS, prim, confused(prim, llvm_primitives.EMITTERS))
    # A function's operand is often so large that rounding leaves its result open: one program in fifteen shows it.
    runs = 4 if prim.ulps else 1
    assert search.catches(generate, SIZE, lambda program: wrong_strictly(program, (0,)), uses(prim), runs)


@pytest.mark.parametrize("prim", [p.add, p.mul, p.maximum, p.div, p.lt, p.exp], ids=repr)
def test_fast_maths_that_computes_something_else(
    prim: Primitive, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    """What is open by rounding does not hide what is wrong."""
    monkeypatch.setitem(llvm_primitives.EMITTERS, prim, confused(prim, llvm_primitives.EMITTERS))
    assert search.catches(generate, SIZE, lambda program: wrong_with_fast_maths(program, (0,)), uses(prim))


@pytest.mark.parametrize("prim", [p.add, p.sub, p.mul, p.minimum, p.maximum], ids=repr)
def test_a_shader_that_computes_something_else(
    prim: Primitive, monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    monkeypatch.setitem(wgsl_primitives.EMITTERS, prim, confused(prim, wgsl_primitives.EMITTERS))

    def shows(seed: int) -> object:
        program = generate(seed, test_on_gpu.size_of(seed))
        try:
            return uses(prim)(program) and test_on_gpu.wrong_on_gpu(program)
        except KernelTargetError:
            return False

    assert search.finds(range(PROGRAMS_ON_GPU), shows)


def confused(prim: Primitive, emitters: dict[Primitive, Any]) -> Callable[..., str]:
    """On floats: wrong integers could be indices, which are not checked where they are known to be in range."""
    right, wrong = emitters[prim], emitters[CONFUSED[prim]]

    def emit(f: Any, t: Any, atoms: Any, *operands: str) -> str:
        floats = is_float(atoms[0].type) if atoms else is_float(t)
        return (wrong if floats else right)(f, t, atoms, *operands)

    return emit


def test_private_copies_that_are_not_merged(monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(privatise, "_MIN_UPDATES_PER_ELEMENT", 0)
    monkeypatch.setattr(llvm.llvm_privates, "merge", lambda e, private, offset: e.do("ret i32 0"))
    assert search.catches(generate, SIZE, lambda program: wrong_strictly(program, (0,)))


# ---- fast maths


def one_factor_short(self: Any, op: Any, x: Any, root: Any, exponent: int) -> Any:
    return _over_power(self, op, x, root, exponent - 1)


def of_no_scale(self: Any, op: Any, x: Any, y: Any, t: Any) -> Any:
    return self.new(op, p.mul, x, self.new(op, p.div, Lit(1.0, t), y))


def of_the_square(self: Any, op: Any, y: Any, t: Any, *, rooted: bool) -> Any:
    found = _reciprocal(self, op, y, t, rooted=rooted)
    return self.new(op, p.mul, found, found) if rooted else found


def cubed(self: Any, near: Any, x: Any, y: Any, t: Any) -> Any:
    found = _square(self, near, x, y, t)
    return None if found is None else self.new(near, p.mul, found, y)


def all_added(self: Any, op: Any, negative: bool, terms: Any, left: int) -> int:
    fused = _collect(self, op, negative, terms, left)
    terms[:] = [(False, atom) for _, atom in terms]
    return fused


_over_power, _reciprocal = reassociate._Products.over_power, reassociate._Products.reciprocal
_square, _collect = reassociate._Products.square, reassociate._Sums.collect

PRODUCTS = {
    "a power has one factor less": (reassociate._Products, "over_power", one_factor_short),
    "a reciprocal root is that of the square": (reassociate._Products, "reciprocal", of_the_square),
    "a square is a cube": (reassociate._Products, "square", cubed),
    "every reciprocal is in range": (reassociate._Products, "has_reciprocal", lambda *_: True),
    "no reciprocal is scaled": (reassociate._Products, "scaled", of_no_scale),
    "literals meet however large the product": (reassociate, "_MAX_EXPONENT_LOSS", 1000),
    "all numbers are near one": (reassociate.Magnitudes, "of", lambda *_: (0.0, 0.0)),
}


#: what programs contain that a rare mistake concerns
CONCERNED = {"a power has one factor less": "/ (s * s", "literals meet however large the product": "* (b[i] * "}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_wrong_rearrangement_of_products(name: str, monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(*PRODUCTS[name])
    part = CONCERNED.get(name, "")

    def shows(seed: int) -> object:
        return part in products(random.Random(seed), False) and wrong_program(seed, False)[0]

    assert search.finds(range(PROGRAMS), shows)


def test_a_wrong_rearrangement_of_sums(monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    monkeypatch.setattr(reassociate._Sums, "collect", all_added)
    assert search.finds(range(PROGRAMS), lambda seed: wrong_program(seed, True)[0])
