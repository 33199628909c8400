"""One run of a function that was sent, in the process that runs it."""

from __future__ import annotations

import inspect
import pickle
import random
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import SerializationError, SweepError, TinoteError, located_text
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.nests import leaves
from tinote.lang.data.structs import Struct, StructField
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import session
from tinote.lang.shipping.package import UnpackedProgram, pack_arguments, unpack, unpack_arguments
from tinote.lang.shipping.references import PLAIN
from tinote.lang.sweeps.extras import differing, versions
from tinote.lang.sweeps.trees import Tree
from tinote.source import NOWHERE, Span, caller

#: Programs that a process keeps.
_MOST_PROGRAMS = 4


class Payload(NamedTuple):
    """A program on its way. `versions`: what the process that sends it has; `modules`: the user's that it brings."""

    token: str
    versions: dict[str, str]
    data: bytes
    modules: frozenset[str]


class Call(NamedTuple):
    """One run. `contents`: what fields that were named when the program was sent hold at its start; `tabled`: whether
    what it returns is a row of a table.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seed: int
    contents: tuple[Any, ...] = ()
    tabled: bool = True


class EnsemblePart(NamedTuple):
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


def dumped(payload: Payload, sent: Any) -> bytes:
    """A call or a part of it on its way to where the program is. What its arguments are of may be the user's, and goes
    along where the program does not have it. Raises `SerializationError`.
    """
    if isinstance(sent, Call) and not sent.args and all(type(value) in PLAIN for value in sent.kwargs.values()):
        return pickle.dumps(((), sent, ()), protocol=5)
    try:
        return pack_arguments(sent, payload.modules)
    except TinoteError:
        raise
    except Exception as error:
        named = sent.kwargs if isinstance(sent, Call) else sent.args if isinstance(sent, EnsemblePart) else sent
        raise SerializationError(
            f"the arguments {named} cannot be sent to another process: {error}", caller()
        ) from None


def loaded(payload: Payload, data: bytes) -> Any:
    """What `dumped` was given. Raises `SweepError` where the program cannot be used here."""
    with _ready(payload):
        return unpack_arguments(data)


def perform(payload: Payload, data: bytes, threads: int) -> Any:
    """The outcome of a call that was dumped, or what became of a part. Raises `SweepError` as `run` does."""
    with _ready(payload):
        try:
            call = unpack_arguments(data)
        except Exception as error:
            return Outcome(None, float("nan"), f"its arguments cannot be read: {error!r}")
    return reduce(payload, call, threads) if isinstance(call, EnsemblePart) else run(payload, call, threads)


_lock = threading.Lock()
_programs: OrderedDict[str, UnpackedProgram] = OrderedDict()
#: the types that numbers had by default in the last run
_defaults: tuple[str, str] | None = None


def run(payload: Payload, call: Call, threads: int) -> Outcome:
    """A run that depends on nothing but the program and the call: no two at once in a process, each from what fields
    held when they were sent. Raises `SweepError` where the program cannot be used here.
    """
    with _ready(payload) as program:
        return _run_from_start(program, lambda: program.function, call, threads)


def reduce(payload: Payload, part: EnsemblePart, threads: int) -> Reduced:
    """The scenes of a part as `run` would run them, reduced as a tree. Raises `SweepError`."""
    with _ready(payload) as program:
        tree, losses = Tree(len(part.scenes), program.function[1]), []
        for number, (kwargs, seed) in enumerate(part.scenes):
            call = Call(part.args, kwargs, seed, part.contents, tabled=False)
            found = _run_from_start(program, lambda: program.function[0], call, threads)
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
def _ready(payload: Payload) -> Iterator[UnpackedProgram]:
    """The program, for the one thread of this process that may use it now; options are as before in the end."""
    with _lock:
        program = _programs.get(payload.token)
        if program is None:
            program = _programs[payload.token] = _received(payload)
            while len(_programs) > _MOST_PROGRAMS:
                _programs.popitem(last=False)
        before = session.config, session.launches
        try:
            with program.imported():
                yield program
        finally:
            session.config, session.launches = before


def _run_from_start(program: UnpackedProgram, function: Callable[[], Any], call: Call, threads: int) -> Outcome:
    _configure(program.config._replace(num_threads=threads, random_seed=call.seed))
    session.launches = 0
    program.restore()
    return _outcome(program, function(), call)


def _received(payload: Payload) -> UnpackedProgram:
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


def _outcome(program: UnpackedProgram, function: Any, call: Call) -> Outcome:
    random.seed(call.seed)
    np.random.seed(call.seed & 0xFFFFFFFF)
    started = time.perf_counter()
    try:
        for field, content in zip(program.fields, call.contents, strict=True):
            field.from_numpy(content)
        result = function(*call.args, **call.kwargs)
        found = tabled(result, _definition(function)) if call.tabled else result
    except (Exception, SystemExit) as error:
        seconds = time.perf_counter() - started
        message = located_text(error) if isinstance(error, TinoteError) else f"{type(error).__name__}: {error}"
        return Outcome(None, seconds, message or type(error).__name__, traceback.format_exc())
    return Outcome(found, time.perf_counter() - started)


def _definition(function: Any) -> Span:
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    return NOWHERE if code is None else Span(code.co_filename, code.co_firstlineno)


def tabled(result: Any, where: Span) -> dict[str, np.ndarray[Any, Any]]:
    """What a function, defined at `where`, returns as arrays by name. Raises `SweepError` for what is no number and no
    array of numbers.
    """
    if result is None:
        return {}
    if isinstance(result, Struct):
        result = Struct.to_dict(result)
    elif isinstance(result, StructField):
        result = StructField.to_numpy(result)
    elif isinstance(result, tuple):
        names = getattr(result, "_fields", [f"result_{n}" for n in range(len(result))])
        result = dict(zip(names, result, strict=True))
    if not isinstance(result, Mapping):
        return {"result": _array("result", result, where)}
    names = [str(name) for name in result]
    for name in names:
        if names.count(name) > 1:
            raise SweepError(f"there are several results of the name '{name}'", where)
    return {str(name): _array(str(name), value, where) for name, value in result.items()}


def _array(name: str, value: Any, where: Span) -> np.ndarray[Any, Any]:
    if isinstance(value, Field | Matrix):
        value = value.to_numpy()
    elif type(value) is Traced:
        value = value.value
    missing = np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else None
    if missing is None and any(map(np.ma.is_masked, leaves(value))):
        hint = "return one array, `np.ma.stack(…)`, whose masked elements are NaN in the table"
        raise SweepError(f"the result '{name}' is a list with masked elements", where, hint=hint)
    try:
        found = np.array(value)
    except ValueError as error:
        raise SweepError(f"the result '{name}' is not an array of numbers: {error}", where) from None
    if found.dtype.kind not in "biufc" or found.dtype.itemsize > _WIDEST.get(found.dtype.kind, 8):
        what = type(value).__name__ if found.dtype.kind not in "fc" else f"of {found.dtype}"
        raise SweepError(
            f"the result '{name}' is {what}, which is neither a number nor an array of numbers: {value!r:.80}",
            where,
        )
    if missing is None or not missing.any():
        return found
    if not is_exact(found[~missing], with_nan(found).dtype):
        raise SweepError(f"the result '{name}' has masked elements, and integers that no float is equal to", where)
    found = with_nan(found)
    found[missing] = np.nan
    return found


def with_nan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of values in a type that has a NaN for those that are missing."""
    if values.dtype.kind not in "biu":
        return values.copy()
    return values.astype(np.result_type(values.dtype, np.float32 if values.dtype.itemsize < 4 else np.float64))


def is_exact(values: np.ndarray[Any, Any], wanted: Any) -> bool:
    """Whether values that are integers are the same numbers in another type."""
    if values.dtype.kind not in "iu" or np.dtype(wanted).kind not in "fc" or not values.size:
        return True
    if max(abs(int(values.min())), abs(int(values.max()))) < 2 ** np.finfo(wanted).nmant:
        return True
    return all(int(value) == int(wanted.type(value).real) for value in values.flat)


#: Bytes of the widest numbers of a kind.
_WIDEST = {"c": 16}
