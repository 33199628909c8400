"""Which class an error is of: whether the program that catches the documented one goes on."""

import numpy as np

from benchmarks.agreement.reasons import differs


def _caught(program, *classes):
    """Of which of the classes the error of a program is."""
    try:
        program()
    except Exception as error:
        return [isinstance(error, one) for one in classes]
    return "no error"


@differs("Taichi ends the process when a component that a vector does not have is returned")
def component_out_of_range(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.f32:
        v = ti.Vector([1.0, 2.0])
        return v[2]

    return _caught(k, ti.TaichiCompilationError)


def too_many_indices(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, 3)

    @ti.kernel
    def k():
        x[0, 1] = 1

    return _caught(k, ti.TaichiCompilationError)


def index_out_of_range_in_debug_mode(ti):
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.f32, 3)

    @ti.kernel
    def k(i: ti.i32):
        x[i] = 1

    return _caught(lambda: k(7), ti.TaichiAssertionError, ti.TaichiRuntimeError, AssertionError, RuntimeError)


def assertion_in_debug_mode(ti):
    ti.init(arch=ti.cpu, debug=True)

    @ti.kernel
    def k(i: ti.i32):
        assert i < 3

    return _caught(lambda: k(7), ti.TaichiAssertionError, AssertionError)


@differs("tinote checks assertions in every mode")
def assertion_without_debug_mode(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(i: ti.i32):
        assert i < 3

    return _caught(lambda: k(7), AssertionError)


@differs("tinote checks indices in every mode, where it cannot prove them")
def index_out_of_range_without_debug_mode(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, 3)

    @ti.kernel
    def k(i: ti.i32):
        x[i] = 1

    return _caught(lambda: k(3), IndexError, AssertionError)


def unknown_name(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.f32:
        return missing  # noqa: F821

    return _caught(k, ti.TaichiNameError, ti.TaichiCompilationError, NameError)


def syntax_that_kernels_do_not_have(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k():
        try:
            pass
        finally:
            pass

    return _caught(k, ti.TaichiSyntaxError, ti.TaichiCompilationError)


def wrong_argument(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(i: ti.i32):
        pass

    return _caught(lambda: k("text"), ti.TaichiRuntimeTypeError, ti.TaichiRuntimeError, TypeError)


def wrong_array(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=2)):
        pass

    return _caught(lambda: k(np.zeros(3, np.float32)), ValueError)


def mismatched_shapes(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(3, ti.f32):
        return ti.Vector([1.0, 2.0]) + ti.Vector([1.0, 2.0, 3.0])

    return _caught(k, ti.TaichiCompilationError)


def break_of_a_parallel_loop(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k():
        for i in range(10):
            if i > 3:
                break

    return _caught(k, ti.TaichiSyntaxError, ti.TaichiCompilationError)


def kernel_that_calls_a_kernel(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def inner():
        pass

    @ti.kernel
    def outer():
        inner()

    return _caught(outer, ti.TaichiSyntaxError, ti.TaichiCompilationError)
