"""The gallery: each program of `examples/` that has a view, running.

Run as a program in a process of its own, it makes the pages: `python -m manual.gallery FOLDER NAME …`.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import os
import pickle
import re
import runpy
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipywidgets import Box

from manual.places import REPOSITORY, described, running_frame, write
from tinote.viz.pages.export import running

EXAMPLES = REPOSITORY / "examples"
HEAD = """# Gallery

The programs of the folder `examples/`, each of them running in its page, without Python. A step consists of kernels
and of gradients derived from them; it was captured and runs as WebAssembly. The code is below each view. Sliders and
the pointer work as in a notebook.

"""

REST = """## Programs without a view

These run in Python, and print what they find.

"""
WITHOUT_VIEW = {
    "heat_source": "SciPy's optimiser solves one linear system after another; there is no step to run.",
    "implicit_cloth": "a step fills a sparse matrix and factorises it, which no kernel does: that cannot be captured.",
    "implicit_fem": "a step iterates until it has solved its equations, and a captured step cannot decide how often.",
    "maml": "it trains a network, and prints what one step of gradient descent is worth afterwards.",
    "ranges": "its runs are spread over processes, and a page has none.",
    "optax_fit": "the optimiser belongs to JAX and runs in Python.",
    "optimisers": "the optimisers belong to other libraries, and run in Python.",
    "torch_controller": "the network and its optimiser belong to PyTorch, and run in Python.",
}
"""Why the other programs have none."""


def examples() -> list[Path]:
    """The programs that define `view()`."""
    return [file for file in sorted(EXAMPLES.glob("*.py")) if "def view(" in file.read_text("utf-8")]


def write_gallery(sources: Path, views: Path, cache: Path) -> None:
    """Write the gallery as sources of the site, and the pages of its views into the folder `views`."""
    files = examples()
    others = {file.stem: file for file in sorted(EXAMPLES.glob("*.py")) if file not in files}
    if others.keys() != WITHOUT_VIEW.keys():
        wrong = ", ".join(sorted(others.keys() ^ WITHOUT_VIEW.keys()))
        raise RuntimeError(f"WITHOUT_VIEW has to name the examples without a view, and no others: {wrong}")
    cache.mkdir(parents=True, exist_ok=True)
    held = cache / "gallery.pickle"
    command = [sys.executable, "-m", "manual.gallery", str(held), *(file.stem for file in files)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), str(REPOSITORY)])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the gallery: {done.stderr[-3000:]}")
    made = pickle.loads(held.read_bytes())  # Written by this very process' child.
    cards: list[str] = []
    for file in files:
        source = file.read_text("utf-8")
        name = re.findall(r'^TITLE = "(.*)"$', source, re.MULTILINE)[0]
        title, text = _described(file)
        found, png = made[file.stem]
        parts = [f"# {name}", f"{title}\n{text}"]
        for number, shown in enumerate(found):
            page = f"gallery-{file.stem}{f'-{number + 1}' * (number > 0)}.html"
            parts.append(running_frame(described(shown), views, page, "../", plays=True))
        code = source.split('"""', 2)[2].strip()
        parts += [f"`examples/{file.name}`", f"```python\n{code}\n```"]
        write(sources / f"{file.stem}.md", "\n\n".join(parts) + "\n")
        picture = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        cards.append(
            f'<a class="tinote-card" href="{file.stem}.html"><img src="{picture}" alt=""><b>{html.escape(name)}</b>'
            f"<span>{html.escape(title)}</span></a>"
        )
    rest = "\n".join(
        f"- `examples/{file.name}`: {_described(file)[0]} No view: {WITHOUT_VIEW[name]}"
        for name, file in others.items()
    )
    tree = "\n".join(["```{toctree}", ":hidden:", *(file.stem for file in files), "```"])
    shown = "\n".join(cards)
    write(sources / "index.md", f'{HEAD}<div class="tinote-cards">\n{shown}\n</div>\n\n{REST}{rest}\n\n{tree}\n')


def _described(file: Path) -> tuple[str, str]:
    """The first line of a program's docstring, and the others."""
    title, _, text = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or file.stem).partition("\n")
    return title, text


def _views(shown: Any) -> Iterable[Any]:
    return [view for child in shown.children for view in _views(child)] if isinstance(shown, Box) else [shown]


def main(target: Path, names: list[str]) -> None:
    """Make what the site shows of these examples."""
    os.environ.setdefault("MPLBACKEND", "agg")
    made: dict[str, Any] = {}
    for name in names:
        shown = _views(runpy.run_path(str(EXAMPLES / f"{name}.py"))["view"]())
        views = [view for view in shown if hasattr(view, "PAGE_KIND")]
        found = [running(view) for view in views]
        for one in found:
            if one.missing:
                raise RuntimeError(f"{name}: {json.dumps(one.missing)}")
        views[0].prepare_unattended()
        made[name] = ([{"running": one._asdict()} for one in found], views[0].picture())
    target.write_bytes(pickle.dumps(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
