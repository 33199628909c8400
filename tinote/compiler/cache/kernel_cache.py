"""The disk cache of one kernel: entries of earlier processes, and those that this one adds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tinote.compiler.cache.codec import Codec, Unencodable
from tinote.compiler.cache.describe import Describer, Undescribable
from tinote.compiler.cache.lookup import KernelDependencies, find_dependencies, lookup_of, store_dependencies
from tinote.compiler.captures import Capture
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.signature import ArgumentSpec, Lowered
from tinote.config import Config
from tinote.ir.buffers import Buffer
from tinote.runtime import jit
from tinote.runtime.digest import digest
from tinote.runtime.store import DiskStore

Clones = Mapping[Buffer, Buffer]
_NO_CLONES: Clones = {}
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

    def get(self, name: str, kind: type[Fact], clones: Clones = _NO_CLONES) -> Fact | None:
        """What an earlier process has left under this name, if it has: a named tuple. `clones`: what stands for buffers
        with temporary shadows.
        """
        if self._is_new:
            self._is_new = False
            for found in find_dependencies(self._lookup, self._store):
                fact = self._read(found, name, kind, clones)
                if fact is not None:
                    self._dependencies = found
                    return fact
        return None if self._dependencies is None else self._read(self._dependencies, name, kind, clones)

    def put(self, name: str, fact: tuple[object, ...], lowered: Lowered | None, clones: Clones = _NO_CLONES) -> None:
        """Leave a named tuple to later processes, if what it depends on can be described. `lowered`: what the front end
        made, if it has run.
        """
        found = self._described(lowered)
        if found is None:
            return
        try:
            data = Codec(_known(found, clones), found.sources).encode(fact, type(fact))
            key = _key(found, name, clones)
        except (Unencodable, ValueError):  # a buffer that is nowhere in what the code depends on
            return
        self._store.put(key, json.dumps(data).encode())

    def key(self, name: str, lowered: Lowered | None, clones: Clones = _NO_CLONES) -> str | None:
        """What stands for the entry that `put` makes of this name, if what it depends on can be described."""
        found = self._described(lowered)
        try:
            return None if found is None else _key(found, name, clones)
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

    def _read(self, found: KernelDependencies, name: str, kind: type[Fact], clones: Clones) -> Fact | None:
        try:
            data = self._store.get(_key(found, name, clones))
        except ValueError:
            return None
        if data is None:
            return None
        try:
            return Codec(_known(found, clones), found.sources).decode(json.loads(data), kind)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None  # well sealed, and not what this version writes


class PushedCache(KernelCache):
    """The entries of the pushforward of a kernel, whose own are in `of`: they lie under what the kernel depends on, and
    under what its memory, and that of tangents, is like now. `lowered`: of the kernel, if its front end has run.
    """

    def __init__(self, of: KernelCache, lowered: Lowered | None, memory_tangents: Mapping[Buffer, Buffer]) -> None:
        self._store = of._store
        self._is_new = False
        self._of = of
        self._tangents = memory_tangents
        self._dependencies = self._derived(lowered)

    def renew(self, buffers: set[Buffer], *, current: bool) -> None:
        if self._dependencies is not None and not buffers.issubset(self._dependencies.buffers):
            self._dependencies = self._derived(None)

    def _derived(self, lowered: Lowered | None) -> KernelDependencies | None:
        known = self._of._described(lowered)
        if known is None:
            return None
        describer = Describer([])
        try:
            described = [describer.buffer(buffer) for buffer in known.buffers]
            described += [describer.buffer(one) for pair in self._tangents.items() for one in pair]
        except Undescribable:
            return None
        key = digest("pushforward", known.key, repr(described))
        return KernelDependencies(key, known.captures, tuple(describer.buffers), known.sources)


def _key(dependencies: KernelDependencies, name: str, clones: Clones) -> str:
    """Raises `ValueError` for temporary shadows of a buffer that is not known."""
    numbers = sorted(
        [(dependencies.buffers.index(b), clone.adjoint is None, clone.tangent is None) for b, clone in clones.items()]
    )
    return digest("request", dependencies.key, name, *map(str, numbers))


def _known(dependencies: KernelDependencies, clones: Clones) -> tuple[Buffer, ...]:
    """The buffers that both processes know: what the code depends on, then clones with their shadows."""
    found = list(dependencies.buffers)
    for buffer in dependencies.buffers if clones else ():
        clone = clones.get(buffer)
        if clone is not None:
            second = None if clone.adjoint is None else clone.adjoint.tangent
            found += [one for one in (clone, clone.adjoint, clone.tangent, second) if one is not None]
            found += [] if clone.adjoint is None else clone.adjoint.planes
    return tuple(dict.fromkeys(found))
