"""What tests of windows share."""

from __future__ import annotations

import numpy as np

import tinote as ti


def shown(window: ti.ui.Window) -> np.ndarray:
    """Show the frame; it as bytes, indexed [x, y] from the bottom left."""
    window.show()
    return np.rint(window.get_image_buffer_as_numpy()[:, :, :3] * 255).astype(int)
