"""One run of a function that was sent, in the process that runs it."""

from __future__ import annotations

import importlib
import pickle
import random
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import SerializationError, SweepError, TinoteError
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.structs import Struct, StructField
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import session
from tinote.lang.shipping.package import Program, unpack
from tinote.lang.sweeps.extras import differing, versions
from tinote.lang.sweeps.trees import Tree
from tinote.source import caller

#: Programs that a process keeps.
_MOST_PROGRAMS = 4


class Payload(NamedTuple):
    """A program on its way. `versions`: what the process that sends it has."""

    token: str
    versions: dict[str, str]
    data: bytes


class Call(NamedTuple):
    """One run. `contents`: what fields that were named when the program was sent hold at its start; `tabled`: whether
    what it returns is a row of a table.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seed: int
    contents: tuple[Any, ...] = ()
    tabled: bool = True


class Part(NamedTuple):
    """Some scenes of an ensemble, run one after the other and reduced. `scenes`: the arguments and the seed of each;
    the program is a pair, of the function and of what combines two of its results.
    """

    args: tuple[Any, ...]
    scenes: tuple[tuple[dict[str, Any], int], ...]
    contents: tuple[Any, ...]


class Reduced(NamedTuple):
    """What became of a part: the losses of its scenes, and all results combined; or the arguments of the scene that has
    failed, with its message, and with where it was raised.
    """

    losses: tuple[Any, ...]
    value: Any
    failed: dict[str, Any] | None = None
    error: str = ""
    details: str = ""


class Outcome(NamedTuple):
    """What became of a run. `error`: the message, "" if there was none; `details`: with where it was raised."""

    result: Any
    seconds: float
    error: str = ""
    details: str = ""


_PLAIN = frozenset({bool, bytes, complex, float, int, str, type(None)})


def dumped(call: Call | Part) -> bytes:
    """A call on its way. What its arguments are of may be defined in a cell or a script, and goes along then. Raises
    `SerializationError`.
    """
    if isinstance(call, Call) and not call.args and all(type(value) in _PLAIN for value in call.kwargs.values()):
        return pickle.dumps(call, protocol=5)
    try:
        return importlib.import_module("cloudpickle").dumps(call, protocol=5)
    except TinoteError:
        raise
    except Exception as error:
        named = call.kwargs if isinstance(call, Call) else call.args
        raise SerializationError(
            f"the arguments {named} cannot be sent to another process: {error}", caller()
        ) from None


def loaded(data: bytes) -> Any:
    """What `dumped` was given."""
    return pickle.loads(data)


_lock = threading.Lock()
_programs: OrderedDict[str, Program] = OrderedDict()
#: the types that numbers had by default in the last run
_defaults: tuple[str, str] | None = None


def run(payload: Payload, call: Call, threads: int) -> Outcome:
    """A run that depends on nothing but the program and the call: no two at once in a process, each from what fields
    held when they were sent. Raises `SweepError` where the program cannot be used here.
    """
    with _ready(payload) as program:
        return _run_from_start(program, program.function, call, threads)


def reduce(payload: Payload, part: Part, threads: int) -> Reduced:
    """The scenes of a part as `run` would run them, reduced as a tree. Raises `SweepError`."""
    with _ready(payload) as program:
        function, combine = program.function
        tree, losses = Tree(len(part.scenes), combine), []
        for number, (kwargs, seed) in enumerate(part.scenes):
            call = Call(part.args, kwargs, seed, part.contents, tabled=False)
            found = _run_from_start(program, function, call, threads)
            if found.error:
                return Reduced((), None, kwargs, found.error, found.details)
            losses.append(found.result[0])
            tree.add(number, found.result)
        return Reduced(tuple(losses), tree.result)


def merge(payload: Payload, first: Reduced, second: Reduced) -> Reduced:
    """Two neighbouring parts as one."""
    for one in (first, second):
        if one.failed is not None:
            return one
    with _ready(payload) as program:
        _, combine = program.function
        return Reduced(first.losses + second.losses, combine(first.value, second.value))


@contextmanager
def _ready(payload: Payload) -> Iterator[Program]:
    """The program, for the one thread of this process that may use it now; options are as before in the end."""
    with _lock:
        program = _programs.get(payload.token)
        if program is None:
            program = _programs[payload.token] = _received(payload)
            while len(_programs) > _MOST_PROGRAMS:
                _programs.popitem(last=False)
        before = session.config, session.launches
        try:
            yield program
        finally:
            session.config, session.launches = before


def _run_from_start(program: Program, function: Any, call: Call, threads: int) -> Outcome:
    _configure(program.config._replace(num_threads=threads, random_seed=call.seed))
    session.launches = 0
    program.restore()
    return _outcome(program, function, call)


def _received(payload: Payload) -> Program:
    differ = differing(payload.versions, versions())
    if differ:
        raise SweepError(f"a worker cannot run what this process sends: it has {differ}")
    return unpack(payload.data)


def _configure(config: Any) -> None:
    """Options of a program; its own kernels have no others, and those of modules look again where types differ."""
    global _defaults
    defaults = config.default_fp, config.default_ip
    if defaults != _defaults:
        session.forget_instances()
        _defaults = defaults
    session.config = config


def _outcome(program: Program, function: Any, call: Call) -> Outcome:
    random.seed(call.seed)
    np.random.seed(call.seed & 0xFFFFFFFF)
    started = time.perf_counter()
    try:
        for field, content in zip(program.fields, call.contents, strict=True):
            field.from_numpy(content)
        result = function(*call.args, **call.kwargs)
        found = tabled(result) if call.tabled else result
    except (Exception, SystemExit) as error:
        seconds = time.perf_counter() - started
        message = str(error).strip() if isinstance(error, TinoteError) else f"{type(error).__name__}: {error}"
        return Outcome(None, seconds, message or type(error).__name__, traceback.format_exc())
    return Outcome(found, time.perf_counter() - started)


def tabled(result: Any) -> dict[str, np.ndarray[Any, Any]]:
    """What a function returns as arrays by name. Raises `SweepError` for what is no number and no array."""
    if result is None:
        return {}
    if isinstance(result, Struct):
        result = result.to_dict()
    elif isinstance(result, StructField):
        result = result.to_numpy()
    elif isinstance(result, tuple):
        names = getattr(result, "_fields", [f"result_{n}" for n in range(len(result))])
        result = dict(zip(names, result, strict=True))
    if isinstance(result, Mapping):
        return {str(name): _array(str(name), value) for name, value in result.items()}
    return {"result": _array("result", result)}


def _array(name: str, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, Field | Matrix):
        value = value.to_numpy()
    elif type(value) is Traced:
        value = value.value
    found = np.array(value)
    if found.dtype.kind not in "biufc":
        raise SweepError(
            f"the result '{name}' is {type(value).__name__}, which is no number and no array of numbers: {value!r:.80}"
        )
    return found
