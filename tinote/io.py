"""`ti.io`: meshes and fields in files, and series of them in time."""

from tinote.kit.io import Grid, read, write
from tinote.kit.mesh import Mesh
from tinote.kit.series import Series

__all__ = ["Grid", "Mesh", "Series", "read", "write"]
