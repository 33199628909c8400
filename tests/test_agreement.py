"""The programs of `benchmarks/agreement` in tinote, against what Taichi gave for them."""

from __future__ import annotations

import json

import pytest

from benchmarks.agreement.child import SUBJECTS, programs_of
from benchmarks.agreement.compare import difference
from benchmarks.agreement.main import RECORD, judged, results_of
from benchmarks.runners import Interpreters

PROGRAMS = [f"{subject}.{name}" for subject in SUBJECTS for name in programs_of(subject)]


@pytest.mark.slow
def test_every_program_agrees_or_says_why_not() -> None:
    theirs = json.loads(RECORD.read_text(encoding="utf-8"))
    assert theirs.keys() == set(PROGRAMS), "run `python -m benchmarks agreement --peer-python PATH --record`"
    ours = results_of("tinote", PROGRAMS, Interpreters())
    verdicts = {name: judged(name, ours[name], theirs[name]) for name in PROGRAMS}
    assert not {name: why for name, (verdict, why) in verdicts.items() if verdict == "WRONG"}


def test_what_counts_as_a_difference() -> None:
    one = {"value": [1.0, {"a": True}], "printed": ["x = 0.50"]}
    assert not difference(one, {"value": [1.0 + 1e-6, {"a": 1}], "printed": ["x = 0.500000"]})
    assert "instead of" in difference(one, {"value": [1.1, {"a": True}], "printed": ["x = 0.50"]})
    assert "prints" in difference(one, {**one, "printed": ["y = 0.50"]})
    assert "prints" in difference(one, {**one, "printed": ["x = 0.51"]})
    assert difference(one, {"error": "E: no", "printed": []}) == "taichi raises E: no"
    assert difference({"crashed": -11}, one) == "tinote ends the process"
