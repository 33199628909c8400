"""Backtracking: tries a lowering that may turn out impossible, and undoes it then."""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.frontend.emitter import Emitter

#: The state that `attempt` restores, besides emitted operations.
_UNDONE = ("failures", "unrolled", "nests", "launch_seed", "top_draws", "loop_options", "stopped", "reproducible")


def attempt(e: Emitter) -> Callable[[], None]:
    """Save the state before a lowering that may turn out impossible; returns a function that restores it."""
    reached, errors, captures = e.b.reached(), len(e.errors), len(e.captures)
    anchors = [(a, a.after) for a in (e.top, *([] if e.nest is None else [e.nest.start]))]
    draws = None if e.nest is None else e.nest.draws
    state = {name: getattr(e, name) for name in _UNDONE}
    warnings = len(e.warnings)

    def undo() -> None:
        e.b.go_back(reached)
        del e.errors[errors:], e.warnings[warnings:]
        for key in list(e.captures)[captures:]:
            del e.captures[key]
        for anchor, after in anchors:
            anchor.after = after
        if e.nest is not None:
            e.nest.draws = draws
        for name, value in state.items():
            setattr(e, name, value)

    return undo
