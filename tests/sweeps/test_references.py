"""What functions of the user's own modules refer to goes along as it is now, and is part of what a store is known by:
each kind of reference, before and after a change, in another process.
"""

import functools
import importlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.sweeps import modules
from tests.sweeps.modules import nested
from tinote.errors import SerializationError, SweepError
from tinote.lang.shipping.package import pack, pack_arguments, unpack, unpack_arguments
from tinote.lang.shipping.tokens import token

#: Runs programs in a process that has none of their modules yet, and prints what each gives, twice from the start.
RECEIVE = """
import json, pathlib, sys
from tinote.lang.shipping.package import unpack
found = []
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    program = unpack(path.read_bytes())
    with program.imported():
        for _ in range(2):
            program.restore()
            found.append([program.function(a) for a in (1.0, 2.0)])
print(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def fields() -> None:
    """The modules' fields, of this session: those that their import has made are gone after `ti.init()`."""
    nested.x = ti.field(ti.f64, 4)
    nested.simulation.y = ti.field(ti.f64, 2)


def _several(a: float) -> list[float]:
    """All that goes through one module's variable sees the same."""
    return [nested.bump(), nested.read(), nested.COUNT + a]


def _inside(a: float) -> float:
    from tests.sweeps import modules as package  # noqa: PLC0415

    return a * package.BASE * package.nested.RATE


def _set_default(value: float) -> None:
    nested.by_default.__kwdefaults__["also"] = value


def _row(run: Callable[..., Any], where: Any, name: Any, value: Any) -> Any:
    """A function, and the change of what it refers to."""
    change = setattr if isinstance(name, str) and not isinstance(where, dict) else type(where).__setitem__
    if isinstance(where, type):
        change = setattr
    return run, lambda: change(where, name, value)


ROWS: dict[str, tuple[Callable[[float], Any], Callable[[], Any]]] = {
    "a variable of a module": _row(lambda a: nested.by_globals(a), nested, "RATE", 5.0),
    "a dictionary": _row(lambda a: nested.by_globals(a), nested.TABLE, "k", 9.0),
    "a function that was patched": _row(lambda a: nested.by_globals(a), nested, "inner", lambda a: a + 50),
    "an imported function itself": _row(nested.by_globals, nested, "RATE", 6.0),
    "an attribute by its name as text": _row(lambda a: getattr(nested, "RATE") * a, nested, "RATE", 7.0),  # noqa: B009
    "a default": _row(lambda a: nested.by_default(a), nested.by_default, "__defaults__", ([3.0],)),
    "a keyword's default": (lambda a: nested.by_default(a), functools.partial(_set_default, 4.0)),
    "a list that is a default": _row(lambda a: nested.by_default(a, nested.NUMBERS), nested.NUMBERS, 0, 11.0),
    "an attribute of a function": _row(lambda a: nested.by_attribute(a), nested.by_attribute, "factor", 3.0),
    "a variable of an outer function": (
        lambda a: nested.closure(a),
        lambda: nested.closure.__closure__[0].cell_contents.__setitem__(0, 8.0),  # type: ignore[index]
    ),
    "an attribute of a class": _row(lambda a: nested.model.run(a), nested.Model, "attribute", 4.0),
    "an attribute of a base class": _row(lambda a: nested.Model.of_class(a), nested.Base, "attribute", 5.0),
    "an attribute of an object": _row(lambda a: nested.model.run(a), nested.model, "own", 14.0),
    "a method that was patched": _row(lambda a: nested.model.run(a), nested.Model, "run", lambda self, a: a + 100),
    "a bound method": _row(nested.options.times, nested.options, "k", 24.0),
    "a static method": _row(lambda a: nested.Model.static(a), nested, "RATE", 8.0),
    "a property": _row(lambda a: nested.Model().size + a, nested.Model, "attribute", 6.0),
    "a slot": _row(lambda a: nested.slotted.run(a), nested.slotted, "count", 20.0),
    "a dataclass": _row(lambda a: nested.Options().times(a), nested, "RATE", 18.0),
    "a cached function": _row(lambda a: nested.cached.__wrapped__(a), nested, "RATE", 9.0),
    "a wrapped function": _row(lambda a: nested.wrapped(a), nested, "RATE", 10.0),
    "a partial function": _row(
        functools.partial(nested.by_default, also=3.0), nested.by_default, "__defaults__", ([7.0],)
    ),
    "a deque": _row(lambda a: nested.QUEUE[0] * a, nested.QUEUE, 0, 5.0),
    "a constant of a kernel": _row(lambda a: nested.kernel(a), nested, "RATE", 11.0),
    "a constant of a device function": _row(lambda a: nested.kernel(a), nested, "SCALE", 12.0),
    "a method of a struct": _row(lambda a: nested.of_struct(a), nested, "SCALE", 15.0),
    "a field": (lambda a: nested.total() * a, lambda: nested.x.fill(3)),
    "an object with kernels": _row(lambda a: nested.simulation.run(a), nested.simulation, "factor", 3.0),
    "a field of such an object": (lambda a: nested.simulation.run(a), lambda: nested.simulation.y.fill(3)),
    "a module in a package": _row(lambda a: modules.nested.by_globals(a), nested, "RATE", 16.0),
    "the package from inside": _row(lambda a: nested.package_seen_from_inside(a), modules, "BASE", 17.0),
    "an import in a function": _row(_inside, modules, "BASE", 19.0),
    "a counter": _row(_several, nested, "COUNT", 5),
}


def test_each_reference_arrives_as_it_is_now(tmp_path: Path) -> None:
    """In a process that cannot import the modules; and no change leaves what a store is known by as it was."""
    wanted: list[list[Any]] = []
    tokens: dict[str, list[str]] = {}
    for n, (name, (run, change)) in enumerate(ROWS.items()):
        tokens[name] = []
        for when in (0, 1):
            packed = pack(run)
            assert pack(run).token == packed.token, name
            tokens[name].append(packed.token)
            (tmp_path / f"{n:03}-{when}").write_bytes(packed.data)
            wanted += 2 * [[run(a) for a in (1.0, 2.0)]]
            if not when:
                change()
    done = subprocess.run(
        [sys.executable, "-c", RECEIVE, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    names = [f"{name}, {when}" for name in ROWS for when in ("sent", "run anew", "changed", "run anew")]
    assert dict(zip(names, json.loads(done.stdout), strict=True)) == dict(zip(names, wanted, strict=True))
    assert {name: before != after for name, (before, after) in tokens.items()} == dict.fromkeys(ROWS, True)


def test_a_sweep_and_an_ensemble_see_every_change() -> None:
    names = [name for name in ROWS if name not in ("a slot", "a counter")]
    for _, change in ROWS.values():
        change()

    def all_of_them(a: float) -> dict[str, Any]:
        return {name: ROWS[name][0](a) for name in names}

    found = ti.sweep(all_of_them, {"a": [1.0, 2.0]}, progress=False, workers=1)
    assert (found["error"] == "").all()
    for number, a in enumerate((1.0, 2.0)):
        assert {name: found[name].values[number] for name in names} == all_of_them(a)
    x, loss = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(0.5)

    @ti.kernel
    def measure(a: ti.f64):
        for i in x:
            loss[None] += a * x[i] ** 2

    def run(a: float) -> None:
        measure(sum(float(value) for value in all_of_them(a).values()))

    with ti.ensemble(run, over={"a": [1.0, 2.0]}, wrt=x, loss=loss, workers=1) as mean:
        value, gradient = mean()
    factors = [sum(all_of_them(a).values()) for a in (1.0, 2.0)]
    assert value == pytest.approx(0.75 * np.mean(factors), rel=1e-12)
    assert np.asarray(gradient) == pytest.approx(np.full(3, np.mean(factors)), rel=1e-12)


def _write(folder: Path, text: str) -> None:
    """A module of its own, newer than what Python has compiled of the one before."""
    (folder / "edited_helper.py").write_text(text)
    os.utime(folder / "edited_helper.py", (time.time() + len(text),) * 2)


def test_an_edited_helper_does_not_continue_an_old_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    _write(tmp_path, "def h(a): return a * 2\n")

    def lazily(a: float) -> float:
        import edited_helper  # type: ignore[import-not-found]  # noqa: PLC0415

        return edited_helper.h(a)

    def swept(function: Callable[..., Any], store: str) -> list[float]:
        found = ti.sweep(function, {"a": [1.0, 2.0]}, store=tmp_path / store, progress=False, workers=1)
        return found["result"].values.tolist()

    assert swept(lazily, "lazily") == [2, 4]  # that was the first import
    helper = sys.modules["edited_helper"]
    assert swept(lambda a: helper.h(a), "by module") == swept(helper.h, "itself") == [2, 4]
    _write(tmp_path, "def h(a): return a * 5 + 1\n")
    assert swept(lazily, "lazily") == [2, 4]  # as in this process, where it is what it was
    importlib.reload(helper)
    for function, store in ((lazily, "lazily"), (lambda a: helper.h(a), "by module"), (helper.h, "itself")):
        with pytest.raises(SweepError, match="another module edited_helper"):
            swept(function, store)
        assert swept(function, f"{store} again") == [6, 11]


def test_options_are_part_of_a_table(tmp_path: Path) -> None:
    ti.init()

    @ti.kernel
    def third() -> float:
        return 1.0 / 3.0

    def swept() -> Any:
        return ti.sweep(lambda a: a * third(), {"a": [1.0]}, store=tmp_path / "run", progress=False, workers=1)

    found = swept()
    ti.init(default_fp=ti.f64, num_threads=1, random_seed=3)
    with pytest.raises(SweepError, match="another set of options"):
        swept()
    ti.init(default_fp=ti.f32, num_threads=2, random_seed=4)
    assert swept().identical(found)


def test_arguments_are_of_the_classes_that_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a class has changed since it was imported."""
    monkeypatch.setattr(nested.Options, "times", lambda self, a: a * self.k * 100)

    def run(options: nested.Options) -> float:
        return options.times(2.0) * isinstance(options, nested.Options)

    def other(options: Any) -> float:
        return options.times(2.0)

    for function in (run, other):
        found = ti.sweep(function, {"options": [nested.Options(1.0), nested.Options(2.0)]}, progress=False, workers=1)
        assert found["result"].values.tolist() == [200, 400]
    there = unpack_arguments(pack_arguments({"options": nested.Options(3.0)}, frozenset()))
    assert there["options"].times(1.0) == 300
    before = token([nested.Options(1.0)])
    monkeypatch.setattr(nested.Options, "times", lambda self, a: a)
    assert token([nested.Options(1.0)]) != before


def test_what_no_code_names_stays_here() -> None:
    name = "lo" + "ck"  # as no code names it
    program = unpack(pack(lambda: hasattr(nested, name)).data)
    with pytest.raises(SerializationError, match=r"`lock` of the module `tests\.sweeps\.modules\.nested` was not sent"):
        program.function()
    with pytest.raises(SerializationError, match="cannot be sent to another process"):
        pack(lambda: nested.lock.locked())
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        unpack(pack(lambda: nested.nothing).data).function()  # type: ignore[attr-defined]


def test_modules_are_imported_only_while_a_program_runs() -> None:
    program = unpack(pack(lambda: sys.modules["tests.sweeps.modules.nested"] is nested).data)
    assert not program.function()
    with program.imported():
        assert program.function()
        importlib.import_module("tests.sweeps.modules").BASE = 3.0  # type: ignore[attr-defined]
    assert sys.modules["tests.sweeps.modules.nested"] is nested


def test_hashes_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Constants of code, classes that have been used, and abstract classes included."""
    script = tmp_path / "hashes.py"
    script.write_text(
        "import abc, dataclasses\nfrom tinote.lang.shipping.tokens import token\n"
        "def f(v): return v in {'a', 'b', 'c', 'd', 'e'}, v in ('a', frozenset('xyz'))\n"
        "class A(abc.ABC):\n    __slots__ = ('v', 'w')\n    @abc.abstractmethod\n    def run(self): ...\n"
        "@dataclasses.dataclass\nclass B:\n    k: float = 2.0\n"
        "print(token([f, A, B, {'a', 'b', 'c'}]), end='')\n"
    )
    found = {
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and len(found.pop()) == 40


def _code(text: str) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names["f"]


@pytest.mark.parametrize(
    "first, second",
    [
        ("def f(a): return a or 0.0", "def f(a): return a or -0.0"),
        ("def f(a): return a + 1", "def f(a): return a + True"),
        ("def f(a, b): return a", "def f(a, *, b): return a"),
        ("def f(a, b): return a", "def f(a, *b): return a"),
        ("def f(a): return a in {1, 2}", "def f(a): return a in {1, 3}"),
        ("def f(): return lambda: 1", "def f(): return lambda: 2"),
        ("def f():\n try: g()\n except KeyError: pass", "def f():\n g()\n try: pass\n except KeyError: pass"),
    ],
)
def test_code_that_differs_has_another_hash(first: str, second: str) -> None:
    assert token(_code(first)) == token(_code(first)) != token(_code(second))


def test_masked_arguments_have_hashes_of_their_masks() -> None:
    masked = [np.ma.array([1.0, 2.0], mask=[False, mask]) for mask in (False, True)]
    assert token(masked[0]) == token(masked[0].copy()) != token(masked[1])


def test_objects_start_anew_whatever_keeps_their_attributes() -> None:
    held = SimpleNamespace(own=nested.Slotted())

    class Words(dict[str, int]):
        total = 0

    words = Words(a=1)

    def run() -> list[Any]:
        held.own.run(1.0)
        words["b"] = words.total = len(words) + 1
        nested.QUEUE.append(1.0)
        try:
            runs = nested.made_by_a_run + 1  # type: ignore[attr-defined]
        except AttributeError:
            runs = 1
        nested.made_by_a_run = runs  # type: ignore[attr-defined]
        return [held.own.count, len(words), words.total, runs, generator.random(), next(numbers)]

    generator, numbers = random.Random(3), iter([1, 2, 3])
    program = unpack(pack(run).data)
    for _ in range(2):
        with program.imported():
            first = program.function()
            assert first[:4] == [3, 2, 2, 1] and program.function() != first
            program.restore()
            assert program.function() == first
            program.restore()


def test_what_no_run_changes_does_not_arrive_anew(tmp_path: Path) -> None:
    """Objects of libraries are compared by their hashes, also where they hold some of a module that came along."""
    held = deque([nested.Slotted()])

    def run(a: float) -> list[Any]:
        return [type(held[0]) is nested.Slotted, held[0].count, a]

    (tmp_path / "sent").write_bytes(pack(run).data)
    receive = RECEIVE.replace("found.append([", "found.append([program.function is first] + [")
    receive = receive.replace("    with program", "    first = program.function\n    with program")
    done = subprocess.run([sys.executable, "-c", receive, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[True, [True, 2.0, 1.0], [True, 2.0, 2.0]]] * 2


def _square(value: float) -> float:
    return value * value


def test_a_swept_function_may_fork(tmp_path: Path) -> None:
    """Its children do not answer in its place, end with it, and do not hide that it has died."""
    x = ti.field(ti.f64, 4)
    x.fill(1)

    @ti.kernel
    def total(a: ti.f64) -> ti.f64:
        found = 0.0
        for i in x:
            found += a * x[i]
        return found

    def by_child(a: float) -> float:
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ends[1], repr(float(total(a))).encode())
            os._exit(0)
        os.waitpid(child, 0)
        return float(os.read(ends[0], 100))

    def both_return(a: float) -> float:
        return total(a) + (1000 if os.fork() == 0 else 0)

    def raised_in_child(a: float) -> float:
        child = os.fork()
        if child == 0:
            raise ValueError("in the child")
        os.waitpid(child, 0)
        return total(a)

    def by_pool(a: float) -> float:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return sum(pool.map(_square, [a, a])) + total(a) - 2 * a * a

    def dies_with_a_child(a: float) -> float:
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        (tmp_path / f"child {child}").touch()
        if a == 2 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return total(a)

    for function in (by_child, both_return, raised_in_child, by_pool, dies_with_a_child):
        found = ti.sweep(function, {"a": [1.0, 2.0, 3.0]}, progress=False, workers=2)
        assert found["result"].values.tolist() == [4, 8, 12], function.__name__
    children = [int(path.name.split()[1]) for path in tmp_path.glob("child *")]
    assert len(children) >= 4
    for child in children:
        with pytest.raises(ProcessLookupError):
            _wait_for_its_end(child)


def _wait_for_its_end(process: int) -> None:
    """Raises `ProcessLookupError` when it is gone."""
    for _ in range(500):
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        if state.exists() and state.read_text().split(")")[1].split()[0] == "Z":
            raise ProcessLookupError  # nobody here is its parent
        time.sleep(0.02)
