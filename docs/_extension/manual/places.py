"""Where things are, and running pages within pages of the site."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from tinote.viz.pages.export import Pages, Running

REPOSITORY = Path(__file__).resolve().parents[3]
VIEWS = "views"
"""The folder of the site that holds the pages in frames."""

CONTROLS = 92
CONTROL = 30


def write(path: Path, text: str) -> None:
    """Write a file, unless it holds that already: what reads it need not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def running_frame(found: Running, folder: Path, name: str, above: str, plays: bool = False) -> str:
    """Write the page of a live view into `folder` as `name`; gives the frame that shows it, as HTML of a page from
    which `above` leads to the site. `plays`: at once, unless the reader's system asks for less motion.
    """
    traits = found.described["traits"]
    label = str(traits["label"])
    pages = Pages()
    text = pages.html(label, f"<main>\n{pages.place(found)}\n</main>")
    write(folder / name, text)
    height = traits["height"] * (found.kind != "plot") + traits["chart_height"] * bool(traits["series"])
    height += CONTROLS + CONTROL * len(found.described["controls"])
    address = f"{above}{VIEWS}/{name}" + "#play" * plays
    return frame(address, f"{label}, running", height, f"{len(text) // 1000} kB", "is-live")


def frame(address: str, title: str, height: int, said: str, kind: str) -> str:
    """A page in a frame, with a link to it alone; `site.js` gives it its height and its theme."""
    given = {"src": address, "title": title, "height": height, "loading": "lazy", "allow": "fullscreen"}
    attributes = " ".join(f'{name}="{html.escape(str(value))}"' for name, value in given.items())
    link = f'<a href="{html.escape(address)}">Open it alone</a>'
    return (
        f'<figure class="tinote-frame {kind}"><iframe {attributes}></iframe>'
        f"<figcaption>{link} · {said}, without Python, server or network</figcaption></figure>"
    )


def described(found: dict[str, Any]) -> Running:
    """A view of an output (`tinote.viz.pages.stored`)."""
    made = found["running"]
    return Running(made["kind"], made["described"], ())
