"""Programs between launches in the explorer: of tapes and captured steps."""

from __future__ import annotations

import re

import pytest

import tinote as ti
from tests.viz.explored import line_of
from tinote.compiler.inspect.kinds import PROGRAM
from tinote.errors import CaptureError, DifferentiationError
from tinote.viz.draw.arrays import ViewError
from tinote.viz.explorer.programs import captured_program, tape_program
from tinote.viz.explorer.widget import explore

HERE = __file__


@pytest.fixture
def world():
    """Two kernels on fields with gradients: one is called with a number, the other adds to a loss."""
    ti.init()
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def grow(by: ti.f64):  # of the first kernel
        for i in x:
            x[i] += by * x[i]

    @ti.kernel
    def energy():  # of the second kernel
        for i in x:
            loss[None] += x[i] ** 2

    return x, loss, grow, energy


def taped(world) -> ti.ad.Tape:
    x, loss, grow, energy = world
    x.fill(1.0)
    loss[None] = 0.0
    with ti.ad.Tape(loss, keep=True) as tape:
        grow(0.1 * x[0])  # the first launch
        energy()  # the second launch
        loss[None] = 2 * loss[None]  # the write
    return tape


def places(lines, word: str) -> list[int]:
    return [line.line for line in lines if re.search(rf"\b{word}\b", line.text)]


def test_a_tape_shows_what_it_recorded_and_its_reverse_sweep(world):
    tape = taped(world)
    x, loss, *_ = world
    before = x.to_numpy(), x.grad.to_numpy(), loss[None]
    program = tape_program(tape)
    recorded, sweep = program.stages.stages
    assert recorded.kind is sweep.kind is PROGRAM and program.stages.first_shown == 1
    assert sweep.text.rstrip() == tape.program()
    operations = recorded.text[recorded.text.index("program") :].splitlines()
    assert operations == [
        "program ():",
        "  %f0 = load @x[0] f64 ()",
        "  %f1 = multiply (0.1f64, %f0)",
        "  launch grow (%f1)",
        "  launch energy ()",
        "  %f2 = load @loss[0] f64 ()",
        "  %f3 = multiply (2.0f64, %f2)",
        "  fill @loss[0] f64 () = %f3",
        "  end none",
    ]
    after = x.to_numpy(), x.grad.to_numpy(), loss[None]
    assert all((a == b).all() for a, b in zip(before[:2], after[:2], strict=True)) and before[2] == after[2]


def test_operations_lead_to_the_lines_that_did_them(world):
    recorded, sweep = tape_program(taped(world)).stages.stages
    first, second = line_of(HERE, "# the first launch"), line_of(HERE, "# the second launch")
    write = line_of(HERE, "# the write")
    assert places(recorded.lines, "launch grow") == [first] and places(recorded.lines, "launch energy") == [second]
    assert places(recorded.lines, "multiply") == [first, write] and places(recorded.lines, "fill") == [write]
    assert places(sweep.lines, "launch grow.grad") == [first] and places(sweep.lines, "launch energy.grad") == [second]
    assert places(sweep.lines, "code grow.grad") == [line_of(HERE, "# of the first kernel")]
    # The one source of all is the function around the block; then come the kernels.
    assert [text.name for text in tape_program(taped(world)).stages.sources] == ["taped", "grow", "energy"]


def test_numbers_that_a_tape_has_not_kept_are_inputs(world):
    x, loss, _, energy = world
    with ti.ad.Tape(loss, keep=True) as tape:
        energy()
        x.fill(3.0)
        loss[None] = 1.0
        energy()
    text = tape_program(tape).stages.stages[0].text
    assert "block @written_to_x: input (32)" in text and "copy @x[0] f64 (4) = @written_to_x[0] f64 (4)" in text
    assert "program (%f0):" in text and "fill @loss[0] f64 () = %f0" in text


def test_kernels_of_a_program_are_further_views(world):
    explorer = explore(taped(world))
    explored = explorer._explored
    titles = explored.opening()["titles"]
    assert titles == ["program", "grow", "energy", "energy, gradient", "grow, gradient"]
    opens = explored.view(0)["opens"]
    assert {name: titles[view] for name, view in opens.items()} == {
        "grow": "grow",
        "energy": "energy",
        "grow.grad": "grow, gradient",
        "energy.grad": "energy, gradient",
    }
    assert explored.view(opens["grow.grad"])["stages"][-1]["name"] == "assembly"
    assert [stage["name"] for stage in explored.view(0)["stages"]] == ["recorded", "reverse sweep"]
    assert explored.find(0, "launch grow")["stages"].keys() == {0, 1}
    assert explored.everything()["views"][0]["opens"] == opens and explorer.picture().startswith(b"\x89PNG")
    assert repr(explorer) == "<IR explorer of tape>"


def test_a_captured_step_shows_both_sides_of_a_condition(world):
    x, loss, grow, energy = world

    @ti.capture
    def step(by):
        grow(by)  # in the step
        if x[0] > 1:
            energy()
        return loss[None]

    with pytest.raises(CaptureError, match="'step' has not been captured yet"):
        explore(step)
    program = captured_program(step.captured(0.5))
    (stage,) = program.stages.stages
    assert stage.text.rstrip() == step.program(0.5)
    assert "if %b" in stage.text and "else:" in stage.text
    assert places(stage.lines, "launch grow") == [line_of(HERE, "# in the step")]
    assert [text.name for text in program.stages.sources] == ["step", "grow", "energy"]
    assert explore(step.captured(0.5)).name == explore(step).name == "step"


def test_a_step_without_arguments_is_captured_for_it(world):
    x, *_ = world

    @ti.capture
    def zero():
        x.fill(0)

    assert "fill @x[0]" in explore(zero)._explored.stage(0, 0)["text"]


def test_what_has_no_program_says_why(world):
    x, loss, grow, energy = world
    with ti.ad.Tape(loss) as tape:
        grow(0.5)
        energy()
        x.fill(1)
    with pytest.raises(DifferentiationError, match="cannot run the gradients of this tape again"):
        explore(tape)
    with pytest.raises(ViewError, match="gradient= is for kernels"):
        explore(taped(world), gradient=True)
    with pytest.raises(ViewError, match="compare_with= is for kernels"):
        explore(taped(world), compare_with=energy)
