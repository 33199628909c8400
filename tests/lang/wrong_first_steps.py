"""What newcomers get wrong first, by topic."""

from __future__ import annotations

FIRST_STEPS: dict[str, str] = {
    "first steps": """
x = ti.field(ti.f32)
@ti.kernel
def k():
    for i in x:
        x[i] = 1
k()
---
@ti.kernel
def k():
    for i in range(8):
        if x[i] > 3:
            return
k()
---
@ti.kernel
def k():
    x[0] = x.sum()
k()
---
@ti.kernel
def k():
    y = x.to_numpy()
k()
---
@ti.kernel
def k():
    for i in range(ti.static(8)):
        for j in ti.static(range(i)):
            x[i] += j
k()
---
@ti.kernel
def k():
    if ti.static(x[0] > 1):
        x[0] = 2
k()
---
@ti.kernel
def k():
    a = []
    a.append(1)
k()
---
@ti.kernel
def k():
    a = {}
    a["x"] = 1
k()
---
@ti.kernel
def k():
    a = numpy.zeros(int(x[0]))
k()
---
@ti.kernel
def k(a: numpy.ndarray):
    a[0] = 1
k(numpy.zeros(3))
---
@ti.kernel
def k(a):
    a[0] = 1
k(numpy.zeros(3))
---
@ti.kernel
def k(a: ti.types.ndarray()):
    a[0] = 1
k([1, 2, 3])
---
@ti.kernel
def k(a: ti.template()):
    a[0] = 1
k(numpy.zeros(3))
---
@ti.kernel
def k():
    for i in ti.ndrange(3, 3):
        a = i + 0.5
k()
---
@ti.kernel
def k():
    for i in 5:
        pass
k()
---
n = 3
@ti.kernel
def k():
    n += 1
k()
---
@ti.kernel
def k():
    x = ti.field(ti.f32, shape=3)
k()
---
x = ti.field(ti.f32, shape=3)
@ti.kernel
def k():
    ti.atomic_add(x, 1)
k()
""",
    "classes": """
@ti.data_oriented
class Solver:
    def __init__(self):
        self.x = ti.field(ti.f32, shape=3)
    @ti.kernel
    def step():
        pass
Solver().step()
---
@ti.data_oriented
class Solver:
    @ti.kernel
    def step(self):
        self.y[0] = 1
Solver().step()
---
@ti.data_oriented
class Solver:
    @ti.kernel
    def step(self):
        self.n = 3
Solver().step()
""",
    "vectors and matrices": """
x = ti.Vector([1, 2], ti.f32)
y = ti.Vector.field(2, ti.f32, shape=3)
y[0] = ti.Vector([1, 2, 3])
---
x = ti.Matrix([[1, 2], [3]])
---
@ti.kernel
def k():
    a = ti.Matrix([[1, 2], [3, 4]])
    b = ti.Vector([1, 2, 3])
    c = a @ b
k()
---
@ti.kernel
def k():
    a = ti.Vector([1, 2])
    b = a.cross(ti.Vector([1, 2, 3]))
k()
---
@ti.kernel
def k():
    a = ti.Matrix([[1, 2, 3], [4, 5, 6]])
    b = a.inverse()
k()
---
@ti.kernel
def k() -> ti.types.vector(3, ti.f32):
    return ti.Vector([1.0, 2.0])
k()
---
@ti.kernel
def k(v: ti.types.vector(3, ti.f32)):
    pass
k(ti.Vector([1, 2]))
---
x = ti.Vector.field(ti.f32, 3, shape=3)
---
v = ti.Vector(3, dt=ti.f32, shape=4)
---
ti.sin("a")
""",
    "results": """
@ti.kernel
def k() -> ti.f32:
    for i in range(8):
        return x[i]
k()
---
@ti.kernel
def k() -> ti.i32:
    pass
k()
---
@ti.kernel
def k() -> float:
    return ti.Vector([1.0, 2.0])
k()
---
@ti.kernel
def k() -> ti.i32:
    return 1, 2
k()
---
@ti.func
def f(x: ti.i32) -> ti.i32:
    return x
f(2)
@ti.kernel
def k():
    f("a")
k()
""",
    "fields in Python": """
x = ti.field(ti.f32, shape=(3, 3))
x[0] = 1
---
x = ti.field(ti.f32, shape=3)
x = x.grad
---
x = ti.field(ti.f32, shape=3)
x.from_numpy(numpy.zeros(4))
---
x = ti.field(shape=3)
---
x = ti.field(ti.f32, shape=2.5)
---
ti.init(default_fp=ti.i32)
---
v = ti.Vector(3, dt=ti.f32)
ti.root.dense(ti.i, 4).place(v)
---
x = ti.field(ti.f32)
ti.root.dense(ti.i, 3).place(x)
ti.root.dense(ti.i, 4).place(x)
---
ti.root.bit_struct(32)
---
ti.root.dense(ti.ij, (3, 4, 5))
---
ti.root.dense("ij", 3)
---
ti.random()
""",
    "newcomers": """
@ti.kernel
def k():
    for i in x:
        x[i] = sin(x[i])
k()
---
@ti.kernel
def k():
    x[0] = 2 * pi
k()
---
@ti.kernel
def k():
    x[0] = np.pi
k()
---
@ti.kernel
def k():
    x[0] = math.sqrt(2.0)
k()
---
@ti.kernel
def k():
    for i in range(8):
        qq[i] = 1
k()
---
@ti.kernel
def k():
    x[0] = early
    early = 1.0
k()
---
@ti.kernel
def k():
    total = 3.0
    total[None] += 1
k()
---
@ti.kernel
def k():
    a = x.shape
    for i in range(a):
        x[i] = 1.0
k()
---
@ti.kernel
def k():
    x[0] = ti.f32("1.0")
k()
---
@ti.kernel
def k(a: list):
    x[0] = a[0]
k([1, 2])
---
@ti.kernel
def k(a: ti.field):
    x[0] = a[0]
k(y)
---
@ti.kernel
def k():
    loss[None] += x[0]
ti.ad.grad(k)(x)
---
@ti.kernel
def k():
    loss[None] += x[0]
ti.ad.grad(k, wrt=x)()
---
ti.init(arch=ti.cpu, debgu=True)
---
@ti.kernel
def k(n: int):
    x[n] = 1
k(1.5)
---
@ti.kernel
def k(n: int):
    x[n] = 1
k(1 << 40)
---
@ti.dataclass
class Body:
    mass: ti.f32
    @property
    def weight(self):
        return 9.8 * self.mass
@ti.kernel
def k():
    x[0] = Body(2.0).weight
k()
---
class Body:
    def __init__(self, mass):
        self.mass = mass
@ti.kernel
def k():
    x[1] = Body(x[0]).speed
k()
---
@ti.kernel
def k():
    x[0] = ti.random(ti.math.vec3)
k()
---
@ti.kernel
def k():
    u, s, v = ti.svd(ti.Matrix.zero(float, 4, 4))
k()
---
class Solver:
    @ti.kernel
    @staticmethod
    def k():
        pass
---
@ti.kernel()
def k():
    x[0] = 1.0
---
@ti.func()
def f():
    return 1.0
---
import copy
copy.deepcopy(x)
""",
    "fields as numbers": """
float(loss)
---
print(f"the loss is {loss:.3f}")
---
import math
math.sqrt(loss)
---
while loss > 0.1:
    loss[None] -= 0.1
---
for k in range(total):
    x[k] = 1
---
int(x)
---
x + 1
---
sum(x)
---
x[0] = loss
---
@ti.kernel
def k(a: ti.f32):
    x[0] = a
k(loss)
""",
}
