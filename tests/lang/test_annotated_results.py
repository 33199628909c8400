"""What device functions are annotated to take and to return, and what a call makes of it."""

from __future__ import annotations

import linecache
import warnings
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelArgumentError, KernelTypeError

ivec2 = ti.types.vector(2, ti.i32)
vec2 = ti.types.vector(2, ti.f32)
pair = ti.types.struct(n=ti.i32, v=ivec2)

#: annotation, what is returned for x = 1.75, and what a call gives
RESULTS: dict[str, tuple[Any, str, str, Any]] = {
    "i32": (ti.i32, "x", "{}", 1),
    "negative": (ti.i32, "-x", "{}", -1),
    "int": (int, "x", "{}", 1),
    "bool": (bool, "x", "{} * 1", 1),
    "u8": (ti.u8, "ti.cast(x, ti.i32) + 299", "{} * 1", 44),
    "f32": (ti.f32, "ti.cast(0.1, ti.f64) * x / x", "{} == ti.f32(0.1)", 1),
    "float": (float, "ti.cast(x, ti.i32)", "{} / 2", 0.5),
    "f16": (ti.f16, "x + 2048.0", "{}", 2050.0),
    "vector": (ivec2, "ti.Vector([x, -x])", "{}.sum() * 10 + {}[0]", 1),
    "list as a vector": (vec2, "[x, 2]", "{}.sum()", 3.75),
    "tuple": (tuple[ti.i32, ti.f32], "x, x", "{}[0] + {}[1]", 2.75),
    "tuple of types": ((ti.i32, ti.f32), "x, x", "{}[0] + {}[1]", 2.75),
    "struct": (pair, "pair(n=1, v=ivec2(2, 3))", "{}.n + {}.v.sum()", 6),
    "dictionary": (pair, "{{'n': x, 'v': [x, x + 1]}}", "{}.n + {}.v.sum()", 4),
    "no type": (Any, "x", "{}", 1.75),
    "unknown part": (tuple[Any, ti.i32], "x, x", "{}[0] + {}[1]", 2.75),
}
FORMS = {
    "func": "@ti.func\ndef f(x) -> T:\n    return {}\n",
    "real_func": "@ti.real_func\ndef f(x: ti.f64) -> T:\n    return {}\n",
    "early": "@ti.func\ndef f(x) -> T:\n    if x > 100.0:\n        return {}\n    return {}\n",
    "method": "@ti.data_oriented\nclass C:\n    @ti.func\n    def f(self, x) -> T:\n        return {}\nf = C().f\n",
    "dataclass": "@ti.dataclass\nclass D:\n    a: ti.f64\n    @ti.func\n    def f(self, x) -> T:\n        return {}\n"
    "d = D(1.0)\n",
}


def program(text: str, **names: Any) -> dict[str, Any]:
    """The names that a program defines."""
    found: dict[str, Any] = {"ti": ti, "pair": pair, "ivec2": ivec2, "vec2": vec2, **names}
    file = f"annotated_{abs(hash(text))}.py"
    import_source(file, text)
    exec(compile(text, file, "exec"), found)
    return found


def import_source(file: str, text: str) -> None:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_the_type_that_is_annotated(name: str, form: str) -> None:
    annotation, returned, used, expected = RESULTS[name]
    call = "d.f(x)" if form == "dataclass" else "f(x)"
    text = FORMS[form].replace("{}", returned.replace("{{", "{").replace("}}", "}"))
    text += f"@ti.kernel\ndef run(x: ti.f64) -> ti.f64:\n    r = {call}\n    return {used.replace('{}', 'r')}\n"
    assert program(text, T=annotation)["run"](1.75) == expected


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_this_type_in_python_scope_too(name: str, form: str) -> None:
    annotation, returned, used, expected = RESULTS[name]
    text = FORMS[form].replace("{}", returned.replace("{{", "{").replace("}}", "}"))
    found = program(text, T=annotation)
    result = found["d"].f(1.75) if form == "dataclass" else found["f"](1.75)
    text = used.replace("{}", "r").replace("ti.f32(0.1)", "ti.cast(0.1, ti.f32)")
    assert eval(text, {"ti": ti, "r": result}) == expected


def test_a_result_as_text_and_an_unknown_one() -> None:
    f = program("@ti.func\ndef f(x: 'ti.i32', y: 'no type') -> 'ti.i32':\n    return x / y\n")["f"]
    assert f(7, 2) == 3 and isinstance(f(7, 2), int)


IGNORED = {
    "a vector for a number": (ti.i32, "ti.Vector([x, x])", "returned where a number of type i32 is annotated"),
    "a number for a vector": (ivec2, "x", "returned where a vector or matrix of shape (2,) is annotated"),
    "another length": (ivec2, "ti.Vector([x, x, x])", "returned where a vector or matrix of shape (2,) is annotated"),
}
REFUSED = {
    "too many": (tuple[ti.i32, ti.i32], "x, x, x", "3 values are returned, and 2 are annotated"),
    "no struct": (pair, "x", "stands where a struct"),
    "other members": (pair, "{'n': 1}", "is expected"),
    "a constant that is too large": (ti.i8, "300", "does not fit into i8"),
}


def returning(annotation: Any, returned: str) -> dict[str, Any]:
    text = f"@ti.func\ndef f(x) -> T:\n    return {returned}\n@ti.kernel\ndef run(x: ti.f64):\n    f(x)\n"
    return program(text, T=annotation)


@pytest.mark.parametrize("name", IGNORED)
def test_an_annotation_of_another_shape_is_ignored(name: str) -> None:
    annotation, returned, message = IGNORED[name]
    with pytest.warns(UserWarning) as caught:
        returning(annotation, returned)["run"](1.75)
    assert f"{message}; the annotation is ignored" in str(caught[0].message)
    with pytest.warns(UserWarning, match="`f` is annotated to return .*; the annotation is ignored"):
        found = returning(annotation, returned)["f"](1.75)
    assert found == eval(returned, {"ti": ti, "x": 1.75})


@pytest.mark.parametrize("name", REFUSED)
def test_a_result_that_cannot_be_what_is_annotated_is_refused(name: str) -> None:
    annotation, returned, message = REFUSED[name]
    with pytest.raises(KernelTypeError) as caught:
        returning(annotation, returned)["run"](1.75)
    assert message in caught.value.message
    assert [span.line for span in caught.value.span.chain()] == [3, 6]
    if "constant" not in name:
        with pytest.raises(KernelTypeError, match="`f` is annotated to return"):
            returning(annotation, returned)["f"](1.75)


def test_a_function_that_returns_nothing_where_a_type_is_annotated() -> None:
    @ti.func
    def f(x) -> ti.i32:
        x + 1

    @ti.kernel
    def run():
        f(1)

    with pytest.raises(KernelTypeError, match="annotated to return a value, and returns none"):
        run()


#: parameter's annotation, argument in terms of the f32 x = 1.75, what the function gets
INTEGER_PARAMETERS = {
    "number": (ti.i32, "x", "a", 1),
    "constant": (ti.i32, "1.7", "a", 1),
    "vector": (ivec2, "ti.Vector([x, -x])", "a.sum() + 10 * a[0]", 10),
    "constant vector": (ivec2, "[1.7, 2.7]", "a[0] * 10 + a[1]", 12),
    "matrix": (ti.types.matrix(1, 2, ti.i64), "ti.Matrix([[x, x]])", "a.sum()", 2),
    "constant of the module": (ivec2, "HALF", "a.sum()", 1),
    "member": (pair, "{'n': x, 'v': [1, 2]}", "a.n + a.v[0]", 2),
    "vector member": (pair, "{'n': 1, 'v': [x, 2]}", "a.n + a.v[0]", 2),
}


@pytest.mark.parametrize("name", INTEGER_PARAMETERS)
def test_a_fraction_is_not_cut_off_silently(name: str) -> None:
    annotation, argument, used, expected = INTEGER_PARAMETERS[name]
    text = f"@ti.func\ndef f(a: T):\n    return {used}\n"
    text += f"@ti.kernel\ndef run(x: ti.f32) -> ti.i32:\n    return f({argument})\n"
    run = program(text, T=annotation, HALF=ti.Vector([0.5, 1.5]))["run"]
    with pytest.warns(UserWarning, match="`a.* integer.*: the fraction of its argument is cut off"):
        assert run(1.75) == expected
    half = ti.Vector([0.5, 1.5])
    f = program(text, T=annotation, HALF=half)["f"]
    with pytest.warns(
        UserWarning, match="parameter `a` of `f` holds integers: the fraction of its argument is cut off"
    ):
        assert f(eval(argument, {"ti": ti, "x": 1.75, "HALF": half})) == expected
    kernel = program(f"@ti.kernel\ndef run(a: T) -> ti.i32:\n    return {used}\n", T=annotation)["run"]
    with pytest.raises(KernelArgumentError, match="argument 'a' of kernel 'run'"):
        kernel(eval(argument, {"ti": ti, "x": 1.75, "HALF": half}))


@pytest.mark.parametrize("argument", ["[1, 2]", "ti.Vector([1, 2])", "ti.cast(ti.Vector([x, x]), ti.i32)"])
def test_whole_numbers_are_passed_without_a_warning(argument: str) -> None:
    text = "@ti.func\ndef f(a: T):\n    return a.sum()\n"
    text += f"@ti.kernel\ndef run(x: ti.f32) -> ti.i32:\n    return f({argument})\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program(text, T=ivec2)["run"](1.75) in (2, 3)


@pytest.mark.parametrize(
    "call", ["product(x[0], x[1])[1]", "member({'n': 1, 'v': [x[0], x[1]]})", "product(b=x[1], a=x[0])[1]"]
)
def test_what_a_derivative_goes_through_stays_in_python_scope(call: str) -> None:
    """Numbers that pass through Python remember where they came from, whatever is annotated."""
    ti.init(default_fp=ti.f64)
    text = "@ti.func\ndef product(a: ti.f64, b: ti.f64 = 1) -> vec:\n    return [a + b, a * b]\n"
    text += "@ti.func\ndef member(s: pair) -> ti.f64:\n    return s.v[0] * s.v[1]\n"
    vec = ti.types.vector(2, ti.f64)
    found = program(text, vec=vec, pair=ti.types.struct(n=ti.i32, v=vec))
    x = ti.field(ti.f64, 2, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.5, 2.0]))
    with ti.ad.Tape(loss):
        loss[None] = eval(call, {**found, "x": x})
    assert x.grad.to_numpy().tolist() == [2.0, 1.5]
