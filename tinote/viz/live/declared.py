"""Views whose arguments are declared and can be changed: the look of a view is derived from them, as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace as Namespace
from typing import Any, Protocol

from tinote.errors import suggestion
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.arguments import DeclaredArgument, arguments_of, bound, given_of, located, signature_of
from tinote.viz.live.simulated import RUNS, SimulatedView
from tinote.viz.notebook.front_end import after_cell


class Look(Protocol):
    """What a view is painted by, made of its arguments."""

    @property
    def sent(self) -> Mapping[str, Any]:
        """What pages have of it, by the names of traits."""
        ...


class DeclaredView(SimulatedView):
    """Base of views with arguments (`argument`)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if any(isinstance(value, DeclaredArgument) for value in vars(cls).values()):
            cls.__signature__ = signature_of(cls)  # type: ignore[attr-defined]

    def take(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        """Have the arguments of a call. Raises `ViewError`."""
        for name, value in bound(type(self), args, given).items():
            setattr(self, name, value)

    def look_as_given(self) -> None:
        """Look as the arguments say. Raises `ViewError`."""
        self.wear(self.arranged(Namespace(**given_of(self))))

    def __setattr__(self, name: str, value: Any) -> None:
        if self.is_made:
            with located():
                self._check_assigned(name)
        super().__setattr__(name, value)

    def _check_assigned(self, name: str) -> None:
        """Raise `ViewError` for what has no such attribute, and for what is not assigned."""
        known = {one.keyword: one for one in arguments_of(type(self))}
        if name in known:
            known[name].check_change()  # Also of one that is called as a method is.
        if name.startswith("_") or name in vars(self):
            return
        if not hasattr(type(self), name):
            raise ViewError(f"{type(self).__name__} has no attribute {name!r}{suggestion(name, known)}")
        if self.has_trait(name):
            instead = self.trait_metadata(name, "instead")
        else:
            instead = RUNS if getattr(getattr(type(self), name), "fset", self) is None else None
        if instead:
            raise ViewError(f"{name} of a view cannot be assigned", hint=instead)

    # What a subclass provides.

    def prepare(self) -> None:
        """Begin, before there are arguments."""

    def arranged(self, given: Namespace) -> Look:
        """How the view looks with these arguments. Raises `ViewError` where they do not go together."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Show the state once more, unless a frame comes anyway."""
        raise NotImplementedError

    def keep_program(self) -> None:
        """Make what the notebook keeps of the view besides its picture."""
        raise NotImplementedError

    # What follows from the arguments.

    def was_changed(self, *, repaint: bool) -> None:
        """An argument has another value: pages are to show it, and what the notebook keeps of the view, too."""
        if repaint:
            self.repaint()
        if self.program:
            after_cell(self.keep_program)

    @property
    def sent(self) -> Mapping[str, Any]:
        """What pages have of the look, by the names of traits."""
        return self.look.sent

    def wear(self, look: Look) -> None:
        """Look like this from the next frame on."""
        former = self.look.sent if self.is_made else {}
        self.look: Any = look
        changed = {name: value for name, value in look.sent.items() if name not in former or former[name] != value}
        for name in changed:
            trait = self.traits()[name]
            if not isinstance(trait, DeclaredArgument):
                self.set_trait(name, changed[name])
        if self.is_made:
            self.send_state([name for name in changed if isinstance(self.traits()[name], DeclaredArgument)])
