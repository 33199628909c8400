"""Control flow."""

import numpy as np

from benchmarks.agreement.reasons import differs


def return_under_static_if(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def f(a, mode: ti.template()):
        if ti.static(mode == 0):
            return a + 1
        else:
            return a * 10

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        return f(a, 0) + f(a, 1)

    return k(3)


def return_under_static_if_with_more_after(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def f(a, mode: ti.template()):
        if ti.static(mode == 0):
            return a + 1
        return a * 10

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        return f(a, 0) + f(a, 1)

    return k(3)


def kernel_return_under_static_if(ti):
    ti.init(arch=ti.cpu)
    debug = False

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        if ti.static(debug):
            return -1
        else:
            return a * 2

    return k(3)


def return_under_static_if_in_a_loop(ti):
    ti.init(arch=ti.cpu)
    positive = False

    @ti.real_func
    def f(a: ti.i32) -> ti.i32:
        for i in range(10):
            if i * i > a:
                if ti.static(positive):
                    return i
                else:
                    return -i
        return 100

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        return f(a)

    return [k(10), k(200)]


@differs("in Taichi a `return` may stand in a loop of a `real_func` only")
def return_in_while_true(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        i = 0
        while True:
            i += 1
            if i * i > n:
                return i

    return [k(10), k(0)]


def return_in_while_true_of_a_function(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def f(n: ti.i32) -> ti.i32:
        i = 0
        while True:
            i += 1
            if i * i > n:
                return i

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        return f(n) + f(2 * n)

    return [k(10), k(0)]


def break_under_if_true(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for _ in range(1):
            for i in range(10):
                s += i
                if True:
                    break
        return s

    return k()


def break_under_static_true(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.i32:
        s = 0
        i = 0
        while i < 10:
            s += 1
            if ti.static(True):
                break
            i += 1
        return s

    return k()


def continue_under_if_true(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for i in range(10):
            if True:
                if i > 4:
                    continue
            s += i
        return s

    return k()


def recursion(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def fib(n: ti.i32) -> ti.i32:
        r = n
        if n >= 2:
            r = fib(n - 1) + fib(n - 2)
        return r

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        return fib(n)

    return [k(10), k(1), k(20)]


def recursion_with_early_returns(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def gcd(a: ti.i32, b: ti.i32) -> ti.i32:
        if b == 0:
            return a
        return gcd(b, a % b)

    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.i32:
        return gcd(a, b)

    return [k(48, 36), k(17, 5)]


def recursion_that_sorts(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, 10)
    for i in range(10):
        x[i] = (i * 7) % 10

    @ti.real_func
    def sort(lo: ti.i32, hi: ti.i32):
        if lo < hi:
            middle = lo
            for j in range(lo, hi):
                if x[j] < x[hi]:
                    t = x[middle]
                    x[middle] = x[j]
                    x[j] = t
                    middle += 1
            u = x[middle]
            x[middle] = x[hi]
            x[hi] = u
            sort(lo, middle - 1)
            sort(middle + 1, hi)

    @ti.kernel
    def k():
        sort(0, 9)

    k()
    return x


def recursion_with_structs(ti):
    ti.init(arch=ti.cpu)
    pair = ti.types.struct(a=ti.f32, b=ti.i32)

    @ti.real_func
    def doubled(p: pair, n: ti.i32) -> pair:
        q = pair(p.a * 2, p.b + n)
        if n > 0:
            q = doubled(q, n - 1)
        return q

    @ti.kernel
    def k() -> ti.f32:
        r = doubled(pair(1.5, 0), 4)
        return r.a * 100 + r.b

    return k()


def recursion_with_references(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def counted(n: ti.i32, total: ti.ref(ti.i32)):
        if n > 0:
            total += n
            counted(n - 1, total)
            total *= 2

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        total = 1
        counted(n, total)
        return total

    return [k(n) for n in range(4)]


def recursion_with_an_array(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def total(x: ti.types.ndarray(dtype=ti.f32, ndim=1), n: ti.i32) -> ti.f32:
        r = 0.0
        if n > 0:
            r = x[n - 1] + total(x, n - 1)
        return r

    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f32, ndim=1)) -> ti.f32:
        return total(x, x.shape[0])

    return k(np.arange(5, dtype=np.float32))


def grouped_ndrange_of_nothing(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, ())

    @ti.kernel
    def k():
        for I in ti.grouped(ti.ndrange()):
            x[None] += 1

    k()
    return x[None]


def grouped_scalar_field(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, ())

    @ti.kernel
    def k():
        for I in ti.grouped(x):
            x[I] += 1

    k()
    return x[None]


def static_grouped_ndrange(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, (3, 3))

    @ti.kernel
    def k():
        for d in ti.static(ti.grouped(ti.ndrange(3, 3))):
            x[d] = d[0] * 10 + d[1]

    k()
    return x.to_numpy()


def run_time_keys(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        d = {i: i * n for i in range(4)}
        return d[2] + d[3]

    return k(5)
