"""Observed values: one iteration of a kernel on a copy of memory, at any stage."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.inspect.kinds import IR
from tinote.compiler.inspect.observe import CopiedMemory, IterationTracker, observe
from tinote.compiler.inspect.observe_adjoints import observed_adjoints
from tinote.compiler.inspect.stages import stages_of
from tinote.errors import TinoteError
from tinote.ir.interpret import interpret
from tinote.ir.nodes import Atomic, Load, Prim, Store
from tinote.ir.primitives import Defaults
from tinote.ir.query import walk
from tinote.viz.explorer.values import observed_values
from tinote.viz.explorer.widget import explore


@pytest.fixture
def program():
    ti.init()
    x = ti.field(ti.f32, shape=16, needs_grad=True)
    weight = ti.field(ti.f32, shape=16, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def chain(n: ti.i32):
        for i in x:
            s = x[i]
            for k in range(n):
                s = s * 2.0 + weight[k]
            total[None] += s

    chain(1)
    x.from_numpy(np.arange(16, dtype=np.float32))
    weight.fill(1.0)
    total[None] = 7.0
    return chain.specialisations()[-1], x, weight, total


def ir_stages(specialisation, gradient=False):
    stages = stages_of(specialisation, gradient).stages
    return [stage for stage in stages if stage.kind is IR and stage.changed]


def written(answer, what: str) -> list[str]:
    return [row["cells"][1] for row in answer["rows"] if row["cells"][0] == what]


def test_every_stage_computes_the_same_for_an_iteration(program):
    specialisation, x, _, total = program
    stages = ir_stages(specialisation)
    # 3 -> 7 -> 15, in each form: 2 s + 1, twice.
    for stage in stages:
        answer = observed_values(specialisation, stage, [3], [2])
        # In lanes an update of the private copy is that of the iteration's own column.
        updates = ("add to", "store @total.private")
        values = [row["cells"][1] for row in answer["rows"] if row["cells"][0].startswith(updates)]
        assert values[-1:] == ["15"], stage
        # In lanes: of that iteration alone.
        assert not [row["cells"] for row in answer["rows"] if row["cells"][1].count(",") > 2], stage
        assert answer["limits"][0] == [0, 16] and answer["stopped"] == "" and answer["nan"] == -1
    # It was a copy.
    assert total[None] == 7.0 and x[3] == 3.0


def test_a_gradient_shows_adjoints(program):
    specialisation, _, _, total = program
    total.grad[None] = 1.0
    answer = observed_values(specialisation, ir_stages(specialisation, gradient=True)[-1], [3], [2])
    adjoints = [row["cells"] for row in answer["rows"] if row["cells"][3].startswith("adjoint")]
    assert ["4", "1"] in [cells[1:3] for cells in adjoints]  # d total / d x[3] = 2 * 2
    assert any("from %" in cells[3] for cells in adjoints)


def test_the_first_nan_is_the_operation_that_made_it(program):
    specialisation, x, weight, _ = program
    stage = ir_stages(specialisation)[0]
    weight[1] = math.nan
    weight[2] = 3.0
    answer = observed_values(specialisation, stage, [3], [3])
    first = answer["rows"][answer["nan"]]
    assert " = load @weight" in stage.lines[first["line"]].text
    assert first["cells"][1] == "NaN in iteration 2; last 3"
    # Not any more.
    weight[1] = 0.0
    x[3] = math.inf
    answer = observed_values(specialisation, stage, [3], [0])
    assert answer["nan"] == -1 and any(row["tone"] == "bad" for row in answer["rows"])


def test_iterations_that_there_are_not(program):
    specialisation, *_ = program
    answer = observed_values(specialisation, ir_stages(specialisation)[0], [16], [1])
    assert answer["rows"] == [] and answer["stopped"] == "there is no iteration 16 in 0 … 15"
    # One without a number runs the first.
    answer = observed_values(specialisation, ir_stages(specialisation)[0], [], [1])
    assert answer["rows"][0]["cells"][1] == "0"


def test_nested_parallel_loops_take_a_number_each():
    ti.init()
    y = ti.field(ti.i32, shape=(4, 5))

    @ti.kernel
    def products():
        for i, j in ti.ndrange(4, 5):
            y[i, j] = 10 * i + j
        for i in range(3):
            y[i, 0] = -i

    specialisation = products.specialise()
    for stage in ir_stages(specialisation)[:3]:
        answer = observed_values(specialisation, stage, [2, 3], [])
        assert written(answer, "store @y") == ["23", "-2"]
        assert answer["limits"] == [[0, 4], [0, 5]]


def test_faults_and_endless_loops_stop_it_and_are_reported():
    ti.init()
    y = ti.field(ti.i32, shape=8)

    @ti.kernel
    def wrong(n: ti.i32):
        for i in y:
            y[i] = y[n]

    @ti.kernel
    def endless():
        k = 1
        while k > 0:
            k = 2 - k
        y[0] = k

    wrong(0)
    specialisation = wrong.specialisations()[-1]
    answer = observed_values(specialisation, ir_stages(specialisation)[0], [0], [9])
    assert answer["stopped"] == "index 9 is out of range for axis 0 of 'y', which has length 8"
    fn = ir_stages(endless.specialise())[0].function
    found = observe(fn, [], CopiedMemory(endless.specialise().memory), [], Defaults(), step_limit=1000)
    assert found.stopped == "stopped after 1,000 operations"
    assert max(seen.times for op, seen in found.seen.items() if isinstance(op, Prim | Load)) > 10


def test_what_cannot_be_observed_is_said(program):
    specialisation, *_ = program
    assembly = stages_of(specialisation).stages[-1]
    with pytest.raises(TinoteError, match="stages of the IR"):
        observed_values(specialisation, assembly, [0], [1])

    @ti.kernel
    def scaled(a: ti.types.ndarray(ti.f32, 1)):
        for i in a:
            a[i] *= 2.0

    scaled(np.ones(4, np.float32))
    explored = explore(scaled)._explored
    view = explored.view(0)
    assert "takes arrays" in explored.observed(0, view["start"], [0], [])["problem"]


@pytest.mark.parametrize("dtype, value", [(ti.f64, 0.1), (ti.f16, 0.5), (ti.i8, -3), (ti.u64, 2**63 + 1), (ti.u1, 1)])
def test_memory_is_read_in_each_type(dtype, value):
    ti.init()
    here = ti.field(dtype, shape=(3, 2))
    there = ti.field(dtype, shape=(3, 2))
    here[2, 1] = value

    @ti.kernel
    def copy():
        for i, j in here:
            there[i, j] = here[i, j]

    specialisation = copy.specialise()
    fn = ir_stages(specialisation)[0].function
    found = observe(fn, [], CopiedMemory(specialisation.memory), [2, 1], Defaults())
    (loaded,) = [seen.values for op, seen in found.seen.items() if isinstance(op, Load)]
    assert loaded == (value,)


# Adjoints


def slope(fn, arguments, memory, variable, iteration) -> float:
    """By how much the outputs of `fn`, weighted with what stands in their gradients, change with one variable in one
    iteration, by differences: the interpreter runs `fn`, and somebody turns the variable a little when it is bound.
    """
    tracker = IterationTracker(fn)
    outputs = []
    for nudge in (1e-6, -1e-6):
        copy = CopiedMemory(memory)

        def observe(op, values, nudge=nudge):
            if variable in op.outs and tracker.of(op, values) == iteration:
                values[variable] += nudge

        interpret(fn, arguments, copy, observe=observe)
        written = {op.buffer for op in walk(fn.region) if isinstance(op, Store | Atomic)}
        outputs.append(
            sum(
                copy.load(buffer, index) * copy.load(buffer.adjoint, index)
                for buffer in written
                for index in np.ndindex(*buffer.shape)
            )
        )
    return (outputs[0] - outputs[1]) / 2e-6


def test_adjoints_are_slopes_in_every_turn_of_every_loop():
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    y = ti.field(ti.f64, shape=3, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def winding(n: ti.i32):
        for i in x:
            s = x[i]
            for k in range(n):
                t = s * 0.5
                for m in range(k + 1):
                    if m != 1:
                        t += ti.sin(t * s) + x[i]
                    else:
                        t = t * t * 0.3
                s = ti.max(s, t) * 0.9 + s * 0.2
            y[i] = s * x[i]
            total[None] += ti.exp(-s)

    x.from_numpy(np.array([0.3, 0.8, 1.1]))
    y.grad.from_numpy(np.array([0.5, -1.0, 2.0]))
    total.grad[None] = 3.0
    winding(0)
    specialisation = winding.specialisations()[-1]
    fn = stages_of(specialisation, gradient=True).differentiated
    adjoints = observed_adjoints(fn, [3], CopiedMemory(specialisation.memory), [1], Defaults())
    found = adjoints.totals
    assert len({iteration for _, iteration in found}) > 6 and {iteration[0] for _, iteration in found} == {1}
    for (variable, iteration), value in found.items():
        assert value == pytest.approx(slope(fn, [3], specialisation.memory, variable, iteration), rel=1e-5, abs=1e-6)


def gradient_answers(specialisation, iteration, arguments):
    """What is observed in each stage of a gradient, with the stage."""
    stages = stages_of(specialisation, gradient=True)
    for stage in stages.stages:
        if stage.kind is IR and stage.changed:
            yield stage, observed_values(specialisation, stage, iteration, arguments, stages.differentiated)


def test_the_adjoint_of_each_variable_stands_next_to_its_value():
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            a = x[i] * 3.0
            b = ti.sin(a)
            c = a + b  # `a` is used twice: its adjoint is a total
            total[None] += c * b

    value = 0.7
    x.fill(value)
    total.grad[None] = 2.0
    a = 3 * value
    b = math.sin(a)
    c = a + b
    by_b = 2 * (c + b)
    wanted = {"c": (c, 2 * b), "b": (b, by_b), "a": (a, 2 * b + by_b * math.cos(a))}
    found = 0
    for stage, answer in gradient_answers(energy.specialise(), [2], []):
        if not answer["adjoints"]:
            assert not stage.derived and "before differentiation" in answer["missing"]
            assert not any(row["adjoint"] for row in answer["rows"])
            continue
        for row in answer["rows"]:
            name = row["cells"][0][1:].split(".")[0]
            if name not in wanted or row["cells"][3]:
                continue
            assert float(row["cells"][1]) == pytest.approx(wanted[name][0], rel=1e-6), stage
            assert float(row["adjoint"]) == pytest.approx(wanted[name][1], rel=1e-6), stage
            found += 1
        # Adjoints have no adjoints.
        assert all(not row["adjoint"] for row in answer["rows"] if row["cells"][3])
    assert found > 3 * 4
    assert list(x.grad.to_numpy()) == [0, 0, 0, 0]  # it was a copy


def differences(kernel, x, total, arguments, iteration, inner: int) -> float:
    """The change of `total` with what is added in one iteration of the inner loop."""
    found = []
    for nudge in (1e-6, -1e-6):
        total[None] = 0
        kernel(*arguments, nudge, iteration, inner)
        found.append(total[None])
    return (found[0] - found[1]) / 2e-6


def test_in_a_loop_it_is_the_adjoint_of_the_turn_that_is_shown():
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=5, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def chain(n: ti.i32):
        for i in x:
            s = x[i]
            for k in range(n):
                r = ti.sin(s) * (1.0 + 0.5 * k)
                s = r + x[i]
            total[None] += s

    @ti.kernel
    def nudged(n: ti.i32, nudge: ti.f64, iteration: ti.i32, inner: ti.i32):
        for i in x:
            s = x[i]
            for k in range(n):
                r = ti.sin(s) * (1.0 + 0.5 * k)
                if i == iteration and k == inner:
                    r += nudge
                s = r + x[i]
            total[None] += s

    x.from_numpy(np.linspace(0.2, 1.0, 5))
    values = [0.0] * 4
    s = value = float(x[3])
    for k in range(4):
        values[k] = math.sin(s) * (1 + 0.5 * k)
        s = values[k] + value
    wanted = {f"{values[k]:.7g}": differences(nudged, x, total, [4], 3, k) for k in range(4)}
    total.grad[None] = 1.0
    tracker = set()
    chain(4)
    for stage, answer in gradient_answers(chain.specialisations()[-1], [3], [4]):
        for row in answer["rows"]:
            if row["cells"][0].startswith("%r") and row["adjoint"]:
                assert float(row["adjoint"]) == pytest.approx(wanted[row["cells"][1]], rel=1e-5), stage
                tracker.add(row["cells"][1])
    assert f"{values[3]:.7g}" in tracker  # the last iteration, in which the primal leaves it


def test_what_one_loop_passes_on_comes_from_all_turns_of_the_next():
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    y = ti.field(ti.f64, shape=4, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def both():
        for i in x:
            p = x[i] * 2.0
            y[i] = p
        for j in range(4):
            for k in range(4):
                total[None] += y[k] * (1.0 + j)

    total.grad[None] = 1.0
    x.fill(0.5)
    for stage, answer in gradient_answers(both.specialise(), [1, 0], []):
        rows = [row for row in answer["rows"] if row["cells"][0].startswith("%p")]
        assert {row["adjoint"] for row in rows} <= {"10", ""}, stage
        if answer["adjoints"] and not stage.derived:
            assert rows and all(row["adjoint"] == "10" for row in rows)


def test_adjoints_that_are_too_long_to_find_are_not_shown():
    ti.init()
    x = ti.field(ti.f32, shape=100_000, needs_grad=True)
    y = ti.field(ti.f32, shape=100_000, needs_grad=True)

    @ti.kernel
    def twice():
        for i in x:
            y[i] = x[i] * x[i]
        for i in y:
            x[i] = y[i] * y[i]

    stages = stages_of(twice.specialise(), gradient=True)
    stage = next(stage for stage in stages.stages if stage.derived)
    answer = observed_values(twice.specialise(), stage, [3], [], stages.differentiated)
    assert not answer["adjoints"] and "too long" in answer["missing"]
    assert answer["rows"] and not any(row["adjoint"] for row in answer["rows"])


def test_the_explorer_has_adjoints_in_a_gradient_alone(program):
    specialisation, _, _, total = program
    total.grad[None] = 1.0
    explored = explore(specialisation, gradient=True)._explored
    for view, there in ((0, False), (1, True)):
        # The last stage before differentiation, and the same of the kernel.
        names = [stage["name"] for stage in explored.view(view)["stages"]]
        answer = explored.observed(view, names.index("reverse") - 1 if there else 2, [3], [2])
        assert answer["adjoints"] is there
        assert any(row["adjoint"] for row in answer["rows"]) is there


def test_a_seed_stands_in_for_the_gradient_of_the_loss(program):
    specialisation, _, _, total = program
    stages = stages_of(specialisation, gradient=True)
    for stage in ir_stages(specialisation, gradient=True):
        if not stage.derived:
            continue
        answer = observed_values(specialisation, stage, [3], [2], stages.differentiated, 0.5)
        adjoints = [row["cells"][1] for row in answer["rows"] if row["cells"][3].startswith("adjoint")]
        assert "2" in adjoints, stage  # half of d total / d x[3] = 4
    last = next(stage for stage in stages.stages if stage.name == "reverse")
    primal = stages.stages[stages.stages.index(last) - 1]
    answer = observed_values(specialisation, primal, [3], [2], stages.differentiated, 0.5)
    assert "2" in {row["adjoint"] for row in answer["rows"]}
    assert total.grad[None] == 0.0
    explored = explore(specialisation, gradient=True)._explored
    assert [explored.view(number)["seeded"] for number in (0, 1)] == [False, True]
