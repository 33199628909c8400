"""Argument packs: several arguments under one name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelArgumentError, KernelSyntaxError

Inner = ti.types.argpack(scale=ti.f64, x=ti.types.ndarray(dtype=ti.f64, ndim=1))
State = ti.types.struct(mass=ti.f64, charge=ti.i32)
Outer = ti.types.argpack(n=ti.i32, inner=Inner, state=State, m=ti.types.matrix(2, 2, ti.f64), y=ti.types.ndarray())


@ti.kernel
def combine(first: ti.i32, p: Outer, a: ti.types.ndarray(), last: ti.f64) -> ti.f64:
    total = first * 1000.0
    for _ in range(1):
        for i in range(p.n):
            p.inner.x[i] += p.inner.scale * (i + 1)
            p.y[i, 0] = ti.cast(a[i] + p.m[1, 0], ti.i32)
            total += p.inner.x[i]
    return total + p.state.mass * p.state.charge + last


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_every_member_is_as_an_argument_alone(arch: Any) -> None:
    ti.init(arch=arch)
    x, y, a = ti.ndarray(ti.f64, 3), np.zeros((3, 2), np.int32), np.array([5, 6, 7])
    m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
    p = Outer(3, Inner(scale=0.5, x=x), state=State(mass=2, charge=3), m=m, y=y)
    assert combine(1, p, a, 0.25) == 1000 + 3 + 6 + 0.25
    assert x.to_numpy().tolist() == [0.5, 1, 1.5] and y[:, 0].tolist() == [8, 9, 10]
    p.n, p.inner.scale, p.state = 2, 1.0, {"mass": 10, "charge": 1}
    assert combine(0, p, a, last=0.0) == 1.5 + 3 + 10
    p.inner = Inner(2.0, np.zeros(3))
    assert combine(0, p=p, a=a, last=0.0) == 2 + 4 + 10
    assert combine.instances[-1].signature.startswith("combine(first: i32, p: .n: i32, ") and p.keys[0] == "n"


def test_packs_are_passed_on() -> None:
    @ti.func
    def weigh(p, i: ti.template()):
        return p.scale * p.x[i]

    @ti.func
    def weigh_template(p: ti.template(), i):
        p.x[i] += 1
        return weigh(p, i)

    @ti.kernel
    def k(p: Inner) -> ti.f64:
        q = p
        return weigh_template(q, 1)

    assert k(Inner(3.0, np.array([0.0, 4.0]))) == 15


def test_packs_are_differentiated() -> None:
    x, loss = ti.ndarray(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(2.0)

    @ti.kernel
    def measure(p: Inner):
        for i in p.x:
            loss[None] += p.scale * p.x[i] ** 2

    with ti.ad.Tape(loss):
        measure(Inner(1.5, x))
    assert x.grad.to_numpy().tolist() == [6, 6, 6]


WRONG = {
    "not a pack": (lambda: combine(1, 3, np.zeros(3), 0.0), "must be an argument pack of the annotated type, not 3"),
    "another type": (lambda: combine(1, Inner(1.0, np.zeros(3)), np.zeros(3), 0.0), "must be an argument pack"),
    "missing": (lambda: Inner(1.0), "member 'x' of the argument pack is missing"),
    "unknown": (lambda: Inner(1.0, y=3), "has no member 'y'"),
    "too many": (lambda: Inner(1.0, 2, 3), "has 2 members"),
    "no number": (lambda: Inner("text", np.zeros(3)), "it is not a number"),
    "no array": (lambda: _use(Inner(1.0, 5)), "argument 'p' of kernel '_use' is an array, and is called with 5"),
    "wrong array": (lambda: _use(Inner(1.0, np.zeros(3, np.float32))), "is an array of f64, and is called with one of"),
}


@ti.kernel
def _use(p: Inner):
    p.x[0] = 1


@pytest.mark.parametrize("name", WRONG)
def test_wrong_packs_are_refused(name: str) -> None:
    program, message = WRONG[name]
    with pytest.raises(KernelArgumentError, match=message):
        program()


def test_what_a_pack_cannot_hold() -> None:
    with pytest.raises(FieldError, match="cannot be a template"):
        ti.types.argpack(f=ti.template())
    with pytest.raises(FieldError, match="has no type of numbers"):
        ti.types.argpack(f="text")
    with pytest.raises(AttributeError, match="did you mean 'scale'"):
        Inner(1.0, np.zeros(3)).scal = 3

    @ti.kernel
    def k(p: Inner):
        p.scale = 4.0

    with pytest.raises(KernelSyntaxError, match="is an argument of the kernel"):
        k(Inner(1.0, np.zeros(3)))


def test_code_for_packs_is_found_on_disk(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, tinote as ti\n"
        "ti.init()\n"
        "P = ti.types.argpack(s=ti.f64, x=ti.types.ndarray(dtype=ti.f64, ndim=1, boundary='clamp'))\n"
        "@ti.kernel\n"
        "def k(p: P):\n"
        "    for i in range(4):\n"
        "        p.x[i] += p.s\n"
        "a = np.zeros(3)\n"
        "k(P(2.0, a))\n"
        "print(a.tolist(), k.instances[-1].origin.value)\n"
    )
    environment = {**os.environ, "TINOTE_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    environment.pop("TINOTE_CACHE_LIMIT", None)
    runs = [subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True) for _ in "12"]
    assert [run.stdout.split("]")[1].strip() for run in runs] == ["compiled", "disk"], runs[0].stderr
    assert all(run.stdout.startswith("[2.0, 2.0, 4.0]") for run in runs)
