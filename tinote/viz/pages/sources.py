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

    def array(self, name: str, value: Any, now: np.ndarray) -> dict[str, Any]:
        """`value`, the argument `name` of a view, which holds `now`. Raises `ViewError` for a function that gives what
        Python has made: only what kernels leave in a field is known to a page.
        """
        if callable(value) and not hasattr(value, "to_numpy"):
            found: Any = value()
            if not hasattr(found, "to_numpy"):
                raise ViewError(
                    f"{name} is a function that returns {type(found).__name__}, which Python makes",
                    hint="let a kernel write it into a field, and return that",
                )
            program = f"value{len(self.functions)}"
            self.functions[program] = value
            return {"program": program, "field": self.field(found), "shape": found.to_numpy().shape}
        if hasattr(value, "to_numpy"):
            return {"field": self.field(value), "shape": value.to_numpy().shape}
        data = np.ascontiguousarray(now)
        kind = f"{KINDS[data.dtype.kind]}{8 * data.dtype.itemsize}"
        return {"data": data.tobytes(), "type": kind, "shape": data.shape}

    def inks(self, name: str, value: Any, now: np.ndarray) -> dict[str, Any]:
        """What parts of a mark are coloured by, which is read as `now`: colours, (3,) or (N, 3), uint8, or numbers for
        a colour map, (N,), floating point. Of the source, `as` says how its numbers are meant.
        """
        found = self.array(name, value, now)
        if "data" in found:
            return {**found, "as": "bytes" if now.dtype == np.uint8 else "numbers", "isOne": now.ndim == 1}
        if now.dtype != np.uint8:
            return {**found, "as": "numbers"}
        held = as_array(self.fields[found["field"]])
        packed = held.dtype.kind in "iu" and held.dtype != np.uint8
        return {**found, "as": "packed" if packed else "fractions" if held.dtype.kind == "f" else "bytes"}


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
