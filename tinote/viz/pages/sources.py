"""The data that a page reads after each frame: fields, functions that compute a field, and arrays, by their names in
the page's program. `static/engine/sources.js` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_array

KINDS = {"f": "f", "i": "i", "u": "u", "b": "u"}


class Sources:
    """Takes the arguments of a view, and gives each as a page receives it. `fields` and `functions` are what its
    program must have, by name.
    """

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.functions: dict[str, Callable[[], object]] = {}

    def field(self, value: Any) -> str:
        """The name of a field."""
        for name, known in self.fields.items():
            if known is value:
                return name
        name = f"field{len(self.fields)}"
        self.fields[name] = value
        return name

    def of(self, given: Mapping[str, Any], shown: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The arguments `given` that are read as `shown`, by their names."""
        return {name: self.source(name, given[name], now) for name, now in shown.items()}

    def source(self, name: str, value: Any, now: np.ndarray) -> dict[str, Any]:
        """`value`, the argument `name` of a view, which is read as `now`: where its numbers are, and `as` how those of
        colours are meant. Raises `ViewError` for a function that gives what Python has made: only what kernels leave in
        a field is known to a page.
        """
        found: dict[str, Any] = {}
        if callable(value) and not hasattr(value, "to_numpy"):
            function, value = value, value()
            if not hasattr(value, "to_numpy"):
                raise ViewError(
                    f"{name} is a function that returns {type(value).__name__}, which Python makes",
                    hint="let a kernel write it into a field, and return that",
                )
            found["program"] = f"value{len(self.functions)}"
            self.functions[found["program"]] = function
        if not hasattr(value, "to_numpy"):
            data = np.ascontiguousarray(now)
            kind = f"{KINDS[data.dtype.kind]}{8 * data.dtype.itemsize}"
            meant = "bytes" if now.dtype == np.uint8 else "numbers"
            return {"data": data.tobytes(), "type": kind, "shape": data.shape, "as": meant, "isOne": now.ndim == 1}
        held = as_array(value)
        meant = "numbers"
        if now.dtype == np.uint8 and held.dtype != np.uint8:
            meant = "fractions" if held.dtype.kind == "f" else "packed"
        elif now.dtype == np.uint8:
            meant = "bytes"
        return found | {"field": self.field(value), "shape": held.shape, "as": meant}


class ViewFunctions(NamedTuple):
    """What a view calls, besides what it shows: `quantities` by their names; `pointed`: how many numbers a pointer's
    position and its element have.
    """

    step: Callable[[], object] | None
    reset: Callable[[], object] | None
    pointer: Callable[[Any], object] | None
    make_pointer: Callable[..., Any]
    quantities: Mapping[str, Callable[[], float]] = MappingProxyType({})
    pointed: tuple[int, int] = (2, 0)
