"""tinote: differentiable simulation kernels in notebooks.

    import tinote as ti

    ti.init()
    x = ti.field(ti.f32, shape=8, needs_grad=True)

    @ti.kernel
    def step(dt: ti.f32):
        for i in x:
            x[i] += dt

Everything public is a name of this module; `ti.viz` (pictures) is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from tinote import errors
from tinote.ir.types import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from tinote.lang import ad, algorithms, missing, profiler, types
from tinote.lang.calls import real_func, ref, sync
from tinote.lang.declarations import field
from tinote.lang.fields import Field, MatrixField, ScalarField
from tinote.lang.func import func
from tinote.lang.kernel import data_oriented, kernel
from tinote.lang.layout import Layout
from tinote.lang.maths import make_builtins
from tinote.lang.matrix import Matrix, Vector
from tinote.lang.ndarrays import MatrixNdarray, Ndarray, ScalarNdarray, VectorNdarray, from_dlpack, ndarray
from tinote.lang.parameters import template
from tinote.lang.structs import Struct, StructField, dataclass
from tinote.lang.tree import FieldsBuilder, axes, axes_named, root
from tinote.lang.world import arch_named, init, reset

__version__ = "0.1.0"

globals().update(make_builtins())
globals().update(
    {name: arch_named(name) for name in ("cpu", "gpu", "cuda", "vulkan", "metal", "opengl", "x64", "arm64")}
)
globals().update(axes_named())
var = field
float16, float32, float64 = f16, f32, f64
int8, int16, int32, int64 = i8, i16, i32, i64
uint8, uint16, uint32, uint64 = u8, u16, u32, u64

#: The names under which existing programs catch errors.
TaichiCompilationError = errors.CompilationError
TaichiSyntaxError = errors.KernelSyntaxError
TaichiTypeError = errors.KernelTypeError
TaichiNameError = errors.KernelNameError
TaichiIndexError = errors.KernelIndexError
TaichiRuntimeError = errors.KernelRuntimeError
TaichiRuntimeTypeError = errors.KernelTypeError
TaichiAssertionError = errors.KernelAssertionError

__all__ = [
    "Field", "FieldsBuilder", "Layout", "Matrix", "MatrixField", "MatrixNdarray", "Ndarray", "ScalarField",
    "ScalarNdarray", "Struct", "StructField", "Vector", "VectorNdarray", "ad", "algorithms", "axes", "data_oriented",
    "dataclass", "eig", "field", "from_dlpack", "func", "init", "kernel", "linalg", "math", "ndarray",
    "polar_decompose", "profiler", "real_func", "ref", "reset", "root", "solve", "svd", "sym_eig", "sync", "template",
    "tools", "types", "u1",
]  # fmt: skip

_LAZY = {
    "viz": ("tinote.viz", None),
    "GUI": ("tinote.viz.gui", "GUI"),
    "tools": ("tinote.viz.tools", None),
    "math": ("tinote.math", None),
    "linalg": ("tinote.lang.linalg", None),
    **{name: ("tinote.lang.linalg", name) for name in ("eig", "polar_decompose", "solve", "svd", "sym_eig")},
}


def __getattr__(name: str) -> Any:
    """Pictures, and what is written in the language itself, are loaded when they are first asked for, so that importing
    tinote stays fast.
    """
    if name in _LAZY:
        module, attribute = _LAZY[name]
        found = importlib.import_module(module)
        value = found if attribute is None else getattr(found, attribute)
        globals()[name] = value
        return value
    missing.refuse(name)
    raise AttributeError(f"module 'tinote' has no attribute '{name}'")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tinote`."""
    importlib.import_module("tinote.magics").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tinote`."""
    importlib.import_module("tinote.magics").unload_ipython_extension(shell)
