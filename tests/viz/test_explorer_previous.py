"""What changed since a kernel ran last: which version is the earlier one, and which of its stages belong to the new
ones.
"""

from __future__ import annotations

import gc
import io
import json
import linecache
import re
import weakref
from difflib import ndiff

import pytest
from PIL import Image

import tinote as ti
from tests.viz.explored import big_stages
from tinote.compiler.inspect.kinds import ASSEMBLY, IR, LLVM
from tinote.compiler.inspect.stages import StageLine, Stages, stages_of
from tinote.errors import TinoteError
from tinote.lang.session.state import memory_of
from tinote.viz.explorer.picture import GROUNDS, _in_short, tally
from tinote.viz.explorer.previous import Change, Previous, named_alike
from tinote.viz.explorer.widget import explore

FIRST = """\
def energy():
    for i in x:
        total[None] += ti.sin(squared(x[i])) * scale
"""
SECOND = """\
def energy():
    for i in x:
        if i > 0:
            y = x[i] * 3.0
            total[None] += ti.sin(squared(x[i])) * scale
"""


class Notebook:
    """Cells that define kernels in one namespace, each under a file name of its own."""

    def __init__(self) -> None:
        self.names: dict = {"ti": ti, "__name__": "cells"}
        self.cells = 0

    def run(self, text: str, decorator: str = "@ti.kernel\n"):
        """Run a cell that defines a function or a class; gives what it made."""
        self.cells += 1
        file, text = f"cell {self.cells}", decorator + text
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.names)
        return self.names[re.search(r"(?:class|def) (\w+)", text)[1]]

    def fields(self, count: int = 8) -> None:
        self.names["x"] = ti.field(ti.f32, shape=count, needs_grad=True, name="x")
        self.names["total"] = ti.field(ti.f32, shape=(), needs_grad=True, name="total")


@pytest.fixture
def cells():
    ti.init()
    found = Notebook()
    found.fields()
    found.names["scale"] = 2.0
    found.run("def squared(y):\n    return y * y\n", "@ti.func\n")
    return found


def texts(earlier) -> list[str]:
    return [s.text for s in stages_of(earlier).stages if s.kind is IR and s.changed]


def test_a_kernel_knows_what_its_name_meant_before(cells):
    first = cells.run(FIRST)
    assert first.earlier() is None
    first()
    were = texts(first.specialise())
    second = cells.run(SECOND)
    assert texts(second.earlier()) == were
    second()
    # Running the cell once more changes nothing, nor what was before.
    again = cells.run(SECOND)
    assert texts(again.earlier()) == were
    again()
    assert texts(cells.run(FIRST).earlier()) == texts(again.specialise())


def test_a_kernel_that_was_never_compiled_was_nothing(cells):
    cells.run(FIRST)
    assert cells.run(SECOND).earlier() is None


def test_a_constant_that_changed_makes_a_version(cells):
    kernel = cells.run(FIRST)
    kernel()
    cells.names["scale"] = 3.0
    kernel()
    before, now = texts(kernel.earlier())[-1], texts(kernel.specialise())[-1]
    changed = [line for line in ndiff(before.splitlines(), now.splitlines()) if line[0] in "+-"]
    assert changed and all("2.0f32" in line or "3.0f32" in line for line in changed)


def test_fields_of_another_shape_make_a_version(cells):
    cells.run(FIRST)()
    ti.init()
    cells.fields(16)
    second = cells.run(FIRST)
    second()
    assert "field (8)" in texts(second.earlier())[0] and "field (16)" in texts(second.specialise())[0]


def test_an_earlier_version_keeps_no_memory(cells):
    cells.run(FIRST)()
    memory = weakref.ref(memory_of(cells.names["x"].buffer))
    cells.fields(16)
    second = cells.run(SECOND)
    second()
    gc.collect()
    assert memory() is None
    assert "field (8)" in texts(second.earlier())[0]


def test_methods_have_earlier_versions_too(cells):
    model = "class Model:\n    @ti.kernel\n    def {}\n        for i in x:\n            x[i] = {}\n"
    for value in ("1.0", "2.0"):
        made = cells.run(model.format("advance(self):", value), "")
        made().advance()
    assert "store @x[%i], 1" in texts(made.advance.earlier())[0]


def previous(cells, first: str = FIRST, second: str = SECOND, gradient: bool = False) -> tuple[Previous, Stages]:
    cells.run(first)()
    kernel = cells.run(second)
    now = stages_of(kernel.specialise(), gradient)
    return Previous(stages_of(kernel.earlier(), gradient), now), now


def differences(found: Previous, now: Stages, number: int) -> tuple[list[str], list[str]]:
    """What is gone and what is new, by the lines' texts without indentation."""
    before = [line.text.strip() for line in found.counterpart(number)[1]]
    after = [line.text.strip() for line in now.stages[number].lines]
    lines = list(ndiff(before, after))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


def test_what_did_not_change_has_the_same_names(cells):
    found, now = previous(cells)
    gone, new = differences(found, now, 1)
    assert now.stages[1].name == "front end"
    # The condition shifts the numbers of all that follows it.
    assert gone == []
    names = [re.sub(r"%\d+", "%", line) for line in new]
    assert names == ["%: u1 = gt %i, 0", "if %:", "%: f32 = load @x[%i]", "%y: f32 = mul %, 3.0"]


def test_only_what_is_new_in_the_source_is_fresh(cells):
    found, now = previous(cells)
    (text, *_) = now.sources
    assert [text.lines[row].strip() for row in found.fresh] == ["if i > 0:", "y = x[i] * 3.0"]
    # A line that stands farther to the right leads to the same columns of the same text.
    _, lines = found.counterpart(1)
    (sine,) = [line for line in lines if " = sin " in line.text]
    assert (
        text.lines[sine.span.line - text.first_line][sine.span.column : sine.span.end_column] == "ti.sin(squared(x[i]))"
    )
    product = next(line for line in lines if " = mul " in line.text)
    assert product.span.file == now.sources[1].file and product.span.inlined_at.file == text.file


def test_each_stage_has_its_counterpart(cells):
    for gradient in (False, True):
        found, now = previous(cells, gradient=gradient)
        numbers = [n for n, stage in enumerate(now.stages) if stage.kind is not ASSEMBLY]
        for n in numbers:
            stage, _ = found.counterpart(n)
            assert stage.kind is now.stages[n].kind
            if not stage.group:
                assert stage.name == now.stages[n].name
        if gradient:
            reverse = next(n for n in numbers if now.stages[n].derived)
            names = {line.primal for line in now.stages[reverse].lines if line.primal}
            assert {line.primal for line in found.counterpart(reverse)[1] if line.primal} & names


def test_a_constant_in_llvm_is_the_only_difference(cells):
    found, now = previous(cells, second=FIRST.replace("* scale", "* 5.0"))
    number = next(n for n, stage in enumerate(now.stages) if stage.kind is LLVM)
    gone, new = differences(found, now, number)
    assert len(gone) == len(new) == 1 and " = fmul " in gone[0] and gone[0].split()[0] == new[0].split()[0]


def test_names_that_mean_something_else_now_are_distinguished():
    before = Stages("f", False, (), tuple(big_stages(40).stages))
    lines = before.stages[0].lines
    other = [line._replace(text=line.text.replace(" = mul ", " = div ")) for line in lines]
    alike = named_alike(lines, other, IR)
    bound = [name for line in alike for name in re.findall(r"(%[\w.]+): ", line.text)]
    assert len(set(bound)) == len(bound)  # no two variables became one
    assert named_alike(lines, lines, IR) == list(lines)


def test_five_thousand_operations_are_named_in_time():
    now = big_stages(5000)
    found = Previous(big_stages(5000), now)
    for n, stage in enumerate(now.stages):
        assert [line.text for line in found.counterpart(n)[1]] == [line.text for line in stage.lines]


def test_a_page_asks_for_it_and_gets_it(cells):
    cells.run(FIRST)()
    made = explore(cells.names["energy"])._explored
    assert made.view(0)["previous"] is False
    second = cells.run(SECOND)
    explored = explore(second, gradient=True)._explored
    for view in (0, 1):
        shown = explored.view(view)
        assert shown["previous"] is True
        answer = json.loads(json.dumps(explored.previous(view, shown["start"])))
        assert answer["fresh"] == [3, 4] and re.search(r"%i\S*: i32 in ", answer["text"]) and answer["operations"] > 0
    everything = explored.everything()
    assert everything["previous"].keys() == everything["stages"].keys()


def colors_of(explorer) -> set[str]:
    """Of the picture that stays."""
    picture = Image.open(io.BytesIO(explorer.picture())).convert("RGB")
    return {"#{:02x}{:02x}{:02x}".format(*color) for _, color in picture.getcolors()}


def test_what_stays_shows_what_has_changed(cells):
    cells.run(FIRST)()
    before = explore(cells.names["energy"], gradient=True)
    second = cells.run(SECOND)
    after = explore(second, gradient=True)
    marked = set(GROUNDS.values())
    assert not colors_of(before) & marked and marked <= colors_of(after)
    data, metadata = after._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == data["text/plain"] != repr(after)
    come, gone = map(int, re.findall(r"(\d+) lines? (?:new|gone)", data["text/plain"]))
    assert before._repr_mimebundle_()[0]["text/plain"] == repr(before) == "<IR explorer of energy>"
    # The lines of now without those that are new are those of then without those that are gone.
    now, then = stages_of(second.specialise(), True), stages_of(second.earlier(), True)
    changes = Previous(then, now).changes(now.first_shown)
    assert [c.line.text for c in changes if c.mark != "-"] == [line.text for line in now.stages[now.first_shown].lines]
    assert sum(c.mark != "+" for c in changes) == len(then.stages[then.first_shown].lines)
    assert (come, gone) == (sum(c.mark == "+" for c in changes), sum(c.mark == "-" for c in changes))
    assert come and gone and any("cos" in c.line.text for c in changes if c.mark == " ")


def test_a_long_stage_shows_its_changes_and_what_is_around_them():
    marks = " " * 50 + "+" + " " * 60 + "--" + " " * 10
    shown = _in_short([Change(mark, StageLine(str(n))) for n, mark in enumerate(marks)])
    assert [row if isinstance(row, int) else row.line.text for row in shown] == [
        48, "48", "49", "50", "51", "52", 56, "109", "110", "111", "112", "113", "114", 8,
    ]  # fmt: skip
    assert len(_in_short([Change(" ", StageLine(""))] * 100)) == 100


def test_what_is_as_before_says_so(cells):
    kernel = cells.run(FIRST)
    now = stages_of(kernel.specialise())
    assert tally(Previous(now, now).changes(now.first_shown)) == "as in the previous run"


def test_an_earlier_version_that_fails_says_so(cells):
    cells.run("def energy():\n    for i in x:\n        ti.atomic_max(x[0], x[i])\n")()
    second = cells.run(FIRST)
    explored = explore(second, gradient=True)._explored
    assert "ti.atomic_max(x[0], x[i])" in explored.previous(1, explored.view(1)["start"])["problem"]
    assert "problem" not in explored.previous(0, 1)
    # What stays is then the present stage alone.
    assert explored.text() == "<IR explorer of energy>" and len(explored.picture()) > 1000


def test_what_came_from_disk_and_changed_since_is_not_known(cells, monkeypatch):
    kernel = cells.run(FIRST)
    kernel()
    specialisation = kernel.specialise()

    def forgotten(self):
        raise TinoteError("what it uses from outside has changed")

    monkeypatch.setattr(type(specialisation), "lowered", property(forgotten))
    assert cells.run(SECOND).earlier() is None
