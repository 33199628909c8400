"""Checks and prints: what a kernel tells the runtime, by the number of a site and a few words."""

from __future__ import annotations

from tinote.compiler.codegen.llvm_emitter import Emitter
from tinote.compiler.codegen.llvm_text import TYPES
from tinote.errors import CompilerBug
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
    shown = op.args[1:][:_PAYLOAD_WORDS]
    fail_unless(e, e.use(condition), _fault_site(e, op, shown), [word(e, a) for a in shown])


def _fault_site(e: Emitter, op: Check, shown: tuple[Atom, ...]) -> Site:
    kind = SiteKind(op.kind.value)
    if op.kind is FaultKind.BOUNDS:
        shape = e.module.shape_named(op.text, op.axis, op.args[2])
        return Site(kind, op.loc, op.text, Bounds(shape, (0,), () if shape else (1,), op.axis))
    if op.kind is FaultKind.ASSERT or "{}" in op.text:
        return Site(kind, op.loc, op.text.replace("{}", "?"), _message(op.text, shown))
    return Site(kind, op.loc, op.text)


def print_(e: Emitter, op: Print) -> None:
    values = iter(op.args)
    parts: list[Part] = [part if part is not None else Value(next(values).type.name) for part in op.parts]  # type: ignore[union-attr]
    number = e.module.site(Site(SiteKind.PRINT, op.loc, "", tuple(parts)))
    e.words = max(e.words, len(op.args))
    for k, a in enumerate(op.args):
        value = word(e, a)
        e.do(f"store i64 {value}, ptr {e.value(f'getelementptr i64, ptr %words, i64 {k}')}")
    e.do(f"call void @tn_print(ptr %block, i32 {number}, i32 {len(op.args)}, ptr {'%words' if op.args else 'null'})")


def _message(text: str, shown: tuple[Atom, ...]) -> tuple[Part, ...]:
    """A format text with `{}` as parts; what has no room in a fault's payload is shown as dots."""
    pieces = text.split("{}")
    parts: list[Part] = [pieces[0]]
    for k, piece in enumerate(pieces[1:]):
        parts.append(Value(shown[k].type.name) if k < len(shown) else "...")  # type: ignore[union-attr]
        parts.append(piece)
    return tuple(part for part in parts if part != "")
