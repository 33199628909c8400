"""A progress bar for long loops, such as those of an optimisation, and for compilations in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from IPython.display import display
from tqdm.notebook import tqdm as tqdm_of_widgets
from tqdm.std import tqdm as text_bar

from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import sample
from tinote.viz.notebook.front_end import Audience, audience

Item = TypeVar("Item")

DELAY_SECONDS = 1.0
"""What is over sooner needs no bar."""

INTERVAL_SECONDS = 0.2
"""The quantities are computed no more often than this: reading a field takes longer than many a step."""


class WidgetBar(tqdm_of_widgets):  # type: ignore[misc]
    """tqdm's bar of widgets. At its end its text takes its place in the notebook, or nothing where it is not to stay: a
    notebook that is opened again would look for the widgets in vain.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._output: Any = None
        super().__init__(*args, **options, display=False)
        if not self.disable and self.delay <= 0:
            self.display()

    def display(self, *args: Any, check_delay: bool = True, **options: Any) -> None:
        """Show what there is to show now."""
        super().display(*args, check_delay=False, **options)
        if check_delay and self._output is None:
            self._output = display(self.container, display_id=True)

    def close(self) -> None:
        """The end: nothing is counted any more."""
        super().close()
        if self._output is not None:
            self._output.update({"text/plain": str(self)} if self.leave else {"text/html": ""}, raw=True)
            self._output = None


def bar_kind() -> Any:
    """tqdm's class of bars for the front end: of widgets for a person at a notebook, else of text."""
    return WidgetBar if audience() is Audience.PERSON else text_bar


@checked
def progress(
    items: Iterable[Item], *, total: int | None = None, label: str = "", **quantities: Callable[[], float]
) -> Iterator[Item]:
    """The items of a loop, with a progress bar from the first second on.

    In a notebook with a front end the bar, of tqdm, is a widget, elsewhere text on the standard error if that is a
    terminal.

    Parameters
    ----------
    items : iterable
        What the loop runs over.
    total : int, optional
        How many items there are, where they cannot say.
    label : str, optional
        The text before the bar.
    **quantities : callable
        Functions that return numbers, shown after the bar.

    Yields
    ------
    object
        The items.

    Raises
    ------
    ViewError
        For a quantity that is not a function.

    Examples
    --------
    >>> total = 0
    >>> for i in ti.viz.progress(range(100), label="adding", total_so_far=lambda: total):
    ...     total += i
    >>> total
    4950
    """
    for name, quantity in quantities.items():
        if not callable(quantity):
            raise ViewError(f"the quantity {name!r} is {type(quantity).__name__}, not a function that returns a number")
    kind = bar_kind()
    off = None if kind is text_bar else False  # None: on terminals only
    bar = kind(items, total=total, desc=label or None, delay=DELAY_SECONDS, mininterval=INTERVAL_SECONDS, disable=off)
    return _with_quantities(bar, quantities)


def _with_quantities(bar: Any, quantities: dict[str, Callable[[], float]]) -> Iterator[Any]:
    if bar.disable:
        yield from bar
        return
    shown_at = -INTERVAL_SECONDS
    for item in bar:
        yield item
        elapsed = bar.format_dict["elapsed"]
        if quantities and elapsed - shown_at >= INTERVAL_SECONDS:
            shown_at = elapsed
            bar.set_postfix({name: sample(name, quantity) for name, quantity in quantities.items()}, refresh=False)
    if quantities:
        bar.set_postfix({name: sample(name, quantity) for name, quantity in quantities.items()})


class CompilationBar:
    """The state of a compilation, as a line of a widget that is gone afterwards."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, text: str) -> None:
        """Show this state in place of the one before."""
        if self._bar is None:
            self._bar = WidgetBar(desc=text, leave=False, bar_format="{desc}{bar}")
            _, unknown, _ = self._bar.container.children
            unknown.layout.display = "none"  # Nobody knows how much there is to do: the bar would stay an empty box.
        else:
            self._bar.set_description_str(text)

    def close(self) -> None:
        """Takes the widget away."""
        if self._bar is not None:
            self._bar.close()


def compilation_bar() -> CompilationBar | None:
    """What shows the next compilation: nothing where no person looks."""
    return CompilationBar() if audience() is Audience.PERSON else None
