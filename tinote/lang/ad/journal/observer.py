"""Observers of recordings: access rules, the comparison with finite differences, checkpointed loops."""

from __future__ import annotations

from typing import Any

from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.events import Custom, Write
from tinote.lang.index_regions import IndexRegion
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.kernels.kernel import Instance


class Observer:
    """Base class of observers of a journal's operations (`events.py`) and of other memory accesses; every method is a
    no-op.
    """

    #: whether it is notified of every write to memory, not only of those to fields that the reverse sweep reads
    sees_every_write = False
    #: whether it checks launches that cannot be differentiated before the journal refuses them at its end
    checks_before_refusal = False

    def launching(self, instance: Instance, arguments: Arguments) -> Any:
        """A kernel is about to be launched. Returns code to launch in its place, or None."""

    def launched(self) -> None:
        """The launch that was announced has completed, and is recorded."""

    def custom(self, custom: Custom) -> None:
        """A block with a custom VJP has completed."""

    def writing(self, write: Write, *, exempt: bool) -> None:
        """Python is about to write to a field; `exempt`: within a function without a gradient."""

    def sharing(self, buffer: Buffer) -> None:
        """Python makes an array through which any code may write to a field from now on."""

    def overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool) -> None:
        """Elements of a field (None: all) are about to be written; `exempt`: in another context, or within a custom
        block.
        """

    def release(self) -> None:
        """The recording is over: free memory."""
