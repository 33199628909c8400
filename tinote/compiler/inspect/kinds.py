"""The kinds of text in the explorer: one record for each, with everything that the page, the saved page and the picture
need to show it.

Patterns are written so that Python's `re` and JavaScript's `RegExp` read them alike: `KINDS` goes to the page as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tinote.ir.tokens import KEYWORDS, NUMBER
from tinote.ir.types import SCALARS


class Words(NamedTuple):
    """A pattern for each class of words, without capturing groups."""

    variable: str
    memory: str
    text: str
    key: str
    type: str
    number: str

    @property
    def pattern(self) -> str:
        """One pattern with a group for each class, in order."""
        return "|".join(f"({part})" for part in self)


@dataclass(frozen=True)
class StageKind:
    """One kind of text.

    `name` identifies it, `noun` is what is counted in it, `hue` in degrees and `mark` are its sign in the list of
    stages, `words` its colours.

    Two stages are aligned line by line: `key` says what identifies a line, its first group the variable that it binds,
    its second anything else; a line without a key is identified by its text. `shape`: groups that a line before and
    after a change have in common. `scope`: a line that opens a function, within which keys count and lines have labels.
    `operation`: its first group is the word that says what a line does. `label`: a line that is a label or a constant.
    `names`: an occurrence of a variable or of memory, with a second group where it binds; empty where names are not
    followed. `opens`: its first group is the name of a kernel that the line launches, whose stages a click opens.

    `ours`: it is the compiler's own language, whose words the glossary explains and whose lines know their primal.
    `native`: LLVM runs to make it.
    """

    name: str
    noun: str
    hue: int
    words: Words
    mark: Literal["square", "circle", "diamond"] = "square"
    key: str = "(?!)"
    shape: str = r"^\s*(?:%[\w.]+ = )?(?:tail )?([\w.]+)"
    scope: str = "(?!)"
    operation: str = "(?!)"
    label: str = ""
    names: str = ""
    opens: str = "(?!)"
    ours: bool = False
    native: bool = False


def _words(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


_STRING = r'"(?:[^"\\]|\\.)*"'
_STRINGS = rf"{_STRING}|'(?:[^'\\]|\\.)*'"
_TRUTH = r"\btrue\b|\bfalse\b"
_SCALARS = [scalar.name for scalar in SCALARS]
_NATIVE_KEY = r"^(?:(%[a-zA-Z][\w.]*) = |([\w.]+:))"
_NATIVE_SCOPE = r"^define .*?(@[\w.$-]+)"

SYNTAX_TREE = StageKind(
    "python",
    "node",
    48,
    Words(
        variable=r"\b\w+: ",
        memory=r"@[\w.]+",
        text=_STRINGS,
        key=r"\b[A-Z][A-Za-z]+(?=  |$)",
        type=r"\b[A-Z][a-z]\w+\b(?= )",
        number=r"\b\d[\d.]*\b",
    ),
    mark="circle",
)
IR = StageKind(
    "ir",
    "operation",
    212,
    Words(
        variable=r"%[\w.]+",
        memory=r"@[\w.]+",
        text=_STRING,
        key=_words(" ".join(sorted(KEYWORDS))),
        type=_words(" ".join(("ref", *[rf"{name}(?:x\d+)?" for name in _SCALARS]))),
        number=rf"(?:\B-|\b)(?:{NUMBER.removeprefix('-?')})_?(?:{'|'.join(_SCALARS)})?\b|{_TRUTH}",
    ),
    key=r"^(?:(?:(?:for|task) [^%]*)?(%[\w.]+): |(buffer @[\w.]+|func \w+))",
    shape=r"^(\w+(?: (?:parallel|serial|plain|reverse|bounds|division|assert)\b)*)?(?:.*?(@[\w.]+))?",
    operation=r"^\s*(?:%.*? = )?([a-z]\w*)",
    names=r"([%@][\w.]+)(: )?",
    ours=True,
)
SOURCE = StageKind(
    "source",
    "line",
    130,
    Words(
        variable=_words("self ti"),
        memory=r"@[\w.]+",
        text=rf'"""[\s\S]*?"""|{_STRINGS}|#.*$',
        key=_words(
            "def for while if elif else in return break continue pass and or not is with assert lambda True False None"
        ),
        type=_words("range print min max abs int float bool") + r"(?=\()",
        number=r"\b\d[\d_.]*(?:e[+-]?\d+)?\b",
    ),
)
WGSL = StageKind(
    "wgsl",
    "line",
    330,
    Words(
        variable=r"\b(?:[acknrsv]|at|sum)\d+(?:_at|_top)?\b",
        memory=r"\b(?:arena|shared_arena|block|params|scratch)\b",
        text=r"//.*$",
        key=_words("alias break const continue else fn for if let loop return struct var while") + r"|@\w+",
        type=_words(
            r"array atomic bool [iu]32 f(?:32|64) vec\d Wide function private read read_write storage uniform workgroup"
        ),
        number=rf"\b(?:0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?)(?:lf|[fiu])?\b|{_TRUTH}",
    ),
)
LLVM = StageKind(
    "llvm",
    "instruction",
    276,
    Words(
        variable=r"%[\w.$-]+",
        memory=r"@[\w.$-]+",
        text=rf"{_STRING}|;.*$",
        key=_words(
            "define declare ret br switch phi call tail load store alloca getelementptr inbounds select [a-z]*cmp "
            "f?add f?sub f?mul [sfu]div [sfu]rem fneg shl [al]shr and or xor [sz]ext trunc fp\\w+ [su]itofp bitcast "
            "atomicrmw insertelement extractelement shufflevector to label"
        ),
        type=_words(r"i\d+ float double half ptr void"),
        number=rf"-?\b(?:0x[0-9A-F]+|\d[\d.]*(?:e[+-]?\d+)?)\b|{_TRUTH}",
    ),
    key=_NATIVE_KEY,
    scope=_NATIVE_SCOPE,
    operation=r"^\s*(?:%[\w.$-]+ = )?(?:tail )?([a-z]\w*)",
    names=r"([%@][\w.$-]+)( = |:)?",
    native=True,
)
ASSEMBLY = StageKind(
    "assembly",
    "instruction",
    160,
    Words(
        variable=r"%\w+",
        memory=r"[\w.]+(?=@PLT)|\.L\w+",
        text=r"#.*$",
        key=r"^\s+[a-z]\w*",
        type=r"\b[xyz]mmword\b",
        number=r"\$?-?\b(?:0x[0-9a-f]+|\d+)\b",
    ),
    mark="diamond",
    key=_NATIVE_KEY,
    operation=r"^\s+([a-z.]\w*)",
    label=r"^(?:\.L[\w.$]+:|\s+\.)",
    native=True,
)

PROGRAM = StageKind(
    "program",
    "operation",
    18,
    Words(
        variable=r"%[\w.]+",
        memory=r"@[\w.]+|(?<=\blaunch )[\w.]+|(?<=\bcode )[\w.]+",
        text=_STRING,
        key=_words(
            "launch clear copy fill load seed end if else unmet pass always fixed takes writes silent at lengths gives "
            "fills updates seeds block code program"
        ),
        type=_words(" ".join((*_SCALARS, "field scratch data input unused"))),
        number=rf"(?:\B-|\b)(?:{NUMBER.removeprefix('-?')})_?(?:{'|'.join(_SCALARS)})?\b|{_TRUTH}|\bnull\b",
    ),
    key=r"^(?:(%[\w.]+) = |((?:block @|code )[\w.]+|program))",
    shape=r"^(?:%[\w.]+ = )?(\w+)(?:.*?(@[\w.]+|(?<=launch )[\w.]+))?",
    operation=r"^\s*(?:%.*? = )?([a-z]\w*)",
    names=r"([%@][\w.]+)( = )?",
    opens=r"\blaunch ([\w.]+)",
)

#: In the order in which a kernel passes through them; at last what happens between launches.
KINDS = (SYNTAX_TREE, IR, SOURCE, WGSL, LLVM, ASSEMBLY, PROGRAM)
