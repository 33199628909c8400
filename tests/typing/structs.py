"""Structs, by class and by type."""

from typing import Annotated, assert_type

import tinote as ti

ti.init()
Body = ti.types.struct(place=ti.math.vec3, mass=ti.f32)
bodies = Body.field(shape=8, needs_grad=True)
more = ti.Struct.field({"place": ti.math.vec3, "mass": ti.f32}, shape=8)
also = ti.field(Body, shape=8)

assert_type(bodies, ti.StructField)
assert_type(more, ti.StructField)
assert_type(also, ti.StructField)
bodies[0] = Body(place=[0.0, 1.0, 2.0], mass=1.0)
bodies.mass.fill(2.0)
heaviest: float = bodies[0].mass


@ti.kernel
def weight() -> ti.f32:
    total = 0.0
    for i in bodies:
        total += bodies[i].mass * bodies[i].place.norm()
    return total


@ti.kernel
def momentum(body: Annotated[ti.Struct, Body], speed: ti.f32) -> ti.f32:
    return body.mass * speed


momentum(bodies[0], 2.0)


@ti.dataclass
class Ball:
    place: ti.math.vec3
    radius: ti.f32

    @ti.func
    def volume(self) -> ti.f32:
        return 4.0 / 3.0 * ti.math.pi * self.radius**3


@ti.kernel
def volume(ball: Ball) -> ti.f32:  # error: pyright
    return ball.volume()


# A class that is decorated is a class for mypy, whatever the decorator gives: `ti.types.struct` says it to both.
balls = Ball.field(shape=8)  # error: mypy
print(weight(), volume(Ball(radius=2.0)))  # error: mypy
