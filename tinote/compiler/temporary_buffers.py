"""Temporary buffers that replace those of a kernel while a derivative is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tinote.compiler.launch.access_summary import AccessSummary
from tinote.compiler.requests import Request
from tinote.ir.buffers import clone_of
from tinote.ir.nodes import Buffer


class TemporaryBuffers:
    """What stands for buffers whose gradients and tangents a request has for its own time (`ir/redirect.py`)."""

    def __init__(self) -> None:
        self._clones: dict[Request, dict[Buffer, Buffer]] = {}
        self._originals: dict[Buffer, Buffer] = {}  # the other way round
        self._fields: dict[Request, list[Buffer]] = {}

    def forget(self, request: Request) -> None:
        """What stands for the buffers of a request is out of date."""
        self._clones.pop(request, None)
        self._fields.pop(request, None)

    def clones(self, request: Request, accesses: Callable[[], AccessSummary]) -> dict[Buffer, Buffer]:
        """What stands for each of a request's `temporaries` in its code and its facts (`ir/redirect.py`). `accesses`:
        gives what the kernel does to memory. (Held here, it would tie each kernel into a cycle.)
        """
        if not request.temporaries and not (request.reverses and request.directions > 1):
            return {}
        if request.zeroed:
            return self.clones(request.into(frozenset()), accesses)  # it names their gradients
        found = self._clones.get(request)
        if found is None:
            # A launch that saves old values saves those which its gradient, with the same adjoints, will need.
            adjoint = request.reverses or request.records
            tangent, directions = request.has_tangents, request.directions
            made = {
                b: clone_of(b, adjoint=adjoint, tangent=tangent, directions=directions) for b in request.temporaries
            }
            if directions > 1:
                # What has a dual or a gradient of its own, along one direction, has none of several.
                touched = accesses().loaded | accesses().written
                own = [b for b in touched if (b.adjoint if adjoint else b.tangent) is not None and b not in made]
                made |= {b: clone_of(b, adjoint=False, tangent=False, directions=directions) for b in own}
            found = self._clones.setdefault(request, made)
            self._originals.update({clone: buffer for buffer, clone in found.items()})
        return found

    def original(self, buffer: Buffer) -> Buffer:
        """What a buffer of the code is to the kernel itself."""
        return self._originals.get(buffer, buffer)

    def fields(self, request: Request, arrays: Iterable[Buffer], arguments: Iterable[Buffer]) -> list[Buffer]:
        """The fields whose temporary shadows a launch brings along, in the order of its values: those that stand among
        the `arrays` of its code and are none of the kernel's `arguments`.
        """
        found = self._fields.get(request)
        if found is None:
            own, pairs = {*arguments}, [(clone, self.original(clone)) for clone in arrays]
            found = [buffer for clone, buffer in pairs if buffer is not clone and buffer not in own]
            self._fields[request] = found
        return found
