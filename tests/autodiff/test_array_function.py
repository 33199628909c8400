"""Programs as functions of arrays: what every framework is given of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.framework_programs import PROGRAMS, Made
from tinote.errors import DifferentiationError
from tinote.lang.ad.frameworks.array_function import ArrayFunction
from tinote.lang.ad.frameworks.declared import ArrayFacts

Array = np.ndarray[Any, Any]
H = 1e-6


@pytest.fixture(params=PROGRAMS)
def made(request: pytest.FixtureRequest) -> Made:
    ti.init(default_fp=ti.f64)
    return PROGRAMS[request.param]()


def along(f: Callable[[list[Array]], list[Array]], at: list[Array], tangents: list[Array]) -> list[Array]:
    """The derivative of `f` along a direction, by central differences."""
    sides = [f([x + h * d for x, d in zip(at, tangents, strict=True)]) for h in (H, -H)]
    return [(a - b) / (2 * H) for a, b in zip(*sides, strict=True)]


def test_all_derivatives_are_differences(made: Made) -> None:
    program = ArrayFunction("torch_function", made.f, made.inputs, made.outputs)
    random = np.random.default_rng(0)
    inputs = [random.uniform(0.5, 1.5, shape) for shape in made.shapes]
    tangents = [random.normal(size=shape) for shape in made.shapes]
    values = program.value(inputs)
    seeds = [random.normal(size=one.shape) for one in values]
    for got, wanted in zip(values, made.reference(*inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    moved = along(program.value, inputs, tangents)
    for got, wanted in zip(program.push(inputs, tangents), moved, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)
    pulled = program.pull(inputs, seeds)
    total = sum((a * b).sum() for a, b in zip(pulled, tangents, strict=True))
    assert total == pytest.approx(sum((a * b).sum() for a, b in zip(seeds, moved, strict=True)), rel=1e-7)
    pushed, second = program.second(inputs, seeds, tangents)
    for got, wanted in zip(pushed, moved, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)
    for got, wanted in zip(second, along(lambda at: program.pull(at, seeds), inputs, tangents), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)


def test_it_has_no_effect_but_its_results(made: Made) -> None:
    program = ArrayFunction("torch_function", made.f, made.inputs, made.outputs)
    for number, field in enumerate(made.fields):
        field.fill(0.25 + number)
        field.grad.fill(0.5)
    inputs = [np.full(shape, 0.75) for shape in made.shapes]
    seeds = [np.ones_like(one) for one in program.value(inputs)]
    first = program.value(inputs)
    for _ in range(2):
        program.pull(inputs, seeds)
        program.push(inputs, inputs)
        program.second(inputs, seeds, inputs)
    for number, field in enumerate(made.fields):
        assert (field.to_numpy() == 0.25 + number).all() and (field.grad.to_numpy() == 0.5).all()
    assert all((a == b).all() for a, b in zip(program.value(inputs), first, strict=True))
    assert all((one == 0.75).all() for one in inputs)


def test_random_numbers_are_those_of_the_first_run() -> None:
    ti.init(default_fp=ti.f64)
    x, y = (ti.field(ti.f64, 4, needs_grad=True) for _ in range(2))

    @ti.kernel
    def scale():
        for i in x:
            y[i] = ti.random(ti.f64) * x[i]

    program = ArrayFunction("torch_function", scale, x, y)
    ones = np.ones(4)
    (value,) = program.value([ones])
    (slope,) = program.pull([ones], [ones])
    assert (value == slope).all() and len(set(value)) == 4


def test_vectors_may_be_the_last_dimension_of_arrays() -> None:
    ti.init(default_fp=ti.f64)

    @ti.kernel
    def turned(a: ti.types.ndarray(dtype=ti.math.vec2, ndim=1), out: ti.types.ndarray(dtype=ti.math.vec2, ndim=1)):
        for i in a:
            out[i] = ti.Vector([-a[i].y, a[i].x * a[i].y])

    program = ArrayFunction("torch_function", turned, None, lambda shape: shape)
    at = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert (program.value([at])[0] == [[-2.0, 2.0], [-4.0, 12.0]]).all()
    assert (program.pull([at], [np.ones_like(at)])[0] == [[2.0, 0.0], [4.0, 2.0]]).all()


def test_arrays_that_are_inputs_are_not_written() -> None:
    ti.init(default_fp=ti.f64)

    @ti.kernel
    def doubled(a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in a:
            a[i] *= 2.0

    given = np.ones(3)
    with pytest.raises(Exception, match="read-only"):
        ArrayFunction("torch_function", doubled, None, None).value([given])
    assert (given == 1.0).all()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([], "count"),
        ([ArrayFacts((4,), np.dtype(np.float64))] * 2, "count"),
        ([ArrayFacts((5,), np.dtype(np.float64))], "shape"),
        ([ArrayFacts((4,), np.dtype(np.float32))], "dtype"),
        ([ArrayFacts((4,), np.dtype(np.int64))], "dtype"),
    ],
)
def test_what_does_not_fit_is_reported(given: list[ArrayFacts], kind: str) -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, 4, needs_grad=True)
    program = ArrayFunction("torch_function", lambda: None, x, x)
    wrong = program.mismatch(given)
    assert wrong is not None and wrong.kind == kind and "lambda" in wrong.message


def test_results_have_to_fit_the_kernel() -> None:
    ti.init(default_fp=ti.f64)

    @ti.kernel
    def squared(a: ti.types.ndarray(ndim=1), out: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in a:
            out[i] = a[i] ** 2

    def wrong(outputs: Any, dtype: Any = np.float64) -> Any:
        return ArrayFunction("torch_function", squared, None, outputs).mismatch([ArrayFacts((4,), np.dtype(dtype))])

    assert wrong((4,)) is None and wrong(lambda shape: shape) is None
    kind, message = wrong((4, 1))
    assert kind == "shape" and "result 0 of squared, 'out', has 1 dimensions" in message
    kind, message = wrong((4,), np.float32)
    assert kind == "dtype" and "result 0 of squared, 'out', is an array of f64" in message
    kind, message = wrong([(4,), (4,)])
    assert kind == "count" and message == "squared takes 2 arrays, not 1 and 2 for its results"
    assert wrong(None) == ("count", "squared takes 2 arrays, not 1")


def test_parameters_that_are_neither_arrays_nor_numbers_are_refused() -> None:
    ti.init(default_fp=ti.f64)

    @ti.kernel
    def moved(a: ti.types.ndarray(ndim=1), by: ti.math.vec2, out: ti.types.ndarray(ndim=1)):
        for i in a:
            out[i] = a[i] + by.x

    program = ArrayFunction("torch_function", moved, None, lambda a, by: a)
    facts = [ArrayFacts(shape, np.dtype(np.float64)) for shape in ((4,), (2,))]
    with pytest.raises(DifferentiationError, match="'by' of moved is neither an array nor a number"):
        program.mismatch(facts)


def test_programs_that_cannot_be_such_functions_are_refused() -> None:
    ti.init(default_fp=ti.f64)
    x, plain, whole = ti.field(ti.f64, 4, needs_grad=True), ti.field(ti.f64, 4), ti.field(ti.i32, 4)

    def make(f: Any, inputs: Any, outputs: Any) -> ArrayFunction:
        return ArrayFunction("torch_function", f, inputs, outputs)

    with pytest.raises(DifferentiationError, match="no gradient"):
        make(lambda: None, plain, x)
    with pytest.raises(DifferentiationError, match="fields of floats"):
        make(lambda: None, whole, x)
    for inputs, outputs in ((x, (3,)), ([], x), ([x, x], x), ("x", x)):
        with pytest.raises(DifferentiationError, match="different fields"):
            make(lambda: None, inputs, outputs)
    with pytest.raises(DifferentiationError, match="a shape or a list of shapes"):
        make(lambda a, b: None, None, "shape").value([np.ones(3)])
    with pytest.raises(DifferentiationError, match="what the function returns"):
        make(lambda a: "text", None, None).value([np.ones(3)])
    with pytest.raises(DifferentiationError, match="what the function returns"):
        make(lambda: None, x, None).pull([np.ones(4)], [np.ones(())])
    with (
        ti.ad.Tape(ti.field(ti.f64, (), needs_grad=True)),
        pytest.raises(DifferentiationError, match="inside of a tape"),
    ):
        make(lambda: None, x, x).value([np.ones(4)])
