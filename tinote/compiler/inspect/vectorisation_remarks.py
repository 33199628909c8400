"""Which loops of a kernel are vectorised, by `passes/loops/vectorise.py` or by LLVM, and how wide, or why not. This is
the only answer to that question: `kernel.loops()`, `kernel.tasks()` and the explorer's tables and badges all read it.
The reasons are remarks of the deciding steps and of LLVM.

LLVM reports on a loop several times, once per attempt: on the whole loop, on its remainder, and on the loop over chunks
that the launch puts around it. The verdict on a loop is the widest code that LLVM made of it; the reasons are those
against the other attempts. A remark on an access inside of a loop is one on the loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tinote.compiler.passes.analyses.choose_lanes import LEFT_TO_LLVM
from tinote.ir.lanes import lanes_of
from tinote.ir.nodes import For, Function, Region, Task, While
from tinote.ir.query import walk
from tinote.remarks import LLVM, Remark
from tinote.source import Span


class LoopVerdict(NamedTuple):
    """The loops at one place. `width`: iterations in one vector, 1 if none is vectorised; `interleaved`:
    how many vectors side by side. `reasons`: those against vectorisation; `advice`: a hint, or "". `lanes`: whether the
    vectors are those of `passes/loops/vectorise.py`, with masks, of the loop itself or of one around it.
    """

    file: str
    line: int
    column: int
    width: int
    interleaved: int
    reasons: tuple[str, ...]
    advice: str
    lanes: bool = False

    @property
    def summary(self) -> str:
        """What became of the loop, in the words of all tables and badges."""
        several = f"interleaved ×{self.interleaved}" if self.interleaved > 1 else ""
        if self.lanes:
            return f"vectorised ×{self.width} (masked)"
        if self.width > 1:
            return f"vectorised ×{self.width}" + (f", {several}" if several else "")
        return several or "not vectorised"

    @property
    def against(self) -> str:
        """The reasons as one text, which says so where only some of its code is not vectorised."""
        return ("in part not: " if self.reasons and self.width > 1 else "") + "; ".join(self.reasons)


_VECTORISED = re.compile(
    r"vectorized (?:outer )?loop \(vectorization width: (?:vscale x )?(\d+), interleaved count: (\d+)\)"
)
_INTERLEAVED = re.compile(r"interleaved loop \(interleaved count: (\d+)\)")
_REFUSED = re.compile(r"(?:the )?loop not vectorized(?:: (.*))?", re.DOTALL)

#: Explanations of reasons in terms of the user's program; the first that matches is used.
_ADVICE = (
    ("induction variable", "its trip count is known only while it runs"),
    ("data dependence", "an iteration needs what an earlier one has written"),
    ("unsafe dependent memory", "an iteration needs what an earlier one may have written"),
    ("identify array bounds", "an index is read from memory, so two iterations may meet in one element"),
    ("call instruction", "it calls a function that has no vector form"),
    ("substituted for a select", "a branch has an effect, such as a store, on one side only"),
    ("not identified as reduction", "a value is carried in another way than by +, *, min or max"),
    ("could not be identified as reduction", "a value is carried in another way than by +, *, min or max"),
    ("cost-model", "one element at a time is estimated to be as fast"),
    ("explicitly disabled", "one iteration is so long that LLVM would take seconds to think about vectors"),
    ("not beneficial", "one element at a time is estimated to be as fast"),
    ("could not determine number of loop iterations", "its trip count is known only while it runs"),
    ("early exit", "a check inside of the loop may stop it: bounds that the compiler can prove need none"),
    ("instruction cannot be vectorized", "an operation in it, such as an atomic one, exists for single elements only"),
)


#: Short forms of the remarks of steps that order iterations.
_ORDERING = {"order_iterations": "in order: ", "keep_order": "iterations may meet: ", "watch_conflicts": ""}

_Place = tuple[str, int, int]


def judge_loops(remarks: Sequence[Remark], fn: Function) -> list[LoopVerdict]:
    """The verdicts on all loops of `fn`, the last form of a kernel, that `remarks` are on, in the order of the source:
    the kernel's, then those of functions in other files. Loops of the launch itself, such as merging private copies,
    are left out.
    """
    lanes, vectors, loops = *_lanes(fn), _loops_around(fn)
    found: dict[_Place, LoopVerdict] = {}
    ordered: dict[_Place, str] = {}

    def at(place: _Place) -> LoopVerdict:
        return found.get(place) or LoopVerdict(*place, 1, 1, (), "")

    def refuse(place: _Place, reason: str) -> None:
        found[place] = at(place)._replace(reasons=tuple(dict.fromkeys((*at(place).reasons, reason))))

    for remark in remarks:
        if remark.step in _ORDERING and not remark.done:
            place, reason = _place(remark.loc), _ORDERING[remark.step] + remark.text
            ordered.setdefault(place, reason)
            refuse(place, reason)
    for remark in remarks:
        inside = _place(remark.loc)
        place = loops.get(inside)
        if remark.step != LLVM or place is None:
            continue
        if done := _VECTORISED.search(remark.text):
            wide = at(place)._replace(width=int(done[1]), interleaved=int(done[2]))
            found[place] = max(at(place), wide, key=lambda verdict: verdict[3:5])
        elif alone := _INTERLEAVED.search(remark.text):
            found[place] = at(place)._replace(interleaved=max(at(place).interleaved, int(alone[1])))
        elif (refused := _REFUSED.match(remark.text)) and refused[1] and inside not in vectors:
            refuse(place, _plain(refused[1]))
    for remark in remarks:
        place = _place(remark.loc)
        if remark.step != "vectorise" or remark.done or remark.text == LEFT_TO_LLVM or place in ordered:
            continue
        if at(place).width == 1:
            refuse(place, remark.text)
    for place, width in lanes.items():
        found[place] = at(place)._replace(width=width, interleaved=1, reasons=(), lanes=True)
    # Not vectorised and without a reason: a loop that LLVM has turned into something else, or the launch's own.
    places = sorted(found, key=lambda place: (place[0] != fn.loc.file, place))
    judged = [(place, found[place]) for place in places if found[place][3:6] != (1, 1, ())]
    return [verdict._replace(advice=ordered.get(place) or _advice(verdict)) for place, verdict in judged]


def _lanes(fn: Function) -> tuple[dict[_Place, int], set[_Place]]:
    """The number of lanes of a loop, and the places of the code in such loops, which LLVM need not vectorise. Inner
    loops run in the lanes of the outer one.
    """
    widths: dict[_Place, int] = {}
    inside: set[_Place] = set()
    for op in walk(fn.region):
        if isinstance(op, For | Task) and lanes_of(op) > 1:
            within = [op, *walk(op.body)]
            inside.update([_place(inner.loc) for inner in within])
            widths |= {_place(loop.loc): lanes_of(op) for loop in within if isinstance(loop, For | Task | While)}
    return widths, inside


def _loops_around(fn: Function) -> dict[_Place, _Place]:
    """Of each place in a loop, the place of the innermost loop around it; of a loop, its own."""
    found: dict[_Place, _Place] = {}

    def look(region: Region, loop: _Place | None) -> None:
        for op in region.body:
            place, inside = _place(op.loc), loop
            if isinstance(op, For | While) or (isinstance(op, Task) and op.parallel):
                inside = found[place] = place
            elif loop is not None:
                found.setdefault(place, loop)
            for inner in op.regions:
                look(inner, inside)

    look(fn.region, None)
    # What has no place of its own, and what only prepares or ends the launch.
    return {place: loop for place, loop in found.items() if place[1] and place[:2] != (fn.loc.file, fn.loc.line)}


def _place(span: Span) -> _Place:
    return span.file, span.line, span.column


def _plain(reason: str) -> str:
    """LLVM's reason on one line, without terms of a C compiler, with its place as a line of the user."""
    reason = re.sub(r"\.? Use #pragma.*", "", reason).replace("\n", ". ").rstrip(".")
    return re.sub(r" at .*:(\d+):\d+$", r" at line \1", reason)


def _advice(verdict: LoopVerdict) -> str:
    if verdict.width > 1:
        return ""
    return next((words for part, words in _ADVICE if any(part in reason for reason in verdict.reasons)), "")
