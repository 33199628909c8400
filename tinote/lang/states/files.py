"""One state in a file: NumPy's `.npz`, with `state.json` for all that is no array.

The file is complete before it takes its name: a process that is killed leaves the former one.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tinote.errors import StateError
from tinote.lang.states.records import Saved, arrays_in
from tinote.source import caller

_FACTS = "state.json"
#: The version of the format. A reader refuses a newer one.
FORMAT = 1


def write_file(path: Path, state: Mapping[str, Saved], facts: dict[str, Any]) -> None:
    """Write a state, and what is known `facts` of it."""
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        arrays = [one for name, found in state.items() for one in arrays_in(name, found)]
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        values = {name: without_arrays(found) for name, found in state.items()}
        held = {**facts, "arrays": [name for name, _ in arrays], "values": values}
        archive.writestr(_FACTS, json.dumps({"tinote_state": FORMAT, **held}))


@contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file that takes its name when all is written, and replaces what has the name; `durable`: when it is on disk."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_file(path: Path) -> tuple[dict[str, Saved], dict[str, Any]]:
    """A state and the facts that were written. Raises `StateError` for what is no such file, or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            if _FACTS not in archive.namelist():
                raise StateError(f"{path} was not written by ti.save", caller(), hint="numpy.load reads arrays")
            facts = json.loads(archive.read(_FACTS))
            check_format(path, facts.pop("tinote_state"))
            arrays = {}
            for name in facts.pop("arrays"):
                with archive.open(f"{name}.npy") as entry:
                    arrays[name] = np.lib.format.read_array(entry, allow_pickle=False)
            return with_arrays(facts.pop("values"), arrays), facts
    except FileNotFoundError:
        raise StateError(f"there is no {path}", caller()) from None
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, OSError) as error:
        raise StateError(f"{path} is damaged, or no file of ti.save: {error}", caller()) from None


def check_format(path: Path, held: int) -> None:
    """Raise `StateError` for a format that is newer than this version's."""
    if held > FORMAT:
        message = f"{path} is of format {held}, which a later version wrote; this one reads up to {FORMAT}"
        raise StateError(message, caller())


def without_arrays(found: Saved) -> Any:
    """What is saved, with None in place of each array."""
    if isinstance(found, np.ndarray):
        return None
    return {member: without_arrays(value) for member, value in found.items()} if isinstance(found, dict) else found


def with_arrays(values: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str = "") -> dict[str, Saved]:
    """What was saved, from what `without_arrays` gave and the arrays by their full names."""

    def whole(name: str, value: Any) -> Saved:
        if name in arrays:
            return arrays[name]
        return with_arrays(value, arrays, f"{name}.") if isinstance(value, dict) else value

    return {name: whole(f"{prefix}{name}", value) for name, value in values.items()}
