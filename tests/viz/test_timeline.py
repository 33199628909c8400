"""The frames that a page keeps of a view: the last ones, in bounded memory. Its script, run by Node.js."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

import tinote as ti
from tests.viz.test_page_agrees import NODE
from tinote.viz.draw.arrays import ViewError
from tinote.viz.notebook.view import static_source

KEPT = """
const [limit, frames] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const arrays = new Map();
const array = ([name, size]) => {
  if (!arrays.has(name)) arrays.set(name, new DataView(new ArrayBuffer(size)));
  return arrays.get(name);
};
const timeline = new Timeline(limit);
const found = frames.map(([step, parts]) => {
  timeline.add({ step, parts: parts.map(array) });
  const steps = timeline.frames.map((frame) => frame.step);
  const held = new Set(timeline.frames.flatMap(({ parts }) => parts));
  const bytes = [...held].reduce((sum, { byteLength }) => sum + byteLength, FRAME_BYTES * steps.length);
  const ends = [timeline.at(timeline.first).step, timeline.at(timeline.last).step, timeline.at(-5).step];
  return { steps, bytes, counted: timeline.bytes, ends, first: timeline.first };
});
console.log(JSON.stringify(found));
"""


def kept(limit: float, frames: list[tuple[int, list[tuple[str, int]]]]) -> list[dict[str, Any]]:
    """What a timeline of `limit` bytes holds after each of `frames`: steps with the arrays' names and sizes."""
    source = static_source("draw/timeline.js") + KEPT
    done = subprocess.run(
        [str(NODE), "-e", source], input=json.dumps([limit, frames]), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_oldest_frames_go_where_there_is_no_room() -> None:
    frames = [(10 * at, [(f"x{at}", 3000), ("all have it", 5000)]) for at in range(40)]
    for at, state in enumerate(kept(50_000, frames)):
        assert state["bytes"] == state["counted"] <= 50_000
        assert state["steps"] == [10 * number for number in range(at + 1)][-11:]  # 5,000 once, and 4,000 each.
        assert state["first"] == max(0, at - 10)
        assert state["ends"] == [state["steps"][0], state["steps"][-1], state["steps"][0]]


def test_a_frame_of_the_same_step_takes_the_place_of_the_last_one_and_an_earlier_step_begins_anew() -> None:
    steps = [0, 1, 2, 2, 3, 3, 0, 1]
    states = kept(1e6, [(step, [(f"x{at}", 100 + at)]) for at, step in enumerate(steps)])
    assert [state["steps"] for state in states] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0], [0, 1],
    ]  # fmt: skip
    assert all(state["bytes"] == state["counted"] for state in states)


def test_the_newest_frame_stays_however_large_it_is() -> None:
    states = kept(2000, [(at, [(f"x{at}", 10_000)]) for at in range(3)])
    assert [state["steps"] for state in states] == [[0], [1], [2]]


@pytest.mark.parametrize("megabytes", [-1, 1001])
def test_the_room_is_checked(megabytes: float) -> None:
    with pytest.raises(ViewError, match="from 0 to 1,000 megabytes"):
        ti.viz.Plot(lambda: 1.0, timeline=megabytes)
