"""WGSL from a function that consists of tasks: one compute entry point per task.

A parallel task is a grid-stride loop, a serial one runs in a single invocation. Variables are `v0, v1, …`, so user
names cannot clash with WGSL keywords.
"""

from __future__ import annotations

from tinote.compiler.codegen.wgsl import wide
from tinote.compiler.codegen.wgsl.checks import fail_unless
from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.features import Features
from tinote.compiler.codegen.wgsl.handlers import HANDLERS
from tinote.compiler.codegen.wgsl.memory import NumberPlace, write_place
from tinote.compiler.codegen.wgsl.reductions import BUILTINS, reduction
from tinote.compiler.codegen.wgsl.shader import FAULTS, LEFT, LOOP_ENDED, TOO_MANY, Shader
from tinote.compiler.codegen.wgsl.shared import SharedState
from tinote.compiler.codegen.wgsl.task_facts import work_of
from tinote.compiler.codegen.wgsl.types import WIDE, type_name, words_of
from tinote.ir import primitives as p
from tinote.ir.nodes import Function, Task
from tinote.ir.query import trip_count
from tinote.ir.types import element_type, u1
from tinote.runtime.layout import WORKGROUP
from tinote.runtime.sites import Site, SiteKind
from tinote.runtime.slices import Dispatch
from tinote.source import NOWHERE


def generate(fn: Function, features: Features) -> Shader:
    """The module of a function in `Form.TASKS` without tensors and private copies. Raises `KernelTargetError`."""
    shared = SharedState(fn, features, HANDLERS)
    tasks = [op for op in fn.region.body if isinstance(op, Task)]
    entries = [entry_point(TaskEmitter(shared, f"task{n}", task)) for n, task in enumerate(tasks)]
    entries += [entry_point(TaskEmitter(shared, "results", None))] if shared.results else []
    floats = "@group(0) @binding(3) var<storage, read_write> float_arena: array<atomic<f32>>;\n"
    floats = floats if features.float_atomics else ""
    head = f"""\
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, {shared.param_words // 4}>;
@group(0) @binding(1) var<storage, read_write> block: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> scratch: array<u32>;
// The same binding several times: an entry point uses one of them.
@group(0) @binding(3) var<storage, read_write> arena: array<u32>;
@group(0) @binding(3) var<storage, read_write> shared_arena: array<atomic<u32>>;
{floats}var<private> nan_bits: u32 = 0x7fc00000u;
var<private> inf_bits: u32 = 0x7f800000u;
{wide.ALIAS}"""
    texts = "\n".join([head, *shared.helpers.texts.values()])
    found = [(line, NOWHERE) for line in texts.splitlines()]
    return Shader(
        (*found, ("", NOWHERE), *shared.lines),
        tuple(entries),
        tuple([(at, element_type(v.type)) for v, at in shared.parameters.items()]),
        tuple([(at, b, axis) for (b, axis), at in shared.extents.items()]),
        tuple([(at, b) for b, at in shared.bases.items()]),
        shared.param_words,
        tuple(shared.results),
        shared.block_words,
        shared.ring,
        tuple([site for site, _ in shared.sites]),
        tuple([types for _, types in shared.sites]),
    )


def entry_point(e: TaskEmitter) -> Dispatch:
    """Write the entry point of the task of `e`."""
    task, iterations = e.task, None
    parallel = task is not None and task.parallel and not e.alone
    size = WORKGROUP if parallel else 1
    if not parallel:
        # In a workgroup of one invocation, no others would return here: Mesa's driver for CPUs still runs the other
        # lanes of its vectors, without their stores and loads, so that their loops may never end.
        e.do("if (me != 0u) { return; }")
    e.do(f"if (atomicLoad(&block[{FAULTS}]) != 0u) {{ return; }}")
    if task is None:
        for y, (at, t) in zip(e.m.fn.region.yields, e.m.results, strict=True):
            words = [f"block[{at + k}]" for k in range(words_of(t))]
            write_place(e, t, NumberPlace(words, True), e.use(y))
    elif not task.parallel:
        # Once; the loop exists for `break`, and drivers do not see that it runs only once.
        with e.loop("for (var turn = me; turn < 1u; turn++) {"):
            e.region(task.body)
    else:
        iterations = grid_loop(e, task)
    stacks = [f"  let stacks = {1 + e.array_words}u; var sp = stacks;"] if e.saves else []
    ids = f"let me = at.x; let stride = groups.x * {size}u;"
    begin = [f"@compute @workgroup_size({WORKGROUP})", f"fn {e.name}({BUILTINS}) {{", f"  {ids}"]
    if e.sums:
        begin = [f"fn {e.name}_iterations(me: u32, stride: u32) {{"]
    # The layout names all four bindings, and what a text does not use it need not have.
    loc = NOWHERE if task is None else task.loc
    found = [(line, loc) for line in (*begin, *stacks)]
    e.m.lines += [*found, *e.head, *e.lines, ("}", loc), ("", NOWHERE)]
    if e.sums:
        e.m.lines += [*reduction(e, ids, loc), ("", NOWHERE)]
    divisible = task is not None and task.parallel
    work = work_of(task.body) if task is not None and divisible else None
    return Dispatch(e.name, parallel, iterations, e.saves, bool(e.sums), divisible, work, e.array_words)


def grid_loop(e: TaskEmitter, task: Task) -> int | None:
    """The loop over the iterations of a dispatch, shared by all invocations.

    Returns the number of a launch, if known.
    """
    lo, hi = task.args
    t = element_type(lo.type)
    known = trip_count(lo, hi)
    first, last = e.use(lo), e.use(hi)
    e.do(f"if (!{e.prim_text(p.lt, u1, (lo, hi), [first, last])}) {{ return; }}")
    count = e.prim_text(p.sub, t, (hi, lo), [e.value(last), e.value(first)])
    wide_index = type_name(t) == WIDE
    if wide_index:
        count = e.value(count)
        fail_unless(e, f"{count}.y == 0u", Site(SiteKind.ASSERT, task.loc, TOO_MANY), [])
    e.do(f"let iterations = {f'{count}.x' if wide_index else f'u32({count})'};")
    begin, most = (e.param(e.m.param_words - k) for k in (4, 3))
    e.do(f"let begin = min({begin}, iterations); let end = begin + min(iterations - begin, {most});")
    with e.nested("if (me == 0u && end < iterations) {"):
        e.do(f"atomicMax(&block[{LEFT}], iterations);")
    e.do("var iteration = begin + min(me, end - begin);")
    # Nothing wraps, although the number of iterations may be that of all values of a word.
    with e.loop("for (; iteration < end; iteration += min(stride, end - iteration)) {"):
        number = "Wide(iteration, 0u)" if wide_index else f"{type_name(t)}(iteration)"
        e.env[task.body.params[0]] = e.value(e.prim_text(p.add, t, (lo, lo), [e.value(first), number]))
        if e.saves:
            e.do("sp = stacks;")
        e.region(task.body)
    fail_unless(e, "iteration >= end", Site(SiteKind.ASSERT, task.loc, LOOP_ENDED), [])
    return known
