"""Small simulations: many features at once, and hundreds of steps."""

import numpy as np


def game_of_life(ti):
    ti.init(arch=ti.cpu)
    n = 8
    alive, count = ti.field(ti.i32, (n, n)), ti.field(ti.i32, (n, n))
    start = np.zeros((n, n), np.int32)
    start[[1, 2, 3, 3, 3], [2, 3, 1, 2, 3]] = 1
    alive.from_numpy(start)

    @ti.func
    def neighbours(i, j):
        c = 0
        for k in ti.static(range(9)):
            if ti.static(k != 4):
                c += alive[(i + k // 3 - 1) % n, (j + k % 3 - 1) % n]
        return c

    @ti.kernel
    def step():
        for i, j in alive:
            count[i, j] = neighbours(i, j)
        for i, j in alive:
            if alive[i, j]:
                alive[i, j] = count[i, j] == 2 or count[i, j] == 3
            else:
                alive[i, j] = count[i, j] == 3

    for _ in range(20):
        step()
    return alive.to_numpy()


def julia_set(ti):
    ti.init(arch=ti.cpu)
    n = 32
    pixels = ti.field(ti.f32, (n * 2, n))

    @ti.func
    def square(z):
        return ti.Vector([z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2])

    @ti.kernel
    def paint(t: ti.f32):
        for i, j in pixels:
            c = ti.Vector([-0.8, ti.cos(t) * 0.2])
            z = ti.Vector([i / n - 1, j / n - 0.5]) * 2
            iterations = 0
            while z.norm() < 20 and iterations < 50:
                z = square(z) + c
                iterations += 1
            pixels[i, j] = 1 - iterations * 0.02

    paint(0.3)
    return float((np.abs(np.diff(pixels.to_numpy(), axis=0)) > 0.5).mean() < 0.5), pixels.to_numpy()[:4, :4]


def heat(ti):
    ti.init(arch=ti.cpu)
    n = 16
    now, then = ti.field(ti.f32, (n, n)), ti.field(ti.f32, (n, n))
    now[8, 8] = 100.0

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in ti.ndrange((1, n - 1), (1, n - 1)):
            b[i, j] = a[i, j] + 0.2 * (a[i + 1, j] + a[i - 1, j] + a[i, j + 1] + a[i, j - 1] - 4 * a[i, j])

    for _ in range(25):
        step(now, then)
        step(then, now)
    return now.to_numpy()


def springs(ti):
    ti.init(arch=ti.cpu)
    n = 6
    x, v = ti.Vector.field(2, ti.f32, n), ti.Vector.field(2, ti.f32, n)
    x.from_numpy(np.array([[0.1 * i, 0.02 * i * i] for i in range(n)], np.float32))

    @ti.kernel
    def step(dt: ti.f32):
        for i in x:
            f = ti.Vector([0.0, -1.0])
            for j in range(n):
                if abs(i - j) == 1:
                    d = x[i] - x[j]
                    f += -50.0 * (d.norm() - 0.12) * d.normalized()
            v[i] = (v[i] + dt * f) * ti.exp(-dt)
        for i in x:
            if i > 0:
                x[i] += dt * v[i]

    for _ in range(100):
        step(1e-3)
    return x.to_numpy()


def bodies(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    n = 5
    x, v = ti.Vector.field(3, ti.f64, n), ti.Vector.field(3, ti.f64, n)
    x.from_numpy(np.array([[np.cos(i), np.sin(2 * i), 0.1 * i] for i in range(n)]))

    @ti.kernel
    def step(dt: ti.f64):
        for i in range(n):
            a = ti.math.vec3(0)
            for j in range(n):
                r = x[j] - x[i]
                a += r / (r.norm_sqr() + 1e-2) ** 1.5
            v[i] += dt * a
        for i in range(n):
            x[i] += dt * v[i]

    for _ in range(50):
        step(1e-2)
    return [x.to_numpy(), v.to_numpy()]


def particles_in_cells(ti):
    ti.init(arch=ti.cpu)
    n, cells = 40, 8
    x, mass = ti.Vector.field(2, ti.f32, n), ti.field(ti.f32, (cells, cells))
    x.from_numpy(np.array([[(0.37 * i) % 1, (0.61 * i) % 1] for i in range(n)], np.float32) * 0.6 + 0.15)

    @ti.kernel
    def scatter():
        for p in x:
            base = (x[p] * cells - 0.5).cast(int)
            fx = x[p] * cells - base.cast(float)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                mass[base + offset] += w[i].x * w[j].y

    scatter()
    return [mass.to_numpy(), float(mass.to_numpy().sum())]


def sieve(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def is_prime(n: int):
        result = True
        for k in range(2, int(n**0.5) + 1):
            if n % k == 0:
                result = False
                break
        return result

    @ti.kernel
    def count(n: int) -> int:
        total = 0
        for k in range(2, n):
            if is_prime(k):
                total += 1
        return total

    return count(1000)


def ray_against_a_sphere(ti):
    ti.init(arch=ti.cpu)
    n = 12
    image = ti.Vector.field(3, ti.f32, (n, n))

    @ti.func
    def hit(o, d):
        t = -1.0
        b, c = o.dot(d), o.norm_sqr() - 1.0
        q = b * b - c
        if q > 0:
            t = -b - ti.sqrt(q)
        return t

    @ti.kernel
    def render():
        for i, j in image:
            d = ti.math.normalize(ti.math.vec3((i + 0.5) / n - 0.5, (j + 0.5) / n - 0.5, 1.0))
            o = ti.math.vec3(0, 0, -3)
            t = hit(o, d)
            colour = ti.math.vec3(0.1)
            if t > 0:
                normal = ti.math.normalize(o + t * d)
                colour = ti.math.vec3(0.9, 0.5, 0.2) * ti.max(normal.dot(ti.math.vec3(0, 0.6, -0.8)), 0.0)
            image[i, j] = colour

    render()
    return image.to_numpy()


def fibonacci_by_a_graph(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def advance(a: ti.types.ndarray(dtype=ti.i32, ndim=1), c: ti.i32):
        b = a[0] + a[1] + c
        a[0] = a[1]
        a[1] = b

    a = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "a", ti.i32, ndim=1)
    c = ti.graph.Arg(ti.graph.ArgKind.SCALAR, "c", ti.i32)
    builder = ti.graph.GraphBuilder()
    part = builder.create_sequential()
    part.dispatch(advance, a, c)
    for _ in range(8):
        builder.append(part)
    graph = builder.compile()
    x = ti.ndarray(ti.i32, 2)
    x.from_numpy(np.array([0, 1], np.int32))
    graph.run({"a": x, "c": 0})
    graph.run({"a": x, "c": 1})
    return x.to_numpy()
