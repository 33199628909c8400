"""What the dialect has and this package leaves out, with what to use in its place."""

from __future__ import annotations

from tinote.errors import NotAvailableError
from tinote.source import caller

__all__ = ["refuse"]

_SPARSE = "sparse structures are left out", "use dense fields: `ti.field(dtype, shape=…)`"
_QUANTISED = "quantised types are left out", "use the nearest type of full width: `ti.f16`, `ti.i8` or `ti.i16`"
_MESH = "meshes are left out", "keep vertices and elements in fields: `ti.Vector.field(3, ti.i32, shape=n)`"
_TEXTURE = "textures are left out", "use a field or ndarray, and interpolate with `ti.math.mix`"
_WINDOW = "3-D windows are left out", "draw in the plane with `ti.GUI`, or show particles live with `ti.viz`"
_AHEAD = "ahead-of-time modules are left out", "compiled kernels are kept on disk by themselves"
_GRAPH = "compute graphs are left out", "call the kernels one after the other: a launch takes microseconds"
_DEVICE = "instructions of one kind of GPU are left out", "write the loop plainly; it is vectorised for the CPU"

_MISSING: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        [
            "activate",
            "append",
            "bitmasked",
            "deactivate",
            "dynamic",
            "get_addr",
            "hash",
            "is_active",
            "pointer",
            "rescale_index",
            "sparse",
        ],
        _SPARSE,
    ),
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
    **dict.fromkeys(["Window", "ui"], _WINDOW),
    "aot": _AHEAD,
    "graph": _GRAPH,
    "simt": _DEVICE,
}


def refuse(name: str, owner: str = "ti") -> None:
    """Raise `NotAvailableError` when `owner.name` is something of the dialect that is left out; return otherwise."""
    found = _MISSING.get(name)
    if found is not None:
        what, instead = found
        raise NotAvailableError(f"`{owner}.{name}`: {what}", caller(), hint=instead)
