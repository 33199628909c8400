"""Random programs of Python around kernels: every way to differentiate gives what differences of the whole program say,
or says that it does not.

    pytest tests/autodiff/test_random_python_programs.py --random-programs 5000

The oracle is the program itself, run without any tape on inputs that are moved: a difference quotient of fourth order
with two steps, whose distance bounds its error (`Slope`). What is wrong is shown as the smallest program found that is
wrong in the same way, as Python that runs.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.python_library import FIELDS, LIBRARY, SCRATCH
from tests.autodiff.python_programs import Program, smaller, source
from tests.autodiff.python_writer import write
from tinote.errors import DifferentiationError

#: Whether numbers in Python are active, in every way and under every interface. Where not, programs are of two kinds:
#: those whose numbers in Python are constants, and those whose numbers are active through arithmetic alone and that are
#: differentiated as functions of their arguments.
TRACED = True

Array = np.ndarray[Any, Any]
Point = dict[str, Array]


class Library:
    """The fields and kernels that programs are written for."""

    def __init__(self, seed: int | None) -> None:
        """`seed`: of a new session; None: in the present one."""
        if seed is not None:
            ti.init(default_fp=ti.f64, num_threads=1 + seed % 2, opt_level=(0, 3, 0, 0, 1, 0, 2, 0)[seed // 2 % 8])
        self.space = compiled(LIBRARY, "python_programs_library.py", {"__name__": "python_programs_library"})
        self.fields: dict[str, Any] = {name: eval(name, self.space) for name in FIELDS}
        self.loss = self.space["loss"]


def compiled(text: str, file: str, space: dict[str, Any]) -> dict[str, Any]:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
    return space


def start_of(seed: int) -> Point:
    numbers = np.random.default_rng(seed)
    shapes = {**FIELDS, "a": (), "q": (3,)}
    found = {name: numbers.uniform(0.02, 1, shape) * numbers.choice((-1, 1), shape) for name, shape in shapes.items()}
    # Away from 0, where branches and such are decided: no difference sees a kink that it stands upon.
    return {name: np.asarray(np.round(value, 3)) for name, value in found.items()}


def direction_of(seed: int, *without: str) -> Point:
    numbers = np.random.default_rng(seed + 1)
    found = {name: numbers.normal(size=value.shape) for name, value in start_of(seed).items()}
    return {name: value * (name not in without) for name, value in found.items()}


class Wild(Exception):
    """A program that is not to be differentiated here: it does not run, its numbers grow, or it has a kink."""


class Trial:
    """A program with the library that it runs on."""

    def __init__(self, library: Library, program: Program) -> None:
        self.library = library
        self.program = program
        space = compiled(program.text, f"python_program_{program.seed}.py", dict(library.space))
        self.before: Callable[..., Any] = space["before"]
        self.function: Callable[..., Any] = space["program"]
        self.held: list[Any] = []

    def begin(self, point: Point) -> None:
        """The fields hold what `point` says, and the part before the program has run."""
        library = self.library
        self.held = []
        for name, field in library.fields.items():
            field.from_numpy(point[name])
        for name, value in SCRATCH.items():
            library.space[name].from_numpy(np.array(value))
        library.loss[None] = 0
        if self.program.before:
            with warnings.catch_warnings(), ti.ad.Tape(library.loss):
                warnings.simplefilter("ignore")
                self.before(self.held, [])
        # The program starts here, from what the part before it has left the same for every point.
        for name, field in library.fields.items():
            field.from_numpy(point[name])
        library.loss[None] = 0

    def run(self, a: Any, q: Any) -> Any:
        return self.function(a, q, self.held, [])

    def arguments(self, point: Point) -> tuple[float, Array]:
        return float(point["a"]), point["q"].copy()

    def plainly(self, start: Point, point: Point) -> dict[str, Array]:
        """What the program leaves and returns at `point`, with no tape. `start`: where the part before it ran."""
        self.begin(start)
        for name, field in self.library.fields.items():
            field.from_numpy(point[name])
        returned = self.run(*self.arguments(point))
        found = {name: field.to_numpy() for name, field in self.library.fields.items()}
        found |= {"loss": np.asarray(float(self.library.loss[None])), "returned": np.asarray(float(returned))}
        if not all(np.isfinite(value).all() and np.abs(value).max() < 1e3 for value in found.values()):
            raise Wild
        return found


class Slope(NamedTuple):
    """A directional derivative, with a bound of its error."""

    value: Array
    error: Array


def slope(at: Callable[[float], Array]) -> Slope:
    """The derivative of `at` at 0: a difference quotient of fourth order. Half the step divides its truncation error by
    16, so twice the distance of the two bounds that of the second; rounding is bounded apart. Raises `Wild` at a kink.
    """

    def quotient(h: float) -> Array:
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    h = 2e-3
    coarse, fine = quotient(h), quotient(h / 2)
    error = 2 * np.abs(coarse - fine) + 1e-9 * (1 + np.abs(fine))
    if (error > 1e-6 * (1 + np.abs(fine))).any():
        raise Wild
    return Slope(fine, error)


# ---- ways to differentiate


class Derivative(NamedTuple):
    """What an interface finds: the derivative along a direction, and the values of a run. `size`: how large the terms
    are that it is the sum of.
    """

    along: Array
    value: float | None = None
    size: float = 0.0


def _dot(gradient: dict[str, Any], direction: Point) -> Derivative:
    terms = [np.asarray(gradient[name]) * direction[name] for name in gradient]
    size = float(sum([np.abs(term).sum() for term in terms]))
    return Derivative(np.asarray(sum([term.sum() for term in terms])), None, size)


def by_tape(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    library = trial.library
    with ti.ad.Tape(loss=library.loss):
        trial.run(*trial.arguments(point))
    value = library.loss.to_numpy().item()
    return _dot({name: f.grad.to_numpy() for name, f in library.fields.items()}, direction)._replace(value=value)


def by_forward_mode(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    library = trial.library
    fields = list(library.fields.values())
    with ti.ad.FwdMode(loss=library.loss, param=fields, seed=[direction[name] for name in library.fields]):
        trial.run(*trial.arguments(point))
    return Derivative(library.loss.dual.to_numpy(), library.loss.to_numpy().item())


def _wrt(trial: Trial) -> dict[str, Any]:
    return {"wrt": list(trial.library.fields.values())}


def by_grad(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    found = ti.ad.grad(trial.run, **_wrt(trial), loss=trial.library.loss)(*trial.arguments(point))
    return _dot(dict(zip(FIELDS, found, strict=True)), direction)


def _of_all(found: Any) -> dict[str, Any]:
    (by_a, by_q), fields = found
    return {"a": by_a, "q": by_q, **dict(zip(FIELDS, fields, strict=True))}


def by_value_and_grad(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    value, found = ti.ad.value_and_grad(trial.run, (0, 1), **_wrt(trial))(*trial.arguments(point))
    return _dot(_of_all(found), direction)._replace(value=float(value))


def by_vjp(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    value, found = ti.ad.vjp(trial.run, (0, 1), **_wrt(trial))(0.5, *trial.arguments(point))
    half = _dot(_of_all(found), direction)
    return Derivative(2 * half.along, float(value), 2 * half.size)


def _seed(direction: Point) -> Any:
    return (float(direction["a"]), direction["q"]), [direction[name] for name in FIELDS]


def by_jvp(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    value, found = ti.ad.jvp(trial.run, (0, 1), **_wrt(trial))(_seed(direction), *trial.arguments(point))
    return Derivative(np.asarray(found), float(value))


def _by_jacobian(mode: str) -> Callable[..., Derivative]:
    def by_jacobian(trial: Trial, point: Point, direction: Point) -> Derivative:
        trial.begin(point)
        y = trial.library.fields["y"]
        found = ti.ad.jacobian(trial.run, **_wrt(trial), loss=y, mode=mode)(*trial.arguments(point))
        parts = [(rows * direction[name]).reshape(3, -1) for name, rows in zip(FIELDS, found, strict=True)]
        size = float(sum([np.abs(part).sum() for part in parts]))
        return Derivative(np.asarray(sum([part.sum(1) for part in parts])), None, size)

    return by_jacobian


def _gradient_of_all(trial: Trial, start: Point, point: Point) -> Point:
    trial.begin(start)
    for name, field in trial.library.fields.items():
        field.from_numpy(point[name])
    return _of_all(ti.ad.grad(trial.run, (0, 1), **_wrt(trial))(*trial.arguments(point)))


def by_hvp(trial: Trial, point: Point, direction: Point) -> Derivative:
    trial.begin(point)
    found = _of_all(ti.ad.hvp(trial.run, (0, 1), **_wrt(trial))(_seed(direction), *trial.arguments(point)))
    along = np.concatenate([np.ravel(found[name]) for name in sorted(found)])
    return Derivative(along, None, float(np.abs(along).sum()))


class Interface(NamedTuple):
    """`output`: what of a plain run it differentiates; "gradient": that of what is returned. `arguments`: whether with
    respect to the arguments, too.
    """

    run: Callable[[Trial, Point, Point], Derivative]
    output: str
    arguments: bool


INTERFACES = {
    "tape": Interface(by_tape, "loss", False),
    "forward mode": Interface(by_forward_mode, "loss", False),
    "grad": Interface(by_grad, "loss", False),
    "value_and_grad": Interface(by_value_and_grad, "returned", True),
    "vjp": Interface(by_vjp, "returned", True),
    "jvp": Interface(by_jvp, "returned", True),
    "jacobian forward": Interface(_by_jacobian("forward"), "y", False),
    "jacobian reverse": Interface(_by_jacobian("reverse"), "y", False),
    "hvp": Interface(by_hvp, "gradient", True),
}


# ---- the comparison


class Wrong(NamedTuple):
    """`kind`: of what class a disagreement is; `what`: the words."""

    kind: str
    what: str


def problem(library: Library, program: Program, name: str) -> Wrong | None:
    """What is wrong with a program under an interface. Raises `Wild` for one that says nothing."""
    interface = INTERFACES[name]
    point = start_of(program.seed)
    direction = direction_of(program.seed, *(() if interface.arguments else ("a", "q")))
    try:
        trial = Trial(library, program)
        expected = trial.plainly(point, point)

        def at(h: float) -> Array:
            moved = {key: value + h * direction[key] for key, value in point.items()}
            if interface.output == "gradient":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = _gradient_of_all(trial, point, moved)
                return np.concatenate([np.ravel(found[key]) for key in sorted(found)])
            return trial.plainly(point, moved)[interface.output]

        wanted = None if interface.output == "gradient" and program.lossy else slope(at)
    except Exception as error:
        raise Wild from error
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = interface.run(trial, point, direction)
        except DifferentiationError as error:
            # What a checkpoint's steps compute has no second derivative, and says so.
            known = program.lossy or (name == "hvp" and "ti.ad.checkpoint" in program.text)
            return None if known else Wrong("refused", str(error))
        except Exception as error:
            return Wrong(type(error).__name__, str(error))
    said = [str(one.message) for one in caught]
    if said and not program.may_warn:
        return Wrong("warns", "\n".join(said))
    if found.value is not None:
        plain = float(expected[interface.output])
        if found.value != pytest.approx(plain, rel=1e-11, abs=1e-11):
            return Wrong("value", f"the value is {found.value}, without derivatives {plain}")
    if wanted is None or (said and program.lossy):
        return None
    allowed = wanted.error + 1e-9 * (1 + found.size)
    if np.isfinite(found.along).all() and (np.abs(found.along - wanted.value) <= allowed).all():
        return None
    return Wrong("derivative", f"found {found.along}, differences say {wanted.value} (± {allowed})")


def shrunk(library: Library, program: Program, name: str, kind: str, seconds: float = 60.0) -> Program:
    """The smallest program found with a problem of this kind."""
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        for candidate in smaller(program):
            try:
                found = problem(library, candidate, name)
            except Wild:
                continue
            if found is not None and found.kind == kind and candidate.lossy <= program.lossy:
                program, again = candidate, True
                break
            if time.monotonic() > end:
                break
    return program


WRT = f"[{', '.join(FIELDS)}]"
DRIVERS = {
    "tape": f"with ti.ad.Tape(loss):\n    program(a, q, held, log)\nprint([field.grad for field in {WRT}])",
    "forward mode": f"with ti.ad.FwdMode(loss=loss, param={WRT}, seed=direction):\n    program(a, q, held, log)\n"
    "print(loss.dual)",
    "grad": f"print(ti.ad.grad(program, wrt={WRT}, loss=loss)(a, q, held, log))",
    "value_and_grad": f"print(ti.ad.value_and_grad(program, (0, 1), wrt={WRT})(a, q, held, log))",
    "vjp": f"print(ti.ad.vjp(program, (0, 1), wrt={WRT})(0.5, a, q, held, log))",
    "jvp": f"print(ti.ad.jvp(program, (0, 1), wrt={WRT})(((da, dq), direction), a, q, held, log))",
    "jacobian forward": f"print(ti.ad.jacobian(program, wrt={WRT}, loss=y, mode='forward')(a, q, held, log))",
    "jacobian reverse": f"print(ti.ad.jacobian(program, wrt={WRT}, loss=y, mode='reverse')(a, q, held, log))",
    "hvp": f"print(ti.ad.hvp(program, (0, 1), wrt={WRT})(((da, dq), direction), a, q, held, log))",
}


def shown(program: Program, name: str) -> str:
    """A program that fails under an interface, as Python that runs."""
    start = {key: value.tolist() for key, value in start_of(program.seed).items()}
    interface = INTERFACES[name]
    along = direction_of(program.seed, *(() if interface.arguments else ("a", "q")))
    driver = f"direction = [{', '.join([f'np.array({along[key].tolist()!r})' for key in FIELDS])}]\n"
    driver += f"da, dq = {along['a'].item()!r}, np.array({along['q'].tolist()!r})\n{DRIVERS[name]}"
    return source(program, start, driver)


def check(library: Library, program: Program, names: list[str]) -> list[str]:
    """Compare the interfaces. Gives those that said something; what is wrong fails."""
    done: list[str] = []
    for name in names:
        try:
            found = problem(library, program, name)
        except Wild:
            continue
        if found is not None:
            least = shrunk(library, program, name, found.kind)
            with contextlib.suppress(Wild):
                found = problem(library, least, name) or found
            pytest.fail(
                f"seed {program.seed}, {name}: {found.kind}\n{found.what}\n\n{shown(least, name)}", pytrace=False
            )
        done.append(name)
    return done


def flows(seed: int) -> tuple[str, list[str]]:
    """Of what kind the program of a seed is, and under which interfaces it runs: the tape and some of the others."""
    names = list(INTERFACES)
    if not TRACED and seed % 2:
        names = [name for name, interface in INTERFACES.items() if interface.arguments]
    chosen = [names[(seed + k * k) % len(names)] for k in range(3)]
    flow = "full" if TRACED else "calls" if seed % 2 else "none"
    return flow, [name for name in names if name in chosen or name == "tape"]


def test_random_programs(random_programs: range) -> None:
    compared = 0
    library = Library(random_programs.start // 50)
    for seed in random_programs:
        if seed % 50 == 0:
            library = Library(seed // 50)
        flow, names = flows(seed)
        compared += bool(check(library, write(seed, flow), names))
    assert compared > 0.7 * len(random_programs), f"only {compared} programs said something"


def test_looking_at_values_changes_no_derivative(random_programs: range) -> None:
    """Not in the last bit."""
    library, looked = Library(0), 0
    for seed in random_programs[::4]:
        program = write(seed, flows(seed)[0])
        plain = program.without_looks()
        if plain == program or program.lossy:
            continue
        point, direction = start_of(seed), direction_of(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, wanted = [by_tape(Trial(library, one), point, direction) for one in (program, plain)]
        assert found == wanted, f"seed {seed}\n{program.text}"
        looked += 1
    assert looked > 0.02 * len(random_programs)


# ---- the oracle itself


def test_a_slope_and_its_error() -> None:
    found = slope(lambda h: np.array([np.sin(1 + 2 * h), np.exp(3 * h)]))
    assert (np.abs(found.value - [2 * np.cos(1), 3]) <= found.error).all()
    assert (found.error < 1e-7).all()
    kinks: list[Callable[[float], Array]] = [lambda h: np.abs(np.array(h + 1e-4)), lambda h: np.array(1.0 * (h > 1e-3))]
    for kink in kinks:
        with pytest.raises(Wild):
            slope(kink)


@pytest.mark.parametrize("name", ["tape", "jvp"])
def test_a_wrong_derivative_is_noticed_and_shown_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = INTERFACES[name]

    def wrong(trial: Trial, point: Point, direction: Point) -> Derivative:
        found = right.run(trial, point, direction)
        return found._replace(along=found.along * 1.0001) if "advance(" in trial.program.text else found

    monkeypatch.setitem(INTERFACES, name, right._replace(run=wrong))
    library = Library(0)
    seeds = (seed for seed in range(0, 100, 2) if "advance(" in write(seed, "none").text)
    with pytest.raises(pytest.fail.Exception) as caught:
        for seed in seeds:
            check(library, write(seed, "none"), [name])
    message = str(caught.value)
    program = message[message.index("def program") :].split("\n\n")[0]
    assert len(program.splitlines()) <= 6, message
    assert "advance(" in program


@pytest.mark.parametrize("name", list(DRIVERS))
def test_what_is_shown_runs_by_itself(name: str) -> None:
    programs = [write(seed, "none") for seed in range(100)]
    program = next(p for p in programs if p.before and "body." in p.text and "ti.ad.checkpoint" not in p.text)
    space: dict[str, Any] = {}
    text = shown(program, name)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        compiled(text, f"shown_{name}.py", space)
    assert printed.getvalue().strip()


def test_the_same_seed_gives_the_same_program() -> None:
    assert write(7, "full") == write(7, "full")
    assert len({write(seed, "full").text for seed in range(50)}) == 50
    texts = "".join([write(seed, "full").text for seed in range(300)])
    for part in (
        "held[0]",
        "ti.ad.checkpoint",
        "np.",
        "ti.sin",
        ".copy_from",
        ".fill",
        "to_numpy",
        "float(",
        "+= ",
        "push(",
    ):
        assert part in texts


def test_programs_do_not_depend_on_their_tapes() -> None:
    """A program runs plainly, twice with the same result."""
    library, ran = Library(0), 0
    for seed in range(100):
        trial, point = Trial(library, write(seed, "full")), start_of(seed)
        try:
            first, again = trial.plainly(point, point), trial.plainly(point, point)
        except Wild:
            continue
        assert all((first[name] == again[name]).all() for name in first)
        ran += 1
    assert ran > 80
