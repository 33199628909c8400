"""The table of side effects: known effects of calls besides returning a value.

    effect_of(math.sin)           Effect.NONE         time.perf_counter     Effect.CLOCK
    effect_of(random.random)      Effect.DRAWS        [].append             Effect.UNKNOWN, and it is in `CHANGING`

A new impure call is a row of `_EFFECTS`: a module, or a function, class or method of one. What is not listed is
`UNKNOWN`: whoever runs a function once takes that for harmless, whoever replays it refuses it.
"""

from __future__ import annotations

import functools
from enum import Enum
from types import ModuleType
from typing import Any


class Effect(Enum):
    """What a call does besides giving a value."""

    NONE = "nothing: it gives the same for the same arguments"
    ADVANCES = "its argument gives something else next time"
    DRAWS = "it gives something else at each call"
    CLOCK = "it gives something else at another time"
    PROCESS = "it depends on what the process or the interpreter has just then, or changes that"
    OUTSIDE = "it reads or writes outside of the program"
    CHANGES = "it changes an object"
    SETTINGS = "it reads, keeps or changes settings of a library"
    UNKNOWN = "what is not known"


def _rows(effect: Effect, names: str, module: str = "") -> dict[str, Effect]:
    return {f"{module}.{name}" if module else name: effect for name in names.split()}


#: By module, and by function, class or method of one (its module's first part, and its own name): the longer name
#: counts.
_EFFECTS: dict[str, Effect] = {
    **_rows(Effect.NONE, "abc cmath collections enum fractions functools itertools math numbers operator types typing"),
    **_rows(Effect.DRAWS, "random secrets uuid numpy.random"),
    **_rows(Effect.CLOCK, "time"),
    **_rows(Effect.PROCESS, "threading os posix nt sys gc"),
    **_rows(Effect.PROCESS, "now today utcnow", "datetime"),
    **_rows(Effect.OUTSIDE, "io _io pathlib genericpath socket select subprocess tempfile shutil glob urllib http"),
    **_rows(Effect.OUTSIDE, "requests logging"),
    # Python's built-ins
    **_rows(Effect.NONE, "abs all any bool bytearray bytes callable chr complex dict divmod enumerate", "builtins"),
    **_rows(Effect.NONE, "filter float frozenset getattr hasattr hash int isinstance issubclass iter len", "builtins"),
    **_rows(Effect.NONE, "list map max memoryview min object ord pow range repr reversed round set slice", "builtins"),
    **_rows(Effect.NONE, "sorted str sum super tuple type zip", "builtins"),
    **_rows(Effect.ADVANCES, "next", "builtins"),
    **_rows(Effect.PROCESS, "globals locals vars exec eval compile __import__", "builtins"),
    **_rows(Effect.OUTSIDE, "input open print breakpoint", "builtins"),
    **_rows(Effect.CHANGES, "setattr delattr", "builtins"),
    # NumPy's
    **_rows(Effect.NONE, "numpy"),
    **_rows(Effect.OUTSIDE, "DataSource dump fromfile fromregex genfromtxt info load loadtxt memmap save", "numpy"),
    **_rows(Effect.OUTSIDE, "savetxt savez savez_compressed show_config show_runtime test tofile", "numpy"),
    **_rows(Effect.SETTINGS, "geterr geterrcall getbufsize get_printoptions seterr seterrcall setbufsize", "numpy"),
    **_rows(Effect.SETTINGS, "set_printoptions ctypeslib f2py ma testing", "numpy"),
}

#: The methods that change one of Python's or NumPy's containers, or a file.
CHANGING = frozenset({
    "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear",
    "add", "update", "setdefault", "sort", "reverse", "rotate", "move_to_end", "subtract", "difference_update",
    "intersection_update", "symmetric_difference_update", "fill", "put", "resize", "itemset", "partition", "setfield",
    "setflags", "byteswap", "write", "writelines", "__init__", "__setitem__", "__delitem__", "__setstate__", "__iadd__",
    "__isub__", "__imul__", "__imatmul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__ilshift__",
    "__irshift__", "__iand__", "__ior__", "__ixor__",
})  # fmt: skip


def effect_of(callee: Any) -> Effect:
    """What a call of this does besides giving a value, by where it is defined."""
    while isinstance(callee, functools.partial):
        callee = callee.func
    name = getattr(callee, "__name__", "")
    for module in _modules(callee, name):
        parts = module.split(".")
        for key in (f"{parts[0]}.{name}", *[".".join(parts[:n]) for n in range(len(parts), 0, -1)]):
            if key in _EFFECTS:
                return _EFFECTS[key]
    return Effect.UNKNOWN


def home_of(callee: Any) -> str:
    """The module that something is defined in: of a method that is not written in Python, the class's that has it."""
    return _modules(callee, getattr(callee, "__name__", ""))[0]


def _modules(callee: Any, name: str) -> list[str]:
    """The module that something is defined in; of a method that is not written in Python, those of the class that has
    it and of all that its owner's class is made of. Of an object that can be called it may be unknown: "".
    """
    module = getattr(callee, "__module__", None)
    if isinstance(module, str):
        return [module]
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, ModuleType):
        return [owner.__name__]
    kind = owner if isinstance(owner, type) else getattr(callee, "__objclass__", type(owner))
    if kind is type(None):
        return [""]
    having = [one for one in kind.__mro__ if name in vars(one)]
    return [one.__module__ for one in (*having, *kind.__mro__)]
