"""The disk cache of one kernel: entries of earlier processes, and those that this one adds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tinote.compiler.cache.codec import Codec, Unencodable
from tinote.compiler.cache.lookup import KernelDependencies, find_dependencies, lookup_of, store_dependencies
from tinote.compiler.captures import Capture
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.signature import ArgumentSpec, Lowered
from tinote.config import Config
from tinote.ir.buffers import Buffer
from tinote.runtime import jit
from tinote.runtime.digest import digest
from tinote.runtime.store import DiskStore

Twins = Mapping[Buffer, Buffer]
_NO_TWINS: Twins = {}
Fact = TypeVar("Fact")


class KernelCache:
    """The entries of one kernel for one signature. They lie under what the code depends on: that is found by the first
    `get`, or else by the front end, whose result comes with the first `put`.
    """

    def __init__(
        self, source: FunctionSource, arguments: Sequence[ArgumentSpec], config: Config, store: DiskStore
    ) -> None:
        self._store = store
        self._lookup = lookup_of(source, arguments, config, jit.machine_name())
        self._dependencies: KernelDependencies | None = None
        self._is_new = True

    @property
    def captures(self) -> tuple[Capture, ...]:
        """What the code depends on outside of the kernel, once it is found."""
        return () if self._dependencies is None else self._dependencies.captures

    def get(self, name: str, kind: type[Fact], twins: Twins = _NO_TWINS) -> Fact | None:
        """What an earlier process has left under this name, if it has: a named tuple. `twins`: what stands for buffers
        with temporary companions.
        """
        if self._is_new:
            self._is_new = False
            for found in find_dependencies(self._lookup, self._store):
                fact = self._read(found, name, kind, twins)
                if fact is not None:
                    self._dependencies = found
                    return fact
        return None if self._dependencies is None else self._read(self._dependencies, name, kind, twins)

    def put(self, name: str, fact: tuple[object, ...], lowered: Lowered | None, twins: Twins = _NO_TWINS) -> None:
        """Leave a named tuple to later processes, if what it depends on can be described. `lowered`: what the front end
        made, if it has run.
        """
        found = self._described(lowered)
        if found is None:
            return
        try:
            data = Codec(_known(found, twins), found.sources).encode(fact, type(fact))
            key = _key(found, name, twins)
        except (Unencodable, ValueError):  # a buffer that is nowhere in what the code depends on
            return
        self._store.put(key, json.dumps(data).encode())

    def key(self, name: str, lowered: Lowered | None, twins: Twins = _NO_TWINS) -> str | None:
        """What stands for the entry that `put` makes of this name, if what it depends on can be described."""
        found = self._described(lowered)
        try:
            return None if found is None else _key(found, name, twins)
        except ValueError:
            return None

    def _described(self, lowered: Lowered | None) -> KernelDependencies | None:
        if self._dependencies is None and lowered is not None and lowered.reproducible:
            self._dependencies = store_dependencies(self._lookup, lowered.captures, self._store)
        return self._dependencies

    def renew(self, buffers: set[Buffer], *, current: bool) -> None:
        """Memory that belongs to a field may have come since: where not all of `buffers` are known, look anew.
        `current`: whether the captures are still what they were; if not, other code would be found.
        """
        if self._dependencies is not None and not buffers.issubset(self._dependencies.buffers):
            self._dependencies = None
            self._is_new = current

    def _read(self, found: KernelDependencies, name: str, kind: type[Fact], twins: Twins) -> Fact | None:
        try:
            data = self._store.get(_key(found, name, twins))
        except ValueError:
            return None
        if data is None:
            return None
        try:
            return Codec(_known(found, twins), found.sources).decode(json.loads(data), kind)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None  # well sealed, and not what this version writes


def _key(dependencies: KernelDependencies, name: str, twins: Twins) -> str:
    """Raises `ValueError` for temporary companions of a buffer that is not known."""
    numbers = sorted(
        [(dependencies.buffers.index(b), twin.adjoint is None, twin.tangent is None) for b, twin in twins.items()]
    )
    return digest("request", dependencies.key, name, *map(str, numbers))


def _known(dependencies: KernelDependencies, twins: Twins) -> tuple[Buffer, ...]:
    """The buffers that both processes know: what the code depends on, then twins with their companions."""
    found = list(dependencies.buffers)
    for buffer in dependencies.buffers if twins else ():
        twin = twins.get(buffer)
        if twin is not None:
            second = None if twin.adjoint is None else twin.adjoint.tangent
            found += [one for one in (twin, twin.adjoint, twin.tangent, second) if one is not None]
            found += [] if twin.adjoint is None else twin.adjoint.planes
    return tuple(dict.fromkeys(found))
