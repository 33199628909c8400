"""Checks and prints: what a kernel tells the runtime, by the number of a site and a few words."""

from __future__ import annotations

from tinote.compiler.codegen.llvm_emitter import Emitter
from tinote.compiler.codegen.llvm_text import TYPES
from tinote.errors import CompilerBug
from tinote.ir.messages import split_message
from tinote.ir.nodes import Atom, Check, FaultKind, Lit, Print
from tinote.ir.types import Scalar
from tinote.runtime.sites import Bounds, Part, Site, SiteKind, Value

__all__ = ["check", "fail_unless", "print_"]

_PAYLOAD_WORDS = 6


def word(e: Emitter, atom: Atom) -> str:
    """A scalar as an i64 of its bits; integers extended."""
    t = atom.type
    if not isinstance(t, Scalar):
        raise CompilerBug("LLVM code", f"a tensor value in machine code: {atom!r}")
    if t.kind != "f":
        return e.wide(atom)
    bits = e.value(f"bitcast {TYPES[t]} {e.use(atom)} to i{t.bits}")
    return bits if t.bits == 64 else e.value(f"zext i{t.bits} {bits} to i64")


def fail_unless(e: Emitter, good: str, site: Site, words: list[str]) -> None:
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


def check(e: Emitter, op: Check) -> None:
    condition = op.args[0]
    if type(condition) is Lit and condition.value:
        return
    if e.gathered:
        before = e.value(f"load i1, ptr {e.gathered}")
        e.do(f"store i1 {e.value(f'and i1 {before}, {e.use(condition)}')}, ptr {e.gathered}")
        return
    shown = op.args[1:][:_PAYLOAD_WORDS]
    if op.kind is FaultKind.BOUNDS:
        array = e.module.array_named(op.text, op.axis)
        if array is not None and array.rank < _PAYLOAD_WORDS:
            # Its whole shape, which nobody knew before the launch.
            extents = [e.wide_extent(array, axis) for axis in range(array.rank)]
            axis = op.axis if array.rank > 1 else None
            site = Site(SiteKind.BOUNDS, op.loc, op.text, Bounds(None, (0,), tuple(range(1, array.rank + 1)), axis))
            fail_unless(e, e.use(condition), site, [word(e, op.args[1]), *extents])
            return
    fail_unless(e, e.use(condition), _fault_site(e, op, shown), [word(e, a) for a in shown])


def _fault_site(e: Emitter, op: Check, shown: tuple[Atom, ...]) -> Site:
    kind = SiteKind(op.kind.value)
    if op.kind is FaultKind.BOUNDS:
        shape = e.module.shape_named(op.text, op.axis, op.args[2])
        first = op.args[3] if len(op.args) > 3 else None
        counted = int(first.value) if isinstance(first, Lit) else 0
        return Site(kind, op.loc, op.text, Bounds(shape, (0,), () if shape else (1,), op.axis, counted))
    if op.kind in (FaultKind.ASSERT, FaultKind.OVERFLOW):
        return Site(kind, op.loc, op.text, _message(op.text, shown))
    return Site(kind, op.loc, op.text)


def print_(e: Emitter, op: Print) -> None:
    values = iter(zip(op.args, op.specs, strict=True))
    parts: list[Part] = [_value(*next(values)) if part is None else part for part in op.parts]
    number = e.module.site(Site(SiteKind.PRINT, op.loc, "", tuple(parts)))
    e.words = max(e.words, len(op.args))
    for k, a in enumerate(op.args):
        value = word(e, a)
        e.do(f"store i64 {value}, ptr {e.value(f'getelementptr i64, ptr %words, i64 {k}')}")
    e.do(f"call void @tn_print(ptr %block, i32 {number}, i32 {len(op.args)}, ptr {'%words' if op.args else 'null'})")


def _value(atom: Atom, spec: str) -> Value:
    assert isinstance(atom.type, Scalar)
    return Value(atom.type.name, spec)


def _message(text: str, shown: tuple[Atom, ...]) -> tuple[Part, ...]:
    """A format text as parts; what has no room in a fault's payload is shown as dots."""
    rest = iter(shown)
    parts: list[Part] = []
    for part in split_message(text):
        if isinstance(part, str):
            parts.append(part)
        else:
            atom = next(rest, None)
            parts.append("..." if atom is None else _value(atom, part.spec))
    return tuple(parts)
