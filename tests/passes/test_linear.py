"""Compiling takes work in proportion to the length of a kernel. Counted, since a clock depends on the machine: calls of
Python functions, and the instructions of LLVM's functions.
"""

from __future__ import annotations

import gc
import linecache
from collections import Counter
from collections.abc import Callable
from cProfile import Profile
from pathlib import Path
from typing import Any

import pytest

import tinote as ti
from tinote.compiler.codegen.llvm import parts
from tinote.compiler.codegen.llvm.module import generate
from tinote.runtime import jit

PACKAGE = f"{Path(ti.__file__).parent}/"

FEW, FOLD = 8, 4
"""Kernels are compiled with `FEW` repetitions and with `FOLD` times as many."""

TOLERANCE = 1.3
"""1 + n/72 calls for each of n repetitions exceed it; what a kernel costs besides them makes it 1.11 at most."""

BEFORE: dict[str, str] = {
    "inner loops": "    for q in a:\n        s = 0.0\n",
    "loops that carry a value": "    for q in a:\n        s = a[q]\n",
    "loops in a serial loop": "    for q in range(2):\n",
    "branches": "    for q in a:\n        s = a[q]\n",
    "whiles": "    for q in a:\n        s = a[q]\n",
    "statements": "    for q in a:\n",
    "variables in a branch": "    for q in a:\n        s = 0.0\n",
    "fields of their own": "    for q in a:\n",
    "maxima of integers": "    for q in a:\n",
    "maxima": "    for q in a:\n",
    "remainders": "    for q in a:\n        j = q\n        s = a[q]\n",
    "choices": "    for q in a:\n        s = a[q]\n",
    "truth values": "    for q in a:\n        s = a[q]\n        t = s > 0.5\n",
    "calls": "    for q in a:\n        s = a[q]\n",
    "searches": "    for q in a:\n        s = a[q]\n",
    "local arrays": "    for q in a:\n        s = a[q]\n",
    "products of matrices": "    for q in a:\n        s = a[q]\n        m = ti.Matrix([[a[q], b[q]], [c[q], 1.5]])\n",
    "prints": "    for q in a:\n",
    "assertions": "    for q in a:\n",
    "doublings under a root": "    for q in a:\n        s = a[q] * a[q]\n",
    "positive terms under a logarithm": "    for q in a:\n        s = a[q]\n",
}
PARTS: dict[str, str] = {
    "loops over fields of their own": "    for i in x{k}:\n        y{k}[i] = x{k}[i] * {k}.5 + ti.sin(x{k}[i])\n",
    "loops over what the last one wrote": "    for i in x{k}:\n        x{k1}[i] = x{k}[i] * {k}.5 + ti.sin(x{k}[i])\n",
    "loops over one field": "    for i in a:\n        a[i] = a[i] * {k}.5\n",
    "sums": "    for i in a:\n        loss[None] += a[i] * {k}.5\n",
    "sums into fields of their own": "    for i in a:\n        s{k}[None] += a[i] * {k}.5\n",
    "nests": "    for i, j in ti.ndrange(4, 4):\n        b[4 * i + j] += a[i + j] * {k}.5\n",
    "scatters": "    for i in a:\n        b[(i + 9 + {k}) % 64] += a[(i * 3) % 64]\n",
    "scatters to neighbours": "    for i in a:\n        b[(i + {k} % 4 + 1) % 64] += a[ti.max(i - 1, 0)] * {k}.5\n",
    "vectors": "    for i in v:\n        w[i] += v[i] * {k}.5 + v[i].norm()\n",
    "values between loops": "    t{k} = a[{k} % 64] * 2.0\n    for i in a:\n        b[i] += t{k} * a[i]\n",
    "inner loops": "        for i in range(10):\n            s += a[i] * {k}.5\n",
    "loops that carry a value": "        for i in range(10):\n            s = ti.sin(s) * a[i] * {k}.5\n",
    "loops in a serial loop": "        for i in range(64):\n            b[i] += a[i] * {k}.5\n",
    "branches": "        if s > {k}.5:\n            s = ti.sin(s) * {k}.5 + b[q]\n            c[q] += s\n",
    "whiles": "        while s > {k}.5:\n            s *= 0.5\n",
    "statements": "        b[(q + {k}) % 64] += a[(q * 3 + {k}) % 64]\n",
    "variables in a branch": (
        "        t{k} = a[q] * {k}.5\n        if a[q] > 0.5:\n            t{k} *= 2.0\n        s += t{k}\n"
    ),
    "fields of their own": "        y{k}[q] = x{k}[q] * {k}.5\n",
    "maxima of integers": "        ti.atomic_max(n[(q * 3 + {k}) % 64], q * {k})\n",
    "maxima": "        ti.atomic_max(b[(q * 3 + {k}) % 64], a[q] * {k}.5)\n",
    "remainders": "        j = (j * 3 + {k}) % 1009\n",
    "choices": "        s = s * 0.5 if s > {k}.5 else ti.max(s, b[q]) + {k}.5\n",
    "truth values": "        t = (t and s > {k}.5) or (not t and b[q] > {k}.25)\n",
    "calls": "        s = branching(s, b[q])\n",
    "searches": (
        "        for i in range(10):\n            if s > {k}.5:\n                break\n            s += a[i]\n"
    ),
    "local arrays": (
        "        l{k} = ti.Vector([a[q], b[q], {k}.5])\n        l{k}[q % 3] = 1.5\n        s += l{k}[(q + 1) % 3]\n"
    ),
    "products of matrices": "        m = m @ m + m\n        s += m[0, 1]\n",
    "prints": "        print({k}, a[q])\n",
    "assertions": "        assert a[q] != {k}.5\n",
    "doublings under a root": "        s = s + s\n",
    "positive terms under a logarithm": "        s = s + (b[q] * b[q] + {k}.5)\n",
}
KEEP = "        c[q] = s\n"
AFTER: dict[str, str] = {
    "inner loops": KEEP,
    "loops that carry a value": KEEP,
    "branches": KEEP,
    "whiles": KEEP,
    "variables in a branch": KEEP,
    "remainders": "        b[j % 64] += s\n",
    "choices": KEEP,
    "truth values": "        if t:\n            c[q] = s\n",
    "calls": KEEP,
    "searches": KEEP,
    "local arrays": KEEP,
    "products of matrices": KEEP,
    "doublings under a root": "        c[q] = ti.sqrt(s)\n",
    "positive terms under a logarithm": "        c[q] = ti.log(s)\n",
}


@pytest.fixture(autouse=True)
def usual_options() -> None:
    """What is counted does not depend on the tests before."""
    ti.init()


@ti.func
def branching(x, y):
    if x > y:
        return x * y
    return x + 0.5


def repeated(name: str, times: int) -> Any:
    """The kernel called `name`, with its part that many times."""
    space: dict[str, object] = {"ti": ti}
    shapes = {"loss": (), **dict.fromkeys("abc", 64)}
    for k in range(times + 1):
        shapes |= {f"x{k}": 64, f"y{k}": 64, f"s{k}": ()}
    space |= {field: ti.field(ti.f32, shape=shape, needs_grad=True) for field, shape in shapes.items()}
    space |= {field: ti.Vector.field(3, ti.f32, shape=64, needs_grad=True) for field in "vw"}
    space |= {"n": ti.field(ti.i32, shape=64), "branching": branching}
    parts = "".join([PARTS[name].format(k=k, k1=k + 1) for k in range(times)])
    text = "@ti.kernel\ndef k():\n" + BEFORE.get(name, "") + parts + AFTER.get(name, "")
    file = f"{name}, {times} times"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), space)
    return space["k"]


def calls_of(work: Callable[[], str]) -> tuple[Counter[str], str]:
    """How often functions of the package, and C's that they call, are called by `work`; and what it gives."""
    profile = Profile()
    gc.disable()  # what dies calls back
    profile.enable()
    try:
        result = work()
    finally:
        profile.disable()
        gc.enable()
    counts: Counter[str] = Counter()
    for entry in profile.getstats():
        code = entry.code
        if isinstance(code, str) or PACKAGE not in code.co_filename:
            continue
        counts[f"{code.co_filename.partition(PACKAGE)[2]}:{code.co_firstlineno} {code.co_name}"] += entry.callcount
        for called in entry.calls or ():
            if isinstance(called.code, str):
                counts[called.code] += called.callcount
    return counts, result


@pytest.mark.parametrize("gradient", [False, True], ids=["primal", "gradient"])
@pytest.mark.parametrize("name", PARTS)
def test_passes_are_linear(name: str, gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No function is called noticeably more often for each repetition than it is in the shorter kernel."""
    monkeypatch.setattr(parts, "MAX_WHOLE_WORK", 1 << 30)  # the longer kernel alone would be cut
    counts, texts = [], []
    for times in (2, FEW, FEW * FOLD):  # The first time, modules are loaded.
        specialisation = repeated(name, times).specialise()

        def compiled(specialisation: Any = specialisation) -> str:
            last = specialisation.snapshots(gradient=gradient)[-1].after
            return generate(last).text

        found, text = calls_of(compiled)
        counts.append(found)
        texts.append(text)
    _, few, many = counts
    superlinear = {
        function: (few[function], number)
        for function, number in many.items()
        if number > 8 * FEW * FOLD and number > TOLERANCE * FOLD * few[function]
    }
    assert superlinear == {}
    assert len(texts[2]) < TOLERANCE * FOLD * len(texts[1])


@pytest.mark.parametrize("gradient", [False, True], ids=["primal", "gradient"])
def test_components_are_not_compared_in_pairs(gradient: bool) -> None:
    """Elements of a matrix that differ in a literal index never meet, and nobody asks whether they do."""
    asked = []
    for size in (2, 4, 8):
        m = ti.Matrix.field(size, size, ti.f32, shape=4, needs_grad=True)
        loss = ti.field(ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def k():
            for i in m:  # noqa: B023
                loss[None] += (m[i] @ m[i]).norm_sqr()  # noqa: B023

        specialisation = k.specialise()
        found, _ = calls_of(lambda one=specialisation: str(one.snapshots(gradient=gradient)[-1].after))
        asked.append(sum([number for function, number in found.items() if "may_meet" in function]))
    assert asked[2] < TOLERANCE * 4 * max(asked[1], 16)  # four times as many elements


@pytest.mark.parametrize("name", ["sums", "sums into fields of their own", "loops over one field"])
def test_no_function_of_llvm_takes_in_all_tasks(name: str) -> None:
    """LLVM's work grows with the square of a function's length."""
    work = []
    for times in (2 * FEW, 4 * FEW):
        specialisation = repeated(name, times).specialise()
        last = specialisation.snapshots()[-1].after
        optimised = jit.optimise(generate(last).text)
        functions = [one.partition("\n}")[0] for one in optimised.split("\ndefine ")[1:]]
        (entry,) = [one for one in functions if "@entry(" in one.partition("\n")[0]]
        assert all(f"@task_{number}(" in entry for number in range(times))
        work.append(sum([len(one.splitlines()) ** 2 for one in functions if one is not entry]))
    assert work[1] < 2.2 * work[0]


def module_of(loops: int, lines: int) -> str:
    """A module with one function of `loops` loops of `lines` additions each."""
    body = "".join([f"b{k}:\n" + "  %v = add i32 1, 1\n" * lines + f"  br i1 %c, label %b{k}, label %b{k + 1}\n"
                    for k in range(loops)])  # fmt: skip
    return f"define i32 @entry(ptr %block) {{\n{body}b{loops}:\n  ret i32 0\n}}\n"


def test_llvm_does_less_to_a_function_of_many_loops_or_long_blocks() -> None:
    effort = jit._effort_on
    assert effort(module_of(10, 100)) == (True, True, 3)
    assert effort(module_of(400, 10)) == (False, True, 3)
    assert effort(module_of(40, 10) * 100) == (True, True, 3)  # many functions of few loops each
    assert effort(module_of(1, 5_000)) == (True, False, 1)
    assert effort(module_of(1, 20_000)) == (True, False, 0)
