"""`ti.multigrid`: SciPy's direct solutions, order, iterations that do not grow with the grid, derivatives."""

import itertools
import math
from typing import Any

import numpy as np
import pyamg
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.errors import FieldError, SolverError
from tinote.lang.capture.portable import portable

FLOATS = {ti.f32: np.float32, ti.f64: np.float64}


def ends_of(boundary: Any, axis: int) -> Any:
    """The two ends of an axis."""
    one = boundary if isinstance(boundary, str | float) else boundary[axis]
    return (one, one) if isinstance(one, str | float) else one


def system(shape: tuple[int, ...], k: Any, c: Any, size: Any, boundary: Any) -> tuple[Any, Any]:
    """The matrix of finite volumes, and what boundaries add to the right side: written cell by cell."""
    count, places = math.prod(shape), np.arange(math.prod(shape)).reshape(shape)
    matrix: Any = scipy.sparse.lil_array((count, count))
    right = np.zeros(count)
    lengths = np.broadcast_to(size, len(shape))
    for at in itertools.product(*map(range, shape)):
        row = places[at]
        matrix[row, row] += c[at]
        for axis, step in itertools.product(range(len(shape)), (-1, 1)):
            h, to = lengths[axis] / shape[axis], list(at)
            to[axis] += step
            end = ends_of(boundary, axis)[(step + 1) // 2]
            if end == "periodic":
                to[axis] %= shape[axis]
            if 0 <= to[axis] < shape[axis]:
                a, b = k[at], k[tuple(to)]
                link = 2 * a * b / (a + b) / h**2 if a + b else 0.0
                matrix[row, row] += link
                matrix[row, places[tuple(to)]] -= link
            elif end != "neumann":
                matrix[row, row] += 2 * k[at] / h**2
                right[row] += 2 * k[at] / h**2 * (0.0 if end == "dirichlet" else end)
    return matrix.tocsr(), right


class Case:
    """An equation with random source and coefficients."""

    def __init__(
        self, shape: tuple[int, ...], boundary: Any, dtype: Any = ti.f64, seed: int = 0, size: Any = 1.0, **shadows: Any
    ) -> None:
        rng = np.random.default_rng(seed)
        self.shape, self.boundary, self.size = shape, boundary, size
        self.f, self.u, self.k, self.c = (ti.field(dtype, shape=shape, **shadows) for _ in range(4))
        self.source = rng.normal(size=shape).astype(FLOATS[dtype])
        self.coefficient = np.exp(rng.normal(size=shape)).astype(FLOATS[dtype])
        self.absorbed = rng.random(size=shape).astype(FLOATS[dtype])
        self.fill()

    def fill(self) -> None:
        self.f.from_numpy(self.source)
        self.k.from_numpy(self.coefficient)
        self.c.from_numpy(self.absorbed)

    def equation(self, *, absorbs: bool) -> Any:
        given = (self.f, self.u, self.k, self.c) if absorbs else (self.f, self.u, self.k)
        return ti.multigrid.Diffusion(*given, size=self.size, boundary=self.boundary)

    def expected(self, *, absorbs: bool) -> Any:
        """SciPy's direct solution; that with the mean 0 where it is open."""
        zeros = np.zeros(self.shape)
        matrix, right = system(
            self.shape, self.coefficient.astype(float), self.absorbed if absorbs else zeros, self.size, self.boundary
        )
        right = right + self.source.ravel()
        is_open = not absorbs and abs(matrix.sum(axis=1)).max() < 1e-9 * abs(matrix).max()
        if is_open:  # the mean is 0: another row, and another unknown that takes up the mean of the source
            ones = np.ones((right.size, 1))
            matrix = scipy.sparse.block_array([[matrix, ones], [ones.T, None]])
            right = np.append(right, 0.0)
        found: Any = scipy.sparse.linalg.spsolve(matrix.tocsc(), right)
        return found[: self.source.size].reshape(self.shape)


def error_of(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


ENDS = st.sampled_from(["dirichlet", "neumann", 1.5])
AXES = st.one_of(st.just("periodic"), ENDS, st.tuples(ENDS, ENDS))


@settings(max_examples=3, deadline=None)
@given(st.data())
def test_any_shape_and_boundary(data: Any) -> None:
    ti.init(arch=ti.cpu)
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
    boundary = data.draw(st.tuples(*(AXES for _ in shape)))
    size = data.draw(st.tuples(*(st.sampled_from([1.0, 3.0, 20.0]) for _ in shape)))
    case = Case(shape, boundary, size=size, seed=data.draw(st.integers(0, 1000)))
    case.coefficient[np.random.default_rng(1).random(shape) < 0.1] = 0.0
    case.fill()
    case.equation(absorbs=True).solve()
    assert error_of(case.u.to_numpy(), case.expected(absorbs=True)) < 1e-7


@pytest.mark.parametrize(("boundary", "dtype"), [("neumann", ti.f32), ("periodic", ti.f64)])
def test_an_open_mean_is_zero(boundary: str, dtype: Any) -> None:
    ti.init(arch=ti.cpu)
    case = Case((9, 14), boundary, dtype)
    case.source += 3  # for which there is no solution
    case.fill()
    case.equation(absorbs=False).solve()
    assert error_of(case.u.to_numpy(), case.expected(absorbs=False)) < (1e-4 if dtype is ti.f32 else 1e-8)


def test_the_order_of_convergence() -> None:
    """u = sin(π x) cos(π y) where one axis is held and the other is free, k = 1 + x y and absorption 1."""
    ti.init(arch=ti.cpu)
    errors = []
    for n in (16, 32):
        x, y = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 2, indexing="ij")
        s, c = np.sin(np.pi * x), np.cos(np.pi * y)
        slope = np.pi * (y * np.cos(np.pi * x) * c - x * s * np.sin(np.pi * y))
        f, u, k = (ti.field(ti.f64, shape=(n, n)) for _ in range(3))
        f.from_numpy((2 * np.pi**2 * (1 + x * y) + 1) * s * c - slope)
        k.from_numpy(1 + x * y)
        ti.multigrid.Diffusion(f, u, k, 1.0, boundary=("dirichlet", "neumann")).solve()
        errors.append(np.abs(u.to_numpy() - s * c).max())
    assert [math.log2(a / b) for a, b in itertools.pairwise(errors)] == pytest.approx([2], abs=0.1)


def jumps(n: int) -> Any:
    """Discs that conduct a thousand times better or worse, or not at all."""
    rng, x, y = np.random.default_rng(2), *(np.indices((n, n)) + 0.5) / n
    k = np.ones((n, n))
    for conducts in (1e3, 1e-3, 0.0) * 4:
        a, b, r = rng.random(3)
        k[(x - a) ** 2 + (y - b) ** 2 < (0.03 + 0.05 * r) ** 2] = conducts
    return k


@pytest.mark.parametrize(
    ("boundary", "kind"),
    [("periodic", "even"), ("dirichlet", "jumps"), ("neumann", "long")],
)
def test_iterations_do_not_grow_with_the_grid(boundary: str, kind: str) -> None:
    ti.init(arch=ti.cpu)
    taken = []
    for n in (32, 128):
        f, u, k = (ti.field(ti.f64, shape=(n, n)) for _ in range(3))
        k.from_numpy(jumps(n) if kind == "jumps" else np.ones((n, n)))
        f.from_numpy(np.random.default_rng(0).normal(size=(n, n)))
        size = (1.0, 30.0) if kind == "long" else 1.0
        taken.append(ti.multigrid.Diffusion(f, u, k, size=size, boundary=boundary).solve(rtol=1e-8))
    most = 20 if kind == "jumps" else 10
    assert taken[1] <= min(taken[0] + 4, most)


def test_no_more_iterations_than_algebraic_multigrid() -> None:
    ti.init(arch=ti.cpu)
    shape = (40, 56)
    case = Case(shape, ("dirichlet", "neumann"))
    taken = case.equation(absorbs=True).solve(rtol=1e-10)
    matrix, _ = system(shape, case.coefficient, case.absorbed, 1.0, case.boundary)
    residuals = list[float]()
    solver = pyamg.ruge_stuben_solver(matrix.tocsr())
    found = solver.solve(case.source.ravel(), tol=1e-10, accel="cg", residuals=residuals)
    assert taken <= len(residuals) + 3
    assert error_of(case.u.to_numpy().ravel(), found) < 1e-8


class Program:
    """A loss of a solution."""

    def __init__(self, boundary: Any, *, absorbs: bool) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        case = Case((4, 5), boundary, needs_grad=True, needs_dual=True)
        self.case = case
        equation, u = case.equation(absorbs=absorbs), case.u
        loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
        self.loss = loss
        self.by = [(case.f, case.source), (case.k, case.coefficient)]
        if absorbs:
            self.by.append((case.c, case.absorbed))

        @ti.kernel
        def measure():
            for i in ti.grouped(u):
                loss[None] += ti.sin(3 * u[i]) + (i[0] - i[1]) * u[i]

        def run() -> None:
            u.fill(0)
            equation.solve(rtol=1e-13)
            measure()

        self.run = run

    def gradient(self, by: Any, at: Any) -> Any:
        self.case.fill()
        by.from_numpy(at)
        with ti.ad.Tape(self.loss):
            self.run()
        found = by.grad.to_numpy()
        self.case.fill()
        return found


MIXED = ("periodic", (0.5, "neumann"))


@pytest.mark.parametrize(("boundary", "absorbs"), [(MIXED, True), ("neumann", False)])
def test_derivatives_of_a_solution(boundary: Any, absorbs: bool) -> None:
    program = Program(boundary, absorbs=absorbs)
    direction = np.random.default_rng(3).normal(size=(4, 5))
    for by, at in program.by:
        assert ti.ad.gradcheck(program.run, wrt=by, output=program.loss).ok
        slope = (program.gradient(by, at) * direction).sum()
        with ti.ad.FwdMode(program.loss, by, seed=direction):
            program.run()
        assert program.loss.dual[None] == pytest.approx(slope, rel=1e-9)
        ends = [program.gradient(by, at + step * direction) for step in (1e-5, -1e-5)]
        found = ti.ad.hvp(program.run, wrt=by, output=program.loss)(direction)
        assert error_of(found, (ends[0] - ends[1]) / 2e-5) < 1e-6


def test_solutions_and_cycles_in_one_tape() -> None:
    """They do not disturb what the other has to remember."""
    program, total = Program(MIXED, absorbs=True), ti.field(ti.f64, shape=(), needs_grad=True)
    case = program.case
    equation, u, k = case.equation(absorbs=True), case.u, case.k

    @ti.kernel
    def add():
        for i in ti.grouped(u):
            total[None] += u[i] ** 2

    @ti.kernel
    def change():
        for i in ti.grouped(k):
            k[i] *= 1 + 0.1 * i[0]

    def run() -> None:
        case.fill()
        equation.cycle()
        add()
        change()
        equation.solve()
        add()
        change()
        equation.cycle()
        add()

    assert ti.ad.gradcheck(run, wrt=case.f, output=total, elements=8).ok

    def run_of_k() -> None:
        u.fill(0)
        equation.cycle()
        add()
        change()
        equation.solve(rtol=1e-13)
        add()

    case.fill()
    assert ti.ad.gradcheck(run_of_k, wrt=k, output=total, elements=8).ok
    assert ti.ad.gradcheck(run_of_k, wrt=case.c, output=total, elements=8).ok


def test_checkpointed_steps() -> None:
    """Heat that spreads by implicit steps: u of a step is the source of the next."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    heat, before = (ti.field(ti.f64, shape=(6, 7), needs_grad=True) for _ in range(2))
    k = ti.field(ti.f64, shape=(6, 7), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    equation = ti.multigrid.Diffusion(before, heat, k, 50.0, boundary="neumann")
    k.from_numpy(0.5 + np.random.default_rng(0).random((6, 7)))

    @ti.kernel
    def begin():
        for i in ti.grouped(heat):
            heat[i] = 1.0 * (i[0] < 3) + 0.1 * i[1]

    @ti.kernel
    def take():
        for i in ti.grouped(heat):
            before[i] = 50.0 * heat[i]

    @ti.kernel
    def measure():
        for i in ti.grouped(heat):
            loss[None] += (heat[i] - 1) ** 2

    def step() -> None:
        take()
        equation.solve(rtol=1e-12)

    gradients = []
    for memory in (None, 100_000):
        with ti.ad.Tape(loss):
            begin()
            if memory is None:
                for _ in range(6):
                    step()
            else:
                ti.ad.checkpoint(lambda _: step(), 6, memory=memory, progress=False)
            measure()
        gradients.append(k.grad.to_numpy())
    assert error_of(*gradients) < 1e-9


def test_captured_cycles() -> None:
    ti.init(arch=ti.cpu)
    case = Case((16, 13), ("periodic", "dirichlet"), ti.f32)
    equation = case.equation(absorbs=False)
    cycle, expected = ti.capture(lambda: equation.cycle(2)), case.expected(absorbs=False)
    errors = [error_of(case.u.to_numpy(), expected)]
    for _ in range(3):
        cycle()
        errors.append(error_of(case.u.to_numpy(), expected))
    assert all(b < a / 10 for a, b in itertools.pairwise(errors))


def test_cycles_in_a_page() -> None:
    ti.init(arch=ti.cpu)
    case = Case((9, 12), ("periodic", (1.0, "neumann")), ti.f32)
    equation = case.equation(absorbs=True)
    made = portable([("cycle", lambda: equation.cycle(2), ())], {"u": case.u})
    assert made.refused == {}
    *_, found = played(made.encode(), ["call", "cycle"], ["call", "cycle"], ["call", "cycle"], ["read", "u"])
    assert error_of(numbers(found, case.u.to_numpy()), case.expected(absorbs=True)) < 1e-4


def test_cells_that_nothing_is_coupled_to_hold_zero() -> None:
    ti.init(arch=ti.cpu)
    case = Case((8, 8), "neumann")
    case.coefficient[2:4, 3] = 0.0
    case.fill()
    case.u.fill(7.0)
    case.equation(absorbs=False).solve()
    found = case.u.to_numpy()
    assert np.all(found[2:4, 3] == 0)
    matrix, _ = system((8, 8), case.coefficient, np.zeros((8, 8)), 1.0, "neumann")
    fluid = case.coefficient > 0
    source = np.where(fluid, case.source - case.source[fluid].mean(), 0.0)
    assert error_of((matrix @ found.ravel()).reshape(8, 8), source) < 1e-8
    assert abs(found[fluid].mean()) < 1e-12


def test_what_has_no_solution_is_refused() -> None:
    ti.init(arch=ti.cpu)
    case = Case((8, 8), "neumann")
    case.coefficient[:, 4] = 0.0  # two halves, each with its own mean
    case.fill()
    with pytest.raises(SolverError, match="a source whose sum is 0") as caught:
        case.equation(absorbs=False).solve()
    assert caught.value.span.file == __file__
    assert caught.value.residual is not None
    assert caught.value.residual > 0.1
    for field in (case.f, case.k):
        case.coefficient[:, 4] = 1.0
        case.fill()
        field[3, 3] = math.nan
        with pytest.raises(SolverError, match="NaN or infinite"):
            case.equation(absorbs=False).solve()
    case.fill()
    with pytest.raises(SolverError, match="after 1 iterations"):
        case.equation(absorbs=False).solve(maxiter=1)


def grid(*shape: int, dtype: Any = ti.f64) -> Any:
    return ti.field(dtype, shape=shape)


def solver(*given: Any, **options: Any) -> Any:
    return ti.multigrid.Diffusion(*given, **options)


REFUSED = [
    (lambda: solver(grid(4), 3.0), "the solution of a diffusion is a field"),
    (
        lambda: solver(grid(4), grid(5)),
        r"the source of a diffusion is of f64 and shape \(4,\), its solution of f64 and",
    ),
    (lambda: solver(grid(4), grid(4, dtype=ti.f32)), "of f64 and shape"),
    (lambda: solver(grid(4, dtype=ti.i32), grid(4, dtype=ti.i32)), "of f32 or of f64"),
    (lambda: solver(grid(), grid()), "with 1 to 3 axes"),
    (lambda: solver(ti.Vector.field(2, ti.f64, 4), grid(4)), "of f32 or of f64"),
    (lambda: solver(grid(4), grid(4), -1.0), "the coefficient of a diffusion is a number of at least 0"),
    (lambda: solver(grid(4), grid(4), absorption=math.nan), "the absorption of a diffusion is a number of at least 0"),
    (lambda: solver(grid(4), grid(4), "k"), "the coefficient of a diffusion is a field"),
    (lambda: solver(grid(4), grid(4), size=0.0), "positive lengths"),
    (lambda: solver(grid(4), grid(4), size=(1.0, 2.0)), "positive lengths"),
    (lambda: solver(grid(4), grid(4), boundary="neuman"), "did you mean 'neumann'"),
    (lambda: solver(grid(4), grid(4), boundary=("neumann", "neumann")), "as many boundaries"),
    (lambda: solver(grid(4), grid(4), boundary=(("neumann", "periodic"),)), "there is no boundary 'periodic'"),
    (lambda: solver(grid(4), grid(4), boundary=(("neumann", 0.0, 1.0),)), "an axis has two ends"),
]


@pytest.mark.parametrize(("attempt", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(attempt: Any, message: str) -> None:
    ti.init(arch=ti.cpu)
    with pytest.raises(FieldError, match=message) as caught:
        attempt()
    assert caught.value.span.file == __file__
