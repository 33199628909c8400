"""Long code is cut into functions of about the same length, so that the time LLVM takes grows with their number.
The cut changes no value, no gradient and no fault.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.codegen.llvm import parts
from tinote.compiler.codegen.llvm.module import generate
from tinote.errors import TinoteError
from tinote.ir.nodes import If
from tinote.ir.parse import parse
from tinote.ir.text import show

VALUE = "@ti.kernel\ndef k(x: ti.i32) -> ti.i32:\n    v = x\n"
LOOP = "@ti.kernel\ndef k():\n    for q in a:\n        v = a[q]\n"


def _statements(before: str, one: str, after: str) -> Callable[[int], str]:
    return lambda n: before + "".join([one.format(i=i, j=i + 1) for i in range(n)]) + after


def _ladder(n: int) -> str:
    rungs = [f"    elif x == {i}: v = {i * 7 % 91}\n" for i in range(1, n)]
    return VALUE + "    if x == 0: v = 5\n" + "".join(rungs) + "    return v\n"


def _nested(n: int) -> str:
    depth = min(n, 60)
    ifs = [f"{'    ' * (i + 1)}v = (v * 3 + {i}) % 997\n{'    ' * (i + 1)}if v != {i}:\n" for i in range(depth)]
    return VALUE + "".join(ifs) + "    " * (depth + 1) + "v += 1\n    return v\n"


def _products(n: int) -> str:
    size = max(2, round(n ** (1 / 3)))
    rows = f"[[a[(q + {size} * i + j) % 16] * 0.1 for j in range({size})] for i in range({size})]"
    return LOOP + f"        m = ti.Matrix({rows})\n        p = m @ m\n        c[q] = (p @ m).trace() + p.norm_sqr()\n"


def _carried(n: int) -> str:
    start = [f"        t{i} = a[(q + {i}) % 16]\n" for i in range(n)]
    steps = [f"            t{i} = t{i} * 0.5 + t{(i + 1) % n}\n" for i in range(n)]
    loop = "        j = 0\n        while j < 3:\n" + "".join(steps) + "            j += 1\n"
    return LOOP + "".join(start) + loop + "        c[q] = " + " + ".join([f"t{i}" for i in range(n)]) + "\n"


SHAPES: dict[str, Callable[[int], str]] = {
    "remainders": _statements(VALUE, "    v = (v * 3 + {i}) % 1009\n", "    return v\n"),
    "bits": _statements(VALUE, "    v = v ^ (v << 3) ^ ((v >> 5) + {i})\n", "    return v\n"),
    "wide integers": _statements(
        VALUE + "    w = ti.cast(x, ti.u64)\n",
        "    w = (w * 6364136223 + {i}) % 1000003\n",
        "    return ti.cast(w, ti.i32)\n",
    ),
    "ifs": _statements(VALUE, "    if v > {i}: v += {j}\n", "    return v\n"),
    "ifs with two values": _statements(
        LOOP + "        w = b[q]\n",
        "        if v > {i}.5:\n            v = v * 0.5 + w\n            w += 1.5\n",
        "        c[q] = v + w\n",
    ),
    "ladder": _ladder,
    "nested ifs": _nested,
    "conditions": _statements(
        VALUE + "    f = x > 0\n", "    f = (f and x > {i}) or x % {j} == 0\n", "    return v + f\n"
    ),
    "sums": _statements(LOOP, "        v += a[(q + {i}) % 16] * {i}.5\n", "        c[q] = v\n"),
    "quotients": _statements(LOOP, "        v = (v + {i}.5) / (v * v + 1.5)\n", "        c[q] = v\n"),
    "extrema": _statements(LOOP, "        v = ti.min(ti.max(v + {i}.25, b[q]), v * 2.0)\n", "        c[q] = v\n"),
    "functions": _statements(LOOP, "        v = ti.sin(v * {j}.25) + ti.exp(-v * v)\n", "        c[q] = v\n"),
    "casts": _statements(LOOP, "        v = ti.cast(ti.cast(v * 3.5, ti.i32) % 97, ti.f32)\n", "        c[q] = v\n"),
    "stores": _statements(LOOP, "        if v > {i}.5: c[q] = {i}.25 * b[q]\n", ""),
    "atomic updates": _statements(LOOP, "        c[(q * 3 + {i}) % 16] += v * {i}.5\n", ""),
    "atomic maxima": _statements(LOOP, "        ti.atomic_max(n[(q + {i}) % 16], q * {i})\n", ""),
    "loops": _statements(LOOP, "        for j in range(3):\n            v += a[j] * {i}.5\n", "        c[q] = v\n"),
    "whiles": _statements(LOOP, "        while v > {i}.5:\n            v *= 0.5\n", "        c[q] = v\n"),
    "searches": _statements(
        LOOP,
        "        for j in range(4):\n            if v > {i}.5: break\n            v += 0.5\n",
        "        c[q] = v\n",
    ),
    "carried values": _carried,
    "products of matrices": _products,
    "local arrays": _statements(
        LOOP,
        "        l{i} = ti.Vector([v, b[q], {i}.5])\n        l{i}[q % 3] = 1.5\n        v += l{i}[(q + 1) % 3] * 0.5\n",
        "        c[q] = v\n",
    ),
    "draws": _statements(LOOP, "        v += ti.random()\n", "        c[q] = v\n"),
    "totals": _statements(LOOP, "        loss[None] += a[(q + {i}) % 16] * {i}.5\n", ""),
}


def _kernel(name: str, source: str) -> tuple[Any, dict[str, Any]]:
    space: dict[str, Any] = {"ti": ti, "n": ti.field(ti.i32, shape=16)}
    space |= {f: ti.field(ti.f32, shape=16, needs_grad=True) for f in "abc"}
    space["loss"] = ti.field(ti.f32, shape=(), needs_grad=True)
    numbers = np.random.default_rng(3)
    for f in "abc":
        space[f].from_numpy(numbers.normal(size=16).astype(np.float32))
    file = f"{name} {len(source)}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    return space["k"], space


def _results(name: str, source: str) -> list[np.ndarray]:
    """What the kernel leaves and returns, and its gradients."""
    ti.init(arch=ti.cpu, fast_math=False, random_seed=5, offline_cache=False)
    k, space = _kernel(name, source)
    if "->" in source:
        return [np.array([k(x) for x in (-3, 0, 5, 17, 1000)])]
    k()
    found = [space[f].to_numpy() for f in ("a", "b", "c", "loss", "n")]
    if name != "draws":
        for f in ("c", "loss"):
            space[f].grad.fill(1.0)
        k.grad()
        found += [space[f].grad.to_numpy() for f in "abc"]
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_a_cut_changes_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SHAPES[name](12)
    whole = _results(name, source)
    monkeypatch.setattr(parts, "MAX_WHOLE_WORK", 30)
    monkeypatch.setattr(parts, "_MIN_PART_WORK", 12)
    monkeypatch.setattr(parts, "_MAX_PARTS", 3)
    in_parts = _results(name, source)
    for one, other in zip(whole, in_parts, strict=True):
        np.testing.assert_array_equal(one, other)


def _longest_function(name: str, times: int, gradient: bool) -> int:
    k, _ = _kernel(name, SHAPES[name](times))
    specialisation = k.specialise(*([3] if "->" in SHAPES[name](2) else []))
    text = generate(specialisation.snapshots(gradient=gradient)[-1].after).text
    return max([len(one.partition("\n}")[0].splitlines()) for one in text.split("\ndefine ")])


WHOLE = ("nested ifs", "carried values")
"""What a loop carries is part of it; ifs are not nested any deeper."""

FLAT = ("remainders", "bits", "wide integers", "ifs", "ladder", "conditions", "casts", "atomic maxima", "draws")
"""What has no derivative, however long it is."""

GROWING = [(name, gradient) for gradient in (False, True) for name in SHAPES if name not in WHOLE]


@pytest.mark.parametrize(("name", "gradient"), [case for case in GROWING if not (case[1] and case[0] in FLAT)])
def test_no_function_grows_with_the_code(name: str, gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's work grows with the square of a function's length. Where nothing is cut, each of these grows."""
    monkeypatch.setattr(parts, "MAX_WHOLE_WORK", 200)
    monkeypatch.setattr(parts, "_MIN_PART_WORK", 50)
    few, many = (_longest_function(name, times, gradient) for times in (24, 96))
    assert many < max(2 * few, 400)


def test_short_code_stays_whole() -> None:
    k, _ = _kernel("short", SHAPES["remainders"](100))
    assert "@part_" not in generate(k.specialise(3).snapshots()[-1].after).text
    assert [task.functions for task in k.tasks()] == [1]


def test_tasks_say_in_how_many_functions_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_WHOLE_WORK", 200)
    monkeypatch.setattr(parts, "_MIN_PART_WORK", 50)
    ti.init(arch=ti.cpu, offline_cache=False)
    k, _ = _kernel("long", SHAPES["remainders"](100))
    text = generate(k.specialise(3).snapshots()[-1].after).text
    (task,) = k.tasks()
    assert task.functions == 1 + text.count("define internal i32 @part_") > 10
    assert f"serial, long: in {task.functions} functions" in str(k.tasks())


def test_a_fault_in_a_part_names_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_WHOLE_WORK", 200)
    monkeypatch.setattr(parts, "_MIN_PART_WORK", 50)
    ti.init(arch=ti.cpu, offline_cache=False)
    lines = "".join([f"        v = ti.sin(v) * {i}.5\n" for i in range(30)])
    k, space = _kernel("fault", LOOP + lines + "        c[n[q] + 100] = v\n" + lines + "        c[q] += v\n")
    assert "@part_" in generate(k.specialise_by_types().snapshots()[-1].after).text
    with pytest.raises(TinoteError) as caught:
        k()
    assert "c[n[q] + 100] = v" in str(caught.value)
    assert not space["c"].grad.to_numpy().any()


def test_an_unlikely_branch_is_a_part_although_the_code_is_short() -> None:
    fn = parse("""
func f(%n: i32):
  %a: u1 = lt %n, 8i32
  %b: i32 = if likely %a:
    yield %n
  else:
    %c: i32 = mul %n, 3i32
    %d: i32 = add %c, 1i32
    yield %d
  return %b
""")
    (op,) = [op for op in fn.region.body if isinstance(op, If)]
    (part,) = parts.cut(fn.region)[op.orelse]
    assert (part.first, part.end, [v.name for v in part.results]) == (0, 2, ["d"])
    assert parts.cut(parse(show(fn).replace("if likely", "if")).region) == {}
