"""`kernel.grad_cost`: what the gradient of one launch saves, computes again and accumulates."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.ir.buffers import Buffer, bytes_of
from tinote.lang.kernels.arguments import Arguments, arguments_of, memory_at_launch, request_with_temporaries
from tinote.lang.kernels.instances import Instance
from tinote.lang.tables import escaped, table_as_html, table_as_text
from tinote.lazy import lazy
from tinote.remarks import Remark
from tinote.runtime.memory import readable_size
from tinote.source import Span, location_name

if TYPE_CHECKING:
    from tinote.compiler.inspect import gradient_cost
    from tinote.compiler.inspect.gradient_cost import Accumulation, Recomputed, Saved
else:
    gradient_cost = lazy("tinote.compiler.inspect.gradient_cost")


_EXPRESSION_WIDTH = 36
"""In text, an expression that is longer goes on below: a table that a page has to wrap cannot be read."""


class TemporaryAdjoint(NamedTuple):
    """A field or ndarray without a gradient of its own, the type of its elements, and the bytes of its adjoint."""

    name: str
    type: str
    nbytes: int


class GradientCost(NamedTuple):
    """What a kernel's gradient costs besides its arithmetic; shows itself as a table.

    `saved`: the values that it saves, stack by stack, and the copies of fields that it makes. `recomputed`: the lines
    of which it executes operations again. `accumulated`: where it adds to memory. `threads`: how many launches use at
    most. `temporaries`: what has no gradient, and gets an adjoint for the time of a reverse sweep if what the kernel
    leaves there is needed. `shared`: where a launch and its gradient share their work, in functional derivatives and in
    captured steps under tapes, the launch saves these values, which the gradient else computes a second time;
    `unshared`: remarks on those that it does not.
    """

    kernel: str
    saved: tuple[Saved, ...]
    recomputed: tuple[Recomputed, ...]
    accumulated: tuple[Accumulation, ...]
    threads: int
    temporaries: tuple[TemporaryAdjoint, ...] = ()
    shared: tuple[Saved, ...] = ()
    unshared: tuple[Remark, ...] = ()

    @property
    def atomics(self) -> tuple[Accumulation, ...]:
        """The accumulations in which threads may meet."""
        return tuple([one for one in self.accumulated if one.how == "atomic"])

    @property
    def bytes_saved(self) -> int | None:
        """The most that a launch holds at a time, every thread in an iteration of its own; None where only the launch
        tells.
        """
        total = 0
        for one in self.saved:
            if one.nbytes is None:
                return None
            total += one.nbytes * (self.threads if one.per_iteration else 1)
        return total

    @property
    def values_recomputed(self) -> int:
        """How many operations the gradient's code executes again, each counted once."""
        return sum(one.operations for one in self.recomputed)

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Heads and rows; the places by their lines alone, if all are in one file."""
        together = len({one.span.file for one in self.saved}) == 1
        rows: list[tuple[str, ...]] = []
        for one in self.saved:
            known = "at launch" if one.count is None else f"{'' if one.exact else 'at most '}{one.count:,}"
            nbytes = "" if one.nbytes is None else f"{one.nbytes:,}"
            name = f"copy of {one.name}" if one.copy else one.name
            where = str(one.span.line) if together else location_name(one.span)
            expression = f"{one.expression} an iteration" if one.per_iteration else one.expression
            rows.append((name, where, one.type, expression, known, nbytes))
        return ("saved", "line" if together else "where", "type", "how many", "count", "bytes"), rows

    def _summary(self) -> list[str]:
        total = self.bytes_saved
        on = f" on {self.threads} threads" if any(one.per_iteration for one in self.saved) and self.threads > 1 else ""
        size = "an amount known only at launch" if total is None else f"at most {readable_size(total)}{on}"
        lines = [f"the gradient of '{self.kernel}' saves {size if self.saved else 'nothing'}"]
        again = self.values_recomputed
        lines.append(f"operations computed again: {again}{_on_lines(one.span for one in self.recomputed)}")
        fields = dict.fromkeys(one.target for one in self.atomics)
        to = f" to {', '.join(fields)}{_on_lines(one.span for one in self.atomics)}" if fields else ""
        lines.append(f"atomic operations left: {len(self.atomics)}{to}")
        if self.shared:
            sizes = [one.nbytes for one in self.shared]
            whole = sum([one or 0 for one in sizes])
            size = "an amount known only at launch" if None in sizes else readable_size(whole)
            where = _on_lines(one.span for one in self.shared)
            lines.append(f"where it shares its work, the launch saves {size} for it{where}")
        for text in dict.fromkeys([one.text for one in self.unshared]):
            lines.append(f"not shared: {text}{_on_lines(one.loc for one in self.unshared if one.text == text)}")
        if self.temporaries:
            named = ", ".join([f"{one.name} ({one.type}, {readable_size(one.nbytes)})" for one in self.temporaries])
            lines.append(f"temporary adjoints, if they are needed: {named}")
        return lines

    def __repr__(self) -> str:
        lines = self._summary()
        if self.saved:
            heads, rows = self._table()
            broken = [row for whole in rows for row in _broken(whole)]
            lines.append(table_as_text(heads, broken, left=4))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = "<br>".join(map(escaped, self._summary()))
        table = table_as_html(*self._table(), left=4) if self.saved else ""
        return f"<p>{lines}</p>{table}"


def _broken(row: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A row with its expression, continued in further rows if it is long."""
    first, *more = textwrap.wrap(row[3], _EXPRESSION_WIDTH) or [""]
    return [(*row[:3], first, *row[4:]), *[("", "", "", part, "", "") for part in more]]


def cost_of(instance: Instance, values: tuple[Any, ...]) -> GradientCost:
    """The cost of the gradient of a launch with these values, its trip counts taken from the fields as they are now."""
    specialisation = instance.specialisation
    arguments = arguments_of(instance, values)
    request = request_with_temporaries(arguments, ())
    if request.temporaries:
        arguments = Arguments(specialisation, arguments.values, request)
    arguments.refuse_broken_paths()

    count = len(specialisation.arrays)
    read, length = memory_at_launch(arguments, values[:count])
    costs = gradient_cost.costs_of(specialisation, request, values[count:], read, length)
    threads = specialisation.config.num_threads
    temporaries = tuple(sorted([_temporary(buffer) for buffer in arguments.temporaries]))
    return GradientCost(instance.kernel_name, *costs[:3], threads, temporaries, *costs[3:])


def _temporary(buffer: Buffer) -> TemporaryAdjoint:
    return TemporaryAdjoint(buffer.name, repr(buffer.element_type), bytes_of(buffer) or 0)


def _on_lines(spans: Iterable[Span]) -> str:
    lines = sorted({span.line for span in spans if span.line})
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})" if lines else ""
