"""Device functions, methods, templates and compile time."""

from benchmarks.agreement.reasons import differs


def inlined_functions(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def square(x):
        return x * x

    @ti.func
    def both(x, y):
        a = square(x) + y
        return a, a * 2

    @ti.kernel
    def k(x: ti.f32) -> ti.f32:
        a, b = both(x, 1)
        return a + 10 * b

    return k(3.0)


def arguments_by_value(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def change(x):
        x += 1
        return x

    @ti.kernel
    def k() -> ti.i32:
        a = 3
        b = change(a)
        return a * 10 + b

    return k()


def arguments_by_template(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def change(x: ti.template()):
        x += 1

    @ti.kernel
    def k() -> ti.i32:
        a = 3
        change(a)
        return a

    return k()


def functions_as_arguments(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def one(x):
        return x + 1

    @ti.func
    def two(x):
        return x * 2

    @ti.kernel
    def k(f: ti.template(), x: ti.i32) -> ti.i32:
        return f(x)

    return [k(one, 5), k(two, 5)]


def defaults_and_names(ti):
    ti.init(arch=ti.cpu)

    @ti.func
    def f(a, b=2, c=3):
        return a * 100 + b * 10 + c

    @ti.kernel
    def k() -> ti.types.vector(3, ti.i32):
        return ti.Vector([f(1), f(1, c=7), f(4, 5, 6)])

    return k()


def early_returns(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def f(x: ti.i32) -> ti.i32:
        if x < 0:
            return -1
        if x > 10:
            return 1
        return 0

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return f(x)

    return [k(-5), k(5), k(50)]


def methods(ti):
    ti.init(arch=ti.cpu)

    @ti.data_oriented
    class Counter:
        def __init__(self, n, step):
            self.x = ti.field(ti.i32, n)
            self.step = step

        @ti.func
        def amount(self, i):
            return i * self.step

        @ti.kernel
        def run(self, times: ti.i32):
            for i in self.x:
                self.x[i] += self.amount(i) * times

    a, b = Counter(3, 2), Counter(2, 5)
    a.run(1)
    b.run(2)
    a.run(3)
    return [a.x.to_numpy(), b.x.to_numpy()]


def inheritance(ti):
    ti.init(arch=ti.cpu)

    @ti.data_oriented
    class Base:
        @ti.func
        def value(self):
            return 1

        @ti.kernel
        def get(self) -> ti.i32:
            return self.value() * 10

    class Derived(Base):
        @ti.func
        def value(self):
            return 2

    return [Base().get(), Derived().get()]


def static_branches(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(mode: ti.template()) -> ti.i32:
        r = 0
        if ti.static(mode == "a"):
            r = 1
        elif ti.static(mode == "b"):
            r = 2
        else:
            r = 3
        return r

    return [k("a"), k("b"), k("c")]


def static_loops(ti):
    ti.init(arch=ti.cpu)
    weights = [0.5, 1.5, 2.5]

    @ti.kernel
    def k() -> ti.f32:
        s = 0.0
        for i, w in ti.static(enumerate(weights)):
            s += i * w
        for a, b in ti.static(zip(weights, (1, 2, 3))):  # noqa: B905
            s += a * b
        return s

    return k()


def comprehensions(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        v = ti.Vector([i * n for i in range(4) if i != 2])
        return v.sum()

    return k(3)


@differs("a key that is known at run time only selects nothing in Taichi")
def dictionaries_at_run_time(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32, m: ti.i32) -> ti.i32:
        d = {i + n: i * 10 for i in range(4)}
        return d[m] + len(d)

    return [k(2, 3), k(0, 3)]


def tuples(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.i32:
        a, b = 1, 2
        a, b = b, a
        c = (a, b, 5)
        return c[0] * 100 + c[1] * 10 + c[2]

    return k()


def several_results(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.i32) -> (ti.i32, ti.f32):
        return x * 2, x * 0.5

    return list(k(3))


def closures(ti):
    ti.init(arch=ti.cpu)

    def make(c):
        @ti.kernel
        def k(x: ti.i32) -> ti.i32:
            return x * c

        return k

    return [make(2)(5), make(7)(5)]


def pyfunc_in_both_scopes(ti):
    ti.init(arch=ti.cpu)

    @ti.pyfunc
    def f(x):
        return x * 3 + 1

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return f(x)

    return [f(4), k(4)]


def references(ti):
    ti.init(arch=ti.cpu)

    @ti.real_func
    def swap(a: ti.ref(ti.i32), b: ti.ref(ti.i32)):
        c = a
        a = b
        b = c

    @ti.kernel
    def k() -> ti.i32:
        x, y = 3, 4
        swap(x, y)
        return x * 10 + y

    return k()
