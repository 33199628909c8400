"""What became of the loops of a kernel, in the user's own lines: which run in lanes (`passes/loops/vectorise.py`),
which LLVM's vectorisers took and how wide, or why not.

LLVM speaks of a loop several times, once per attempt: as the whole loop, as what remains of it, and as the loop over
chunks that the launch puts around it. What counts for a place is the widest code that LLVM made there; the reasons are
those that it gave against the other attempts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tinote.source import Span

if TYPE_CHECKING:
    from tinote.runtime.jit import Remark


class LoopVerdict(NamedTuple):
    """The loops at one place. `width`: elements per iteration, 1 if none is vectorised; `interleaved`:
    how many vectors per iteration. `reasons`: LLVM's words against what was not vectorised, and why it does not run in
    lanes; `advice`: what helps, "" if nothing is known to. `lanes`: whether the iterations run in lanes, those of the
    loop itself or of one around it.
    """

    file: str
    line: int
    column: int
    width: int
    interleaved: int
    reasons: tuple[str, ...]
    advice: str
    lanes: bool = False


_VECTORISED = re.compile(
    r"vectorized (?:outer )?loop \(vectorization width: (?:vscale x )?(\d+), interleaved count: (\d+)\)"
)
_INTERLEAVED = re.compile(r"interleaved loop \(interleaved count: (\d+)\)")
_REFUSED = re.compile(r"(?:the )?loop not vectorized(?:: (.*))?", re.DOTALL)

#: What a reason means in terms of the user's program; the first that matches.
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


def judge_loops(
    remarks: Iterable[Remark],
    kernel: Span,
    ordered: Mapping[Span, str] | None = None,
    lanes: Mapping[Span, int | str] | None = None,
    inside: Iterable[Span] = (),
) -> list[LoopVerdict]:
    """The verdicts on all places that LLVM names a loop at, in the order of the source. `kernel`: its `def` line, where
    loops stand that a launch needs for itself, such as merging private copies. `ordered`: the loops whose iterations
    keep an order that the user did not ask for, and why. `lanes`: how many iterations run in lanes, or why none do;
    `inside`: what stands in such loops, which LLVM need not vectorise.
    """
    vectors = {(span.file, span.line, span.column) for span in inside}
    found: dict[tuple[str, int, int], LoopVerdict] = {}
    known = {(span.file, span.line, span.column): why for span, why in (ordered or {}).items()}
    for key, why in known.items():
        found[key] = LoopVerdict(*key, 1, 1, (why,), "")
    for remark in remarks:
        done = _VECTORISED.search(remark.text)
        alone = _INTERLEAVED.search(remark.text)
        refused = _REFUSED.match(remark.text)
        if (
            not (done or alone or refused)
            or not remark.line
            or (remark.file, remark.line) == (kernel.file, kernel.line)
        ):
            continue
        key = remark.file, remark.line, remark.column - 1
        verdict = found.get(key) or LoopVerdict(*key, 1, 1, (), "")
        if done:
            verdict = max(verdict, verdict._replace(width=int(done[1]), interleaved=int(done[2])), key=lambda v: v[3:5])
        elif alone:
            verdict = verdict._replace(interleaved=max(verdict.interleaved, int(alone[1])))
        elif refused and refused[1] and key not in vectors:
            verdict = verdict._replace(reasons=tuple(dict.fromkeys((*verdict.reasons, _plain(refused[1])))))
        found[key] = verdict
    # Not vectorised for no reason: a loop that LLVM has turned into something else, or the launch's own.
    for span, told in (lanes or {}).items():
        key = span.file, span.line, span.column
        verdict = found.get(key) or LoopVerdict(*key, 1, 1, (), "")
        if isinstance(told, int):
            found[key] = verdict._replace(width=told, interleaved=1, reasons=(), lanes=True)
        elif verdict.width == 1:
            found[key] = verdict._replace(reasons=(*verdict.reasons, f"not in lanes: {told}"))
    judged = [_advised(found[key]) for key in sorted(found) if found[key][3:6] != (1, 1, ())]
    return [v._replace(advice=known.get((v.file, v.line, v.column), v.advice)) for v in judged]


def _plain(reason: str) -> str:
    """LLVM's reason on one line, without what only a C compiler knows, its place as a line of the user's."""
    reason = re.sub(r"\.? Use #pragma.*", "", reason).replace("\n", ". ").rstrip(".")
    return re.sub(r" at .*:(\d+):\d+$", r" at line \1", reason)


def _advised(verdict: LoopVerdict) -> LoopVerdict:
    if verdict.width > 1:
        return verdict
    advice = next((words for part, words in _ADVICE if any(part in reason for reason in verdict.reasons)), "")
    return verdict._replace(advice=advice)
