"""The four programs in Warp, with its tape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from benchmarks.gradients.system import (
    COURANT_SQUARED,
    DAMPING,
    FACTOR,
    GRAVITY,
    MASSES,
    PARTICLES,
    RECURRENCES,
    REST_LENGTH,
    SIZE,
    SOFTENING,
    SPRING_SOFTENING,
    SPRING_STEPS,
    STEPS,
    SUMMAND,
    TIME_STEP,
    TURNS,
    GradientSystem,
    initial_values,
    places_on_a_ring,
)

__all__ = ["create"]


class WarpGradient(GradientSystem):
    """One of the programs. `_inputs`: the arrays that hold the initial data."""

    def __init__(self, program: str, part: str) -> None:
        super().__init__(program, part)
        # Warp adds one by one, which in f32 would lose the sum of 200,000 numbers.
        number = wp.float64 if program == "recurrence" else wp.float32
        self._loss = wp.zeros(1, dtype=number, requires_grad=True, device="cpu")
        programs = {"nbody": nbody, "wave": wave, "recurrence": recurrence, "mass_spring": mass_spring}
        self._inputs, self._program = programs[program](self._loss)

    def run(self, count: int) -> None:
        for _ in range(count):
            self._loss.zero_()
            if self.part == "primal":
                self._program()
                continue
            for array in self._inputs:
                array.grad.zero_()
            with wp.Tape() as tape:
                self._program()
            tape.backward(loss=self._loss)
            self._found = [array.grad for array in self._inputs]
            self._tape = tape
            self._clear_the_others(tape)

    def _clear_the_others(self, tape: wp.Tape) -> None:
        """Set the gradients on the way to zero, for the next run; those of the inputs stay."""
        for gradient in tape.gradients.values():
            if not any(gradient is found for found in self._found):
                gradient.zero_()

    def value(self) -> float:
        return float(self._loss.numpy()[0])

    def gradient(self) -> np.ndarray:
        found = [gradient.numpy() for gradient in self._found]
        return np.stack(found) if len(found) > 1 else found[0]


Program = tuple[list[wp.array], Callable[[], None]]


def nbody(loss: wp.array) -> Program:
    """One thread of the launch for each pair, one atomic addition each, as the dialect's program has it."""
    softening = wp.constant(SOFTENING)

    @wp.kernel
    def energy(x: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):  # pyright: ignore
        i, j = wp.tid()
        r = x[i] - x[j]
        wp.atomic_add(loss, 0, -1.0 / wp.sqrt(wp.dot(r, r) + softening))

    x = wp.array(initial_values("nbody"), dtype=wp.vec2, requires_grad=True, device="cpu")
    return [x], lambda: wp.launch(energy, dim=(PARTICLES, PARTICLES), inputs=[x], outputs=[loss], device="cpu")


def wave(loss: wp.array) -> Program:
    """An array for each time."""
    courant_squared = wp.constant(COURANT_SQUARED)

    @wp.kernel
    def advance(
        before: wp.array2d(dtype=float),
        now: wp.array2d(dtype=float),
        following: wp.array2d(dtype=float),  # pyright: ignore
    ):
        i, j = wp.tid()
        i += 1
        j += 1
        laplacian = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
        following[i, j] = 2.0 * now[i, j] - before[i, j] + courant_squared * laplacian

    @wp.kernel
    def measure(last: wp.array2d(dtype=float), loss: wp.array(dtype=float)):  # pyright: ignore
        i, j = wp.tid()
        wp.atomic_add(loss, 0, last[i, j] * last[i, j])

    start = initial_values("wave")
    u = [wp.zeros((SIZE, SIZE), dtype=float, requires_grad=True, device="cpu") for _ in range(STEPS + 2)]
    for k in range(2):
        u[k].assign(start[k])
    inner = (SIZE - 2, SIZE - 2)

    def run() -> None:
        for t in range(1, STEPS + 1):
            wp.launch(advance, dim=inner, inputs=[u[t - 1], u[t]], outputs=[u[t + 1]], device="cpu")
        wp.launch(measure, dim=(SIZE, SIZE), inputs=[u[-1]], outputs=[loss], device="cpu")

    return u[:2], run


def recurrence(loss: wp.array) -> Program:
    """A value that a loop carries. Warp differentiates a loop of a constant number of iterations by unrolling it: one
    that it does not unroll, it would differentiate wrong.
    """
    factor, summand, iterations = wp.constant(FACTOR), wp.constant(SUMMAND), wp.constant(TURNS)

    @wp.kernel(module="unique", module_options={"max_unroll": TURNS})
    def iterate(x: wp.array(dtype=float), loss: wp.array(dtype=wp.float64)):  # pyright: ignore
        i = wp.tid()
        v = x[i]
        for _ in range(iterations):
            v = factor * wp.sin(v) + summand
        wp.atomic_add(loss, 0, wp.float64(v))

    x = wp.array(initial_values("recurrence"), dtype=float, requires_grad=True, device="cpu")
    return [x], lambda: wp.launch(iterate, dim=RECURRENCES, inputs=[x], outputs=[loss], device="cpu")


def mass_spring(loss: wp.array) -> Program:
    """An array for each time, and a branch for each neighbour, as Warp unrolls no loop over a tuple."""
    count, time_step, damping = wp.constant(MASSES), wp.constant(TIME_STEP), wp.constant(DAMPING)
    rest, softening, gravity = wp.constant(REST_LENGTH), wp.constant(SPRING_SOFTENING), wp.constant(GRAVITY)

    @wp.func
    def pull(stiffness: float, here: wp.vec2, there: wp.vec2):
        to = there - here
        length = wp.sqrt(wp.dot(to, to) + softening)
        return stiffness * (length - rest) / length * to

    @wp.kernel
    def advance(
        stiffness: wp.array(dtype=float),  # pyright: ignore
        x: wp.array(dtype=wp.vec2),  # pyright: ignore
        v: wp.array(dtype=wp.vec2),  # pyright: ignore
        next_x: wp.array(dtype=wp.vec2),  # pyright: ignore
        next_v: wp.array(dtype=wp.vec2),  # pyright: ignore
    ):
        i = wp.tid()
        force = wp.vec2(0.0, gravity)
        force += pull(stiffness[i], x[i], x[(i + count - 2) % count])
        force += pull(stiffness[i], x[i], x[(i + count - 1) % count])
        force += pull(stiffness[i], x[i], x[(i + 1) % count])
        force += pull(stiffness[i], x[i], x[(i + 2) % count])
        after = damping * v[i] + time_step * force
        next_v[i] = after
        next_x[i] = x[i] + time_step * after

    @wp.kernel
    def measure(last: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):  # pyright: ignore
        i = wp.tid()
        wp.atomic_add(loss, 0, wp.dot(last[i], last[i]))

    stiffness = wp.array(initial_values("mass_spring"), dtype=float, requires_grad=True, device="cpu")
    x, v = (
        [wp.zeros(MASSES, dtype=wp.vec2, requires_grad=True, device="cpu") for _ in range(SPRING_STEPS + 1)]
        for _ in range(2)
    )
    x[0].assign(places_on_a_ring())

    def run() -> None:
        for t in range(SPRING_STEPS):
            inputs = [stiffness, x[t], v[t]]
            wp.launch(advance, dim=MASSES, inputs=inputs, outputs=[x[t + 1], v[t + 1]], device="cpu")
        wp.launch(measure, dim=MASSES, inputs=[x[-1]], outputs=[loss], device="cpu")

    return [stiffness], run


def create(package: str, program: str, part: str) -> WarpGradient:
    """Return the program."""
    return WarpGradient(program, part)
