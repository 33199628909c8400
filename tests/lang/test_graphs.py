"""`ti.graph`: launches whose arguments have names."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelArgumentError, KernelIndexError

SCALAR, ARRAY, MATRIX = ti.graph.ArgKind.SCALAR, ti.graph.ArgKind.NDARRAY, ti.graph.ArgKind.MATRIX


@ti.kernel
def scale(x: ti.types.ndarray(ndim=1), by: ti.f64):
    for i in x:
        x[i] *= by


@ti.kernel
def shift(x: ti.types.ndarray(ndim=1), v: ti.types.vector(2, ti.f64), f: ti.template()):
    for i in x:
        x[i] += v[i % 2]
        f[None] += 1


def test_launches_run_in_their_order_with_the_values_of_the_names() -> None:
    count = ti.field(ti.i32, ())
    x = ti.graph.Arg(ARRAY, "x", ti.f64, ndim=1)
    by = ti.graph.Arg(SCALAR, "by", dtype=ti.f64)
    v = ti.graph.Arg(MATRIX, "v", ti.types.vector(2, ti.f64))
    builder = ti.graph.GraphBuilder()
    twice = builder.create_sequential()
    twice.dispatch(scale, x, by)
    twice.dispatch(shift, x, v, count)
    builder.dispatch(shift, x, v, count)
    for _ in range(2):
        builder.append(twice)
    twice.dispatch(scale, x, 10.0)
    graph = builder.compile()
    assert repr(graph) == "<graph of 7 launches: 'by', 'v', 'x'>"
    for by_value, start in ((2.0, 1.0), (0.5, 3.0)):
        a = np.full(4, start)
        graph.run({"x": a, "by": by_value, "v": ti.Vector([1.0, -1.0])})
        expected = start + np.array([1, -1, 1, -1])
        for _ in range(2):
            expected = (expected * by_value + [1, -1, 1, -1]) * 10
        np.testing.assert_allclose(a, expected)
    assert count[None] == 2 * 3 * 4


def test_graphs_are_recorded_by_tapes() -> None:
    x, loss = ti.ndarray(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(2.0)

    @ti.kernel
    def measure(a: ti.types.ndarray(ndim=1)):
        for i in a:
            loss[None] += a[i] ** 2

    builder = ti.graph.GraphBuilder()
    a = ti.graph.Arg(ARRAY, "a", ti.f64, 1)
    builder.dispatch(scale, a, 3.0)
    builder.dispatch(measure, a)
    graph = builder.compile()
    with ti.ad.Tape(loss):
        graph.run({"a": x})
    assert x.grad.to_numpy().tolist() == [36, 36, 36]


def test_methods_are_dispatched() -> None:
    @ti.data_oriented
    class Counter:
        def __init__(self) -> None:
            self.n = ti.field(ti.i32, ())

        @ti.kernel
        def add(self, k: ti.i32):
            self.n[None] += k

    counter = Counter()
    builder = ti.graph.GraphBuilder()
    builder.dispatch(counter.add, ti.graph.Arg(SCALAR, "k", ti.i32))
    builder.compile().run({"k": 5})
    assert counter.n[None] == 5


def test_wrong_graphs_are_refused() -> None:
    builder = ti.graph.GraphBuilder()
    x = ti.graph.Arg(ARRAY, "x", ti.f64, ndim=1)
    with pytest.raises(KernelArgumentError, match="made of kernels"):
        builder.dispatch(print, x)
    with pytest.raises(KernelArgumentError, match=r"kernel 'scale' takes 2 arguments .*; missing: by"):
        builder.dispatch(scale, x)
    with pytest.raises(KernelArgumentError, match="is not a kind of argument"):
        ti.graph.Arg("ndarray", "x")  # type: ignore[arg-type]
    with pytest.raises(KernelArgumentError, match="is not a sequence"):
        builder.append(3)  # type: ignore[arg-type]
    part = builder.create_sequential()
    builder.append(part)
    with pytest.raises(KernelArgumentError, match="part of itself"):
        part.append(builder)
    builder.dispatch(scale, x, 2.0)
    graph = builder.compile()
    with pytest.raises(KernelArgumentError, match="this graph needs a value for 'x'"):
        graph.run({})
    with pytest.raises(KernelArgumentError, match="this graph has no argument 'y'"):
        graph.run({"x": np.ones(2), "y": 3})
    with pytest.raises(KernelArgumentError, match="argument 'x' of kernel 'scale' is an array, and is called with 3"):
        graph.run({"x": 3})


def test_faults_name_the_kernels_line() -> None:
    @ti.kernel
    def beyond(x: ti.types.ndarray(ndim=1)):
        x[5] = 1.0  # the line of the fault

    builder = ti.graph.GraphBuilder()
    builder.dispatch(beyond, ti.graph.Arg(ARRAY, "x", ti.f64, ndim=1))
    with pytest.raises(KernelIndexError, match="the line of the fault"):
        builder.compile().run({"x": np.zeros(3)})
