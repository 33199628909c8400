"""`tape.graph()`: what was recorded, overwritten and copied, folded where it repeats."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.lang.ad.journal.graph import Use


class _Chain:
    """Steps that scatter into a grid, which is cleared before each, and move points."""

    def __init__(self) -> None:
        x = ti.field(ti.f64, shape=10, needs_grad=True)
        v = ti.field(ti.f64, shape=10, needs_grad=True)
        loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def kick():
            for i in x:
                v[i] = 0.9 * v[i] - 0.1 * ti.sin(x[i])

        @ti.kernel
        def move():
            for i in x:
                x[i] += 0.1 * v[i]

        @ti.kernel
        def energy():
            for i in x:
                loss[None] += x[i] ** 2

        self.x, self.v, self.loss = x, v, loss
        self.kick, self.move, self.energy = kick, move, energy

    def graph(self, steps: int) -> Any:
        with ti.ad.Tape(self.loss) as tape:
            for _ in range(steps):
                self.kick()
                self.move()
            self.energy()
        return tape.graph()


def test_repetitions_are_folded_and_copies_are_counted():
    chain = _Chain()
    graph = chain.graph(50)
    assert graph.launches == 101 and [b.name for b in graph.fields] == ["x", "v", "loss"]
    loop, end = graph.blocks
    assert (loop.times, [s.name for s in loop.steps]) == (50, ["kick", "move"])
    assert (end.times, [(s.number, s.name) for s in end.steps]) == (1, [(101, "energy")])
    kick, move = loop.steps
    x, v, loss = (f.buffer for f in (chain.x, chain.v, chain.loss))
    assert kick.uses[x] == Use.READS
    # `kick` is linear in v: nobody needs the old v. `x` is needed by its sine.
    assert kick.uses[v] == Use.READS | Use.STORES | Use.OVERWRITES
    assert move.uses[x] == Use.ADDS | Use.OVERWRITES | Use.COPIED
    assert end.steps[0].uses == {x: Use.READS, loss: Use.ADDS}
    assert (kick.copied, move.copied) == (0, 50 * 80)
    assert graph.copied_bytes == 4000
    assert graph.summary == "101 launches; the tape has copied 3.9 KiB"


def test_the_text_shows_each_step_and_field():
    lines = repr(_Chain().graph(3)).splitlines()
    assert lines[0] == "7 launches; the tape has copied 240 bytes"
    assert lines[1].split() == ["x", "v", "loss"]
    assert lines[2].split() == ["1", "×", "3"]
    assert lines[3].split() == ["kick", "r", "rW", "."]
    assert lines[4].split() == ["move", "±*", "r", "."]
    assert lines[5].split() == ["7", "energy", "r", ".", "+"]


def test_repetitions_inside_of_repetitions_are_folded():
    chain = _Chain()
    with ti.ad.Tape(chain.loss) as tape:
        for _ in range(10):
            for _ in range(20):
                chain.move()
                for _ in range(3):
                    chain.kick()
            chain.energy()
    graph = tape.graph()
    (frames,) = graph.blocks
    assert (graph.launches, frames.times, frames.number) == (10 * 81, 10, 1)
    substeps, energy = frames.steps
    assert (substeps.times, energy.name, energy.number) == (20, "energy", 81)
    move, kicks = substeps.steps
    assert (move.name, kicks.times, [s.name for s in kicks.steps]) == ("move", 3, ["kick"])
    # `x` is moved in all iterations but the first after its sine was taken: a copy of 80 bytes each.
    assert graph.copied_bytes == frames.copied == move.copied == 199 * 80
    assert [line.rstrip(" .rW±*+") for line in repr(graph).splitlines()[2:8]] == [
        "  1  × 10", "       × 20", "         move", "         × 3", "           kick", "       energy",
    ]  # fmt: skip


def test_the_picture_brackets_repetitions_inside_of_repetitions():
    chain = _Chain()
    with ti.ad.Tape(chain.loss) as tape:
        for _ in range(40):
            for _ in range(300):
                chain.kick()
            chain.move()
    picture = ElementTree.fromstring(tape.graph()._repr_svg_())
    svg = "{http://www.w3.org/2000/svg}"
    texts = {e.text: float(e.get("x", "0")) for e in picture.iter(f"{svg}text")}
    edges = [float(e.get("x1", "0")) for e in picture.iter(f"{svg}line") if e.get("x1") == e.get("x2")]
    boxes = [float(e.get("x", "0")) for e in picture.iter(f"{svg}rect") if e.get("rx") == "4"]
    # The words of the outer one, its bracket, the words of the inner one, its bracket, and the boxes of both launches.
    outer, inner = sorted(set(edges))[:2]
    assert texts["1… × 40"] < outer < texts["× 300"] - 5 * 7.2 < texts["× 300"] < inner < min(boxes)
    assert len(boxes) == 2
    assert texts["1… × 40"] - len("1… × 40") * 7.2 > 0


def test_the_picture_is_small_and_whole():
    picture = ElementTree.fromstring(_Chain().graph(100)._repr_svg_())
    texts = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"kick", "move", "energy", "x", "v", "loss", "1… × 100", "7.8 KiB"} <= set(texts)
    assert len(list(picture)) < 100
    assert float(picture.get("height", "0")) < 300
    legend = next(e for e in picture.iter("{http://www.w3.org/2000/svg}text") if e.text == "and the tape copied it")
    widest_letter = 7.0  # pixels of the fixed-width fonts that there are, at this size
    end = float(legend.get("x", "0")) + len(legend.text or "") * widest_letter
    assert end <= float(picture.get("width", "0"))
    assert "max-width:100%" in picture.get("style", ""), "a narrow page would cut it off"


def test_what_python_does_and_what_has_its_own_gradient_is_shown():
    chain = _Chain()
    spare = ti.field(ti.f64, shape=10, needs_grad=True)

    @ti.ad.grad_replaced
    def both():
        chain.kick()

    @ti.ad.grad_for(both)
    def back():
        chain.kick.grad()

    with ti.ad.Tape(chain.loss) as tape:
        both()
        spare.copy_from(chain.x)
        chain.move()
        chain.x.fill(2.0)
        chain.energy()
    steps = [step for block in tape.graph().blocks for step in block.steps]
    assert [step.name for step in steps] == ["both", "copy by Python", "move", "fill by Python", "energy"]
    assert [step.python for step in steps] == [False, True, False, True, False]
    assert Use.STORES in steps[1].uses[spare.buffer] and steps[1].uses[chain.x.buffer] == Use.READS
    assert Use.OVERWRITES in steps[3].uses[chain.x.buffer]
    np.testing.assert_allclose(chain.x.to_numpy(), 2.0)


def test_an_element_that_python_assigns_is_no_step():
    chain = _Chain()
    with ti.ad.Tape(chain.loss) as tape:
        chain.kick()
        chain.x[3] = 2.0
        chain.energy()
    assert [step.name for block in tape.graph().blocks for step in block.steps] == ["kick", "energy"]
    assert tape.copied_bytes == 8  # the sine needs the element


def test_an_empty_tape():
    chain = _Chain()
    with ti.ad.Tape(chain.loss) as tape:
        pass
    graph = tape.graph()
    assert graph.blocks == [] and graph.summary == "0 launches; nothing is copied"
    ElementTree.fromstring(graph._repr_svg_())
    assert repr(graph).startswith(graph.summary)
