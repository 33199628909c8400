"""Derivatives copy, compare and clear the elements that launches touch, however large their fields are.

Each program touches the same few rows of fields that have few rows or a thousand times as many. The package moves bytes
in a few functions, which count them here; what kernels do is not counted, nor is the clearing of gradients with which a
tape begins, since that is its result.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.lang.data import layout
from tinote.lang.session import owners
from tinote.runtime.memory import Memory

COLUMNS = 16
STEPS = 3
FEW, MANY = 1_000, 100_000  # what is small is cleared and copied as a whole


class Bytes:
    """The bytes that were moved while it `counts`. What such a function calls is a part of it."""

    def __init__(self) -> None:
        self.counts = False
        self.nbytes = 0

    def counted(self, function: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
        def counting(*args: Any, **kwargs: Any) -> Any:
            if not self.counts:
                return function(*args, **kwargs)
            self.nbytes += size(*args)
            self.counts = False
            try:
                return function(*args, **kwargs)
            finally:
                self.counts = True

        return counting

    def of(self, run: Callable[[], Any]) -> int:
        """Those that a program moves."""
        self.nbytes, self.counts = 0, True
        try:
            run()
        finally:
            self.counts = False
        return self.nbytes


moved = Bytes()


class CountingArray(np.ndarray[Any, Any]):
    """A view of a field's memory that counts what goes in and out of it."""

    def __setitem__(self, position: Any, value: Any) -> None:
        moved.nbytes += moved.counts and self[position].nbytes
        super().__setitem__(position, value.view(np.ndarray) if isinstance(value, CountingArray) else value)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        return moved.counted(np.ndarray.copy, lambda array, *_: array.nbytes)(self.view(np.ndarray), *args, **kwargs)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        moved.nbytes += moved.counts and sum(one.nbytes for one in inputs if isinstance(one, CountingArray))
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(one) for one in kwargs["out"])
        return getattr(function, method)(*map(_plain, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        moved.nbytes += moved.counts and self.nbytes
        return function(*map(_plain, args), **{name: _plain(one) for name, one in kwargs.items()})


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CountingArray) else value


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What moves bytes of fields counts them."""
    strided, begin = layout._strided, Memory.__init__

    def whole(memory: Any, *_: Any) -> int:
        return memory.nbytes

    def made(memory: Any, nbytes: int, **_: Any) -> int:
        return nbytes

    def given(copies: Any, array: Any) -> int:
        return array.nbytes

    monkeypatch.setattr(layout, "_strided", lambda *args: strided(*args).view(CountingArray))
    monkeypatch.setattr(Memory, "__init__", moved.counted(begin, made))
    monkeypatch.setattr(Memory, "clear", moved.counted(Memory.clear, whole))
    # Gradients are a tape's result, and it begins by clearing them.
    monkeypatch.setattr(owners, "clear_memories", moved.counted(owners.clear_memories, lambda *_: 0))
    monkeypatch.setattr(layout.Copies, "copy", moved.counted(layout.Copies.copy, given))
    for kind in (Memory, layout.MemoryPart):
        for name in ("copy", "restore"):
            monkeypatch.setattr(kind, name, moved.counted(getattr(kind, name), whole))
    yield
    assert not moved.counts


class Grid:
    """Particles `x[f, p]`, one row a step, and a small grid that each step clears and computes again."""

    def __init__(self, rows: int) -> None:
        self.x = x = array(rows, COLUMNS)
        self.grid = grid = array(COLUMNS)
        self.loss = loss = scalar()

        @ti.kernel
        def clear():
            for i in grid:
                grid[i] = 0.0
                grid.grad[i] = 0.0

        @ti.kernel
        def scatter(f: int):
            for p in range(COLUMNS):
                grid[(p + 1) % COLUMNS] += x[f, p] ** 2

        @ti.kernel
        def gather(f: int):
            for p in range(COLUMNS):
                x[f + 1, p] = 0.5 * x[f, p] + ti.sin(grid[p])

        @ti.kernel
        def step(f: int):
            for p in range(COLUMNS):
                x[f + 1, p] = ti.sin(x[f, p])

        @ti.kernel
        def overwrite(f: int):
            for p in range(COLUMNS):
                x[f, p] = ti.sin(x[f, p]) * x[f, p]

        @ti.kernel
        def total(f: int):
            for p in range(COLUMNS):
                loss[None] += x[f, p] ** 2

        self.clear, self.scatter, self.gather = clear, scatter, gather
        self.step, self.overwrite, self.total = step, overwrite, total
        self.inputs = inputs = array(COLUMNS)

        @ti.kernel
        def begin(f: int):
            for p in range(COLUMNS):
                x[f, p] = ti.sin(inputs[p])

        self.begin = begin
        x.from_numpy(np.linspace(0.1, 0.9, rows * COLUMNS).reshape(rows, COLUMNS))
        inputs.from_numpy(np.linspace(0.1, 0.9, COLUMNS))

    def steps(self) -> None:
        self.begin(0)
        for f in range(STEPS):
            self.step(f)
        self.total(STEPS)

    def substep(self, f: int) -> None:
        self.clear()
        self.scatter(f)
        self.gather(f)


Program = Callable[[], object]
PROGRAMS: dict[str, Callable[[int], Program]] = {}


def program(make: Callable[[int], Program]) -> Callable[[int], Program]:
    """A row of the table: gives, for fields with so many rows, what is run."""
    PROGRAMS[make.__name__] = make
    return make


@program
def tape(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                grid.step(f)
            grid.total(STEPS)

    return run


@program
def tape_of_overwritten_rows(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for _ in range(STEPS):
                grid.overwrite(1)
            for f in (0, 4, 2, 6):
                grid.overwrite(f)
            grid.total(2)

    return run


@program
def gradients_by_hand(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        grid.total.grad(STEPS)
        for f in reversed(range(STEPS)):
            grid.step.grad(f)

    return run


def replaced_substep(grid: Grid) -> Callable[[int], None]:
    """The substep with its gradient by hand, which computes the grid again."""

    @ti.ad.grad_replaced
    def substep(f: int) -> None:
        grid.substep(f)

    @ti.ad.grad_for(substep)
    def substep_gradient(f: int) -> None:
        grid.substep(f)
        grid.gather.grad(f)
        grid.scatter.grad(f)

    return substep


@program
def custom_gradient(rows: int) -> Program:
    grid = Grid(rows)
    substep = replaced_substep(grid)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                substep(f)
            grid.total(STEPS)

    return run


@program
def custom_gradient_in_python(rows: int) -> Program:
    grid = Grid(rows)
    x = grid.x

    @ti.ad.grad_replaced
    def double(f: int) -> None:
        x[f + 1, 0] = 2.0 * x[f, 0]

    @ti.ad.grad_for(double)
    def double_gradient(f: int) -> None:
        x[f + 1, 1] = 3.0
        x.grad[f, 0] += 2.0 * x.grad[f + 1, 0]

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                double(f)
            grid.total(STEPS)

    return run


@program
def without_gradient(rows: int) -> Program:
    grid = Grid(rows)
    weights = ti.field(ti.f64, shape=(rows, COLUMNS))

    @ti.kernel
    def weigh(f: int):
        for p in range(COLUMNS):
            weights[f, p] = weights[f, p] + 1.0

    @ti.kernel
    def add(f: int):
        for p in range(COLUMNS):
            grid.loss[None] += weights[f, p] * grid.x[f, p] ** 2

    constant = ti.ad.no_grad(lambda f: weigh(f))

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for _ in range(STEPS):
                for f in (1, 4):
                    constant(f)
                    add(f)

    return run


@program
def writes_from_python(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                grid.step(f)
                grid.x[f, 0] = 2.0
                grid.x[f + 1, 1] = 2.0 * grid.x[f + 1, 2]
            grid.total(STEPS)

    return run


@program
def captured_steps(rows: int) -> Program:
    grid = Grid(rows)

    @ti.capture
    def step(f: int) -> None:
        grid.overwrite(1)
        grid.step(1)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                step(f)
            grid.total(2)

    return run


def _checkpointed(rows: int, *, captured: bool) -> Program:
    grid = Grid(rows)

    def step(t: int) -> None:
        grid.overwrite(1)
        grid.gather(t + 2)

    steps = ti.capture(step) if captured else step

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            ti.ad.checkpoint(steps, 6, snapshots=2)
            grid.total(4)

    return run


@program
def checkpointed_steps(rows: int) -> Program:
    return _checkpointed(rows, captured=False)


@program
def checkpointed_captured_steps(rows: int) -> Program:
    return _checkpointed(rows, captured=True)


@program
def grad_check(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        with ti.ad.Tape(grid.loss, grad_check=[grid.grid]):
            grid.scatter(0)
            grid.gather(0)
            grid.total(1)

    return run


@program
def tape_that_runs_again(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        with ti.ad.Tape(grid.loss, keep=True):
            for _ in range(STEPS):
                grid.overwrite(1)
            grid.total(1)

    return run


@program
def ndarrays(rows: int) -> Program:
    grid = Grid(rows)
    a = ti.ndarray(ti.f64, shape=(rows, COLUMNS), needs_grad=True)

    @ti.kernel
    def use(a: ti.types.ndarray(dtype=ti.f64, ndim=2), f: int):
        for p in range(COLUMNS):
            a[f + 1, p] = a[f, p] * a[f, p] + grid.x[f + 1, p]

    @ti.ad.grad_replaced
    def replaced(f: int) -> None:
        use(a, f)

    @ti.ad.grad_for(replaced)
    def replaced_gradient(f: int) -> None:
        use(a, f)
        use.grad(a, f)

    def run() -> None:
        with ti.ad.Tape(grid.loss):
            for f in range(STEPS):
                use(a, f)
                replaced(f)
            grid.total(1)

    return run


@program
def gradient_function(rows: int) -> Program:
    grid = Grid(rows)
    return ti.ad.grad(grid.steps, wrt=grid.inputs, output=grid.loss)


@program
def vector_jacobian_product(rows: int) -> Program:
    grid = Grid(rows)
    product = ti.ad.vjp(grid.steps, wrt=grid.inputs, output=grid.loss)
    return lambda: product(np.ones(()))


@program
def gradient_function_of_custom_gradients(rows: int) -> Program:
    grid = Grid(rows)
    substep = replaced_substep(grid)

    def steps() -> None:
        grid.begin(0)
        for f in range(STEPS):
            substep(f)
        grid.total(STEPS)

    return ti.ad.grad(steps, wrt=grid.inputs, output=grid.loss)


@program
def reads_and_writes_of_elements(rows: int) -> Program:
    grid = Grid(rows)

    def run() -> None:
        for f in range(STEPS):
            grid.x[f, 0] = grid.x[f + 1, 1] + 1.0
            grid.x.grad[f, 1] = 2.0 * grid.x.grad[f + 1, 2]

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bytes_are_moved(name: str) -> None:
    found: list[int] = []
    for rows in (FEW, MANY):
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        run = PROGRAMS[name](rows)
        for _ in range(4):  # it is compiled, and what is planned is planned
            run()
        found.append(moved.of(run))
    assert found[0] == found[1]


def test_bytes_are_counted() -> None:
    """What moves whole fields is seen."""
    grid = Grid(FEW)
    size = 8 * FEW * COLUMNS
    assert moved.of(lambda: grid.x.memory.copy()) == size
    assert moved.of(lambda: grid.x.fill(1)) == size
    assert moved.of(lambda: layout.warm_copy(layout.array_over(grid.x.buffer, grid.x.memory))) == size
    assert moved.of(lambda: grid.x.memory.clear()) == size
