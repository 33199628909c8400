"""Guards: the conditions under which a replay is valid. Nothing that the function depends on has changed, and the
gradients that it clears and computes still belong to the same owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinote.lang.capture.dependencies import Dependencies
from tinote.lang.kernels.kernel import is_current
from tinote.lang.session.owners import own_gradients, owner_of
from tinote.lang.session.state import OutsideWatcher, may_replay, session
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.runtime.memory import Memory
from tinote.runtime.owner import present_owner


class Guards:
    """The guards of a captured step, which hold when they are made. `instances`: the kernels that are launched, each
    with its key and its instance; `memories`: the blocks of the session that the program uses; `clears`: whether it may
    clear all gradients; `owns`: whether gradients that it uses must keep their owners.
    """

    def __init__(
        self,
        plan: Program,
        dependencies: Dependencies,
        instances: list[tuple[Any, Any, Any]],
        memories: Iterable[Memory | None],
        *,
        clears: bool = True,
        owns: bool = True,
    ) -> None:
        self.dependencies = dependencies
        self.instances = instances
        #: looked up once: each replay asks
        self._runs = [(kernel.runs, key, instance) for kernel, key, instance in instances]
        self.memories = [memory for memory in memories if memory is not None]
        self._further = dependencies.add_instances([instance for _, _, instance in instances])
        self.generation = session.generation
        used = {id(memory) for memory in self.memories}
        gradients = [f.grad for f in session.fields if f.has_grad]
        touched = [grad.buffer for grad in gradients if id(grad.memory.whole) in used]
        self._owners = [(buffer, owner_of(buffer)) for buffer in touched]
        #: a tape in it clears this owner's gradients
        self._cleared = own_gradients() if clears and _clears_fields(plan) else None
        self._all = _all_gradients() if self._cleared is not None else None
        #: whose gradients it uses, if it uses any
        self.owner = present_owner() if owns and (self._owners or self._cleared is not None) else None
        self._known = session.gradients  # another object when a gradient has come, gone, or changed its owner

    @property
    def are_owned(self) -> bool:
        """Whether all relevant gradients still have their owners, so that none has to be claimed."""
        if self.owner is None:
            return True
        if present_owner() is not self.owner:
            return False
        is_known = session.gradients is self._known  # else fields or owners have come or gone since
        if is_known and not session.has_owners:
            return True
        own = None if self._cleared is None else own_gradients()
        if is_known and own is self._cleared:
            return True
        if any(owner_of(buffer) is not owner for buffer, owner in self._owners):
            return False
        if own is not None and self._cleared is not None and set(own.values()) != set(self._cleared.values()):
            return False
        self._known, self._cleared = session.gradients, own
        return True

    def hold(self, *watchers: OutsideWatcher) -> bool:
        """Whether a replay is valid. `watchers`: the recordings that know of it."""
        if session.generation != self.generation:
            return False
        if self.owner is not None:
            is_alone = session.gradients is self._known and not session.has_owners  # mostly; then few questions remain
            if not (present_owner() is self.owner if is_alone else self.are_owned):
                return False
        open_watchers = session.watchers
        if open_watchers and open_watchers != [*watchers] and not may_replay(self.memories, *watchers):
            return False
        if self.dependencies.changed() is not None:
            return False
        for runs, key, instance in self._runs:
            if not runs(key, instance):
                return False
        return not self._further or all(map(is_current, self._further))

    def broken(self) -> str | None:
        """A description of a permanent change."""
        if session.generation != self.generation:
            return "fields that it uses are gone"
        changed = self.dependencies.change()
        if changed is not None:
            return changed
        for kernel, key, instance in self.instances:
            if not (kernel.runs(key, instance) and is_current(instance)):
                return f"the kernel '{instance.kernel_name}', or what it captures, has changed since"
        if self._all is not None and _all_gradients() != self._all:
            return "fields with gradients have come or gone, which a tape sets to zero"
        return None


def _all_gradients() -> set[Memory]:
    return {f.grad.memory for f in session.fields if f.has_grad and not f.stands_in}


def _clears_fields(plan: Program) -> bool:
    """Whether memory of fields is set to zero as a whole."""
    return any(type(step) is ops.Clear and plan.blocks[step.block].kind == "field" for step in plan.operations)
