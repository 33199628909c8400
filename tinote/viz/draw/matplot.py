"""`ti.viz.plot`: a field through matplotlib. Loaded when it is first used, because matplotlib takes long to import."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError, as_array


@checked
def plot(field: Any, axes: Axes | None = None, **options: Any) -> Axes:
    """Draw a field or array with matplotlib.

    Numbers along a line, shape (N,), become a curve over the index; numbers over a plane, (columns, rows), an image
    with a colour bar, cell (0, 0) at the bottom left; points in the plane, (N, 2), dots; vectors over a plane,
    (columns, rows, 2), arrows.

    Parameters
    ----------
    field : Field or array_like
        What is drawn.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    **options
        For matplotlib's `plot`, `imshow`, `scatter` or `quiver`.

    Returns
    -------
    matplotlib.axes.Axes
        For titles and labels.

    Raises
    ------
    ViewError
        For another shape.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=100)
    >>> axes = ti.viz.plot(x)
    >>> _ = axes.set_xlabel("index")
    >>> axes.lines[0].get_xdata()[-1].item()
    99
    """
    values = as_array(field)
    if values.dtype.kind not in "fiub":
        raise ViewError(f"what is plotted holds {values.dtype}, not numbers")
    points = values.ndim == 2 and len(getattr(field, "element", ())) == 1
    fits = values.shape[1:] == (2,) if points else values.ndim in (1, 2) or values.shape[2:] == (2,)
    if not fits:
        raise ViewError(
            f"there is no plot of the shape {values.shape}",
            hint="numbers (N,) or (columns, rows), points (N, 2) as a field of vectors, arrows (columns, rows, 2)",
        )
    target = plt.subplots()[1] if axes is None else axes
    if values.ndim == 1:
        target.plot(np.arange(len(values)), values, **options)
    elif points:
        target.scatter(values[:, 0], values[:, 1], **{"s": 4, **options})
        target.set_aspect("equal")
    elif values.ndim == 2:
        image = target.imshow(values.T, **{"origin": "lower", "interpolation": "nearest", **options})
        target.figure.colorbar(image, ax=target)
    else:
        across, up = np.meshgrid(np.arange(values.shape[0]), np.arange(values.shape[1]), indexing="ij")
        target.quiver(across, up, values[:, :, 0], values[:, :, 1], **options)
        target.set_aspect("equal")
    if not target.get_title():
        target.set_title(str(getattr(field, "name", "")))
    return target
