"""Checks and prints: a kernel reports to the runtime by the number of a site and a few words.

The first invocation whose check fails writes its site; it leaves the task, and later tasks do nothing. It leaves by
breaking out of loops: drivers turn the code after a `return` into a branch, and Mesa's driver for CPUs does not run
code in more than 80 nested branches. Each print takes its words of the ring at once, so that they stay together.
"""

from __future__ import annotations

from tinote.compiler.codegen.sites import array_named, bounds_site, fault_site, first_index, print_site, shown_by
from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.memory import NumberPlace, extent_of, write_place
from tinote.compiler.codegen.wgsl.shader import FAULTS, PAYLOAD, PRINTED, RING_WORDS, SITE
from tinote.compiler.codegen.wgsl.types import words_of
from tinote.ir.nodes import Check, FaultKind, Lit, Print
from tinote.ir.types import Scalar, element_type, u32
from tinote.runtime.layout import PAYLOAD_WORDS
from tinote.runtime.sites import Site


def fail_unless(e: TaskEmitter, good: str, site: Site, shown: list[tuple[Scalar, str]]) -> None:
    number = e.m.number_of(site, tuple([t for t, _ in shown]))
    with e.nested(f"if (!({good})) {{"):
        with e.nested(f"if (atomicAdd(&block[{FAULTS}], 1u) == 0u) {{"):
            e.do(f"atomicStore(&block[{SITE}], {number}u);")
            for k, (t, value) in enumerate(shown[:PAYLOAD_WORDS]):
                words = [f"block[{PAYLOAD + 2 * k + w}]" for w in range(words_of(t))]
                write_place(e, t, NumberPlace(words, True), value)
        if not e.loops:
            e.do("return;")
            return
        if not e.fails:
            e.declare("var failed = false;")
        e.fails = e.loops[-1] = True
        e.do("failed = true;")
        e.do("break;")


def check(e: TaskEmitter, op: Check) -> None:
    condition = op.args[0]
    if isinstance(condition, Lit) and condition.value:
        return
    if op.kind is not FaultKind.BOUNDS:
        shown = [(element_type(a.type), e.use(a)) for a in shown_by(op)]
        fail_unless(e, e.use(condition), fault_site(op), shown)
        return
    index, extent = op.args[1:3]
    known = int(extent.value) if isinstance(extent, Lit) else None
    site = bounds_site(e.m.all_buffers, op.text, op.axis, known, op.loc, first_index(op))
    shown = [(element_type(a.type), e.use(a)) for a in (index, extent)]
    array = array_named(e.m.all_buffers, op.text, op.axis)
    if array is not None:  # the whole shape, unknown before the launch
        shown[1:] = [(u32, extent_of(e, array, axis)) for axis in range(array.rank)]
    fail_unless(e, e.use(condition), site, shown)


def print_(e: TaskEmitter, op: Print) -> None:
    types = [element_type(a.type) for a in op.args]
    values = [e.use(a) for a in op.args]
    number = e.m.number_of(print_site(op), tuple(types))
    size = 1 + sum(map(words_of, types))
    at = e.name_for("at")
    e.do(f"let {at} = atomicAdd(&block[{PRINTED}], {size}u);")
    with e.nested(f"if ({at} <= {RING_WORDS - size}u) {{"):
        e.do(f"atomicStore(&block[{e.m.ring}u + {at}], {number}u);")
        k = 1
        for t, value in zip(types, values, strict=True):
            words = [f"block[{e.m.ring}u + {at} + {k + w}u]" for w in range(words_of(t))]
            write_place(e, t, NumberPlace(words, True), value)
            k += len(words)
    with e.nested("else {"):
        e.do(f"atomicAdd(&block[{PRINTED + 1}], 1u);")
