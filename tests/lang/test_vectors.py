"""Vectors and small matrices in kernels, against NumPy."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_python_agrees import run


def check(out: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(out.to_numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_vector_algebra(n: int) -> None:
    count = 20
    random = np.random.default_rng(n)
    x, y = ti.Vector.field(n, ti.f64, shape=count), ti.Vector.field(n, ti.f64, shape=count)
    a, b = random.normal(size=(count, n)), random.normal(size=(count, n))
    x.from_numpy(a)
    y.from_numpy(b)
    out = ti.Vector.field(n, ti.f64, shape=(9, count))
    numbers = ti.field(ti.f64, shape=(8, count))

    @ti.kernel
    def run():
        for i in x:
            u, v = x[i], y[i]
            out[0, i] = u + v
            out[1, i] = u - 2 * v
            out[2, i] = u * v
            out[3, i] = u / (v + 10)
            out[4, i] = -u
            out[5, i] = u.normalized()
            out[6, i] = ti.max(u, v) + ti.min(u, 0.0)
            out[7, i] = abs(u) ** 2
            w = ti.Vector.zero(ti.f64, n)
            for k in ti.static(range(n)):
                w[n - 1 - k] = u[k] + k
            w += 1
            w[0] *= 2
            out[8, i] = w
            numbers[0, i] = u.dot(v)
            numbers[1, i] = u.norm()
            numbers[2, i] = u.norm_sqr()
            numbers[3, i] = u.sum()
            numbers[4, i] = u.max() - u.min()
            numbers[5, i] = u.norm(1e-3)
            numbers[6, i] = (u - v).norm_inv(1e-3)
            numbers[7, i] = (u > v).any() * 2 + (u > v).all()

    run()
    reverse = (a + np.arange(n))[:, ::-1] + 1
    reverse[:, 0] *= 2
    length = np.linalg.norm(a, axis=1)
    check(
        out,
        [
            a + b,
            a - 2 * b,
            a * b,
            a / (b + 10),
            -a,
            a / length[:, None],
            np.maximum(a, b) + np.minimum(a, 0),
            a**2,
            reverse,
        ],
    )
    square = (a * a).sum(1)
    more = a > b
    expected = [
        (a * b).sum(1),
        length,
        square,
        a.sum(1),
        a.max(1) - a.min(1),
        np.sqrt(square + 1e-3),
        1 / np.sqrt(((a - b) ** 2).sum(1) + 1e-3),
        more.any(1) * 2 + more.all(1),
    ]
    check(numbers, expected, 1e-7)


@pytest.mark.parametrize("n", [2, 3])
def test_matrix_algebra(n: int) -> None:
    count = 15
    random = np.random.default_rng(n)
    x, v = ti.Matrix.field(n, n, ti.f64, shape=count), ti.Vector.field(n, ti.f64, shape=count)
    a, b = random.normal(size=(count, n, n)) + 2 * np.eye(n), random.normal(size=(count, n))
    x.from_numpy(a)
    v.from_numpy(b)
    out = ti.Matrix.field(n, n, ti.f64, shape=(6, count))
    vectors = ti.Vector.field(n, ti.f64, shape=(3, count))
    numbers = ti.field(ti.f64, shape=(3, count))

    @ti.kernel
    def run():
        for i in x:
            m = x[i]
            out[0, i] = m @ m.transpose()
            out[1, i] = m.inverse()
            out[2, i] = m * m + 1
            out[3, i] = v[i].outer_product(m @ v[i])
            out[4, i] = ti.Matrix.identity(ti.f64, n) * 3 - m / 2
            k = ti.Matrix.zero(ti.f64, n, n)
            for r, c in ti.static(ti.ndrange(n, n)):
                k[c, r] = m[r, c] + r * 10 + c
            out[5, i] = k
            vectors[0, i] = m @ v[i]
            vectors[1, i] = m.transpose() @ v[i]
            vectors[2, i] = m.inverse() @ v[i]
            numbers[0, i] = m.determinant()
            numbers[1, i] = m.trace()
            numbers[2, i] = m.norm()

    run()
    add = np.arange(n)[:, None] * 10 + np.arange(n)
    transposed = a.transpose(0, 2, 1)
    product = np.einsum("nij,nj->ni", a, b)
    check(
        out,
        [
            a @ transposed,
            np.linalg.inv(a),
            a * a + 1,
            b[:, :, None] * product[:, None, :],
            3 * np.eye(n) - a / 2,
            (a + add).transpose(0, 2, 1),
        ],
        1e-10,
    )
    check(vectors, [product, np.einsum("nj,nji->ni", b, a), np.linalg.solve(a, b[..., None])[..., 0]], 1e-10)
    check(numbers, [np.linalg.det(a), np.trace(a, axis1=1, axis2=2), np.sqrt((a * a).sum((1, 2)))], 1e-10)


def test_products_of_unequal_shapes() -> None:
    a, b, c = (
        ti.Matrix.field(2, 3, ti.f32, shape=()),
        ti.Matrix.field(3, 4, ti.f32, shape=()),
        ti.Matrix.field(2, 4, ti.f32, shape=()),
    )
    random = np.random.default_rng(0)
    a.from_numpy(random.normal(size=(2, 3)))
    b.from_numpy(random.normal(size=(3, 4)))

    @ti.kernel
    def run():
        c[None] = a[None] @ b[None]

    run()
    check(c, a.to_numpy() @ b.to_numpy(), 1e-6)


def test_cross_and_swizzles() -> None:
    v = ti.Vector.field(3, ti.f32, shape=4)
    s = ti.field(ti.f32, shape=3)

    @ti.kernel
    def run():
        a, b = ti.Vector([1.0, 2.0, 3.0]), ti.Vector([-1.0, 0.5, 2.0])
        v[0] = a.cross(b)
        v[1].x = a.y
        v[1].yz = b.xx
        v[2] = ti.Vector([a.z, *b.xy]) if ti.static(False) else ti.Vector([a.z, b.x, b.y])
        v[3] = [1, 2.5, 3]
        v[3][1] += 1
        s[0] = a.xy.cross(b.xy)
        a.x, a.y = a.y, a.x
        s[1] = a.x * 10 + a.y
        s[2] = a.zyx[0]

    run()
    check(v, [np.cross([1, 2, 3], [-1, 0.5, 2]), [2, -1, -1], [3, -1, 0.5], [1, 3.5, 3]])
    assert s.to_numpy().tolist() == [2.5, 21, 3]


def test_run_time_indices_into_locals() -> None:
    out = ti.field(ti.i32, shape=(10, 5))

    @ti.kernel
    def run():
        for i in range(10):
            v = ti.Vector([0, 0, 0, 0, 0])
            for k in range(i):
                v[k % 5] += k
            v[i % 5] = -1
            m = ti.Matrix([[1, 2], [3, 4]])
            v[(i + 1) % 5] = m[i % 2, 1 - i % 2]
            for k in range(5):
                out[i, k] = v[k]

    run()
    for i in range(10):
        v = [0] * 5
        for k in range(i):
            v[k % 5] += k
        v[i % 5] = -1
        v[(i + 1) % 5] = [[1, 2], [3, 4]][i % 2][1 - i % 2]
        assert out.to_numpy()[i].tolist() == v


def test_run_time_indices_into_elements_of_fields() -> None:
    v, m = ti.Vector.field(4, ti.i32, shape=3), ti.Matrix.field(2, 3, ti.i32, shape=2)

    @ti.kernel
    def run(k: ti.i32):
        for i in v:
            v[i][(k + i) % 4] += 5
            v[i][0] += 1
        for i in m:
            for c in range(3):
                m[i][k % 2, c] = 10 * i + c

    run(3)
    assert v.to_numpy().tolist() == [[1, 0, 0, 5], [6, 0, 0, 0], [1, 5, 0, 0]]
    assert m.to_numpy().tolist() == [[[0, 0, 0], [0, 1, 2]], [[0, 0, 0], [10, 11, 12]]]


def test_a_vector_is_a_value() -> None:
    """Assigning copies; a change to the copy leaves the original alone."""

    @ti.kernel
    def run() -> ti.i32:
        a = ti.Vector([1, 2])
        b = a
        b[0] = 9
        a[1] = 5
        return a[0] * 1000 + a[1] * 100 + b[0] * 10 + b[1]

    assert run() == 1592


def test_atomic_add_of_vectors() -> None:
    v = ti.Vector.field(3, ti.f64, shape=())

    @ti.kernel
    def run():
        for i in range(100):
            v[None] += ti.Vector([1.0, i, 0.5])

    run()
    assert v.to_numpy().tolist() == [100, 4950, 50]


def test_vector_indices() -> None:
    x = ti.field(ti.f32, shape=(4, 5))

    @ti.kernel
    def run():
        for at in ti.grouped(ti.ndrange(3, 4)):
            x[at + ti.Vector([1, 1])] = at.sum() + at[0]
            for D in ti.static(ti.grouped(ti.ndrange((-1, 1), (-1, 1)))):
                x[at + D + 1] += 0.25

    run()
    expected = np.zeros((4, 5), np.float32)
    added = np.zeros((4, 5))
    for i in range(3):
        for j in range(4):
            for a in (-1, 0):
                for b in (-1, 0):
                    added[i + a + 1, j + b + 1] += 1
    # Whether an element's store or additions come last depends on the order; row and column 0 have additions only.
    first = x.to_numpy()
    expected[0, :] = 0.25 * added[0, :]
    expected[:, 0] = 0.25 * added[:, 0]
    np.testing.assert_array_equal(first[0, :], expected[0, :])
    np.testing.assert_array_equal(first[1:, 0], expected[1:, 0])


def test_constant_vectors_and_types_from_python() -> None:
    gravity = ti.Vector([0.0, -9.8])
    rotation = ti.Matrix([[0, -1], [1, 0]])
    vec2 = ti.types.vector(2, ti.f32)

    @ti.kernel
    def run(dt: ti.f32) -> vec2:
        v = vec2(1, 2)
        v += gravity * dt
        return rotation @ v

    assert run(0.5).to_list() == pytest.approx([-(2 - 4.9), 1])
    assert vec2(1, 2).to_list() == [1, 2]
    assert vec2(3).to_list() == [3, 3]


def test_elementwise_functions() -> None:
    v = ti.Vector.field(3, ti.f64, shape=4)

    @ti.kernel
    def run():
        a = ti.cast(ti.Vector([0.5, 1.5, -2.5]), ti.f64)
        v[0] = ti.sin(a)
        v[1] = ti.floor(a)
        v[2] = ti.select(a > 0, a, -a)
        v[3] = ti.cast(a, ti.i32)

    run()
    a = np.array([0.5, 1.5, -2.5])
    check(v, [np.sin(a), np.floor(a), abs(a), np.trunc(a)])


def test_python_scope_algebra() -> None:
    a, b = ti.Vector([1.0, 2.0, 3.0]), ti.Vector([4.0, 5.0, 6.0])
    m = ti.Matrix([[1, 2], [3, 4]])
    assert (a + b * 2 - 1).to_list() == [8, 11, 14]
    assert a.dot(b) == 32
    assert a.cross(b).to_list() == [-3, 6, -3]
    assert (m @ m).to_list() == [[7, 10], [15, 22]]
    assert m.transpose().to_list() == [[1, 3], [2, 4]]
    assert m.determinant() == pytest.approx(-2)
    assert (m.inverse() @ m).to_numpy() == pytest.approx(np.eye(2))
    assert (2 / ti.Vector([1, 2])).to_list() == [2, 1]
    assert a.norm() == pytest.approx(14**0.5)
    assert (a.x, a.yz.to_list()) == (1, [2, 3])
    assert len(a) == 3
    assert list(a) == [1, 2, 3]


def test_integers_stay_integers_in_python_scope() -> None:
    """So that they can count and index."""
    a, m = ti.Vector([1, 2, 3]), ti.Matrix([[1, 2], [3, 4]])
    found = [a.dot(a), a.norm_sqr(), a.sum(), m.trace(), ti.Vector([1, 2]).cross(ti.Vector([3, 4])), a @ a]
    assert found == [14, 14, 6, 5, -2, 14]
    assert all(type(x) is int for x in found)
    assert type(a.norm()) is float and type((a / 1).dot(a)) is float


@pytest.mark.parametrize("value", [2, 2.0, True, np.float32(2), np.int64(2)])
@pytest.mark.parametrize("content", [[1, 2, 3], [2.0, 2.0], [[2, 1], [1, 2]], [True, False]])
def test_comparisons_in_python_are_component_by_component(content: Any, value: Any) -> None:
    m, a = ti.Matrix(content), np.array(content)
    for compare in (lambda x, y: x == y, lambda x, y: x != y, lambda x, y: y == x, lambda x, y: y != x):
        found = compare(m, value)
        assert isinstance(found, ti.Matrix)
        np.testing.assert_array_equal(found.to_numpy(), compare(a, value))
    assert (m == content).all() and not (m != ti.Matrix(content)).any()


@pytest.mark.parametrize("other", [None, "xy", object()])
def test_a_vector_equals_nothing_that_is_no_number(other: Any) -> None:
    v = ti.Vector([1, 2])
    assert (v == other, v != other) == (False, True)


#: what is computed of a 2 by 3 matrix m: rows, as Python has it
WALKS = {
    "comprehension": "[r[2] + 10 * r.sum() for r in m]",
    "nested": "[x for r in m for x in r][1:3]",
    "static loop": None,
    "list": "[list(m)[0][1], list(m)[1].sum()]",
    "tuple": "[tuple(m)[1][0], 0]",
    "enumerate": "[k * r[0] for k, r in enumerate(m)]",
    "zip": "[a * r[1] for a, r in zip([1, 2], m)]",
    "reversed": "[r[0] for r in reversed(m)]",
    "star": "[[*m][1][2], 0]",
    "arguments": "both(*m)",
    "length": "[len([r for r in m]), len(m)]",
}


@pytest.mark.parametrize("where", ["local", "constant", "run-time"])
@pytest.mark.parametrize("name", WALKS)
def test_a_matrix_is_walked_by_rows(name: str, where: str) -> None:
    rows = np.arange(6.0).reshape(2, 3) ** 2
    constant = ti.Matrix(rows.tolist())
    source = {
        "local": "ti.Matrix([[x[0], x[1], x[2]], [x[3], x[4], x[5]]])",
        "constant": "constant",
        "run-time": "f[0]",
    }
    walk = f"    v = {WALKS[name]}\n    out[0], out[1] = v[0], v[1]\n"
    if name == "static loop":
        walk = "    k = 0\n    for r in ti.static(m):\n        out[k] = r[1] - r[0]\n        k += 1\n"
    text = f"@ti.kernel\ndef run():\n    m = {source[where]}\n{walk}"
    text = f"@ti.func\ndef both(a, b):\n    return [a[0] + b[1], a.sum()]\n{text}"
    x, out, f = ti.field(ti.f64, 6), ti.field(ti.f64, 2), ti.Matrix.field(2, 3, ti.f64, 1)
    x.from_numpy(rows.ravel())
    f.from_numpy(rows[None])
    names: dict[str, Any] = {"ti": ti, "x": x, "out": out, "f": f, "constant": constant}
    file = f"walk_{name}_{where}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    names["run"]()
    m: Any = rows
    if name == "static loop":
        wanted = [r[1] - r[0] for r in m]
    else:
        wanted = eval(WALKS[name] or "", {"m": m, "both": lambda a, b: [a[0] + b[1], a.sum()]})
    assert out.to_numpy().tolist() == [float(w) for w in wanted[:2]]


def test_rows_are_unpacked() -> None:
    out = ti.field(ti.f64, 3)

    @ti.kernel
    def run(k: ti.f64):
        m = ti.Matrix([[1.0, k], [3.0, 4.0], [5.0, 6.0]])
        a, b, c = m
        first, *rest = m
        out[0], out[1], out[2] = a[1], b.sum() + first[0], c[1] + rest[1][0]

    run(2.0)
    assert out.to_numpy().tolist() == [2.0, 8.0, 11.0]
    a, b = ti.Matrix([[1, 2], [3, 4]])
    assert (a + b).to_list() == [4, 6]


#: columns of a matrix, `keep_dims`, and the shape of what `to_numpy` gives for a field of 2 by 5
SHAPES = [
    (ti.Matrix.field, (3, 1), False, (2, 5, 3)),
    (ti.Matrix.field, (3, 1), True, (2, 5, 3, 1)),
    (ti.Matrix.field, (1, 1), False, (2, 5, 1)),
    (ti.Matrix.field, (1, 3), False, (2, 5, 1, 3)),
    (ti.Matrix.field, (2, 3), False, (2, 5, 2, 3)),
    (ti.Vector.field, (3,), False, (2, 5, 3)),
    (ti.Vector.field, (3,), True, (2, 5, 3, 1)),
    (ti.Vector.field, (1,), False, (2, 5, 1)),
]


@pytest.mark.parametrize("make, size, keep, shape", SHAPES)
def test_matrices_of_one_column_are_vectors_in_numpy(make: Any, size: Any, keep: bool, shape: Any) -> None:
    f = make(*size, ti.f32, shape=(2, 5))
    content = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    f.from_numpy(content)
    found = f.to_numpy(keep_dims=keep)
    assert found.shape == shape
    np.testing.assert_array_equal(found, content)
    assert np.asarray(f).shape == np.array(f).shape == (2, 5, *size)
    assert f.to_numpy(np.float64).dtype == np.float64
    for full in (content.reshape(2, 5, *size) + 1, content.reshape(2, 5, *size, *(1,) * (2 - len(size))) + 2):
        f.from_numpy(full)
        np.testing.assert_array_equal(f.to_numpy(keep_dims=True), full.reshape(2, 5, *size, *(1,) * (2 - len(size))))
    with pytest.raises(ti.errors.FieldError, match="needs an array of shape"):
        f.from_numpy(np.zeros((2, 5, 7)))


# ---- vectors next to matrices, numbers and truth values

PRODUCTS = {
    "row": ("v @ m", "v @ ti.Matrix(M)", [9.0, 12.0, 15.0]),
    "column": ("m @ w", "ti.Matrix(M) @ ti.Vector([1.0, 0.5, 2.0])", [8.0, 18.5]),
    "inner": ("ti.Vector([v @ v, 0.0])", "ti.Vector([v @ v, 0.0])", [5.0, 0.0]),
    "outer": ("(v @ r)[:, 1]", "(v @ ti.Matrix([[2.0, 0.5]]))[:, 1]", [0.5, 1.0]),
    "constants": ("ti.Vector([1.0, 2.0]) @ ti.Matrix(M)", "v @ ti.Matrix(M)", [9.0, 12.0, 15.0]),
}
M = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_products_of_vectors_and_matrices(name: str, arch: Any) -> None:
    ti.init(arch=arch)
    in_kernel, in_python, expected = PRODUCTS[name]
    out = ti.field(ti.f64, len(expected))
    text = f"""
@ti.kernel
def k():
    v, w = ti.Vector([1.0, 2.0]), ti.Vector([1.0, 0.5, 2.0])
    m, r = ti.Matrix(M), ti.Matrix([[2.0, 0.5]])
    found = {in_kernel}
    for i in ti.static(range({len(expected)})):
        out[i] = found[i]
k()
"""
    run(text, {"ti": ti, "M": M, "out": out, "__name__": "program"})
    assert out.to_numpy().tolist() == expected
    assert eval(in_python, {"ti": ti, "M": M, "v": ti.Vector([1.0, 2.0])}).to_list() == expected


def test_products_of_vectors_are_differentiated() -> None:
    ti.init(default_fp=ti.f64)
    x = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x[None] = [0.5, -1.5]

    @ti.kernel
    def measure():
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        v = x[None]
        loss[None] += (v @ m) @ v

    with ti.ad.Tape(loss):
        measure()
    m, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, -1.5])
    np.testing.assert_allclose(x.grad[None].to_list(), (m + m.T) @ v)


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_a_number_next_to_a_vector_in_a_conditional(arch: Any) -> None:
    ti.init(arch=arch, default_fp=ti.f64)
    x = ti.Vector.field(2, ti.f64, shape=4, needs_grad=True)
    y = ti.Vector.field(2, ti.f64, shape=4)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.arange(8.0).reshape(4, 2))

    @ti.kernel
    def choose():
        for i in range(4):
            # `x[i - 1]` is read for i > 0 only; a number that is read becomes a vector, too
            found = 0 if i == 0 else x[i - 1]
            again = x[i] if i % 2 else x[i][0] * 2
            y[i] = found + again
            loss[None] += (found * found + again).sum()

    with ti.ad.Tape(loss):
        choose()
    assert y.to_numpy().tolist() == [[0, 0], [2, 4], [10, 11], [10, 12]]
    # the squares of x[0..2], x[i] of odd i, and four times x[i][0] of even i
    assert x.grad.to_numpy().tolist() == [[4, 2], [5, 7], [12, 10], [1, 1]]


LOGIC = {
    "a or b": [[0, 1, 1], [0, 1, 1]],
    "a and b": [[0, 0, 0], [0, 0, 1]],
    "not a": [[1, 0, 1], [1, 0, 0]],
    "not (a or b)": [[1, 0, 0], [1, 0, 0]],
    "a > 0 and b > 0": [[0, 0, 0], [0, 0, 1]],
    "c or a": [[0, 1, 0], [1, 1, 1]],
    "c and b": [[0, 0, 0], [0, 0, 1]],
    "a and c": [[0, 0, 0], [0, 1, 1]],
    "c or b.x > 0 or x[c]": [[0, 7, 0], [1, 1, 1]],
    "ti.Vector([0, 1, 1]) and not ti.Vector([0, 0, 2])": [[0, 1, 0], [0, 1, 0]],
}


@pytest.mark.parametrize("expression", LOGIC)
@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_and_or_not_take_each_component(expression: str, arch: Any) -> None:
    ti.init(arch=arch)
    x = ti.Vector.field(3, ti.i32, shape=1)  # with an index 1 out of range: it is read where it decides only
    x[0] = [0, 7, 0]
    text = f"""
@ti.kernel
def k(c: ti.i32) -> ti.types.vector(3, ti.i32):
    a, b = ti.Vector([0, 1, c]), ti.Vector([0, 0, 1])
    found = {expression}
    return ti.cast(found, ti.i32)
"""
    names = {"ti": ti, "x": x, "__name__": "program"}
    run(text, names)
    expected = [[int(bool(n)) for n in row] for row in LOGIC[expression]]
    assert [names["k"](c).to_list() for c in (0, 1)] == expected


def test_the_truth_of_a_vector_is_still_refused() -> None:
    @ti.kernel
    def k(c: ti.i32) -> ti.i32:
        found = 0
        if ti.Vector([c, 1]) or ti.Vector([1, c]):
            found = 1
        return found

    with pytest.raises(ti.TaichiTypeError, match="the truth of a vector of 2 u1 is not defined"):
        k(1)
