"""IPython: `%load_ext tinote`, `%%kernel` and the line magics."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import line_magic, magics_class
from IPython.core.magics.extension import ExtensionMagics

from tinote.compiler.waiting import show_with
from tinote.lang.ad.bars import draw_bars_with
from tinote.lang.sweeps.watching import watch_with
from tinote.magics.completion import make_completer
from tinote.magics.kernel_magic import KernelMagics
from tinote.magics.reloading import follow_reloads
from tinote.viz.access_rules.widget import show_after_errors
from tinote.viz.notebook import fields
from tinote.viz.notebook.error_view import show_errors
from tinote.viz.notebook.progress import bar_kind, compilation_bar
from tinote.viz.sweep_view.widget import watch_sweep


@magics_class
class SilentExtensionMagics(ExtensionMagics):
    """IPython's own, but that a cell with `%load_ext tinote` can run again and say nothing."""

    shell: Any

    @line_magic
    def load_ext(self, module_str: str) -> None:
        """Load an IPython extension by its module name."""
        if module_str != "tinote" or module_str not in self.shell.extension_manager.loaded:
            super().load_ext(module_str)  # type: ignore[call-arg]


def load_ipython_extension(shell: Any) -> None:
    """Register `%%kernel` and `%explore`, show fields with pictures and what breaks the access rules in the rule view,
    and let errors look as a notebook can show them.
    """
    shell.register_magics(KernelMagics)
    shell.register_magics(SilentExtensionMagics)
    fields.register(shell)
    _forget_completer(shell)
    completer = make_completer(shell)
    completer.__dict__["tinote"] = True
    shell.Completer.custom_matchers.append(completer)

    if getattr(shell, "kernel", None) is not None:
        show_with(compilation_bar)
    draw_bars_with(bar_kind)
    watch_with(watch_sweep)
    follow_reloads(shell, on=True)
    show_errors(shell, on=True)
    show_after_errors(shell, on=True)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away again."""
    shell.register_magics(ExtensionMagics)
    shell.magics_manager.magics["cell"].pop("kernel", None)
    shell.magics_manager.magics["line"].pop("explore", None)
    fields.unregister(shell)
    _forget_completer(shell)
    show_with(None)
    draw_bars_with(None)
    watch_with(None)
    follow_reloads(shell, on=False)
    show_errors(shell, on=False)
    show_after_errors(shell, on=False)


def _forget_completer(shell: Any) -> None:
    matchers = shell.Completer.custom_matchers
    matchers[:] = [matcher for matcher in matchers if not getattr(matcher, "tinote", False)]
