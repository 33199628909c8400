"""Sites: generated code reports faults and prints by number, which become located errors and printed lines.

A kernel that finds a fault, or prints, passes a site number and a few 64-bit words; the site knows the place, the
words' meaning and the text. Words are bit patterns: integers extended to 64 bits (unsigned ones with zeros), f64 as it
is, f32 and f16 in the low bits, u1 as 0 or 1.
"""

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

from tinote.errors import (
    CompilerBug,
    KernelAssertionError,
    KernelFiniteError,
    KernelIndexError,
    KernelMemoryError,
    KernelOverflowError,
    KernelRecursionError,
    KernelRuntimeError,
    KernelZeroDivisionError,
)
from tinote.formats import in_format
from tinote.runtime import layout
from tinote.runtime.memory import readable_size
from tinote.source import Span


class SiteKind(IntEnum):
    """What a site stands for; a fault's value is its status code."""

    PRINT = 0
    INTERRUPT = layout.STATUS_INTERRUPT
    BOUNDS = layout.STATUS_BOUNDS
    DIVISION = layout.STATUS_DIVISION
    ASSERT = layout.STATUS_ASSERT
    MEMORY = layout.STATUS_MEMORY
    OVERFLOW = layout.STATUS_OVERFLOW
    FINITE = layout.STATUS_FINITE
    RECURSION = layout.STATUS_RECURSION


class PrintedValue(NamedTuple):
    """A scalar in a printed line or an assertion's message: its type name (`f32`, `i64`, `u1`, ...) and a format
    specification as in an f-string.
    """

    type: str
    spec: str = ""


# A literal piece of text, or a value that takes the next word.
Part = str | PrintedValue


class Bounds(NamedTuple):
    """Arguments of a BOUNDS site. `shape` is the field's shape where it is known when compiled; else `extents` are the
    payload words that hold it.

    `indices` are the payload words that hold the index, one per dimension; with `axis` the index is that of this one
    dimension only, whose extent is then `shape[axis]`, one of several `extents`, or their single word. `first`: what
    the user counts that dimension from. `meant`: what helps, where it is not as usual.
    """

    shape: tuple[int, ...] | None
    indices: tuple[int, ...]
    extents: tuple[int, ...] = ()
    axis: int | None = None
    first: int = 0
    meant: str = ""


class Site(NamedTuple):
    """One place in a kernel that may fail, that prints, or in which it may be interrupted.

    | kind | text | arguments | words |
    |---|---|---|---|
    | INTERRUPT | the kernel's name | () | none |
    | PRINT | a warning's subject | parts: literals and values, the line break included | one a `PrintedValue` |
    | BOUNDS | the field's name | `Bounds` | as it says |
    | DIVISION | the operator, `//` or `%` | () | the dividend, if any |
    | ASSERT | message without values | parts of the message, or () | one a `PrintedValue` |
    | MEMORY | what was to be saved | () | bytes asked for, if any |
    | OVERFLOW | the operation in words | parts, or () | one a `PrintedValue` |
    | FINITE | the operation in words | parts, or () | one a `PrintedValue` |
    | RECURSION | the message | () | none |
    """

    kind: SiteKind
    loc: Span
    text: str = ""
    arguments: Bounds | tuple[Part, ...] = ()


def _bits(code: str) -> Callable[[int], float]:
    """A decoder of floats by `struct` codes: the bits of a word's low end as a float."""
    unsigned, floating = {"f16": ("<Q", "<e"), "f32": ("<Q", "<f"), "f64": ("<Q", "<d")}[code]
    unpack = struct.Struct(floating).unpack_from
    pack = struct.Struct(unsigned).pack
    return lambda word: unpack(pack(word & 0xFFFFFFFFFFFFFFFF))[0]


def _signed(bits: int) -> Callable[[int], int]:
    half, whole = 1 << (bits - 1), 1 << bits
    return lambda word: ((word + half) & (whole - 1)) - half


def _unsigned(bits: int) -> Callable[[int], int]:
    mask = (1 << bits) - 1
    return lambda word: word & mask


_DECODERS: dict[str, Callable[[int], float | int | bool]] = {
    **{f"i{bits}": _signed(bits) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": _unsigned(bits) for bits in (8, 16, 32, 64)},
    **{name: _bits(name) for name in ("f16", "f32", "f64")},
    "u1": lambda word: bool(word & 1),
}

_NARROW = {"f32": (struct.Struct("<f"), range(6, 10)), "f16": (struct.Struct("<e"), range(3, 6))}


def format_value(value: float | int | bool, type_name: str, spec: str = "") -> str:
    """A scalar as Python would print it; a narrow float by the fewest digits that read back as itself."""
    if spec:
        return in_format(value, spec)
    narrow = _NARROW.get(type_name)
    # Small integers are exact as they are (the fewest digits of the f16 65504 would be 65500).
    if (
        narrow is None
        or value != value
        or value in (float("inf"), float("-inf"))
        or (value % 1 == 0 and abs(value) < 1 << 24)
    ):
        return str(value)
    packer, digits = narrow
    bits = packer.pack(value)
    for count in digits:
        text = f"{value:.{count}g}"
        try:
            if packer.pack(float(text)) == bits:
                break
        except OverflowError:
            # The rounded text of the largest values lies beyond the type.
            continue
    else:
        text = repr(value)
    return repr(float(text))


def formatter(parts: Sequence[Part]) -> Callable[[Sequence[int]], str]:
    """A function from a record's words to its text."""
    steps: list[tuple[str, Callable[[int], float | int | bool] | None, str, str]] = []
    for part in parts:
        if isinstance(part, str):
            steps.append((part, None, "", ""))
        elif part.type in _DECODERS:
            steps.append(("", _DECODERS[part.type], part.type, part.spec))
        else:
            raise CompilerBug("sites", f"a value of type {part.type!r} cannot be printed")

    def text_of(words: Sequence[int]) -> str:
        pieces: list[str] = []
        taken = 0
        for literal, decode, type_name, spec in steps:
            if decode is None:
                pieces.append(literal)
            else:
                pieces.append(format_value(decode(words[taken]), type_name, spec))
                taken += 1
        return "".join(pieces)

    return text_of


_OUT_OF_BOUNDS = (
    "guard it with `if`, loop over a smaller ti.ndrange, or wrap it with `% n`; "
    'ti.init(bounds_check="ignore") reads 0 there'
)


def _out_of_bounds(site: Site, words: Sequence[int]) -> KernelIndexError:
    bounds = site.arguments
    if not isinstance(bounds, Bounds):
        raise CompilerBug("sites", f"{site!r} has no bounds")
    index = tuple(words[i] for i in bounds.indices)
    shape = tuple(words[i] for i in bounds.extents) if bounds.shape is None else bounds.shape
    if bounds.axis is not None:
        whole = bounds.shape is not None or len(shape) > 1
        extent = shape[bounds.axis if whole else 0]
        known = f" of shape {_tuple(shape)}" if whole else ""
        first = bounds.first
        message = f"index {index[0] + first} is out of bounds for axis {bounds.axis} of '{site.text}'{known}"
        return KernelIndexError(f"{message}: {_valid(extent, first)}", site.loc, hint=bounds.meant or _OUT_OF_BOUNDS)
    shown = str(index[0]) if len(index) == 1 else _tuple(index)
    wrong = [axis for axis, (i, n) in enumerate(zip(index, shape, strict=True)) if not 0 <= i < n]
    message = f"index {shown} is out of bounds for '{site.text}' of shape {_tuple(shape)}"
    if wrong and len(index) > 1:
        message += f": axis {wrong[0]}: {_valid(shape[wrong[0]])}"
    elif wrong:
        message += f": {_valid(shape[wrong[0]])}"
    return KernelIndexError(message, site.loc, hint=_OUT_OF_BOUNDS)


def _valid(extent: int, first: int = 0) -> str:
    return f"valid are {first} to {first + extent - 1}" if extent > 0 else "it has no elements"


def _tuple(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


def _message(site: Site, words: Sequence[int]) -> str:
    parts = site.arguments
    if isinstance(parts, Bounds):
        raise CompilerBug("sites", f"{site!r} has bounds in place of a message")
    return formatter(parts)(words) if parts else site.text


def fault(status: int, site: Site, words: Sequence[int], memory_limit: int) -> KernelRuntimeError:
    """The located exception for a status code, its site and its payload (signed words)."""
    if status != site.kind:
        raise CompilerBug("launch", f"a kernel returned status {status} with {site!r}")
    match site.kind:
        case SiteKind.BOUNDS:
            return _out_of_bounds(site, words)
        case SiteKind.DIVISION:
            what = "remainder" if site.text == "%" else "division"
            return KernelZeroDivisionError(f"integer {what} by zero", site.loc)
        case SiteKind.ASSERT:
            return KernelAssertionError(_message(site, words) or "assertion failed", site.loc)
        case SiteKind.MEMORY:
            what = site.text or "the saved values of this launch"
            return KernelMemoryError(
                f"{what} need more than the memory limit of {readable_size(memory_limit)}",
                site.loc,
                hint="raise the limit with ti.init(memory_limit=...), or save less (shorter loops, checkpoints)",
            )
        case SiteKind.OVERFLOW:
            return KernelOverflowError(_message(site, words) or "integer overflow", site.loc)
        case SiteKind.FINITE:
            return KernelFiniteError(_message(site, words), site.loc)
        case SiteKind.RECURSION:
            return KernelRecursionError(site.text, site.loc)
        case _:
            raise CompilerBug("launch", f"a kernel failed at a site that only prints: {site!r}")
