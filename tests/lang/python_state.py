"""Things in Python that a step may depend on, and what may happen to them: the material of random programs.

`{s}` is the name of the thing, `{v}` a number. A read adds to `v`; a change happens between calls, an effect in a call.
"""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """A thing. `shown`: what of it is compared after each call."""

    made: str
    reads: tuple[str, ...]
    changes: tuple[str, ...]
    effects: tuple[str, ...] = ()
    shown: str = "repr({s})"


#: What each program begins with.
HEAD = """\
import abc, argparse, array, builtins, collections, contextlib, contextvars, ctypes, dataclasses, enum
import fractions, functools, io, itertools, math, operator, os, queue, random, sys, tempfile, threading, types, typing
import tabnanny, weakref
import numpy as np
import tinote as ti
try:
    import pandas
except ImportError:
    pandas = types.SimpleNamespace(Series=dict)

class Plain:
    level = 0.5
    def __init__(self, rate):
        self.rate = rate
        self.__own = rate
        self.parts = [rate, 2 * rate]
    @property
    def double(self):
        return 2 * self.rate
    def own(self):
        return self.__own
    def set_own(self, value):
        self.__own = value
    def total(self):
        return sum(self.parts) + self.level
    def count(self):
        self.rate += 1.0
    def note(self):
        for part in (self.parts,):
            part.append(1.0)

class Inherits(Plain):
    pass

class Slots:
    __slots__ = ("rate", "other")
    def __init__(self, rate):
        self.rate = rate

@dataclasses.dataclass
class Data:
    rate: float
    parts: list

@dataclasses.dataclass(slots=True)
class SlottedData:
    rate: float

Pair = collections.namedtuple("Pair", "rate parts")

class Schedule:
    def __init__(self, rate):
        self.rate = rate
        self.log = []
    def __next__(self):
        self.rate += 1.0
        return self.rate
    def __iter__(self):
        return iter([self.rate, 2.0])
    def __getitem__(self, key):
        return self.rate * key
    def __setitem__(self, key, value):
        self.log.append(value)
    def __call__(self):
        return self.rate
    def __len__(self):
        return int(self.rate)
    def __bool__(self):
        return self.rate > 1.0
    def __float__(self):
        return float(self.rate)
    def __index__(self):
        return int(self.rate)
    def __contains__(self, item):
        return item < self.rate
    def __eq__(self, other):
        return other < self.rate
    __hash__ = None
    def __add__(self, other):
        return self.rate + other
    def __lshift__(self, other):
        self.log.append(other)
        return 1.0
    def __enter__(self):
        return self.rate
    def __exit__(self, *error):
        self.log.append(1.0)

class Dynamic:
    def __init__(self, rate):
        self.held = {"rate": rate}
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["held"][name]

class Answers:
    level = 1.0
    def __getattribute__(self, name):
        return Answers.level

class Descriptor:
    rate = 1.0
    def __get__(self, owner, kind):
        return self.rate

class Described:
    rate = Descriptor()

class Meta(type):
    rate = 1.0

class Made(metaclass=Meta):
    pass

class Table(dict):
    rate = 1.0

class Row(list):
    pass

class Real(float):
    pass

class Generic(abc.ABC, typing.Generic[typing.TypeVar("T")]):
    def __init__(self, rate):
        self.rate = rate

class Level(enum.Enum):
    LOW = 1.0
    PARTS = [1.0, 2.0]

class Whole(enum.IntEnum):
    ONE = 1

class Lazy:
    def __init__(self, rate):
        self.given = rate
    @functools.cached_property
    def rate(self):
        return self.given

def scaled(function):
    @functools.wraps(function)
    def run():
        return 2 * function()
    return run

@contextlib.contextmanager
def managed(value):
    yield value

def file_of(number):
    held = tempfile.TemporaryFile("w+")
    held.write(f"{number}\\n" * 100)
    held.seek(0)
    return held
"""

NUMBERS = ("{s} = {v}",)
RATE = ("{s}.rate = {v}",)

STATES = {
    # what is followed
    "a number": State(
        "{s} = 1.0", ("v += {s}", "v += -{s} if {s} > 1.5 else 1.0", "v += 1.0 if type({s}) is float else 2.0"), NUMBERS
    ),
    "a number that counts": State(
        "{s} = 1.0",
        ("v += {s}",),
        NUMBERS,
        (
            "global {s}; {s} += 1.0",
            "global {s}; {s} = v",
            "global {s}; match [v, {s} + 1.0]:\n    case [_, {s}]: pass",
            "global {s}; for {s} in (v, {s} + 2.0): pass",
            "global {s}; with contextlib.nullcontext({s} + 1.0) as {s}: pass",
        ),
    ),
    "an integer": State(
        "{s} = 1",
        ("v += {s}", "v += sum(range({s}))", "v += {s} << 1 | 5 & {s}", "v += {s}.bit_length()"),
        ("{s} = int({v})",),
    ),
    "a number of some type": State(
        "{s} = 1.0",
        ("v += {{int: 1.0, float: 2.0}}[type({s})]", "v += 1.0 if isinstance({s}, int) else 3.0"),
        (*NUMBERS, "{s} = 2"),
    ),
    "an abstract class": State(
        "class {s}(abc.ABC): pass",
        ("v += 1.0 if isinstance('', {s}) else 2.0", "v += issubclass(str, {s})"),
        ("{s}.register(str)", "{s}.register(int)"),
        (),
        "issubclass(str, {s})",
    ),
    "a module that computes attributes": State(
        "{s} = types.ModuleType('{s}'); {s}.__getattr__ = lambda name: 0.5",
        ("v += {s}.rate", "v += getattr({s}, 'rate')"),
        RATE,
        (),
        "{s}.rate",
    ),
    "a module whose text computes attributes": State(
        "{s} = types.ModuleType('{s}'); {s}.level = 1.0; exec('def __getattr__(name): return level', {s}.__dict__)",
        ("v += {s}.rate", "v += getattr({s}, 'rate')"),
        ("{s}.level = {v}", "{s}.rate = {v}", "exec('def __getattr__(name): return 2.5', {s}.__dict__)"),
        (),
        "{s}.level",
    ),
    "a text": State("{s} = '1.0'", ("v += float({s})", "v += len({s})"), ("{s} = str({v})",)),
    "a tuple": State(
        "{s} = (1.0, [2.0])",
        ("v += {s}[0] + {s}[1][0]", "v += sum({s}[1])"),
        ("{s} = ({v}, [2.0])", "{s}[1][0] = {v}", "{s}[1].append({v})"),
        ("{s}[1].append(v)",),
    ),
    "a list": State(
        "{s} = [1.0, 2.0]",
        (
            "v += {s}[0]",
            "v += sum({s})",
            "v += len({s})",
            "v += [2 * w for w in {s}][-1]",
            "v += max(map(float, {s}))",
            "here = {s}; v += here[0]",
            "for w in {s}: v += w",
            "v += {s}[-1]",
            "v += sorted({s})[0]",
        ),
        ("{s}[0] = {v}", "{s}.append({v})", "{s}.reverse()", "{s}[:] = [{v}]", "{s} = [{v}]", "{s}.sort()"),
        (
            "{s}.append(v)",
            "here = {s}; here.append(v)",
            "{s}[0] = {s}[0] + 1.0",
            "here = {s}; here[0] = v",
            "here = {s}; here += [v]",
            "operator.setitem({s}, 0, v)",
            "v += {s}.pop()",
        ),
    ),
    "lists in a list": State(
        "{s} = [[1.0], [2.0]]",
        ("v += {s}[1][0]", "v += sum(w[0] for w in {s})"),
        ("{s}[1][0] = {v}", "{s}[0].append({v})", "{s}[1] = [{v}]"),
        ("for w in {s}: w[0] = w[0] + 1.0",),
    ),
    "a dictionary": State(
        "{s} = {{'a': 1.0, 'b': 2.0}}",
        (
            "v += {s}['a']",
            "v += sum({s}.values())",
            "v += {s}.get('c', 3.0)",
            "v += len({s})",
            "v += 'c' in {s}",
            "here = {s}; v += here['b']",
            "for k in {s}: v += {s}[k]",
        ),
        ("{s}['a'] = {v}", "{s}['c'] = {v}", "{s}.pop('c', None)", "{s} = {{'a': {v}, 'b': 1.0}}", "{s}['b'] = {v}"),
        (
            "{s}['a'] += 1.0",
            "here = {s}; here['a'] += 1.0",
            "{s}['n' * len({s})] = v",
            "{s}.update(b=v)",
            "{s}.setdefault('c', v)",
        ),
    ),
    "a dictionary of objects": State(
        "{s} = {{'a': Plain(1.0), 'b': [2.0]}}",
        ("v += {s}['a'].rate", "v += {s}['b'][0]", "for w in {s}.values(): v += getattr(w, 'rate', 3.0)"),
        ("{s}['a'].rate = {v}", "{s}['b'][0] = {v}", "{s}['a'] = Plain({v})"),
        ("{s}['a'].rate += 1.0",),
        "vars({s}['a'])",
    ),
    "an ordered dictionary": State(
        "{s} = collections.OrderedDict(a=1.0, b=2.0)",
        ("v += list({s}.values())[0]",),
        ("{s}.move_to_end('a')", "{s}['b'] = {v}"),
        ("{s}.move_to_end('a')",),
    ),
    "a dictionary with a default": State(
        "{s} = collections.defaultdict(float, a=1.0)",
        ("v += {s}['a']", "v += len({s})"),
        ("{s}['a'] = {v}", "{s}['b'] = {v}"),
        ("v += {s}['n' * len({s})]",),
    ),
    "a counter": State(
        "{s} = collections.Counter('aab')",
        ("v += {s}['a'] + {s}['c']",),
        ("{s}['a'] = int({v})", "{s}.update('c')"),
        ("{s}['a'] += 1", "here = {s}; here.update('a')"),
    ),
    "a set": State(
        "{s} = {{1.0, 2.0}}",
        ("v += sum({s})", "v += len({s})", "v += 2.0 in {s}"),
        ("{s}.add({v})", "{s}.discard(2.0)"),
        ("{s}.add(v)", "here = {s}; here.add(v)"),
        "sorted({s})",
    ),
    "a deque": State(
        "{s} = collections.deque([1.0, 2.0], 3)",
        ("v += {s}[0]", "v += sum({s})"),
        ("{s}.append({v})", "{s}.rotate()"),
        ("{s}.append(v)", "here = {s}; here.rotate()"),
    ),
    "a named tuple": State(
        "{s} = Pair(1.0, [2.0])",
        ("v += {s}.rate + {s}.parts[0]", "a, b = {s}; v += b[0]"),
        ("{s} = Pair({v}, [2.0])", "{s}.parts[0] = {v}"),
        ("{s}.parts.append(v)",),
    ),
    "an object": State(
        "{s} = Plain(1.0)",
        (
            "v += {s}.rate",
            "v += {s}.double",
            "v += {s}.own()",
            "v += {s}.total()",
            "v += {s}.parts[1]",
            "v += {s}.level",
            "v += getattr({s}, 'rate')",
            "v += getattr({s}, 'missing', 2.0)",
            "v += hasattr({s}, 'missing')",
            "v += getattr({s}, 'ra' + 'te')",
            "here = {s}; v += here.rate",
            "v += sum({s}.__dict__['parts'])",
            "for w in ({s},): v += w.total()",
        ),
        (
            *RATE,
            "{s}.set_own({v})",
            "{s}.parts.append({v})",
            "{s}.level = {v}",
            "{s}.missing = {v}",
            "Plain.level = {v}",
            "Plain.total = lambda self: {v}",
            "{s} = Plain({v})",
            "{s}.__class__ = Inherits",
            "Plain.double = property(lambda self: {v})",
        ),
        (
            "{s}.rate += 1.0",
            "here = {s}; here.rate += 1.0",
            "{s}.count()",
            "for w in [{s}]: w.count()",
            "{s}.note()",
            "setattr({s}, 'rate', v)",
            "{s}.__dict__['rate'] = v",
            "object.__setattr__({s}, 'rate', v)",
        ),
        "vars({s})",
    ),
    "objects in a list": State(
        "{s} = [Plain(1.0), Inherits(2.0)]",
        (
            "for w in {s}: v += w.rate",
            "v += sum(w.total() for w in {s})",
            "v += {s}[1].rate",
            "v += {s}[1].double",
            "v += sum(map(operator.attrgetter('rate'), {s}))",
            "v += {s}[0].own()",
        ),
        (
            "{s}[1].rate = {v}",
            "{s}[0].set_own({v})",
            "Inherits.level = {v}",
            "{s}.append(Plain({v}))",
            "Inherits.total = lambda self: {v}",
            "{s}[0].parts[0] = {v}",
        ),
        ("for w in {s}: w.rate += 1.0", "for w in {s}: w.count()", "{s}[0].count()", "for w in {s}: w.note()"),
        "[vars(w) for w in {s}]",
    ),
    "an object with slots": State(
        "{s} = Slots(1.0)",
        ("v += {s}.rate", "v += getattr({s}, 'other', 2.0)"),
        (*RATE, "{s}.other = {v}"),
        ("{s}.rate += 1.0", "here = {s}; here.rate += 1.0"),
        "{s}.rate",
    ),
    "slots in a list": State(
        "{s} = [Slots(1.0), Slots(2.0)]",
        ("for w in {s}: v += w.rate", "v += {s}[0].rate"),
        ("{s}[0].rate = {v}", "{s}[1].rate = {v}"),
        ("for w in {s}: w.rate += 1.0",),
        "[w.rate for w in {s}]",
    ),
    "a data class": State(
        "{s} = [Data(1.0, [2.0]), SlottedData(3.0)]",
        (
            "v += {s}[0].rate + {s}[1].rate",
            "for w in {s}: v += w.rate",
            "v += {s}[0].parts[0]",
            "v += {s}[0] == {s}[1]",
        ),
        ("{s}[0].rate = {v}", "{s}[1].rate = {v}", "{s}[0].parts[0] = {v}"),
        ("for w in {s}: w.rate += 1.0",),
    ),
    "a namespace": State(
        "{s} = types.SimpleNamespace(rate=1.0, parts=argparse.Namespace(rate=2.0))",
        ("v += {s}.rate", "v += {s}.parts.rate", "for w in ({s}, {s}.parts): v += w.rate"),
        (*RATE, "{s}.parts.rate = {v}"),
        ("{s}.rate += 1.0", "for w in ({s}.parts,): w.rate += 1.0"),
    ),
    "an object that computes attributes": State(
        "{s} = Dynamic(1.0)",
        ("v += {s}.rate", "for w in [{s}]: v += w.rate"),
        ("{s}.held['rate'] = {v}",),
        ("{s}.held['rate'] += 1.0",),
        "vars({s})",
    ),
    "an object that has all attributes": State(
        "{s} = Answers()",
        ("v += {s}.rate", "for w in [{s}]: v += w.rate"),
        ("Answers.level = {v}", "Answers.__getattribute__ = lambda self, name: {v}"),
        (),
        "Answers.level",
    ),
    "a descriptor": State(
        "{s} = Described()",
        ("v += {s}.rate", "for w in [{s}]: v += w.rate"),
        ("Descriptor.rate = {v}", "Described.__dict__['rate'].rate = {v}"),
        (),
        "{s}.rate",
    ),
    "a class": State(
        "{s} = Made",
        ("v += {s}.rate", "for w in [{s}]: v += w.rate"),
        ("Meta.rate = {v}", "Made.rate = {v}"),
        ("{s}.rate += 1.0",),
        "{s}.rate",
    ),
    "a dictionary of a class": State(
        "{s} = Table(a=1.0)",
        ("v += {s}['a'] + {s}.rate", "v += sum({s}.values())"),
        ("{s}['a'] = {v}", "{s}.rate = {v}", "Table.rate = {v}", "Table.__getitem__ = lambda self, key: {v}"),
        ("{s}['a'] += 1.0",),
        "({s}, {s}.rate)",
    ),
    "a list of a class": State(
        "{s} = Row([1.0]); {s}.rate = 2.0",
        ("v += {s}[0] + {s}.rate", "v += sum({s})"),
        ("{s}[0] = {v}", "{s}.rate = {v}"),
        ("{s}.append(v)",),
        "({s}, {s}.rate)",
    ),
    "a number of a class": State(
        "{s} = Real(1.0); {s}.rate = 2.0",
        ("v += {s} + {s}.rate",),
        ("{s}.rate = {v}",),
        ("{s}.rate += 1.0",),
        "{s}.rate",
    ),
    "a generic object": State(
        "{s} = Generic(1.0)", ("v += {s}.rate", "for w in [{s}]: v += w.rate"), RATE, ("{s}.rate += 1.0",), "vars({s})"
    ),
    "an enumeration": State(
        "{s} = [Level.LOW, Level.PARTS]",
        ("v += {s}[0].value", "v += {s}[1].value[0]", "for w in {s}: v += len(str(w.value))", "v += Whole.ONE"),
        ("Level.PARTS.value[0] = {v}", "Level.LOW._value_ = {v}", "Level.PARTS.value.append({v})"),
        ("{s}[1].value.append(v)",),
        "[w.value for w in Level]",
    ),
    "a lazy attribute": State(
        "{s} = Lazy(1.0)",
        ("v += {s}.rate",),
        (
            "{s}.rate = {v}",
            "vars({s}).pop('rate', None)",
            "{s}.given = {v}",
            "Lazy.__dict__['rate'].func = lambda self: {v}",
        ),
        (),
        "{s}.given",
    ),
    "special methods": State(
        "{s} = Schedule(1.0)",
        (
            "v += {s}[2]",
            "v += {s}()",
            "v += len({s})",
            "v += 3.0 if {s} else 1.0",
            "v += float({s})",
            "v += 1.5 in {s}",
            "v += {s} == 1.5",
            "v += {s} + 1.0",
            "for w in {s}: v += w",
            "a, b = {s}; v += a",
            "v += math.floor(float({s}))",
            "v += [1.0, 2.0, 3.0, 4.0, 5.0, 6.0][{s}]",
            "v += max({s})",
        ),
        (*RATE, "Schedule.__getitem__ = lambda self, key: {v}", "{s} = Schedule({v})"),
        ("v += next({s})", "{s}[0] = v", "v += {s} << v", "with {s} as w: v += w"),
        "vars({s})",
    ),
    # functions
    "a default": State(
        "def {s}(r=1.0, *, p=[2.0]): return r + p[0]",
        ("v += {s}()", "v += list(map({s}, [1.0]))[0]"),
        (
            "{s}.__defaults__ = ({v},)",
            "{s}.__kwdefaults__ = {{'p': [{v}]}}",
            "{s}.__kwdefaults__['p'][0] = {v}",
            "{s}.__kwdefaults__['p'] = [{v}]",
        ),
        ("{s}.__kwdefaults__['p'].append(v)",),
        "{s}.__kwdefaults__",
    ),
    "code": State(
        "def {s}(): return 1.0",
        ("v += {s}()", "for w in [{s}]: v += w()"),
        ("{s}.__code__ = (lambda: {v}).__code__", "def {s}(): return {v}", "{s} = lambda: {v}"),
        (),
        "{s}()",
    ),
    "functions in a list": State(
        "{s} = [lambda: 1.0, lambda r=2.0: r]",
        ("v += sum(w() for w in {s})", "v += {s}[0]()"),
        ("{s}[0] = lambda: {v}", "{s}[1].__defaults__ = ({v},)", "{s}[0].__code__ = (lambda: {v}).__code__"),
        (),
        "[w() for w in {s}]",
    ),
    "a closure": State(
        "def make_{s}(r):\n    def get(): return r\n    def put(w):\n        nonlocal r\n        r = w\n"
        "    def tick():\n        nonlocal r\n        r += 1.0\n        return r\n    return get, put, tick\n"
        "{s}, put_{s}, tick_{s} = make_{s}(1.0)",
        ("v += {s}()", "for w in [{s}]: v += w()"),
        ("put_{s}({v})",),
        ("v += tick_{s}()", "for w in [tick_{s}]: v += w()"),
        "{s}()",
    ),
    "an attribute of a function": State(
        "def {s}(): return {s}.rate\n{s}.rate = 1.0",
        ("v += {s}()", "v += {s}.rate", "for w in [{s}]: v += w.rate"),
        RATE,
        ("{s}.rate += 1.0",),
        "{s}.rate",
    ),
    "a part of a function": State(
        "parts_{s} = [1.0]\n{s} = functools.partial(sum, parts_{s})",
        ("v += {s}()", "for w in [{s}]: v += w()", "v += {s}.args[0][0]"),
        ("parts_{s}.append({v})", "{s} = functools.partial(sum, [{v}])"),
        ("here = {s}.args[0]; here.append(v)",),
        "{s}()",
    ),
    "keywords of a part": State(
        "{s} = functools.partial(lambda r: r, r=1.0)",
        ("v += {s}()",),
        ("{s}.keywords['r'] = {v}", "{s}.__setstate__((lambda r: {v}, (), {{'r': 0.0}}, {{}}))"),
        (),
        "{s}()",
    ),
    "a bound method": State(
        "held_{s} = Plain(1.0)\n{s} = held_{s}.total",
        ("v += {s}()", "for w in [{s}]: v += w()"),
        ("held_{s}.parts[0] = {v}", "{s} = Plain({v}).total"),
        (),
        "vars(held_{s})",
    ),
    "a bound built-in method": State(
        "held_{s} = [1.0] * 100\n{s} = held_{s}.pop",
        ("v += {s}.__self__[0]",),
        ("held_{s}[0] = {v}",),
        ("v += {s}()", "for w in [{s}]: v += w()"),
        "held_{s}",
    ),
    "a cache": State(
        "rate_{s} = [1.0]\n@functools.lru_cache\ndef {s}(): return rate_{s}[0]",
        ("v += {s}()",),
        ("rate_{s}[0] = {v}", "{s}.cache_clear()", "rate_{s}[0] = {v}; {s}.cache_clear()"),
        (),
        "{s}.cache_info().currsize",
    ),
    "a decorated function": State(
        "rate_{s} = [1.0]\n@scaled\ndef {s}(): return rate_{s}[0]",
        ("v += {s}()",),
        ("rate_{s}[0] = {v}", "{s}.__wrapped__.__code__ = (lambda: {v}).__code__"),
        (),
        "{s}()",
    ),
    "a function by type": State(
        "@functools.singledispatch\ndef {s}(w): return 1.0",
        ("v += {s}(1)",),
        ("{s}.register(int, lambda w: {v})",),
        (),
        "{s}(1)",
    ),
    "a built-in that is hidden": State(
        "{s} = 1.0",
        ("v += abs(-1.0)", "v += max(1.0, 2.0)"),
        ("abs = lambda w: {v}", "max = lambda *w: {v}", "globals().pop('abs', None)"),
        (),
    ),
    "a built-in of one's own": State(
        "builtins.{s} = 1.0; builtins.of_{s} = lambda: 2.0",
        ("v += {s}", "v += of_{s}()", "v += builtins.{s}"),
        ("builtins.{s} = {v}", "builtins.of_{s} = lambda: {v}", "{s} = {v}", "of_{s} = lambda: {v}"),
        ("builtins.{s} += 1.0",),
        "(builtins.{s}, of_{s}())",
    ),
    "a module of the standard library": State(
        "{s} = tabnanny; {s}.verbose = 1.0; {s}.of_{s} = lambda: 2.0",
        ("v += {s}.verbose", "v += tabnanny.verbose", "v += tabnanny.of_{s}()", "here = {s}; v += here.of_{s}()"),
        ("tabnanny.verbose = {v}", "{s}.of_{s} = lambda: {v}"),
        ("tabnanny.verbose += 1.0",),
        "({s}.verbose, {s}.of_{s}())",
    ),
    "a generator": State(
        "def make_{s}():\n    for w in itertools.count(1.0): yield w\n{s} = make_{s}()",
        ("v += next({s})", "for w in {s}:\n    v += w\n    break"),
        ("next({s})",),
        (),
        "0",
    ),
    # modules and the system
    "a module": State(
        "{s} = types.ModuleType('{s}'); {s}.rate = 1.0; {s}.inner = types.ModuleType('inner'); "
        "{s}.inner.rate = 2.0; sys.modules['{s}'] = {s}",
        (
            "v += {s}.rate",
            "v += {s}.inner.rate",
            "here = {s}; v += here.rate",
            "v += getattr({s}, 'rate')",
            "import {s} as w; v += w.rate",
            "from {s} import rate as w; v += w",
            "v += sys.modules['{s}'].rate",
            "for w in ({s}, {s}.inner): v += w.rate",
        ),
        (*RATE, "{s}.inner.rate = {v}"),
        ("{s}.rate += 1.0", "here = {s}; here.rate += 1.0"),
        "({s}.rate, {s}.inner.rate)",
    ),
    "the environment": State(
        "{s} = os.environ; {s}['{s}'] = '1.0'",
        ("v += float(os.environ['{s}'])", "v += float(os.getenv('{s}'))", "v += float({s}['{s}'])"),
        ("os.environ['{s}'] = str({v})",),
        ("os.environ['{s}'] = str(v)",),
        "os.environ['{s}']",
    ),
    "a file": State("{s} = file_of(1.0)", ("v += float({s}.readline())",), ("{s}.readline()",), (), "{s}.tell()"),
    "a text that grows": State(
        "{s} = io.StringIO()",
        ("v += len({s}.getvalue())",),
        ("{s}.write('a')",),
        ("{s}.write('b')", "here = {s}.write; here('b')"),
        "{s}.getvalue()",
    ),
    "a context variable": State(
        "{s} = contextvars.ContextVar('{s}', default=1.0)",
        ("v += {s}.get()",),
        ("{s}.set({v})",),
        ("{s}.set(v)",),
        "{s}.get()",
    ),
    "an event": State(
        "{s} = threading.Event()",
        ("v += {s}.is_set()", "v += 2.0 if {s}.is_set() else 1.0"),
        ("{s}.set()", "{s}.clear()"),
        ("{s}.set()",),
        "{s}.is_set()",
    ),
    "what a thread has": State(
        "{s} = threading.local(); {s}.rate = 1.0",
        ("v += {s}.rate", "for w in [{s}]: v += w.rate"),
        RATE,
        ("{s}.rate += 1.0",),
        "{s}.rate",
    ),
    "a queue": State(
        "{s} = queue.SimpleQueue(); [{s}.put(w) for w in range(1000)]",
        ("v += {s}.qsize()",),
        ("{s}.put({v})",),
        ("v += {s}.get()", "{s}.put(v)"),
        "{s}.qsize()",
    ),
    "a lock": State(
        "{s} = threading.Lock()",
        ("v += {s}.locked()",),
        ("{s}.acquire(blocking=False)",),
        ("{s}.acquire(blocking=False)",),
        "{s}.locked()",
    ),
    # what holds bytes and numbers
    "an array": State(
        "{s} = array.array('d', [1.0, 2.0])",
        ("v += {s}[0]", "v += sum({s})", "v += len({s})"),
        ("{s}[0] = {v}", "{s}.append({v})"),
        ("{s}.append(v)", "here = {s}; here[0] = v"),
    ),
    "bytes": State(
        "{s} = bytearray(b'ab')",
        ("v += {s}[0]", "v += sum({s})"),
        ("{s}[0] = int({v})",),
        ("{s}.append(1)", "here = {s}; here[0] = 1"),
    ),
    "a view of bytes": State(
        "bytes_{s} = bytearray(b'ab'); {s} = memoryview(bytes_{s})",
        ("v += {s}[0]", "v += memoryview(bytes_{s})[1]"),
        ("bytes_{s}[0] = int({v})", "bytes_{s}[1] = int({v})"),
        ("here = {s}; here[0] = 1",),
        "bytes_{s}",
    ),
    "a number of C": State(
        "{s} = ctypes.c_double(1.0)", ("v += {s}.value",), ("{s}.value = {v}",), ("{s}.value += 1.0",), "{s}.value"
    ),
    "an array of NumPy's": State(
        "{s} = np.array([1.0, 2.0])",
        (
            "v += float({s}[0])",
            "v += float({s}.sum())",
            "v += len({s})",
            "v += float(np.max({s}))",
            "here = {s}; v += float(here[1])",
            "for w in {s}: v += float(w)",
            "v += float(np.dot({s}, {s}))",
        ),
        ("{s}[0] = {v}", "{s} *= 2", "{s} = np.array([{v}, 1.0])", "{s}.sort()", "{s}.fill({v})"),
        ("{s}[0] += 1.0", "here = {s}; here += 1.0", "np.add({s}, 1.0, out={s})", "{s}.sort()"),
    ),
    "an array without dimensions": State(
        "{s} = np.array(1.0)",
        ("v += float({s})", "v += {s}.item()"),
        ("{s}[...] = {v}",),
        ("{s}[...] = v", "here = {s}; here += 1.0"),
    ),
    "an array of objects": State(
        "{s} = np.array([[1.0], None], dtype=object)",
        ("v += {s}[0][0]",),
        ("{s}[0][0] = {v}", "{s}[0] = [{v}]"),
        ("{s}[0].append(v)",),
    ),
    "a record": State(
        "records_{s} = np.zeros(2, [('rate', float)]); {s} = records_{s}[0]",
        ("v += float({s}['rate'])", "for w in [{s}]: v += float(w['rate'])"),
        ("records_{s}['rate'] = {v}", "{s}['rate'] = {v}"),
        ("here = {s}; here['rate'] = v",),
        "records_{s}",
    ),
    "a masked array": State(
        "{s} = np.ma.array([1.0, 2.0])", ("v += float({s}.sum())",), ("{s}[0] = np.ma.masked", "{s}[1] = {v}"), ()
    ),
    "a scalar of NumPy's": State(
        "{s} = np.float64(1.0)",
        ("v += float({s})", "v += float({s} * 2)"),
        ("{s} = np.float64({v})",),
        ("global {s}; {s} = {s} + 1.0",),
    ),
    "a vector": State(
        "{s} = ti.Vector([1.0, 2.0])",
        ("v += {s}[0]", "v += {s}.y"),
        ("{s}[0] = {v}", "{s}.y = {v}"),
        ("{s}[0] += 1.0",),
        "{s}.values.tolist()",
    ),
    "a table of pandas": State(
        "{s} = pandas.Series({{'rate': 1.0}})",
        ("v += float({s}['rate'])",),
        ("{s}['rate'] = {v}",),
        ("{s}['rate'] = v",),
        "float({s}['rate'])",
    ),
    # what leads to others
    "a weak reference": State(
        "held_{s} = Plain(1.0); {s} = weakref.ref(held_{s})",
        ("v += {s}().rate",),
        ("held_{s}.rate = {v}",),
        ("{s}().rate += 1.0",),
        "vars(held_{s})",
    ),
    "a proxy": State(
        "held_{s} = Plain(1.0); {s} = weakref.proxy(held_{s})",
        ("v += {s}.rate",),
        ("held_{s}.rate = {v}",),
        ("{s}.rate += 1.0",),
        "vars(held_{s})",
    ),
    "a user dictionary": State(
        "{s} = collections.UserDict(rate=1.0)",
        ("v += {s}['rate']",),
        ("{s}['rate'] = {v}",),
        ("{s}['rate'] += 1.0", "here = {s}; here['rate'] += 1.0"),
    ),
    "a user list": State(
        "{s} = collections.UserList([1.0])", ("v += {s}[0]", "v += sum({s})"), ("{s}.append({v})",), ("{s}.append(v)",)
    ),
    "a chain": State(
        "base_{s} = {{'rate': 1.0}}; {s} = collections.ChainMap({{}}, base_{s})",
        ("v += {s}['rate']", "v += collections.ChainMap({{}}, base_{s})['rate']"),
        ("base_{s}['rate'] = {v}",),
        ("{s}['rate'] = v",),
    ),
    "a view of a dictionary": State(
        "base_{s} = {{'rate': 1.0}}; {s} = types.MappingProxyType(base_{s})",
        ("v += {s}['rate']", "v += sum({s}.values())"),
        ("base_{s}['rate'] = {v}",),
        ("here = base_{s}; here['rate'] += 1.0",),
    ),
    "values of a dictionary": State(
        "base_{s} = {{'rate': 1.0}}; {s} = base_{s}.values()", ("v += sum({s})",), ("base_{s}['rate'] = {v}",), ()
    ),
    "an iterator": State(
        "{s} = iter([1.0] * 5 + [2.0] * 1000)",
        ("v += next({s})", "for w in {s}:\n    v += w\n    break"),
        ("next({s})",),
        (),
        "0",
    ),
    "a cycle": State("{s} = itertools.cycle([1.0] * 9 + [2.0])", ("v += next({s})",), ("next({s})",), (), "0"),
    "a count": State(
        "{s} = itertools.count(1.0)",
        ("v += next({s})", "v += sum(itertools.islice({s}, 2))"),
        ("next({s})",),
        (),
        "repr({s})",
    ),
    "a map": State("{s} = map(float, range(1000))", ("v += next({s})",), ("next({s})",), (), "0"),
    "random numbers": State(
        "{s} = random.Random(5)", ("v += {s}.random()",), ("{s}.seed(7)",), (), "{s}.getstate()[1][-1]"
    ),
    "random numbers of NumPy's": State(
        "{s} = np.random.default_rng(5)",
        ("v += {s}.random()",),
        ("{s}.random()",),
        (),
        "{s}.bit_generator.state['state']",
    ),
    "what an exception decides": State(
        "{s} = {{'a': 1.0}}",
        (
            "try:\n    v += {s}['b']\nexcept KeyError:\n    v += 2.0",
            "with contextlib.suppress(KeyError): v += {s}['b']",
        ),
        ("{s}['b'] = {v}", "{s}.pop('b', None)"),
        ("try:\n    v += 1.0\nfinally:\n    {s}['a'] = v",),
    ),
    "a context manager": State(
        "{s} = [1.0]",
        ("with managed({s}) as w: v += w[0]", "with contextlib.nullcontext({s}) as w: v += w[0]"),
        ("{s}[0] = {v}",),
        ("with managed({s}) as w: w.append(v)",),
    ),
    "a ratio": State(
        "{s} = fractions.Fraction(1, 2)", ("v += float({s})", "v += float({s} + 1)"), ("{s} = fractions.Fraction({v})",)
    ),
    "a global found by its name": State("{s} = 1.0", ("v += globals()['{s}']", "v += eval('{s}')"), NUMBERS),
}
