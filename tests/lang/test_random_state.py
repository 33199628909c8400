"""Random programs of Python around a kernel, with state of all kinds: captured, each call leaves what it leaves as a
function, in memory and in Python, or the program is refused by a line. Between calls, and in them, the state changes.

    pytest tests/lang/test_random_state.py --random-programs 2000
"""

from __future__ import annotations

import builtins
import contextlib
import linecache
import random
import re
import sys
import textwrap
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.python_state import HEAD, STATES
from tinote.errors import CaptureError
from tinote.lang.capture import automatic
from tinote.lang.capture.automatic import AutomaticCapture

CALLS = 24
KINDS = list(STATES)
MEMBERS = np.array([0.5, 1.25])


class Program:
    """What a seed makes: the text of a module with `step`, and what happens between its calls."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        kinds = [KINDS[seed % len(KINDS)], *rng.sample(KINDS, rng.choice((0, 0, 1, 2)))]
        named = {f"s{number}": STATES[kind] for number, kind in enumerate(kinds)}
        parts: list[str] = []
        helpers: list[str] = []
        self.has_effects = False
        for name, state in named.items():
            chosen = rng.choices(state.reads, k=rng.choice((1, 1, 2)))
            if state.effects and rng.random() < 0.3:
                chosen.append(rng.choice(state.effects))
                self.has_effects = True
            for text in chosen:
                text = text.format(s=name)
                where = rng.choice(("here", "here", "function", "method", "loop", "condition"))
                if where in ("function", "method"):
                    helpers.append(_helper(f"h{len(helpers)}", text, in_class=where == "method"))
                    text = f"v = h{len(helpers) - 1}(v)"
                elif where == "loop":
                    text = f"for _ in range(2):\n{textwrap.indent(text, '    ')}"
                elif where == "condition":
                    text = f"if x[0] < 1e300:\n{textwrap.indent(text, '    ')}"
                parts.append(text)
        body = "\n".join(["v = 0.0", *parts, "add(v)", "return x[0]"])
        member = "\n".join([*parts, "return half(v)"])
        made = [state.made.format(s=name) for name, state in named.items()]
        shown = ", ".join(f"str({state.shown.format(s=name)})" for name, state in named.items())
        self.text = "\n".join(
            [
                HEAD,
                *made,
                *helpers,
                _function("step", "", body),
                _function("member", "v", member),
                f"def watched():\n    return [{shown}]",
            ]
        )
        self.kinds = kinds
        self.file = f"random_state_{seed}.py"
        self.between = [self._change(rng, named) if rng.random() < 0.15 else "" for _ in range(CALLS)]
        self.between[0] = ""

    @staticmethod
    def _change(rng: random.Random, named: dict[str, Any]) -> str:
        name, state = rng.choice(list(named.items()))
        return rng.choice(state.changes).format(s=name, v=rng.choice((1.0, 2.0, 3.0, 1.75)))

    def space(self, given: dict[str, Any]) -> dict[str, Any]:
        """A module of it."""
        lines = self.text.splitlines(keepends=True)
        linecache.cache[self.file] = len(self.text), None, lines, self.file
        module = sys.modules["random_state"] = types.ModuleType("random_state")
        space = vars(module)
        space.update(given)
        exec(compile(self.text, self.file, "exec"), space)
        return space

    def __str__(self) -> str:
        own = self.text.removeprefix(HEAD)
        return f"{self.kinds}\n{own}\nbetween calls: {self.between}"


def _function(name: str, parameters: str, body: str) -> str:
    """The text of a function; names that are declared as globals somewhere in it are so from the start."""
    names = sorted(set(re.findall(r"global (\w+);", body)))
    declared = [f"global {', '.join(names)}"] if names else []
    body = re.sub(r"global \w+; ", "", body)
    return f"def {name}({parameters}):\n" + textwrap.indent("\n".join([*declared, body]), "    ")


def _helper(name: str, text: str, *, in_class: bool) -> str:
    body = f"{text}\nreturn v"
    if not in_class:
        return _function(name, "v", body)
    method = textwrap.indent(_function("run", "self, v", body), "    ")
    return f"class C{name}:\n{method}\n{name} = C{name}().run"


class Library:
    """The kernel that all programs launch."""

    def __init__(self) -> None:
        ti.init(num_threads=1, default_fp=ti.f64)
        self.x = x = ti.field(ti.f64, shape=3)

        @ti.kernel
        def add(by: ti.f64):
            for i in x:
                x[i] = 0.5 * x[i] + by * (i + 1)

        @ti.kernel
        def half(a: ti.f64) -> ti.f64:
            return 0.5 * a

        self.given = {"x": x, "add": add, "half": half}


class Out(Exception):
    """A program is refused."""


def follow(program: Program, library: Library, make: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """What each call leaves, and what ran. A captured step that is out of date is captured anew."""
    library.x.fill(0.25)
    space = program.space(library.given)
    step = make(space["step"])
    left: list[Any] = []
    for change in program.between:
        if change:
            with contextlib.suppress(IndexError):  # a list that has got shorter
                exec(change, space)
        if isinstance(step, AutomaticCapture):
            step.renew()
        error: Any = None
        try:
            step()
        except CaptureError as refused:
            if refused.span.line <= 0:
                raise AssertionError(f"refused without a line: {refused}") from refused
            if "out of date" not in refused.message:
                raise Out from refused
            step = make(space["step"])
            try:
                step()
            except CaptureError as again:
                raise Out from again
            except Exception as found:
                error = type(found)
        except Exception as found:
            error = type(found)
        left.append((error, library.x.to_numpy().tobytes(), space["watched"]()))
        if error is not None and make is not follow_plain:
            break  # in Python, what a call that fails has done before is not undone
    return left, step


def follow_plain(step: Any) -> Any:
    """It is called as the function that it is."""
    return step


def follow_batches(program: Program, library: Library, *, batched: bool) -> list[Any]:
    """What the function gives for some members, as a batch or called for one after the other, between the changes."""
    library.x.fill(0.25)
    space = program.space(library.given)
    member = space["member"]
    batch = ti.ad.vmap(member)
    left: list[Any] = []
    for change in program.between:
        if change:
            exec(change, space)
        if change or not left:
            try:
                left.append(batch(MEMBERS).tolist() if batched else [member(a) for a in MEMBERS.tolist()])
            except CaptureError as refused:
                assert refused.span.line > 0
                raise Out from refused
            except Exception as error:
                return [*left, type(error)]
    return left


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)
    before = dict(vars(builtins)), set(sys.modules)
    yield Library()
    for name in [name for name in vars(builtins) if re.fullmatch(r"(of_)?s\d+", name)]:
        delattr(builtins, name)
    assert vars(builtins) == before[0]
    for name in set(sys.modules) - before[1]:
        if name.startswith("s") and name[1:].isdigit():
            del sys.modules[name]


def test_random_state(random_programs: range, library: Library) -> None:
    seeds = random_programs[::2]
    captured = replayed = batched = 0
    for seed in seeds:
        program = Program(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted, _ = follow(program, library, follow_plain)
            wanted = wanted[: next((k + 1 for k, one in enumerate(wanted) if one[0] is not None), len(wanted))]
            if wanted[0][0] is not None:
                continue  # it does not run
            found, step = follow(program, library, AutomaticCapture)
            assert found == wanted, f"seed {seed}, captured unasked: {step.how}\n{program}"
            replayed += step.how.replays > 0
            with contextlib.suppress(Out):
                found, _ = follow(program, library, ti.capture)
                assert found == wanted, f"seed {seed}, captured\n{program}"
                captured += 1
            if program.has_effects:
                continue
            with contextlib.suppress(Out):
                found = follow_batches(program, library, batched=True)
                wanted = follow_batches(program, library, batched=False)
                assert found == wanted, f"seed {seed}, batched\n{program}"
                batched += 1
    assert captured > len(seeds) // 5, f"only {captured} programs were captured"
    assert replayed > len(seeds) // 8, f"only {replayed} programs were replayed"
    assert batched > len(seeds) // 8, f"only {batched} programs ran as batches"
