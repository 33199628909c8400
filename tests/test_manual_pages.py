"""The manual's how-to pages, questions and answers, and glossary: their form, and that what they name exists."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from manual.sources import lead_home

import tinote as ti
from tinote.compiler.inspect.glossary import GLOSSARY
from tinote.errors import NotAvailableError

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "glossary.md"
TEXT = PAGE.read_text("utf-8")
HEADING = "\n## The compiler\n"


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section, without their heads."""
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line] for line in lines if line[0].strip() != "word"]


def test_the_words_of_the_compiler_are_those_of_the_explorer(request: pytest.FixtureRequest) -> None:
    """`--update-golden` writes them into the page."""
    before, heading, section = TEXT.partition(HEADING)
    head, rule, _ = section.partition("|---|---|\n")
    wanted = before + heading + head + rule + "".join(f"| {term.name} | {term.sentence} |\n" for term in GLOSSARY)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(wanted, "utf-8")
    else:
        assert wanted == TEXT


def test_each_word_is_explained_once_in_its_section() -> None:
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    assert len(sections) == 4
    for section in sections:
        words = [row[0] for row in rows(section)]
        assert len(words) == len(set(words)) and all(all(row) for row in rows(section))


HOW_TO = sorted(page for page in (DOCS / "how_to").glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_how_to_page_has_a_program_early_and_says_what_to_watch_out_for(page: Path) -> None:
    text = page.read_text("utf-8")
    problem, program = text.split("```python\n")[:2]
    assert len(problem.split()) < 80 and "import tinote as ti" in program
    assert "\n## What to watch out for\n\n- " in text and "\nMore: " in text
    index = (DOCS / "how_to" / "index.md").read_text("utf-8")
    assert f"]({page.name})" in index and f"\n{page.stem}\n" in index


def found(dotted: str) -> Any:
    return reduce(getattr, dotted.split(".")[1:], ti)


@pytest.mark.parametrize("page", [PAGE, DOCS / "faq.md", *sorted((DOCS / "how_to").glob("*.md"))], ids=lambda p: p.stem)
def test_the_names_that_a_page_gives_exist(page: Path) -> None:
    text, _, missing = page.read_text("utf-8").partition("\n## What is missing\n")
    missing, _, rest = missing.partition("\n## ")
    prose = re.sub(r"^```.*?^```$", "", text + rest, flags=re.MULTILINE | re.DOTALL)
    for dotted in set(re.findall(r"`(ti(?:\.\w+)+)", prose)):
        assert found(dotted) is not None
    for dotted in [name for row in rows(missing) for name in re.findall(r"`(ti(?:\.\w+)+)", row[0])]:
        if dotted != "ti.func":
            with pytest.raises(NotAvailableError):  # of a module, whatever is in it
                assert found(dotted).something()


def test_the_links_of_the_page_404_start_from_the_address_of_the_site() -> None:
    for page, address, wanted in (
        ("404", "https://example.org/tinote/", '<base href="https://example.org/tinote/"><meta>'),
        ("404", "", "<meta>"),
        ("index", "https://example.org/tinote/", "<meta>"),
    ):
        context = {"metatags": "<meta>"}
        app = SimpleNamespace(config=SimpleNamespace(html_baseurl=address))
        lead_home(app, page, "page.html", context, None)  # type: ignore[arg-type]
        assert context["metatags"] == wanted
