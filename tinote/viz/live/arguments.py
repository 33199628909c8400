"""The arguments of views, each declared once: its name, its default, which values are accepted, and whether it can be
changed in a view that is there. The constructor and its signature, the attributes of the same names, their errors, and
what pages are sent are made of these declarations.

An argument is a trait: widgets can be linked to it, and functions observe it.
"""

from __future__ import annotations

import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import traitlets

from tinote.source import caller
from tinote.viz.draw.arguments import kind_of, shown, unknown_argument
from tinote.viz.draw.arrays import ViewError

Check = Callable[[str, Any], Any]
"""What becomes of a value given for the argument of this name. Raises `ViewError`."""

NO_DEFAULT = inspect.Parameter.empty

SMALLEST_SIDE = 16


class Renews(enum.Enum):
    """What is made again when an argument changes."""

    LOOK = "what the view shows, and how"
    FRAME = "the frame that is shown"
    NOTHING = "nothing: pages read it"


class DeclaredArgument(traitlets.TraitType[Any, Any]):
    """An argument of a view; see `argument`."""

    def __init__(
        self, default: Any, check: Check | None, *, kw_only: bool, alias: str, fixed: str, renews: Renews, sent: bool
    ) -> None:
        super().__init__(None if default is NO_DEFAULT else default)
        self.default_argument, self.check, self.kw_only, self.alias = default, check, kw_only, alias
        self.fixed, self.renews = fixed, renews
        if sent:
            self.tag(sync=True, to_json=lambda value, view: view.sent.get(self.name, value))

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @property
    def keyword(self) -> str:
        """Its name in a call."""
        return self.alias or str(self.name)

    def check_change(self) -> None:
        """Raise `ViewError` where a view that is there cannot get another value."""
        if self.fixed:
            raise ViewError(f"{self.keyword} of a view cannot be changed: {self.fixed}", hint="make another view")

    def validate(self, _view: Any, value: Any) -> Any:
        return (self.check or annotated(type(_view), str(self.name)))(self.keyword, value)

    def set(self, obj: Any, value: Any) -> None:
        """Change the view, or leave it as it was and raise `ViewError`."""
        if not obj.is_made:
            super().set(obj, value)
            return
        with located():
            self.check_change()
            value = self._validate(obj, value)
            renewed = self.renews is Renews.LOOK
            look = obj.arranged(Namespace(**given_of(obj) | {str(self.name): value})) if renewed else None
        with obj.hold_sync():
            if look is not None:
                obj.wear(look)
            super().set(obj, value)
        obj.was_changed(repaint=self.renews is not Renews.NOTHING)


@contextmanager
def located() -> Iterator[None]:
    """Errors about arguments name the user's line."""
    try:
        yield
    except ViewError as error:
        if not error.span.line:
            error.span = caller("contextlib", "traitlets").in_users_code()
        raise


def argument(
    *,
    default: Any = NO_DEFAULT,
    check: Check | None = None,
    kw_only: bool = True,
    alias: str = "",
    fixed: str = "",
    renews: Renews = Renews.LOOK,
    sent: bool = False,
) -> Any:
    """Declare an argument of a view.

    `alias`: its name in a call, if another one than that of the attribute. `fixed`: why it cannot be changed in a view
    that is there. `renews`: what a change has made anew. `sent`: whether pages have it, as the look's `sent` says or
    else as it is.
    """
    return DeclaredArgument(default, check, kw_only=kw_only, alias=alias, fixed=fixed, renews=renews, sent=sent)


def derived(trait: traitlets.TraitType[Any, Any], instead: str) -> Any:
    """A trait that a view sets itself; assigning it is an error that says what to do `instead`."""
    trait.read_only = True
    return trait.tag(sync=True, instead=instead)


def arguments_of(cls: type) -> list[DeclaredArgument]:
    """The arguments of a class of views in the order of its signature: those without keyword, its own, inherited
    ones.
    """
    names = dict.fromkeys(name for base in cls.__mro__ for name, value in vars(base).items() if _is_argument(value))
    found = [value for value in (getattr(cls, name) for name in names) if _is_argument(value)]
    return sorted(found, key=lambda one: one.kw_only)


def _is_argument(value: object) -> bool:
    return isinstance(value, DeclaredArgument)


def given_of(view: Any) -> dict[str, Any]:
    """The arguments of a view as they are now, by the names of its attributes."""
    return {str(one.name): getattr(view, str(one.name)) for one in arguments_of(type(view))}


def signature_of(cls: type) -> inspect.Signature:
    """How a view of this class is made."""
    types = {name: one for base in reversed(cls.__mro__) for name, one in inspect.get_annotations(base).items()}
    kinds = {True: inspect.Parameter.KEYWORD_ONLY, False: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return inspect.Signature(
        [
            inspect.Parameter(
                one.keyword, kinds[one.kw_only], default=one.default_argument, annotation=types.get(str(one.name), Any)
            )
            for one in arguments_of(cls)
        ]
    )


def bound(cls: type, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, checked, by the names of attributes. Raises `ViewError`."""
    declared = {one.keyword: one for one in arguments_of(cls)}
    for name in given:
        if name not in declared:
            raise unknown_argument(f"{cls.__name__}()", name, list(declared))
    try:
        call = cls.__signature__.bind(*args, **given)  # type: ignore[attr-defined]
    except TypeError as error:
        raise ViewError(f"{cls.__name__}: {error}") from None
    call.apply_defaults()
    return {str(declared[name].name): value for name, value in call.arguments.items()}


@functools.cache
def annotated(cls: type, name: str) -> Check:
    """The check that the annotation of an argument asks for."""
    owner = next(base for base in cls.__mro__ if name in vars(base))
    kind = kind_of(inspect.get_annotations(owner).get(name, Any), vars(sys.modules[owner.__module__]))
    return lambda keyword, value: value if kind is None else kind.taken(keyword, value)


# ---- which values are accepted


def one_of(*choices: str) -> Check:
    """One of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ViewError(f"{name} must be {' or '.join(map(repr, choices))}, not {shown(value)}")
        return value

    return check


def whole(least: int) -> Check:
    """A whole number that is not less."""
    kind = kind_of(int, {})

    def check(name: str, value: Any) -> int:
        found = value if kind is None else kind.taken(name, value)
        if found < least:
            raise ViewError(f"{name} must be at least {least}, not {value}")
        return found

    return check


def number(is_right: Callable[[float], Any], wanted: str) -> Check:
    """A number that `is_right`; it "must be" what is `wanted`."""

    def check(name: str, value: Any) -> float:
        if not isinstance(value, int | float | np.number) or not is_right(float(value)):
            raise ViewError(f"{name} must be {wanted}, not {shown(value)}")
        return float(value)

    return check


angle = number(np.isfinite, "a number of degrees")
pixels = number(lambda value: 0 < value < np.inf, "a positive number of pixels")


def ends(name: str, value: Any) -> tuple[float, float]:
    """Two numbers, the lower one first."""
    try:
        low, high = (float(part) for part in value)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise ViewError(f"{name} must be two numbers, the lower one first, not {shown(value)}")
    return low, high


def names(name: str, value: Any) -> tuple[str, ...]:
    """Names, or one."""
    found: tuple[Any, ...] = (value,)
    if isinstance(value, Iterable) and not isinstance(value, str):
        found = tuple(value)
    if not all(isinstance(one, str) for one in found):
        raise ViewError(f"{name} must be names of quantities, not {shown(value)}")
    return found


def color_map(name: str, value: Any) -> Any:
    """The name of a colour map, or colours. `ColorScale` knows which there are."""
    if value is not None and not isinstance(value, str | list | tuple):
        raise ViewError(f"{name} must be the name of a colour map, or a list of colours, not {shown(value)}")
    return value


def optional(check: Check) -> Check:
    """None, or what `check` accepts."""
    return lambda name, value: None if value is None else check(name, value)


def sides(name: str, value: Any) -> tuple[int, int]:
    """A width and a height in pixels, or one number for both."""
    try:
        width, height = (int(value), int(value)) if np.ndim(value) == 0 else map(int, value)
    except (TypeError, ValueError):
        raise ViewError(f"{name} must be a number of pixels, or (width, height), not {shown(value)}") from None
    if min(width, height) < SMALLEST_SIDE:
        raise ViewError(f"{name} {value} is too small: it must be at least {SMALLEST_SIDE} pixels")
    return width, height
