"""Fields, and what was compiled for them, go with their last user: each feature is used again and again, each time with
fields of its own, and what is alive afterwards is what was alive before.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.lang.kernels.instances import Instance
from tinote.lang.kernels.kernel import Kernel
from tinote.lang.session.state import session
from tinote.viz import Particles

pytestmark = pytest.mark.usefixtures("only_new_objects")

WARM, ROUNDS = 12, 30  # a kernel keeps some older versions of itself
SIZE = 64


@ti.kernel
def fill(x: ti.template()):
    for i in x:
        x[i] = i


@ti.kernel
def add(x: ti.template(), y: ti.template()):
    for i in x:
        x[i] += 0.5 * y[i]


@ti.kernel
def squares(x: ti.template(), loss: ti.template()):
    for i in x:
        loss[None] += x[i] ** 2


@ti.kernel
def fill_vectors(x: ti.template()):
    for i in x:
        x[i] = ti.Vector([1.0, 2.0])


@ti.kernel
def fill_structs(x: ti.template()):
    for i in x:
        x[i].a = 1.0


@ti.kernel
def fill_pair(pair: ti.template()):
    for i in pair[0]:
        pair[0][i] = pair[1][i]


@ti.kernel
def increment(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):
    for i in a:
        a[i] += 1.0


@ti.kernel
def fill_matrix(A: ti.types.sparse_matrix_builder()):
    for i in range(SIZE):
        A[i, i] += 1.0


@ti.kernel
def fill_matrix_of(A: ti.types.sparse_matrix_builder(), x: ti.template()):
    for i in x:
        A[i, i] += x[i]


@ti.func
def add_to_diagonal(A: ti.types.sparse_matrix_builder(), i, value):
    A[i, i] += value


@ti.kernel
def by_name():
    for i in shared:
        shared[i] += 1.0


@ti.data_oriented
class Simulation:
    def __init__(self) -> None:
        self.x, self.loss = scene()
        self.parts = [ti.field(ti.f32, SIZE) for _ in range(2)]

    @ti.kernel
    def run(self):
        for i in self.x:
            self.loss[None] += self.x[i] ** 2
        for part in ti.static(self.parts):
            for i in part:
                part[i] += 1.0


class Plain:
    """A class with kernels that is not marked, and an object in an object."""

    def __init__(self) -> None:
        self.inner = Simulation()

    @ti.kernel
    def run(self, n: ti.i32):
        for i in self.inner.x:
            self.inner.x[i] += n


Pair = ti.types.struct(a=ti.f32, b=ti.types.vector(2, ti.f32))
shared: Any = None
lasting: Any = None


def scene() -> tuple[Any, Any]:
    options = {"needs_grad": True, "needs_dual": True}
    x, loss = ti.field(ti.f32, SIZE, **options), ti.field(ti.f32, (), **options)
    x.fill(0.5)
    return x, loss


def template() -> Any:
    x = ti.field(ti.f32, SIZE)
    fill(x)
    return x


def several_templates() -> Any:
    """One of them lasts, in either place."""
    x = ti.field(ti.f32, SIZE)
    add(x, lasting)
    add(lasting, x)
    return x


def tuple_of_fields() -> Any:
    x = ti.field(ti.f32, SIZE)
    fill_pair((x, lasting))
    return x


def vectors() -> Any:
    x = ti.Vector.field(2, ti.f32, SIZE)
    fill_vectors(x)
    return x


def structs() -> Any:
    x = Pair.field(shape=SIZE)
    fill_structs(x)
    return x.a


def ndarray_as_template() -> Any:
    x = ti.ndarray(ti.f32, SIZE)
    fill(x)
    return x


def ndarray_as_argument() -> Any:
    x = ti.ndarray(ti.f32, SIZE)
    increment(x)
    return x


def instance() -> Any:
    simulation = Simulation()
    simulation.run()
    return simulation.x


def instance_in_an_instance() -> Any:
    plain = Plain()
    plain.run(3)
    return plain.inner.x


def gradient_of_a_kernel() -> Any:
    x, loss = scene()
    squares(x, loss)
    loss.grad[None] = 1.0
    squares.grad(x, loss)
    return x


def kernel_in_a_closure() -> Any:
    x = ti.field(ti.f32, SIZE)

    @ti.kernel
    def own():
        for i in x:
            x[i] = 1.0

    own()
    return x


def field_under_a_global_name() -> Any:
    global shared
    shared = x = ti.field(ti.f32, SIZE)
    by_name()
    shared = None
    return x


def tape() -> Any:
    x, loss = scene()
    with ti.ad.Tape(loss):
        squares(x, loss)
    return x


def tape_that_is_kept() -> Any:
    x, loss = scene()
    with ti.ad.Tape(loss, keep=True):
        add(x, lasting)
        squares(x, loss)
    return x


def tape_of_an_instance() -> Any:
    simulation = Simulation()
    with ti.ad.Tape(simulation.loss):
        simulation.run()
    return simulation.x


def numbers_in_python() -> Any:
    x, loss = scene()
    with ti.ad.Tape(loss):
        loss[None] = x[0] * x[1]
    return x


def forward_mode() -> Any:
    x, loss = scene()
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1.0] * SIZE):
        squares(x, loss)
    return x


def functional_gradient() -> Any:
    x, loss = scene()
    ti.ad.grad(lambda: squares(x, loss), wrt=x, loss=loss)()
    return x


def hessian_product() -> Any:
    x, loss = scene()
    ti.ad.hvp(lambda: squares(x, loss), wrt=x, loss=loss)(np.ones(SIZE))
    return x


def vectorised_map() -> Any:
    x, loss = scene()

    def scaled(a: float) -> Any:
        x.fill(a)
        loss.fill(0)
        squares(x, loss)
        return loss[None]

    ti.ad.vmap(scaled)(np.ones(3, np.float32))
    return x


def custom_gradient() -> Any:
    x, loss = scene()

    @ti.ad.grad_replaced
    def run() -> None:
        squares(x, loss)

    @ti.ad.grad_for(run)
    def gradient() -> None:
        squares.grad(x, loss)

    with ti.ad.Tape(loss):
        run()
    return x


def checkpointed_steps() -> Any:
    x, loss = scene()
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(lambda _: add(x, lasting), 4)
        squares(x, loss)
    return x


def captured_step() -> Any:
    x = ti.field(ti.f32, SIZE)

    @ti.capture
    def step() -> None:
        add(x, lasting)

    for _ in range(3):
        step()
    return x


def view_of_memory() -> Any:
    x = ti.field(ti.f32, SIZE)
    shared_array = x.numpy_view()
    fill(x)
    del shared_array
    return x


def sparse_matrix() -> Any:
    builder = ti.linalg.SparseMatrixBuilder(SIZE, SIZE, max_num_triplets=SIZE)
    fill_matrix(builder)
    builder.build()
    return builder._values


def gradient_of_a_sparse_matrix() -> Any:
    builder, (x, loss) = ti.linalg.SparseMatrixBuilder(SIZE, SIZE, max_num_triplets=SIZE), scene()
    with ti.ad.Tape(loss):
        fill_matrix_of(builder, x)
        squares(builder.build() @ x, loss)
    assert x.grad[0] == 0.5
    return x


def live_view() -> Any:
    x = ti.Vector.field(2, ti.f32, SIZE)
    view = Particles(x, step=lambda: fill_vectors(x), plots={"first": lambda: x[0][0]})
    view.advance(3)
    view.picture()
    view.close()
    return x


def window() -> Any:
    x = ti.field(ti.f32, (16, 16))
    gui = ti.GUI("window", (16, 16), show_gui=False)
    gui.set_image(x)
    gui.get_image()
    gui.close()
    return x


def builder_of_fields() -> Any:
    builder, x = ti.FieldsBuilder(), ti.field(ti.f32)
    builder.dense(ti.i, SIZE).place(x)
    tree = builder.finalize()
    fill(x)
    tree.destroy()
    return x


FEATURES: list[Callable[[], Any]] = [
    template, several_templates, tuple_of_fields, vectors, structs, ndarray_as_template, ndarray_as_argument, instance,
    instance_in_an_instance, gradient_of_a_kernel, kernel_in_a_closure, field_under_a_global_name, tape,
    tape_that_is_kept, tape_of_an_instance, numbers_in_python, forward_mode, functional_gradient, hessian_product,
    vectorised_map, custom_gradient, checkpointed_steps, captured_step, view_of_memory, sparse_matrix,
    gradient_of_a_sparse_matrix, live_view, window, builder_of_fields,
]  # fmt: skip


def alive() -> dict[str, int]:
    gc.collect()
    kinds = [type(one) for one in gc.get_objects()]
    return {
        "fields": len(session.fields),
        "blocks": len(session.memories),
        "bytes": sum(memory.nbytes for memory in session.memories.values()),
        "instances": kinds.count(Instance),
        "kernels": kinds.count(Kernel),
    }


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.__name__)
def test_nothing_is_left_of_fields(feature: Callable[[], Any]) -> None:
    global lasting
    lasting = ti.field(ti.f32, SIZE, needs_grad=True, needs_dual=True)
    for _ in range(WARM):
        feature()
        gc.collect()
    before = alive()
    used = []
    for _ in range(ROUNDS):
        used.append(weakref.ref(feature()))
        gc.collect()
        # What a kernel uses by name stays until the kernel is called again.
        assert sum(one() is not None for one in used) == (feature is field_under_a_global_name)
    assert alive() == before


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=repr)
def test_new_builders_run_what_was_compiled_for_the_first(dtype: Any) -> None:
    @ti.kernel
    def own(A: ti.types.sparse_matrix_builder(), diagonal: ti.f64):
        for i in range(SIZE):
            add_to_diagonal(A, i, diagonal)
            A[i, 0] -= 1

    compiled = []
    for step in range(5):
        builder = ti.linalg.SparseMatrixBuilder(SIZE, SIZE + step, max_num_triplets=(2 + step) * SIZE, dtype=dtype)
        own(builder, step)
        matrix = builder.build().to_scipy().toarray()
        assert np.array_equal(matrix, step * np.eye(SIZE, SIZE + step) - (np.arange(SIZE + step) == 0))
        compiled.append([id(one) for one in own.instances])
    assert len(compiled[0]) == 1 and compiled == [compiled[0]] * 5


def test_an_instance_goes_with_its_kernel_as_well() -> None:
    """A field that stays keeps nothing of kernels that are gone."""
    x = ti.field(ti.f32, SIZE)
    before = alive()
    for _ in range(5):

        @ti.kernel
        def anew(y: ti.template()):
            for i in y:
                y[i] += 1.0

        anew(x)
    del anew
    assert alive() == before
    assert x.to_numpy().tolist() == [5.0] * SIZE


def test_what_is_used_stays_compiled() -> None:
    fields = [ti.field(ti.f32, SIZE) for _ in range(5)]

    @ti.kernel
    def own(x: ti.template(), y: ti.template()):
        for i in x:
            x[i] += 1.0

    def run() -> list[int]:
        for x in fields:
            own(x, fields[0])
            gc.collect()
        return [id(one) for one in own.instances]

    first = run()
    assert run() == first and len(first) == len(fields)
    assert own.instances[0].calls == 2
    ti.init(default_ip=ti.i64)
    assert not own.instances


def test_versions_of_an_instance_come_back_with_what_they_captured() -> None:
    global shared
    first, second = ti.field(ti.f32, SIZE), ti.field(ti.f32, SIZE)
    compiled = set()
    for x in (first, second, first, second, first):
        shared = x
        by_name()
        gc.collect()
        compiled.add(id(by_name.instances[-1]))
    shared = second
    by_name()
    assert len(compiled) == 2 and first[0] == 3 and second[0] == 3
    gone = weakref.ref(first)
    del first, x
    gc.collect()
    assert gone() is None
    shared = None
