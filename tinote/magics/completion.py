"""Tab completion on the line of a magic: its options, and for `%explore` the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tinote.lang.kernels.kernel import Kernel

KERNEL_OPTIONS = ("--explore", "--time", "--grad", "--debug", "-O0", "-O1", "-O2", "-O3", "--quiet")
EXPLORE_OPTIONS = ("--grad",)


def make_completer(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """A matcher for IPython's completer. On a line of these magics it answers alone, without Python's names."""

    @context_matcher()  # type: ignore[arg-type]
    def tinote_magics(context: CompletionContext) -> SimpleMatcherResult:
        line = context.line_with_cursor[: context.cursor_position]
        magic, space, _ = line.lstrip().partition(" ")
        if not space or magic not in ("%%kernel", "%explore"):
            return SimpleMatcherResult(completions=[])
        given = line.split()
        fragment = "" if line[-1].isspace() else given.pop()
        if magic == "%%kernel":
            wanted = KERNEL_OPTIONS
        else:
            wanted = (*EXPLORE_OPTIONS, *(name for name, value in shell.user_ns.items() if isinstance(value, Kernel)))
        found = [SimpleCompletion(word) for word in wanted if word.startswith(fragment) and word not in given]
        return SimpleMatcherResult(completions=found, matched_fragment=fragment, suppress=True)

    return tinote_magics
