"""A program: blocks of memory, codes of kernels, and the operations on them, as a tree of control-flow paths.

A path is a list of operations without a choice. It ends with an `End`, or with a choice by a register, which two
further paths follow; where not both sides have been met yet, one of them is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tinote.program import operations as ops


@dataclass(eq=False)
class Path:
    """`steps`: its operations; `branch`: the choice at its end, if it has one; `sides`: what follows."""

    steps: list[ops.Operation] = field(default_factory=list[ops.Operation])
    branch: ops.Branch | None = None
    sides: dict[bool, Path] = field(default_factory=dict[bool, "Path"])

    def all(self) -> list[Path]:
        """This path, and all that follow it."""
        found: list[Path] = []
        left: list[Path] = [self]
        while left:
            path = left.pop()
            found.append(path)
            left += path.sides.values()
        return found

    @property
    def operations(self) -> list[ops.Operation]:
        """The operations of this path and all that follow it."""
        return [one for path in self.all() for one in path.steps]

    def unseen(self) -> list[bool] | None:
        """The decisions that lead to a side that no call took; None where there is none."""
        if self.branch is None:
            return None
        for taken in (True, False):
            if taken not in self.sides:
                return [taken]
        for taken, side in self.sides.items():
            further = side.unseen()
            if further is not None:
                return [taken, *further]
        return None


@dataclass(eq=False)
class Program:
    """`inputs`: the registers that are set before it runs: numbers among its arguments, then Python's variables."""

    blocks: list[ops.Block] = field(default_factory=list[ops.Block])
    codes: list[ops.Code] = field(default_factory=list[ops.Code])
    inputs: list[ops.Register] = field(default_factory=list[ops.Register])
    root: Path = field(default_factory=Path)

    def copy(self) -> Program:
        """The same, which stays as it is when the first path of this one gets other steps."""
        return Program(list(self.blocks), list(self.codes), self.inputs, replace(self.root))

    def restore(self, earlier: Program) -> None:
        """Be as `earlier` again. What has been added since is at the end."""
        self.blocks[: len(earlier.blocks)] = earlier.blocks
        self.codes[: len(earlier.codes)] = earlier.codes
        self.root = earlier.root

    @property
    def operations(self) -> list[ops.Operation]:
        """The operations of all paths."""
        return self.root.operations

    @property
    def written(self) -> set[int]:
        """The blocks that it may write to."""
        return set[int]().union(*[ops.written_by(self.codes, one) for one in self.operations])

    @property
    def own_bytes(self) -> int:
        """The bytes of its own memory, without the session's and inputs."""
        return sum([block.nbytes for block in self.blocks if block.kind in ("scratch", "data")])
