"""The table of a kernel's instances: each lives as long as the objects that it was compiled for.

An instance refers to its template arguments, and to what it captured: a kernel that kept it would keep these, too. So
one that is made for a field, or for an object that has fields, is kept by such a field, and the kernel's reference to
it is a weak one. When neither the kernel nor anybody else uses the field any more, both go together.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tinote.compiler.pysource.names import CaptureKind
from tinote.compiler.signature import TemplateArgument
from tinote.lang.data.fields import Field
from tinote.lang.kernels.instances import Instance
from tinote.lang.session.state import session

#: Older versions of instances that are kept, in case what they captured becomes what it was.
_RETIRED_KEPT = 8


class InstanceTable(dict[tuple[Any, ...], Any]):
    """The instances by their keys: themselves, or, with `by_template`, weak references. Older versions of them, whose
    captures have changed, are apart.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, *, by_template: bool = False) -> None:
        super().__init__()
        self._by_template = by_template
        self._kept: set[Instance] = set()  # those that no field keeps
        self._retired: list[tuple[tuple[Any, ...], Callable[[], Instance | None]]] = []  # the newest first

    def __eq__(self, other: object) -> bool:
        return self is other

    def find(self, key: tuple[Any, ...]) -> Instance | None:
        """The instance with this key."""
        found = self.get(key)
        return found() if self._by_template and found is not None else found

    def alive(self) -> list[Instance]:
        """The instances, the newest last."""
        found = [self.find(key) for key in list(self)]
        return [one for one in found if one is not None]

    def retired(self) -> list[Instance]:
        """Older versions, the newest last."""
        found = [known() for _, known in reversed(self._retired)]
        return [one for one in found if one is not None]

    def older(self, key: tuple[Any, ...]) -> Instance | None:
        """An older version that is current again."""
        found = [known() for other, known in self._retired if other == key]
        return next((one for one in found if one is not None and one.specialisation.is_current()), None)

    def launched_before(self, instance: Instance) -> Instance | None:
        """An older version of an instance that was launched."""
        key = next((key for key in list(self) if self.find(key) is instance), None)
        found = [known() for other, known in self._retired if other == key]
        return next((one for one in found if one is not None and one.calls), None)

    def before_newest(self) -> Instance | None:
        """What the newest instance was before what it captured changed."""
        newest = next(reversed(self), None)
        found = [known() for key, known in self._retired if key == newest]
        return next((one for one in found if one is not None), None)

    def put(self, key: tuple[Any, ...], instance: Instance, most: int) -> None:
        """An instance that was made, or is current again. One that had its key is an older version from now on; at
        `most` of them, the oldest goes.
        """
        old = self.find(key)
        others = [one for one in self._retired if one[1]() not in (None, instance, old)]
        if old is not None:
            self._keep(old, _changed_fields(old))
            others.insert(0, (key, weakref.ref(old)))
        elif len(self) >= most:
            oldest = next(iter(self.copy()))  # a copy: another thread may add one meanwhile
            gone = self.find(oldest)
            self.pop(oldest, None)
            if gone is not None:
                self._release(gone)
        for _, known in others[_RETIRED_KEPT:]:
            self._release(known())
        self._retired = others[:_RETIRED_KEPT]
        if self._by_template:
            self._keep(instance, _own_fields(instance))
            self[key] = weakref.ref(instance, _Removal(self, key))
        else:
            self._release(instance)
            self[key] = instance

    def _keep(self, instance: Instance, fields: Iterable[Field]) -> None:
        """By the field that keeps the fewest: one that others have as well would keep all of them."""
        self._release(instance)
        owner = min(fields, key=lambda field: len(_kept_by(field).get(self, ())), default=None)
        if owner is None:
            self._kept.add(instance)
        else:
            instance.owner = weakref.ref(owner)
            _kept_by(owner).setdefault(self, set()).add(instance)

    def _release(self, instance: Instance | None) -> None:
        if instance is None:
            return
        owner = None if instance.owner is None else instance.owner()
        (self._kept if owner is None else _kept_by(owner).get(self, set())).discard(instance)
        instance.owner = None


class _Removal:
    """What a table does when an instance has gone."""

    __slots__ = ("key", "table")

    def __init__(self, table: InstanceTable, key: tuple[Any, ...]) -> None:
        self.table = weakref.ref(table)
        self.key = key

    def __call__(self, gone: weakref.ref[Instance]) -> None:
        table = self.table()
        if table is not None and table.get(self.key) is gone:
            del table[self.key]


def _kept_by(field: Field) -> weakref.WeakKeyDictionary[InstanceTable, set[Instance]]:
    """The instances that a field keeps, by the tables that they are in; with these, they go, too."""
    if field._instances is None:
        field._instances = weakref.WeakKeyDictionary()
    return field._instances


def _own_fields(instance: Instance) -> list[Field]:
    """The fields that an instance has by its template arguments: these themselves, and what is found in them."""
    arguments = [one.value for one in instance.specialisation.arguments if isinstance(one, TemplateArgument)]
    captures = instance.specialisation.captures
    named = {id(leaf) for one in captures if one.kind in _BY_NAME for leaf in _leaves(one.value)}
    if all(isinstance(one, int | float | str) for one in arguments):
        return []
    own = [leaf for one in arguments for leaf in _leaves(one)]
    return list({id(one): one for one in (*own, *_touched(instance)) if id(one) not in named or one in own}.values())


def _changed_fields(instance: Instance) -> list[Field]:
    """The fields that an older version captured and a newer one has not."""
    changed = [one for one in instance.specialisation.captures if not one.unchanged()]
    return [leaf for one in changed for leaf in _leaves(one.value)] or _own_fields(instance)


_BY_NAME = (CaptureKind.NAME, CaptureKind.CELL)


def _leaves(value: Any) -> list[Field]:
    if isinstance(value, Field):
        return [value]
    return value._leaves() if hasattr(type(value), "_leaves") else []


def _touched(instance: Instance) -> list[Field]:
    touched = instance.specialisation.accesses()
    buffers = touched.loaded | touched.written
    return [field for field in list(session.fields) if field.__dict__.get("buffer") in buffers]
