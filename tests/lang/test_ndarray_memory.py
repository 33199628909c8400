"""Ndarrays in Python and in kernels, and memory shared with other libraries."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_ndarray import TYPES, add_one, double, refused
from tinote.compiler.requests import PRIMAL
from tinote.errors import FieldError, KernelTypeError

# ---- arrays of our own


@pytest.mark.parametrize("name", TYPES)
def test_ndarrays_in_python(name: str) -> None:
    x = ti.ndarray(getattr(ti, name), shape=(2, 3))
    assert isinstance(x, ti.ScalarNdarray) and isinstance(x, ti.Ndarray)
    assert x.shape == (2, 3) and x.dtype is getattr(ti, name)
    assert (x.to_numpy() == 0).all() and x.to_numpy().dtype == TYPES[name]
    x.fill(4)
    x[1, 2] = 7
    assert x[1, 2] == 7 and x[0, 0] == 4
    numbers = np.arange(6).reshape(2, 3)
    x.from_numpy(numbers)
    add_one(x)
    np.testing.assert_array_equal(x.to_numpy(), numbers + 1)


def test_ndarrays_of_vectors_and_matrices() -> None:
    v = ti.Vector.ndarray(3, ti.f32, shape=(2,))
    m = ti.Matrix.ndarray(2, 3, ti.f64, shape=(4, 5))
    t = ti.ndarray(ti.types.vector(2, ti.i32), shape=3)
    assert isinstance(v, ti.VectorNdarray) and isinstance(m, ti.MatrixNdarray) and isinstance(t, ti.VectorNdarray)
    assert m.to_numpy().shape == (4, 5, 2, 3) and (m.n, m.m) == (2, 3)
    v[1] = [1, 2, 3]
    assert v[1][2] == 3

    @ti.kernel
    def run(v: ti.types.ndarray(dtype=ti.math.vec3, ndim=1), m: ti.types.ndarray(ndim=2)):
        for i in v:
            v[i] += v[i]
        for i, j in m:
            m[i, j][1, 2] = i * 10 + j

    run(v, m)
    np.testing.assert_array_equal(v.to_numpy(), [[0, 0, 0], [2, 4, 6]])
    assert m[3, 4][1, 2] == 34 and m[3, 4][0, 0] == 0


def test_fields_are_arrays_too() -> None:
    x = ti.field(ti.f32, shape=5)
    x.fill(3)
    double(x)
    assert (x.to_numpy() == 6).all()


def test_ndarrays_as_templates_and_captured() -> None:
    x = ti.ndarray(ti.i32, shape=4)

    @ti.kernel
    def run(a: ti.template()):
        for i in a:
            a[i] += i
            x[i] += 10

    run(x)
    assert x.to_numpy().tolist() == [10, 11, 12, 13]


def test_ndarrays_die_with_the_session() -> None:
    x = ti.ndarray(ti.f32, shape=4)
    ti.init(arch=ti.cpu)
    with pytest.raises(FieldError, match="is gone"):
        double(x)


def test_wrong_ndarrays() -> None:
    for make in (
        lambda: ti.ndarray(ti.f32),
        lambda: ti.ndarray(ti.f32, shape=-1),
        lambda: ti.ndarray("x", shape=1),
        lambda: ti.ndarray(ti.i32, shape=1, needs_grad=True),
        lambda: ti.Vector.ndarray(0, ti.f32, shape=1),
    ):
        with pytest.raises(FieldError):
            make()
    with pytest.raises(FieldError, match="no gradient"):
        ti.ndarray(ti.f32, shape=1).grad  # noqa: B018


# ---- other libraries


class Exporter:
    """An array of some other library: all that it shows is DLPack."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self._array = array
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


def test_dlpack_arrays_as_arguments() -> None:
    memory = np.arange(5, dtype=np.float32)
    double(Exporter(memory))
    np.testing.assert_array_equal(memory, 2 * np.arange(5))
    assert "another device" in refused(Exporter(memory, device=2)).message


def test_from_dlpack_shares() -> None:
    memory = np.arange(5, dtype=np.float32)
    a = ti.from_dlpack(Exporter(memory))
    double(a)
    np.testing.assert_array_equal(memory, 2 * np.arange(5))
    with pytest.raises(FieldError):
        ti.from_dlpack([1, 2])


@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_to_dlpack_shares_and_keeps_alive(make: Any) -> None:
    x = make(ti.f32, shape=(2, 3))
    a = np.from_dlpack(x)
    x[1, 2] = 5
    assert a[1, 2] == 5
    a[0, 0] = 3
    assert x[0, 0] == 3
    del x
    gc.collect()
    assert a[1, 2] == 5


def test_numpy_shares_or_copies_as_it_is_asked() -> None:
    x = ti.ndarray(ti.f32, shape=4)
    shared, copied, converted = np.asarray(x), np.array(x), np.asarray(x, dtype=np.float64)
    x.fill(2)
    assert (shared == 2).all() and (copied == 0).all() and (converted == 0).all()
    with pytest.raises(ValueError, match="must be copied"):
        np.array(x, dtype=np.float64, copy=False)


@pytest.mark.torch
def test_torch() -> None:
    import torch  # noqa: PLC0415  large, and only there where it is asked for

    t = torch.arange(5, dtype=torch.float32)
    double(t)
    assert t.tolist() == [0, 2, 4, 6, 8]
    assert "not contiguous" in refused(torch.zeros(4, 4).T).message
    x = ti.field(ti.f32, shape=5)
    x.from_torch(t)
    assert x.to_torch().tolist() == t.tolist()
    shared = torch.from_dlpack(x)
    x.fill(1)
    assert shared.tolist() == [1] * 5
    v = ti.Vector.field(3, ti.f32, shape=2)
    assert v.to_torch().shape == (2, 3)
    with pytest.raises(FieldError):
        x.from_torch([1.0] * 5)


def test_a_field_with_an_offset_is_no_array() -> None:
    """Its indices begin elsewhere: passing its bare memory would silently shift them."""
    x = ti.field(ti.f32, shape=4, offset=2)

    @ti.kernel
    def fill(a: ti.types.ndarray(ti.f32, ndim=1)):
        for i in a:
            a[i] = i

    with pytest.raises(KernelTypeError, match="indices begin elsewhere"):
        fill(x)


def test_a_launch_keeps_the_last_reference_to_its_arrays() -> None:
    """What a launch is given may have no other owner: its memory must not be free for others before the launch ends."""

    @ti.kernel
    def total(a: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.i32:
        found = 0
        for i in a:
            found += a[i] == 1.0
        return found

    code = total.specialise(np.ones(1)).code(PRIMAL)
    finished = False
    outlived: list[bool] = []

    class Owner:
        def __del__(self) -> None:
            outlived.append(finished)

    run = code._launch
    assert run is not None

    def watched(address: int) -> int:
        nonlocal finished
        status = run(address)
        finished = True
        return status

    code._launch = watched
    array = np.ones(4096)

    def given() -> tuple[Any, ...]:
        _, (bound,) = total.prepare((array,), {})
        return (bound._replace(owner=Owner()),)

    counted = code.launch(given())  # not inside of `assert`, which would hold what it is given
    assert counted == (4096,)
    assert outlived == [True]
