"""Prints and asserts."""

from benchmarks.agreement.reasons import differs


def assert_with_a_c_format(ti):
    ti.init(arch=ti.cpu, debug=True)

    @ti.kernel
    def k(x: ti.i32):
        assert x > 3, "x=%d" % x

    try:
        k(2)
    except AssertionError as error:
        return "x=2" in str(error)
    return "no error"


@differs("Taichi has the `%` operator in assertions only")
def print_with_c_formats(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.i32, y: ti.f32):
        print("%d" % x)
        print("%d and %.3f" % (x, y))

    k(2, 0.5)
    ti.sync()


def print_with_typed_fields(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.i32, y: ti.f32, u: ti.u32):
        print("{:i}".format(x))
        print("{:d} {:i}".format(x, x))
        print("{:u}".format(u))
        print("{:.4d}".format(x))
        print("{:.3f} {:.2e}".format(y, y))
        print(f"{x:i} {u:u} {x:.4d} {y:.3f}")

    k(42, 0.5, 7)
    ti.sync()
