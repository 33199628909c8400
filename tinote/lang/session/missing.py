"""Names of the dialect that this package leaves out, and names of other libraries, with their replacements."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from tinote.errors import NotAvailableError, no_attribute
from tinote.lang.session.renamed import warn_of_old_name
from tinote.source import Span, caller

_QUANTISED = "quantised types are left out", "use the nearest type of full width: `ti.f16`, `ti.i8` or `ti.i16`"
_MESH = "meshes are left out", "`ti.io.Mesh` has vertices, cells and neighbours as fields"
_TEXTURE = "textures are left out", "use a field or ndarray, and interpolate with `ti.math.mix`"
_PROFILER = "hardware counters are left out", "`ti.profiler.print_kernel_profiler_info()` shows the time of each task"
_SCOPED = "the profile of the compiler's own scopes is left out", "`kernel.instances` shows what compiling each took"
_AHEAD = "ahead-of-time modules are left out", "compiled kernels are kept on disk automatically"
_VTK = "VTK files are left out", "`ti.io.write` writes grids to *.vti and meshes to *.vtu"
_ADDRESS = "addresses in kernels are left out", "`x.numpy_view()` has that of the field, `ctypes.data`, and its strides"
_DEVICE = "instructions of one kind of GPU are left out", "write the loop plainly; it is vectorised for the CPU"

_MISSING: dict[str, tuple[str, str]] = {
    **dict.fromkeys(["BitpackedFields", "bit_array", "bit_struct", "quant", "quant_array"], _QUANTISED),
    **dict.fromkeys(
        [
            "Mesh",
            "MeshBuilder",
            "MeshInstance",
            "MeshMetadata",
            "TetMesh",
            "TriMesh",
            "mesh",
            "mesh_local",
            "mesh_patch_idx",
        ],
        _MESH,
    ),
    **dict.fromkeys(["Texture", "Format", "rw_texture", "texture"], _TEXTURE),
    **dict.fromkeys(
        [
            "CuptiMetric",
            "collect_kernel_profiler_metrics",
            "get_predefined_cupti_metrics",
            "set_kernel_profiler_metrics",
            "set_kernel_profiler_toolkit",
        ],
        _PROFILER,
    ),
    **dict.fromkeys(["clear_scoped_profiler_info", "print_scoped_profiler_info"], _SCOPED),
    **dict.fromkeys(["aot", "DeviceCapability"], _AHEAD),
    **dict.fromkeys(["vtk", "write_vtk"], _VTK),
    "extension": ("there are no optional extensions", "`ti.init` and kernels report what a device lacks"),
    **dict.fromkeys(["global_thread_idx", "simt"], _DEVICE),
    "get_addr": _ADDRESS,
}

_TAPE = "a tape computes gradients, `with ti.ad.Tape(loss):` around the launches; then `x.grad` is that of `x`"
_NEEDS_GRAD = "make the field with needs_grad=True"
_CLEAR = "`x.grad.fill(0)` clears a gradient; a tape begins by clearing all"
_KERNEL = "`@ti.kernel` above a function compiles it"
_PARALLEL = "an outermost `for` loop of a kernel runs in parallel"
_REDUCE = "add up in a kernel, or take `x.to_numpy()`"
_MAKE = "`ti.field(ti.f32, shape=…)` makes a field of zeros, and its `from_numpy(…)` takes values"
_JACOBIAN = "`ti.ad.jacobian`, `ti.ad.vjp` and `ti.ad.jvp` do this"
_CONSTANT = "`ti.stop_gradient(x[i])`, in a kernel, is a constant for derivatives"

HABITS: dict[str, str] = {
    "backward": _TAPE,
    "retain_grad": _TAPE,
    **dict.fromkeys(["requires_grad", "requires_grad_"], _NEEDS_GRAD),
    **dict.fromkeys(["zero_", "zero_grad"], _CLEAR),
    **dict.fromkeys(["jit", "njit", "compile"], _KERNEL),
    **dict.fromkeys(["vmap", "pmap", "prange"], _PARALLEL),
    **dict.fromkeys(["sum", "mean", "argmax", "argmin"], _REDUCE),
    "item": "`x[None]` is the value of a field of shape (), `x[i]` an element",
    **dict.fromkeys(["array", "asarray", "empty", "ones", "tensor", "zeros"], _MAKE),
    **dict.fromkeys(["jacfwd", "jacrev", "jacobian", "hessian"], _JACOBIAN),
    **dict.fromkeys(["detach", "no_grad"], _CONSTANT),
    "ndim": "`len(x.shape)` is the number of dimensions",
    "size": "`math.prod(x.shape)` is the number of elements",
    "T": "transpose the array, `x.to_numpy().T`",
    "tid": "the index of an outermost `for` loop of a kernel is the number of the thread",
    "launch": "call the kernel",
}
"""Names that other libraries have taught, and what to do here."""


class LeftOut:
    """Stands for what is left out, or for something in a module that is: it may be named, and raises when it is used.

    Nothing is an instance of it, so that programs may ask. The types of textures may be called, as annotations do.
    """

    def __init__(self, name: str, what: str, instead: str) -> None:
        self._left_out = name, what, instead
        self.__name__ = name.replace("ti", "tinote", 1)  # some are in `sys.modules`

    def __getattr__(self, name: str) -> LeftOut:
        if name.startswith("__"):
            raise AttributeError(name)
        own, what, instead = self._left_out
        return LeftOut(f"{own}.{name}", what, instead)

    def __tinote_error__(self, where: Span) -> NotAvailableError:
        """What its use at this place raises."""
        name, what, instead = self._left_out
        return NotAvailableError(f"`{name}`: {what}", where, hint=instead)

    def __call__(self, *args: Any, **kwargs: Any) -> LeftOut:
        if self._left_out[0].endswith(_ANNOTATIONS):
            return self
        raise self.__tinote_error__(caller())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        raise self.__tinote_error__(caller())

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self._left_out[0]}, which is left out>"


#: What annotations call: the types of a kernel's parameters.
_ANNOTATIONS = (".texture", ".rw_texture")


@functools.cache
def left_out(name: str, owner: str) -> LeftOut | None:
    """What stands for something of the dialect that is left out, which programs may name; None of other names."""
    return LeftOut(f"{owner}.{name}", *_MISSING[name]) if name in _MISSING else None


def refusing(module: str, **renamed: str) -> Callable[[str], Any]:
    """The `__getattr__` of a public module: gives what stands for what is left out, raises for what else it does not
    have, and warns of the old names of what is `renamed`.
    """

    def missing_attribute(name: str) -> Any:
        owner = module.replace("tinote", "ti", 1)
        if name in renamed:
            warn_of_old_name(f"{owner}.{name}", f"{owner}.{renamed[name]}", stacklevel=2)
            return getattr(sys.modules[module], renamed[name])
        found = left_out(name, owner)
        if found is not None:
            return found
        # It is not there yet while its own imports run, and Python asks it for names of its protocol.
        known = getattr(sys.modules.get(module), "__all__", ()) if not name.startswith("_") else ()
        raise no_attribute(f"module '{module}'", name, known)

    return missing_attribute
