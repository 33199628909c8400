"""Copies of elements of fields: what is put back is what each held when it was first added."""

import random
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tests.lang.test_index_regions import random_region
from tinote.lang.ad.memory.region_copies import RegionCopies
from tinote.lang.index_regions import slices_of

EXTENT = 9


def fields() -> list[Any]:
    """Of several layouts; two of them share their memory."""
    shape = (EXTENT, EXTENT)
    first, second = ti.field(ti.f64), ti.field(ti.i32)
    ti.root.dense(ti.ij, shape).place(first, second)
    vectors = [ti.Vector.field(2, ti.f64, shape=shape, layout=layout) for layout in (ti.Layout.AOS, ti.Layout.SOA)]
    return [ti.field(ti.f64, shape=shape), first, second, *vectors]


@pytest.mark.parametrize("seed", range(8))
def test_first_values_come_back(seed: int) -> None:
    numbers, change = random.Random(seed), np.random.default_rng(seed)
    each = fields()
    copies = RegionCopies()
    first: list[dict[tuple[int, ...], Any]] = [{} for _ in each]
    marks: list[tuple[int, RegionCopies, list[Any]]] = []
    for _ in range(60):
        k = numbers.randrange(len(each))
        now = each[k].to_numpy()
        if numbers.random() < 0.03:
            copies.add_blocks([each[k].memory])
            region = ((0, EXTENT), (0, EXTENT))
        else:
            region = random_region(numbers, 2, EXTENT)
            copies.add(each[k].buffer, region)
        for index in np.argwhere(_chosen(slices_of(region))).tolist():
            first[k].setdefault(tuple(index), now[tuple(index)].copy())
        if numbers.random() < 0.1:
            marks.append((len(copies), copies.now(), [one.to_numpy() for one in each]))
        new = change.integers(-99, 99, now.shape).astype(now.dtype)
        for index in first[k]:  # others do not change
            now[index] = new[index]
        each[k].from_numpy(now)
    since, later, held = marks[-1]
    copies.put_back(since)
    later.put_back()
    for field, values in zip(each, held, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), values)
    copies.put_back()
    for field, known in zip(each, first, strict=True):
        wanted = np.zeros_like(field.to_numpy())
        for index, value in known.items():
            wanted[index] = value
        np.testing.assert_array_equal(field.to_numpy(), wanted)


def test_what_they_hold_later() -> None:
    field = ti.field(ti.f64, shape=4)
    copies = RegionCopies()
    copies.add(field.buffer, ((1, 3),))
    field.fill(5.0)
    later = copies.now()
    field.fill(7.0)
    later.put_back()
    assert field.to_numpy()[1:3].tolist() == [5.0, 5.0]  # on a device, the others come back as well
    copies.put_back()
    assert field.to_numpy()[1:3].tolist() == [0.0, 0.0]
    assert later.nbytes == copies.nbytes and copies.regions == ((field.buffer, ((1, 3),)),)


def _chosen(position: Any) -> Any:
    found = np.zeros((EXTENT, EXTENT), bool)
    found[position] = True
    return found
