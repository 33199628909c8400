"""Modules as a whole: private copies, which loops become vectors, what the text depends on, debug locations."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.codegen.native import STRICT, agree, execute, located, lower, lowered, memory_of
from tinote.compiler.codegen.llvm.module import Options, generate
from tinote.compiler.passes.lowering.lower_access import lower_access
from tinote.compiler.passes.lowering.offload import offload
from tinote.compiler.passes.updates.privatise import privatise
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of
from tinote.ir.rewrite import Rewriter
from tinote.runtime.jit import optimise
from tinote.source import Span


def privatised(text: str) -> Function:
    fn = privatise(offload(parse(text)))
    assert any(task.privates for task in fn.region.body)  # type: ignore[attr-defined]
    return lower_access(fn)


PRIVATE = """\
buffer @h: {t} field ({n}, 2)
buffer @x: i32 field (40000)
func histogram():
  for parallel %i: i32 in 0i32 .. 40000i32:
    %k: i32 = load @x[%i]
    %one: {t} = cast %k
    atomic {prim} @h[%k, 1i32], %one
"""


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [4, 100, 2000])
@pytest.mark.parametrize(("t", "prim"), [("i64", "add"), ("i32", "max"), ("f64", "add"), ("u8", "xor"), ("i16", "min")])
def test_private_copies_are_merged(threads: int, n: int, t: str, prim: str) -> None:
    """In registers and in the scratch memory; twice, on the same block."""
    fn = privatised(PRIVATE.format(t=t, n=n, prim=prim))
    x = [(k * 7919) % n for k in range(40000)]
    start = [[k % 5, k % 3] for k in range(n)]
    memory = memory_of(fn, {"x": x, "h": start})
    execute(fn, (), memory, threads=threads, launches=2)
    wanted = [list(row) for row in start]
    for _ in range(2):
        for k in x:
            new = {
                "add": wanted[k][1] + k,
                "max": max(wanted[k][1], k),
                "min": min(wanted[k][1], k),
                "xor": wanted[k][1] ^ (k & 255),
            }[prim]
            wanted[k][1] = new
    found = next(memory.nested(b) for b in memory.cells if b.name == "h")
    assert found == wanted


@pytest.mark.parametrize("layout", ["", " strides (4) element_strides (256)", " strides (20) element_strides (4)"])
def test_private_vectors_are_merged_into_any_layout(layout: str) -> None:
    """Components apart in the copy; together, apart, or with gaps in the target."""
    text = f"""\
buffer @g: i32[3] field (64){layout}
func scatter():
  for parallel %i: i32 in 0i32 .. 40000i32:
    %k: i32 = mod %i, 64i32
    atomic add @g[%k][0i32], %i
    atomic add @g[%k][2i32], 1i32
"""
    fn = privatised(text)
    memory = memory_of(fn, {"g": [[k, 7, 0] for k in range(64)]})
    execute(fn, (), memory, threads=2)
    found = next(memory.nested(b) for b in memory.cells if b.name == "g")
    assert found == [[k + sum(range(k, 40000, 64)), 7, 625] for k in range(64)]


def test_large_private_copies_are_merged_by_all_threads() -> None:
    """A copy of 16,000 numbers for each thread, in another order than its target."""
    text = """\
buffer @h: i32 field (8000, 2) strides (4, 32000)
func histogram():
  for parallel %i: i32 in 0i32 .. 140000i32:
    %k: i32 = mod %i, 8000i32
    atomic add @h[%k, 1i32], %i
"""
    fn = privatised(text)
    memory = memory_of(fn, {"h": [[k, 2 * k] for k in range(8000)]})
    execute(fn, (), memory, threads=2)
    found = next(memory.nested(b) for b in memory.cells if b.name == "h")
    assert found == [[k, 2 * k + sum(range(k, 140000, 8000))] for k in range(8000)]


def test_private_sums_are_the_same_every_time() -> None:
    text = """\
buffer @s: f32 field ()
buffer @x: f32 field (40000)
func total():
  for parallel %i: i32 in 0i32 .. 40000i32:
    %v: f32 = load @x[%i]
    %e: f32 = exp %v
    atomic add @s[], %e
"""
    fn = privatised(text)
    found = set()
    for _ in range(5):
        memory = memory_of(fn, {"x": [math.sin(k) for k in range(40000)], "s": 0.0})
        execute(fn, (), memory, threads=2, options=Options())
        found.add(next(memory.nested(b) for b in memory.cells if b.name == "s"))
    assert len(found) == 1
    assert math.isclose(found.pop(), sum(math.exp(math.sin(k)) for k in range(40000)), rel_tol=1e-5)


def test_an_array_that_tasks_share_may_be_as_large_as_any() -> None:
    text = """\
buffer @t: f64 temporary (8192)
buffer @x: f64 field (8192)
func f():
  for parallel %i: i32 in 0i32 .. 8192i32:
    %v: f64 = cast %i
    store @t[%i], %v
  for parallel %j: i32 in 0i32 .. 8192i32:
    %k: i32 = sub 8191i32, %j
    %w: f64 = load @t[%k]
    store @x[%j], %w
"""
    assert agree(text, threads=2)["x"] == [8191.0 - k for k in range(8192)]


def test_equal_functions_give_equal_text() -> None:
    """Names and places change neither text nor digest; another constant changes both."""
    text = (
        "buffer @x: f32 field (8)\nfunc f(%n: i32):\n  for parallel %i: i32 in 0i32 .. %n:\n    store @x[%i], 1.0f32\n"
    )
    one = generate(lowered(text))
    renamed = generate(lower(located(parse(text.replace("@x", "@other").replace("%i", "%row")))))
    assert one.digest == renamed.digest
    assert one.digest != generate(lowered(text.replace("1.0f32", "2.0f32"))).digest
    assert one.digest != generate(lowered(text), Options(fast_math=False, vector_width=256)).digest
    assert "other" not in renamed.text


def test_debug_locations_name_the_cell() -> None:
    text = "buffer @x: f32 field (8)\nfunc f():\n  for parallel %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 1.0f32\n"
    fn = lower(located(parse(text)))
    module = generate(fn)
    assert '!DIFile(filename: "cell"' in module.text
    assert "!DILocation(line: 12, column: 5" in module.text
    assert "!DILocation(line: 12, column: 5" in optimise(module.text)


def test_inlined_code_is_located_where_it_was_written() -> None:
    span = Span('with "quotes"\\and ∂.py', 3, 8, inlined_at=Span("main.py", 40, 2))

    class Locate(Rewriter):
        def on(self, op: Any) -> Any:
            new = op.rebuilt(op.args, op.regions)
            new.loc = span
            self.emit(new)
            return op.outs

    source = parse("buffer @x: f32 field (8)\nfunc f():\n  store @x[0i32], 1.0f32\n")
    fn = lower(Function("f", Locate().region(source.region), Span("main.py", 39)))
    text = generate(fn).text
    assert "line: 3, column: 9" in text and "inlinedAt" in text and "line: 40, column: 3" in text
    execute(fn, (), DictMemory({b: [0.0] * 8 for b in buffers_of(source)}), level=0)


VECTOR_LOOPS = {
    "axpy": """\
buffer @x: f32 field (?)
buffer @y: f32 field (?)
func f(%a: f32, %n: i32):
  for parallel %i: i32 in 0i32 .. %n:
    %v: f32 = load @x[%i]
    %w: f32 = load @y[%i]
    %m: f32 = mul %a, %v
    %s: f32 = add %m, %w
    store @y[%i], %s
""",
    "stencil": """\
buffer @x: f64 field (1000)
buffer @y: f64 field (1000)
func f():
  for parallel %i: i32 in 1i32 .. 999i32:
    %l: i32 = sub %i, 1i32
    %r: i32 = add %i, 1i32
    %a: f64 = load @x[%l]
    %b: f64 = load @x[%r]
    %s: f64 = add %a, %b
    store @y[%i], %s
""",
    "dot": """\
buffer @x: f32 field (?)
buffer @s: f32 field ()
func f(%n: i32):
  %t: f32 = for %i: i32 in 0i32 .. %n carrying %u: f32 = 0.0f32:
    %v: f32 = load @x[%i]
    %w: f32 = mul %v, %v
    %z: f32 = add %u, %w
    yield %z
  store @s[], %t
""",
    "rows": """\
buffer @x: f32 field (64, 512)
func f():
  for parallel %i: i32 in 0i32 .. 64i32:
    for parallel %j: i32 in 0i32 .. 512i32:
      %v: f32 = load @x[%i, %j]
      %w: f32 = sqrt %v
      store @x[%i, %j], %w
""",
    "branch": """\
buffer @x: f32 field (4096)
buffer @y: f32 field (4096)
func f():
  for parallel %i: i32 in 0i32 .. 4096i32:
    %v: f32 = load @x[%i]
    %c: u1 = gt %v, 0.5f32
    %r: f32 = if %c:
      %a: f32 = mul %v, %v
      yield %a
    else:
      %b: f32 = add %v, 1.0f32
      yield %b
    store @y[%i], %r
""",
    "vectors": """\
buffer @x: f32[2] field (4096)
buffer @y: f32[2] field (4096)
func f():
  for parallel %i: i32 in 0i32 .. 4096i32:
    %a: f32 = load @x[%i][0i32]
    %b: f32 = load @x[%i][1i32]
    %s: f32 = add %a, %b
    %d: f32 = sub %a, %b
    store @y[%i][0i32], %s
    store @y[%i][1i32], %d
""",
}


@pytest.mark.parametrize("name", VECTOR_LOOPS)
def test_plain_loops_vectorise(name: str) -> None:
    text = VECTOR_LOOPS[name].replace("(?)", "(100000)")
    assert re.search(r"load <\d+ x (float|double)>", optimise(generate(lowered(text)).text)), name


def test_strict_sums_are_not_reordered() -> None:
    strict = optimise(generate(lowered(VECTOR_LOOPS["dot"].replace("(?)", "(100000)")), STRICT).text)
    assert "vector.reduce.fadd.v" not in strict or "reassoc" not in strict
    assert not re.search(r"fadd (reassoc )?.*<\d+ x float>", strict)
