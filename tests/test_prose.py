"""The words of what users read: the field's terms in plain English. Words that were retired stay retired.

They are Markdown, notebooks, the command's help, messages, docstrings of public names, and first sentences of all other
docstrings. There are no exceptions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
import pytest
from manual.reference import CONSTANTS, MODULES, RETURNED, docstring_of, members, public

PROJECT = Path(__file__).resolve().parents[1]

#: A word or a phrase, as a regular expression, and what to write instead.
RETIRED = {
    r"\b(?:told|hears?|heard)\b": "is called, is notified, records",
    r"\bwhom?ever\b": "the caller, the user, any code that",
    r"\bwhatever (?:is|are|was|has|have|does|do|can|may|must|will|else|makes?|needs?|reads?|writes?)\b": "any",
    r"(?<!each )(?<!some )(?<!one )(?<!two )(?<!both )(?<!all )of wh(?:ich|ose|om)\b": "whose",
    r"\bas (?:many|much|often)\b[^.;]*?\bas\b": "the same number of, one for each",
    r"\bbeside\b(?!=| :)": "besides (also), next to (a place), compared with",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\b(?:lent|lends?|lending)\b": "temporary",
    r"\b(?:a|an|one|each|every|the|this|such) stretch(?:es)?\b": "effects (of a block), interval",
    r"\bpremises?\b": "guards",
    r"\bworlds?\b": "batch, copies, environments",
    r"\btwins?\b": "adjoint, counterpart",
    r"\bkin\b": "related",
    r"\bin addition\b": "also",
    r"\bnext to no(?:thing)?\b": "almost nothing",
    r"\b(?:no|any|some|every)body\b": "the user, the caller, no code",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"(?<!there )\b(?:is|are) no (?!longer\b|more\b|less\b|\w+er than\b)": "is not a",
    r"\bof (?-i:[A-Z])\w+'s(?= (?:that|and|or)\b|[.,;:)|\n]|$)": "a NumPy array, an NVIDIA GPU",
    r"\b(?:its|their) like\b": "similar ones",
    r"\bby (?:itself|themselves)\b": "automatically, by default, alone",
    r"\bstands? (?:there|here|below|above)\b": "is",
    r"\b(?:parallel|each|every|other|same) turns?\b": "iteration",
    r"\banew\b": "again",
    r"\bshall\b": "should, must, will",
    r"\blearnt\b": "learned",
    r"\bbut for\b": "except",
    r"\bwhich is differentiated\b": "to differentiate with respect to",
    r"\b(?:equation|launch|line|operation|row|step|table) an? (?:case|cell|field|kernel|launch|line|step)\b": "per",
}

#: Names of passes and modules that were retired, and the present ones.
RENAMED = {
    "choose_values": "select_reverse_form",
    "flatten_branches": "if_convert",
    "premises": "guards",
    "rearrange": "reassociate",
}


def retired(text: str) -> list[str]:
    """The retired words in a text, with what to write instead. Code in backticks and formulas do not count."""
    prose = " ".join(re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "x", text).split())
    return [
        f"{found[0]!r}: {instead}"
        for word, instead in RETIRED.items()
        for found in re.finditer(word, prose, re.IGNORECASE)
    ]


def check(texts: Iterable[tuple[str, str]]) -> None:
    """Fails with the places of texts that have retired words."""
    __tracebackhide__ = True
    found = [f"{place}: {word}" for place, text in texts for word in retired(text)]
    assert not found, "\n".join(["write other words:", *found])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The journal is told of each launch.", True),
        ("Whoever waits does the work.", True),
        ("A number of which nothing is known", True),
        ("three parts, each of which is simple", False),
        ("as many copies as there are threads", True),
        ("a copy beside the field", True),
        ("It changes whatever is there.", True),
        ("A launch costs a microsecond, whatever the kernel does.", False),
        ("1 is no index", True),
        ("there is no index", False),
        ("it is no longer an index", False),
        ("an array of NumPy's", True),
        ("an array of Taichi's kind, and `an array of NumPy's`", False),
        ("The springs' stretch, and threads that stretch", False),
        ("code that runs by itself", True),
        ("The next call compiles it anew.", True),
        ("The fields with respect to which is differentiated", True),
        ("one operation a line", True),
        ("one operation per line", False),
    ],
)
def test_what_counts_as_a_retired_word(text: str, found: bool) -> None:
    assert bool(retired(text)) is found


# ---- texts


def markdown() -> Iterator[tuple[str, str]]:
    """The paragraphs of the project's Markdown, and of the notebooks'."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=PROJECT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith("benchmarks/reports/"):  # They are written by programs.
            text = (PROJECT / name).read_text(encoding="utf-8")
            prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
            yield from ((name, paragraph) for paragraph in re.split(r"\n\s*\n", prose))
    for file in sorted((PROJECT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(file, as_version=4).cells:
            if cell.cell_type == "markdown":
                yield file.name, re.sub(r"\$\$.*?\$\$|^```.*?^```$", "", cell.source, flags=re.MULTILINE | re.DOTALL)


def scripts() -> Iterator[tuple[str, str]]:
    """The texts in the scripts of views and pages."""
    for path in sorted((PROJECT / "tinote" / "viz" / "static").rglob("*.js")):
        if "three" not in path.parts:  # It is another project's.
            code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            yield from ((path.name, text) for text in re.findall(r'"([^"`\n]* [^"`\n]*)"', code))


def examples() -> Iterator[tuple[str, str]]:
    """The docstrings of the programs in `examples/`, and of the museum's reports."""
    for path in sorted([*PROJECT.glob("examples/*.py"), *PROJECT.glob("tests/museum/reports/*.py")]):
        yield path.name, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


@functools.cache
def sources() -> dict[str, tuple[ast.AST, ...]]:
    """The nodes of each module of the package: the module, its statements, and what is in them."""
    return {
        path.relative_to(PROJECT).as_posix(): tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted((PROJECT / "tinote").rglob("*.py"))
    }


def literals(module: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The texts in a module that are no docstrings: what is in braces of an f-string is left out."""
    statements = {id(node.value) for node in module if isinstance(node, ast.Expr)}
    parts = {id(part) for node in module if isinstance(node, ast.JoinedStr) for part in node.values}
    others = statements | parts
    for node in module:
        if isinstance(node, ast.JoinedStr) and id(node) not in statements:
            texts = [one.value if isinstance(one, ast.Constant) else "x" for one in node.values]
            yield node.lineno, "".join(map(str, texts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in others:
            if " " in node.value:  # A word alone is a name.
                yield node.lineno, node.value


def public_docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of public modules, names, methods and properties."""
    for owner, module in MODULES.items():
        yield owner, module.__doc__ or ""
    names = {f"{owner}.{name}": one for owner, module in MODULES.items() for name, one in public(module).items()}
    for name, value in {**names, **RETURNED}.items():
        if not isinstance(value, CONSTANTS):
            yield name, inspect.getdoc(value) or ""
            for member in members(value) if isinstance(value, type) else ():
                text = docstring_of(value, member)
                yield f"{name}.{member}", "\n\n".join([text.summary, text.text, *text.sections.values()])


def first_sentences(module: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The first sentences of a module's docstrings."""
    for node in module:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), re.split(r"(?<=[.:;])\s|\n\n", text, maxsplit=1)[0]


# ---- the gate


def test_texts_in_markdown_have_no_retired_words() -> None:
    check(markdown())


def test_messages_and_the_commands_help_have_no_retired_words() -> None:
    check((f"{name}:{line}", text) for name, module in sources().items() for line, text in literals(module))


def test_texts_of_pages_and_examples_have_no_retired_words() -> None:
    check((*scripts(), *examples()))


def test_messages_say_what_must_be() -> None:
    """`x must be positive, not -1`, in place of `x is -1; it is more than 0`."""
    loose = re.compile(r"\b(?:is|are|of) x; (?:it|they) (?:is|are|has|have)\b")
    texts = [(f"{name}:{line}", text) for name, module in sources().items() for line, text in literals(module)]
    assert [place for place, text in texts if loose.search(text)] == []


def test_docstrings_of_public_names_have_no_retired_words() -> None:
    check(public_docstrings())


def test_first_sentences_have_no_retired_words() -> None:
    check((f"{name}:{line}", one) for name, module in sources().items() for line, one in first_sentences(module))


def test_retired_names_are_neither_defined_nor_mentioned() -> None:
    named = {name: set(re.findall(r"\w+", name)) for name in sources()}
    for name, module in sources().items():
        named[name] |= {node.name for node in module if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for name, text in markdown():
        named.setdefault(name, set()).update(re.findall(r"`(\w+)`", text))
    found = [f"{place}: {word}" for place, words in named.items() for word in words & RENAMED.keys()]
    assert not found, f"write {RENAMED}: {found}"


#: Private words that were retired from names, as parts of them, and the field's.
RETIRED_IN_NAMES = {
    "companion": "shadow (an adjoint or a tangent)",
    "twin": "clone",
    "lent": "temporary, borrowed",
    "lend": "give, borrow",
    "lending": "with temporaries",
    "lendable": "may have a temporary",
    "world": "member (of a batch)",
    "told": "reported, notified",
    "heard": "recorded, notified",
    "hear": "record, receive",
    "hears": "is active, records",
    "beside": "next to, besides, compared with",
    "kin": "related",
    "stretch": "section, span",
    "premise": "guard",
}


def definitions(module: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a module gives: to functions, classes, parameters, variables and attributes."""
    for node in module:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def words_of(name: str) -> set[str]:
    """The words that a name is made of, without the plural: of `CompanionsBefore`, `companion` and `before`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
    return {word.removesuffix("s") if word.removesuffix("s") in RETIRED_IN_NAMES else word for word in words}


@pytest.mark.parametrize(
    ("name", "found"),
    [("CompanionsBefore", True), ("_told", True), ("in_world", True), ("stretched", False), ("blend", False)],
)
def test_what_counts_as_a_retired_name(name: str, found: bool) -> None:
    assert bool(words_of(name) & RETIRED_IN_NAMES.keys()) is found


def test_names_have_no_retired_words() -> None:
    named = {name: {*definitions(module), *re.split(r"[/.]", name)} for name, module in sources().items()}
    tests = subprocess.run(["git", "ls-files", "tests"], cwd=PROJECT, capture_output=True, text=True, check=True)
    named["tests"] = set(re.split(r"[/.\n]", tests.stdout))
    found = [
        f"{place}: {name}: {RETIRED_IN_NAMES[word]}"
        for place, names in named.items()
        for name in sorted(names)
        for word in words_of(name) & RETIRED_IN_NAMES.keys()
    ]
    assert not found, "\n".join(["write other words:", *found])
