"""tinote: differentiable simulation kernels in notebooks.

    import tinote as ti

    ti.init()
    x = ti.field(ti.f32, shape=8, needs_grad=True)

    @ti.kernel
    def step(dt: ti.f32):
        for i in x:
            x[i] += dt

Everything public is a name of this module; `ti.ad` (derivatives) and `ti.viz` (pictures) are loaded when they are first
used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tinote.distribution import warn_of_namesakes
from tinote.errors import no_attribute
from tinote.lang import exception, misc, ops, util
from tinote.lang.data import argpacks, primitive_types, types  # noqa: F401 (adds `ti.types.argpack`)
from tinote.lang.data.declarations import field
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import Layout
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.data.ndarrays import MatrixNdarray, Ndarray, ScalarNdarray, VectorNdarray, from_dlpack, ndarray
from tinote.lang.data.structs import Struct, StructField, dataclass
from tinote.lang.data.tree import FieldsBuilder, Level, axes, axes_named, deactivate_all_snodes, root
from tinote.lang.data.types import Template, template
from tinote.lang.exception import (
    TaichiAssertionError,
    TaichiCompilationError,
    TaichiIndexError,
    TaichiNameError,
    TaichiRuntimeError,
    TaichiRuntimeTypeError,
    TaichiSyntaxError,
    TaichiTypeError,
)
from tinote.lang.kernels import profiler
from tinote.lang.kernels.calls import experimental, pyfunc, real_func, ref, sync
from tinote.lang.kernels.func import func
from tinote.lang.kernels.kernel import data_oriented, kernel
from tinote.lang.maths import algorithms
from tinote.lang.misc import cfg, is_arch_supported, is_logging_effective, set_logging_level
from tinote.lang.session import missing
from tinote.lang.session.state import arches, init, reset
from tinote.lazy import load as _load

if TYPE_CHECKING:
    from tinote import (  # noqa: F401
        _lib,
        ad,
        fft,
        geometry,
        graph,
        integrate,
        io,
        linalg,
        magics,
        math,
        multigrid,
        nn,
        sampling,
        spatial,
        tools,
        ui,
        units,
        viz,
    )
    from tinote.lang.capture.captured_function import capture
    from tinote.lang.maths.linalg import cholesky, eig, polar_decompose, qr, solve, svd, sym_eig
    from tinote.lang.states.state import load, save
    from tinote.lang.sweeps.ensemble import ensemble
    from tinote.lang.sweeps.sweep import sweep
    from tinote.viz.draw.arrays import hex_to_rgb, rgb_to_hex  # noqa: F401
    from tinote.viz.window.gui import GUI  # noqa: F401

__version__ = "0.2.0"

globals().update({name: getattr(ops, name) for name in ops.__all__})
globals().update(primitive_types.by_name)
globals().update(arches())
globals().update(misc.LOG_LEVELS)
globals().update(axes_named())
SNode = Level
var = field

types.primitive_types = primitive_types  # type: ignore[attr-defined]
sys.modules[f"{__name__}.types.primitive_types"] = primitive_types

warn_of_namesakes()

# `from tinote.types import vector`: they are modules of the package, too.
for _module in (algorithms, exception, misc, ops, profiler, types, util):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

# Modules of the dialect whose names are all in one of these here, and modules that are left out.
for _name in ("annotations", "compound_types", "enums", "ndarray_type", "utils"):
    sys.modules[f"{__name__}.types.{_name}"] = types
    setattr(types, _name, types)
types.Layout = Layout  # type: ignore[attr-defined]
for _owner, _name in (("ti", "aot"), ("ti.lang", "mesh"), ("ti.lang", "simt"), ("ti.types", "quant")):
    sys.modules[f"{_owner.replace('ti', __name__, 1)}.{_name}"] = missing.left_out(_name, _owner)  # type: ignore[assignment]

__all__ = [
    "Field", "FieldsBuilder", "Layout", "Matrix", "MatrixField", "MatrixNdarray", "Ndarray", "SNode", "ScalarField",
    "ScalarNdarray", "Struct", "StructField", "TaichiAssertionError", "TaichiCompilationError", "TaichiIndexError",
    "TaichiNameError", "TaichiRuntimeError", "TaichiRuntimeTypeError", "TaichiSyntaxError", "TaichiTypeError",
    "Template", "Vector", "VectorNdarray", "ad", "algorithms", "axes", "capture", "cfg", "cholesky", "data_oriented",
    "dataclass", "deactivate_all_snodes", "eig", "ensemble", "experimental", "fft", "field", "from_dlpack", "func",
    "geometry", "graph", "init", "integrate", "io", "is_arch_supported", "is_logging_effective", "kernel", "linalg",
    "load", "math", "multigrid", "ndarray", "nn", "polar_decompose", "profiler", "pyfunc", "qr", "real_func", "ref",
    "reset", "root", "sampling", "save", "set_logging_level", "solve", "spatial", "svd", "sweep", "sym_eig", "sync",
    "template",
    "tools", "types", "u1", "units",  # pyright: ignore[reportUnsupportedDunderAll]
]  # fmt: skip

_LAZY = {
    "_lib": ("tinote._lib", None),
    "ad": ("tinote.ad", None),
    "capture": ("tinote.lang.capture.captured_function", "capture"),
    "ensemble": ("tinote.lang.sweeps.ensemble", "ensemble"),
    "load": ("tinote.lang.states.state", "load"),
    "save": ("tinote.lang.states.state", "save"),
    "sweep": ("tinote.lang.sweeps.sweep", "sweep"),
    "viz": ("tinote.viz", None),
    "fft": ("tinote.fft", None),
    "geometry": ("tinote.geometry", None),
    "sampling": ("tinote.sampling", None),
    "integrate": ("tinote.integrate", None),
    "multigrid": ("tinote.multigrid", None),
    "io": ("tinote.io", None),
    "spatial": ("tinote.spatial", None),
    "nn": ("tinote.nn", None),
    "GUI": ("tinote.viz.window.gui", "GUI"),
    "ui": ("tinote.ui", None),
    "hex_to_rgb": ("tinote.viz.draw.arrays", "hex_to_rgb"),
    "rgb_to_hex": ("tinote.viz.draw.arrays", "rgb_to_hex"),
    "tools": ("tinote.tools", None),
    "units": ("tinote.units", None),
    "graph": ("tinote.graph", None),
    "math": ("tinote.math", None),
    "linalg": ("tinote.linalg", None),
    **{
        name: ("tinote.lang.maths.linalg", name)
        for name in ("cholesky", "eig", "polar_decompose", "qr", "solve", "svd", "sym_eig")
    },
    # Spellings of the dialect's early versions.
    "Tape": ("tinote.ad", "Tape"),
    "any_arr": ("tinote.types", "ndarray"),
    "clear_all_gradients": ("tinote.ad", "clear_all_gradients"),
    "complex_kernel": ("tinote.ad", "grad_replaced"),
    "complex_kernel_grad": ("tinote.ad", "grad_for"),
    "ext_arr": ("tinote.types", "ndarray"),
    "kernel_profiler_clear": ("tinote.profiler", "clear_kernel_profiler_info"),
    "kernel_profiler_print": ("tinote.profiler", "print_kernel_profiler_info"),
    "print_kernel_profile_info": ("tinote.profiler", "print_kernel_profiler_info"),
    **{
        name: ("tinote.tools", name)
        for name in ("PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite")
    },
}

# What else this module names, for itself: completion leaves it out, and all modules but these.
_INNER = {
    *("Any", "Level", "ModuleType", "TYPE_CHECKING", "annotations", "arches", "axes_named", "no_attribute"),
    *("load_ipython_extension", "unload_ipython_extension", "warn_of_namesakes"),
}
_MODULES = {
    *(
        "ad",
        "algorithms",
        "exception",
        "fft",
        "geometry",
        "graph",
        "integrate",
        "io",
        "lang",
        "linalg",
        "math",
        "misc",
        "multigrid",
        "nn",
        "ops",
        "profiler",
        "sampling",
        "spatial",
        "tools",
        "types",
    ),
    *("ui", "units", "util", "viz"),
}


def __getattr__(name: str) -> Any:
    """Derivatives, pictures, and what is written in the language itself, are loaded when they are first asked for, so
    that importing tinote stays fast.
    """
    if name in _LAZY:
        module, attribute = _LAZY[name]
        found = _load(module)
        value = found if attribute is None else getattr(found, attribute)
        globals()[name] = value
        return value
    left_out = missing.left_out(name, "ti")
    if left_out is not None:
        return left_out
    raise no_attribute("module 'tinote'", name, __dir__(), "" if name.startswith("_") else _what_to_do(name))


def _what_to_do(name: str) -> str:
    """About a name that is not here: where it is, or what stands for it here."""
    for module in ("ad", "math"):
        if name in __getattr__(module).__all__:
            return f"it is `ti.{module}.{name}`"
    return missing.HABITS.get(name, "")


def __dir__() -> list[str]:
    inner = {name for name, value in globals().items() if isinstance(value, ModuleType)} - _MODULES | _INNER
    return sorted(name for name in {*globals(), *_LAZY} - inner if not name.startswith("_"))


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tinote`."""
    _load("tinote.magics").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tinote`."""
    _load("tinote.magics").unload_ipython_extension(shell)
