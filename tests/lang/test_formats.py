"""Text with values in it: formats in `print` and `assert`, `str.format`, braces."""

import pytest

import tinote as ti
from tests.lang.test_python_agrees import run


def test_formats_are_pythons(capsys: pytest.CaptureFixture[str]) -> None:
    x = ti.field(ti.f32, shape=3)
    x.from_numpy([0.5, -1.25, 1e6])

    @ti.kernel
    def run(a: ti.i32, h: ti.f64):
        big = a > 5
        print(f"{a:5d}|{a:<5}|{a:+}|{a:x}|{a:08b}|{a:,}|{h:.3f}|{h:10.2e}|{x[2]:,.1f}|{x[1]:g}|{big:d}|{big}")
        print(f"{a=} {h=:.2f} {'left':>6}|{3:03d}")

    run(1000, 3.14159)
    a, h = 1000, 3.14159
    first = f"{a:5d}|{a:<5}|{a:+}|{a:x}|{a:08b}|{a:,}|{h:.3f}|{h:10.2e}|{1e6:,.1f}|{-1.25:g}|1|True"
    assert capsys.readouterr().out.splitlines() == [first, "a=1000 h=3.14   left|003"]


def test_a_format_holds_for_each_component(capsys: pytest.CaptureFixture[str]) -> None:
    @ti.kernel
    def run(a: ti.i32):
        v = ti.Vector([1.0, a])
        m = ti.Matrix([[1, 2], [3, a]])
        w = ti.Vector([1.0, 2.0, 3.0])
        w[a] = 0.5  # a run-time index
        print(f"{v:.2f} {m:02d} {w:.1f} {(a, v):.1f}", v, [a, 2.5], (a,), ("text", a))

    run(2)
    shown = capsys.readouterr().out
    assert shown == (
        "[1.00, 2.00] [[01, 02], [03, 02]] [1.0, 2.0, 0.5] (2.0, [1.0, 2.0]) [1.0, 2.0] [2, 2.5] (2,) ('text', 2)\n"
    )


#: formats with a precision and no type, and what is shown of 3.14159, at run time and of a constant
PRECISIONS = {
    ".2": "3.14",
    ".0": "3",
    "8.3": "   3.142",
    "+.1": "+3.1",
    "07.2": "0003.14",
    ">7.2": "   3.14",
    ".3g": "3.14",
}


@pytest.mark.parametrize("spec", PRECISIONS)
def test_a_precision_counts_the_digits_after_the_point(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = f"{{:{spec}}}"

    @ti.kernel
    def run(x: ti.f64):
        v = ti.Vector([x, x])
        print(f"{x:{spec}}|{3.14159:{spec}}|{v:{spec}}")
        print(pattern.format(x), pattern.format(3.14159), sep="|")
        assert x < 0, f"{x:{spec}}"

    with pytest.raises(AssertionError) as caught:
        run(3.14159)
    shown = PRECISIONS[spec]
    assert capsys.readouterr().out.splitlines() == [f"{shown}|{shown}|[{shown}, {shown}]", f"{shown}|{shown}"]
    assert caught.value.message == shown


def test_a_precision_of_an_integer_is_refused() -> None:
    @ti.kernel
    def run(n: ti.i32):
        print(f"{n:.2}")

    with pytest.raises(ti.TaichiSyntaxError, match="does not fit an integer"):
        run(1)


def test_str_format(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = "{1:.1f} {0:>3}"

    @ti.kernel
    def run(a: ti.i32, h: ti.f32):
        print("{} and {:.2f}".format(a, h))  # noqa: UP032
        print("{h:.0f} {{}} {c} {0}".format(a, h=h, c="text"))
        print(pattern.format(a, h))
        print("{} {}".format(1, "two"))

    run(7, 2.5)
    assert capsys.readouterr().out.splitlines() == ["7 and 2.50", "2 {} text 7", "2.5   7", "1 two"]


def test_values_in_assertions() -> None:
    x = ti.Vector.field(2, ti.f32, shape=3)

    @ti.kernel
    def formatted(a: ti.i32):
        assert a > 3, f"{{a}} is {a:04d}, x is {x[0]:.1f}"

    @ti.kernel
    def together(a: ti.i32):
        assert a > 3, ("a is", a)

    @ti.kernel
    def braces(a: ti.i32):
        assert a > 3, "neither {} nor {a}"

    for program, message in (
        (formatted, "{a} is 0002, x is [0.0, 0.0]"),
        (together, "('a is', 2)"),
        (braces, "neither {} nor {a}"),
    ):
        program(4)
        with pytest.raises(AssertionError) as caught:
            program(2)
        assert caught.value.message == message


@pytest.mark.parametrize("debug", [False, True])
def test_the_gradient_of_a_kernel_that_prints(debug: bool, capsys: pytest.CaptureFixture[str]) -> None:
    ti.init(debug=debug)
    x = ti.field(ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i in range(2):
            loss[None] += x[i] ** 2
        print(f"{loss[None]:.2f}")

    x.from_numpy([1.0, 2.0])
    with ti.ad.Tape(loss=loss):
        run()
    assert x.grad.to_numpy().tolist() == [2.0, 4.0]
    assert capsys.readouterr().out == "5.00\n"


C_FORMATS = [
    ("{:i}|{:u}|{:d}", "(n, 7, n)", "-42|7|-42"),
    ("{:.4d}|{:8.4d}|{:<8.4d}|{:+.3d}|{:.2x}", "(n, n, n, -n, -n)", "-0042|   -0042|-0042   |+042|2a"),
    ("{:.4d}|{:lld}|{:lu}", "(7, 7, 7)", "0007|7|7"),
]


@pytest.mark.parametrize("template, values, expected", C_FORMATS)
def test_formats_of_whole_numbers_as_c_has_them(
    template: str, values: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arch in (ti.cpu, ti.python):
        ti.init(arch=arch)
        names = {"ti": ti, "template": template, "__name__": "program"}
        run(f"@ti.kernel\ndef k(n: ti.i32):\n    print(template.format(*{values}))\n", names)
        names["k"](-42)
        assert capsys.readouterr().out == expected + "\n"


def test_f_strings_take_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    @ti.kernel
    def k(n: ti.i32, u: ti.u32):
        v = ti.Vector([n, -n])
        print(f"{n:i} {u:u} {v:.3d} {-n:.3d} {5:.3d} {n:06d}")

    k(42, 7)
    assert capsys.readouterr().out == "42 7 [042, -042] -042 005 000042\n"


PERCENT = [
    ("%d", "n"),
    ("%5d|%-5d|%05d|%+d|% d|%i|%.4d|%#x|%o", "(n, n, n, n, n, n, n, n, n)"),
    ("%f|%.2f|%8.1f|%-8.1f|%e|%g|%+.1f|%08.2f", "(h, h, h, h, h, h, h, h)"),
    ("%d|%f", "(h, n)"),
    ("%s|%r|%5s|%-5s|", "(n, n, n, n)"),
    ("%d%% of %s, %s", "(n, 'all', 3)"),
    ("%(a)d and %(b).1f and %(a)d", "{'a': n, 'b': h}"),
]


@pytest.mark.parametrize("template, values", PERCENT)
def test_the_percent_operator_is_pythons(template: str, values: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arch in (ti.cpu, ti.python):
        ti.init(arch=arch)
        names = {"ti": ti, "template": template, "__name__": "program"}
        run(f"@ti.kernel\ndef k(n: ti.i32, h: ti.f64):\n    print(template % {values})\n", names)
        for n, h in ((42, 3.75), (-7, -0.5)):
            names["k"](n, h)
            assert capsys.readouterr().out == template % eval(values, {"n": n, "h": h}) + "\n"


def test_assertions_take_the_percent_operator() -> None:
    @ti.kernel
    def k(n: ti.i32, h: ti.f64):
        assert n < 0, "n=%d h=%.2f %s" % (n, h, ti.Vector([n, 2]))  # noqa: UP031

    with pytest.raises(ti.TaichiAssertionError, match=r"n=3 h=0.25 \[3, 2\]"):
        k(3, 0.25)
