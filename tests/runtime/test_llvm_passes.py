"""LLVM's own passes, one by one: they begin with the text that is compiled and end with what LLVM makes of it."""

from __future__ import annotations

import pytest

import tinote as ti
from tinote.compiler.inspect.kinds import LLVM
from tinote.compiler.inspect.stages import stages_of
from tinote.errors import CompilerBug
from tinote.runtime import jit
from tinote.runtime.llvm_passes import passes


@pytest.fixture
def energy():
    ti.init()
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            total[None] += x[i] * x[i]

    return energy.specialise()


def without_module_name(text: str) -> list[str]:
    """The lines of a module but for what names it."""
    return [line for line in text.strip().splitlines() if not line.startswith(("; ModuleID", "source_filename"))]


def test_the_last_change_is_what_is_compiled(energy):
    native = stages_of(energy, gradient=True).judge.__self__
    ran = passes(native.text, 3)
    changed = [one for one in ran if one.changed]
    assert 20 < len(changed) < len(ran)
    assert without_module_name(changed[-1].text) == without_module_name(jit.optimise(native.text, 3))
    assert {"SROA", "InstCombine", "LoopVectorize"} <= {one.name for one in changed}
    assert {one.function for one in ran} >= {"", "entry", "task_0"}
    vectorised = next(one for one in changed if one.name == "LoopVectorize")
    before = changed[changed.index(vectorised) - 1]
    assert " x float>" in vectorised.text and " x float>" not in before.text


def test_no_pass_changes_anything_at_level_0(energy):
    native = stages_of(energy).judge.__self__
    assert sum(one.changed for one in passes(native.text, 0)) < 5


def test_text_that_is_not_llvm_is_reported():
    with pytest.raises(CompilerBug, match="expected"):
        passes("define nonsense", 3)


def test_what_a_pass_that_changed_nothing_left_is_not_known(energy):
    native = stages_of(energy).judge.__self__
    idle = next(one for one in passes(native.text) if not one.changed)
    with pytest.raises(ValueError, match="changed nothing"):
        idle.text  # noqa: B018


def test_passes_are_stages_between_the_two_of_llvm(energy):
    stages = stages_of(energy, gradient=True)
    more = stages.with_passes()
    names = [stage.name for stage in more.stages]
    first, last = names.index("LLVM IR"), names.index("LLVM, optimised")
    between = more.stages[first + 1 : last]
    assert more.passes is None and more.with_passes() is more
    assert all(stage.kind is LLVM and stage.group.startswith("LLVM: ") for stage in between)
    assert [s for s in more.stages if s not in between] == list(stages.stages)
    changed = [stage for stage in between if stage.changed]
    assert [line.text for line in changed[-1].lines] == [line.text for line in more.stages[last].lines]
    # The lines know the source that they come from.
    vectorised = next(stage for stage in changed if stage.name.startswith("LoopVectorize"))
    assert {line.line for line in vectorised.lines} & {line.line for line in stages.stages[1].lines} - {0}


def test_the_target_is_that_of_the_machine(energy):
    target = stages_of(energy).target()
    host = jit.host()
    assert (target.triple, target.cpu, target.features) == (host.triple, host.cpu, host.features)
    assert f"-mcpu={host.cpu}" in target.command and "default<O3>" in target.command
