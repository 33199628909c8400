"""`ti.save` and `ti.load`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tinote.errors import StateError, suggestion
from tinote.lang.session.state import session
from tinote.lang.shipping.tokens import token
from tinote.lang.states.files import read_file, write_file
from tinote.lang.states.records import Saved, saved, setter
from tinote.lang.states.series import append_state, read_state
from tinote.source import caller


class SavedState(Mapping[str, Any]):
    """What `ti.load` gives: all that a file holds of a state, by name. Fields and arrays are NumPy arrays, structs
    dictionaries of them.
    """

    def __init__(self, path: Path, values: dict[str, Saved], states: int) -> None:
        self._values = values
        #: the file
        self.path = path
        #: how many states the file holds
        self.states = states

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"{self.path} holds no {name!r}{suggestion(name, self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<state of {', '.join(self._values)} in {self.path}>"


def save(path: str | os.PathLike[str], /, *, append: bool = False, made_by: Any = None, **state: Any) -> None:
    """Save the state of a simulation: fields, arrays, numbers and the state of random numbers.

    The file is whole or not there: a process that is killed in between leaves the former state.

    Parameters
    ----------
    path : path
        A file `*.npz` for one state, which NumPy reads as well, or a store `*.zarr` for many, which xarray reads; the
        latter needs the library zarr.
    append : bool, default False
        Add the state to those that a store holds, in place of removing them.
    made_by : function, kernel or list of them, optional
        What made the state. A hash of its source, and of the numbers that it names, is saved as well; `ti.load` warns
        where it is another one.
    **state
        What to save, by name: fields, structs, arrays, vectors, numbers, text, lists and dictionaries of numbers and
        text, and controls, whose value is saved.

    Raises
    ------
    StateError
        For a value that cannot be saved, or a state unlike those that a store holds.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=3)
    >>> x.fill(2.0)
    >>> ti.save("orbit.npz", x=x, step=100)
    >>> x.fill(0.0)
    >>> ti.load("orbit.npz", x=x)["step"], x[1]
    (100, 2.0)
    """
    file = _file(path)
    if not state:
        raise StateError("nothing to save", caller(), hint="name it: ti.save(path, x=x, step=step)")
    for name in state:
        if not name.isidentifier() or name.startswith("tinote_"):
            raise StateError(f"{name!r} cannot be the name of what is saved", caller())
    found = {name: saved(name, value) for name, value in state.items()}
    facts = {"made_by": None if made_by is None else _made_by(made_by), "random": session.random_state()}
    if file.suffix == ".zarr":
        append_state(file, found, facts, anew=not append)
    elif append:
        raise StateError(f"{file.name} holds one state", caller(), hint=f'append to "{file.with_suffix(".zarr")}"')
    else:
        write_file(file, found, facts)


def load(
    path: str | os.PathLike[str], /, *, at: int = -1, made_by: Any = None, random: bool = True, **targets: Any
) -> SavedState:
    """Load what `ti.save` has saved, bit for bit.

    Everything is checked before anything is written.

    Parameters
    ----------
    path : path
        The file or store.
    at : int, default -1
        Which state of a store, in the order in which they were appended. Negative numbers count from the end.
    made_by : function, kernel or list of them, optional
        What will go on from the state. A warning says so where it is not what the state was saved with.
    random : bool, default True
        Let random numbers go on where they were.
    **targets
        What to load into, by the names of `ti.save`: fields, structs, NumPy arrays and controls.

    Returns
    -------
    SavedState
        All that the file holds, by name; `states` is the number of states.

    Raises
    ------
    StateError
        For a file that is missing, damaged or of a later version, and for targets of another type or shape.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=2)
    >>> for step in range(3):
    ...     x.fill(step)
    ...     ti.save("run.zarr", append=step > 0, x=x, time=0.1 * step)
    >>> ti.load("run.zarr", at=1, x=x)["time"], x[0]
    (0.1, 1.0)
    >>> ti.load("run.zarr").states
    3
    """
    file = _file(path)
    if file.suffix == ".zarr":
        values, facts = read_state(file, at)
    elif at not in (0, -1):
        raise StateError(f"{file.name} holds one state; there is no number {at}", caller())
    else:
        values, facts = read_file(file)
    for name in targets:
        if name not in values:
            raise StateError(f"{file} holds no {name!r}{suggestion(name, values)}", caller())
    setters = [setter(name, target, values[name]) for name, target in targets.items()]
    if made_by is not None and facts["made_by"] not in (None, _made_by(made_by)):
        warnings.warn(f"the state in {file} was made by other functions, or by other numbers", stacklevel=2)
    for write in setters:
        write()
    if random:
        session.set_random_state(facts["random"])
    return SavedState(file, values, facts.get("states", 1))


def _made_by(functions: Any) -> str:
    return token(functions, contents=False)


def _file(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    if file.suffix not in (".npz", ".zarr"):
        raise StateError(
            f"{file.name} is neither a file nor a store of states",
            caller(),
            hint="name it *.npz for one state, *.zarr for one after another",
        )
    if not file.parent.is_dir():
        raise StateError(f"there is no folder {file.parent}", caller())
    return file
