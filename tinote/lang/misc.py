"""Questions that programs ask about the session: `ti.cfg`, `ti.is_arch_supported`, and related functions."""

from __future__ import annotations

from typing import Any

from tinote.config import Config
from tinote.errors import FieldError
from tinote.ir.types import Scalar, scalar_named
from tinote.lang.data.layout import MOST_DIMENSIONS
from tinote.lang.session.state import HOST, Arch, arches, gpu_backends, session
from tinote.source import caller

__all__ = [
    "GGUI_AVAILABLE",
    "LOG_LEVELS",
    "cfg",
    "current_cfg",
    "get_host_arch_list",
    "get_max_num_indices",
    "is_arch_supported",
    "is_logging_effective",
    "set_logging_level",
    "with_amdgpu",
    "with_cuda",
    "with_metal",
    "with_opengl",
    "with_vulkan",
]

#: Whether there are windows in space, `ti.ui.Window`: all that they need is installed with the package.
GGUI_AVAILABLE = True

#: By the names that they have in the package: `ti.INFO`, `ti.WARN`, …
LOG_LEVELS = {name.upper(): name for name in ("trace", "debug", "info", "warn", "error", "critical")}


class Settings:
    """The options that `ti.init` was given, to be read: `ti.cfg.arch`, `ti.cfg.default_fp`, `ti.cfg.random_seed`, …"""

    @property
    def arch(self) -> Arch:
        """The target that kernels really run on: `ti.cpu`, `ti.gpu` or `ti.python`. It is equal to other names of the
        same, such as `ti.vulkan`.
        """
        return arches()[session.config.arch]

    @property
    def default_fp(self) -> Scalar:
        """The type of floats whose type is not written."""
        return scalar_named(session.config.default_fp)

    @property
    def default_ip(self) -> Scalar:
        """The type of integers whose type is not written."""
        return scalar_named(session.config.default_ip)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Config._fields})

    def __getattr__(self, name: str) -> Any:
        if name not in Config._fields:
            raise AttributeError(f"ti.init has no option {name!r}")
        return getattr(session.config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)  # which says what is none
        raise FieldError(
            "the options of a session do not change", caller(), hint=f"`ti.init({name}=…)` begins a new one"
        )


cfg = Settings()


def current_cfg() -> Settings:
    """`ti.cfg`, as `ti.lang.impl` has it."""
    return cfg


def is_arch_supported(arch: Any) -> bool:
    """Whether kernels can run on an architecture.

    On a graphics card they can where there is one, or where a CPU may stand in for it (`software_gpu=True`).

    Parameters
    ----------
    arch : architecture
        `ti.cpu`, `ti.gpu`, `ti.python`, …

    Returns
    -------
    bool
        True if there is such a device.

    Raises
    ------
    FieldError
        For what is not an architecture.

    Examples
    --------
    >>> ti.is_arch_supported(ti.cpu)
    True
    """
    if not isinstance(arch, Arch):
        raise FieldError(f"{arch!r} is not an architecture", hint="use one of them, such as ti.cpu")
    return arch.real or (arch.target == "gpu" and bool(gpu_backends()))


def with_vulkan() -> bool:
    """Whether kernels can run on a graphics card by way of Vulkan."""
    return "Vulkan" in gpu_backends()


def with_metal() -> bool:
    """Whether kernels can run on a graphics card by way of Metal."""
    return "Metal" in gpu_backends()


def with_cuda() -> bool:
    """Whether kernels can be compiled for CUDA, OpenGL or ROCm: that is done for none of them."""
    return False


with_amdgpu = with_opengl = with_cuda


def get_host_arch_list() -> list[Arch]:
    """The processor that this is."""
    return [arches()[HOST]]


def get_max_num_indices() -> int:
    """How many index dimensions a field can have."""
    return MOST_DIMENSIONS


def set_logging_level(level: str) -> None:
    """Accept the name of a level of messages, without effect.

    Nothing is logged; what a user should know is a Python warning.

    Parameters
    ----------
    level : str
        `"trace"`, `"debug"`, `"info"`, `"warn"`, `"error"` or `"critical"`.

    Raises
    ------
    FieldError
        For what is not a level.

    Examples
    --------
    >>> ti.set_logging_level("debug")
    >>> ti.is_logging_effective("debug")
    False
    """
    if level not in LOG_LEVELS.values():
        raise FieldError(f"{level!r} is not a level of logging", caller(), hint=f"there are {', '.join(LOG_LEVELS)}")


def is_logging_effective(level: str) -> bool:
    """Whether messages of a level are logged: none are.

    Parameters
    ----------
    level : str
        The name of a level, such as `"warn"`.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> ti.is_logging_effective("info")
    False
    """
    set_logging_level(level)
    return False
