"""The vocabulary of access-rule checks: the rules, the kinds of accesses, and what a checked launch counts.

`autodiff/access_rules.py` says what the rules mean, `autodiff/instrument.py` adds the checks to functions. Code that
only reads the results needs neither.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from tinote.ir.buffers import Buffer
from tinote.source import Span

#: In words, as messages say them.
RULES = {
    1: "access rule 1: an element that was read is not changed afterwards",
    2: "access rule 2: from the second write on, an element only takes `+=`",
}


class Kind(Enum):
    """What an access does to an element."""

    READ = "read"
    STORE = "store"
    ADD = "add"
    TAKE = "take"  # an atomic addition whose old value is used
    COMBINE = "combine"  # an atomic operation that is not an addition

    @property
    def changes(self) -> bool:
        return self is not Kind.READ

    @property
    def does_both(self) -> bool:
        """Whether it both reads and changes the element."""
        return self in (Kind.TAKE, Kind.COMBINE)

    def rewrites(self, buffer: Buffer) -> bool:
        """Whether it breaks rule 2 if the element was written before."""
        return buffer.adjoint is not None and self in (Kind.STORE, Kind.COMBINE)


class AccessSite(NamedTuple):
    """One access in a function, with its place in the source. `buffer`: the memory as the code knows it."""

    kind: Kind
    buffer: Buffer
    span: Span


class Word(IntEnum):
    """What a shadow holds of an element, a u32 each: the code of the first read since the last write (0: none), that
    of the last write (0: none) and its iteration; of the first violation in this launch, the code of the access that
    breaks a rule (0: none) and that of the earlier one.
    """

    READ = 0
    WRITE = 1
    ITERATION = 2
    LATER = 3
    EARLIER = 4


class Ledger(IntEnum):
    """What the ledger of a launch holds, a u32 each: the code of its first site, how many iterations were numbered, how
    many violations were noted.
    """

    FIRST_CODE = 0
    ITERATIONS = 1
    VIOLATIONS = 2


class CheckedAccesses(NamedTuple):
    """What a launch that checks its accesses is given. `shadows`: pairs of a buffer and its shadow, of the same shape
    and with one more dimension of each element, of length `len(Word)`. `ledger`: `len(Ledger)` numbers. All of these
    are arrays, bound at each launch. `sites`: the accesses, in the order of their codes.
    """

    shadows: tuple[tuple[Buffer, Buffer], ...]
    ledger: Buffer
    sites: tuple[AccessSite, ...]
