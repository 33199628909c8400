"""Examples on pages of the manual and in docstrings: programs that run one after another, and what they print."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import warnings
from typing import Any

BLOCK = re.compile(r"^```python\n(?P<program>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def programs(text: str) -> list[str]:
    """The blocks of Python of a page."""
    return [block["program"] for block in BLOCK.finditer(text)]


def execute(program: str, file: str, space: dict[str, Any], mode: str = "exec") -> None:
    """Run a block as the text of `file`. Kernels read their own source, so it is kept there. In the mode "single" a
    value is printed, as in a session.
    """
    linecache.cache[file] = (len(program), None, program.splitlines(keepends=True), file)
    exec(compile(program, file, mode), space)


def printed(program: str, file: str, space: dict[str, Any], mode: str = "exec") -> str:
    """What a block prints: its output, its warnings, and the error that ends it, with lines counted in the block."""
    out = io.StringIO()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        out.write(f"{category.__name__}: {message}\n")

    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            execute(program, file, space, mode)
        except Exception as error:
            out.write(f"{type(error).__name__}: {error}\n")
    lines = re.sub(r"<[^<>\n]*, example \d+>, line", "line", out.getvalue()).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def rendered(text: str, name: str) -> str:
    """A page with what its blocks print today in the blocks of text after them. A shown `...` stands for any text."""
    space: dict[str, Any] = {"__name__": name}
    number = 0

    def replaced(block: re.Match[str]) -> str:
        nonlocal number
        number += 1
        program, shown = block["program"], block["shown"]
        found = printed(program, f"<{name}, example {number}>", space)
        if shown is not None and doctest.OutputChecker().check_output(shown, found, doctest.ELLIPSIS):
            return block[0]
        return f"```python\n{program}```\n" + (f"\n```text\n{found}```\n" if found else "")

    return BLOCK.sub(replaced, text)


def session_failures(text: str, name: str, space: dict[str, Any]) -> list[str]:
    """Run the sessions of a text, lines after `>>> `, one after another; gives where they print something else than
    what stands below them. A shown `...` stands for any text.
    """
    failures: list[str] = []
    for number, example in enumerate(doctest.DocTestParser().get_examples(text), 1):
        found = printed(example.source, f"<{name}, example {number}>", space, "single")
        how = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        if not doctest.OutputChecker().check_output(example.want, found, how):
            failures.append(f"{example.source}gives {found!r}, not {example.want!r}")
    return failures
