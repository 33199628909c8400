"""Every public name has a docstring of its own, whose parts `test_docstrings.py` looks at, and pages name what there
is.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from manual.reference import MODULES, public

import tinote as ti
from tinote.errors import NotAvailableError
from tinote.ir.types import Scalar
from tinote.lang.data.tree import Axes
from tinote.lang.kernels.func import Func
from tinote.lang.maths.builtin import BuiltinFunction
from tinote.lang.session.state import Arch
from tinote.manual import ERRORS

PROJECT = Path(__file__).resolve().parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
TOPICS = (PROJECT / "docs" / "names.md").read_text(encoding="utf-8")

NAMES = [
    pytest.param(value, id=f"{owner}.{name}")
    for owner, module in MODULES.items()
    for name, value in public(module).items()
    if not isinstance(value, (int, float, Scalar, Arch, Axes))
]


def docstring_of(value: Any) -> str:
    """Its own; a function's must not be that of the class it is made by."""
    text = getattr(value, "__doc__", None) or ""
    return "" if isinstance(value, BuiltinFunction | Func) and text == type(value).__doc__ else text


@pytest.mark.parametrize("value", NAMES)
def test_it_says_what_it_is(value: Any) -> None:
    text = " ".join(docstring_of(value).split())
    assert len(text.split()) >= 5, f"says only {text!r}"


def test_functions_of_the_language_have_the_parameters_that_they_name() -> None:
    for function, parameters in (
        (ti.clamp, "(x, xmin, xmax)"),
        (ti.max, "(*items)"),
        (ti.sum, "(items, start=0)"),
        (ti.floor, "(x, dtype=None)"),
        (ti.sin, "(x)"),
    ):
        signature = inspect.signature(function)
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
        assert str(inspect.Signature(bare)) == parameters


def test_the_index_by_topic_knows_every_name() -> None:
    reported = set(re.findall(r"`([^`]+)`", TOPICS))
    for owner in ("ti.ad", "ti.viz", "ti.profiler", "ti.algorithms", "ti.tools"):
        missing = [name for name in public(MODULES[owner]) if f"{owner}.{name}" not in reported]
        assert not missing, f"{owner}: {missing}"


def test_what_the_index_by_topic_names_exists() -> None:
    for dotted in re.findall(r"`(ti(?:\.\w+)+)", TOPICS):
        _found(dotted)


def test_what_the_manual_says_to_those_who_come_from_taichi() -> None:
    page = (PROJECT / "docs" / "coming_from.md").read_text(encoding="utf-8")
    lines = page.split("\n## Taichi\n")[1].split("\n## ")[0].splitlines()
    [missing] = [line for line in lines if "| not available;" in line]
    there, absent = (
        {name for line in some for name in re.findall(r"`(ti(?:\.\w+)+)[`(]", line)}
        for some in ([line for line in lines if line != missing], [missing])
    )
    assert len(there) >= 20 and len(absent) > 8
    for dotted in there:
        assert _found(dotted) is not None, dotted
    for dotted in absent - {"ti.func"}:
        with pytest.raises(NotAvailableError):
            _found(dotted)()  # modules may be named
    assert not issubclass(ti.TaichiSyntaxError, SyntaxError)

    @ti.func
    def endless(n: ti.i32) -> ti.i32:
        return endless(n - 1)

    @ti.kernel
    def k() -> ti.i32:
        return endless(3)

    with pytest.raises(ti.TaichiSyntaxError, match="calls itself"):
        k()


def test_what_the_manual_tells_those_who_come_from_elsewhere() -> None:
    text = (PROJECT / "docs" / "coming_from.md").read_text(encoding="utf-8")
    rows = text.partition("\n## JAX\n")[2].splitlines()  # Taichi's table has a row of what is missing here.
    cells = [row.split(" | ")[-1] for row in rows if row.startswith("| ")]
    names = {name for cell in cells for name in re.findall(r"`(ti(?:\.\w+)+)", cell)}
    assert len(names) >= 25
    for dotted in names:
        assert _found(dotted) is not None, dotted


def _found(dotted: str) -> Any:
    found: Any = ti
    for part in dotted.split(".")[1:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("page", ["README.md", "examples/README.md", "benchmarks/README.md", f"notebooks/{ERRORS}"])
def test_links_lead_somewhere(page: str) -> None:
    file = PROJECT / page
    links = re.findall(r"\]\(((?!https?:)[^)#]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if not (file.parent / link).exists()]


def test_the_readme_leads_to_every_notebook() -> None:
    linked = re.findall(r"\]\((notebooks/\d\d_\w+\.ipynb)\)", README)
    assert sorted(linked) == sorted(f"notebooks/{file.name}" for file in (PROJECT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "make",
    [
        *(ti.field, ti.Vector.field, ti.Matrix.field, ti.ndarray, ti.Vector.ndarray, ti.Matrix.ndarray),
        type(ti.types.struct(a=ti.f32)).field,
    ],
)
def test_it_says_what_leaving_needs_grad_out_means(make: Any) -> None:
    text = " ".join(make.__doc__.split())
    assert "temporary" in text and "constant" in text and "`needs_grad=False`" in text
