"""What `%%kernel --time` prints."""

from __future__ import annotations

from tinote.compiler.driver import Specialisation

__all__ = ["show_times"]


def show_times(specialisation: Specialisation, *, gradient: bool) -> None:
    """Print a table of the compiler's steps with their times in milliseconds; steps that changed nothing are summed up."""
    native = specialisation.gradient() if gradient else specialisation.primal()
    rows: list[tuple[str, float]] = [("front end", specialisation.front_end_seconds)]
    idle = 0.0
    for snapshot in specialisation.snapshots(gradient=gradient):
        if snapshot.after is snapshot.before:
            idle += snapshot.seconds
        else:
            rows.append((snapshot.step, snapshot.seconds))
    rows.append(("steps that changed nothing", idle))
    rows.append(("LLVM" + (" (machine code was known)" if native.cached else ""), native.seconds))
    width = max(len(name) for name, _ in rows)
    name = specialisation.source.name + (".grad" if gradient else "")
    print(f"{name}: {1e3 * sum(s for _, s in rows):.1f} ms")
    for step, seconds in rows:
        print(f"  {step:<{width}}  {1e3 * seconds:8.2f} ms")
