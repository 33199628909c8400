"""The distribution's name on an index, and other distributions with files in the package's folder: on the public index
the name `tinote` belongs to another project, and pip lets one overwrite the files of the other.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from pathlib import Path

NAME = "tinote-lang"
PACKAGE = Path(__file__).resolve().parent
MENDED_BY = f"uninstall it, then install {NAME} again"


def warn_of_namesakes(package: Path = PACKAGE) -> None:
    """Warns where the metadata of a distribution called `tinote` is next to the package. Only names are looked at:
    every import of the package does.
    """
    for name in os.listdir(package.parent):
        if name.startswith("tinote-") and name.endswith((".dist-info", ".egg-info")):
            found = name.rpartition(".")[0].replace("-", " ")
            message = (
                f"another distribution, {found}, has files in {package}, which may not be tinote's own: {MENDED_BY}"
            )
            warnings.warn(message, stacklevel=3)


def other_owners() -> list[str]:
    """The distributions, with their versions, other than this one that own files of a package `tinote`."""
    metadata = import_module("importlib.metadata")  # It takes a tenth of the time of an import of the package.
    found: list[str] = []
    for one in metadata.distributions():
        if one.name != NAME and any(file.parts[0] == "tinote" for file in one.files or () if len(file.parts) > 1):
            found.append(f"{one.name} {one.version}")
    return sorted(found)
