"""What a number of a tape can be given to: the standard library, NumPy, pandas and JAX, under the tape and after it.

float, number,
and a tape warns where it goes into the program; or it is a traced number still, and its derivative is right.
"""

import array
import bisect
import cmath
import collections
import copy
import ctypes
import datetime
import decimal
import fractions
import heapq
import io
import itertools
import json
import math
import operator
import pickle
import pprint
import random
import statistics
import struct
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import tinote as ti
from tinote.lang.data.traced import Traced

#: Expressions in `e`, which is 12 or a little more, by where their functions are from. A number that it gives, or the
#: first one in what it gives, goes on into the program.
WORK: dict[str, list[str]] = {
    "arithmetic": [
        "e + 1", "2 - e", "e * True", "e / 3", "7.0 // e", "e % 5", "divmod(e, 5)[1]", "e**2", "2**e", "-e", "+e",
        "abs(-e)", "round(e, 1)", "int(e)", "float(e)", "complex(e)", "1j * e", "e + 2j", "(e - 1j) ** 2", "2j / e",
        "e - 1j", "np.complex64(1j) * e", "sum([e, e])", "max(e, 3)", "min(3, e)", "pow(e, 2)", "bool(e)", "e > 3",
        "3 <= e", "e == e", "hash(e)", "{12.0: 1.0, e: 2.0}[e]", "fractions.Fraction(1, 3) * e",
        "e / fractions.Fraction(1, 3)", "e.real", "e.imag", "e.conjugate()", "e.is_integer()", "e.as_integer_ratio()",
        "e.hex()", "type(e).fromhex(e.hex())", "[0.0] * int(e)", "datetime.timedelta(seconds=1) * e",
        "datetime.timedelta(seconds=9) / e", "e == complex(float(e))", "e != complex(float(e), 1)",
        "decimal.Decimal(float(e)) == e", "e == decimal.Decimal(float(e))", "decimal.Decimal(3) < e",
        "e == fractions.Fraction(float(e))", "e <= fractions.Fraction(1, 3)", "complex(float(e)) == e",
    ],
    "text": [
        "str(e)", "repr(e)", "f'{e}'", "f'{e:.17e}'", "f'{e:9.3f}'", "'%s' % e", "'%.17g' % e", "'{:>30}'.format(e)",
        "float(str(e))", "float(f'{e:.17e}')", "float('%r' % e)", "eval(repr([e]))[0]", "pprint.pformat([e])",
        "float(f'{e:.4f}')", "float('%.4f' % e)", "float('%g' % e)", "float('% 9.8e' % e)",
        "float(f'{e:012,.9f}'.replace(',', ''))", "float(np.loadtxt(io.StringIO(f'{e:.9f}')))",
    ],
    "standard library": [
        "math.sin(e)", "math.fsum([e, e])", "math.prod([e, 2])", "math.hypot(e, 1)", "math.floor(e)",
        "math.isclose(e, e)", "math.copysign(1, e)", "math.frexp(e)", "math.gcd(int(e), 4)", "cmath.sqrt(e)",
        "cmath.phase(e)", "statistics.mean([e, e])", "statistics.fmean([e, 2.0])",
        "statistics.median([e, 1.0, 99.0])", "statistics.median([e, 1.0])", "statistics.stdev([e, e, e])",
        "statistics.variance([e, 1, 3])", "statistics.mode([e, e])", "statistics.harmonic_mean([e, e])",
        "statistics.geometric_mean([e, 2.0])", "statistics.quantiles([e, 2.0, 7.0])[1]", "fractions.Fraction(e)",
        "sorted([e, 3.0])[1]", "heapq.nlargest(1, [e, 3.0])[0]", "bisect.bisect([1.0, 9.0], e)", "operator.mul(e, 2)",
        "list(itertools.accumulate([e, e]))[1]", "collections.Counter([e])[e]", "random.Random(3).uniform(0, e)",
        "random.Random(3).gauss(e, 1)", "struct.unpack('d', struct.pack('d', e))[0]", "array.array('d', [e])[0]",
        "ctypes.c_double(e).value", "copy.copy(e)", "copy.deepcopy([e])[0]", "pickle.loads(pickle.dumps(e))",
        "pickle.loads(pickle.dumps([e]))[0]", "json.loads(json.dumps(e, default=float))", "json.dumps(float(e))",
        "range(int(e))", "datetime.timedelta(seconds=float(e))", "decimal.Decimal(float(e))",
    ],
    "NumPy": [
        "np.sin(e)", "np.float64(e)", "np.float32(e)", "np.array([e, 1.0])", "np.asarray(e)", "np.full(3, e)",
        "np.linspace(0, e, 3)", "np.arange(e)", "np.mean([e, 1.0])", "np.sum([e, e])", "np.dot([e, 1.0], [1.0, 2.0])",
        "np.where(True, e, 0.0)", "np.interp(e, [0, 20], [0, 1])", "np.clip(e, 0, 3)", "np.isclose(e, 12.0)",
        "np.isfinite(e)", "np.ones(3) * e", "e * np.ones(3)", "np.float64(2) * e", "e - np.float64(2)",
        "np.int64(2) + e", "np.random.default_rng(3).uniform(0, e)", "np.polyval([1.0, 2.0], e)",
        "np.maximum(e, [1.0, 99.0])", "np.linalg.norm([e, 1.0])", "np.round(e, 1)", "np.hypot(e, 5.0)",
        "np.array(1j) * e", "np.isscalar(e)", "np.stack([e, e])", "np.testing.assert_allclose(e, e)",
    ],
    "pandas": [
        "pd.Series([e, 1.0]).astype(float).mean()", "pd.Series([e, 1.0]).mean()", "pd.Series([1.0, 2.0]) * e",
        "pd.DataFrame({'a': [e]}, dtype=float).a[0]", "pd.isna(e)",
        "pd.Timedelta(seconds=1) * e",
    ],
    "JAX": [
        "jnp.array([e, 1.0])", "jnp.array(float(e))", "jnp.sin(float(e))", "jax.tree.map(lambda a: a + 1, [e])[0]",
    ],
}  # fmt: skip
#: What takes nothing but a float, and what its error says.
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        [
            "json.dumps(e)", "json.dumps({'loss': [e]})", "decimal.Decimal(e)", "datetime.timedelta(seconds=e)",
            "datetime.timedelta(e)", "datetime.datetime.fromtimestamp(e)", "time.sleep(e)", "range(e)",
            "float.hex(e)", "float.__add__(e, 1.0)", "statistics.mean([2.0, e])", "statistics.stdev([e, 2.0])",
            "jnp.asarray(e)", "jnp.sin(e)", "jnp.ones(2) * e", "e + jnp.ones(2)", "jax.grad(lambda a: a**2)(e)",
            "jax.jit(lambda a: a**2)(e)",
        ],
        r"write float\(",
    ),
    # These say less.
    "pd.to_numeric(pd.Series([e]))": "Invalid object type",
    "jnp.full(3, e)": "Cannot determine dtype",
}  # fmt: skip
NAMES: dict[str, Any] = {
    module.__name__: module
    for module in (
        array, bisect, cmath, collections, copy, ctypes, datetime, decimal, fractions, heapq, io, itertools, jax, json,
        math,
        operator, pickle, pprint, random, statistics, struct, time,
    )
} | {"np": np, "pd": pd, "jnp": jnp}  # fmt: skip
ALL = [text for texts in WORK.values() for text in texts]


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


class World:
    """A loss that has two parts: x³ by way of y = x² · 3, and what a test gives to `scaled`, times x."""

    def __init__(self) -> None:
        x, y, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))
        self.x, self.y, self.loss = x, y, loss

        @ti.kernel
        def first():
            y[None] = 3.0 * x[None] ** 2

        @ti.kernel
        def scaled(a: ti.f64):
            loss[None] += a * x[None]

        self.first, self.scaled = first, scaled
        x[None] = 2.0037


def compiled(text: str) -> Callable[[Any], Any]:
    return eval(compile(f"lambda e: {text}", "<given away>", "eval"), dict(NAMES))  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """A result to compare: its type and its contents. NumPy's numbers are Python's here."""
    if type(value) is Traced or isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | jax.Array | pd.Series):
        array = np.asarray(value)
        return str(type(value)), str(array.dtype), [plain(one) for one in array.ravel().tolist()]
    return str(type(value)), repr(value)


def number_in(value: Any) -> Any:
    """A float that a result has, None where there is none."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, np.ndarray | jax.Array | pd.Series):
        value = np.asarray(value).ravel().tolist()[0]
    if isinstance(value, complex):
        value = value.imag if value.real == 0 else value.real
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, fractions.Fraction | decimal.Decimal | np.floating):
        value = float(value)
    return value if isinstance(value, float) else None


@pytest.mark.parametrize("text", ALL)
def test_after_the_tape_it_is_what_a_float_gives(text: str) -> None:
    world = World()
    with ti.ad.Tape(world.loss):
        world.first()
        e = world.y[None]
        world.scaled(e)
    assert type(e) is Traced
    function = compiled(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert plain(function(e)) == plain(function(e.value))


#: What is constant in steps, or gives no number that depends on `e`.
CONSTANT = {
    "7.0 // e", "round(e, 1)", "e.imag", "{12.0: 1.0, e: 2.0}[e]", "math.copysign(1, e)", "np.round(e, 1)",
    "np.arange(e)", "np.linspace(0, e, 3)", "statistics.stdev([e, e, e])", "min(3, e)", "np.clip(e, 0, 3)",
    "cmath.phase(e)",
}  # fmt: skip


@pytest.mark.parametrize("text", ALL)
def test_under_the_tape_it_is_that_too_and_its_derivative_is_right_or_missed(text: str) -> None:
    world, function = World(), compiled(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ti.ad.Tape(world.loss):
            world.first()
            e = world.y[None]
            found = function(e)
            given = number_in(found)
            if given is not None:
                world.scaled(given)
    assert plain(found) == plain(function(e.value))
    warned = any("its derivative is lost" in str(one.message) for one in caught)
    if given is None or text in CONSTANT:
        return
    at = world.x[None]

    def part(x: float) -> float:
        return float(number_in(function(3.0 * x**2))) * x

    gradient = (part(at + 1e-6) - part(at - 1e-6)) / 2e-6
    right = world.x.grad[None] == pytest.approx(gradient, rel=1e-5)
    assert right != warned, (world.x.grad[None], gradient, warned)


def test_printing_is_no_reason_to_warn() -> None:
    """Where what was printed goes on as it was, and other numbers come along, nothing is lost."""
    world, v = World(), ti.Vector.field(2, ti.f64, (), needs_grad=True)
    step = math.sqrt(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with ti.ad.Tape(world.loss):
            world.first()
            e = world.y[None]
            print(f"{e:.3f}", [e], "%g" % e)  # noqa: UP031
            v[None] = ti.Vector([e, 2.0 * e])
            world.scaled(step * 2)
            world.scaled(v[None][0] + step)
    x = 2.0037
    assert world.x.grad[None] == pytest.approx(9 * x**2 + 3 * step)


@pytest.mark.parametrize("where", ["an array", "a field"])
def test_an_array_that_was_read_from_text_is_warned_of(where: str) -> None:
    world, w = World(), ti.ndarray(ti.f64, 2)
    weights = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @ti.kernel
    def weighted(w: weights):
        for i in range(2):
            world.loss[None] += w[i] * world.x[None]

    with pytest.warns(UserWarning, match="was written as text or copied"), ti.ad.Tape(world.loss):
        world.first()
        read = np.array([1.0, float(repr(world.y[None]))])
        if where == "a field":
            w.from_numpy(read)
        weighted(read if where == "an array" else w)


@pytest.mark.parametrize("is_open", [False, True], ids=["after", "under"])
@pytest.mark.parametrize("text", REFUSED)
def test_what_takes_nothing_but_a_float_says_what_to_write(text: str, is_open: bool) -> None:
    world, function = World(), compiled(text)
    with ti.ad.Tape(world.loss):
        world.first()
        e = world.y[None]
        world.scaled(e)
        if is_open:
            with pytest.raises((TypeError, ValueError), match=REFUSED[text]):
                function(e)
    if not is_open:
        with pytest.raises((TypeError, ValueError), match=REFUSED[text]):
            function(e)


def test_a_number_that_was_read_from_text_before_another_one_was_taken_out_is_warned_of() -> None:
    world = World()
    with pytest.warns(UserWarning, match="converted to a plain one"), ti.ad.Tape(world.loss):
        world.first()
        read = float(str(world.y[None]))
        assert float(world.y[None]) > 3
        world.scaled(read)


@pytest.mark.parametrize("read", [np.float32, np.float64, lambda text: np.array([text]).astype(np.float32)[0]])
def test_a_number_of_numpys_that_was_read_from_text_is_warned_of(read: Callable[[str], Any]) -> None:
    world = World()
    with pytest.warns(UserWarning, match="was written as text or copied"), ti.ad.Tape(world.loss):
        world.first()
        world.scaled(read(str(world.y[None])))
