"""The benchmark harness, on contenders that spin for a known time; and the references, against what they must obey."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from benchmarks import ad, compare, explorer, gpu, pages, sweeps
from benchmarks.__main__ import main
from benchmarks.ad import c_
from benchmarks.ad.tinote_ import subject as tinote_subject
from benchmarks.ad.tinote_.styles import STYLES
from benchmarks.contract import TOLERANCE, Case, Contender, Mode, relative_deviation
from benchmarks.fixed_cost import tinote_ as fixed_cost
from benchmarks.gradients import report
from benchmarks.gradients import system as gradients
from benchmarks.gravity.system import SOFTENING, initial_positions, reference_forces
from benchmarks.harness import Row, Settings, measure
from benchmarks.implicit import jax_ as implicit_jax
from benchmarks.implicit import tinote_ as implicit_tinote
from benchmarks.launch import dialect as launch
from benchmarks.mpm import system as mpm
from benchmarks.nested import system as nested_system
from benchmarks.nested import tinote_ as nested
from benchmarks.peers import PEERS
from benchmarks.pictures import c_ as pictures_c
from benchmarks.pictures import dialect as pictures
from benchmarks.pictures import system as pictures_system
from benchmarks.report import as_json, duration, table
from benchmarks.rollout import tinote_ as rollout
from benchmarks.runners import Interpreters
from benchmarks.verdict import LEAST_ROUNDS, Round, Verdict, judge, order_statistic
from benchmarks.workloads import WORKLOADS

STUB = '''
import atexit
import os
import time
from pathlib import Path

from benchmarks.contract import Subject, UnavailableError


class Spin(Subject):
    """Spins for a number of microseconds a run; the behaviours are what a contender may do wrong."""

    def __init__(self, microseconds, behaviour, parts):
        self.parts = parts
        print("a banner that must not reach the pipe")
        if behaviour == "unavailable":
            raise UnavailableError("no such machine")
        self.seconds = microseconds * 1e-6
        if behaviour == "caches":
            cache = Path(os.environ["TINOTE_CACHE_DIR"]) / "stub"
            if cache.exists():
                self.seconds = 0
            atexit.register(cache.touch)
        self.behaviour = behaviour
        self.runs = 0

    def run(self, count):
        for _ in range(count):
            self.runs += 1
            until = time.perf_counter() + self.seconds
            while time.perf_counter() < until:
                pass
        if self.behaviour == "raises":
            raise ValueError("cannot run\\nsecond line")
        if self.behaviour == "dies":
            os._exit(3)

    def deviation(self):
        if self.behaviour == "wrong later":
            return 0.5 if self.runs > 1 else 0.0
        return {"wrong": 0.5, "nan": float("nan")}.get(self.behaviour, 1e-6)


def create(package, microseconds, behaviour="right", parts=1, workload=""):
    return Spin(microseconds, behaviour, parts)
'''

QUICK = Settings(rounds=2, slice_seconds=0.002)


@pytest.fixture(autouse=True)
def stub_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `spin_stub` importable in the child processes, and leave the peers' interpreter at its default."""
    (tmp_path / "spin_stub.py").write_text(STUB, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("BENCHMARKS_PEER_PYTHON", raising=False)


def spin(name: str, microseconds: int, behaviour: str = "right") -> Contender:
    """Return a contender that spins."""
    return Contender(name, "spin_stub", parameters={"microseconds": microseconds, "behaviour": behaviour})


def test_minima_ratios_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("spinning", (spin("tinote", 100), spin("slow", 400), spin("C stub", 50)), at_most=10.0)
    out = tmp_path / "out.json"
    assert main(["stub", "--rounds", "25", "--slice", "2", "--json", str(out)], {"stub": (case,)}) == 0
    printed = capsys.readouterr().out
    assert "target: tinote at most 10.0 s; met" in printed

    (written,) = json.loads(out.read_text(encoding="utf-8"))["cases"]
    seconds = {row["name"]: row["seconds"] for row in written["rows"]}
    # A spin is never shorter than asked for, and what disturbs it is not in the minimum.
    assert 100e-6 <= seconds["tinote"] < 200e-6
    assert 400e-6 <= seconds["slow"] < 800e-6
    assert all(len(row["minima"]) == 25 for row in written["rows"])
    slow = next(line for line in printed.splitlines() if line.startswith("slow"))
    assert slow.split()[-2:] == [
        f"{seconds['slow'] / seconds['tinote']:.2f}",
        f"{seconds['slow'] / seconds['C stub']:.2f}",
    ]


def test_a_contender_that_misbehaves_leaves_a_row_and_the_others_go_on() -> None:
    missing = Contender("missing", "spin_stub", "no_such_package", {"microseconds": 1})
    behaviours = ("wrong", "wrong later", "nan", "raises", "dies", "unavailable")
    case = Case("trouble", (spin("tinote", 10), *(spin(name, 10, name) for name in behaviours), missing))
    rows = {row.contender.name: row for row in measure(case, QUICK)}
    assert rows["tinote"].comparable is not None
    for name in ("wrong", "wrong later", "nan"):
        assert rows[name].wrong and rows[name].comparable is None, name
    assert rows["raises"].failed == "ValueError: cannot run"
    assert rows["dies"].failed.startswith("ended with status 3")
    assert rows["missing"].unavailable == "not installed"
    assert rows["unavailable"].unavailable == "no such machine"
    printed = table(case, list(rows.values()))
    wrong_lines = [line for line in printed.splitlines() if "WRONG: deviates by" in line]
    # A minimum and a median (two words each), but no ratio.
    assert [len(line.partition("WRONG")[0][18:].split()) for line in wrong_lines] == [4, 4, 4]
    assert "FAILED: ValueError: cannot run" in printed


def test_first_call_is_that_of_a_fresh_process_every_time() -> None:
    case = Case("first", (spin("tinote", 3000),), mode=Mode.FIRST_CALL, most_rounds=1)
    (row,) = measure(case, QUICK)
    assert not row.failed and len(row.minima) == 1
    assert row.minima[0] >= 3e-3


def test_a_warm_call_finds_what_the_process_before_it_left() -> None:
    """The stub is slow where its cache is empty, and fills it when its process ends in good order."""
    case = Case("warm", (spin("tinote", 500_000, "caches"), spin("cold", 500_000)), mode=Mode.WARM_CALL, most_rounds=2)
    warm, cold = measure(case, QUICK)
    assert not warm.failed and not cold.failed
    assert len(warm.minima) == 2 and max(warm.minima) < 0.5 <= min(cold.minima)


def test_a_run_of_several_parts_is_divided_by_them() -> None:
    whole = Contender("tinote", "spin_stub", parameters={"microseconds": 1000})
    parts = Contender("parts", "spin_stub", parameters={"microseconds": 1000, "parts": 10})
    alone, shared = measure(Case("parts", (whole, parts)), replace(QUICK, rounds=20))
    assert alone.seconds is not None and alone.seconds >= 1e-3
    assert shared.seconds is not None and 1e-4 <= shared.seconds < 5e-4


def test_import_time_and_a_package_that_is_not_there() -> None:
    contenders = (Contender("numpy", "numpy", "numpy"), Contender("absent", "absent", "no_such_package"))
    present, absent = measure(Case("import", contenders, mode=Mode.IMPORT, most_rounds=1), QUICK)
    assert present.seconds is not None and present.seconds > 1e-3
    assert absent.unavailable == "not installed" and absent.seconds is None


def test_which_interpreter_runs_what() -> None:
    interpreters = Interpreters("/peers", {"jax": "/jax"})
    assert [interpreters.of(name) for name in ("taichi", "jax", "tinote", None)] == [
        "/peers", "/jax", sys.executable, sys.executable,
    ]  # fmt: skip


def test_every_declared_contender_exists() -> None:
    for cases in WORKLOADS.values():
        for case in cases:
            assert case.contenders[0].name.split()[0] == "tinote" or case.mode is Mode.IMPORT
            assert len({contender.name for contender in case.contenders}) == len(case.contenders)
            for contender in case.contenders:
                if case.mode is not Mode.IMPORT:
                    assert importlib.util.find_spec(contender.module), contender.module
                    assert contender.package is None or contender.package in PEERS


@pytest.mark.parametrize("style", ["captured", "function", "checkpointed"])
def test_rollouts_give_the_gradient_of_the_reference(style: str) -> None:
    ours = rollout.create("tinote", style)
    for _ in range(2):  # from the same angles again
        assert ours.deviation() < 1e-10


@pytest.mark.parametrize("part", ["primal", "gradient"])
@pytest.mark.parametrize("contender", [implicit_tinote, implicit_jax], ids=["tinote", "jax"])
def test_implicit_rollouts_give_the_gradient_of_the_reference(contender: Any, part: str) -> None:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        assert contender.create("", part, 6, 10).deviation() < 1e-7
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("case", WORKLOADS["pictures"], ids=lambda case: case.parameters["picture"])
def test_pictures_are_those_of_the_reference(case: Case) -> None:
    picture = case.parameters["picture"]
    ours = pictures.create("tinote", picture)
    assert ours.deviation() < case.tolerance
    assert pictures_system.reference(picture).decided.mean() > 0.98


def test_the_julia_set_in_c_is_that_of_the_reference() -> None:
    assert pictures_c.create(None, "julia").deviation() < TOLERANCE


def test_a_wrong_picture_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = pictures.create("tinote", "scene")
    monkeypatch.setattr(ours, "result", lambda: pictures.DialectPicture.result(ours)[:, ::-1])
    assert ours.deviation() > 0.1


def test_captured_launches_store_their_argument() -> None:
    ours = launch.create("tinote", "captured")
    assert ours.deviation() == 0 and ours.parts == 100


def test_reference_forces_are_minus_the_gradient_of_the_energy() -> None:
    def energy(x: np.ndarray) -> float:
        squared = ((x[:, None] - x[None]) ** 2).sum(axis=-1) + SOFTENING
        return float(-(squared**-0.5).sum())

    positions = initial_positions(5).astype(np.float64)
    step = 1e-6
    expected = np.zeros_like(positions)
    for index in np.ndindex(*positions.shape):
        shift = np.zeros_like(positions)
        shift[index] = step
        expected[index] = -(energy(positions + shift) - energy(positions - shift)) / (2 * step)
    np.testing.assert_allclose(reference_forces(initial_positions(5)), expected, rtol=1e-5)


def test_a_row_is_shown_over_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    gradient = replace(spin("tinote", 400), over="tinote primal")
    case = Case("paired", (gradient, spin("tinote primal", 100)), at_most_over=1.5)
    assert main(["stub", "--rounds", "5", "--slice", "2"], {"stub": (case,)}) == 0
    printed = capsys.readouterr().out
    shown = float(next(line for line in printed.splitlines() if line.startswith("tinote ")).split()[-1])
    assert 2.0 < shown < 8.0
    assert "target: tinote at most 1.5 times its primal; missed by" in printed


def test_a_row_is_shown_over_that_of_another_package(capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("paired", (replace(spin("tinote", 100), over="rival"), spin("rival", 800)), at_most_over=1 / 3)
    assert main(["stub", "--rounds", "5", "--slice", "2"], {"stub": (case,)}) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-4].endswith("/ tinote   / rival")
    assert "target: tinote at most 0.333 times rival; met" in printed


@pytest.mark.parametrize("program", ["nbody", "wave", "recurrence", "mass_spring"])
def test_the_gradients_of_the_references_are_those_of_their_values(program: str) -> None:
    evaluate = getattr(gradients, program)
    start = gradients.initial_values(program).astype(np.float64)
    if program == "nbody":
        start = start[:20]
    direction = np.random.default_rng(1).normal(size=start.shape)
    if program == "wave":  # the boundary rests
        direction[:, [0, -1], :] = direction[:, :, [0, -1]] = 0
    step = 1e-5
    difference = evaluate(start + step * direction).value - evaluate(start - step * direction).value
    np.testing.assert_allclose((evaluate(start).gradient * direction).sum(), difference / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("program", ["nbody", "wave", "recurrence", "mass_spring"])
def test_the_gradients_agree_with_their_references(program: str) -> None:
    case = next(case for case in WORKLOADS["gradients"] if case.parameters["program"] == program)
    case = replace(case, contenders=tuple([c for c in case.contenders if c.package == "tinote"]))
    for row in measure(case, Settings(rounds=1, slice_seconds=0.001)):
        assert not row.failed and row.deviation < TOLERANCE, row


@pytest.mark.parametrize("case", WORKLOADS["fixed_cost"], ids=lambda case: case.title)
def test_the_derivatives_whose_fixed_cost_is_measured(case: Case) -> None:
    subject = fixed_cost.create("tinote", **case.parameters)
    for _ in range(6):  # as it runs first, and by a plan
        assert subject.deviation() < 1e-12


@pytest.mark.parametrize("case", WORKLOADS["nested"], ids=lambda case: case.title)
def test_the_nested_descents_come_to_where_complex_steps_do(case: Case) -> None:
    both, problem = nested.create("tinote", **case.parameters), case.parameters["problem"]
    found = both.function(*nested_system.START[problem].tolist())  # captured, it does the same
    assert relative_deviation(np.array(found), nested_system.expected(problem)) < 1e-12


SMALL = {
    "least_squares": "40",
    "log_sum_exp": "300",
    "ode": "30",
    "kmeans": "90,7",
    "gaussian_mixture": "70,3,4",
    "determinant": "4",
    "lstm": "2,9",
    "bundle": "4,20,50",
    "hand": "60,25",
}
"""A size for each workload of automatic differentiation that takes no time; no multiple of any vector's length."""


def test_every_workload_of_automatic_differentiation_has_a_small_size() -> None:
    assert set(SMALL) == set(ad.WORKLOADS)


@pytest.mark.usefixtures("most_machine_code_is_made_quickly")
@pytest.mark.parametrize("style", list(STYLES))
@pytest.mark.parametrize("workload", list(SMALL))
def test_derivatives_agree_with_complex_steps(workload: str, style: str) -> None:
    subject = tinote_subject.create("tinote", workload, SMALL[workload], "derivative", style)
    assert subject.deviation() < ad.TOLERANCE


@pytest.mark.parametrize("workload", list(SMALL))
def test_derivatives_in_c_agree_with_complex_steps(workload: str) -> None:
    assert c_.create(None, workload, SMALL[workload], "derivative").deviation() < ad.TOLERANCE
    assert c_.create(None, workload, SMALL[workload], "primal").deviation() < ad.TOLERANCE


def test_a_wrong_derivative_is_noticed() -> None:
    subject = c_.create(None, "hand", SMALL["hand"], "derivative")
    subject.run(1)
    found = subject.derivative().copy()
    found[3, 1, 20] += 1e-6
    assert subject.problem.deviation(subject.value(), subject.derivative()) < ad.TOLERANCE
    assert subject.problem.deviation(subject.value(), found) > ad.TOLERANCE


def test_the_fastest_row_is_held_against_the_fastest_peer(capsys: pytest.CaptureFixture[str]) -> None:
    own = ["tinote fields", "tinote functional", "tinote primal", "c", "jax", "jax, all threads"]
    rows = [
        Row(contender, minima=[seconds])
        for contender, seconds in zip(
            (one for one in ad.CASES[0].contenders if one.name in own), (4.0, 6.0, 1.0, 2.0, 3.0, 0.5), strict=True
        )
    ]
    reported = table(replace(ad.CASES[0], at_most_best=1.5), rows)
    assert reported.endswith("target: tinote's fastest style at most 1.5 times c; missed by 1.33")


def reported(**seconds: float) -> dict[str, Any]:
    """A table of the report with these minima."""
    case = replace(ad.CASES[1], at_most_best=1.5)
    rows = [Row(one, minima=[seconds[one.name]]) for one in case.contenders if one.name in seconds]
    return as_json([(case, rows)], QUICK)["cases"][0]  # type: ignore[index]


def test_a_comparison_of_the_report() -> None:
    seconds = {"tinote fields": 4.0, "tinote ndarrays": 3.0, "tinote functional": 9.0, "tinote primal": 1.5}
    one = report.comparison_of(
        reported(**seconds, **{"tinote fields, all threads": 2.5, "c": 2.0, "jax": 6.0, "jax, all threads": 0.1})
    )
    assert (one.ours, one.ratio, one.over_primal, one.between_styles, one.scaling) == (3.0, 1.5, 2.0, 3.0, 1.6)
    assert one.met
    assert one.scalings == {"fields": (4.0, 2.5)}
    assert report.lines_of_threads(one)[0].endswith("| 4.00 s | 2.50 s | 1.60 |")
    short = reported(**{"tinote fields": 0.9e-3, "tinote fields, all threads": 0.5e-3})
    assert report.comparison_of(short).scalings == {}
    nothing = report.comparison_of(reported(c=2.0))
    assert (nothing.ours, nothing.ratio, nothing.met) == (None, None, None)


def test_the_report_of_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured, kept, and made anew of what was measured."""
    spun = {
        "jax, all threads": 10,
        "tinote fields": 60,
        "tinote functional": 400,
        "tinote primal": 30,
        "c": 20,
        "jax": 50,
    }
    own = [replace(one, module="spin_stub", package=None) for one in ad.CASES[0].contenders]
    rows = tuple(
        replace(
            one, parameters={"microseconds": spun[one.name], "behaviour": "wrong" if "all" in one.name else "right"}
        )
        for one in own
        if one.name in spun
    )
    cases = [replace(case, title=title, contenders=rows) for case, title in zip(ad.CASES, ("a <b>", "c"), strict=False)]
    cases = [replace(case, parameters={"workload": "lstm"}, tolerance=TOLERANCE) for case in cases]
    pair = (replace(spin("tinote", 40), over="tinote primal"), spin("tinote primal", 20))
    gradient = Case("both", pair, at_most_over=1.0)
    workloads = {"ad": tuple(cases), "gradients": (gradient,)}
    options = ["--out", str(tmp_path), "--rounds", "2", "--slice", "2"]
    with pytest.raises(SystemExit):
        report.main([*options, "--case", "no such"], workloads)
    with pytest.raises(SystemExit):
        report.main([*options, "--keep"], workloads)
    assert report.main([*options, "--case", "c"], workloads) == 1
    first = json.loads((tmp_path / "gradients.json").read_text(encoding="utf-8"))["cases"]
    assert [case["title"] for case in first] == ["c"]
    assert report.main([*options, "--keep"], workloads) == 1  # one row is wrong
    record = json.loads((tmp_path / "gradients.json").read_text(encoding="utf-8"))
    assert record["cases"][0] == first[0] and [case["title"] for case in record["cases"]] == ["c", "a <b>", "both"]

    printed = capsys.readouterr().out
    text = (tmp_path / "gradients.md").read_text(encoding="utf-8")
    assert printed.endswith(text + "\n")
    found = report.comparisons_of(record)
    mean = report.geometric_mean([one.ratio for one in found if one.ratio is not None])
    assert mean is not None and f"Geometric mean of 2 cases: **{mean:.2f}** times" in text
    assert "- c, jax, all threads: wrong by 5.0e-01" in text
    assert "0 of 2 targets met" in text and "| both, tinote |" in text
    drawn = ElementTree.fromstring((tmp_path / "gradients.svg").read_text(encoding="utf-8"))
    labels = ["".join(one.itertext()) for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "a <b>" in labels and f"{mean:.2f}" in labels

    (tmp_path / "gradients.md").unlink()
    assert report.main(["--out", str(tmp_path), "--render"], workloads) == 1
    assert (tmp_path / "gradients.md").read_text(encoding="utf-8") == text


def test_the_fluid_falls_freely() -> None:
    """Before it reaches a wall, only gravity changes the momentum of the fluid."""
    velocities = mpm.reference_velocities(substeps=5)
    expected = [0.0, -1.0 - 5 * mpm.TIME_STEP * mpm.GRAVITY]
    np.testing.assert_allclose(velocities.mean(axis=0), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["tinote", "tinote unchecked"])
def test_the_fluid_agrees_with_its_reference(name: str) -> None:
    case = WORKLOADS["mpm"][0]
    case = replace(case, contenders=tuple([c for c in case.contenders if c.name == name]))
    (row,) = measure(case, Settings(rounds=1, slice_seconds=0.001))
    assert not row.failed and row.deviation < TOLERANCE


@pytest.mark.parametrize("n", [8, 300])
def test_c_agrees_with_the_reference_where_there_is_a_compiler(n: int) -> None:
    contenders = tuple(
        Contender(f"C {variant}", "benchmarks.gravity.c_", parameters={"variant": variant})
        for variant in ("mechanical", "by_hand")
    )
    for row in measure(Case("gravity", contenders, {"n": n}), QUICK):
        assert not row.failed
        assert row.unavailable or (row.seconds and row.deviation < TOLERANCE)


def test_durations_have_three_digits() -> None:
    assert [duration(seconds) for seconds in (2.5, 0.0123, 150e-6, 7.2e-9)] == [
        "2.50 s",
        "12.3 ms",
        "150 µs",
        "7.20 ns",
    ]


def test_a_row_without_slices_has_no_figure() -> None:
    assert Row(spin("tinote", 1)).seconds is None


def test_limits_of_the_explorer_are_held_against_minima() -> None:
    python, painted, *rest = explorer.LIMITS
    printed = explorer.table({python: [0.4, 0.1, 0.3], painted: [0.25, 0.21, 0.9], **{what: [] for what in rest}})
    lines = [line.split() for line in printed.splitlines()[1:]]
    assert [line[-6:] for line in lines[:1]] == [["100", "ms", "300", "ms", "200", "ms"]]
    assert [line[-7:] for line in lines[1:]] == [["210", "ms", "250", "ms", "200", "ms", "above"]]


# Comparing two trees


def noisy_round(generator: random.Random, ratio: float) -> Round:
    """Ten pairs of slices as a shared machine gives them, where the new tree takes `ratio` times the old one's time.

    Processes differ by about 2 % as long as they live; slices vary by 1 %, one in five is disturbed, up to six times;
    and one round in six is slow throughout.
    """
    machine = generator.uniform(1, 6) if generator.random() < 1 / 6 else 1.0
    luck_old, luck_new = generator.lognormvariate(0, 0.02), generator.lognormvariate(0, 0.02)

    def seconds(luck: float) -> float:
        disturbance = generator.uniform(1, 6) if generator.random() < 0.2 else 1.0
        return 1e-3 * machine * luck * disturbance * (1 + abs(generator.gauss(0, 0.01)))

    return Round(tuple([(seconds(luck_old), ratio * seconds(luck_new)) for _ in range(10)]))


@pytest.mark.parametrize(
    ("ratio", "never", "mostly"),
    [
        (1.0, {Verdict.SLOWER, Verdict.FASTER}, {Verdict.SAME, Verdict.UNCLEAR}),
        (1.15, {Verdict.SAME, Verdict.FASTER}, {Verdict.SLOWER}),
        (0.85, {Verdict.SAME, Verdict.SLOWER}, {Verdict.FASTER}),
    ],
)
def test_noise_is_no_verdict_and_a_change_is_one(ratio: float, never: set[Verdict], mostly: set[Verdict]) -> None:
    generator = random.Random(1)
    verdicts = [judge([noisy_round(generator, ratio) for _ in range(10)]).verdict for _ in range(300)]
    assert not never & set(verdicts)
    assert sum([verdict in mostly for verdict in verdicts]) > 0.95 * len(verdicts)


def test_a_change_within_the_tolerance_is_not_slower() -> None:
    generator = random.Random(2)
    verdicts = [judge([noisy_round(generator, 1.02) for _ in range(10)]).verdict for _ in range(300)]
    assert verdicts.count(Verdict.SLOWER) <= 3


def test_five_rounds_have_no_interval_and_six_have() -> None:
    one = Round(((1.0, 2.0),))
    assert judge([one] * (LEAST_ROUNDS - 1)).verdict is Verdict.UNCLEAR
    assert judge([one] * LEAST_ROUNDS).verdict is Verdict.SLOWER
    # All but one at each end of nine span the median with 1 - 2 * (1 + 9) / 512 = 0.96, of eight with only 0.93.
    assert [order_statistic(count) for count in (5, 6, 8, 9, 12)] == [None, 0, 0, 1, 2]


def test_what_is_disturbed_is_left_out_and_counted() -> None:
    quiet, slow = Round(((1.0, 1.0), (1.0, 9.0))), Round(((5.0, 7.0),))
    judgement = judge([*[quiet] * 6, slow])
    assert (judgement.rounds, judgement.disturbed_rounds, judgement.disturbed_pairs) == (6, 1, 6)
    assert judgement.verdict is Verdict.SAME and judgement.paired.high == 1.0
    hardly_ever_quiet = [quiet, *[slow] * 9]
    assert judge(hardly_ever_quiet).rounds == 10
    one_side = Round(((1.0, 7.0),))  # the old tree was quick: a fact about the new one, and no disturbance
    assert judge([*[quiet] * 6, one_side]).disturbed_rounds == 0


TREE_STUB = """
import importlib
import time

from benchmarks.contract import Subject


class Spin(Subject):
    def __init__(self, package, name):
        self.microseconds, self.result = getattr(importlib.import_module(package), name)

    def run(self, count):
        until = time.perf_counter() + count * self.microseconds * 1e-6
        while time.perf_counter() < until:
            pass

    def deviation(self):
        return self.result


def create(package, name):
    return Spin(package, name)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose package tells how long its programs take: committed and as it is now."""
    (tmp_path / "tree_stub.py").write_text(TREE_STUB, encoding="utf-8")
    repository = tmp_path / "repository"
    package = repository / "tinote" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("same = worse = better = breaks = errs = (200, 0.0)\n", encoding="utf-8")
    settings = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], [*settings, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    changed = "same = (200, 0.0)\nworse = (600, 0.0)\nbetter = (60, 0.0)\nerrs = (200, 0.5)\nadded = (200, 0.0)\n"
    package.write_text(changed, encoding="utf-8")
    return repository


def compared(repository: Path, *names: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Compare the tree with its commit; the status, and the rows of the JSON."""
    cases = tuple([Case(name, (Contender("tinote", "tree_stub", "tinote", {"name": name}),)) for name in names])
    out = repository / "out.json"
    arguments = ["HEAD", "--minutes", "0", "--slice", "1", "--json", str(out)]
    status = compare.main(arguments, {"stub": cases}, repository)
    return status, {row["name"]: row for row in json.loads(out.read_text(encoding="utf-8"))["rows"]}


def test_a_slower_tree_is_found_and_measured_twice(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, rows = compared(repository, "same", "worse", "better", "added")
    assert status == 1
    assert rows["worse"]["verdict"] == "SLOWER" and 2.5 < rows["worse"]["ratio"] < 3.5
    assert len(rows["worse"]["rounds"]) == len(rows["worse"]["rounds_again"]) == LEAST_ROUNDS
    assert rows["better"]["verdict"] == "faster" and rows["better"]["rounds_again"] == []
    assert rows["same"]["verdict"] in ("same", "unclear")
    assert rows["added"]["verdict"] == "not compared"
    assert (
        "the old tree cannot run it: AttributeError: module 'tinote' has no attribute 'added'" in rows["added"]["note"]
    )
    printed = capsys.readouterr().out
    assert re.search(r"^\| worse \| \d+ µs \| \d+ µs \| \d\.\d{3} \|.*\| SLOWER: confirmed", printed, re.MULTILINE)


def test_a_tree_that_is_as_quick_as_it_was_ends_with_0(repository: Path) -> None:
    status, rows = compared(repository, "same", "added")
    assert status == 0 and not rows["same"]["note"]


@pytest.mark.parametrize(("name", "reason"), [("breaks", "AttributeError"), ("errs", "wrong: deviates by 5.0e-01")])
def test_a_tree_that_fails_or_is_wrong_ends_with_1(repository: Path, name: str, reason: str) -> None:
    status, rows = compared(repository, name)
    assert status == 1 and rows[name]["verdict"] == "FAILED" and reason in rows[name]["note"]


def test_a_commit_that_is_none_is_reported(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compare.main(["no-such-commit"], repository=repository)
    assert ended.value.code == 2
    assert "no such commit: no-such-commit" in capsys.readouterr().err


def test_every_row_of_ours_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    ours = [c for cases in WORKLOADS.values() for case in cases for c in case.contenders if c.package == "tinote"]
    assert compare.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(set(listed)) == len(ours)
    assert compare.main(["--list", "--row", "launch", "--row", "template"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.slow
def test_a_large_field_is_sent_once_to_each_worker() -> None:
    copies, more = sweeps.large_fields(6, 2)
    assert math.isfinite(more.measured)
    assert copies.measured == 1


@pytest.mark.slow
def test_what_sweeps_measure() -> None:
    (row,) = sweeps.many_points(20, 1)
    assert row.measured > 20 * 0.9 * sweeps.SIMULATION_SECONDS / 2 and row.limit > 2
    (row,) = sweeps.overhead(40, 1)
    assert math.isfinite(row.measured) and row.limit == 1
    (row,) = sweeps.compilations(3)
    assert row.measured == 1
    (row,) = sweeps.interrupts(1, ["processes"], [True])
    assert row.measured > 0 and row.limit == 1
    assert sweeps.Row("", 2.0, 1.0, "s").within is False


def test_what_is_measured_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINOTE_SOFTWARE_GPU", "1")
    out = tmp_path / "rows.json"
    gpu.main(["launches", "gravity", "--rounds", "1", "--particles", "64", "--json", str(out)])
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert [row["unit"] for row in rows] == ["µs", "ms", "G/s", "%", "×"] and all(row["measured"] > 0 for row in rows)
    assert rows[4]["limit"] == gpu.MOST_RATIO
    gpu.ti.init()


def test_the_table_of_pages_is_there() -> None:
    text = (Path(__file__).parents[1] / "benchmarks" / "README.md").read_text("utf-8")
    table = text.partition(pages.BEGIN)[2].partition(pages.END)[0]
    assert table.startswith(pages.HEAD)
    assert [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]] == list(pages.CASES)
    found = pages.Measured(96.4, 2.0, 3.0, 412.3, 59.6)
    written = pages.with_table(text, {"walker": found})
    assert "| walker | 96 | 412 | 60 | 2.000 | 3.000 | 1.50 |\n" in written
    assert [a for a, b in zip(text.splitlines(), written.splitlines(), strict=True) if a != b] == [
        line for line in table.splitlines() if line.startswith("| walker ")
    ]
    with pytest.raises(ValueError, match="there is no line"):
        pages.with_table("nothing", {})
