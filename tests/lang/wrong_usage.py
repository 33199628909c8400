"""More wrong programs: what is left out, limits, formats, faults."""

from __future__ import annotations

MORE_TOPICS: dict[str, str] = {
    "left out": """
ti.quant.int(8)
---
ti.ui.Scene()
---
ti.ui.Window("3-D", (640, 360), show_window=False).get_scene()
---
ti.linalg.SparseMatrixBuilder(4, 4)
---
ti.linalg.MatrixFreeCG()
---
ti.profiler.set_kernel_profiler_toolkit("cupti")
---
ti.init(arch="cuda")
---
@ti.kernel
def k():
    for i in x:
        ti.deactivate(x, i)
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
ti.graph.GraphBuilder()
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
    print("%d" % n)
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
}
