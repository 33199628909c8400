"""Requests: the versions of a kernel that can be compiled, and the default types of literals in a session."""

from __future__ import annotations

from enum import Enum
from typing import Any
from weakref import WeakValueDictionary, ref

from tinote.config import Config
from tinote.ir.buffers import Buffer
from tinote.ir.primitives import Defaults
from tinote.ir.types import scalar_named


class Derivative(Enum):
    """What is computed: a kernel's values, the adjoints of its inputs, tangents along with the values, or the tangents
    of adjoints.
    """

    NONE = "primal"
    REVERSE = "gradient"
    FORWARD = "tangent"
    FORWARD_OVER_REVERSE = "second"


class Checks(Enum):
    """What a launch checks on top: the access rules of a tape, or that every number is finite, and stops at the first
    one that is not.
    """

    NONE = ""
    ACCESS_RULES = "checked"
    FINITE = "finite"


#: What derivatives are called that are taken with respect to the arguments too.
_WITH_ARGUMENTS = {
    Derivative.REVERSE: "pullback",
    Derivative.FORWARD: "pushforward",
    Derivative.FORWARD_OVER_REVERSE: "second pullback",
}


_NONE: frozenset[Buffer] = frozenset()


class Request:
    """One of the programs that can be compiled of a kernel; `pipeline.steps_for` composes its passes.

    `arguments`: the kernel's float arguments and results are among what is differentiated. A pullback is launched with
    the adjoints of the results after the arguments, and returns the adjoints of the arguments; a pushforward is
    launched with the tangents of the arguments after them, and returns the results and then their tangents. `records`:
    the launch saves the old values that its gradient needs. `shares`: it also saves what both would compute, or the
    gradient finds that (`autodiff/shared_values.py`). `temporaries`: fields and arrays of the kernel that have no
    gradient (no dual) of their own, and get one from whoever launches. `directions`: how many tangents, or adjoints,
    each value has; for several, all duals and gradients are temporary, and each float argument and result of a
    pushforward has as many tangents, one after the other. `zeroed`: the gradients, as the code knows them, that hold
    zeros when the launch begins (`passes/updates/store_first.py`). Of these, `name` is made ("gradient", "recording
    pushforward"), under which code is kept on disk, whether it `reverses` a kernel, and whether it `has_tangents`.

    There is one object for each combination: code is looked up by identity, at each launch of a gradient. Raises
    `ValueError` for a combination without meaning.
    """

    __slots__ = (
        "__weakref__",
        "_latest",
        "_unshared",
        "_with_arguments",
        "arguments",
        "checks",
        "derivative",
        "directions",
        "has_tangents",
        "name",
        "records",
        "reverses",
        "shares",
        "temporaries",
        "zeroed",
    )
    _with_arguments: Request | None
    _unshared: Request | None
    _latest: ref[Request] | None  # of those with temporaries

    def __new__(
        cls,
        derivative: Derivative = Derivative.NONE,
        *,
        arguments: bool = False,
        records: bool = False,
        shares: bool = False,
        checks: Checks = Checks.NONE,
        temporaries: frozenset[Buffer] = _NONE,
        directions: int = 1,
        zeroed: frozenset[Buffer] = _NONE,
    ) -> Request:
        self = super().__new__(cls)
        self.temporaries = temporaries
        self.zeroed = zeroed
        self.directions = directions
        self._with_arguments = self._unshared = None
        self._latest = None
        self.derivative = derivative
        self.arguments = arguments
        self.records = records
        self.shares = shares
        self.checks = checks
        self.reverses = derivative in (Derivative.REVERSE, Derivative.FORWARD_OVER_REVERSE)
        self.has_tangents = derivative in (Derivative.FORWARD, Derivative.FORWARD_OVER_REVERSE)
        if arguments and derivative is Derivative.NONE:
            raise ValueError("nothing is differentiated with respect to the arguments")
        if shares and (self.has_tangents or not (records or self.reverses)):
            raise ValueError("a launch that records shares its work with the gradient, and the gradient with that")
        if records and self.reverses:
            raise ValueError("the launch itself records, not its gradient")
        if checks is Checks.ACCESS_RULES and (records or derivative is not Derivative.NONE):
            raise ValueError("the access rules are about the launch itself")
        if directions != 1 and derivative not in (Derivative.FORWARD, Derivative.REVERSE):
            raise ValueError("only forward mode and reverse mode have directions")
        if directions != 1 and self.reverses and (arguments or shares):
            raise ValueError("adjoints along several directions are those of memory alone")
        if zeroed and derivative is not Derivative.REVERSE:
            raise ValueError("only the launch of a gradient adds to gradients that hold zeros")
        kind = derivative.value
        if arguments:
            kind = _WITH_ARGUMENTS.get(derivative, kind)
        if directions != 1:
            kind = f"{kind} along {directions} directions"
        kinds = {"sharing": shares, "recording": records, checks.value: checks.value}
        prefixes = [word for word, applies in kinds.items() if applies]
        begun = [f"into {', '.join(sorted([buffer.name for buffer in zeroed]))}"] if zeroed else []
        self.name = " ".join([*prefixes, *([] if prefixes and derivative is Derivative.NONE else [kind]), *begun])
        key = derivative, arguments, records, shares, checks, directions
        if temporaries or zeroed:
            return _known_with_temporaries.setdefault((*key, temporaries, zeroed), self)
        return _known.setdefault(key, self)

    def with_temporaries(self, temporaries: frozenset[Buffer]) -> Request:
        """The same with temporary gradients and duals."""
        found = None if self._latest is None else self._latest()
        if found is None or found.temporaries != temporaries:
            found = self._with(temporaries=temporaries)
            self._latest = ref(found)
        return found

    def into(self, zeroed: frozenset[Buffer]) -> Request:
        """The same with gradients that hold zeros when it is launched."""
        return self._with(zeroed=zeroed)

    @property
    def unshared(self) -> Request:
        """The same without work that the launch and its gradient share."""
        found = self._unshared
        if found is None:
            found = self._unshared = self._with(shares=False)
        return found

    @property
    def with_arguments(self) -> Request:
        """The same derivative with respect to the arguments too."""
        found = self._with_arguments
        if found is None:
            found = self._with_arguments = self._with(arguments=True)
        return found

    def _with(self, **changes: Any) -> Request:
        """The same except for some of the properties."""
        names = ("arguments", "records", "shares", "checks", "temporaries", "directions", "zeroed")
        return Request(self.derivative, **{name: getattr(self, name) for name in names} | changes)

    def __repr__(self) -> str:
        return f"<request: {self.name}>"


_known: dict[tuple[Derivative, bool, bool, bool, Checks, int], Request] = {}
#: Those that name buffers, which are fields' memory, last as long as anybody has code for them.
_known_with_temporaries: WeakValueDictionary[
    tuple[Derivative, bool, bool, bool, Checks, int, frozenset[Buffer], frozenset[Buffer]], Request
] = WeakValueDictionary()

PRIMAL = Request()
GRADIENT = Request(Derivative.REVERSE)
#: A launch that saves what its gradient would compute too, and that gradient.
SHARING = Request(records=True, shares=True)
SHARED_GRADIENT = Request(Derivative.REVERSE, shares=True)
TANGENT = Request(Derivative.FORWARD)


def defaults_of(config: Config) -> Defaults:
    """The types of literals and of `float` and `int`."""
    return Defaults(scalar_named(config.default_fp), scalar_named(config.default_ip))
