"""What the front end says about wrong programs: message, place, caret and hint, one golden file a topic."""

from __future__ import annotations

import linecache
import textwrap
from typing import Any

import pytest

from tests.lang.dialect import Constant, Field, errors_of, func, ti
from tinote.errors import CompilationError, KernelNameError, KernelSyntaxError, KernelTypeError
from tinote.ir.types import f32, i32, u8

FILE = "program.py"

TOPICS: dict[str, str] = {
    "names": """
        def k():
            y[None] = speeed
        ---
        def k():
            y[None] = ti.sinn(1.0)
        ---
        def k():
            if y[None] > 0:
                a = 1
            else:
                a = 2
            y[None] = a
        ---
        def k():
            for i in range(3):
                last = i
            y[None] = last
        ---
        def k():
            y[None] = later
            later = 1
        ---
        def k():
            speed += 1
        ---
        def k():
            y += 1
        ---
        def k():
            v = ti.Vector([1, 2])
            y[None] = v.z
        ---
        def k():
            v = ti.Vector([1, 2])
            y[None] = v.lenght()
        ---
        def k():
            y[None] = settings.stifness
    """,
    "indices": """
        def k():
            m[1] = 2
        ---
        def k():
            m[None] = 2
        ---
        def k():
            y[0, 1] = 2
        ---
        def k():
            x[0, 1] = 2
        ---
        def k():
            m[0, 1.5] = 2
        ---
        def k():
            v = ti.Vector([1, 2])
            y[None] = v[2]
        ---
        def k():
            a = ti.Matrix([[1, 2], [3, 4]])
            y[None] = a[0]
        ---
        def k():
            y[None] = x
        ---
        def k():
            y[None] = y + 1
        ---
        def k():
            m[0, 0:2] = 1
        ---
        def k():
            y[None] = y.grad[None]
        ---
        def k():
            y[None] = speed[0]
    """,
    "types": """
        def k():
            y[None] = x[0] + ti.Vector([1, 2, 3])
        ---
        def k():
            y[None] = x[0]
        ---
        def k():
            x[0] = [1, 2, 3]
        ---
        def k():
            a = 1
            a = x[0]
        ---
        def k():
            if x[0]:
                pass
        ---
        def k():
            y[None] = 1.5 & 2
        ---
        def k():
            y[None] = y[None] | 1
        ---
        def k():
            a = 3000000000
        ---
        def k():
            b = n[None] + 3000000000
        ---
        def k():
            bytes_[0] = 256
        ---
        def k():
            y[None] = ti.u32(n[None]) > -1
        ---
        def k():
            y[None] = "text"
        ---
        def k():
            y[None] = None
        ---
        def k():
            y[None] = x[0] @ ti.Vector([1.0, 2.0, 3.0])
        ---
        def k():
            y[None] = n[None] ** -1
        ---
        def k():
            y[None] = 1 // 0
        ---
        def k():
            y[None] = ti.Matrix([[1, 2], [3]])
        ---
        def k():
            y[None] = ti.bit_cast(n[None], ti.f64)
        ---
        def k():
            y[None] = x[0] if y[None] > 0 else ti.Vector([1, 2, 3])
        ---
        def k():
            y[None] = [1, 2] + x
    """,
    "assignments": """
        def k(a: ti.f32):
            a = 2
        ---
        def k(a: ti.f32):
            a += 2
        ---
        def k():
            for i in range(3):
                i = 2
        ---
        def k():
            i = 1
            for i in range(3):
                pass
        ---
        def k():
            a, b = 1, 2, 3
        ---
        def k():
            a, b = 1
        ---
        def k():
            a, b, *c = (1,)
        ---
        def k():
            settings.stiffness = 3
        ---
        def k():
            gravity[0] = 3
        ---
        def k():
            target = x
            if y[None] > 0:
                target = m
        ---
        def k(a: ti.f32):
            double(a)
    """,
    "control": """
        def k():
            for i in range(3):
                if i == 2:
                    break
        ---
        def k() -> ti.i32:
            for i in range(3):
                return i
            return 0
        ---
        def k() -> ti.i32:
            if y[None] > 0:
                return 1
        ---
        def k() -> ti.i32:
            pass
        ---
        def k():
            return 1
        ---
        def k() -> ti.i32:
            return x[0]
        ---
        def k():
            for i in x, y:
                pass
        ---
        def k():
            for i in [1, 2, 3]:
                pass
        ---
        def k():
            for i in 3:
                pass
        ---
        def k():
            for i in range(None):
                pass
        ---
        def k():
            for i in m:
                pass
        ---
        def k():
            for i, j in range(3):
                pass
        ---
        def k():
            for i in y:
                pass
        ---
        def k(n: ti.i32):
            for i in ti.static(range(n)):
                pass
        ---
        def k():
            while y[None] > 0:
                pass
            else:
                pass
        ---
        def k():
            try:
                pass
            except ValueError:
                pass
        ---
        def k():
            f = lambda a: (yield a)
        ---
        def k():
            import math
        ---
        def k():
            with y:
                pass
        ---
        def k():
            y[None] = {(y[None], 1): 3}[1]
        ---
        def k():
            y[None] = {y[None]: "text"}[1]
        ---
        def k():
            del y
    """,
    "calls": """
        def k():
            y[None] = ti.sin()
        ---
        def k():
            y[None] = ti.sin(1.0, 2.0)
        ---
        def k():
            y[None] = ti.cast(1.0, dtyp=ti.f32)
        ---
        def k():
            y[None] = add(1)
        ---
        def k():
            y[None] = add(1, 2, 3)
        ---
        def k():
            y[None] = add(1, c=2)
        ---
        def k():
            y[None] = plain(y[None])
        ---
        def k():
            y[None] = forever(3)
        ---
        def k():
            y[None] = broken(3)
        ---
        def k():
            launched()
        ---
        def k():
            for i in ti.static(range(2)):
                y[None] = broken(i)
        ---
        def k():
            ti.atomic_add(3, 1)
        ---
        def k():
            y[None] = speed()
        ---
        def k():
            y[None] = x[0].norm(1, 2)
        ---
        def k():
            print(f"{y[None]:d}")
        ---
        def k():
            ti.static_assert(speed > 10, "too slow")
        ---
        def k():
            y[None] = open("file")
        ---
        def k():
            ti.loop_config(serialise=True)
        ---
        def k():
            y[None] = pair(1.0)
    """,
    "several": """
        def k():
            a = speeed
            b = a + 1
            c = ti.Vector([1, 2])
            for i in range(3):
                c[5] = i
            y[None] = unknown
    """,
}


FUNCTIONS = """
    def add(a, b):
        return a + b

    def double(s: ti.template()):
        s *= 2

    def forever(a):
        return further(a)

    def further(a):
        return forever(a - 1)

    def broken(a):
        return a + missing

    def pair(a):
        if a > 0:
            return 1, 2
        return 3

    def plain(a):
        import math
        return math.gamma(a)
"""


class Launched:
    __tinote_kernel__ = True

    def __call__(self) -> None:
        raise AssertionError


class Settings:
    stiffness = 3.0


def compiled(text: str, file: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names that a program defines, compiled under a file name of its own."""
    source = textwrap.dedent(text).strip() + "\n"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names


def program(text: str, number: int) -> Any:
    """The function `k` of a program, compiled under a file of its own."""
    file = FILE if not number else f"{number}.{FILE}"
    names = {
        "ti": ti,
        "x": Field("x", f32, (8,), (2,)),
        "y": Field("y", f32),
        "m": Field("m", f32, (3, 4)),
        "n": Field("n", i32),
        "bytes_": Field("bytes_", u8, (2,)),
        "speed": 2.0,
        "gravity": Constant([0.0, -9.8]),
        "settings": Settings(),
        "launched": Launched(),
    }
    names = compiled(FUNCTIONS, "functions.py", names)
    for name in ("add", "double", "forever", "further", "broken", "pair"):
        names[name] = func(names[name])
    return compiled(text, file, names)["k"]


def arguments_of(function: Any) -> list[Any]:
    return [1] * function.__code__.co_argcount


@pytest.mark.parametrize("topic", TOPICS)
def test_wrong_programs(topic: str, golden):
    shown: list[str] = []
    for number, text in enumerate(textwrap.dedent(TOPICS[topic]).split("---\n")):
        function = program(text, number)
        error = errors_of(function, *arguments_of(function))
        shown.append(f"{type(error).__name__}:{error}")
        linecache.cache.pop(f"{number}.{FILE}", None)
    golden("\n\n".join(shown))


def test_independent_errors_come_together():
    function = program(TOPICS["several"], 0)
    error = errors_of(function)
    assert [e.span.line for e in (error, *error.others)] == [2, 6, 7]


def test_classes_of_errors():
    def raised(text: str) -> CompilationError:
        return errors_of(program(text, 0))

    assert type(raised("def k():\n    y[None] = speeed")) is KernelNameError
    assert type(raised("def k():\n    y[None] = x[0]")) is KernelTypeError
    assert type(raised("def k():\n    import math")) is KernelSyntaxError


def test_deep_expressions_are_refused():
    error = errors_of(program("def k():\n    y[None] = " + "ti.sin(" * 190 + "y[None]" + ")" * 190, 0))
    assert "nested too deeply" in error.message


def test_an_error_in_a_function_names_the_call():
    error = errors_of(program("def k():\n    y[None] = broken(3)", 0))
    assert error.span.inlined_at is not None
    assert (error.span.inlined_at.file, error.span.inlined_at.line) == (FILE, 2)
