"""IPython: `%load_ext tinote`, `%%kernel` and the line magics."""

from __future__ import annotations

from typing import Any

from tinote.magics.kernel_magic import KernelMagics, complete_options
from tinote.source import set_place_namer

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Register `%%kernel` and `%explore`, and let errors name cells as people do."""
    shell.register_magics(KernelMagics)
    shell.set_hook("complete_command", complete_options, str_key="%%kernel")

    def cell_name(file: str) -> str:
        described = shell.compile.format_code_name(file)
        return " ".join(described) if described else file

    set_place_namer(cell_name)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away again."""
    shell.magics_manager.magics["cell"].pop("kernel", None)
    shell.magics_manager.magics["line"].pop("explore", None)
    set_place_namer(None)
