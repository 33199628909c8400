"""The same kernel with other compiler options, for a comparison: fast maths, default types, the processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.versions import Version, version_of
from tinote.errors import closest
from tinote.ir.types import Scalar
from tinote.lang.session.state import memory_of
from tinote.runtime import jit
from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError

_TRUTH = (False, True)

#: What each option of `ti.init` may be that changes the code of a kernel; `cpu` is a processor (`jit.host_like`).
_CHOICES: dict[str, tuple[Any, ...]] = {
    "bounds_check": (False, True, "ignore"),
    "debug": _TRUTH,
    "default_fp": ("f32", "f64"),
    "default_ip": ("i32", "i64"),
    "fast_math": _TRUTH,
    "lanes": ("auto", "always", "never"),
    "opt_level": (0, 1, 2, 3),
    "overflow_check": _TRUTH,
}


def version_under(specialisation: Specialisation, options: Mapping[str, Any]) -> Version:
    """A specialisation as it is compiled under other options. Raises `ViewError` for an option that there is not, and
    `MachineError` for a processor that this machine cannot stand in for.
    """
    changed: dict[str, Any] = {}
    for name, value in options.items():
        plain = value.name if isinstance(value, Scalar) else value
        choices = _CHOICES.get(name)
        if name != "cpu" and choices is None:
            close = closest(name, [*_CHOICES, "cpu"])
            hint = f"did you mean {close!r}?" if close else f"there are {', '.join([*_CHOICES, 'cpu'])}"
            raise ViewError(f"no option of the compiler is called {name!r}", hint=hint)
        if choices is not None and not any(plain == one and type(plain) is type(one) for one in choices):
            raise ViewError(f"{name} cannot be {shown(value)}", hint=f"it may be {', '.join(map(repr, choices))}")
        changed[name] = plain
    cpu = str(changed.pop("cpu", ""))
    if cpu:
        jit.host_like(cpu, "cpu=")
    config = specialisation.config._replace(**changed)
    other = Specialisation(specialisation.source, specialisation.arguments, config, memory_of)
    return version_of(other)._replace(cpu=cpu)


def as_text(options: Mapping[str, Any]) -> str:
    """Options as a title shows them."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def as_code(options: Mapping[str, Any]) -> str:
    """Options as a cell writes them."""
    values = {name: f"ti.{value}" if isinstance(value, Scalar) else repr(value) for name, value in options.items()}
    return f"{{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}}"
