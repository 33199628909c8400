"""Two processes in one: the text of a module is written to a file and imported, again and again under one name."""

from __future__ import annotations

from typing import Any

__all__ = ["HEAD", "is_recalled"]

#: What every module begins with.
HEAD = """\
import math
import enum
import dataclasses
import numpy as np
import tinote as ti
"""


def is_recalled(kernel: Any) -> bool:
    """Whether the kernel's last instance came without the front end."""
    return kernel.specialisations()[-1]._lowered is None
