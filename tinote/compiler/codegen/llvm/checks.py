"""Checks and prints: a kernel reports to the runtime by the number of a site and a few words."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.lanes import first_fault
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.compiler.codegen.sites import array_named, bounds_site, fault_site, first_index, print_site, shown_by
from tinote.errors import CompilerBug
from tinote.ir.nodes import Atom, Check, FaultKind, Lit, Print
from tinote.ir.types import Lanes, Scalar
from tinote.runtime.sites import Site


def word(e: FunctionEmitter, atom: Atom) -> str:
    """A scalar as an i64 of its bits; integers extended."""
    t = atom.type
    if not isinstance(t, Scalar):
        raise CompilerBug("LLVM code", f"a tensor value in machine code: {atom!r}")
    if t.kind != "f":
        return e.wide(atom)
    bits = e.value(f"bitcast {TYPES[t]} {e.use(atom)} to i{t.bits}")
    return bits if t.bits == 64 else e.value(f"zext i{t.bits} {bits} to i64")


def fail_unless(e: FunctionEmitter, good: str, site: Site, words: list[str]) -> None:
    """Leave the task with a located fault unless `good` holds; `words` are i64 values for the message."""
    number = e.module.site(site)
    e.words = max(e.words, len(words))
    fault, on, status = e.label(), e.label(), e.name()
    e.do(f"br i1 {good}, label %{on}, label %{fault}, !prof !{e.module.likely}")
    lines: list[str] = []
    for k, word in enumerate(words):
        at = e.name()
        lines += [f"{at} = getelementptr i64, ptr %words, i64 {k}", f"store i64 {word}, ptr {at}"]
    payload = "%words" if words else "null"
    e.cold_block(
        fault,
        *lines,
        f"{status} = call i32 @tn_fail("
        f"ptr %block, i32 {int(site.kind)}, i32 {number}, i32 {len(words)}, ptr {payload})",
        f"ret i32 {status}",
    )
    e.begin(on)


def check(e: FunctionEmitter, op: Check) -> None:
    if isinstance(op.args[0].type, Lanes):
        op = first_fault(e, op)
    condition = op.args[0]
    if type(condition) is Lit and condition.value:
        return
    if e.gathered:
        before = e.value(f"load i1, ptr {e.gathered}")
        e.do(f"store i1 {e.value(f'and i1 {before}, {e.use(condition)}')}, ptr {e.gathered}")
        return
    if op.kind is not FaultKind.BOUNDS:
        fail_unless(e, e.use(condition), fault_site(op), [word(e, a) for a in shown_by(op)])
        return
    index, extent = op.args[1:3]
    buffers = e.module.buffers
    known = int(extent.value) if isinstance(extent, Lit) else None
    site = bounds_site(buffers, op.text, op.axis, known, op.loc, first_index(op))
    array = array_named(buffers, op.text, op.axis)
    # An array's whole shape, unknown before the launch.
    words = [word(e, extent)] if array is None else [e.wide_extent(array, axis) for axis in range(array.rank)]
    fail_unless(e, e.use(condition), site, [word(e, index), *words])


def print_(e: FunctionEmitter, op: Print) -> None:
    number = e.module.site(print_site(op))
    e.words = max(e.words, len(op.args))
    for k, a in enumerate(op.args):
        value = word(e, a)
        e.do(f"store i64 {value}, ptr {e.value(f'getelementptr i64, ptr %words, i64 {k}')}")
    e.do(f"call void @tn_print(ptr %block, i32 {number}, i32 {len(op.args)}, ptr {'%words' if op.args else 'null'})")
