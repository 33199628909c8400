"""The contents of the rule view as plain data for JSON: one finding for each pair of accesses that breaks a rule.

A violation that repeats at every step of a simulation is one finding: its first occurrence, with a count. A finding
holds the reason, the source around both accesses, the chain of launches from one to the other, a map of the elements,
and the possible fixes with the memory that each costs.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from tinote.ir.checked_accesses import RULES, Kind
from tinote.lang.ad.access_rules.violations import Fix, ProgramAccess, Violation
from tinote.runtime.memory import readable_size
from tinote.source import Span, location_name
from tinote.viz.access_rules.edits import edited

WHOLE_TEXT = 24
"""Lines up to which a cell or file is shown whole; of a longer one, what stands around the marks."""
CONTEXT = 2
MOST_STEPS = 6
MOST_ROWS, MOST_COLUMNS = 48, 96
MOST_ELEMENTS = 8
LEVELS = 4
HEAD = re.compile(r"\s*def\b")
TITLES = {
    Fix.ACCUMULATE: "Accumulate",
    Fix.SPLIT: "Split",
    Fix.DOUBLE_BUFFER: "Double-buffer",
    Fix.TAPE: "Leave it to the tape",
}
VERBS = {
    Kind.READ: "reads",
    Kind.STORE: "writes",
    Kind.ADD: "adds to",
    Kind.TAKE: "adds to",
    Kind.COMBINE: "changes",
}


def findings(violations: Iterable[Violation]) -> list[dict[str, Any]]:
    """The findings, in the order of their first occurrence."""
    groups: dict[object, list[Violation]] = {}
    for one in violations:
        accesses = [(access.kind, access.span, access.kernel) for access in (one.earlier, one.later)]
        groups.setdefault((one.rule, one.field, *accesses), []).append(one)
    return [_finding(same) for same in groups.values()]


def _finding(same: Sequence[Violation]) -> dict[str, Any]:
    first = same[0]
    return {
        "rule": first.rule,
        "law": RULES[first.rule],
        "element": first.element,
        "reason": first.reason,
        "times": len(same),
        "sources": _sources(first),
        "chain": _chain(first),
        "map": _map(first),
        "fixes": [_fix(first, fix, len(same)) for fix in first.fixes],
    }


# The source


def _sources(violation: Violation) -> list[dict[str, Any]]:
    """The source texts of the two accesses, with marks: which columns, and what happens there."""
    marks: dict[str, dict[int, list[dict[str, Any]]]] = {}

    def mark(accessed: Span, kind: str, note: str) -> None:
        for span in accessed.chain():
            if span.line > 0:
                found = {"kind": kind, "note": note, "begin": span.column, "span": span}
                here = marks.setdefault(span.file, {}).setdefault(span.line, [])
                if found not in here:
                    here.append(found)
            kind, note = "call", "inlined from here"

    earlier, later = violation.earlier, violation.later
    if violation.is_one_operation:
        mark(later.span, "both", f"read and changed here, {later.by}")
    else:
        mark(earlier.span, "read" if earlier.kind is Kind.READ else "write", _note(earlier))
        mark(later.span, "read" if later.kind is Kind.READ else "write", _note(later))
    return [_source(file, lines) for file, lines in marks.items()]


def _note(access: ProgramAccess) -> str:
    if access.outside:
        return "found here: written through an array that shares the memory"
    done = {Kind.READ: "read", Kind.STORE: "written", Kind.ADD: "added to"}.get(access.kind, "changed")
    return f"{done} here, {access.by}"


def _source(file: str, marks: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    text = [line.rstrip("\n") for line in linecache.getlines(file)]
    while text and not text[-1].strip():
        text.pop()
    rows: list[dict[str, Any]] = []
    last = 0
    for number in _shown(text, marks):
        if number != last + 1:
            rows.append({"gap": number - last - 1})
        line = text[number - 1]
        row: dict[str, Any] = {"number": number, "text": line.expandtabs(4)}
        if number in marks:
            row["marks"] = [_columns(line, one) for one in marks[number]]
        rows.append(row)
        last = number
    if rows and last < len(text):
        rows.append({"gap": len(text) - last})
    return {"place": location_name(Span(file, min(marks))).rpartition(", line ")[0], "rows": rows}


def _shown(text: Sequence[str], marks: Iterable[int]) -> list[int]:
    """The numbers of the lines to show: those marked, and some around them, in a function those of the function and its
    head.
    """
    if len(text) <= WHOLE_TEXT:
        return list(range(1, len(text) + 1))
    shown: set[int] = set()
    for number in marks:
        if number > len(text):
            continue
        first, last = _function(text, number)
        shown.update(n for n in range(number - CONTEXT, number + CONTEXT + 1) if first <= n <= last)
        if first > 1:
            shown.add(first)
    # A gap of one line would take as much room as the line.
    shown.update([n + 1 for n in shown if n + 2 in shown])
    return sorted(shown)


def _function(text: Sequence[str], number: int) -> tuple[int, int]:
    """The first and the last line of the function around a line; of the whole text, where there is none."""
    depth = _indentation(text[number - 1])
    head = number
    while head > 0 and not (HEAD.match(text[head - 1]) and _indentation(text[head - 1]) < depth):
        head -= 1
    if not head:
        return 1, len(text)
    outside = _indentation(text[head - 1])
    last = number
    while last < len(text) and _indentation(text[last]) > outside:
        last += 1
    return head, last


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _columns(line: str, mark: dict[str, Any]) -> dict[str, Any]:
    """A mark with its columns in characters, tabs expanded; `ast` counts them in bytes."""
    span: Span = mark["span"]
    encoded = line.encode()
    inside = span.end_line == span.line and span.end_column > span.column
    ends = (span.column, span.end_column if inside else len(encoded))
    begin, end = (len(encoded[:at].decode(errors="ignore").expandtabs(4)) for at in ends)
    if not span.column and not span.end_column:
        begin = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    return {"kind": mark["kind"], "note": mark["note"], "begin": begin, "end": max(begin + 1, end)}


# The launches


def _chain(violation: Violation) -> list[dict[str, str]]:
    """What happened from one access to the other, in order."""
    earlier, later = violation.earlier, violation.later
    element = violation.element
    if violation.is_one_operation:
        return [_step("both", later, f"reads and changes {element}")]
    if violation.is_unordered:
        return [_step("both", later, f"one iteration writes {element}, another reads it")]
    first, second = (f"{VERBS[access.kind]} {element}" for access in (earlier, later))
    if later.launch is not None and earlier.launch == later.launch:
        return [_step("both", later, f"{first}, then {second}" if first != second else f"{first}, twice")]
    return [
        _step("read" if earlier.kind is Kind.READ else "write", earlier, first),
        *_between(violation),
        _step("write", later, second),
    ]


def _step(kind: str, access: ProgramAccess, does: str) -> dict[str, str]:
    if access.launch is None:
        return {"kind": kind, "when": "Python", "name": location_name(access.span), "does": does}
    return {"kind": kind, "when": f"launch {access.launch}", "name": access.kernel, "does": does}


def _between(violation: Violation) -> list[dict[str, str]]:
    names = violation.between
    if violation.later.launch is not None:
        number = violation.later.launch - len(names)
    else:
        number = (violation.earlier.launch or 0) + 1
    runs: list[tuple[str, int, int]] = []
    for name, same in groupby(names):
        count = len(list(same))
        runs.append((name, number, count))
        number += count
    steps = [{"kind": "between", "when": _launches(n, count), "name": _times(name, count)} for name, n, count in runs]
    if len(steps) > MOST_STEPS:
        left_out = runs[MOST_STEPS - 2 : -1]
        count = sum(count for _, _, count in left_out)
        steps[MOST_STEPS - 2 : -1] = [
            {"kind": "between", "when": _launches(left_out[0][1], count), "name": f"{count} more launches"}
        ]
    return [{**step, "does": ""} for step in steps]


def _launches(first: int, count: int) -> str:
    return f"launch {first}" if count == 1 else f"launches {first} to {first + count - 1}"


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} × {count:,}"


# The elements


def _map(violation: Violation) -> dict[str, Any]:
    """How many of the affected elements lie in each cell: the first dimension of a field runs down, the second across;
    a field with one runs across, and further ones are folded. Components count as their element.
    """
    shape, rank = violation.shape, len(violation.shape)
    offset = violation.offset or (0,) * rank
    index = np.unique(violation.elements[:, :rank], axis=0) - np.array(offset, np.int64)
    extent = {0: (1, 1), 1: (1, *shape)}.get(rank, shape[:2])
    position = index[:, :2] if rank > 1 else np.concatenate([np.zeros((len(index), 2 - rank), np.int64), index], 1)
    per = tuple(-(-n // most) for n, most in zip(extent, (MOST_ROWS, MOST_COLUMNS), strict=True))
    rows, columns = (-(-n // size) if size else 0 for n, size in zip(extent, per, strict=True))
    counts = np.zeros((rows, columns), np.int64)
    np.add.at(counts, tuple((position // np.array(per)).T), 1)
    deep = prod(shape[2:])
    ends = [
        np.minimum((np.arange(n) + 1) * size, total) for n, size, total in zip(counts.shape, per, extent, strict=True)
    ]
    widths = [np.diff(end, prepend=0) for end in ends]
    levels = np.ceil(LEVELS * counts / (np.outer(*widths) * deep)).astype(int)
    runs: list[list[int]] = []
    for row in range(rows):
        at = 0
        for (count, level), same in groupby(zip(counts[row].tolist(), levels[row].tolist(), strict=True)):
            length = len(list(same))
            if count:
                runs.append([row, at, length, count, level])
            at += length
    listed = [_name(violation, one) for one in violation.elements[:MOST_ELEMENTS]]
    return {
        "field": violation.field,
        "rank": rank,
        "extent": list(extent),
        "offset": [*([0] * (2 - rank)), *offset[:2]],
        "per": list(per),
        "size": [rows, columns],
        "runs": runs,
        "deep": deep,
        "count": f"{len(index):,} of {prod(shape):,} element{'s' if prod(shape) != 1 else ''}",
        "listed": listed,
        "more": len(violation.elements) - len(listed),
    }


def _name(violation: Violation, element: np.ndarray[Any, Any]) -> str:
    rank = len(violation.shape)
    outer, inner = (", ".join(map(str, part)) for part in (element[:rank].tolist(), element[rank:].tolist()))
    return f"{violation.field}[{outer or 'None'}]" + (f"[{inner}]" if inner else "")


# The fixes


def _fix(violation: Violation, fix: Fix, times: int) -> dict[str, Any]:
    writing = violation.later if violation.later.kind.changes else violation.earlier
    edit = None if writing.launch is None else edited(writing.span, fix)
    found: dict[str, Any] = {"title": TITLES[fix], "words": fix.value, "memory": _memory(violation, fix, times)}
    if edit is not None:
        found |= {"place": location_name(writing.span), "before": edit.before, "after": edit.after}
        if edit.declared:
            found["declare"] = f"{edit.declared} is a new field, declared like '{violation.field}'"
    return found


def _memory(violation: Violation, fix: Fix, times: int) -> str:
    name, size, earlier, later = violation.field, readable_size(violation.nbytes), violation.earlier, violation.later
    if fix is Fix.ACCUMULATE:
        return "No memory: no old value is needed."
    if fix is not Fix.TAPE:
        return f"{size} for one more field like '{name}', and as much for its gradient; no old value is kept."
    if violation.external:
        return f"At most {size} for each launch that reads the array '{name}', whose memory others may write to."
    if later.launch is not None and earlier.launch == later.launch:
        return f"{size} for a copy of '{name}', and what the gradient of '{later.kernel}' saves in its loops."
    if times > 1:
        return f"At most {readable_size(times * violation.nbytes)}: {times:,} copies of '{name}', {size} each."
    return f"At most {size}: one copy of '{name}', if a derivative needs the old values."


# As text


def as_text(found: Sequence[dict[str, Any]]) -> str:
    """All findings for a terminal."""
    if not found:
        return "no violation of the access rules"
    return "\n\n".join("\n".join(_text_lines(n, one)) for n, one in enumerate(found, 1))


def _text_lines(number: int, found: dict[str, Any]) -> list[str]:
    times = f" ({found['times']:,} times)" if found["times"] > 1 else ""
    lines = [f"{number}. {found['reason']}{times}"]
    for source in found["sources"]:
        lines.append(f"   {source['place']}")
        for row in source["rows"]:
            for mark in row.get("marks", ()):
                lines.append(f"   {row['number']:>5} | {row['text']}")
                lines.append(f"   {'':>5} | {' ' * mark['begin']}{'^' * (mark['end'] - mark['begin'])} {mark['note']}")
    steps = [f"{step['when']} '{step['name']}'" if step["when"] != "Python" else "Python" for step in found["chain"]]
    lines.append(f"   {' → '.join(steps)}")
    more = f", and {found['map']['more']:,} more" if found["map"]["more"] else ""
    lines.append(f"   {found['map']['count']}: {', '.join(found['map']['listed'])}{more}")
    for fix in found["fixes"]:
        lines.append(f"   {fix['title']}: {fix['words']}")
        if "after" in fix:
            lines += [*_prefixed("     - ", fix["before"]), *_prefixed("     + ", fix["after"])]
        lines.append(f"     {fix['memory']}")
    return lines


def _prefixed(prefix: str, text: str) -> list[str]:
    return [prefix + line for line in text.splitlines()]
