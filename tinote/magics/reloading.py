"""`%autoreload`: what a notebook has imported by name follows the module that is loaded again.

IPython changes functions and classes of such a module in place, wherever they are held. A kernel, a device function or
a type of structs is neither: here the notebook's names for it, as `from module import step` made them, are bound to the
new one. Kernels of the notebook that capture such a name see that, as they see any other assignment.
"""

from __future__ import annotations

from typing import Any

from IPython.extensions import autoreload

from tinote.lang.data.structs import StructType
from tinote.lang.kernels.func import Func
from tinote.lang.kernels.kernel import Kernel

_KINDS = (Kernel, Func, StructType)
_rules: list[Any] = autoreload.UPDATE_RULES
_ours: dict[int, Any] = {}


def follow_reloads(shell: Any, *, on: bool) -> None:
    """Let the names of `shell` follow what is loaded again, or no longer."""
    earlier = _ours.pop(id(shell), None)
    if earlier is not None:
        _rules.remove(earlier)
    if not on:
        return

    def names_of(old: Any) -> list[str]:
        return [name for name, value in shell.user_ns.items() if value is old]

    def is_held(old: Any, new: Any) -> bool:
        return isinstance(old, _KINDS) and type(old) is type(new) and bool(names_of(old))

    def bind_again(old: Any, new: Any) -> None:
        for name in names_of(old):
            shell.user_ns[name] = new

    _ours[id(shell)] = rule = (is_held, bind_again)
    _rules.append(rule)
