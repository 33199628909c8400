"""Makes the film and the pictures of README and welcome notebook: `python docs/pictures/generate.py [NAME …]`.

The film is `view.record` of the view of the gravity tutorial. Pictures of the gallery are snapshots of the programs in
`examples/`; those of the tutorials are cut out of the outputs that are stored in the notebooks. The chart of times is
drawn from `benchmarks/reports/gradients.json`.
"""

from __future__ import annotations

import base64
import io
import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets import Box
from matplotlib.patches import Rectangle
from PIL import Image, ImageOps

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
NOTEBOOKS = REPOSITORY / "notebooks"
FILM_BYTES = 3_000_000
THUMBNAIL = (320, 200)
FRAME = 3

TUTORIALS = {
    "01_first_ten_minutes": (1, (0.0, 0.0, 1.0, 0.86)),
    "02_autodiff_gravity": (0, (0.0, 0.02, 1.0, 0.66)),
    "03_live_views_and_pages": (0, (0.0, 0.0, 1.0, 0.61)),
    "04_differentiable_programming": (0, None),
    "05_fitting_and_control": (6, (0.15, 0.0, 0.85, 0.86)),
    "06_fluid_live": (2, None),
    "07_cloth_in_space": (0, (0.05, 0.0, 0.95, 0.7)),
    "08_from_one_run_to_ten_thousand": (1, None),
    "09_neural_controller": (1, None),
    "10_port_a_taichi_program": (0, (0.0, 0.35, 1.0, 0.94)),
    "11_on_a_gpu": (0, None),
    "12_life_of_a_kernel": (0, (0.0, 0.0, 0.75, 0.95)),
    "13_making_a_kernel_fast": (1, None),
    "14_custom_gradients": (0, (0.0, 0.0, 0.8, 1.0)),
    "15_long_simulations": (0, (0.0, 0.0, 0.8, 1.0)),
    "16_debugging_gradients": (0, (0.45, 0.69, 1.0, 0.915)),
    "17_derivatives_that_compose": (1, None),
    "18_access_rules": (0, (0.0, 0.0, 0.9, 1.0)),
}
"""Of each tutorial: which of its stored pictures, and the part of it that is shown (left, top, right, bottom)."""

EXAMPLES = {
    "cloth_on_knot": 60, "dam_break": 120, "double_pendulum": 200, "double_slit": 90, "drum": 12, "flock": 60,
    "gray_scott": 300, "life": 8, "liquid": 400, "lorenz": 400, "network": 150, "orbit": 40, "smoke": 160,
    "thomson": 60, "throw": 12, "turbulence": 200,
}  # fmt: skip
"""How many frames each program of the gallery runs before its picture is taken."""

LARGE = {
    "explorer": ("02_autodiff_gravity", 1, (0.0, 0.0, 0.62, 0.49)),
    "fluid": ("06_fluid_live", 3, (0.0, 0.0, 1.0, 0.88)),
    "cloth": ("07_cloth_in_space", 0, (0.0, 0.0, 1.0, 0.72)),
}
"""The three pictures below the film: a tutorial, which of its pictures, and the part of it."""


def stored(name: str, number: int) -> Image.Image:
    """A picture that a notebook has stored."""
    document = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    outputs = [output for cell in document.cells for output in cell.get("outputs", [])]
    found = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return Image.open(io.BytesIO(base64.b64decode(found[number])))


def part(image: Image.Image, box: tuple[float, float, float, float] | None) -> Image.Image:
    """A part of a picture, in fractions of its size, on white, without the frame that views have."""
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.convert("RGBA").getchannel("A"))
    white = white.crop((FRAME, FRAME, image.width - FRAME, image.height - FRAME))
    if box is None:
        return white
    width, height = white.size
    return white.crop((round(box[0] * width), round(box[1] * height), round(box[2] * width), round(box[3] * height)))


def fitted(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The whole picture in the middle of a canvas of this size, whose colour is that of its corner."""
    shown = image.copy()
    shown.thumbnail(size, Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", size, image.getpixel((0, 0)))
    canvas.paste(shown, ((size[0] - shown.width) // 2, (size[1] - shown.height) // 2))
    return canvas


def save(image: Image.Image, path: Path) -> None:
    """A PNG of 256 colours."""
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(REPOSITORY)}: {path.stat().st_size // 1000} kB")


def views(shown: Any) -> list[Any]:
    """The live views of what a program shows."""
    if isinstance(shown, Box):
        return [view for child in shown.children for view in views(child)]
    return [shown] if hasattr(shown, "record") else []


def film() -> None:
    """The disc of the gravity tutorial falls in and rebounds."""
    shell = InteractiveShell.instance()
    for cell in nbformat.read(NOTEBOOKS / "02_autodiff_gravity.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            shell.run_cell(cell.source.replace("unattended_frames=120", "unattended_frames=0")).raise_error()
            if "view" in shell.user_ns:
                break
    view = shell.user_ns["view"]
    view.steps_per_frame = 14
    path = HERE / "film.gif"
    view.record(path, frames=96, frames_per_second=20, width=420)
    if path.stat().st_size > FILM_BYTES:
        raise RuntimeError(f"{path.name} is larger than {FILM_BYTES} bytes")


def gallery() -> None:
    """A small picture of each program."""
    for name, frames in EXAMPLES.items():
        (view, *_) = views(runpy.run_path(str(REPOSITORY / "examples" / f"{name}.py"))["view"]())
        view.advance(frames)
        image = Image.open(io.BytesIO(view.picture())).convert("RGBA")
        traits = (view.width, view.height) if hasattr(view, "height") else image.size
        image = image.crop((0, 0, image.width, min(image.height, round(image.width * traits[1] / traits[0]))))
        save(ImageOps.fit(part(image, None), THUMBNAIL), HERE / f"{name}.png")


def tutorials() -> None:
    """A small picture of each tutorial, for the welcome notebook."""
    for name, (number, box) in TUTORIALS.items():
        save(fitted(part(stored(name, number), box), THUMBNAIL), NOTEBOOKS / "pictures" / f"{name[:2]}.png")


def large() -> None:
    """The three pictures below the film."""
    for name, (tutorial, number, box) in LARGE.items():
        save(ImageOps.fit(part(stored(tutorial, number), box), (560, 420)), HERE / f"{name}.png")


def sparse() -> None:
    """The ring of the page about sparse fields, and the blocks that it makes active."""
    page = (REPOSITORY / "docs" / "language" / "sparse.md").read_text("utf-8")
    named: dict[str, Any] = {}
    exec_page(page.split("```python\n")[1].split("```")[0], named)
    density = named["density"].to_numpy()
    figure, axes = plt.subplots(figsize=(3.6, 3.6), dpi=120)
    blocks = {(i // 8, j // 8) for i, j in named["density"].to_sparse()[0].tolist()}
    for i, j in sorted(blocks):
        axes.add_patch(Rectangle((8 * i, 8 * j), 8, 8, facecolor="#cfe3f5", edgecolor="#4a7fb0", linewidth=0.8))
    held = np.ma.masked_equal(density.T, 0.0)
    axes.imshow(held, origin="lower", extent=(0, 64, 0, 64), cmap="Greys", vmin=-20.0, vmax=20.0, zorder=2)
    axes.set(xticks=range(0, 65, 16), yticks=range(0, 65, 16), xlabel="i", ylabel="j")
    figure.tight_layout()
    figure.savefig(HERE / "sparse.png")
    plt.close(figure)


def exec_page(program: str, named: dict[str, Any]) -> None:
    """Run a program of a page, as a cell, so that its kernels have a source."""
    shell = InteractiveShell.instance()
    shell.run_cell(program).raise_error()
    named.update(shell.user_ns)


def times() -> None:
    """What a value and its gradient cost: simulations against Taichi, JAX and Warp, kernels against JAX and C."""
    cases = json.loads((REPOSITORY / "benchmarks" / "reports" / "gradients.json").read_text("utf-8"))["cases"]
    matplotlib.use("agg")
    colors = {"tinote": "#2166c4", "JAX": "#d9822b", "Taichi": "#7a9a3a", "Warp": "#8a63a8"}
    with plt.rc_context({"font.size": 9}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.3), layout="constrained")
        _dots(left, _simulations(cases), colors)
        left.set_xlabel("times as long as tinote")
        left.set_title("Gradients of simulations, two cores", loc="left", fontsize=10)
        _dots(right, _kernels(cases), colors)
        right.axvline(1, color="#555555", linewidth=1)
        right.set_xlabel("times as long as C written by hand; a dot for each size")
        right.set_title("Gradients of kernels, one core", loc="left", fontsize=10)
        handles = [plt.Line2D([], [], marker="o", linestyle="", color=color) for color in colors.values()]
        figure.legend(handles, colors, loc="outside lower center", ncols=len(colors), frameon=False)
        figure.savefig(HERE / "times.png", dpi=130)
    save(Image.open(HERE / "times.png").convert("RGB"), HERE / "times.png")


Ratios = dict[str, dict[str, list[float]]]
"""Of each workload, what each library took, over what is 1."""


def _simulations(cases: list[dict[str, Any]]) -> Ratios:
    found: Ratios = {}
    titles = {"nbody": "gravity", "wave": "waves", "recurrence": "recurrences", "mass_spring": "masses and springs"}
    for case in cases:
        if (title := titles.get(case["parameters"].get("program"))) is not None:
            seconds = {row["name"]: row["seconds"] for row in case["rows"] if row["seconds"] and not row["wrong"]}
            names = ("tinote", "JAX", "Taichi", "Warp")
            found[title] = {name: [seconds[name.lower()] / seconds["tinote"]] for name in names}
    return found


def _kernels(cases: list[dict[str, Any]]) -> Ratios:
    found: Ratios = {}
    for case in cases:
        if case["parameters"].get("threads") == 1:
            seconds = {row["name"]: row["seconds"] for row in case["rows"] if row["seconds"] and not row["wrong"]}
            row = found.setdefault(re.split(r" of |, | by ", case["title"])[0], {"tinote": [], "JAX": []})
            styles = [seconds[name] for name in ("tinote fields", "tinote ndarrays", "tinote functional")]
            row["tinote"].append(min(styles) / seconds["c"])
            if "jax" in seconds:
                row["JAX"].append(seconds["jax"] / seconds["c"])
    return dict(sorted(found.items(), key=lambda one: -min(one[1]["tinote"])))


def _dots(axes: Any, ratios: Ratios, colors: dict[str, str]) -> None:
    """A row for each workload, on a logarithmic axis."""
    for at, row in enumerate(ratios.values()):
        for shift, (name, values) in enumerate(row.items()):
            places = [at + 0.24 - 0.16 * shift] * len(values)
            axes.scatter(values, places, s=26, color=colors[name], zorder=2)
    axes.set(xscale="log", yticks=range(len(ratios)), yticklabels=list(ratios))
    axes.set_xticks([ticks for ticks in (0.5, 1, 2, 5, 10, 20, 50) if ticks < 1.5 * axes.get_xlim()[1]])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid(axis="x", color="#dddddd", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)


PICTURES: dict[str, Callable[[], None]] = {
    "film": film, "gallery": gallery, "tutorials": tutorials, "large": large, "sparse": sparse, "times": times,
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
