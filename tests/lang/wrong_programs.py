"""Wrong programs, as a user would write them, by topic. Each begins under the same heading of fields."""

from __future__ import annotations

from tests.lang.wrong_first_steps import FIRST_STEPS

HEADING = """\
import numpy, tinote as ti
ti.init(num_threads=1)
x = ti.field(ti.f32, shape=8, needs_grad=True)
y = ti.field(ti.f32, shape=8)
v = ti.Vector.field(2, ti.f32, shape=8, needs_grad=True)
grid = ti.field(ti.i32, shape=(4, 4))
loss = ti.field(ti.f32, shape=(), needs_grad=True)
total = ti.field(ti.f32, shape=())
"""

TOPICS: dict[str, str] = {
    "unknown names": """
@ti.kernel
def k():
    for i in x:
        x[i] = speeed * 2
k()
---
@ti.func
def helper(a):
    return a + missing
@ti.kernel
def k():
    for i in x:
        x[i] = helper(x[i])
k()
---
@ti.kernel
def k():
    x[0] = ti.cosine(1.0)
k()
""",
    "unsupported statements": """
@ti.kernel
def k():
    with open("file") as f:
        pass
k()
---
@ti.kernel
def k():
    try:
        x[0] = 1
    except ValueError:
        x[0] = 2
k()
---
@ti.kernel
def k():
    yield 1
k()
---
@ti.kernel
def k():
    squares = [i * i for i in range(int(x[0]))]
k()
---
@ti.kernel
def k():
    f = lambda a: f(a)
    x[0] = f(1)
k()
---
@ti.kernel
def k():
    import math
k()
---
@ti.kernel
def k():
    global x
k()
---
@ti.kernel
def k():
    def inner(a):
        yield a
    x[0] = inner(1)
k()
---
@ti.kernel
def k():
    del x
k()
---
@ti.kernel
def k():
    for i in x:
        if i > 3:
            break
k()
---
@ti.kernel
def k():
    raise ValueError("no")
k()
---
k = ti.kernel(lambda: None)
k()
---
@ti.kernel
async def k():
    x[0] = 1
k()
---
@ti.kernel
def k(*numbers):
    x[0] = 1
k()
""",
    "types and shapes": """
@ti.kernel
def k():
    for i in v:
        v[i] = ti.Vector([1.0, 2.0, 3.0])
k()
---
@ti.kernel
def k():
    for i in v:
        x[i] = v[i]
k()
---
@ti.kernel
def k():
    for i in v:
        a = v[i] + ti.Vector([1, 2, 3])
k()
---
@ti.kernel
def k():
    for i in v:
        a = 1
        a = v[i]
k()
---
@ti.kernel
def k():
    x[0] = "text"
k()
---
@ti.kernel
def k():
    x[0] = x[0] & 3
k()
---
@ti.kernel
def k() -> ti.f32:
    x[0] = 1
k()
---
@ti.kernel
def k():
    return x[0]
k()
---
@ti.kernel
def k():
    if v[0]:
        x[0] = 1
k()
---
@ti.kernel
def k():
    for i in range(None):
        x[i] = 1
k()
---
@ti.kernel
def k():
    x[0] = ti.sin(1, 2)
k()
""",
    "index ranks": """
@ti.kernel
def k():
    for i in x:
        x[i, 0] = 1
k()
---
@ti.kernel
def k():
    for i, j in grid:
        grid[i] = 1
k()
---
@ti.kernel
def k():
    total[1] = 1
k()
---
@ti.kernel
def k():
    for i in grid:
        grid[i, 0] = 1
k()
---
@ti.kernel
def k():
    for i in v:
        v[i][2] = 1
k()
---
@ti.kernel
def k():
    for i in x:
        x[x[i]] = 1
k()
---
grid[1]
---
grid[1, 4] = 3
""",
    "out of range": """
@ti.kernel
def k(n: ti.i32):
    for i in range(n):
        x[i] = i
k(8)
k(9)
---
@ti.kernel
def k():
    for i in x:
        x[i] = y[i - 1]
k()
---
@ti.kernel
def k():
    for i, j in grid:
        grid[i, j] += grid[i, (j + 1) * 4]
k()
---
@ti.kernel
def k(a: ti.i32):
    for i in v:
        v[a].x = 1
k(-1)
---
@ti.func
def get(i):
    return x[i + 3]
@ti.kernel
def k() -> ti.f32:
    s = 0.0
    for i in x:
        s += get(i)
    return s
k()
---
@ti.kernel
def k(n: ti.i32) -> ti.i32:
    a = ti.Vector([1, 2, 3])
    return a[n]
k(3)
""",
    "faults at run time": """
@ti.kernel
def k(a: ti.i32) -> ti.i32:
    return 7 // a
k(0)
---
@ti.kernel
def k(a: ti.i32):
    for i, j in grid:
        grid[i, j] = i % a
k(0)
---
@ti.kernel
def k(a: ti.f32):
    assert a > 0, f"a is {a}"
k(-2)
""",
    "calls": """
@ti.kernel
def k(a: ti.i32, b: ti.f32):
    x[a] = b
k(1)
---
@ti.kernel
def k(a: ti.i32, b: ti.f32):
    x[a] = b
k(1, 2, 3)
---
@ti.kernel
def k(a: ti.i32):
    x[a] = 1
k(1.5)
---
@ti.kernel
def k(a: ti.i32):
    x[a] = 1
k(c=1)
---
@ti.kernel
def k(a: ti.f32):
    x[0] = a
k("one")
---
@ti.kernel
def k(a):
    x[0] = a
k(1)
---
@ti.kernel
def k(a: ti.u8):
    x[0] = a
k(300)
---
@ti.func
def f(a, b):
    return a + b
@ti.kernel
def k():
    x[0] = f(1)
k()
---
@ti.func
def f(n):
    return 1 if n == 0 else f(n - 1)
@ti.kernel
def k():
    x[0] = f(3)
k()
---
@ti.kernel
def inner():
    x[0] = 1
@ti.kernel
def k():
    inner()
k()
---
def plain(a):
    try:
        return a
    except ValueError:
        return 0
@ti.kernel
def k():
    x[0] = plain(x[1])
k()
---
@ti.kernel
def k(a: "nothing"):
    x[0] = a
k(1)
""",
    "tapes": """
with ti.ad.Tape():
    pass
---
with ti.ad.Tape(loss=x):
    pass
---
with ti.ad.Tape(loss=total):
    pass
---
with ti.ad.Tape(loss=3.0):
    pass
---
with ti.ad.Tape(loss=loss):
    with ti.ad.Tape(loss=loss):
        pass
---
tape = ti.ad.Tape(loss=loss)
with tape:
    pass
with tape:
    pass
---
@ti.kernel
def first(a: ti.types.ndarray()):
    for i in x:
        a[i] = x[i] ** 2
@ti.kernel
def second(a: ti.types.ndarray()):
    for i in a:
        loss[None] += a[i]
squares = numpy.zeros(8, numpy.float32)
with ti.ad.Tape(loss=loss):
    first(squares)
    second(squares)
---
@ti.kernel
def k():
    for i in x:
        total[None] += x[i]
    for i in x:
        loss[None] += total[None] * x[i]
k.grad()
---
y.grad
---
@ti.kernel
def k():
    for i in y:
        x[i] = y.grad[i]
k()
""",
    "fields": """
ti.field(ti.f32, shape=-1)
---
ti.field(ti.f32)[0]
---
ti.field("f33", shape=3)
---
ti.field(ti.i32, shape=3, needs_grad=True)
---
ti.Vector.field(0, ti.f32, shape=3)
---
x[0] = "one"
---
grid[0, 0] = 2**40
---
x.from_numpy([1.0, 2.0])
---
v[0] = [1, 2, 3]
---
ti.init(colour=True)
---
ti.reset()
x[0]
""",
    "left out": """
ti.quant.int(8)
---
ti.profiler.set_kernel_profiler_toolkit("cupti")
---
ti.init(arch="cuda")
---
@ti.kernel
def k():
    for i in x:
        ti.get_addr(x, i)
k()
---
@ti.kernel
def k(image: ti.types.texture(2)):
    pass
k(x)
---
ti.MeshBuilder()
---
ti.aot.Module()
---
ti.tools.write_vtk(x, "x")
""",
    "captured objects": """
ti.reset()
@ti.kernel
def k():
    y[0] = 1.0
k()
---
@ti.kernel
def k():
    for i in y:
        a = y.dual[i]
        b = y.grad[i]
k()
---
class Settings:
    @property
    def speed(self):
        return 1 / 0
settings = Settings()
@ti.kernel
def k():
    x[0] = settings.speed
k()
---
@ti.kernel
def k():
    total[0] += 1
k()
---
@ti.kernel
def k():
    loss[None] = total[0]
k()
""",
    "limits": """
@ti.kernel
def k():
    for i in ti.static(range(10**9)):
        x[0] += i
k()
---
@ti.kernel
def k():
    x[0] = 1 << 10**10
k()
---
@ti.kernel
def k():
    x[0] = 10**400
k()
---
@ti.kernel
def k(n: ti.i32):
    a = ti.Vector([0.0] * 20_000)
    x[0] = a[n]
k(1)
---
@ti.kernel
def k():
    m = ti.Matrix.zero(ti.f32, 10**5, 10**5)
k()
---
@ti.func
def deeper(n: ti.template()):
    return deeper(n + 1)
@ti.kernel
def k():
    x[0] = deeper(0)
k()
""",
    "formats": """
@ti.kernel
def k():
    print(f"{x[0]:d}")
k()
---
@ti.kernel
def k(n: ti.i32):
    print(f"{n:1000000}")
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print(f"{n:{n}d}")
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print("{} {}".format(n))
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print("%c" % n)
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print("%d and %d" % n)
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print("%d" % (n, n))
k(1)
---
@ti.kernel
def k(n: ti.i32):
    print("%d%" % n)
k(1)
---
@ti.kernel
def k(n: ti.i32):
    assert n > 1, f"{n:.2q}"
k(1)
---
@ti.kernel
def k(n: ti.i32):
    assert n > 1, f"n is {n:04d}"
k(1)
""",
    "several in a loop": """
@ti.kernel
def k():
    for i in x:
        a = speeed
        x[i] = y[i, 0]
        if i > 2:
            b = speed
            c = v[i].z
        x[i] = y.foo
k()
""",
    "overflow": """
@ti.kernel
def k(n: ti.i32) -> ti.i32:
    return n * 65536
ti.init(debug=True)
k(65536)
""",
    "access rules": """
@ti.kernel
def total_energy():
    for i in x:
        loss[None] += x[i] ** 2
@ti.kernel
def nothing():
    pass
@ti.kernel
def move():
    for i in range(2, 5):
        x[i] += 0.5
with ti.ad.Tape(loss, on_overwrite="error"):
    total_energy()
    nothing()
    move()
---
@ti.func
def store(i, value):
    v[i][1] = value
@ti.kernel
def k():
    for i in v:
        store(i, 1.0)
        store(i, 2.0)
with ti.ad.Tape(loss, on_overwrite="error"):
    k()
---
@ti.kernel
def k():
    x[3] = ti.atomic_add(x[4], 1.0)
with ti.ad.Tape(loss, on_overwrite="error"):
    k()
---
@ti.kernel
def shift():
    for i in range(7):
        x[i + 1] = x[i]
with ti.ad.Tape(loss, on_overwrite="error"):
    shift()
---
@ti.kernel
def cells(n: ti.template()):
    for i in range(n[1, 1]):
        loss[None] += x[i]
grid[1, 1] = 3
with ti.ad.Tape(loss, on_overwrite="error"):
    cells(grid)
    grid.fill(4)
---
ti.ad.Tape(loss, validation="first")
---
ti.ad.Tape(loss, on_overwrite="ignore")
""",
    **FIRST_STEPS,
}
