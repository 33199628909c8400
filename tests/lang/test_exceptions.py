"""The classes under which existing programs catch errors: each error is of every class that the dialect documents."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_python_agrees import run


def _kernel(body: str, annotation: Any = None) -> Callable[..., Any]:
    names: dict[str, Any] = {"ti": ti, "x": ti.field(ti.f32, 4), "v": ti.Vector([1.0, 2.0]), "t": annotation}
    lines = body.replace("; ", "\n    ")
    run(f"@ti.kernel\ndef k({'a: t' if annotation is not None else ''}):\n    {lines}\n", names)
    return names["k"]


RAISED: dict[str, tuple[Callable[[], Any], tuple[type, ...]]] = {
    "index at run time": (
        lambda: _kernel("x[a] = 1", ti.i32)(7),
        (ti.TaichiRuntimeError, ti.TaichiAssertionError, ti.TaichiIndexError, AssertionError, IndexError, RuntimeError),
    ),
    "index in Python": (
        lambda: ti.field(ti.f32, 3)[5],
        (ti.TaichiRuntimeError, ti.TaichiAssertionError, ti.TaichiIndexError, AssertionError, IndexError),
    ),
    "component": (
        lambda: _kernel("a = v[2]")(),
        (ti.TaichiCompilationError, ti.TaichiIndexError, ti.TaichiTypeError, IndexError, TypeError),
    ),
    "number of indices": (
        lambda: _kernel("x[0, 1] = 1")(),
        (ti.TaichiCompilationError, ti.TaichiIndexError, ti.TaichiTypeError, IndexError, TypeError),
    ),
    "assertion": (
        lambda: _kernel("assert x[0] > 0")(),
        (ti.TaichiRuntimeError, ti.TaichiAssertionError, AssertionError, RuntimeError),
    ),
    "field": (lambda: ti.field(ti.f32, shape=-1), (ti.TaichiCompilationError, RuntimeError, ValueError)),
    "field without a place": (
        lambda: ti.field(ti.f32).to_numpy(),
        (ti.TaichiCompilationError, RuntimeError, ValueError),
    ),
    "argument": (
        lambda: _kernel("x[0] = a", ti.i32)("three"),
        (ti.TaichiRuntimeTypeError, ti.TaichiRuntimeError, ti.TaichiTypeError, TypeError, ValueError, RuntimeError),
    ),
    "array argument": (
        lambda: _kernel("x[0] = a[0]", ti.types.ndarray(dtype=ti.f32, ndim=1))(np.zeros(3, np.int32)),
        (ti.TaichiRuntimeTypeError, ti.TaichiRuntimeError, ti.TaichiTypeError, TypeError, ValueError),
    ),
    "number of arguments": (
        lambda: _kernel("x[0] = a", ti.i32)(1, 2),
        (ti.TaichiRuntimeTypeError, ti.TaichiRuntimeError, ti.TaichiTypeError, TypeError, ValueError),
    ),
    "types": (lambda: _kernel('x[0] = 1 + "a"')(), (ti.TaichiCompilationError, ti.TaichiTypeError, TypeError)),
    "name": (lambda: _kernel("x[0] = missing")(), (ti.TaichiCompilationError, ti.TaichiNameError, NameError)),
    "syntax": (lambda: _kernel("del v")(), (ti.TaichiCompilationError, ti.TaichiSyntaxError)),
}


@pytest.mark.parametrize("name", RAISED)
def test_programs_that_catch_the_documented_class_work(name: str) -> None:
    program, classes = RAISED[name]
    for caught in classes:
        with pytest.raises(caught) as raised:
            program()
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is type(raised.value) and str(again) == str(raised.value)


def test_an_error_of_syntax_is_none_of_pythons() -> None:
    """IPython would show it in a way of its own, without the line of the kernel: see the manual's page on errors."""
    assert not issubclass(ti.TaichiSyntaxError, SyntaxError)
