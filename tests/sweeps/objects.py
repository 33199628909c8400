"""A script that sends one of everything, as a notebook would: all of it is defined in `__main__`. Into the file of its
first argument, and, where there is a second one, to the cluster of that address.
"""

import json
import sys
from pathlib import Path

import cloudpickle
import dask.base
import distributed
import numpy as np

import tinote
import tinote as ti

ti.init(num_threads=1)
GAIN = 3.0
WEIGHTS = np.array([1.0, 2.0, 3.0], np.float32)

x = ti.Vector.field(2, ti.f32, shape=5, needs_grad=True)
total = ti.field(ti.f32, (), needs_grad=True)
first, second = ti.field(ti.f32), ti.field(ti.i32)
level = ti.root.dense(ti.i, 6)
level.place(first, second)
shifted = ti.field(ti.f32, shape=4, offset=-2)
rows = ti.field(ti.f32, shape=(3, 4), order="ji")
apart = ti.Matrix.field(2, 2, ti.f64, shape=3, layout=ti.Layout.SOA)
array = ti.ndarray(ti.f32, 4, needs_grad=True)
component = x.get_scalar_field(1)
builder = ti.FieldsBuilder()
built = ti.field(ti.f32)
builder.dense(ti.ij, (2, 3)).place(built)
builder.finalize()
pair = ti.types.struct(a=ti.f32, b=ti.types.vector(2, ti.i32))
pairs = pair.field(shape=3)
small = ti.Vector([1.0, 2.0])


@ti.dataclass
class Body:
    place: ti.math.vec2
    mass: ti.f32

    @ti.func
    def momentum(self, v):
        return self.mass * v * GAIN


bodies = Body.field(shape=4, needs_grad=True)


@ti.func
def square(v):
    return v.dot(v)


def plain(v):
    return v * GAIN + WEIGHTS[1]


@ti.ad.grad_replaced
@ti.func
def clipped(v):
    return min(v, 2.0)


@ti.ad.grad_for(clipped)
@ti.func
def clipped_gradient(v, adjoint):
    return adjoint * 7.0


@ti.kernel
def everywhere(dt: ti.f32):
    for i in x:
        x[i] += dt * GAIN * small
    for i in level:
        first[i] += second[i] * dt
    for i in bodies:
        bodies[i].mass = bodies[i].momentum(dt)
    for i in shifted:
        shifted[i] += i
    for i, j in rows:
        rows[i, j] = 10 * i + j + dt
    for i in apart:
        apart[i][0, 1] += i
    for i in component:
        component[i] += 0.5
    for i, j in built:
        built[i, j] += dt * i
    for i in pairs:
        pairs[i].b[1] += i


@ti.kernel
def energy():
    for i in x:
        total[None] += plain(square(x[i])) + clipped(x[i][0])


@ti.kernel
def scale(a: ti.types.ndarray(dtype=ti.f32, ndim=1), body: Body, by: ti.f32) -> ti.f32:
    for i in a:
        a[i] = a[i] * by + body.mass
    return by


@ti.data_oriented
class Simulation:
    def __init__(self, n):
        self.y = ti.field(ti.f32, n)
        self.y.fill(2)
        self.factor = 2.0

    @ti.kernel
    def grow(self):
        for i in self.y:
            self.y[i] *= self.factor

    @ti.func
    def helper(self, v):
        return self.factor * v

    @ti.kernel
    def answer(self) -> ti.f32:
        return self.helper(3.0)


simulation = Simulation(3)
value_and_grad = ti.ad.value_and_grad(energy, wrt=x, loss=total)
step = ti.capture(lambda dt: everywhere(dt))


@ti.ad.grad_replaced
def twice():
    everywhere(0.5)
    everywhere(0.5)


@ti.ad.grad_for(twice)
def twice_gradient():
    pass


def inside():
    factor = 4.0

    @ti.kernel
    def local(v: ti.f32) -> ti.f32:
        return v * factor

    return local


local = inside()

x.fill(1)
second.fill(2)
bodies.fill(1)
shifted.fill(1)
array.fill(3)


def run(dt):
    everywhere(dt)
    twice()
    simulation.grow()
    scale(array, Body(mass=2.0), 2.0)
    with ti.ad.Tape(total):
        energy()
    gradient = x.grad.to_numpy()
    value, again = value_and_grad()
    arrays = [x, first, second, shifted, rows, apart, built, array, simulation.y, component, bodies.mass, pairs.b]
    return [
        total[None], gradient.tolist(), value, again.tolist(), local(2.0), simulation.answer(),
        *[one.to_numpy().tolist() for one in arrays],
    ]  # fmt: skip


def received(sent):
    """Where it has arrived: what two runs give there, one after the other."""
    state = tinote.lang.session.state.session
    before, state.config = state.config, state.config._replace(num_threads=1)
    run, everywhere, x, level, step = [sent[n] for n in (0, 1, 5, 7, 13)]
    found = [run(0.5), run(0.25)]
    start = x.to_numpy()
    step(1.0)
    assert (x.to_numpy() != start).all()
    assert x is run.__globals__["x"] and level.shape == (6,) and "small" in everywhere.source.text
    state.config = before
    return found


def swept(dt):
    """What a run of all objects gives, as a row of a table."""
    return {str(n): np.array(value, np.float64) for n, value in enumerate(run(dt))} | {"sent": len(objects)}


if __name__ == "__main__":
    objects = [
        run,
        everywhere,
        energy,
        scale,
        square,
        x,
        total,
        level,
        bodies,
        Body,
        simulation,
        simulation.grow,
        local,
    ]
    objects += [step, value_and_grad, component, builder, array, twice, pairs]
    Path(sys.argv[1]).write_bytes(cloudpickle.dumps((received, objects)))
    there = []
    if len(sys.argv) > 2:
        with distributed.Client(sys.argv[2]) as client:
            table = ti.sweep(swept, {"dt": [0.5]}, where=client, threads=1, progress=False)
            assert table["error"].values.tolist() == [""], table["error"].values
            row = [table[str(n)].values[0].tolist() for n in range(len(table.data_vars) - 4)]
            there = [row, *client.submit(received, objects).result(), table["sent"].values.tolist() == [len(objects)]]
    hashed = [everywhere, energy, square, x, x.grad, bodies, Body, simulation.grow, simulation, array, pairs, component]
    tokens = [dask.base.tokenize(one) for one in hashed]
    print(json.dumps([run(0.5), run(0.25), tokens, there]))
