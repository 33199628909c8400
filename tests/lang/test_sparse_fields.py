"""Sparse fields: every nesting of levels against a model that holds a dictionary of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti
from tinote.errors import CaptureError, FieldError, KernelIndexError, TinoteError
from tinote.lang.data.sparse import levels as sparse_levels

#: The levels of each tree, from the root down: kind, axes, extents.
Levels = tuple[tuple[str, str, tuple[int, ...]], ...]

NESTINGS: dict[str, Levels] = {
    "pointer, dense": (("pointer", "ij", (3, 2)), ("dense", "ij", (4, 8))),
    "pointer": (("pointer", "ij", (6, 5)),),
    "bitmasked": (("bitmasked", "ij", (7, 9)),),
    "hash, dense": (("hash", "ij", (3, 4)), ("dense", "ij", (2, 4))),
    "pointer, bitmasked": (("pointer", "ij", (3, 4)), ("bitmasked", "ij", (3, 5))),
    "bitmasked, dense": (("bitmasked", "ij", (3, 4)), ("dense", "ij", (4, 2))),
    "pointer, pointer, dense": (("pointer", "ij", (2, 2)), ("pointer", "ij", (3, 2)), ("dense", "ij", (2, 4))),
    "pointer, pointer, bitmasked": (("pointer", "ij", (2, 3)), ("pointer", "ij", (2, 2)), ("bitmasked", "ij", (4, 2))),
    "dense, pointer, dense": (("dense", "ij", (2, 3)), ("pointer", "ij", (3, 2)), ("dense", "ij", (2, 2))),
    "pointer, dense, pointer": (("pointer", "ij", (2, 2)), ("dense", "ij", (2, 3)), ("pointer", "ij", (2, 2))),
    "pointer i, pointer j": (("pointer", "i", (5,)), ("pointer", "j", (6,))),
    "dense i, bitmasked j, dense i": (("dense", "i", (3,)), ("bitmasked", "j", (7,)), ("dense", "i", (2,))),
    "pointer i, dense j": (("pointer", "i", (6,)), ("dense", "j", (5,))),
    "dense ij, pointer i, dense ij": (("dense", "ij", (2, 2)), ("pointer", "i", (3,)), ("dense", "ij", (2, 3))),
    "one cell": (("pointer", "ij", (1, 1)), ("dense", "ij", (1, 1))),
}


class Model:
    """What a sparse field is: a dictionary of values, and for each sparse level the blocks that are active."""

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.shape = tuple(math.prod(self._along(axis, n) for n in range(len(levels))) for axis in "ij")
        self.sparse = [n for n, (kind, _, _) in enumerate(levels) if kind != "dense"]
        self.blocks: dict[int, set[tuple[int, ...]]] = {n: set() for n in self.sparse}
        self.values: dict[tuple[int, ...], float] = {}

    def _along(self, axis: str, level: int) -> int:
        _, axes, extents = self.levels[level]
        return extents[axes.index(axis)] if axis in axes else 1

    def block(self, level: int, index: tuple[int, ...]) -> tuple[int, ...]:
        """The cell of a level that an index lies in. A dimension that no level so far divides is left out."""
        found: list[int] = []
        for axis, k in zip("ij", index, strict=True):
            if any(axis in axes for _, axes, _ in self.levels[: level + 1]):
                found.append(k // math.prod(self._along(axis, n) for n in range(level + 1, len(self.levels))))
        return tuple(found)

    def activate(self, index: tuple[int, ...], last: int | None = None) -> None:
        for level in self.sparse:
            if last is None or level <= last:
                self.blocks[level].add(self.block(level, index))

    def is_active(self, index: tuple[int, ...]) -> bool:
        return self.block(self.sparse[-1], index) in self.blocks[self.sparse[-1]]

    def write(self, index: tuple[int, ...], value: float) -> None:
        self.activate(index)
        self.values[index] = value

    def read(self, index: tuple[int, ...]) -> float:
        return self.values.get(index, 0.0)

    def deactivate(self, level: int, block: tuple[int, ...]) -> None:
        for index in np.ndindex(*self.shape):
            if self.block(level, index) == block:
                self.values.pop(index, None)
                for inner in self.sparse:
                    if inner >= level:
                        self.blocks[inner].discard(self.block(inner, index))

    def active(self) -> list[tuple[int, ...]]:
        return [index for index in np.ndindex(*self.shape) if self.is_active(index)]

    def dense(self) -> Any:
        found = np.zeros(self.shape, np.float32)
        for index, value in self.values.items():
            found[index] = value
        return found


class Tree:
    """The field under test, with the kernels that programs are made of."""

    def __init__(self, levels: Levels) -> None:
        x, seen = ti.field(ti.f32), ti.field(ti.i32)
        node: Any = ti.root
        self.nodes: list[Any] = []
        for kind, axes, extents in levels:
            node = getattr(node, kind)(getattr(ti, axes), extents)
            self.nodes.append(node)
        node.place(x)
        self.x = x
        ti.root.dense(ti.ij, x.shape).place(seen)
        self.seen = seen
        rows, columns = x.shape

        @ti.kernel
        def write(i: ti.i32, j: ti.i32, value: ti.f32) -> None:
            x[i, j] = value

        @ti.kernel
        def add(count: ti.i32, at: ti.types.ndarray(dtype=ti.i32, ndim=2)) -> None:  # pyright: ignore[reportInvalidTypeForm]
            for k in range(count):
                x[at[k, 0], at[k, 1]] += 1.0

        @ti.kernel
        def sweep() -> None:
            for i, j in x:
                x[i, j] = x[i, j] * 2.0 + (i + 1)
                seen[i, j] += 1

        @ti.kernel
        def spread() -> None:
            for index in ti.grouped(x):
                seen[index] += 1
                if index[0] + 3 < rows:
                    x[index[0] + 3, columns - 1 - index[1]] = 7.0

        @ti.kernel
        def count() -> ti.i32:
            n = 0
            for _ in ti.grouped(x):
                n += 1
            return n

        @ti.kernel
        def ask(i: ti.i32, j: ti.i32) -> ti.i32:
            return ti.is_active(x, [i, j])

        self.write, self.add, self.sweep, self.spread, self.count, self.ask = write, add, sweep, spread, count, ask

    def on_level(self, level: int) -> tuple[Any, Any, Any]:
        """To activate or deactivate a cell of a level, and to count its active cells."""
        node, x = self.nodes[level], self.x

        @ti.kernel
        def change(i: ti.i32, j: ti.i32, on: ti.i32) -> None:
            block = ti.rescale_index(x, node, ti.Vector([i, j]))
            if on == 1:
                ti.activate(node, block)
            else:
                ti.deactivate(node, block)

        @ti.kernel
        def ask(i: ti.i32, j: ti.i32) -> ti.i32:
            return ti.is_active(node, ti.rescale_index(x, node, ti.Vector([i, j])))

        @ti.kernel
        def count() -> ti.i32:
            n = 0
            for _ in ti.grouped(node):
                n += 1
            return n

        return change, ask, count


def compare(tree: Tree, model: Model) -> None:
    """Bit for bit."""
    np.testing.assert_array_equal(tree.x.to_numpy(), model.dense())
    indices, values = tree.x.to_sparse()
    assert sorted(map(tuple, indices.tolist())) == model.active()
    for index, value in zip(indices.tolist(), values.tolist(), strict=True):
        assert value == model.read(tuple(index))
    assert tree.count() == len(model.active())


#: Blocks in parts, which a loop asks before it asks the blocks.
PARTS: dict[str, Levels] = {
    "pointer in parts, dense": (("pointer", "ij", (6, 4)), ("dense", "ij", (2, 4))),
    "bitmasked in parts": (("bitmasked", "ij", (12, 9)),),
    "pointer in parts, pointer in parts": (("pointer", "ij", (4, 2)), ("pointer", "ij", (3, 6))),
    "dense, pointer in parts, bitmasked": (
        ("dense", "ij", (2, 2)),
        ("pointer", "i", (4,)),
        ("bitmasked", "ij", (2, 3)),
    ),
    "blocks of a prime number": (("pointer", "ij", (7, 2)), ("dense", "ij", (1, 5))),
}


@pytest.fixture(params=[*NESTINGS, *PARTS])
def levels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Levels:
    if request.param in PARTS:
        monkeypatch.setattr(sparse_levels, "MOST_ASKED", 4)
        monkeypatch.setattr(sparse_levels, "_PART", 6)
    return {**NESTINGS, **PARTS}[request.param]


def test_many_blocks_are_asked_in_parts() -> None:
    x = ti.field(ti.f32)
    level = ti.root.pointer(ti.ij, (128, 96))
    level.dense(ti.ij, 2).place(x)
    x[7, 9] = x[200, 150] = 1.0
    shape: Any = x.buffer.shape
    assert (shape[0] * shape[1], shape[2]) == (128 * 96, 4) and 256 <= shape[1] <= 512
    indices, values = x.to_sparse()
    assert len(indices) == 8 and values.sum() == 2

    @ti.kernel
    def count() -> ti.i32:
        n = 0
        for _ in ti.grouped(level):
            n += 1
        return n

    assert count() == 2


def test_every_nesting(levels: Levels) -> None:
    tree, model = Tree(levels), Model(levels)
    assert tree.x.shape == model.shape
    compare(tree, model)
    rows, columns = model.shape
    for value, index in enumerate([(0, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)], 1):
        tree.write(*index, value)
        model.write(index, value)
    tree.x[rows // 3, columns // 2] = 9.0
    model.write((rows // 3, columns // 2), 9.0)
    assert tree.x[rows // 3, columns // 2] == 9.0
    compare(tree, model)
    for index in np.ndindex(*model.shape):
        assert tree.ask(*index) == model.is_active(index)

    tree.sweep()
    for index in model.active():
        model.values[index] = model.read(index) * 2 + index[0] + 1
    compare(tree, model)
    np.testing.assert_array_equal(np.argwhere(tree.seen.to_numpy()), model.active())

    for level in model.sparse:
        change, ask, count = tree.on_level(level)
        assert count() == len(model.blocks[level])
        assert [ask(*index) for index in np.ndindex(*model.shape)] == [
            model.block(level, index) in model.blocks[level] for index in np.ndindex(*model.shape)
        ]
        change(rows // 2, columns // 3, 0)
        model.deactivate(level, model.block(level, (rows // 2, columns // 3)))
        compare(tree, model)
        change(rows - 1, 0, 1)
        model.activate((rows - 1, 0), level)
        compare(tree, model)
    tree.nodes[model.sparse[0]].deactivate_all()
    compare(tree, Model(levels))


def test_the_body_of_a_loop_does_not_change_where_it_goes(levels: Levels) -> None:
    tree, model = Tree(levels), Model(levels)
    rows, columns = model.shape
    for index in [(0, 0), (rows // 2, columns - 1)]:
        tree.write(*index, 1.0)
        model.write(index, 1.0)
    before = model.active()
    tree.spread()
    np.testing.assert_array_equal(np.argwhere(tree.seen.to_numpy() == 1), before)
    assert tree.seen.to_numpy().sum() == len(before)
    for i, j in before:
        if i + 3 < rows:
            model.write((i + 3, columns - 1 - j), 7.0)
    compare(tree, model)


def test_arrays_come_and_go(levels: Levels) -> None:
    tree, model = Tree(levels), Model(levels)
    given = np.zeros(model.shape, np.float32)
    places = [tuple(int(k * n) for n in model.shape) for k in (0.0, 0.4, 0.9)]
    for value, index in enumerate(places, 1):
        given[index] = value
        model.write(index, value)
    tree.x.from_numpy(given)
    compare(tree, model)
    np.testing.assert_array_equal(np.array(tree.x), given)
    tree.x.fill(3.0)
    for index in model.active():
        model.values[index] = 3.0
    compare(tree, model)
    tree.x.fill(0.0)
    assert not tree.x.to_numpy().any()
    assert tree.count() == len(model.active())


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "python", "add", "sweep", "spread", "off", "on", "clear"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40)
@given(name=st.sampled_from(sorted(NESTINGS)), program=steps)
def test_random_programs(name: str, program: list[tuple[str, int, int]]) -> None:
    ti.init()
    tree, model = Tree(NESTINGS[name]), Model(NESTINGS[name])
    on_level = {level: tree.on_level(level)[0] for level in model.sparse}
    rows, columns = model.shape
    for what, a, b in program:
        index = (a % rows, b % columns)
        level = model.sparse[a % len(model.sparse)]
        match what:
            case "write":
                tree.write(*index, b % 7)
                model.write(index, b % 7)
            case "python":
                tree.x[index] = a % 5
                model.write(index, a % 5)
            case "add":
                places = [((a + k * b) % rows, (b + k * a) % columns) for k in range(9)]
                tree.add(9, np.array(places, np.int32))
                for place in places:
                    model.write(place, model.read(place) + 1)
            case "sweep":
                tree.sweep()
                for place in model.active():
                    model.values[place] = float(np.float32(model.read(place)) * 2 + place[0] + 1)
            case "spread":
                tree.spread()
                for i, j in model.active():
                    if i + 3 < rows:
                        model.write((i + 3, columns - 1 - j), 7.0)
            case "off":
                on_level[level](*index, 0)
                model.deactivate(level, model.block(level, index))
            case "on":
                on_level[level](*index, 1)
                model.activate(index, level)
            case _:
                tree.nodes[level].deactivate_all()
                for place in list(np.ndindex(*model.shape)):
                    model.deactivate(level, model.block(level, place))
    compare(tree, model)


# lists


def test_lists_in_cells() -> None:
    x: Any = ti.field(ti.i32)
    ti.root.dense(ti.i, 3).dynamic(ti.j, 50, chunk_size=8).place(x)
    taken = ti.field(ti.i32, shape=60)

    @ti.kernel
    def fill(n: ti.i32) -> None:
        for k in range(n):
            taken[k] = x[k % 3].append(k)

    @ti.kernel
    def total(i: ti.i32) -> ti.i32:
        n = 0
        for k in range(x[i].length()):
            n += x[i, k]
        return n

    @ti.kernel
    def everything() -> ti.i32:
        n = 0
        for _, j in x:
            n += j
        return n

    @ti.kernel
    def clear(i: ti.i32) -> None:
        x[i].deactivate()

    fill(60)
    assert [total(i) for i in range(3)] == [sum(range(i, 60, 3)) for i in range(3)]
    for i in range(3):  # every element once, at the place that `append` has said
        assert sorted(taken.to_numpy()[i::3]) == list(range(20))
        assert [x[i, taken[k]] for k in range(i, 60, 3)] == list(range(i, 60, 3))
    assert everything() == 3 * sum(range(20))
    clear(1)
    assert [total(i) for i in range(3)] == [sum(range(0, 60, 3)), 0, sum(range(2, 60, 3))]
    assert not x.to_numpy()[1].any()
    assert len(x.to_sparse()[0]) == 40


def test_one_list() -> None:
    s: Any = ti.Struct.field({"at": ti.math.vec2, "n": ti.i32})
    level = ti.root.dynamic(ti.i, 1000)
    level.place(s)

    @ti.kernel
    def fill(n: ti.i32) -> ti.i32:
        for k in range(n):
            s.append(ti.Struct(at=ti.Vector([k, 2.0 * k]), n=k))
        return s.length()

    @ti.kernel
    def twice() -> None:
        for k in s:
            s.append(s[k])

    assert fill(100) == 100
    assert sorted(s.n.to_sparse()[1].tolist()) == list(range(100))
    at, n = s.at.to_numpy(), s.n.to_numpy()
    np.testing.assert_array_equal(at[:100], np.stack([n[:100], 2 * n[:100]], -1))
    twice()
    assert sorted(s.n.to_sparse()[1].tolist()) == sorted([*range(100), *range(100)])
    level.deactivate_all()
    assert fill(0) == 0


def test_lists_under_blocks() -> None:
    x = ti.field(ti.f32)
    block = ti.root.pointer(ti.ij, (4, 4))
    block.dense(ti.ij, (2, 2)).dynamic(ti.k, 16).place(x)

    @ti.kernel
    def put(i: ti.i32, j: ti.i32, value: ti.f32) -> None:
        ti.append(x.parent(), [i, j], value)

    @ti.kernel
    def length(i: ti.i32, j: ti.i32) -> ti.i32:
        return ti.length(x.parent(), [i, j])

    @ti.kernel
    def blocks() -> ti.i32:
        n = 0
        for _ in ti.grouped(block):
            n += 1
        return n

    @ti.kernel
    def off() -> None:
        ti.deactivate(block, [2, 3])

    for value in range(3):
        put(5, 7, value)
    put(0, 0, 9.0)
    assert (length(5, 7), length(4, 7), blocks()) == (3, 0, 2)
    np.testing.assert_array_equal(x.to_sparse()[0], [[0, 0, 0], [5, 7, 0], [5, 7, 1], [5, 7, 2]])
    off()
    assert (length(5, 7), length(0, 0), blocks()) == (0, 1, 1)


def test_a_full_list_is_an_error_with_the_name_of_the_field() -> None:
    numbers: Any = ti.field(ti.i32)
    ti.root.dynamic(ti.i, 8).place(numbers)

    @ti.kernel
    def fill(n: ti.i32) -> None:
        for k in range(n):
            numbers.append(k)

    @ti.kernel
    def length() -> ti.i32:
        return numbers.length()

    with pytest.raises(TinoteError, match="a list of 'numbers' is full: it holds 8 elements"):
        fill(20)
    assert length() == 8
    numbers.parent().deactivate_all()
    fill(8)
    assert sorted(numbers.to_numpy().tolist()) == list(range(8))


# the rest


def test_fields_of_one_tree_share_what_is_active() -> None:
    x, v = ti.field(ti.f32), ti.Vector.field(2, ti.f32)
    s = ti.Struct.field({"a": ti.i32, "m": ti.math.mat2})
    y = ti.field(ti.f32)
    block = ti.root.pointer(ti.i, 4)
    block.dense(ti.i, 4).place(x, v, s)
    block.place(y)

    @ti.kernel
    def run() -> None:
        v[5] = [1.0, 2.0]
        v[6][1] = 3.0
        s[7].m[0, 1] = 4.0

    @ti.kernel
    def sweep() -> None:
        for i in x:
            x[i] = i
            s[i].a = i
            y[i // 4] += 1.0

    run()
    sweep()
    np.testing.assert_array_equal(x.to_numpy(), [0] * 4 + [4, 5, 6, 7] + [0] * 8)
    np.testing.assert_array_equal(s.a.to_numpy(), x.to_numpy())
    np.testing.assert_array_equal(y.to_numpy(), [0, 4, 0, 0])
    np.testing.assert_array_equal(v.to_numpy()[5:7], [[1, 2], [0, 3]])
    assert s[7].m[0, 1] == 4.0
    block.deactivate_all()
    assert not (x.to_numpy().any() or v.to_numpy().any() or s.a.to_numpy().any() or y.to_numpy().any())


def test_the_first_index_need_not_be_zero() -> None:
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, 4).dense(ti.ij, 4).place(x, offset=(-8, -8))

    @ti.kernel
    def run() -> None:
        x[-8, 7] = 1.0
        for i, j in x:
            x[i, j] += i * 100 + j

    run()
    found = {tuple(i): v for i, v in zip(x.to_sparse()[0].tolist(), x.to_sparse()[1].tolist(), strict=True)}
    assert found == {(i, j): i * 100 + j + (i == -8 and j == 7) for i in range(-8, -4) for j in range(4, 8)}
    assert x[-8, 7] == -792.0
    with pytest.raises(KernelIndexError, match="valid are -8 to 7"):
        x[8, 0] = 1.0


def test_an_index_out_of_range_is_said_as_the_user_wrote_it() -> None:
    grid = ti.field(ti.f32)
    ti.root.pointer(ti.ij, (4, 2)).dense(ti.ij, 8).place(grid)

    @ti.kernel
    def read(i: ti.i32, j: ti.i32) -> ti.f32:
        return grid[i, j]

    with pytest.raises(KernelIndexError, match=r"index 16 .*for axis 1 of 'grid' of shape .*: valid are 0 to 15"):
        read(3, 16)
    with pytest.raises(KernelIndexError, match=r"index -1 is out of bounds for axis 0 of .* valid are 0 to 31"):
        read(-1, 3)


def test_what_lies_outside_can_be_ignored() -> None:
    ti.init(bounds_check="ignore")
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(x)
    found = ti.field(ti.f32, shape=20)

    @ti.kernel
    def run() -> None:
        for i in range(20):
            x[i - 2] = 1.0
        for i in range(20):
            found[i] = x[i - 2]

    run()
    np.testing.assert_array_equal(found.to_numpy(), [0, 0] + [1] * 16 + [0, 0])
    np.testing.assert_array_equal(x.to_numpy(), np.ones(16))
    with pytest.warns(UserWarning, match=r"'x': 4 times\n.*'x': 4 times$"):
        ti.init()


def test_loops_may_end_early_and_run_in_order() -> None:
    x = ti.field(ti.i32)
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)

    @ti.kernel
    def first() -> ti.i32:
        found = -1
        ti.loop_config(serialize=True)
        for i in x:
            if x[i] > 2:
                found = i
                break
        return found

    @ti.kernel
    def inner() -> ti.i32:
        n = 0
        for _ in range(3):
            for i in x:
                n += x[i]
                x[31] = 0
        return n

    x[5], x[13], x[14] = 1, 3, 4
    assert first() == 13
    assert inner() == 24
    assert len(x.to_sparse()[0]) == 12


def test_memory_is_what_is_touched() -> None:
    x = ti.field(ti.f32)
    block = ti.root.pointer(ti.ijk, 128)
    block.dense(ti.ijk, 16).place(x)

    @ti.kernel
    def touch() -> None:
        for i, j, k in ti.ndrange(4, 4, 4):
            x[i * 512, j * 512, k * 512] = 1.0

    @ti.kernel
    def sweep() -> None:
        for i, j, k in x:
            x[i, j, k] += 1.0

    touch()
    sweep()
    memory: Any = x.memory
    assert memory.nbytes == 4 * 2048**3
    assert memory.taken <= 1.3 * 64 * 4 * 16**3
    assert x.to_sparse()[1].sum() == 64 * 16**3 + 64
    copy = memory.copy()
    assert copy.taken == memory.taken
    block.deactivate_all()
    assert memory.taken == 0
    memory.restore(copy)
    assert x[512, 512, 512] == 2.0


def test_boxes_that_cannot_be_are_refused_with_sizes() -> None:
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, 1 << 12).dense(ti.ij, 1 << 12).place(x)
    with pytest.raises(FieldError, match=r"of shape \(16777216, 16777216\), are reserved, and for its 1\.0 PiB"):
        x[0, 0] = 1.0


def _refusals() -> Iterator[tuple[str, Any, str]]:
    def below_list() -> None:
        x = ti.field(ti.i32)
        ti.root.dynamic(ti.i, 8).dense(ti.j, 4).place(x)
        x[0, 0] = 1

    def two_axes() -> None:
        ti.root.dynamic(ti.ij, 8)

    def divided() -> None:
        ti.root.dense(ti.i, 4).dynamic(ti.i, 8)

    def blocks() -> None:
        x = ti.field(ti.i32)
        ti.root.pointer(ti.ijk, 1 << 15).place(x)
        x[0, 0, 0] = 1

    def view() -> None:
        x = ti.field(ti.i32)
        ti.root.pointer(ti.i, 8).place(x)
        x.numpy_view()

    def dense_cell() -> None:
        x = ti.field(ti.i32)
        ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)

        @ti.kernel
        def run() -> None:
            ti.deactivate(x.parent(), 3)

        run()

    def dense_field() -> None:
        x = ti.field(ti.i32, shape=4)

        @ti.kernel
        def run() -> None:
            ti.activate(x, 3)

        run()

    def no_list() -> None:
        x = ti.field(ti.i32)
        ti.root.pointer(ti.i, 8).place(x)

        @ti.kernel
        def run() -> None:
            ti.append(x, [], 3)

        run()

    def dimensions() -> None:
        x = ti.field(ti.i32)
        ti.root.pointer(ti.ij, 8).place(x)

        @ti.kernel
        def run() -> None:
            ti.activate(x, 3)

        run()

    def under_way() -> None:
        x = ti.field(ti.i32)
        block = ti.root.pointer(ti.i, 8)
        block.dense(ti.i, 4).place(x)

        @ti.kernel
        def run() -> None:
            for i in x:
                x[i] = 1
                ti.deactivate(block, i // 4)

        run()

    yield "below a list", below_list, "a list cannot be divided further"
    yield "list of two axes", two_axes, "a list has one axis of its own"
    yield "list of a divided axis", divided, "a list has one axis of its own"
    yield "too many blocks", blocks, "this level has 35,184,372,088,832 blocks"
    yield "view", view, "no dense array shares their memory"
    yield "deactivated dense cell", dense_cell, "not active or inactive one by one"
    yield "activated dense field", dense_field, "needs a sparse field"
    yield "append to no list", no_list, "needs a field under a `dynamic` level"
    yield "too few indices", dimensions, "has 2 dimensions, and is indexed with 1"
    yield "deactivated under way", under_way, "cells that the loop around it is in the middle of"


@pytest.mark.parametrize(("run", "says"), [r[1:] for r in _refusals()], ids=[r[0] for r in _refusals()])
def test_refusals(run: Any, says: str) -> None:
    with pytest.raises(TinoteError, match=says):
        run()


def test_plain_python_runs_the_same() -> None:
    ti.init(arch=ti.python)
    for name in ("pointer, dense", "pointer, pointer, bitmasked"):
        test_every_nesting(NESTINGS[name])
    ti.init(arch=ti.python)
    test_lists_in_cells()


def test_builders_have_sparse_trees() -> None:
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f32)
    block = builder.pointer(ti.i, 4)
    block.dense(ti.i, 4).place(x)
    tree = builder.finalize()
    x[5] = 1.0
    assert x.to_numpy().nonzero()[0].tolist() == [5]
    builder.deactivate_all()
    assert not x.to_numpy().any()
    tree.destroy()
    with pytest.raises(TinoteError, match="destroyed"):
        x[5] = 1.0


@pytest.mark.parametrize("sparse", [True, False])
def test_cells_come_from_lists_of_indices(sparse: bool) -> None:
    x = ti.Vector.field(2, ti.f32)
    (ti.root.pointer(ti.ij, 4).bitmasked(ti.ij, 4) if sparse else ti.root.dense(ti.ij, 16)).place(x, offset=(-8, 0))
    x[0, 0] = [5.0, 5.0]
    indices, values = [[-8, 3], [7, 15], [0, 1]], [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]
    x.from_sparse(indices, values)
    wanted = np.zeros((16, 16, 2))
    for (i, j), value in zip(indices, values, strict=True):
        wanted[i + 8, j] = value
    np.testing.assert_array_equal(x.to_numpy(), wanted)
    if sparse:
        assert sorted(map(tuple, x.to_sparse()[0].tolist())) == sorted([(-8, 3), (7, 15), (0, 1), (0, 0)])
    for index, numbers, message in [
        ([[8, 0]], [[1.0, 1.0]], "index (8, 0) is outside of 'x', of shape (16, 16)"),
        ([[0, -1]], [[1.0, 1.0]], "index (0, -1) is outside"),
        ([0, 1], [[1.0, 1.0]], "have shape (n, 2), not (2,)"),
        ([[0, 1]], [1.0], "have shape (1, 2), not (1,)"),
    ]:
        with pytest.raises(FieldError) as caught:
            x.from_sparse(index, numbers)
        assert message in str(caught.value)
    np.testing.assert_array_equal(x.to_numpy(), wanted)


def test_cells_by_a_list_are_not_captured() -> None:
    x = ti.field(ti.f32)
    ti.root.bitmasked(ti.i, 8).place(x)
    with pytest.raises(CaptureError, match="from_sparse"):
        ti.capture(lambda: x.from_sparse([[1]], [2.0]))()
