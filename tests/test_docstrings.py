"""Docstrings of the public names, in NumPy's format: a summary, every parameter by its name and type, what is returned
and raised, and examples, which run and show a result.

A property says in its summary what it gives, and has a type; so does a function of the language whose name stands for
its value. What is called without arguments, and enumerations, need no example.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import enum
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from manual.docstrings import Docstring
from manual.reference import (
    CONSTANTS,
    MODULES,
    RETURNED,
    docstring_of,
    function_of,
    is_made_elsewhere,
    is_property,
    members,
    public,
    type_of,
)

import tinote as ti
from tests.pages import session_failures

EXAMPLES_OF = doctest.DocTestParser()
"""Finds the examples of a docstring."""


@dataclass(frozen=True)
class Documented:
    """A public name with its docstring. `function`: what is called, if it is in Python; `owner`: a member's class."""

    name: str
    value: Any
    docstring: Docstring
    function: Any
    owner: type | None = None

    @property
    def parameters(self) -> list[str]:
        """The parameters that are to be described."""
        called = self.value if isinstance(self.value, type) else self.function
        if called is None or self.is_property or self.is_uncalled:
            return []
        found = list(inspect.signature(called).parameters.values())
        if self.owner is not None and not isinstance(self.value, staticmethod):
            found = found[1:]
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        return [stars.get(one.kind, "") + one.name for one in found if not one.name.startswith("_")]

    @property
    def is_property(self) -> bool:
        """Whether it is a member that is read without a call."""
        return self.owner is not None and is_property(self.value)

    @property
    def needs_example(self) -> bool:
        """Whether it has to show how it is used."""
        is_enumeration = isinstance(self.value, type) and issubclass(self.value, enum.Enum)
        return bool(self.parameters) if self.owner is not None else not is_enumeration

    @property
    def is_uncalled(self) -> bool:
        """Whether users do not call it."""
        value = self.value
        return isinstance(value, type) and (issubclass(value, BaseException | enum.Enum) or is_made_elsewhere(value))

    @property
    def body(self) -> list[ast.AST]:
        """The nodes of its own body, without functions inside of it."""
        if self.function is None or isinstance(self.value, type):
            return []
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function)))
        found: list[ast.AST] = []
        waiting: list[ast.AST] = list(tree.body[0].body)  # type: ignore[attr-defined]
        while waiting:
            node = waiting.pop()
            found.append(node)
            if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                waiting += ast.iter_child_nodes(node)
        return found

    def faults(self) -> Iterator[str]:
        """What its docstring lacks."""
        text, names = self.docstring, self.docstring.names
        if "\n" in text.summary or not text.summary.endswith((".", ":")) or len(text.summary.split()) < 3:
            yield "a summary: one line that names it"
        if missing := [name for name in self.parameters if name not in names["Parameters"]]:
            yield f"parameters {', '.join(missing)}"
        untyped = [each.head for each in text.entries("Parameters") if not each.head.startswith("*")]
        if untyped := [head for head in untyped if " : " not in head]:
            yield f"types of {'; '.join(untyped)}"
        if dataclasses.is_dataclass(self.value) and self.is_uncalled:
            fields = [field.name for field in dataclasses.fields(self.value) if not field.name.startswith("_")]
            if missing := [name for name in fields if name not in names["Attributes"]]:
                yield f"attributes {', '.join(missing)}"
        free = any(name.startswith("**") for name in self.parameters)
        if not free and (unknown := [name for name in names["Parameters"] if name not in self.parameters]):
            yield f"parameters that it does not have: {', '.join(unknown)}"
        returns = any(isinstance(node, ast.Return) and not _is_none(node.value) for node in self.body)
        if returns and not self.is_property and not (names["Returns"] or names["Yields"]):
            yield "what it returns"
        if self.is_property and type_of(self.owner, self.name.rpartition(".")[2]) in ("", "Any"):
            yield "a type, in the class's list of attributes or as its annotation"
        raised = {_name_of(node.exc) for node in self.body if isinstance(node, ast.Raise)}
        if missing := sorted(one for one in raised if one.endswith("Error") and one not in names["Raises"]):
            yield f"when it raises {', '.join(missing)}"
        examples = EXAMPLES_OF.get_examples(text.sections.get("Examples", ""))
        if self.needs_example and not examples:
            yield "an example"
        if examples and not any(one.want for one in examples):
            yield "an example that shows a result"


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _name_of(node: ast.AST | None) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else ""


def documented() -> Iterator[Documented]:
    """Every public name once, and every public method and property."""
    seen: set[int] = set()
    names = {f"{owner}.{name}": one for owner, module in MODULES.items() for name, one in public(module).items()}
    for name, value in {**names, **RETURNED}.items():
        if isinstance(value, CONSTANTS) or id(value) in seen or not callable(value):
            continue
        seen.add(id(value))
        function = None if isinstance(value, type) else inspect.unwrap(value)
        function = function if inspect.isfunction(function) else None
        yield Documented(name, value, Docstring(value.__doc__), function)
        for member, one in members(value).items() if isinstance(value, type) else ():
            called = function_of(one)
            if id(called) not in seen:
                seen.add(id(called))
                text = docstring_of(value, member)
                yield Documented(f"{name}.{member}", one, text, inspect.unwrap(called), owner=value)


NAMES = list(documented())


@pytest.mark.parametrize("one", NAMES, ids=lambda one: one.name)
def test_it_is_documented(one: Documented) -> None:
    assert list(one.faults()) == []


EXAMPLES = [
    pytest.param(text, one.name, id=one.name, marks=[pytest.mark.torch] if "import torch" in text else [])
    for one in NAMES
    if (text := one.docstring.sections.get("Examples"))
]


@pytest.fixture
def jax_as_it_comes() -> Iterator[None]:
    """In single precision: peers of the benchmarks, which other tests of this process import, ask for double."""
    jax = sys.modules.get("jax")
    before = jax is not None and jax.config.read("jax_enable_x64")
    if jax is not None and before:
        jax.config.update("jax_enable_x64", False)
    yield
    if jax is not None and before:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.usefixtures("jax_as_it_comes")
@pytest.mark.parametrize(("text", "name"), EXAMPLES)
def test_its_examples_print_what_they_show(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ti.init(random_seed=1)
    assert session_failures(text, name, {"ti": ti, "__name__": name}) == []


def test_the_lists_of_methods_name_what_there_is() -> None:
    for one in NAMES:
        if isinstance(one.value, type):
            listed = {*one.docstring.names["Methods"], *one.docstring.names["Attributes"]}
            assert not {name for name in one.docstring.names["Methods"] if not hasattr(one.value, name)}, listed
