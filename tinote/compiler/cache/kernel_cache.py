"""What earlier processes have left of one kernel on disk, and what this one leaves to later ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from tinote.compiler.cache.codec import Codec, Unencodable
from tinote.compiler.cache.lookup import Dependencies, find_dependencies, lookup_of, store_dependencies
from tinote.compiler.launch.metadata import ExecutableMetadata, Facts, Signature
from tinote.compiler.protocol import ArgumentSpec, Capture, FunctionSource, Lowered
from tinote.compiler.requests import Request
from tinote.config import Config
from tinote.ir.buffers import Buffer
from tinote.runtime import jit
from tinote.runtime.store import Store, digest

__all__ = ["Entry", "KernelCache"]

Fact = TypeVar("Fact")


class Entry(NamedTuple):
    """What is stored of the result of a request; the signature comes with the primal. The machine code lies apart,
    since kernels share it.
    """

    metadata: ExecutableMetadata
    facts: Facts
    signature: Signature | None


class KernelCache:
    """The entries of one kernel for one signature. They lie under what the code depends on: that is found by the first
    `get`, or else by the front end, whose result comes with the first `put`.
    """

    def __init__(self, source: FunctionSource, arguments: Sequence[ArgumentSpec], config: Config, store: Store) -> None:
        self._store = store
        self._lookup = lookup_of(source, arguments, config, jit.machine_name())
        self._dependencies: Dependencies | None = None
        self._is_new = True

    @property
    def captures(self) -> tuple[Capture, ...]:
        """What the code depends on outside of the kernel, once it is found."""
        return () if self._dependencies is None else self._dependencies.captures

    def get(self, request: Request) -> Entry | None:
        """The result of a request that an earlier process has left, if it has."""
        return self.fact(request.name, Entry)

    def put(self, request: Request, entry: Entry, lowered: Lowered | None) -> None:
        """Leave the result of a request to later processes (`put_fact`)."""
        self.put_fact(request.name, entry, Entry, lowered)

    def fact(self, name: str, kind: type[Fact]) -> Fact | None:
        """What an earlier process has left under this name, if it has: a named tuple."""
        if self._is_new:
            self._is_new = False
            for found in find_dependencies(self._lookup, self._store):
                fact = self._read(found, name, kind)
                if fact is not None:
                    self._dependencies = found
                    return fact
        return None if self._dependencies is None else self._read(self._dependencies, name, kind)

    def put_fact(self, name: str, fact: Fact, kind: type[Fact], lowered: Lowered | None) -> None:
        """Leave something to later processes, if what it depends on can be described. `lowered`: what the front end
        made, if it has run.
        """
        if self._dependencies is None and lowered is not None and lowered.reproducible:
            self._dependencies = store_dependencies(self._lookup, lowered.captures, self._store)
        found = self._dependencies
        if found is None:
            return
        try:
            data = Codec(found.buffers, found.sources).encode(fact, kind)
        except Unencodable:
            return
        self._store.put(_key(found, name), json.dumps(data).encode())

    def renew(self, buffers: set[Buffer], *, current: bool) -> None:
        """Memory that belongs to a field may have come since: where not all of `buffers` are known, look anew.
        `current`: whether the captures are still what they were; if not, other code would be found.
        """
        if self._dependencies is not None and not buffers.issubset(self._dependencies.buffers):
            self._dependencies = None
            self._is_new = current

    def _read(self, found: Dependencies, name: str, kind: type[Fact]) -> Fact | None:
        data = self._store.get(_key(found, name))
        if data is None:
            return None
        try:
            return Codec(found.buffers, found.sources).decode(json.loads(data), kind)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None  # well sealed, and not what this version writes


def _key(dependencies: Dependencies, name: str) -> str:
    return digest("request", dependencies.key, name)
