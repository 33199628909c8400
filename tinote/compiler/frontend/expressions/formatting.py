"""Formatted text: f-strings, `str.format`, and the messages of `print` and `assert`. Compile-time values become text;
run-time values are inserted when it is printed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Sequence
from string import Formatter
from typing import Any

from tinote.compiler.frontend.conversions import ask_python
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.values import Formatted, StructValue, Text, Value
from tinote.errors import KernelSyntaxError
from tinote.formats import PERCENT_FIELD, UnknownFormat, as_python, in_format, percent_spec
from tinote.ir.messages import Hole, join_message
from tinote.ir.nodes import Atom
from tinote.ir.types import i64


def joined_text(e: Emitter, node: ast.JoinedStr) -> Any:
    parts: list[Any] = []
    for item in node.values:
        if isinstance(item, ast.Constant):
            parts.append(item.value)
            continue
        assert isinstance(item, ast.FormattedValue)
        front = e.evaluate(item.value)
        spec = joined_text(e, item.format_spec) if isinstance(item.format_spec, ast.JoinedStr) else ""
        if e.is_static(front) and isinstance(spec, str):
            conversion = {ord("r"): repr, ord("s"): str, ord("a"): ascii}.get(item.conversion)
            try:
                shown = front if conversion is None else ask_python(e, conversion, front)
                parts.append(_constant_text(e, shown, spec))
            except (TypeError, ValueError) as error:
                e.error(str(error), node=item.value)
        elif not isinstance(spec, str):
            e.error("a format must be known at compile time", node=item.format_spec)
        else:
            if spec and item.conversion != -1:
                e.error(
                    "a conversion such as `!r` and a format together need a value known at compile time",
                    "leave out the conversion",
                    item.value,
                    KernelSyntaxError,
                )
            with e.at(item.value):
                parts.append(formatted(e, front, spec))
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return Text(tuple(parts))


#: Greatest width of a printed number in characters, and its greatest number of digits. Chosen, not measured.
_MAX_WIDTH = 1000


def formatted(e: Emitter, front: Any, spec: str) -> Formatted:
    """A run-time value with a format specification, which is checked now."""
    front = e.force(front)
    if spec:
        spec = _completed(spec, _samples(e, front))
        if any(int(number) > _MAX_WIDTH for number in re.findall(r"\d+", spec)):
            e.error(f"the format `{spec}` is wider than {_MAX_WIDTH} characters", kind=KernelSyntaxError)
        for number in _samples(e, front):
            try:
                in_format(number, spec)
            except (ValueError, TypeError) as error:
                kind = {bool: "a truth value", float: "a float", int: "an integer"}[type(number)]
                e.error(f"the format `{spec}` does not fit {kind}: {error}", kind=KernelSyntaxError)
    return Formatted(front, spec)


#: A format with a precision and no type.
_UNTYPED = re.compile(r".*\.\d+")
#: The end of a format in a text for `str.format` that is not Python's own, or means something else there.
_OF_THE_DIALECT = re.compile(r"(\.\d+[bdoxX]?|[iu]|[hlL][dxXo])}")


def _completed(spec: str, numbers: list[Any]) -> str:
    """A format as the dialect reads it: a precision without a type counts the digits of floats after the point, and
    C's letters for integers are as Python's.
    """
    if _UNTYPED.fullmatch(spec) and all(isinstance(number, float) for number in numbers):
        return spec + "f"
    return as_python(spec) if all(isinstance(number, int) for number in numbers) else spec


def _constant_text(e: Emitter, front: Any, spec: str) -> str:
    """A compile-time value as text in a format. Raises the errors of `format`."""
    spec = _completed(spec, [front])
    return in_format(front, spec) if isinstance(front, int) else ask_python(e, format, front, spec)


def _samples(e: Emitter, front: Any) -> list[Any]:
    """Numbers of the types that a value consists of."""
    if isinstance(front, tuple | list):
        return [number for part in front for number in _samples(e, part)]
    kind = e.as_value(front).dtype.kind
    return [0.0 if kind == "f" else False if kind == "b" else 0]


def format_text(e: Emitter, template: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`template.format(*args, **kwargs)`."""
    if not _OF_THE_DIALECT.search(template) and all(e.is_static(a) for a in (*args, *kwargs.values())):
        try:
            return ask_python(e, template.format, *args, **kwargs)
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            e.error(f"this text cannot be formatted: {error}")
    parts: list[Any] = []
    used = 0
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        e.error(f"this text cannot be formatted: {error}")
    for literal, field, spec, conversion in pieces:
        if literal:
            parts.append(literal)
        if field is None:
            continue
        if "{" in (spec or "") or conversion:
            e.error("conversions and nested formats need values known at compile time", kind=KernelSyntaxError)
        if not field:
            field, used = str(used), used + 1
        if field.isdigit() and int(field) < len(args):
            front = args[int(field)]
        elif field in kwargs:
            front = kwargs[field]
        else:
            e.error(f"the text asks for `{{{field}}}`, which `format` is not given")
        if e.is_static(front):
            try:
                parts.append(_constant_text(e, front, spec or ""))
            except (ValueError, TypeError) as error:
                e.error(f"this text cannot be formatted: {error}")
        else:
            parts.append(formatted(e, front, spec or ""))
    return Text(tuple(parts))


def percent_text(e: Emitter, template: str, operand: Any) -> Any:
    """`template % operand`."""
    named = operand if isinstance(operand, dict) else None
    items = list(operand) if isinstance(operand, tuple) else [operand]
    if all(e.is_static(item) for item in (items if named is None else named.values())):
        try:
            return ask_python(e, operator.mod, template, operand)
        except (LookupError, ValueError, TypeError) as error:
            e.error(f"this text cannot be formatted: {error}")
    parts: list[Any] = []
    at = used = 0

    def literal(stop: int) -> None:
        if "%" in template[at:stop]:
            e.error(f"the text {template!r} has a `%` that begins no format", "write `%%` for the sign itself")
        parts.append(template[at:stop])

    for field in PERCENT_FIELD.finditer(template):
        literal(field.start())
        at = field.end()
        name, flags, width, precision, letter = field.groups()
        if letter == "%":
            parts.append("%")
            continue
        if named is not None and name not in named:
            e.error(f"the text asks for `{field[0]}`, which the dictionary does not have")
        if named is None and used == len(items):
            e.error(f"the text has more fields than the {used} value{'s' if used != 1 else ''} after `%`")
        front = items[used] if named is None else named[name]
        used += 1
        if e.is_static(front):
            parts.append(ask_python(e, operator.mod, re.sub(r"\(\w+\)", "", field[0]), (front,)))
            continue
        try:
            spec = percent_spec(flags, width, precision, letter)
        except UnknownFormat as error:
            e.error(f"the format `{field[0]}` cannot be used in a kernel: {error}", kind=KernelSyntaxError)
        if letter in "diu" and e.is_value(front) and e.as_value(front).dtype.kind == "f":
            front = e.cast(front, i64)
        parts.append(formatted(e, front, spec))
    literal(len(template))
    if named is None and used < len(items):
        e.error(f"the text has {used} field{'s' if used != 1 else ''}, and {len(items)} values stand after `%`")
    return Text(tuple(parts))


def assertion_text(e: Emitter, message: Any) -> tuple[str, list[Atom]]:
    """The message of an `assert` as in a `Check`, and the numbers for its placeholders: one per component."""
    parts: list[str | Hole] = []
    shown: list[Atom] = []
    for part in text_parts(e, [message]):
        if isinstance(part, str):
            parts.append(part)
            continue
        value, hole = Value(part[0]), Hole(part[1])
        components = e.components(value) if value.shape else [value]
        holes: list[str | Hole] = [x for _ in components for x in (", ", hole)][1:]
        parts += ["[", *holes, "]"] if value.shape else holes
        shown += [c.atom for c in components]
    return join_message(parts), shown


def text_parts(e: Emitter, parts: Sequence[Any]) -> list[str | tuple[Atom, str]]:
    """Texts and values as the parts of a message: compile-time values become text, run-time values stay
    with its format.
    """
    found: list[str | tuple[Atom, str]] = []
    for part in parts:
        spec = ""
        if isinstance(part, Formatted):
            part, spec = part
        part = e.force(part)
        if isinstance(part, Text | StructValue):
            found += text_parts(e, part.parts if isinstance(part, Text) else part.shown(spec))
        elif e.is_static(part):
            found.append(static_text(e, part))
        elif isinstance(part, tuple | list):
            shown = [repr(item) if isinstance(item, str) else Formatted(item, spec) for item in part]
            separated = [x for item in shown for x in (", ", item)][1:]
            left, right = "[]" if isinstance(part, list) else "()" if len(part) != 1 else ("(", ",)")
            found += [left, *text_parts(e, separated), right]
        else:
            found.append((e.as_value(part).atom, spec))
    return found


def static_text(e: Emitter, front: Any) -> str:
    """The text of a compile-time value, as Python shows it."""
    try:
        return ask_python(e, str, front)
    except Exception as error:
        e.error(f"{describe(front)} cannot be shown: {type(error).__name__}: {error}")


EXPRESSIONS: Expressions = {ast.JoinedStr: joined_text}
