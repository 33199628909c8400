"""Programs whose functions call themselves: what they give, and those that are refused."""

from __future__ import annotations

import math
from typing import Any

from tinote.errors import KernelSyntaxError, KernelTypeError

#: by name: the program, a call, and what that gives (or, as text, what the same is in Python)
PROGRAMS: dict[str, tuple[str, str, Any]] = {
    "factorial": (
        """
@ti.real_func
def factorial(n: ti.i32) -> ti.i64:
    if n == 0:
        return 1
    return n * factorial(n - 1)

@ti.kernel
def run(n: ti.i32) -> ti.i64:
    return factorial(n)
""",
        "[run(n) for n in (0, 1, 5, 20)]",
        [1, 1, 120, math.factorial(20)],
    ),
    "Fibonacci, in parallel": (
        """
y = ti.field(ti.i32, shape=20)

@ti.real_func
def fib(n: ti.i32) -> ti.i32:
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@ti.kernel
def run():
    for i in y:
        y[i] = fib(i)
""",
        "run() or y.to_numpy().tolist()",
        [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181],
    ),
    "Ackermann": (
        """
@ti.real_func
def ackermann(m: ti.i32, n: ti.i32) -> ti.i32:
    r = n + 1
    if m > 0:
        if n == 0:
            r = ackermann(m - 1, 1)
        else:
            r = ackermann(m - 1, ackermann(m, n - 1))
    return r

@ti.kernel
def run(m: ti.i32, n: ti.i32) -> ti.i32:
    return ackermann(m, n)
""",
        "[run(0, 3), run(1, 3), run(2, 3), run(3, 4)]",
        [4, 5, 9, 125],
    ),
    "two functions that call each other": (
        """
@ti.real_func
def even(n: ti.i32) -> bool:
    if n == 0:
        return True
    return odd(n - 1)

@ti.real_func
def odd(n: ti.i32) -> bool:
    if n == 0:
        return False
    return even(n - 1)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return 10 * ti.cast(even(n), ti.i32) + ti.cast(odd(n), ti.i32)
""",
        "[run(n) for n in (0, 1, 2, 9, 1000)]",
        [10, 1, 10, 1, 10],
    ),
    "a function that calls two that recurse, one of which calls it": (
        """
@ti.real_func
def down(n: ti.i32) -> ti.i32:
    return 0 if n <= 0 else 1 + down(n - 1)

@ti.real_func
def a(n: ti.i32) -> ti.i32:
    s = down(n)
    if n > 0:
        s += b(n - 1) * down(2)
    return s

@ti.real_func
def b(n: ti.i32) -> ti.i32:
    s = 1
    if n > 0:
        s += a(n - 1) + b(n - 2)
    return s

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return a(n)
""",
        "[run(n) for n in range(8)]",
        "a(n)",
    ),
    "a walk over a tree in fields": (
        """
left, right, value = (ti.field(ti.i32, shape=15) for _ in range(3))
for i in range(15):
    left[i], right[i] = (2 * i + 1, 2 * i + 2) if i < 7 else (-1, -1)
    value[i] = i * i
order = ti.field(ti.i32, shape=22)
count = ti.field(ti.i32, shape=())

@ti.real_func
def walk(node: ti.i32) -> ti.i32:
    total = 0
    if node >= 0:
        total += walk(left[node])
        order[count[None]] = node
        count[None] += 1
        total += value[node] + walk(right[node])
    return total

@ti.kernel
def run(node: ti.i32) -> ti.i32:
    return walk(node)
""",
        "run(0), order.to_numpy().tolist()[:15], run(2)",
        (1015, [7, 3, 8, 1, 9, 4, 10, 0, 11, 5, 12, 2, 13, 6, 14], sum(i * i for i in (2, 5, 6, 11, 12, 13, 14))),
    ),
    "loops around calls": (
        """
@ti.real_func
def nodes(depth: ti.i32, branching: ti.i32) -> ti.i32:
    total = 1
    for child in range(branching):
        if depth > 0:
            if child == 1:
                continue
            total += nodes(depth - 1, child + 1)
        if total > 1000:
            break
    k = 0
    while k < 2 and total < 500:
        k += 1
        if depth > 3:
            total += k * nodes(depth - 3, k)
    return total

@ti.kernel
def run(depth: ti.i32) -> ti.i32:
    return nodes(depth, 3)
""",
        "[run(n) for n in range(9)]",
        "nodes(n, 3)",
    ),
    "calls in conditions": (
        """
@ti.real_func
def steps(n: ti.i32) -> ti.i32:
    k = 0
    while n > 1 and steps(n // 2) < 100:
        n = n // 2 if n % 2 == 0 else n - 1
        k += 1
    if n == 1 or steps(n - 1) > 0:
        k += 1000
    return k

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return steps(n)
""",
        "[run(n) for n in range(1, 12)]",
        "steps(n)",
    ),
    "vectors and matrices": (
        """
vec3, mat2 = ti.types.vector(3, ti.f32), ti.types.matrix(2, 2, ti.i32)

@ti.real_func
def power(m: mat2, n: ti.i32) -> mat2:
    if n == 0:
        return mat2([[1, 0], [0, 1]])
    half = power(m, n // 2)
    whole = half @ half
    if n % 2 == 1:
        whole = whole @ m
    return whole

@ti.real_func
def spread(v: vec3, n: ti.i32) -> vec3:
    w = v
    if n > 0:
        w[n % 3] += 1
        w = spread(w, n - 1) + v
    return w

@ti.kernel
def run(n: ti.i32) -> mat2:
    return power(mat2([[1, 1], [1, 0]]), n)

@ti.kernel
def run_vector(n: ti.i32) -> vec3:
    return spread(vec3(1, 2, 3), n)
""",
        "run(10).to_numpy().tolist(), run_vector(4).to_numpy().tolist()",
        ([[89, 55], [55, 34]], [8.0, 15.0, 17.0]),
    ),
    "structs": (
        """
Interval = ti.types.struct(lo=ti.i32, hi=ti.i32, steps=ti.i32)

@ti.real_func
def bisect(i: Interval, square: ti.i32) -> Interval:
    if i.hi - i.lo <= 1:
        return i
    middle = (i.lo + i.hi) // 2
    i.steps += 1
    if middle * middle <= square:
        i.lo = middle
    else:
        i.hi = middle
    return bisect(i, square)

@ti.kernel
def run(n: ti.i32) -> ti.types.vector(3, ti.i32):
    i = bisect(Interval(0, 1 << 10, 0), n)
    return ti.Vector([i.lo, i.hi, i.steps])
""",
        "[run(n).to_numpy().tolist() for n in (0, 24, 25, 1000)]",
        [[0, 1, 10], [4, 5, 10], [5, 6, 10], [31, 32, 10]],
    ),
    "several results": (
        """
@ti.real_func
def euclid(a: ti.i32, b: ti.i32) -> tuple[ti.i32, ti.i32, ti.i32]:
    if b == 0:
        return a, 1, 0
    g, x, y = euclid(b, a % b)
    return g, y, x - (a // b) * y

@ti.kernel
def run(a: ti.i32, b: ti.i32) -> ti.types.vector(3, ti.i32):
    g, x, y = euclid(a, b)
    return ti.Vector([g, x, y])
""",
        "[run(*ab).to_numpy().tolist() for ab in ((240, 46), (17, 5), (3, 0))]",
        [[2, -9, 47], [1, -2, 7], [3, 1, 0]],
    ),
    "methods, fields and templates": (
        """
@ti.data_oriented
class Grid:
    def __init__(self, n):
        self.n = n
        self.cells = ti.field(ti.i32, shape=(n, n))

    @ti.real_func
    def fill(self, i: ti.i32, j: ti.i32, old: ti.i32, new: ti.i32) -> ti.i32:
        painted = 0
        if 0 <= i < self.n and 0 <= j < self.n:
            if self.cells[i, j] == old:
                self.cells[i, j] = new
                painted = 1
                for k in ti.static(range(4)):
                    painted += self.fill(i + ti.static([1, -1, 0, 0][k]), j + ti.static([0, 0, 1, -1][k]), old, new)
        return painted

    @ti.kernel
    def run(self, i: ti.i32, j: ti.i32) -> ti.i32:
        return self.fill(i, j, 0, 7)

@ti.real_func
def largest(x: ti.template(), lo: ti.i32, hi: ti.i32) -> ti.i32:
    best = x[lo]
    if hi - lo > 1:
        middle = (lo + hi) // 2
        best = ti.max(largest(x, lo, middle), largest(x, middle, hi))
    return best

numbers, others = ti.field(ti.i32, shape=7), ti.field(ti.i32, shape=3)
for i in range(7):
    numbers[i] = i * 5 % 7
others.fill(4)
grid, wide = Grid(4), Grid(9)
for i in range(4):
    grid.cells[i, 2] = 1

@ti.kernel
def run() -> ti.i32:
    return 10 * largest(numbers, 0, 7) + largest(others, 0, 3)
""",
        "grid.run(0, 0), grid.run(0, 0), grid.run(3, 3), wide.run(4, 4), grid.cells.to_numpy().tolist()[0], run()",
        (8, 0, 4, 81, [7, 7, 1, 7], 64),
    ),
    "references, and no result": (
        """
x = ti.field(ti.i32, shape=4)

@ti.real_func
def climb(n: ti.i32, total: ti.ref(ti.i32)):
    total += n
    if n > 0:
        climb(n - 1, total)
        climb(n - 2, total)

@ti.real_func
def hanoi(n: ti.i32, a: ti.i32, b: ti.i32, c: ti.i32):
    if n > 0:
        hanoi(n - 1, a, c, b)
        x[a] -= 1
        x[b] += 1
        x[3] += 1
        hanoi(n - 1, c, b, a)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    total = 0
    climb(n, total)
    x[0] = n
    hanoi(n, 0, 1, 2)
    return total
""",
        "run(6), x.to_numpy().tolist()",
        (38, [0, 6, 0, 63]),
    ),
    "a method of structs": (
        """
@ti.dataclass
class Branch:
    length: ti.f32
    forks: ti.i32

    @ti.real_func
    def total(self, level: ti.i32) -> ti.f32:
        below = 0.0
        if level > 0:
            child = Branch(self.length * 0.5, self.forks)
            below = self.forks * child.total(level - 1)
        return self.length + below

branches = Branch.field(shape=2)
branches[0], branches[1] = Branch(8, 2), Branch(1, 4)

@ti.kernel
def run(i: ti.i32, level: ti.i32) -> ti.f32:
    return branches[i].total(level)
""",
        "[run(0, 3), run(1, 2), run(1, 0)]",
        [32.0, 7.0, 1.0],
    ),
    "arrays": (
        """
@ti.real_func
def total(a: ti.types.ndarray(), lo: ti.i32, hi: ti.i32) -> ti.f64:
    if hi - lo == 1:
        return a[lo]
    return total(a, lo, (lo + hi) // 2) + total(a, (lo + hi) // 2, hi)

@ti.kernel
def run(a: ti.types.ndarray()) -> ti.f64:
    return total(a, 0, a.shape[0])
""",
        "run(np.arange(10.0)), run(np.ones(33))",
        (45.0, 33.0),
    ),
    "inlined functions on the way": (
        """
@ti.func
def through(n, k):
    return collatz(n // 2, k) if n % 2 == 0 else collatz(3 * n + 1, k)

def plain(n, k):
    return through(n, k + 1)

@ti.real_func
def collatz(n: ti.i32, k: ti.i32) -> ti.i32:
    if n == 1:
        return k
    return plain(n, k)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return plain(n, -1) + collatz(n, 0)
""",
        "[run(n) for n in (6, 7, 27)]",
        [15, 31, 221],
    ),
    "in the kernel itself": (
        """
@ti.kernel
def run(n: ti.i32, scale: ti.i32) -> ti.i32:
    @ti.real_func
    def triangle(k: ti.i32) -> ti.i32:
        return 0 if k == 0 else scale * k + triangle(k - 1)
    return triangle(n) + triangle(2)
""",
        "[run(4, 1), run(4, 10)]",
        [13, 130],
    ),
    "local arrays that a call leaves as they were": (
        """
@ti.real_func
def queens(row: ti.i32, columns: ti.i32, left: ti.i32, right: ti.i32, n: ti.i32) -> ti.i32:
    found = 0
    free = ti.Vector([0, 0, 0, 0, 0, 0, 0, 0])
    for c in range(n):
        free[c] = 1 if ((columns | left | right) >> c) & 1 == 0 else 0
    if row == n:
        found = 1
    else:
        for c in range(n):
            bit = 1 << c
            if free[c] == 1:
                found += queens(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1, n)
    return found

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return queens(0, 0, 0, 0, n)
""",
        "[run(n) for n in (1, 4, 6, 8)]",
        [1, 2, 4, 92],
    ),
    "random numbers, prints and assertions": (
        """
@ti.real_func
def tosses(n: ti.i32) -> ti.i32:
    assert n <= 5, "n is %d" % n
    heads = 0
    if n > 0:
        heads = tosses(n - 1)
        heads += ti.cast(ti.random() < 2, ti.i32)
        print("heads", heads)
    return heads

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return tosses(n)

def failing():
    try:
        run(6)
    except AssertionError as error:
        return error.message
""",
        "run(3), failing()",
        (3, "n is 6"),
    ),
    "arguments are converted, and are the callee's own": (
        """
@ti.real_func
def halve(x: ti.f32, n: ti.i16) -> ti.f32:
    n -= 1
    y = x
    if n > 0:
        y += halve(x / 2, n)
        y += n
    return y

@ti.kernel
def run(n: ti.i32) -> ti.f32:
    return halve(8, n)
""",
        "[run(n) for n in (0, 1, 4)]",
        [8.0, 8.0, 21.0],
    ),
    "in the loop of a gather, with results that are left": (
        """
x = ti.field(ti.i32, shape=(3, 4))

@ti.real_func
def mark(i: ti.i32, n: ti.i32) -> ti.i32:
    if n < 4:
        x[i, n] += i * n
        mark(i, n + 1)
    return n

@ti.kernel
def run():
    for i in range(3):
        for k in range(2):
            mark(i, k)
""",
        "run() or x.to_numpy().tolist()",
        [[0, 0, 0, 0], [0, 2, 4, 6], [0, 4, 8, 12]],
    ),
}

#: by name: the program, the class of its error, its message and its hint
REFUSED: dict[str, tuple[str, type[Exception], str, str]] = {
    "a parameter without a type": (
        """
@ti.real_func
def f(n, k: ti.i32) -> ti.i32:
    return n if n < 2 else f(n - 1, k)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n, 1)
""",
        KernelTypeError,
        "`f` calls itself, and the type of its parameter `n` is not annotated",
        "n: ti.f32",
    ),
    "a result without a type": (
        """
@ti.real_func
def f(n: ti.i32):
    if n > 1:
        f(n - 1)
    return n

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n)
""",
        KernelTypeError,
        "`f` calls itself, and the type of what it returns is not annotated",
        "-> ti.f32",
    ),
    "a func": (
        """
@ti.func
def f(n: ti.i32) -> ti.i32:
    return n if n < 2 else f(n - 1)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n)
""",
        KernelSyntaxError,
        r"`f` calls itself \(f → f\)",
        "`@ti.real_func`",
    ),
    "templates that never repeat": (
        """
@ti.real_func
def f(n: ti.i32, k: ti.template()) -> ti.i32:
    return n if n < 2 else f(n - 1, k + 1)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n, 0)
""",
        KernelSyntaxError,
        "`f` calls itself more than 32 times deep, with other arguments for `template",
        "ti.static",
    ),
    "a reference to a variable of the caller that recurses": (
        """
@ti.real_func
def f(n: ti.i32, k: ti.ref(ti.i32)) -> ti.i32:
    own = n
    if n > 1:
        f(n - 1, own)
    k += own
    return own

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    total = 0
    return f(n, total)
""",
        KernelSyntaxError,
        "`f` calls itself more than 32 times deep, with other arguments for `template",
        "ti.static",
    ),
    "a variable of another function of the circle": (
        """
@ti.real_func
def f(n: ti.i32) -> ti.i32:
    own = n
    own += 1

    @ti.real_func
    def g(k: ti.i32) -> ti.i32:
        return own if k < 1 else g(k - 1) + f(k - 2)

    return g(n) if n > 0 else 0

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n)
""",
        KernelSyntaxError,
        "one of them uses a variable of the other's",
        "pass its value as an argument",
    ),
    "a method that changes what it is called on": (
        """
@ti.dataclass
class Counter:
    n: ti.i32

    @ti.real_func
    def count(self, k: ti.i32):
        self.n += k
        if k > 0:
            self.count(k - 1)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    counter = Counter(0)
    counter.count(n)
    return counter.n
""",
        KernelSyntaxError,
        "`self` is a copy here, because its method calls itself, and cannot be assigned",
        "assign a copy",
    ),
    "mistakes in the body, once": (
        """
@ti.real_func
def f(n: ti.i32) -> ti.i32:
    k = unknown + 1
    return n if n < 2 else f(n - 1) + f(n - 2)

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n)
""",
        NameError,
        "`unknown` is not defined",
        "names come from",
    ),
    "a result of another shape": (
        """
@ti.real_func
def f(n: ti.i32) -> ti.i32:
    return ti.Vector([n, f(n - 1)])

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    return f(n)
""",
        KernelTypeError,
        "is returned where a number of type i32 is annotated",
        "",
    ),
}
